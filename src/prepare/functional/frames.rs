//! Frames of TensorFlow 1 loops: the nodes and variables of each loop.
use super::control_class::{ControlClass, control_class};
use crate::diag::{Code, Diagnostic, Result};
use crate::graph::{Endpoint, Graph, NodeId};
use crate::util::id_vec::IdVec;
use std::collections::HashMap;

/// Upper bound on the nesting of loops.
const MAX_NESTED: usize = 64;

/// Index of the frame outside of all loops.
pub const TOP: usize = 0;

/// A variable of a loop.
#[derive(Clone, Copy, Debug)]
pub struct LoopVariable {
    /// The `Merge` whose output is the variable's value in each iteration.
    pub merge: NodeId,
    /// `Enter` node with the initial value.
    pub enter: NodeId,
    /// `NextIteration` node with the value for the next iteration.
    pub next: NodeId,
}

/// Frame of a loop.
#[derive(Clone, Debug, Default)]
pub struct LoopFrame {
    /// Frame name, the same in all `Enter` nodes of the loop; empty for the top frame.
    pub name: String,
    /// Index of the surrounding frame.
    pub parent: usize,
    /// Number of surrounding frames.
    pub depth: usize,
    /// `Enter` nodes of the loop.
    pub enters: Vec<NodeId>,
    /// `Exit` nodes of the loop.
    pub exits: Vec<NodeId>,
    /// Variables of the loop.
    pub variables: Vec<LoopVariable>,
    /// `LoopCond` node of the loop.
    pub condition: Option<NodeId>,
    /// Values of surrounding frames that nodes of the loop use without an `Enter`.
    pub outside: Vec<Endpoint>,
}

/// All loops of a graph.
#[derive(Debug)]
pub struct LoopFrames {
    /// Frame index of each node: an `Enter` belongs to the loop, an `Exit` to the surrounding frame.
    pub of: IdVec<NodeId, usize>,
    /// All frames; the first is outside of all loops.
    pub all: Vec<LoopFrame>,
}

/// Diagnostic for a loop that can't be converted; `what` completes "the loop `name`".
pub fn loop_error(frame: &LoopFrame, what: impl std::fmt::Display) -> Diagnostic {
    let told = if frame.name.is_empty() { what.to_string() } else { format!("the loop `{}` {what}", frame.name) };
    Diagnostic::new(Code::ControlFlowV1, told)
        .help("export with control flow v2 (If and While functions), as TensorFlow 2 does")
}

impl LoopFrames {
    /// Finds the loops of a graph whose nodes are in `order`.
    ///
    /// Errors: `ControlFlowV1` for frames that cross, for a loop without a condition or with two, and for variables that are no
    /// pair of an `Enter` and a `NextIteration`.
    pub fn find(graph: &Graph, order: &[NodeId]) -> Result<LoopFrames> {
        let mut frames = LoopFrames { of: graph.nodes.ids().map(|_| TOP).collect(), all: vec![LoopFrame::default()] };
        let mut known: HashMap<(usize, String), usize> = HashMap::new();
        for &id in order {
            frames.assign_frame(graph, id, &mut known)?;
        }
        frames.find_variables(graph)?;
        frames.find_uses_without_enter(graph);
        for frame in &frames.all[1..] {
            if frame.condition.is_none() {
                return Err(loop_error(frame, "has no LoopCond").into());
            }
        }
        Ok(frames)
    }

