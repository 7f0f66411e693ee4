//! What the verbs about clusters begin with: a graph brought to what TensorFlow's pass sees, the flags of the pass, its clusters.
use super::args::{ClusterPassArgs, GraphArgs};
use super::{graph, graph_dump, out};
use crate::cluster::{self, Body, Clustering, Cut, Entrance, JitLevel, Left, Options, Until, Verdict as NodeVerdict};
use crate::diag::{Error, Result, io_error};
use crate::graph::Program;
use crate::hlo;
use crate::import;
use crate::infer::Given;
use crate::prepare::{self, FeedSpec, Request};
use std::path::Path;

/// A program, brought to what TensorFlow's pass sees.
pub struct Loaded {
    /// The program.
    pub program: Program,
    /// The nodes of the file that it has no more.
    pub gone: Vec<NodeVerdict>,
    /// What was assumed, a sentence each; it went to standard error.
    pub assumed: Vec<String>,
}

/// The clusters of the bodies that `found`, those of the graph, leaves to be called; both are logged and dumped.
pub fn tell(args: &GraphArgs, program: &Program, options: &Options, found: &mut Clustering) -> Result<Vec<Body>> {
    let bodies = cluster::cluster_functions(program, &program.graph, found, options);
    let mut bodies = bodies.map_err(|e| graph::in_file(e, args))?;
    let told = graph_dump::Told { path: &args.graph, format: args.format.as_deref(), program, options };
    told.tell(found, &mut bodies)?;
    Ok(bodies)
}

/// The program of the flags; a signature that `request` names becomes its feeds and fetches.
pub fn load(args: &GraphArgs, request: &mut Request, options: &mut Options) -> Result<Loaded> {
    load_file(&args.graph, args.format.as_deref(), args.quiet, request, options)
}

/// The program at `path`, brought to what TensorFlow's pass sees.
pub fn load_file(
    path: &Path,
    format: Option<&str>,
    quiet: bool,
    request: &mut Request,
    options: &mut Options,
) -> Result<Loaded> {
    let mut program = import::load_as_saved(path, format)?;
    let in_file = |e: Error| e.in_file(path);
    name_ends(&program, request).map_err(in_file)?;
    if cluster::is_dump(&program.graph) {
        return Ok(Loaded { program, gone: Vec::new(), assumed: Vec::new() });
    }
    options.entrance = Entrance::Saved;
    let feeds = request.feeds.iter().map(|f| f.name.clone()).collect();
    let brought = cluster::bring(&mut program, &Cut { feeds, fetches: request.fetches.clone() }).map_err(in_file)?;
    brought.assumed.iter().filter(|_| !quiet).for_each(|a| out::note(format_args!("note: {a}")));
    let gone = brought.gone.into_iter().map(|(name, op, expanded)| NodeVerdict {
        name,
        op,
        cluster: Err(if expanded { Left::Expanded } else { Left::Pruned }),
    });
    Ok(Loaded { program, gone: gone.collect(), assumed: brought.assumed })
}

/// Puts the feeds and fetches of the signature that `request` takes in its place, or those of all signatures where it leaves open
/// which is meant, and tensors in the place of names that are a signature's. A request with fetches of its own, and one of a file
/// without signatures, keeps what it has. Errors: `BadOption` for a signature that is not there.
fn name_ends(program: &Program, request: &mut Request) -> Result<()> {
    let says = !request.fetches.is_empty() || !prepare::has_signature(program);
    if request.signatures.is_empty() && says {
        *request = prepare::in_tensor_names(program, request);
        return Ok(());
    }
    let ends = prepare::open(program, &prepare::of_all_signatures(program, request))?;
    request.signatures.clear();
    request.fetches = ends.fetches.into_iter().map(|(name, _)| name).collect();
    let feed = |given: Given| FeedSpec {
        name: format!("{}:{}", program.graph.nodes[given.at.node].name, given.at.port),
        value: given.value.as_ref().map(hlo::text::print_elements),
        dtype: given.dtype.and_then(|of| of.dtype()),
        dims: given.shape.0.map(|dims| dims.to_vec()),
        ..FeedSpec::default()
    };
    request.feeds = ends.feeds.into_iter().map(feed).collect();
    Ok(())
}

/// The clusters of a program that was loaded here.
pub fn find(args: &GraphArgs, program: &Program, options: &Options) -> Result<Clustering> {
    cluster::cluster(program, &program.graph, options).map_err(|e| graph::in_file(e, args))
}

/// The flags of the environment and the command line.
pub fn options(args: &ClusterPassArgs, quiet: bool) -> Result<Options> {
    let mut options = Options::default();
    if args.declustered {
        options.until = Until::Declustered;
    }
    let environment = std::env::var("TF_XLA_FLAGS").unwrap_or_default();
    let environment = from_file(&environment)?;
    for text in [environment.as_str(), args.tf_xla_flags.as_deref().unwrap_or("")] {
        options.flags.parse(text).into_iter().for_each(|w| out::note(format_args!("warning: {w}")));
    }
    let mut assumed = Vec::new();
    if !options.flags.level_is_said {
        options.session_level = Some(JitLevel::On);
        assumed.push("--tf_xla_auto_jit=2");
    }
    if options.flags.cpu_global_jit.is_none() {
        options.flags.cpu_global_jit = Some(true);
        assumed.push("--tf_xla_cpu_global_jit");
    }
    if !assumed.is_empty() && !quiet {
        out::note(format_args!("note: assumed {}, as no flag says otherwise", assumed.join(" ")));
    }
    Ok(options)
}

/// TF_XLA_FLAGS holds flags, or names a file that does.
fn from_file(text: &str) -> Result<String> {
    if text.trim().is_empty() || text.trim_start().starts_with('-') {
        return Ok(text.to_string());
    }
    let path = Path::new(text);
    std::fs::read_to_string(path).map_err(|e| io_error("read, which TF_XLA_FLAGS names", path, &e))
}
