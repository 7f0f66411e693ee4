//! Analysis of which variables functions and graphs read and write through resource handles.
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program, TfType, is_handle, is_table};
use crate::ops::{self, CallKind, OpLowering};
use crate::util::id_vec::IdVec;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Nesting depth of calls from which a function is assumed to write all its arguments.
const MAX_DEPTH: usize = 100;

/// Kind of access to a variable, the strongest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// The variable is neither read nor written.
    #[default]
    None,
    /// Reads the variable, and does not write.
    Read,
    /// Writes the variable, and possibly reads.
    Write,
}

/// Effects of a function on variables and on the random generator.
#[derive(Debug, Default)]
pub struct FunctionEffects {
    /// Access to the variable behind each argument; `None` for arguments that are no handles.
    pub args: Vec<Access>,
    /// Access to variables whose handles are created in the function's body, by variable name.
    pub by_name: BTreeMap<String, Access>,
    /// Index of the argument that each result passes on, where the result is a variable's handle.
    pub forwarded: Vec<Option<usize>>,
    /// Whether the function draws from the global random generator, which has no handle.
    pub draws_random: bool,
}

impl FunctionEffects {
    /// Whether the function writes a variable or draws from the global random generator.
    pub fn has_side_effects(&self) -> bool {
        self.draws_random || self.writes_variable()
    }
    /// Whether the function writes a variable.
    pub fn writes_variable(&self) -> bool {
        self.args.iter().chain(self.by_name.values()).any(|a| *a == Access::Write)
    }
}

/// Accesses of a graph's nodes to the variables whose handles are created by nodes of the same graph.
#[derive(Debug, Default)]
pub struct HandleAccesses {
    /// Strongest access to each variable, by the node that creates the handle.
    pub handles: BTreeMap<NodeId, Access>,
    /// Whether a node draws from the global random generator, which has no handle.
    pub draws_random: bool,
    /// Node that created the handle, for each output that carries a handle.
    forwarded: HashMap<Endpoint, NodeId>,
}

/// Effects of the functions of one program, computed on demand and cached.
#[derive(Debug, Default)]
pub struct AccessAnalysis {
    cache: HashMap<Arc<str>, Rc<FunctionEffects>>,
    call_stack: Vec<Arc<str>>,
    asserting: HashMap<Arc<str>, bool>,
}

impl AccessAnalysis {
    /// Effects of the function `name`; no effects if the library has no such function.
    pub fn function_effects(&mut self, program: &Program, name: &Arc<str>) -> Rc<FunctionEffects> {
        if let Some(known) = self.cache.get(name) {
            return known.clone();
        }
        let Some(function) = program.functions.get(name) else { return Rc::default() };
        if self.call_stack.contains(name) || self.call_stack.len() >= MAX_DEPTH {
            // The lowering refuses such calls.
            return Rc::new(FunctionEffects {
                args: vec![Access::Write; function.args.len()],
                ..FunctionEffects::default()
            });
        }
        self.call_stack.push(name.clone());
        let found = self.graph_accesses(program, &function.graph, |_| true);
        self.call_stack.pop();
        let of = |id: &NodeId| found.handles.get(id).copied().unwrap_or_default();
        let mut by_name = BTreeMap::new();
        for (id, node) in function.graph.nodes.iter().filter(|(_, n)| is_source(n)) {
            by_name.insert(node.variable_name().to_string(), of(&id));
        }
        let argument = |e: &Endpoint| {
            let from = found.forwarded.get(e).copied().unwrap_or(e.node);
            function.args.iter().position(|&arg| arg == from && is_resource(&function.graph.nodes[arg]))
        };
        let forwarded = function.rets.iter().map(argument).collect();
        let args = function.args.iter().map(of).collect();
        let uses = Rc::new(FunctionEffects { args, by_name, forwarded, draws_random: found.draws_random });
        self.cache.insert(name.clone(), uses.clone());
        uses
    }

    /// Whether a node writes a variable, itself or in a function that it calls.
    pub fn writes_variable(&mut self, program: &Program, node: &Node) -> bool {
        ops::find_op(&node.op).is_some_and(|row| !row.writes.is_empty())
            || called(program, node).iter().any(|name| self.function_effects(program, name).writes_variable())
    }

    /// Whether a node is an assertion or calls a function that contains one.
    pub fn contains_assertion(&mut self, program: &Program, node: &Node) -> bool {
        ops::is_assertion(&node.op) || called(program, node).iter().any(|name| self.function_asserts(program, name))
    }

