//! `QuantizeV2`: converts floats to integers of a range, and returns the range that the integers represent.
//!
//! Source: TensorFlow's `quantize_op.cc` and `quantization_utils.h`, with the same order and precision of operations.
use super::levels::{QuantRange, QuantType, quantize_in_f32};
use crate::diag::Result;
use crate::graph::TfType;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::fact::{Dims, Fact};
use crate::ops::math::special::{add_scalar, compare_scalar};
use crate::ops::op_lowering::op;
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] =
    &[op("QuantizeV2", "input min_range max_range -> output output_min output_max", quantize)
        .shape(quantize_shape)
        .dtypes("f32 to s8, u8, s16, u16 and s32")];

/// Lowers `QuantizeV2`: the integers of type `T` nearest to the elements within the range.
fn quantize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, dtype) = (cx.arg(0)?, cx.dims(0)?, cx.attr_dtype("T")?);
    let integers = QuantType::from_dtype(cx, dtype)?;
    let axis = match cx.node.int("axis").unwrap_or(-1) {
        axis if axis < 0 => None,
        axis => Some(cx.normalize_axis(axis, dims.len())?),
    };
    let (given, axis) = limits(cx, &dims, axis)?;
    let limits = widened(cx, given);
    let mode = cx.node.str("mode").unwrap_or("MIN_COMBINED").to_string();
    let rounding = cx.node.str("round_mode").unwrap_or("HALF_AWAY_FROM_ZERO").to_string();
    let is_known = matches!(&*rounding, "HALF_AWAY_FROM_ZERO" | "HALF_TO_EVEN");
    if !is_known || (rounding == "HALF_TO_EVEN" && mode != "SCALED") {
        return Err(
            cx.unsupported_case(format!("round_mode {rounding} in mode {mode}, which TensorFlow does not have either"))
        );
    }
    let (y, limits) = match &*mode {
        "MIN_COMBINED" => (combined(cx.b, x, &limits, &integers, axis), limits),
        "MIN_FIRST" if axis.is_some() => {
            return Err(cx.unsupported_case("MIN_FIRST along an axis, which TensorFlow does not have either"));
        }
        "MIN_FIRST" => (quantize_in_f32(cx.b, x, &limits, &integers), limits),
        "SCALED" => {
            let integers =
                QuantType { least: integers.least + f64::from(u8::from(cx.bool_attr("narrow_range"))), ..integers };
            let round = if rounding == "HALF_TO_EVEN" { ScalarOp::RoundNearestEven } else { ScalarOp::RoundNearestAfz };
            scaled(cx.b, x, &limits, &integers, axis, round)
        }
        other => {
            return Err(cx.unsupported_case(format!("mode {other}; MIN_COMBINED, MIN_FIRST and SCALED are supported")));
        }
    };
    let y = if dtype == DType::S32 { beyond_words(cx.b, y) } else { y };
    let y = cx.b.convert(y, dtype);
    Ok([y, limits.min, limits.max].map(Value::Array).into())
}

/// Range from the inputs: scalars, or vectors along the returned axis. An axis of size 1 counts as none.
fn limits(cx: &mut LowerCtx, dims: &[Dim], axis: Option<usize>) -> Result<(QuantRange, Option<usize>)> {
    let along = axis.filter(|&axis| dims[axis] != 1);
    let mut ends = [cx.arg(1)?, cx.arg(2)?];
    for (i, end) in ends.iter_mut().enumerate() {
        let own = cx.b.dims(*end).to_vec();
        match along {
            Some(axis) if own == [dims[axis]] => {}
            None if own.iter().product::<Dim>() == 1 => *end = cx.b.reshape(*end, &[]),
            _ => return Err(cx.shape_mismatch(format!("a range of {own:?} in input {} for {dims:?}", i + 1))),
        }
    }
    Ok((QuantRange { min: ends[0], max: ends[1] }, along))
}

/// Range extended to include zero, and at least as wide as attribute `ensure_minimum_range`.
fn widened(cx: &mut LowerCtx, QuantRange { min, max }: QuantRange) -> QuantRange {
    let least_part = f64::from(cx.node.float("ensure_minimum_range").unwrap_or(0.01));
    let b = &mut *cx.b;
    let [one, zero, part] = [1.0, 0.0, least_part].map(|v| b.full_like(min, v));
    let [low, high] = [min, max].map(|x| b.unary(ScalarOp::Abs, x));
    let magnitude = b.max(low, high);
    let magnitude = b.max(one, magnitude);
    let width = b.mul(magnitude, part);
    let min = b.min(zero, min);
    let nearest = b.add(min, width);
    let max = b.max(max, nearest);
    QuantRange { min, max: b.max(zero, max) }
}

