//! Emission of loops as `While` nodes.
use super::Functionalizer;
use super::bdd::Bdd;
use super::control_class::{ControlClass, control_class};
use super::frames::{LoopVariable, loop_error};
use super::function_draft::{FunctionDraft, new_node};
use super::region::{NodeOrLoop, Region, TestOutcomes, ValueSource};
use crate::diag::{Error, Result};
use crate::graph::{Endpoint, Node, NodeId};
use std::collections::{HashMap, HashSet};

/// Source of the value that an `Exit` forwards out of its loop.
enum LoopExit {
    /// Final value of the variable with this index.
    Variable(usize),
    /// A loop invariant: the value of this output outside of the loop.
    Outside(Endpoint),
    /// A value computed from the final values of variables.
    Computed,
}

impl Functionalizer<'_> {
    /// Emits a loop in a region, as a `While` over its variables and the values that it uses from outside.
    pub fn emit_loop(&mut self, region: &Region, draft: &mut FunctionDraft, frame: usize, depth: usize) -> Result<()> {
        let effects = self.effects[frame].clone();
        if !effects.is_empty() {
            self.check_runs_once(region, NodeOrLoop::Loop(frame))?;
        }
        let needed = self.needed_variables(frame, &effects);
        let variables: Vec<LoopVariable> = needed.iter().map(|&i| self.frames.all[frame].variables[i]).collect();
        self.check_fits_while(region, frame, &variables, &effects)?;
        let name = match &*self.frames.all[frame].name {
            "" => "while".to_string(),
            name => name.to_string(),
        };
        let nexts: Vec<Endpoint> = variables.iter().map(|v| self.graph.nodes[v.next].inputs[0]).collect();
        let body =
            self.draft_region(&loop_region(frame, self.loop_path(region, frame, true), nexts, effects.clone()), depth)?;
        let condition = self.frames.all[frame].condition.into_iter().map(|id| self.graph.nodes[id].inputs[0]).collect();
        let mut cond = self.draft_region(&loop_region(frame, region.path.clone(), condition, Vec::new()), depth)?;
        self.add_guard_to_condition(region, &mut cond);

        let merges: Vec<Endpoint> = variables.iter().map(|v| Endpoint { node: v.merge, port: 0 }).collect();
        let mut outside: Vec<Endpoint> = Vec::new();
        for &(e, _) in cond.args.iter().chain(&body.args) {
            if !merges.contains(&e) && !outside.contains(&e) {
                outside.push(e);
            }
        }
        let args = [&merges[..], &outside].concat();
        let mut inputs = Vec::with_capacity(args.len());
        for v in &variables {
            inputs.push(self.new_endpoint(region, draft, self.graph.nodes[v.enter].inputs[0])?);
        }
        for &e in &outside {
            inputs.push(self.new_endpoint(region, draft, e)?);
        }
        let changes = !body.effects.is_empty();
        let attrs = [
            ("cond".into(), self.add_function(cond, &format!("{name}.cond"), &args, &[])),
            ("body".into(), self.add_function(body, &format!("{name}.body"), &args, &outside)),
            ("T".into(), self.types_attr(&args)),
        ];
        let node = Node {
            inputs: inputs.into(),
            attrs: attrs.into(),
            ..new_node(&name, if changes { "While" } else { "StatelessWhile" })
        };
        let node = if changes { draft.push_ordered(node, true) } else { draft.push(node) };
        self.emit_exits(region, draft, frame, &merges, node, depth)
    }

    /// Emits the values of a loop's exits.
    fn emit_exits(
        &mut self,
        region: &Region,
        draft: &mut FunctionDraft,
        frame: usize,
        merges: &[Endpoint],
        node: NodeId,
        depth: usize,
    ) -> Result<()> {
        let mut computed: Vec<NodeId> = Vec::new();
        for exit in self.frames.all[frame].exits.clone() {
            let value = match self.exit_value(region, frame, merges, exit)? {
                LoopExit::Variable(port) => Endpoint { node, port: port as u32 },
                LoopExit::Outside(e) => self.new_endpoint(region, draft, e)?,
                LoopExit::Computed => {
                    computed.push(exit);
                    continue;
                }
            };
            draft.values.insert(Endpoint { node: exit, port: 0 }, value);
        }
        if computed.is_empty() {
            return Ok(());
        }
        let targets = computed.iter().map(|&id| self.graph.nodes[id].inputs[0]).collect();
        let last =
            self.draft_region(&loop_region(frame, self.loop_path(region, frame, false), targets, Vec::new()), depth)?;
        let args: Vec<Endpoint> = last.args.iter().map(|a| a.0).collect();
        let mut inputs = Vec::with_capacity(args.len());
        for &e in &args {
            inputs.push(match merges.iter().position(|&m| m == e) {
                Some(port) => Endpoint { node, port: port as u32 },
                None => self.new_endpoint(region, draft, e)?,
            });
        }
        let ends: Vec<Endpoint> = computed.iter().map(|&node| Endpoint { node, port: 0 }).collect();
        let name = format!("{}.exit", self.frames.all[frame].name);
        let attrs = [("f".into(), self.add_function(last, &name, &args, &[])), ("Tout".into(), self.types_attr(&ends))];
        let call = Node { inputs: inputs.into(), attrs: attrs.into(), ..new_node(&name, "PartitionedCall") };
        let call = draft.push(call);
        for (port, &end) in (0..).zip(&ends) {
            draft.values.insert(end, Endpoint { node: call, port });
        }
        Ok(())
    }

    fn exit_value(&mut self, region: &Region, frame: usize, merges: &[Endpoint], exit: NodeId) -> Result<LoopExit> {
        let path = self.loop_path(region, frame, false);
        let e = self.graph.nodes[exit].inputs[0];
        if self.live_condition_under(e, &path) != Bdd::TRUE {
            return Err(self.loop_error_at(frame, exit, "gives no value when it ends"));
        }
        Ok(match self.value_source(&loop_region(frame, path, Vec::new(), Vec::new()), e)? {
            ValueSource::Around(e) => match merges.iter().position(|&m| m == e) {
                Some(i) => LoopExit::Variable(i),
                None if self.frames.of[e.node] == frame => {
                    return Err(Error::internal("prepare", "a variable of a loop that nothing needs"));
                }
                None => LoopExit::Outside(e),
            },
            ValueSource::Inside(_) | ValueSource::Index(_) => LoopExit::Computed,
        })
    }

    /// Checks that a loop can be written as a `While`: variables get a new value in each iteration and only there, and the condition has no side
    /// effects. Errors: `ControlFlowV1`.
    fn check_fits_while(
        &mut self,
        region: &Region,
        frame: usize,
        variables: &[LoopVariable],
        effects: &[NodeOrLoop],
    ) -> Result<()> {
        let (on, end) = (self.loop_path(region, frame, true), self.loop_path(region, frame, false));
        for v in variables {
            let e = self.graph.nodes[v.next].inputs[0];
            if self.live_condition_under(e, &on) != Bdd::TRUE {
                return Err(self.loop_error_at(frame, v.next, "has a variable without a value for the next round"));
            }
            if self.live_condition_under(e, &end) != Bdd::FALSE {
                return Err(self.loop_error_at(frame, v.next, "goes on whatever its LoopCond says"));
            }
            if self.indexed.contains(&v.merge) {
                return Err(self.loop_error_at(frame, v.merge, "uses which input its Merge took"));
            }
        }
        if let Some(id) = self.frames.all[frame].condition {
            let e = self.graph.nodes[id].inputs[0];
            if self.live_condition_under(e, &region.path) != Bdd::TRUE {
                return Err(self.loop_error_at(frame, id, "has a condition without a value"));
            }
        }
        for &unit in effects {
            let f = self.run_condition(unit);
            if self.live.formulas.restrict(f, &end) != Bdd::FALSE
                && let NodeOrLoop::Node(id) = unit
            {
                return Err(self.loop_error_at(frame, id, "changes something in its condition"));
            }
        }
        Ok(())
    }

    /// Indices of the variables that the condition, exits and side effects of a loop need.
    fn needed_variables(&self, frame: usize, effects: &[NodeOrLoop]) -> Vec<usize> {
        let inside = &self.frames.all[frame];
        let numbers: HashMap<NodeId, usize> = inside.variables.iter().enumerate().map(|(i, v)| (v.merge, i)).collect();
        let sources = |id: &NodeId| self.graph.nodes[*id].inputs.first().map(|e| e.node);
        let ends = inside.exits.iter().chain(&inside.condition).filter_map(sources);
        let mut todo: Vec<NodeOrLoop> =
            ends.map(|id| self.node_or_loop_of(id)).chain(effects.iter().copied()).collect();
        let mut seen: HashSet<NodeOrLoop> = HashSet::new();
        let mut needed = vec![false; inside.variables.len()];
        while let Some(unit) = todo.pop() {
            if !seen.insert(unit) {
                continue;
            }
            let inputs = |id: &NodeId| self.graph.nodes[*id].inputs.iter().map(|e| e.node);
            let from: Vec<NodeId> = match unit {
                NodeOrLoop::Node(id) => match numbers.get(&id) {
                    Some(&number) => {
                        needed[number] = true;
                        inputs(&inside.variables[number].next).collect()
                    }
                    None if control_class(&self.graph.nodes[id].op) == ControlClass::Enter => Vec::new(),
                    None => inputs(&id).collect(),
                },
                NodeOrLoop::Loop(inner) => {
                    let inner = &self.frames.all[inner];
                    inner.enters.iter().flat_map(inputs).chain(inner.outside.iter().map(|e| e.node)).collect()
                }
            };
            todo.extend(from.into_iter().filter(|id| self.frames.of[*id] == frame).map(|id| self.node_or_loop_of(id)));
        }
        (0..needed.len()).filter(|&i| needed[i]).collect()
    }

    /// Outcomes of tests within a loop, in an iteration (`goes_on`) or at its end. Outcomes decided in the region hold in every iteration.
    fn loop_path(&self, region: &Region, frame: usize, goes_on: bool) -> TestOutcomes {
        let (test, value) = self.live.loop_test(frame);
        region.path.iter().copied().chain([(test, value == goes_on)]).collect()
    }

    fn loop_error_at(&self, frame: usize, at: NodeId, what: &str) -> Error {
        let node = &self.graph.nodes[at];
        loop_error(&self.frames.all[frame], what).at_node(&node.name, &node.op).into()
    }
}

/// Region within a loop that computes `targets` and `effects` under the outcomes in `path`.
fn loop_region(frame: usize, path: TestOutcomes, targets: Vec<Endpoint>, effects: Vec<NodeOrLoop>) -> Region {
    Region { frame, path, targets, effects, ..Region::default() }
}
