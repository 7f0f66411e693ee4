//! Analysis of a graph: its clusters, and the inferred facts about its tensors.
use super::{ClusterInput, ModelFile};
use crate::cluster::{self, Clustering, ClusteringOptions, GraphOrigin};
use crate::diag::Result;
use crate::graph::Program;
use crate::infer::{self, Facts};
use crate::prepare::{self, FeedSpec, Request};
use crate::report;
use std::collections::HashMap;

/// A graph with its clusters and the inferred facts about its tensors.
pub struct Analysis {
    /// The program as TensorFlow's clustering pass receives it, plus the copies of constants that clustering made.
    pub program: Program,
    /// Clusters of the graph, with the edges that were not merged.
    pub found: Clustering,
    /// Inferred types, shapes and values of the tensors.
    pub facts: Facts,
    /// Options with which the clusters were formed.
    pub options: ClusteringOptions,
    /// Number of nodes of the file that preprocessing removed.
    pub gone: usize,
    /// Assumptions, one sentence each.
    pub assumed: Vec<String>,
    /// By output of an argument of the pruned graph: the tensor of the file that it replaces.
    pub fed: HashMap<String, String>,
}

/// Callback that receives the clusters before they are analysed, to log, name or dump them.
pub type ClustersCallback<'a> = dyn FnMut(&Program, &ClusteringOptions, &mut Clustering) -> Result<()> + 'a;

impl Analysis {
    /// Clusters a program and infers its tensors. `request` and `options` are as [`super::load_for_clustering`] left them.
    ///
    /// # Errors
    /// Errors of clustering, inference and `on_clusters`.
    pub fn new(
        model: &ModelFile,
        input: ClusterInput,
        mut request: Request,
        options: ClusteringOptions,
        on_clusters: &mut ClustersCallback,
    ) -> Result<Analysis> {
        let mut program = input.program;
        let found = cluster::cluster(&program, &program.graph, &options);
        let mut found = found.map_err(|e| e.in_file(&model.path))?;
        on_clusters(&program, &options, &mut found)?;
        report::add_constant_copies(&mut program, &found);
        let saved = options.origin == GraphOrigin::Saved;
        let fed = if saved { name_arguments(&mut request) } else { HashMap::new() };
        let facts = facts(&mut program, request, saved).map_err(|e| e.in_file(&model.path))?;
        Ok(Analysis { program, found, facts, options, gone: input.gone.len(), assumed: input.assumed, fed })
    }
}

/// Renames feeds to the arguments that pruning made of them; returns the original tensors by the arguments' outputs.
fn name_arguments(request: &mut Request) -> HashMap<String, String> {
    let mut fed = HashMap::new();
    if request.fetches.is_empty() {
        return fed;
    }
    for (i, feed) in request.feeds.iter_mut().enumerate() {
        let (name, port) = feed.name.rsplit_once(':').unwrap_or((&feed.name, "0"));
        let (argument, tensor) = (format!("_arg_{name}_{port}_{i}"), format!("{name}:{port}"));
        fed.insert(format!("{argument}:0"), tensor);
        feed.name = argument;
    }
    fed
}

/// Infers types, shapes and values of the tensors of a program to be clustered. A feed that pruning made an argument has the
/// argument's name.
fn facts(program: &mut Program, mut request: Request, saved: bool) -> Result<Facts> {
    // Calls are inlined: nodes that signatures name may be gone, and Placeholders exist whichever signature is called.
    program.signatures.clear();
    request.signatures.clear();
    if saved {
        // fetches are found as the inputs of the `_Retval`s, whatever became of their names
        request.fetches.clear();
    }
    let graph = &program.graph;
    for node in graph.nodes.values().filter(|n| &*n.op == "_Arg") {
        let of_node = |f: &FeedSpec| f.name.split(':').next() == Some(&*node.name);
        if !request.feeds.iter().any(of_node) {
            request.feeds.push(FeedSpec { name: node.name.to_string(), ..FeedSpec::default() });
        }
    }
    if request.fetches.is_empty() {
        // A fetch in a dump of TensorFlow is an input of a node without outputs.
        let fetched = graph.nodes.values().filter(|n| &*n.op == "_Retval").flat_map(|n| n.inputs.iter());
        request.fetches.extend(fetched.map(|e| format!("{}:{}", graph.nodes[e.node].name, e.port)));
    }
    let open = prepare::resolve_request(program, &request)?;
    Ok(infer::infer(program, &open.feeds))
}
