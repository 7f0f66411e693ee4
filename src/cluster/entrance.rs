//! A graph as it was saved, brought to what TensorFlow would hand the pass: calls inlined, what is not fetched cut off, every
//! node placed. A dump of TensorFlow's is left as it is.
use super::devices::{CPU_0, Device, DeviceTable};
use super::functions::called;
use super::inline;
use crate::diag::{Code, Diagnostic, Result};
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program, TfType};
use crate::opdef;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Whether every node of `graph` has a full device: TensorFlow placed it, and it is a dump of one of its passes.
pub fn is_dump(graph: &Graph) -> bool {
    let mut last: Option<&Arc<str>> = None;
    graph.nodes.values().all(|node| {
        if last.is_some_and(|d| Arc::ptr_eq(d, &node.device)) {
            return true;
        }
        last = Some(&node.device);
        Device::parse(&node.device).is_ok_and(|d| d.is_full())
    })
}

/// Feeds and fetches that the user gives for a saved graph.
#[derive(Clone, Debug, Default)]
pub struct GraphCut {
    /// Tensors that are fed, `node:index` or `node`.
    pub feeds: Vec<String>,
    /// Tensors that are fetched; none: everything is kept.
    pub fetches: Vec<String>,
}

/// A saved program after the steps before the pass.
#[derive(Debug)]
pub struct ImportedProgram {
    /// Assumptions that were made, a sentence each.
    pub assumed: Vec<String>,
    /// Nodes of the file that are not in the graph any more: name, op, and whether they were expanded (else cut off).
    pub gone: Vec<(String, String, bool)>,
}

/// Brings the top-level graph of a saved program to what the pass sees.
///
/// # Errors
/// `BadGraph` for devices that are no names of devices; `UnknownTensor` for feeds and fetches that are not there;
/// `TooLarge` where inlining makes too many nodes.
pub fn bring(program: &mut Program, cut: &GraphCut) -> Result<ImportedProgram> {
    let mut brought = ImportedProgram { assumed: Vec::new(), gone: Vec::new() };
    // A fetch may name a call, which inlining takes away: it is cut to first. Else the ends stand last, as in a session.
    let early = cut.fetches.iter().any(|fetch| names_call(program, fetch));
    if early {
        cut_off(program, cut, &mut brought)?;
    }
    let inlined = inline::run(program)?;
    if !inlined.is_empty() {
        let count = inlined.len();
        brought.assumed.push(format!("{count} calls are inlined, as TensorFlow's optimizer does before it clusters"));
    }
    brought.gone.extend(inlined.into_iter().map(|(name, op)| (name, op, true)));
    if !early && !cut.fetches.is_empty() {
        cut_off(program, cut, &mut brought)?;
    }
    let placed = place(&mut program.graph)?;
    if placed > 0 {
        brought.assumed.push(format!("{placed} nodes are placed on {CPU_0}"));
    }
    let lowered = |n: &&Node| n.bool("_lower_using_switch_merge") == Some(true);
    let functional = program.graph.nodes.values().filter(lowered).count();
    if functional > 0 {
        brought.assumed.push(format!(
            "{functional} loops and conditions stay whole; TensorFlow makes Switch and Merge of those that ask for it"
        ));
    }
    brought
        .assumed
        .push("the graph is clustered as it is written; TensorFlow's Grappler may rewrite nodes before".into());
    Ok(brought)
}

/// Whether `fetch` is of a node that calls a function.
fn names_call(program: &Program, fetch: &str) -> bool {
    let name = fetch.split(':').next().unwrap_or(fetch);
    program.graph.nodes.values().any(|node| &*node.name == name && called(program, node).is_some())
}

/// Cuts the graph to what its fetches need, and tells of it.
fn cut_off(program: &mut Program, cut: &GraphCut, brought: &mut ImportedProgram) -> Result<()> {
    let gone = prune(&mut program.graph, cut)?;
    brought.assumed.push(format!("{} nodes that no fetch needs are cut off", gone.len()));
    brought.gone.extend(gone.into_iter().map(|(name, op)| (name, op, false)));
    Ok(())
}

