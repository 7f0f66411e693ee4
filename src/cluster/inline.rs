//! Inlining of function calls, with TensorFlow's names for the new nodes: `CALL/NODE` for a node of the body,
//! `Func/CALL/input/_K` and `Func/CALL/output/_K` for the identities around it.
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Endpoint, Function, Graph, Node, NodeId, Program, TfType};
use crate::opdef;
use crate::util::id_vec::IdVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Maximum nesting depth of inlined calls; deeper calls stay calls.
const MOST_DEPTH: u32 = 50;
/// Maximum number of nodes after inlining.
const MOST_NODES: usize = 1 << 24;

/// Inlines the calls of the top-level graph; returns the name and op of each.
///
/// A call stays if its function must be compiled as one (`_XlaMustCompile`), has `_noinline`, is missing, or takes another number of
/// arguments. Errors: `TooLarge`.
pub fn run(program: &mut Program) -> Result<Vec<(String, String)>> {
    let calls = |n: &Node, p: &Program| callee(n, p).is_some();
    if !program.graph.nodes.values().any(|n| calls(n, program)) {
        return Ok(Vec::new());
    }
    let graph = std::mem::take(&mut program.graph);
    let depth = vec![0; graph.nodes.len()];
    let mut inliner = Inliner {
        program,
        graph,
        depth,
        outputs: HashMap::new(),
        done: HashMap::new(),
        gone: HashSet::new(),
        counter: 0,
    };
    let mut told = Vec::new();
    let mut at = 0;
    while at < inliner.graph.nodes.len() {
        let id = NodeId(at as u32);
        at += 1;
        let node = &inliner.graph.nodes[id];
        let Some(function) = callee(node, inliner.program).filter(|_| inliner.depth[id.0 as usize] < MOST_DEPTH) else {
            continue;
        };
        told.push((node.name.to_string(), node.op.to_string()));
        inliner.expand_call(id, function)?;
    }
    let Inliner { mut graph, outputs, done, mut gone, .. } = inliner;
    redirect(&mut graph, &outputs, &done);
    gone.extend(unused_ends(&graph, &done));
    program.graph = retain_nodes(graph, &|id| !gone.contains(&id));
    Ok(told)
}

/// The function that a node calls, if the call may be inlined.
fn callee<'p>(node: &Node, program: &'p Program) -> Option<&'p Function> {
    let function = match &*node.op {
        "PartitionedCall" | "StatefulPartitionedCall" => program.functions.get(&node.func("f")?.name)?,
        op => program.functions.get(op)?,
    };
    let whole = |v: Option<bool>| v == Some(true);
    let kept = whole(node.bool("_XlaMustCompile")) || whole(function.bool("_XlaMustCompile"));
    let fits = function.args.len() == node.inputs.len();
    (!kept && !whole(function.bool("_noinline")) && !whole(node.bool("_noinline")) && fits).then_some(function)
}

struct Inliner<'p> {
    program: &'p Program,
    graph: Graph,
    /// By node: the number of calls from which it was expanded.
    depth: Vec<u32>,
    /// By output of an inlined call: its replacement.
    outputs: HashMap<Endpoint, Endpoint>,
    /// By inlined call: the node that runs when the call is done, the target of control edges.
    done: HashMap<NodeId, NodeId>,
    gone: HashSet<NodeId>,
    counter: u64,
}

