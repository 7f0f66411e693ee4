//! Pointwise ops and normalization of quantized arrays.
use super::contract::append_facts_of_ranges;
use super::levels::{
    QuantFormat, QuantRange, QuantType, dequantize, dequantize_in_f32, product_range, quantize, quantize_in_f32,
    requantize, requantize_to_32_bits, zero_point,
};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::fact::Fact;
use crate::ops::math::special::{add_scalar, compare_scalar, mul_scalar};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const BINARY: &str = "x y min_x max_x min_y max_y -> z min_z max_z";
const RELU: &str = "features min_features max_features -> activations min_activations max_activations";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("QuantizedRelu",    RELU,   |cx| relu(cx, None)).shape(same_with_range).dtypes("u8, s32"),
    op("QuantizedRelu6",   RELU,   |cx| relu(cx, Some(6.0))).shape(same_with_range).dtypes("u8, s32"),
    op("QuantizedAdd",     BINARY, add).shape(binary_shape).dtypes("u8 to s32"),
    op("QuantizedMul",     BINARY, multiply).shape(binary_shape).dtypes("u8 to s32"),
    op("QuantizedBiasAdd", "input bias min_input max_input min_bias max_bias -> output min_out max_out", bias_add)
        .shape(bias_shape).dtypes("u8, s8 to s32"),
    op("QuantizedBatchNormWithGlobalNormalization",
        "t t_min t_max m m_min m_max v v_min v_max beta beta_min beta_max gamma gamma_min gamma_max -> result result_min result_max", normalize)
        .shape(bias_shape).dtypes("u8 to s32"),
    op("QuantizedInstanceNorm", "x x_min x_max -> y y_min y_max", normalize_instances).shape(same_with_range).dtypes("u8"),
];

fn relu(cx: &mut LowerCtx, most: Option<f64>) -> Result<Vec<Value>> {
    let (q, range, integers) =
        (cx.arg(0)?, QuantRange::from_inputs(cx, 1, 2)?, QuantType::from_dtype(cx, cx.dtype(0)?)?);
    if cx.node.attr("out_type").is_some() && cx.attr_dtype("out_type")? != integers.dtype {
        return Err(cx.unsupported_case("a result of another type, which TensorFlow does not have either"));
    }
    let b = &mut *cx.b;
    let zero = b.scalar(DType::F32, 0.0);
    let low = quantize(b, zero, &range, &integers);
    let mut y = b.max(q, low);
    if let Some(most) = most {
        let most = b.scalar(DType::F32, most);
        let high = quantize(b, most, &range, &integers);
        y = b.min(y, high);
    }
    Ok([y, range.min, range.max].map(Value::Array).into())
}

/// Two byte arrays and their ranges, and the integer types of operands and result.
struct Pair {
    arrays: [InstId; 2],
    ranges: [QuantRange; 2],
    bytes: QuantType,
    words: QuantType,
}

fn pair(cx: &mut LowerCtx, out: &str) -> Result<Pair> {
    let out = if cx.node.attr(out).is_some() { cx.attr_dtype(out)? } else { DType::S32 };
    let (x, y) = (cx.arg(0)?, cx.arg(1)?);
    let types = (cx.b.dtype(x), cx.b.dtype(y), out);
    if types.0 != types.1 || !matches!(types.0, DType::U8 | DType::S8) || out != DType::S32 {
        return Err(cx.unsupported_case(format!("{} and {} to {out}; bytes to s32 are supported", types.0, types.1)));
    }
    let ranges = [QuantRange::from_inputs(cx, 2, 3)?, QuantRange::from_inputs(cx, 4, 5)?];
    Ok(Pair {
        arrays: [x, y],
        ranges,
        bytes: QuantType::from_dtype(cx, types.0)?,
        words: QuantType::from_dtype(cx, out)?,
    })
}

/// Kind of broadcast between two operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Scalar operand, by its index, and an array.
    Scalar(usize),
    /// Operands of equal sizes, or one whose sizes are the trailing sizes of the other.
    Arrays,
}

/// Kind of broadcast of the two operands. TensorFlow's kernels for quantized arrays repeat the smaller operand cyclically.
fn fit(cx: &LowerCtx) -> Result<Fit> {
    let (x, y) = (cx.dims(0)?, cx.dims(1)?);
    let is_one = |dims: &[Dim]| dims.iter().all(|&n| n == 1);
    if is_one(&x) && x.len() <= y.len() {
        return Ok(Fit::Scalar(0));
    }
    if is_one(&y) && y.len() <= x.len() {
        return Ok(Fit::Scalar(1));
    }
    if x == y {
        return Ok(Fit::Arrays);
    }
    let trim = |dims: &[Dim]| dims.iter().copied().skip_while(|&n| n == 1).collect::<Vec<Dim>>();
    let (short, long) = if x.iter().product::<Dim>() < y.iter().product::<Dim>() { (&x, &y) } else { (&y, &x) };
    if short.len() <= long.len() && long.ends_with(&trim(short)) {
        return Ok(Fit::Arrays);
    }
    Err(cx.unsupported_case(format!(
        "{x:?} and {y:?}; equal sizes, one element, and the last sizes of the other are supported"
    )))
}

