//! Functionalization of TensorFlow 1 control flow: loops become `While` and conditionals `If`, so that later modules know one form only.
//!
//! TensorFlow 1 writes a loop as a cycle through `Merge`, `Switch` and `NextIteration`, between `Enter` and `Exit`, and a conditional as
//! `Switch`es and `Merge`s around nodes that are dead on one side. The conversion has four steps:
//!
//! 1. [`frames`] finds which nodes make up each loop.
//! 2. [`liveness`] finds for every value a Boolean formula of the predicates that is true where the value is not dead.
//! 3. [`region`] divides the graph by these formulas: values that are live on one side of a predicate only are computed in the branch of an
//!    `If`, whose results are those of the Merges. Tests with a constant outcome disappear.
//! 4. [`emit`] and [`loops`] emit each region as a function. Side effects must happen once: if several branches use a loop with side effects,
//!    [`loop_hoisting`] runs the loop before them.
//!
//! Control edges are kept between nodes that change state or read state that others change.
mod loop_hoisting;
mod control_class;
mod function_draft;
mod emit;
mod bdd;
mod frames;
mod liveness;
mod loops;
mod region;

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, Endpoint, Function, Graph, NodeId, Program};
use crate::infer::{self, FeedFacts};
use crate::ops;
use crate::util::id_vec::IdVec;
use bdd::Bdd;
use control_class::{ControlClass, control_class};
use frames::{LoopFrames, TOP};
use function_draft::FunctionDraft;
use liveness::Liveness;
use region::{NodeOrLoop, Region, TestOutcomes};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Ordering constraint of a node relative to other nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// The node only computes, and is not ordered.
    Free,
    /// The node reads state that other nodes change.
    Reads,
    /// The node changes state.
    Changes,
}

/// Converts one graph to functional control flow.
struct Functionalizer<'a> {
    graph: &'a Graph,
    frames: LoopFrames,
    live: Liveness,
    /// Whether each node is the Merge of a loop variable.
    is_variable: IdVec<NodeId, bool>,
    /// Merges whose output 1, the index of the input taken, is used.
    indexed: HashSet<NodeId>,
    order_of: IdVec<NodeId, Order>,
    /// Nodes and inner loops with side effects, by frame.
    effects: Vec<Vec<NodeOrLoop>>,
    /// Paths of the regions in which each node or loop with side effects runs.
    done: HashMap<NodeOrLoop, Vec<TestOutcomes>>,
    /// Names of existing functions.
    names: HashSet<Arc<str>>,
    /// Functions created so far.
    made: Vec<Function>,
}

/// Converts the TensorFlow 1 control flow of a pruned program, in the graph and in functions; feed `i` is node `i`. In a converted graph the
/// nodes that change variables become roots.
///
/// Errors: `ControlFlowV1` for loops and conditionals that can't be written as `While` and `If`; `BadGraph` for cycles and missing inputs.
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
    if control_class::has_v1_control_flow(&program.graph) {
        let facts = infer::infer(program, feeds);
        let known = |e: Endpoint| facts.at(e)?.as_tensor().filter(|t| t.dims.is_empty())?.get_i64(0);
        let pinned: Vec<NodeId> = (0..feeds.len() as u32).map(NodeId).collect();
        let targets: Vec<Endpoint> = fetches.iter().map(|f| f.1).collect();
        match convert_graph(&program.graph, &pinned, &targets, &known, &mut names, &changing) {
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
    } else if let Err(stuck) = control_class::topological_order(&program.graph, &[]) {
        problems.push(cycle_error(&program.graph, stuck));
    }
    for function in program.functions.values_mut().filter(|f| control_class::has_v1_control_flow(&f.graph)) {
        let graph = &function.graph;
        let known = |e: Endpoint| constant(graph, e);
        match convert_graph(graph, &function.args, &function.rets, &known, &mut names, &changing) {
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
        super::prune::drop_unreachable_functions(program);
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::User(problems)) }
}

/// Whether an op is a control-flow primitive of TensorFlow 1, such as `Switch` or `Enter`.
pub fn is_control_flow(op: &str) -> bool {
    control_class(op) != ControlClass::Other
}

