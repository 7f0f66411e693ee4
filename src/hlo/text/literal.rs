//! Parser of constants: `3.5`, `{{1,2},{3,4}}`, `{...}`, `(1, {2,3})`, `(re, im)`, `nan(0x7f)`.
//!
//! Elements are in row-major order whatever the layout; commas between them are optional.
use super::lexer::TokenKind;
use super::parser::Parser;
use crate::diag::{Code, Result};
use crate::hlo::{ArrayShape, Literal, Shape};
use crate::scalar::small_float;
use crate::tensor::{DType, DTypeClass, Tensor};

/// Upper limit in bytes of an elided constant.
pub(in crate::hlo) const ELIDED_LIMIT: u64 = 1 << 28;
const DEPTH: usize = 128;

impl<'a> Parser<'a> {
    /// Parses a literal of `shape`.
    pub(super) fn literal(&mut self, shape: &Shape) -> Result<Literal> {
        match shape {
            Shape::Array(a) => Ok(Literal::Array(self.dense(a)?)),
            Shape::Tuple(parts) => {
                self.enter(DEPTH)?;
                self.expect(b'(', "expects '(' in front of tuple elements")?;
                let mut values = Vec::new();
                for (i, part) in parts.iter().enumerate() {
                    if i > 0 {
                        self.expect(b',', "expects ',' to separate tuple elements")?;
                    }
                    values.push(self.literal(part)?);
                }
                self.expect(b')', "expects ')' at the end of the tuple")?;
                self.leave();
                Ok(Literal::Tuple(values))
            }
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => self.fail(format!("a constant can't be {shape}")),
        }
    }

    fn dense(&mut self, shape: &ArrayShape) -> Result<Tensor> {
        let rank = shape.rank();
        let width = shape.dtype.bytes();
        let count = crate::tensor::element_count(&shape.dims).and_then(|n| n.checked_mul(width as u64));
        let Some(size) = count else { return self.fail("the constant is too large") };
        let (mut bytes, mut depth) = (Vec::new(), 0usize);
        let mut seen = vec![0u64; rank];
        loop {
            match self.tok.kind {
                TokenKind::Punct(b'{') => {
                    depth += 1;
                    if depth > rank {
                        return self.fail(format!("expects nested array in rank {rank}, but sees larger"));
                    }
                    if depth > 1 {
                        seen[depth - 2] += 1;
                        if seen[depth - 2] > shape.dims[depth - 2] {
                            return self.fail(format!("expects {} elements, but sees more", shape.dims[depth - 2]));
                        }
                    }
                    self.advance();
                }
                TokenKind::Punct(b'}') => {
                    if depth == 0 {
                        return self.fail("unexpected '}' token");
                    }
                    depth -= 1;
                    if seen[depth] != shape.dims[depth] {
                        return self.fail(format!("expects {} elements, but sees {}", shape.dims[depth], seen[depth]));
                    }
                    seen[depth] = 0;
                    self.advance();
                }
                TokenKind::Punct(b',') => self.advance(),
                TokenKind::Dots => {
                    if depth != 1 {
                        return self.fail("expects `...` at nest level 1");
                    }
                    if size > ELIDED_LIMIT {
                        return self.fail_as(Code::TooLarge, format!("an elided constant of {size} bytes"));
                    }
                    seen[0] = shape.dims[0];
                    bytes = elided_elements(shape.dtype, size / width as u64);
                    self.advance();
                }
                _ => {
                    if depth == 0 && rank > 0 {
                        bytes = self.first_element(shape.dtype, size)?;
                        break;
                    }
                    if depth != rank {
                        return match self.tok.kind {
                            TokenKind::Int
                            | TokenKind::Decimal
                            | TokenKind::Special
                            | TokenKind::Keyword
                            | TokenKind::Punct(b'(') => {
                                self.fail(format!("expects nested array in rank {rank}, but sees {depth}"))
                            }
                            _ => self.fail("unexpected token type in a literal"),
                        };
                    }
                    if rank > 0 {
                        seen[rank - 1] += 1;
                        if seen[rank - 1] > shape.dims[rank - 1] {
                            return self.fail("sees more elements on the minor-most dimension than expected");
                        }
                    }
                    self.element(shape.dtype, &mut bytes)?;
                }
            }
            if depth == 0 {
                break;
            }
        }
        if bytes.len() as u64 != size {
            return self.fail("the constant lacks elements");
        }
        Ok(Tensor::new(shape.dtype, shape.dims.clone(), bytes))
    }

