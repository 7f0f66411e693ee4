//! What tfaot compiles and TensorFlow's clustering leaves out: loops, conditions, and ops that XLA has no kernel for.
use crate::graph::{Node, Program, is_handle};
use crate::opdef;
use crate::ops;
use std::collections::HashMap;
use std::sync::Arc;

/// Calls nested deeper than this are not looked at.
const MAX_DEPTH: usize = 64;

/// What the lowering has rows for, but for nodes that change variables or draw random numbers; functions are looked at once.
pub struct Beyond<'p> {
    program: &'p Program,
    known: HashMap<Arc<str>, bool>,
}

impl<'p> Beyond<'p> {
    /// Nothing is known yet.
    pub fn new(program: &'p Program) -> Self {
        Beyond { program, known: HashMap::new() }
    }

    /// Whether a node, with all that it calls, is lowered by rows.
    pub fn takes(&mut self, node: &Node) -> bool {
        self.node(node, 0)
    }

    fn node(&mut self, node: &Node, depth: usize) -> bool {
        if self.program.functions.contains_key(&node.op) {
            return self.function(&node.op, depth);
        }
        let Some(row) = ops::find(&node.op) else { return false };
        // what an effect does to the world is lost in compiled code
        let acts = opdef::effect(&node.op).is_some() || is_handle(node);
        let plain = row.writes.is_empty() && !row.draws && !row.by_reference && !acts;
        plain && node.called().iter().filter(|name| **name != node.op).all(|name| self.function(name, depth))
    }

    fn function(&mut self, name: &Arc<str>, depth: usize) -> bool {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let Some(function) = self.program.functions.get(name).filter(|_| depth < MAX_DEPTH) else { return false };
        // a function that calls itself is not taken
        self.known.insert(name.clone(), false);
        let ends = |node: &Node| matches!(&*node.op, "_Arg" | "_Retval" | "NoOp");
        let takes = function.graph.nodes.values().all(|node| ends(node) || self.node(node, depth + 1));
        self.known.insert(name.clone(), takes);
        takes
    }
}
