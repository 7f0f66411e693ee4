//! A function while it is made.
use crate::graph::{Attr, Endpoint, Function, Graph, Node, NodeId, TfType};
use crate::util::id_vec::{Id, IdVec};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The new nodes of a region.
#[derive(Debug, Default)]
pub struct Draft {
    /// The nodes.
    pub nodes: IdVec<NodeId, Node>,
    /// The new nodes of old ones that stay as they are.
    pub kept: HashMap<NodeId, NodeId>,
    /// The new outputs of Merges and Exits.
    pub values: HashMap<Endpoint, Endpoint>,
    /// Values captured from the surrounding region, and the arguments that bring them.
    pub args: Vec<(Endpoint, NodeId)>,
    /// The results.
    pub rets: Vec<Endpoint>,
    /// The nodes that do something besides their results, in order.
    pub effects: Vec<NodeId>,
    /// The last node whose place in the order matters.
    last: Option<NodeId>,
    names: HashSet<Box<str>>,
}

/// A node without inputs and attributes.
pub fn plain(name: &str, op: &str) -> Node {
    Node {
        name: name.into(),
        op: op.into(),
        device: "".into(),
        inputs: [].into(),
        controls: [].into(),
        attrs: [].into(),
    }
}

impl Draft {
    /// A draft that begins with these nodes, which stay where they are.
    pub fn beginning_with(old: &Graph, first: &[NodeId]) -> Draft {
        let mut draft = Draft::default();
        for &id in first {
            let node = &old.nodes[id];
            let new = draft.push(Node { inputs: [].into(), controls: [].into(), ..node.clone() });
            draft.kept.insert(id, new);
        }
        draft
    }
    /// Adds a node; it gets another name where its own is taken.
    pub fn push(&mut self, mut node: Node) -> NodeId {
        let mut n = 1;
        let base = node.name.clone();
        while !self.names.insert(node.name.clone()) {
            n += 1;
            node.name = format!("{base}_{n}").into();
        }
        self.nodes.push(node)
    }
    /// Adds a node behind all whose place in the order matters; with `changes` it is kept for what it does.
    pub fn push_in_order(&mut self, mut node: Node, changes: bool) -> NodeId {
        node.controls = self.last.into_iter().collect();
        let id = self.push(node);
        self.last = Some(id);
        if changes {
            self.effects.push(id);
        }
        id
    }
    /// The argument that brings a value from around.
    pub fn argument(&mut self, e: Endpoint, of: TfType) -> Endpoint {
        let found = self.values.get(&e).copied();
        found.unwrap_or_else(|| {
            let attrs = [("T".into(), Attr::Type(of))].into();
            let node = self.push(Node { attrs, ..plain(&format!("arg{}", self.args.len()), "_Arg") });
            self.args.push((e, node));
            self.values.insert(e, Endpoint { node, port: 0 });
            Endpoint { node, port: 0 }
        })
    }
    /// Knows the values of its arguments again, after others were forgotten.
    pub fn keep_arguments(&mut self) {
        self.values.extend(self.args.iter().map(|&(e, node)| (e, Endpoint { node, port: 0 })));
    }
    /// Drops what neither results nor effects need, but for the first `pinned` nodes.
    pub fn sweep(&mut self, pinned: usize) {
        let mut needed: IdVec<NodeId, bool> = self.nodes.ids().map(|id| id.index() < pinned).collect();
        let mut todo: Vec<NodeId> = self.rets.iter().map(|e| e.node).chain(self.effects.iter().copied()).collect();
        let mut seen: HashSet<NodeId> = HashSet::new();
        while let Some(id) = todo.pop() {
            needed[id] = true;
            if seen.insert(id) {
                todo.extend(self.nodes[id].inputs.iter().map(|e| e.node));
            }
        }
        let mut moved: IdVec<NodeId, NodeId> = self.nodes.ids().collect();
        for (next, id) in self.nodes.ids().filter(|id| needed[*id]).enumerate() {
            moved[id] = NodeId::from_index(next);
        }
        let to = |e: Endpoint| Endpoint { node: moved[e.node], ..e };
        let mut nodes = IdVec::new();
        for (i, mut node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            if needed[NodeId::from_index(i)] {
                node.inputs = node.inputs.iter().map(|&e| to(e)).collect();
                node.controls = node.controls.iter().filter(|id| needed[**id]).map(|id| moved[*id]).collect();
                nodes.push(node);
            }
        }
        self.nodes = nodes;
        self.args.retain(|(_, id)| needed[*id]);
        self.args.iter_mut().for_each(|(_, id)| *id = moved[*id]);
        self.rets.iter_mut().for_each(|e| *e = to(*e));
        self.effects.iter_mut().for_each(|id| *id = moved[*id]);
        (self.kept, self.values) = (HashMap::new(), HashMap::new());
    }
    /// The function of these arguments, of which it may need only some; each of `passed` arguments is a result too.
    pub fn finish(mut self, name: Arc<str>, args: &[Endpoint], passed: &[Endpoint]) -> Function {
        let known: HashMap<Endpoint, NodeId> = self.args.iter().copied().collect();
        let mut nodes: HashMap<Endpoint, NodeId> = HashMap::new();
        let mut numbers = Vec::with_capacity(args.len());
        for (i, &e) in args.iter().enumerate() {
            let id = known.get(&e).copied().unwrap_or_else(|| self.push(plain(&format!("unused{i}"), "_Arg")));
            nodes.insert(e, id);
            numbers.push(id);
        }
        let more = passed.iter().filter_map(|e| nodes.get(e)).map(|&node| Endpoint { node, port: 0 });
        let rets: Vec<Endpoint> = self.rets.iter().copied().chain(more).collect();
        Function {
            name,
            args: numbers,
            ret_names: (0..rets.len()).map(|i| format!("result{i}").into()).collect(),
            rets,
            control_rets: self.effects.clone(),
            attrs: [].into(),
            stateful: !self.effects.is_empty(),
            graph: Graph { nodes: self.nodes },
        }
    }
}
