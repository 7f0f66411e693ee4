//! Nodes that tfaot compiles and TensorFlow's clustering leaves out: loops, conditions, and ops that XLA has no kernel for.
use super::reason::ExclusionReason;
use crate::graph::{Function, Node, NodeId, Program, is_handle};
use crate::opdef;
use crate::ops;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Calls nested deeper than this are not looked at.
const MAX_DEPTH: usize = 64;

/// Whether compiled clusters may leave out checks and prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckPolicy {
    /// Nodes that check values or print stay in TensorFlow, with the loops and conditions around them.
    #[default]
    Kept,
    /// Compiled code neither checks nor prints.
    Dropped,
}

/// Why a node is not lowered: the reason, or `None` where XLA's reason is as good.
type Refusal = Option<ExclusionReason>;

/// Decides by the op definitions of the lowering which nodes clusters beyond XLA may have. Nodes that change variables or draw
/// random numbers are refused; functions are looked at once.
pub struct Beyond<'p> {
    program: &'p Program,
    known: HashMap<Arc<str>, Result<(), Refusal>>,
    effects: Effects<'p>,
}

impl<'p> Beyond<'p> {
    /// A decider that has looked at no function.
    pub fn new(program: &'p Program, checks: CheckPolicy) -> Self {
        Beyond { program, known: HashMap::new(), effects: Effects::new(program, checks) }
    }

    /// Whether a node of a graph that is clustered, with all that it calls, is lowered; else the reason, if it is another than XLA's.
    pub fn takes(&mut self, node: &Node) -> Result<(), Refusal> {
        let types = opdef::find(&node.op).map_or(0, |def| def.type_bits(node));
        if types & opdef::type_bit(opdef::STRING) != 0 { Err(None) } else { self.node(node, 0) }
    }

    fn node(&mut self, node: &Node, depth: usize) -> Result<(), Refusal> {
        if let Some(why) = self.effects.of_node(node, depth) {
            return Err(Some(why));
        }
        if self.program.functions.contains_key(&node.op) {
            return self.function(&node.op, depth);
        }
        let Some(row) = ops::find(&node.op) else { return Err(None) };
        if row.by_reference || is_handle(node) {
            return Err(None);
        }
        node.called().iter().filter(|name| **name != node.op).try_for_each(|name| self.function(name, depth))
    }

    fn function(&mut self, name: &Arc<str>, depth: usize) -> Result<(), Refusal> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let Some(function) = self.program.functions.get(name).filter(|_| depth < MAX_DEPTH) else { return Err(None) };
        // A function that calls itself is refused.
        self.known.insert(name.clone(), Err(None));
        let needed = needed(function);
        let ends = |node: &Node| matches!(&*node.op, "_Arg" | "_Retval" | "NoOp");
        let mut nodes = function.graph.nodes.iter().filter(|(id, node)| needed[*id] && !ends(node));
        let takes = nodes.try_for_each(|(_, node)| self.node(node, depth + 1));
        self.known.insert(name.clone(), takes.clone());
        takes
    }
}

/// The nodes that the results of a function need over data edges, which are those that are lowered.
fn needed(function: &Function) -> IdVec<NodeId, bool> {
    let graph = &function.graph;
    let mut needed: IdVec<NodeId, bool> = graph.nodes.ids().map(|_| false).collect();
    let mut open: Vec<NodeId> = function.rets.iter().map(|ret| ret.node).collect();
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut needed[id], true) {
            open.extend(graph.nodes[id].inputs.iter().map(|e| e.node));
        }
    }
    needed
}

/// Effects of nodes and of the functions that they call: what compiled code would not do. Functions are looked at once.
pub struct Effects<'p> {
    program: &'p Program,
    checks: CheckPolicy,
    known: HashMap<Arc<str>, Option<ExclusionReason>>,
}

impl<'p> Effects<'p> {
    /// A search that has looked at no function.
    pub fn new(program: &'p Program, checks: CheckPolicy) -> Self {
        Effects { program, checks, known: HashMap::new() }
    }

    /// The first effect of a function that keeps it out of compiled code.
    pub fn of_function(&mut self, name: &Arc<str>) -> Option<ExclusionReason> {
        self.function(name, 0)
    }

    /// The effect of a node, or of what it calls, that keeps it out of compiled code.
    fn of_node(&mut self, node: &Node, depth: usize) -> Option<ExclusionReason> {
        match opdef::effect(&node.op) {
            Some(effect) if self.checks == CheckPolicy::Kept || !effect.is_check() => {
                return Some(ExclusionReason::NotElided);
            }
            _ => {}
        }
        if let Some(row) = ops::find(&node.op) {
            if row.node_draws(node) {
                return Some(ExclusionReason::StatefulRandom);
            }
            if !row.writes.is_empty() {
                return Some(ExclusionReason::ResourceInFunction);
            }
        }
        node.called().iter().find_map(|name| self.function(name, depth))
    }

    fn function(&mut self, name: &Arc<str>, depth: usize) -> Option<ExclusionReason> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let function = self.program.functions.get(name)?;
        if depth >= MAX_DEPTH {
            return Some(ExclusionReason::CallDepth(name.clone()));
        }
        self.known.insert(name.clone(), None);
        let effect = function.graph.nodes.values().find_map(|node| {
            let why = self.of_node(node, depth + 1)?;
            if matches!(why, ExclusionReason::InFunction { .. }) {
                return Some(why);
            }
            Some(ExclusionReason::InFunction {
                function: name.clone(),
                node: node.name.clone(),
                op: node.op.clone(),
                why: Box::new(why),
            })
        });
        self.known.insert(name.clone(), effect.clone());
        effect
    }
}
