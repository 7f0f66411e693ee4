//! e^x and what is made of it: n and r with x = n·ln2 + r, a polynomial in r, then 2^n.
use super::super::arith::{
    add, binary_instruction, constant_bits, copysign, div, fcmp, float_constant, fma, mul, neg, reinterpret, select,
    sub,
};
use super::super::float::round;
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use super::table::uses_tables;
use super::{at_most, keep_nan, limit, polynomial, powers_of_two, sixteenths};
use crate::scalar::ScalarOp;
use crate::target::IsaLevel;
use crate::tensor::DType;

/// Coefficients of (e^r - 1 - r) / r² for |r| <= ln2/2, in rising powers.
const EXP_F32: [f64; 5] = [0.499_999_94, 0.166_665_2, 0.041_668_396, 0.008_368_797, 0.001_381_443_3];

/// Constant c such that the low bits of the float n + c are the exponent field of 2^n in f32.
const EXPONENT: f64 = 12_582_912.0 + 127.0;

/// The reduced argument of an f32 exponential: n and r with x = n·ln2 + r, n an integer, |r| <= ln2/2.
struct Reduced {
    /// n + [`EXPONENT`].
    biased: Val,
    n: Val,
    r: Val,
}

/// Emits the argument reduction of an f32 exponential, for |x| below 2^20; NaN gives NaN in all parts.
fn reduce_f32(f: &mut FunctionEmitter, x: &Val) -> Reduced {
    let biased = fma(f, x, &float_constant(x, std::f64::consts::LOG2_E), &float_constant(x, EXPONENT));
    let n = sub(f, &biased, &float_constant(x, EXPONENT));
    let r = reduced_argument(f, x, &n, 1.0);
    Reduced { biased, n, r }
}

/// Emits 2^n for n from -126 to 127, or 0 for -127; `biased` is n + [`EXPONENT`].
fn power_of_two(f: &mut FunctionEmitter, biased: &Val) -> Val {
    let word = reinterpret(f, biased, DType::U32);
    let word = binary_instruction(f, "shl", &word, &constant_bits(&word, 23));
    reinterpret(f, &word, DType::F32)
}

/// Emits y·2^n, rounded once: by one instruction if the target has it, else by two factors, neither of which overflows or is subnormal.
fn times_power(f: &mut FunctionEmitter, y: &Val, by: &Reduced) -> Val {
    if f.target.level == IsaLevel::Avx512 && !f.math_type().is_portable() && matches!(y.lanes, 4 | 8 | 16) {
        let (ty, width, mask) = (y.ty(), 32 * y.lanes, if y.lanes == 16 { 16 } else { 8 });
        // all lanes, rounded as everything else
        let rounding = if y.lanes == 16 { ", i32 4" } else { "" };
        let operands = format!("{ty} {}, {ty} {}, {ty} zeroinitializer, i{mask} -1{rounding}", y.text, by.n.text);
        return f.push_instruction(
            &format!("call {ty} @llvm.x86.avx512.mask.scalef.ps.{width}({operands})"),
            y.dtype,
            y.lanes,
        );
    }
    let word = reinterpret(f, &by.biased, DType::S32);
    let zero = constant_bits(&word, u64::from((EXPONENT as f32).to_bits()));
    let n = binary_instruction(f, "sub", &word, &zero);
    let half = binary_instruction(f, "ashr", &n, &constant_bits(&n, 1));
    let other = binary_instruction(f, "sub", &n, &half);
    let factors = [half, other].map(|part| {
        let biased = binary_instruction(f, "add", &part, &constant_bits(&part, 127));
        let word = binary_instruction(f, "shl", &biased, &constant_bits(&biased, 23));
        reinterpret(f, &word, DType::F32)
    });
    factors.iter().fold(y.clone(), |y, factor| mul(f, &y, factor))
}

/// Emits the argument reduction of an f64 exponential: n and r with x = n·ln2 + r, n an integer, |r| <= ln2/2.
fn reduce(f: &mut FunctionEmitter, x: &Val) -> (Val, Val) {
    let scaled = mul(f, x, &float_constant(x, std::f64::consts::LOG2_E));
    let n = round(f, ScalarOp::RoundNearestEven, &scaled);
    let r = reduced_argument(f, x, &n, 1.0);
    (n, r)
}

