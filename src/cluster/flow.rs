//! The graph on which the passes work: `_SOURCE`, `_SINK`, nodes and edges, numbered as TensorFlow's importer numbers them, since
//! these numbers decide ties between clusters.
use super::registrations::{self, OpRegistration};
use crate::diag::{Code, Diagnostic, Result};
use crate::graph::{Graph, Node, NodeId, Program};
use crate::opdef::{self, OpDef};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The number of `_SOURCE`.
pub const SOURCE: u32 = 0;
/// The number of `_SINK`.
pub const SINK: u32 = 1;
/// The port of control edges.
pub const CONTROL: i32 = -1;

/// Classes of ops that the passes distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpClass {
    /// `Const`, `HostConst`.
    Constant,
    /// `Identity`, `RefIdentity`.
    Identity,
    /// `Switch`, `RefSwitch`.
    Switch,
    /// `_SwitchN`.
    SwitchN,
    /// `Merge`, `RefMerge`, `_XlaMerge`.
    Merge,
    /// `Enter`, `RefEnter`.
    Enter,
    /// `Exit`, `RefExit`.
    Exit,
    /// `NextIteration`, `RefNextIteration`.
    NextIteration,
    /// `While`, `StatelessWhile`.
    While,
    /// `If`, `StatelessIf`.
    If,
    /// `Case`, `StatelessCase`.
    Case,
    /// `PartitionedCall`, `StatefulPartitionedCall`, `SymbolicGradient`, and nodes whose op is a function.
    Call,
    /// `_Recv`, `_HostRecv`.
    Recv,
    /// Every other op.
    Other,
}

/// An op that occurs in a graph, with the facts known of it.
pub struct OpFacts<'p> {
    /// The op's name.
    pub op: &'p str,
    /// Class by which the passes treat the op.
    pub class: OpClass,
    /// TensorFlow's definition of the op.
    pub def: Option<&'static OpDef>,
    /// The op's registration for XLA's CPU device.
    pub registration: Option<&'static OpRegistration>,
}

/// A node of a [`FlowGraph`].
pub struct FlowNode<'p> {
    /// The node's name.
    pub name: Cow<'p, str>,
    /// Index of the node's op in [`FlowGraph::kinds`].
    pub kind: u32,
    /// The node of the program that this node represents or copies; `None` for `_SOURCE` and `_SINK`.
    pub node: Option<&'p Node>,
    /// Ids of the edges that end here, in the order of insertion.
    pub in_edges: Vec<u32>,
    /// Ids of the edges that start here.
    pub out_edges: Vec<u32>,
    /// Whether a pass removed the node.
    pub removed: bool,
}

/// An edge of a [`FlowGraph`]; both ports of a control edge are [`CONTROL`].
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The node where the edge starts.
    pub src: u32,
    /// The output of `src` where the edge starts.
    pub src_port: i32,
    /// The node where the edge ends.
    pub dst: u32,
    /// The input of `dst` where the edge ends.
    pub dst_port: i32,
}

/// A graph in the form on which TensorFlow's passes work, with the program that owns it.
pub struct FlowGraph<'p> {
    /// The program whose functions the graph calls.
    pub program: &'p Program,
    /// Nodes by number.
    pub nodes: Vec<FlowNode<'p>>,
    /// Edges by number; `None` where one was removed.
    pub edges: Vec<Option<Edge>>,
    /// The distinct ops of the graph.
    pub kinds: Vec<OpFacts<'p>>,
    /// By node of the imported graph: its number in this graph.
    pub numbers: Vec<u32>,
    kind_ids: HashMap<&'p str, u32>,
}

/// An edge of the graph under import, into a node that is already imported.
struct ImportedEdge {
    from: NodeId,
    port: i32,
    to: u32,
    to_port: i32,
}

