//! The border of a cluster, with which it can be compiled alone: tensors that enter are fed, tensors that others use are fetched.
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program, TfType};
use crate::infer::{Facts, Remedy};
use crate::lower::Feed;
use crate::prepare;
use crate::tensor::TensorInfo;
use crate::util::id_vec::Id;
use std::collections::{BTreeMap, BTreeSet};

/// The inputs and outputs of a cluster as feeds and fetches.
#[derive(Clone, Debug)]
pub struct ClusterBorder {
    /// Tensors that enter the cluster, in the order of the nodes.
    pub feeds: Vec<Feed>,
    /// Tensors that leave the cluster: name and endpoint.
    pub fetches: Vec<(String, Endpoint)>,
    /// The nodes that create the variable handles which enter.
    pub variables: Vec<NodeId>,
    /// Nodes that take handles of variables or tables from outside of the part; their effects are kept even if none of their outputs is fetched.
    pub roots: Vec<NodeId>,
    /// Number of nodes that neither fetches nor roots need.
    pub left_out: usize,
}

/// The border of the nodes of the top-level graph of `program` for which `inside` holds.
///
/// Constants outside are taken in; variables are fed with their values where they are read; nodes with effects only, such as assignments,
/// are omitted. A called function takes variables as a whole and may change them.
///
/// # Errors
/// `UnknownDim` for each tensor on the border with an open size, `UnsupportedType` for one that compiled code can't represent.
pub fn cluster_border(program: &Program, facts: &Facts, inside: &dyn Fn(NodeId) -> bool) -> Result<ClusterBorder> {
    let graph = &program.graph;
    let outgoing = outgoing(graph, facts, inside);
    let mut needed = vec![false; graph.nodes.len()];
    let mut open: Vec<NodeId> = outgoing.iter().map(|at| at.node).collect();
    let mut incoming = BTreeSet::new();
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut needed[id.index()], true) {
            continue;
        }
        let node = &graph.nodes[id];
        if is_read(node) {
            incoming.insert(Endpoint { node: id, port: 0 });
            continue;
        }
        for &input in node.inputs.iter() {
            if inside(input.node) {
                open.push(input.node);
            } else if !is_constant(&graph.nodes[input.node]) {
                incoming.insert(input);
            }
        }
    }
    let left_out = graph.nodes.ids().filter(|&id| inside(id) && !needed[id.index()]).count();
    let fetches = outgoing.into_iter().filter(|at| !incoming.contains(at)).map(|at| (spelled(graph, at), at)).collect();
    let (variables, roots) = variables(graph, &incoming, inside);
    let mut problems = Vec::new();
    let mut feeds = Vec::new();
    for at in incoming.into_iter().filter(|at| handle(graph, *at).is_none()) {
        match feed(program, facts, at) {
            Ok(info) => feeds.push(Feed { at, info }),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(Error::User(problems));
    }
    name(&mut feeds);
    Ok(ClusterBorder { feeds, fetches, variables, roots, left_out })
}

/// The variables whose handles enter the cluster, and the calls inside that take the handles.
fn variables(
    graph: &Graph,
    incoming: &BTreeSet<Endpoint>,
    inside: &dyn Fn(NodeId) -> bool,
) -> (Vec<NodeId>, Vec<NodeId>) {
    let handles: BTreeSet<NodeId> = incoming.iter().filter_map(|&at| handle(graph, at)).collect();
    let takes = |node: &Node| node.inputs.iter().any(|&at| incoming.contains(&at) && handle(graph, at).is_some());
    let roots = graph.nodes.iter().filter(|(id, node)| inside(*id) && takes(node)).map(|(id, _)| id).collect();
    (handles.into_iter().collect(), roots)
}

/// The node that creates the handle `at`, behind any nodes that only pass it on; `None` for any other tensor.
fn handle(graph: &Graph, at: Endpoint) -> Option<NodeId> {
    let mut id = at.node;
    for _ in 0..graph.nodes.len() {
        let node = &graph.nodes[id];
        if &*node.op == "VarHandleOp" {
            return Some(id);
        }
        let hands_on = matches!(&*node.op, "Identity" | "IdentityN") && node.inputs.len() == 1;
        id = node.inputs.first().filter(|_| hands_on)?.node;
    }
    None
}

