//! Snapshot of the graph that the pass was handed: nodes under TensorFlow's numbers, with the edges that its earlier steps left.
use super::Clustering;
use super::flow::{CONTROL, Flow};
use super::reason::ExclusionReason;
use crate::graph::{Graph, Node, NodeId};
use std::collections::HashMap;

/// A graph as the pass sees it.
#[derive(Clone, Debug, Default)]
pub struct GraphSnapshot {
    /// `_SOURCE`, `_SINK`, and the nodes in the order of their numbers.
    pub nodes: Vec<SnapshotNode>,
    /// Edges by the numbers of their ends, those at `_SOURCE` and `_SINK` included.
    pub edges: Vec<(u32, u32)>,
    /// Whether the pass came to form clusters: there was a candidate, and nothing stopped it before.
    pub marked: bool,
}

/// A node of it.
#[derive(Clone, Debug)]
pub struct SnapshotNode {
    /// The node's name.
    pub name: String,
    /// The node of the graph that it is, or is a copy of; `None` for `_SOURCE` and `_SINK`.
    pub of: Option<NodeId>,
    /// The node's op.
    pub op: String,
    /// The node itself where the graph has none: a pass made it.
    pub made: Option<Box<Node>>,
    /// The index of the node's cluster.
    pub cluster: Option<u32>,
    /// Inputs as a NodeDef spells them: data by slot, then `^control` by name.
    pub inputs: Vec<String>,
}

impl GraphSnapshot {
    /// `flow`, which was imported from `graph`.
    pub(super) fn capture(flow: &Flow, graph: &Graph) -> GraphSnapshot {
        let places: HashMap<*const _, NodeId> = graph.nodes.iter().map(|(id, n)| (std::ptr::from_ref(n), id)).collect();
        let node = |n: u32| {
            let node = flow.nodes[n as usize].node;
            let of = node.and_then(|node| places.get(&std::ptr::from_ref(node)).copied());
            SnapshotNode {
                name: flow.name(n).to_string(),
                of,
                made: node.filter(|_| of.is_none()).map(|node| Box::new(node.clone())),
                cluster: None,
                op: flow.op(n).to_string(),
                inputs: inputs(flow, n),
            }
        };
        GraphSnapshot {
            nodes: (0..flow.nodes.len() as u32).map(node).collect(),
            edges: flow.edges.iter().flatten().map(|e| (e.src, e.dst)).collect(),
            marked: false,
        }
    }
    /// The snapshot with the cluster of each node.
    pub(super) fn marked(mut self, marks: &[Result<u32, ExclusionReason>]) -> GraphSnapshot {
        for (node, mark) in self.nodes.iter_mut().zip(marks) {
            node.cluster = mark.as_ref().ok().copied();
        }
        self
    }
    /// The snapshot without the nodes that passes removed; the node numbers in its edges are no longer valid.
    pub(super) fn without_gone(mut self, flow: &Flow) -> GraphSnapshot {
        let mut n = 0;
        self.nodes.retain(|_| {
            n += 1;
            !flow.nodes[n - 1].gone
        });
        self.edges.clear();
        self
    }
    /// The name of the cluster of each node that is in one of `found`.
    pub fn clusters<'a>(&'a self, found: &'a Clustering) -> HashMap<&'a str, &'a str> {
        let named = |at: u32| found.clusters[at as usize].name.as_str();
        self.nodes.iter().filter_map(|n| Some((n.name.as_str(), named(n.cluster?)))).collect()
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
