//! Emission of regions as graphs and functions; branches become `If` nodes.
use super::bdd::Bdd;
use super::control_class::{ControlClass, control_class};
use super::function_draft::{FunctionDraft, new_node};
use super::liveness::BranchTest;
use super::loop_hoisting::RegionSteps;
use super::region::{NodeOrLoop, Region, RegionStep, TestOutcomes, ValueSource};
use super::{Functionalizer, Order, frames};
use crate::diag::{Error, Result};
use crate::graph::{Attr, Endpoint, FuncRef, Node, NodeId, TfType};
use crate::opdef;
use crate::tensor::{DType, Tensor};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Upper bound on the nesting of regions.
const MAX_NESTED: usize = 100;

impl Functionalizer<'_> {
    /// Emits a region into a draft, with its targets as results.
    pub fn emit_region(&mut self, region: &Region, draft: &mut FunctionDraft, depth: usize) -> Result<()> {
        if depth > MAX_NESTED {
            let told = format!("has conditions nested deeper than {MAX_NESTED}");
            return Err(frames::loop_error(&self.frames.all[region.frame], told).into());
        }
        self.emit_steps(region, draft, depth)?;
        for &target in &region.targets {
            let e = self.new_endpoint(region, draft, target)?;
            draft.rets.push(e);
        }
        Ok(())
    }

    /// Emits the steps of a region into a draft.
    pub fn emit_steps(&mut self, region: &Region, draft: &mut FunctionDraft, depth: usize) -> Result<()> {
        let RegionSteps { steps, hoisted } = self.order_steps_with_hoisting(region)?;
        for step in steps {
            match step {
                RegionStep::Do(NodeOrLoop::Node(id)) => self.emit_node(region, draft, id)?,
                RegionStep::Do(NodeOrLoop::Loop(frame)) if hoisted.contains(&frame) => {
                    self.emit_hoisted_loop(region, draft, frame, &hoisted, depth)?;
                }
                RegionStep::Do(NodeOrLoop::Loop(frame)) => self.emit_loop(region, draft, frame, depth)?,
                RegionStep::Branch(test, units) => self.emit_branch(region, draft, test, &units, &hoisted, depth)?,
            }
        }
        Ok(())
    }

    /// New output for an old one in a region; values from the surrounding region become arguments.
    pub fn new_endpoint(&mut self, region: &Region, draft: &mut FunctionDraft, e: Endpoint) -> Result<Endpoint> {
        match self.value_source(region, e)? {
            ValueSource::Around(e) => match &region.into {
                Some(into) => self.new_endpoint(into, draft, e),
                None if region.is_whole => Err(missing_value_error(&self.graph.nodes[e.node])),
                None => Ok(draft.capture(e, self.type_of(e))),
            },
            ValueSource::Index(i) => Ok(int_constant(draft, i as i32)),
            ValueSource::Inside(e) => match draft.kept.get(&e.node) {
                Some(&node) => Ok(Endpoint { node, port: e.port }),
                None => draft.values.get(&e).copied().ok_or_else(|| missing_value_error(&self.graph.nodes[e.node])),
            },
        }
    }

    fn emit_node(&mut self, region: &Region, draft: &mut FunctionDraft, id: NodeId) -> Result<()> {
        if draft.kept.contains_key(&id) {
            return Ok(());
        }
        if self.order_of[id] == Order::Changes {
            if !region.guard.is_empty() {
                return Err(self.shared_effect_error(region, NodeOrLoop::Node(id)));
            }
            self.check_runs_once(region, NodeOrLoop::Node(id))?;
        }
        let old = &self.graph.nodes[id];
        let inputs: Result<Vec<Endpoint>> = old.inputs.iter().map(|&e| self.new_endpoint(region, draft, e)).collect();
        let node = Node { inputs: inputs?.into(), controls: [].into(), ..old.clone() };
        let new = match self.order_of[id] {
            Order::Free => draft.push(node),
            order => draft.push_ordered(node, order == Order::Changes),
        };
        draft.kept.insert(id, new);
        Ok(())
    }

    /// Checks that a unit with side effects runs at most once: two regions that run it must exclude each other. Errors: `ControlFlowV1`.
    pub fn check_runs_once(&mut self, region: &Region, unit: NodeOrLoop) -> Result<()> {
        let excluded = |a: &TestOutcomes, b: &TestOutcomes| a.iter().any(|&(test, value)| b.contains(&(test, !value)));
        let before = self.done.entry(unit).or_default();
        if before.iter().all(|path| excluded(path, &region.path)) {
            before.push(region.path.clone());
            return Ok(());
        }
        Err(self.shared_effect_error(region, unit))
    }

    /// Error for a unit with side effects that several conditionals use, although it must run once.
    pub fn shared_effect_error(&self, region: &Region, unit: NodeOrLoop) -> Error {
        let frame = &self.frames.all[region.frame];
        match unit {
            NodeOrLoop::Loop(inner) => {
                frames::loop_error(&self.frames.all[inner], "changes something that several conditions use")
            }
            NodeOrLoop::Node(id) => {
                let node = &self.graph.nodes[id];
                let told = format!("what `{}` changes is used by several conditions", node.name);
                let told = if frame.name.is_empty() { told } else { format!("cannot be taken apart: {told}") };
                frames::loop_error(frame, told).at_node(&node.name, &node.op)
            }
        }
        .into()
    }

    fn emit_branch(
        &mut self,
        region: &Region,
        draft: &mut FunctionDraft,
        test: u32,
        units: &[NodeOrLoop],
        hoisted: &BTreeSet<usize>,
        depth: usize,
    ) -> Result<()> {
        let (mut targets, mut effects, mut own) = (Vec::new(), Vec::new(), HashSet::new());
        for &unit in units {
            match unit {
                NodeOrLoop::Node(node) if control_class(&self.graph.nodes[node].op) == ControlClass::Merge => {
                    own.insert(node);
                    let ports = if self.indexed.contains(&node) { 0..2 } else { 0..1 };
                    targets.extend(ports.map(|port| Endpoint { node, port }));
                }
                _ => effects.push(unit),
            }
        }
        let name = self.branch_name(units);
        let mut sides = Vec::new();
        for value in [true, false] {
            let path: TestOutcomes = region.path.iter().copied().chain([(test, value)]).collect();
            let side = Region {
                effects: self.live_effects(&effects, &path),
                around: Some(region.path.clone()),
                targets: targets.clone(),
                own: own.clone(),
                path,
                frame: region.frame,
                is_whole: false,
                hoisted: region.hoisted.union(hoisted).copied().collect(),
                guard: region.guard.clone(),
                into: None,
            };
            sides.push(self.draft_region(&side, depth)?);
        }
        let mut args: Vec<Endpoint> = Vec::new();
        for &(e, _) in sides.iter().flat_map(|s| &s.args) {
            if !args.contains(&e) {
                args.push(e);
            }
        }
        let changes = sides.iter().any(|s| !s.effects.is_empty());
        let mut functions = Vec::new();
        for (side, suffix) in sides.into_iter().zip(["true", "false"]) {
            functions.push(self.add_function(side, &format!("{name}.{suffix}"), &args, &[]));
        }
        let mut inputs = vec![self.predicate(region, draft, test)?];
        for &e in &args {
            inputs.push(self.new_endpoint(region, draft, e)?);
        }
        let node = Node {
            inputs: inputs.into(),
            attrs: [
                ("then_branch".into(), functions[0].clone()),
                ("else_branch".into(), functions[1].clone()),
                ("Tout".into(), self.types_attr(&targets)),
            ]
            .into(),
            ..new_node(&name, if changes { "If" } else { "StatelessIf" })
        };
        let node = if changes { draft.push_ordered(node, true) } else { draft.push(node) };
        for (port, &target) in (0..).zip(&targets) {
            draft.values.insert(target, Endpoint { node, port });
        }
        Ok(())
    }

    fn branch_name(&self, units: &[NodeOrLoop]) -> String {
        match units.iter().min() {
            Some(NodeOrLoop::Node(id)) => self.graph.nodes[*id].name.to_string(),
            Some(NodeOrLoop::Loop(frame)) => self.frames.all[*frame].name.clone(),
            None => "cond".to_string(),
        }
    }

    /// The nodes and loops among `effects` that may run when the tests on `path` have the outcomes it gives.
    pub fn live_effects(&mut self, effects: &[NodeOrLoop], path: &TestOutcomes) -> Vec<NodeOrLoop> {
        let mut out = effects.to_vec();
        out.retain(|&unit| {
            let f = self.run_condition(unit);
            self.live.formulas.restrict(f, path) != Bdd::FALSE
        });
        out
    }

    /// Emits a region into a draft of its own.
    pub fn draft_region(&mut self, region: &Region, depth: usize) -> Result<FunctionDraft> {
        let mut draft = FunctionDraft::default();
        self.emit_region(region, &mut draft, depth + 1)?;
        draft.remove_dead_nodes(0);
        Ok(draft)
    }

    /// Adds a function to the library, and returns the attribute value that refers to it.
    pub fn add_function(&mut self, draft: FunctionDraft, name: &str, args: &[Endpoint], passed: &[Endpoint]) -> Attr {
        let mut unique: Arc<str> = name.into();
        let mut n = 1;
        while !self.names.insert(unique.clone()) {
            n += 1;
            unique = format!("{name}_{n}").into();
        }
        self.made.push(draft.finish(unique.clone(), args, passed));
        Attr::Func(Box::new(FuncRef { name: unique, attrs: [].into() }))
    }

    /// Attribute value with the types of outputs.
    pub fn types_attr(&self, of: &[Endpoint]) -> Attr {
        Attr::Types(of.iter().map(|&e| self.type_of(e)).collect())
    }

    pub fn type_of(&self, e: Endpoint) -> TfType {
        let node = &self.graph.nodes[e.node];
        match control_class(&node.op) {
            ControlClass::Merge if e.port == 1 => TfType::Data(DType::S32),
            ControlClass::Other => {
                let by_definition = opdef::find_def(&node.op).and_then(|op| op.output_type(node, e.port as usize));
                by_definition.map(TfType::from_number).or_else(|| node.tf_type("T")).unwrap_or(TfType::Unknown(0))
            }
            _ => node.tf_type("T").unwrap_or(TfType::Unknown(0)),
        }
    }

    /// Truth value of a test in a region.
    fn predicate(&mut self, region: &Region, draft: &mut FunctionDraft, test: u32) -> Result<Endpoint> {
        let test = self.branch_test(test).ok_or_else(|| Error::internal("prepare", "a test without a number"))?;
        let at = self.new_endpoint(region, draft, test.at)?;
        Ok(predicate_of_test(draft, test, at))
    }
}

/// Truth value of a test of the value `at`: the predicate itself, or a comparison with an index.
pub fn predicate_of_test(draft: &mut FunctionDraft, test: BranchTest, at: Endpoint) -> Endpoint {
    let Some(value) = test.equals else { return at };
    let constant = int_constant(draft, value);
    let t = [("T".into(), Attr::Type(TfType::Data(DType::S32)))];
    let equal = Node { inputs: [at, constant].into(), attrs: t.into(), ..new_node("branch", "Equal") };
    Endpoint { node: draft.push(equal), port: 0 }
}

fn int_constant(draft: &mut FunctionDraft, value: i32) -> Endpoint {
    let attrs = [
        ("value".into(), Attr::Tensor(Box::new(Tensor::scalar(value)))),
        ("dtype".into(), Attr::Type(TfType::Data(DType::S32))),
    ];
    Endpoint { node: draft.push(Node { attrs: attrs.into(), ..new_node("index", "Const") }), port: 0 }
}

fn missing_value_error(node: &Node) -> Error {
    Error::internal("prepare", format!("`{}` is used before it is made", node.name))
}
