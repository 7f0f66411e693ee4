//! Stable compaction: the elements of a vector that a mask selects, in order. Their number depends on the data.
use super::LowerCtx;
use super::array::scatter;
use super::math::scan;
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::InstId;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Result of compacting a mask of `n` elements.
pub struct Compaction {
    /// `s32[n]`: positions of the selected elements, then zeros.
    pub places: InstId,
    /// `s32[n]`: number of selected elements in front of each element.
    pub before: InstId,
    /// `s32[]`: number of selected elements.
    pub count: InstId,
}

/// Positions of the true elements of `mask`, `pred[n]`.
pub fn compact_mask(cx: &mut LowerCtx, mask: InstId) -> Result<Compaction> {
    let n = cx.b.dims(mask)[0];
    let ones = cx.b.convert(mask, DType::S32);
    let zero = cx.b.scalar(DType::S32, 0.0);
    let count = cx.b.reduce(ones, zero, ScalarOp::Add, &[0]);
    let up_to = prefix_reduce(cx, ones, ScalarOp::Add, 0.0);
    let before = cx.b.sub(up_to, ones);
    let places = scatter_selected(cx, mask, before, None)?;
    debug_assert_eq!(cx.b.dims(places), [n]);
    Ok(Compaction { places, before, count })
}

/// Inclusive prefix reduction of a vector `s32[n]` with `op`, whose neutral element is `neutral`.
pub fn prefix_reduce(cx: &mut LowerCtx, x: InstId, op: ScalarOp, neutral: f64) -> InstId {
    if crate::symbolic::has_zero(cx.b.dims(x)) {
        return x;
    }
    let comp = cx.b.scalar_computation(op, DType::S32);
    scan::prefix_reduction(cx, x, 0, comp, neutral)
}

/// Scatters the elements of `x` that `mask` selects to the positions `to`; zeros elsewhere. Without `x`, scatters the elements'
/// own positions.
pub fn scatter_selected(cx: &mut LowerCtx, mask: InstId, to: InstId, x: Option<InstId>) -> Result<InstId> {
    let n = cx.b.dims(mask)[0];
    let x = x.unwrap_or_else(|| cx.b.iota(DType::S32, &[n], 0));
    let none = cx.b.full_like(x, 0.0);
    if n.is_zero() {
        return Ok(none);
    }
    // An update with an index out of bounds is dropped.
    let outside = cx.b.full(DType::S32, &[n], -1.0);
    let to = cx.b.select(mask, to, outside);
    let to = cx.b.reshape(to, &dims![n, 1]);
    scatter(cx, none, to, x, None)
}
