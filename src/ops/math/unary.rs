//! Pointwise ops of one array, and their gradients.
use super::complex;
use super::special::{self, compare_scalar, compute_in_f32, mul_scalar};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::ShapeCtx;
use crate::ops::fact::Fact;
use crate::ops::list;
use crate::ops::op_lowering::{op, unary};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Function that emits a formula of one array.
type Formula = fn(&mut Builder, InstId) -> InstId;

/// Definitions of pointwise ops of one array.
pub const ROWS: &[OpLowering] = &[
    op("Abs", "x -> y", |cx| plain(cx, ScalarOp::Abs)).pointwise(),
    op("ComplexAbs", "x -> y", |cx| plain(cx, ScalarOp::Abs)).pointwise().dtypes("c64, c128"),
    op("Neg", "x -> y", |cx| plain(cx, ScalarOp::Negate)).pointwise(),
    op("Sign", "x -> y", sign).pointwise(),
    op("Invert", "x -> y", |cx| plain(cx, ScalarOp::Not)).pointwise().dtypes("integers"),
    op("LogicalNot", "x -> y", |cx| plain(cx, ScalarOp::Not)).pointwise().dtypes("pred"),
    op("PopulationCount", "x -> y", population_count).pointwise().dtypes("integers"),
    op("Ceil", "x -> y", |cx| rounding(cx, ScalarOp::Ceil)).pointwise(),
    op("Floor", "x -> y", |cx| rounding(cx, ScalarOp::Floor)).pointwise(),
    op("Round", "x -> y", |cx| rounding(cx, ScalarOp::RoundNearestEven)).pointwise(),
    op("Rint", "x -> y", |cx| rounding(cx, ScalarOp::RoundNearestEven)).pointwise(),
    op("Exp", "x -> y", |cx| plain(cx, ScalarOp::Exp)).pointwise(),
    op("Expm1", "x -> y", |cx| plain(cx, ScalarOp::Expm1)).pointwise(),
    op("Log", "x -> y", |cx| plain(cx, ScalarOp::Log)).pointwise(),
    op("Log1p", "x -> y", |cx| plain(cx, ScalarOp::Log1p)).pointwise(),
    op("Sigmoid", "x -> y", |cx| plain(cx, ScalarOp::Logistic)).pointwise(),
    op("Sqrt", "x -> y", |cx| plain(cx, ScalarOp::Sqrt)).pointwise(),
    op("Rsqrt", "x -> y", |cx| plain(cx, ScalarOp::Rsqrt)).pointwise(),
    op("Tanh", "x -> y", |cx| plain(cx, ScalarOp::Tanh)).pointwise(),
    op("Sin", "x -> y", |cx| plain(cx, ScalarOp::Sin)).pointwise(),
    op("Cos", "x -> y", |cx| plain(cx, ScalarOp::Cos)).pointwise(),
    op("Tan", "x -> y", |cx| plain(cx, ScalarOp::Tan)).pointwise(),
    op("Erf", "x -> y", |cx| plain(cx, ScalarOp::Erf)).pointwise().dtypes("floats"),
    op("Erfc", "x -> y", |cx| formula(cx, special::erfc)).pointwise().dtypes("floats"),
    op("Asin", "x -> y", |cx| either(cx, special::asin, complex::asin)).pointwise().dtypes("floats, c64, c128"),
    op("Acos", "x -> y", |cx| either(cx, special::acos, complex::acos)).pointwise().dtypes("floats, c64, c128"),
    op("Atan", "x -> y", |cx| either(cx, special::atan, complex::atan)).pointwise().dtypes("floats, c64, c128"),
    op("Asinh", "x -> y", |cx| either(cx, special::asinh, complex::asinh)).pointwise().dtypes("floats, c64, c128"),
    op("Acosh", "x -> y", |cx| either(cx, special::acosh, complex::acosh)).pointwise().dtypes("floats, c64, c128"),
    op("Atanh", "x -> y", |cx| either(cx, special::atanh, complex::atanh)).pointwise().dtypes("floats, c64, c128"),
    op("Sinh", "x -> y", |cx| either(cx, special::sinh, complex::sinh)).pointwise().dtypes("floats, c64, c128"),
    op("Cosh", "x -> y", |cx| either(cx, special::cosh, complex::cosh)).pointwise().dtypes("floats, c64, c128"),
    op("IsFinite", "x -> y", |cx| plain(cx, ScalarOp::IsFinite)).pointwise().dtypes("floats"),
    unary("IsNan", |b, x| b.compare(Direction::Ne, x, x)).dtypes("floats"),
    unary("IsInf", is_inf).dtypes("floats"),
    unary("Square", |b, x| b.mul(x, x)),
    unary("Reciprocal", reciprocal),
    unary("Inv", reciprocal),
    op("Real", "input -> output", |cx| plain(cx, ScalarOp::Real)).pointwise(),
    op("Imag", "input -> output", |cx| plain(cx, ScalarOp::Imag)).pointwise(),
    op("Conj", "input -> output", conj_op).pointwise(),
    op("Angle", "input -> output", angle).pointwise().dtypes("c64, c128"),
    op("ZerosLike", "x -> y", zeros_like).moves_strings().shape(zeros_like_shape).dtypes("any, also lists"),
    unary("OnesLike", |b, x| b.full_like(x, 1.0)),
];