/// Outputs of a cluster's nodes that nodes outside use, or that no node uses.
fn outgoing(graph: &Graph, facts: &Facts, inside: &dyn Fn(NodeId) -> bool) -> BTreeSet<Endpoint> {
    let mut used = vec![false; graph.nodes.len()];
    let mut outgoing = BTreeSet::new();
    for (id, node) in graph.nodes.iter() {
        for &input in node.inputs.iter() {
            used[input.node.index()] = true;
            if inside(input.node) && !inside(id) {
                outgoing.insert(input);
            }
        }
    }
    for id in graph.nodes.ids().filter(|&id| inside(id) && !used[id.index()]) {
        let outputs = facts.graph.get(id.index()).map_or(0, |f| f.len());
        outgoing.extend((0..outputs as u32).map(|port| Endpoint { node: id, port }));
    }
    outgoing
}

/// Turns known values that enter clusters into constants: TensorFlow too passes values that are the same in every call to XLA when it
/// compiles. `cluster` maps a node to its cluster.
pub fn fold_known_inputs(program: &mut Program, facts: &Facts, cluster: &dyn Fn(NodeId) -> Option<u32>) {
    let mut made: BTreeMap<Endpoint, NodeId> = BTreeMap::new();
    let mut added = Vec::new();
    let count = program.graph.nodes.len();
    for id in (0..count).map(NodeId::from_index) {
        let Some(own) = cluster(id) else { continue };
        for i in 0..program.graph.nodes[id].inputs.len() {
            let input = program.graph.nodes[id].inputs[i];
            let from = &program.graph.nodes[input.node];
            let Some(value) = facts.at(input).and_then(|f| f.as_tensor()) else { continue };
            if cluster(input.node) == Some(own) || is_constant(from) {
                continue;
            }
            let constant = *made.entry(input).or_insert_with(|| {
                let dtype = Attr::Type(TfType::Data(value.dtype));
                added.push(Node {
                    name: format!("{}:{}/value", from.name, input.port).into(),
                    op: "Const".into(),
                    device: from.device.clone(),
                    inputs: [].into(),
                    controls: [].into(),
                    attrs: [("dtype".into(), dtype), ("value".into(), Attr::Tensor(Box::new(value.clone())))].into(),
                });
                NodeId::from_index(count + added.len() - 1)
            });
            program.graph.nodes[id].inputs[i] = Endpoint { node: constant, port: 0 };
        }
    }
    for node in added {
        program.graph.nodes.push(node);
    }
}

fn is_constant(node: &Node) -> bool {
    &*node.op == "Const" && matches!(node.attr("value"), Some(Attr::Tensor(_)))
}

fn is_read(node: &Node) -> bool {
    &*node.op == "ReadVariableOp"
}

fn spelled(graph: &Graph, at: Endpoint) -> String {
    format!("{}:{}", graph.nodes[at.node].name, at.port)
}

fn name(feeds: &mut [Feed]) {
    let names: Vec<String> = feeds.iter().map(|f| f.info.name.clone()).collect();
    for (feed, field) in feeds.iter_mut().zip(prepare::c_field_names(&names)) {
        feed.info.field = field;
    }
}

/// Name, type and dimensions of the tensor that is fed at `at`.
fn feed(program: &Program, facts: &Facts, at: Endpoint) -> Result<TensorInfo, Diagnostic> {
    let node = &program.graph.nodes[at.node];
    let name = spelled(&program.graph, at);
    let fact = facts.at(at);
    let dtype = match fact.and_then(|f| f.dtype) {
        Some(TfType::Data(dtype)) => dtype,
        other => {
            let what = other.map_or("an unknown type".to_string(), |t| t.to_string());
            let told = format!("`{name}` on the border is of {what}, which compiled code can't take");
            return Err(Diagnostic::new(Code::UnsupportedType, told).at_node(&node.name, &node.op));
        }
    };
    if let Some(dims) = fact.and_then(|f| f.dims.known_sizes()) {
        return Ok(TensorInfo { name, called: None, field: String::new(), dtype, dims });
    }
    let shape = fact.map_or("[...]".to_string(), |f| f.dims.to_string());
    let told = format!("the sizes of `{name}` on the border are not known: {dtype}{shape}");
    let mut problem = Diagnostic::new(Code::UnknownDim, told).at_node(&node.name, &node.op);
    if let Some(id) = fact.and_then(|f| f.dims.first_unknown()) {
        let why = facts.size_origin(program, id);
        let help = match why.remedy {
            Remedy::Feed { .. } => why.remedy.to_string(),
            Remedy::None => {
                let sizes = if shape == "[...]" { "[1,2,3]".to_string() } else { shape.replace('?', "1") };
                format!("give its shape for this report, as in --feed {name}={dtype}{sizes}")
            }
        };
        problem = problem.note(why.to_string()).help(help);
    }
    Err(problem)
}
