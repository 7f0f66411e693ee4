//! Text of constants in MLIR's syntax.
use crate::scalar::small_float;
use crate::tensor::{DType, DTypeClass, Tensor};
use std::fmt::Write;

/// Largest number of elements written as numbers; larger constants are written as bytes.
const MOST_WRITTEN: usize = 16;

/// Text between `dense<` and `>`.
pub(in crate::hlo::stablehlo) fn dense(t: &Tensor) -> String {
    if t.is_empty() {
        return String::new();
    }
    let all_same = t.len() > 1 && {
        let first = &t.bytes[..t.dtype.bytes()];
        t.bytes.chunks(t.dtype.bytes()).all(|element| element == first)
    };
    if all_same {
        return element(t, 0);
    }
    // Elements of less than a byte are bits in MLIR's raw bytes.
    if t.len() > MOST_WRITTEN && t.dtype.bits() >= 8 && t.dtype != DType::Pred {
        let mut text = String::with_capacity(2 * t.bytes.len() + 4);
        text.push_str("\"0x");
        for byte in t.bytes.iter() {
            let _ = write!(text, "{byte:02X}");
        }
        text.push('"');
        return text;
    }
    let mut text = String::new();
    nested(t, 0, 0, &mut text);
    text
}

/// Writes the elements from `start` on along dimension `axis`.
fn nested(t: &Tensor, axis: usize, start: usize, out: &mut String) {
    let Some(&size) = t.dims.get(axis) else {
        out.push_str(&element(t, start));
        return;
    };
    let stride: u64 = t.dims[axis + 1..].iter().product();
    out.push('[');
    for i in 0..size {
        out.push_str(if i > 0 { ", " } else { "" });
        nested(t, axis + 1, start + (i * stride) as usize, out);
    }
    out.push(']');
}

fn element(t: &Tensor, i: usize) -> String {
    let n = t.dtype.bytes();
    match t.dtype.class() {
        DTypeClass::Pred => (t.bytes.get(i) != Some(&0)).to_string(),
        DTypeClass::Signed => t.get_i64(i).unwrap_or(0).to_string(),
        DTypeClass::Unsigned => (t.get_i64(i).unwrap_or(0) as u64).to_string(),
        DTypeClass::Float => float(t.dtype, bits(t, i * n, n)),
        DTypeClass::Complex => {
            let part = |k: usize| float(t.dtype.real_part(), bits(t, i * n + k * n / 2, n / 2));
            format!("({}, {})", part(0), part(1))
        }
    }
}

fn bits(t: &Tensor, start: usize, n: usize) -> u64 {
    let mut word = [0u8; 8];
    if let Some(bytes) = t.bytes.get(start..start + n) {
        word[..n].copy_from_slice(bytes);
    }
    u64::from_le_bytes(word)
}

/// Shortest text of a float that parses to the same bits; the bits themselves for infinities and NaN.
fn float(dtype: DType, bits: u64) -> String {
    let (value, text) = match dtype {
        DType::F64 => (f64::from_bits(bits), format!("{:?}", f64::from_bits(bits))),
        DType::F32 => (f64::from(f32::from_bits(bits as u32)), format!("{:?}", f32::from_bits(bits as u32))),
        DType::F16 => with_text(half::f16::from_bits(bits as u16).to_f64()),
        DType::BF16 => with_text(half::bf16::from_bits(bits as u16).to_f64()),
        _ => with_text(small_float::decode(dtype, bits as u8)),
    };
    if !value.is_finite() {
        return format!("0x{bits:0width$X}", width = 2 * dtype.bytes());
    }
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => text,
    }
}

fn with_text(value: f64) -> (f64, String) {
    (value, format!("{value:?}"))
}
