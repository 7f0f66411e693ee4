//! Snapshot of the graph that the clustering pass received: nodes under TensorFlow's numbers, and their edges.
use super::Clustering;
use super::flow::{CONTROL, FlowGraph};
use super::reason::ExclusionReason;
use crate::graph::{Graph, Node, NodeId};
use std::collections::HashMap;

/// A graph as the clustering pass received it.
#[derive(Clone, Debug, Default)]
pub struct GraphSnapshot {
    /// `_SOURCE`, `_SINK`, and the other nodes in the order of their numbers.
    pub nodes: Vec<SnapshotNode>,
    /// Edges by the numbers of their ends, including those from `_SOURCE` and to `_SINK`.
    pub edges: Vec<(u32, u32)>,
    /// Whether the clustering pass reached the formation of clusters: there was a candidate, and nothing stopped the pass before.
    pub marked: bool,
}

/// A node of a [`GraphSnapshot`].
#[derive(Clone, Debug)]
pub struct SnapshotNode {
    /// The node's name.
    pub name: String,
    /// The node of the graph that this node represents or copies; `None` for `_SOURCE`, `_SINK` and nodes that a pass made.
    pub source: Option<NodeId>,
    /// The node's op.
    pub op: String,
    /// The whole node, if a pass made it.
    pub created: Option<Box<Node>>,
    /// The index of the node's cluster.
    pub cluster: Option<u32>,
    /// Inputs in the syntax of NodeDef: data inputs by slot, then `^control` inputs by name.
    pub inputs: Vec<String>,
}

impl GraphSnapshot {
    /// Captures `flow`, which was imported from `graph`.
    pub(super) fn capture(flow: &FlowGraph, graph: &Graph) -> GraphSnapshot {
        let places: HashMap<*const _, NodeId> = graph.nodes.iter().map(|(id, n)| (std::ptr::from_ref(n), id)).collect();
        let node = |n: u32| {
            let node = flow.nodes[n as usize].node;
            let source = node.and_then(|node| places.get(&std::ptr::from_ref(node)).copied());
            SnapshotNode {
                name: flow.name(n).to_string(),
                source,
                created: node.filter(|_| source.is_none()).map(|node| Box::new(node.clone())),
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
    pub(super) fn with_clusters(mut self, marks: &[Result<u32, ExclusionReason>]) -> GraphSnapshot {
        for (node, mark) in self.nodes.iter_mut().zip(marks) {
            node.cluster = mark.as_ref().ok().copied();
        }
        self
    }
    /// The snapshot without the nodes that passes removed; the node numbers in its edges are no longer valid.
    pub(super) fn without_removed_nodes(mut self, flow: &FlowGraph) -> GraphSnapshot {
        let mut n = 0;
        self.nodes.retain(|_| {
            n += 1;
            !flow.nodes[n - 1].removed
        });
        self.edges.clear();
        self
    }
    /// Names of the clusters by the names of their nodes.
    pub fn cluster_names<'a>(&'a self, found: &'a Clustering) -> HashMap<&'a str, &'a str> {
        let named = |at: u32| found.clusters[at as usize].name.as_str();
        self.nodes.iter().filter_map(|n| Some((n.name.as_str(), named(n.cluster?)))).collect()
    }
}

fn inputs(flow: &FlowGraph, n: u32) -> Vec<String> {
    let mut data: Vec<_> = flow.in_edges(n).filter(|e| e.dst_port != CONTROL).collect();
    data.sort_by_key(|e| e.dst_port);
    let mut controls: Vec<&str> =
        flow.in_edges(n).filter(|e| e.dst_port == CONTROL && e.src > 1).map(|e| flow.name(e.src)).collect();
    controls.sort_unstable();
    controls.dedup();
    let spelled = data.into_iter().map(|e| match e.src_port {
        0 => flow.name(e.src).to_string(),
        port => format!("{}:{port}", flow.name(e.src)),
    });
    spelled.chain(controls.into_iter().map(|name| format!("^{name}"))).collect()
}
