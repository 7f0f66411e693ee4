//! How many outputs a node has.
use crate::graph::{Attr, Function, Node};
use indexmap::IndexMap;
use std::sync::Arc;

/// Ops without outputs that have no row.
const NONE: &[&str] = &[
    "NoOp",
    "Assert",
    "ControlTrigger",
    "_Retval",
    "PrintV2",
    "SaveV2",
    "Save",
    "AssignVariableOp",
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "InitializeTableV2",
    "InitializeTableFromTextFileV2",
    "LookupTableImportV2",
    "Abort",
];

/// The number of outputs of `node`, counting lists one by one; `None` where neither the op's row nor the attributes tell.
pub fn output_count(node: &Node, functions: &IndexMap<Arc<str>, Function>) -> Option<usize> {
    if let Some(function) = functions.get(&node.op) {
        return Some(function.rets.len());
    }
    if NONE.contains(&&*node.op) {
        return Some(0);
    }
    let outputs = super::find(&node.op)?.outputs();
    let lists = outputs.iter().filter(|name| name.ends_with('*')).count();
    match lists {
        0 => Some(outputs.len()),
        1 => Some(outputs.len() - 1 + list_length(node)?),
        _ => None,
    }
}

/// The length of an op's only list of outputs, which is always named in one of these attributes.
fn list_length(node: &Node) -> Option<usize> {
    for name in ["num_split", "num", "Tout", "T", "output_types", "out_types", "dtypes", "N"] {
        match node.attr(name) {
            Some(Attr::Int(n)) => return usize::try_from(*n).ok().filter(|&n| n < 1 << 16),
            Some(Attr::Types(types)) => return Some(types.len()),
            Some(Attr::EmptyList) => return Some(0),
            _ => {}
        }
    }
    None
}
