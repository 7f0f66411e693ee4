//! Uniform quantization: an integer q represents (q - zero point) times a scale; both are common to all elements, or given per
//! slice along an axis.
//!
//! Integer sums are rescaled by a 31-bit fixed-point factor and a shift, as in TensorFlow's kernels and TFLite. Source of both:
//! TensorFlow's `uniform_quant_ops/math_utils.h`.
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::DotDims;
use crate::hlo::symbolic::InstId;
use crate::ops::math::cast::convert;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::guarded_counts;
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("UniformQuantize", "input scales zero_points -> output", quantize).shape(typed).dtypes("f32 to s8, u8, s32"),
    op("UniformDequantize", "input scales zero_points -> output", dequantize).shape(typed).dtypes("s8, u8, s32 to f32"),
    op(
        "UniformRequantize",
        "input input_scales input_zero_points output_scales output_zero_points -> output",
        requantize,
    )
    .shape(typed)
    .constant_inputs(&[1, 3])
    .dtypes("s8, u8, s32"),
    op(
        "UniformQuantizedAdd",
        "lhs rhs lhs_scales lhs_zero_points rhs_scales rhs_zero_points output_scales output_zero_points -> output",
        add,
    )
    .constant_inputs(&[2, 4, 6])
    .dtypes("s32"),
    op("UniformQuantizedClipByValue", "operand min max scales zero_points -> output", clip)
        .shape(like_first_input)
        .dtypes("s32"),
    op(
        "UniformQuantizedDot",
        "lhs rhs lhs_scales lhs_zero_points rhs_scales rhs_zero_points output_scales output_zero_points -> output",
        dot,
    )
    .constant_inputs(&[2, 4, 6])
    .dtypes("s8 to s32"),
];

fn typed(cx: &mut ShapeCtx) -> Result<Vec<crate::ops::fact::Fact>> {
    let dims = cx.dims(0)?;
    cx.one_output_typed_by("Tout", dims)
}

/// Axis that an attribute names; `None` for -1.
pub(super) fn quantization_axis(cx: &LowerCtx, name: &str) -> Option<usize> {
    usize::try_from(cx.node.int(name).unwrap_or(-1)).ok()
}

/// `v`, a scalar or one number per slice along `axis`, broadcast to these sizes.
pub(super) fn broadcast_along(cx: &mut LowerCtx, v: InstId, dims: &[Dim], axis: Option<usize>) -> Result<InstId> {
    match (cx.b.dims(v), axis) {
        ([], _) => Ok(cx.b.broadcast(v, dims, &[])),
        ([n], Some(axis)) if dims.get(axis) == Some(n) => Ok(cx.b.broadcast(v, dims, &[axis])),
        (other, _) => Err(cx.shape_mismatch(format!("scales or zero points of {other:?} for {dims:?}"))),
    }
}

/// `x` clamped to the range of integers in the attributes with this prefix.
pub(super) fn clamp_to_range(cx: &mut LowerCtx, x: InstId, prefix: &str) -> Result<InstId> {
    let end = |cx: &LowerCtx, name: &str| {
        let name = format!("{prefix}quantization_{name}_val");
        cx.require_attr(cx.node.int(&name), &name)
    };
    let (low, high) = (end(cx, "min")?, end(cx, "max")?);
    let (low, high) = (cx.b.scalar(DType::S32, low as f64), cx.b.scalar(DType::S32, high as f64));
    let x = cx.b.min(x, high);
    Ok(cx.b.max(x, low))
}

fn quantize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, axis) = (cx.arg(0)?, cx.dims(0)?, quantization_axis(cx, "quantization_axis"));
    let (scales, zeros) = (cx.arg(1)?, cx.arg(2)?);
    let one = cx.b.full_like(scales, 1.0);
    let inverse = cx.b.div(one, scales);
    let (inverse, zeros) = (broadcast_along(cx, inverse, &dims, axis)?, broadcast_along(cx, zeros, &dims, axis)?);
    let x = cx.b.convert(x, DType::F32);
    let scaled = cx.b.mul(x, inverse);
    let half = cx.b.full_like(scaled, 0.5);
    let up = cx.b.add(scaled, half);
    let whole = cx.b.unary(ScalarOp::Floor, up);
    let whole = convert(cx.b, whole, DType::S32);
    let q = cx.b.add(whole, zeros);
    let q = clamp_to_range(cx, q, "")?;
    let out = cx.attr_dtype("Tout")?;
    let q = cx.b.convert(q, out);
    cx.one_output(q)
}

