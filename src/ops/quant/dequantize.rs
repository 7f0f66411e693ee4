//! `Dequantize` and `XlaDequantize`: integers of a range back to floats.
//!
//! Source: TensorFlow's `dequantize_op.cc` and `quantization_utils.h`, whose order of operations is kept, and XLA's `Dequantize`, which
//! computes in bf16 and has four bytes in a word, the highest first.
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Dequantize", "input min_range max_range -> output", dequantize).dtypes("s8, u8, s16, u16, s32"),
    op("XlaDequantize", "input -> output", of_words).dtypes("u32; vectors and matrices, MIN_COMBINED"),
];

/// Smallest and largest number of a type of quantised values.
pub(super) fn integer_bounds(cx: &LowerCtx, dtype: DType) -> Result<(f64, f64)> {
    let is_known = matches!(dtype, DType::S8 | DType::S16 | DType::S32 | DType::U8 | DType::U16);
    dtype
        .integer_bounds()
        .filter(|_| is_known)
        .ok_or_else(|| cx.unsupported_case(format!("a quantised {dtype}; s8, u8, s16, u16 and s32 are supported")))
}

fn dequantize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, (least, most)) = (cx.arg(0)?, cx.dims(0)?, integer_bounds(cx, cx.dtype(0)?)?);
    let axis = cx.node.int("axis").unwrap_or(-1);
    let mode = cx.node.str("mode").unwrap_or("MIN_COMBINED").to_string();
    let to = if cx.node.attr("dtype").is_some() { cx.attr_dtype("dtype")? } else { DType::F32 };
    if axis >= 0 && mode == "MIN_FIRST" {
        return Err(cx.unsupported_case("MIN_FIRST along an axis, which TensorFlow's kernel does not have either"));
    }
    let along = if axis < 0 { None } else { Some(cx.normalize_axis(axis, dims.len())?) };
    let mut ends = [cx.arg(1)?, cx.arg(2)?];
    for (i, end) in ends.iter_mut().enumerate() {
        let own = cx.b.dims(*end).to_vec();
        *end = match along {
            Some(axis) if own == [dims[axis]] => cx.b.broadcast(*end, &dims, &[axis]),
            None if own.iter().product::<Dim>() == 1 => {
                let one = cx.b.reshape(*end, &[]);
                cx.b.broadcast(one, &dims, &[])
            }
            _ => return Err(cx.shape_mismatch(format!("a range of {own:?} in input {} for {dims:?}", i + 1))),
        };
    }
    let narrow = cx.bool_attr("narrow_range");
    let x = cx.b.convert(x, DType::F32);
    let y = match mode.as_str() {
        "MIN_COMBINED" => combined(cx, x, ends, least, most),
        "MIN_FIRST" => first(cx, x, ends, least, most),
        "SCALED" => scaled(cx, x, ends, least + f64::from(u8::from(narrow && least < 0.0)), most),
        other => {
            return Err(cx.unsupported_case(format!("mode {other}; MIN_COMBINED, MIN_FIRST and SCALED are supported")));
        }
    };
    let y = cx.b.convert(y, to);
    cx.one_output(y)
}

/// (x + half) · (high - low) / (most - least) + low.
fn combined(cx: &mut LowerCtx, x: InstId, [low, high]: [InstId; 2], least: f64, most: f64) -> InstId {
    let b = &mut *cx.b;
    let half = b.full_like(x, if least < 0.0 { (most - least + 1.0) / 2.0 } else { 0.0 });
    let (range, steps) = (b.sub(high, low), b.full_like(x, most - least));
    let scale = b.div(range, steps);
    let above = b.add(x, half);
    let product = b.mul(above, scale);
    b.add(product, low)
}

/// (x - least) · step + the lower end, rounded to a whole number of steps.
fn first(cx: &mut LowerCtx, x: InstId, [low, high]: [InstId; 2], least: f64, most: f64) -> InstId {
    let b = &mut *cx.b;
    // the step is divided in double precision
    let [wide_low, wide_high] = [low, high].map(|x| b.convert(x, DType::F64));
    let (range, steps) = (b.sub(wide_high, wide_low), b.full_like(wide_low, most - least));
    let step = b.div(range, steps);
    let step = b.convert(step, DType::F32);
    let count = b.div(low, step);
    let count = b.unary(ScalarOp::RoundNearestAfz, count);
    let rounded = b.mul(count, step);
    let is_point = b.compare(crate::scalar::Direction::Eq, low, high);
    let rounded = b.select(is_point, low, rounded);
    let least = b.full_like(x, least);
    let above = b.sub(x, least);
    let product = b.mul(above, step);
    b.add(product, rounded)
}

/// x · the larger of low / least and high / most.
fn scaled(cx: &mut LowerCtx, x: InstId, [low, high]: [InstId; 2], least: f64, most: f64) -> InstId {
    let b = &mut *cx.b;
    let most = b.full_like(x, most);
    let mut scale = b.div(high, most);
    if least < 0.0 {
        let least = b.full_like(x, least);
        let other = b.div(low, least);
        scale = b.max(other, scale);
    }
    b.mul(x, scale)
}

/// Lowers `XlaDequantize`: u32 words of four quantized bytes each, the highest byte first, dequantized to bf16. With attribute
/// `transpose_output`, a matrix is transposed afterwards.
///
/// Shapes: `[..n]` -> `[..4 n]`.
fn of_words(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let number = |name: &str| cx.require_attr(cx.node.float(name), name).map(f64::from);
    let (low, high) = (number("min_range")?, number("max_range")?);
    if cx.node.str("mode") != Some("MIN_COMBINED") {
        return Err(cx.unsupported_case("a mode but MIN_COMBINED, which XLA does not have either"));
    }
    let ([_] | [_, _]) = dims[..] else {
        return Err(cx.unsupported_case(format!("words {dims:?}; vectors and matrices are supported")));
    };
    let (turned, b) = (cx.bool_attr("transpose_output"), &mut *cx.b);
    let four = [&dims[..], &dims![4]].concat();
    let axes: Vec<usize> = (0..dims.len()).collect();
    let words = b.broadcast(x, &four, &axes);
    // 24, 16, 8, 0: the highest byte first
    let place = b.iota(DType::U32, &four, dims.len());
    let (eight, last) = (b.full_like(place, 8.0), b.full_like(place, 24.0));
    let by = b.mul(place, eight);
    let by = b.sub(last, by);
    let shifted = b.elementwise(ScalarOp::ShiftRightLogical, &[words, by]);
    let mask = b.full_like(shifted, 255.0);
    let bytes = b.elementwise(ScalarOp::And, &[shifted, mask]);
    let mut whole = dims.clone();
    if let Some(last) = whole.last_mut() {
        *last *= 4;
    }
    let bytes = b.reshape(bytes, &whole);
    let x = b.convert(bytes, DType::BF16);
    let (scale, low) = (b.full_like(x, (high - low) / 255.0), b.full_like(x, low));
    let product = b.mul(x, scale);
    let y = b.add(product, low);
    let y = if turned && dims.len() == 2 { b.transpose(y, &[1, 0]) } else { y };
    cx.one_output(y)
}
