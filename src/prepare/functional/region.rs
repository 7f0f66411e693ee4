//! Regions: what is computed together, and in which steps.
//!
//! A region is a part of one frame under some outcomes of tests. What is always there in the region around it is taken from there; what
//! depends on one more test goes to a region inside.
use super::class::{ControlClass, class};
use super::formula::Bdd;
use super::liveness::frame_left;
use super::{Flow, liveness};
use crate::diag::{Error, Result};
use crate::graph::{Endpoint, NodeId};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Outcomes of tests.
pub type Path = Vec<(u32, bool)>;

/// A part of the graph that becomes one function, or the graph itself.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// The frame.
    pub frame: usize,
    /// Outcomes of tests under which the region runs.
    pub path: Path,
    /// Outcomes of tests in the surrounding region, if there is one in the same frame.
    pub around: Option<Path>,
    /// The values that it is there for.
    pub targets: Vec<Endpoint>,
    /// The nodes with effects that it is there for.
    pub effects: Vec<NodeOrLoop>,
    /// Merges that are decided here, though the region around has their values.
    pub own: HashSet<NodeId>,
    /// Whether nothing is around it: it is a graph or the body of a function.
    pub is_whole: bool,
    /// Loops that the regions around it have run, though they are not always there.
    pub ahead: BTreeSet<usize>,
    /// Further outcomes that must hold for a loop to go on, because the region is computed whether they hold or not.
    pub guard: Path,
    /// The region that it is written into, if it is computed ahead and no function of its own.
    pub into: Option<Box<Region>>,
}

/// A node, or a whole loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum NodeOrLoop {
    /// A node of the region's frame.
    Node(NodeId),
    /// A loop inside of it.
    Loop(usize),
}

/// One step of a region.
#[derive(Clone, Debug)]
pub enum RegionStep {
    /// Computes a node or runs a loop.
    Do(NodeOrLoop),
    /// Decides by a test about Merges, and about nodes with effects.
    Branch(u32, Vec<NodeOrLoop>),
}

impl RegionStep {
    /// Units that the step decides about, if it is a branch.
    pub fn decided(&self) -> Option<&[NodeOrLoop]> {
        match self {
            RegionStep::Branch(_, units) => Some(units),
            RegionStep::Do(_) => None,
        }
    }
}

/// The input that a `Merge` passes on in a region.
pub enum MergeInput {
    /// The input of this number.
    Input(usize),
    /// An input that depends on the outcome of this test.
    Test(u32),
    /// None of its inputs.
    Dead,
}

/// Where a region has a value from.
pub enum ValueSource {
    /// From the region around it, or from outside of the loop.
    Around(Endpoint),
    /// From a node that the region computes.
    Inside(Endpoint),
    /// The index of the input that a Merge passes on.
    Index(usize),
}

