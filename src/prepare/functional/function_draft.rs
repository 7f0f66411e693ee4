//! Functions under construction.
use crate::graph::{Attr, Endpoint, Function, Graph, Node, NodeId, TfType};
use crate::util::id_vec::{Id, IdVec};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Graph or function under construction from a region.
#[derive(Debug, Default)]
pub struct FunctionDraft {
    /// Nodes of the new graph.
    pub nodes: IdVec<NodeId, Node>,
    /// New node for each old node that is copied.
    pub kept: HashMap<NodeId, NodeId>,
    /// New output for each output of a Merge or Exit, and for each captured value.
    pub values: HashMap<Endpoint, Endpoint>,
    /// Values captured from the surrounding region, with the argument nodes for them.
    pub args: Vec<(Endpoint, NodeId)>,
    /// Results.
    pub rets: Vec<Endpoint>,
    /// Nodes with side effects, in order.
    pub effects: Vec<NodeId>,
    /// Last node that is ordered by control edges.
    last: Option<NodeId>,
    names: HashSet<Box<str>>,
}

/// A node without inputs and attributes.
pub fn new_node(name: &str, op: &str) -> Node {
    Node {
        name: name.into(),
        op: op.into(),
        device: "".into(),
        inputs: [].into(),
        controls: [].into(),
        attrs: [].into(),
    }
}

impl FunctionDraft {
    /// A draft that begins with copies of these nodes, without their inputs.
    pub fn with_pinned_nodes(old: &Graph, first: &[NodeId]) -> FunctionDraft {
        let mut draft = FunctionDraft::default();
        for &id in first {
            let node = &old.nodes[id];
            let new = draft.push(Node { inputs: [].into(), controls: [].into(), ..node.clone() });
            draft.kept.insert(id, new);
        }
        draft
    }
    /// Adds a node, renamed if its name is taken.
    pub fn push(&mut self, mut node: Node) -> NodeId {
        let mut n = 1;
        let base = node.name.clone();
        while !self.names.insert(node.name.clone()) {
            n += 1;
            node.name = format!("{base}_{n}").into();
        }
        self.nodes.push(node)
    }
    /// Adds a node that runs after the last ordered node, by a control edge. With `changes` the node has side effects, and is kept for
    /// them.
    pub fn push_ordered(&mut self, mut node: Node, changes: bool) -> NodeId {
        node.controls = self.last.into_iter().collect();
        let id = self.push(node);
        self.last = Some(id);
        if changes {
            self.effects.push(id);
        }
        id
    }
    /// Captures the value `e` of type `of` from the surrounding region: returns the argument that passes it in, which is added if it is
    /// new.
    pub fn capture(&mut self, e: Endpoint, of: TfType) -> Endpoint {
        let found = self.values.get(&e).copied();
        found.unwrap_or_else(|| {
            let attrs = [("T".into(), Attr::Type(of))].into();
            let node = self.push(Node { attrs, ..new_node(&format!("arg{}", self.args.len()), "_Arg") });
            self.args.push((e, node));
            self.values.insert(e, Endpoint { node, port: 0 });
            Endpoint { node, port: 0 }
        })
    }
    /// Enters all arguments into `values` again, after the caller replaced `values` by an earlier copy.
    pub fn restore_argument_order(&mut self) {
        self.values.extend(self.args.iter().map(|&(e, node)| (e, Endpoint { node, port: 0 })));
    }
    /// Drops the nodes that neither results nor side effects need, except the first `pinned` ones.
    pub fn remove_dead_nodes(&mut self, pinned: usize) {
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
    /// Finishes a function with the arguments `args`, some of which may be unused. The arguments `passed` are returned as additional results.
    pub fn finish(mut self, name: Arc<str>, args: &[Endpoint], passed: &[Endpoint]) -> Function {
        let known: HashMap<Endpoint, NodeId> = self.args.iter().copied().collect();
        let mut nodes: HashMap<Endpoint, NodeId> = HashMap::new();
        let mut numbers = Vec::with_capacity(args.len());
        for (i, &e) in args.iter().enumerate() {
            let id = known.get(&e).copied().unwrap_or_else(|| self.push(new_node(&format!("unused{i}"), "_Arg")));
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
