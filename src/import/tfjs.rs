//! Parser of TF.js graph models: `model.json` and the weight shards beside it.
use super::graph_def;
use super::schema::MessageOrMapEntry;
use super::tfjs_weights::{TensorsByName, read_weights, set_constants};
use super::{json, proto};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Program, Signature};
use bytes::Bytes;
use serde_json::Value;
use std::path::Path;

/// Producer version for files that state none, which would otherwise be read with the oldest semantics; TensorFlow 2.3's.
const PRODUCER: i32 = 440;

/// Parses `model.json`, whose shards are in `folder`. Constants get their dequantized values.
///
/// Errors: `BadEncoding` (invalid JSON, nested too deep, fields of wrong types), `UnknownFormat` for a layers model, `Io` for shards.
pub fn read(file: &Bytes, folder: &Path) -> Result<Program> {
    let mut model: Value = serde_json::from_slice(file).map_err(|e| bad_json(&e))?;
    let mut topology = model.get_mut("modelTopology").map(Value::take).unwrap_or_default();
    if topology.get("node").is_none() {
        let what = if topology.get("model_config").is_some() {
            "this is a TF.js layers model"
        } else {
            "this JSON is no TF.js graph model"
        };
        return Err(Diagnostic::new(Code::UnknownFormat, what)
            .help("convert it with tensorflowjs_converter to a tfjs_graph_model")
            .into());
    }
    let weights = read_weights(model.get("weightsManifest").unwrap_or(&Value::Null), folder)?;
    forget_values(&mut topology, &weights);
    let encoded = json::encode(&topology, &MessageOrMapEntry::message::<proto::tensorflow::GraphDef>())?;
    drop(topology);
    let mut program = graph_def::read(&Bytes::from(encoded))?;
    set_constants(&mut program, weights)?;
    if program.producer == 0 {
        program.producer = PRODUCER;
    }
    let described = model.get("signature").or_else(|| model.get("userDefinedMetadata")?.get("signature"));
    program.signatures.extend(described.and_then(signature));
    Ok(program)
}

fn bad_json(e: &serde_json::Error) -> Error {
    let mut diagnostic = Diagnostic::new(Code::BadEncoding, format!("the JSON is not valid: {e}"));
    diagnostic.place.line = Some((e.line(), e.column()));
    diagnostic.into()
}

/// Removes the placeholder values of constants: the JSON has an empty tensor of the full shape, while the values are in the shards.
fn forget_values(topology: &mut Value, weights: &TensorsByName) {
    let forget = |nodes: &mut Value| {
        for node in nodes.as_array_mut().into_iter().flatten() {
            let known = node.get("name").and_then(Value::as_str).is_some_and(|name| weights.contains_key(name));
            if let (true, Some(attrs)) = (known, node.get_mut("attr").and_then(Value::as_object_mut)) {
                attrs.shift_remove("value");
            }
        }
    };
    if let Some(nodes) = topology.get_mut("node") {
        forget(nodes);
    }
    let functions = topology.get_mut("library").and_then(|l| l.get_mut("function")).and_then(Value::as_array_mut);
    for function in functions.into_iter().flatten() {
        for key in ["nodeDef", "node_def"] {
            if let Some(nodes) = function.get_mut(key) {
                forget(nodes);
            }
        }
    }
}

/// Parses the signature; a name without a tensor denotes the tensor of the same name.
fn signature(value: &Value) -> Option<Signature> {
    let side = |key: &str| -> Vec<(String, String)> {
        let entries = value.get(key).and_then(Value::as_object);
        let tensor = |name: &String, info: &Value| info.get("name").and_then(Value::as_str).unwrap_or(name).to_string();
        entries.into_iter().flatten().map(|(name, info)| (name.clone(), tensor(name, info))).collect()
    };
    let signature =
        Signature { name: "serving_default".to_string(), inputs: side("inputs"), outputs: side("outputs"), runs: None };
    (!signature.outputs.is_empty()).then_some(signature)
}
