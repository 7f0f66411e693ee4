//! `tfaot cluster`: TensorFlow's auto-clusters, and why nodes are outside.
use super::args::{ClusterArgs, ClusterPassArgs, GraphArgs, XlaArgs};
use super::{Verdict, cluster_files, cluster_text, dump, graph, graph_dump, out};
use crate::cluster::{self, Body, Clustering, Cut, Entrance, JitLevel, Left, Options, Until, Verdict as NodeVerdict};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::Program;
use crate::import;
use crate::infer::Given;
use crate::package::files;
use crate::prepare::{self, FeedSpec, Request};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Prints the clusters.
pub fn run(args: &ClusterArgs) -> Result<Verdict> {
    if !args.files.emit.is_empty() {
        return cluster_files::run(args);
    }
    let mut options = options(&args.pass, args.graph.quiet)?;
    options.refused_edges = args.json || args.tsv.is_none();
    tell_of_modules(args.graph.quiet)?;
    let mut request = graph::request(&args.graph)?;
    let Loaded { program, gone, .. } = load(&args.graph, &mut request, &mut options)?;
    graph_dump::ask(&mut options);
    let mut found = find(&args.graph, &program, &options)?;
    let bodies = tell(&args.graph, &program, &options, &mut found)?;
    if let Some(path) = &args.summary {
        graph_dump::write_summary(path, &found)?;
    }
    found.nodes.extend(gone.clone());
    if !args.what_if.is_empty() {
        return what_if(args, &program, options, &found, gone);
    }
    if let Some(path) = &args.tsv {
        write_tsv(path, &found)?;
    }
    if args.json {
        out::json(&cluster_text::document(&program.source, &found, &bodies))?;
    } else if args.tsv.is_none() {
        out::text(&cluster_text::table(&found))?;
        for body in &bodies {
            out::text(&format!("in the function {}:\n{}", body.name, cluster_text::table(&body.found)))?;
        }
    }
    let kept = match &args.baseline {
        Some(path) => compare(path, &found)?,
        None => Verdict::Yes,
    };
    Ok(if enough(args.min_clustered, &found) { kept } else { Verdict::No })
}

/// Prints how the clusters would change if XLA compiled the ops of `--what-if`; `gone` are nodes of the file that `program` lacks.
fn what_if(
    args: &ClusterArgs,
    program: &Program,
    mut options: Options,
    found: &Clustering,
    gone: Vec<NodeVerdict>,
) -> Result<Verdict> {
    for text in &args.what_if {
        let op = text.strip_prefix("op=").filter(|op| program.graph.nodes.values().any(|n| *n.op == **op));
        let op = op.ok_or_else(|| {
            Diagnostic::new(Code::BadOption, format!("`--what-if {text}` is no change that clusters could depend on"))
                .note("TensorFlow clusters by ops, types and edges; it does not look at sizes")
                .help("--what-if op=NAME with an op of the graph")
        })?;
        options.what_if.push(op.to_string());
    }
    let mut then = find(&args.graph, program, &options)?;
    then.nodes.extend(gone);
    let old = cluster_text::assignments(found);
    let (now, later) = (100.0 * found.coverage(), 100.0 * then.coverage());
    out::text(&cluster_text::difference(&old, &then).text)?;
    out::line(format_args!(
        "clusters: {} now, {} then; in clusters: {now:.1} % now, {later:.1} % then",
        found.clusters.len(),
        then.clusters.len()
    ))?;
    Ok(Verdict::Yes)
}

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

/// Says that no module is dumped where `XLA_FLAGS` ask for that: nothing is compiled here.
fn tell_of_modules(quiet: bool) -> Result<()> {
    if !quiet && dump::flags(&XlaArgs::default())?.is_on() {
        out::note(
            "note: XLA_FLAGS dump nothing here, as `cluster` compiles nothing; `report` and `rewrite --mode native` do",
        );
    }
    Ok(())
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
    let in_file = |e| out::in_file(e, &path.display().to_string());
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
    std::fs::read_to_string(path).map_err(|e| out::io_error("read, which TF_XLA_FLAGS names", path, &e))
}

fn write_tsv(path: &Path, found: &Clustering) -> Result<()> {
    let mut text = String::new();
    for node in &found.nodes {
        let cluster = node.cluster.as_ref().map_or("", |&c| &found.clusters[c as usize].name);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{}\t{cluster}", node.name);
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    files::write_all(folder, &[(name, text.into_bytes())]).map(drop)
}

/// Whether at least this part of the nodes is in clusters.
fn enough(least: Option<f64>, found: &Clustering) -> bool {
    let coverage = found.coverage();
    let Some(least) = least.filter(|&least| coverage < least) else { return true };
    out::note(format_args!("{:.4} of the nodes are in clusters, and --min-clustered asks for {least}", coverage));
    false
}

/// Prints how the clusters differ from those of an earlier `--json`; no where a node is in a cluster no more.
fn compare(path: &Path, found: &Clustering) -> Result<Verdict> {
    let text = std::fs::read(path).map_err(|e| out::io_error("read", path, &e))?;
    let old: Value = serde_json::from_slice(&text).map_err(|e| not_ours(path, &e.to_string()))?;
    let old = old["assignments"].as_object().ok_or_else(|| not_ours(path, "it has no `assignments`"))?;
    let difference = cluster_text::difference(old, found);
    out::text(&difference.text)?;
    Ok(if difference.lost == 0 { Verdict::Yes } else { Verdict::No })
}

fn not_ours(path: &Path, why: &str) -> Error {
    Diagnostic::new(Code::BadOption, format!("`{}` is no output of tfaot cluster --json: {why}", path.display())).into()
}