/// Definitions of gradients, as functions of the result (or the input) and the incoming gradient.
pub const GRADIENTS: &[OpLowering] = &[
    op("SigmoidGrad", "y dy -> z", |cx| {
        holomorphic(cx, |b, y, dy| {
            let one = b.full_like(y, 1.0);
            let rest = b.sub(one, y);
            let slope = b.mul(y, rest);
            b.mul(dy, slope)
        })
    })
    .pointwise(),
    op("TanhGrad", "y dy -> z", |cx| {
        holomorphic(cx, |b, y, dy| {
            let one = b.full_like(y, 1.0);
            let square = b.mul(y, y);
            let slope = b.sub(one, square);
            b.mul(dy, slope)
        })
    })
    .pointwise(),
    op("SqrtGrad", "y dy -> z", |cx| gradient(cx, sqrt_gradient)).pointwise(),
    op("RsqrtGrad", "y dy -> z", |cx| gradient(cx, rsqrt_gradient)).pointwise(),
    op("ReciprocalGrad", "y dy -> z", |cx| gradient(cx, reciprocal_gradient)).pointwise(),
    op("InvGrad", "y dy -> z", |cx| gradient(cx, reciprocal_gradient)).pointwise(),
];

/// Lowers a single scalar op.
fn plain(cx: &mut LowerCtx, op: ScalarOp) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let y = cx.b.unary(op, x);
    cx.one_output(y)
}

/// Lowers `Sign`: -1, 0 or 1. HLO's `sign` returns -0.0 for -0.0, TensorFlow's kernel 0.0.
fn sign(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let mut y = cx.b.unary(ScalarOp::Sign, x);
    if cx.b.dtype(x).is_float() {
        let zero = cx.b.full_like(x, 0.0);
        let is_zero = cx.b.compare(Direction::Eq, x, zero);
        y = cx.b.select(is_zero, zero, y);
    }
    cx.one_output(y)
}

/// Lowers a rounding op, which leaves integers unchanged.
fn rounding(cx: &mut LowerCtx, op: ScalarOp) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let y = if cx.b.dtype(x).is_float() { cx.b.unary(op, x) } else { x };
    cx.one_output(y)
}

/// Lowers a formula for real or for complex numbers.
fn either(cx: &mut LowerCtx, real: Formula, complex: Formula) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    if !cx.b.dtype(x).is_complex() {
        return formula(cx, real);
    }
    let y = complex(cx.b, x);
    cx.one_output(y)
}

/// Lowers a formula of floats, computed in f32 at least.
fn formula(cx: &mut LowerCtx, f: Formula) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    if !cx.b.dtype(x).is_float() {
        return Err(cx.unsupported_case(format!("{} of {}; floats are supported", cx.node.op, cx.b.dtype(x))));
    }
    let y = compute_in_f32(cx.b, x, f);
    cx.one_output(y)
}

