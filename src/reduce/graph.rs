//! Reduction of a GraphDef: removes nodes with their users, cuts nodes into placeholders, bypasses nodes, removes control inputs, zeroes
//! constants, removes attributes and functions.
use super::{FailureTest, ReductionStats, Search};
use crate::diag::Result;
use crate::dump::graphs::attr;
use crate::graph::{Attr, Endpoint, Node, PartialShape, Program, TfType};
use crate::import::raw::{RawGraph, RawNode};
use crate::import::{self, raw_attr};
use crate::infer::{self, Facts};
use crate::opdef;
use bytes::Bytes;
use std::collections::{HashMap, HashSet};

/// A change of a graph, by the names of nodes and functions.
#[derive(Clone, Debug)]
enum Change {
    /// Removes the node and everything that needs it.
    Remove(String),
    /// Replaces the node by a Placeholder of its type and shape.
    Cut(String),
    /// Bypasses the node: its users get one of its inputs with the same type.
    Pass(String),
    /// Removes the node's control inputs.
    Uncontrol(String),
    /// Replaces the constant's value by zeros.
    Zeros(String),
    /// Removes the attribute (second) of the node (first).
    Attribute(String, String),
    /// Removes the function from the library.
    Function(String),
}

/// Minimizes `graph` as long as `verdict` on its encoding stays true, by at most `most` trials.
///
/// # Errors
/// Errors of `verdict`.
pub fn reduce_graph(graph: RawGraph, most: u64, verdict: &mut FailureTest) -> Result<(RawGraph, ReductionStats)> {
    let mut search = Search::new(verdict, most);
    let mut graph = graph;
    loop {
        let before = search.told.kept;
        for kind in 0..KINDS {
            let known = ReadableNodes::read(&graph);
            let changes = changes(&graph, kind, &known);
            let apply = |graph: &RawGraph, chunk: &[Change]| {
                Ok(applied(graph, chunk, &known).map(|graph| {
                    let bytes = graph.write();
                    (graph, bytes)
                }))
            };
            search.apply_all(&mut graph, &changes, &apply)?;
        }
        if search.told.kept == before || search.told.cut_short {
            return Ok((graph, search.told));
        }
    }
}

/// Number of kinds of changes, which are tried one after the other.
const KINDS: u32 = 7;

fn changes(graph: &RawGraph, kind: u32, known: &ReadableNodes) -> Vec<Change> {
    // Later nodes need earlier ones, so the last node is removed first.
    let names = graph.nodes.iter().rev().map(|n| n.name.clone());
    match kind {
        0 => names.map(Change::Remove).collect(),
        1 => names.filter(|n| known.placeholder(n).is_some()).map(Change::Cut).collect(),
        2 => names.map(Change::Pass).collect(),
        3 => {
            let waits = graph.nodes.iter().filter(|n| n.inputs.iter().any(|i| i.starts_with('^')));
            waits.map(|n| Change::Uncontrol(n.name.clone())).collect()
        }
        4 => {
            let constants = graph.nodes.iter().filter(|n| n.op == "Const");
            constants.map(|n| Change::Zeros(n.name.clone())).collect()
        }
        5 => {
            let attrs = graph.nodes.iter().flat_map(|n| n.attrs.iter().map(|a| (n.name.clone(), a.0.clone())));
            attrs.map(|(node, key)| Change::Attribute(node, key)).collect()
        }
        _ => graph.functions.iter().map(|f| Change::Function(f.name.clone())).collect(),
    }
}

/// The nodes of a graph that the importer can read, with their inferred facts.
#[derive(Default)]
struct ReadableNodes {
    program: Option<Program>,
    facts: Facts,
    ids: HashMap<String, Endpoint>,
}

impl ReadableNodes {
    fn read(graph: &RawGraph) -> ReadableNodes {
        let Ok(program) = import::read_graph_def(&graph.write().into()) else { return ReadableNodes::default() };
        let facts = infer::infer(&program, &[]);
        let ids = program.graph.nodes.iter();
        let ids = ids.map(|(node, n)| (n.name.to_string(), Endpoint { node, port: 0 })).collect();
        ReadableNodes { program: Some(program), facts, ids }
    }
    fn node(&self, name: &str) -> Option<&Node> {
        Some(&self.program.as_ref()?.graph.nodes[self.ids.get(name)?.node])
    }
    /// The `DataType` number of the tensor that an input names.
    fn type_of(&self, input: &str) -> Option<i32> {
        let (name, port) = split(input);
        let node = self.node(name)?;
        opdef::find_def(&node.op)?.output_type(node, port)
    }
    /// `DataType` number and shape of a placeholder that replaces a node; `None` if it can't be replaced.
    fn placeholder(&self, name: &str) -> Option<(i32, PartialShape)> {
        let node = self.node(name)?;
        if matches!(&*node.op, "Placeholder" | "_Arg" | "Const") {
            return None;
        }
        let number = self.type_of(name).filter(|&n| n != opdef::RESOURCE && n != opdef::VARIANT)?;
        let fact = self.facts.at(*self.ids.get(name)?);
        Some((number, fact.map_or(PartialShape(None), |fact| fact.dims.to_partial_shape())))
    }
}

