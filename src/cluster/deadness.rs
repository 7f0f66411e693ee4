//! Deadness analysis: computes the predicate under which each output of each node, and its control output, is alive.
//!
//! Nodes are visited in an order that keeps each outermost loop together. A loop is first analysed optimistically, as if all its Merges
//! shared one predicate; if the result contradicts this, it is analysed again with a predicate for each Merge.
use super::flow::{CONTROL, FlowGraph, OpClass, SINK, SOURCE};
use super::frames::Frames;
use super::predicate::{Predicate, PredicateId, PredicateNames, PredicateTable};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Node};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Liveness predicates of all nodes of a graph.
pub struct Deadness {
    /// Owner of the predicates.
    pub formulas: PredicateTable,
    /// By node: the predicate of the control output; `None` for `_SINK`.
    control: Vec<Option<PredicateId>>,
    /// By node: the predicates of the data outputs, where they differ from that of the control output.
    outputs: HashMap<u32, Box<[PredicateId]>>,
}

/// Liveness predicates of one node.
#[derive(Clone, PartialEq, Eq)]
struct Alive {
    control: PredicateId,
    outputs: Option<Box<[PredicateId]>>,
}

struct Analysis<'a, 'p> {
    flow: &'a FlowGraph<'p>,
    frames: &'a Frames,
    dead: Deadness,
    /// By frame name: the Merge whose symbol stands for all Merges of the frame in optimistic mode.
    representative: HashMap<u32, u32>,
    /// By node: number of the run in which the node must be visited again.
    revisit: Vec<u32>,
    run: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Optimistic,
    Pessimistic,
}

/// Analyses `flow`. Errors: `BadGraph` for loops that TensorFlow would not build.
pub fn analyse(flow: &FlowGraph, frames: &Frames) -> Result<Deadness> {
    let dead = Deadness {
        formulas: PredicateTable::default(),
        control: vec![None; flow.nodes.len()],
        outputs: HashMap::new(),
    };
    let mut analysis =
        Analysis { flow, frames, dead, representative: HashMap::new(), revisit: vec![0; flow.nodes.len()], run: 0 };
    let order = visit_order(flow, frames)?;
    let mut rest = &order[..];
    while let Some(&first) = rest.first() {
        let root = frames.outermost_frame_name(first);
        let len = rest.iter().position(|&n| frames.outermost_frame_name(n) != root).unwrap_or(rest.len());
        let (block, after) = rest.split_at(len);
        rest = after;
        if root == 0 || !analysis.visit_block(block, Mode::Optimistic)? {
            analysis.visit_block(block, Mode::Pessimistic)?;
        }
    }
    Ok(analysis.dead)
}

impl Deadness {
    /// The predicate under which node `n` runs.
    pub fn node_predicate(&self, n: u32) -> Option<PredicateId> {
        self.control[n as usize]
    }
    /// The predicate under which an output (control: -1) is alive.
    pub fn output_predicate(&self, n: u32, port: i32) -> Option<PredicateId> {
        match self.outputs.get(&n) {
            Some(outputs) if port >= 0 => outputs.get(port as usize).copied(),
            _ => self.control[n as usize],
        }
    }
    /// A predicate as TensorFlow prints it, truncated to about 2000 bytes.
    pub fn predicate_text(&self, pred: PredicateId, flow: &FlowGraph, frames: &Frames) -> String {
        self.formulas.text(pred, &GraphNames { flow, frames }, 2000)
    }
}

struct GraphNames<'a, 'p> {
    flow: &'a FlowGraph<'p>,
    frames: &'a Frames,
}

impl PredicateNames for GraphNames<'_, '_> {
    fn node(&self, n: u32) -> &str {
        self.flow.name(n)
    }
    fn frame(&self, name: u32) -> &str {
        self.frames.names.get(name as usize).map_or("", String::as_str)
    }
}

