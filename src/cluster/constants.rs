//! Backwards constant analysis: which nodes must have a value that is known when XLA compiles.
//!
//! Consumers are visited before producers. An op that needs the value of an input marks that input's producer, a marked node
//! marks all its producers, and an op that only needs shapes stops the marking. Identities and loops are looked through.
use super::flow::{Class, Edge, Flow};
use crate::graph::{Attr, FuncRef, Function, Graph, Node, Program, TfType};
use std::collections::HashMap;
use std::sync::Arc;

/// What functions need of their arguments; shared by all graphs of a program.
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
            if asked && keep(edge) {
                if let Some(from) = look_through(flow, edge, keep, &mut through) {
                    marks[from as usize] = true;
                }
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
    let called = |name: &str, functions: &mut ConstantArgs| -> Vec<usize> {
        node.func(name).map_or(Vec::new(), |f| marked(&functions.of(program, f)))
    };
    let mut found = match kind.class {
        Class::While => functions.of_loop(program, node),
        Class::If => {
            let mut all = called("then_branch", functions);
            all.extend(called("else_branch", functions));
            all.into_iter().map(|i| i + 1).collect()
        }
        Class::Case => match node.attr("branches") {
            Some(Attr::Funcs(all)) => {
                all.iter().flat_map(|f| marked(&functions.of(program, f))).map(|i| i + 1).collect()
            }
            _ => Vec::new(),
        },
        Class::Call if matches!(kind.op, "PartitionedCall" | "StatefulPartitionedCall") => called("f", functions),
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
    /// Which arguments of the function must be known; none for a function that is missing or calls itself.
    pub fn of(&mut self, program: &Program, f: &FuncRef) -> Vec<bool> {
        if let Some(known) = self.known.get(&f.name) {
            return known.clone();
        }
        let Some(function) = program.functions.get(&f.name).filter(|_| !self.open.contains(&f.name)) else {
            return Vec::new();
        };
        if self.open.len() >= super::compilable::MAX_DEPTH {
            return Vec::new();
        }
        self.open.push(f.name.clone());
        let args = self.of_body(program, function);
        self.open.pop();
        self.known.insert(f.name.clone(), args.clone());
        args
    }

    fn of_body(&mut self, program: &Program, function: &Function) -> Vec<bool> {
        let body = with_results(function);
        let Ok(mut flow) = Flow::import(program, &body) else { return Vec::new() };
        flow.fix_ends();
        let marks = analyse(&flow, self, &|_| true);
        function.args.iter().map(|arg| marks[flow.numbers[arg.0 as usize] as usize]).collect()
    }

    /// The inputs of a loop that its condition or body needs and that its body hands on unchanged.
    fn of_loop(&mut self, program: &Program, node: &Node) -> Vec<usize> {
        let (Some(cond), Some(body)) = (node.func("cond"), node.func("body")) else { return Vec::new() };
        let mut wanted = marked(&self.of(program, cond));
        wanted.extend(marked(&self.of(program, body)));
        let Some(body) = program.functions.get(&body.name) else { return Vec::new() };
        wanted.retain(|&i| is_loop_invariant(body, i));
        wanted
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
