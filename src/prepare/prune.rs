//! Cuts a graph to what the fetches need. Iterative: chains may be as long as the file.
use super::Prepared;
use super::defaults::Asked;
use crate::graph::{Attr, Endpoint, FuncRef, Graph, Node, NodeId, PartialShape, Program, TfType};
use crate::lower::Feed;
use crate::tensor::TensorInfo;
use crate::util::id_vec::IdVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What the fetches need once the feeds that were asked for are given.
pub struct Needed {
    /// Whether a node has to be computed; fed outputs do not count.
    pub nodes: IdVec<NodeId, bool>,
}

/// Walks back from the fetches over data and control edges and stops at feeds. Checks (`Assert`) that only control edges
/// ask for are left out, as XLA leaves them out.
pub fn needed(graph: &Graph, feeds: &[Asked], fetches: &[(String, Endpoint)]) -> Needed {
    let fed: HashSet<Endpoint> = feeds.iter().map(|f| f.at).collect();
    let mut nodes: IdVec<NodeId, bool> = graph.nodes.ids().map(|_| false).collect();
    let mut todo: Vec<NodeId> = fetches.iter().filter(|(_, at)| !fed.contains(at)).map(|(_, at)| at.node).collect();
    // A control edge from a fed Placeholder asks for nothing.
    let only_fed: HashSet<NodeId> = feeds.iter().map(|f| f.at.node).collect();
    while let Some(id) = todo.pop() {
        if std::mem::replace(&mut nodes[id], true) {
            continue;
        }
        let node = &graph.nodes[id];
        todo.extend(node.inputs.iter().filter(|e| !fed.contains(e)).map(|e| e.node));
        todo.extend(node.controls.iter().filter(|c| &*graph.nodes[**c].op != "Assert" && !only_fed.contains(c)));
    }
    Needed { nodes }
}

/// The program with the needed nodes in their order, and a Placeholder for each feed.
pub fn cut(
    program: Program,
    needed: &Needed,
    feeds: Vec<Feed>,
    fetches: Vec<(String, Endpoint)>,
    assumptions: Vec<String>,
) -> Prepared {
    let mut cutter = Cutter::new(&program, &feeds);
    let fed_nodes: HashSet<NodeId> = feeds.iter().map(|f| f.at.node).collect();
    // New ids first: edges may point forward.
    for feed in &feeds {
        cutter.add_feed(&program.graph, feed, needed);
    }
    let computed =
        |id: NodeId| needed.nodes[id] && !(fed_nodes.contains(&id) && is_placeholder(&program.graph.nodes[id]));
    let kept: Vec<NodeId> = program.graph.nodes.ids().filter(|&id| computed(id)).collect();
    for (i, &id) in kept.iter().enumerate() {
        cutter.new_ids[id] = Some(NodeId((feeds.len() + i) as u32));
    }
    let Program { source, graph, functions, signatures, producer } = program;
    for (id, node) in graph.nodes.into_iter().enumerate().map(|(i, n)| (NodeId(i as u32), n)) {
        if cutter.new_ids[id].is_some() {
            cutter.keep(node);
        }
    }
    let placed = feeds
        .into_iter()
        .enumerate()
        .map(|(i, feed)| Feed { at: Endpoint { node: NodeId(i as u32), port: 0 }, ..feed });
    let fetches = fetches.into_iter().map(|(name, at)| (name, cutter.moved(at))).collect();
    let feeds = placed.collect();
    let mut program = Program { source, graph: Graph { nodes: cutter.out }, functions, signatures, producer };
    drop_functions(&mut program);
    Prepared { program, feeds, fetches, assumptions }
}

fn is_placeholder(node: &Node) -> bool {
    node.inputs.is_empty()
}

/// Old ids to new ones while the nodes move.
struct Cutter {
    out: IdVec<NodeId, Node>,
    new_ids: IdVec<NodeId, Option<NodeId>>,
    fed: HashMap<Endpoint, NodeId>,
    names: HashSet<Box<str>>,
}

