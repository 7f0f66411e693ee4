//! e^x by a table of the sixteenths of a power of two, where one instruction looks up all lanes: n and r with
//! x = n·ln2/16 + r, so that |r| is so small that three multiply-adds are enough. What rounding took from an entry comes back in
//! r, so that the table costs no precision.
use super::super::arith::{bits, fma, mul, number, reinterpret, sub, two};
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use super::table::{ENTRIES, look_up};
use crate::tensor::DType;

/// Where the number of an entry ends and the exponent of an f32 begins.
const EXPONENT_BITS: u64 = 23;
/// A whole number below 2^22 plus this has the same low bits as the f32.
pub const WHOLE: f64 = 12_582_912.0;

/// 2^(j/16) as an f32.
fn entry(j: u64) -> f32 {
    (j as f64 / ENTRIES as f64).exp2() as f32
}

/// The f32 next to 2^(n/16), n from -16·126 to 16·127 + 15, which comes with [`WHOLE`] added.
fn power(f: &mut FunctionEmitter, whole: &Val) -> Val {
    let word = reinterpret(f, whole, DType::U32);
    // n in the place of the exponent has its last four bits in the mantissa, where the table takes them away
    let shift = EXPONENT_BITS - u64::from(ENTRIES.trailing_zeros());
    let mantissa = look_up(f, &word, &|j| entry(j).to_bits().wrapping_sub((j << shift) as u32));
    let exponent = two(f, "shl", &word, &bits(&word, shift));
    let power = two(f, "add", &exponent, &mantissa);
    reinterpret(f, &power, DType::F32)
}

/// The rounding error of a table entry, as a term to subtract from r.
fn lost(f: &mut FunctionEmitter, whole: &Val) -> Val {
    let word = reinterpret(f, whole, DType::U32);
    let lost = look_up(f, &word, &|j| {
        let exact = j as f64 / ENTRIES as f64 * std::f64::consts::LN_2;
        ((exact - f64::from(entry(j)).ln()) as f32).to_bits()
    });
    reinterpret(f, &lost, DType::F32)
}

/// 1 + 2^(n/16)·e^-r for x = -n·ln2/16 + r of an x from -87 to 87, n with [`WHOLE`] added; larger n give infinity.
pub fn one_and_exp(f: &mut FunctionEmitter, x: &Val, whole: &Val) -> Val {
    let n = sub(f, whole, &number(x, WHOLE));
    let (high, low) = (0.693_145_75 / ENTRIES as f64, 1.428_606_8e-6 / ENTRIES as f64);
    let r = fma(f, &n, &number(x, high), x);
    let r = fma(f, &n, &number(x, low), &r);
    let power = power(f, whole);
    let lost = lost(f, whole);
    let r = sub(f, &r, &lost);
    let e = exp_of_rest(f, &r, -1.0);
    fma(f, &e, &power, &number(x, 1.0))
}

/// e^(`sign`·r) of a rest.
fn exp_of_rest(f: &mut FunctionEmitter, r: &Val, sign: f64) -> Val {
    let q = fma(f, r, &number(r, sign / 6.0), &number(r, 0.5));
    let q = fma(f, &q, r, &number(r, sign));
    fma(f, &q, r, &number(r, 1.0))
}

/// `times`·e^x of an x from -87 to 0 that was rounded itself: an entry of the table is 3e-8 off, and ln2, which is next to an f32,
/// 3e-9 of x.
pub fn exp_of_nonpositive(f: &mut FunctionEmitter, x: &Val, times: &Val) -> Val {
    let per = ENTRIES as f64;
    let whole = fma(f, x, &number(x, per * std::f64::consts::LOG2_E), &number(x, WHOLE));
    let n = sub(f, &whole, &number(x, WHOLE));
    let r = fma(f, &n, &number(x, -std::f64::consts::LN_2 / per), x);
    let e = exp_of_rest(f, &r, 1.0);
    let power = power(f, &whole);
    let y = mul(f, times, &e);
    mul(f, &y, &power)
}
