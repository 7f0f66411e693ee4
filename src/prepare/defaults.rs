//! Choice of feeds and fetches: those that the user names, else the signature's, else Placeholders and unused outputs.
use super::names::NodesByName;
use super::prune::NeededNodes;
use super::{FeedSpec, Request, signature};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, NodeId, Program, Signature};
use crate::ops::output_count;
use crate::util::id_vec::{Id, IdVec};
use std::collections::HashSet;

/// A feed whose type and shape have not been resolved yet.
#[derive(Clone, Debug)]
pub struct UnresolvedFeed {
    /// Output that the feed replaces.
    pub at: Endpoint,
    /// The feed's entry in the request: type, sizes and value.
    pub spec: FeedSpec,
    /// Name of the input in the signature.
    pub called: Option<String>,
}

impl UnresolvedFeed {
    /// Name for messages: that in the signature, else the tensor name.
    pub fn display_name(&self, program: &Program) -> String {
        self.called.clone().unwrap_or_else(|| tensor_name(program, self.at))
    }
}

/// Tensor name of an output, `node:index`.
pub fn tensor_name(program: &Program, at: Endpoint) -> String {
    format!("{}:{}", program.graph.nodes[at.node].name, at.port)
}

/// Fetches of a request: names as `node:index`, and the outputs. Choices that the user did not make are appended to `assumptions`.
pub fn resolve_fetches(
    program: &Program,
    names: &NodesByName,
    request: &Request,
    signature: Option<&Signature>,
    assumptions: &mut Vec<String>,
) -> Result<Vec<(String, Endpoint)>> {
    let wanted: Vec<&str> = match signature {
        _ if !request.fetches.is_empty() => request.fetches.iter().map(String::as_str).collect(),
        Some(signature) => {
            if request.signatures.is_empty() {
                assumptions.push(format!("the signature `{}` gives feeds and fetches", signature.name));
            }
            signature.outputs.iter().map(|(_, tensor)| tensor.as_str()).collect()
        }
        None => Vec::new(),
    };
    if wanted.is_empty() && signature.is_some_and(|s| s.runs.is_some()) {
        return Ok(Vec::new());
    }
    let ends = if wanted.is_empty() {
        let sinks = sink_outputs(program);
        let listed: Vec<String> = sinks.iter().take(8).map(|&at| tensor_name(program, at)).collect();
        let more = if sinks.len() > 8 { format!(" and {} more", sinks.len() - 8) } else { String::new() };
        assumptions.push(format!("fetched is what no node uses: {}{more}", listed.join(", ")));
        sinks
    } else {
        let missing =
            |d: Diagnostic, name: &str| signature::add_signature_names(d, name, program, signature, |s| &s.outputs[..]);
        collect_endpoints(wanted.into_iter().map(|name| names.endpoint("fetch", name).map_err(|d| missing(d, name))))?
    };
    if ends.is_empty() {
        return Err(Error::user(Code::BadOption, "the graph has no outputs to fetch"));
    }
    Ok(ends.into_iter().map(|at| (tensor_name(program, at), at)).collect())
}

/// Node to run for a signature without results, as a fetch without a name.
pub fn node_to_run_for_signature(names: &NodesByName, signature: Option<&Signature>) -> Vec<(String, Endpoint)> {
    let node = signature.and_then(|s| names.node(s.runs.as_deref()?));
    node.map(|node| (String::new(), Endpoint { node, port: 0 })).into_iter().collect()
}

