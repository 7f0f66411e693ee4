//! `convert`: every type to every type.
use super::arith::{
    binary_instruction, call_intrinsic, constant_bits, fcmp, float_constant, icmp, intrinsic_suffix, reinterpret,
    select,
};
use super::function::FunctionEmitter;
use super::small_float;
use super::value::{Val, value_type};
use crate::target::IsaLevel;
use crate::tensor::{DType, DTypeClass};

/// Emits the conversion of a value to another type, with the semantics of [`crate::scalar::ScalarOp::Convert`].
pub fn convert(f: &mut FunctionEmitter, x: &Val, to: DType) -> Val {
    if x.dtype == to {
        return x.clone();
    }
    if to.is_complex() {
        let part = to.real_part();
        let (re, im) = if x.dtype.is_complex() {
            let (re, im) = f.complex_parts(x);
            (convert(f, &re, part), convert(f, &im, part))
        } else {
            let re = convert(f, x, part);
            let im = float_constant(&re, 0.0);
            (re, im)
        };
        return f.make_complex(&re, &im);
    }
    if x.dtype.is_complex() {
        let (re, im) = f.complex_parts(x);
        if to == DType::Pred {
            let (re, im) = (convert(f, &re, to), convert(f, &im, to));
            return binary_instruction(f, "or", &re, &im);
        }
        return convert(f, &re, to);
    }
    if x.dtype.compute_type() != x.dtype {
        let wide = small_float::decode(f, x);
        return convert(f, &wide, to);
    }
    if to.compute_type() != to {
        let exact = exact_enough(f, x);
        return small_float::encode(f, &exact, to);
    }
    convert_native(f, x, to)
}

/// Converts `x` to an f32 that rounds to any narrower float type as `x` does: an f64 is rounded to odd, which keeps ties distinct.
fn exact_enough(f: &mut FunctionEmitter, x: &Val) -> Val {
    let narrow = matches!(x.dtype.class(), DTypeClass::Pred) || x.dtype.is_integer() && x.dtype.bits() <= 16;
    if x.dtype == DType::F32 || narrow {
        return convert(f, x, DType::F32);
    }
    let wide = convert(f, x, DType::F64);
    let near = convert(f, &wide, DType::F32);
    let back = convert(f, &near, DType::F64);
    let (wide_size, back_size) = (call_intrinsic(f, "fabs", &[&wide]), call_intrinsic(f, "fabs", &[&back]));
    let over = fcmp(f, "ogt", &back_size, &wide_size);
    let inexact = fcmp(f, "one", &back, &wide);
    let word = reinterpret(f, &near, DType::U32);
    let over = convert(f, &over, DType::U32);
    let truncated = binary_instruction(f, "sub", &word, &over);
    let odd = convert(f, &inexact, DType::U32);
    let odd = binary_instruction(f, "or", &truncated, &odd);
    reinterpret(f, &odd, DType::F32)
}

/// Emits the conversion of f32 to integers of at most 16 bits: clamps floats to their range, so that an instruction converts them.
fn convert_clamped(f: &mut FunctionEmitter, x: &Val, to: DType) -> Val {
    let bits = to.bits();
    let (least, most) = match to.is_signed() {
        true => (-(2f64.powi(bits as i32 - 1)), 2f64.powi(bits as i32 - 1) - 1.0),
        false => (0.0, 2f64.powi(bits as i32) - 1.0),
    };
    let (least, most) = (float_constant(x, least), float_constant(x, most));
    // a NaN is not above, and becomes the smallest number
    let is_above = fcmp(f, "ogt", x, &least);
    let mut clamped = select(f, &is_above, x, &least);
    if to == DType::U8 && x.lanes == 16 && f.target.level == IsaLevel::Avx512 {
        // what is beyond 32 bits becomes 2^31, and an instruction saturates numbers without a sign
        let ty = value_type(DType::S32, x.lanes);
        let text = format!(
            "call {ty} @llvm.x86.avx512.mask.cvttps2dq.512({} {}, {ty} zeroinitializer, i16 -1, i32 4)",
            x.ty(),
            clamped.text
        );
        let whole = f.push_instruction(&text, DType::U32, x.lanes);
        let largest = constant_bits(&whole, 255);
        let saturated = call_intrinsic(f, "umin", &[&whole, &largest]);
        return convert(f, &saturated, to);
    }
    let is_below = fcmp(f, "olt", &clamped, &most);
    clamped = select(f, &is_below, &clamped, &most);
    if to.is_signed() {
        let is_nan = fcmp(f, "uno", x, x);
        clamped = select(f, &is_nan, &float_constant(x, 0.0), &clamped);
    }
    let text = format!("fptosi {} {} to {}", x.ty(), clamped.text, value_type(DType::S32, x.lanes));
    let whole = f.push_instruction(&text, DType::S32, x.lanes);
    convert(f, &whole, to)
}

