//! A saved graph with its clusters in it: marked with `_XlaCluster`, as functions that stock TensorFlow compiles when they are
//! called, or as calls of machine code in a shared library.
//!
//! The file is taken apart only as far as nodes, inputs and attributes; everything else is copied byte for byte, so that what
//! tfaot does not know survives. `units` finds the graphs of a file that TensorFlow would cluster, `calls` cuts clusters out of
//! one, `annotate`, `launch` and `native` say what becomes of them, `raw` reads and writes.
//!
//! # How it works
//!
//! - Files are taken apart as far as nodes, inputs and attributes (`raw.rs`); the rest keeps its bytes. `units.rs` finds the
//!   graphs that TensorFlow would cluster, `calls.rs` cuts clusters out of one, `annotate.rs`, `launch.rs` and `native/` say
//!   what stands for them.
//! - `native`: what can't be compiled (variables, unknown shapes, what the lowering refuses) is taken out *before* clusters
//!   are formed, round by round, so that TensorFlow's rules hold for those that remain. A cluster is lowered between its
//!   ports with the shapes of `infer/`; values that follow from shapes are compiled in.
//! - In the graph a cluster is a `Tfaot_..._fits` op (processor, shapes, values) and an `If` that TensorFlow lowers to Switch
//!   and Merge: one side is the op of the library, the other calls a function with the cluster's own nodes, kept from being
//!   inlined so that a step visits one dead node and not all.
//! - The library speaks TensorFlow's C ABI alone. Its glue is C (`native/glue/glue.c`) that is kept as LLVM's text beside it
//!   (`tools/make_glue`), because it is written once, must read well, and no C compiler may be needed where tfaot runs; what
//!   differs between libraries is a table. The C ABI gives no thread pool, so the library has that of
//!   `package/pool.rs`, the same that users are given and that `run/pool.rs` loads: a call that finds it taken
//!   runs alone. Workspaces are kept warm, one for each call that was ever under way at once.
mod annotate;
mod calls;
mod launch;
mod jit_functions;
mod meta_graph;
mod native;
mod units;

use crate::cluster::{Clustering, Options};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::dump::Dumps;
use crate::graph::{Program, Variable};
use crate::import::FileFormat;
use crate::import::raw::{Message, RawGraph};
use crate::prepare::{self, ReachableParts};
use bytes::Bytes;
use meta_graph::ExternalNames;
use native::Library;
use std::collections::HashSet;
use std::sync::Arc;
use units::Rewriter;

pub use native::Native;

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
    /// Nodes carry `_XlaCluster`.
    Annotate,
    /// Clusters are functions, called by nodes that TensorFlow compiles.
    Xla,
    /// Clusters are ops of a shared library.
    Native(&'a Native),
}

/// Options of the rewriting of a file.
#[derive(Debug)]
pub struct RewriteOptions<'a> {
    /// How clusters are formed.
    pub options: &'a Options,
    /// The form in which clusters are written.
    pub mode: Mode<'a>,
    /// Tensors (`node` or `node:index`) that must keep their names; the outputs of signatures and what no node uses keep
    /// theirs anyway.
    pub fetches: Vec<String>,
    /// The signature that the graph is rewritten for; all of them where none is named.
    pub signature: Option<String>,
    /// Tensors that are fed, whose nodes stay outside of clusters.
    pub feeds: Vec<String>,
    /// Variables with values: those that no signature changes become constants of compiled code.
    pub variables: Vec<Variable>,
    /// The file name of the shared library, where one is made.
    pub library: &'a str,
    /// How the modules of compiled clusters are dumped, if they are.
    pub dumps: Option<Dumps>,
}

/// A rewritten file.
#[derive(Debug, Default)]
pub struct Rewritten {
    /// The file's content, in the binary form of the format that came in.
    pub bytes: Vec<u8>,
    /// The shared library that it needs, where clusters were compiled.
    pub library: Option<Vec<u8>>,
    /// Number of clusters in the rewritten graph.
    pub clusters: usize,
    /// The nodes in them.
    pub nodes: u64,
    /// Assumptions made because the caller did not say, a sentence each.
    pub assumed: Vec<String>,
    /// Nodes that were left as they are and why, a sentence each.
    pub notes: Vec<String>,
    /// The clusters as they were formed at last, where the options ask for what the pass has seen: those of the graph first
    /// (no name), then those of the bodies of functions.
    pub formed: Vec<(Option<Arc<str>>, Clustering)>,
    /// The dumps of modules.
    pub dumped: Vec<(String, Vec<u8>)>,
}

