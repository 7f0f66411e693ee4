//! Regions: parts of a graph that become one function, and their steps.
//!
//! A region is a part of one frame under certain outcomes of tests. Values that are always live in the surrounding region are taken from
//! there; values that depend on another test belong to a nested region.
use super::bdd::Bdd;
use super::control_class::{ControlClass, control_class};
use super::liveness::frame_of_exit;
use super::{Functionalizer, liveness};
use crate::diag::{Error, Result};
use crate::graph::{Endpoint, NodeId};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Outcomes of tests, by test number.
pub type TestOutcomes = Vec<(u32, bool)>;

/// A part of the graph that becomes one function, or the graph itself.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// Index of the frame.
    pub frame: usize,
    /// Outcomes of tests under which the region runs.
    pub path: TestOutcomes,
    /// Outcomes of tests in the surrounding region, if there is one in the same frame.
    pub around: Option<TestOutcomes>,
    /// Values that the region computes as results.
    pub targets: Vec<Endpoint>,
    /// Nodes and loops with side effects that the region runs.
    pub effects: Vec<NodeOrLoop>,
    /// Merges whose forwarded input is decided within the region, although they are live in the surrounding region.
    pub own: HashSet<NodeId>,
    /// Whether the region has no surrounding one: it is a graph or the body of a function.
    pub is_whole: bool,
    /// Loops hoisted into surrounding regions, by frame index.
    pub hoisted: BTreeSet<usize>,
    /// Outcomes of tests that are joined to a loop's condition by AND: the region itself runs whether they hold or not.
    pub guard: TestOutcomes,
    /// Region into which this one is emitted, if it belongs to a hoisted loop and is no function of its own.
    pub into: Option<Box<Region>>,
}

/// Unit of ordering in a region: a node, or a whole inner loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum NodeOrLoop {
    /// A node of the region's frame.
    Node(NodeId),
    /// A loop nested in the region's frame, by frame index.
    Loop(usize),
}

/// One step of the computation of a region: a node, a loop or a branch.
#[derive(Clone, Debug)]
pub enum RegionStep {
    /// Computes a node or runs a loop.
    Do(NodeOrLoop),
    /// Branches on a test, to resolve Merges and to run nodes with side effects.
    Branch(u32, Vec<NodeOrLoop>),
}

impl RegionStep {
    /// Nodes and loops within the branch; `None` if the step is no branch.
    pub fn branch_units(&self) -> Option<&[NodeOrLoop]> {
        match self {
            RegionStep::Branch(_, units) => Some(units),
            RegionStep::Do(_) => None,
        }
    }
}

/// Input that a `Merge` forwards in a region.
pub enum MergeInput {
    /// The input with this index.
    Input(usize),
    /// Not decided in the region: the input depends on the outcome of the test with this number.
    Test(u32),
    /// The Merge takes none of its inputs: it does not run.
    Dead,
}

/// Source of a value in a region.
pub enum ValueSource {
    /// An output of the surrounding region, or from outside of the loop.
    Around(Endpoint),
    /// An output of a node that the region computes.
    Inside(Endpoint),
    /// The constant index of the input that a Merge forwards.
    Index(usize),
}