/// Emits the conversion of f32 to signed integers of 32 bits: clamps floats to the numbers from -2^31 to the largest f32 below 2^31, so that an
/// instruction converts them, and selects 2^31 - 1 for those above.
fn convert_clamped_to_s32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let (least, most) = (-(2f64.powi(31)), 2f64.powi(31));
    let (least, largest) = (float_constant(x, least), float_constant(x, most - 128.0));
    // a NaN is not above, and becomes the smallest number
    let is_above = fcmp(f, "ogt", x, &least);
    let clamped = select(f, &is_above, x, &least);
    let is_below = fcmp(f, "olt", &clamped, &largest);
    let clamped = select(f, &is_below, &clamped, &largest);
    let is_nan = fcmp(f, "uno", x, x);
    let clamped = select(f, &is_nan, &float_constant(x, 0.0), &clamped);
    let text = format!("fptosi {} {} to {}", x.ty(), clamped.text, value_type(DType::S32, x.lanes));
    let whole = f.push_instruction(&text, DType::S32, x.lanes);
    let is_beyond = fcmp(f, "oge", x, &float_constant(x, most));
    select(f, &is_beyond, &constant_bits(&whole, i32::MAX as u64), &whole)
}

/// Emits conversions among booleans, integers, f32 and f64.
fn convert_native(f: &mut FunctionEmitter, x: &Val, to: DType) -> Val {
    let (a, b) = (x.ty(), value_type(to, x.lanes));
    let text = match (x.dtype.class(), to.class()) {
        (DTypeClass::Float, DTypeClass::Pred) => return fcmp(f, "une", x, &float_constant(x, 0.0)),
        (_, DTypeClass::Pred) => return icmp(f, "ne", x, &constant_bits(x, 0)),
        (DTypeClass::Float, DTypeClass::Float) => {
            format!("{} {a} {} to {b}", if to == DType::F64 { "fpext" } else { "fptrunc" }, x.text)
        }
        // LLVM 22 makes no end of taking vectors of `i1` apart for RISC-V's vectors
        (DTypeClass::Float, _) if to.bits() == 1 => {
            let (wide, least, most) = if to.is_signed() { (DType::S8, -1i64, 0) } else { (DType::U8, 0, 1) };
            let whole = convert_native(f, x, wide);
            let (least, most) = (constant_bits(&whole, least as u64 & 0xff), constant_bits(&whole, most));
            let sign = if to.is_signed() { "s" } else { "u" };
            let above = call_intrinsic(f, &format!("{sign}max"), &[&whole, &least]);
            let held = call_intrinsic(f, &format!("{sign}min"), &[&above, &most]);
            return convert(f, &held, to);
        }
        // LLVM 22 saturates vectors element by element for x86
        (DTypeClass::Float, _) if x.lanes > 1 && to.bits() <= 16 && x.dtype == DType::F32 => {
            return convert_clamped(f, x, to);
        }
        (DTypeClass::Float, DTypeClass::Signed)
            if x.lanes > 1
                && to == DType::S32
                && x.dtype == DType::F32
                && matches!(f.target.level, IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Avx512) =>
        {
            return convert_clamped_to_s32(f, x);
        }
        (DTypeClass::Float, class) => {
            let kind = if class == DTypeClass::Signed { "s" } else { "u" };
            let like = Val { dtype: to, ..x.clone() };
            format!(
                "call {b} @llvm.fpto{kind}i.sat.{}.{}({a} {})",
                intrinsic_suffix(&like),
                intrinsic_suffix(x),
                x.text
            )
        }
        (DTypeClass::Signed, DTypeClass::Float) => format!("sitofp {a} {} to {b}", x.text),
        (_, DTypeClass::Float) => format!("uitofp {a} {} to {b}", x.text),
        (from, _) => {
            let width = if x.dtype == DType::Pred { 1 } else { x.dtype.bits() };
            match to.bits().cmp(&width) {
                std::cmp::Ordering::Equal => return Val { dtype: to, ..x.clone() },
                std::cmp::Ordering::Less => format!("trunc {a} {} to {b}", x.text),
                std::cmp::Ordering::Greater if from == DTypeClass::Signed => format!("sext {a} {} to {b}", x.text),
                std::cmp::Ordering::Greater => format!("zext {a} {} to {b}", x.text),
            }
        }
    };
    f.push_instruction(&text, to, x.lanes)
}
