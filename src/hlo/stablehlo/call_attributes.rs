//! Attributes that a custom call hands to its function: a dictionary as text in MLIR's syntax, with the type of every number.
use super::attribute_values::AttrResult;
use super::print::literal;
use super::reader::TextReader;
use super::tree::MlirAttr;
use super::types::element_name;
use crate::diag::{Code, Error, Result};
use crate::hlo::proto::quoted;
use crate::scalar::eval::convert;
use crate::tensor::{DType, Tensor};
use std::fmt::Write;

/// An attribute of a custom call.
#[derive(Clone, Debug)]
pub enum CallAttribute {
    /// A number or a truth value.
    Scalar(Tensor),
    /// A dense array, or a list of numbers of one type.
    Array(Tensor),
    /// A string.
    Text(String),
    /// Attributes by name.
    Dictionary(Vec<(String, CallAttribute)>),
}

/// Reads the attributes of a custom call: `{axis = 1 : i64, scale = 1.5 : f32}`.
///
/// # Errors
/// `Code::HloSyntax` for what is no dictionary of MLIR; `Code::HloUnsupported` for lists of other things than numbers, and for symbols.
pub fn read_call_attributes(text: &str) -> Result<Vec<(String, CallAttribute)>> {
    let mut reader = TextReader::new(text);
    reader.expect("{")?;
    let entries = reader.dictionary("}")?;
    entries.into_iter().map(|(name, value)| Ok((name.clone(), attribute(&name, value)?))).collect()
}

fn attribute(name: &str, value: MlirAttr) -> Result<CallAttribute> {
    Ok(match value {
        MlirAttr::Dense(tensor) => CallAttribute::Array(tensor),
        MlirAttr::Text(text) => CallAttribute::Text(text),
        MlirAttr::Dict(entries) => CallAttribute::Dictionary(
            entries
                .into_iter()
                .map(|(name, value)| Ok((name.clone(), attribute(&name, value)?)))
                .collect::<Result<_>>()?,
        ),
        MlirAttr::Int(..) | MlirAttr::Float(..) | MlirAttr::Bool(_) => {
            CallAttribute::Scalar(scalar(&value).ok_or_else(|| refuse(name))?)
        }
        MlirAttr::List(all) => {
            let scalars = all.iter().map(scalar).collect::<Option<Vec<_>>>().ok_or_else(|| refuse(name))?;
            let dtype = scalars.first().map_or(DType::S64, |first| first.dtype);
            if scalars.iter().any(|one| one.dtype != dtype) {
                return Err(refuse(name));
            }
            let bytes: Vec<u8> = scalars.iter().flat_map(|one| one.bytes.iter().copied()).collect();
            CallAttribute::Array(Tensor::new(dtype, vec![scalars.len() as u64], bytes))
        }
        MlirAttr::Symbol(_) | MlirAttr::Conv(_) | MlirAttr::Other => return Err(refuse(name)),
    })
}

fn refuse(name: &str) -> Error {
    Error::user(Code::HloUnsupported, format!("a custom call has an attribute `{name}` that its function can't get"))
}

/// The number or truth value of an attribute.
fn scalar(value: &MlirAttr) -> Option<Tensor> {
    match *value {
        MlirAttr::Int(i, dtype) => Some(Tensor::new(dtype, Vec::new(), i.to_le_bytes().get(..dtype.bytes())?.to_vec())),
        MlirAttr::Float(f, dtype) => Some(convert(&Tensor::from_vec(DType::F64, Vec::new(), vec![f]), dtype)),
        MlirAttr::Bool(b) => Some(Tensor::new(DType::Pred, Vec::new(), vec![u8::from(b)])),
        MlirAttr::Text(_)
        | MlirAttr::Symbol(_)
        | MlirAttr::List(_)
        | MlirAttr::Dict(_)
        | MlirAttr::Dense(_)
        | MlirAttr::Conv(_)
        | MlirAttr::Other => None,
    }
}