impl Cutter {
    fn new(program: &Program, feeds: &[Feed]) -> Self {
        let taken = if feeds.is_empty() {
            HashSet::new()
        } else {
            program.graph.nodes.values().map(|n| n.name.clone()).collect()
        };
        Cutter {
            out: IdVec::new(),
            new_ids: program.graph.nodes.ids().map(|_| None).collect(),
            fed: HashMap::new(),
            names: taken,
        }
    }
    /// A Placeholder takes the fed node's name unless that node is computed too.
    fn add_feed(&mut self, graph: &Graph, feed: &Feed, needed: &Needed) {
        let old = &graph.nodes[feed.at.node];
        let stays = needed.nodes[feed.at.node] && !is_placeholder(old);
        let name = if feed.at.port == 0 && !stays {
            old.name.clone()
        } else {
            self.fresh(&format!("{}_{}", old.name, feed.at.port))
        };
        let id = self.out.push(placeholder(name, &feed.info));
        self.fed.insert(feed.at, id);
    }
    fn fresh(&mut self, base: &str) -> Box<str> {
        let mut name = base.to_string();
        let mut n = 1;
        while !self.names.insert(name.clone().into()) {
            n += 1;
            name = format!("{base}_{n}");
        }
        name.into()
    }
    fn keep(&mut self, mut node: Node) {
        node.inputs = node.inputs.iter().map(|&e| self.moved(e)).collect();
        node.controls = node.controls.iter().filter_map(|&c| self.new_ids[c]).collect();
        if &*node.op == "PlaceholderWithDefault" {
            let dtype = node.attr("dtype").cloned();
            node.op = "Identity".into();
            node.attrs = dtype.map(|t| (Arc::from("T"), t)).into_iter().collect();
        }
        self.out.push(node);
    }
    /// Every kept edge leads to a feed or to a kept node, as both come from the same walk.
    fn moved(&self, at: Endpoint) -> Endpoint {
        match self.fed.get(&at) {
            Some(&node) => Endpoint { node, port: 0 },
            None => {
                Endpoint { node: self.new_ids[at.node].expect("the walk reached what kept nodes use"), port: at.port }
            }
        }
    }
}

fn placeholder(name: Box<str>, info: &TensorInfo) -> Node {
    let shape = PartialShape(Some(info.dims.iter().copied().map(Some).collect()));
    let attrs = [(Arc::from("dtype"), Attr::Type(TfType::Data(info.dtype))), (Arc::from("shape"), Attr::Shape(shape))];
    Node {
        name,
        op: "Placeholder".into(),
        device: "".into(),
        inputs: [].into(),
        controls: [].into(),
        attrs: attrs.into(),
    }
}

/// Drops the functions that no kept node reaches.
fn drop_functions(program: &mut Program) {
    let mut reached: HashSet<Arc<str>> = HashSet::new();
    let mut todo: Vec<Arc<str>> = Vec::new();
    for node in program.graph.nodes.values() {
        called(node, &mut todo);
    }
    while let Some(name) = todo.pop() {
        if reached.contains(&name) {
            continue;
        }
        if let Some(function) = program.functions.get(&name) {
            for node in function.graph.nodes.values() {
                called(node, &mut todo);
            }
        }
        reached.insert(name);
    }
    program.functions.retain(|name, _| reached.contains(name));
}

/// The functions that a node names: in attributes, also nested ones, and as its op.
pub fn called(node: &Node, out: &mut Vec<Arc<str>>) {
    out.push(node.op.clone());
    let mut attrs: Vec<&Attr> = node.attrs.iter().map(|(_, a)| a).collect();
    let mut funcs: Vec<&FuncRef> = Vec::new();
    while let Some(attr) = attrs.pop() {
        match attr {
            Attr::Func(f) => funcs.push(f),
            Attr::Funcs(all) => funcs.extend(all.iter()),
            _ => {}
        }
        while let Some(f) = funcs.pop() {
            out.push(f.name.clone());
            attrs.extend(f.attrs.iter().map(|(_, a)| a));
        }
    }
}
