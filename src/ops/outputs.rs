//! Number of outputs of a node.
use crate::graph::{Attr, Function, Node};
use indexmap::IndexMap;
use std::sync::Arc;

/// Number of outputs of `node`, with the members of output lists counted one by one; `None` if neither the op's definition nor
/// the attributes tell it.
pub fn output_count(node: &Node, functions: &IndexMap<Arc<str>, Function>) -> Option<usize> {
    if let Some(function) = functions.get(&node.op) {
        return Some(function.rets.len());
    }
    let outputs = match super::find_op(&node.op) {
        Some(row) => row.output_names(),
        None => super::op_lowering::signature_outputs(super::host::find_host_op(&node.op)?.signature),
    };
    let lists = outputs.iter().filter(|name| name.ends_with('*')).count();
    match lists {
        0 => Some(outputs.len()),
        // All output lists of such an op have the same length.
        n if node.attr("top_paths").is_some() => Some(outputs.len() - n + n * list_length(node)?),
        1 => Some(outputs.len() - 1 + list_length(node)?),
        _ => None,
    }
}

/// Length of an op's only output list, which one of these attributes always gives.
fn list_length(node: &Node) -> Option<usize> {
    for name in
        ["num_split", "num", "Tout", "T", "output_types", "out_types", "dtypes", "num_partitions", "N", "top_paths"]
    {
        match node.attr(name) {
            Some(Attr::Int(n)) => return usize::try_from(*n).ok().filter(|&n| n < 1 << 16),
            Some(Attr::Types(types)) => return Some(types.len()),
            Some(Attr::EmptyList) => return Some(0),
            _ => {}
        }
    }
    None
}
