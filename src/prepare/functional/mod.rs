//! Control flow of TensorFlow 1 as functions: loops become `While`, conditions `If`, so that later rooms know one form.
//!
//! TensorFlow 1 writes a loop as a cycle through `Merge`, `Switch` and `NextIteration`, between `Enter` and `Exit`, and a condition as
//! `Switch`es and `Merge`s around nodes that are dead on one side. Here:
//!
//! 1. [`frames`] finds which nodes make up each loop.
//! 2. [`liveness`] finds for every value a boolean formula of the predicates: when it is not dead.
//! 3. [`region`] divides the graph by these formulas: what is there on one side of a predicate only is computed in the branch of an `If`,
//!    and the Merges behind it are the results of the `If`. A test that is known leaves no trace.
//! 4. [`emit`] and [`loops`] write each region as a function. What changes something is done once: [`loop_hoisting`] runs a loop before the
//!    branches that use it where there are several.
//!
//! Control edges are kept among nodes whose order matters, because they change or read something that others change.
mod loop_hoisting;
mod class;
mod draft;
mod emit;
mod formula;
mod frames;
mod liveness;
mod loops;
mod region;

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, Endpoint, Function, Graph, NodeId, Program};
use crate::infer::{self, FeedFacts};
use crate::ops;
use crate::util::id_vec::IdVec;
use class::{ControlClass, class};
use draft::Draft;
use formula::Bdd;
use frames::{LoopFrames, TOP};
use liveness::Liveness;
use region::{NodeOrLoop, Path, Region};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Whether the place of a node among others matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// The node only computes.
    Free,
    /// The node reads state that others change.
    Reads,
    /// The node changes state that outlives it.
    Changes,
}

/// A graph while it is made functional.
struct Flow<'a> {
    graph: &'a Graph,
    frames: LoopFrames,
    live: Liveness,
    /// Merges that are variables of loops.
    is_variable: IdVec<NodeId, bool>,
    /// Merges of which it is asked which input they took.
    indexed: HashSet<NodeId>,
    order_of: IdVec<NodeId, Order>,
    /// The side effects in each frame.
    effects: Vec<Vec<NodeOrLoop>>,
    /// Regions in which each unit with effects runs.
    done: HashMap<NodeOrLoop, Vec<Path>>,
    /// The names of functions that are taken.
    names: HashSet<Arc<str>>,
    /// The functions made so far.
    made: Vec<Function>,
}

/// Makes a program functional that was cut to what its fetches and roots need; feed `i` is node `i`. Nodes that change variables become
/// roots where it has control flow of TensorFlow 1.
///
/// Errors: `ControlFlowV1` for loops and conditions that are no `While` and `If`; `BadGraph` for cycles and inputs that are missing.
pub fn functionalize(
    program: &mut Program,
    feeds: &[FeedFacts],
    fetches: &mut [(String, Endpoint)],
    roots: &mut Vec<NodeId>,
) -> Result<()> {
    let mut problems = Vec::new();
    let mut names: HashSet<Arc<str>> = program.functions.keys().cloned().collect();
    let changing = changing_functions(program);
    let mut made = Vec::new();
    if class::is_present(&program.graph) {
        let facts = infer::infer(program, feeds);
        let known = |e: Endpoint| facts.at(e)?.tensor().filter(|t| t.dims.is_empty())?.get_i64(0);
        let pinned: Vec<NodeId> = (0..feeds.len() as u32).map(NodeId).collect();
        let targets: Vec<Endpoint> = fetches.iter().map(|f| f.1).collect();
        match converted(&program.graph, &pinned, &targets, &known, &mut names, &changing) {
            Ok((draft, new)) => {
                for (fetch, &at) in fetches.iter_mut().zip(&draft.rets) {
                    fetch.1 = at;
                }
                *roots = draft.effects;
                program.graph = Graph { nodes: draft.nodes };
                made.extend(new);
            }
            Err(error) => problems.extend(error.into_diagnostics()),
        }
    } else if let Err(stuck) = class::order(&program.graph, &[]) {
        problems.push(cycle(&program.graph, stuck));
    }
    for function in program.functions.values_mut().filter(|f| class::is_present(&f.graph)) {
        let graph = &function.graph;
        let known = |e: Endpoint| constant(graph, e);
        match converted(graph, &function.args, &function.rets, &known, &mut names, &changing) {
            Ok((draft, new)) => {
                function.args = (0..function.args.len() as u32).map(NodeId).collect();
                function.rets = draft.rets;
                function.control_rets = draft.effects;
                function.graph = Graph { nodes: draft.nodes };
                made.extend(new);
            }
            Err(error) => problems.extend(error.into_diagnostics().into_iter().map(|mut d| {
                d.place.function = Some(function.name.to_string());
                d
            })),
        }
    }
    if !made.is_empty() {
        program.functions.extend(made.into_iter().map(|f| (f.name.clone(), f)));
        super::prune::drop_functions(program);
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::User(problems)) }
}