    /// Parses a lone number as the first element, with zeros for all others, as in XLA.
    fn first_element(&mut self, dtype: DType, size: u64) -> Result<Vec<u8>> {
        if size > ELIDED_LIMIT {
            return self.fail_as(Code::TooLarge, format!("a constant of {size} bytes from one number"));
        }
        let mut bytes = Vec::new();
        self.element(dtype, &mut bytes)?;
        bytes.resize(size as usize, 0);
        Ok(bytes)
    }

    fn element(&mut self, dtype: DType, out: &mut Vec<u8>) -> Result<()> {
        match dtype.class() {
            DTypeClass::Complex => {
                if self.eat(b'(') {
                    self.float_element(dtype.real_part(), out)?;
                    self.expect(b',', "expects ',' between real and imaginary part")?;
                    self.float_element(dtype.real_part(), out)?;
                    return self.expect(b')', "expects ')' behind an imaginary part");
                }
                self.float_element(dtype.real_part(), out)?;
                out.extend(vec![0; dtype.bytes() / 2]);
                Ok(())
            }
            DTypeClass::Float => self.float_element(dtype, out),
            DTypeClass::Pred | DTypeClass::Signed | DTypeClass::Unsigned => self.int_element(dtype, out),
        }
    }

    fn int_element(&mut self, dtype: DType, out: &mut Vec<u8>) -> Result<()> {
        let value: i128 = match (self.tok.kind, self.tok.text) {
            (TokenKind::Keyword, "true") => 1,
            (TokenKind::Keyword, "false") => 0,
            (TokenKind::Int, text) => text.parse().or_else(|_| self.fail("expects integer"))?,
            (TokenKind::Decimal | TokenKind::Special, _) => return self.fail("expects integer"),
            _ => return self.fail("unexpected token type in a literal"),
        };
        let bits = dtype.bits();
        let (low, high) = match dtype.class() {
            DTypeClass::Pred => (0, 1),
            DTypeClass::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            // XLA accepts 64-bit numbers of either sign.
            _ if bits == 64 => (i128::from(i64::MIN), i128::from(u64::MAX)),
            _ => (0, (1i128 << bits) - 1),
        };
        if value < low || value > high {
            return self.fail(format!(
                "value {value} is out of range for literal's primitive type {dtype} namely [{low}, {high}]"
            ));
        }
        out.extend(&value.to_le_bytes()[..dtype.bytes()]);
        self.advance();
        Ok(())
    }

    fn float_element(&mut self, dtype: DType, out: &mut Vec<u8>) -> Result<()> {
        let text = self.tok.text;
        let value = match self.tok.kind {
            TokenKind::Int | TokenKind::Decimal => {
                let value: f64 = text.parse().or_else(|_| self.fail("expects a number"))?;
                if value.is_infinite() {
                    return self.fail("constant is out of range for double and so is unparsable");
                }
                value
            }
            TokenKind::Special => return self.special(dtype, out),
            TokenKind::Keyword if text == "true" => 1.0,
            TokenKind::Keyword if text == "false" => 0.0,
            _ => return self.fail("unexpected token type in a literal"),
        };
        let start = out.len();
        push_float(dtype, value, out);
        if has_overflowed(dtype, value, &out[start..]) {
            return self.fail(format!("value {text} is out of range for literal's primitive type {dtype}"));
        }
        self.advance();
        Ok(())
    }