fn add(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (fit, Pair { arrays, ranges, bytes, words }) = (fit(cx)?, pair(cx, "Toutput")?);
    if bytes.dtype != DType::U8 {
        return Err(cx.unsupported_case("sums of s8; u8 is supported"));
    }
    let b = &mut *cx.b;
    let (min, max) = (b.min(ranges[0].min, ranges[1].min), b.max(ranges[0].max, ranges[1].max));
    let (min, max) = (b.unary(ScalarOp::Abs, min), b.unary(ScalarOp::Abs, max));
    let magnitude = b.max(min, max);
    let most = mul_scalar(b, magnitude, 16384.0);
    let out = QuantRange::symmetric(b, most);
    let parts = [0, 1].map(|i| {
        let from = QuantFormat { range: &ranges[i], integers: &bytes };
        let to = QuantFormat { range: &out, integers: &words };
        // A scalar is converted exactly, arrays by the difference of two levels, as in TensorFlow.
        if fit == Fit::Scalar(i) {
            requantize(b, arrays[i], from, to)
        } else {
            requantize_to_32_bits(b, arrays[i], from, to)
        }
    });
    let z = b.add(parts[0], parts[1]);
    Ok([z, out.min, out.max].map(Value::Array).into())
}

fn multiply(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (_, Pair { arrays, ranges, bytes, words }) = (fit(cx)?, pair(cx, "Toutput")?);
    if bytes.dtype != DType::U8 {
        return Err(cx.unsupported_case("products of s8; u8 is supported"));
    }
    let b = &mut *cx.b;
    let [x, y] = [0, 1].map(|i| {
        let zero = zero_point(b, &ranges[i], &bytes);
        let q = b.convert(arrays[i], DType::S32);
        b.sub(q, zero)
    });
    let z = b.mul(x, y);
    let out = product_range(b, [(&ranges[0], &bytes), (&ranges[1], &bytes)], &words);
    Ok([z, out.min, out.max].map(Value::Array).into())
}

fn bias_add(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let Pair { arrays: [x, bias], ranges: [of_x, of_bias], bytes, words } = pair(cx, "out_type")?;
    let (dims, count) = (cx.dims(0)?, cx.dims(1)?);
    if dims.len() < 2 || count[..] != dims[dims.len() - 1..] {
        return Err(cx.shape_mismatch(format!("a bias {count:?} for {dims:?}")));
    }
    let b = &mut *cx.b;
    let mut most = of_bias.max;
    let low = b.unary(ScalarOp::Negate, of_bias.min);
    most = b.max(most, low);
    let low = b.unary(ScalarOp::Negate, of_x.min);
    most = b.max(low, most);
    most = b.max(of_x.max, most);
    let most = mul_scalar(b, most, 131_072.0);
    let out = QuantRange::symmetric(b, most);
    let zero = b.scalar(DType::F32, 0.0);
    let zero = quantize(b, zero, &out, &words);
    let [x, bias] = [(x, of_x), (bias, of_bias)].map(|(q, range)| {
        let number = dequantize_in_f32(b, q, &range, &bytes);
        quantize_in_f32(b, number, &out, &words)
    });
    let bias = b.add(bias, zero);
    let y = b.add(x, bias);
    Ok([y, out.min, out.max].map(Value::Array).into())
}