/// Whether an op is control flow of TensorFlow 1.
pub fn is_control_flow(op: &str) -> bool {
    class(op) != ControlClass::Other
}

/// A graph without control flow of TensorFlow 1, and the functions that it calls. `pinned` nodes come first.
fn converted(
    graph: &Graph,
    pinned: &[NodeId],
    targets: &[Endpoint],
    known: &dyn Fn(Endpoint) -> Option<i64>,
    names: &mut HashSet<Arc<str>>,
    changing: &HashSet<Arc<str>>,
) -> Result<(Draft, Vec<Function>)> {
    check_inputs(graph)?;
    let order = class::order(graph, &[]).map_err(|stuck| cycle(graph, stuck))?;
    let frames = LoopFrames::of(graph, &order)?;
    // A loop is run as one node: all that it takes before all that it gives.
    let whole: Vec<(NodeId, NodeId)> =
        frames.all.iter().flat_map(|f| f.exits.iter().flat_map(|&x| f.enters.iter().map(move |&e| (e, x)))).collect();
    let order = class::order(graph, &whole).map_err(|stuck| waits_for_itself(graph, &frames, stuck))?;
    let live = Liveness::of(graph, &frames, &order, known)?;
    let order_of = graph.nodes.values().map(|n| order_of(n, changing)).collect();
    let effects = effects(graph, &frames, &order_of);
    let indexed = graph.nodes.values().flat_map(|n| n.inputs.iter()).chain(targets).filter(|e| e.port == 1);
    let indexed = indexed.map(|e| e.node).filter(|id| class(&graph.nodes[*id].op) == ControlClass::Merge).collect();
    let is_variable = frames.variables();
    let names_before = std::mem::take(names);
    let mut flow = Flow {
        graph,
        frames,
        live,
        is_variable,
        indexed,
        order_of,
        effects,
        done: HashMap::new(),
        names: names_before,
        made: Vec::new(),
    };
    let done = flow.run(pinned, targets);
    *names = flow.names;
    Ok((done?, flow.made))
}

impl Flow<'_> {
    fn run(&mut self, pinned: &[NodeId], targets: &[Endpoint]) -> Result<Draft> {
        for &e in targets {
            if self.live_in(e, &Path::new()) != Bdd::TRUE {
                let node = &self.graph.nodes[e.node];
                let told = format!(
                    "`{}:{}` has a value on one side of a condition only, and it is a result",
                    node.name, e.port
                );
                return Err(Diagnostic::new(Code::ControlFlowV1, told)
                    .help("fetch what a Merge makes of both sides")
                    .at_node(&node.name, &node.op)
                    .into());
            }
        }
        let mut draft = Draft::beginning_with(self.graph, pinned);
        let all = self.effects[TOP].clone();
        let region = Region {
            frame: TOP,
            path: Path::new(),
            targets: targets.to_vec(),
            effects: self.live_effects(&all, &Path::new()),
            is_whole: true,
            ..Region::default()
        };
        self.emit(&region, &mut draft, 0)?;
        draft.sweep(pinned.len());
        Ok(draft)
    }
}

