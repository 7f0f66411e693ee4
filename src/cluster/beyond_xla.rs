//! Nodes that tfaot compiles and TensorFlow's clustering leaves out: loops, conditions, and ops without an XLA kernel.
use super::reason::ExclusionReason;
use crate::graph::{Function, Node, NodeId, Program, is_handle};
use crate::opdef;
use crate::ops;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Depth of nested calls beyond which nodes are refused.
const MAX_DEPTH: usize = 64;

/// Whether compiled clusters may drop nodes that check values or print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckAndPrintPolicy {
    /// Nodes that check values or print stay in TensorFlow, together with the loops and conditions around them.
    #[default]
    Kept,
    /// Compiled code contains neither checks nor prints.
    Dropped,
}

/// Why tfaot does not compile a node; `None`: XLA's reason holds for tfaot too.
type OwnReason = Option<ExclusionReason>;

/// Decides, by the op definitions of the lowering, which nodes a cluster beyond XLA may hold. Nodes that change variables or draw
/// random numbers are refused. Results are cached by function.
pub struct BeyondXlaChecker<'p> {
    program: &'p Program,
    known: HashMap<Arc<str>, Result<(), OwnReason>>,
    effects: Effects<'p>,
}

impl<'p> BeyondXlaChecker<'p> {
    /// A checker with an empty cache.
    pub fn new(program: &'p Program, checks: CheckAndPrintPolicy) -> Self {
        BeyondXlaChecker { program, known: HashMap::new(), effects: Effects::new(program, checks) }
    }

    /// Checks whether tfaot compiles a node of the clustered graph, with everything that the node calls. The error is a reason other than XLA's.
    pub fn check_node(&mut self, node: &Node) -> Result<(), OwnReason> {
        let types = opdef::find_def(&node.op).map_or(0, |def| def.type_set(node));
        if types & opdef::type_bit(opdef::STRING) != 0 { Err(None) } else { self.check_at_depth(node, 0) }
    }

    fn check_at_depth(&mut self, node: &Node, depth: usize) -> Result<(), OwnReason> {
        if let Some(why) = self.effects.node_effect(node, depth) {
            return Err(Some(why));
        }
        if self.program.functions.contains_key(&node.op) {
            return self.check_function(&node.op, depth);
        }
        let Some(row) = ops::find_op(&node.op) else { return Err(None) };
        if row.by_reference || is_handle(node) {
            return Err(None);
        }
        node.called_functions()
            .iter()
            .filter(|name| **name != node.op)
            .try_for_each(|name| self.check_function(name, depth))
    }

    fn check_function(&mut self, name: &Arc<str>, depth: usize) -> Result<(), OwnReason> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let Some(function) = self.program.functions.get(name).filter(|_| depth < MAX_DEPTH) else { return Err(None) };
        // Placeholder that refuses a recursive call.
        self.known.insert(name.clone(), Err(None));
        let needed = needed_nodes(function);
        let ends = |node: &Node| matches!(&*node.op, "_Arg" | "_Retval" | "NoOp");
        let mut nodes = function.graph.nodes.iter().filter(|(id, node)| needed[*id] && !ends(node));
        let takes = nodes.try_for_each(|(_, node)| self.check_at_depth(node, depth + 1));
        self.known.insert(name.clone(), takes.clone());
        takes
    }
}

/// The nodes on which the results of a function depend through data edges, which are the nodes that are lowered.
fn needed_nodes(function: &Function) -> IdVec<NodeId, bool> {
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

/// Side effects of nodes and of the functions that they call, which compiled code would not have. Results are cached by function.
pub struct Effects<'p> {
    program: &'p Program,
    checks: CheckAndPrintPolicy,
    known: HashMap<Arc<str>, Option<ExclusionReason>>,
}

impl<'p> Effects<'p> {
    /// An analysis with an empty cache.
    pub fn new(program: &'p Program, checks: CheckAndPrintPolicy) -> Self {
        Effects { program, checks, known: HashMap::new() }
    }

    /// The first effect that keeps a function out of compiled code.
    pub fn function_effect(&mut self, name: &Arc<str>) -> Option<ExclusionReason> {
        self.function_effect_at_depth(name, 0)
    }

    /// The effect that keeps a node, or a function called by the node, out of compiled code.
    fn node_effect(&mut self, node: &Node, depth: usize) -> Option<ExclusionReason> {
        match opdef::op_effect(&node.op) {
            Some(effect) if self.checks == CheckAndPrintPolicy::Kept || !effect.is_check() => {
                return Some(ExclusionReason::NotElided);
            }
            _ => {}
        }
        if let Some(row) = ops::find_op(&node.op) {
            if row.node_draws_random(node) {
                return Some(ExclusionReason::StatefulRandom);
            }
            if !row.writes.is_empty() {
                return Some(ExclusionReason::ResourceInFunction);
            }
        }
        node.called_functions().iter().find_map(|name| self.function_effect_at_depth(name, depth))
    }

    fn function_effect_at_depth(&mut self, name: &Arc<str>, depth: usize) -> Option<ExclusionReason> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let function = self.program.functions.get(name)?;
        if depth >= MAX_DEPTH {
            return Some(ExclusionReason::CallDepth(name.clone()));
        }
        self.known.insert(name.clone(), None);
        let effect = function.graph.nodes.values().find_map(|node| {
            let why = self.node_effect(node, depth + 1)?;
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
