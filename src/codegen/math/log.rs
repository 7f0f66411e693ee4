//! Logarithms, and powers as e^(y·ln x).
use super::super::arith::{
    abs, add, binary_instruction, constant_bits, copysign, div, fcmp, float_constant, fma, mul, reinterpret, select,
    sub,
};
use super::super::convert::convert;
use super::super::float::round;
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use super::exp::{RANGE_F64, exp_f64, exp_finite};
use super::{exact_product, in_pairs, keep_nan, limit, polynomial};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// ln2 as a sum of two constants; the first ends in zero bits, so that its products with integers below 2^20 are exact.
const LN2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];

/// Emits the decomposition of a positive finite x: k and m with x = 2^k·m and m in [√½, √2).
fn split(f: &mut FunctionEmitter, x: &Val) -> (Val, Val) {
    // the least normal number, by which power of two denormals are scaled up first, √½, and bits of a mantissa
    let (int, least, up, root, mantissa) = if x.dtype == DType::F32 {
        (DType::S32, f64::from(f32::MIN_POSITIVE), 25, 0x3F35_04F3, 23)
    } else {
        (DType::S64, f64::MIN_POSITIVE, 54, 0x3FE6_A09E_667F_3BCD, 52)
    };
    let denormal = fcmp(f, "olt", x, &float_constant(x, least));
    let scaled = mul(f, x, &float_constant(x, 2f64.powi(up)));
    let v = select(f, &denormal, &scaled, x);
    let shift = select(f, &denormal, &float_constant(x, -f64::from(up)), &float_constant(x, 0.0));
    let word = reinterpret(f, &v, int);
    // Bits of √½ taken away: the exponent field then counts from [√½, √2).
    let moved = binary_instruction(f, "sub", &word, &constant_bits(&word, root));
    let k = binary_instruction(f, "ashr", &moved, &constant_bits(&word, mantissa));
    let exponent = binary_instruction(f, "shl", &k, &constant_bits(&word, mantissa));
    let m = binary_instruction(f, "sub", &word, &exponent);
    let m = reinterpret(f, &m, x.dtype);
    // The exponent fits into 32 bits, which more processors convert in vectors.
    let k = convert(f, &k, DType::S32);
    let k = convert(f, &k, x.dtype);
    (add(f, &k, &shift), m)
}

/// Emits 2/3 + 2/5·s² + …: the series of ln((1 + s)/(1 - s)) after its first term 2s, divided by s³.
fn atanh_tail(f: &mut FunctionEmitter, square: &Val) -> Val {
    let series: Vec<f64> = (1..=11).map(|i| 2.0 / f64::from(2 * i + 1)).collect();
    polynomial(f, square, &series)
}

/// (ln(1 + t) - t + t²/2) / t³ for 1 + t in [√½, √2), rising powers: Chebyshev interpolation, which makes ln(1 + t) wrong by at
/// most 3.4e-9 of it.
const LOG_F32: [f64; 9] = [
    0.333_333_31,
    -0.249_999_97,
    0.200_007_16,
    -0.166_678_03,
    0.142_490_58,
    -0.124_256_87,
    0.116_854_2,
    -0.114_797_34,
    0.069_716_12,
];

/// Emits ln(1 + t) + `more` of f32 for 1 + t in [√½, √2].
pub fn log1p_reduced(f: &mut FunctionEmitter, t: &Val, more: &Val) -> Val {
    let square = mul(f, t, t);
    let cube = mul(f, t, &square);
    let p = in_pairs(f, t, &LOG_F32);
    let log = fma(f, &cube, &p, more);
    let log = fma(f, &square, &float_constant(t, -0.5), &log);
    add(f, t, &log)
}

/// Emits ln x of f32 as k·ln2 + ln m with x = 2^k·m, m in [√½, √2).
pub fn log_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let (k, m) = split(f, x);
    let t = sub(f, &m, &float_constant(x, 1.0));
    // ln2 in two parts, the first with zeros at the end, so that k times it is exact
    let low = mul(f, &k, &float_constant(x, -2.121_944_400_546_905_8e-4));
    let log = log1p_reduced(f, &t, &low);
    let log = fma(f, &k, &float_constant(x, 0.693_359_375), &log);
    ends(f, x, &log)
}

