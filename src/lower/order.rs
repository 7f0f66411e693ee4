//! Nodes of a graph that given outputs depend on, producers first.
use crate::graph::{Endpoint, Graph, NodeId};
use crate::util::id_vec::IdVec;
use crate::util::order;

/// The nodes that `targets` need through data edges, without following an output that `is_seed`, producers before users;
/// `Err` names a node on a cycle.
pub(super) fn needed(
    graph: &Graph,
    targets: &[Endpoint],
    is_seed: impl Fn(&Endpoint) -> bool,
) -> Result<Vec<NodeId>, NodeId> {
    let starts = targets.iter().filter(|e| !is_seed(e)).map(|e| e.node);
    let marked = closure(graph, starts, &is_seed, false);
    sorted(graph, &marked, is_seed, false)
}

/// The same where nodes may act on the state: those that do run although no data edge asks for them, if `targets` or `roots` reach
/// them also over control edges, and then the order is that of both sorts of edges.
pub(super) fn acting(
    graph: &Graph,
    targets: &[Endpoint],
    roots: &[NodeId],
    is_seed: impl Fn(&Endpoint) -> bool,
    acts: &IdVec<NodeId, bool>,
) -> Result<Vec<NodeId>, NodeId> {
    let starts = || targets.iter().filter(|e| !is_seed(e)).map(|e| e.node);
    let reached = closure(graph, starts().chain(roots.iter().copied()), &is_seed, true);
    let actors: Vec<NodeId> = graph.nodes.ids().filter(|&id| reached[id] && acts[id]).collect();
    if actors.is_empty() {
        return needed(graph, targets, is_seed);
    }
    let run = closure(graph, starts().chain(actors), &is_seed, false);
    let order = sorted(graph, &reached, is_seed, true)?;
    Ok(order.into_iter().filter(|&id| run[id]).collect())
}

/// Nodes that are reachable backwards from `starts` over data edges other than seeds, and with `controls` over control edges too.
fn closure(
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

/// The marked nodes, producers before users; `Err` names a node on a cycle.
fn sorted(
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