/// Converts a graph, and returns the new graph with the functions created for it. The nodes `pinned` come first.
fn convert_graph(
    graph: &Graph,
    pinned: &[NodeId],
    targets: &[Endpoint],
    known: &dyn Fn(Endpoint) -> Option<i64>,
    names: &mut HashSet<Arc<str>>,
    changing: &HashSet<Arc<str>>,
) -> Result<(FunctionDraft, Vec<Function>)> {
    check_inputs(graph)?;
    let order = control_class::topological_order(graph, &[]).map_err(|stuck| cycle_error(graph, stuck))?;
    let frames = LoopFrames::find(graph, &order)?;
    // A loop runs as one node: all inputs before all outputs.
    let whole: Vec<(NodeId, NodeId)> =
        frames.all.iter().flat_map(|f| f.exits.iter().flat_map(|&x| f.enters.iter().map(move |&e| (e, x)))).collect();
    let order =
        control_class::topological_order(graph, &whole).map_err(|stuck| self_dependent_loop(graph, &frames, stuck))?;
    let live = Liveness::compute(graph, &frames, &order, known)?;
    let order_of = graph.nodes.values().map(|n| order_of(n, changing)).collect();
    let effects = effects_by_frame(graph, &frames, &order_of);
    let indexed = graph.nodes.values().flat_map(|n| n.inputs.iter()).chain(targets).filter(|e| e.port == 1);
    let indexed =
        indexed.map(|e| e.node).filter(|id| control_class(&graph.nodes[*id].op) == ControlClass::Merge).collect();
    let is_variable = frames.variable_merges();
    let names_before = std::mem::take(names);
    let mut flow = Functionalizer {
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
    let done = flow.convert(pinned, targets);
    *names = flow.names;
    Ok((done?, flow.made))
}

impl Functionalizer<'_> {
    fn convert(&mut self, pinned: &[NodeId], targets: &[Endpoint]) -> Result<FunctionDraft> {
        for &e in targets {
            if self.live_condition_under(e, &TestOutcomes::new()) != Bdd::TRUE {
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
        let mut draft = FunctionDraft::with_pinned_nodes(self.graph, pinned);
        let all = self.effects[TOP].clone();
        let region = Region {
            frame: TOP,
            path: TestOutcomes::new(),
            targets: targets.to_vec(),
            effects: self.live_effects(&all, &TestOutcomes::new()),
            is_whole: true,
            ..Region::default()
        };
        self.emit_region(&region, &mut draft, 0)?;
        draft.remove_dead_nodes(pinned.len());
        Ok(draft)
    }
}

/// Nodes with side effects in each frame, and inner loops with side effects.
fn effects_by_frame(graph: &Graph, frames: &LoopFrames, order_of: &IdVec<NodeId, Order>) -> Vec<Vec<NodeOrLoop>> {
    let mut effects: Vec<Vec<NodeOrLoop>> = vec![Vec::new(); frames.all.len()];
    for id in graph.nodes.ids().filter(|id| order_of[*id] == Order::Changes) {
        effects[frames.of[id]].push(NodeOrLoop::Node(id));
    }
    // Inner frames have larger indices than the frames around them.
    for frame in (1..frames.all.len()).rev() {
        if !effects[frame].is_empty() {
            effects[frames.all[frame].parent].push(NodeOrLoop::Loop(frame));
        }
    }
    effects
}

fn order_of(node: &crate::graph::Node, changing: &HashSet<Arc<str>>) -> Order {
    if changes_state(&node.op) || node.called_functions().iter().any(|name| changing.contains(name)) {
        Order::Changes
    } else if matches!(&*node.op, "ReadVariableOp" | "ResourceGather" | "ResourceGatherNd" | "VarIsInitializedOp") {
        Order::Reads
    } else {
        Order::Free
    }
}

/// Whether an op changes state that other nodes access through a handle.
fn changes_state(op: &str) -> bool {
    super::assigns_variable(op) || ops::find_op(op).is_some_and(|row| !row.writes.is_empty())
}

/// Names of the functions that change state, directly or in functions that they call.
fn changing_functions(program: &Program) -> HashSet<Arc<str>> {
    let mut found: HashSet<Arc<str>> = HashSet::new();
    loop {
        let before = found.len();
        for (name, function) in &program.functions {
            let mut nodes = function.graph.nodes.values();
            if nodes.any(|n| changes_state(&n.op) || n.called_functions().iter().any(|called| found.contains(called))) {
                found.insert(name.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Value of a scalar integer constant, found through nodes that forward it.
fn constant(graph: &Graph, mut e: Endpoint) -> Option<i64> {
    for _ in 0..graph.nodes.len() {
        let node = &graph.nodes[e.node];
        match (&*node.op, node.attr("value")) {
            ("Const", Some(Attr::Tensor(t))) => return t.dims.is_empty().then(|| t.get_i64(0)).flatten(),
            (op, _) if ops::forwards_inputs(op) => e = *node.inputs.get(e.port as usize)?,
            _ => return None,
        }
    }
    None
}

fn check_inputs(graph: &Graph) -> Result<()> {
    for node in graph.nodes.values() {
        let wanted = match control_class(&node.op) {
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

fn cycle_error(graph: &Graph, stuck: NodeId) -> Diagnostic {
    let node = &graph.nodes[stuck];
    Diagnostic::new(Code::BadGraph, format!("`{}` is on a cycle or depends on one", node.name))
        .at_node(&node.name, &node.op)
}

fn self_dependent_loop(graph: &Graph, frames: &LoopFrames, stuck: NodeId) -> Diagnostic {
    let node = &graph.nodes[stuck];
    frames::loop_error(&frames.all[frames.of[stuck]], "waits for what it gives itself").at_node(&node.name, &node.op)
}

#[cfg(test)]
mod tests;
