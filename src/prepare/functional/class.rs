//! The ops of TensorFlow 1's control flow, and the order of a graph that has them.
use crate::graph::{Graph, NodeId};
use crate::util::order::sorted;

/// Classes of control-flow ops of TensorFlow 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlClass {
    /// Passes its data to one of its outputs; the others are dead.
    Switch,
    /// Passes on the input that is not dead.
    Merge,
    /// Passes its data into the frame of a loop.
    Enter,
    /// Passes its data out of the frame of a loop.
    Exit,
    /// Passes its data to the next round of a loop.
    NextIteration,
    /// Passes the condition of a loop.
    LoopCond,
    /// Computes; it is dead if any of its inputs is.
    Other,
}

/// The class of an op. Ops on references to variables (`RefSwitch`) do what the others do.
pub fn class(op: &str) -> ControlClass {
    match op {
        "Switch" | "RefSwitch" | "_SwitchN" => ControlClass::Switch,
        "Merge" | "RefMerge" | "_XlaMerge" => ControlClass::Merge,
        "Enter" | "RefEnter" => ControlClass::Enter,
        "Exit" | "RefExit" => ControlClass::Exit,
        "NextIteration" | "RefNextIteration" => ControlClass::NextIteration,
        "LoopCond" => ControlClass::LoopCond,
        _ => ControlClass::Other,
    }
}

/// Whether a graph has control flow of TensorFlow 1.
pub fn is_present(graph: &Graph) -> bool {
    graph.nodes.values().any(|n| class(&n.op) != ControlClass::Other)
}

/// Nodes so that producers come before users, through data and control edges and `more` of them, but for the edges that close loops;
/// `Err` is a node on a cycle.
pub fn order(graph: &Graph, more: &[(NodeId, NodeId)]) -> Result<Vec<NodeId>, NodeId> {
    let mut edges = Vec::new();
    for (id, node) in graph.nodes.iter() {
        let merge = class(&node.op) == ControlClass::Merge;
        let closes = |from: &NodeId| merge && class(&graph.nodes[*from].op) == ControlClass::NextIteration;
        edges.extend(node.inputs.iter().map(|e| e.node).filter(|from| !closes(from)).map(|from| (from, id)));
        edges.extend(node.controls.iter().map(|&from| (from, id)));
    }
    edges.extend(more);
    sorted(graph.nodes.len(), &edges)
}
