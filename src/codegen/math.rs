//! Elementary functions over vectors, of our own: no library, no tables.
//!
//! f32 `exp`, `logistic`, `tanh`, `erf` work in f32 (bounds: 1.1, 2.5, 2.5, 2.4 ulp; coefficients are minimax fits over the
//! reduced range). The other f32 functions are the f64 ones, rounded. f64 works on reduced arguments with Taylor and
//! atanh series to the order where the remainder is below 2^-54 of the result (bound: a few ulp).
use super::function::{Function, Val};
use super::scalar::{arith, bitcast, call, convert, fcmp, float_constant, fma, round, select};
use crate::diag::{Code, Error, Result};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// (e^r - 1 - r) / r² for |r| <= ln2/2, rising powers.
const EXP_F32: [f64; 5] = [0.499_999_94, 0.166_665_2, 0.041_668_396, 0.008_368_797, 0.001_381_443_3];
/// erf(x)/x below 0.93, in x².
const ERF_SMALL: [f64; 6] = [
    1.128_379_147_712_974_3,
    -0.376_124_811_493_191_44,
    0.112_816_828_504_445_2,
    -0.026_761_727_831_016_487,
    0.004_985_949_589_427_17,
    -0.000_595_377_868_410_388_3,
];
/// ln(erfc(x)) from 0.92 to 4.
const ERFC_LOG: [f64; 8] = [
    0.000_174_683_010_947_206_68,
    -1.129_514_923_299_452_8,
    -0.633_346_921_473_975_9,
    -0.108_280_071_960_512_4,
    0.025_119_415_544_695_947,
    -0.004_171_058_308_267_007_5,
    0.000_434_461_593_882_629_24,
    -2.109_495_746_736_957e-5,
];

/// A unary function of f32 or f64.
pub fn unary(f: &mut Function, op: ScalarOp, x: &Val) -> Result<Val> {
    let unsupported =
        || Error::user(Code::HloUnsupported, format!("native code has no `{}` on {}", op.name(), x.dtype));
    if !x.dtype.is_float() {
        return Err(unsupported());
    }
    if x.dtype == DType::F32 {
        match op {
            ScalarOp::Exp => return Ok(exp_f32(f, x)),
            ScalarOp::Logistic => return Ok(logistic(f, x, exp_f32)),
            ScalarOp::Tanh => return Ok(tanh_f32(f, x)),
            ScalarOp::Erf => return Ok(erf_f32(f, x)),
            _ => {
                let wide = convert(f, x, DType::F64)?;
                let y = unary(f, op, &wide)?;
                return convert(f, &y, DType::F32);
            }
        }
    }
    Ok(match op {
        ScalarOp::Exp => exp_f64(f, x),
        ScalarOp::Expm1 => expm1_f64(f, x),
        ScalarOp::Log => log_f64(f, x),
        ScalarOp::Log1p => log1p_f64(f, x),
        ScalarOp::Logistic => logistic(f, x, exp_f64),
        ScalarOp::Tanh => tanh_f64(f, x),
        ScalarOp::Sin => trig(f, x, 0),
        ScalarOp::Cos => trig(f, x, 1),
        ScalarOp::Tan => {
            let (s, c) = (trig(f, x, 0), trig(f, x, 1));
            div(f, &s, &c)
        }
        ScalarOp::Cbrt => {
            let magnitude = call(f, "fabs", &[x]);
            let log = log_f64(f, &magnitude);
            let third = float_constant(f, x, 1.0 / 3.0);
            let root = mul(f, &log, &third);
            let root = exp_f64(f, &root);
            call(f, "copysign", &[&root, x])
        }
        _ => return Err(unsupported()),
    })
}

fn add(f: &mut Function, x: &Val, y: &Val) -> Val {
    arith(f, x, y, ["fadd", "", ""])
}
fn sub(f: &mut Function, x: &Val, y: &Val) -> Val {
    arith(f, x, y, ["fsub", "", ""])
}
fn mul(f: &mut Function, x: &Val, y: &Val) -> Val {
    arith(f, x, y, ["fmul", "", ""])
}
fn div(f: &mut Function, x: &Val, y: &Val) -> Val {
    arith(f, x, y, ["fdiv", "", ""])
}

/// `coefficients[0] + coefficients[1]·x + …`
fn polynomial(f: &mut Function, x: &Val, coefficients: &[f64]) -> Val {
    let mut sum = float_constant(f, x, coefficients[coefficients.len() - 1]);
    for &c in coefficients.iter().rev().skip(1) {
        let c = float_constant(f, x, c);
        sum = fma(f, &sum, x, &c);
    }
    sum
}

