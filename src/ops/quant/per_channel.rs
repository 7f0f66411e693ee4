//! `RequantizePerChannel`: 32-bit integers with a range per channel, converted to 8 bits with a common range.
use super::contract::append_facts_of_ranges;
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::fact::Fact;
use crate::ops::math::special::mul_scalar;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("RequantizePerChannel", "input input_min input_max requested_output_min requested_output_max -> output output_min output_max", requantize)
        .shape(shape).dtypes("s32 to u8 and s8"),
    op("RequantizationRangePerChannel", "input input_min input_max -> output_min output_max", used_range)
        .shape(|_| Ok(append_facts_of_ranges(Vec::new()))).dtypes("s32"),
];

/// Number of 32-bit integers on one side of zero.
const LEVELS: f64 = 2_147_483_648.0;

fn shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims(0)?;
    Ok(append_facts_of_ranges(vec![Fact::new(cx.attr_type("out_type"), dims)]))
}

/// Larger of two magnitudes; the first one if either is NaN.
fn farthest(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    let [x, y] = [x, y].map(|end| b.unary(ScalarOp::Abs, end));
    let is_second = b.compare(Direction::Lt, x, y);
    b.select(is_second, y, x)
}

/// Integer images, and for each channel the magnitude of its range.
fn channels(cx: &mut LowerCtx) -> Result<[InstId; 2]> {
    let (dims, min, max) = (cx.dims(0)?, cx.dims(1)?, cx.dims(2)?);
    if dims.len() != 4 || min != max || min.len() != 1 || (min[0] != dims[3] && min[0] != 1) {
        return Err(cx.shape_mismatch(format!("ranges {min:?} and {max:?} for the channels of {dims:?}")));
    }
    if cx.dtype(0)? != DType::S32 {
        return Err(cx.unsupported_case(format!("quantized {}; s32 is supported", cx.dtype(0)?)));
    }
    let (q, min, max) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    Ok([q, farthest(cx.b, min, max)])
}

fn requantize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let [q, of_channels] = channels(cx)?;
    let dims = cx.dims(0)?;
    let [least, most] = match cx.attr_dtype("out_type")? {
        DType::U8 => [0.0, 255.0],
        DType::S8 => [-128.0, 127.0],
        other => return Err(cx.unsupported_case(format!("quantized {other}; u8 and s8 are supported"))),
    };
    let dtype = cx.attr_dtype("out_type")?;
    let mut end = |i: usize| -> Result<InstId> {
        let end = cx.arg(i)?;
        if cx.dims(i)?.iter().any(|&n| n != 1) {
            return Err(
                cx.shape_mismatch(format!("an end of a range must be one number, and input {i} is {:?}", cx.dims(i)?))
            );
        }
        Ok(cx.b.reshape(end, &[]))
    };
    let (low, high) = (end(3)?, end(4)?);
    let b = &mut *cx.b;
    let whole = farthest(b, low, high);
    let wide = b.dims(of_channels).to_vec();
    let whole = b.broadcast_to(whole, &wide);
    let scale = b.div(of_channels, whole);
    let scale = mul_scalar(b, scale, 1.0 / LEVELS);
    let scale = mul_scalar(b, scale, most);
    let scale = b.broadcast_to(scale, &dims);
    let x = b.convert(q, DType::F32);
    let x = b.mul(x, scale);
    let x = b.unary(ScalarOp::RoundNearestEven, x);
    let (least, most) = (b.full_like(x, least), b.full_like(x, most));
    // TensorFlow's kernel converts NaN to the smallest integer.
    let is_above = b.compare(Direction::Ge, x, least);
    let x = b.select(is_above, x, least);
    let x = b.min(x, most);
    let y = b.convert(x, dtype);
    Ok([y, low, high].map(Value::Array).into())
}

/// Lowers `RequantizationRangePerChannel`: the range of the numbers that occur, symmetric, or from zero if no integer is
/// negative.
fn used_range(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let [q, of_channels] = channels(cx)?;
    let clip = f64::from(cx.node.float("clip_value_max").unwrap_or(f32::INFINITY));
    let b = &mut *cx.b;
    let ends = [(i32::MAX, ScalarOp::Minimum), (i32::MIN, ScalarOp::Maximum)].map(|(start, op)| {
        let start = b.scalar(DType::S32, f64::from(start));
        b.reduce(q, start, op, &[0, 1, 2])
    });
    let farthest = farthest(b, ends[0], ends[1]);
    let farthest = b.convert(farthest, DType::F32);
    let reach = b.mul(of_channels, farthest);
    let reach = mul_scalar(b, reach, 1.0 / LEVELS);
    // TensorFlow's kernel skips channels whose range is NaN.
    let none = b.full_like(reach, 0.0);
    let is_number = b.compare(Direction::Eq, reach, reach);
    let reach = b.select(is_number, reach, none);
    let least = b.scalar(DType::F32, f64::from(f32::MIN_POSITIVE));
    let max = b.reduce(reach, least, ScalarOp::Maximum, &[0]);
    let clip = b.full_like(max, clip);
    let max = b.min(max, clip);
    let zero = b.scalar(DType::S32, 0.0);
    let lowest = b.reduce(ends[0], zero, ScalarOp::Minimum, &[0]);
    let is_above = b.compare(Direction::Ge, lowest, zero);
    let (below, none) = (b.unary(ScalarOp::Negate, max), b.full_like(max, 0.0));
    let min = b.select(is_above, none, below);
    Ok([min, max].map(Value::Array).into())
}
