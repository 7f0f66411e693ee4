//! Weight shards of TF.js models.
//!
//! The shards of a group are concatenated, and its weights follow each other. Quantized weights (`uint8`, `uint16`) are
//! `stored * scale + min`, computed in double and rounded to float once; `int32` weights are rounded half up. `float16` is only a
//! storage format of floats. `int64` constants are stored as `int32`. Each string is preceded by its length in four bytes.
use super::source::read_file;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, Graph, Node, Program, TfType};
use crate::tensor::{DType, Tensor, element_count};
use bytes::Bytes;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Component, Path};
use std::sync::Arc;

/// Values by the name of the constant.
pub type TensorsByName = HashMap<String, Attr>;

/// Reads every weight that `manifest` lists. Errors: `Io`; `BadEncoding` if manifest and shards contradict each other.
pub fn read_weights(manifest: &Value, folder: &Path) -> Result<TensorsByName> {
    let mut all = TensorsByName::new();
    for group in manifest.as_array().into_iter().flatten() {
        let mut data = group_bytes(group, folder)?;
        for weight in group.get("weights").and_then(Value::as_array).into_iter().flatten() {
            let name = weight.get("name").and_then(Value::as_str).ok_or_else(|| bad("a weight has no name"))?;
            let in_weight = |e: Error| e.map(|d| d.note(format!("weight `{name}`")));
            let value = read_weight(weight, &mut data).map_err(in_weight)?;
            all.insert(name.to_string(), value);
        }
        if !data.is_empty() {
            return Err(bad(format!("{} bytes of the weight shards belong to no weight", data.len())));
        }
    }
    Ok(all)
}

fn bad(what: impl Into<String>) -> Error {
    Diagnostic::new(Code::BadEncoding, what).into()
}

fn group_bytes(group: &Value, folder: &Path) -> Result<Bytes> {
    let mut shards = Vec::new();
    for path in group.get("paths").and_then(Value::as_array).into_iter().flatten() {
        let path = Path::new(path.as_str().ok_or_else(|| bad("the path of a weight shard is no text"))?);
        if !path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(bad(format!("the weight shard `{}` is outside the model's folder", path.display())));
        }
        shards.push(read_file(&folder.join(path))?);
    }
    Ok(if shards.len() == 1 { shards.remove(0) } else { shards.concat().into() })
}

fn read_weight(weight: &Value, data: &mut Bytes) -> Result<Attr> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or("").to_string();
    let dims = weight.get("shape").and_then(Value::as_array).ok_or_else(|| bad("the shape is missing"))?;
    let dims: Option<Vec<u64>> = dims.iter().map(Value::as_u64).collect();
    let dims = dims.ok_or_else(|| bad("the shape has a size that is no natural number"))?;
    let count =
        element_count(&dims).ok_or_else(|| Error::user(Code::TooLarge, format!("the shape {dims:?} is too large")))?;
    let dtype = text(weight, "dtype");
    if dtype == "string" {
        return read_strings(dims, count, data);
    }
    let dtype = json_dtype(&dtype)?;
    let Some(quantization) = weight.get("quantization") else {
        return Ok(Attr::Tensor(Box::new(Tensor::new(dtype, dims, take(data, count, dtype)?))));
    };
    let stored = json_dtype(&text(quantization, "dtype"))?;
    let raw = Tensor::new(stored, dims, take(data, count, stored)?);
    if stored == DType::F16 {
        return Ok(Attr::Tensor(Box::new(cast(&raw, dtype)?)));
    }
    let number = |key: &str| {
        quantization.get(key).and_then(Value::as_f64).ok_or_else(|| bad(format!("the quantization has no `{key}`")))
    };
    dequantize(&raw, dtype, number("scale")?, number("min")?).map(|t| Attr::Tensor(Box::new(t)))
}

fn json_dtype(name: &str) -> Result<DType> {
    Ok(match name {
        "float32" => DType::F32,
        "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        "float64" => DType::F64,
        "int8" => DType::S8,
        "int16" => DType::S16,
        "int32" => DType::S32,
        "int64" => DType::S64,
        "uint8" => DType::U8,
        "uint16" => DType::U16,
        "bool" => DType::Pred,
        "complex64" => DType::C64,
        other => return Err(bad(format!("weights of type `{other}` are not known"))),
    })
}