/// Lowers a gradient as a function of the result, without conjugation: TensorFlow's kernels of two ops do not conjugate complex
/// numbers.
fn holomorphic(cx: &mut LowerCtx, f: fn(&mut Builder, InstId, InstId) -> InstId) -> Result<Vec<Value>> {
    let (y, dy) = (cx.arg(0)?, cx.arg(1)?);
    let z = special::compute_binary_in_f32(cx.b, y, dy, f);
    cx.one_output(z)
}

/// Lowers a gradient as a function of the conjugated result, and 0 wherever the incoming gradient is 0: an unused result of 0
/// or infinity then gives no NaN. XLA's lowerings have no such exception.
fn gradient(cx: &mut LowerCtx, f: fn(&mut Builder, InstId, InstId) -> InstId) -> Result<Vec<Value>> {
    let (mut y, dy) = (cx.arg(0)?, cx.arg(1)?);
    if cx.b.dtype(y).is_complex() {
        y = conj(cx.b, y);
    }
    let z = special::compute_binary_in_f32(cx.b, y, dy, f);
    let z = special::zero_where_zero(cx.b, dy, z);
    cx.one_output(z)
}

/// Lowers `ZerosLike`; of a list, a list of as many zeros.
fn zeros_like(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Some(list) = cx.args.first().filter(|value| value.is_list_or_optional()) {
        return Ok(vec![list::zeros_like(cx.b, list)?]);
    }
    let x = cx.arg(0)?;
    let y = cx.b.full_like(x, 0.0);
    cx.one_output(y)
}

fn reciprocal(b: &mut Builder, x: InstId) -> InstId {
    let one = b.full_like(x, 1.0);
    b.div(one, x)
}

fn sqrt_gradient(b: &mut Builder, y: InstId, dy: InstId) -> InstId {
    let half = mul_scalar(b, dy, 0.5);
    b.div(half, y)
}

/// -½·dy·y³ as two factors, as TensorFlow multiplies: y³ alone would underflow for inputs from 10²⁶ on.
fn rsqrt_gradient(b: &mut Builder, y: InstId, dy: InstId) -> InstId {
    let square = b.mul(y, y);
    let half = mul_scalar(b, dy, -0.5);
    let first = b.mul(half, y);
    b.mul(first, square)
}

fn reciprocal_gradient(b: &mut Builder, y: InstId, dy: InstId) -> InstId {
    let square = b.mul(y, y);
    let product = b.mul(dy, square);
    b.unary(ScalarOp::Negate, product)
}

fn is_inf(b: &mut Builder, x: InstId) -> InstId {
    let a = b.unary(ScalarOp::Abs, x);
    compare_scalar(b, Direction::Eq, a, f64::INFINITY)
}

/// Complex conjugate; real numbers are unchanged.
pub fn conj(b: &mut Builder, x: InstId) -> InstId {
    if !b.dtype(x).is_complex() {
        return x;
    }
    let (re, im) = (b.unary(ScalarOp::Real, x), b.unary(ScalarOp::Imag, x));
    let im = b.unary(ScalarOp::Negate, im);
    b.elementwise(ScalarOp::Complex, &[re, im])
}

fn conj_op(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let y = conj(cx.b, x);
    cx.one_output(y)
}

fn angle(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let (re, im) = (cx.b.unary(ScalarOp::Real, x), cx.b.unary(ScalarOp::Imag, x));
    let y = cx.b.binary(ScalarOp::Atan2, im, re);
    cx.one_output(y)
}

fn population_count(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let n = cx.b.unary(ScalarOp::Popcnt, x);
    let y = cx.b.convert(n, DType::U8);
    cx.one_output(y)
}

/// Shape function of `ZerosLike`, which keeps the facts about a list.
fn zeros_like_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(vec![Fact { value: None, ..cx.arg(0)?.clone() }])
}