/// Splits an input into the node's name and the output number.
fn split(input: &str) -> (&str, usize) {
    let input = input.strip_prefix('^').unwrap_or(input);
    match input.split_once(':') {
        Some((name, port)) => (name, port.parse().unwrap_or(0)),
        None => (input, 0),
    }
}

/// `graph` with the changes applied; `None` if they change nothing.
fn applied(graph: &RawGraph, changes: &[Change], known: &ReadableNodes) -> Option<RawGraph> {
    let mut nodes = graph.nodes.clone();
    let mut functions = graph.functions.clone();
    let places: HashMap<String, usize> = nodes.iter().enumerate().map(|(i, n)| (n.name.clone(), i)).collect();
    let mut gone: HashSet<String> = HashSet::new();
    let mut changed = false;
    for change in changes {
        let node = |name: &String| places.get(name).copied();
        changed |= match change {
            Change::Remove(name) => node(name).is_some() && gone.insert(name.clone()),
            Change::Cut(name) => node(name).is_some_and(|at| cut_at(&mut nodes, at, known)),
            Change::Pass(name) => node(name).is_some_and(|at| pass(&mut nodes, at, known)),
            Change::Uncontrol(name) => node(name).is_some_and(|at| {
                let before = nodes[at].inputs.len();
                nodes[at].inputs.retain(|i| !i.starts_with('^'));
                nodes[at].inputs.len() != before
            }),
            Change::Zeros(name) => node(name).is_some_and(|at| zeros(&mut nodes[at], known)),
            Change::Attribute(name, key) => node(name).is_some_and(|at| {
                let before = nodes[at].attrs.len();
                nodes[at].attrs.retain(|a| a.0 != *key);
                nodes[at].attrs.len() != before
            }),
            Change::Function(name) => {
                let before = functions.len();
                functions.retain(|f| f.name != *name);
                functions.len() != before
            }
        };
    }
    if !changed {
        return None;
    }
    drop_users(&mut nodes, gone);
    let mut out = graph.with_nodes(nodes);
    out.functions = functions;
    Some(out)
}

/// Removes the nodes of `gone`, and all that get data from them; control inputs from these nodes are dropped.
fn drop_users(nodes: &mut Vec<RawNode>, mut gone: HashSet<String>) {
    if gone.is_empty() {
        return;
    }
    let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
    for node in nodes.iter() {
        for input in node.inputs.iter().filter(|i| !i.starts_with('^')) {
            users.entry(split(input).0).or_default().push(&node.name);
        }
    }
    let mut open: Vec<String> = gone.iter().cloned().collect();
    while let Some(name) = open.pop() {
        for user in users.get(name.as_str()).into_iter().flatten() {
            if gone.insert((*user).to_string()) {
                open.push((*user).to_string());
            }
        }
    }
    nodes.retain(|n| !gone.contains(&n.name));
    nodes.iter_mut().for_each(|n| n.inputs.retain(|i| !gone.contains(split(i).0)));
}

fn cut_at(nodes: &mut [RawNode], at: usize, known: &ReadableNodes) -> bool {
    let Some((number, shape)) = known.placeholder(&nodes[at].name) else { return false };
    let shape = Bytes::from(attr::encode(&Attr::Shape(shape)));
    let attrs = vec![("dtype".to_string(), raw_attr::dtype(number).into()), ("shape".to_string(), shape)];
    nodes[at] = RawNode {
        name: nodes[at].name.clone(),
        op: "Placeholder".to_string(),
        device: nodes[at].device.clone(),
        attrs,
        ..RawNode::default()
    };
    true
}

/// Redirects the users of output 0 of a node to its first input of the same type.
fn pass(nodes: &mut [RawNode], at: usize, known: &ReadableNodes) -> bool {
    let name = nodes[at].name.clone();
    let Some(of) = known.type_of(&name) else { return false };
    let inputs = nodes[at].inputs.iter().filter(|i| !i.starts_with('^'));
    let Some(stand_in) = inputs.clone().find(|i| known.type_of(i) == Some(of)).cloned() else { return false };
    let mut changed = false;
    for input in nodes.iter_mut().flat_map(|n| &mut n.inputs) {
        if !input.starts_with('^') && split(input) == (name.as_str(), 0) {
            input.clone_from(&stand_in);
            changed = true;
        }
    }
    changed
}

fn zeros(node: &mut RawNode, known: &ReadableNodes) -> bool {
    let Some(of) = known.node(&node.name) else { return false };
    let Some(Attr::Tensor(value)) = of.attr("value") else { return false };
    if value.len() < 2 || value.bytes.iter().all(|&b| b == 0) {
        return false;
    }
    // A tensor without values holds zeros.
    node.set_attr("value", attr::zeros(TfType::Data(value.dtype), &value.dims));
    true
}
