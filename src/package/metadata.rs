//! `NAME.json`: the facts of the header, for programs.
use super::header::WORKSPACE_ALIGN;
use super::loop_counts::{KernelLoops, LoopCounts};
use super::names;
use crate::codegen::{ABI_VERSION, StackDepths};
use crate::kernel::{Callee, EntryPoint, Face, HEADER_BYTES, WeightsFile};
use crate::target::{Reduced, Target};
use crate::tensor::{Size, TensorInfo};
use serde_json::{Value, json};

/// The JSON document of a model, with a line break at its end; `request` is how it was asked for, where it has a file of weights.
pub fn metadata(face: &Face, targets: &[&Target], limits: &Limits, request: Option<&Value>) -> String {
    let target = |t: &&Target| json!({"triple": t.triple, "cpu": t.cpu, "features": t.features});
    let mut variables = tensors(&face.state.iter().map(|v| v.info.clone()).collect::<Vec<_>>());
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
        "precision": precision(&face.reduced),
        "calls": face.calls.iter().map(call).collect::<Value>(),
    });
    if let Some(file) = &face.file {
        document["weights_file"] = weights_file(&face.name, file, request);
    }
    if let (Some(test), Some(bytes)) = (&face.self_test, face.test_bytes()) {
        let symbol = format!("{}_selftest", face.name);
        document["self_test"] = json!({
            "symbol": symbol,
            "workspace_bytes": bytes,
            "calls": test.calls.len(),
            "stack_bytes": limits.stack.frame_bytes(&symbol),
        });
    }
    if let Some(count) = face.ranks {
        document["ranks"] = count.into();
    }
    format!("{document:#}\n")
}

/// The facts from which `tfaot weights` makes the file for other numbers: how the object was asked for, and where arrays lie in it.
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

/// Bounds on what a call takes.
#[derive(Debug, Default)]
pub struct Limits {
    /// The stack depth of functions by symbol.
    pub stack: StackDepths,
    /// The loops of each function, in the order of the face.
    pub loops: Vec<LoopCounts>,
}

/// Function number `number` of the model.
fn function(entry: &EntryPoint, number: usize, limits: &Limits) -> Value {
    let EntryPoint { name, function, program, sizes, rungs, .. } = entry;
    let changed = program.state.iter().filter(|v| v.changed);
    let fields = names::of_sizes(sizes);
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
        "stack_bytes": limits.stack.frame_bytes(function),
        "loops": limits.loops.get(number).map(loops),
    })
}

/// The most that a call does; `null` where values of the call decide how often a loop runs.
fn loops(counts: &LoopCounts) -> Value {
    let kernel = |kernel: &KernelLoops| json!({"label": kernel.label, "chunks": kernel.chunks, "iterations": kernel.iterations, "launches": kernel.launches});
    json!({
        "launches": counts.launches,
        "iterations": counts.iterations,
        "kernels": counts.kernels.iter().map(kernel).collect::<Value>(),
    })
}

/// A list of tensors, each with the number of the size of each axis where `axes` has some.
fn tensors_with_axes(infos: &[TensorInfo], axes: &[Vec<Option<usize>>]) -> Vec<Value> {
    let mut all = tensors(infos);
    all.iter_mut().zip(axes).for_each(|(object, axes)| object["axes"] = json!(axes));
    all
}

/// The precision that was asked for, and how many bytes of constants that saved.
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
