//! Conversion of constants to and from protobuf messages; elements are in the order of the literal's layout.
use bytemuck::{Pod, allocation::pod_collect_to_vec, cast_slice};
use bytes::Bytes;
use protobuf::MessageField;

use super::messages::xla_data::LiteralProto;
use super::shape;
use crate::diag::{Code, Error, Result};
use crate::hlo::{ArrayShape, Literal, Shape};
use crate::tensor::{DType, Tensor, element_count};

/// Message for `value`, which has `shape`.
pub(super) fn write(value: &Literal, shape: &Shape) -> Result<LiteralProto> {
    let mut p = LiteralProto { shape: MessageField::some(shape::write_with_layout(shape)?), ..Default::default() };
    match (value, shape) {
        (Literal::Array(t), Shape::Array(a)) => elements(t, a, &mut p),
        (Literal::Tuple(parts), Shape::Tuple(shapes)) if parts.len() == shapes.len() => {
            p.tuple_literals = parts.iter().zip(shapes).map(|(v, s)| write(v, s)).collect::<Result<_>>()?;
        }
        (Literal::Token, Shape::Token) => {}
        _ => return Err(Error::internal("write a literal", format!("a value that is no {shape}"))),
    }
    Ok(p)
}

/// Value of a message.
///
/// Errors: `Code::BadEncoding` if the number of elements does not match the shape.
pub(super) fn read(p: &LiteralProto) -> Result<Literal> {
    let shape = p.shape.as_ref().ok_or_else(|| bad("a literal has no shape"))?;
    Ok(match shape::read(shape)? {
        Shape::Array(a) => Literal::Array(tensor(p, &a)?),
        Shape::Tuple(shapes) if shapes.len() == p.tuple_literals.len() => {
            Literal::Tuple(p.tuple_literals.iter().map(read).collect::<Result<_>>()?)
        }
        Shape::Tuple(_) => return Err(bad("a tuple literal has other parts than its shape")),
        Shape::Token => Literal::Token,
        Shape::Opaque | Shape::Buffer(_) => return Err(bad("a literal is no value")),
    })
}

fn bad(message: impl Into<String>) -> Error {
    Error::user(Code::BadEncoding, message)
}

