//! Floats below 32 bits to f32 and back, in integer instructions; f16 by instruction where the processor has it.
//!
//! A value is its bits. Decoding is exact; encoding rounds to nearest even and treats overflow and NaN as
//! [`crate::scalar::small_float`] does.
use super::arith::{
    binary_instruction, call_intrinsic, constant_bits, fcmp, float_constant, icmp, reinterpret, select,
};
use super::function::FunctionEmitter;
use super::portable;
use super::value::{Val, value_type};
use crate::scalar::ScalarOp;
use crate::scalar::small_float::{FloatFormat, Special, format};
use crate::tensor::DType;

/// Number of mantissa bits of f32.
const MANTISSA: u32 = 23;
/// The bits of an infinite f32.
const INFINITY: u64 = 0x7F80_0000;
/// The bits of an f32 NaN.
const NAN: u64 = 0x7FC0_0000;

impl FloatFormat {
    /// Number of bits of the small float format without the sign.
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

/// Emits the conversion of a small float (fewer than 32 bits) to f32.
pub fn decode(f: &mut FunctionEmitter, x: &Val) -> Val {
    let Some(form) = format(x.dtype) else { return x.clone() };
    if x.dtype == DType::F16 && f.target.level.has_f16_conversion() {
        let half = half_type(x.lanes);
        let held = f.push_instruction(&format!("bitcast {} {} to {half}", x.ty(), x.text), DType::F16, x.lanes);
        let wide = value_type(DType::F32, x.lanes);
        return f.push_instruction(&format!("fpext {half} {} to {wide}", held.text), DType::F32, x.lanes);
    }
    let word = f.push_instruction(
        &format!("zext {} {} to {}", x.ty(), x.text, value_type(DType::U32, x.lanes)),
        DType::U32,
        x.lanes,
    );
    if x.dtype == DType::BF16 {
        let moved = binary_instruction(f, "shl", &word, &constant_bits(&word, 16));
        return reinterpret(f, &moved, DType::F32);
    }
    let magnitude = binary_instruction(f, "and", &word, &constant_bits(&word, form.all_ones()));
    let shift = MANTISSA - form.mantissa_bits;
    let placed = binary_instruction(f, "shl", &magnitude, &constant_bits(&word, u64::from(shift)));
    let rebias = ((127 - form.bias) as u64) << MANTISSA;
    let normal = binary_instruction(f, "add", &placed, &constant_bits(&word, rebias));
    let mut out = if form.signed {
        // A subnormal code is a whole number of the smallest steps.
        let count = super::convert::convert(f, &magnitude, DType::F32);
        let step = float_constant(&count, power_of_two(1 - form.bias - form.mantissa_bits as i32));
        let small = binary_instruction(f, "fmul", &count, &step);
        let small = reinterpret(f, &small, DType::U32);
        let below = icmp(f, "ult", &magnitude, &constant_bits(&word, 1 << form.mantissa_bits));
        select(f, &below, &small, &normal)
    } else {
        // f8e8m0fnu: code 0 is 2^-127, which is subnormal in f32.
        let zero = icmp(f, "eq", &magnitude, &constant_bits(&word, 0));
        select(f, &zero, &constant_bits(&word, 0x0040_0000), &normal)
    };
    if form.signed {
        let sign = binary_instruction(f, "lshr", &word, &constant_bits(&word, u64::from(form.width())));
        let sign = binary_instruction(f, "shl", &sign, &constant_bits(&word, 31));
        out = binary_instruction(f, "or", &out, &sign);
    }
    let nan = constant_bits(&word, NAN);
    out = match form.special {
        Special::Ieee => {
            let special = icmp(f, "uge", &magnitude, &constant_bits(&word, form.infinity()));
            let filled = binary_instruction(f, "or", &out, &constant_bits(&word, INFINITY));
            select(f, &special, &filled, &out)
        }
        Special::AllOnes => {
            let special = icmp(f, "eq", &magnitude, &constant_bits(&word, form.all_ones()));
            select(f, &special, &nan, &out)
        }
        Special::NegativeZero => {
            let special = icmp(f, "eq", &word, &constant_bits(&word, 1 << form.width()));
            select(f, &special, &nan, &out)
        }
        Special::None => out,
    };
    reinterpret(f, &out, DType::F32)
}

/// Emits the rounding of an f32 to the nearest small float.
pub fn encode(f: &mut FunctionEmitter, x: &Val, to: DType) -> Val {
    let Some(form) = format(to) else { return x.clone() };
    let x = &portable::canonicalize_nan(f, x);
    if to == DType::F16 && f.target.level.has_f16_conversion() {
        let half = half_type(x.lanes);
        let held = f.push_instruction(&format!("fptrunc {} {} to {half}", x.ty(), x.text), to, x.lanes);
        return f.push_instruction(
            &format!("bitcast {half} {} to {}", held.text, value_type(to, x.lanes)),
            to,
            x.lanes,
        );
    }
    let word = reinterpret(f, x, DType::U32);
    let magnitude = binary_instruction(f, "and", &word, &constant_bits(&word, 0x7FFF_FFFF));
    let rounded = round_mantissa(f, &magnitude, form);
    let mut code = if to == DType::BF16 { rounded } else { subnormal(f, x, &magnitude, &rounded, form) };
    let not_number = icmp(f, "ugt", &magnitude, &constant_bits(&word, INFINITY));
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
            let over = icmp(f, "ugt", &code, &constant_bits(&word, ones));
            code = select(f, &over, &constant_bits(&word, 1 << form.width()), &code);
            1 << form.width()
        }
        Special::None => {
            code = least(f, &code, ones);
            0
        }
    };
    code = select(f, &not_number, &constant_bits(&word, nan), &code);
    code = signed(f, x, &word, &code, form);
    if form.special == Special::None {
        // What has no NaN has 0 for it, of no sign.
        code = select(f, &not_number, &constant_bits(&word, 0), &code);
    }
    f.push_instruction(&format!("trunc {} {} to {}", code.ty(), code.text, value_type(to, x.lanes)), to, x.lanes)
}

