//! `tfaot cluster --emit`: compiles each cluster into separate files, and describes how they are connected.
//!
//! Clusters are those of TensorFlow's pass, and calls of functions marked with `jit_compile=True`, each of which the user declared a
//! cluster.
use super::args::{ClusterArgs, Emit};
use super::clustering::analyze;
use super::{ExitStatus, compile as verb, dump, graph, out};
use crate::cluster::ExclusionReason;
use crate::codegen::Launches;
use crate::compile::{self, Compiled, Functions};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::dump::DumpFlags;
use crate::graph::{Endpoint, NodeId, is_handle};
use crate::hlo::{proto, text};
use crate::lower::{Feed, Lowered};
use crate::model::Analysis;
use crate::package::clusters::{self, ClusterChain, ClusterObject, ClusterTensor};
use crate::package::cpp::ClassName;
use crate::package::{files, names};
use crate::report::{self, ClusterBorder};
use crate::target::CodeRequest;
use crate::tensor::TensorInfo;
use crate::util::id_vec::Id;
use crate::util::pieces::Pieces;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// A cluster to be compiled.
struct ClusterJob {
    /// The cluster's name.
    name: String,
    /// The marked function, if the user declared the cluster.
    function: Option<String>,
    /// Number of nodes in the cluster.
    nodes: u64,
}

/// A compiled cluster.
struct ClusterBuild {
    part: ClusterBorder,
    built: Compiled,
    /// Symbols that the object's user must define.
    needs: Vec<String>,
    files: Vec<(String, Pieces)>,
}

/// Writes the files of the clusters; the exit status is 1 if one could not be compiled.
pub fn run(args: &ClusterArgs) -> Result<ExitStatus> {
    let flags = dump::dump_flags(&args.files.xla)?;
    let requests = graph::portable_code_requests(&args.files.target)?;
    let mut scene = analyze(&args.graph, &args.pass)?;
    let (wanted, member) = wanted(&scene);
    chosen(&args.files.only, &wanted)?;
    let in_part = |id: NodeId| member.get(id.index()).copied().flatten();
    report::fold_known_inputs(&mut scene.program, &scene.facts, &in_part);
    let order = report::sort_topologically(&scene.program.graph, &in_part, wanted.len());
    let idents = identifiers(args.files.name.as_deref(), &wanted)?;
    let mut chain = ClusterChain { source: compile::source_name(&args.graph.graph), ..ClusterChain::default() };
    let (mut parts, mut all, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut needs: Vec<String> = Vec::new();
    let mut compiled = HashSet::new();
    for at in order.into_iter().filter(|&at| is_asked(&args.files.only, &wanted[at].name)) {
        let inside = |id: NodeId| in_part(id) == Some(at as u32);
        match compile_cluster(args, &flags, &scene, &inside, &idents[at], &requests) {
            Ok(made) => {
                compiled.insert(at as u32);
                chain.pieces.push(piece(&wanted[at], &made));
                parts.push(made.part);
                needs.extend(made.needs.into_iter().filter(|need| !needs.contains(need)).collect::<Vec<_>>());
                all.extend(made.files);
            }
            Err(Error::User(why)) => {
                refused.extend(why.iter().map(|d| blamed(d, &wanted[at].name)));
                chain.refused.push((wanted[at].name.clone(), wanted[at].nodes, reasons(&why)));
            }
            Err(internal) => return Err(internal),
        }
    }
    wire(&mut chain, &parts, &scene, &|id| in_part(id).is_some_and(|at| compiled.contains(&at)));
    // files common to all clusters are written once
    let mut names = HashSet::new();
    all.retain(|(name, _): &(String, Pieces)| names.insert(name.clone()));
    all.push(("clusters.json".to_string(), clusters::clusters_json(&chain).into()));
    // a program that only runs the clusters has no other ranks
    let alone = chain.pieces.iter().all(|piece| piece.face.ranks.is_none());
    if args.files.emit.contains(&Emit::Header) && !chain.pieces.is_empty() && alone {
        all.push(("main.c".to_string(), clusters::main_source(&chain).into()));
    }
    let folder = args.files.out.as_deref().unwrap_or(std::path::Path::new("."));
    verb::report_written_files(&files::write_all(folder, &all)?, &needs)?;
    if refused.is_empty() {
        return Ok(ExitStatus::Yes);
    }
    out::error(Error::User(refused).map(|mut d| {
        d.place.file.get_or_insert_with(|| args.graph.graph.display().to_string());
        d
    }));
    Ok(ExitStatus::No)
}

/// The clusters of a graph, and by node the index of its cluster.
fn wanted(scene: &Analysis) -> (Vec<ClusterJob>, Vec<Option<u32>>) {
    let mut all: Vec<ClusterJob> = Vec::new();
    for cluster in &scene.found.clusters {
        all.push(ClusterJob { name: cluster.name.clone(), function: None, nodes: cluster.nodes });
    }
    let verdicts: HashMap<&str, _> = scene.found.nodes.iter().map(|v| (v.name.as_str(), &v.cluster)).collect();
    let nodes = &scene.program.graph.nodes;
    let mut member = vec![None; nodes.len()];
    for (id, node) in nodes.iter() {
        member[id.index()] = match verdicts.get(&*node.name) {
            Some(Ok(at)) => Some(*at),
            Some(Err(ExclusionReason::OwnCluster(function))) => {
                let function = Some(function.to_string());
                all.push(ClusterJob { name: node.name.to_string(), function, nodes: 1 });
                Some(all.len() as u32 - 1)
            }
            Some(Err(_)) | None => None,
        };
    }
    (all, member)
}

/// Checks the names in `--only`. Errors: `Code::BadOption` for a name that no cluster has.
fn chosen(only: &[String], wanted: &[ClusterJob]) -> Result<()> {
    let Some(missing) = only.iter().find(|name| !wanted.iter().any(|w| w.name == **name)) else { return Ok(()) };
    let told = format!("there is no cluster `{missing}`");
    let known: Vec<&str> = wanted.iter().take(8).map(|w| w.name.as_str()).collect();
    let more = if wanted.len() > known.len() { ", ..." } else { "" };
    let help = format!("the clusters are {}{more}; `tfaot cluster` lists them", known.join(", "));
    Err(Diagnostic::new(Code::BadOption, told).help(help).into())
}

fn is_asked(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|o| o == name)
}

