//! Parsing of MLIR attributes and dense constants.
use super::reader::TextReader;
use super::tree::MlirAttr;
use crate::diag::{Code, Result};
use crate::hlo::attrs::ConvDims;
use crate::hlo::text::{ELIDED_LIMIT, parse_dim_labels, push_float};
use crate::hlo::{ArrayShape, Literal, Shape};
use crate::tensor::{DType, DTypeClass, Tensor, element_count};
use bytes::Bytes;

/// Bytes of an MLIR string, in which two hexadecimal digits behind a backslash are a byte.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let digit = |b: u8| (b as char).to_digit(16);
        out.push(match bytes.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            c @ (b'"' | b'\\') => c,
            high => (digit(high)? * 16 + digit(bytes.next()?)?) as u8,
        });
    }
    Some(out)
}

impl<'a> TextReader<'a> {
    /// Parses `{a = 1, b}` behind its `{`.
    pub fn dictionary(&mut self, close: &str) -> Result<Vec<(String, MlirAttr)>> {
        self.list(close, |r| {
            let name = if r.is_next("\"") { r.string()? } else { r.word()? };
            let value = if r.eat("=") { r.attribute()? } else { MlirAttr::Bool(true) };
            Ok((name.to_string(), value))
        })
    }
    /// Parses an attribute value.
    pub fn attribute(&mut self) -> Result<MlirAttr> {
        if !self.peek_number().is_empty() {
            return self.typed_number();
        }
        if self.is_next("\"") {
            let text = self.string()?;
            let bytes = unescaped(text).ok_or_else(|| self.error("a string has an escape that MLIR does not have"))?;
            return String::from_utf8(bytes).map(MlirAttr::Text).map_err(|_| self.error("a string is not UTF-8"));
        }
        if self.eat("@") {
            let name = self.suffix()?.to_string();
            while self.eat("::@") {
                self.suffix()?;
            }
            return Ok(MlirAttr::Symbol(name));
        }
        if self.eat("[") {
            return self.list("]", TextReader::attribute).map(MlirAttr::List);
        }
        if self.eat("{") {
            return self.dictionary("}").map(MlirAttr::Dict);
        }
        if self.eat("#") {
            return self.hashed();
        }
        match self.peek_word() {
            "dense" => self.dense().map(MlirAttr::Dense),
            "array" => self.array(),
            "true" => self.flag("true", true),
            "false" => self.flag("false", false),
            "unit" => self.flag("unit", true),
            "loc" => self.location().map(|_| MlirAttr::Other),
            "tensor" | "tuple" | "complex" | "index" => self.ty().map(|_| MlirAttr::Other),
            "" if self.is_next("!") || self.is_next("(") => self.signature().map(|_| MlirAttr::Other),
            "" => Err(self.error("expects an attribute's value")),
            word => {
                let text = word.to_string();
                self.take_bytes(word.len());
                Ok(MlirAttr::Text(text))
            }
        }
    }
    fn flag(&mut self, word: &str, value: bool) -> Result<MlirAttr> {
        self.take_bytes(word.len());
        Ok(MlirAttr::Bool(value))
    }
    /// Parses a number without its type: an `i64` or an `f64`.
    pub fn number(&mut self) -> Result<MlirAttr> {
        let text = self.peek_number();
        let whole = text.parse::<i64>().map(|value| MlirAttr::Int(value, DType::S64));
        let value = match whole {
            Ok(value) => value,
            Err(_) if text.contains("0x") => MlirAttr::Other,
            Err(_) => MlirAttr::Float(text.parse().map_err(|_| self.error("expects a number"))?, DType::F64),
        };
        self.take_bytes(text.len());
        Ok(value)
    }
    /// Parses `3 : i64`, `1.5 : f32` or a number without a type.
    fn typed_number(&mut self) -> Result<MlirAttr> {
        let mut behind = self.clone();
        behind.take_bytes(self.peek_number().len());
        if !behind.is_next(":") || behind.is_next("::") {
            return self.number();
        }
        behind.take_bytes(1);
        let dtype = behind.dtype()?;
        let mut bytes = Vec::with_capacity(dtype.bytes());
        self.element(dtype, &mut bytes)?;
        *self = behind;
        let scalar = Tensor::new(dtype, Vec::new(), bytes);
        let value = match dtype.class() {
            DTypeClass::Float => scalar.get_f64(0).map(|value| MlirAttr::Float(value, dtype)),
            DTypeClass::Signed | DTypeClass::Unsigned => scalar.get_i64(0).map(|value| MlirAttr::Int(value, dtype)),
            DTypeClass::Pred => scalar.get_i64(0).map(|value| MlirAttr::Bool(value != 0)),
            DTypeClass::Complex => None,
        };
        value.ok_or_else(|| self.error("expects a number of this type"))
    }
    /// Parses the attribute behind a `#`.
    fn hashed(&mut self) -> Result<MlirAttr> {
        let name = self.word()?;
        if name == "stablehlo.conv" {
            let body = self.skip_bracketed()?;
            let inner = &body[1..body.len() - 1];
            return conv_axes(inner).map_err(|m| self.error(m)).map(|d| MlirAttr::Conv(Box::new(d)));
        }
        if !self.is_next("<") {
            return Ok(MlirAttr::Other);
        }
        match name {
            // `#stablehlo<precision DEFAULT>`.
            "stablehlo" | "chlo" => {
                self.take_bytes(1);
                self.word()?;
                let nested = self.eat("<");
                let value = self.word()?.to_string();
                self.expect(if nested { ">>" } else { ">" })?;
                Ok(MlirAttr::Text(value))
            }
            name if name.starts_with("stablehlo.") || name.starts_with("chlo.") => {
                self.take_bytes(1);
                self.dictionary(">").map(MlirAttr::Dict)
            }
            // Meshes and shardings are parsed where they are needed.
            name if name.starts_with("sdy.") => self.skip_bracketed().map(|text| MlirAttr::Text(text.to_string())),
            _ => self.skip_bracketed().map(|_| MlirAttr::Other),
        }
    }
    /// Parses `loc(...)`: returns the name in `loc("x"...)`, or an alias such as `#loc3`; `None` without a location.
    pub fn location(&mut self) -> Result<Option<String>> {
        if !self.eat_word("loc") {
            return Ok(None);
        }
        let mut inside = self.clone();
        self.skip_bracketed()?;
        inside.expect("(")?;
        if inside.eat("#") {
            return inside.suffix().map(|alias| Some(format!("#{alias}")));
        }
        if !inside.is_next("\"") {
            return Ok(None);
        }
        let name = inside.string()?.to_string();
        // `loc("file.py":3:4)` is a position in a file, not a name.
        Ok(Some(name).filter(|_| !inside.is_next(":")))
    }
    /// Parses `array<i64: 1, 2>`.
    fn array(&mut self) -> Result<MlirAttr> {
        self.take_bytes("array".len());
        self.expect("<")?;
        let dtype = self.dtype()?;
        if !self.eat(":") {
            self.expect(">")?;
            return Ok(MlirAttr::List(Vec::new()));
        }
        let element = |reader: &mut TextReader<'a>| {
            Ok(match reader.attribute()? {
                MlirAttr::Int(i, _) => MlirAttr::Int(i, dtype),
                MlirAttr::Float(f, _) => MlirAttr::Float(f, dtype),
                other => other,
            })
        };
        self.list(">", element).map(MlirAttr::List)
    }
    /// Parses `dense<[1, 2]> : tensor<2xi32>`.
    pub fn dense(&mut self) -> Result<Tensor> {
        if !self.eat_word("dense") && self.peek_word() != "dense_resource" {
            return Err(self.error("expects `dense<...>`"));
        }
        if !self.is_next("<") || self.is_next("<__elided__>") {
            return Err(self.error_as(Code::HloUnsupported, "a constant that is kept outside of the text"));
        }
        // The elements are parsed once their type is known, which follows them.
        let mut body = self.clone();
        self.skip_bracketed()?;
        self.expect(":")?;
        let shape = match self.ty()? {
            Shape::Array(a) => a,
            Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                return Err(self.error("expects a tensor's type"));
            }
        };
        body.expect("<")?;
        let tensor = body.elements(&shape)?;
        body.expect(">")?;
        Ok(tensor)
    }
    fn elements(&mut self, shape: &ArrayShape) -> Result<Tensor> {
        let mut bytes = Vec::new();
        if self.is_next("\"...\"") {
            return Err(self.error_as(Code::HloUnsupported, "the elements of a constant are left out"));
        }
        if self.is_next("\"") {
            let hex = self.string()?;
            bytes = raw(hex, shape.dtype).ok_or_else(|| self.error("expects \"0x...\" with a byte in two digits"))?;
        } else if self.is_next("[") {
            self.nested(shape, 0, &mut bytes)?;
        } else if !self.is_next(">") {
            self.element(shape.dtype, &mut bytes)?;
        }
        dense(shape, bytes.into()).map_err(|told| self.error_as(told.code(), told.to_string()))
    }
    fn nested(&mut self, shape: &ArrayShape, axis: usize, out: &mut Vec<u8>) -> Result<()> {
        if axis == shape.rank() {
            return self.element(shape.dtype, out);
        }
        self.expect("[")?;
        let found = self.list("]", |r| r.nested(shape, axis + 1, out))?;
        if found.len() as u64 == shape.dims[axis] {
            Ok(())
        } else {
            Err(self.error(format!("{} elements along dimension {axis} of {shape}", found.len())))
        }
    }
    fn element(&mut self, dtype: DType, out: &mut Vec<u8>) -> Result<()> {
        match dtype.class() {
            DTypeClass::Complex => {
                let paren = self.eat("(");
                self.element(dtype.real_part(), out)?;
                if !paren {
                    out.extend(vec![0; dtype.bytes() / 2]);
                    return Ok(());
                }
                self.expect(",")?;
                self.element(dtype.real_part(), out)?;
                self.expect(")")
            }
            DTypeClass::Float => {
                let text = self.peek_number();
                if let Some(hex) = text.strip_prefix("0x") {
                    let bits = u64::from_str_radix(hex, 16).map_err(|_| self.error("expects the bits of a float"))?;
                    out.extend(&bits.to_le_bytes()[..dtype.bytes()]);
                } else {
                    let value: f64 = text.parse().map_err(|_| self.error("expects a number"))?;
                    push_float(dtype, value, out);
                }
                self.take_bytes(text.len());
                Ok(())
            }
            DTypeClass::Pred | DTypeClass::Signed | DTypeClass::Unsigned => {
                let value: i128 = if self.eat_word("true") {
                    if dtype == DType::Pred { 1 } else { -1 }
                } else if self.eat_word("false") {
                    0
                } else {
                    let text = self.peek_number();
                    let parsed = match text.strip_prefix("0x") {
                        Some(hex) => i128::from_str_radix(hex, 16).ok(),
                        None => text.parse().ok(),
                    };
                    let value = parsed.ok_or_else(|| self.error("expects a whole number"))?;
                    self.take_bytes(text.len());
                    value
                };
                out.extend(&value.to_le_bytes()[..dtype.bytes()]);
                Ok(())
            }
        }
    }
}

