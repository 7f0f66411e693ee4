//! `NAME.json`: what the header says, for programs.
use super::header::WORKSPACE_ALIGN;
use crate::kernel::Program;
use crate::target::{Reduced, Target};
use crate::tensor::TensorInfo;
use serde_json::{Value, json};

/// The JSON document of a model, with a line break at its end.
pub fn metadata(program: &Program, targets: &[&Target]) -> String {
    let one = |t: &&Target| json!({"triple": t.triple, "cpu": t.cpu, "features": t.features});
    let document = json!({
        "abi_version": 1,
        "generator": concat!("tfaot ", env!("CARGO_PKG_VERSION")),
        "name": program.name,
        "source": program.source,
        "targets": targets.iter().map(one).collect::<Vec<_>>(),
        "args": tensors(&program.args),
        "results": tensors(&program.results),
        "workspace_bytes": program.workspace_bytes,
        "workspace_align": WORKSPACE_ALIGN,
        "flops": program.flops,
        "weights_bytes": program.weights_bytes,
        "precision": precision(&program.reduced),
    });
    format!("{document:#}\n")
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