/// Text of a dictionary, in braces.
///
/// # Errors
/// The name of an attribute that has no text, such as one of another dialect.
pub(super) fn print(entries: &[(String, MlirAttr)]) -> AttrResult<String> {
    let mut out = String::from("{");
    for (i, (name, value)) in entries.iter().enumerate() {
        let word = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
        let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(word);
        let own = if is_plain { name.clone() } else { quoted(name.as_bytes()) };
        let _ = write!(out, "{}{own} = ", if i == 0 { "" } else { ", " });
        print_value(value, &mut out)
            .ok_or_else(|| format!("a custom call with the attribute `{name}`, which is of another dialect"))?;
    }
    out.push('}');
    Ok(out)
}

/// Appends the text of a value; `None` if it has none.
fn print_value(value: &MlirAttr, out: &mut String) -> Option<()> {
    match value {
        MlirAttr::Int(i, dtype) if dtype.is_signed() => write!(out, "{i} : {}", element_name(*dtype)).ok(),
        MlirAttr::Int(i, dtype) => write!(out, "{} : {}", *i as u64, element_name(*dtype)).ok(),
        MlirAttr::Float(f, dtype) if f.is_finite() => {
            let text = format!("{f:?}");
            let text = if text.contains('.') { text } else { text.replacen('e', ".0e", 1) };
            write!(out, "{text} : {}", element_name(*dtype)).ok()
        }
        MlirAttr::Float(_, dtype) => {
            let bits = scalar(value)?;
            out.push_str("0x");
            bits.bytes.iter().rev().try_for_each(|byte| write!(out, "{byte:02X}")).ok()?;
            write!(out, " : {}", element_name(*dtype)).ok()
        }
        MlirAttr::Bool(b) => write!(out, "{b}").ok(),
        MlirAttr::Text(text) => write!(out, "{}", quoted(text.as_bytes())).ok(),
        MlirAttr::Symbol(name) => write!(out, "@{}", quoted(name.as_bytes())).ok(),
        MlirAttr::List(all) => {
            out.push('[');
            for (i, one) in all.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                print_value(one, out)?;
            }
            out.push(']');
            Some(())
        }
        MlirAttr::Dict(entries) => print(entries).ok().map(|text| out.push_str(&text)),
        MlirAttr::Dense(tensor) => {
            let sizes: String = tensor.dims.iter().map(|n| format!("{n}x")).collect();
            let element = element_name(tensor.dtype);
            write!(out, "dense<{}> : tensor<{sizes}{element}>", literal::dense(tensor)).ok()
        }
        MlirAttr::Conv(_) | MlirAttr::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_types() {
        let text = "{a = 1.5 : f32, b = -3 : i64, big = 18446744073709551615 : ui64, d = {u = 200 : ui8}, n = 0x7FC00000 : f32, \
                    s = \"a \\\"b\\\"\", t = true, v = dense<[1, 2, 3]> : tensor<3xi64>}";
        let mut reader = TextReader::new(text);
        reader.expect("{").expect("a dictionary");
        let entries = reader.dictionary("}").expect("it is read");
        assert_eq!(print(&entries).expect("it is printed"), text);
        let all = read_call_attributes(text).expect("it is read");
        let bytes = |name: &str| match &all.iter().find(|(own, _)| own == name).expect("it is there").1 {
            CallAttribute::Scalar(t) | CallAttribute::Array(t) => (t.dtype, t.bytes.to_vec()),
            CallAttribute::Text(_) | CallAttribute::Dictionary(_) => (DType::Pred, Vec::new()),
        };
        assert_eq!(bytes("a"), (DType::F32, 1.5f32.to_le_bytes().to_vec()));
        assert_eq!(bytes("big"), (DType::U64, vec![255; 8]));
        assert_eq!(bytes("t"), (DType::Pred, vec![1]));
        assert_eq!(bytes("v").1.len(), 24);
    }

    #[test]
    fn lists_are_of_one_type() {
        let all =
            read_call_attributes("{a = [1 : i32, 2 : i32], e = array<i16: 5>, f = 1.0e20 : f32}").expect("it is read");
        assert!(matches!(&all[0].1, CallAttribute::Array(t) if t.dtype == DType::S32 && t.len() == 2));
        assert!(matches!(&all[1].1, CallAttribute::Array(t) if t.dtype == DType::S16));
        assert!(read_call_attributes("{a = [1 : i32, \"x\"]}").is_err());
        assert!(read_call_attributes("{a = @f}").is_err());
    }
}
