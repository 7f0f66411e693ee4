//! Conversion between quantized integers and the numbers they represent.
//!
//! Source: TensorFlow's `quantization_utils.h`. It has two methods that round differently: in f64 for single elements, and in
//! f32 for whole arrays. Each kernel uses one of them, as do the lowerings here.
use super::dequantize::integer_bounds;
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::LowerCtx;
use crate::ops::math::special::{add_scalar, compare_scalar, mul_scalar};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Numbers that the smallest and the largest integer represent: f32 scalars.
#[derive(Clone, Copy)]
pub(super) struct QuantRange {
    pub(super) min: InstId,
    pub(super) max: InstId,
}

impl QuantRange {
    /// Range whose bounds are inputs `min` and `max`, of one element each.
    pub(super) fn from_inputs(cx: &mut LowerCtx, min: usize, max: usize) -> Result<QuantRange> {
        let mut end = |i: usize| {
            let (x, dims) = (cx.arg(i)?, cx.dims(i)?);
            if dims.iter().any(|&n| n != 1) {
                return Err(
                    cx.shape_mismatch(format!("an end of a range must be one number, and input {i} is {dims:?}"))
                );
            }
            Ok(cx.b.reshape(x, &[]))
        };
        Ok(QuantRange { min: end(min)?, max: end(max)? })
    }
    /// Symmetric range from `-max` to `max`.
    pub(super) fn symmetric(b: &mut Builder, max: InstId) -> QuantRange {
        QuantRange { min: b.unary(ScalarOp::Negate, max), max }
    }
}

/// Integer type from_dtype a quantized array, with its bounds.
#[derive(Clone, Copy)]
pub(super) struct QuantType {
    pub(super) dtype: DType,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl QuantType {
    pub(super) fn from_dtype(cx: &LowerCtx, dtype: DType) -> Result<QuantType> {
        let (least, most) = integer_bounds(cx, dtype)?;
        Ok(QuantType { dtype, least, most })
    }
    /// Number of integers of the type.
    fn count(&self) -> f64 {
        self.most - self.least + 1.0
    }
}

/// Width of a range plus one quantization step, an f64 scalar.
fn width(b: &mut Builder, range: &QuantRange, integers: &QuantType) -> InstId {
    let width = b.sub(range.max, range.min);
    let width = b.convert(width, DType::F64);
    mul_scalar(b, width, integers.count() / (integers.count() - 1.0))
}

/// Quantized numbers as `s64`, not clamped to the range of the integer type.
pub(super) fn quantize_unclamped(b: &mut Builder, x: InstId, range: &QuantRange, integers: &QuantType) -> InstId {
    let width = width(b, range, integers);
    let count = b.full_like(width, integers.count());
    let scale = b.div(count, width);
    let steps = |b: &mut Builder, x: InstId| {
        let x = b.convert(x, DType::F64);
        let x = b.mul(x, scale);
        b.unary(ScalarOp::RoundNearestAfz, x)
    };
    let (x, low) = (steps(b, x), steps(b, range.min));
    let above = b.sub(x, low);
    let above = b.convert(above, DType::S64);
    let q = add_scalar(b, above, integers.least);
    let (least, is_point) = (b.full_like(q, integers.least), b.compare(Direction::Eq, range.min, range.max));
    b.select(is_point, least, q)
}

/// Integers of the type quantize to numbers.
pub(super) fn quantize(b: &mut Builder, x: InstId, range: &QuantRange, integers: &QuantType) -> InstId {
    let q = quantize_unclamped(b, x, range, integers);
    let (least, most) = (b.full_like(q, integers.least), b.full_like(q, integers.most));
    let q = b.max(q, least);
    let q = b.min(q, most);
    b.convert(q, integers.dtype)
}

/// Low 32 bits of the integer that represents zero.
pub(super) fn zero_point(b: &mut Builder, range: &QuantRange, integers: &QuantType) -> InstId {
    let zero = b.scalar(DType::F32, 0.0);
    let q = quantize_unclamped(b, zero, range, integers);
    b.convert(q, DType::S32)
}

/// Dequantized numbers: the values that integers represent.
pub(super) fn dequantize(b: &mut Builder, q: InstId, range: &QuantRange, integers: &QuantType) -> InstId {
    let width = width(b, range, integers);
    let count = b.full_like(width, integers.count());
    let step = b.div(width, count);
    let narrow = b.convert(step, DType::F32);
    let low = b.div(range.min, narrow);
    let low = b.unary(ScalarOp::RoundNearestAfz, low);
    let low = b.mul(low, narrow);
    let low = b.convert(low, DType::F64);
    let q = b.convert(q, DType::F64);
    let above = add_scalar(b, q, -integers.least);
    let above = b.mul(above, step);
    let x = b.add(low, above);
    let x = b.convert(x, DType::F32);
    let is_point = b.compare(Direction::Eq, range.min, range.max);
    b.select(is_point, range.min, x)
}

/// Numbers that integers represent, computed in f32 by the steps with which TensorFlow dequantizes whole arrays.
pub(super) fn dequantize_in_f32(b: &mut Builder, q: InstId, range: &QuantRange, integers: &QuantType) -> InstId {
    let width = b.sub(range.max, range.min);
    let width = b.convert(width, DType::F64);
    let steps = b.full_like(width, integers.count() - 1.0);
    let step = b.div(width, steps);
    let step = b.convert(step, DType::F32);
    let low = b.div(range.min, step);
    let low = b.unary(ScalarOp::RoundNearestAfz, low);
    let low = b.mul(low, step);
    let is_point = b.compare(Direction::Eq, range.min, range.max);
    let low = b.select(is_point, range.min, low);
    let least = mul_scalar(b, step, integers.least);
    let base = b.sub(low, least);
    let q = b.convert(q, DType::F32);
    let above = b.mul(q, step);
    b.add(base, above)
}

/// Integers of the type quantize to numbers, computed in f32.
pub(super) fn quantize_in_f32(b: &mut Builder, x: InstId, range: &QuantRange, integers: &QuantType) -> InstId {
    let width = b.sub(range.max, range.min);
    let width = b.convert(width, DType::F64);
    let steps = b.full_like(width, integers.count() - 1.0);
    let scale = b.div(steps, width);
    let scale = b.convert(scale, DType::F32);
    let (none, is_point) = (b.full_like(scale, 0.0), b.compare(Direction::Eq, range.min, range.max));
    let scale = b.select(is_point, none, scale);
    let low = b.mul(range.min, scale);
    let low = b.unary(ScalarOp::RoundNearestAfz, low);
    let low = add_scalar(b, low, -integers.least);
    let q = b.mul(x, scale);
    let q = b.unary(ScalarOp::RoundNearestAfz, q);
    let q = b.sub(q, low);
    // The largest f32 that fits in 32 bits.
    let (least, most) = (b.full_like(q, integers.least), b.full_like(q, integers.most.min(2_147_483_520.0)));
    let q = b.max(q, least);
    let q = b.min(q, most);
    b.convert(q, integers.dtype)
}

/// Range of the products of integers with two ranges.
pub(super) fn product_range(
    b: &mut Builder,
    factors: [(&QuantRange, &QuantType); 2],
    product: &QuantType,
) -> QuantRange {
    let [x, y] = factors.map(|(range, integers)| {
        let width = b.sub(range.max, range.min);
        let steps = b.full_like(width, integers.most - integers.least);
        b.div(width, steps)
    });
    let step = b.mul(x, y);
    QuantRange { min: mul_scalar(b, step, product.least), max: mul_scalar(b, step, product.most) }
}

/// Quantization format of an array: the integer type and the range that it represents.
#[derive(Clone, Copy)]
pub(super) struct QuantFormat<'a> {
    pub range: &'a QuantRange,
    pub integers: &'a QuantType,
}

