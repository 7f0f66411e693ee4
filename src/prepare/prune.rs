//! Pruning of a graph to what the fetches need. The algorithms are iterative, since chains of nodes may be as long as the file.
use super::defaults::UnresolvedFeed;
use super::implementations;
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program};
use crate::infer::FeedFacts;
use crate::util::id_vec::IdVec;
use crate::{opdef, ops};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Nodes that the fetches need, with the feeds given.
#[derive(Clone, Debug)]
pub struct NeededNodes {
    /// For each node, whether a fetch depends on it through outputs that are not fed.
    pub nodes: IdVec<NodeId, bool>,
    /// Nodes left out: they have an effect that compiled code does not have, and only control edges need them.
    pub skipped: Vec<NodeId>,
}

/// Finds the nodes that the fetches need over data and control edges, up to the feeds. Nodes with an effect that compiled code does not have
/// (`Assert`, `PrintV2`), if only control edges need them, are skipped: their control inputs are needed, their data inputs are not. With
/// `is_checked` assertions are needed.
pub fn needed_nodes(
    graph: &Graph,
    feeds: &[UnresolvedFeed],
    fetches: &[(String, Endpoint)],
    is_checked: bool,
) -> NeededNodes {
    let fed: HashSet<Endpoint> = feeds.iter().map(|f| f.at).collect();
    let mut nodes: IdVec<NodeId, bool> = graph.nodes.ids().map(|_| false).collect();
    let mut passed: HashSet<NodeId> = HashSet::new();
    let mut todo: Vec<NodeId> = fetches.iter().filter(|(_, at)| !fed.contains(at)).map(|(_, at)| at.node).collect();
    // A control edge from a fed node needs nothing.
    let only_fed: HashSet<NodeId> = feeds.iter().map(|f| f.at.node).collect();
    while let Some(id) = todo.pop() {
        if std::mem::replace(&mut nodes[id], true) {
            continue;
        }
        let node = &graph.nodes[id];
        todo.extend(node.inputs.iter().filter(|e| !fed.contains(e)).map(|e| e.node));
        let mut controls: Vec<NodeId> = node.controls.to_vec();
        while let Some(control) = controls.pop() {
            let op = &graph.nodes[control].op;
            if opdef::op_effect(op).is_none() || is_checked && ops::is_assertion(op) {
                todo.extend(Some(control).filter(|c| !only_fed.contains(c)));
            } else if passed.insert(control) {
                controls.extend(graph.nodes[control].controls.iter().copied());
            }
        }
    }
    let skipped = graph.nodes.ids().filter(|id| passed.contains(id) && !nodes[*id]).collect();
    NeededNodes { nodes, skipped }
}

/// A program pruned to the needed nodes, in which feed `i` is output 0 of node `i`.
pub struct PrunedProgram {
    /// Needed nodes, and the functions that these call.
    pub program: Program,
    /// Fetches, with their outputs in the pruned program.
    pub fetches: Vec<(String, Endpoint)>,
}

/// Prunes a program to the needed nodes, in their order, behind a node for each feed: a Placeholder, or a constant if its value is given.
pub fn prune(
    program: Program,
    needed: &NeededNodes,
    feeds: &[FeedFacts],
    fetches: Vec<(String, Endpoint)>,
) -> PrunedProgram {
    let mut pruner = GraphPruner::new(&program, feeds);
    let fed_nodes: HashSet<NodeId> = feeds.iter().map(|f| f.at.node).collect();
    // New ids first: edges may point forward.
    for feed in feeds {
        pruner.add_feed(&program.graph, feed, needed);
    }
    let computed =
        |id: NodeId| needed.nodes[id] && !(fed_nodes.contains(&id) && is_placeholder(&program.graph.nodes[id]));
    let kept: Vec<NodeId> = program.graph.nodes.ids().filter(|&id| computed(id)).collect();
    for (i, &id) in kept.iter().enumerate() {
        pruner.new_ids[id] = Some(NodeId((feeds.len() + i) as u32));
    }
    let Program { source, graph, functions, signatures, producer, variables, rounds } = program;
    for (id, node) in graph.nodes.into_iter().enumerate().map(|(i, n)| (NodeId(i as u32), n)) {
        if pruner.new_ids[id].is_some() {
            pruner.keep_node(node);
        }
    }
    let fetches = fetches.into_iter().map(|(name, at)| (name, pruner.new_endpoint(at))).collect();
    let graph = Graph { nodes: pruner.out };
    let mut program = Program { source, graph, functions, signatures, producer, variables, rounds };
    implementations::select_cpu_implementations(&mut program.functions);
    drop_unreachable_functions(&mut program);
    PrunedProgram { program, fetches }
}

