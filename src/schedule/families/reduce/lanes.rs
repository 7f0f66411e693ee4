//! Loops of reductions of the innermost dimension: lanes hold partial results.
use super::loops::{ReductionLoop, term_coordinates};
use crate::diag::Error;
use crate::schedule::loops::prelude::*;

impl<'a> Emitter<'a> {
    /// Reduces the terms of result `at` into register `reg`: `lanes` partial results, combined by a fixed tree at the end, and the terms
    /// after the last full vector one by one.
    pub(super) fn fold_in_lanes(
        &mut self,
        e: &mut KernelBuilder,
        f: &ReductionLoop,
        axes: &[usize],
        at: &[Index],
        reg: RegId,
        lanes: u64,
    ) -> Result<Vec<Stmt>> {
        let input = f.inputs[0];
        let (array, op) = (self.scope.comp.array_shape(input), f.recipe.simple);
        let op = op.ok_or_else(|| unsupported_error(self.scope.comp, f.root.anchor, ""))?;
        let (dtype, (&n, outer)) = (e.k.regs[reg].dtype, array.dims.split_last().unwrap_or((&1, &[])));
        let (loops, from) = term_coordinates(&mut e.k, outer, axes, at);
        let term = |s: &mut Self, e: &mut KernelBuilder, from: &[Index], x: Index| {
            let x = s.emit_element(e, input, &[from, &[x]].concat())?;
            Ok::<ExprId, Error>(convert(&mut e.k, x, array.dtype, dtype))
        };
        let (whole, rest) = (n / lanes, n % lanes);
        let mut body = Vec::new();
        if whole > 0 {
            let (tile, lane) = (e.k.add_var(whole), e.k.add_var(lanes));
            let acc = e.k.add_reg(dtype, lanes, 1);
            let start = match op {
                // the first vector starts it, so that no neutral element is needed
                ScalarOp::Maximum | ScalarOp::Minimum | ScalarOp::And | ScalarOp::Or => {
                    let first =
                        |(d, x): (usize, &Index)| if axes.contains(&d) { Index::constant(0) } else { x.clone() };
                    let first: Vec<Index> = from.iter().enumerate().map(first).collect();
                    term(self, e, &first, Index::var(lane))?
                }
                _ => constant_of_number(&mut e.k, dtype, if op == ScalarOp::Multiply { 1.0 } else { 0.0 }),
            };
            let x = term(self, e, &from, Index::var(tile).scale(lanes as i64).add(&Index::var(lane)))?;
            let old = e.k.read_reg(acc, 0);
            let new = e.k.add_op(op, &[old, x], dtype);
            let mut inside = vec![Stmt::set(acc, 0, start)];
            inside.extend(nest_loops(&loops, vec![for_loop(tile, LoopKind::Seq, vec![Stmt::set(acc, 0, new)])]));
            body.push(for_loop(lane, LoopKind::Vector, inside));
            let all = e.k.add_expr(Expr::Fold(op, acc, Index::constant(0)));
            let old = e.k.read_reg(reg, 0);
            let value = e.k.add_op(op, &[old, all], dtype);
            body.push(Stmt::set(reg, 0, value));
        }
        if rest > 0 {
            let tail = e.k.add_var(rest);
            let x = term(self, e, &from, Index::var(tail).offset((whole * lanes) as i64))?;
            let old = e.k.read_reg(reg, 0);
            let value = e.k.add_op(op, &[old, x], dtype);
            body.extend(nest_loops(&loops, vec![for_loop(tail, LoopKind::Seq, vec![Stmt::set(reg, 0, value)])]));
        }
        Ok(body)
    }
}
