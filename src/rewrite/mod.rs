//! Rewriting of a saved graph so that its clusters are marked with `_XlaCluster`, become functions that stock TensorFlow compiles on
//! the first call, or become calls of machine code in a shared library.
//!
//! The file is parsed only as far as nodes, inputs and attributes; everything else is copied byte for byte, so that content unknown to
//! tfaot survives. `units` finds the graphs of a file that TensorFlow would cluster, `calls` extracts the clusters of one, `annotate`,
//! `launch` and `native` replace the clusters, `import::raw` reads and writes the file.
//!
//! # How it works
//!
//! - `native`: nodes that can't be compiled (variables, unknown shapes, refusals of the lowering) are excluded *before* clusters are
//!   formed, round by round, so that TensorFlow's rules hold for the remaining nodes. A cluster is lowered between its inputs and
//!   outputs with the shapes of `infer/`; values that follow from shapes are compiled in.
//! - In the graph, a cluster becomes a `Tfaot_..._fits` op (which checks processor, shapes and values) and an `If` that TensorFlow
//!   lowers to Switch and Merge: one branch is the op of the library, the other calls a function with the cluster's original nodes,
//!   which is not inlined so that a step visits one dead node and not all.
//! - The library uses TensorFlow's C ABI only. Its glue is C (`native/glue/glue.c`), stored as LLVM IR text beside it
//!   (`tools/make_glue`), because no C compiler may be needed where tfaot runs; what differs between libraries is a table. The C ABI
//!   offers no thread pool, so the library brings the one of `package/pool.rs`, which users get as well and `run/pool.rs` loads: a
//!   call that finds the pool busy runs on one thread. Workspaces are reused, one for each concurrent call so far.
mod annotate;
mod calls;
pub mod fake_quantization;
mod launch;
mod jit_functions;
mod meta_graph;
mod native;
mod units;

use crate::cluster::{Clustering, ClusteringOptions};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::dump::Dumps;
use crate::graph::{Program, Variable};
use crate::import::FileFormat;
use crate::import::raw::{RawGraph, RawMessage};
use crate::prepare::{self, ReachableParts};
use bytes::Bytes;
use meta_graph::ExternalNames;
use native::Library;
use std::collections::HashSet;
use std::sync::Arc;
use units::Rewriter;

pub use native::NativeOptions;

/// The form that clusters get in a rewritten graph.
///
/// ```
/// use tfaot::{ModelFile, RewriteMode};
///
/// let rewritten = ModelFile::open("testdata/graphs/attention/graph.pb").rewrite(RewriteMode::Xla)?;
/// println!("{} nodes in {} clusters", rewritten.nodes, rewritten.clusters);
/// # assert!(rewritten.library.is_none());
/// # Ok::<(), tfaot::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Mode<'a> {
    /// Nodes carry the attribute `_XlaCluster`.
    Annotate,
    /// Clusters are functions, called by nodes that TensorFlow compiles with XLA.
    Xla,
    /// Clusters are ops of a shared library that tfaot compiles.
    Native(&'a NativeOptions),
}

/// Options for rewriting a file.
#[derive(Debug)]
pub struct RewriteOptions<'a> {
    /// Options for forming clusters.
    pub options: &'a ClusteringOptions,
    /// The form in which clusters are written.
    pub mode: Mode<'a>,
    /// Tensors (`node` or `node:index`) that must keep their names, in addition to the outputs of signatures and tensors that no
    /// node uses.
    pub fetches: Vec<String>,
    /// The signature for which the graph is rewritten; `None`: all of them.
    pub signature: Option<String>,
    /// Tensors that are fed; their nodes stay outside of clusters.
    pub feeds: Vec<String>,
    /// Variables with values; those that no signature changes become constants of compiled code.
    pub variables: Vec<Variable>,
    /// File name of the shared library, for the mode [`Mode::Native`].
    pub library: &'a str,
    /// Flags and time stamp for dumps of the modules of compiled clusters; `None`: no dumps.
    pub dumps: Option<Dumps>,
}