/// The order of visits: inputs before consumers; all Enters of an outermost frame together, and so all its Exits.
fn visit_order(flow: &FlowGraph, frames: &Frames) -> Result<Vec<u32>> {
    let outermost = |n: u32, class: OpClass| flow.class(n) == class && frames.is_outermost(n);
    let mut ready = vec![0usize; flow.nodes.len()];
    let mut enters: HashMap<u32, usize> = HashMap::new();
    for n in flow.op_nodes() {
        if outermost(n, OpClass::Enter) {
            *enters.entry(frames.by_node[n as usize].name).or_default() += 1;
        }
        if flow.class(n) == OpClass::Merge {
            ready[n as usize] = flow.in_edges(n).filter(|e| flow.class(e.src) == OpClass::NextIteration).count();
        }
    }
    let mut held_enters: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut held_exits: Vec<u32> = Vec::new();
    let mut queue = VecDeque::from([SOURCE]);
    let mut order = Vec::with_capacity(flow.nodes.len());
    while let Some(n) = queue.pop_front() {
        order.push(n);
        for edge in flow.out_edges(n) {
            let to = edge.dst;
            if flow.class(n) == OpClass::NextIteration && flow.class(to) == OpClass::Merge {
                continue;
            }
            ready[to as usize] += 1;
            if to == SINK || ready[to as usize] != flow.nodes[to as usize].in_edges.len() {
                continue;
            }
            if outermost(to, OpClass::Enter) {
                held_enters.entry(frames.by_node[to as usize].name).or_default().push(to);
            } else if outermost(to, OpClass::Exit) {
                held_exits.push(to);
            } else {
                queue.push_back(to);
            }
        }
        if queue.is_empty() {
            if !held_exits.is_empty() {
                queue.extend(held_exits.drain(..));
            } else if let Some(name) =
                held_enters.iter().find(|(name, all)| enters.get(name) == Some(&all.len())).map(|(name, _)| *name)
            {
                queue.extend(held_enters.remove(&name).unwrap_or_default());
            }
        }
    }
    if order.len() + 1 == flow.nodes.len() {
        return Ok(order);
    }
    let mut seen = vec![false; flow.nodes.len()];
    order.iter().for_each(|&n| seen[n as usize] = true);
    let lost = flow.op_nodes().find(|&n| !seen[n as usize]).map_or("", |n| flow.name(n));
    Err(Error::user(Code::BadGraph, format!("`{lost}` waits for itself: its loop is not closed by NextIteration")))
}

impl Analysis<'_, '_> {
    /// Visits the nodes of a block; returns false if the optimistic assumption failed.
    fn visit_block(&mut self, block: &[u32], mode: Mode) -> Result<bool> {
        let flow = self.flow;
        self.run += 1;
        for &n in block {
            self.visit(n, mode, false)?;
            if flow.class(n) == OpClass::NextIteration {
                for edge in flow.out_edges(n).filter(|e| flow.class(e.dst) == OpClass::Merge) {
                    self.revisit[edge.dst as usize] = self.run;
                }
            }
        }
        for &n in block {
            if self.revisit[n as usize] == self.run {
                self.revisit[n as usize] = 0;
                self.visit(n, Mode::Pessimistic, true)?;
            }
        }
        if mode == Mode::Pessimistic || self.has_converged(block) {
            return Ok(true);
        }
        for &n in block {
            self.dead.control[n as usize] = None;
            self.dead.outputs.remove(&n);
        }
        Ok(false)
    }

    /// Whether the predicates of all Merges of each frame grow by the same conjuncts from iteration to iteration.
    fn has_converged(&self, block: &[u32]) -> bool {
        let mut of_frame: HashMap<u32, PredicateId> = HashMap::new();
        for &n in block.iter().filter(|&&n| self.flow.class(n) == OpClass::Merge && self.back_edge(n).is_some()) {
            let Some(pred) = self.dead.control[n as usize] else { return false };
            if !matches!(self.dead.formulas.get(pred), Predicate::AndRec { .. })
                || *of_frame.entry(self.frames.by_node[n as usize].name).or_insert(pred) != pred
            {
                return false;
            }
        }
        true
    }

    fn back_edge(&self, n: u32) -> Option<super::flow::Edge> {
        self.flow.in_edges(n).find(|e| self.flow.class(e.src) == OpClass::NextIteration)
    }

