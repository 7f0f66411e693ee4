//! Floats below 32 bits to f32 and back, in integer instructions; f16 by instruction where the processor has it.
//!
//! A value is its bits. Decoding is exact; encoding rounds to nearest even and treats overflow and NaN as
//! [`crate::scalar::small_float`] does.
use super::arith::{bits, call, fcmp, icmp, number, reinterpret, select, two};
use super::function::FunctionEmitter;
use super::portable;
use super::value::{Val, value_type};
use crate::scalar::ScalarOp;
use crate::scalar::small_float::{FloatFormat, Special, format};
use crate::tensor::DType;

/// An f32's mantissa bits.
const MANTISSA: u32 = 23;
/// The bits of an infinite f32.
const INFINITY: u64 = 0x7F80_0000;
/// The bits of a NaN.
const NAN: u64 = 0x7FC0_0000;

impl FloatFormat {
    /// Number of bits without the sign.
    fn width(&self) -> u32 {
        self.exponent_bits + self.mantissa_bits
    }
    /// The largest code without a sign.
    fn all_ones(&self) -> u64 {
        (1 << self.width()) - 1
    }
    /// The code of infinity, if there is one.
    fn infinity(&self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }
}

/// The f32 bits of 2^`exponent`, a normal number.
fn power_of_two(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// The f32 of a small float.
pub fn decode(f: &mut FunctionEmitter, x: &Val) -> Val {
    let Some(form) = format(x.dtype) else { return x.clone() };
    if x.dtype == DType::F16 && f.target.level.has_f16_conversion() {
        let half = half_type(x.lanes);
        let held = f.ins(&format!("bitcast {} {} to {half}", x.ty(), x.text), DType::F16, x.lanes);
        let wide = value_type(DType::F32, x.lanes);
        return f.ins(&format!("fpext {half} {} to {wide}", held.text), DType::F32, x.lanes);
    }
    let word =
        f.ins(&format!("zext {} {} to {}", x.ty(), x.text, value_type(DType::U32, x.lanes)), DType::U32, x.lanes);
    if x.dtype == DType::BF16 {
        let moved = two(f, "shl", &word, &bits(&word, 16));
        return reinterpret(f, &moved, DType::F32);
    }
    let magnitude = two(f, "and", &word, &bits(&word, form.all_ones()));
    let shift = MANTISSA - form.mantissa_bits;
    let placed = two(f, "shl", &magnitude, &bits(&word, u64::from(shift)));
    let rebias = ((127 - form.bias) as u64) << MANTISSA;
    let normal = two(f, "add", &placed, &bits(&word, rebias));
    let mut out = if form.signed {
        // A subnormal code is a whole number of the smallest steps.
        let count = super::convert::convert(f, &magnitude, DType::F32);
        let step = number(&count, power_of_two(1 - form.bias - form.mantissa_bits as i32));
        let small = two(f, "fmul", &count, &step);
        let small = reinterpret(f, &small, DType::U32);
        let below = icmp(f, "ult", &magnitude, &bits(&word, 1 << form.mantissa_bits));
        select(f, &below, &small, &normal)
    } else {
        // f8e8m0fnu: code 0 is 2^-127, which is subnormal in f32.
        let zero = icmp(f, "eq", &magnitude, &bits(&word, 0));
        select(f, &zero, &bits(&word, 0x0040_0000), &normal)
    };
    if form.signed {
        let sign = two(f, "lshr", &word, &bits(&word, u64::from(form.width())));
        let sign = two(f, "shl", &sign, &bits(&word, 31));
        out = two(f, "or", &out, &sign);
    }
    let nan = bits(&word, NAN);
    out = match form.special {
        Special::Ieee => {
            let special = icmp(f, "uge", &magnitude, &bits(&word, form.infinity()));
            let filled = two(f, "or", &out, &bits(&word, INFINITY));
            select(f, &special, &filled, &out)
        }
        Special::AllOnes => {
            let special = icmp(f, "eq", &magnitude, &bits(&word, form.all_ones()));
            select(f, &special, &nan, &out)
        }
        Special::NegativeZero => {
            let special = icmp(f, "eq", &word, &bits(&word, 1 << form.width()));
            select(f, &special, &nan, &out)
        }
        Special::None => out,
    };
    reinterpret(f, &out, DType::F32)
}

/// The small float nearest to an f32.
pub fn encode(f: &mut FunctionEmitter, x: &Val, to: DType) -> Val {
    let Some(form) = format(to) else { return x.clone() };
    let x = &portable::with_one_nan(f, x);
    if to == DType::F16 && f.target.level.has_f16_conversion() {
        let half = half_type(x.lanes);
        let held = f.ins(&format!("fptrunc {} {} to {half}", x.ty(), x.text), to, x.lanes);
        return f.ins(&format!("bitcast {half} {} to {}", held.text, value_type(to, x.lanes)), to, x.lanes);
    }
    let word = reinterpret(f, x, DType::U32);
    let magnitude = two(f, "and", &word, &bits(&word, 0x7FFF_FFFF));
    let rounded = round_mantissa(f, &magnitude, form);
    let mut code = if to == DType::BF16 { rounded } else { subnormal(f, x, &magnitude, &rounded, form) };
    let not_number = icmp(f, "ugt", &magnitude, &bits(&word, INFINITY));
    let ones = form.all_ones();
    let nan = match form.special {
        Special::Ieee => {
            code = least(f, &code, form.infinity());
            form.infinity() | 1 << (form.mantissa_bits - 1)
        }
        Special::AllOnes => {
            code = least(f, &code, ones);
            ones
        }
        Special::NegativeZero => {
            let over = icmp(f, "ugt", &code, &bits(&word, ones));
            code = select(f, &over, &bits(&word, 1 << form.width()), &code);
            1 << form.width()
        }
        Special::None => {
            code = least(f, &code, ones);
            0
        }
    };
    code = select(f, &not_number, &bits(&word, nan), &code);
    code = signed(f, x, &word, &code, form);
    if form.special == Special::None {
        // What has no NaN has 0 for it, of no sign.
        code = select(f, &not_number, &bits(&word, 0), &code);
    }
    f.ins(&format!("trunc {} {} to {}", code.ty(), code.text, value_type(to, x.lanes)), to, x.lanes)
}

/// `negate` or `abs` by the sign bit, which keeps the payload of a NaN.
pub fn sign_bit(f: &mut FunctionEmitter, op: ScalarOp, x: &Val) -> Val {
    let sign = 1 << (x.dtype.bits() - 1);
    if op == ScalarOp::Negate { two(f, "xor", x, &bits(x, sign)) } else { two(f, "and", x, &bits(x, sign - 1)) }
}

fn half_type(lanes: u64) -> String {
    if lanes == 1 { "half".to_string() } else { format!("<{lanes} x half>") }
}

fn least(f: &mut FunctionEmitter, code: &Val, most: u64) -> Val {
    call(f, "umin", &[code, &bits(code, most)])
}

/// The magnitude's exponent and mantissa in the small format, as if no exponent were too small or large.
fn round_mantissa(f: &mut FunctionEmitter, magnitude: &Val, form: FloatFormat) -> Val {
    let shift = u64::from(MANTISSA - form.mantissa_bits);
    let last = two(f, "lshr", magnitude, &bits(magnitude, shift));
    let last = two(f, "and", &last, &bits(magnitude, 1));
    let up = two(f, "add", &last, &bits(magnitude, (1 << (shift - 1)) - 1));
    let sum = two(f, "add", magnitude, &up);
    let moved = two(f, "lshr", &sum, &bits(magnitude, shift));
    two(f, "sub", &moved, &bits(magnitude, ((127 - form.bias) as u64) << form.mantissa_bits))
}

/// `rounded`, but below the smallest normal number the count of smallest steps: adding a number whose last bit is one
/// such step rounds to whole steps.
fn subnormal(f: &mut FunctionEmitter, x: &Val, magnitude: &Val, rounded: &Val, form: FloatFormat) -> Val {
    if !form.signed {
        // f8e8m0fnu: halfway between 2^-127 and 2^-126 goes to the even code 0, as does everything below.
        let tiny = icmp(f, "ule", magnitude, &bits(magnitude, 0x0060_0000));
        return select(f, &tiny, &bits(magnitude, 0), rounded);
    }
    let magic = number(x, power_of_two(24 - form.bias - form.mantissa_bits as i32));
    let size = call(f, "fabs", &[x]);
    let sum = two(f, "fadd", &size, &magic);
    let (sum, base) = (reinterpret(f, &sum, DType::U32), reinterpret(f, &magic, DType::U32));
    let steps = two(f, "sub", &sum, &base);
    let smallest = bits(magnitude, ((128 - form.bias) as u64) << MANTISSA);
    let below = icmp(f, "ult", magnitude, &smallest);
    select(f, &below, &steps, rounded)
}

/// Bits of the small float: its magnitude with the sign bit of the input.
fn signed(f: &mut FunctionEmitter, x: &Val, word: &Val, code: &Val, form: FloatFormat) -> Val {
    if !form.signed {
        let negative = fcmp(f, "olt", x, &number(x, 0.0));
        return select(f, &negative, &bits(word, form.all_ones()), code);
    }
    let sign = two(f, "lshr", word, &bits(word, 31));
    let sign = two(f, "shl", &sign, &bits(word, u64::from(form.width())));
    let whole = two(f, "or", code, &sign);
    if form.special != Special::NegativeZero {
        return whole;
    }
    let nothing = icmp(f, "eq", code, &bits(word, 0));
    select(f, &nothing, code, &whole)
}
