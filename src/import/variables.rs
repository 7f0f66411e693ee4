//! The variables of a program, with the values that its checkpoint has for them.
//!
//! Which tensor of the checkpoint a variable takes is said in three places, asked in this order. A function that a signature
//! calls takes the handles of the objects that it has captured behind its arguments, and the object graph says which these
//! are (`object_graph.rs`). The part of the graph that restores variables reads names (`RestoreV2`) and assigns what it read;
//! Keras 3 has two handles of each variable, and only one of them is restored. A variable that neither knows is looked for
//! under its own name. Handles that take the same tensor are handles of one variable.
use super::checkpoint::Checkpoint;
use super::object_graph::{CHECKPOINT_KEY, ObjectGraph};
use crate::diag::Result;
use crate::graph::{
    Attr, Endpoint, Graph, Node, NodeId, PartialShape, Program, TfType, Variable, VariableRole, is_handle,
};
use indexmap::IndexMap;
use std::collections::HashMap;

/// Calls of calls are followed this deep to where a variable is restored.
const MOST_CALLS: usize = 8;

/// Lists the variables of `program` in the order of their first handles.
///
/// Errors: those of reading a tensor, `BadEncoding` for a damaged object graph.
pub fn find(program: &mut Program, objects: &ObjectGraph, checkpoint: Option<&Checkpoint>) -> Result<()> {
    if !program.graph.nodes.values().any(is_handle) {
        return Ok(());
    }
    let saved = checkpoint.map(|c| c.string(CHECKPOINT_KEY)).transpose()?.flatten();
    let mut keys = match saved {
        Some(saved) => captured(&program.graph, objects, &objects.keys(&saved)?),
        None => HashMap::new(),
    };
    let top: HashMap<NodeId, NodeId> =
        program.graph.nodes.iter().filter(|(_, n)| is_handle(n)).map(|(id, _)| (id, id)).collect();
    restored(program, &program.graph, &top, 0, &mut keys);
    let mut all: IndexMap<String, Variable> = IndexMap::new();
    for (id, node) in program.graph.nodes.iter().filter(|(_, n)| is_handle(n)) {
        let shared = node.str("shared_name").filter(|n| !n.is_empty());
        let own = shared.unwrap_or(&node.name);
        let key = keys.get(&id).map_or(own, String::as_str);
        if let Some(same) = all.get_mut(key) {
            same.handles.push(node.name.clone());
            continue;
        }
        let value = checkpoint.map(|c| c.tensor(key)).transpose()?.flatten();
        all.insert(key.to_string(), Variable { value, ..declared(node, shared) });
    }
    program.variables = all.into_values().collect();
    Ok(())
}

/// A variable as the node of its handle declares it.
fn declared(node: &Node, shared: Option<&str>) -> Variable {
    let shape = if let Some(Attr::Shape(shape)) = node.attr("shape") { shape.clone() } else { PartialShape::default() };
    Variable {
        name: node.name.to_string(),
        called: None,
        handles: vec![node.name.clone()],
        shared_name: shared.unwrap_or("").to_string(),
        by_reference: &*node.op != "VarHandleOp",
        dtype: node.tf_type("dtype").unwrap_or(TfType::Unknown(0)),
        shape,
        value: None,
        role: VariableRole::Model,
    }
}

/// The checkpoint's names for the handles that calls hand to functions which have captured them; `values` has the names by
/// object.
fn captured(graph: &Graph, objects: &ObjectGraph, values: &HashMap<usize, String>) -> HashMap<NodeId, String> {
    let mut keys = HashMap::new();
    for node in graph.nodes.values() {
        let called = node.func("f").map_or(&*node.op, |f| &*f.name);
        let bound = objects.captured(called);
        let Some(first) = node.inputs.len().checked_sub(bound.len()) else { continue };
        for (handle, object) in node.inputs[first..].iter().zip(bound) {
            let variable = origin(graph, *handle).node;
            if let (true, Some(key)) = (is_handle(&graph.nodes[variable]), values.get(object)) {
                keys.entry(variable).or_insert_with(|| key.clone());
            }
        }
    }
    keys
}

/// Finds which checkpoint entry is assigned to which variable; `handles` are the variables by node of `graph`.
fn restored(
    program: &Program,
    graph: &Graph,
    handles: &HashMap<NodeId, NodeId>,
    depth: usize,
    keys: &mut HashMap<NodeId, String>,
) {
    for node in graph.nodes.values() {
        match &*node.op {
            "AssignVariableOp" | "Assign" => {
                let variable = node.inputs.first().and_then(|e| handles.get(&origin(graph, *e).node));
                let key = node.inputs.get(1).and_then(|e| restored_name(graph, *e));
                if let (Some(&variable), Some(key)) = (variable, key) {
                    keys.entry(variable).or_insert(key);
                }
            }
            "PartitionedCall" | "StatefulPartitionedCall" if depth < MOST_CALLS => {
                let called = node.func("f").and_then(|f| program.functions.get(&f.name));
                let Some(function) = called.filter(|f| f.args.len() == node.inputs.len()) else { continue };
                let pairs = function.args.iter().zip(&node.inputs);
                let inner: HashMap<NodeId, NodeId> =
                    pairs.filter_map(|(&arg, e)| Some((arg, *handles.get(&origin(graph, *e).node)?))).collect();
                if !inner.is_empty() && restores(&function.graph) {
                    restored(program, &function.graph, &inner, depth + 1, keys);
                }
            }
            _ => {}
        }
    }
}

/// Whether a graph may restore something, itself or by a call.
fn restores(graph: &Graph) -> bool {
    graph.nodes.values().any(|n| &*n.op == "RestoreV2" || n.op.ends_with("PartitionedCall"))
}

/// The output that `e` is an identity, reshape or cast of, through any number of them.
pub(super) fn origin(graph: &Graph, mut e: Endpoint) -> Endpoint {
    for _ in 0..graph.nodes.len() {
        let node = &graph.nodes[e.node];
        match (&*node.op, node.inputs.first()) {
            ("Identity" | "Reshape" | "Cast", Some(&next)) => e = next,
            _ => break,
        }
    }
    e
}

/// The name under which `RestoreV2` reads the value that arrives at `e`.
pub(super) fn restored_name(graph: &Graph, e: Endpoint) -> Option<String> {
    let from = origin(graph, e);
    let restore = Some(&graph.nodes[from.node]).filter(|n| &*n.op == "RestoreV2")?;
    let names = &graph.nodes[origin(graph, *restore.inputs.get(1)?).node];
    let Some(Attr::Strings(_, names)) = names.attr("value") else { return None };
    String::from_utf8(names.get(from.port as usize)?.to_vec()).ok()
}