/// Lowers batch normalization in fixed point, where 2^20 represents the largest number of the result.
fn normalize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dims = cx.dims(0)?;
    if dims.len() != 4 || [3, 6, 9, 12].iter().any(|&i| cx.dims(i).map_or(true, |own| own != dims[3..])) {
        return Err(cx.shape_mismatch(format!("an image {dims:?} and vectors of other sizes")));
    }
    let (bytes, words) = (QuantType::from_dtype(cx, cx.dtype(0)?)?, QuantType::from_dtype(cx, DType::S32)?);
    if bytes.dtype != DType::U8 {
        return Err(cx.unsupported_case(format!("quantized {}; u8 is supported", bytes.dtype)));
    }
    let epsilon = f64::from(cx.require_attr(cx.node.float("variance_epsilon"), "variance_epsilon")?);
    let mut vectors = Vec::new();
    for i in [3, 6, 9, 12] {
        let (q, range) = (cx.arg(i)?, QuantRange::from_inputs(cx, i + 1, i + 2)?);
        vectors.push(dequantize(cx.b, q, &range, &bytes));
    }
    let &[mean, variance, beta, gamma] = &vectors[..] else { return Err(cx.shape_mismatch("vectors are missing")) };
    let (x, of_x, scales) = (cx.arg(0)?, QuantRange::from_inputs(cx, 1, 2)?, cx.bool_attr("scale_after_normalization"));
    let b = &mut *cx.b;
    let most = b.scalar(DType::F32, 1_048_576.0);
    let out = QuantRange::symmetric(b, most);
    let shifted = add_scalar(b, variance, epsilon);
    let root = b.unary(ScalarOp::Sqrt, shifted);
    let one = b.full_like(root, 1.0);
    let mut scale = b.div(one, root);
    if scales {
        scale = b.mul(scale, gamma);
    }
    let below = b.unary(ScalarOp::Negate, mean);
    let offset = b.mul(below, scale);
    let offset = b.add(offset, beta);
    let one = b.scalar(DType::F32, 1.0);
    let [scale, offset, one] = [scale, offset, one].map(|x| quantize(b, x, &out, &words));
    let from = QuantFormat { range: &of_x, integers: &bytes };
    let x = requantize(b, x, from, QuantFormat { range: &out, integers: &words });
    let y = b.mul(x, scale);
    let y = b.div(y, one);
    let y = b.add(y, offset);
    Ok([y, out.min, out.max].map(Value::Array).into())
}

/// Mean over rows and columns, `[items, features]`.
fn mean(b: &mut Builder, x: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let zero = b.scalar(DType::F32, 0.0);
    let sum = b.reduce(x, zero, ScalarOp::Add, &[1, 2]);
    let count = b.full_like(sum, dims[1] * dims[2]);
    b.div(sum, count)
}

fn normalize_instances(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (q, of_q, dims) = (cx.arg(0)?, QuantRange::from_inputs(cx, 1, 2)?, cx.dims(0)?);
    let bytes = QuantType::from_dtype(cx, cx.dtype(0)?)?;
    if dims.len() != 4 || bytes.dtype != DType::U8 {
        return Err(cx.unsupported_case(format!("{} {dims:?}; u8 of rank 4 is supported", bytes.dtype)));
    }
    let number = |name: &str, default: f64| cx.node.float(name).map_or(default, f64::from);
    let (epsilon, separation) = (number("variance_epsilon", 1e-5), number("min_separation", 1e-3));
    let given = cx.bool_attr("output_range_given").then(|| (number("given_y_min", 0.0), number("given_y_max", 0.0)));
    let b = &mut *cx.b;
    let width = b.sub(of_q.max, of_q.min);
    let steps = b.full_like(width, 255.0);
    let step = b.div(width, steps);
    let x = b.convert(q, DType::F32);
    let center = mean(b, x);
    let center = b.broadcast(center, &dims, &[0, 3]);
    let centered = b.sub(x, center);
    let scaled = b.mul(step, centered);
    let square = b.mul(scaled, scaled);
    let variance = mean(b, square);
    let shifted = add_scalar(b, variance, epsilon);
    let inverse = b.unary(ScalarOp::Rsqrt, shifted);
    let inverse = b.broadcast(inverse, &dims, &[0, 3]);
    let y = b.mul(scaled, inverse);
    let axes = [0, 1, 2, 3];
    let (min, max) = match given {
        Some((min, max)) => (b.scalar(DType::F32, min), b.scalar(DType::F32, max)),
        None => {
            let (least, most) = (b.scalar(DType::F32, f64::NEG_INFINITY), b.scalar(DType::F32, f64::INFINITY));
            (b.reduce(y, most, ScalarOp::Minimum, &axes), b.reduce(y, least, ScalarOp::Maximum, &axes))
        }
    };
    let width = b.sub(max, min);
    let is_narrow = compare_scalar(b, Direction::Lt, width, separation);
    let wide = add_scalar(b, min, separation);
    let range = QuantRange { min, max: b.select(is_narrow, wide, max) };
    let y = quantize_in_f32(b, y, &range, &bytes);
    Ok([y, range.min, range.max].map(Value::Array).into())
}

fn same_with_range(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims(0)?;
    Ok(append_facts_of_ranges(cx.one_output_like(0, dims)?))
}

fn bias_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims(0)?;
    Ok(append_facts_of_ranges(cx.one_output_typed_by("out_type", dims)?))
}

fn binary_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (x, y) = (cx.dims(0)?, cx.dims(1)?);
    let dims = cx.broadcast(&x, &y)?;
    Ok(append_facts_of_ranges(cx.one_output_typed_by("Toutput", dims)?))
}
