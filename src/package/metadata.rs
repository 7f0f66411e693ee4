//! `NAME.json`: what the header says, for programs.
use super::header::WORKSPACE_ALIGN;
use super::names;
use crate::kernel::{Callee, Entry, Face, HEADER_BYTES, WeightsFile};
use crate::target::{Reduced, Target};
use crate::tensor::{Size, TensorInfo};
use serde_json::{Value, json};

/// The JSON document of a model, with a line break at its end; `request` is how it was asked for, where it has a file of weights.
pub fn metadata(face: &Face, targets: &[&Target], request: Option<&Value>) -> String {
    let one = |t: &&Target| json!({"triple": t.triple, "cpu": t.cpu, "features": t.features});
    let mut document = json!({
        "abi_version": match () {
            () if face.ranks.is_some() => 4,
            () if face.file.is_some() => 3,
            () if face.is_module() => 2,
            () => 1,
        },
        "generator": concat!("tfaot ", env!("CARGO_PKG_VERSION")),
        "name": face.name,
        "source": face.source,
        "targets": targets.iter().map(one).collect::<Vec<_>>(),
    });
    let only = match &face.entries[..] {
        [only] if !face.is_module() => Some(&only.program),
        _ => None,
    };
    if let Some(only) = only {
        document["args"] = tensors(&only.args).into();
        document["results"] = tensors(&only.results).into();
    } else {
        let mut variables = tensors(&face.state.iter().map(|v| v.info.clone()).collect::<Vec<_>>());
        variables.iter_mut().zip(&face.state).for_each(|(object, v)| object["offset"] = v.offset.into());
        document["entries"] = face.entries.iter().map(entry).collect();
        document["variables"] = variables.into();
        document["state_bytes"] = face.state_bytes().into();
        document["state_align"] = WORKSPACE_ALIGN.into();
    }
    document["workspace_bytes"] = face.workspace_bytes().into();
    document["workspace_align"] = WORKSPACE_ALIGN.into();
    if let Some(only) = only {
        document["flops"] = only.flops.into();
    }
    document["weights_bytes"] = face.weights_bytes.into();
    document["precision"] = precision(&face.reduced);
    if let Some(file) = &face.file {
        document["weights_file"] = weights_file(&face.name, file, request);
    }
    if let Some(count) = face.ranks {
        document["ranks"] = count.into();
    }
    if !face.calls.is_empty() {
        document["calls"] = face.calls.iter().map(call).collect();
    }
    format!("{document:#}\n")
}

/// What `tfaot weights` needs to make the file for other numbers: how the object was asked for, and where arrays lie in it.
fn weights_file(name: &str, file: &WeightsFile, request: Option<&Value>) -> Value {
    json!({
        "file": format!("{name}.weights"),
        "bytes": file.bytes(),
        "header_bytes": HEADER_BYTES,
        "key": file.key_text(),
        "request": request,
        "places": {"bytes": file.places.bytes, "programs": file.places.programs, "starts": file.places.starts},
    })
}

/// A function of the user that the model calls, with the shapes of one call.
fn call(callee: &Callee) -> Value {
    json!({
        "function": callee.name,
        "api_version": callee.api_version,
        "args": tensors(&callee.args),
        "results": tensors(&callee.results),
        "opaque_bytes": callee.opaque.len(),
    })
}

/// A function of a model with several, or with variables.
fn entry(entry: &Entry) -> Value {
    let changed = entry.program.state.iter().filter(|v| v.changed);
    let mut document = json!({
        "name": entry.name,
        "function": entry.function,
        "args": tensors(&entry.program.args),
        "results": tensors(&entry.program.results),
        "changes": changed.map(|v| &v.info.field).collect::<Vec<_>>(),
        "workspace_bytes": entry.program.workspace_bytes,
        "flops": entry.program.flops,
    });
    let sizes = &entry.sizes;
    if !sizes.is_empty() {
        let fields = names::of_sizes(sizes);
        let size = |(s, field): (&Size, &String)| json!({"name": s.name, "field": field, "least": s.least, "most": s.most, "is_result": s.is_result});
        document["sizes"] = sizes.all.iter().zip(&fields).map(size).collect();
        for (list, axes) in [("args", &sizes.args), ("results", &sizes.results)] {
            for (object, axes) in document[list].as_array_mut().into_iter().flatten().zip(axes) {
                object["axes"] = json!(axes);
            }
        }
        document["rungs"] = json!(entry.rungs);
    }
    document
}

/// What was rounded on request, and how many bytes that saved.
pub fn precision(reduced: &Reduced) -> Value {
    json!({
        "weights": reduced.precision.weights.name(),
        "math": reduced.precision.math.name(),
        "constants": reduced.constants,
        "bytes_before": reduced.bytes_before,
        "bytes_after": reduced.bytes_after,
        "bytes_kept": reduced.bytes_kept,
        "contractions": reduced.contractions,
        "contractions_kept": reduced.contractions_kept,
    })
}

/// A list of objects, one a tensor.
pub fn tensors(infos: &[TensorInfo]) -> Vec<Value> {
    let one = |i: &TensorInfo| json!({"name": i.name, "field": i.field, "dtype": i.dtype.name(), "dims": i.dims, "bytes": i.bytes()});
    infos.iter().map(one).collect()
}