impl Functionalizer<'_> {
    /// Unit that computes the outputs of a node: the loop for an `Exit`, else the node itself.
    pub fn node_or_loop_of(&self, id: NodeId) -> NodeOrLoop {
        match control_class(&self.graph.nodes[id].op) {
            ControlClass::Exit => {
                frame_of_exit(self.graph, &self.frames, id).map_or(NodeOrLoop::Node(id), NodeOrLoop::Loop)
            }
            _ => NodeOrLoop::Node(id),
        }
    }

    /// Condition, as a formula, under which a node or loop runs.
    pub fn run_condition(&self, unit: NodeOrLoop) -> Bdd {
        match unit {
            NodeOrLoop::Node(id) => self.live.node_condition(id),
            NodeOrLoop::Loop(frame) => self.live.frame_condition(frame),
        }
    }

    /// Condition, as a formula, under which an output has a value, given the outcomes of the tests on a path.
    pub fn live_condition_under(&mut self, e: Endpoint, path: &TestOutcomes) -> Bdd {
        let f = self.live.output_condition(e);
        self.live.formulas.restrict(f, path)
    }

    pub fn is_always_live(&mut self, f: Bdd, path: &TestOutcomes) -> bool {
        self.live.formulas.restrict(f, path) == Bdd::TRUE
    }

    /// Input that a `Merge` forwards under a path.
    pub fn merge_input(&mut self, merge: NodeId, path: &TestOutcomes) -> MergeInput {
        let mut test: Option<u32> = None;
        for i in 0..self.graph.nodes[merge].inputs.len() {
            let f = self.live_condition_under(self.graph.nodes[merge].inputs[i], path);
            if f == Bdd::TRUE {
                return MergeInput::Input(i);
            }
            test = self.live.formulas.first_variable(f).into_iter().chain(test).min();
        }
        test.map_or(MergeInput::Dead, MergeInput::Test)
    }

    /// Source of a value in a region. Errors: internal, for a value that is dead there.
    pub fn value_source(&mut self, region: &Region, mut e: Endpoint) -> Result<ValueSource> {
        for _ in 0..=self.graph.nodes.len() {
            let node = &self.graph.nodes[e.node];
            if self.frames.of[e.node] != region.frame {
                return Ok(ValueSource::Around(e));
            }
            let kind = control_class(&node.op);
            let around = match &region.around {
                Some(path) if kind != ControlClass::Switch && !region.own.contains(&e.node) => {
                    let f = self.live.output_condition(e);
                    self.is_always_live(f, path) || self.is_hoisted(region, self.node_or_loop_of(e.node))
                }
                _ => false,
            };
            match kind {
                ControlClass::Switch | ControlClass::LoopCond | ControlClass::NextIteration => e = node.inputs[0],
                ControlClass::Enter => return Ok(ValueSource::Around(node.inputs[0])),
                ControlClass::Merge if around || self.is_variable[e.node] => return Ok(ValueSource::Around(e)),
                ControlClass::Merge => match self.merge_input(e.node, &region.path) {
                    MergeInput::Input(i) if e.port == 1 => return Ok(ValueSource::Index(i)),
                    MergeInput::Input(i) => e = node.inputs[i],
                    MergeInput::Test(_) => return Ok(ValueSource::Inside(e)),
                    MergeInput::Dead => return Err(Error::internal("prepare", format!("`{}` is dead", node.name))),
                },
                _ if around => return Ok(ValueSource::Around(e)),
                _ => return Ok(ValueSource::Inside(e)),
            }
        }
        Err(Error::internal("prepare", "a cycle of Switches"))
    }

    /// Units that a unit depends on in a region.
    fn dependencies(&mut self, region: &Region, unit: NodeOrLoop) -> Vec<NodeOrLoop> {
        let graph = self.graph;
        let mut from: Vec<NodeId> = Vec::new();
        let whole = |id: NodeId| {
            let node = &graph.nodes[id];
            node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied())
        };
        match unit {
            NodeOrLoop::Loop(frame) => {
                let frame = &self.frames.all[frame];
                from.extend(frame.enters.iter().flat_map(|&id| whole(id)));
                from.extend(frame.outside.iter().map(|e| e.node));
            }
            NodeOrLoop::Node(id) => match control_class(&graph.nodes[id].op) {
                ControlClass::Enter => {}
                ControlClass::Merge if self.is_variable[id] => {}
                ControlClass::Merge => match self.merge_input(id, &region.path) {
                    MergeInput::Input(i) => from.push(graph.nodes[id].inputs[i].node),
                    MergeInput::Test(_) => {
                        for &e in &graph.nodes[id].inputs {
                            if self.live_condition_under(e, &region.path) != Bdd::FALSE {
                                from.push(e.node);
                            }
                        }
                    }
                    MergeInput::Dead => {}
                },
                _ => from.extend(whole(id)),
            },
        }
        from.retain(|&id| self.frames.of[id] == region.frame);
        if let Some(path) = &region.around {
            from.retain(|&id| {
                let f = self.live.node_condition(id);
                region.own.contains(&id)
                    || !(self.is_always_live(f, path) || self.is_hoisted(region, self.node_or_loop_of(id)))
            });
        }
        let mut units: Vec<NodeOrLoop> = from.into_iter().map(|id| self.node_or_loop_of(id)).collect();
        units.sort_unstable();
        units.dedup();
        units
    }

    /// Orders the steps of a region, producers first, given the dependencies of each unit and the hoisted loops.
    ///
    /// Merges that depend on the same test are resolved in one branch as far as they do not depend on one another. Errors: internal, for units
    /// that depend on each other.
    pub fn order_steps(
        &mut self,
        region: &Region,
        waits: &BTreeMap<NodeOrLoop, Vec<NodeOrLoop>>,
        hoisted: &BTreeSet<usize>,
    ) -> Result<Vec<RegionStep>> {
        let is_hoisted = |unit: &NodeOrLoop| matches!(unit, NodeOrLoop::Loop(frame) if hoisted.contains(frame));
        let mut users: HashMap<NodeOrLoop, Vec<NodeOrLoop>> = HashMap::new();
        let mut missing: BTreeMap<NodeOrLoop, usize> = BTreeMap::new();
        for (&unit, from) in waits {
            missing.insert(unit, from.len());
            for &f in from {
                users.entry(f).or_default().push(unit);
            }
        }
        let mut tests: BTreeMap<NodeOrLoop, u32> = missing
            .keys()
            .filter(|u| !is_hoisted(u))
            .filter_map(|&u| Some((u, self.deciding_test(region, u)?)))
            .collect();
        let inner = self.inner_effects(region, &tests, &users);
        tests.retain(|unit, _| !inner.contains(unit));
        let mut left: BTreeMap<u32, usize> = BTreeMap::new();
        for test in tests.values() {
            *left.entry(*test).or_default() += 1;
        }
        let mut parked: BTreeMap<u32, Vec<NodeOrLoop>> = BTreeMap::new();
        let mut ready: Vec<NodeOrLoop> = missing.iter().filter(|(_, n)| **n == 0).map(|(u, _)| *u).rev().collect();
        let (mut steps, mut done) = (Vec::new(), 0);
        loop {
            let finished = match ready.pop() {
                Some(unit) if tests.contains_key(&unit) => {
                    parked.entry(tests[&unit]).or_default().push(unit);
                    continue;
                }
                Some(unit) => {
                    if is_hoisted(&unit) || self.is_step(region, unit) {
                        steps.push(RegionStep::Do(unit));
                    }
                    vec![unit]
                }
                None => {
                    let complete = parked.iter().find(|(test, units)| left[*test] == units.len());
                    let Some(test) = complete.or_else(|| parked.iter().next()).map(|(test, _)| *test) else { break };
                    let units = parked.remove(&test).unwrap_or_default();
                    left.entry(test).and_modify(|n| *n -= units.len());
                    let mut decided = units.clone();
                    decided.extend(inner_units_of(&units, waits, &tests, &inner));
                    steps.push(RegionStep::Branch(test, decided));
                    units
                }
            };
            done += finished.len();
            for user in finished.iter().flat_map(|u| users.get(u).into_iter().flatten()) {
                let n = missing.get_mut(user).ok_or_else(|| Error::internal("prepare", "a step without inputs"))?;
                *n -= 1;
                if *n == 0 {
                    ready.push(*user);
                }
            }
        }
        if done == waits.len() { Ok(steps) } else { Err(Error::internal("prepare", "steps wait for each other")) }
    }

    /// Units with side effects that run within a branch, together with the units that need them on the same side of its test.
    fn inner_effects(
        &mut self,
        region: &Region,
        tests: &BTreeMap<NodeOrLoop, u32>,
        users: &HashMap<NodeOrLoop, Vec<NodeOrLoop>>,
    ) -> BTreeSet<NodeOrLoop> {
        let mut inner = BTreeSet::new();
        for (&unit, test) in tests.iter().filter(|(unit, _)| region.effects.contains(unit)) {
            let (mut todo, mut seen) = (vec![unit], HashSet::new());
            while let Some(at) = todo.pop() {
                for &user in users.get(&at).into_iter().flatten() {
                    if tests.get(&user) == Some(test) {
                        inner.insert(unit);
                    }
                    let f = self.run_condition(user);
                    if !tests.contains_key(&user) && !self.is_always_live(f, &region.path) && seen.insert(user) {
                        todo.push(user);
                    }
                }
            }
        }
        inner
    }

    /// Whether a unit is a loop that was hoisted into a surrounding region.
    fn is_hoisted(&self, region: &Region, unit: NodeOrLoop) -> bool {
        matches!(unit, NodeOrLoop::Loop(frame) if region.hoisted.contains(&frame))
    }

    /// Nodes and loops that the targets and side effects of a region depend on, each with its direct dependencies.
    pub fn all_dependencies(&mut self, region: &Region) -> BTreeMap<NodeOrLoop, Vec<NodeOrLoop>> {
        let mut todo: Vec<NodeOrLoop> = region.effects.clone();
        for &e in &region.targets {
            let foreign = self.frames.of[e.node] != region.frame;
            let f = self.live.node_condition(e.node);
            let around = region.around.as_ref().is_some_and(|path| self.is_always_live(f, path));
            let around = around || self.is_hoisted(region, self.node_or_loop_of(e.node));
            if !foreign && (region.own.contains(&e.node) || !around) {
                todo.push(self.node_or_loop_of(e.node));
            }
        }
        let mut found = BTreeMap::new();
        while let Some(unit) = todo.pop() {
            if let Entry::Vacant(new) = found.entry(unit) {
                let waits = self.dependencies(region, unit);
                todo.extend(waits.iter().copied());
                new.insert(waits);
            }
        }
        found
    }

    /// Whether a unit is computed in the region itself, rather than in a branch.
    fn is_step(&mut self, region: &Region, unit: NodeOrLoop) -> bool {
        let f = self.run_condition(unit);
        let kind = match unit {
            NodeOrLoop::Loop(_) => ControlClass::Other,
            NodeOrLoop::Node(id) => control_class(&self.graph.nodes[id].op),
        };
        kind == ControlClass::Other && self.is_always_live(f, &region.path)
    }

    /// Test on which the region must branch for a unit: for a Merge that is live there, or a unit with side effects that does not always run.
    fn deciding_test(&mut self, region: &Region, unit: NodeOrLoop) -> Option<u32> {
        let f = self.run_condition(unit);
        let f = self.live.formulas.restrict(f, &region.path);
        if let NodeOrLoop::Node(id) = unit
            && control_class(&self.graph.nodes[id].op) == ControlClass::Merge
            && !self.is_variable[id]
        {
            return match self.merge_input(id, &region.path) {
                MergeInput::Test(test) if f == Bdd::TRUE => Some(test),
                _ => None,
            };
        }
        if region.effects.contains(&unit) { self.live.formulas.first_variable(f) } else { None }
    }

    /// Test with this number.
    pub fn branch_test(&self, number: u32) -> Option<liveness::BranchTest> {
        self.live.tests.get(number as usize).copied()
    }
}

/// Units of `inner` on which `units` depend, directly or through other units that are not resolved by a test.
fn inner_units_of(
    units: &[NodeOrLoop],
    waits: &BTreeMap<NodeOrLoop, Vec<NodeOrLoop>>,
    tests: &BTreeMap<NodeOrLoop, u32>,
    inner: &BTreeSet<NodeOrLoop>,
) -> BTreeSet<NodeOrLoop> {
    let (mut found, mut seen, mut todo) = (BTreeSet::new(), HashSet::new(), units.to_vec());
    while let Some(unit) = todo.pop().filter(|_| !inner.is_empty()) {
        for &from in waits.get(&unit).into_iter().flatten() {
            if !tests.contains_key(&from) && seen.insert(from) {
                found.extend(inner.get(&from));
                todo.push(from);
            }
        }
    }
    found
}
