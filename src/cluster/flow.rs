//! A graph as TensorFlow's passes see it: `_SOURCE`, `_SINK`, nodes and edges with the numbers that TensorFlow's importer
//! gives them. Ties between clusters are decided by these numbers, so they are made as TensorFlow makes them.
use super::table::{self, OpRegistration};
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

/// Classes of ops that the passes tell apart.
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

/// An op that occurs in a graph.
pub struct OpKind<'p> {
    /// The op's name.
    pub op: &'p str,
    /// The class of the op.
    pub class: OpClass,
    /// TensorFlow's definition.
    pub def: Option<&'static OpDef>,
    /// The op's registration for XLA.
    pub row: Option<&'static OpRegistration>,
}

/// One node.
pub struct FlowNode<'p> {
    /// The node's name.
    pub name: Cow<'p, str>,
    /// The node's op: an index into [`Flow::kinds`].
    pub kind: u32,
    /// The node of the program that it is, or is a copy of; `None` for `_SOURCE` and `_SINK`.
    pub node: Option<&'p Node>,
    /// Edges that end here, in the order of their making.
    pub ins: Vec<u32>,
    /// Edges that start here.
    pub outs: Vec<u32>,
    /// Whether it was taken out of the graph.
    pub gone: bool,
}

/// One edge; the port of a control edge is [`CONTROL`] at both ends.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The node where the edge starts.
    pub src: u32,
    /// The output.
    pub src_port: i32,
    /// The node where the edge ends.
    pub dst: u32,
    /// The input.
    pub dst_port: i32,
}

/// A graph with the program that it belongs to.
pub struct Flow<'p> {
    /// The program, for its functions.
    pub program: &'p Program,
    /// Nodes by number.
    pub nodes: Vec<FlowNode<'p>>,
    /// Edges by number; `None` where one was removed.
    pub edges: Vec<Option<Edge>>,
    /// The ops.
    pub kinds: Vec<OpKind<'p>>,
    /// The number of each node of the imported graph.
    pub numbers: Vec<u32>,
    kind_of: HashMap<&'p str, u32>,
}

/// An edge of a graph that is imported, to a node that is already imported.
struct ImportedEdge {
    from: NodeId,
    port: i32,
    to: u32,
    to_port: i32,
}

