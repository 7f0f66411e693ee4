//! Elementary functions over vectors, of our own: no library.
//!
//! f32 `exp`, `logistic`, `tanh`, `erf` work in f32 (bounds: 1.1, 2.5, 2.5, 2.5 ulp; coefficients are minimax fits over the
//! reduced range, or of pieces), and so do `expm1`, `log`, `log1p`, softplus and mish (4 ulp), `sin` and `cos` where products are
//! not rounded (2 ulp). The other f32 functions are the f64 ones, rounded. f64 works on reduced arguments with Taylor, atanh and
//! Chebyshev series to the order where the remainder is below 2^-53 of the result. Bounds in f64: `exp`, `expm1`, `log`, `log1p`,
//! `sin`, `cos`, `cbrt`, `erf`, `atan2` 4 ulp, `tanh`, `logistic`, `tan` 6 ulp, `power` 12 ulp; `remainder` is exact. Rare
//! arguments (a remainder of numbers far apart, sines of huge ones) take functions of [`slow`].
mod angle;
mod erf;
mod exp;
mod log;
mod pieces;
mod remainder;
mod sixteenths;
mod slow;
mod soft;
mod table;

use super::arith::{
    add, binary_instruction, constant_bits, div, fcmp, float_constant, fma, mul, neg, reinterpret, select, sub,
    undefined_op_error,
};
use super::function::FunctionEmitter;
use super::portable::fuses_multiply_add;
use super::value::Val;
use crate::diag::Result;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

pub use angle::{atan2_f64, cos_f64, sin_f64};
pub use erf::erfc_f32;
pub use exp::{exp_f64, expm1_f64, swish};
pub use log::{log_f64, log1p};
pub use remainder::remainder;
pub use slow::helper_definitions;
pub use soft::{mish_f32, softplus_f32};
pub use table::uses_tables;

/// Emits a unary mathematical function of f32 or f64. Errors: internal, if `op` is not one.
pub fn unary(f: &mut FunctionEmitter, op: ScalarOp, x: &Val) -> Result<Val> {
    if x.dtype == DType::F32 {
        match op {
            ScalarOp::Exp => return Ok(exp::exp_f32(f, x)),
            ScalarOp::Logistic => return Ok(exp::logistic(f, x)),
            ScalarOp::Tanh => return Ok(exp::tanh(f, x)),
            ScalarOp::Erf => return Ok(erf::erf_f32(f, x)),
            ScalarOp::Expm1 => return Ok(exp::expm1_f32(f, x)),
            ScalarOp::Log => return Ok(log::log_f32(f, x)),
            ScalarOp::Log1p => return Ok(log::log1p(f, x)),
            ScalarOp::Sin if fuses_multiply_add(f, x.dtype) => return Ok(angle::sin_f32(f, x)),
            ScalarOp::Cos if fuses_multiply_add(f, x.dtype) => return Ok(angle::cos_f32(f, x)),
            _ => {
                let wide = super::convert::convert(f, x, DType::F64);
                let y = unary(f, op, &wide)?;
                return Ok(super::convert::convert(f, &y, DType::F32));
            }
        }
    }
    Ok(match op {
        ScalarOp::Exp => exp_f64(f, x),
        ScalarOp::Expm1 => expm1_f64(f, x),
        ScalarOp::Logistic => exp::logistic(f, x),
        ScalarOp::Tanh => exp::tanh(f, x),
        ScalarOp::Erf => erf::erf_f64(f, x),
        ScalarOp::Log => log_f64(f, x),
        ScalarOp::Log1p => log::log1p(f, x),
        ScalarOp::Cbrt => log::cbrt_f64(f, x),
        ScalarOp::Sin => sin_f64(f, x),
        ScalarOp::Cos => cos_f64(f, x),
        ScalarOp::Tan => {
            let (s, c) = (sin_f64(f, x), cos_f64(f, x));
            div(f, &s, &c)
        }
        _ => return Err(undefined_op_error(op, x.dtype)),
    })
}

/// Emits x^y of f32 or f64 with the semantics of C's `pow`.
pub fn power(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    in_f64(f, x, y, log::power)
}

/// Emits atan2(y, x) of f32 or f64.
pub fn atan2(f: &mut FunctionEmitter, y: &Val, x: &Val) -> Val {
    in_f64(f, y, x, |f, y, x, _| atan2_f64(f, y, x))
}

/// Emits a binary function in f64 for operands of either type; `make` gets whether f32's precision is enough.
fn in_f64(f: &mut FunctionEmitter, x: &Val, y: &Val, make: fn(&mut FunctionEmitter, &Val, &Val, bool) -> Val) -> Val {
    if x.dtype == DType::F64 {
        return make(f, x, y, false);
    }
    let (a, b) = (super::convert::convert(f, x, DType::F64), super::convert::convert(f, y, DType::F64));
    let r = make(f, &a, &b, true);
    super::convert::convert(f, &r, x.dtype)
}

