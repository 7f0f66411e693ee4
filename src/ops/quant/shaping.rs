//! Reshaping, concatenation and pooling of quantized arrays.
use super::contract::append_facts_of_ranges;
use super::levels::{QuantRange, QuantType, dequantize_in_f32, quantize_in_f32};
use crate::diag::Result;
use crate::hlo::symbolic::InstId;
use crate::ops::array::{concat_inputs_shape, shape as array_shape};
use crate::ops::fact::Fact;
use crate::ops::nn::{PoolAttrs, pool_shape, reduce_window};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const POOL: &str = "input min_input max_input -> output min_output max_output";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("QuantizedReshape", "tensor shape input_min input_max -> output output_min output_max", reshape).shape(reshape_shape).constant_inputs(&[1]),
    op("QuantizedConcat",  "concat_dim values* input_mins* input_maxes* -> output output_min output_max", concat)
        .shape(concat_shape).constant_inputs(&[0]).dtypes("u8, s32"),
    op("QuantizedMaxPool", POOL, max_pool).shape(pooled_shape).dtypes("u8, s8"),
    op("QuantizedAvgPool", POOL, mean_pool).shape(pooled_shape).dtypes("u8, s8"),
];

fn reshape(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let range = QuantRange::from_inputs(cx, 2, 3)?;
    let mut y = array_shape::reshape(cx)?;
    y.extend([range.min, range.max].map(Value::Array));
    Ok(y)
}

fn concat(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let count = cx.args.len().saturating_sub(1) / 3;
    if count == 0 || cx.args.len() != 1 + 3 * count {
        return Err(
            cx.shape_mismatch(format!("{} inputs; an axis and three lists of one length are needed", cx.args.len()))
        );
    }
    let integers = QuantType::from_dtype(cx, cx.dtype(1)?)?;
    let axis = cx.normalize_axis(cx.constant_int(0)?, cx.dims(1)?.len())?;
    let ranges = (0..count)
        .map(|i| QuantRange::from_inputs(cx, 1 + count + i, 1 + 2 * count + i))
        .collect::<Result<Vec<QuantRange>>>()?;
    let b = &mut *cx.b;
    let (mut min, mut max) = (b.scalar(DType::F32, 0.0), ranges[0].max);
    for range in &ranges {
        min = b.min(range.min, min);
        max = b.max(max, range.max);
    }
    let out = if integers.least < 0.0 {
        let (low, high) = (b.unary(ScalarOp::Abs, min), b.unary(ScalarOp::Abs, max));
        let most = b.max(low, high);
        QuantRange::symmetric(b, most)
    } else {
        QuantRange { min, max }
    };
    let mut parts = Vec::with_capacity(count);
    for (i, range) in ranges.iter().enumerate() {
        let q = cx.arg(1 + i)?;
        let b = &mut *cx.b;
        let (low, high) = (b.compare(Direction::Eq, range.min, out.min), b.compare(Direction::Eq, range.max, out.max));
        let is_same = b.binary(ScalarOp::And, low, high);
        let x = dequantize_in_f32(b, q, range, &integers);
        let moved = quantize_in_f32(b, x, &out, &integers);
        parts.push(b.select(is_same, q, moved));
    }
    let rank = cx.b.rank(parts[0]);
    let first = cx.b.dims(parts[0]).to_vec();
    let fits = |&part: &InstId| {
        let dims = cx.b.dims(part);
        dims.len() == rank && (0..rank).all(|a| a == axis || dims[a] == first[a])
    };
    if !parts.iter().all(fits) {
        return Err(cx.shape_mismatch("the values differ in sizes"));
    }
    let y = cx.b.concatenate(&parts, axis);
    Ok([y, out.min, out.max].map(Value::Array).into())
}

fn max_pool(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (range, integers) = (QuantRange::from_inputs(cx, 1, 2)?, QuantType::from_dtype(cx, cx.dtype(0)?)?);
    let window = PoolAttrs::parse(cx, 2, 3)?.windows(&cx.dims(0)?)?;
    let (x, least) = (cx.arg(0)?, cx.b.scalar(integers.dtype, integers.least));
    let y = reduce_window(cx.b, x, least, ScalarOp::Maximum, window);
    Ok([y, range.min, range.max].map(Value::Array).into())
}

/// Lowers `QuantizedAvgPool`: the sum of the integers in each window divided by their number, truncated.
fn mean_pool(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (range, dims, dtype) = (QuantRange::from_inputs(cx, 1, 2)?, cx.dims(0)?, cx.dtype(0)?);
    let window = PoolAttrs::parse(cx, 2, 3)?.windows(&dims)?;
    let x = cx.arg(0)?;
    let b = &mut *cx.b;
    let x = b.convert(x, DType::S32);
    let (ones, zero) = (b.full(DType::S32, &dims, 1.0), b.scalar(DType::S32, 0.0));
    let total = reduce_window(b, x, zero, ScalarOp::Add, window.clone());
    let count = reduce_window(b, ones, zero, ScalarOp::Add, window);
    let y = b.div(total, count);
    let y = b.convert(y, dtype);
    Ok([y, range.min, range.max].map(Value::Array).into())
}

fn reshape_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(append_facts_of_ranges(array_shape::reshape_shape(cx)?))
}

fn pooled_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(append_facts_of_ranges(pool_shape(cx, 2)?))
}

fn concat_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let count = cx.args.len().saturating_sub(1) / 3;
    let axis = cx.constant_int(0);
    Ok(append_facts_of_ranges(concat_inputs_shape(cx, 1..1 + count, axis, 0)?))
}
