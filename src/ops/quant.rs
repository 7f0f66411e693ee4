//! Fake quantisation: rounding to what an integer type of few bits would hold.
mod round_trip;

use super::ShapeCtx;
use super::fact::Fact;
use super::nn::sum;
use super::row::op;
use super::shape::same;
use super::{LowerCtx, OpRow, Value};
use crate::diag::{Code, Error, Result};
use crate::hlo::{Builder, InstId};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const VARS: &str = "inputs min max -> outputs";
const GRAD: &str = "gradients inputs min max -> backprops_wrt_input backprop_wrt_min backprop_wrt_max";

/// The rows of this family.
#[rustfmt::skip]
pub const ROWS: &[&[OpRow]] = &[&[
    op("FakeQuantWithMinMaxArgs",                   "inputs -> outputs",               |cx| quantize(cx, Range::Attributes)).shape(same).dtypes("f32"),
    op("FakeQuantWithMinMaxVars",                   VARS,                              |cx| quantize(cx, Range::Inputs)).shape(same).dtypes("f32"),
    op("FakeQuantWithMinMaxVarsPerChannel",         VARS,                              |cx| quantize(cx, Range::Inputs)).shape(same).dtypes("f32"),
    op("FakeQuantWithMinMaxArgsGradient",           "gradients inputs -> backprops",   |cx| gradient(cx, Range::Attributes)).shape(same).dtypes("f32"),
    op("FakeQuantWithMinMaxVarsGradient",           GRAD,                              |cx| gradient(cx, Range::Inputs)).shape(gradient_shape).dtypes("f32"),
    op("FakeQuantWithMinMaxVarsPerChannelGradient", GRAD,                              |cx| gradient(cx, Range::Inputs)).shape(gradient_shape).dtypes("f32"),
], round_trip::ROWS];

/// Where the range comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Range {
    /// Attributes `min` and `max`.
    Attributes,
    /// The two inputs behind the first ones: scalars, or vectors over the last dimension.
    Inputs,
}

/// A range moved so that zero is one of its steps: arrays like `min`.
struct Nudged {
    low: InstId,
    high: InstId,
    step: InstId,
    /// False where the range is empty at zero and the result is zero.
    real: InstId,
}

/// `min` and `max`; `at` is the input of `min`.
fn bounds(cx: &mut LowerCtx, range: Range, at: usize) -> Result<[InstId; 2]> {
    match range {
        Range::Inputs => Ok([cx.arg(at)?, cx.arg(at + 1)?]),
        Range::Attributes => {
            let number = |name: &str, default: f32| f64::from(cx.node.float(name).unwrap_or(default));
            let (low, high) = (number("min", -6.0), number("max", 6.0));
            Ok([cx.b.scalar(DType::F32, low), cx.b.scalar(DType::F32, high)])
        }
    }
}

fn nudged(cx: &mut LowerCtx, [low, high]: [InstId; 2]) -> Result<Nudged> {
    let digits = cx.node.int("num_bits").unwrap_or(8);
    if !(2..=16).contains(&digits) {
        return Err(Error::user(Code::BadAttr, format!("num_bits is {digits}, and 2 to 16 are possible")));
    }
    let first = if cx.flag("narrow_range") { 1.0 } else { 0.0 };
    let last = 2f64.powi(digits as i32) - 1.0;
    let b = &mut *cx.b;
    let (first_step, last_step) = (b.full_like(low, first), b.full_like(low, last));
    let (width, steps) = (b.sub(high, low), b.full_like(low, last - first));
    let step = b.div(width, steps);
    let offset = b.div(low, step);
    let zero_point = b.sub(first_step, offset);
    let rounded = b.unary(ScalarOp::RoundNearestAfz, zero_point);
    let zero_point = b.elementwise(ScalarOp::Clamp, &[first_step, rounded, last_step]);
    let (down, up) = (b.sub(first_step, zero_point), b.sub(last_step, zero_point));
    let zero = b.full_like(low, 0.0);
    let (a, c) = (b.compare(Direction::Ne, low, zero), b.compare(Direction::Ne, high, zero));
    Ok(Nudged { low: b.mul(down, step), high: b.mul(up, step), step, real: b.binary(ScalarOp::Or, a, c) })
}

/// A value of the range over an array of these sizes, along its last dimension.
fn widen(b: &mut Builder, x: InstId, dims: &[u64]) -> InstId {
    b.broadcast_to(x, dims)
}

fn quantize(cx: &mut LowerCtx, range: Range) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let limits = bounds(cx, range, 1)?;
    let n = nudged(cx, limits)?;
    let b = &mut *cx.b;
    let one = b.full_like(n.step, 1.0);
    let inverse = b.div(one, n.step);
    let [low, high, step, inverse, real] = [n.low, n.high, n.step, inverse, n.real].map(|v| widen(b, v, &dims));
    let inside = b.elementwise(ScalarOp::Clamp, &[low, x, high]);
    let shifted = b.sub(inside, low);
    let scaled = b.mul(shifted, inverse);
    let half = b.full_like(scaled, 0.5);
    let raised = b.add(scaled, half);
    let whole = b.unary(ScalarOp::Floor, raised);
    let y = b.mul(whole, step);
    let y = b.add(y, low);
    let zero = b.full_like(y, 0.0);
    let y = b.select(real, y, zero);
    cx.one(y)
}

/// The gradient passes inside the range; what lies below or above it counts for `min` or `max`.
fn gradient(cx: &mut LowerCtx, range: Range) -> Result<Vec<Value>> {
    let (g, x, dims) = (cx.arg(0)?, cx.arg(1)?, cx.dims(1)?);
    let limits = bounds(cx, range, 2)?;
    let per_channel = cx.b.rank(limits[0]) == 1;
    let n = nudged(cx, limits)?;
    let b = &mut *cx.b;
    let [low, high, real] = [n.low, n.high, n.real].map(|v| widen(b, v, &dims));
    let (below, above) = (b.compare(Direction::Lt, x, low), b.compare(Direction::Gt, x, high));
    let empty = b.unary(ScalarOp::Not, real);
    let not_empty = real;
    let outside = b.binary(ScalarOp::Or, below, above);
    let outside = b.binary(ScalarOp::And, outside, not_empty);
    let zero = b.full_like(g, 0.0);
    let inner = b.select(outside, zero, g);
    if range == Range::Attributes {
        return cx.one(inner);
    }
    let axes: Vec<usize> = (0..dims.len() - usize::from(per_channel && !dims.is_empty())).collect();
    let mut total = |where_: InstId| {
        let part = b.select(where_, g, zero);
        let part = b.select(empty, zero, part);
        sum(b, part, &axes)
    };
    let (for_min, for_max) = (total(below), total(above));
    Ok([inner, for_min, for_max].map(Value::Array).to_vec())
}

fn gradient_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    [0, 2, 3].into_iter().map(|i| Ok(Fact::new(cx.dtype(0), cx.dims(i)?))).collect()
}