/// Result of rewriting a file.
#[derive(Debug, Default)]
pub struct Rewritten {
    /// The content of the rewritten file, in the binary form of the input's format.
    pub bytes: Vec<u8>,
    /// The content of the shared library that the file needs, if clusters were compiled.
    pub library: Option<Vec<u8>>,
    /// Number of clusters in the rewritten graph.
    pub clusters: usize,
    /// Number of nodes in the compiled clusters.
    pub nodes: u64,
    /// Assumptions about sizes that no option gives, as sentences for the user.
    pub assumed: Vec<String>,
    /// Nodes and functions that stay unchanged, and why, as sentences for the user.
    pub notes: Vec<String>,
    /// Final clusters of each graph, if the options request a snapshot: those of the top-level graph (no name) first, then those of
    /// function bodies (by function name).
    pub formed: Vec<(Option<Arc<str>>, Clustering)>,
    /// Dumps of the compiled modules: file name and content.
    pub dumped: Vec<(String, Vec<u8>)>,
}

/// Rewrites a saved graph so that its clusters are marked, launched by XLA, or replaced by calls of compiled code. `file` has the binary
/// format `format` and holds `program`. If there are signatures, nodes that no signature
/// reaches (savers, initializers) stay unchanged.
///
/// # Errors
/// `BadEncoding`; `BadOption` for an unknown signature; those of clustering; `UnsupportedCase` for a node of a cluster whose types
/// TensorFlow's op definitions do not give. If clusters are compiled, also `UnknownTensor` for feeds, `NoLinker`, and
/// `UnsupportedCase` if none could be compiled.
pub fn rewrite(file: &Bytes, format: FileFormat, program: &Program, request: &RewriteOptions) -> Result<Rewritten> {
    let mut fetches = request.fetches.clone();
    for signature in &program.signatures {
        fetches.extend(signature.outputs.iter().map(|(_, tensor)| tensor.clone()));
    }
    let mut named = match meta_graph(file, format)? {
        Some(meta) => ExternalNames::collect(&meta, program)?,
        None => ExternalNames::default(),
    };
    fetches.append(&mut named.tensors);
    named.nodes.extend(request.feeds.iter().map(|f| meta_graph::node_of_tensor(f).to_string()));
    let served = served(program, request)?;
    let library = match request.mode {
        Mode::Native(native) => {
            let asked = format!(
                "{:?} {:?} {} {:?} {fetches:?}",
                request.options.flags, request.options.last_pass, request.options.beyond_xla, request.options.checks
            );
            Some(Library::new(native, program, file, &request.variables, &asked, request.dumps.clone())?)
        }
        Mode::Annotate | Mode::Xla => None,
    };
    let mut rewriter = Rewriter::new(program, request.options, request.mode, &fetches, library);
    if let Some(served) = served {
        let names = program.graph.nodes.values().map(|node| node.name.to_string());
        rewriter.unserved = names.filter(|name| !served.nodes.contains(name)).collect();
        rewriter.functions = Some(served.functions);
    }
    rewriter.steps = named.ids_of_sets_of_session_runs(&program.graph);
    rewriter.named = named;
    let mut change = |graph: &Bytes| -> Result<Vec<u8>> {
        let mut raw = RawGraph::parse(graph)?;
        rewriter.run(&mut raw)?;
        Ok(raw.write())
    };
    let bytes = match format {
        FileFormat::GraphDef => change(file)?,
        FileFormat::MetaGraph => in_meta_graph(file, &mut change)?,
        FileFormat::SavedModel => in_saved_model(file, &mut change)?,
        FileFormat::GraphDefText | FileFormat::MetaGraphText | FileFormat::SavedModelText => {
            return Err(Error::internal("rewrite", "text is brought to the binary form first"));
        }
        FileFormat::TfJs | FileFormat::Module => {
            let what = format!("a file of the format `{}` is not rewritten", format.name());
            return Err(Diagnostic::new(Code::UnknownFormat, what)
                .help("rewrite takes GraphDefs, MetaGraphDefs and SavedModels")
                .into());
        }
    };
    let (library, mut told, uncompiled) = (rewriter.library, rewriter.told, rewriter.uncompiled);
    told.bytes = bytes;
    if let Some(mut library) = library {
        told.dumped = std::mem::take(&mut library.dumped);
        told.assumed = std::mem::take(&mut library.assumed);
        told.notes.extend(library.unknown_size_note(uncompiled.contractions)?.map(|told| format!("warning: {told}")));
        let nothing =
            || native::no_cluster_compiled_error(&told.notes, &uncompiled.outside.sentences(), uncompiled.sizes);
        let made = library.link(request.library)?.ok_or_else(nothing)?;
        told.library = Some(made);
    }
    Ok(told)
}