/// x limited to `low..=high`; NaN becomes `low`.
fn limit(f: &mut Function, x: &Val, low: f64, high: f64) -> Val {
    let (low, high) = (float_constant(f, x, low), float_constant(f, x, high));
    let above = fcmp(f, "ogt", x, &low);
    let x = select(f, &above, x, &low);
    let below = fcmp(f, "olt", &x, &high);
    select(f, &below, &x, &high)
}

/// `y`, but `x` where `x` is NaN.
fn keep_nan(f: &mut Function, x: &Val, y: &Val) -> Val {
    let nan = fcmp(f, "uno", x, x);
    select(f, &nan, x, y)
}

/// 2^n of a whole number `n` in -2046..=2046, as two factors so that neither overflows nor is denormal.
fn powers_of_two(f: &mut Function, n: &Val) -> (Val, Val) {
    let (int, bias, mantissa) = if n.dtype == DType::F32 { (DType::S32, 127, 23) } else { (DType::S64, 1023, 52) };
    let whole = f.ins(
        &format!(
            "fptosi {} {} to {}",
            super::function::value_type(n.dtype, n.lanes),
            n.text,
            super::function::value_type(int, n.lanes)
        ),
        int,
        n.lanes,
    );
    let (one, bias, width) =
        (f.constant(int, 1, n.lanes), f.constant(int, bias, n.lanes), f.constant(int, mantissa, n.lanes));
    let half = arith(f, &whole, &one, ["", "ashr", ""]);
    let rest = arith(f, &whole, &half, ["", "sub", ""]);
    let mut power = |part: &Val| {
        let biased = arith(f, part, &bias, ["", "add", ""]);
        let bits = arith(f, &biased, &width, ["", "shl", ""]);
        Val {
            text: f
                .ins(
                    &format!(
                        "bitcast {} {} to {}",
                        super::function::value_type(int, n.lanes),
                        bits.text,
                        super::function::value_type(n.dtype, n.lanes)
                    ),
                    n.dtype,
                    n.lanes,
                )
                .text,
            ..n.clone()
        }
    };
    (power(&half), power(&rest))
}

/// n and r with x = n·ln2 + r, n whole, |r| <= ln2/2.
fn reduce(f: &mut Function, x: &Val) -> (Val, Val) {
    // ln2 in two parts, the first with zeros at the end, so that n times it is exact.
    let (high, low) = if x.dtype == DType::F32 {
        (0.693_145_75, 1.428_606_8e-6)
    } else {
        (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10)
    };
    let scale = float_constant(f, x, std::f64::consts::LOG2_E);
    let scaled = mul(f, x, &scale);
    let n = round(f, ScalarOp::RoundNearestEven, &scaled);
    let (high, low) = (float_constant(f, x, -high), float_constant(f, x, -low));
    let r = fma(f, &n, &high, x);
    let r = fma(f, &n, &low, &r);
    (n, r)
}

/// e^r - 1 for a reduced r.
fn expm1_core(f: &mut Function, r: &Val) -> Val {
    let p = if r.dtype == DType::F32 {
        polynomial(f, r, &EXP_F32)
    } else {
        let mut term = 1.0;
        let taylor: Vec<f64> = (1..=14)
            .map(|k| {
                term /= f64::from(k);
                term
            })
            .skip(1)
            .collect();
        polynomial(f, r, &taylor)
    };
    let square = mul(f, r, r);
    fma(f, &square, &p, r)
}

fn exp_any(f: &mut Function, x: &Val, low: f64, high: f64) -> Val {
    let limited = limit(f, x, low, high);
    let (n, r) = reduce(f, &limited);
    let q = expm1_core(f, &r);
    let (a, b) = powers_of_two(f, &n);
    let y = fma(f, &a, &q, &a);
    let y = mul(f, &y, &b);
    keep_nan(f, x, &y)
}

fn exp_f32(f: &mut Function, x: &Val) -> Val {
    exp_any(f, x, -104.0, 89.0)
}

fn exp_f64(f: &mut Function, x: &Val) -> Val {
    exp_any(f, x, -746.0, 710.0)
}

fn logistic(f: &mut Function, x: &Val, exp: fn(&mut Function, &Val) -> Val) -> Val {
    let zero = float_constant(f, x, -0.0);
    let minus = sub(f, &zero, x);
    let e = exp(f, &minus);
    let one = float_constant(f, x, 1.0);
    let below = add(f, &one, &e);
    div(f, &one, &below)
}