/// Emits ln x of f64 as k·ln2 + 2·atanh((m-1)/(m+1)) with x = 2^k·m.
pub fn log_f64(f: &mut FunctionEmitter, x: &Val) -> Val {
    let (k, m) = split(f, x);
    let one = float_constant(x, 1.0);
    let (above, below) = (sub(f, &m, &one), add(f, &m, &one));
    let s = div(f, &above, &below);
    let square = mul(f, &s, &s);
    let p = atanh_tail(f, &square);
    let cube = mul(f, &s, &square);
    let twice = add(f, &s, &s);
    let log = fma(f, &cube, &p, &twice);
    let log = fma(f, &k, &float_constant(x, LN2[1]), &log);
    let log = fma(f, &k, &float_constant(x, LN2[0]), &log);
    ends(f, x, &log)
}

/// Emits a selection that replaces `log` by the results for x = 0, infinity, NaN and negative x.
fn ends(f: &mut FunctionEmitter, x: &Val, log: &Val) -> Val {
    let at_end = fcmp(f, "oeq", x, &float_constant(x, f64::INFINITY));
    let y = select(f, &at_end, x, log);
    let nothing = fcmp(f, "oeq", x, &float_constant(x, 0.0));
    let y = select(f, &nothing, &float_constant(x, f64::NEG_INFINITY), &y);
    let below = fcmp(f, "ult", x, &float_constant(x, 0.0));
    select(f, &below, &float_constant(x, f64::NAN), &y)
}

/// Emits ln(1 + x) as ln u · x / (u - 1) with u = 1 + x rounded (Kahan).
pub fn log1p(f: &mut FunctionEmitter, x: &Val) -> Val {
    let one = float_constant(x, 1.0);
    let u = add(f, x, &one);
    let log = if x.dtype == DType::F32 { log_f32(f, &u) } else { log_f64(f, &u) };
    let step = sub(f, &u, &one);
    let ratio = div(f, x, &step);
    let y = mul(f, &log, &ratio);
    let exact = fcmp(f, "oeq", &u, &one);
    let y = select(f, &exact, x, &y);
    let at_end = fcmp(f, "oeq", x, &float_constant(x, f64::INFINITY));
    select(f, &at_end, x, &y)
}

/// Emits the cube root of f64: e^(ln|x|/3), then one step of Newton's method.
pub fn cbrt_f64(f: &mut FunctionEmitter, x: &Val) -> Val {
    let size = abs(f, x);
    let log = log_f64(f, &size);
    let third = float_constant(x, 1.0 / 3.0);
    let log = mul(f, &log, &third);
    let root = exp_f64(f, &log);
    let square = mul(f, &root, &root);
    let better = div(f, &size, &square);
    let step = sub(f, &better, &root);
    let y = fma(f, &step, &third, &root);
    let y = copysign(f, &y, x);
    // 0, infinities and NaN are their own roots.
    let moves = fcmp(f, "one", x, &float_constant(x, 0.0));
    let finite = fcmp(f, "olt", &size, &float_constant(x, f64::INFINITY));
    let both = binary_instruction(f, "and", &moves, &finite);
    select(f, &both, &y, x)
}