/// Nodes and functions that the requested signatures and fetches reach; `None` if they reach the whole program.
fn served(program: &Program, request: &RewriteOptions) -> Result<Option<ReachableParts>> {
    let asked = prepare::Request {
        signatures: request.signature.iter().cloned().collect(),
        fetches: request.fetches.clone(),
        ..prepare::Request::default()
    };
    prepare::reachable_from_signatures(program, &asked)
}

/// The GraphDef in `file`, which has the binary format `format`; `None` if the format holds no GraphDef in protobuf's binary form.
///
/// # Errors
/// `BadEncoding`.
pub fn graph_of_file(file: &Bytes, format: FileFormat) -> Result<Option<RawGraph>> {
    let mut found = None;
    rewrite_graph_of_file(file, format, &mut |graph| {
        found = Some(graph.clone());
        Ok(graph.to_vec())
    })?;
    found.map(|graph| RawGraph::parse(&graph)).transpose()
}

/// Replaces the GraphDef in `file`, which has the binary format `format`, by the result of `change`. Returns the new file, or `None`
/// if the format holds no GraphDef in protobuf's binary form.
///
/// # Errors
/// `BadEncoding`, and those of `change`.
pub fn rewrite_graph_of_file(file: &Bytes, format: FileFormat, change: &mut GraphDefChange) -> Result<Option<Vec<u8>>> {
    match format {
        FileFormat::GraphDef => change(file).map(Some),
        FileFormat::MetaGraph => in_meta_graph(file, change).map(Some),
        FileFormat::SavedModel => in_saved_model(file, change).map(Some),
        FileFormat::GraphDefText
        | FileFormat::MetaGraphText
        | FileFormat::SavedModelText
        | FileFormat::TfJs
        | FileFormat::Module => Ok(None),
    }
}

/// A function from the bytes of a GraphDef to the bytes of another one.
pub type GraphDefChange<'a> = dyn FnMut(&Bytes) -> Result<Vec<u8>> + 'a;

fn in_meta_graph(file: &Bytes, change: &mut GraphDefChange) -> Result<Vec<u8>> {
    let mut meta = RawMessage::parse(file, "MetaGraphDef")?;
    let mut there = HashSet::new();
    for graph in meta.bytes_mut(2) {
        *graph = change(graph)?.into();
        there.extend(RawGraph::parse(graph)?.nodes.into_iter().map(|node| node.name));
    }
    meta_graph::remove_missing_nodes(&mut meta, &|name| there.contains(meta_graph::node_of_tensor(name)))?;
    Ok(meta.write())
}

/// The MetaGraphDef in `file` whose graph is rewritten; `None` if files of the format `format` hold none.
fn meta_graph(file: &Bytes, format: FileFormat) -> Result<Option<RawMessage>> {
    match format {
        FileFormat::MetaGraph => RawMessage::parse(file, "MetaGraphDef").map(Some),
        FileFormat::SavedModel => {
            let mut model = RawMessage::parse(file, "SavedModel")?;
            let chosen = served_graph(&mut model)?;
            model.bytes_mut(2).nth(chosen).map(|meta| RawMessage::parse(meta, "MetaGraphDef")).transpose()
        }
        _ => Ok(None),
    }
}

/// The index of the MetaGraphDef of a SavedModel that `import` reads: the one with the tag `serve`, or else the first.
fn served_graph(model: &mut RawMessage) -> Result<usize> {
    let mut serves = Vec::new();
    for meta in model.bytes_mut(2) {
        let mut served = false;
        for info in RawMessage::parse(meta, "MetaGraphDef")?.bytes_mut(1) {
            served |= RawMessage::parse(info, "MetaInfoDef")?.bytes_mut(4).any(|tag| &tag[..] == b"serve");
        }
        serves.push(served);
    }
    Ok(serves.iter().position(|s| *s).unwrap_or(0))
}

/// Applies `change` to the GraphDef of a SavedModel that `import` reads, and returns the new file.
fn in_saved_model(file: &Bytes, change: &mut GraphDefChange) -> Result<Vec<u8>> {
    let mut model = RawMessage::parse(file, "SavedModel")?;
    let chosen = served_graph(&mut model)?;
    for (i, meta) in model.bytes_mut(2).enumerate() {
        if i == chosen {
            *meta = in_meta_graph(meta, change)?.into();
        }
    }
    Ok(model.write())
}