/// e^x - 1 with the error relative to the result: 2^n·q + (2^n - 1).
fn expm1_any(f: &mut Function, x: &Val) -> Val {
    let (n, r) = reduce(f, x);
    let q = expm1_core(f, &r);
    let (a, b) = powers_of_two(f, &n);
    let scale = mul(f, &a, &b);
    let one = float_constant(f, x, 1.0);
    let base = sub(f, &scale, &one);
    fma(f, &scale, &q, &base)
}

fn tanh_f32(f: &mut Function, x: &Val) -> Val {
    tanh_any(f, x, 9.2)
}

fn tanh_f64(f: &mut Function, x: &Val) -> Val {
    tanh_any(f, x, 20.0)
}

fn tanh_any(f: &mut Function, x: &Val, bound: f64) -> Val {
    let limited = limit(f, x, -bound, bound);
    let twice = add(f, &limited, &limited);
    let e = expm1_any(f, &twice);
    let two = float_constant(f, x, 2.0);
    let below = add(f, &e, &two);
    let y = div(f, &e, &below);
    keep_nan(f, x, &y)
}

fn expm1_f64(f: &mut Function, x: &Val) -> Val {
    let limited = limit(f, x, -60.0, 709.7);
    let y = expm1_any(f, &limited);
    let (most, infinite) = (float_constant(f, x, 709.78), float_constant(f, x, f64::INFINITY));
    let over = fcmp(f, "ogt", x, &most);
    let y = select(f, &over, &infinite, &y);
    keep_nan(f, x, &y)
}

fn erf_f32(f: &mut Function, x: &Val) -> Val {
    let magnitude = call(f, "fabs", &[x]);
    let square = mul(f, x, x);
    let p = polynomial(f, &square, &ERF_SMALL);
    let near = mul(f, x, &p);
    let limited = limit(f, &magnitude, 0.0, 4.0);
    let log = polynomial(f, &limited, &ERFC_LOG);
    let (n, r) = reduce(f, &log);
    let q = expm1_core(f, &r);
    let (a, b) = powers_of_two(f, &n);
    let e = fma(f, &a, &q, &a);
    let e = mul(f, &e, &b);
    let one = float_constant(f, x, 1.0);
    let far = sub(f, &one, &e);
    let far = call(f, "copysign", &[&far, x]);
    let edge = float_constant(f, x, 0.93);
    let small = fcmp(f, "olt", &magnitude, &edge);
    let y = select(f, &small, &near, &far);
    keep_nan(f, x, &y)
}

/// ln x by x = 2^k·m, m in [√½, √2), ln m = 2·atanh((m-1)/(m+1)).
fn log_f64(f: &mut Function, x: &Val) -> Val {
    // Denormals are scaled up by 2^54 first.
    let (tiny, scale) = (float_constant(f, x, f64::MIN_POSITIVE), float_constant(f, x, 18_014_398_509_481_984.0));
    let denormal = fcmp(f, "olt", x, &tiny);
    let scaled = mul(f, x, &scale);
    let v = select(f, &denormal, &scaled, x);
    let (shift, none) = (float_constant(f, x, -54.0), float_constant(f, x, 0.0));
    let shift = select(f, &denormal, &shift, &none);
    let bits = bitcast(f, &v, DType::S64).expect("f64 has the width of s64");
    // Bits of √½ taken away: the exponent field then counts from [√½, √2).
    let root = f.constant(DType::S64, 0x3FE6_A09E_667F_3BCD, x.lanes);
    let width = f.constant(DType::S64, 52, x.lanes);
    let moved = arith(f, &bits, &root, ["", "sub", ""]);
    let k = arith(f, &moved, &width, ["", "ashr", ""]);
    let exponent = arith(f, &k, &width, ["", "shl", ""]);
    let mantissa = arith(f, &bits, &exponent, ["", "sub", ""]);
    let m = bitcast(f, &mantissa, DType::F64).expect("f64 has the width of s64");
    let k = convert(f, &k, DType::F64).expect("s64 converts to f64");
    let k = add(f, &k, &shift);
    let one = float_constant(f, x, 1.0);
    let (above, below) = (sub(f, &m, &one), add(f, &m, &one));
    let s = div(f, &above, &below);
    let square = mul(f, &s, &s);
    let series: Vec<f64> = (1..=11).map(|i| 2.0 / f64::from(2 * i + 1)).collect();
    let p = polynomial(f, &square, &series);
    let cube = mul(f, &s, &square);
    let two = float_constant(f, x, 2.0);
    let twice = mul(f, &s, &two);
    let log = fma(f, &cube, &p, &twice);
    let (high, low) =
        (float_constant(f, x, 0.693_147_180_369_123_8), float_constant(f, x, 1.908_214_929_270_587_7e-10));
    let log = fma(f, &k, &low, &log);
    let log = fma(f, &k, &high, &log);
    let (zero, infinite) = (float_constant(f, x, 0.0), float_constant(f, x, f64::INFINITY));
    let (minus, nan) = (float_constant(f, x, f64::NEG_INFINITY), float_constant(f, x, f64::NAN));
    let at_end = fcmp(f, "oeq", x, &infinite);
    let y = select(f, &at_end, x, &log);
    let nothing = fcmp(f, "oeq", x, &zero);
    let y = select(f, &nothing, &minus, &y);
    let below = fcmp(f, "ult", x, &zero);
    select(f, &below, &nan, &y)
}