fn is_placeholder(node: &Node) -> bool {
    node.inputs.is_empty()
}

/// Pruned graph under construction, with the new ids of old nodes.
struct GraphPruner {
    out: IdVec<NodeId, Node>,
    new_ids: IdVec<NodeId, Option<NodeId>>,
    fed: HashMap<Endpoint, NodeId>,
    names: HashSet<Box<str>>,
}

impl GraphPruner {
    fn new(program: &Program, feeds: &[FeedFacts]) -> Self {
        let taken = if feeds.is_empty() {
            HashSet::new()
        } else {
            program.graph.nodes.values().map(|n| n.name.clone()).collect()
        };
        GraphPruner {
            out: IdVec::new(),
            new_ids: program.graph.nodes.ids().map(|_| None).collect(),
            fed: HashMap::new(),
            names: taken,
        }
    }
    /// Adds the node of a feed, with the fed node's name unless that node is kept too.
    fn add_feed(&mut self, graph: &Graph, feed: &FeedFacts, needed: &NeededNodes) {
        let old = &graph.nodes[feed.at.node];
        let stays = needed.nodes[feed.at.node] && !is_placeholder(old);
        let name = if feed.at.port == 0 && !stays {
            old.name.clone()
        } else {
            self.unique_name(&format!("{}_{}", old.name, feed.at.port))
        };
        let id = self.out.push(feed_node(name, feed));
        self.fed.insert(feed.at, id);
    }
    fn unique_name(&mut self, base: &str) -> Box<str> {
        let mut name = base.to_string();
        let mut n = 1;
        while !self.names.insert(name.clone().into()) {
            n += 1;
            name = format!("{base}_{n}");
        }
        name.into()
    }
    fn keep_node(&mut self, mut node: Node) {
        node.inputs = node.inputs.iter().map(|&e| self.new_endpoint(e)).collect();
        node.controls = node.controls.iter().filter_map(|&c| self.new_ids[c]).collect();
        if &*node.op == "PlaceholderWithDefault" {
            let dtype = node.attr("dtype").cloned();
            node.op = "Identity".into();
            node.attrs = dtype.map(|t| (Arc::from("T"), t)).into_iter().collect();
        }
        self.out.push(node);
    }
    /// New output for an old one: a feed or a kept node, as every edge of a kept node was followed when the needed nodes were found.
    fn new_endpoint(&self, at: Endpoint) -> Endpoint {
        match self.fed.get(&at) {
            Some(&node) => Endpoint { node, port: 0 },
            None => {
                Endpoint { node: self.new_ids[at.node].expect("the walk reached what kept nodes use"), port: at.port }
            }
        }
    }
}

/// Node for a feed: a Placeholder, or a constant if its value is given.
fn feed_node(name: Box<str>, feed: &FeedFacts) -> Node {
    let node = |op: &str, attrs| Node {
        name,
        op: op.into(),
        device: "".into(),
        inputs: [].into(),
        controls: [].into(),
        attrs,
    };
    let dtype = feed.dtype.map(|t| (Arc::from("dtype"), Attr::Type(t)));
    let (op, told) = match &feed.value {
        Some(value) => ("Const", (Arc::from("value"), Attr::Tensor(Box::new(value.clone())))),
        None => ("Placeholder", (Arc::from("shape"), Attr::Shape(feed.shape.clone()))),
    };
    node(op, dtype.into_iter().chain([told]).collect())
}

/// Drops the functions that no node of the graph calls, directly or through other functions.
pub fn drop_unreachable_functions(program: &mut Program) {
    let mut reached: HashSet<Arc<str>> = HashSet::new();
    let mut todo: Vec<Arc<str>> = Vec::new();
    for node in program.graph.nodes.values() {
        todo.extend(node.called_functions());
    }
    while let Some(name) = todo.pop() {
        if reached.contains(&name) {
            continue;
        }
        if let Some(function) = program.functions.get(&name) {
            for node in function.graph.nodes.values() {
                todo.extend(node.called_functions());
            }
        }
        reached.insert(name);
    }
    program.functions.retain(|name, _| reached.contains(name));
}