/// Emits x - `sign`·n·ln2.
fn reduced_argument(f: &mut FunctionEmitter, x: &Val, n: &Val, sign: f64) -> Val {
    // ln2 in two parts, the first with zeros at the end, so that n times it is exact.
    let (high, low) = if x.dtype == DType::F32 {
        (0.693_145_75, 1.428_606_8e-6)
    } else {
        (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10)
    };
    let r = fma(f, n, &float_constant(x, -sign * high), x);
    fma(f, n, &float_constant(x, -sign * low), &r)
}

/// Emits e^r - 1 for a reduced f64 argument r.
fn core(f: &mut FunctionEmitter, r: &Val) -> Val {
    let p = if r.dtype == DType::F32 {
        polynomial(f, r, &EXP_F32)
    } else {
        let mut term = 1.0;
        let taylor = (1..=14).map(|k| {
            term /= f64::from(k);
            term
        });
        polynomial(f, r, &taylor.skip(1).collect::<Vec<f64>>())
    };
    let square = mul(f, r, r);
    fma(f, &square, &p, r)
}

/// Emits e^x·(1 + `more`) for a finite f64 x with a finite result.
pub fn exp_finite(f: &mut FunctionEmitter, x: &Val, more: Option<&Val>) -> Val {
    let (n, mut r) = reduce(f, x);
    if let Some(more) = more {
        r = add(f, &r, more);
    }
    let q = core(f, &r);
    let (a, b, _) = powers_of_two(f, &n);
    let y = fma(f, &a, &q, &a);
    mul(f, &y, &b)
}

/// Emits e^x of an f32 from -87 to 88.
pub fn exp_f32_in_range(f: &mut FunctionEmitter, x: &Val) -> Val {
    let Reduced { biased, r, .. } = reduce_f32(f, x);
    let q = core(f, &r);
    let power = power_of_two(f, &biased);
    fma(f, &power, &q, &power)
}

/// Range of f64 arguments outside of which e^x is 0 or infinite.
pub const RANGE_F64: (f64, f64) = (-746.0, 710.0);

/// Range of f32 arguments outside of which e^x is 0 or infinite.
const RANGE_F32: (f64, f64) = (-104.0, 89.0);

/// e^x.
pub fn exp_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let limited = clamp(f, x, RANGE_F32.0, RANGE_F32.1);
    let reduced = reduce_f32(f, &limited);
    let q = core(f, &reduced.r);
    let y = add(f, &float_constant(x, 1.0), &q);
    times_power(f, &y, &reduced)
}

/// Emits x clamped to a range; NaN stays NaN.
fn clamp(f: &mut FunctionEmitter, x: &Val, low: f64, high: f64) -> Val {
    // the order of the operands keeps a NaN
    let low = float_constant(x, low);
    let under = fcmp(f, "olt", x, &low);
    let limited = select(f, &under, &low, x);
    at_most(f, &limited, high)
}

/// e^x.
pub fn exp_f64(f: &mut FunctionEmitter, x: &Val) -> Val {
    let limited = limit(f, x, RANGE_F64.0, RANGE_F64.1);
    let y = exp_finite(f, &limited, None);
    keep_nan(f, x, &y)
}

/// Emits 1 / (1 + e^-x).
pub fn logistic(f: &mut FunctionEmitter, x: &Val) -> Val {
    let one = float_constant(x, 1.0);
    logistic_times(f, &one, x)
}

/// Emits x / (1 + e^-x) of f32.
pub fn swish(f: &mut FunctionEmitter, x: &Val) -> Val {
    logistic_times(f, x, x)
}

/// Emits `top` / (1 + e^-x).
fn logistic_times(f: &mut FunctionEmitter, top: &Val, x: &Val) -> Val {
    let below = if x.dtype == DType::F32 {
        one_plus_exp(f, x)
    } else {
        let minus = neg(f, x);
        let e = exp_f64(f, &minus);
        add(f, &float_constant(x, 1.0), &e)
    };
    div(f, top, &below)
}