fn take(data: &mut Bytes, count: u64, dtype: DType) -> Result<Bytes> {
    let want =
        count.checked_mul(dtype.bytes() as u64).and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= data.len());
    want.map(|n| data.split_to(n)).ok_or_else(|| bad("the weight shards are too short"))
}

fn read_strings(dims: Vec<u64>, count: u64, data: &mut Bytes) -> Result<Attr> {
    let mut all = Vec::new();
    for _ in 0..count {
        let length = take(data, 1, DType::U32)?;
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
        all.push(take(data, length.into(), DType::U8)?);
    }
    Ok(Attr::Strings(dims.into(), all.into()))
}

fn dequantize(raw: &Tensor, dtype: DType, scale: f64, min: f64) -> Result<Tensor> {
    let restored: fn(f64) -> [u8; 4] = match dtype {
        DType::F32 => |v| (v as f32).to_le_bytes(),
        DType::S32 => |v| ((v + 0.5).floor() as i32).to_le_bytes(),
        other => return Err(bad(format!("quantised weights of type {other} are not known"))),
    };
    let restore = |stored: u16| restored(f64::from(stored) * scale + min);
    let mut bytes = Vec::with_capacity(raw.len() * 4);
    match raw.dtype {
        DType::U8 => raw.bytes.iter().for_each(|&b| bytes.extend_from_slice(&restore(b.into()))),
        DType::U16 => {
            raw.bytes.chunks_exact(2).for_each(|b| bytes.extend_from_slice(&restore(u16::from_le_bytes([b[0], b[1]]))))
        }
        other => return Err(bad(format!("weights quantised to {other} are not known"))),
    }
    Ok(Tensor::new(dtype, raw.dims.clone(), bytes))
}

/// Converts values to the type of the constant if TF.js stores it in another one: integers and floats of another width.
fn cast(from: &Tensor, to: DType) -> Result<Tensor> {
    if from.dtype == to {
        return Ok(from.clone());
    }
    let n = from.len();
    let bytes: Vec<u8> = if (from.dtype, to) == (DType::F16, DType::F32) {
        let mut bytes = Vec::with_capacity(n * 4);
        for half in from.bytes.chunks_exact(2) {
            bytes.extend_from_slice(&half::f16::from_le_bytes([half[0], half[1]]).to_f32().to_le_bytes());
        }
        bytes
    } else if to.is_integer() && (from.dtype.is_integer() || from.dtype == DType::Pred) {
        (0..n).flat_map(|i| from.get_i64(i).unwrap_or(0).to_le_bytes().into_iter().take(to.bytes())).collect()
    } else if to == DType::Pred && from.dtype.is_integer() {
        (0..n).map(|i| u8::from(from.get_i64(i) != Some(0))).collect()
    } else if to.is_float() && from.dtype.is_float() {
        (0..n).flat_map(|i| Tensor::scalar_from_f64(to, from.get_f64(i).unwrap_or(0.0)).bytes).collect()
    } else {
        return Err(Error::user(Code::BadGraph, format!("the constant is {to}, and its weight is {}", from.dtype)));
    };
    Ok(Tensor::new(to, from.dims.clone(), bytes))
}

/// Sets each constant of the graph and its functions to the weight of the same name.
pub fn set_constants(program: &mut Program, mut weights: TensorsByName) -> Result<()> {
    set_in(&mut program.graph, &mut weights)?;
    for function in program.functions.values_mut() {
        set_in(&mut function.graph, &mut weights)?;
    }
    Ok(())
}

fn set_in(graph: &mut Graph, weights: &mut TensorsByName) -> Result<()> {
    for node in graph.nodes.values_mut().filter(|n| &*n.op == "Const") {
        let Some(weight) = weights.get(&*node.name) else { continue };
        let value = constant(node, weight).map_err(|e| e.map(|d| d.at_node(&node.name, &node.op)))?;
        let mut attrs = std::mem::take(&mut node.attrs).into_vec();
        attrs.retain(|(name, _)| &**name != "value");
        attrs.push((Arc::from("value"), value));
        node.attrs = attrs.into();
    }
    Ok(())
}

fn constant(node: &Node, weight: &Attr) -> Result<Attr> {
    match (weight, node.tf_type("dtype")) {
        (Attr::Tensor(tensor), Some(TfType::Data(dtype))) => Ok(Attr::Tensor(Box::new(cast(tensor, dtype)?))),
        (other, _) => Ok(other.clone()),
    }
}
