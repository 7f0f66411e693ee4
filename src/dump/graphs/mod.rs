//! TensorFlow's own dumps of graphs: the names, the counters and the order that `TF_DUMP_GRAPH_PREFIX` gives them.
//!
//! [`GraphDumps`] gathers files in memory; who clusters calls it for each graph, and writes the files out. Source of names and
//! order: util/dump_graph.cc, jit/mark_for_compilation_pass.cc, jit/increase_dynamism_for_auto_jit_pass.cc.
pub mod attr;
mod canonical;
pub mod proto_text;
mod summary;

pub use summary::{log, summary};

use crate::cluster::{Clustering, GraphSnapshot};
use crate::diag::Result;
use crate::graph::{Graph, Node};
use crate::import::proto::tensorflow::{GraphDef, XlaAutoClusteringSummary};
use crate::import::raw::{RawGraph, RawNode};
use crate::import::wire::put_bytes;
use bytes::Bytes;
use std::collections::HashMap;

/// `TF_DUMP_GRAPH_FMT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphFormat {
    /// `TXT`: protobuf's text, `.pbtxt`.
    #[default]
    Text,
    /// `BIN`: protobuf's wire form, `.pb`.
    Binary,
}

impl GraphFormat {
    /// The format that TensorFlow calls `name`, in any case; an empty name is text.
    pub fn parse(name: &str) -> Option<GraphFormat> {
        match name.to_ascii_uppercase().as_str() {
            "" | "TXT" => Some(GraphFormat::Text),
            "BIN" => Some(GraphFormat::Binary),
            _ => None,
        }
    }
}

/// The dumps of one process.
#[derive(Debug, Default)]
pub struct GraphDumps {
    format: GraphFormat,
    uses: HashMap<String, u64>,
    /// Names and contents, in the order in which TensorFlow writes them.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A graph that was clustered, and where its nodes stand in the file.
pub struct ClusteredGraph<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The nodes of the file that hold attributes as they were written; nodes that are not among them are encoded anew.
    pub written: &'a [RawNode],
    /// The file's functions and versions.
    pub file: &'a RawGraph,
}

/// How the nodes of a dump are called and marked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    None,
    Attributes,
    Names,
}

impl GraphDumps {
    /// No dumps yet.
    pub fn new(format: GraphFormat) -> GraphDumps {
        GraphDumps { format, ..GraphDumps::default() }
    }

    /// Dumps the graphs of `--tf_xla_clustering_debug`, for a clustering that recorded the graph as `seen`.
    ///
    /// # Errors
    /// `BadEncoding`.
    pub fn clustered(&mut self, source: &ClusteredGraph, found: &Clustering) -> Result<()> {
        let Some(seen) = &found.snapshot else { return Ok(()) };
        let written: HashMap<&str, &RawNode> = source.written.iter().map(|n| (n.name.as_str(), n)).collect();
        let graph = |seen: &GraphSnapshot, marks| graph_def(source, &written, seen, &seen.cluster_names(found), marks);
        if seen.marked {
            self.push("before_mark_for_compilation", graph(seen, Marks::None))?;
            self.push("mark_for_compilation", graph(seen, Marks::Attributes))?;
            self.push("mark_for_compilation_annotated", graph(seen, Marks::Names))?;
        }
        self.push("before_increase_dynamism_for_auto_jit_pass", graph(seen, Marks::Attributes))?;
        match &found.snapshot_after_slices {
            Some(remade) => self.push("increase_dynamism_for_auto_jit_pass", graph(remade, Marks::Attributes)),
            None => Ok(()),
        }
    }

    /// Adds a GraphDef under the next name of `stem`.
    fn push(&mut self, stem: &str, graph: Vec<u8>) -> Result<()> {
        let stem = stem.replace(['/', '[', ']', '*', '?', '\\'], "_");
        let before = self.uses.entry(stem.clone()).or_insert(0);
        let numbered = if *before == 0 { stem } else { format!("{stem}_{before}") };
        *before += 1;
        let (end, bytes) = match self.format {
            GraphFormat::Text => ("pbtxt", proto_text::print::<GraphDef>(&graph.into())?.into_bytes()),
            GraphFormat::Binary => ("pb", canonical::encode::<GraphDef>(&graph.into())?),
        };
        self.files.push((format!("{numbered}.{end}"), bytes));
        Ok(())
    }
}

