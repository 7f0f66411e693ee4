//! A graph with its clusters and the facts that are known of its tensors.
use super::{ClusterInput, ModelFile};
use crate::cluster::{self, Clustering, Entrance, Options};
use crate::diag::Result;
use crate::graph::Program;
use crate::infer::{self, Facts};
use crate::prepare::{self, FeedSpec, Request};
use crate::report;
use std::collections::HashMap;

/// A graph with its clusters and the facts that are known of its tensors.
pub struct Analysis {
    /// The program as TensorFlow's clustering pass receives it, with the copies of constants that clusters have.
    pub program: Program,
    /// Clusters of the graph, with the edges that joined nothing.
    pub found: Clustering,
    /// Types, shapes and values that are known of its tensors.
    pub facts: Facts,
    /// How the clusters were formed.
    pub options: Options,
    /// Number of nodes of the file that the program does not have.
    pub gone: usize,
    /// Assumptions, a sentence each.
    pub assumed: Vec<String>,
    /// Tensors of the file that arguments of the program stand for, by the argument's output.
    pub fed: HashMap<String, String>,
}

/// Is called with the clusters before anything is made of them, to log, name or dump them.
pub type OnClusters<'a> = dyn FnMut(&Program, &Options, &mut Clustering) -> Result<()> + 'a;

impl Analysis {
    /// Clusters a program and infers its tensors. `request` and `options` are those that [`super::load_for_clustering`] left.
    ///
    /// # Errors
    /// Those of clustering, inference and `on_clusters`.
    pub fn new(
        model: &ModelFile,
        input: ClusterInput,
        mut request: Request,
        options: Options,
        on_clusters: &mut OnClusters,
    ) -> Result<Analysis> {
        let mut program = input.program;
        let found = cluster::cluster(&program, &program.graph, &options);
        let mut found = found.map_err(|e| e.in_file(&model.path))?;
        on_clusters(&program, &options, &mut found)?;
        report::with_copies(&mut program, &found);
        let saved = options.entrance == Entrance::Saved;
        let fed = if saved { name_arguments(&mut request) } else { HashMap::new() };
        let facts = facts(&mut program, request, saved).map_err(|e| e.in_file(&model.path))?;
        Ok(Analysis { program, found, facts, options, gone: input.gone.len(), assumed: input.assumed, fed })
    }
}

/// Renames feeds to the arguments that the cut made of them, where it made any; returns the tensors by the arguments' outputs.
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

/// Infers types, shapes and values of the tensors of a program that is input of clustering. A feed that the cut made an argument
/// has the argument's name.
fn facts(program: &mut Program, mut request: Request, saved: bool) -> Result<Facts> {
    // Calls are inlined: what signatures name may be gone, and Placeholders are there whatever signature is called.
    program.signatures.clear();
    request.signatures.clear();
    if saved {
        // what was cut to is in the inputs of its ends, whatever became of the names
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
        // What a dump of TensorFlow's fetches is an input of a node that gives nothing itself.
        let fetched = graph.nodes.values().filter(|n| &*n.op == "_Retval").flat_map(|n| n.inputs.iter());
        request.fetches.extend(fetched.map(|e| format!("{}:{}", graph.nodes[e.node].name, e.port)));
    }
    let open = prepare::resolve_request(program, &request)?;
    Ok(infer::infer(program, &open.feeds))
}