/// Reason why bytes are not the elements of a constant.
pub(super) enum DenseError {
    /// Constant larger than a program may have.
    TooLarge,
    /// Single element repeated to this many bytes.
    Repeated(u64),
    /// The number of bytes of a constant does not match its shape.
    Count(usize, ArrayShape),
}

impl DenseError {
    fn code(&self) -> Code {
        match self {
            DenseError::TooLarge | DenseError::Repeated(_) => Code::TooLarge,
            DenseError::Count(..) => Code::HloSyntax,
        }
    }
}

impl std::fmt::Display for DenseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DenseError::TooLarge => f.write_str("the constant is too large"),
            DenseError::Repeated(size) => write!(f, "a constant of {size} bytes from one number"),
            DenseError::Count(bytes, shape) => write!(f, "{bytes} bytes of elements for {shape}"),
        }
    }
}

/// Constant from the bytes of all elements, or of one element that is repeated.
pub(super) fn dense(shape: &ArrayShape, bytes: Bytes) -> Result<Tensor, DenseError> {
    let width = shape.dtype.bytes();
    let count = element_count(&shape.dims).and_then(|n| usize::try_from(n).ok());
    let size = count.and_then(|n| n.checked_mul(width));
    let (Some(count), Some(size)) = (count, size) else { return Err(DenseError::TooLarge) };
    let bytes = if bytes.len() == width && count != 1 {
        if size as u64 > ELIDED_LIMIT {
            return Err(DenseError::Repeated(size as u64));
        }
        bytes.repeat(count).into()
    } else {
        bytes
    };
    if bytes.len() != size {
        return Err(DenseError::Count(bytes.len(), shape.clone()));
    }
    Ok(Tensor::new(shape.dtype, shape.dims.clone(), bytes))
}

/// Bytes of `0x0011`; for `i1`, bits.
fn raw(hex: &str, dtype: DType) -> Option<Vec<u8>> {
    let digits = hex.strip_prefix("0x")?;
    let pair = |p: &[u8]| u8::from_str_radix(std::str::from_utf8(p).ok()?, 16).ok();
    let all: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(|p| if p.len() == 2 { pair(p) } else { None }).collect();
    let all = all?;
    // A single byte of ones means that all elements are true.
    Some(if dtype == DType::Pred { all.into_iter().map(|b| u8::from(b != 0)).collect() } else { all })
}

/// Parses the dimension numbers `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
pub(super) fn conv_axes(text: &str) -> Result<ConvDims, String> {
    let labels: String = text.chars().filter(|c| !matches!(c, '[' | ']' | ',' | ' ' | '\n')).collect();
    let labels = labels.replacen('x', "_", 1);
    parse_dim_labels(&labels).map_err(|_| format!("`{text}` are no axes of a convolution"))
}

/// Array as a literal, with its shape.
pub(super) fn constant(tensor: Tensor) -> (Literal, Shape) {
    let shape = Shape::array(tensor.dtype, tensor.dims.clone());
    (Literal::Array(tensor), shape)
}