/// Quantized integers minus their zero point, in 32 bits.
pub(super) fn subtract_zero_point(cx: &mut LowerCtx, x: InstId, zeros: InstId, axis: Option<usize>) -> Result<InstId> {
    let dims = cx.b.dims(x).to_vec();
    let (x, zeros) = (cx.b.convert(x, DType::S32), broadcast_along(cx, zeros, &dims, axis)?);
    Ok(cx.b.sub(x, zeros))
}

fn dequantize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, axis) = (cx.arg(0)?, cx.dims(0)?, quantization_axis(cx, "quantization_axis"));
    let (scales, zeros) = (cx.arg(1)?, cx.arg(2)?);
    let (q, scales) = (subtract_zero_point(cx, x, zeros, axis)?, broadcast_along(cx, scales, &dims, axis)?);
    let q = cx.b.convert(q, DType::F32);
    let y = cx.b.mul(q, scales);
    let out = cx.attr_dtype("Tout")?;
    let y = cx.b.convert(y, out);
    cx.one_output(y)
}

/// Positive factor as a 31-bit integer and a left shift: factor · 2^(shift - 31); `None` if it cannot be represented.
fn fixed_point(factor: f64) -> Option<(i64, i64)> {
    if !factor.is_finite() || factor <= 0.0 {
        return None;
    }
    let mut shift = factor.log2().floor() as i64 + 1;
    let mut part = factor / 2f64.powi(shift as i32);
    // The logarithm may have been rounded to the next integer.
    if part >= 1.0 {
        (part, shift) = (part / 2.0, shift + 1);
    }
    let mut fixed = (part * 2f64.powi(31)).round() as i64;
    if fixed == 1 << 31 {
        (fixed, shift) = (fixed / 2, shift + 1);
    }
    Some(match shift {
        ..-31 => (0, 0),
        31.. => (i64::from(i32::MAX), 30),
        _ => (fixed, shift),
    })
}

/// `x`, `s32`, multiplied by factors, common or per slice along `axis`; rounded to nearest, halves up.
pub(super) fn multiply_and_round(cx: &mut LowerCtx, x: InstId, factors: &[f64], axis: Option<usize>) -> Result<InstId> {
    let parts: Option<Vec<(i64, i64)>> = factors.iter().map(|&f| fixed_point(f)).collect();
    let parts = parts.ok_or_else(|| Error::user(Code::BadInputs, "scales must be positive"))?;
    let dims = cx.b.dims(x).to_vec();
    let sizes: &[Dim] = if axis.is_some() { &dims![factors.len()] } else { &[] };
    let number = |cx: &mut LowerCtx, f: &dyn Fn(&(i64, i64)) -> i64| {
        let all: Vec<i64> = parts.iter().map(f).collect();
        let all = cx.b.constant(Tensor::of(&guarded_counts(sizes), &all));
        broadcast_along(cx, all, &dims, axis)
    };
    let factor = number(cx, &|p| p.0)?;
    let half = number(cx, &|p| 1 << (30 - p.1))?;
    let by = number(cx, &|p| 31 - p.1)?;
    let wide = cx.b.convert(x, DType::S64);
    let product = cx.b.mul(wide, factor);
    let product = cx.b.add(product, half);
    let whole = cx.b.binary(ScalarOp::ShiftRightArithmetic, product, by);
    let (low, high) = (f64::from(i32::MIN), f64::from(i32::MAX));
    let (low, high) = (cx.b.scalar(DType::S64, low), cx.b.scalar(DType::S64, high));
    let whole = cx.b.max(whole, low);
    let whole = cx.b.min(whole, high);
    Ok(cx.b.convert(whole, DType::S32))
}

/// Scales in the constant input `i`.
pub(super) fn constant_scales(cx: &LowerCtx, i: usize) -> Result<Vec<f64>> {
    let t = cx.constant(i)?;
    Ok((0..t.len()).map(|k| t.get_f64(k).unwrap_or(0.0)).collect())
}

/// Product of the scales `over`, divided by the scale `under`; for each slice along an axis, or once for all.
pub(super) fn scale_ratios(cx: &LowerCtx, over: &[&[f64]], under: &[f64]) -> Result<Vec<f64>> {
    let n = over.iter().chain([&under]).map(|s| s.len()).max().unwrap_or(1);
    let at = |s: &[f64], i: usize| if s.len() == 1 { s.first().copied() } else { s.get(i).copied() };
    let one = |i: usize| {
        let product = over.iter().try_fold(1.0, |p, s| Some(p * at(s, i)?))?;
        Some(product / at(under, i)?)
    };
    (0..n)
        .map(one)
        .collect::<Option<Vec<f64>>>()
        .ok_or_else(|| cx.shape_mismatch("as many scales as places are needed"))
}

