//! Under which outcomes of the tests each value is there and not dead.
use super::class::{ControlClass, class};
use super::formula::{Bdd, BddManager};
use super::frames::{LoopFrames, TOP, fault};
use crate::diag::Result;
use crate::graph::{Endpoint, Graph, NodeId};
use crate::ops;
use crate::util::id_vec::{Id, IdVec};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The meaning of one Boolean variable of the formulas: a predicate is true, or an index has a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Test {
    /// The predicate or index.
    pub at: Endpoint,
    /// The value of an index.
    pub equals: Option<i32>,
}

/// The formulas of a graph. A loop counts as one node of the frame around it; inside, its variables are always there.
#[derive(Debug)]
pub struct Liveness {
    /// Where formulas are combined.
    pub formulas: BddManager,
    /// The test that each variable of the formulas stands for.
    pub tests: Vec<Test>,
    /// When each node is computed.
    node: IdVec<NodeId, Bdd>,
    /// When each frame is entered.
    frame: Vec<Bdd>,
    /// For each `Switch`, which of its outputs has the data.
    taken: HashMap<NodeId, Vec<Bdd>>,
    /// For each frame, the variable that is its condition, and its value for another round.
    conditions: Vec<(u32, bool)>,
}

/// Where a predicate comes from, and whether it is negated on the way.
fn origin(graph: &Graph, mut at: Endpoint) -> (Endpoint, bool) {
    let mut negated = false;
    for _ in 0..graph.nodes.len() {
        let node = &graph.nodes[at.node];
        let constant = node.bool("is_constant").unwrap_or(false);
        let from = match class(&node.op) {
            ControlClass::LoopCond | ControlClass::Switch => Some(0),
            ControlClass::Enter => constant.then_some(0),
            ControlClass::Other if &*node.op == "LogicalNot" => {
                negated ^= true;
                Some(0)
            }
            ControlClass::Other => ops::forwards(&node.op).then_some(at.port as usize),
            ControlClass::Merge | ControlClass::Exit | ControlClass::NextIteration => None,
        };
        match from.and_then(|i| node.inputs.get(i)) {
            Some(&next) => at = next,
            None => break,
        }
    }
    (at, negated)
}

/// How many ways a `Switch` has.
fn ways(graph: &Graph, id: NodeId) -> usize {
    let node = &graph.nodes[id];
    let many = node.int("num_outs").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    if &*node.op == "_SwitchN" { many.clamp(1, 1 << 10) } else { 2 }
}