impl<'p> Flow<'p> {
    /// Imports `graph`, which belongs to `program`. Errors: `BadGraph` for a cycle that is no loop of NextIteration.
    pub fn import(program: &'p Program, graph: &'p Graph) -> Result<Flow<'p>> {
        let mut flow = Flow::empty(program);
        flow.numbers = vec![u32::MAX; graph.nodes.len()];
        let mut waiting = ImportQueue::new(graph, graph.nodes.len() as u32);
        let mut back = Vec::new();
        while let Some(id) = waiting.next() {
            let node = &graph.nodes[id];
            let n = flow.add(Cow::Borrowed(&node.name), node);
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
            flow.connect(flow.numbers[edge.from.0 as usize], edge.port, edge.to, edge.to_port);
        }
        Ok(flow)
    }

    /// The numbers of all op nodes in the order in which the session that wrote `graph` had them. What a session appends to an
    /// imported graph (its ends, then copies of constants) has the last numbers there; who imports its dump numbers it earlier.
    pub fn session_order(&self, graph: &Graph) -> Vec<u32> {
        let appended = first_appended(graph);
        let mut waiting = ImportQueue::new(graph, appended);
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(id) = waiting.next() {
            order.push(self.numbers[id.0 as usize]);
            waiting.mark_emitted(graph, id);
        }
        order.extend(graph.nodes.ids().skip(appended as usize).map(|id| self.numbers[id.0 as usize]));
        // copies that were made here
        order.extend(self.op_nodes().skip(self.numbers.len()));
        order
    }

    fn empty(program: &'p Program) -> Flow<'p> {
        let mut flow = Flow {
            program,
            nodes: Vec::new(),
            edges: Vec::new(),
            kinds: Vec::new(),
            numbers: Vec::new(),
            kind_of: HashMap::new(),
        };
        for name in ["_SOURCE", "_SINK"] {
            let kind = flow.kind("NoOp");
            flow.nodes.push(FlowNode {
                name: name.into(),
                kind,
                node: None,
                ins: Vec::new(),
                outs: Vec::new(),
                gone: false,
            });
        }
        flow.connect(SOURCE, CONTROL, SINK, CONTROL);
        flow
    }

    fn connect_imported(&mut self, edge: ImportedEdge, back: &mut Vec<ImportedEdge>) {
        match self.numbers[edge.from.0 as usize] {
            u32::MAX => back.push(edge),
            from => {
                self.connect(from, edge.port, edge.to, edge.to_port);
            }
        }
    }

    fn kind(&mut self, op: &'p str) -> u32 {
        if let Some(&kind) = self.kind_of.get(op) {
            return kind;
        }
        let class = class_of(op, self.program);
        let kind = self.kinds.len() as u32;
        self.kinds.push(OpKind { op, class, def: opdef::find(op), row: table::find(op) });
        self.kind_of.insert(op, kind);
        kind
    }

    /// Adds a node called `name` that is `node`, or a copy of it, without edges.
    pub fn add(&mut self, name: Cow<'p, str>, node: &'p Node) -> u32 {
        let kind = self.kind(&node.op);
        self.nodes.push(FlowNode { name, kind, node: Some(node), ins: Vec::new(), outs: Vec::new(), gone: false });
        self.nodes.len() as u32 - 1
    }
    /// Adds an edge.
    pub fn connect(&mut self, src: u32, src_port: i32, dst: u32, dst_port: i32) -> u32 {
        let edge = self.edges.len() as u32;
        self.edges.push(Some(Edge { src, src_port, dst, dst_port }));
        self.nodes[src as usize].outs.push(edge);
        self.nodes[dst as usize].ins.push(edge);
        edge
    }
    /// Removes an edge; the last edge of its ends' lists moves into the gap.
    pub fn disconnect(&mut self, edge: u32) {
        if let Some(e) = self.edges[edge as usize].take() {
            erase(&mut self.nodes[e.src as usize].outs, edge);
            erase(&mut self.nodes[e.dst as usize].ins, edge);
        }
    }
    /// Takes a node out that has no edges any more; its number stays.
    pub fn remove(&mut self, n: u32) {
        self.nodes[n as usize].gone = true;
    }
    /// Ties nodes without inputs to `_SOURCE` and nodes without outputs to `_SINK`.
    pub fn fix_ends(&mut self) {
        for n in 0..self.nodes.len() as u32 {
            if self.nodes[n as usize].gone {
                continue;
            }
            if n != SOURCE && self.nodes[n as usize].ins.is_empty() {
                self.connect(SOURCE, CONTROL, n, CONTROL);
            }
            if n != SINK && self.nodes[n as usize].outs.is_empty() {
                self.connect(n, CONTROL, SINK, CONTROL);
            }
        }
    }

    /// The class of node `n`.
    pub fn class(&self, n: u32) -> OpClass {
        self.kind_of_node(n).class
    }
    /// The op of node `n`, with what is known of it.
    pub fn kind_of_node(&self, n: u32) -> &OpKind<'p> {
        &self.kinds[self.nodes[n as usize].kind as usize]
    }
    /// The op of node `n`.
    pub fn op(&self, n: u32) -> &'p str {
        self.kind_of_node(n).op
    }
    /// The name of node `n`.
    pub fn name(&self, n: u32) -> &str {
        &self.nodes[n as usize].name
    }
    /// The edges that end at `n`.
    pub fn ins(&self, n: u32) -> impl DoubleEndedIterator<Item = Edge> + '_ {
        self.nodes[n as usize].ins.iter().filter_map(|&e| self.edges[e as usize])
    }
    /// The edges that start at `n`.
    pub fn outs(&self, n: u32) -> impl DoubleEndedIterator<Item = Edge> + '_ {
        self.nodes[n as usize].outs.iter().filter_map(|&e| self.edges[e as usize])
    }
    /// The numbers of all op nodes.
    pub fn op_nodes(&self) -> std::ops::Range<u32> {
        2..self.nodes.len() as u32
    }
    /// The edge into data input `port` of `n`.
    pub fn input(&self, n: u32, port: i32) -> Option<Edge> {
        let ins = &self.nodes[n as usize].ins;
        let likely = usize::try_from(port).ok().and_then(|p| ins.get(p)).and_then(|&e| self.edges[e as usize]);
        likely.filter(|e| e.dst_port == port).or_else(|| self.ins(n).find(|e| e.dst_port == port))
    }
    /// The number of outputs of `n`: as its op says, and at least as many as are used.
    pub fn output_count(&self, n: u32) -> usize {
        let used = self.outs(n).map(|e| (e.src_port + 1) as usize).max().unwrap_or(0);
        let told =
            self.nodes[n as usize].node.zip(self.kind_of_node(n).def).map_or(0, |(node, d)| d.output_count(node));
        used.max(told.min(1 << 16))
    }

    /// Nodes so that all that a node leads to come before it, edges out of NextIteration left out: a depth-first walk from
    /// `_SOURCE` that visits the neighbour with the largest name first.
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
            next.extend(self.outs(n).map(|e| e.dst));
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

/// The class of `op` in a program whose functions may have any name.
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

/// The first node that a session appended to the graph that it imported: the first of its ends, which are `_Arg` for what is
/// fed and `_Retval` for what is fetched. The arguments that a function's body begins with are imported.
fn first_appended(graph: &Graph) -> u32 {
    let is_end = |node: &Node| matches!(&*node.op, "_Arg" | "_Retval");
    let body = graph.nodes.values().position(|node| !is_end(node)).unwrap_or(graph.nodes.len());
    let ends = graph.nodes.values().skip(body).position(is_end);
    ends.map_or(graph.nodes.len(), |at| body + at) as u32
}

/// Nodes in the order of TensorFlow's importer: of those whose inputs exist, the first of the file. A Merge at the head of
/// a loop does not wait for NextIteration.
struct ImportQueue {
    ready: BinaryHeap<Reverse<u32>>,
    missing: Vec<i64>,
    users: Vec<Vec<u32>>,
}

impl ImportQueue {
    /// The nodes before `end`, which do not wait for those behind.
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
