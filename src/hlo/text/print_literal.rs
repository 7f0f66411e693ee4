//! Text of constants.
use crate::hlo::Literal;
use crate::scalar::small_float;
use crate::tensor::{DType, DTypeClass, Tensor};
use std::fmt::Write;

/// Largest number of elements of a constant that is not elided.
const SMALL_CONSTANT: usize = 10;

pub(super) fn literal(value: &Literal, out: &mut String) {
    match value {
        Literal::Array(t) => array(t, 0, 0, out),
        Literal::Tuple(parts) => {
            out.push('(');
            for (i, part) in parts.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                literal(part, out);
            }
            out.push(')');
        }
        Literal::Token => out.push_str("token"),
    }
}

/// Text of a constant like [`literal`], with `{...}` for large arrays.
pub(super) fn print_elided(value: &Literal, out: &mut String) {
    match value {
        Literal::Array(t) if t.len() > SMALL_CONSTANT => out.push_str("{...}"),
        Literal::Tuple(parts) => {
            out.push('(');
            for (i, part) in parts.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                print_elided(part, out);
            }
            out.push(')');
        }
        Literal::Array(_) | Literal::Token => literal(value, out),
    }
}

/// Writes the elements from `start` on along dimension `axis`.
fn array(t: &Tensor, axis: usize, start: usize, out: &mut String) {
    let Some(&size) = t.dims.get(axis) else {
        element(t, start, out);
        return;
    };
    if t.dims.len() > 64 || (t.is_empty() && axis == 0 && t.dims.len() > 1) {
        out.push_str("{...}");
        return;
    }
    let stride: u64 = t.dims[axis + 1..].iter().product();
    out.push('{');
    for i in 0..size {
        out.push_str(if i > 0 { "," } else { "" });
        array(t, axis + 1, start + (i * stride) as usize, out);
    }
    out.push('}');
}

fn element(t: &Tensor, i: usize, out: &mut String) {
    match t.dtype.class() {
        DTypeClass::Pred => out.push_str(if t.bytes.get(i) == Some(&0) { "0" } else { "1" }),
        DTypeClass::Signed => {
            let _ = write!(out, "{}", t.get_i64(i).unwrap_or(0));
        }
        DTypeClass::Unsigned => {
            let _ = write!(out, "{}", t.get_i64(i).unwrap_or(0) as u64);
        }
        DTypeClass::Float => out.push_str(&float(t.dtype, raw(t, i * t.dtype.bytes(), t.dtype.bytes()))),
        DTypeClass::Complex => {
            let n = t.dtype.bytes() / 2;
            let part = |k: usize| float(t.dtype.real_part(), raw(t, (2 * i + k) * n, n));
            let _ = write!(out, "({}, {})", part(0), part(1));
        }
    }
}

fn raw(t: &Tensor, start: usize, n: usize) -> u64 {
    let mut word = [0u8; 8];
    if let Some(bytes) = t.bytes.get(start..start + n) {
        word[..n].copy_from_slice(bytes);
    }
    u64::from_le_bytes(word)
}

/// Shortest text of a float that parses to the same bits.
fn float(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::F64 => nan_or(f64::from_bits(bits), bits, 52, f64::from_bits(bits).to_string()),
        DType::F32 => {
            let v = f32::from_bits(bits as u32);
            nan_or(f64::from(v), bits, 23, format!("{v:?}"))
        }
        DType::F16 => {
            let v = half::f16::from_bits(bits as u16).to_f64();
            nan_or(v, bits, 10, (v as f32).to_string())
        }
        DType::BF16 => {
            let v = half::bf16::from_bits(bits as u16).to_f64();
            nan_or(v, bits, 7, format!("{:?}", v as f32))
        }
        _ => {
            // A multiplication by -1 need not change the sign of a NaN.
            let v = small_float::decode(dtype, bits as u8);
            let v = if v.is_nan() { f64::NAN.copysign(if bits & 0x80 != 0 { -1.0 } else { 1.0 }) } else { v };
            let mantissa = match dtype {
                DType::F8E5M2 => 2,
                DType::F8E4M3 => 3,
                DType::F8E3M4 => 4,
                _ => 0,
            };
            nan_or(v, bits, mantissa, (v as f32).to_string())
        }
    }
}

fn nan_or(value: f64, bits: u64, mantissa: u32, text: String) -> String {
    if !value.is_nan() {
        return float_text(value, text);
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let payload = bits & ((1 << mantissa) - 1);
    if mantissa == 0 || payload == 1 << (mantissa - 1) {
        format!("{sign}nan")
    } else {
        format!("{sign}nan({payload:#x})")
    }
}

pub(super) fn float_text(value: f64, text: String) -> String {
    if value.is_infinite() { if value > 0.0 { "inf".to_string() } else { "-inf".to_string() } } else { text }
}
