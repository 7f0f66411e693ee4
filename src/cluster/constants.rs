//! Backwards constant analysis: finds the nodes whose values must be known when XLA compiles.
//!
//! Consumers are visited before producers. An op that needs the value of an input marks the producer of this input, a marked node
//! marks all its producers, and an op that needs only shapes stops the marking. Identities and loops are transparent.
use super::flow::{Edge, FlowGraph, OpClass};
use crate::graph::{Attr, FuncRef, Function, Graph, Node, Program, TfType};
use std::collections::HashMap;
use std::sync::Arc;

/// Cache of the arguments of each function that must be compile-time constants; shared by all graphs of a program.
#[derive(Default)]
pub struct RequiredConstantArgs {
    by_function: HashMap<Arc<str>, Vec<bool>>,
    call_stack: Vec<Arc<str>>,
}

/// Returns for each node of `flow` whether its value must be known at compile time. Only edges for which `keep` holds are followed.
pub fn find_required_constants(
    flow: &FlowGraph,
    functions: &mut RequiredConstantArgs,
    keep: &dyn Fn(Edge) -> bool,
) -> Vec<bool> {
    let mut marks = vec![false; flow.nodes.len()];
    let mut through = HashMap::new();
    for n in flow.post_order() {
        let Some(node) = flow.nodes[n as usize].node else { continue };
        let kind = flow.op_facts(n);
        if kind.registration.is_some_and(|r| r.is_metadata) || (marks[n as usize] && kind.op == "_Arg") {
            continue;
        }
        let all = marks[n as usize];
        let wanted = if all { Vec::new() } else { constant_inputs(flow, n, node, functions) };
        if !all && wanted.is_empty() {
            continue;
        }
        for edge in flow.in_edges(n) {
            let asked = edge.dst_port >= 0 && (all || wanted.binary_search(&(edge.dst_port as usize)).is_ok());
            if asked
                && keep(edge)
                && let Some(from) = look_through(flow, edge, keep, &mut through)
            {
                marks[from as usize] = true;
            }
        }
    }
    marks
}

/// The producer of an edge behind any identities and loops; `None` if the path leaves the kept edges. `known` caches the end of
/// each path by the output where the path starts, so that long chains are walked once.
fn look_through(
    flow: &FlowGraph,
    edge: Edge,
    keep: &dyn Fn(Edge) -> bool,
    known: &mut HashMap<(u32, i32), Option<u32>>,
) -> Option<u32> {
    let mut way = Vec::new();
    let mut edge = edge;
    let end = loop {
        let key = (edge.src, edge.src_port);
        if !is_transparent(flow, edge.src) {
            break Some(edge.src);
        }
        if let Some(&end) = known.get(&key) {
            break end;
        }
        way.push(key);
        match flow.input_edge(edge.src, edge.src_port) {
            Some(next) if keep(next) => edge = next,
            Some(_) | None => break None,
        }
    };
    known.extend(way.into_iter().map(|key| (key, end)));
    end
}

fn is_transparent(flow: &FlowGraph, n: u32) -> bool {
    matches!(flow.op(n), "Identity" | "IdentityN" | "While" | "StatelessWhile")
}

/// Indices of the data inputs of a node that must be compile-time constants, sorted.
pub fn constant_inputs(flow: &FlowGraph, n: u32, node: &Node, functions: &mut RequiredConstantArgs) -> Vec<usize> {
    let kind = flow.op_facts(n);
    let program = flow.program;
    let mut found = match kind.class {
        OpClass::While => functions.loop_constants(program, node),
        OpClass::If => functions.branch_constants(program, &[node.func("then_branch"), node.func("else_branch")]),
        OpClass::Case => match node.attr("branches") {
            Some(Attr::Funcs(all)) => functions.branch_constants(program, &all.iter().map(Some).collect::<Vec<_>>()),
            _ => Vec::new(),
        },
        OpClass::Call if matches!(kind.op, "PartitionedCall" | "StatefulPartitionedCall") => {
            let mut args = Vec::new();
            functions.add_constant_args(program, node.func("f"), &mut args);
            true_indices(&args)
        }
        _ => registered_constant_inputs(flow, n, node),
    };
    found.sort_unstable();
    found.dedup();
    found
}

