//! A window of maxima where its convolution is made (`plan/within/pooled.rs`).
use super::element::Elements;
use super::{Emitter, Scope};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::kernel::{ExprId, Index};
use crate::scalar::ScalarOp;
use crate::schedule::plan::fuse::forward;
use crate::schedule::plan::within::Pooled;
use crate::tensor::DType;

impl<'a> Emitter<'a> {
    /// Takes element `at` of the operand; with the last one of a window, the place and the value that the kernel of `id` makes of it.
    pub(super) fn of_window(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        (id, pooled): (InstId, &Pooled),
        taken: &mut Vec<ExprId>,
        at: &[Index],
    ) -> Result<Option<(Vec<Index>, ExprId)>> {
        taken.push(self.element(scope, e, pooled.producer, at)?);
        if (taken.len() as u64) < pooled.count {
            return Ok(None);
        }
        let mut largest = taken[0];
        for x in taken.drain(..).skip(1) {
            largest = e.k.op(ScalarOp::Maximum, &[largest, x], DType::F32);
        }
        let mut at = at.to_vec();
        at[pooled.axis] = at[pooled.axis].div(pooled.count as i64, &e.k.vars);
        let pool = scope.fusion.anchor[id].unwrap_or(id);
        e.fixed.insert(pool, largest);
        let at = forward(&scope.fusion.path[pool], &at, &e.k.vars);
        let value = self.element(scope, e, id, &at)?;
        e.fixed.remove(&pool);
        Ok(Some((at, value)))
    }
}
