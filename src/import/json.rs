//! Conversion of protobuf's JSON form to the wire format, with TF.js's extension that bytes may be a list of numbers.
use super::schema::{FieldFormat, FieldType, MessageOrMapEntry, put_scalar};
use super::wire::put_bytes;
use crate::diag::{Code, Error, Result};
use base64::Engine;
use serde_json::Value;

/// Maximum depth of nested messages.
const MOST_DEPTH: u32 = 64;

/// The wire form of `value`, a message of type `scope`. Unknown fields are skipped, because newer writers add some. Errors:
/// `BadEncoding` with the path of the field.
pub fn encode(value: &Value, scope: &MessageOrMapEntry) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    message(value, scope, 0, &mut out).map_err(|path| bad(&path))?;
    Ok(out)
}

fn bad(path: &[String]) -> Error {
    let path: Vec<&str> = path.iter().rev().map(String::as_str).collect();
    Error::user(Code::BadEncoding, format!("the JSON value at `{}` is not of its field's type", path.join(".")))
}

/// The path of an invalid value, innermost field first.
type Wrong = Vec<String>;

fn message(value: &Value, scope: &MessageOrMapEntry, depth: u32, out: &mut Vec<u8>) -> Result<(), Wrong> {
    let fields = value.as_object().filter(|_| depth <= MOST_DEPTH).ok_or_else(Vec::new)?;
    for (name, value) in fields {
        let Some(field) = scope.field(name) else { continue };
        let within = |mut path: Wrong| {
            path.push(name.clone());
            path
        };
        one_field(value, &field, depth, out).map_err(within)?;
    }
    Ok(())
}

fn one_field(value: &Value, field: &FieldFormat, depth: u32, out: &mut Vec<u8>) -> Result<(), Wrong> {
    match value {
        Value::Null => Ok(()),
        Value::Object(entries) if field.map => {
            let FieldType::Message(scope) = &field.kind else { return Err(Vec::new()) };
            for (key, value) in entries {
                let mut inner = Vec::new();
                let (Some(key_field), Some(value_field)) = (scope.field("key"), scope.field("value")) else {
                    return Err(Vec::new());
                };
                put_scalar(&mut inner, &key_field, key).ok_or_else(|| vec![key.clone()])?;
                one_field(value, &value_field, depth + 1, &mut inner).map_err(|mut path| {
                    path.push(key.clone());
                    path
                })?;
                put_bytes(out, field.number, &inner);
            }
            Ok(())
        }
        Value::Array(items) if field.repeated => items.iter().enumerate().try_for_each(|(i, item)| {
            item_field(item, field, depth, out).map_err(|mut path| {
                path.push(i.to_string());
                path
            })
        }),
        value => item_field(value, field, depth, out),
    }
}

fn item_field(value: &Value, field: &FieldFormat, depth: u32, out: &mut Vec<u8>) -> Result<(), Wrong> {
    match (&field.kind, value) {
        (FieldType::Opaque, _) => {}
        (FieldType::Message(scope), _) => {
            let mut inner = Vec::new();
            message(value, scope, depth + 1, &mut inner)?;
            put_bytes(out, field.number, &inner);
        }
        (FieldType::Bytes, Value::Array(bytes)) => {
            let byte = |v: &Value| v.as_u64().and_then(|b| u8::try_from(b).ok());
            let bytes: Option<Vec<u8>> = bytes.iter().map(byte).collect();
            put_bytes(out, field.number, &bytes.ok_or_else(Vec::new)?);
        }
        (FieldType::Bytes, Value::String(text)) => {
            put_bytes(out, field.number, &base64_bytes(text).ok_or_else(Vec::new)?)
        }
        (FieldType::Text, Value::String(text)) => put_bytes(out, field.number, text.as_bytes()),
        (FieldType::Text | FieldType::Bytes, _) => return Err(Vec::new()),
        (_, Value::String(text)) => put_scalar(out, field, text).ok_or_else(Vec::new)?,
        (_, Value::Number(number)) => put_scalar(out, field, &number_text(number)).ok_or_else(Vec::new)?,
        (_, Value::Bool(flag)) => put_scalar(out, field, if *flag { "true" } else { "false" }).ok_or_else(Vec::new)?,
        (_, Value::Null | Value::Array(_) | Value::Object(_)) => return Err(Vec::new()),
    }
    Ok(())
}

/// The text of a number, with `3.0` as `3`, because JSON writers do not distinguish integers.
fn number_text(number: &serde_json::Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_string)
}

/// Decodes base64, standard or URL-safe, with or without padding.
fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    let standard: String = text
        .trim_end_matches('=')
        .chars()
        .map(|c| {
            if c == '-' {
                '+'
            } else if c == '_' {
                '/'
            } else {
                c
            }
        })
        .collect();
    base64::engine::general_purpose::STANDARD_NO_PAD.decode(standard).ok()
}
