//! A window of maxima where its convolution is made (`families/producer_fusion/recipe/pooling.rs`).
use crate::hlo::Fold;
use crate::scalar::{CompareKind, Direction};
use crate::schedule::families::producer_fusion::recipe::Pooling;
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::fuse::root_coordinates;

impl<'a> Emitter<'a> {
    /// Appends element `at` of the pooling's operand to `taken`, the elements of the window so far; after the last one of the window,
    /// returns the index and the value of the result.
    pub(in crate::schedule) fn pool_element(
        &mut self,
        e: &mut KernelBuilder,
        id: InstId,
        pooled: &Pooling,
        taken: &mut Vec<ExprId>,
        at: &[Index],
    ) -> Result<Option<(Vec<Index>, ExprId)>> {
        taken.push(self.emit_element(e, pooled.producer, at)?);
        if (taken.len() as u64) < pooled.count {
            return Ok(None);
        }
        let largest = window_maximum(&mut e.k, pooled, taken);
        taken.clear();
        let mut at = at.to_vec();
        at[pooled.axis] = at[pooled.axis].div(pooled.count as i64, &e.k.vars);
        let pool = self.scope.fusion.anchor[id].unwrap_or(id);
        e.fixed.insert(pool, largest);
        let at = root_coordinates(&self.scope.fusion.path[pool], &at, &e.k.vars);
        let value = self.emit_element(e, id, &at)?;
        e.fixed.remove(&pool);
        Ok(Some((at, value)))
    }
}

/// The largest of the elements of a window.
fn window_maximum(k: &mut Kernel, pooled: &Pooling, taken: &[ExprId]) -> ExprId {
    match pooled.fold {
        Fold::By(op) => {
            taken.iter().copied().reduce(|best, x| k.add_op(op, &[best, x], DType::F32)).unwrap_or(taken[0])
        }
        Fold::Larger => {
            let start = k.add_expr(Expr::Const(DType::F32, u64::from(pooled.start.to_bits())));
            taken.iter().fold(start, |best, &x| {
                let larger = k.add_op(ScalarOp::Compare(Direction::Gt, CompareKind::Partial), &[x, best], DType::Pred);
                k.add_op(ScalarOp::Select, &[larger, x, best], DType::F32)
            })
        }
    }
}