/// Emits 1 + e^-x of an f32. For x above 87, e^-x is some number near 0; from 2^127 on it may be infinite. A single power-of-two factor is
/// enough for that range, and the last multiply-add rounds once.
fn one_plus_exp(f: &mut FunctionEmitter, x: &Val) -> Val {
    let limited = at_most(f, x, 87.0);
    if uses_tables(f) {
        let whole = fma(
            f,
            &limited,
            &float_constant(x, -16.0 * std::f64::consts::LOG2_E),
            &float_constant(x, sixteenths::WHOLE),
        );
        let whole = at_most(f, &whole, sixteenths::WHOLE + 16.0 * 127.0 + 15.0);
        return sixteenths::one_plus_exp(f, &limited, &whole);
    }
    let biased = fma(f, &limited, &float_constant(x, -std::f64::consts::LOG2_E), &float_constant(x, EXPONENT));
    let biased = at_most(f, &biased, EXPONENT + 127.0);
    let n = sub(f, &biased, &float_constant(x, EXPONENT));
    // -r: where n is held back, it is so large that the product overflows
    let minus = reduced_argument(f, &limited, &n, -1.0);
    let q = polynomial(
        f,
        &minus,
        &EXP_F32.map({
            let mut sign = -1.0;
            move |c| {
                sign = -sign;
                sign * c
            }
        }),
    );
    let q = fma(f, &q, &minus, &float_constant(x, -1.0));
    let one = float_constant(x, 1.0);
    let e = fma(f, &q, &minus, &one);
    let power = power_of_two(f, &biased);
    fma(f, &e, &power, &one)
}

/// Emits e^x - 1 of a finite f64 with a small relative error: 2^n·(1 + q) - 1, as a·(b·q + (b - 1/a)) with 2^n = a·b.
fn expm1_finite(f: &mut FunctionEmitter, x: &Val) -> Val {
    let (n, r) = reduce(f, x);
    let q = core(f, &r);
    let (a, b, inverse) = powers_of_two(f, &n);
    let base = sub(f, &b, &inverse);
    let inner = fma(f, &b, &q, &base);
    mul(f, &a, &inner)
}

/// e^x - 1.
pub fn expm1_f64(f: &mut FunctionEmitter, x: &Val) -> Val {
    let limited = limit(f, x, -60.0, 710.0);
    let y = expm1_finite(f, &limited);
    let y = copysign(f, &y, x);
    let over = fcmp(f, "ogt", x, &float_constant(x, 709.782_712_893_384));
    let y = select(f, &over, &float_constant(x, f64::INFINITY), &y);
    keep_nan(f, x, &y)
}

/// Emits e^x - 1 of f32 as twice 2^(n-1)·q + (2^(n-1) - 1/2), as 2^n may be infinite although the result is finite.
pub fn expm1_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let limited = clamp(f, x, -18.0, 89.0);
    let Reduced { biased, r, .. } = reduce_f32(f, &limited);
    let q = core(f, &r);
    let below = sub(f, &biased, &float_constant(x, 1.0));
    let half = power_of_two(f, &below);
    let base = sub(f, &half, &float_constant(x, 0.5));
    let y = fma(f, &half, &q, &base);
    let y = add(f, &y, &y);
    copysign(f, &y, x)
}

/// Emits tanh x as (e^2x - 1) / (e^2x + 1).
pub fn tanh(f: &mut FunctionEmitter, x: &Val) -> Val {
    let bound = if x.dtype == DType::F32 { 9.2 } else { 20.0 };
    let limited = clamp(f, x, -bound, bound);
    let twice = add(f, &limited, &limited);
    let e = if x.dtype == DType::F32 { expm1_small(f, &twice) } else { expm1_finite(f, &twice) };
    let below = add(f, &e, &float_constant(x, 2.0));
    let y = div(f, &e, &below);
    copysign(f, &y, x)
}

/// Emits e^x - 1 of an f32 for which 2^n is a normal number: 2^n·q + (2^n - 1).
fn expm1_small(f: &mut FunctionEmitter, x: &Val) -> Val {
    let Reduced { biased, r, .. } = reduce_f32(f, x);
    let q = core(f, &r);
    let power = power_of_two(f, &biased);
    let base = sub(f, &power, &float_constant(x, 1.0));
    fma(f, &power, &q, &base)
}