impl<'p> FlowGraph<'p> {
    /// Imports `graph`, which belongs to `program`. Errors: `BadGraph` for a cycle other than a loop with NextIteration.
    pub fn import(program: &'p Program, graph: &'p Graph) -> Result<FlowGraph<'p>> {
        let mut flow = FlowGraph::empty(program);
        flow.numbers = vec![u32::MAX; graph.nodes.len()];
        let mut waiting = ImportQueue::new(graph, graph.nodes.len() as u32);
        let mut back = Vec::new();
        while let Some(id) = waiting.next() {
            let node = &graph.nodes[id];
            let n = flow.add_node(Cow::Borrowed(&node.name), node);
            flow.numbers[id.0 as usize] = n;
            for (port, from) in node.inputs.iter().enumerate() {
                let edge = ImportedEdge { from: from.node, port: from.port as i32, to: n, to_port: port as i32 };
                flow.connect_imported(edge, &mut back);
            }
            let mut controls = node.controls.to_vec();
            controls.sort_by(|a, b| graph.nodes[*a].name.cmp(&graph.nodes[*b].name));
            controls.dedup();
            for from in controls {
                let edge = ImportedEdge { from, port: CONTROL, to: n, to_port: CONTROL };
                flow.connect_imported(edge, &mut back);
            }
            waiting.mark_emitted(graph, id);
        }
        if let Some(id) = graph.nodes.ids().find(|id| flow.numbers[id.0 as usize] == u32::MAX) {
            let node = &graph.nodes[id];
            return Err(Diagnostic::new(Code::BadGraph, format!("`{}` is on a cycle or depends on one", node.name))
                .at_node(&node.name, &node.op)
                .into());
        }
        for edge in back {
            flow.add_edge(flow.numbers[edge.from.0 as usize], edge.port, edge.to, edge.to_port);
        }
        Ok(flow)
    }

    /// The numbers of all op nodes in the order that they had in the session that wrote `graph`. Nodes that a session appends to an
    /// imported graph (arguments and results, then copies of constants) are numbered last there, but earlier when a dump is imported.
    pub fn session_order(&self, graph: &Graph) -> Vec<u32> {
        let appended = first_appended(graph);
        let mut waiting = ImportQueue::new(graph, appended);
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(id) = waiting.next() {
            order.push(self.numbers[id.0 as usize]);
            waiting.mark_emitted(graph, id);
        }
        order.extend(graph.nodes.ids().skip(appended as usize).map(|id| self.numbers[id.0 as usize]));
        // copies of constants made by this crate's pass
        order.extend(self.op_nodes().skip(self.numbers.len()));
        order
    }

    fn empty(program: &'p Program) -> FlowGraph<'p> {
        let mut flow = FlowGraph {
            program,
            nodes: Vec::new(),
            edges: Vec::new(),
            kinds: Vec::new(),
            numbers: Vec::new(),
            kind_ids: HashMap::new(),
        };
        for name in ["_SOURCE", "_SINK"] {
            let kind = flow.intern_kind("NoOp");
            flow.nodes.push(FlowNode {
                name: name.into(),
                kind,
                node: None,
                in_edges: Vec::new(),
                out_edges: Vec::new(),
                removed: false,
            });
        }
        flow.add_edge(SOURCE, CONTROL, SINK, CONTROL);
        flow
    }

    fn connect_imported(&mut self, edge: ImportedEdge, back: &mut Vec<ImportedEdge>) {
        match self.numbers[edge.from.0 as usize] {
            u32::MAX => back.push(edge),
            from => {
                self.add_edge(from, edge.port, edge.to, edge.to_port);
            }
        }
    }

    fn intern_kind(&mut self, op: &'p str) -> u32 {
        if let Some(&kind) = self.kind_ids.get(op) {
            return kind;
        }
        let class = class_of(op, self.program);
        let kind = self.kinds.len() as u32;
        self.kinds.push(OpFacts {
            op,
            class,
            def: opdef::find_def(op),
            registration: registrations::find_registration(op),
        });
        self.kind_ids.insert(op, kind);
        kind
    }

    /// Adds a node called `name`, which is `node` or a copy of it, without edges.
    pub fn add_node(&mut self, name: Cow<'p, str>, node: &'p Node) -> u32 {
        let kind = self.intern_kind(&node.op);
        self.nodes.push(FlowNode {
            name,
            kind,
            node: Some(node),
            in_edges: Vec::new(),
            out_edges: Vec::new(),
            removed: false,
        });
        self.nodes.len() as u32 - 1
    }
    /// Adds an edge and returns its id.
    pub fn add_edge(&mut self, src: u32, src_port: i32, dst: u32, dst_port: i32) -> u32 {
        let edge = self.edges.len() as u32;
        self.edges.push(Some(Edge { src, src_port, dst, dst_port }));
        self.nodes[src as usize].out_edges.push(edge);
        self.nodes[dst as usize].in_edges.push(edge);
        edge
    }
    /// Removes an edge; the last edge in the list of each end fills the gap.
    pub fn remove_edge(&mut self, edge: u32) {
        if let Some(e) = self.edges[edge as usize].take() {
            erase(&mut self.nodes[e.src as usize].out_edges, edge);
            erase(&mut self.nodes[e.dst as usize].in_edges, edge);
        }
    }
    /// Removes a node that has no edges any more; the other nodes keep their numbers.
    pub fn remove_node(&mut self, n: u32) {
        self.nodes[n as usize].removed = true;
    }
    /// Connects nodes without inputs to `_SOURCE` and nodes without outputs to `_SINK`.
    pub fn fixup_source_and_sink_edges(&mut self) {
        for n in 0..self.nodes.len() as u32 {
            if self.nodes[n as usize].removed {
                continue;
            }
            if n != SOURCE && self.nodes[n as usize].in_edges.is_empty() {
                self.add_edge(SOURCE, CONTROL, n, CONTROL);
            }
            if n != SINK && self.nodes[n as usize].out_edges.is_empty() {
                self.add_edge(n, CONTROL, SINK, CONTROL);
            }
        }
    }

    /// The op class of node `n`.
    pub fn class(&self, n: u32) -> OpClass {
        self.op_facts(n).class
    }
    /// The op of node `n` with the facts known of it.
    pub fn op_facts(&self, n: u32) -> &OpFacts<'p> {
        &self.kinds[self.nodes[n as usize].kind as usize]
    }
    /// The op of node `n`.
    pub fn op(&self, n: u32) -> &'p str {
        self.op_facts(n).op
    }
    /// The name of node `n`.
    pub fn name(&self, n: u32) -> &str {
        &self.nodes[n as usize].name
    }
    /// The edges that end at `n`.
    pub fn in_edges(&self, n: u32) -> impl DoubleEndedIterator<Item = Edge> + '_ {
        self.nodes[n as usize].in_edges.iter().filter_map(|&e| self.edges[e as usize])
    }
    /// The edges that start at `n`.
    pub fn out_edges(&self, n: u32) -> impl DoubleEndedIterator<Item = Edge> + '_ {
        self.nodes[n as usize].out_edges.iter().filter_map(|&e| self.edges[e as usize])
    }
    /// The numbers of all nodes but `_SOURCE` and `_SINK`.
    pub fn op_nodes(&self) -> std::ops::Range<u32> {
        2..self.nodes.len() as u32
    }
    /// The edge into data input `port` of `n`.
    pub fn input_edge(&self, n: u32, port: i32) -> Option<Edge> {
        let ins = &self.nodes[n as usize].in_edges;
        let likely = usize::try_from(port).ok().and_then(|p| ins.get(p)).and_then(|&e| self.edges[e as usize]);
        likely.filter(|e| e.dst_port == port).or_else(|| self.in_edges(n).find(|e| e.dst_port == port))
    }
    /// The number of outputs of `n`: what its op defines, but no less than the edges use.
    pub fn output_count(&self, n: u32) -> usize {
        let used = self.out_edges(n).map(|e| (e.src_port + 1) as usize).max().unwrap_or(0);
        let told = self.nodes[n as usize].node.zip(self.op_facts(n).def).map_or(0, |(node, d)| d.output_count(node));
        used.max(told.min(1 << 16))
    }

    /// The nodes in post order, so that all successors of a node come before it, ignoring edges out of NextIteration: a depth-first walk
    /// from `_SOURCE` that visits the neighbour with the largest name first.
    pub fn post_order(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut seen = vec![false; self.nodes.len()];
        let mut stack = vec![(SOURCE, false)];
        let mut next = Vec::new();
        while let Some((n, leaving)) = stack.pop() {
            if leaving {
                order.push(n);
                continue;
            }
            if std::mem::replace(&mut seen[n as usize], true) {
                continue;
            }
            stack.push((n, true));
            if self.class(n) == OpClass::NextIteration {
                continue;
            }
            next.extend(self.out_edges(n).map(|e| e.dst));
            next.sort_by(|&a, &b| self.name(a).cmp(self.name(b)));
            stack.extend(next.drain(..).filter(|&to| !seen[to as usize]).map(|to| (to, false)));
        }
        order
    }
}