impl Flow<'_> {
    /// The unit that computes what a node gives to its frame.
    pub fn unit(&self, id: NodeId) -> NodeOrLoop {
        match class(&self.graph.nodes[id].op) {
            ControlClass::Exit => {
                frame_left(self.graph, &self.frames, id).map_or(NodeOrLoop::Node(id), NodeOrLoop::Loop)
            }
            _ => NodeOrLoop::Node(id),
        }
    }

    /// When a unit does something.
    pub fn unit_live(&self, unit: NodeOrLoop) -> Bdd {
        match unit {
            NodeOrLoop::Node(id) => self.live.node(id),
            NodeOrLoop::Loop(frame) => self.live.frame(frame),
        }
    }

    /// When an output has a value in a region.
    pub fn live_in(&mut self, e: Endpoint, path: &Path) -> Bdd {
        let f = self.live.at(e);
        self.live.formulas.under(f, path)
    }

    pub fn always(&mut self, f: Bdd, path: &Path) -> bool {
        self.live.formulas.under(f, path) == Bdd::TRUE
    }

    /// The input that a `Merge` passes on under a path.
    pub fn choice(&mut self, merge: NodeId, path: &Path) -> MergeInput {
        let mut test: Option<u32> = None;
        for i in 0..self.graph.nodes[merge].inputs.len() {
            let f = self.live_in(self.graph.nodes[merge].inputs[i], path);
            if f == Bdd::TRUE {
                return MergeInput::Input(i);
            }
            test = self.live.formulas.first(f).into_iter().chain(test).min();
        }
        test.map_or(MergeInput::Dead, MergeInput::Test)
    }

    /// Where a region has a value from. Errors: internal, for a value that is dead in it.
    pub fn source(&mut self, region: &Region, mut e: Endpoint) -> Result<ValueSource> {
        for _ in 0..=self.graph.nodes.len() {
            let node = &self.graph.nodes[e.node];
            if self.frames.of[e.node] != region.frame {
                return Ok(ValueSource::Around(e));
            }
            let kind = class(&node.op);
            let around = match &region.around {
                Some(path) if kind != ControlClass::Switch && !region.own.contains(&e.node) => {
                    let f = self.live.at(e);
                    self.always(f, path) || self.is_ahead(region, self.unit(e.node))
                }
                _ => false,
            };
            match kind {
                ControlClass::Switch | ControlClass::LoopCond | ControlClass::NextIteration => e = node.inputs[0],
                ControlClass::Enter => return Ok(ValueSource::Around(node.inputs[0])),
                ControlClass::Merge if around || self.is_variable[e.node] => return Ok(ValueSource::Around(e)),
                ControlClass::Merge => match self.choice(e.node, &region.path) {
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
    fn waits(&mut self, region: &Region, unit: NodeOrLoop) -> Vec<NodeOrLoop> {
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
            NodeOrLoop::Node(id) => match class(&graph.nodes[id].op) {
                ControlClass::Enter => {}
                ControlClass::Merge if self.is_variable[id] => {}
                ControlClass::Merge => match self.choice(id, &region.path) {
                    MergeInput::Input(i) => from.push(graph.nodes[id].inputs[i].node),
                    MergeInput::Test(_) => {
                        for &e in &graph.nodes[id].inputs {
                            if self.live_in(e, &region.path) != Bdd::FALSE {
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
                let f = self.live.node(id);
                region.own.contains(&id) || !(self.always(f, path) || self.is_ahead(region, self.unit(id)))
            });
        }
        let mut units: Vec<NodeOrLoop> = from.into_iter().map(|id| self.unit(id)).collect();
        units.sort_unstable();
        units.dedup();
        units
    }

    /// The steps of a region, producers first, given what each unit waits for and which loops are run ahead.
    ///
    /// Merges that wait for one test are decided together as far as none waits for another. Errors: `BadGraph` for units that wait for
    /// each other.
    pub fn steps_of(
        &mut self,
        region: &Region,
        waits: &BTreeMap<NodeOrLoop, Vec<NodeOrLoop>>,
        ahead: &BTreeSet<usize>,
    ) -> Result<Vec<RegionStep>> {
        let is_ahead = |unit: &NodeOrLoop| matches!(unit, NodeOrLoop::Loop(frame) if ahead.contains(frame));
        let mut users: HashMap<NodeOrLoop, Vec<NodeOrLoop>> = HashMap::new();
        let mut missing: BTreeMap<NodeOrLoop, usize> = BTreeMap::new();
        for (&unit, from) in waits {
            missing.insert(unit, from.len());
            for &f in from {
                users.entry(f).or_default().push(unit);
            }
        }
        let mut tests: BTreeMap<NodeOrLoop, u32> =
            missing.keys().filter(|u| !is_ahead(u)).filter_map(|&u| Some((u, self.test_of(region, u)?))).collect();
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
                    if is_ahead(&unit) || self.is_step(region, unit) {
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
                    decided.extend(inner_of(&units, waits, &tests, &inner));
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

    /// The units with effects that are done together with what needs them on the same side of a test, and not before.
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
                    let f = self.unit_live(user);
                    if !tests.contains_key(&user) && !self.always(f, &region.path) && seen.insert(user) {
                        todo.push(user);
                    }
                }
            }
        }
        inner
    }

    /// Whether a unit is a loop that a region around this one has run.
    fn is_ahead(&self, region: &Region, unit: NodeOrLoop) -> bool {
        matches!(unit, NodeOrLoop::Loop(frame) if region.ahead.contains(&frame))
    }

    /// All units that the targets and effects of a region wait for, with what each waits for.
    pub fn all_waits(&mut self, region: &Region) -> BTreeMap<NodeOrLoop, Vec<NodeOrLoop>> {
        let mut todo: Vec<NodeOrLoop> = region.effects.clone();
        for &e in &region.targets {
            let foreign = self.frames.of[e.node] != region.frame;
            let f = self.live.node(e.node);
            let around = region.around.as_ref().is_some_and(|path| self.always(f, path));
            let around = around || self.is_ahead(region, self.unit(e.node));
            if !foreign && (region.own.contains(&e.node) || !around) {
                todo.push(self.unit(e.node));
            }
        }
        let mut found = BTreeMap::new();
        while let Some(unit) = todo.pop() {
            if let Entry::Vacant(new) = found.entry(unit) {
                let waits = self.waits(region, unit);
                todo.extend(waits.iter().copied());
                new.insert(waits);
            }
        }
        found
    }

    /// Whether a unit that is not decided by a test is computed in the region itself.
    fn is_step(&mut self, region: &Region, unit: NodeOrLoop) -> bool {
        let f = self.unit_live(unit);
        let kind = match unit {
            NodeOrLoop::Loop(_) => ControlClass::Other,
            NodeOrLoop::Node(id) => class(&self.graph.nodes[id].op),
        };
        kind == ControlClass::Other && self.always(f, &region.path)
    }

    /// The test that a unit waits for in a region: a Merge that the region has a value of, or something with effects that it does not
    /// always do.
    fn test_of(&mut self, region: &Region, unit: NodeOrLoop) -> Option<u32> {
        let f = self.unit_live(unit);
        let f = self.live.formulas.under(f, &region.path);
        if let NodeOrLoop::Node(id) = unit
            && class(&self.graph.nodes[id].op) == ControlClass::Merge
            && !self.is_variable[id]
        {
            return match self.choice(id, &region.path) {
                MergeInput::Test(test) if f == Bdd::TRUE => Some(test),
                _ => None,
            };
        }
        if region.effects.contains(&unit) { self.live.formulas.first(f) } else { None }
    }

    /// The test with this number.
    pub fn test(&self, number: u32) -> Option<liveness::Test> {
        self.live.tests.get(number as usize).copied()
    }
}

/// Units of `inner` on which `units` depend through units that no test decides.
fn inner_of(
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
