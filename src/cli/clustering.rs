//! Preparation common to the verbs on clusters: reading and preprocessing a graph, options of the pass, forming clusters.
use super::args::{ClusterPassArgs, GraphArgs};
use super::{graph, graph_dump, out};
use crate::cluster::{self, Clustering, ClusteringOptions, FunctionClustering, JitLevel, StopAfterPass};
use crate::diag::{Result, io_error};
use crate::graph::Program;
use crate::model::{Analysis, ClusterInput, ModelFile, load_for_clustering};
use crate::prepare::Request;
use std::path::Path;

/// Clusters the function bodies that nodes outside of clusters call, and logs and dumps all clusters.
pub fn log_and_dump(
    args: &GraphArgs,
    program: &Program,
    options: &ClusteringOptions,
    found: &mut Clustering,
) -> Result<Vec<FunctionClustering>> {
    let bodies = cluster::cluster_functions(program, &program.graph, found, options);
    let mut bodies = bodies.map_err(|e| graph::with_file(e, args))?;
    let told = graph_dump::DumpedProgram { path: &args.graph, format: args.format.as_deref(), program, options };
    told.log_and_dump(found, &mut bodies)?;
    Ok(bodies)
}

/// Loads the graph of the arguments for clustering; a signature in `request` becomes its feeds and fetches. Prints assumptions.
pub fn load(args: &GraphArgs, request: &mut Request, options: &mut ClusteringOptions) -> Result<ClusterInput> {
    load_file(&model_file(args), args.quiet, request, options)
}

/// The model file that the arguments name.
pub fn model_file(args: &GraphArgs) -> ModelFile {
    ModelFile::open(&args.graph).with_format(args.format.as_deref())
}

/// Loads and preprocesses the program of a file for clustering. Prints assumptions to standard error.
pub fn load_file(
    model: &ModelFile,
    quiet: bool,
    request: &mut Request,
    options: &mut ClusteringOptions,
) -> Result<ClusterInput> {
    let input = load_for_clustering(model, request, options)?;
    input.assumed.iter().filter(|_| !quiet).for_each(|a| out::note(format_args!("note: {a}")));
    Ok(input)
}

/// Clusters a program that [`load`] returned.
pub fn find(args: &GraphArgs, program: &Program, options: &ClusteringOptions) -> Result<Clustering> {
    cluster::cluster(program, &program.graph, options).map_err(|e| graph::with_file(e, args))
}

/// Options of the pass from the environment and the command line.
pub fn clustering_options(args: &ClusterPassArgs, quiet: bool) -> Result<ClusteringOptions> {
    let mut options = ClusteringOptions::default();
    if args.declustered {
        options.last_pass = StopAfterPass::Declustering;
    }
    let environment = std::env::var("TF_XLA_FLAGS").unwrap_or_default();
    let environment = from_file(&environment)?;
    for text in [environment.as_str(), args.tf_xla_flags.as_deref().unwrap_or("")] {
        options.flags.parse(text).into_iter().for_each(|w| out::note(format_args!("warning: {w}")));
    }
    let mut assumed = Vec::new();
    if !options.flags.auto_jit_given {
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

/// The flags in TF_XLA_FLAGS, which holds either flags or the name of a file with flags.
fn from_file(text: &str) -> Result<String> {
    if text.trim().is_empty() || text.trim_start().starts_with('-') {
        return Ok(text.to_string());
    }
    let path = Path::new(text);
    std::fs::read_to_string(path).map_err(|e| io_error("read, which TF_XLA_FLAGS names", path, &e))
}

/// Clusters the graph of the arguments and infers its tensors; logs and dumps the clusters on request.
pub fn analyze(args: &GraphArgs, pass: &ClusterPassArgs) -> Result<Analysis> {
    let mut options = clustering_options(pass, args.quiet)?;
    options.refused_edges = true;
    let mut request = graph::request(args)?;
    let input = load(args, &mut request, &mut options)?;
    graph_dump::request_snapshot(&mut options);
    let mut dump = |program: &Program, options: &ClusteringOptions, found: &mut Clustering| match options.snapshot {
        true => log_and_dump(args, program, options, found).map(drop),
        false => Ok(()),
    };
    Analysis::new(&model_file(args), input, request, options, &mut dump)
}
