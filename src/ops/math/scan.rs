//! Cumulative sums, products and log-sum-exps.
use crate::diag::Result;
use crate::hlo::symbolic::WindowDim;
use crate::hlo::symbolic::{CompId, InstId, Op, Shape};
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Cumsum", "x axis -> out", |cx| scan(cx, ScalarOp::Add, 0.0))
        .shape(like_first_input)
        .constant_inputs(&[1])
        .work(Work::PerInputElement),
    op("Cumprod", "x axis -> out", |cx| scan(cx, ScalarOp::Multiply, 1.0))
        .shape(like_first_input)
        .constant_inputs(&[1])
        .work(Work::PerInputElement),
    op("CumulativeLogsumexp", "x axis -> out", log_sum_exp)
        .shape(like_first_input)
        .constant_inputs(&[1])
        .dtypes("floats"),
];

/// Axis of the scan, a scalar input.
fn scan_axis(cx: &LowerCtx) -> Result<usize> {
    let dims = cx.dims(1)?;
    if !dims.is_empty() {
        return Err(cx.shape_mismatch(format!("the axis of a scan must be a scalar, not of the shape {dims:?}")));
    }
    cx.normalize_axis(cx.constant_int(1)?, cx.dims(0)?.len())
}

/// Lowers a cumulative op, as a window as long as the axis, padded on one side, so that position `i` covers all elements up to
/// itself.
fn scan(cx: &mut LowerCtx, op: ScalarOp, neutral: f64) -> Result<Vec<Value>> {
    let (x, axis) = (cx.arg(0)?, scan_axis(cx)?);
    let dtype = cx.b.dtype(x);
    if crate::symbolic::has_zero(cx.b.dims(x)) {
        return cx.one_output(x);
    }
    let work = if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype };
    let wide = cx.b.convert(x, work);
    let comp = cx.b.scalar_computation(op, work);
    let y = prefix_reduction(cx, wide, axis, comp, neutral);
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Prefix reduction of `x` along an axis, by the node's attributes `exclusive` and `reverse`.
pub fn prefix_reduction(cx: &mut LowerCtx, x: InstId, axis: usize, comp: CompId, neutral: f64) -> InstId {
    let n = cx.b.dims(x)[axis];
    let (exclusive, reverse) = (i64::from(cx.bool_attr("exclusive")), cx.bool_attr("reverse"));
    let mut window = vec![WindowDim::default(); cx.b.rank(x)];
    // A window needs an element even if the array has none.
    let size = n.max(1);
    let (near, far) = (Dim::from(-exclusive), size - 1 + exclusive);
    window[axis].size = size;
    let (low, high) = if reverse { (near, far) } else { (far, near) };
    (window[axis].pad_low, window[axis].pad_high) = (low, high);
    let init = cx.b.scalar(cx.b.dtype(x), neutral);
    cx.b.add_inst(Op::ReduceWindow { window, comp }, &[x, init])
}

/// Lowers `CumulativeLogsumexp`: ln(e^a + e^b + …) up to each position. The empty sum is 0, whose logarithm is -inf.
fn log_sum_exp(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, axis) = (cx.arg(0)?, scan_axis(cx)?);
    let dtype = cx.b.dtype(x);
    let work = match dtype {
        DType::F64 | DType::F32 => dtype,
        DType::F16 | DType::BF16 => DType::F32,
        _ => return Err(cx.unsupported_case(format!("CumulativeLogsumexp of {dtype}; floats are supported"))),
    };
    if crate::symbolic::has_zero(cx.b.dims(x)) {
        return cx.one_output(x);
    }
    let wide = cx.b.convert(x, work);
    let comp = log_add_exp(cx, work);
    let y = prefix_reduction(cx, wide, axis, comp, f64::NEG_INFINITY);
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Computation (a, b) -> ln(e^a + e^b) without overflow. If one is NaN, TensorFlow's kernel takes `a` for both the larger and
/// the smaller.
fn log_add_exp(cx: &mut LowerCtx, dtype: DType) -> CompId {
    let b = &mut *cx.b;
    b.begin_computation("log_add_exp");
    let x = b.parameter(Shape::array(dtype, []));
    let y = b.parameter(Shape::array(dtype, []));
    let (above, below) = (b.compare(Direction::Gt, y, x), b.compare(Direction::Lt, y, x));
    let (high, low) = (b.select(above, y, x), b.select(below, y, x));
    // -inf - -inf is NaN, where the sum of two empty sums is empty; inf - inf stays NaN, as in TensorFlow.
    let least = b.scalar(dtype, f64::NEG_INFINITY);
    let nothing = b.compare(Direction::Eq, high, least);
    let difference = b.sub(low, high);
    let zero = b.scalar(dtype, 0.0);
    let difference = b.select(nothing, zero, difference);
    let e = b.unary(ScalarOp::Exp, difference);
    let log = b.unary(ScalarOp::Log1p, e);
    let sum = b.add(high, log);
    b.end_computation(sum)
}
