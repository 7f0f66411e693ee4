//! The graphs of a file that TensorFlow would cluster: the top level, and each function that is called and not itself inside
//! a cluster.
use super::raw::{RawGraph, RawNode};
use super::{Mode, Rewritten, annotate, launch};
use crate::cluster::{self, Clustering, Entrance, Options};
use crate::diag::{Error, Result};
use crate::graph::{Attr, Graph, Node, Program};
use crate::import;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// One graph with its clusters.
pub struct Unit<'p> {
    /// The program, for its functions.
    pub program: &'p Program,
    /// Clustered nodes by name: the cluster.
    pub members: HashMap<String, u32>,
    /// The names of the clusters, different in all units.
    pub names: Vec<String>,
    /// The nodes by name, copies of constants included.
    pub nodes: HashMap<String, &'p Node>,
}

/// Rewrites every unit of `raw`.
pub fn rewrite(
    raw: &mut RawGraph,
    program: &Program,
    options: &Options,
    mode: Mode,
    fetches: &[String],
    told: &mut Rewritten,
) -> Result<()> {
    let mut options = options.clone();
    let mut taken: HashSet<String> = raw.functions.iter().map(|f| f.name.clone()).collect();
    taken.extend(raw.nodes.iter().map(|n| n.name.clone()));
    if cluster::is_dump(&program.graph) {
        options.entrance = Entrance::Dump;
    } else {
        options.entrance = Entrance::Saved;
    }
    let placed = cluster::placed(&program.graph)?;
    let found = cluster::cluster(program, &placed, &options)?;
    let calls = call_sites(program);
    let mut open = cluster::calls_outside(program, &program.graph, &found);
    let mut nodes = std::mem::take(&mut raw.nodes);
    let unit = unit(program, &program.graph, found, &mut nodes, &mut taken, told);
    let mut added = Vec::new();
    match mode {
        Mode::Annotate => annotate::run(&unit, &mut nodes),
        Mode::Xla => added.extend(launch::in_graph(&unit, &mut nodes, fetches)?),
    }
    raw.nodes = nodes;
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    options.entrance = Entrance::Saved;
    while let Some(name) = open.pop() {
        let Some(function) = program.functions.get(&name).filter(|_| seen.insert(name.clone())) else { continue };
        if mode == Mode::Annotate && calls.get(&name).is_some_and(|&n| n > 1) {
            told.notes.push(format!(
                "`{name}` is called from several places and is not marked: inlined, its marks would meet"
            ));
            continue;
        }
        let Some(at) = raw.functions.iter().position(|f| *f.name == *name) else { continue };
        let found = cluster::cluster_function(program, function, &options).map_err(|e| in_function(e, &name))?;
        open.extend(cluster::calls_outside(program, &function.graph, &found));
        let mut body = std::mem::take(&mut raw.functions[at].nodes);
        let unit = unit_of(program, &function.graph, found, &mut body, &mut taken, told);
        match mode {
            Mode::Annotate => annotate::run(&unit, &mut body),
            Mode::Xla => {
                let made = launch::in_function(&unit, &mut body, &mut raw.functions[at]);
                added.extend(made.map_err(|e| in_function(e, &name))?);
            }
        }
        raw.functions[at].nodes = body;
    }
    finish(raw, added)
}

/// Adds the functions of clusters, and puts their arguments in order.
fn finish(raw: &mut RawGraph, mut added: Vec<launch::Made>) -> Result<()> {
    if added.is_empty() {
        return Ok(());
    }
    // What a function must know is told by the analysis of the program that has it.
    let first = raw.functions.len();
    raw.functions.extend(added.iter().map(|made| made.function.clone()));
    let program = import::read_graph_def(&raw.library().into())?;
    let places: HashMap<String, usize> =
        added.iter().enumerate().map(|(i, made)| (made.function.name.clone(), i)).collect();
    let bodies = raw.functions.iter_mut().flat_map(|f| &mut f.nodes);
    for node in raw.nodes.iter_mut().chain(bodies).filter(|n| n.op == "XlaLaunch") {
        if let Some(&at) = places.get(&node.name) {
            launch::ordered(&mut added[at], node, &cluster::constant_args(&program, &node.name))?;
        }
    }
    raw.functions.truncate(first);
    raw.functions.extend(added.into_iter().map(|made| made.function));
    Ok(())
}

