//! `tfaot cluster`: TensorFlow's auto-clusters, and the reasons for nodes outside.
use super::args::{ClusterArgs, XlaArgs};
use super::clustering::{clustering_options, find, load, log_and_dump};
use super::{ExitStatus, cluster_files, cluster_text, dump, graph, graph_dump, out};
use crate::cluster::{Clustering, ClusteringOptions, NodeVerdict};
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::graph::Program;
use crate::model::ClusterInput;
use crate::package::files;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Prints the clusters in the requested form.
pub fn run(args: &ClusterArgs) -> Result<ExitStatus> {
    if !args.files.emit.is_empty() {
        return cluster_files::run(args);
    }
    let mut options = clustering_options(&args.pass, args.graph.quiet)?;
    options.refused_edges = args.json || args.tsv.is_none();
    tell_of_modules(args.graph.quiet)?;
    let mut request = graph::request(&args.graph)?;
    let ClusterInput { program, gone, .. } = load(&args.graph, &mut request, &mut options)?;
    graph_dump::request_snapshot(&mut options);
    let mut found = find(&args.graph, &program, &options)?;
    let bodies = log_and_dump(&args.graph, &program, &options, &mut found)?;
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
        out::json(&cluster_text::json_document(&program.source, &found, &bodies))?;
    } else if args.tsv.is_none() {
        out::text(&cluster_text::summary_table(&found))?;
        for body in &bodies {
            out::text(&format!("in the function {}:\n{}", body.name, cluster_text::summary_table(&body.clustering)))?;
        }
    }
    let kept = match &args.baseline {
        Some(path) => compare(path, &found)?,
        None => ExitStatus::Yes,
    };
    Ok(if enough(args.min_clustered, &found) { kept } else { ExitStatus::No })
}

/// Prints how the clusters would change if XLA compiled the ops of `--what-if`; `gone` are nodes of the file that preprocessing removed.
fn what_if(
    args: &ClusterArgs,
    program: &Program,
    mut options: ClusteringOptions,
    found: &Clustering,
    gone: Vec<NodeVerdict>,
) -> Result<ExitStatus> {
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
    out::text(&cluster_text::compare_assignments(&old, &then).text)?;
    out::line(format_args!(
        "clusters: {} now, {} then; in clusters: {now:.1} % now, {later:.1} % then",
        found.clusters.len(),
        then.clusters.len()
    ))?;
    Ok(ExitStatus::Yes)
}

/// Notes that no module is dumped although `XLA_FLAGS` request it, because this verb compiles nothing.
fn tell_of_modules(quiet: bool) -> Result<()> {
    if !quiet && dump::dump_flags(&XlaArgs::default())?.is_on() {
        out::note(
            "note: XLA_FLAGS dump nothing here, as `cluster` compiles nothing; `report` and `rewrite --mode native` do",
        );
    }
    Ok(())
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

/// Whether at least the fraction `least` of the nodes is in clusters.
fn enough(least: Option<f64>, found: &Clustering) -> bool {
    let coverage = found.coverage();
    let Some(least) = least.filter(|&least| coverage < least) else { return true };
    out::note(format_args!("{:.4} of the nodes are in clusters, and --min-clustered asks for {least}", coverage));
    false
}

/// Prints how the clusters differ from those of an earlier `--json`; the answer is no if a node left its cluster.
fn compare(path: &Path, found: &Clustering) -> Result<ExitStatus> {
    let text = std::fs::read(path).map_err(|e| io_error("read", path, &e))?;
    let old: Value = serde_json::from_slice(&text).map_err(|e| not_ours(path, &e.to_string()))?;
    let old = old["assignments"].as_object().ok_or_else(|| not_ours(path, "it has no `assignments`"))?;
    let difference = cluster_text::compare_assignments(old, found);
    out::text(&difference.text)?;
    Ok(if difference.lost == 0 { ExitStatus::Yes } else { ExitStatus::No })
}

fn not_ours(path: &Path, why: &str) -> Error {
    Diagnostic::new(Code::BadOption, format!("`{}` is no output of tfaot cluster --json: {why}", path.display())).into()
}
