//! Liveness in TensorFlow 1 control flow: for each value, a formula of the tests that is true where the value is not dead.
use super::bdd::{Bdd, BddManager};
use super::control_class::{ControlClass, control_class};
use super::frames::{LoopFrames, TOP, loop_error};
use crate::diag::Result;
use crate::graph::{Endpoint, Graph, NodeId};
use crate::ops;
use crate::util::id_vec::{Id, IdVec};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Meaning of a Boolean variable in formulas: a predicate is true, or an index has a certain value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BranchTest {
    /// Predicate or index.
    pub at: Endpoint,
    /// Value with which the test compares an index; `None` for a predicate.
    pub equals: Option<i32>,
}

/// Liveness formulas of a graph. A loop is one node of the surrounding frame; within the loop its variables are always live.
#[derive(Debug)]
pub struct Liveness {
    /// Owner of the formulas.
    pub formulas: BddManager,
    /// Meaning of each Boolean variable of the formulas, by its number.
    pub tests: Vec<BranchTest>,
    /// Condition under which each node runs.
    node: IdVec<NodeId, Bdd>,
    /// Condition under which the loop of each frame runs.
    frame: Vec<Bdd>,
    /// By `Switch` and output: the formula under which the `Switch` forwards its data to this output.
    taken: HashMap<NodeId, Vec<Bdd>>,
    /// By frame: the test that is the loop's condition, and the outcome with which the loop continues.
    conditions: Vec<(u32, bool)>,
}

/// Follows a predicate back through nodes that forward or negate it; returns the output at the origin, and whether the predicate is its
/// negation.
fn predicate_origin(graph: &Graph, mut at: Endpoint) -> (Endpoint, bool) {
    let mut negated = false;
    for _ in 0..graph.nodes.len() {
        let node = &graph.nodes[at.node];
        let constant = node.bool("is_constant").unwrap_or(false);
        let from = match control_class(&node.op) {
            ControlClass::LoopCond | ControlClass::Switch => Some(0),
            ControlClass::Enter => constant.then_some(0),
            ControlClass::Other if &*node.op == "LogicalNot" => {
                negated ^= true;
                Some(0)
            }
            ControlClass::Other => ops::forwards_inputs(&node.op).then_some(at.port as usize),
            ControlClass::Merge | ControlClass::Exit | ControlClass::NextIteration => None,
        };
        match from.and_then(|i| node.inputs.get(i)) {
            Some(&next) => at = next,
            None => break,
        }
    }
    (at, negated)
}

/// Number of outputs of a `Switch`.
fn switch_output_count(graph: &Graph, id: NodeId) -> usize {
    let node = &graph.nodes[id];
    let many = node.int("num_outs").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    if &*node.op == "_SwitchN" { many.clamp(1, 1 << 10) } else { 2 }
}

impl Liveness {
    /// Computes the formulas of all nodes in `order`; `known` returns the values of constants.
    ///
    /// Errors: `ControlFlowV1` if a formula gets too large.
    pub fn compute(
        graph: &Graph,
        frames: &LoopFrames,
        order: &[NodeId],
        known: &dyn Fn(Endpoint) -> Option<i64>,
    ) -> Result<Liveness> {
        let mut found = Liveness {
            formulas: BddManager::default(),
            tests: Vec::new(),
            node: graph.nodes.ids().map(|_| Bdd::TRUE).collect(),
            frame: vec![Bdd::TRUE; frames.all.len()],
            taken: HashMap::new(),
            conditions: Vec::new(),
        };
        found.number_tests(graph, frames, order, known);
        let is_variable = frames.variable_merges();
        for &id in order {
            found.node[id] = match control_class(&graph.nodes[id].op) {
                ControlClass::Enter => {
                    let all = found.all_inputs(graph, frames, id, frames.all[frames.of[id]].parent);
                    let frame = frames.of[id];
                    found.frame[frame] = found.formulas.and(found.frame[frame], all);
                    Bdd::TRUE
                }
                ControlClass::Merge if is_variable[id] => Bdd::TRUE,
                ControlClass::Merge => {
                    let inputs = graph.nodes[id].inputs.iter();
                    inputs.fold(Bdd::FALSE, |any, &e| {
                        let one = found.output_condition(e);
                        found.formulas.or(any, one)
                    })
                }
                // a ControlTrigger runs even if its control inputs are dead
                ControlClass::Other if &*graph.nodes[id].op == "ControlTrigger" => Bdd::TRUE,
                ControlClass::Exit => frame_of_exit(graph, frames, id).map_or(Bdd::TRUE, |frame| found.frame[frame]),
                _ => found.all_inputs(graph, frames, id, frames.of[id]),
            };
            if found.formulas.limit_exceeded() {
                let node = &graph.nodes[id];
                let told = format!("too many predicates decide about `{}`", node.name);
                return Err(loop_error(&frames.all[TOP], told).at_node(&node.name, &node.op).into());
            }
        }
        Ok(found)
    }

    /// Conjunction of the formulas of a node's inputs from `frame`.
    fn all_inputs(&mut self, graph: &Graph, frames: &LoopFrames, id: NodeId, frame: usize) -> Bdd {
        let node = &graph.nodes[id];
        let mut all = Bdd::TRUE;
        for &e in node.inputs.iter().filter(|e| frames.of[e.node] == frame) {
            let one = self.output_condition(e);
            all = self.formulas.and(all, one);
        }
        for &from in node.controls.iter().filter(|n| frames.of[**n] == frame) {
            all = self.formulas.and(all, self.node[from]);
        }
        all
    }