fn erase(list: &mut Vec<u32>, edge: u32) {
    if let Some(at) = list.iter().position(|&e| e == edge) {
        list.swap_remove(at);
    }
}

/// The class of `op` in a program, whose functions may have the names of ops.
pub fn class_of(op: &str, program: &Program) -> OpClass {
    if program.functions.contains_key(op) { OpClass::Call } else { builtin_class(op) }
}

fn builtin_class(op: &str) -> OpClass {
    match op {
        "Const" | "HostConst" => OpClass::Constant,
        "Identity" | "RefIdentity" => OpClass::Identity,
        "Switch" | "RefSwitch" => OpClass::Switch,
        "_SwitchN" => OpClass::SwitchN,
        "Merge" | "RefMerge" | "_XlaMerge" => OpClass::Merge,
        "Enter" | "RefEnter" => OpClass::Enter,
        "Exit" | "RefExit" => OpClass::Exit,
        "NextIteration" | "RefNextIteration" => OpClass::NextIteration,
        "While" | "StatelessWhile" => OpClass::While,
        "If" | "StatelessIf" => OpClass::If,
        "Case" | "StatelessCase" => OpClass::Case,
        "PartitionedCall" | "StatefulPartitionedCall" | "SymbolicGradient" => OpClass::Call,
        "_Recv" | "_HostRecv" => OpClass::Recv,
        _ => OpClass::Other,
    }
}

