//! Conversion of integers to another range: `Requantize`, `QuantizeDownAndShrinkRange`, `RequantizationRange`.
use super::contract::append_facts_of_ranges;
use super::levels::{QuantRange, QuantType, dequantize, dequantize_in_f32, quantize_in_f32, requantize_to_8_bits};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("RequantizationRange", "input input_min input_max -> output_min output_max", used_range)
        .shape(|_| Ok(append_facts_of_ranges(Vec::new()))).dtypes("s32"),
    op("Requantize", "input input_min input_max requested_output_min requested_output_max -> output output_min output_max", requantize)
        .shape(shape).dtypes("s32 to u8 and s8"),
    op("QuantizeDownAndShrinkRange", "input input_min input_max -> output output_min output_max", shrink)
        .shape(shape).dtypes("s32 to u8"),
];

fn shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims(0)?;
    Ok(append_facts_of_ranges(vec![Fact::new(cx.attr_type("out_type"), dims)]))
}

/// Numbers that the smallest and the largest integer of an array represent, extended to include zero.
fn range_of(b: &mut Builder, q: InstId, range: &QuantRange, integers: &QuantType) -> QuantRange {
    let axes: Vec<usize> = (0..b.rank(q)).collect();
    let [min, max] = [(integers.most, ScalarOp::Minimum), (integers.least, ScalarOp::Maximum)].map(|(start, op)| {
        let start = b.scalar(integers.dtype, start);
        let end = b.reduce(q, start, op, &axes);
        dequantize(b, end, range, integers)
    });
    let zero = b.scalar(DType::F32, 0.0);
    QuantRange { min: b.min(zero, min), max }
}

fn words(cx: &LowerCtx) -> Result<QuantType> {
    match cx.dtype(0)? {
        DType::S32 => QuantType::from_dtype(cx, DType::S32),
        other => Err(cx.unsupported_case(format!("quantized {other}; s32 is supported"))),
    }
}

fn used_range(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (q, given, integers) = (cx.arg(0)?, QuantRange::from_inputs(cx, 1, 2)?, words(cx)?);
    let range = range_of(cx.b, q, &given, &integers);
    Ok([range.min, range.max].map(Value::Array).into())
}

fn requantize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (q, from, to) = (cx.arg(0)?, QuantRange::from_inputs(cx, 1, 2)?, QuantRange::from_inputs(cx, 3, 4)?);
    let integers = words(cx)?;
    let y = match cx.attr_dtype("out_type")? {
        DType::U8 => requantize_to_8_bits(cx.b, q, &from, &to),
        DType::S8 => {
            let bytes = QuantType::from_dtype(cx, DType::S8)?;
            let x = dequantize_in_f32(cx.b, q, &from, &integers);
            quantize_in_f32(cx.b, x, &to, &bytes)
        }
        other => return Err(cx.unsupported_case(format!("quantized {other}; u8 and s8 are supported"))),
    };
    Ok([y, to.min, to.max].map(Value::Array).into())
}

fn shrink(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (q, from, integers) = (cx.arg(0)?, QuantRange::from_inputs(cx, 1, 2)?, words(cx)?);
    let to = range_of(cx.b, q, &from, &integers);
    let y = match cx.attr_dtype("out_type")? {
        DType::U8 => requantize_to_8_bits(cx.b, q, &from, &to),
        other => return Err(cx.unsupported_case(format!("quantized {other}; u8 is supported"))),
    };
    Ok([y, to.min, to.max].map(Value::Array).into())
}
