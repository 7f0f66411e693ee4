//! How the chunks of a kernel share what it writes.
use super::{Atom, BufId, Expr, ExprId, Index, Kernel, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::util::id_vec::IdVec;

impl Kernel {
    /// Distance between the first elements of `buf` that the first chunk and the middle chunk write: less than a row if chunks are parts
    /// of rows, else a number of rows. `None` without two chunks or with unknown addresses.
    pub fn middle_chunk_offset(&self, buf: BufId) -> Option<i64> {
        let chunk = self.chunks.filter(|_| self.chunk_count() > 1)?;
        let at = |number: u64| {
            let mut values: IdVec<VarId, i64> = self.vars.values().map(|_| 0).collect();
            values[chunk] = number as i64;
            self.first_store(&self.body, buf, &mut values)
        };
        Some(at(self.chunk_count() / 2)? - at(0)?)
    }

    /// Index of the first store to `buf` in the first iteration of all loops, whatever conditions say.
    fn first_store(&self, body: &[Stmt], buf: BufId, values: &mut IdVec<VarId, i64>) -> Option<i64> {
        body.iter().find_map(|s| match s {
            Stmt::Store { buf: to, index, .. } if *to == buf => self.index_at(index, values),
            Stmt::For { body, .. } | Stmt::If { body, .. } | Stmt::While { body, .. } => {
                self.first_store(body, buf, values)
            }
            Stmt::Let { var, value, body } => {
                values[*var] = self.index_at(value, values)?;
                self.first_store(body, buf, values)
            }
            Stmt::Tiles(sums) if sums.to == buf => self.index_at(&sums.at, values),
            Stmt::Tiles(_) | Stmt::Store { .. } | Stmt::Set { .. } | Stmt::Prefetch { .. } | Stmt::Release => None,
        })
    }

    fn index_at(&self, index: &Index, values: &IdVec<VarId, i64>) -> Option<i64> {
        let mut sum = index.constant;
        for (atom, factor) in &index.terms {
            let term = match atom {
                Atom::Var(v) => values[*v],
                Atom::Div(x, n) => self.index_at(x, values)?.div_euclid(*n),
                Atom::Rem(x, n) => self.index_at(x, values)?.rem_euclid(*n),
                Atom::Clamp(x, low, high) => self.index_at(x, values)?.clamp(*low, *high),
                Atom::Value(e) => self.number_at(*e, values)?,
            };
            sum += term * factor;
        }
        Some(sum)
    }

    /// Evaluates an expression that selects between indices.
    fn number_at(&self, id: ExprId, values: &IdVec<VarId, i64>) -> Option<i64> {
        match &self.exprs[id] {
            Expr::Number(x, _) => self.index_at(x, values),
            Expr::Within(x, low, high) => self.index_at(x, values).map(|x| i64::from((*low..*high).contains(&x))),
            Expr::Op(ScalarOp::Select, args, _) => match args[..] {
                [cond, yes, no] => self.number_at(if self.number_at(cond, values)? != 0 { yes } else { no }, values),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DType;
    use crate::util::id_vec::Id;

    #[test]
    fn panels_and_rows_are_told_apart() {
        let buf = BufId::from_index(0);
        let mut k = Kernel::default();
        let (all, panel, row) = (k.add_var(40), k.add_var(4), k.add_var(10));
        let value = k.add_expr(Expr::Const(DType::F32, 0));
        let index = Index::var(panel).scale(16).add(&Index::var(row).scale(64));
        let store = Stmt::Store { buf, index, value };
        let chunks = |k: &Kernel, first: VarId, second: VarId| {
            let n = k.vars[second] as i64;
            let inner = Stmt::Let { var: second, value: Index::var(all).rem(n, &k.vars), body: vec![store.clone()] };
            vec![Stmt::Let { var: first, value: Index::var(all).div(n, &k.vars), body: vec![inner] }]
        };
        assert_eq!(k.middle_chunk_offset(buf), None);
        k.chunks = Some(all);
        k.body = chunks(&k, panel, row);
        assert_eq!(k.middle_chunk_offset(buf), Some(2 * 16));
        k.body = chunks(&k, row, panel);
        assert_eq!(k.middle_chunk_offset(buf), Some(5 * 64));
    }
}
