//! Execution order of the nodes that given outputs of a graph depend on.
use crate::graph::{Endpoint, Graph, NodeId};
use crate::util::id_vec::IdVec;
use crate::util::order;

/// Nodes that `targets` need through data edges, in topological order; edges from outputs for which `is_seed` holds are not followed.
/// `Err` holds a node on a cycle.
pub(super) fn needed_nodes(
    graph: &Graph,
    targets: &[Endpoint],
    is_seed: impl Fn(&Endpoint) -> bool,
) -> Result<Vec<NodeId>, NodeId> {
    let starts = targets.iter().filter(|e| !is_seed(e)).map(|e| e.node);
    let marked = backward_closure(graph, starts, &is_seed, false);
    topological_order(graph, &marked, is_seed, false)
}

/// Nodes that `targets` need, and nodes with side effects (`acts`) that `targets` or `roots` reach over data and control edges, with what
/// these need. The order respects both sorts of edges where there are side effects, else data edges alone. `Err` holds a node on a cycle.
pub(super) fn needed_or_effectful_nodes(
    graph: &Graph,
    targets: &[Endpoint],
    roots: &[NodeId],
    is_seed: impl Fn(&Endpoint) -> bool,
    acts: &IdVec<NodeId, bool>,
) -> Result<Vec<NodeId>, NodeId> {
    let starts = || targets.iter().filter(|e| !is_seed(e)).map(|e| e.node);
    let reached = backward_closure(graph, starts().chain(roots.iter().copied()), &is_seed, true);
    let actors: Vec<NodeId> = graph.nodes.ids().filter(|&id| reached[id] && acts[id]).collect();
    if actors.is_empty() {
        return needed_nodes(graph, targets, is_seed);
    }
    let run = backward_closure(graph, starts().chain(actors), &is_seed, false);
    let order = topological_order(graph, &reached, is_seed, true)?;
    Ok(order.into_iter().filter(|&id| run[id]).collect())
}

/// Nodes reachable backwards from `starts` over data edges except those from fed outputs (`seeds`), and with `controls` over control edges
/// too.
fn backward_closure(
    graph: &Graph,
    starts: impl Iterator<Item = NodeId>,
    is_seed: &impl Fn(&Endpoint) -> bool,
    controls: bool,
) -> IdVec<NodeId, bool> {
    let mut marked: IdVec<NodeId, bool> = graph.nodes.ids().map(|_| false).collect();
    let mut stack: Vec<NodeId> = starts.collect();
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut marked[id], true) {
            continue;
        }
        let node = &graph.nodes[id];
        stack.extend(node.inputs.iter().filter(|e| !is_seed(e)).map(|e| e.node));
        if controls {
            stack.extend(node.controls.iter().copied());
        }
    }
    marked
}

/// Nodes for which `marked` is true, in topological order; `Err` holds a node on a cycle.
fn topological_order(
    graph: &Graph,
    marked: &IdVec<NodeId, bool>,
    is_seed: impl Fn(&Endpoint) -> bool,
    controls: bool,
) -> Result<Vec<NodeId>, NodeId> {
    let mut edges = Vec::new();
    for (id, node) in graph.nodes.iter().filter(|(id, _)| marked[*id]) {
        let data = node.inputs.iter().filter(|e| !is_seed(e)).map(|e| e.node);
        let waits = node.controls.iter().copied().filter(|_| controls);
        edges.extend(data.chain(waits).map(|from| (from, id)));
    }
    Ok(order::sorted(graph.nodes.len(), &edges)?.into_iter().filter(|&id| marked[id]).collect())
}
