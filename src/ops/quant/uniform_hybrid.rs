//! Products of floats with uniformly quantized weights. Each item of the left operand is quantized to 8 bits with a range of
//! its own.
use super::uniform::{broadcast_along, quantization_axis, subtract_zero_point};
use super::uniform_conv::convolution_dims;
use crate::diag::Result;
use crate::hlo::symbolic::DotDims;
use crate::hlo::symbolic::{Builder, InstId, Op};
use crate::ops::math::special::{add_scalar, compare_scalar};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value, Work};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const SIGNATURE: &str = "lhs rhs rhs_scales rhs_zero_points -> output";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("UniformQuantizedDotHybrid",         SIGNATURE, dot).shape(dot_shape).dtypes("f32 by s8 to f32"),
    op("UniformQuantizedConvolutionHybrid", SIGNATURE, convolution).dtypes("f32 by s8 to f32").work(Work::Contraction),
];

/// Quantized array: integers minus their zero points, `s32`, and the scale of each item, `f32[items]`.
struct Quantized {
    centered: InstId,
    scales: InstId,
}

fn quantized(b: &mut Builder, x: InstId, items: usize) -> Quantized {
    let dims = b.dims(x).to_vec();
    let others: Vec<usize> = (0..dims.len()).filter(|&a| a != items).collect();
    let folds = [(ScalarOp::Minimum, f64::INFINITY), (ScalarOp::Maximum, f64::NEG_INFINITY)];
    let [min, max] = folds.map(|(op, neutral)| {
        let neutral = b.scalar(DType::F32, neutral);
        let end = b.reduce(x, neutral, op, &others);
        let zero = b.full_like(end, 0.0);
        let end = b.binary(op, end, zero);
        b.convert(end, DType::F64)
    });
    let width = b.sub(max, min);
    let steps = b.full_like(width, 255.0);
    let scale = b.div(width, steps);
    let scale = b.convert(scale, DType::F32);
    let inverse = b.div(steps, width);
    let inverse = b.convert(inverse, DType::F32);
    let is_nothing = compare_scalar(b, Direction::Eq, scale, 0.0);
    let is_finite = b.unary(ScalarOp::IsFinite, inverse);
    let is_beyond = b.unary(ScalarOp::Not, is_finite);
    let is_nothing = b.binary(ScalarOp::Or, is_nothing, is_beyond);
    let zero_point = zero_point(b, min, max, scale);
    let (zero_of, inverse_of) = (b.broadcast(zero_point, &dims, &[items]), b.broadcast(inverse, &dims, &[items]));
    let q = b.mul(x, inverse_of);
    let q = add_scalar(b, q, 0.5);
    let q = b.unary(ScalarOp::Floor, q);
    let q = b.convert(q, DType::S32);
    let q = b.add(q, zero_of);
    let (least, most) = (b.full_like(q, -128.0), b.full_like(q, 127.0));
    let q = b.min(q, most);
    let q = b.max(q, least);
    let q = b.sub(q, zero_of);
    let none = b.full_like(q, 0.0);
    let is_nothing_of = b.broadcast(is_nothing, &dims, &[items]);
    let one = b.full_like(scale, 1.0);
    Quantized { centered: b.select(is_nothing_of, none, q), scales: b.select(is_nothing, one, scale) }
}

/// Integer from -128 to 127 that represents zero, computed from the bound of the range with the smaller rounding error; the
/// lower bound if both are equal.
fn zero_point(b: &mut Builder, min: InstId, max: InstId, scale: InstId) -> InstId {
    let scale = b.convert(scale, DType::F64);
    let [(low, low_error), (high, high_error)] = [(min, -128.0), (max, 127.0)].map(|(end, integer): (InstId, f64)| {
        let steps = b.div(end, scale);
        let integers = b.full_like(steps, integer);
        let from_here = b.sub(integers, steps);
        let error = b.unary(ScalarOp::Abs, steps);
        (from_here, add_scalar(b, error, integer.abs()))
    });
    let is_low = b.compare(Direction::Lt, low_error, high_error);
    let zero = b.select(is_low, low, high);
    let zero = b.unary(ScalarOp::RoundNearestAfz, zero);
    let (least, most) = (b.full_like(zero, -128.0), b.full_like(zero, 127.0));
    let zero = b.max(zero, least);
    let zero = b.min(zero, most);
    b.convert(zero, DType::S32)
}

/// Integer sums of products as floats: multiplied by the scale of the item, then by that of the feature.
fn scaled(cx: &mut LowerCtx, sum: InstId, scales: InstId, items: usize, features: Option<usize>) -> Result<InstId> {
    let (dims, of_rhs) = (cx.b.dims(sum).to_vec(), cx.arg(2)?);
    let sum = cx.b.convert(sum, DType::F32);
    let scales = cx.b.broadcast(scales, &dims, &[items]);
    let y = cx.b.mul(sum, scales);
    let of_rhs = broadcast_along(cx, of_rhs, &dims, features)?;
    Ok(cx.b.mul(y, of_rhs))
}

fn check_types(cx: &LowerCtx) -> Result<()> {
    match (cx.dtype(0)?, cx.dtype(1)?) {
        (DType::F32, DType::S8) => Ok(()),
        (lhs, rhs) => Err(cx.unsupported_case(format!("{lhs} by {rhs}; f32 by s8 is supported"))),
    }
}

fn dot(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    check_types(cx)?;
    let (x, y, zeros, own) = (cx.arg(0)?, cx.arg(1)?, cx.arg(3)?, quantization_axis(cx, "rhs_quantization_axis"));
    let (left, right) = (cx.dims(0)?, cx.dims(1)?);
    if left.len() != 2 || right.len() != 2 || left[1] != right[0] || own.is_some_and(|a| a != 1) {
        return Err(cx.shape_mismatch(format!("a product of {left:?} and {right:?} with scales along axis {own:?}")));
    }
    let Quantized { centered, scales } = quantized(cx.b, x, 0);
    let y = subtract_zero_point(cx, y, zeros, own)?;
    let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() };
    let sum = cx.b.dot(centered, y, dims);
    let y = scaled(cx, sum, scales, 0, own.map(|_| 1))?;
    cx.one_output(y)
}

fn convolution(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    check_types(cx)?;
    let dims = convolution_dims(cx)?;
    let own = quantization_axis(cx, "rhs_quantization_axis");
    if dims.batch_group_count != 1 {
        return Err(cx.unsupported_case("groups of the batch, whose items have ranges of their own"));
    }
    if own.is_some_and(|a| a != dims.kernel_output_feature) {
        return Err(cx.shape_mismatch("scales for each place of another axis than the features of the result"));
    }
    let (x, kernel, zeros) = (cx.arg(0)?, cx.arg(1)?, cx.arg(3)?);
    let Quantized { centered, scales } = quantized(cx.b, x, dims.input_batch);
    let kernel = subtract_zero_point(cx, kernel, zeros, own)?;
    let (items, features) = (dims.output_batch, own.map(|_| dims.output_feature));
    let sum = cx.b.add_inst(Op::Convolution(Box::new(dims)), &[centered, kernel]);
    let y = scaled(cx, sum, scales, items, features)?;
    cx.one_output(y)
}

fn dot_shape(cx: &mut ShapeCtx) -> Result<Vec<crate::ops::fact::Fact>> {
    let (x, y) = (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(1, 2)?);
    cx.one_output_typed_by("Tout", vec![x[0], y[1]])
}