    fn assign_frame(&mut self, graph: &Graph, id: NodeId, known: &mut HashMap<(usize, String), usize>) -> Result<()> {
        let node = &graph.nodes[id];
        let kind = control_class(&node.op);
        // the edge that closes a loop comes from a later node
        let later = |n: &NodeId| {
            kind == ControlClass::Merge && control_class(&graph.nodes[*n].op) == ControlClass::NextIteration
        };
        let from = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied()).filter(|n| !later(n));
        let mut inside = TOP;
        for other in from.map(|n| self.of[n]) {
            let deeper = if self.all[other].depth > self.all[inside].depth { other } else { inside };
            if !(self.encloses(other, deeper) && self.encloses(inside, deeper)) {
                let (a, b) = (&self.all[other], &self.all[inside]);
                let told = format!("crosses the loop `{}`: `{}` has inputs from both", b.name, node.name);
                return Err(loop_error(a, told).at_node(&node.name, &node.op).into());
            }
            inside = deeper;
        }
        self.of[id] = match kind {
            ControlClass::Enter => self.enter_frame(node.str("frame_name").unwrap_or_default(), inside, id, known)?,
            ControlClass::Exit if inside == TOP => {
                let told = format!("`{}` leaves a loop, and it is in none", node.name);
                return Err(loop_error(&self.all[TOP], told).at_node(&node.name, &node.op).into());
            }
            ControlClass::Exit => {
                self.all[inside].exits.push(id);
                self.all[inside].parent
            }
            ControlClass::LoopCond => {
                if self.all[inside].condition.replace(id).is_some() {
                    return Err(loop_error(&self.all[inside], "has two LoopConds").into());
                }
                inside
            }
            _ => inside,
        };
        Ok(())
    }

    fn enter_frame(
        &mut self,
        name: &str,
        parent: usize,
        enter: NodeId,
        known: &mut HashMap<(usize, String), usize>,
    ) -> Result<usize> {
        let number = *known.entry((parent, name.to_string())).or_insert(self.all.len());
        if number == self.all.len() {
            let depth = self.all[parent].depth + 1;
            self.all.push(LoopFrame { name: name.to_string(), parent, depth, ..LoopFrame::default() });
            if depth > MAX_NESTED {
                return Err(loop_error(&self.all[number], format!("is inside of more than {MAX_NESTED} others")).into());
            }
        }
        self.all[number].enters.push(enter);
        Ok(number)
    }

    /// Whether each node is the `Merge` of a loop variable.
    pub fn variable_merges(&self) -> IdVec<NodeId, bool> {
        let mut is: IdVec<NodeId, bool> = self.of.ids().map(|_| false).collect();
        for v in self.all.iter().flat_map(|f| &f.variables) {
            is[v.merge] = true;
        }
        is
    }

    /// Whether frame `outer` is `inner` or surrounds it.
    pub fn encloses(&self, outer: usize, mut inner: usize) -> bool {
        while self.all[inner].depth > self.all[outer].depth {
            inner = self.all[inner].parent;
        }
        inner == outer
    }

    fn find_variables(&mut self, graph: &Graph) -> Result<()> {
        for (id, node) in graph.nodes.iter().filter(|(_, n)| control_class(&n.op) == ControlClass::Merge) {
            let of = |wanted: ControlClass| {
                node.inputs.iter().map(|e| e.node).find(|n| control_class(&graph.nodes[*n].op) == wanted)
            };
            let frame = self.of[id];
            let enter = of(ControlClass::Enter).filter(|n| self.of[*n] == frame);
            match (enter, of(ControlClass::NextIteration)) {
                (None, None) => {}
                (Some(enter), Some(next)) if self.of[next] == frame && node.inputs.len() == 2 => {
                    self.all[frame].variables.push(LoopVariable { merge: id, enter, next });
                }
                _ => {
                    let told =
                        format!("has the variable `{}` that is not made of an Enter and a NextIteration", node.name);
                    return Err(loop_error(&self.all[frame], told).at_node(&node.name, &node.op).into());
                }
            }
        }
        Ok(())
    }

    fn find_uses_without_enter(&mut self, graph: &Graph) {
        for (id, node) in graph.nodes.iter() {
            let mut inside = self.of[id];
            if control_class(&node.op) == ControlClass::Enter {
                inside = self.all[inside].parent;
            }
            for &e in node.inputs.iter().filter(|_| control_class(&node.op) != ControlClass::Exit) {
                let mut at = inside;
                while self.all[at].depth > self.all[self.of[e.node]].depth {
                    self.all[at].outside.push(e);
                    at = self.all[at].parent;
                }
            }
        }
    }
}
