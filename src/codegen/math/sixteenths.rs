//! e^x by a table of the sixteenths of a power of two, where one instruction looks up all lanes: n and r with
//! x = n·ln2/16 + r, so that |r| is so small that three multiply-adds are enough. What rounding took from an entry comes back in
//! r, so that the table costs no precision.
use super::super::arith::{binary_instruction, constant_bits, float_constant, fma, mul, reinterpret, sub};
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use super::table::{ENTRIES, look_up};
use crate::tensor::DType;

/// Position of an f32's exponent bits.
const EXPONENT_BITS: u64 = 23;
/// Constant whose f32 sum with an integer below 2^22 has that integer in its low bits.
pub const WHOLE: f64 = 12_582_912.0;

/// Table entry `j`: 2^(j/16) rounded to f32.
fn entry(j: u64) -> f32 {
    (j as f64 / ENTRIES as f64).exp2() as f32
}

/// Emits the f32 nearest to 2^(n/16), for n from -16·126 to 16·127 + 15; `whole` is n + [`WHOLE`].
fn power(f: &mut FunctionEmitter, whole: &Val) -> Val {
    let word = reinterpret(f, whole, DType::U32);
    // n in the place of the exponent has its last four bits in the mantissa, where the table takes them away
    let shift = EXPONENT_BITS - u64::from(ENTRIES.trailing_zeros());
    let mantissa = look_up(f, &word, &|j| entry(j).to_bits().wrapping_sub((j << shift) as u32));
    let exponent = binary_instruction(f, "shl", &word, &constant_bits(&word, shift));
    let power = binary_instruction(f, "add", &exponent, &mantissa);
    reinterpret(f, &power, DType::F32)
}

/// Emits the rounding error of a table entry, as a term to subtract from r.
fn lost(f: &mut FunctionEmitter, whole: &Val) -> Val {
    let word = reinterpret(f, whole, DType::U32);
    let lost = look_up(f, &word, &|j| {
        let exact = j as f64 / ENTRIES as f64 * std::f64::consts::LN_2;
        ((exact - f64::from(entry(j)).ln()) as f32).to_bits()
    });
    reinterpret(f, &lost, DType::F32)
}

/// Emits 1 + e^-x for x from -87 to 87, as 1 + 2^(n/16)·e^-r with x = -n·ln2/16 + r; `whole` is n + [`WHOLE`], and larger n give infinity.
pub fn one_plus_exp(f: &mut FunctionEmitter, x: &Val, whole: &Val) -> Val {
    let n = sub(f, whole, &float_constant(x, WHOLE));
    let (high, low) = (0.693_145_75 / ENTRIES as f64, 1.428_606_8e-6 / ENTRIES as f64);
    let r = fma(f, &n, &float_constant(x, high), x);
    let r = fma(f, &n, &float_constant(x, low), &r);
    let power = power(f, whole);
    let lost = lost(f, whole);
    let r = sub(f, &r, &lost);
    let e = exp_of_rest(f, &r, -1.0);
    fma(f, &e, &power, &float_constant(x, 1.0))
}

/// Emits e^(`sign`·r) of a reduced argument r.
fn exp_of_rest(f: &mut FunctionEmitter, r: &Val, sign: f64) -> Val {
    let q = fma(f, r, &float_constant(r, sign / 6.0), &float_constant(r, 0.5));
    let q = fma(f, &q, r, &float_constant(r, sign));
    fma(f, &q, r, &float_constant(r, 1.0))
}

/// Emits `times`·e^x for x from -87 to 0, for an x that is itself rounded: table entries have an error of 3e-8, and ln2, which is close to
/// an f32, adds 3e-9 of x.
pub fn exp_of_nonpositive(f: &mut FunctionEmitter, x: &Val, times: &Val) -> Val {
    let per = ENTRIES as f64;
    let whole = fma(f, x, &float_constant(x, per * std::f64::consts::LOG2_E), &float_constant(x, WHOLE));
    let n = sub(f, &whole, &float_constant(x, WHOLE));
    let r = fma(f, &n, &float_constant(x, -std::f64::consts::LN_2 / per), x);
    let e = exp_of_rest(f, &r, 1.0);
    let power = power(f, &whole);
    let y = mul(f, times, &e);
    mul(f, &y, &power)
}