impl Liveness {
    /// The formulas of the nodes of a graph, in `order`; `known` has values that are known before anything runs.
    ///
    /// Errors: `ControlFlowV1` where a formula gets too large.
    pub fn of(
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
        let is_variable = frames.variables();
        for &id in order {
            found.node[id] = match class(&graph.nodes[id].op) {
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
                        let one = found.at(e);
                        found.formulas.or(any, one)
                    })
                }
                // It passes on control whether what it waits for is dead or not.
                ControlClass::Other if &*graph.nodes[id].op == "ControlTrigger" => Bdd::TRUE,
                ControlClass::Exit => frame_left(graph, frames, id).map_or(Bdd::TRUE, |frame| found.frame[frame]),
                _ => found.all_inputs(graph, frames, id, frames.of[id]),
            };
            if found.formulas.is_full() {
                let node = &graph.nodes[id];
                let told = format!("too many predicates decide about `{}`", node.name);
                return Err(fault(&frames.all[TOP], told).at_node(&node.name, &node.op).into());
            }
        }
        Ok(found)
    }

    /// The formula "all inputs that a node of `frame` has from this frame are alive".
    fn all_inputs(&mut self, graph: &Graph, frames: &LoopFrames, id: NodeId, frame: usize) -> Bdd {
        let node = &graph.nodes[id];
        let mut all = Bdd::TRUE;
        for &e in node.inputs.iter().filter(|e| frames.of[e.node] == frame) {
            let one = self.at(e);
            all = self.formulas.and(all, one);
        }
        for &from in node.controls.iter().filter(|n| frames.of[**n] == frame) {
            all = self.formulas.and(all, self.node[from]);
        }
        all
    }

    /// When an output has a value.
    pub fn at(&mut self, e: Endpoint) -> Bdd {
        let node = self.node[e.node];
        match self.taken.get(&e.node).and_then(|ways| ways.get(e.port as usize).copied()) {
            Some(way) => self.formulas.and(node, way),
            None => node,
        }
    }
    /// When a node is computed.
    pub fn node(&self, id: NodeId) -> Bdd {
        self.node[id]
    }
    /// When a loop runs.
    pub fn frame(&self, frame: usize) -> Bdd {
        self.frame[frame]
    }
    /// The test that is the condition of a frame, and its outcome for another round.
    pub fn condition(&self, frame: usize) -> (u32, bool) {
        self.conditions[frame]
    }

    /// Gives every test a number, earlier nodes first, and every `Switch` its ways.
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
        let conditions: Vec<(Endpoint, bool)> = frames.all.iter().map(|f| condition(graph, f.condition)).collect();
        let looping: HashSet<Endpoint> = conditions.iter().skip(1).map(|c| c.0).collect();
        let switches: Vec<NodeId> = graph
            .nodes
            .iter()
            .filter(|(_, n)| class(&n.op) == ControlClass::Switch && n.inputs.len() == 2)
            .map(|n| n.0)
            .collect();
        let key = |t: Test| (position[t.at.node.index()], t.at.port, t.equals);
        let mut sorted: BTreeSet<_> = looping.iter().map(|&at| key(Test { at, equals: None })).collect();
        for &id in &switches {
            let (at, _) = origin(graph, graph.nodes[id].inputs[1]);
            match ways(graph, id) {
                _ if &*graph.nodes[id].op != "_SwitchN" => drop(sorted.insert(key(Test { at, equals: None }))),
                n => sorted.extend((0..n as i32 - 1).map(|i| key(Test { at, equals: Some(i) }))),
            }
        }
        let test = |&(place, port, equals): &(u32, u32, Option<i32>)| Test {
            at: Endpoint { node: order[place as usize], port },
            equals,
        };
        self.tests = sorted.iter().map(test).collect();
        let numbers: HashMap<Test, u32> = self.tests.iter().enumerate().map(|(i, t)| (*t, i as u32)).collect();
        let number = |t: Test| numbers.get(&t).copied().unwrap_or(u32::MAX - 1);
        self.conditions =
            conditions.iter().map(|&(at, negated)| (number(Test { at, equals: None }), !negated)).collect();
        for id in switches {
            let (at, negated) = origin(graph, graph.nodes[id].inputs[1]);
            let value = if looping.contains(&at) { None } else { known(at) };
            let taken = if &*graph.nodes[id].op == "_SwitchN" {
                self.ways_of_index(ways(graph, id), value, |i| number(Test { at, equals: Some(i) }))
            } else {
                let way = |yes: bool| match value {
                    Some(v) => constant((v != 0) == (yes != negated)),
                    None => self.formulas.literal(number(Test { at, equals: None }), yes != negated),
                };
                [false, true].map(way).to_vec()
            };
            self.taken.insert(id, taken);
        }
    }

    /// The ways of a `_SwitchN`: the last one is taken for every index that is out of range.
    fn ways_of_index(&mut self, ways: usize, value: Option<i64>, number: impl Fn(i32) -> u32) -> Vec<Bdd> {
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

/// The predicate behind a `LoopCond`; any output for the frame outside of all loops, which has none.
fn condition(graph: &Graph, node: Option<NodeId>) -> (Endpoint, bool) {
    let at = node.and_then(|id| graph.nodes[id].inputs.first().copied());
    at.map_or((Endpoint { node: NodeId(0), port: 0 }, false), |e| origin(graph, e))
}

/// The frame that an `Exit` leaves.
pub fn frame_left(graph: &Graph, frames: &LoopFrames, exit: NodeId) -> Option<usize> {
    graph.nodes[exit].inputs.first().map(|e| frames.of[e.node])
}
