//! Deadness analysis: under which formula each output of each node, and its control output, is alive.
//!
//! Nodes are visited in an order that keeps each outermost loop together. A loop is first tried optimistically, as if all its
//! Merges lived together; where that does not come out, it is done again with each Merge for itself.
use super::flow::{CONTROL, Flow, OpClass, SINK, SOURCE};
use super::frames::Frames;
use super::predicate::{Pred, Predicate, PredicateNames, Predicates};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Node};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The formulas of a graph.
pub struct Deadness {
    /// All formulas.
    pub formulas: Predicates,
    /// The formula of each node's control output; `None` for `_SINK`.
    control: Vec<Option<Pred>>,
    /// The formulas of the outputs where they are not that of the control output.
    outputs: HashMap<u32, Box<[Pred]>>,
}

/// Liveness formulas recorded for a node.
#[derive(Clone, PartialEq, Eq)]
struct Alive {
    control: Pred,
    outputs: Option<Box<[Pred]>>,
}

struct Analysis<'a, 'p> {
    flow: &'a Flow<'p>,
    frames: &'a Frames,
    dead: Deadness,
    /// By frame name: the Merge that stands for all in the optimistic mode.
    representative: HashMap<u32, u32>,
    /// The run of a block in which a node is to be visited again.
    revisit: Vec<u32>,
    run: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Optimistic,
    Pessimistic,
}

/// Analyses `flow`. Errors: `BadGraph` for loops that are not built as TensorFlow builds them.
pub fn analyse(flow: &Flow, frames: &Frames) -> Result<Deadness> {
    let dead =
        Deadness { formulas: Predicates::default(), control: vec![None; flow.nodes.len()], outputs: HashMap::new() };
    let mut analysis =
        Analysis { flow, frames, dead, representative: HashMap::new(), revisit: vec![0; flow.nodes.len()], run: 0 };
    let order = order(flow, frames)?;
    let mut rest = &order[..];
    while let Some(&first) = rest.first() {
        let root = frames.root_name(first);
        let len = rest.iter().position(|&n| frames.root_name(n) != root).unwrap_or(rest.len());
        let (block, after) = rest.split_at(len);
        rest = after;
        if root == 0 || !analysis.block(block, Mode::Optimistic)? {
            analysis.block(block, Mode::Pessimistic)?;
        }
    }
    Ok(analysis.dead)
}

impl Deadness {
    /// When `n` runs.
    pub fn of_node(&self, n: u32) -> Option<Pred> {
        self.control[n as usize]
    }
    /// When an output (control: -1) is alive.
    pub fn of_output(&self, n: u32, port: i32) -> Option<Pred> {
        match self.outputs.get(&n) {
            Some(outputs) if port >= 0 => outputs.get(port as usize).copied(),
            _ => self.control[n as usize],
        }
    }
    /// The text of a formula, as TensorFlow prints it, cut where it gets long.
    pub fn text(&self, pred: Pred, flow: &Flow, frames: &Frames) -> String {
        self.formulas.text(pred, &Texts { flow, frames }, 2000)
    }
}

struct Texts<'a, 'p> {
    flow: &'a Flow<'p>,
    frames: &'a Frames,
}

impl PredicateNames for Texts<'_, '_> {
    fn node(&self, n: u32) -> &str {
        self.flow.name(n)
    }
    fn frame(&self, name: u32) -> &str {
        self.frames.names.get(name as usize).map_or("", String::as_str)
    }
}

