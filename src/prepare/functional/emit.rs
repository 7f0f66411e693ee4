//! Regions as graphs: a branch becomes an `If`.
use super::class::{ControlClass, class};
use super::draft::{Draft, plain};
use super::formula::Bdd;
use super::liveness::Test;
use super::loop_hoisting::RegionSteps;
use super::region::{NodeOrLoop, Path, Region, RegionStep, ValueSource};
use super::{Flow, Order, frames};
use crate::diag::{Error, Result};
use crate::graph::{Attr, Endpoint, FuncRef, Node, NodeId, TfType};
use crate::opdef;
use crate::tensor::{DType, Tensor};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Regions inside of each other.
const MOST_NESTED: usize = 100;

impl Flow<'_> {
    /// Computes the targets of a region in a draft.
    pub fn emit(&mut self, region: &Region, draft: &mut Draft, depth: usize) -> Result<()> {
        if depth > MOST_NESTED {
            let told = format!("has conditions nested deeper than {MOST_NESTED}");
            return Err(frames::fault(&self.frames.all[region.frame], told).into());
        }
        self.emit_steps(region, draft, depth)?;
        for &target in &region.targets {
            let e = self.look_up(region, draft, target)?;
            draft.rets.push(e);
        }
        Ok(())
    }

    /// Writes the steps of a region into a draft.
    pub fn emit_steps(&mut self, region: &Region, draft: &mut Draft, depth: usize) -> Result<()> {
        let RegionSteps { steps, ahead } = self.steps(region)?;
        for step in steps {
            match step {
                RegionStep::Do(NodeOrLoop::Node(id)) => self.emit_node(region, draft, id)?,
                RegionStep::Do(NodeOrLoop::Loop(frame)) if ahead.contains(&frame) => {
                    self.emit_ahead(region, draft, frame, &ahead, depth)?;
                }
                RegionStep::Do(NodeOrLoop::Loop(frame)) => self.emit_loop(region, draft, frame, depth)?,
                RegionStep::Branch(test, units) => self.emit_branch(region, draft, test, &units, &ahead, depth)?,
            }
        }
        Ok(())
    }

    /// The new output that an old one is in a region.
    pub fn look_up(&mut self, region: &Region, draft: &mut Draft, e: Endpoint) -> Result<Endpoint> {
        match self.source(region, e)? {
            ValueSource::Around(e) => match &region.into {
                Some(into) => self.look_up(into, draft, e),
                None if region.is_whole => Err(lost(&self.graph.nodes[e.node])),
                None => Ok(draft.argument(e, self.type_of(e))),
            },
            ValueSource::Index(i) => Ok(number(draft, i as i32)),
            ValueSource::Inside(e) => match draft.kept.get(&e.node) {
                Some(&node) => Ok(Endpoint { node, port: e.port }),
                None => draft.values.get(&e).copied().ok_or_else(|| lost(&self.graph.nodes[e.node])),
            },
        }
    }

    fn emit_node(&mut self, region: &Region, draft: &mut Draft, id: NodeId) -> Result<()> {
        if draft.kept.contains_key(&id) {
            return Ok(());
        }
        if self.order_of[id] == Order::Changes {
            if !region.guard.is_empty() {
                return Err(self.shared(region, NodeOrLoop::Node(id)));
            }
            self.do_once(region, NodeOrLoop::Node(id))?;
        }
        let old = &self.graph.nodes[id];
        let inputs: Result<Vec<Endpoint>> = old.inputs.iter().map(|&e| self.look_up(region, draft, e)).collect();
        let node = Node { inputs: inputs?.into(), controls: [].into(), ..old.clone() };
        let new = match self.order_of[id] {
            Order::Free => draft.push(node),
            order => draft.push_in_order(node, order == Order::Changes),
        };
        draft.kept.insert(id, new);
        Ok(())
    }

    /// Holds that nothing with effects is done twice: two regions that do it must not both be entered.
    pub fn do_once(&mut self, region: &Region, unit: NodeOrLoop) -> Result<()> {
        let excluded = |a: &Path, b: &Path| a.iter().any(|&(test, value)| b.contains(&(test, !value)));
        let before = self.done.entry(unit).or_default();
        if before.iter().all(|path| excluded(path, &region.path)) {
            before.push(region.path.clone());
            return Ok(());
        }
        Err(self.shared(region, unit))
    }

    /// The error for an effect that several conditions use, though it must happen once.
    pub fn shared(&self, region: &Region, unit: NodeOrLoop) -> Error {
        let frame = &self.frames.all[region.frame];
        match unit {
            NodeOrLoop::Loop(inner) => {
                frames::fault(&self.frames.all[inner], "changes something that several conditions use")
            }
            NodeOrLoop::Node(id) => {
                let node = &self.graph.nodes[id];
                let told = format!("what `{}` changes is used by several conditions", node.name);
                let told = if frame.name.is_empty() { told } else { format!("cannot be taken apart: {told}") };
                frames::fault(frame, told).at_node(&node.name, &node.op)
            }
        }
        .into()
    }

    fn emit_branch(
        &mut self,
        region: &Region,
        draft: &mut Draft,
        test: u32,
        units: &[NodeOrLoop],
        ahead: &BTreeSet<usize>,
        depth: usize,
    ) -> Result<()> {
        let (mut targets, mut effects, mut own) = (Vec::new(), Vec::new(), HashSet::new());
        for &unit in units {
            match unit {
                NodeOrLoop::Node(node) if class(&self.graph.nodes[node].op) == ControlClass::Merge => {
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
            let path: Path = region.path.iter().copied().chain([(test, value)]).collect();
            let side = Region {
                effects: self.live_effects(&effects, &path),
                around: Some(region.path.clone()),
                targets: targets.clone(),
                own: own.clone(),
                path,
                frame: region.frame,
                is_whole: false,
                ahead: region.ahead.union(ahead).copied().collect(),
                guard: region.guard.clone(),
                into: None,
            };
            sides.push(self.draft(&side, depth)?);
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
            functions.push(self.add(side, &format!("{name}.{suffix}"), &args, &[]));
        }
        let mut inputs = vec![self.predicate(region, draft, test)?];
        for &e in &args {
            inputs.push(self.look_up(region, draft, e)?);
        }
        let node = Node {
            inputs: inputs.into(),
            attrs: [
                ("then_branch".into(), functions[0].clone()),
                ("else_branch".into(), functions[1].clone()),
                ("Tout".into(), self.types(&targets)),
            ]
            .into(),
            ..plain(&name, if changes { "If" } else { "StatelessIf" })
        };
        let node = if changes { draft.push_in_order(node, true) } else { draft.push(node) };
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

    /// Effects that may happen under a path.
    pub fn live_effects(&mut self, effects: &[NodeOrLoop], path: &Path) -> Vec<NodeOrLoop> {
        let mut out = effects.to_vec();
        out.retain(|&unit| {
            let f = self.unit_live(unit);
            self.live.formulas.under(f, path) != Bdd::FALSE
        });
        out
    }

    /// A region as a function to be.
    pub fn draft(&mut self, region: &Region, depth: usize) -> Result<Draft> {
        let mut draft = Draft::default();
        self.emit(region, &mut draft, depth + 1)?;
        draft.sweep(0);
        Ok(draft)
    }

    /// Adds a function to the library, as the value of an attribute.
    pub fn add(&mut self, draft: Draft, name: &str, args: &[Endpoint], passed: &[Endpoint]) -> Attr {
        let mut unique: Arc<str> = name.into();
        let mut n = 1;
        while !self.names.insert(unique.clone()) {
            n += 1;
            unique = format!("{name}_{n}").into();
        }
        self.made.push(draft.finish(unique.clone(), args, passed));
        Attr::Func(Box::new(FuncRef { name: unique, attrs: [].into() }))
    }

    /// The types of outputs, as the value of an attribute.
    pub fn types(&self, of: &[Endpoint]) -> Attr {
        Attr::Types(of.iter().map(|&e| self.type_of(e)).collect())
    }

    pub fn type_of(&self, e: Endpoint) -> TfType {
        let node = &self.graph.nodes[e.node];
        match class(&node.op) {
            ControlClass::Merge if e.port == 1 => TfType::Data(DType::S32),
            ControlClass::Other => {
                let by_definition = opdef::find(&node.op).and_then(|op| op.output_type(node, e.port as usize));
                by_definition.map(TfType::from_number).or_else(|| node.tf_type("T")).unwrap_or(TfType::Unknown(0))
            }
            _ => node.tf_type("T").unwrap_or(TfType::Unknown(0)),
        }
    }

    /// The truth value of a test.
    fn predicate(&mut self, region: &Region, draft: &mut Draft, test: u32) -> Result<Endpoint> {
        let test = self.test(test).ok_or_else(|| Error::internal("prepare", "a test without a number"))?;
        let at = self.look_up(region, draft, test.at)?;
        Ok(truth(draft, test, at))
    }
}

/// The truth value of a test of this value.
pub fn truth(draft: &mut Draft, test: Test, at: Endpoint) -> Endpoint {
    let Some(value) = test.equals else { return at };
    let constant = number(draft, value);
    let t = [("T".into(), Attr::Type(TfType::Data(DType::S32)))];
    let equal = Node { inputs: [at, constant].into(), attrs: t.into(), ..plain("branch", "Equal") };
    Endpoint { node: draft.push(equal), port: 0 }
}

fn number(draft: &mut Draft, value: i32) -> Endpoint {
    let attrs = [
        ("value".into(), Attr::Tensor(Box::new(Tensor::scalar(value)))),
        ("dtype".into(), Attr::Type(TfType::Data(DType::S32))),
    ];
    Endpoint { node: draft.push(Node { attrs: attrs.into(), ..plain("index", "Const") }), port: 0 }
}

fn lost(node: &Node) -> Error {
    Error::internal("prepare", format!("`{}` is used before it is made", node.name))
}
