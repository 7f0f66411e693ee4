//! Reachability of nodes and functions of a saved model from its signatures.
use super::Request;
use super::names::NodesByName;
use super::signature;
use crate::diag::Result;
use crate::graph::{Graph, NodeId, Program};
use std::collections::HashSet;
use std::sync::Arc;

/// Nodes and functions reachable from signatures; savers and initializers are not among them.
#[derive(Clone, Debug, Default)]
pub struct ReachableParts {
    /// Names of the nodes of the top-level graph.
    pub nodes: HashSet<String>,
    /// Names of the functions.
    pub functions: HashSet<Arc<str>>,
}

/// Nodes and functions reachable over data and control edges from the fetches of `request` and from its signatures, or from every signature
/// if it names none. `None` if the program has no signature. Feeds do not stop the search.
///
/// # Errors
/// `BadOption` for an unknown signature, `UnknownTensor` for an unknown fetch.
pub fn reachable_from_signatures(program: &Program, request: &Request) -> Result<Option<ReachableParts>> {
    let names = NodesByName::new(program);
    let chosen: Vec<_> = match &request.signatures[..] {
        [] => signature::usable_signatures(program, &names).collect(),
        _ => signature::choose_signatures(program, &names, request)?,
    };
    if chosen.is_empty() {
        return Ok(None);
    }
    let outputs = chosen.iter().flat_map(|s| s.outputs.iter().map(|(_, tensor)| tensor));
    let mut todo = Vec::new();
    for tensor in outputs.chain(&request.fetches) {
        todo.push(names.endpoint("fetch", tensor)?.node);
    }
    todo.extend(chosen.iter().filter_map(|s| names.node(s.runs.as_deref()?)));
    // inputs that no node uses are fed too
    let inputs = chosen.iter().flat_map(|s| s.inputs.iter().map(|(_, tensor)| tensor));
    todo.extend(inputs.filter_map(|tensor| Some(names.endpoint("feed", tensor).ok()?.node)));
    let nodes = reachable_nodes(&program.graph, todo);
    let functions = reachable_functions(program, &nodes);
    let nodes = nodes.into_iter().map(|id| program.graph.nodes[id].name.to_string()).collect();
    Ok(Some(ReachableParts { nodes, functions }))
}

fn reachable_nodes(graph: &Graph, mut todo: Vec<NodeId>) -> HashSet<NodeId> {
    let mut seen = HashSet::new();
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            let node = &graph.nodes[id];
            todo.extend(node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied()));
        }
    }
    seen
}

fn reachable_functions(program: &Program, nodes: &HashSet<NodeId>) -> HashSet<Arc<str>> {
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    let mut todo: Vec<Arc<str>> = nodes.iter().flat_map(|&id| program.graph.nodes[id].called_functions()).collect();
    while let Some(name) = todo.pop() {
        let Some(function) = program.functions.get(&name).filter(|_| !seen.contains(&name)) else { continue };
        todo.extend(function.graph.nodes.values().flat_map(|node| node.called_functions()));
        seen.insert(name);
    }
    seen
}