fn in_function(error: Error, name: &str) -> Error {
    error.map(|mut d| {
        d.place.function.get_or_insert_with(|| name.to_string());
        d
    })
}

fn unit<'p>(
    program: &'p Program,
    graph: &'p Graph,
    found: Clustering,
    nodes: &mut Vec<RawNode>,
    taken: &mut HashSet<String>,
    told: &mut Rewritten,
) -> Unit<'p> {
    let mut unit = unit_of(program, graph, found, nodes, taken, told);
    keep_feeds_outside(&mut unit, nodes);
    unit
}

/// The clusters of a graph under names of their own; constants that were copied are copied in `nodes`.
fn unit_of<'p>(
    program: &'p Program,
    graph: &'p Graph,
    found: Clustering,
    nodes: &mut Vec<RawNode>,
    taken: &mut HashSet<String>,
    told: &mut Rewritten,
) -> Unit<'p> {
    let mut known: HashMap<String, &Node> = graph.nodes.values().map(|n| (n.name.to_string(), n)).collect();
    copy_constants(&found, nodes, &mut known);
    let mut names = Vec::new();
    for cluster in &found.clusters {
        let mut name = format!("cluster_{}", told.clusters);
        while !taken.insert(name.clone()) {
            name.push_str("_1");
        }
        names.push(name);
        told.clusters += 1;
        told.nodes += cluster.nodes;
    }
    let members = found.nodes.into_iter().filter_map(|n| Some((n.name, n.cluster.ok()?))).collect();
    Unit { program, members, names, nodes: known }
}

/// Makes the copies of constants that clustering made.
fn copy_constants(found: &Clustering, nodes: &mut Vec<RawNode>, known: &mut HashMap<String, &Node>) {
    if found.copies.is_empty() {
        return;
    }
    let places: HashMap<String, usize> = nodes.iter().enumerate().map(|(i, n)| (n.name.clone(), i)).collect();
    for copy in &found.copies {
        let of = known.get(&copy.of).copied();
        let (Some(&from), Some(of)) = (places.get(&copy.of), of) else { continue };
        let made = RawNode { name: copy.name.clone(), ..nodes[from].clone() };
        nodes.push(made);
        known.insert(copy.name.clone(), of);
        let Some(&user) = places.get(&copy.user) else { continue };
        let inputs = &mut nodes[user].inputs;
        match copy.input {
            None => inputs.push(format!("^{}", copy.name)),
            Some(port) => {
                if let Some(input) = inputs.iter_mut().filter(|i| !i.starts_with('^')).nth(port) {
                    let rest = input.find(':').map_or("", |at| &input[at..]);
                    *input = format!("{}{rest}", copy.name);
                }
            }
        }
    }
}

/// A PlaceholderWithDefault may be fed, so it stays outside, with the constant that it defaults to.
fn keep_feeds_outside(unit: &mut Unit, nodes: &[RawNode]) {
    for node in nodes.iter().filter(|n| n.op == "PlaceholderWithDefault") {
        unit.members.remove(&node.name);
        for input in node.inputs.iter().filter(|i| !i.starts_with('^')) {
            let from = input.split(':').next().unwrap_or(input);
            if unit.nodes.get(from).is_some_and(|n| &*n.op == "Const") {
                unit.members.remove(from);
            }
        }
    }
}

/// How often each function is named anywhere in the program.
fn call_sites(program: &Program) -> HashMap<Arc<str>, usize> {
    let mut sites: HashMap<Arc<str>, usize> = HashMap::new();
    let graphs = std::iter::once(&program.graph).chain(program.functions.values().map(|f| &f.graph));
    for node in graphs.flat_map(|g| g.nodes.values()) {
        if program.functions.contains_key(&node.op) {
            *sites.entry(node.op.clone()).or_default() += 1;
        }
        for (_, attr) in &node.attrs {
            match attr {
                Attr::Func(f) => *sites.entry(f.name.clone()).or_default() += 1,
                Attr::Funcs(all) => all.iter().for_each(|f| *sites.entry(f.name.clone()).or_default() += 1),
                _ => {}
            }
        }
    }
    sites
}
