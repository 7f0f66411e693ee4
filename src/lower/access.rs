//! Analysis of the variables that functions read and write through the handles that they get.
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program, TfType, is_handle, is_table};
use crate::ops::{self, Calls, OpRow};
use crate::util::id_vec::IdVec;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Calls nested deeper than this are taken to change everything.
const MAX_DEPTH: usize = 100;

/// Kind of access to a variable, the strongest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing.
    #[default]
    None,
    /// The value is read.
    Read,
    /// The variable is given a new value, and may be read.
    Write,
}

/// Effects of a function on variables and on the random generator.
#[derive(Debug, Default)]
pub struct Uses {
    /// To the variable whose handle each argument is.
    pub args: Vec<Access>,
    /// To variables whose handles nodes of the body give, by the name of the variable.
    pub named: BTreeMap<String, Access>,
    /// Index of the argument that each result passes on, where the result is a variable's handle.
    pub passed: Vec<Option<usize>>,
    /// Whether it draws from the generator that no handle names.
    pub draws: bool,
}

impl Uses {
    /// Whether it changes a variable or draws from the generator.
    pub fn acts(&self) -> bool {
        self.draws || self.writes()
    }
    /// Whether it changes a variable.
    pub fn writes(&self) -> bool {
        self.args.iter().chain(self.named.values()).any(|a| *a == Access::Write)
    }
}

/// Accesses of a graph's nodes to the variables whose handles are given by nodes of that graph.
#[derive(Debug, Default)]
pub struct HandleAccesses {
    /// Strongest access to each variable, by the node that gives the handle.
    pub handles: BTreeMap<NodeId, Access>,
    /// Whether they draw from the generator that no handle names.
    pub draws: bool,
    /// The node behind each output that passes a handle on.
    passed: HashMap<Endpoint, NodeId>,
}

/// The functions of a program that were looked at.
#[derive(Debug, Default)]
pub struct Accesses {
    known: HashMap<Arc<str>, Rc<Uses>>,
    open: Vec<Arc<str>>,
    asserting: HashMap<Arc<str>, bool>,
}