/// Emits `negate` or `abs` on the sign bit, which keeps the payload of NaNs.
pub fn apply_to_sign_bit(f: &mut FunctionEmitter, op: ScalarOp, x: &Val) -> Val {
    let sign = 1 << (x.dtype.bits() - 1);
    if op == ScalarOp::Negate {
        binary_instruction(f, "xor", x, &constant_bits(x, sign))
    } else {
        binary_instruction(f, "and", x, &constant_bits(x, sign - 1))
    }
}

fn half_type(lanes: u64) -> String {
    if lanes == 1 { "half".to_string() } else { format!("<{lanes} x half>") }
}

fn least(f: &mut FunctionEmitter, code: &Val, most: u64) -> Val {
    call_intrinsic(f, "umin", &[code, &constant_bits(code, most)])
}

/// Emits the rounding of a magnitude to the small format's mantissa, with an unbounded exponent.
fn round_mantissa(f: &mut FunctionEmitter, magnitude: &Val, form: FloatFormat) -> Val {
    let shift = u64::from(MANTISSA - form.mantissa_bits);
    let last = binary_instruction(f, "lshr", magnitude, &constant_bits(magnitude, shift));
    let last = binary_instruction(f, "and", &last, &constant_bits(magnitude, 1));
    let up = binary_instruction(f, "add", &last, &constant_bits(magnitude, (1 << (shift - 1)) - 1));
    let sum = binary_instruction(f, "add", magnitude, &up);
    let moved = binary_instruction(f, "lshr", &sum, &constant_bits(magnitude, shift));
    binary_instruction(f, "sub", &moved, &constant_bits(magnitude, ((127 - form.bias) as u64) << form.mantissa_bits))
}

/// `rounded`, but below the smallest normal number the count of smallest steps: adding a number whose last bit is one
/// such step rounds to whole steps.
fn subnormal(f: &mut FunctionEmitter, x: &Val, magnitude: &Val, rounded: &Val, form: FloatFormat) -> Val {
    if !form.signed {
        // f8e8m0fnu: halfway between 2^-127 and 2^-126 goes to the even code 0, as does everything below.
        let tiny = icmp(f, "ule", magnitude, &constant_bits(magnitude, 0x0060_0000));
        return select(f, &tiny, &constant_bits(magnitude, 0), rounded);
    }
    let magic = float_constant(x, power_of_two(24 - form.bias - form.mantissa_bits as i32));
    let size = call_intrinsic(f, "fabs", &[x]);
    let sum = binary_instruction(f, "fadd", &size, &magic);
    let (sum, base) = (reinterpret(f, &sum, DType::U32), reinterpret(f, &magic, DType::U32));
    let steps = binary_instruction(f, "sub", &sum, &base);
    let smallest = constant_bits(magnitude, ((128 - form.bias) as u64) << MANTISSA);
    let below = icmp(f, "ult", magnitude, &smallest);
    select(f, &below, &steps, rounded)
}

/// Emits the bits of the small float: its magnitude with the sign of the input.
fn signed(f: &mut FunctionEmitter, x: &Val, word: &Val, code: &Val, form: FloatFormat) -> Val {
    if !form.signed {
        let negative = fcmp(f, "olt", x, &float_constant(x, 0.0));
        return select(f, &negative, &constant_bits(word, form.all_ones()), code);
    }
    let sign = binary_instruction(f, "lshr", word, &constant_bits(word, 31));
    let sign = binary_instruction(f, "shl", &sign, &constant_bits(word, u64::from(form.width())));
    let whole = binary_instruction(f, "or", code, &sign);
    if form.special != Special::NegativeZero {
        return whole;
    }
    let nothing = icmp(f, "eq", code, &constant_bits(word, 0));
    select(f, &nothing, code, &whole)
}
