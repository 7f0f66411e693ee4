//! Classification of TensorFlow 1's control-flow ops, and topological order of graphs with loops.
use crate::graph::{Graph, NodeId};
use crate::util::order::sorted;

/// Classes of control-flow ops of TensorFlow 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlClass {
    /// Forwards its data to one of its outputs; the others are dead.
    Switch,
    /// Forwards the input that is not dead.
    Merge,
    /// Forwards its data into the frame of a loop.
    Enter,
    /// Forwards its data out of the frame of a loop.
    Exit,
    /// Forwards its data to the next iteration of a loop.
    NextIteration,
    /// Forwards the condition of a loop.
    LoopCond,
    /// Any other op; dead if one of its inputs is dead.
    Other,
}

/// Class of an op. Variants on references to variables, such as `RefSwitch`, are in the class of the plain op.
pub fn control_class(op: &str) -> ControlClass {
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

/// Whether a graph contains control-flow ops of TensorFlow 1.
pub fn has_v1_control_flow(graph: &Graph) -> bool {
    graph.nodes.values().any(|n| control_class(&n.op) != ControlClass::Other)
}

/// Nodes of a graph in topological order of data edges, control edges and the additional edges `more`; edges that close loops are ignored.
/// `Err` holds a node on a cycle.
pub fn topological_order(graph: &Graph, more: &[(NodeId, NodeId)]) -> Result<Vec<NodeId>, NodeId> {
    let mut edges = Vec::new();
    for (id, node) in graph.nodes.iter() {
        let merge = control_class(&node.op) == ControlClass::Merge;
        let closes = |from: &NodeId| merge && control_class(&graph.nodes[*from].op) == ControlClass::NextIteration;
        edges.extend(node.inputs.iter().map(|e| e.node).filter(|from| !closes(from)).map(|from| (from, id)));
        edges.extend(node.controls.iter().map(|&from| (from, id)));
    }
    edges.extend(more);
    sorted(graph.nodes.len(), &edges)
}