impl Accesses {
    /// Effects of the function `name`; none where there is no such function.
    pub fn function(&mut self, program: &Program, name: &Arc<str>) -> Rc<Uses> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let Some(function) = program.functions.get(name) else { return Rc::default() };
        if self.open.contains(name) || self.open.len() >= MAX_DEPTH {
            // The lowering refuses such calls.
            return Rc::new(Uses { args: vec![Access::Write; function.args.len()], ..Uses::default() });
        }
        self.open.push(name.clone());
        let found = self.graph(program, &function.graph, |_| true);
        self.open.pop();
        let of = |id: &NodeId| found.handles.get(id).copied().unwrap_or_default();
        let mut named = BTreeMap::new();
        for (id, node) in function.graph.nodes.iter().filter(|(_, n)| is_source(n)) {
            named.insert(node.variable().to_string(), of(&id));
        }
        let argument = |e: &Endpoint| {
            let from = found.passed.get(e).copied().unwrap_or(e.node);
            function.args.iter().position(|&arg| arg == from && is_resource(&function.graph.nodes[arg]))
        };
        let passed = function.rets.iter().map(argument).collect();
        let args = function.args.iter().map(of).collect();
        let uses = Rc::new(Uses { args, named, passed, draws: found.draws });
        self.known.insert(name.clone(), uses.clone());
        uses
    }

    /// Whether a node changes a variable, itself or by what it calls.
    pub fn writes(&mut self, program: &Program, node: &Node) -> bool {
        ops::find(&node.op).is_some_and(|row| !row.writes.is_empty())
            || called(program, node).iter().any(|name| self.function(program, name).writes())
    }

    /// Whether a node is there to check a value, itself or by what it calls.
    pub fn asserts(&mut self, program: &Program, node: &Node) -> bool {
        ops::is_assertion(&node.op) || called(program, node).iter().any(|name| self.function_asserts(program, name))
    }

    fn function_asserts(&mut self, program: &Program, name: &Arc<str>) -> bool {
        if let Some(known) = self.asserting.get(name) {
            return *known;
        }
        let Some(function) = program.functions.get(name).filter(|_| self.open.len() < MAX_DEPTH) else { return false };
        // a function that calls itself is refused elsewhere
        self.asserting.insert(name.clone(), false);
        self.open.push(name.clone());
        let asserts = function.graph.nodes.values().any(|node| self.asserts(program, node));
        self.open.pop();
        self.asserting.insert(name.clone(), asserts);
        asserts
    }

    /// Accesses by those nodes of a graph for which `looked_at` holds.
    pub fn graph(&mut self, program: &Program, graph: &Graph, looked_at: impl Fn(NodeId) -> bool) -> HandleAccesses {
        let mut found = HandleAccesses::default();
        for (_, node) in graph.nodes.iter().filter(|(id, _)| looked_at(*id)) {
            found.draws |= ops::find(&node.op).is_some_and(|row| row.node_draws(node))
                || called(program, node).iter().any(|name| self.function(program, name).draws);
        }
        let sources: Vec<NodeId> =
            graph.nodes.iter().filter(|(_, n)| is_source(n) || is_resource(n)).map(|(id, _)| id).collect();
        if sources.is_empty() {
            return found;
        }
        let mut users: IdVec<NodeId, Vec<(NodeId, usize)>> = graph.nodes.ids().map(|_| Vec::new()).collect();
        for (id, node) in graph.nodes.iter().filter(|(id, _)| looked_at(*id)) {
            node.inputs.iter().enumerate().for_each(|(i, e)| users[e.node].push((id, i)));
        }
        for source in sources {
            let mut todo = vec![Endpoint { node: source, port: 0 }];
            let mut seen = HashSet::new();
            while let Some(at) = todo.pop() {
                if !seen.insert(at) {
                    continue;
                }
                found.passed.insert(at, source);
                for &(user, i) in users[at.node].iter().filter(|(user, i)| graph.nodes[*user].inputs[*i] == at) {
                    let (access, ports) = self.input(program, &graph.nodes[user], i);
                    let most = found.handles.entry(source).or_default();
                    *most = access.max(*most);
                    todo.extend(ports.into_iter().map(|port| Endpoint { node: user, port }));
                }
            }
        }
        found
    }

    /// Access of a node to the variable whose handle is its input `i`, and the outputs that pass this handle on.
    fn input(&mut self, program: &Program, node: &Node, i: usize) -> (Access, Vec<u32>) {
        let callees = called(program, node);
        let calls = ops::find(&node.op).and_then(OpRow::calls);
        // the input that is the first argument of what is called
        let first = match &*node.op {
            "Enter" | "Exit" | "NextIteration" | "Merge" => return (Access::None, vec![0]),
            op if ops::forwards(op) => return (Access::None, vec![i as u32]),
            "Switch" => return (Access::None, if i == 0 { vec![0, 1] } else { vec![] }),
            _ if !callees.is_empty() => calls.map_or(0, Calls::first_argument),
            _ => {
                let row = ops::find(&node.op);
                let writes = row.is_some_and(|row| row.writes.contains(&i));
                // what changes a variable of TensorFlow 1 gives its reference again
                let again = writes && row.is_some_and(|row| row.by_reference);
                return (if writes { Access::Write } else { Access::Read }, if again { vec![0] } else { vec![] });
            }
        };
        let Some(arg) = i.checked_sub(first) else { return (Access::Read, vec![]) };
        let repeats = calls == Some(Calls::While);
        let (mut most, mut ports) = (Access::None, if repeats { vec![i as u32] } else { vec![] });
        for name in &callees {
            let uses = self.function(program, name);
            most = most.max(uses.args.get(arg).copied().unwrap_or_default());
            if !repeats {
                let same = uses.passed.iter().enumerate().filter(|(_, passed)| **passed == Some(arg));
                ports.extend(same.map(|(port, _)| port as u32));
            }
        }
        (most, ports)
    }
}

/// The functions of the library that a node calls.
fn called(program: &Program, node: &Node) -> Vec<Arc<str>> {
    let calls = node.attrs.iter().any(|(_, a)| matches!(a, Attr::Func(_) | Attr::Funcs(_)));
    if program.functions.is_empty() || !(calls || program.functions.contains_key(&node.op)) {
        return Vec::new();
    }
    let mut names = node.called();
    names.retain(|name| program.functions.contains_key(name));
    names
}

/// Whether a node gives the handle of a variable or table.
fn is_source(node: &Node) -> bool {
    is_handle(node) || is_table(node)
}

/// Whether a node is an argument that is a handle.
fn is_resource(node: &Node) -> bool {
    &*node.op == "_Arg" && node.tf_type("T") == Some(TfType::Resource)
}