    /// Computes and records the predicates of `n`. With `again`, a change schedules its consumers for another visit.
    fn visit(&mut self, n: u32, mode: Mode, again: bool) -> Result<()> {
        let alive = match self.flow.class(n) {
            OpClass::Switch => self.visit_switch(n)?,
            OpClass::SwitchN => self.visit_switch_n(n)?,
            OpClass::Merge => match self.visit_merge(n, mode)? {
                Some(pred) => Alive { control: pred, outputs: None },
                None => return Ok(()),
            },
            OpClass::Recv => {
                let mut ops = self.input_predicates(n)?;
                ops.push(self.dead.formulas.intern(Predicate::Symbol { node: n, port: 0, must_be_true: false }));
                Alive { control: self.dead.formulas.and(&ops), outputs: None }
            }
            _ if self.flow.op(n) == "ControlTrigger" => {
                Alive { control: self.dead.formulas.always_true(), outputs: None }
            }
            _ => {
                let ops = self.input_predicates(n)?;
                Alive { control: self.dead.formulas.and(&ops), outputs: None }
            }
        };
        self.record(n, alive, again && self.flow.op(n) != "ControlTrigger");
        Ok(())
    }

    fn record(&mut self, n: u32, alive: Alive, again: bool) {
        let had = self.dead.control[n as usize];
        let changed =
            had.is_some() && (had != Some(alive.control) || self.dead.outputs.get(&n) != alive.outputs.as_ref());
        self.dead.control[n as usize] = Some(alive.control);
        match alive.outputs {
            Some(outputs) => {
                self.dead.outputs.insert(n, outputs);
            }
            None => {
                self.dead.outputs.remove(&n);
            }
        }
        if again && changed {
            for edge in self.flow.out_edges(n) {
                self.revisit[edge.dst as usize] = self.run;
            }
        }
    }

    fn edge_predicate(&self, edge: super::flow::Edge) -> Result<PredicateId> {
        self.dead.output_predicate(edge.src, edge.src_port).ok_or_else(|| {
            let told = format!("deadness of `{}` is asked for before it is known", self.flow.name(edge.src));
            Error::internal("cluster", told)
        })
    }
    fn input_predicates(&self, n: u32) -> Result<Vec<PredicateId>> {
        self.flow.in_edges(n).map(|edge| self.edge_predicate(edge)).collect()
    }

    fn visit_switch(&mut self, n: u32) -> Result<Alive> {
        let ops = self.input_predicates(n)?;
        let taken = self.selector_predicate(n)?;
        let not = self.dead.formulas.not(taken);
        let with = |extra: PredicateId, f: &mut PredicateTable| f.and(&[&ops[..], &[extra]].concat());
        let outputs = [with(not, &mut self.dead.formulas), with(taken, &mut self.dead.formulas)];
        Ok(Alive { control: self.dead.formulas.and(&ops), outputs: Some(outputs.into()) })
    }

    fn visit_switch_n(&mut self, n: u32) -> Result<Alive> {
        let mut ops = self.input_predicates(n)?;
        let index = self.selector_edge(n)?;
        let mut outputs = Vec::new();
        for value in 0..self.flow.output_count(n).saturating_sub(1) {
            let taken = self.equals_predicate(index.src, index.src_port, value as i32);
            ops.push(taken);
            outputs.push(self.dead.formulas.and(&ops));
            ops.pop();
            ops.push(self.dead.formulas.not(taken));
        }
        let last = self.dead.formulas.and(&ops);
        outputs.push(last);
        Ok(Alive { control: last, outputs: Some(outputs.into()) })
    }

    fn selector_edge(&self, n: u32) -> Result<super::flow::Edge> {
        self.flow.input_edge(n, 1).ok_or_else(|| {
            Error::user(Code::BadGraph, format!("`{}` has no input that selects its output", self.flow.name(n)))
        })
    }

