//! `BiasAdd` and `L2Loss`.
use super::window::DataFormat;
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::ShapeCtx;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("BiasAdd",     "value bias -> output",   bias_add).shape(bias_add_shape).work(Work::PerOutputElement(1)),
    op("BiasAddV1",   "value bias -> output",   bias_add).shape(bias_add_shape).work(Work::PerOutputElement(1)),
    op("BiasAddGrad", "out_backprop -> output", bias_add_grad).shape(bias_add_grad_shape).work(Work::PerInputElement),
    op("L2Loss",      "t -> output",            l2_loss).shape(|cx| cx.one_output_like(0, vec![])).dtypes("f16, bf16, f32, f64").work(Work::PerInputElement),
];

/// Feature axis of an array of rank `rank` in the node's `data_format`.
pub fn feature_axis(cx: &LowerCtx, rank: usize) -> Result<usize> {
    let spatial =
        rank.checked_sub(2).ok_or_else(|| cx.shape_mismatch(format!("an array of rank {rank} has no features")))?;
    Ok(DataFormat::parse(cx.node, spatial)?.feature)
}

/// Adds a vector to `x` along `axis`.
pub fn add_along_axis(b: &mut Builder, x: InstId, bias: InstId, axis: usize) -> InstId {
    let dims = b.dims(x).to_vec();
    let wide = b.broadcast(bias, &dims, &[axis]);
    b.elementwise(ScalarOp::Add, &[x, wide])
}

/// Rejects a bias that is not a vector of the size of `axis`.
pub fn check_bias(cx: &LowerCtx, x: &[Dim], bias: &[Dim], axis: usize) -> Result<()> {
    if bias.len() != 1 || x.get(axis) != bias.first() {
        return Err(cx.shape_mismatch(format!("a bias of {bias:?} does not fit dimension {axis} of {x:?}")));
    }
    Ok(())
}

fn bias_add(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dims = cx.dims(0)?;
    let axis = feature_axis(cx, dims.len())?;
    check_bias(cx, &dims, &cx.dims(1)?, axis)?;
    let (x, bias) = (cx.arg(0)?, cx.arg(1)?);
    let y = add_along_axis(cx.b, x, bias, axis);
    cx.one_output(y)
}

/// Type in which sums of `dtype` are accumulated: f32 for narrow floats.
pub fn accumulator_type(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// Sum over `axes`, accumulated in the wide type and converted back.
pub fn sum_axes(b: &mut Builder, x: InstId, axes: &[usize]) -> InstId {
    let dtype = b.dtype(x);
    let x = b.convert(x, accumulator_type(dtype));
    let zero = b.scalar(accumulator_type(dtype), 0.0);
    let y = b.reduce(x, zero, ScalarOp::Add, axes);
    b.convert(y, dtype)
}

fn bias_add_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let rank = cx.dims(0)?.len();
    let axis = feature_axis(cx, rank)?;
    let x = cx.arg(0)?;
    let others: Vec<usize> = (0..rank).filter(|&a| a != axis).collect();
    let y = sum_axes(cx.b, x, &others);
    cx.one_output(y)
}

/// Lowers `L2Loss`: half the sum of squares.
fn l2_loss(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dtype) = (cx.arg(0)?, cx.dtype(0)?);
    let axes: Vec<usize> = (0..cx.b.rank(x)).collect();
    let x = cx.b.convert(x, accumulator_type(dtype));
    let square = cx.b.mul(x, x);
    let total = sum_axes(cx.b, square, &axes);
    let half = cx.b.full_like(total, 0.5);
    let y = cx.b.mul(total, half);
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Feature axis of input `i`, if its rank is known.
pub fn feature_axis_of(cx: &ShapeCtx, i: usize) -> Result<Option<usize>> {
    let Some(dims) = cx.ranked_dims(i)? else { return Ok(None) };
    let spatial = dims.len().checked_sub(2).ok_or_else(|| cx.shape_mismatch(format!("input {i} has no features")))?;
    Ok(Some(DataFormat::parse(cx.node, spatial)?.feature))
}

/// Shape function of `BiasAdd`: the value's shape, with the size of the bias for its features.
fn bias_add_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let bias = cx.dims_of_rank(1, 1)?[0];
    let Some(axis) = feature_axis_of(cx, 0)? else { return cx.one_output_like(0, cx.dims(0)?) };
    let mut dims = cx.ranked_dims(0)?.unwrap_or_default();
    let both = cx.merge_dim(dims[axis], bias);
    dims[axis] =
        both.ok_or_else(|| cx.shape_mismatch(format!("a bias of {} for {}", cx.args[1].dims, cx.args[0].dims)))?;
    cx.one_output_like(0, dims)
}

fn bias_add_grad_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let features = match (feature_axis_of(cx, 0)?, cx.ranked_dims(0)?) {
        (Some(axis), Some(dims)) => dims[axis],
        _ => {
            let why = cx.unknown_cause(0);
            cx.fresh_dim(why)
        }
    };
    cx.one_output_like(0, vec![features])
}
