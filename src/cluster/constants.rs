//! Backwards constant analysis: which nodes must have a value that is known when XLA compiles.
//!
//! Consumers are visited before producers. An op that needs the value of an input marks that input's producer, a marked node
//! marks all its producers, and an op that only needs shapes stops the marking. Identities and loops are looked through.
use super::flow::{Edge, Flow, OpClass};
use crate::graph::{Attr, FuncRef, Function, Graph, Node, Program, TfType};
use std::collections::HashMap;
use std::sync::Arc;

/// The arguments of each function that must be compile-time constants; shared by all graphs of a program.
#[derive(Default)]
pub struct ConstantArgs {
    known: HashMap<Arc<str>, Vec<bool>>,
    open: Vec<Arc<str>>,
}

/// Marks of the nodes of `flow`; only edges that `keep` takes are followed.
pub fn analyse(flow: &Flow, functions: &mut ConstantArgs, keep: &dyn Fn(Edge) -> bool) -> Vec<bool> {
    let mut marks = vec![false; flow.nodes.len()];
    let mut through = HashMap::new();
    for n in flow.post_order() {
        let Some(node) = flow.nodes[n as usize].node else { continue };
        let kind = flow.kind_of_node(n);
        if kind.row.is_some_and(|r| r.is_metadata) || (marks[n as usize] && kind.op == "_Arg") {
            continue;
        }
        let all = marks[n as usize];
        let wanted = if all { Vec::new() } else { constant_inputs(flow, n, node, functions) };
        if !all && wanted.is_empty() {
            continue;
        }
        for edge in flow.ins(n) {
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

/// The producer behind identities and loops; `None` where the way leaves the kept edges. `known` remembers the ends of ways
/// by the output that they start from, so that long chains are walked once.
fn look_through(
    flow: &Flow,
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
        match flow.input(edge.src, edge.src_port) {
            Some(next) if keep(next) => edge = next,
            Some(_) | None => break None,
        }
    };
    known.extend(way.into_iter().map(|key| (key, end)));
    end
}

fn is_transparent(flow: &Flow, n: u32) -> bool {
    matches!(flow.op(n), "Identity" | "IdentityN" | "While" | "StatelessWhile")
}

/// The data inputs of a node whose value must be known, sorted.
pub fn constant_inputs(flow: &Flow, n: u32, node: &Node, functions: &mut ConstantArgs) -> Vec<usize> {
    let kind = flow.kind_of_node(n);
    let program = flow.program;
    let mut found = match kind.class {
        OpClass::While => functions.of_loop(program, node),
        OpClass::If => functions.of_branches(program, &[node.func("then_branch"), node.func("else_branch")]),
        OpClass::Case => match node.attr("branches") {
            Some(Attr::Funcs(all)) => functions.of_branches(program, &all.iter().map(Some).collect::<Vec<_>>()),
            _ => Vec::new(),
        },
        OpClass::Call if matches!(kind.op, "PartitionedCall" | "StatefulPartitionedCall") => {
            let mut args = Vec::new();
            functions.add(program, node.func("f"), &mut args);
            marked(&args)
        }
        _ => registered(flow, n, node),
    };
    found.sort_unstable();
    found.dedup();
    found
}

/// The inputs that the op's registration names, or the attribute that overrides it.
fn registered(flow: &Flow, n: u32, node: &Node) -> Vec<usize> {
    let kind = flow.kind_of_node(n);
    let Some(def) = kind.def else { return Vec::new() };
    let given = match node.attr("_XlaCompileTimeConstantInputs") {
        Some(Attr::EmptyList) => Some(Vec::new()),
        Some(Attr::Strs(_)) => node.strs("_XlaCompileTimeConstantInputs"),
        _ => None,
    };
    match (given, kind.row) {
        (Some(names), _) => names.iter().filter_map(|name| def.input_range(node, name)).flatten().collect(),
        (None, Some(row)) => row.constants.iter().filter_map(|name| def.input_range(node, name)).flatten().collect(),
        (None, None) => Vec::new(),
    }
}

fn marked(flags: &[bool]) -> Vec<usize> {
    (0..flags.len()).filter(|&i| flags[i]).collect()
}

impl ConstantArgs {
    /// Adds the arguments of `f` that must be known to `args`.
    ///
    /// The answer for a function is remembered as TensorFlow remembers it: with what `args` held when it was first asked for,
    /// and in place of what `args` holds when it is asked for again. Conditions whose branches differ show it.
    fn add(&mut self, program: &Program, f: Option<&FuncRef>, args: &mut Vec<bool>) {
        let Some(f) = f else { return };
        if let Some(known) = self.known.get(&f.name) {
            args.clone_from(known);
            return;
        }
        let Some(function) = program.functions.get(&f.name).filter(|_| !self.open.contains(&f.name)) else { return };
        if self.open.len() >= super::compilable::MAX_DEPTH {
            return;
        }
        self.open.push(f.name.clone());
        let body = with_results(function);
        if let Ok(mut flow) = Flow::import(program, &body) {
            flow.fix_ends();
            let marks = analyse(&flow, self, &|_| true);
            args.resize(args.len().max(function.args.len()), false);
            for (i, arg) in function.args.iter().enumerate() {
                args[i] |= marks[flow.numbers[arg.0 as usize] as usize];
            }
        }
        self.open.pop();
        self.known.insert(f.name.clone(), args.clone());
    }

    /// The inputs of a condition that its branches need; the first input is what selects the branch.
    fn of_branches(&mut self, program: &Program, branches: &[Option<&FuncRef>]) -> Vec<usize> {
        let mut args = Vec::new();
        branches.iter().for_each(|f| self.add(program, *f, &mut args));
        marked(&args).into_iter().map(|i| i + 1).collect()
    }

    /// The inputs of a loop that its condition or body needs and that its body hands on unchanged.
    fn of_loop(&mut self, program: &Program, node: &Node) -> Vec<usize> {
        let mut args = Vec::new();
        self.add(program, node.func("cond"), &mut args);
        self.add(program, node.func("body"), &mut args);
        let body = node.func("body").and_then(|f| program.functions.get(&f.name));
        let Some(body) = body else { return Vec::new() };
        marked(&args).into_iter().filter(|&i| is_loop_invariant(body, i)).collect()
    }
}

/// Whether result `index` of `body` is its argument `index`, behind any identities.
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

/// The body of a function with a `_Retval` for each result, as TensorFlow instantiates it.
pub fn with_results(function: &Function) -> Graph {
    let mut graph = function.graph.clone();
    let taken: std::collections::HashSet<Box<str>> = graph.nodes.values().map(|n| n.name.clone()).collect();
    for (i, (&ret, name)) in function.rets.iter().zip(&function.ret_names).enumerate() {
        let from = &graph.nodes[ret.node];
        let def = crate::opdef::find(&from.op);
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