    /// Condition, as a formula, under which an output has a value.
    pub fn output_condition(&mut self, e: Endpoint) -> Bdd {
        let node = self.node[e.node];
        match self.taken.get(&e.node).and_then(|ways| ways.get(e.port as usize).copied()) {
            Some(way) => self.formulas.and(node, way),
            None => node,
        }
    }
    /// Condition, as a formula, under which a node runs.
    pub fn node_condition(&self, id: NodeId) -> Bdd {
        self.node[id]
    }
    /// Condition, as a formula, under which the loop of a frame runs.
    pub fn frame_condition(&self, frame: usize) -> Bdd {
        self.frame[frame]
    }
    /// Test that is the condition of a frame's loop, and the outcome with which the loop continues.
    pub fn loop_test(&self, frame: usize) -> (u32, bool) {
        self.conditions[frame]
    }

    /// Numbers all tests, earlier nodes first, and finds the formulas of all `Switch` outputs.
    fn number_tests(
        &mut self,
        graph: &Graph,
        frames: &LoopFrames,
        order: &[NodeId],
        known: &dyn Fn(Endpoint) -> Option<i64>,
    ) {
        let mut position = vec![0u32; graph.nodes.len()];
        for (i, id) in order.iter().enumerate() {
            position[id.index()] = i as u32;
        }
        let conditions: Vec<(Endpoint, bool)> = frames.all.iter().map(|f| loop_test(graph, f.condition)).collect();
        let looping: HashSet<Endpoint> = conditions.iter().skip(1).map(|c| c.0).collect();
        let switches: Vec<NodeId> = graph
            .nodes
            .iter()
            .filter(|(_, n)| control_class(&n.op) == ControlClass::Switch && n.inputs.len() == 2)
            .map(|n| n.0)
            .collect();
        let key = |t: BranchTest| (position[t.at.node.index()], t.at.port, t.equals);
        let mut sorted: BTreeSet<_> = looping.iter().map(|&at| key(BranchTest { at, equals: None })).collect();
        for &id in &switches {
            let (at, _) = predicate_origin(graph, graph.nodes[id].inputs[1]);
            match switch_output_count(graph, id) {
                _ if &*graph.nodes[id].op != "_SwitchN" => drop(sorted.insert(key(BranchTest { at, equals: None }))),
                n => sorted.extend((0..n as i32 - 1).map(|i| key(BranchTest { at, equals: Some(i) }))),
            }
        }
        let test = |&(place, port, equals): &(u32, u32, Option<i32>)| BranchTest {
            at: Endpoint { node: order[place as usize], port },
            equals,
        };
        self.tests = sorted.iter().map(test).collect();
        let numbers: HashMap<BranchTest, u32> = self.tests.iter().enumerate().map(|(i, t)| (*t, i as u32)).collect();
        let number = |t: BranchTest| numbers.get(&t).copied().unwrap_or(u32::MAX - 1);
        self.conditions =
            conditions.iter().map(|&(at, negated)| (number(BranchTest { at, equals: None }), !negated)).collect();
        for id in switches {
            let (at, negated) = predicate_origin(graph, graph.nodes[id].inputs[1]);
            let value = if looping.contains(&at) { None } else { known(at) };
            let taken = if &*graph.nodes[id].op == "_SwitchN" {
                self.index_switch_conditions(switch_output_count(graph, id), value, |i| {
                    number(BranchTest { at, equals: Some(i) })
                })
            } else {
                let way = |yes: bool| match value {
                    Some(v) => constant((v != 0) == (yes != negated)),
                    None => self.formulas.literal(number(BranchTest { at, equals: None }), yes != negated),
                };
                [false, true].map(way).to_vec()
            };
            self.taken.insert(id, taken);
        }
    }

    /// Formulas of the outputs of a `_SwitchN`, the last of which is taken for every index out of range.
    fn index_switch_conditions(&mut self, ways: usize, value: Option<i64>, number: impl Fn(i32) -> u32) -> Vec<Bdd> {
        let last = ways as i32 - 1;
        let (mut rest, mut out) = (Bdd::TRUE, Vec::with_capacity(ways));
        for i in 0..last {
            let (yes, no) = match value {
                Some(v) => (constant(v == i64::from(i)), constant(v != i64::from(i))),
                None => (self.formulas.literal(number(i), true), self.formulas.literal(number(i), false)),
            };
            out.push(self.formulas.and(rest, yes));
            rest = self.formulas.and(rest, no);
        }
        out.push(rest);
        out
    }
}

fn constant(value: bool) -> Bdd {
    if value { Bdd::TRUE } else { Bdd::FALSE }
}

/// Predicate of a `LoopCond`, and whether it is negated; an arbitrary output for the top frame, which has no condition.
fn loop_test(graph: &Graph, node: Option<NodeId>) -> (Endpoint, bool) {
    let at = node.and_then(|id| graph.nodes[id].inputs.first().copied());
    at.map_or((Endpoint { node: NodeId(0), port: 0 }, false), |e| predicate_origin(graph, e))
}

/// Frame that an `Exit` leaves.
pub fn frame_of_exit(graph: &Graph, frames: &LoopFrames, exit: NodeId) -> Option<usize> {
    graph.nodes[exit].inputs.first().map(|e| frames.of[e.node])
}
