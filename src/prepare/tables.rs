//! Mutable lookup tables as state variables: the keys, a value for each key, and the number of keys, up to a capacity.
use super::Request;
use super::entries::MAX_ELEMENTS;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{
    Attr, Graph, Node, NodeId, PartialShape, Program, TABLE_PARTS, TfType, Variable, VariableRole, is_table,
};
use crate::lower::Access;
use crate::ops;
use crate::tensor::{Tensor, element_count};
use std::collections::BTreeMap;

/// Default capacity in elements; at least twice the initial number of elements is used.
const DEFAULT_CAPACITY: u64 = 1024;

/// State variables of the tables that calls change; `used` holds the strongest access through each node that creates a handle.
///
/// # Errors
/// `TableContents` for a table with unknown initial contents, `UnsupportedCase` for values without fixed sizes, `TooLarge`.
pub fn table_variables(program: &Program, request: &Request, used: &BTreeMap<NodeId, Access>) -> Result<Vec<Variable>> {
    let nodes = &program.graph.nodes;
    let mut tables: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    let mut changed: Vec<&str> = Vec::new();
    for (&id, &access) in used.iter().filter(|(id, _)| holds_numbers(&nodes[**id])) {
        let name = nodes[id].variable_name();
        tables.entry(name).or_default().push(id);
        if access == Access::Write && !changed.contains(&name) {
            changed.push(name);
        }
    }
    let mut all = Vec::new();
    for name in changed {
        let handles = &tables[name];
        let node = &nodes[handles[0]];
        let parts =
            initial_arrays(&program.graph, node, request).map_err(|e| e.map(|d| d.at_node(&node.name, &node.op)))?;
        for (part, value) in parts {
            let mut own = format!("{}/{part}", node.name);
            while program.variables.iter().chain(&all).any(|v: &Variable| v.name == own) {
                own.push('_');
            }
            all.push(Variable {
                name: own,
                called: None,
                handles: handles.iter().map(|&id| nodes[id].name.clone()).collect(),
                shared_name: node.str("shared_name").unwrap_or_default().to_string(),
                by_reference: false,
                dtype: TfType::Data(value.dtype),
                shape: PartialShape(Some(value.dims.iter().map(|&d| Some(d)).collect())),
                value: Some(value),
                role: VariableRole::Table,
            });
        }
    }
    Ok(all)
}

/// Whether a node creates the handle of a mutable table from integers to numbers.
fn holds_numbers(node: &Node) -> bool {
    let dtype = |name: &str| node.tf_type(name).and_then(TfType::dtype);
    is_table(node)
        && node.op.contains("Mutable")
        && dtype("key_dtype").is_some_and(|t| t.is_integer())
        && dtype("value_dtype").is_some()
}

/// Initial arrays of a table, extended to its capacity.
fn initial_arrays(graph: &Graph, node: &Node, request: &Request) -> Result<[(&'static str, Tensor); TABLE_PARTS]> {
    if let Some(why) = node.str(crate::graph::CONTENTS_UNKNOWN) {
        let d = Diagnostic::new(Code::TableContents, "the contents of the table are not known").note(why);
        return Err(d.into());
    }
    let row = match node.attr("value_shape") {
        Some(Attr::Shape(shape)) => shape.fixed(),
        _ => Some(Vec::new()),
    };
    let row = row.ok_or_else(|| Error::user(Code::UnsupportedCase, "the values of the table have no fixed sizes"))?;
    let marks: Vec<&Tensor> = node.inputs.iter().filter_map(|e| constant_tensor(graph, e.node)).collect();
    let given = ops::table_contents(node, &row, &marks)?;
    let room = initial_capacity(request, &node.name, given.count() as u64);
    let bytes = [&[room], &row[..]].concat();
    if element_count(&bytes).is_none_or(|n| n > MAX_ELEMENTS || room > 1 << 24) {
        return Err(Error::user(Code::TooLarge, format!("the table has room for {room} keys of values {row:?}")));
    }
    Ok(given.variables(room))
}

/// Capacity in elements of a table or resizable axis that initially holds `count`: the user's `--bound` for the node `handle`, else the
/// default.
pub(super) fn initial_capacity(request: &Request, handle: &str, count: u64) -> u64 {
    let bound = |name: &str| request.bounds.iter().rev().find(|(of, _)| of == name).map(|(_, most)| *most);
    let assumed = DEFAULT_CAPACITY.max(count.saturating_mul(2));
    bound(handle).or_else(|| bound("")).unwrap_or(assumed).max(count).max(1)
}

/// Tensor of a constant node, found through Identity nodes.
fn constant_tensor(graph: &Graph, mut id: NodeId) -> Option<&Tensor> {
    for _ in 0..graph.nodes.len() {
        let node = &graph.nodes[id];
        match (&*node.op, node.attr("value"), node.inputs.first()) {
            ("Const", Some(Attr::Tensor(value)), _) => return Some(value),
            ("Identity", _, Some(next)) => id = next.node,
            _ => return None,
        }
    }
    None
}
