//! A frame as a `While`.
use super::Flow;
use super::class::{ControlClass, class};
use super::draft::{Draft, plain};
use super::formula::Bdd;
use super::frames::{LoopVariable, fault};
use super::region::{NodeOrLoop, Path, Region, ValueSource};
use crate::diag::{Error, Result};
use crate::graph::{Endpoint, Node, NodeId};
use std::collections::{HashMap, HashSet};

/// Where the value comes from that an `Exit` brings out of its loop.
enum LoopExit {
    /// The last value of the variable at this place.
    Variable(usize),
    /// A loop invariant: the value of this output outside of the loop.
    Outside(Endpoint),
    /// A value computed from the variables' last values.
    Computed,
}

impl Flow<'_> {
    /// Runs a loop in a region: a `While` of its variables and of what it uses from outside.
    pub fn emit_loop(&mut self, region: &Region, draft: &mut Draft, frame: usize, depth: usize) -> Result<()> {
        let effects = self.effects[frame].clone();
        if !effects.is_empty() {
            self.do_once(region, NodeOrLoop::Loop(frame))?;
        }
        let needed = self.needed_variables(frame, &effects);
        let variables: Vec<LoopVariable> = needed.iter().map(|&i| self.frames.all[frame].variables[i]).collect();
        self.check_rounds(region, frame, &variables, &effects)?;
        let name = match &*self.frames.all[frame].name {
            "" => "while".to_string(),
            name => name.to_string(),
        };
        let nexts: Vec<Endpoint> = variables.iter().map(|v| self.graph.nodes[v.next].inputs[0]).collect();
        let body = self.draft(&inside(frame, self.loop_path(region, frame, true), nexts, effects.clone()), depth)?;
        let condition = self.frames.all[frame].condition.into_iter().map(|id| self.graph.nodes[id].inputs[0]).collect();
        let mut cond = self.draft(&inside(frame, region.path.clone(), condition, Vec::new()), depth)?;
        self.guard(region, &mut cond);

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
            inputs.push(self.look_up(region, draft, self.graph.nodes[v.enter].inputs[0])?);
        }
        for &e in &outside {
            inputs.push(self.look_up(region, draft, e)?);
        }
        let changes = !body.effects.is_empty();
        let attrs = [
            ("cond".into(), self.add(cond, &format!("{name}.cond"), &args, &[])),
            ("body".into(), self.add(body, &format!("{name}.body"), &args, &outside)),
            ("T".into(), self.types(&args)),
        ];
        let node = Node {
            inputs: inputs.into(),
            attrs: attrs.into(),
            ..plain(&name, if changes { "While" } else { "StatelessWhile" })
        };
        let node = if changes { draft.push_in_order(node, true) } else { draft.push(node) };
        self.emit_exits(region, draft, frame, &merges, node, depth)
    }

    /// Emits the values that the exits of a loop bring out of it.
    fn emit_exits(
        &mut self,
        region: &Region,
        draft: &mut Draft,
        frame: usize,
        merges: &[Endpoint],
        node: NodeId,
        depth: usize,
    ) -> Result<()> {
        let mut computed: Vec<NodeId> = Vec::new();
        for exit in self.frames.all[frame].exits.clone() {
            let value = match self.left(region, frame, merges, exit)? {
                LoopExit::Variable(port) => Endpoint { node, port: port as u32 },
                LoopExit::Outside(e) => self.look_up(region, draft, e)?,
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
        let last = self.draft(&inside(frame, self.loop_path(region, frame, false), targets, Vec::new()), depth)?;
        let args: Vec<Endpoint> = last.args.iter().map(|a| a.0).collect();
        let mut inputs = Vec::with_capacity(args.len());
        for &e in &args {
            inputs.push(match merges.iter().position(|&m| m == e) {
                Some(port) => Endpoint { node, port: port as u32 },
                None => self.look_up(region, draft, e)?,
            });
        }
        let ends: Vec<Endpoint> = computed.iter().map(|&node| Endpoint { node, port: 0 }).collect();
        let name = format!("{}.exit", self.frames.all[frame].name);
        let attrs = [("f".into(), self.add(last, &name, &args, &[])), ("Tout".into(), self.types(&ends))];
        let call = Node { inputs: inputs.into(), attrs: attrs.into(), ..plain(&name, "PartitionedCall") };
        let call = draft.push(call);
        for (port, &end) in (0..).zip(&ends) {
            draft.values.insert(end, Endpoint { node: call, port });
        }
        Ok(())
    }

    fn left(&mut self, region: &Region, frame: usize, merges: &[Endpoint], exit: NodeId) -> Result<LoopExit> {
        let path = self.loop_path(region, frame, false);
        let e = self.graph.nodes[exit].inputs[0];
        if self.live_in(e, &path) != Bdd::TRUE {
            return Err(self.dead_end(frame, exit, "gives no value when it ends"));
        }
        Ok(match self.source(&inside(frame, path, Vec::new(), Vec::new()), e)? {
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

    /// Holds a loop to what a `While` can do: its variables get a new value in each round and only then, and nothing is done
    /// besides where it only asks about another round.
    fn check_rounds(
        &mut self,
        region: &Region,
        frame: usize,
        variables: &[LoopVariable],
        effects: &[NodeOrLoop],
    ) -> Result<()> {
        let (on, end) = (self.loop_path(region, frame, true), self.loop_path(region, frame, false));
        for v in variables {
            let e = self.graph.nodes[v.next].inputs[0];
            if self.live_in(e, &on) != Bdd::TRUE {
                return Err(self.dead_end(frame, v.next, "has a variable without a value for the next round"));
            }
            if self.live_in(e, &end) != Bdd::FALSE {
                return Err(self.dead_end(frame, v.next, "goes on whatever its LoopCond says"));
            }
            if self.indexed.contains(&v.merge) {
                return Err(self.dead_end(frame, v.merge, "uses which input its Merge took"));
            }
        }
        if let Some(id) = self.frames.all[frame].condition {
            let e = self.graph.nodes[id].inputs[0];
            if self.live_in(e, &region.path) != Bdd::TRUE {
                return Err(self.dead_end(frame, id, "has a condition without a value"));
            }
        }
        for &unit in effects {
            let f = self.unit_live(unit);
            if self.live.formulas.under(f, &end) != Bdd::FALSE
                && let NodeOrLoop::Node(id) = unit
            {
                return Err(self.dead_end(frame, id, "changes something in its condition"));
            }
        }
        Ok(())
    }

    /// The variables of a loop that its condition, its exits and its effects need, by position.
    fn needed_variables(&self, frame: usize, effects: &[NodeOrLoop]) -> Vec<usize> {
        let inside = &self.frames.all[frame];
        let numbers: HashMap<NodeId, usize> = inside.variables.iter().enumerate().map(|(i, v)| (v.merge, i)).collect();
        let sources = |id: &NodeId| self.graph.nodes[*id].inputs.first().map(|e| e.node);
        let ends = inside.exits.iter().chain(&inside.condition).filter_map(sources);
        let mut todo: Vec<NodeOrLoop> = ends.map(|id| self.unit(id)).chain(effects.iter().copied()).collect();
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
                    None if class(&self.graph.nodes[id].op) == ControlClass::Enter => Vec::new(),
                    None => inputs(&id).collect(),
                },
                NodeOrLoop::Loop(inner) => {
                    let inner = &self.frames.all[inner];
                    inner.enters.iter().flat_map(inputs).chain(inner.outside.iter().map(|e| e.node)).collect()
                }
            };
            todo.extend(from.into_iter().filter(|id| self.frames.of[*id] == frame).map(|id| self.unit(id)));
        }
        (0..needed.len()).filter(|&i| needed[i]).collect()
    }

    /// The path of outcomes inside of a loop that a region runs, when it goes on or when it ends: outcomes decided in the region hold in every
    /// iteration.
    fn loop_path(&self, region: &Region, frame: usize, goes_on: bool) -> Path {
        let (test, value) = self.live.condition(frame);
        region.path.iter().copied().chain([(test, value == goes_on)]).collect()
    }

    fn dead_end(&self, frame: usize, at: NodeId, what: &str) -> Error {
        let node = &self.graph.nodes[at];
        fault(&self.frames.all[frame], what).at_node(&node.name, &node.op).into()
    }
}

/// The region inside a loop that computes `targets` and `effects` under some outcome of its condition.
fn inside(frame: usize, path: Path, targets: Vec<Endpoint>, effects: Vec<NodeOrLoop>) -> Region {
    Region { frame, path, targets, effects, ..Region::default() }
}