fn requantize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (from, to) =
        (quantization_axis(cx, "input_quantization_axis"), quantization_axis(cx, "output_quantization_axis"));
    let (x, zeros, out_zeros, dims) = (cx.arg(0)?, cx.arg(2)?, cx.arg(4)?, cx.dims(0)?);
    let q = subtract_zero_point(cx, x, zeros, from)?;
    let factors = scale_ratios(cx, &[&constant_scales(cx, 1)?], &constant_scales(cx, 3)?)?;
    let q = multiply_and_round(cx, q, &factors, from.or(to))?;
    let zeros = broadcast_along(cx, out_zeros, &dims, to)?;
    let q = cx.b.add(q, zeros);
    let q = clamp_to_range(cx, q, "output_")?;
    let out = cx.attr_dtype("Tout")?;
    let q = cx.b.convert(q, out);
    cx.one_output(q)
}

/// Lowers addition: both operands are converted to the scale of the result, and added.
fn add(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let out = quantization_axis(cx, "output_quantization_axis");
    let under = constant_scales(cx, 6)?;
    let mut sides = Vec::new();
    for (side, own) in ["lhs_quantization_axis", "rhs_quantization_axis"].into_iter().enumerate() {
        let own = quantization_axis(cx, own);
        let (x, zeros) = (cx.arg(side)?, cx.arg(2 * side + 3)?);
        if own.is_none() && out.is_some() {
            return Err(cx.unsupported_case("a side with one scale for a result with one a place of an axis"));
        }
        let q = subtract_zero_point(cx, x, zeros, own)?;
        let factors = scale_ratios(cx, &[&constant_scales(cx, 2 * side + 2)?], &under)?;
        sides.push(multiply_and_round(cx, q, &factors, own)?);
    }
    let sum = cx.b.add(sides[0], sides[1]);
    let dims = cx.b.dims(sum).to_vec();
    let zeros = cx.arg(7)?;
    let zeros = broadcast_along(cx, zeros, &dims, out)?;
    let sum = cx.b.add(sum, zeros);
    let q = clamp_to_range(cx, sum, "output_")?;
    cx.one_output(q)
}

fn clip(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, axis) = (cx.arg(0)?, cx.dims(0)?, quantization_axis(cx, "quantization_axis"));
    let (low, high) = (cx.arg(1)?, cx.arg(2)?);
    let (low, high) = (broadcast_along(cx, low, &dims, axis)?, broadcast_along(cx, high, &dims, axis)?);
    let x = cx.b.max(x, low);
    let y = cx.b.min(x, high);
    cx.one_output(y)
}

/// Lowers an integer matrix product, converted to the scale of the result.
fn dot(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (right, out) =
        (quantization_axis(cx, "rhs_quantization_axis"), quantization_axis(cx, "output_quantization_axis"));
    if quantization_axis(cx, "lhs_quantization_axis").is_some() || right == Some(0) {
        return Err(cx.unsupported_case("one scale a place of an axis that is summed over or of the left side"));
    }
    let (x, y, zeros, out_zeros) = (cx.arg(0)?, cx.arg(1)?, (cx.arg(3)?, cx.arg(5)?), cx.arg(7)?);
    let (x, y) = (subtract_zero_point(cx, x, zeros.0, None)?, subtract_zero_point(cx, y, zeros.1, right)?);
    let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() };
    let sum = cx.b.dot(x, y, dims);
    let dims = cx.b.dims(sum).to_vec();
    let factors = scale_ratios(cx, &[&constant_scales(cx, 2)?, &constant_scales(cx, 4)?], &constant_scales(cx, 6)?)?;
    let q = multiply_and_round(cx, sum, &factors, right.or(out))?;
    let zeros = broadcast_along(cx, out_zeros, &dims, out)?;
    let q = cx.b.add(q, zeros);
    let q = clamp_to_range(cx, q, "output_")?;
    cx.one_output(q)
}

#[cfg(test)]
mod tests {
    use super::fixed_point;

    #[test]
    fn factors_are_fractions_of_31_bits() {
        assert_eq!(fixed_point(1.0), Some((1 << 30, 1)));
        assert_eq!(fixed_point(0.75), Some((3 << 29, 0)));
        assert_eq!(fixed_point(2f64.powi(-40)), Some((0, 0)));
        assert_eq!(fixed_point(2f64.powi(40)), Some((i64::from(i32::MAX), 30)));
        assert_eq!(fixed_point(1.0 - 2f64.powi(-40)), Some((1 << 30, 1)));
        assert_eq!((fixed_point(0.0), fixed_point(f64::NAN)), (None, None));
    }
}
