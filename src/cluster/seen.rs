//! What the pass was handed: nodes under TensorFlow's numbers, with the edges that its steps before left.
use super::flow::{CONTROL, Flow};
use crate::graph::{Graph, NodeId};
use std::collections::HashMap;

/// A graph as the pass sees it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// `_SOURCE`, `_SINK`, and the nodes in the order of their numbers.
    pub nodes: Vec<SeenNode>,
    /// Edges by the numbers of their ends, those at `_SOURCE` and `_SINK` included.
    pub edges: Vec<(u32, u32)>,
    /// Whether the pass came to form clusters: there was a candidate, and nothing stopped it before.
    pub marked: bool,
}

/// A node of it.
#[derive(Clone, Debug)]
pub struct SeenNode {
    /// Its name.
    pub name: String,
    /// The node of the graph that it is, or is a copy of; `None` for `_SOURCE` and `_SINK`.
    pub of: Option<NodeId>,
    /// Its op.
    pub op: String,
    /// Its inputs as a NodeDef spells them: data by slot, then `^control` by name.
    pub inputs: Vec<String>,
}

impl Seen {
    /// `flow`, which was imported from `graph`.
    pub(super) fn of(flow: &Flow, graph: &Graph) -> Seen {
        let places: HashMap<*const _, NodeId> = graph.nodes.iter().map(|(id, n)| (std::ptr::from_ref(n), id)).collect();
        let node = |n: u32| SeenNode {
            name: flow.name(n).to_string(),
            of: flow.nodes[n as usize].node.and_then(|node| places.get(&std::ptr::from_ref(node)).copied()),
            op: flow.op(n).to_string(),
            inputs: inputs(flow, n),
        };
        Seen {
            nodes: (0..flow.nodes.len() as u32).map(node).collect(),
            edges: flow.edges.iter().flatten().map(|e| (e.src, e.dst)).collect(),
            marked: false,
        }
    }
}

fn inputs(flow: &Flow, n: u32) -> Vec<String> {
    let mut data: Vec<_> = flow.ins(n).filter(|e| e.dst_port != CONTROL).collect();
    data.sort_by_key(|e| e.dst_port);
    let mut controls: Vec<&str> =
        flow.ins(n).filter(|e| e.dst_port == CONTROL && e.src > 1).map(|e| flow.name(e.src)).collect();
    controls.sort_unstable();
    controls.dedup();
    let spelled = data.into_iter().map(|e| match e.src_port {
        0 => flow.name(e.src).to_string(),
        port => format!("{}:{port}", flow.name(e.src)),
    });
    spelled.chain(controls.into_iter().map(|name| format!("^{name}"))).collect()
}
