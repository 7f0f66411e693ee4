//! Encoder of attribute values in protobuf's wire format, for nodes that passes created.
use crate::graph::{Attr, FuncRef, PartialShape, TfType};
use crate::import::raw::serialize_map_entry;
use crate::import::wire::{put_bytes, put_varint, put_varint_field};
use crate::opdef::type_number;

/// Encodes an AttrValue.
pub fn encode(attr: &Attr) -> Vec<u8> {
    let mut out = Vec::new();
    match attr {
        Attr::Str(v) => put_bytes(&mut out, 2, v),
        Attr::Int(v) => put_varint_field(&mut out, 3, *v as u64),
        Attr::Float(v) => put_float(&mut out, 4, *v),
        Attr::Bool(v) => put_varint_field(&mut out, 5, u64::from(*v)),
        Attr::Type(v) => put_varint_field(&mut out, 6, type_number(*v) as u64),
        Attr::Shape(v) => put_bytes(&mut out, 7, &shape(v)),
        Attr::Tensor(v) => {
            let mut inner = tensor(TfType::Data(v.dtype), &v.dims);
            put_bytes(&mut inner, 4, &v.bytes);
            put_bytes(&mut out, 8, &inner);
        }
        Attr::Strings(dims, all) => {
            let mut inner = tensor(TfType::String, dims);
            all.iter().for_each(|s| put_bytes(&mut inner, 8, s));
            put_bytes(&mut out, 8, &inner);
        }
        Attr::OpaqueTensor(of) => put_bytes(&mut out, 8, &tensor(*of, &[])),
        Attr::Placeholder(v) => put_bytes(&mut out, 9, v.as_bytes()),
        Attr::Func(v) => put_bytes(&mut out, 10, &function(v)),
        Attr::Strs(_)
        | Attr::Ints(_)
        | Attr::Floats(_)
        | Attr::Bools(_)
        | Attr::Types(_)
        | Attr::Shapes(_)
        | Attr::Funcs(_)
        | Attr::EmptyList => put_bytes(&mut out, 1, &items(attr)),
    }
    out
}

/// Encodes an AttrValue that holds a tensor of zeros.
pub fn zeros(of: TfType, dims: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 8, &tensor(of, dims));
    out
}

/// Encodes an AttrValue.ListValue; empty for values that are not lists.
fn items(attr: &Attr) -> Vec<u8> {
    let mut out = Vec::new();
    match attr {
        Attr::Strs(all) => all.iter().for_each(|s| put_bytes(&mut out, 2, s)),
        Attr::Ints(all) => packed(&mut out, 3, all.iter().map(|v| *v as u64)),
        Attr::Floats(all) => {
            let bytes: Vec<u8> = all.iter().flat_map(|v| v.to_le_bytes()).collect();
            put_bytes(&mut out, 4, &bytes);
        }
        Attr::Bools(all) => packed(&mut out, 5, all.iter().map(|v| u64::from(*v))),
        Attr::Types(all) => packed(&mut out, 6, all.iter().map(|v| type_number(*v) as u64)),
        Attr::Shapes(all) => all.iter().for_each(|s| put_bytes(&mut out, 7, &shape(s))),
        Attr::Funcs(all) => all.iter().for_each(|f| put_bytes(&mut out, 9, &function(f))),
        _ => {}
    }
    out
}

fn packed(out: &mut Vec<u8>, field: u32, values: impl Iterator<Item = u64>) {
    let mut inner = Vec::new();
    values.for_each(|v| put_varint(&mut inner, v));
    put_bytes(out, field, &inner);
}

fn put_float(out: &mut Vec<u8>, field: u32, value: f32) {
    put_varint(out, u64::from(field) << 3 | 5);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Encodes a TensorShapeProto.
fn shape(shape: &PartialShape) -> Vec<u8> {
    let mut out = Vec::new();
    let Some(dims) = &shape.0 else {
        put_varint_field(&mut out, 3, 1);
        return out;
    };
    for dim in dims {
        let mut inner = Vec::new();
        match dim {
            Some(0) => {}
            Some(size) => put_varint_field(&mut inner, 1, *size),
            None => put_varint_field(&mut inner, 1, -1i64 as u64),
        }
        put_bytes(&mut out, 2, &inner);
    }
    out
}

/// Encodes the type and dimensions of a TensorProto.
fn tensor(of: TfType, dims: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint_field(&mut out, 1, type_number(of) as u64);
    put_bytes(&mut out, 2, &shape(&PartialShape(Some(dims.iter().copied().map(Some).collect()))));
    out
}

/// Encodes a NameAttrList.
fn function(f: &FuncRef) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 1, f.name.as_bytes());
    f.attrs.iter().for_each(|(key, value)| put_bytes(&mut out, 2, &serialize_map_entry(key, &encode(value))));
    out
}
