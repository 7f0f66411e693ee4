//! Conversion of protobuf's wire format to its text format as TensorFlow prints it: fields by number, maps by key.
//!
//! Fields that the messages of `protos/` do not define are omitted.
use crate::diag::{Code, Error, Result};
use crate::import::schema::{FieldFormat, FieldType, MessageOrMapEntry};
use crate::import::wire::{WireField, WireReader, WireValue};
use bytes::Bytes;
use std::fmt::Write;

/// Maximum depth of nested messages.
const MOST_DEPTH: usize = 64;

/// The text of `data`, a message of type `M`.
///
/// # Errors
/// `BadEncoding`.
pub fn print<M: protobuf::MessageFull>(data: &Bytes) -> Result<String> {
    let mut out = String::new();
    message(WireReader::new(data, "message"), &MessageOrMapEntry::message::<M>(), 0, &mut out)?;
    Ok(out)
}

fn message(mut reader: WireReader, scope: &MessageOrMapEntry, depth: usize, out: &mut String) -> Result<()> {
    if depth > MOST_DEPTH {
        return Err(Error::user(Code::BadEncoding, format!("messages nest deeper than {MOST_DEPTH} levels")));
    }
    let mut known: Vec<(u32, Option<(String, FieldFormat)>)> = Vec::new();
    // Number, key of a map's entry, text.
    let mut parts: Vec<(u32, String, String)> = Vec::new();
    while let Some(field) = reader.next()? {
        if !known.iter().any(|k| k.0 == field.number) {
            known.push((field.number, scope.field_by_number(field.number)));
        }
        let Some((_, Some((name, kind)))) = known.iter().find(|k| k.0 == field.number) else { continue };
        let key = if kind.map { map_key(&field)? } else { String::new() };
        let mut text = String::new();
        values(&field, name, kind, depth, &mut text)?;
        if !kind.repeated && !matches!(kind.kind, FieldType::Message(_)) {
            parts.retain(|p| p.0 != field.number);
        }
        parts.push((field.number, key, text));
    }
    parts.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    parts.into_iter().for_each(|(_, _, text)| out.push_str(&text));
    Ok(())
}

fn map_key(field: &WireField) -> Result<String> {
    let mut entry = field.message("map entry")?;
    while let Some(part) = entry.next()? {
        if part.number == 1 {
            return Ok(part.text().unwrap_or_default().to_string());
        }
    }
    Ok(String::new())
}

/// The lines of one field: one, or one for each number of a packed list.
fn values(field: &WireField, name: &str, kind: &FieldFormat, depth: usize, out: &mut String) -> Result<()> {
    let mut line = |value: String| {
        indent(depth, out);
        // Writing to a String does not fail.
        let _ = writeln!(out, "{name}: {value}");
    };
    match &kind.kind {
        FieldType::Message(scope) => {
            indent(depth, out);
            let _ = writeln!(out, "{name} {{");
            message(field.message("message")?, scope, depth + 1, out)?;
            indent(depth, out);
            out.push_str("}\n");
        }
        FieldType::Opaque => {}
        FieldType::Text | FieldType::Bytes => line(quoted(field.raw_bytes()?)),
        FieldType::Signed { narrow: true } => field.for_each_number(|v| line((v as i32).to_string()))?,
        FieldType::Signed { narrow: false } => field.for_each_number(|v| line((v as i64).to_string()))?,
        // `fixed32`, which one of these messages has, has a wire type of its own.
        FieldType::Unsigned { .. } => match field.value {
            WireValue::Fixed32(v) => line(v.to_string()),
            WireValue::Fixed64(v) => line(v.to_string()),
            WireValue::Varint(_) | WireValue::Bytes(_) => field.for_each_number(|v| line(v.to_string()))?,
        },
        FieldType::Bool => field.for_each_number(|v| line((v != 0).to_string()))?,
        FieldType::F32 => {
            field.for_each_fixed::<4>(|v| line(float(f32::from_le_bytes(v).into(), f32::from_le_bytes(v))))?
        }
        FieldType::F64 => field.for_each_fixed::<8>(|v| line(float(f64::from_le_bytes(v), f64::from_le_bytes(v))))?,
        FieldType::Enum(e) => field.for_each_number(|v| {
            let known = e.value_by_number(v as i32);
            line(known.map_or_else(|| (v as i32).to_string(), |k| k.name().to_string()));
        })?,
    }
    Ok(())
}

fn indent(depth: usize, out: &mut String) {
    (0..depth).for_each(|_| out.push_str("  "));
}

/// The shortest text that parses to the same number.
fn float(value: f64, spelled: impl std::fmt::Display + std::fmt::LowerExp) -> String {
    if value.is_nan() {
        "nan".to_string()
    } else if value.is_infinite() {
        if value > 0.0 { "inf" } else { "-inf" }.to_string()
    } else if value != 0.0 && !(1e-5..1e15).contains(&value.abs()) {
        format!("{spelled:e}")
    } else {
        spelled.to_string()
    }
}

/// Bytes in quotes, with octal escapes for everything but printable ASCII.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for &b in bytes {
        match b {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => {
                out.push('\\');
                out.push(b as char);
            }
            0x20..=0x7e => out.push(b as char),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::proto::tensorflow::GraphDef;

    #[test]
    fn what_is_printed_is_read_back() {
        let text = "node {\n  name: \"a\"\n  op: \"Const\"\n  attr {\n    key: \"dtype\"\n    value {\n      type: DT_FLOAT\n    }\n  }\n  attr {\n    key: \"value\"\n    value {\n      tensor {\n        dtype: DT_FLOAT\n        tensor_shape {\n          dim {\n            size: 2\n          }\n        }\n        float_val: 0.1\n        float_val: -1e20\n      }\n    }\n  }\n}\nlibrary {\n}\nversions {\n  producer: 2000\n}\n";
        let bytes = |text: &str| crate::import::from_text::<GraphDef>(text.as_bytes()).expect("it is read");
        let printed = print::<GraphDef>(&bytes(text)).expect("it is printed");
        assert_eq!(printed, text);
        let odd = "node {\n  name: \"\\303\\244\\\"\\n\"\n}\n";
        assert_eq!(print::<GraphDef>(&bytes(odd)).expect("it is printed"), odd);
    }
}
