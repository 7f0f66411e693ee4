//! The variables of a program, with their values in the checkpoint.
//!
//! The checkpoint key of a variable is looked up in three places, in this order. (1) A function called by a signature takes the
//! handles of captured objects behind its arguments, and the object graph identifies these objects (`object_graph.rs`). (2) The part
//! of the graph that restores variables reads keys (`RestoreV2`) and assigns the values; Keras 3 has two handles of each variable,
//! only one of which is restored. (3) The variable's own name serves as the key. Handles with the same key belong to one variable.
use super::checkpoint::Checkpoint;
use super::object_graph::{CHECKPOINT_KEY, ObjectGraph};
use crate::diag::Result;
use crate::graph::{
    Attr, Endpoint, Graph, Node, NodeId, PartialShape, Program, TfType, Variable, VariableRole, is_handle,
};
use indexmap::IndexMap;
use std::collections::HashMap;

/// Maximum depth of nested calls that are searched for restored variables.
const MOST_CALLS: usize = 8;

/// Lists the variables of `program` in the order of their first handles.
///
/// Errors: those of reading a tensor, `BadEncoding` for a damaged object graph.
pub fn find_variables(program: &mut Program, objects: &ObjectGraph, checkpoint: Option<&Checkpoint>) -> Result<()> {
    if !program.graph.nodes.values().any(is_handle) {
        return Ok(());
    }
    let saved = checkpoint.map(|c| c.string(CHECKPOINT_KEY)).transpose()?.flatten();
    let mut keys = match saved {
        Some(saved) => captured(&program.graph, objects, &objects.checkpoint_keys(&saved)?),
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

/// A variable with the type, shape and names that the node of its handle declares.
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

/// Checkpoint keys of variables whose handles calls pass to the functions that captured them, by the node of the handle; `values` has the
/// keys by object.
fn captured(graph: &Graph, objects: &ObjectGraph, values: &HashMap<usize, String>) -> HashMap<NodeId, String> {
    let mut keys = HashMap::new();
    for node in graph.nodes.values() {
        let called = node.func("f").map_or(&*node.op, |f| &*f.name);
        let bound = objects.captured_objects(called);
        let Some(first) = node.inputs.len().checked_sub(bound.len()) else { continue };
        for (handle, object) in node.inputs[first..].iter().zip(bound) {
            let variable = trace_origin(graph, *handle).node;
            if let (true, Some(key)) = (is_handle(&graph.nodes[variable]), values.get(object)) {
                keys.entry(variable).or_insert_with(|| key.clone());
            }
        }
    }
    keys
}

/// Finds the checkpoint key assigned to each variable; `handles` maps nodes of `graph` to the nodes of variables.
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
                let variable = node.inputs.first().and_then(|e| handles.get(&trace_origin(graph, *e).node));
                let key = node.inputs.get(1).and_then(|e| restored_checkpoint_key(graph, *e));
                if let (Some(&variable), Some(key)) = (variable, key) {
                    keys.entry(variable).or_insert(key);
                }
            }
            "PartitionedCall" | "StatefulPartitionedCall" if depth < MOST_CALLS => {
                let called = node.func("f").and_then(|f| program.functions.get(&f.name));
                let Some(function) = called.filter(|f| f.args.len() == node.inputs.len()) else { continue };
                let pairs = function.args.iter().zip(&node.inputs);
                let inner: HashMap<NodeId, NodeId> =
                    pairs.filter_map(|(&arg, e)| Some((arg, *handles.get(&trace_origin(graph, *e).node)?))).collect();
                if !inner.is_empty() && restores(&function.graph) {
                    restored(program, &function.graph, &inner, depth + 1, keys);
                }
            }
            _ => {}
        }
    }
}

/// Whether a graph may restore a variable, directly or in a function that it calls.
fn restores(graph: &Graph) -> bool {
    graph.nodes.values().any(|n| &*n.op == "RestoreV2" || n.op.ends_with("PartitionedCall"))
}

/// The tensor of which `e` is an identity, reshape or cast, through any number of these ops.
pub(super) fn trace_origin(graph: &Graph, mut e: Endpoint) -> Endpoint {
    for _ in 0..graph.nodes.len() {
        let node = &graph.nodes[e.node];
        match (&*node.op, node.inputs.first()) {
            ("Identity" | "Reshape" | "Cast", Some(&next)) => e = next,
            _ => break,
        }
    }
    e
}

/// The key with which `RestoreV2` reads the value of `e`; `None` if it comes from another op.
pub(super) fn restored_checkpoint_key(graph: &Graph, e: Endpoint) -> Option<String> {
    let from = trace_origin(graph, e);
    let restore = Some(&graph.nodes[from.node]).filter(|n| &*n.op == "RestoreV2")?;
    let names = &graph.nodes[trace_origin(graph, *restore.inputs.get(1)?).node];
    let Some(Attr::Strings(_, names)) = names.attr("value") else { return None };
    String::from_utf8(names.get(from.port as usize)?.to_vec()).ok()
}