/// Emits ln x of a positive x as a double-double: a sum of two f64 with about 60 bits.
fn log_pair(f: &mut FunctionEmitter, x: &Val) -> (Val, Val) {
    let (k, m) = split(f, x);
    let two_ = float_constant(x, 2.0);
    let above = sub(f, &m, &float_constant(x, 1.0));
    let below = add(f, &above, &two_);
    let rounded = sub(f, &below, &two_);
    let lost = sub(f, &above, &rounded);
    let s = div(f, &above, &below);
    // above - s·(below + lost), over below: what the quotient lacks.
    let (product, rest) = exact_product(f, &s, &below);
    let left = sub(f, &above, &product);
    let left = sub(f, &left, &rest);
    let more = mul(f, &s, &lost);
    let left = sub(f, &left, &more);
    let s_low = div(f, &left, &below);
    let square = mul(f, &s, &s);
    let p = atanh_tail(f, &square);
    let cube = mul(f, &s, &square);
    let tail = mul(f, &cube, &p);
    let twice = add(f, &s_low, &s_low);
    let tail = add(f, &tail, &twice);
    let tail = fma(f, &k, &float_constant(x, LN2[1]), &tail);
    let (a, b) = (mul(f, &k, &float_constant(x, LN2[0])), add(f, &s, &s));
    // k·ln2 is 0 or larger than 2s: a + b and what was lost, exactly.
    let sum = add(f, &a, &b);
    let back = sub(f, &sum, &a);
    let lost = sub(f, &b, &back);
    let low = add(f, &lost, &tail);
    let high = add(f, &sum, &low);
    let back = sub(f, &high, &sum);
    let low = sub(f, &low, &back);
    (high, low)
}

/// Emits x^y with the semantics of C's `pow`: e^(y·ln|x|), with the sign of x if y is an odd integer. `coarse` gives precision enough for
/// f32.
pub fn power(f: &mut FunctionEmitter, x: &Val, y: &Val, coarse: bool) -> Val {
    let size = abs(f, x);
    let positive = if coarse {
        let log = log_f64(f, &size);
        let product = mul(f, y, &log);
        exp_f64(f, &product)
    } else {
        // Beyond 2^64 an exponent gives 0, 1 or infinity for every other x than 1.
        let bound = 18_446_744_073_709_551_616.0;
        let held = limit(f, y, -bound, bound);
        let (high, low) = log_pair(f, &size);
        let high = ends(f, &size, &high);
        let (product, rest) = exact_product(f, &held, &high);
        let rest = fma(f, &held, &low, &rest);
        let (lowest, highest) = RANGE_F64;
        let inside = limit(f, &product, lowest, highest);
        let same = fcmp(f, "oeq", &inside, &product);
        let rest = select(f, &same, &rest, &float_constant(x, 0.0));
        let e = exp_finite(f, &inside, Some(&rest));
        let e = keep_nan(f, &product, &e);
        keep_nan(f, y, &e)
    };
    let whole = round(f, ScalarOp::Floor, y);
    let is_whole = fcmp(f, "oeq", &whole, y);
    let halved = mul(f, y, &float_constant(x, 0.5));
    let half_whole = round(f, ScalarOp::Floor, &halved);
    let uneven = fcmp(f, "une", &half_whole, &halved);
    let odd = binary_instruction(f, "and", &is_whole, &uneven);
    let signed = copysign(f, &positive, x);
    let r = select(f, &odd, &signed, &positive);
    // A finite number below 0 has no power that is not whole.
    let below = fcmp(f, "olt", x, &float_constant(x, 0.0));
    let finite = fcmp(f, "ogt", x, &float_constant(x, f64::NEG_INFINITY));
    let broken = fcmp(f, "one", &whole, y);
    let outside = binary_instruction(f, "and", &below, &broken);
    let outside = binary_instruction(f, "and", &outside, &finite);
    let r = select(f, &outside, &float_constant(x, f64::NAN), &r);
    let no_power = fcmp(f, "oeq", y, &float_constant(x, 0.0));
    let unit = fcmp(f, "oeq", x, &float_constant(x, 1.0));
    let trivial = binary_instruction(f, "or", &no_power, &unit);
    let r = select(f, &trivial, &float_constant(x, 1.0), &r);
    // (-1)^±infinity is 1.
    let unit = fcmp(f, "oeq", &size, &float_constant(x, 1.0));
    let size_of_y = abs(f, y);
    let endless = fcmp(f, "oeq", &size_of_y, &float_constant(x, f64::INFINITY));
    let both = binary_instruction(f, "and", &unit, &endless);
    select(f, &both, &float_constant(x, 1.0), &r)
}