/// Rewrites `file`, which is of the binary format `format` and holds `program`. What no signature reaches (savers, initialisers)
/// stays as it is, where there are signatures.
///
/// # Errors
/// `BadEncoding`, `BadOption` for a signature that is not there, those of clustering, `UnsupportedCase` for a node of a
/// cluster whose types TensorFlow's definitions do not tell; where clusters are compiled, also `UnknownTensor` for feeds,
/// `NoLinker`, and `UnsupportedCase` if none could be.
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
    named.nodes.extend(request.feeds.iter().map(|f| meta_graph::node(f).to_string()));
    let served = served(program, request)?;
    let library = match request.mode {
        Mode::Native(native) => {
            let asked = format!(
                "{:?} {:?} {} {:?} {fetches:?}",
                request.options.flags, request.options.until, request.options.beyond_xla, request.options.checks
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
    rewriter.steps = named.steps(&program.graph);
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
    let (library, mut told, blocked) = (rewriter.library, rewriter.told, rewriter.blocked);
    told.bytes = bytes;
    if let Some(mut library) = library {
        told.dumped = std::mem::take(&mut library.dumped);
        told.assumed = std::mem::take(&mut library.assumed);
        told.notes.extend(library.shortfall(blocked.contractions)?.map(|told| format!("warning: {told}")));
        let nothing = || native::nothing(&told.notes, &blocked.outside.in_words(), blocked.sizes);
        let made = library.finish(request.library)?.ok_or_else(nothing)?;
        told.library = Some(made);
    }
    Ok(told)
}

/// The part of the program that signatures and fetches reach; `None` where that is all of it.
fn served(program: &Program, request: &RewriteOptions) -> Result<Option<ReachableParts>> {
    let asked = prepare::Request {
        signatures: request.signature.iter().cloned().collect(),
        fetches: request.fetches.clone(),
        ..prepare::Request::default()
    };
    prepare::reachable_from_signatures(program, &asked)
}

/// The GraphDef in `file`, which is of the binary format `format`; `None` where that holds none in protobuf's form.
///
/// # Errors
/// `BadEncoding`.
pub fn graph_in(file: &Bytes, format: FileFormat) -> Result<Option<RawGraph>> {
    let mut found = None;
    with_graph(file, format, &mut |graph| {
        found = Some(graph.clone());
        Ok(graph.to_vec())
    })?;
    found.map(|graph| RawGraph::parse(&graph)).transpose()
}

/// `file`, which is of the binary format `format`, with what `change` makes of the GraphDef in it; `None` where it holds none in
/// protobuf's form.
///
/// # Errors
/// `BadEncoding`, and those of `change`.
pub fn with_graph(file: &Bytes, format: FileFormat, change: &mut GraphDefChange) -> Result<Option<Vec<u8>>> {
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

/// Makes the bytes of another GraphDef of those of one.
pub type GraphDefChange<'a> = dyn FnMut(&Bytes) -> Result<Vec<u8>> + 'a;

fn in_meta_graph(file: &Bytes, change: &mut GraphDefChange) -> Result<Vec<u8>> {
    let mut meta = Message::parse(file, "MetaGraphDef")?;
    let mut there = HashSet::new();
    for graph in meta.bytes_mut(2) {
        *graph = change(graph)?.into();
        there.extend(RawGraph::parse(graph)?.nodes.into_iter().map(|node| node.name));
    }
    meta_graph::without_gone(&mut meta, &|name| there.contains(meta_graph::node(name)))?;
    Ok(meta.write())
}

/// The MetaGraphDef in `file` that is rewritten; `None` where the format has none.
fn meta_graph(file: &Bytes, format: FileFormat) -> Result<Option<Message>> {
    match format {
        FileFormat::MetaGraph => Message::parse(file, "MetaGraphDef").map(Some),
        FileFormat::SavedModel => {
            let mut model = Message::parse(file, "SavedModel")?;
            let chosen = served_graph(&mut model)?;
            model.bytes_mut(2).nth(chosen).map(|meta| Message::parse(meta, "MetaGraphDef")).transpose()
        }
        _ => Ok(None),
    }
}

/// The index of the graph of a SavedModel that `import` reads: the one with the tag `serve`, or the only one.
fn served_graph(model: &mut Message) -> Result<usize> {
    let mut serves = Vec::new();
    for meta in model.bytes_mut(2) {
        let mut served = false;
        for info in Message::parse(meta, "MetaGraphDef")?.bytes_mut(1) {
            served |= Message::parse(info, "MetaInfoDef")?.bytes_mut(4).any(|tag| &tag[..] == b"serve");
        }
        serves.push(served);
    }
    Ok(serves.iter().position(|s| *s).unwrap_or(0))
}

/// Rewrites the graph that `import` reads.
fn in_saved_model(file: &Bytes, change: &mut GraphDefChange) -> Result<Vec<u8>> {
    let mut model = Message::parse(file, "SavedModel")?;
    let chosen = served_graph(&mut model)?;
    for (i, meta) in model.bytes_mut(2).enumerate() {
        if i == chosen {
            *meta = in_meta_graph(meta, change)?.into();
        }
    }
    Ok(model.write())
}
