//! Serialization of AttrValues and function signatures in protobuf's wire format.
use super::wire::{put_bytes, put_varint, put_varint_field};
use crate::graph::PartialShape;

/// An AttrValue with a string.
pub fn string(value: &str) -> Vec<u8> {
    bytes(value.as_bytes())
}

/// An AttrValue with a string of arbitrary bytes.
pub fn bytes(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 2, value);
    out
}

/// An AttrValue with a boolean.
pub fn boolean(value: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint_field(&mut out, 5, u64::from(value));
    out
}

/// An AttrValue with an integer.
pub fn int(value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint_field(&mut out, 3, value as u64);
    out
}

/// An AttrValue with a type, given as a `DataType` number.
pub fn dtype(value: i32) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint_field(&mut out, 6, value as u64);
    out
}

/// An AttrValue with a list of types, given as `DataType` numbers.
pub fn types(values: &[i32]) -> Vec<u8> {
    let mut numbers = Vec::new();
    values.iter().for_each(|&t| put_varint(&mut numbers, t as u64));
    let mut list = Vec::new();
    if !numbers.is_empty() {
        put_bytes(&mut list, 6, &numbers);
    }
    let mut out = Vec::new();
    put_bytes(&mut out, 1, &list);
    out
}

/// An AttrValue with a list of shapes.
pub fn shapes(values: &[PartialShape]) -> Vec<u8> {
    let mut list = Vec::new();
    for shape in values {
        let mut one = Vec::new();
        for dim in shape.0.iter().flatten() {
            let mut size = Vec::new();
            put_varint_field(&mut size, 1, dim.map_or(u64::MAX, |d| d)); // -1: not known
            put_bytes(&mut one, 2, &size);
        }
        if shape.0.is_none() {
            put_varint_field(&mut one, 3, 1);
        }
        put_bytes(&mut list, 7, &one);
    }
    let mut out = Vec::new();
    put_bytes(&mut out, 1, &list);
    out
}

/// An AttrValue with a tensor of type `float`.
pub fn float_tensor(sizes: &[u64], values: &[f32]) -> Vec<u8> {
    let mut shape = Vec::new();
    for &size in sizes {
        let mut one = Vec::new();
        put_varint_field(&mut one, 1, size);
        put_bytes(&mut shape, 2, &one);
    }
    let content: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut tensor = Vec::new();
    put_varint_field(&mut tensor, 1, 1);
    put_bytes(&mut tensor, 2, &shape);
    put_bytes(&mut tensor, 4, &content);
    let mut out = Vec::new();
    put_bytes(&mut out, 8, &tensor);
    out
}

/// An AttrValue with a function without attributes.
pub fn function(name: &str) -> Vec<u8> {
    let mut inner = Vec::new();
    put_bytes(&mut inner, 1, name.as_bytes());
    let mut out = Vec::new();
    put_bytes(&mut out, 10, &inner);
    out
}

/// The signature (OpDef) of a function: names and `DataType` numbers of arguments and results, names of control results.
pub fn function_signature(
    name: &str,
    args: &[(String, i32)],
    results: &[(String, i32)],
    controls: &[String],
    stateful: bool,
) -> Vec<u8> {
    let arg = |(name, of): &(String, i32)| {
        let mut out = Vec::new();
        put_bytes(&mut out, 1, name.as_bytes());
        put_varint_field(&mut out, 3, *of as u64);
        out
    };
    let mut out = Vec::new();
    put_bytes(&mut out, 1, name.as_bytes());
    args.iter().for_each(|a| put_bytes(&mut out, 2, &arg(a)));
    results.iter().for_each(|r| put_bytes(&mut out, 3, &arg(r)));
    if stateful {
        put_varint_field(&mut out, 17, 1);
    }
    controls.iter().for_each(|c| put_bytes(&mut out, 20, c.as_bytes()));
    out
}