/// The side effects in each frame: nodes, and inner loops with side effects.
fn effects(graph: &Graph, frames: &LoopFrames, order_of: &IdVec<NodeId, Order>) -> Vec<Vec<NodeOrLoop>> {
    let mut effects: Vec<Vec<NodeOrLoop>> = vec![Vec::new(); frames.all.len()];
    for id in graph.nodes.ids().filter(|id| order_of[*id] == Order::Changes) {
        effects[frames.of[id]].push(NodeOrLoop::Node(id));
    }
    // Inner frames come behind those around them.
    for frame in (1..frames.all.len()).rev() {
        if !effects[frame].is_empty() {
            effects[frames.all[frame].parent].push(NodeOrLoop::Loop(frame));
        }
    }
    effects
}

fn order_of(node: &crate::graph::Node, changing: &HashSet<Arc<str>>) -> Order {
    if changes(&node.op) || node.called().iter().any(|name| changing.contains(name)) {
        Order::Changes
    } else if matches!(&*node.op, "ReadVariableOp" | "ResourceGather" | "ResourceGatherNd" | "VarIsInitializedOp") {
        Order::Reads
    } else {
        Order::Free
    }
}

/// Whether an op changes what other nodes read by way of a handle.
fn changes(op: &str) -> bool {
    super::assigns(op) || ops::find(op).is_some_and(|row| !row.writes.is_empty())
}

/// The functions that change something, also by calling others.
fn changing_functions(program: &Program) -> HashSet<Arc<str>> {
    let mut found: HashSet<Arc<str>> = HashSet::new();
    loop {
        let before = found.len();
        for (name, function) in &program.functions {
            let mut nodes = function.graph.nodes.values();
            if nodes.any(|n| changes(&n.op) || n.called().iter().any(|called| found.contains(called))) {
                found.insert(name.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The number that a constant is, also behind nodes that pass it on.
fn constant(graph: &Graph, mut e: Endpoint) -> Option<i64> {
    for _ in 0..graph.nodes.len() {
        let node = &graph.nodes[e.node];
        match (&*node.op, node.attr("value")) {
            ("Const", Some(Attr::Tensor(t))) => return t.dims.is_empty().then(|| t.get_i64(0)).flatten(),
            (op, _) if ops::forwards(op) => e = *node.inputs.get(e.port as usize)?,
            _ => return None,
        }
    }
    None
}

fn check_inputs(graph: &Graph) -> Result<()> {
    for node in graph.nodes.values() {
        let wanted = match class(&node.op) {
            ControlClass::Switch => 2,
            ControlClass::Enter | ControlClass::Exit | ControlClass::NextIteration | ControlClass::LoopCond => 1,
            ControlClass::Merge if node.inputs.is_empty() => 1,
            ControlClass::Merge | ControlClass::Other => continue,
        };
        if node.inputs.len() != wanted {
            let told = format!("{} takes {wanted} inputs, and `{}` has {}", node.op, node.name, node.inputs.len());
            return Err(Diagnostic::new(Code::BadGraph, told).at_node(&node.name, &node.op).into());
        }
    }
    Ok(())
}

fn cycle(graph: &Graph, stuck: NodeId) -> Diagnostic {
    let node = &graph.nodes[stuck];
    Diagnostic::new(Code::BadGraph, format!("`{}` is on a cycle or depends on one", node.name))
        .at_node(&node.name, &node.op)
}

fn waits_for_itself(graph: &Graph, frames: &LoopFrames, stuck: NodeId) -> Diagnostic {
    let node = &graph.nodes[stuck];
    frames::fault(&frames.all[frames.of[stuck]], "waits for what it gives itself").at_node(&node.name, &node.op)
}

#[cfg(test)]
mod tests;