/// The index of the first node that a session appended to the graph that it imported, which is an `_Arg` of a feed or a `_Retval` of a
/// fetch. The `_Arg`s at the beginning of a function's body were imported.
fn first_appended(graph: &Graph) -> u32 {
    let is_end = |node: &Node| matches!(&*node.op, "_Arg" | "_Retval");
    let body = graph.nodes.values().position(|node| !is_end(node)).unwrap_or(graph.nodes.len());
    let ends = graph.nodes.values().skip(body).position(is_end);
    ends.map_or(graph.nodes.len(), |at| body + at) as u32
}

/// Nodes in the order of TensorFlow's importer: always the first of the file among those whose inputs are imported. A Merge at the
/// head of a loop does not wait for NextIteration.
struct ImportQueue {
    ready: BinaryHeap<Reverse<u32>>,
    missing: Vec<i64>,
    users: Vec<Vec<u32>>,
}

impl ImportQueue {
    /// Makes a queue of the nodes with ids below `end`; edges from other nodes are ignored.
    fn new(graph: &Graph, end: u32) -> ImportQueue {
        let mut waiting =
            ImportQueue { ready: BinaryHeap::new(), missing: Vec::new(), users: vec![Vec::new(); graph.nodes.len()] };
        for (id, node) in graph.nodes.iter().take(end as usize) {
            let inputs = node.inputs.iter().map(|e| e.node).filter(|from| from.0 < end);
            let controls = node.controls.iter().copied().filter(|from| from.0 < end);
            let from_loop =
                || node.inputs.iter().any(|e| builtin_class(&graph.nodes[e.node].op) == OpClass::NextIteration);
            let missing = if matches!(&*node.op, "Merge" | "RefMerge") && from_loop() {
                controls.clone().count() + 1
            } else {
                inputs.clone().count() + controls.clone().count()
            };
            for from in inputs.chain(controls) {
                waiting.users[from.0 as usize].push(id.0);
            }
            waiting.missing.push(missing as i64);
            if missing == 0 {
                waiting.ready.push(Reverse(id.0));
            }
        }
        waiting
    }
    fn next(&mut self) -> Option<NodeId> {
        self.ready.pop().map(|Reverse(n)| NodeId(n))
    }
    fn mark_emitted(&mut self, graph: &Graph, id: NodeId) {
        let from_loop = builtin_class(&graph.nodes[id].op) == OpClass::NextIteration;
        for user in std::mem::take(&mut self.users[id.0 as usize]) {
            if from_loop && matches!(&*graph.nodes[NodeId(user)].op, "Merge" | "RefMerge") {
                continue;
            }
            self.missing[user as usize] -= 1;
            if self.missing[user as usize] == 0 {
                self.ready.push(Reverse(user));
            }
        }
    }
}
