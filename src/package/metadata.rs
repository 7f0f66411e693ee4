//! `NAME.json`: the facts stated in the C header, for programs.
use super::header::WORKSPACE_ALIGN;
use super::loop_counts::{KernelLoops, LoopCounts};
use super::names;
use crate::codegen::{ABI_VERSION, StackDepths};
use crate::kernel::{Callee, EntryPoint, HEADER_BYTES, ModelInterface, WeightsFile};
use crate::target::{RoundingCounts, Target};
use crate::tensor::{Size, TensorInfo};
use serde_json::{Value, json};

/// The JSON document of a model, with a newline at its end; `request` is the compile request, for models with a weights file.
pub fn metadata(
    face: &ModelInterface,
    targets: &[&Target],
    limits: &ResourceLimits,
    request: Option<&Value>,
) -> String {
    let target = |t: &&Target| json!({"triple": t.triple, "cpu": t.cpu, "features": t.features});
    let mut variables = tensors_json(&face.state.iter().map(|v| v.info.clone()).collect::<Vec<_>>());
    variables.iter_mut().zip(&face.state).for_each(|(object, v)| object["offset"] = v.offset.into());
    let mut document = json!({
        "abi_version": ABI_VERSION,
        "generator": concat!("tfaot ", env!("CARGO_PKG_VERSION")),
        "name": face.name,
        "source": face.source,
        "targets": targets.iter().map(target).collect::<Vec<_>>(),
        "functions": face.entries.iter().enumerate().map(|(i, entry)| function(entry, i, limits)).collect::<Value>(),
        "variables": variables,
        "state_bytes": face.state_bytes(),
        "state_align": WORKSPACE_ALIGN,
        "workspace_bytes": face.workspace_bytes(),
        "workspace_align": WORKSPACE_ALIGN,
        "weights_bytes": face.weights_bytes,
        "precision": precision_json(&face.reduced),
        "quantized": &*face.quantized,
        "calls": face.calls.iter().map(call).collect::<Value>(),
    });
    if let Some(file) = &face.file {
        document["weights_file"] = weights_file(&face.name, file, request);
    }
    if let (Some(test), Some(bytes)) = (&face.self_test, face.test_workspace_bytes()) {
        let symbol = format!("{}_selftest", face.name);
        document["self_test"] = json!({
            "symbol": symbol,
            "workspace_bytes": bytes,
            "calls": test.calls.len(),
            "stack_bytes": limits.stack.stack_bytes(&symbol),
        });
    }
    if let Some(count) = face.ranks {
        document["ranks"] = count.into();
    }
    format!("{document:#}\n")
}

/// The facts from which `tfaot weights` makes a file with other weights: the compile request, and the location of each array.
fn weights_file(name: &str, file: &WeightsFile, request: Option<&Value>) -> Value {
    json!({
        "file": format!("{name}.weights"),
        "bytes": file.file_bytes(),
        "header_bytes": HEADER_BYTES,
        "key": file.key_hex(),
        "request": request,
        "places": {"bytes": file.places.bytes, "programs": file.places.programs, "starts": file.places.starts},
    })
}

/// A user-defined function that the model calls, with the shapes of one call.
fn call(callee: &Callee) -> Value {
    json!({
        "function": callee.name,
        "api_version": callee.api_version,
        "args": tensors_json(&callee.args),
        "results": tensors_json(&callee.results),
        "opaque_bytes": callee.opaque.len(),
    })
}

/// Upper bounds on the stack use and loop iterations of a call.
#[derive(Debug, Default)]
pub struct ResourceLimits {
    /// Stack depth of functions by symbol.
    pub stack: StackDepths,
    /// Loop bounds of each function of the model, in order.
    pub loops: Vec<LoopCounts>,
}

/// The JSON object of the function with index `number`.
fn function(entry: &EntryPoint, number: usize, limits: &ResourceLimits) -> Value {
    let EntryPoint { name, function, program, sizes, rungs, .. } = entry;
    let changed = program.state.iter().filter(|v| v.changed);
    let fields = names::size_member_names(sizes);
    let size = |(s, field): (&Size, &String)| json!({"name": s.name, "field": field, "least": s.least, "most": s.most, "is_result": s.is_result});
    json!({
        "name": name,
        "symbol": function,
        "args": tensors_with_axes(&program.args, &sizes.args),
        "results": tensors_with_axes(&program.results, &sizes.results),
        "sizes": sizes.all.iter().zip(&fields).map(size).collect::<Value>(),
        "size_buckets": rungs,
        "changes": changed.map(|v| &v.info.field).collect::<Vec<_>>(),
        "workspace_bytes": program.workspace_bytes,
        "workspace_align": WORKSPACE_ALIGN,
        "flops": program.flops,
        "stack_bytes": limits.stack.stack_bytes(function),
        "loops": limits.loops.get(number).map(loops),
    })
}

/// The loop bounds of a call as JSON; `null` where they depend on values.
fn loops(counts: &LoopCounts) -> Value {
    let kernel = |kernel: &KernelLoops| json!({"label": kernel.label, "chunks": kernel.chunks, "iterations": kernel.iterations, "launches": kernel.launches});
    json!({
        "launches": counts.launches,
        "iterations": counts.iterations,
        "kernels": counts.kernels.iter().map(kernel).collect::<Value>(),
    })
}

/// A JSON list of tensors, each with the index of the varying size of each axis if `axes` has any.
fn tensors_with_axes(infos: &[TensorInfo], axes: &[Vec<Option<usize>>]) -> Vec<Value> {
    let mut all = tensors_json(infos);
    all.iter_mut().zip(axes).for_each(|(object, axes)| object["axes"] = json!(axes));
    all
}

/// The requested precision, and the number of bytes of constants that it saved.
pub fn precision_json(reduced: &RoundingCounts) -> Value {
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

/// A JSON list with an object for each tensor.
pub fn tensors_json(infos: &[TensorInfo]) -> Vec<Value> {
    let one = |i: &TensorInfo| json!({"name": i.name, "field": i.field, "dtype": i.dtype.name(), "dims": i.dims, "bytes": i.bytes()});
    infos.iter().map(one).collect()
}
