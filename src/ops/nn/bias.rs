//! Biases, and the loss that is half a square.
use super::window::Layout;
use crate::diag::Result;
use crate::hlo::{Builder, InstId};
use crate::ops::row::op;
use crate::ops::{LowerCtx, OpRow, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// The rows of this file.
#[rustfmt::skip]
pub const ROWS: &[OpRow] = &[
    op("BiasAdd",     "value bias -> output",   bias_add),
    op("BiasAddV1",   "value bias -> output",   bias_add),
    op("BiasAddGrad", "out_backprop -> output", bias_add_grad),
    op("L2Loss",      "t -> output",            l2_loss).dtypes("f16, bf16, f32, f64"),
];

/// The feature axis of an array of `rank` under the node's `data_format`.
pub fn feature_axis(cx: &LowerCtx, rank: usize) -> Result<usize> {
    let spatial = rank.checked_sub(2).ok_or_else(|| cx.mismatch(format!("an array of rank {rank} has no features")))?;
    Ok(Layout::parse(cx.node, spatial)?.feature)
}

/// `x` plus a vector along `axis`.
pub fn add_along(b: &mut Builder, x: InstId, bias: InstId, axis: usize) -> InstId {
    let dims = b.dims(x).to_vec();
    let wide = b.broadcast(bias, &dims, &[axis]);
    b.elementwise(ScalarOp::Add, &[x, wide])
}

/// Refuses a bias that is no vector of the size of `axis`.
pub fn check_bias(cx: &LowerCtx, x: &[u64], bias: &[u64], axis: usize) -> Result<()> {
    if bias.len() != 1 || x.get(axis) != bias.first() {
        return Err(cx.mismatch(format!("a bias of {bias:?} does not fit dimension {axis} of {x:?}")));
    }
    Ok(())
}

fn bias_add(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dims = cx.dims(0)?;
    let axis = feature_axis(cx, dims.len())?;
    check_bias(cx, &dims, &cx.dims(1)?, axis)?;
    let (x, bias) = (cx.arg(0)?, cx.arg(1)?);
    let y = add_along(cx.b, x, bias, axis);
    cx.one(y)
}

/// The type in which sums of `dtype` are kept: f32 for the narrow floats.
pub fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// The sum over `axes`, kept wide and converted back.
pub fn sum(b: &mut Builder, x: InstId, axes: &[usize]) -> InstId {
    let dtype = b.dtype(x);
    let x = b.convert(x, wide(dtype));
    let zero = b.scalar(wide(dtype), 0.0);
    let y = b.reduce(x, zero, ScalarOp::Add, axes);
    b.convert(y, dtype)
}

fn bias_add_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let rank = cx.dims(0)?.len();
    let axis = feature_axis(cx, rank)?;
    let x = cx.arg(0)?;
    let others: Vec<usize> = (0..rank).filter(|&a| a != axis).collect();
    let y = sum(cx.b, x, &others);
    cx.one(y)
}

/// Half the sum of squares.
fn l2_loss(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dtype) = (cx.arg(0)?, cx.dtype(0)?);
    let axes: Vec<usize> = (0..cx.b.rank(x)).collect();
    let x = cx.b.convert(x, wide(dtype));
    let square = cx.b.mul(x, x);
    let total = sum(cx.b, square, &axes);
    let half = cx.b.full_like(total, 0.5);
    let y = cx.b.mul(total, half);
    let y = cx.b.convert(y, dtype);
    cx.one(y)
}