impl Inliner<'_> {
    fn expand_call(&mut self, id: NodeId, function: &Function) -> Result<()> {
        let call = self.graph.nodes[id].clone();
        if self.graph.nodes.len() + function.graph.nodes.len() > MOST_NODES {
            return Err(Error::user(Code::TooLarge, "the calls of the graph inline to too many nodes"));
        }
        let depth = self.depth[id.0 as usize] + 1;
        let start = if call.controls.is_empty() {
            None
        } else {
            let mut node = self.helper_node(&call, "input_control_node", "NoOp");
            node.controls = call.controls.clone();
            Some(self.push_node(node, depth))
        };
        let mut moved: IdVec<NodeId, Option<NodeId>> = function.graph.nodes.ids().map(|_| None).collect();
        for (&arg, &from) in function.args.iter().zip(&call.inputs) {
            let of = function.graph.nodes[arg].declared_type("T").unwrap_or(TfType::Unknown(0));
            let mut node = self.identity_node(&call, "input", of);
            node.inputs = [from].into();
            node.controls = start.into_iter().collect();
            moved[arg] = Some(self.push_node(node, depth));
        }
        let first = self.graph.nodes.len() as u32;
        let body: Vec<NodeId> = function.graph.nodes.ids().filter(|n| moved[*n].is_none()).collect();
        for (i, &n) in body.iter().enumerate() {
            moved[n] = Some(NodeId(first + i as u32));
        }
        let at = |n: NodeId| moved[n].unwrap_or(n);
        for &n in &body {
            let mut node = function.graph.nodes[n].clone();
            node.name = format!("{}/{}", call.name, node.name).into();
            node.inputs = node.inputs.iter().map(|e| Endpoint { node: at(e.node), port: e.port }).collect();
            node.controls = node.controls.iter().map(|&c| at(c)).collect();
            if node.inputs.is_empty() && node.controls.is_empty() {
                node.controls = start.into_iter().collect();
            }
            if node.device.is_empty() {
                node.device = call.device.clone();
            }
            self.push_node(node, depth);
        }
        let mut ends: Vec<NodeId> = Vec::new();
        for (port, ret) in function.rets.iter().enumerate() {
            let from = Endpoint { node: at(ret.node), port: ret.port };
            let of = self.output_type(from);
            let mut node = self.identity_node(&call, "output", of);
            node.inputs = [from].into();
            let output = self.push_node(node, depth);
            ends.push(output);
            self.outputs.insert(Endpoint { node: id, port: port as u32 }, Endpoint { node: output, port: 0 });
        }
        let mut done = self.helper_node(&call, "output_control_node", "NoOp");
        let stateful = |n: &NodeId| opdef::find_def(&function.graph.nodes[*n].op).is_some_and(|d| d.stateful);
        ends.extend(body.iter().filter(|n| stateful(n)).map(|&n| at(n)));
        ends.extend(start);
        done.controls = ends.into();
        let done = self.push_node(done, depth);
        self.done.insert(id, done);
        self.gone.insert(id);
        Ok(())
    }

    fn push_node(&mut self, node: Node, depth: u32) -> NodeId {
        self.depth.push(depth);
        self.graph.nodes.push(node)
    }

    /// A helper node of an inlined call, without inputs and attributes.
    fn helper_node(&mut self, call: &Node, part: &str, op: &str) -> Node {
        let name = format!("Func/{}/{part}/_{}", call.name, self.counter);
        self.counter += 1;
        Node {
            name: name.into(),
            op: op.into(),
            device: call.device.clone(),
            inputs: [].into(),
            controls: [].into(),
            attrs: [].into(),
        }
    }
    fn identity_node(&mut self, call: &Node, part: &str, of: TfType) -> Node {
        let mut node = self.helper_node(call, part, "Identity");
        node.attrs = [(Arc::from("T"), Attr::Type(of))].into();
        node
    }
    fn output_type(&self, at: Endpoint) -> TfType {
        let node = &self.graph.nodes[at.node];
        let number = opdef::find_def(&node.op).and_then(|d| d.output_type(node, at.port as usize));
        number.map_or(TfType::Unknown(0), TfType::from_number)
    }
}

/// Redirects the consumers of inlined calls to the replacements.
fn redirect(graph: &mut Graph, outputs: &HashMap<Endpoint, Endpoint>, done: &HashMap<NodeId, NodeId>) {
    for node in graph.nodes.values_mut() {
        for input in node.inputs.iter_mut() {
            while let Some(&to) = outputs.get(input) {
                *input = to;
            }
        }
        for control in node.controls.iter_mut() {
            while let Some(&to) = done.get(control) {
                *control = to;
            }
        }
    }
}

/// The end nodes of calls that no control edge uses.
fn unused_ends(graph: &Graph, done: &HashMap<NodeId, NodeId>) -> Vec<NodeId> {
    let used: HashSet<NodeId> = graph.nodes.values().flat_map(|n| n.controls.iter().copied()).collect();
    done.values().copied().filter(|end| !used.contains(end)).collect()
}

/// The nodes for which `keep` holds, in their order, renumbered; edges from other nodes are dropped.
pub fn retain_nodes(graph: Graph, keep: &dyn Fn(NodeId) -> bool) -> Graph {
    let mut place: IdVec<NodeId, Option<NodeId>> = IdVec::new();
    let mut next = 0;
    for id in graph.nodes.ids() {
        place.push(keep(id).then(|| {
            next += 1;
            NodeId(next - 1)
        }));
    }
    let mut nodes = IdVec::new();
    for (i, mut node) in graph.nodes.into_iter().enumerate() {
        if place[NodeId(i as u32)].is_none() {
            continue;
        }
        let at = |e: &Endpoint| place[e.node].map(|node| Endpoint { node, port: e.port });
        node.inputs = node.inputs.iter().filter_map(at).collect();
        node.controls = node.controls.iter().filter_map(|&c| place[c]).collect();
        nodes.push(node);
    }
    Graph { nodes }
}
