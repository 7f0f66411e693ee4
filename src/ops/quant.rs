//! Quantization, and fake quantization: rounding to the values that an integer type of few bits can represent.
mod contract;
mod dequantize;
mod levels;
mod per_channel;
mod pointwise;
mod quantize;
mod requantize;
mod round_trip;
mod shaping;
mod uniform;
mod uniform_conv;
mod uniform_hybrid;

use super::ShapeCtx;
use super::fact::Fact;
use super::nn::sum_axes;
use super::op_lowering::op;
use super::shape::like_first_input;
use super::{LowerCtx, OpLowering, Value};
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const VARS: &str = "inputs min max -> outputs";
const GRAD: &str = "gradients inputs min max -> backprops_wrt_input backprop_wrt_min backprop_wrt_max";

/// Definitions of the ops of this family.
#[rustfmt::skip]
pub const ROWS: &[&[OpLowering]] = &[&[
    op("FakeQuantWithMinMaxArgs",                   "inputs -> outputs",               |cx| quantize(cx, RangeSource::Attributes)).shape(like_first_input).dtypes("f32"),
    op("FakeQuantWithMinMaxVars",                   VARS,                              |cx| quantize(cx, RangeSource::Inputs)).shape(like_first_input).dtypes("f32"),
    op("FakeQuantWithMinMaxVarsPerChannel",         VARS,                              |cx| quantize(cx, RangeSource::Inputs)).shape(like_first_input).dtypes("f32"),
    op("FakeQuantWithMinMaxArgsGradient",           "gradients inputs -> backprops",   |cx| gradient(cx, RangeSource::Attributes)).shape(like_first_input).dtypes("f32"),
    op("FakeQuantWithMinMaxVarsGradient",           GRAD,                              |cx| gradient(cx, RangeSource::Inputs)).shape(gradient_shape).dtypes("f32"),
    op("FakeQuantWithMinMaxVarsPerChannelGradient", GRAD,                              |cx| gradient(cx, RangeSource::Inputs)).shape(gradient_shape).dtypes("f32"),
], dequantize::ROWS, quantize::ROWS, contract::ROWS, requantize::ROWS, per_channel::ROWS, pointwise::ROWS, shaping::ROWS, round_trip::ROWS, uniform::ROWS, uniform_conv::ROWS, uniform_hybrid::ROWS];

/// Source of a quantization range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RangeSource {
    /// Range in the attributes `min` and `max`.
    Attributes,
    /// Range in two inputs behind the data inputs: scalars, or vectors over the last dimension.
    Inputs,
}

/// Quantization range moved so that zero is exactly representable (nudged); arrays of the shape of `min`.
struct NudgedRange {
    low: InstId,
    high: InstId,
    step: InstId,
    /// Steps per unit, by a division of its own: not always equal to 1 / `step` in floating point.
    inverse: InstId,
    /// Number of steps from `low` to zero.
    zero: InstId,
    /// False where `min` and `max` are both zero; the result is zero there.
    real: InstId,
}

/// Arrays `min` and `max` of the range; input `at` is `min`.
fn bounds(cx: &mut LowerCtx, range: RangeSource, at: usize) -> Result<[InstId; 2]> {
    match range {
        RangeSource::Inputs => Ok([cx.arg(at)?, cx.arg(at + 1)?]),
        RangeSource::Attributes => {
            let number = |name: &str, default: f32| f64::from(cx.node.float(name).unwrap_or(default));
            let (low, high) = (number("min", -6.0), number("max", 6.0));
            Ok([cx.b.scalar(DType::F32, low), cx.b.scalar(DType::F32, high)])
        }
    }
}

fn nudge_range(cx: &mut LowerCtx, [low, high]: [InstId; 2]) -> Result<NudgedRange> {
    let digits = cx.node.int("num_bits").unwrap_or(8);
    if !(2..=16).contains(&digits) {
        return Err(Error::user(Code::BadAttr, format!("num_bits is {digits}, and 2 to 16 are possible")));
    }
    let first = if cx.bool_attr("narrow_range") { 1.0 } else { 0.0 };
    let last = 2f64.powi(digits as i32) - 1.0;
    let b = &mut *cx.b;
    let (first_step, last_step) = (b.full_like(low, first), b.full_like(low, last));
    let (width, steps) = (b.sub(high, low), b.full_like(low, last - first));
    let (step, inverse) = (b.div(width, steps), b.div(steps, width));
    let offset = b.div(low, step);
    let zero_point = b.sub(first_step, offset);
    let rounded = b.unary(ScalarOp::RoundNearestAfz, zero_point);
    let zero_point = b.elementwise(ScalarOp::Clamp, &[first_step, rounded, last_step]);
    let (down, up) = (b.sub(first_step, zero_point), b.sub(last_step, zero_point));
    let nothing = b.full_like(low, 0.0);
    let (a, c) = (b.compare(Direction::Ne, low, nothing), b.compare(Direction::Ne, high, nothing));
    let (low, high) = (b.mul(down, step), b.mul(up, step));
    let below = b.unary(ScalarOp::Negate, low);
    let below = b.mul(below, inverse);
    let zero = nearest(b, below);
    Ok(NudgedRange { low, high, step, inverse, zero, real: b.binary(ScalarOp::Or, a, c) })
}

