//! How much of its buffers a kernel reads and writes.
use super::{Atom, BufId, Buffer, BufferLocation, ElementSpan, Expr, ExprId, Index, Kernel, VarId};
use crate::util::id_vec::IdVec;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a launch reads or writes outside its registers and stack, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTraffic {
    /// Bytes of constants.
    pub constants: u64,
    /// Bytes of arguments, results and arrays between kernels.
    pub values: u64,
}

impl Kernel {
    /// Bytes of memory that a launch touches: for each buffer as many elements as its indices can name, and no more than lie between the
    /// least and the largest of them.
    pub fn memory_traffic(&self, buffers: &IdVec<BufId, Buffer>) -> MemoryTraffic {
        let mut sum = MemoryTraffic::default();
        for (buffer, spans) in self.accesses_by_buffer() {
            let Buffer { dtype, elements, place } = buffers[buffer];
            let (mut named, mut low, mut high) = (0u64, i64::MAX, i64::MIN);
            for (index, (last, at_once)) in spans {
                let mut vars = BTreeSet::new();
                self.vars_of(index, &mut vars);
                let count = vars.iter().fold(1u64, |n, &v| n.saturating_mul(self.vars[v]));
                named = named.saturating_add(count.saturating_mul(at_once));
                let (least, most) = index.range(&self.vars);
                (low, high) = (low.min(least), high.max(most.saturating_add_unsigned(last)));
            }
            let between = high.saturating_sub(low).saturating_add(1).max(0) as u64;
            let bytes = named.min(between).min(elements) * dtype.bytes() as u64;
            match place {
                BufferLocation::Weights(_) => sum.constants += bytes,
                BufferLocation::Arg(_)
                | BufferLocation::Result(_)
                | BufferLocation::State(_)
                | BufferLocation::Workspace(_) => sum.values += bytes,
                BufferLocation::Stack => {}
            }
        }
        sum
    }

    /// The distinct indices by which each buffer is read or written, each with the offset of the last element there and the number of
    /// elements.
    fn accesses_by_buffer(&self) -> BTreeMap<BufId, BTreeMap<&Index, (u64, u64)>> {
        let mut all: BTreeMap<BufId, BTreeMap<&Index, (u64, u64)>> = BTreeMap::new();
        for ElementSpan { buf, first, last, count } in self.loads().chain(self.stores()) {
            let most = all.entry(buf).or_default().entry(first).or_default();
            *most = (most.0.max(last), most.1.max(count));
        }
        all
    }

    fn vars_of(&self, index: &Index, found: &mut BTreeSet<VarId>) {
        for (atom, _) in &index.terms {
            match atom {
                Atom::Var(v) => {
                    found.insert(*v);
                }
                Atom::Div(x, _) | Atom::Rem(x, _) | Atom::Clamp(x, _, _) => self.vars_of(x, found),
                Atom::Value(e) => self.vars_below(*e, found),
            }
        }
    }

    fn vars_below(&self, root: ExprId, found: &mut BTreeSet<VarId>) {
        let (mut open, mut seen) = (vec![root], BTreeSet::new());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match &self.exprs[id] {
                Expr::Const(..) => {}
                Expr::Op(_, args, _) => open.extend(args),
                Expr::DotProduct { x, y, z, .. } => open.extend([x, y, z]),
                Expr::Load(_, x) | Expr::Word(_, x) | Expr::Number(x, _) | Expr::Within(x, _, _) => {
                    self.vars_of(x, found)
                }
                Expr::Reg(_, x) | Expr::Lanes(_, x, _, _) | Expr::Fold(_, _, x) => self.vars_of(x, found),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Stmt;
    use crate::tensor::DType;

    #[test]
    fn a_part_of_a_buffer_counts_as_the_part() {
        let mut buffers = IdVec::default();
        let mut buffer = |place| buffers.push(Buffer { dtype: DType::F32, elements: 1000, place });
        let (table, rows, out) =
            (buffer(BufferLocation::Weights(0)), buffer(BufferLocation::Arg(0)), buffer(BufferLocation::Workspace(0)));
        let mut k = Kernel::default();
        let (i, j) = (k.add_var(3), k.add_var(10));
        // rows of a table that another buffer names, into every second column of the result
        let row = k.add_expr(Expr::Load(rows, Index::var(i)));
        let at = Index::atom(Atom::Value(row)).scale(10).add(&Index::var(j));
        let value = k.add_expr(Expr::Load(table, at));
        let index = Index::var(i).scale(20).add(&Index::var(j).scale(2));
        k.body = vec![Stmt::Store { buf: out, index, value }];
        let touched = k.memory_traffic(&buffers);
        assert_eq!(touched, MemoryTraffic { constants: 30 * 4, values: (3 + 30) * 4 });
    }
}
