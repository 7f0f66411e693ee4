//! Preprocessing of a saved graph into what TensorFlow hands to the clustering pass: inlines calls, prunes what is not fetched, and
//! places every node. Dumps of TensorFlow need none of it.
use super::devices::{CPU_0, Device, DeviceTable};
use super::functions::called_function;
use super::inline;
use crate::diag::{Code, Diagnostic, Result};
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program, TfType};
use crate::opdef;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Whether every node of `graph` has a full device name, as in dumps that TensorFlow writes after placement.
pub fn is_dump(graph: &Graph) -> bool {
    let mut last: Option<&Arc<str>> = None;
    graph.nodes.values().all(|node| {
        if last.is_some_and(|d| Arc::ptr_eq(d, &node.device)) {
            return true;
        }
        last = Some(&node.device);
        Device::parse(&node.device).is_ok_and(|d| d.is_fully_specified())
    })
}

/// Feeds and fetches by which a saved graph is pruned.
#[derive(Clone, Debug, Default)]
pub struct FeedsAndFetches {
    /// Names of tensors that the caller feeds, `node:index` or `node`.
    pub feeds: Vec<String>,
    /// Names of tensors that the caller fetches; empty: nothing is pruned.
    pub fetches: Vec<String>,
}

/// Report of what preprocessing changed and assumed.
#[derive(Debug)]
pub struct PreprocessingReport {
    /// Assumptions, one sentence each.
    pub assumptions: Vec<String>,
    /// Nodes of the file that preprocessing removed: name, op, and whether inlining expanded the node (else it was pruned).
    pub removed: Vec<(String, String, bool)>,
}

/// Preprocesses the top-level graph of a saved program for the clustering pass.
///
/// # Errors
/// `BadGraph` for invalid device names; `UnknownTensor` for feeds and fetches that the graph does not have; `TooLarge` if inlining
/// makes too many nodes.
pub fn preprocess(program: &mut Program, cut: &FeedsAndFetches) -> Result<PreprocessingReport> {
    let mut report = PreprocessingReport { assumptions: Vec::new(), removed: Vec::new() };
    // A fetch may name a call, which inlining removes; the graph is then pruned first. Else `_Retval`s come last, as in a session.
    let early = cut.fetches.iter().any(|fetch| names_call(program, fetch));
    if early {
        prune_to_fetches(program, cut, &mut report)?;
    }
    let inlined = inline::run(program)?;
    if !inlined.is_empty() {
        let count = inlined.len();
        report
            .assumptions
            .push(format!("{count} calls are inlined, as TensorFlow's optimizer does before it clusters"));
    }
    report.removed.extend(inlined.into_iter().map(|(name, op)| (name, op, true)));
    if !early && !cut.fetches.is_empty() {
        prune_to_fetches(program, cut, &mut report)?;
    }
    let placed = complete_devices(&mut program.graph)?;
    if placed > 0 {
        report.assumptions.push(format!("{placed} nodes are placed on {CPU_0}"));
    }
    let lowered = |n: &&Node| n.bool("_lower_using_switch_merge") == Some(true);
    let functional = program.graph.nodes.values().filter(lowered).count();
    if functional > 0 {
        report.assumptions.push(format!(
            "{functional} loops and conditions stay whole; TensorFlow makes Switch and Merge of those that ask for it"
        ));
    }
    report
        .assumptions
        .push("the graph is clustered as it is written; TensorFlow's Grappler may rewrite nodes before".into());
    Ok(report)
}

/// Whether `fetch` names a node that calls a function.
fn names_call(program: &Program, fetch: &str) -> bool {
    let name = fetch.split(':').next().unwrap_or(fetch);
    program.graph.nodes.values().any(|node| &*node.name == name && called_function(program, node).is_some())
}

/// Prunes the graph to what its fetches need, and records the pruned nodes.
fn prune_to_fetches(program: &mut Program, cut: &FeedsAndFetches, report: &mut PreprocessingReport) -> Result<()> {
    let gone = prune(&mut program.graph, cut)?;
    report.assumptions.push(format!("{} nodes that no fetch needs are cut off", gone.len()));
    report.removed.extend(gone.into_iter().map(|(name, op)| (name, op, false)));
    Ok(())
}

/// Completes the device name of each node; returns the number of names that were incomplete.
pub fn complete_devices(graph: &mut Graph) -> Result<u64> {
    let mut known: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    let mut placed = 0;
    for node in graph.nodes.values_mut() {
        let full = match known.get(&node.device) {
            Some(full) => full.clone(),
            None => {
                let full: Arc<str> = DeviceTable::complete_name(&node.device)?.into();
                known.insert(node.device.clone(), full.clone());
                full
            }
        };
        placed += u64::from(full != node.device);
        node.device = full;
    }
    Ok(placed)
}

/// Turns feeds into `_Arg` and fetches into `_Retval` nodes, both at the end as in a session. Returns the nodes that no fetch needs.
fn prune(graph: &mut Graph, cut: &FeedsAndFetches) -> Result<Vec<(String, String)>> {
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
        let arg = end_node(graph, at, "_Arg", format!("_arg_{}_{}_{i}", graph.nodes[at.node].name, at.port), i);
        fed.insert(at, Endpoint { node: graph.nodes.push(arg), port: 0 });
    }
    let mut roots = Vec::new();
    for (i, &at) in fetches.iter().enumerate() {
        let mut ret =
            end_node(graph, at, "_Retval", format!("_retval_{}_{}_{i}", graph.nodes[at.node].name, at.port), i);
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
    *graph = inline::retain_nodes(std::mem::take(graph), &|id| keep[id]);
    Ok(gone)
}

fn end_node(graph: &Graph, at: Endpoint, op: &str, name: String, index: usize) -> Node {
    let from = &graph.nodes[at.node];
    let number = opdef::find_def(&from.op).and_then(|d| d.output_type(from, at.port as usize)).unwrap_or(0);
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