/// Nodes after their inputs; the Enters of an outermost frame go together, and so do Exits.
fn order(flow: &Flow, frames: &Frames) -> Result<Vec<u32>> {
    let outermost = |n: u32, class: OpClass| flow.class(n) == class && frames.is_outermost(n);
    let mut ready = vec![0usize; flow.nodes.len()];
    let mut enters: HashMap<u32, usize> = HashMap::new();
    for n in flow.op_nodes() {
        if outermost(n, OpClass::Enter) {
            *enters.entry(frames.of[n as usize].name).or_default() += 1;
        }
        if flow.class(n) == OpClass::Merge {
            ready[n as usize] = flow.ins(n).filter(|e| flow.class(e.src) == OpClass::NextIteration).count();
        }
    }
    let mut held_enters: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut held_exits: Vec<u32> = Vec::new();
    let mut queue = VecDeque::from([SOURCE]);
    let mut order = Vec::with_capacity(flow.nodes.len());
    while let Some(n) = queue.pop_front() {
        order.push(n);
        for edge in flow.outs(n) {
            let to = edge.dst;
            if flow.class(n) == OpClass::NextIteration && flow.class(to) == OpClass::Merge {
                continue;
            }
            ready[to as usize] += 1;
            if to == SINK || ready[to as usize] != flow.nodes[to as usize].ins.len() {
                continue;
            }
            if outermost(to, OpClass::Enter) {
                held_enters.entry(frames.of[to as usize].name).or_default().push(to);
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
    /// Visits the nodes of a block; false where the optimistic mode did not come out.
    fn block(&mut self, block: &[u32], mode: Mode) -> Result<bool> {
        let flow = self.flow;
        self.run += 1;
        for &n in block {
            self.visit(n, mode, false)?;
            if flow.class(n) == OpClass::NextIteration {
                for edge in flow.outs(n).filter(|e| flow.class(e.dst) == OpClass::Merge) {
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
        if mode == Mode::Pessimistic || self.came_out(block) {
            return Ok(true);
        }
        for &n in block {
            self.dead.control[n as usize] = None;
            self.dead.outputs.remove(&n);
        }
        Ok(false)
    }

    /// Whether all Merges of each frame carry one and the same formula of a loop.
    fn came_out(&self, block: &[u32]) -> bool {
        let mut of_frame: HashMap<u32, Pred> = HashMap::new();
        for &n in block.iter().filter(|&&n| self.flow.class(n) == OpClass::Merge && self.back_edge(n).is_some()) {
            let Some(pred) = self.dead.control[n as usize] else { return false };
            if !matches!(self.dead.formulas.get(pred), Predicate::AndRec { .. })
                || *of_frame.entry(self.frames.of[n as usize].name).or_insert(pred) != pred
            {
                return false;
            }
        }
        true
    }

    fn back_edge(&self, n: u32) -> Option<super::flow::Edge> {
        self.flow.ins(n).find(|e| self.flow.class(e.src) == OpClass::NextIteration)
    }

    /// Records what is alive at `n`; consumers are marked where `again` and something changed.
    fn visit(&mut self, n: u32, mode: Mode, again: bool) -> Result<()> {
        let alive = match self.flow.class(n) {
            OpClass::Switch => self.switch(n)?,
            OpClass::SwitchN => self.switch_n(n)?,
            OpClass::Merge => match self.merge(n, mode)? {
                Some(pred) => Alive { control: pred, outputs: None },
                None => return Ok(()),
            },
            OpClass::Recv => {
                let mut ops = self.inputs(n)?;
                ops.push(self.dead.formulas.intern(Predicate::Symbol { node: n, port: 0, must_be_true: false }));
                Alive { control: self.dead.formulas.and(&ops), outputs: None }
            }
            _ if self.flow.op(n) == "ControlTrigger" => Alive { control: self.dead.formulas.yes(), outputs: None },
            _ => {
                let ops = self.inputs(n)?;
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
            for edge in self.flow.outs(n) {
                self.revisit[edge.dst as usize] = self.run;
            }
        }
    }

    fn input(&self, edge: super::flow::Edge) -> Result<Pred> {
        self.dead.of_output(edge.src, edge.src_port).ok_or_else(|| {
            let told = format!("deadness of `{}` is asked for before it is known", self.flow.name(edge.src));
            Error::internal("cluster", told)
        })
    }
    fn inputs(&self, n: u32) -> Result<Vec<Pred>> {
        self.flow.ins(n).map(|edge| self.input(edge)).collect()
    }

    fn switch(&mut self, n: u32) -> Result<Alive> {
        let ops = self.inputs(n)?;
        let taken = self.truth(n)?;
        let not = self.dead.formulas.not(taken);
        let with = |extra: Pred, f: &mut Predicates| f.and(&[&ops[..], &[extra]].concat());
        let outputs = [with(not, &mut self.dead.formulas), with(taken, &mut self.dead.formulas)];
        Ok(Alive { control: self.dead.formulas.and(&ops), outputs: Some(outputs.into()) })
    }

    fn switch_n(&mut self, n: u32) -> Result<Alive> {
        let mut ops = self.inputs(n)?;
        let index = self.selector(n)?;
        let mut outputs = Vec::new();
        for value in 0..self.flow.output_count(n).saturating_sub(1) {
            let taken = self.equals(index.src, index.src_port, value as i32);
            ops.push(taken);
            outputs.push(self.dead.formulas.and(&ops));
            ops.pop();
            ops.push(self.dead.formulas.not(taken));
        }
        let last = self.dead.formulas.and(&ops);
        outputs.push(last);
        Ok(Alive { control: last, outputs: Some(outputs.into()) })
    }

    fn selector(&self, n: u32) -> Result<super::flow::Edge> {
        self.flow.input(n, 1).ok_or_else(|| {
            Error::user(Code::BadGraph, format!("`{}` has no input that selects its output", self.flow.name(n)))
        })
    }

    /// The formula "the predicate of a Switch is alive and true"; a constant where the predicate is one.
    fn truth(&mut self, n: u32) -> Result<Pred> {
        let edge = self.selector(n)?;
        let known = self.flow.nodes[edge.src as usize].node.filter(|_| self.flow.op(edge.src) == "Const");
        Ok(match known.and_then(constant) {
            Some(0) => self.dead.formulas.no(),
            Some(_) => self.dead.formulas.yes(),
            None => {
                let symbol = Predicate::Symbol { node: edge.src, port: edge.src_port, must_be_true: true };
                self.dead.formulas.intern(symbol)
            }
        })
    }

    fn equals(&mut self, node: u32, port: i32, value: i32) -> Pred {
        let known = self.flow.nodes[node as usize].node.filter(|_| self.flow.op(node) == "Const");
        match known.and_then(constant) {
            Some(n) if n == i64::from(value) => self.dead.formulas.yes(),
            Some(_) => self.dead.formulas.no(),
            None => self.dead.formulas.intern(Predicate::Equals { node, port, value }),
        }
    }

    /// The formula of a Merge; `None`: what is recorded stays.
    fn merge(&mut self, n: u32, mode: Mode) -> Result<Option<Pred>> {
        let Some(current) = self.dead.control[n as usize] else { return self.first_merge(n, mode).map(Some) };
        if !matches!(self.dead.formulas.get(current), Predicate::Symbol { .. }) {
            return Ok(None);
        }
        let Some(back) = self.back_edge(n) else { return Ok(None) };
        let carried = self.input(back)?;
        let Some(step) = self.step(carried, current) else { return Ok(None) };
        let others = self.flow.ins(n).filter(|e| self.flow.class(e.src) != OpClass::NextIteration);
        let others: Vec<Pred> = others.map(|e| self.input(e)).collect::<Result<_>>()?;
        let start = self.dead.formulas.or(&others);
        let path = self.frames.path(n).into();
        Ok(Some(self.dead.formulas.intern(Predicate::AndRec { start, step, path })))
    }

    fn first_merge(&mut self, n: u32, mode: Mode) -> Result<Pred> {
        let open = |e: &super::flow::Edge| {
            e.dst_port != CONTROL
                && self.flow.class(e.src) == OpClass::NextIteration
                && self.dead.of_output(e.src, e.src_port).is_none()
        };
        if self.flow.ins(n).any(|e| open(&e)) {
            let node = match mode {
                Mode::Optimistic => *self.representative.entry(self.frames.of[n as usize].name).or_insert(n),
                Mode::Pessimistic => n,
            };
            return Ok(self.dead.formulas.intern(Predicate::Symbol { node, port: 0, must_be_true: false }));
        }
        let data = self.flow.ins(n).filter(|e| e.dst_port != CONTROL);
        let data: Vec<Pred> = data.map(|e| self.input(e)).collect::<Result<_>>()?;
        Ok(self.dead.formulas.or(&data))
    }

    /// The rest of `carried` where it is `symbol` and something that does not depend on it.
    fn step(&mut self, carried: Pred, symbol: Pred) -> Option<Pred> {
        let Predicate::And(ops) = self.dead.formulas.get(carried) else { return None };
        let rest: Vec<Pred> = ops.iter().copied().filter(|&op| op != symbol).collect();
        if rest.len() == ops.len() || rest.iter().any(|&op| self.dead.formulas.occurs(symbol, op)) {
            return None;
        }
        Some(self.dead.formulas.and(&rest))
    }
}

/// The first element of a constant of truth values or whole numbers.
fn constant(node: &Node) -> Option<i64> {
    let Some(Attr::Tensor(value)) = node.attr("value") else { return None };
    value.get_i64(0)
}