/// ln(1 + x) = ln u · x / (u - 1) with u = 1 + x rounded (Kahan).
fn log1p_f64(f: &mut Function, x: &Val) -> Val {
    let (one, infinite) = (float_constant(f, x, 1.0), float_constant(f, x, f64::INFINITY));
    let u = add(f, x, &one);
    let log = log_f64(f, &u);
    let step = sub(f, &u, &one);
    let ratio = div(f, x, &step);
    let y = mul(f, &log, &ratio);
    let exact = fcmp(f, "oeq", &u, &one);
    let y = select(f, &exact, x, &y);
    let at_end = fcmp(f, "oeq", x, &infinite);
    select(f, &at_end, x, &y)
}

/// sin (phase 0) or cos (phase 1): x = n·π/2 + r with π/2 in three parts; exact enough for |x| < 2^27.
fn trig(f: &mut Function, x: &Val, phase: u64) -> Val {
    let turns = float_constant(f, x, std::f64::consts::FRAC_2_PI);
    let n = mul(f, x, &turns);
    let n = round(f, ScalarOp::RoundNearestEven, &n);
    let mut r = x.clone();
    for part in [-1.570_796_326_734_125_6, -6.077_100_506_303_966e-11, -2.022_266_248_795_950_6e-21] {
        let part = float_constant(f, x, part);
        r = fma(f, &n, &part, &r);
    }
    let square = mul(f, &r, &r);
    let mut sine = vec![1.0];
    let mut cosine = vec![1.0];
    for k in 1..=9 {
        let k = f64::from(2 * k);
        sine.push(-sine[sine.len() - 1] / (k * (k + 1.0)));
        cosine.push(-cosine[cosine.len() - 1] / (k * (k - 1.0)));
    }
    let s = polynomial(f, &square, &sine);
    let s = mul(f, &r, &s);
    let c = polynomial(f, &square, &cosine);
    let quadrant = convert(f, &n, DType::S64).expect("f64 converts to s64");
    let phase = f.constant(DType::S64, phase, x.lanes);
    let quadrant = arith(f, &quadrant, &phase, ["", "add", ""]);
    let (one, two, zero) =
        (f.constant(DType::S64, 1, x.lanes), f.constant(DType::S64, 2, x.lanes), f.constant(DType::S64, 0, x.lanes));
    let odd = arith(f, &quadrant, &one, ["", "and", ""]);
    let odd = icmp_ne(f, &odd, &zero);
    let y = select(f, &odd, &c, &s);
    let far = arith(f, &quadrant, &two, ["", "and", ""]);
    let far = icmp_ne(f, &far, &zero);
    let minus = float_constant(f, x, -1.0);
    let negated = mul(f, &y, &minus);
    select(f, &far, &negated, &y)
}

fn icmp_ne(f: &mut Function, x: &Val, y: &Val) -> Val {
    f.ins(
        &format!("icmp ne {} {}, {}", super::function::value_type(x.dtype, x.lanes), x.text, y.text),
        DType::Pred,
        x.lanes,
    )
}

/// The remainder with the dividend's sign: x - trunc(x/y)·y in f64, right while the quotient is below 2^29 for f32.
pub fn remainder(f: &mut Function, x: &Val, y: &Val) -> Result<Val> {
    if x.dtype == DType::F32 {
        let (a, b) = (convert(f, x, DType::F64)?, convert(f, y, DType::F64)?);
        let r = remainder(f, &a, &b)?;
        return convert(f, &r, DType::F32);
    }
    let q = div(f, x, y);
    let magnitude = call(f, "fabs", &[&q]);
    let whole = round(f, ScalarOp::Floor, &magnitude);
    let whole = call(f, "copysign", &[&whole, &q]);
    let product = mul(f, &whole, y);
    let r = sub(f, x, &product);
    let r = call(f, "copysign", &[&r, x]);
    // A finite x by an infinite y is x.
    let infinite = float_constant(f, x, f64::INFINITY);
    let (ax, ay) = (call(f, "fabs", &[x]), call(f, "fabs", &[y]));
    let finite = fcmp(f, "olt", &ax, &infinite);
    let endless = fcmp(f, "oeq", &ay, &infinite);
    let both = arith(f, &finite, &endless, ["", "", "and"]);
    Ok(select(f, &both, x, &r))
}