/// TensorFlow's fingerprint of the graph that the pass was handed, which `--tf_xla_deterministic_cluster_names` puts into the
/// names of clusters; `None` where the clustering was not asked for with `seen`.
///
/// It is TensorFlow's number where the file has what TensorFlow's importer would add: the attributes that have defaults.
///
/// # Errors
/// `BadEncoding`.
pub fn fingerprint(source: &ClusteredGraph, found: &Clustering) -> Result<Option<u64>> {
    let Some(mut seen) = found.snapshot.clone() else { return Ok(None) };
    if found.copies.is_empty() {
        // A dump has its nodes in the order of the ids that they had where it was written.
        seen.nodes.sort_by_key(|node| node.source.map(|id| id.0));
    }
    let written: HashMap<&str, &RawNode> = source.written.iter().map(|n| (n.name.as_str(), n)).collect();
    let graph = graph_def(source, &written, &seen, &HashMap::new(), Marks::None);
    Ok(Some(canonical::hash64(&canonical::encode::<GraphDef>(&graph.into())?)))
}

/// A GraphDef of the nodes that the pass was handed, in the order of their numbers.
fn graph_def(
    source: &ClusteredGraph,
    written: &HashMap<&str, &RawNode>,
    seen: &GraphSnapshot,
    clusters: &HashMap<&str, &str>,
    marks: Marks,
) -> Vec<u8> {
    let ops: HashMap<&str, &str> = seen.nodes.iter().map(|n| (n.name.as_str(), n.op.as_str())).collect();
    let called = |name: &str| match (marks, clusters.get(name), ops.get(name)) {
        (Marks::None | Marks::Attributes, _, _) => name.to_string(),
        (Marks::Names, Some(cluster), _) => format!("{cluster}/{name}"),
        (Marks::Names, None, Some(&"VarHandleOp")) => format!("varhandle/{name}"),
        (Marks::Names, None, _) => format!("unclustered/{name}"),
    };
    let nodes = seen.nodes.iter().filter_map(|node| {
        let of = match (node.source, &node.created) {
            (Some(of), _) => &source.graph.nodes[of],
            (None, made) => made.as_deref()?,
        };
        let known = written.get(&*of.name).filter(|_| node.source.is_some());
        let mut raw = known.map_or_else(|| encoded(of), |&n| n.clone());
        raw.name = called(&node.name);
        raw.device = of.device.to_string();
        raw.inputs = node.inputs.iter().map(|input| spelled(input, &called)).collect();
        if let Some(cluster) = clusters.get(node.name.as_str()).filter(|_| marks != Marks::None) {
            // A node that a later pass made is in a cluster, but the marking did not see it.
            if node.source.is_some() {
                raw.set("_XlaAlreadyClustered", crate::import::raw_attr::truth(true));
            }
            raw.set("_XlaCluster", crate::import::raw_attr::string(cluster));
        }
        raw.attrs.sort_by(|a, b| a.0.cmp(&b.0));
        Some(raw)
    });
    let mut out = source.file.with_nodes(nodes.collect()).write();
    if source.file.functions.is_empty() {
        // The library is written where it is empty, too.
        put_bytes(&mut out, 2, &[]);
    }
    out
}

/// An input with its node under the name that the dump gives it.
fn spelled(input: &str, called: &dyn Fn(&str) -> String) -> String {
    if let Some(name) = input.strip_prefix('^') {
        return format!("^{}", called(name));
    }
    match input.rsplit_once(':') {
        Some((name, port)) => format!("{}:{port}", called(name)),
        None => called(input),
    }
}

fn encoded(node: &Node) -> RawNode {
    let attrs = node.attrs.iter().map(|(key, value)| (key.to_string(), Bytes::from(attr::encode(value))));
    RawNode { op: node.op.to_string(), attrs: attrs.collect(), ..RawNode::default() }
}

/// The summary as a file: text where `name` ends like text, else protobuf's wire form.
///
/// # Errors
/// `BadEncoding`, internal ones where protobuf can't write it.
pub fn summary_file(summary: &XlaAutoClusteringSummary, name: &str) -> Result<Vec<u8>> {
    let bytes =
        protobuf::Message::write_to_bytes(summary).map_err(|e| crate::diag::Error::internal("dump", e.to_string()))?;
    let is_text = [".pbtxt", ".txt", ".textproto"].iter().any(|end| name.ends_with(end));
    if is_text {
        return Ok(proto_text::print::<XlaAutoClusteringSummary>(&bytes.into())?.into_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
