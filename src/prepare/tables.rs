//! Lookup tables that calls change, as variables: the keys, a value for each of them, and the size, up to a number of keys.
use super::Request;
use super::entries::MOST_ELEMENTS;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{
    Attr, Graph, Node, NodeId, PartialShape, Program, TABLE_PARTS, TfType, Variable, VariableRole, is_table,
};
use crate::lower::Access;
use crate::ops;
use crate::tensor::{Tensor, element_count};
use std::collections::BTreeMap;

/// Elements for which state has room where the caller says nothing, but not less than twice as many as it holds before any call.
const ASSUMED_ROOM: u64 = 1024;

/// The variables of those tables that calls change; `used` is what is done with the handles of the program's nodes.
///
/// # Errors
/// `TableContents` where a table is filled before any call and with what is not known, `UnsupportedCase` for values without fixed sizes,
/// `TooLarge`.
pub fn variables(program: &Program, request: &Request, used: &BTreeMap<NodeId, Access>) -> Result<Vec<Variable>> {
    let nodes = &program.graph.nodes;
    let mut tables: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    let mut changed: Vec<&str> = Vec::new();
    for (&id, &access) in used.iter().filter(|(id, _)| holds_numbers(&nodes[**id])) {
        let name = nodes[id].variable();
        tables.entry(name).or_default().push(id);
        if access == Access::Write && !changed.contains(&name) {
            changed.push(name);
        }
    }
    let mut all = Vec::new();
    for name in changed {
        let handles = &tables[name];
        let node = &nodes[handles[0]];
        let parts = parts(&program.graph, node, request).map_err(|e| e.map(|d| d.at_node(&node.name, &node.op)))?;
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

/// Whether a node gives the handle of a table from integers to numbers that may change.
fn holds_numbers(node: &Node) -> bool {
    let dtype = |name: &str| node.tf_type(name).and_then(TfType::dtype);
    is_table(node)
        && node.op.contains("Mutable")
        && dtype("key_dtype").is_some_and(|t| t.is_integer())
        && dtype("value_dtype").is_some()
}

/// The initial arrays of a table before any call, with room for as many keys as the caller allows.
fn parts(graph: &Graph, node: &Node, request: &Request) -> Result<[(&'static str, Tensor); TABLE_PARTS]> {
    if let Some(why) = node.str(crate::graph::CONTENTS_UNKNOWN) {
        let d = Diagnostic::new(Code::TableContents, "the contents of the table are not known").note(why);
        return Err(d.into());
    }
    let row = match node.attr("value_shape") {
        Some(Attr::Shape(shape)) => shape.fixed(),
        _ => Some(Vec::new()),
    };
    let row = row.ok_or_else(|| Error::user(Code::UnsupportedCase, "the values of the table have no fixed sizes"))?;
    let marks: Vec<&Tensor> = node.inputs.iter().filter_map(|e| constant(graph, e.node)).collect();
    let given = ops::table_contents(node, &row, &marks)?;
    let room = room(request, &node.name, given.count() as u64);
    let bytes = [&[room], &row[..]].concat();
    if element_count(&bytes).is_none_or(|n| n > MOST_ELEMENTS || room > 1 << 24) {
        return Err(Error::user(Code::TooLarge, format!("the table has room for {room} keys of values {row:?}")));
    }
    Ok(given.parts(room))
}

/// The elements for which state has room that holds `count` of them before any call: as many as the caller allows at the node of its handle.
pub(super) fn room(request: &Request, handle: &str, count: u64) -> u64 {
    let bound = |name: &str| request.bounds.iter().rev().find(|(of, _)| of == name).map(|(_, most)| *most);
    let assumed = ASSUMED_ROOM.max(count.saturating_mul(2));
    bound(handle).or_else(|| bound("")).unwrap_or(assumed).max(count).max(1)
}

/// The tensor of a constant, behind nodes that pass it on.
fn constant(graph: &Graph, mut id: NodeId) -> Option<&Tensor> {
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