    /// The predicate "the selector of a Switch is alive and true", or a constant if the selector is a constant.
    fn selector_predicate(&mut self, n: u32) -> Result<PredicateId> {
        let edge = self.selector_edge(n)?;
        let known = self.flow.nodes[edge.src as usize].node.filter(|_| self.flow.op(edge.src) == "Const");
        Ok(match known.and_then(constant_value) {
            Some(0) => self.dead.formulas.always_false(),
            Some(_) => self.dead.formulas.always_true(),
            None => {
                let symbol = Predicate::Symbol { node: edge.src, port: edge.src_port, must_be_true: true };
                self.dead.formulas.intern(symbol)
            }
        })
    }

    fn equals_predicate(&mut self, node: u32, port: i32, value: i32) -> PredicateId {
        let known = self.flow.nodes[node as usize].node.filter(|_| self.flow.op(node) == "Const");
        match known.and_then(constant_value) {
            Some(n) if n == i64::from(value) => self.dead.formulas.always_true(),
            Some(_) => self.dead.formulas.always_false(),
            None => self.dead.formulas.intern(Predicate::Equals { node, port, value }),
        }
    }

    /// The new predicate of a Merge; `None`: the recorded one stays.
    fn visit_merge(&mut self, n: u32, mode: Mode) -> Result<Option<PredicateId>> {
        let Some(current) = self.dead.control[n as usize] else { return self.first_merge_predicate(n, mode).map(Some) };
        if !matches!(self.dead.formulas.get(current), Predicate::Symbol { .. }) {
            return Ok(None);
        }
        let Some(back) = self.back_edge(n) else { return Ok(None) };
        let carried = self.edge_predicate(back)?;
        let Some(step) = self.recurrence_step(carried, current) else { return Ok(None) };
        let others = self.flow.in_edges(n).filter(|e| self.flow.class(e.src) != OpClass::NextIteration);
        let others: Vec<PredicateId> = others.map(|e| self.edge_predicate(e)).collect::<Result<_>>()?;
        let start = self.dead.formulas.or(&others);
        let path = self.frames.frame_path(n).into();
        Ok(Some(self.dead.formulas.intern(Predicate::AndRec { start, step, path })))
    }

    fn first_merge_predicate(&mut self, n: u32, mode: Mode) -> Result<PredicateId> {
        let open = |e: &super::flow::Edge| {
            e.dst_port != CONTROL
                && self.flow.class(e.src) == OpClass::NextIteration
                && self.dead.output_predicate(e.src, e.src_port).is_none()
        };
        if self.flow.in_edges(n).any(|e| open(&e)) {
            let node = match mode {
                Mode::Optimistic => *self.representative.entry(self.frames.by_node[n as usize].name).or_insert(n),
                Mode::Pessimistic => n,
            };
            return Ok(self.dead.formulas.intern(Predicate::Symbol { node, port: 0, must_be_true: false }));
        }
        let data = self.flow.in_edges(n).filter(|e| e.dst_port != CONTROL);
        let data: Vec<PredicateId> = data.map(|e| self.edge_predicate(e)).collect::<Result<_>>()?;
        Ok(self.dead.formulas.or(&data))
    }

    /// Condition that each iteration of a loop adds to the predicate of a Merge: the conjuncts of `carried`, the predicate of the loop's
    /// back edge, without `symbol`, the predicate of the Merge. `None` if `symbol` is no conjunct of `carried`, or if the others depend on
    /// `symbol`.
    fn recurrence_step(&mut self, carried: PredicateId, symbol: PredicateId) -> Option<PredicateId> {
        let Predicate::And(ops) = self.dead.formulas.get(carried) else { return None };
        let rest: Vec<PredicateId> = ops.iter().copied().filter(|&op| op != symbol).collect();
        if rest.len() == ops.len() || rest.iter().any(|&op| self.dead.formulas.occurs(symbol, op)) {
            return None;
        }
        Some(self.dead.formulas.and(&rest))
    }
}

/// The first element of a constant of integers or booleans.
fn constant_value(node: &Node) -> Option<i64> {
    let Some(Attr::Tensor(value)) = node.attr("value") else { return None };
    value.get_i64(0)
}
