//! Which nodes of a graph some outputs need, producers first.
use crate::graph::{Endpoint, Graph, NodeId};

/// An edge into a node of this op closes a loop of control flow v1; it is not followed, so that such graphs have an order
/// and each of their nodes can be told about.
const BACK_EDGE: &str = "NextIteration";

/// The nodes that `targets` need through data edges, without following an output that `is_seed`, producers before users;
/// `Err` names a node on a cycle.
pub(super) fn needed(
    graph: &Graph,
    targets: &[Endpoint],
    is_seed: impl Fn(&Endpoint) -> bool,
) -> Result<Vec<NodeId>, NodeId> {
    let mut marked = vec![false; graph.nodes.len()];
    let mut stack: Vec<NodeId> = targets.iter().filter(|e| !is_seed(e)).map(|e| e.node).collect();
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut marked[id.0 as usize], true) {
            continue;
        }
        stack.extend(graph.nodes[id].inputs.iter().filter(|e| !is_seed(e)).map(|e| e.node));
    }
    let mut missing = vec![0u32; graph.nodes.len()];
    let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    let mut order = Vec::new();
    for (id, node) in graph.nodes.iter().filter(|(id, _)| marked[id.0 as usize]) {
        if &*node.op != BACK_EDGE {
            for from in node.inputs.iter().filter(|e| !is_seed(e)) {
                users[from.node.0 as usize].push(id);
                missing[id.0 as usize] += 1;
            }
        }
        if missing[id.0 as usize] == 0 {
            order.push(id);
        }
    }
    let mut at = 0;
    while at < order.len() {
        for &user in &users[order[at].0 as usize] {
            missing[user.0 as usize] -= 1;
            if missing[user.0 as usize] == 0 {
                order.push(user);
            }
        }
        at += 1;
    }
    match graph.nodes.ids().find(|id| missing[id.0 as usize] > 0) {
        Some(id) => Err(id),
        None => Ok(order),
    }
}