/// Unique C names of the clusters.
fn identifiers(prefix: Option<&str>, wanted: &[ClusterJob]) -> Result<Vec<String>> {
    if let Some(prefix) = prefix {
        graph::model_name(Some(prefix), std::path::Path::new(""))?;
    }
    let of = |w: &ClusterJob| match prefix {
        Some(prefix) => format!("{prefix}_{}", w.name),
        None => w.name.clone(),
    };
    let names: Vec<String> = wanted.iter().map(of).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(names::function_suffixes(&names))
}

/// Compiles one cluster. Errors: those of determining its border, lowering and compiling it.
fn compile_cluster(
    args: &ClusterArgs,
    flags: &DumpFlags,
    scene: &Analysis,
    inside: &dyn Fn(NodeId) -> bool,
    name: &str,
    requests: &[CodeRequest],
) -> Result<ClusterBuild> {
    let mut part = report::cluster_border(&scene.program, &scene.facts, inside)?;
    if part.fetches.is_empty() && part.variables.is_empty() {
        return Err(Diagnostic::new(Code::UnsupportedCase, "the cluster has no result").into());
    }
    for feed in &mut part.feeds {
        if let Some(tensor) = scene.fed.get(&feed.info.name) {
            feed.info.name.clone_from(tensor);
        }
        feed.info.field.clear();
    }
    let (mut lowered, variables) = compile::lower_part(&scene.program, &part)?;
    if lowered.results.is_empty() {
        return Err(Diagnostic::new(Code::UnsupportedCase, "the cluster has no result, and changes no variable").into());
    }
    for variable in variables {
        let at = Endpoint { node: variable.handle, port: 0 };
        part.fetches.extend(variable.changed.then(|| (variable.info.name.clone(), at)));
        part.feeds.push(Feed { at, info: variable.info });
    }
    lowered.module.name = name.to_string();
    let mut files = if args.files.emit.contains(&Emit::Hlo) { module_files(&lowered, name)? } else { Vec::new() };
    let mut dumped = dump::start(flags, &lowered.module);
    let source = compile::source_name(&args.graph.graph);
    let functions = Functions { all: vec![(name.to_string(), lowered)], init: None };
    let built = compile::build_functions(
        functions,
        name,
        &source,
        requests,
        Launches::Direct,
        std::slice::from_mut(&mut dumped),
    );
    let built = built.and_then(|b| {
        let module = b.modules.first().ok_or_else(|| Error::internal("cluster", "nothing was compiled"))?;
        dump::add_results(&mut dumped, module, &b.programs(), &b.object.content)?;
        Ok(b)
    });
    // Dumps up to an error help to find its cause.
    dump::write(flags, dumped)?;
    let built = built?;
    let others: Vec<Emit> = args.files.emit.iter().copied().filter(|e| *e != Emit::Hlo).collect();
    files.extend(verb::file_contents(&others, &built, &ClassName::of_model(name), None)?);
    let needs = verb::required_functions(&built);
    Ok(ClusterBuild { part, built, needs, files })
}

