//! Parser of TensorProto messages: packed content becomes a slice of the file, typed values are decoded.
use super::attr_value::read_shape;
use super::wire::{WireField, WireReader};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, TfType};
use crate::tensor::{DType, Tensor, element_count};
use bytes::Bytes;

/// Maximum size in bytes of a tensor whose values are repeated to fill its shape.
const MOST_SPLAT: u64 = 1 << 32;

/// The fields of a TensorProto, not yet interpreted.
struct Parts<'a> {
    dtype: TfType,
    dims: Vec<u64>,
    content: Option<WireField<'a>>,
    values: Vec<WireField<'a>>,
}

/// Parses a TensorProto to `Attr::Tensor`, `Attr::Strings`, or `Attr::OpaqueTensor` for a type without array elements.
///
/// As in TensorFlow, missing typed values repeat the last one (zeros if there are none), and surplus values are an error.
/// Errors: `BadEncoding`, `BadGraph`, `TooLarge`.
pub fn read_tensor(reader: WireReader) -> Result<Attr> {
    let parts = split(reader)?;
    match parts.dtype {
        TfType::Data(dtype) => Ok(Attr::Tensor(Box::new(numbers(dtype, parts)?))),
        TfType::String => strings(parts),
        TfType::Quantized(_) | TfType::Resource | TfType::Variant | TfType::Unknown(_) => {
            Ok(Attr::OpaqueTensor(parts.dtype))
        }
    }
}

fn split(mut reader: WireReader) -> Result<Parts> {
    let mut parts = Parts { dtype: TfType::Unknown(0), dims: Vec::new(), content: None, values: Vec::new() };
    while let Some(field) = reader.next()? {
        match field.number {
            1 => parts.dtype = TfType::from_number(field.int32()?).storage_type(),
            2 => {
                let shape = read_shape(field.message("TensorShapeProto")?)?;
                parts.dims = shape
                    .fixed()
                    .ok_or_else(|| Error::user(Code::BadGraph, "the shape of a tensor is not fully known"))?;
            }
            4 => parts.content = Some(field).filter(|_| !matches!(field.raw_bytes(), Ok([]))),
            5..=18 => parts.values.push(field),
            _ => {}
        }
    }
    Ok(parts)
}

fn numbers(dtype: DType, parts: Parts) -> Result<Tensor> {
    let want = element_count(&parts.dims).and_then(|n| n.checked_mul(dtype.bytes() as u64));
    let want = want
        .ok_or_else(|| Error::user(Code::TooLarge, format!("a tensor of sizes {:?} has too many bytes", parts.dims)))?;
    let bytes = match parts.content {
        Some(content) => content.shared_bytes()?,
        None => typed_values(dtype, &parts.values, want)?,
    };
    if bytes.len() as u64 != want {
        let told = format!("a tensor {dtype}{:?} takes {want} bytes, and the file has {}", parts.dims, bytes.len());
        return Err(Error::user(Code::BadGraph, told));
    }
    Ok(Tensor::new(dtype, parts.dims, normal(dtype, bytes)))
}

/// Replaces booleans other than 0 and 1 by 1, on which later stages rely.
fn normal(dtype: DType, bytes: Bytes) -> Bytes {
    if dtype == DType::Pred && bytes.iter().any(|&b| b > 1) {
        return bytes.iter().map(|&b| u8::from(b != 0)).collect();
    }
    bytes
}

/// The number of the TensorProto field that holds typed values of `dtype`.
fn field_of(dtype: DType) -> Option<u32> {
    Some(match dtype {
        DType::F32 => 5,
        DType::F64 => 6,
        DType::S1
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::S16
        | DType::S32
        | DType::U1
        | DType::U2
        | DType::U4
        | DType::U8
        | DType::U16 => 7,
        DType::C64 => 9,
        DType::S64 => 10,
        DType::Pred => 11,
        DType::C128 => 12,
        DType::F16 | DType::BF16 => 13,
        DType::U32 => 16,
        DType::U64 => 17,
        DType::F8E5M2 | DType::F8E4M3FN | DType::F8E4M3B11FNUZ | DType::F8E5M2FNUZ | DType::F8E4M3FNUZ => 18,
        DType::F8E4M3 | DType::F8E3M4 | DType::F8E8M0FNU | DType::F4E2M1FN => return None,
    })
}

fn typed_values(dtype: DType, fields: &[WireField], want: u64) -> Result<Bytes> {
    let number = field_of(dtype);
    let width = dtype.bytes();
    let mut out = Vec::new();
    for field in fields.iter().filter(|f| Some(f.number) == number) {
        match field.number {
            5 | 9 => field.for_each_fixed::<4>(|v| out.extend_from_slice(&v))?,
            6 | 12 => field.for_each_fixed::<8>(|v| out.extend_from_slice(&v))?,
            18 => out.extend_from_slice(field.raw_bytes()?),
            11 => field.for_each_number(|v| out.push(u8::from(v != 0)))?,
            _ => field.for_each_number(|v| out.extend_from_slice(&v.to_le_bytes()[..width]))?,
        }
    }
    let have = out.len() as u64;
    if have >= want {
        return Ok(Bytes::from(out));
    }
    if want > MOST_SPLAT || out.try_reserve_exact((want - have) as usize).is_err() {
        return Err(Error::user(
            Code::TooLarge,
            format!("a constant of {want} bytes is given by {have} bytes of values"),
        ));
    }
    let last = out.len().checked_sub(width).map_or(vec![0; width], |at| out[at..].to_vec());
    if last.iter().all(|&b| b == last[0]) {
        out.resize(want as usize, last[0]);
    } else {
        while (out.len() as u64) < want {
            out.extend_from_slice(&last);
        }
    }
    Ok(Bytes::from(out))
}

fn strings(parts: Parts) -> Result<Attr> {
    let mut all: Vec<Bytes> = Vec::new();
    for field in parts.values.iter().filter(|f| f.number == 8) {
        all.push(field.shared_bytes()?);
    }
    let want = element_count(&parts.dims).filter(|&n| n <= MOST_SPLAT / 64);
    let want = want
        .ok_or_else(|| Error::user(Code::TooLarge, format!("a tensor of {:?} strings is too large", parts.dims)))?
        as usize;
    if all.len() > want {
        return Err(Error::user(Code::BadGraph, format!("a tensor of {want} strings has {}", all.len())));
    }
    if all.try_reserve_exact(want - all.len()).is_err() {
        return Err(Error::user(Code::TooLarge, format!("a tensor of {want} strings does not fit in memory")));
    }
    let last = all.last().cloned().unwrap_or_default();
    all.resize(want, last);
    Ok(Attr::Strings(parts.dims.into(), all.into()))
}