/// Bound of the range, broadcast to the sizes of `x`.
fn spread(b: &mut Builder, value: InstId, x: InstId, axis: Option<usize>) -> InstId {
    let dims = b.dims(x).to_vec();
    let map: Vec<usize> = axis.into_iter().collect();
    b.broadcast(value, &dims, &map)
}

/// Clamps `x` to the range.
fn clamp(b: &mut Builder, x: InstId, limits: &QuantRange, axis: Option<usize>) -> InstId {
    let (min, max) = (spread(b, limits.min, x, axis), spread(b, limits.max, x, axis));
    let x = b.min(x, max);
    b.max(x, min)
}

/// Quantizes by steps from the lower bound of the range, which the smallest integer represents.
fn combined(b: &mut Builder, x: InstId, limits: &QuantRange, integers: &QuantType, axis: Option<usize>) -> InstId {
    let &QuantType { least, most, .. } = integers;
    let width = b.sub(limits.max, limits.min);
    let width = b.convert(width, DType::F64);
    let steps = b.full_like(width, most - least);
    let scale = b.div(steps, width);
    let scale = b.convert(scale, DType::F32);
    let (min, scale) = (spread(b, limits.min, x, axis), spread(b, scale, x, axis));
    let x = clamp(b, x, limits, axis);
    let above = b.sub(x, min);
    let scaled = b.mul(above, scale);
    if least < 0.0 {
        let half = b.full_like(scaled, (most - least + 1.0) / 2.0);
        let centered = b.sub(scaled, half);
        return b.unary(ScalarOp::RoundNearestAfz, centered);
    }
    // The conversion to integers truncates.
    add_scalar(b, scaled, 0.5)
}

/// Quantizes by steps from zero, for a range with the proportions of the integer type; also returns that range.
fn scaled(
    b: &mut Builder,
    x: InstId,
    limits: &QuantRange,
    integers: &QuantType,
    axis: Option<usize>,
    round: ScalarOp,
) -> (InstId, QuantRange) {
    let (least, most) = (b.full_like(limits.min, integers.least), b.full_like(limits.max, integers.most));
    let mut side = |end: InstId, integer: InstId| {
        let (zero, largest) = (b.full_like(end, 0.0), b.full_like(end, f64::from(f32::MAX)));
        let product = b.mul(integer, end);
        let (is_there, quotient) = (b.compare(Direction::Gt, product, zero), b.div(integer, end));
        b.select(is_there, quotient, largest)
    };
    let (lower, upper) = (side(limits.min, least), side(limits.max, most));
    let scale = b.min(lower, upper);
    let [min, max] = [least, most].map(|end| {
        let end = b.div(end, scale);
        flushed(b, end)
    });
    let limits = QuantRange { min, max };
    let scale = spread(b, scale, x, axis);
    let x = clamp(b, x, &limits, axis);
    let scaled = b.mul(x, scale);
    (b.unary(round, scaled), limits)
}

/// Flushes subnormal numbers to zero, as TensorFlow's kernels do.
fn flushed(b: &mut Builder, x: InstId) -> InstId {
    let magnitude = b.unary(ScalarOp::Abs, x);
    let is_denormal = compare_scalar(b, Direction::Lt, magnitude, f64::from(f32::MIN_POSITIVE));
    let zero = b.full_like(x, 0.0);
    b.select(is_denormal, zero, x)
}

/// Replaces numbers that exceed 32 bits by the smallest 32-bit integer: the result of x86 conversions, and so TensorFlow's.
fn beyond_words(b: &mut Builder, x: InstId) -> InstId {
    let is_beyond = compare_scalar(b, Direction::Ge, x, 2_147_483_648.0);
    let least = b.full_like(x, -2_147_483_648.0);
    b.select(is_beyond, least, x)
}

fn quantize_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (dims, dtype) = (cx.dims(0)?, cx.attr_type("T"));
    let ends = match cx.node.int("axis").filter(|&axis| axis >= 0) {
        None => Dims::from_sizes(&[]),
        Some(axis) => match cx.ranked_dims(0)? {
            Some(dims) => match dims[cx.normalize_axis(axis, dims.len())?] {
                InferredDim::Known(1) => Dims::from_sizes(&[]),
                known @ InferredDim::Known(_) => vec![known].into(),
                // The bounds become scalars if the axis turns out to have size 1.
                _ => cx.unranked_from(0),
            },
            None => cx.unranked_from(0),
        },
    };
    let end = Fact::new(Some(TfType::Data(DType::F32)), ends);
    Ok(vec![Fact::new(dtype, dims), end.clone(), end])
}
