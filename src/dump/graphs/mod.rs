//! TensorFlow's graph dumps, with the names, counters and order that TensorFlow uses for `TF_DUMP_GRAPH_PREFIX`.
//!
//! [`GraphDumps`] collects files in memory; the caller adds each clustered graph, and writes the files to disk. Source of names and
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

/// The dump format that `TF_DUMP_GRAPH_FMT` selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphFormat {
    /// `TXT`: protobuf's text format, `.pbtxt`.
    #[default]
    Text,
    /// `BIN`: protobuf's wire format, `.pb`.
    Binary,
}

impl GraphFormat {
    /// Parses TensorFlow's name of a format, in any case; an empty name is text.
    pub fn parse(name: &str) -> Option<GraphFormat> {
        match name.to_ascii_uppercase().as_str() {
            "" | "TXT" => Some(GraphFormat::Text),
            "BIN" => Some(GraphFormat::Binary),
            _ => None,
        }
    }
}

/// The dumps of one process, collected in memory.
#[derive(Debug, Default)]
pub struct GraphDumps {
    format: GraphFormat,
    uses: HashMap<String, u64>,
    /// Names and contents, in the order in which TensorFlow writes them.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A clustered graph, with the file that it came from.
pub struct ClusteredGraph<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Nodes of the file, whose attributes are copied as written; other nodes are encoded anew.
    pub written: &'a [RawNode],
    /// The file's functions and versions.
    pub file: &'a RawGraph,
}

/// How cluster assignments are shown in a dump.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    None,
    Attributes,
    Names,
}

impl GraphDumps {
    /// An empty collection.
    pub fn new(format: GraphFormat) -> GraphDumps {
        GraphDumps { format, ..GraphDumps::default() }
    }

    /// Adds the dumps of `--tf_xla_clustering_debug` for a clustering with a snapshot of the graph.
    ///
    /// # Errors
    /// `BadEncoding`.
    pub fn add_clustering(&mut self, source: &ClusteredGraph, found: &Clustering) -> Result<()> {
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

/// TensorFlow's fingerprint of the graph that the pass received, which `--tf_xla_deterministic_cluster_names` puts into the names of
/// clusters; `None` if the clustering has no snapshot.
///
/// The number equals TensorFlow's if the file contains what TensorFlow's importer would add: attributes with default values.
///
/// # Errors
/// `BadEncoding`.
pub fn fingerprint(source: &ClusteredGraph, found: &Clustering) -> Result<Option<u64>> {
    let Some(mut seen) = found.snapshot.clone() else { return Ok(None) };
    if found.copies.is_empty() {
        // A dump lists nodes in the order of the ids that they had in the process that wrote it.
        seen.nodes.sort_by_key(|node| node.source.map(|id| id.0));
    }
    let written: HashMap<&str, &RawNode> = source.written.iter().map(|n| (n.name.as_str(), n)).collect();
    let graph = graph_def(source, &written, &seen, &HashMap::new(), Marks::None);
    Ok(Some(canonical::hash64(&canonical::encode::<GraphDef>(&graph.into())?)))
}

/// The GraphDef of the nodes that the pass received, in the order of their numbers.
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
            // A node made by a later pass is in a cluster, but was unknown to the marking.
            if node.source.is_some() {
                raw.set_attr("_XlaAlreadyClustered", crate::import::raw_attr::boolean(true));
            }
            raw.set_attr("_XlaCluster", crate::import::raw_attr::string(cluster));
        }
        raw.attrs.sort_by(|a, b| a.0.cmp(&b.0));
        Some(raw)
    });
    let mut out = source.file.with_nodes(nodes.collect()).write();
    if source.file.functions.is_empty() {
        // The library is written even if it is empty.
        put_bytes(&mut out, 2, &[]);
    }
    out
}

/// An input in which the node has the name that the dump gives it.
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

/// The summary as the content of a file: text if `name` has a text extension, else protobuf's wire format.
///
/// # Errors
/// `BadEncoding`; internal ones if protobuf can't write it.
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