    fn function_asserts(&mut self, program: &Program, name: &Arc<str>) -> bool {
        if let Some(known) = self.asserting.get(name) {
            return *known;
        }
        let Some(function) = program.functions.get(name).filter(|_| self.call_stack.len() < MAX_DEPTH) else {
            return false;
        };
        // recursion ends here; lowering refuses functions that call themselves
        self.asserting.insert(name.clone(), false);
        self.call_stack.push(name.clone());
        let asserts = function.graph.nodes.values().any(|node| self.contains_assertion(program, node));
        self.call_stack.pop();
        self.asserting.insert(name.clone(), asserts);
        asserts
    }

    /// Accesses by the nodes of a graph that satisfy `is_included`.
    pub fn graph_accesses(
        &mut self,
        program: &Program,
        graph: &Graph,
        is_included: impl Fn(NodeId) -> bool,
    ) -> HandleAccesses {
        let mut found = HandleAccesses::default();
        for (_, node) in graph.nodes.iter().filter(|(id, _)| is_included(*id)) {
            found.draws_random |= ops::find_op(&node.op).is_some_and(|row| row.node_draws_random(node))
                || called(program, node).iter().any(|name| self.function_effects(program, name).draws_random);
        }
        let sources: Vec<NodeId> =
            graph.nodes.iter().filter(|(_, n)| is_source(n) || is_resource(n)).map(|(id, _)| id).collect();
        if sources.is_empty() {
            return found;
        }
        let mut users: IdVec<NodeId, Vec<(NodeId, usize)>> = graph.nodes.ids().map(|_| Vec::new()).collect();
        for (id, node) in graph.nodes.iter().filter(|(id, _)| is_included(*id)) {
            node.inputs.iter().enumerate().for_each(|(i, e)| users[e.node].push((id, i)));
        }
        for source in sources {
            let mut todo = vec![Endpoint { node: source, port: 0 }];
            let mut seen = HashSet::new();
            while let Some(at) = todo.pop() {
                if !seen.insert(at) {
                    continue;
                }
                found.forwarded.insert(at, source);
                for &(user, i) in users[at.node].iter().filter(|(user, i)| graph.nodes[*user].inputs[*i] == at) {
                    let (access, ports) = self.input_access(program, &graph.nodes[user], i);
                    let most = found.handles.entry(source).or_default();
                    *most = access.max(*most);
                    todo.extend(ports.into_iter().map(|port| Endpoint { node: user, port }));
                }
            }
        }
        found
    }

    /// Access of a node to the variable whose handle is input `i`, and the output ports that forward this handle.
    fn input_access(&mut self, program: &Program, node: &Node, i: usize) -> (Access, Vec<u32>) {
        let callees = called(program, node);
        let calls = ops::find_op(&node.op).and_then(OpLowering::call_kind);
        // index of the input that is the callee's first argument
        let first = match &*node.op {
            "Enter" | "Exit" | "NextIteration" | "Merge" => return (Access::None, vec![0]),
            op if ops::forwards_inputs(op) => return (Access::None, vec![i as u32]),
            "Switch" => return (Access::None, if i == 0 { vec![0, 1] } else { vec![] }),
            _ if !callees.is_empty() => calls.map_or(0, CallKind::first_argument),
            _ => {
                let row = ops::find_op(&node.op);
                let writes = row.is_some_and(|row| row.writes.contains(&i));
                // an op that writes a reference variable of TensorFlow 1 outputs the reference
                let again = writes && row.is_some_and(|row| row.by_reference);
                return (if writes { Access::Write } else { Access::Read }, if again { vec![0] } else { vec![] });
            }
        };
        let Some(arg) = i.checked_sub(first) else { return (Access::Read, vec![]) };
        let repeats = calls == Some(CallKind::While);
        let (mut most, mut ports) = (Access::None, if repeats { vec![i as u32] } else { vec![] });
        for name in &callees {
            let uses = self.function_effects(program, name);
            most = most.max(uses.args.get(arg).copied().unwrap_or_default());
            if !repeats {
                let same = uses.forwarded.iter().enumerate().filter(|(_, forwarded)| **forwarded == Some(arg));
                ports.extend(same.map(|(port, _)| port as u32));
            }
        }
        (most, ports)
    }
}

/// Names of the library functions that a node calls.
fn called(program: &Program, node: &Node) -> Vec<Arc<str>> {
    let calls = node.attrs.iter().any(|(_, a)| matches!(a, Attr::Func(_) | Attr::Funcs(_)));
    if program.functions.is_empty() || !(calls || program.functions.contains_key(&node.op)) {
        return Vec::new();
    }
    let mut names = node.called_functions();
    names.retain(|name| program.functions.contains_key(name));
    names
}

/// Whether a node creates the handle of a variable or table.
fn is_source(node: &Node) -> bool {
    is_handle(node) || is_table(node)
}

/// Whether a node is a function argument of resource type.
fn is_resource(node: &Node) -> bool {
    &*node.op == "_Arg" && node.tf_type("T") == Some(TfType::Resource)
}