/// The module in the form that XLA would receive: text, and HloProto.
fn module_files(lowered: &Lowered, name: &str) -> Result<Vec<(String, Pieces)>> {
    let style = text::Style { large_constants: true, metadata: true };
    let printed = text::print_with(&lowered.module, style);
    Ok(vec![
        (format!("{name}.hlo"), printed.into()),
        (format!("{name}.hlo.pb"), proto::encode_laid_out(&lowered.module)?.into()),
    ])
}

fn piece(wanted: &ClusterJob, made: &ClusterBuild) -> ClusterObject {
    ClusterObject {
        cluster: wanted.name.clone(),
        function: wanted.function.clone(),
        nodes: wanted.nodes,
        face: made.built.bundle.face.clone(),
        args: Vec::new(),
        results: Vec::new(),
        files: made.files.iter().map(|(name, _)| name.clone()).collect(),
    }
}

/// Connects the arguments and results of clusters to tensors of the graph; `inside` holds for nodes in a cluster.
fn wire(chain: &mut ClusterChain, parts: &[ClusterBorder], scene: &Analysis, inside: &dyn Fn(NodeId) -> bool) {
    let nodes = &scene.program.graph.nodes;
    let mut taken: HashSet<Endpoint> = HashSet::new();
    for (_, node) in nodes.iter().filter(|(id, _)| !inside(*id)) {
        taken.extend(node.inputs.iter().copied());
    }
    let mut numbers: HashMap<Endpoint, usize> = HashMap::new();
    let mut used: HashSet<Endpoint> = parts.iter().flat_map(|p| p.feeds.iter().map(|f| f.at)).collect();
    used.extend(&taken);
    let ClusterChain { pieces, tensors, .. } = chain;
    for (at, (piece, part)) in pieces.iter_mut().zip(parts).enumerate() {
        let program = piece.face.entries.first().map(|e| e.program.clone()).unwrap_or_default();
        let mut wire = |end: Endpoint, info: &TensorInfo, from: Option<usize>| {
            let op = nodes[end.node].op.to_string();
            // a value assigned to a variable stays in the variable
            let is_kept = is_handle(&nodes[end.node]) || taken.contains(&end) || !used.contains(&end);
            tensors.push(ClusterTensor { info: info.clone(), op, from, leaves: from.is_some() && is_kept });
            tensors.len() - 1
        };
        for (feed, info) in part.feeds.iter().zip(&program.args) {
            piece.args.push(*numbers.entry(feed.at).or_insert_with(|| wire(feed.at, info, None)));
        }
        // later clusters take the current value of a variable that changes
        for (fetch, info) in part.fetches.iter().zip(&program.results) {
            let number = wire(fetch.1, info, Some(at));
            numbers.insert(fetch.1, number);
            piece.results.push(number);
        }
    }
}

/// The diagnostic with the cluster's name in its message.
fn blamed(d: &Diagnostic, cluster: &str) -> Diagnostic {
    let mut d = d.clone();
    d.message = format!("`{cluster}` can't be compiled: {}", d.message);
    d
}

/// Diagnostics in the format of `clusters.json`.
fn reasons(all: &[Diagnostic]) -> Value {
    let one = |d: &Diagnostic| json!({"code": d.code.id(), "node": d.place.node, "op": d.place.op, "reason": d.message, "help": d.help});
    all.iter().map(one).collect()
}
