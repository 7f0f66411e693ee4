//! The elements of a vector for which something holds, in order: as many as the values say.
use super::LowerCtx;
use super::array::scatter;
use super::math::scan;
use crate::diag::Result;
use crate::dims;
use crate::hlo::open::InstId;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Places in a vector of `n` elements.
pub struct Compact {
    /// `s32[n]`: the places of the elements that hold, then zeros.
    pub places: InstId,
    /// `s32[n]`: how many hold in front of each element.
    pub before: InstId,
    /// `s32[]`: how many hold.
    pub count: InstId,
}

/// The places at which `mask`, `pred[n]`, holds.
pub fn compact(cx: &mut LowerCtx, mask: InstId) -> Result<Compact> {
    let n = cx.b.dims(mask)[0];
    let ones = cx.b.convert(mask, DType::S32);
    let zero = cx.b.scalar(DType::S32, 0.0);
    let count = cx.b.reduce(ones, zero, ScalarOp::Add, &[0]);
    let up_to = running(cx, ones, ScalarOp::Add, 0.0);
    let before = cx.b.sub(up_to, ones);
    let places = placed(cx, mask, before, None)?;
    debug_assert_eq!(cx.b.dims(places), [n]);
    Ok(Compact { places, before, count })
}

/// `s32[n]` combined up to each element.
pub fn running(cx: &mut LowerCtx, x: InstId, op: ScalarOp, neutral: f64) -> InstId {
    if crate::symbolic::has_zero(cx.b.dims(x)) {
        return x;
    }
    let comp = cx.b.scalar_computation(op, DType::S32);
    scan::running(cx, x, 0, comp, neutral)
}

/// The elements of `x`, or their places, for which `mask` holds, written to the places `to`; zeros elsewhere.
pub fn placed(cx: &mut LowerCtx, mask: InstId, to: InstId, x: Option<InstId>) -> Result<InstId> {
    let n = cx.b.dims(mask)[0];
    let x = x.unwrap_or_else(|| cx.b.iota(DType::S32, &[n], 0));
    let none = cx.b.full_like(x, 0.0);
    if n.is_zero() {
        return Ok(none);
    }
    // an update outside is dropped
    let outside = cx.b.full(DType::S32, &[n], -1.0);
    let to = cx.b.select(mask, to, outside);
    let to = cx.b.reshape(to, &dims![n, 1]);
    scatter(cx, none, to, x, None)
}