    /// Parses an infinity or NaN, possibly with a payload.
    fn special(&mut self, dtype: DType, out: &mut Vec<u8>) -> Result<()> {
        let text = self.tok.text;
        let (negative, word) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let payload = match word.strip_prefix("nan(0x").and_then(|w| w.strip_suffix(')')) {
            Some(hex) => Some(u64::from_str_radix(hex, 16).or_else(|_| self.fail("a NaN payload is out of range"))?),
            None => None,
        };
        let magnitude = if word == "inf" { f64::INFINITY } else { f64::NAN };
        let start = out.len();
        push_float(dtype, magnitude.copysign(if negative { -1.0 } else { 1.0 }), out);
        if let Some(payload) = payload {
            let Some(mantissa) = mantissa_bits(dtype) else {
                return self.fail(format!("{dtype} does not support NaN payloads"));
            };
            if payload >> mantissa != 0 {
                return self.fail(format!("NaN payload {payload:#x} is out of range for {dtype}"));
            }
            let n = dtype.bytes();
            let mut raw = [0u8; 8];
            raw[..n].copy_from_slice(&out[start..]);
            let kept = u64::from_le_bytes(raw) >> mantissa << mantissa;
            out.truncate(start);
            out.extend(&(kept | payload).to_le_bytes()[..n]);
        }
        self.advance();
        Ok(())
    }
}

/// Number of mantissa bits of types whose NaN has a payload.
fn mantissa_bits(dtype: DType) -> Option<u32> {
    match dtype {
        DType::F64 => Some(52),
        DType::F32 => Some(23),
        DType::BF16 => Some(7),
        DType::F16 => Some(10),
        DType::F8E5M2 => Some(2),
        DType::F8E4M3 => Some(3),
        DType::F8E3M4 => Some(4),
        _ => None,
    }
}

/// Appends the nearest value of a type; NaN keeps its sign.
pub(in crate::hlo) fn push_float(dtype: DType, value: f64, out: &mut Vec<u8>) {
    match dtype {
        DType::F64 => out.extend(value.to_le_bytes()),
        DType::F32 => out.extend((value as f32).to_le_bytes()),
        DType::F16 => out.extend(half::f16::from_f64(value).to_le_bytes()),
        DType::BF16 => out.extend(half::bf16::from_f64(value).to_le_bytes()),
        _ => out.push(small_float::encode(dtype, value)),
    }
}

/// Whether the conversion of a finite value overflowed to infinity, NaN or a much smaller value.
fn has_overflowed(dtype: DType, value: f64, raw: &[u8]) -> bool {
    let word = |n: usize| raw.get(..n);
    match dtype {
        DType::F64 => false,
        DType::F32 => word(4).and_then(|w| w.try_into().ok()).is_some_and(|w| f32::from_le_bytes(w).is_infinite()),
        DType::F16 => {
            word(2).and_then(|w| w.try_into().ok()).is_some_and(|w| half::f16::from_le_bytes(w).is_infinite())
        }
        DType::BF16 => {
            word(2).and_then(|w| w.try_into().ok()).is_some_and(|w| half::bf16::from_le_bytes(w).is_infinite())
        }
        _ => {
            let back = raw.first().map_or(f64::NAN, |&b| small_float::decode(dtype, b));
            !back.is_finite() || (dtype == DType::F4E2M1FN && value.abs() > 6.0)
        }
    }
}

/// Elements for `...`: the words 0, 1, 2 and so on, as in XLA.
fn elided_elements(dtype: DType, n: u64) -> Vec<u8> {
    let mask = match dtype {
        DType::Pred => 1,
        _ if dtype.bits() < 8 => (1u64 << dtype.bits()) - 1,
        _ => u64::MAX,
    };
    let width = dtype.bytes();
    let mut out = Vec::with_capacity(n as usize * width);
    for i in 0..n {
        let mut word = i & mask;
        if dtype.is_signed() && dtype.bits() < 8 && word >> (dtype.bits() - 1) & 1 == 1 {
            word |= !mask;
        }
        out.extend(&(word as u128).to_le_bytes()[..width]);
    }
    out
}