/// Emits the polynomial `coefficients[0] + coefficients[1]·x + …` by Horner's scheme.
fn polynomial(f: &mut FunctionEmitter, x: &Val, coefficients: &[f64]) -> Val {
    let mut sum = float_constant(x, coefficients.last().copied().unwrap_or(0.0));
    for &c in coefficients.iter().rev().skip(1) {
        sum = fma(f, &sum, x, &float_constant(x, c));
    }
    sum
}

/// A polynomial by Estrin's scheme: neighbours are joined with x, then those with x², and so on, so that few steps wait for one
/// another.
fn in_pairs(f: &mut FunctionEmitter, x: &Val, coefficients: &[f64]) -> Val {
    let terms = coefficients.iter().map(|&c| float_constant(x, c)).collect();
    joined_in_pairs(f, x, terms)
}

/// A polynomial by Estrin's scheme, with coefficients that differ from lane to lane.
fn joined_in_pairs(f: &mut FunctionEmitter, x: &Val, mut terms: Vec<Val>) -> Val {
    let mut power = x.clone();
    while terms.len() > 1 {
        let mut join = |pair: &[Val]| match pair {
            [low, high] => fma(f, high, &power, low),
            _ => pair[0].clone(),
        };
        terms = terms.chunks(2).map(&mut join).collect();
        if terms.len() > 1 {
            power = mul(f, &power, &power);
        }
    }
    terms.pop().unwrap_or(power)
}

/// Emits min(x, `most`); NaN stays NaN.
fn at_most(f: &mut FunctionEmitter, x: &Val, most: f64) -> Val {
    // in this order a NaN stays one
    let most = float_constant(x, most);
    let over = fcmp(f, "ogt", x, &most);
    select(f, &over, &most, x)
}

/// Emits x clamped to `low..=high`; NaN becomes `low`.
fn limit(f: &mut FunctionEmitter, x: &Val, low: f64, high: f64) -> Val {
    let (low, high) = (float_constant(x, low), float_constant(x, high));
    let above = fcmp(f, "ogt", x, &low);
    let x = select(f, &above, x, &low);
    let below = fcmp(f, "olt", &x, &high);
    select(f, &below, &x, &high)
}

/// Emits `y`, or `x` if `x` is NaN.
fn keep_nan(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    let nan = fcmp(f, "uno", x, x);
    select(f, &nan, x, y)
}

/// Emits x·y as a rounded product and its rounding error: by fused multiply-add, or by halves of 26 bits (Dekker) without it.
fn exact_product(f: &mut FunctionEmitter, x: &Val, y: &Val) -> (Val, Val) {
    let p = mul(f, x, y);
    if fuses_multiply_add(f, x.dtype) {
        let minus = neg(f, &p);
        let rest = fma(f, x, y, &minus);
        return (p, rest);
    }
    let mut halves = |x: &Val| {
        let word = reinterpret(f, x, DType::U64);
        let high = binary_instruction(f, "and", &word, &constant_bits(&word, u64::MAX << 27));
        let high = reinterpret(f, &high, DType::F64);
        let low = sub(f, x, &high);
        (high, low)
    };
    let ((xh, xl), (yh, yl)) = (halves(x), halves(y));
    let mut rest = neg(f, &p);
    for (a, b) in [(&xh, &yh), (&xh, &yl), (&xl, &yh), (&xl, &yl)] {
        let part = mul(f, a, b);
        rest = add(f, &rest, &part);
    }
    (p, rest)
}

/// Emits 2^n for an integral f64 `n` in -2046..=2046 as two factors, neither of which overflows or is subnormal, and the inverse of the
/// first.
fn powers_of_two(f: &mut FunctionEmitter, n: &Val) -> (Val, Val, Val) {
    let whole = integer(f, n);
    let half = binary_instruction(f, "ashr", &whole, &constant_bits(&whole, 1));
    let rest = binary_instruction(f, "sub", &whole, &half);
    let zero = constant_bits(&whole, 0);
    let inverse = binary_instruction(f, "sub", &zero, &half);
    let mut power = |part: &Val| {
        let biased = binary_instruction(f, "add", part, &constant_bits(part, 1023));
        let word = binary_instruction(f, "shl", &biased, &constant_bits(part, 52));
        reinterpret(f, &word, n.dtype)
    };
    (power(&half), power(&rest), power(&inverse))
}

/// Emits the conversion of an integral f64 below 2^51 to s64: the low bits of n + 1.5·2^52, as few processors convert f64 to s64 in
/// vectors. Any other number gives an unspecified integer.
fn integer(f: &mut FunctionEmitter, n: &Val) -> Val {
    let magic = float_constant(n, 6_755_399_441_055_744.0);
    let sum = add(f, n, &magic);
    let word = reinterpret(f, &sum, DType::S64);
    binary_instruction(f, "sub", &word, &constant_bits(&word, 6_755_399_441_055_744.0f64.to_bits()))
}
