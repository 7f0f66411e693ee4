//! XLA's ops for bounded dynamic sizes.
use crate::diag::Result;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("XlaSetDynamicDimensionSize", "input dim_index size -> output", set_size).constant_inputs(&[1]),
    op("XlaSetBound", "input bound -> output", set_bound)
        .constant_inputs(&[1])
        .shape(like_first_input)
        .dtypes("s32, a scalar"),
];

/// Lowers `XlaSetDynamicDimensionSize`: the size of an axis becomes a run-time value, bounded by its old size.
fn set_size(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let axis = cx.normalize_axis(cx.constant_int(1)?, dims.len())?;
    let size = scalar(cx, 2)?;
    let made = format!("what `{}` makes", cx.node.name);
    let n = match cx.constant_dim(2).ok() {
        Some(n) => Dim::size(n).map_err(|_| cx.shape_mismatch(format!("a size of {n}")))?,
        None => cx.bounded_size(size, dims[axis], &made)?,
    };
    if n > dims[axis] {
        return Err(cx.shape_mismatch(format!("{n} of the {} elements of axis {axis}", dims[axis])));
    }
    let y = cx.b.slice_axis(x, axis, Dim::from(0), n);
    cx.one_output(y)
}

/// Lowers `XlaSetBound`: the input as a size of at most the given bound. A call with a larger value fails.
fn set_bound(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, bound) = (scalar(cx, 0)?, cx.constant_int(1)?);
    let most = Dim::size(bound).map_err(|_| cx.shape_mismatch(format!("a bound of {bound}")))?;
    if cx.b.nesting_depth() != 1 {
        return Err(cx.unsupported_case("a bound inside of a loop or branch, whose sizes are fixed"));
    }
    let held = if most < Dim::from(i32::MAX) { cx.clamp_checked(x, most) } else { x };
    let dims = cx.dims(0)?;
    let held = cx.b.reshape(held, &dims);
    cx.one_output(held)
}

/// Input `i`, a single s32, as a scalar.
fn scalar(cx: &mut LowerCtx, i: usize) -> Result<InstId> {
    let (x, dims) = (cx.arg(i)?, cx.dims(i)?);
    if cx.b.dtype(x) != DType::S32 || dims.iter().any(|&n| n != 1) {
        return Err(cx.shape_mismatch(format!("input {i} must be one s32, not {}", cx.b.shape(x))));
    }
    Ok(cx.b.reshape(x, &[]))
}