/// The constant inputs that the attribute `_XlaCompileTimeConstantInputs` names, or else the op's registration.
fn registered_constant_inputs(flow: &FlowGraph, n: u32, node: &Node) -> Vec<usize> {
    let kind = flow.op_facts(n);
    let Some(def) = kind.def else { return Vec::new() };
    let given = match node.attr("_XlaCompileTimeConstantInputs") {
        Some(Attr::EmptyList) => Some(Vec::new()),
        Some(Attr::Strs(_)) => node.strs("_XlaCompileTimeConstantInputs"),
        _ => None,
    };
    match (given, kind.registration) {
        (Some(names), _) => names.iter().filter_map(|name| def.input_range(node, name)).flatten().collect(),
        (None, Some(row)) => row.constants.iter().filter_map(|name| def.input_range(node, name)).flatten().collect(),
        (None, None) => Vec::new(),
    }
}

fn true_indices(flags: &[bool]) -> Vec<usize> {
    (0..flags.len()).filter(|&i| flags[i]).collect()
}

impl RequiredConstantArgs {
    /// Adds to the mask `args` the arguments of `f` that must be compile-time constants.
    ///
    /// The result for a function is cached as TensorFlow caches it: the first query stores the union of its constants with the previous
    /// content of `args`; later queries overwrite `args` with the stored value. Conditions whose branches differ show the difference.
    fn add_constant_args(&mut self, program: &Program, f: Option<&FuncRef>, args: &mut Vec<bool>) {
        let Some(f) = f else { return };
        if let Some(known) = self.by_function.get(&f.name) {
            args.clone_from(known);
            return;
        }
        let Some(function) = program.functions.get(&f.name).filter(|_| !self.call_stack.contains(&f.name)) else {
            return;
        };
        if self.call_stack.len() >= super::compilable::MAX_DEPTH {
            return;
        }
        self.call_stack.push(f.name.clone());
        let body = body_with_retvals(function);
        if let Ok(mut flow) = FlowGraph::import(program, &body) {
            flow.fixup_source_and_sink_edges();
            let marks = find_required_constants(&flow, self, &|_| true);
            args.resize(args.len().max(function.args.len()), false);
            for (i, arg) in function.args.iter().enumerate() {
                args[i] |= marks[flow.numbers[arg.0 as usize] as usize];
            }
        }
        self.call_stack.pop();
        self.by_function.insert(f.name.clone(), args.clone());
    }

    /// The inputs of a condition that must be constants for its branches; input 0 is the branch selector.
    fn branch_constants(&mut self, program: &Program, branches: &[Option<&FuncRef>]) -> Vec<usize> {
        let mut args = Vec::new();
        branches.iter().for_each(|f| self.add_constant_args(program, *f, &mut args));
        true_indices(&args).into_iter().map(|i| i + 1).collect()
    }

    /// The inputs of a loop that must be constants for its condition or body and that the body returns unchanged.
    fn loop_constants(&mut self, program: &Program, node: &Node) -> Vec<usize> {
        let mut args = Vec::new();
        self.add_constant_args(program, node.func("cond"), &mut args);
        self.add_constant_args(program, node.func("body"), &mut args);
        let body = node.func("body").and_then(|f| program.functions.get(&f.name));
        let Some(body) = body else { return Vec::new() };
        true_indices(&args).into_iter().filter(|&i| is_loop_invariant(body, i)).collect()
    }
}

/// Whether result `index` of `body` is its argument `index`, possibly through identities.
fn is_loop_invariant(body: &Function, index: usize) -> bool {
    let (Some(&arg), Some(&ret)) = (body.args.get(index), body.rets.get(index)) else { return false };
    let mut at = ret;
    for _ in 0..=body.graph.nodes.len() {
        let node = &body.graph.nodes[at.node];
        match &*node.op {
            "Identity" | "IdentityN" => match node.inputs.get(at.port as usize) {
                Some(&from) => at = from,
                None => return false,
            },
            _ => return at.node == arg,
        }
    }
    false
}

/// The body of a function with a `_Retval` node for each result, as TensorFlow instantiates it.
pub fn body_with_retvals(function: &Function) -> Graph {
    let mut graph = function.graph.clone();
    let taken: std::collections::HashSet<Box<str>> = graph.nodes.values().map(|n| n.name.clone()).collect();
    for (i, (&ret, name)) in function.rets.iter().zip(&function.ret_names).enumerate() {
        let from = &graph.nodes[ret.node];
        let def = crate::opdef::find_def(&from.op);
        let number = def.and_then(|d| d.output_type(from, ret.port as usize)).unwrap_or(0);
        let mut full = format!("{name}_RetVal");
        while taken.contains(full.as_str()) {
            full.push('_');
        }
        let attrs =
            [(Arc::from("T"), Attr::Type(TfType::from_number(number))), (Arc::from("index"), Attr::Int(i as i64))];
        graph.nodes.push(Node {
            name: full.into(),
            op: "_Retval".into(),
            device: "".into(),
            inputs: [ret].into(),
            controls: [].into(),
            attrs: attrs.into(),
        });
    }
    graph
}