/// x^y as C's `pow`: e^(y·ln|x|) in f64, with the sign of an odd whole y; f64 loses bits where y·ln x is large.
pub fn power(f: &mut Function, x: &Val, y: &Val) -> Result<Val> {
    if x.dtype == DType::F32 {
        let (a, b) = (convert(f, x, DType::F64)?, convert(f, y, DType::F64)?);
        let r = power(f, &a, &b)?;
        return convert(f, &r, DType::F32);
    }
    let (zero, one, half) = (float_constant(f, x, 0.0), float_constant(f, x, 1.0), float_constant(f, x, 0.5));
    let magnitude = call(f, "fabs", &[x]);
    let log = log_f64(f, &magnitude);
    let product = mul(f, y, &log);
    let positive = exp_f64(f, &product);
    let whole = round(f, ScalarOp::Floor, y);
    let is_whole = fcmp(f, "oeq", &whole, y);
    let halved = mul(f, y, &half);
    let half_whole = round(f, ScalarOp::Floor, &halved);
    let uneven = fcmp(f, "une", &half_whole, &halved);
    let odd = arith(f, &is_whole, &uneven, ["", "", "and"]);
    let signed = call(f, "copysign", &[&positive, x]);
    let r = select(f, &odd, &signed, &positive);
    let below = fcmp(f, "olt", x, &zero);
    let broken = fcmp(f, "one", &whole, y);
    let outside = arith(f, &below, &broken, ["", "", "and"]);
    let nan = float_constant(f, x, f64::NAN);
    let r = select(f, &outside, &nan, &r);
    let no_power = fcmp(f, "oeq", y, &zero);
    let unit = fcmp(f, "oeq", x, &one);
    let trivial = arith(f, &no_power, &unit, ["", "", "or"]);
    Ok(select(f, &trivial, &one, &r))
}

/// The angle of (y, x) in f64: the argument is halved twice by tan(a/2) = t/(1+√(1+t²)), then the odd series to t²⁷.
pub fn atan2(f: &mut Function, y: &Val, x: &Val) -> Result<Val> {
    if y.dtype == DType::F32 {
        let (a, b) = (convert(f, y, DType::F64)?, convert(f, x, DType::F64)?);
        let r = atan2(f, &a, &b)?;
        return convert(f, &r, DType::F32);
    }
    let (zero, one) = (float_constant(f, x, 0.0), float_constant(f, x, 1.0));
    let (ay, ax) = (call(f, "fabs", &[y]), call(f, "fabs", &[x]));
    let steep = fcmp(f, "ogt", &ay, &ax);
    let (top, bottom) = (select(f, &steep, &ax, &ay), select(f, &steep, &ay, &ax));
    let ratio = div(f, &top, &bottom);
    // 0/0 counts as 0, inf/inf as 1; NaN stays.
    let equal = fcmp(f, "oeq", &ay, &ax);
    let nothing = fcmp(f, "oeq", &bottom, &zero);
    let unit = select(f, &nothing, &zero, &one);
    let mut t = select(f, &equal, &unit, &ratio);
    for _ in 0..2 {
        let square = fma(f, &t, &t, &one);
        let root = call(f, "sqrt", &[&square]);
        let below = add(f, &one, &root);
        t = div(f, &t, &below);
    }
    let square = mul(f, &t, &t);
    let series: Vec<f64> = (0..14).map(|k| 4.0 * if k % 2 == 0 { 1.0 } else { -1.0 } / f64::from(2 * k + 1)).collect();
    let p = polynomial(f, &square, &series);
    let angle = mul(f, &t, &p);
    let (quarter, half) =
        (float_constant(f, x, std::f64::consts::FRAC_PI_2), float_constant(f, x, std::f64::consts::PI));
    let other = sub(f, &quarter, &angle);
    let angle = select(f, &steep, &other, &angle);
    let sign = call(f, "copysign", &[&one, x]);
    let left = fcmp(f, "olt", &sign, &zero);
    let other = sub(f, &half, &angle);
    let angle = select(f, &left, &other, &angle);
    Ok(call(f, "copysign", &[&angle, y]))
}