/// Feeds that the request or the signature names. Choices that the user did not make are appended to `assumptions`.
pub fn resolve_feeds(
    program: &Program,
    names: &NodesByName,
    request: &Request,
    signature: Option<&Signature>,
    assumptions: &mut Vec<String>,
) -> Result<Vec<UnresolvedFeed>> {
    let mut specs = request.feeds.clone();
    if let (true, Some(signature)) = (specs.is_empty(), signature) {
        specs.extend(
            signature.inputs.iter().map(|(_, tensor)| FeedSpec { name: tensor.clone(), ..FeedSpec::default() }),
        );
        assumptions.push(format!("fed are the inputs of the signature `{}`", signature.name));
    }
    let missing =
        |d: Diagnostic, name: &str| signature::add_signature_names(d, name, program, signature, |s| &s.inputs[..]);
    let end = |spec: &FeedSpec| names.endpoint("feed", &spec.name).map_err(|d| missing(d, &spec.name));
    let ends = collect_endpoints(specs.iter().map(end))?;
    let mut seen = HashSet::new();
    for (at, spec) in ends.iter().zip(&specs) {
        if !seen.insert(*at) {
            return Err(Error::user(Code::BadOption, format!("`{}` is fed twice", spec.name)));
        }
    }
    Ok(ends.into_iter().zip(specs).map(|(at, spec)| UnresolvedFeed { at, spec, called: None }).collect())
}

/// Adds the needed Placeholders that are not fed yet, and the signature's names of all feeds. Choices that the user did not make are
/// appended to `assumptions`.
pub fn add_unfed_placeholders(
    program: &Program,
    names: &NodesByName,
    mut asked: Vec<UnresolvedFeed>,
    needed: &NeededNodes,
    request: &Request,
    signature: Option<&Signature>,
    assumptions: &mut Vec<String>,
) -> Vec<UnresolvedFeed> {
    let called = |at| signature.and_then(|s| signature::name_in_signature(&s.inputs, names, at));
    for one in &mut asked {
        one.called = called(one.at);
    }
    let mut added = Vec::new();
    for (id, node) in program.graph.nodes.iter() {
        if needed.nodes[id] && matches!(&*node.op, "Placeholder" | "PlaceholderV2") {
            let at = Endpoint { node: id, port: 0 };
            let spec = FeedSpec { name: node.name.to_string(), ..FeedSpec::default() };
            let one = UnresolvedFeed { at, spec, called: called(at) };
            added.push(one.display_name(program));
            asked.push(one);
        }
    }
    if !added.is_empty() {
        let why = if request.feeds.is_empty() {
            "Placeholders are fed"
        } else {
            "Placeholders that the fetches need are fed too"
        };
        assumptions.push(format!("{why}: {}", added.join(", ")));
    }
    asked
}

/// Outputs of the nodes without users. Constants, Placeholders and variable handles are included only if there are no others.
fn sink_outputs(program: &Program) -> Vec<Endpoint> {
    let graph = &program.graph;
    let mut used: IdVec<NodeId, bool> = graph.nodes.ids().map(|_| false).collect();
    for node in graph.nodes.values() {
        for from in node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied()) {
            used[from] = true;
        }
    }
    let outputs = |id: NodeId| {
        let n = output_count(&graph.nodes[id], &program.functions).unwrap_or(1);
        (0..n as u32).map(move |port| Endpoint { node: id, port })
    };
    let plain =
        |id: &NodeId| matches!(&*graph.nodes[*id].op, "Const" | "Placeholder" | "PlaceholderV2" | "VarHandleOp");
    let unused: Vec<NodeId> = (0..graph.nodes.len()).map(NodeId::from_index).filter(|&id| !used[id]).collect();
    let found: Vec<Endpoint> = unused.iter().filter(|id| !plain(id)).flat_map(|&id| outputs(id)).collect();
    if found.is_empty() { unused.into_iter().flat_map(outputs).collect() } else { found }
}

/// Collects the endpoints of a list of names; if any name is wrong, returns the diagnostics of all wrong ones.
fn collect_endpoints(all: impl Iterator<Item = Result<Endpoint, Diagnostic>>) -> Result<Vec<Endpoint>> {
    let (mut ends, mut bad) = (Vec::new(), Vec::new());
    for one in all {
        match one {
            Ok(end) => ends.push(end),
            Err(diagnostic) => bad.push(diagnostic),
        }
    }
    if bad.is_empty() { Ok(ends) } else { Err(Error::User(bad)) }
}
