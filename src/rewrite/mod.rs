//! A saved graph with its clusters in it: marked with `_XlaCluster`, or as functions that stock TensorFlow compiles when they
//! are called.
//!
//! The file is taken apart only as far as nodes, inputs and attributes; everything else is copied byte for byte, so that what
//! tfaot does not know survives. `units` finds the graphs of a file that TensorFlow would cluster, `annotate` and `launch` each
//! rewrite one, `raw` reads and writes.
mod annotate;
mod launch;
pub mod proto;
pub mod raw;
mod units;

use crate::cluster::Options;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::Program;
use crate::import::Format;
use bytes::Bytes;
use raw::{Message, RawGraph};

/// What a rewritten graph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nodes carry `_XlaCluster`.
    Annotate,
    /// Clusters are functions, called by nodes that TensorFlow compiles.
    Xla,
}

/// A rewritten file.
#[derive(Debug)]
pub struct Rewritten {
    /// Its bytes, in the binary form of the format that came in.
    pub bytes: Vec<u8>,
    /// The clusters that it has.
    pub clusters: usize,
    /// The nodes in them.
    pub nodes: u64,
    /// What was left as it is and why, a sentence each.
    pub notes: Vec<String>,
}

/// Rewrites `file`, which is of the binary format `format` and holds `program`.
///
/// `fetches` are tensors (`node` or `node:index`) that must keep their names; the outputs of signatures and what no node uses
/// keep theirs anyway. Errors: `BadEncoding`, those of clustering, `UnsupportedCase` for a node of a cluster whose types
/// TensorFlow's definitions do not tell.
pub fn rewrite(
    file: &Bytes,
    format: Format,
    program: &Program,
    options: &Options,
    mode: Mode,
    fetches: &[String],
) -> Result<Rewritten> {
    let mut told = Rewritten { bytes: Vec::new(), clusters: 0, nodes: 0, notes: Vec::new() };
    let mut fetches = fetches.to_vec();
    for signature in &program.signatures {
        fetches.extend(signature.outputs.iter().map(|(_, tensor)| tensor.clone()));
    }
    let mut change = |graph: &Bytes| -> Result<Vec<u8>> {
        let mut raw = RawGraph::parse(graph)?;
        units::rewrite(&mut raw, program, options, mode, &fetches, &mut told)?;
        Ok(raw.write())
    };
    let bytes = match format {
        Format::GraphDef => change(file)?,
        Format::MetaGraph => in_meta_graph(file, &mut change)?,
        Format::SavedModel => in_saved_model(file, &mut change)?,
        Format::GraphDefText | Format::MetaGraphText | Format::SavedModelText => {
            return Err(Error::internal("rewrite", "text is brought to the binary form first"));
        }
        Format::TfJs | Format::HloText => {
            let what = format!("a file of the format `{}` is not rewritten", format.name());
            return Err(Diagnostic::new(Code::UnknownFormat, what)
                .help("rewrite takes GraphDefs, MetaGraphDefs and SavedModels")
                .into());
        }
    };
    told.bytes = bytes;
    Ok(told)
}

/// The GraphDef in `file`, which is of the binary format `format`; `None` where that holds none in protobuf's form.
///
/// Errors: `BadEncoding`.
pub fn graph_in(file: &Bytes, format: Format) -> Result<Option<RawGraph>> {
    let mut found = None;
    let mut take = |graph: &Bytes| {
        found = Some(graph.clone());
        Ok(graph.to_vec())
    };
    match format {
        Format::GraphDef => drop(take(file)),
        Format::MetaGraph => drop(in_meta_graph(file, &mut take)?),
        Format::SavedModel => drop(in_saved_model(file, &mut take)?),
        Format::GraphDefText | Format::MetaGraphText | Format::SavedModelText | Format::TfJs | Format::HloText => {}
    }
    found.map(|graph| RawGraph::parse(&graph)).transpose()
}

type Change<'a> = dyn FnMut(&Bytes) -> Result<Vec<u8>> + 'a;

fn in_meta_graph(file: &Bytes, change: &mut Change) -> Result<Vec<u8>> {
    let mut meta = Message::parse(file, "MetaGraphDef")?;
    for graph in meta.bytes_mut(2) {
        *graph = change(graph)?.into();
    }
    Ok(meta.write())
}

/// Rewrites the graph that `import` reads: the one with the tag `serve`, or the only one.
fn in_saved_model(file: &Bytes, change: &mut Change) -> Result<Vec<u8>> {
    let mut model = Message::parse(file, "SavedModel")?;
    let mut serves = Vec::new();
    for meta in model.bytes_mut(2) {
        let mut served = false;
        for info in Message::parse(meta, "MetaGraphDef")?.bytes_mut(1) {
            served |= Message::parse(info, "MetaInfoDef")?.bytes_mut(4).any(|tag| &tag[..] == b"serve");
        }
        serves.push(served);
    }
    let chosen = serves.iter().position(|s| *s).unwrap_or(0);
    for (i, meta) in model.bytes_mut(2).enumerate() {
        if i == chosen {
            *meta = in_meta_graph(meta, change)?.into();
        }
    }
    Ok(model.write())
}