/// Gives each node the parts of its device that it lacks; returns the number of nodes that lacked some.
pub fn place(graph: &mut Graph) -> Result<u64> {
    let mut known: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    let mut placed = 0;
    for node in graph.nodes.values_mut() {
        let full = match known.get(&node.device) {
            Some(full) => full.clone(),
            None => {
                let full: Arc<str> = DeviceTable::completed(&node.device)?.into();
                known.insert(node.device.clone(), full.clone());
                full
            }
        };
        placed += u64::from(full != node.device);
        node.device = full;
    }
    Ok(placed)
}

/// Feeds become `_Arg`, fetches `_Retval`, both at the end as in a session, and what no fetch needs goes; returns that.
fn prune(graph: &mut Graph, cut: &GraphCut) -> Result<Vec<(String, String)>> {
    let names: HashMap<&str, NodeId> = graph.nodes.iter().map(|(id, n)| (&*n.name, id)).collect();
    let find = |text: &String| -> Result<Endpoint> {
        let (name, port) = text.rsplit_once(':').and_then(|(n, p)| Some((n, p.parse().ok()?))).unwrap_or((text, 0));
        let node = names.get(name).copied();
        let node = node.ok_or_else(|| Diagnostic::new(Code::UnknownTensor, format!("the graph has no `{text}`")))?;
        Ok(Endpoint { node, port })
    };
    let feeds: Vec<Endpoint> = cut.feeds.iter().map(find).collect::<Result<_>>()?;
    let fetches: Vec<Endpoint> = cut.fetches.iter().map(find).collect::<Result<_>>()?;
    drop(names);
    let mut fed: HashMap<Endpoint, Endpoint> = HashMap::new();
    for (i, &at) in feeds.iter().enumerate() {
        let arg = end(graph, at, "_Arg", format!("_arg_{}_{}_{i}", graph.nodes[at.node].name, at.port), i);
        fed.insert(at, Endpoint { node: graph.nodes.push(arg), port: 0 });
    }
    let mut roots = Vec::new();
    for (i, &at) in fetches.iter().enumerate() {
        let mut ret = end(graph, at, "_Retval", format!("_retval_{}_{}_{i}", graph.nodes[at.node].name, at.port), i);
        ret.inputs = [at].into();
        roots.push(graph.nodes.push(ret));
    }
    for node in graph.nodes.values_mut() {
        for input in node.inputs.iter_mut() {
            if let Some(&arg) = fed.get(input) {
                *input = arg;
            }
        }
    }
    let mut keep: IdVec<NodeId, bool> = graph.nodes.ids().map(|_| false).collect();
    roots.extend(fed.values().map(|e| e.node));
    while let Some(id) = roots.pop() {
        if !std::mem::replace(&mut keep[id], true) {
            let node = &graph.nodes[id];
            roots.extend(node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied()));
        }
    }
    let gone = graph.nodes.iter().filter(|(id, _)| !keep[*id]);
    let gone = gone.map(|(_, n)| (n.name.to_string(), n.op.to_string())).collect();
    *graph = inline::compacted(std::mem::take(graph), &|id| keep[id]);
    Ok(gone)
}

fn end(graph: &Graph, at: Endpoint, op: &str, name: String, index: usize) -> Node {
    let from = &graph.nodes[at.node];
    let number = opdef::find(&from.op).and_then(|d| d.output_type(from, at.port as usize)).unwrap_or(0);
    let attrs =
        [(Arc::from("T"), Attr::Type(TfType::from_number(number))), (Arc::from("index"), Attr::Int(index as i64))];
    Node {
        name: name.into(),
        op: op.into(),
        device: from.device.clone(),
        inputs: [].into(),
        controls: [].into(),
        attrs: attrs.into(),
    }
}