/// 8-bit integers as 32-bit integers that represent the same numbers, computed from the difference of two adjacent levels.
pub(super) fn requantize_to_32_bits(b: &mut Builder, q: InstId, from: QuantFormat, to: QuantFormat) -> InstId {
    let [first, second] = [0.0, 1.0].map(|level| {
        let level = b.scalar(from.integers.dtype, level);
        let number = dequantize(b, level, from.range, from.integers);
        quantize_unclamped(b, number, to.range, to.integers)
    });
    let step = b.sub(second, first);
    let step = b.convert(step, DType::S32);
    let step = b.convert(step, DType::S64);
    let q = b.convert(q, DType::S64);
    let above = b.mul(q, step);
    let q = b.add(first, above);
    let (least, most) = (b.full_like(q, to.integers.least), b.full_like(q, to.integers.most));
    let q = b.max(q, least);
    let q = b.min(q, most);
    b.convert(q, to.integers.dtype)
}

/// Integers converted to the nearest ones of another format.
pub(super) fn requantize(b: &mut Builder, q: InstId, from: QuantFormat, to: QuantFormat) -> InstId {
    let x = dequantize(b, q, from.range, from.integers);
    quantize(b, x, to.range, to.integers)
}

/// 32-bit integers converted to 8 bits with another range, in fixed point with 16 fractional bits.
pub(super) fn requantize_to_8_bits(b: &mut Builder, q: InstId, from: &QuantRange, to: &QuantRange) -> InstId {
    let (width, new_width) = (b.sub(from.max, from.min), b.sub(to.max, to.min));
    let [wide, new_wide, min] = [width, new_width, to.min].map(|x| b.convert(x, DType::F64));
    let is_point = compare_scalar(b, Direction::Eq, new_width, 0.0);
    let (none, zero) = (b.scalar(DType::F64, 0.0), b.scalar(DType::S64, 0.0));
    let levels = b.full_like(new_wide, 255.0);
    let inverse = b.div(levels, new_wide);
    let inverse = b.select(is_point, none, inverse);
    let inverse = b.convert(inverse, DType::F32);
    let sum = b.add(from.min, from.max);
    let middle = mul_scalar(b, sum, 0.5);
    let scale = mul_scalar(b, wide, 255.0 * 65536.0);
    let scale = b.div(scale, new_wide);
    let scale = b.convert(scale, DType::S64);
    let scale = b.select(is_point, zero, scale);
    let offset = b.mul(middle, inverse);
    let offset = mul_scalar(b, offset, 65536.0);
    let offset = b.convert(offset, DType::S64);
    let start = mul_scalar(b, min, 255.0);
    let start = mul_scalar(b, start, 65536.0);
    let start = b.div(start, new_wide);
    let start = b.unary(ScalarOp::RoundNearestAfz, start);
    let start = b.convert(start, DType::S64);
    let start = b.select(is_point, zero, start);
    let base = b.sub(offset, start);
    let base = add_scalar(b, base, 32768.0);
    let q = b.convert(q, DType::S64);
    let q = b.mul(q, scale);
    let by = b.full_like(q, 32.0);
    let q = b.elementwise(ScalarOp::ShiftRightArithmetic, &[q, by]);
    let q = b.add(q, base);
    let by = b.full_like(q, 16.0);
    let q = b.elementwise(ScalarOp::ShiftRightArithmetic, &[q, by]);
    let (least, most) = (b.full_like(q, 0.0), b.full_like(q, 255.0));
    let q = b.max(q, least);
    let q = b.min(q, most);
    b.convert(q, DType::U8)
}