/// Row-major position of each element in layout order; `None` if the orders agree.
fn positions(a: &ArrayShape) -> Option<Vec<usize>> {
    let order = &a.layout.as_ref()?.minor_to_major;
    if order.iter().rev().enumerate().all(|(i, &d)| d == i as i64) {
        return None;
    }
    let strides = a.strides();
    let axes: Vec<usize> = order.iter().rev().map(|&d| d as usize).collect();
    let mut index = vec![0u64; a.rank()];
    let mut out = Vec::with_capacity(a.elements() as usize);
    for _ in 0..a.elements() {
        out.push(index.iter().zip(&strides).map(|(i, s)| i * s).sum::<u64>() as usize);
        for &axis in axes.iter().rev() {
            index[axis] += 1;
            if index[axis] < a.dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    Some(out)
}

/// Field of an element type that is encoded as bytes; `None` for other types.
macro_rules! raw_field {
    ($p:expr, $dtype:expr, $($reference:tt)+) => {
        match $dtype {
            DType::S1 => Some($($reference)+ $p.s1s),
            DType::S2 => Some($($reference)+ $p.s2s),
            DType::S4 => Some($($reference)+ $p.s4s),
            DType::S8 => Some($($reference)+ $p.s8s),
            DType::S16 => Some($($reference)+ $p.s16s),
            DType::U1 => Some($($reference)+ $p.u1s),
            DType::U2 => Some($($reference)+ $p.u2s),
            DType::U4 => Some($($reference)+ $p.u4s),
            DType::U8 => Some($($reference)+ $p.u8s),
            DType::U16 => Some($($reference)+ $p.u16s),
            DType::F16 => Some($($reference)+ $p.f16s),
            DType::BF16 => Some($($reference)+ $p.bf16s),
            DType::F8E5M2 => Some($($reference)+ $p.f8e5m2s),
            DType::F8E4M3FN => Some($($reference)+ $p.f8e4m3fns),
            DType::F8E4M3B11FNUZ => Some($($reference)+ $p.f8e4m3b11fnuzs),
            DType::F8E5M2FNUZ => Some($($reference)+ $p.f8e5m2fnuzs),
            DType::F8E4M3FNUZ => Some($($reference)+ $p.f8e4m3fnuzs),
            DType::F8E4M3 => Some($($reference)+ $p.f8e4m3s),
            DType::F8E3M4 => Some($($reference)+ $p.f8e3m4s),
            DType::F8E8M0FNU => Some($($reference)+ $p.f8e8m0fnus),
            DType::F4E2M1FN => Some($($reference)+ $p.f4e2m1fns),
            DType::Pred
            | DType::S32
            | DType::S64
            | DType::U32
            | DType::U64
            | DType::F32
            | DType::F64
            | DType::C64
            | DType::C128 => None,
        }
    };
}

fn elements(t: &Tensor, a: &ArrayShape, p: &mut LiteralProto) {
    let width = t.dtype.bytes();
    let reordered: Vec<u8>;
    let raw: &[u8] = match positions(a) {
        None => &t.bytes,
        Some(places) => {
            reordered = places.iter().flat_map(|&i| &t.bytes[i * width..(i + 1) * width]).copied().collect();
            &reordered
        }
    };
    fn read_all<T: Pod>(raw: &[u8]) -> Vec<T> {
        pod_collect_to_vec(raw)
    }
    match t.dtype {
        DType::Pred => p.preds = raw.iter().map(|&b| b != 0).collect(),
        DType::S32 => p.s32s = read_all(raw),
        DType::S64 => p.s64s = read_all(raw),
        DType::U32 => p.u32s = read_all(raw),
        DType::U64 => p.u64s = read_all(raw),
        DType::F32 => p.f32s = read_all(raw),
        DType::F64 => p.f64s = read_all(raw),
        DType::C64 => p.c64s = read_all(raw),
        DType::C128 => p.c128s = read_all(raw),
        packed if packed.bits() < 8 && packed != DType::F4E2M1FN => {
            if let Some(field) = raw_field!(p, packed, &mut) {
                *field = pack(raw, packed.bits());
            }
        }
        other => {
            if let Some(field) = raw_field!(p, other, &mut) {
                *field = raw.to_vec();
            }
        }
    }
}

/// Packs several elements into a byte, the first in the lowest bits.
fn pack(raw: &[u8], bits: u32) -> Vec<u8> {
    let per_byte = (8 / bits) as usize;
    let mask = (1u8 << bits) - 1;
    let join = |part: &[u8]| part.iter().enumerate().fold(0, |all, (i, &b)| all | (b & mask) << (i as u32 * bits));
    raw.chunks(per_byte).map(join).collect()
}

/// Unpacks elements to one byte each, sign-extended.
fn unpack(packed: &[u8], n: usize, dtype: DType) -> Vec<u8> {
    let bits = dtype.bits();
    let per_byte = (8 / bits) as usize;
    let shift = 8 - bits;
    let one = |i: usize| {
        let high = packed[i / per_byte] >> ((i % per_byte) as u32 * bits) << shift;
        if dtype.is_signed() { (high as i8 >> shift) as u8 } else { high >> shift }
    };
    (0..n).map(one).collect()
}

fn tensor(p: &LiteralProto, a: &ArrayShape) -> Result<Tensor> {
    let count = element_count(&a.dims).and_then(|n| usize::try_from(n).ok());
    let count =
        count.filter(|&n| n.checked_mul(a.dtype.bytes()).is_some()).ok_or_else(|| bad("a literal is too large"))?;
    let bits = a.dtype.bits();
    let raw: Vec<u8> = match a.dtype {
        DType::Pred => p.preds.iter().map(|&b| b as u8).collect(),
        DType::S32 => cast_slice(&p.s32s).to_vec(),
        DType::S64 => cast_slice(&p.s64s).to_vec(),
        DType::U32 => cast_slice(&p.u32s).to_vec(),
        DType::U64 => cast_slice(&p.u64s).to_vec(),
        DType::F32 => cast_slice(&p.f32s).to_vec(),
        DType::F64 => cast_slice(&p.f64s).to_vec(),
        DType::C64 => cast_slice(&p.c64s).to_vec(),
        DType::C128 => cast_slice(&p.c128s).to_vec(),
        other => {
            let field = raw_field!(p, other, &).cloned().unwrap_or_default();
            let packed = bits < 8 && other != DType::F4E2M1FN;
            let wanted = count.div_ceil((8 / bits.min(8)) as usize);
            if packed && field.len() == wanted { unpack(&field, count, other) } else { field }
        }
    };
    if raw.len() != count * a.dtype.bytes() {
        return Err(bad(format!("a literal of {count} elements has {} bytes of {}", raw.len(), a.dtype)));
    }
    let Some(places) = positions(a) else {
        return Ok(Tensor::new(a.dtype, a.dims.clone(), Bytes::from(raw)));
    };
    let width = a.dtype.bytes();
    let mut ordered = vec![0; raw.len()];
    for (from, to) in places.into_iter().enumerate() {
        ordered[to * width..(to + 1) * width].copy_from_slice(&raw[from * width..(from + 1) * width]);
    }
    Ok(Tensor::new(a.dtype, a.dims.clone(), Bytes::from(ordered)))
}