/// Nearest whole number; halves are rounded up.
fn nearest(b: &mut Builder, x: InstId) -> InstId {
    let half = b.full_like(x, 0.5);
    let raised = b.add(x, half);
    b.unary(ScalarOp::Floor, raised)
}

/// A per-channel value broadcast along the last dimension of an array of these sizes.
fn widen(b: &mut Builder, x: InstId, dims: &[Dim]) -> InstId {
    b.broadcast_to(x, dims)
}

/// Lowers fake quantization: the nearest multiple of the step within the range. Operations and their order are those of
/// TensorFlow's kernels; another order would differ by some units in the last place.
fn quantize(cx: &mut LowerCtx, range: RangeSource) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let limits = bounds(cx, range, 1)?;
    // TensorFlow's kernel divides for a single range from inputs, and multiplies by the inverse for all others.
    let divides = range == RangeSource::Inputs && cx.b.rank(limits[0]) == 0;
    let n = nudge_range(cx, limits)?;
    let b = &mut *cx.b;
    let wide = [n.low, n.high, n.step, n.inverse, n.zero, n.real].map(|v| widen(b, v, &dims));
    let [low, high, step, inverse, zero, real] = wide;
    let inside = b.binary(ScalarOp::Minimum, x, high);
    let inside = b.binary(ScalarOp::Maximum, inside, low);
    let shifted = b.sub(inside, low);
    let scaled = if divides { b.div(shifted, step) } else { b.mul(shifted, inverse) };
    let from_zero = b.sub(scaled, zero);
    let whole = nearest(b, from_zero);
    let y = b.mul(whole, step);
    let nothing = b.full_like(y, 0.0);
    let y = b.select(real, y, nothing);
    cx.one_output(y)
}

/// Lowers the gradient of fake quantization: it passes inside the range; values below and above contribute to the gradients of
/// `min` and `max`.
fn gradient(cx: &mut LowerCtx, range: RangeSource) -> Result<Vec<Value>> {
    let (g, x, dims) = (cx.arg(0)?, cx.arg(1)?, cx.dims(1)?);
    let limits = bounds(cx, range, 2)?;
    let per_channel = cx.b.rank(limits[0]) == 1;
    let n = nudge_range(cx, limits)?;
    let b = &mut *cx.b;
    let [low, high, real] = [n.low, n.high, n.real].map(|v| widen(b, v, &dims));
    let (above_low, below_high) = (b.compare(Direction::Ge, x, low), b.compare(Direction::Le, x, high));
    let inside = b.binary(ScalarOp::And, above_low, below_high);
    let empty = b.unary(ScalarOp::Not, real);
    let passed = b.binary(ScalarOp::Or, inside, empty);
    let inner = masked(b, g, passed);
    if range == RangeSource::Attributes {
        return cx.one_output(inner);
    }
    let axes: Vec<usize> = (0..dims.len() - usize::from(per_channel && !dims.is_empty())).collect();
    let mut total = |outside: Direction, border: InstId| {
        let beyond = b.compare(outside, x, border);
        let part = masked(b, g, beyond);
        let zero = b.full_like(g, 0.0);
        let part = b.select(real, part, zero);
        sum_axes(b, part, &axes)
    };
    let (for_min, for_max) = (total(Direction::Lt, low), total(Direction::Gt, high));
    Ok([inner, for_min, for_max].map(Value::Array).to_vec())
}

/// Multiplies `x` by a mask of 0 and 1, as TensorFlow's kernels do: an infinite element that is masked out becomes NaN.
fn masked(b: &mut Builder, x: InstId, mask: InstId) -> InstId {
    let mask = b.convert(mask, b.dtype(x));
    b.mul(x, mask)
}

fn gradient_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    [0, 2, 3].into_iter().map(|i| Ok(Fact::new(cx.dtype(0), cx.dims(i)?))).collect()
}
