//! Topological order of the parts of a graph.
use crate::graph::{Graph, NodeId};
use crate::util::id_vec::Id;

/// Sorts the parts 0 to `count` of a graph so that each comes behind all parts that it needs, also through nodes that are in no part.
/// `part` maps a node to its part. Data and control edges count; variables change along the latter. Parts that need each other, as in
/// TensorFlow 1 loops, are ordered by their numbers.
pub fn sort_topologically(graph: &Graph, part: &dyn Fn(NodeId) -> Option<u32>, count: usize) -> Vec<usize> {
    let mut members: Vec<Vec<NodeId>> = vec![Vec::new(); count];
    for id in graph.nodes.ids() {
        if let Some(at) = part(id) {
            members[at as usize].push(id);
        }
    }
    let mut walk = Walk { graph, part, members, seen: vec![false; graph.nodes.len()], begun: vec![false; count] };
    let mut order = Vec::new();
    (0..count).for_each(|at| walk.finish(Step::Part(at), &mut order));
    order
}

/// A pending item of the depth-first walk.
#[derive(Clone, Copy)]
enum Step {
    /// A node that is in no part.
    Node(NodeId),
    /// A part.
    Part(usize),
    /// A part whose predecessors are complete.
    Ready(usize),
}

struct Walk<'a> {
    graph: &'a Graph,
    part: &'a dyn Fn(NodeId) -> Option<u32>,
    members: Vec<Vec<NodeId>>,
    seen: Vec<bool>,
    begun: Vec<bool>,
}

impl Walk<'_> {
    /// Appends the part of `first` to `order`, preceded by the parts that it needs.
    fn finish(&mut self, first: Step, order: &mut Vec<usize>) {
        let mut open = vec![first];
        while let Some(step) = open.pop() {
            match step {
                Step::Ready(at) => order.push(at),
                Step::Part(at) if !std::mem::replace(&mut self.begun[at], true) => {
                    open.push(Step::Ready(at));
                    for &id in &self.members[at] {
                        self.needs(id, &mut open);
                    }
                }
                Step::Node(id) if !std::mem::replace(&mut self.seen[id.index()], true) => self.needs(id, &mut open),
                Step::Part(_) | Step::Node(_) => {}
            }
        }
    }
    fn needs(&self, id: NodeId, open: &mut Vec<Step>) {
        let node = &self.graph.nodes[id];
        for before in node.inputs.iter().map(|input| input.node).chain(node.controls.iter().copied()) {
            open.push(match (self.part)(before) {
                Some(at) => Step::Part(at as usize),
                None => Step::Node(before),
            });
        }
    }
}
