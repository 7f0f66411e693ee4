//! In which order parts of a graph can run.
use crate::graph::{Graph, NodeId};
use crate::util::id_vec::Id;

/// The parts 0 to `count` of a graph, each behind all that it needs, on whatever way through nodes that are in none; `part` tells the
/// part of a node. Data edges count, and control edges, along which variables change. Parts that need each other, as in loops of TensorFlow 1, come in the order of their numbers.
pub fn in_order(graph: &Graph, part: &dyn Fn(NodeId) -> Option<u32>, count: usize) -> Vec<usize> {
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
    /// A part whose needs were seen to.
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
    /// Appends the part of `first` to `order`, and before it what it needs.
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
