//! The part of a saved model that its signatures reach: nodes and functions.
use super::Request;
use super::names::NodesByName;
use super::signature;
use crate::diag::Result;
use crate::graph::{Graph, NodeId, Program};
use std::collections::HashSet;
use std::sync::Arc;

/// The parts of a program that its signatures reach; savers and initialisers are not among them.
#[derive(Clone, Debug, Default)]
pub struct ReachableParts {
    /// The names of the nodes of the graph.
    pub nodes: HashSet<String>,
    /// The names of the functions.
    pub functions: HashSet<Arc<str>>,
}

/// Nodes and functions reached over data and control edges from the signature of `request`, or every signature where it names none, and from
/// the fetches of `request`; `None` where the program has no signature, so that nothing can be told apart. Feeds stop nothing.
///
/// # Errors
/// `BadOption` for a signature that is not there, `UnknownTensor` for a fetch.
pub fn served(program: &Program, request: &Request) -> Result<Option<ReachableParts>> {
    let names = NodesByName::new(program);
    let chosen: Vec<_> = match &request.signatures[..] {
        [] => signature::usable(program, &names).collect(),
        _ => signature::choose_all(program, &names, request)?,
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
    // An input that nothing uses is fed all the same.
    let inputs = chosen.iter().flat_map(|s| s.inputs.iter().map(|(_, tensor)| tensor));
    todo.extend(inputs.filter_map(|tensor| Some(names.endpoint("feed", tensor).ok()?.node)));
    let nodes = reached(&program.graph, todo);
    let functions = functions(program, &nodes);
    let nodes = nodes.into_iter().map(|id| program.graph.nodes[id].name.to_string()).collect();
    Ok(Some(ReachableParts { nodes, functions }))
}

fn reached(graph: &Graph, mut todo: Vec<NodeId>) -> HashSet<NodeId> {
    let mut seen = HashSet::new();
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            let node = &graph.nodes[id];
            todo.extend(node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied()));
        }
    }
    seen
}

fn functions(program: &Program, nodes: &HashSet<NodeId>) -> HashSet<Arc<str>> {
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    let mut todo: Vec<Arc<str>> = nodes.iter().flat_map(|&id| program.graph.nodes[id].called()).collect();
    while let Some(name) = todo.pop() {
        let Some(function) = program.functions.get(&name).filter(|_| !seen.contains(&name)) else { continue };
        todo.extend(function.graph.nodes.values().flat_map(|node| node.called()));
        seen.insert(name);
    }
    seen
}
