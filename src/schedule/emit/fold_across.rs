//! Reductions of the innermost dimension.
use super::element::Elements;
use super::reduce::Folded;
use super::{convert, each};
use crate::diag::Result;
use crate::kernel::{Expr, Index, LoopKind, RegId, Stmt};
use crate::scalar::ScalarOp;
use crate::schedule::emit::{Emitter, refuse};

impl<'a> Emitter<'a> {
    /// The innermost dimension is folded: vectors of partial results, combined at the end in a fixed tree.
    pub(super) fn fold_across(
        &mut self,
        e: &mut Elements,
        f: &Folded,
        axes: &[usize],
        at: &[Index],
        reg: RegId,
        lanes: u64,
    ) -> Result<Vec<Stmt>> {
        let dims = self.scope.comp.array(f.inputs[0]).dims.clone();
        let op = f.way.simple.ok_or_else(|| refuse(self.scope.comp, f.anchor, ""))?;
        let narrow = self.scope.comp.array(f.inputs[0]).dtype;
        let dtype = e.k.regs[reg].dtype;
        let last = dims.len() - 1;
        let (n, zero) = (dims[last], Index::constant(0));
        let mut loops = Vec::new();
        let mut kept = at.iter();
        let mut from: Vec<Index> = Vec::new();
        for (d, &size) in dims.iter().enumerate() {
            if d == last {
                from.push(Index::default());
            } else if axes.contains(&d) {
                let v = e.k.var(size);
                loops.push(v);
                from.push(Index::var(v));
            } else {
                from.push(kept.next().cloned().unwrap_or_default());
            }
        }
        let whole = n / lanes;
        let mut body = Vec::new();
        if whole > 0 {
            let (tile, lane) = (e.k.var(whole), e.k.var(lanes));
            let acc = e.k.reg(dtype, lanes, 1);
            // The first vector starts the sum, so that no neutral element is needed.
            let neutral = super::number(&mut e.k, dtype, neutral_value(op));
            let start = match (op, dtype.is_float()) {
                (ScalarOp::Maximum, _) | (ScalarOp::Minimum, _) | (ScalarOp::And, _) | (ScalarOp::Or, _) => {
                    let mut first = from.clone();
                    for (d, x) in first.iter_mut().enumerate() {
                        if axes.contains(&d) {
                            *x = Index::constant(0);
                        }
                    }
                    first[last] = Index::var(lane);
                    let x = self.element(e, f.inputs[0], &first)?;
                    convert(&mut e.k, x, narrow, dtype)
                }
                _ => neutral,
            };
            let mut place = from.clone();
            place[last] = Index::var(tile).scale(lanes as i64).add(&Index::var(lane));
            let x = self.element(e, f.inputs[0], &place)?;
            let x = convert(&mut e.k, x, narrow, dtype);
            let old = e.k.expr(Expr::Reg(acc, zero.clone()));
            let new = e.k.op(op, &[old, x], dtype);
            let mut inside =
                vec![each(tile, LoopKind::Seq, vec![Stmt::Set { reg: acc, at: zero.clone(), value: new }])];
            for &v in loops.iter().rev() {
                inside = vec![each(v, LoopKind::Seq, inside)];
            }
            inside.insert(0, Stmt::Set { reg: acc, at: zero.clone(), value: start });
            body.push(each(lane, LoopKind::Vector, inside));
            let all = e.k.expr(Expr::Fold(op, acc, zero.clone()));
            let old = e.k.expr(Expr::Reg(reg, zero.clone()));
            let value = e.k.op(op, &[old, all], dtype);
            body.push(Stmt::Set { reg, at: zero.clone(), value });
        }
        if n % lanes > 0 {
            let tail = e.k.var(n % lanes);
            let mut place = from;
            place[last] = Index::var(tail).offset((whole * lanes) as i64);
            let x = self.element(e, f.inputs[0], &place)?;
            let x = convert(&mut e.k, x, narrow, dtype);
            let old = e.k.expr(Expr::Reg(reg, zero.clone()));
            let value = e.k.op(op, &[old, x], dtype);
            let mut inside = vec![each(tail, LoopKind::Seq, vec![Stmt::Set { reg, at: zero, value }])];
            for &v in loops.iter().rev() {
                inside = vec![each(v, LoopKind::Seq, inside)];
            }
            body.extend(inside);
        }
        Ok(body)
    }
}

fn neutral_value(op: ScalarOp) -> f64 {
    if op == ScalarOp::Multiply { 1.0 } else { 0.0 }
}
