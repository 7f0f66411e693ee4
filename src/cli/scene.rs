//! A graph with its clusters and what is known of its tensors: what verbs need that compile clusters alone.
use super::args::{ClusterPassArgs, GraphArgs};
use super::{clustering, graph, graph_dump};
use crate::cluster::{Clustering, Entrance, Options};
use crate::diag::Result;
use crate::graph::Program;
use crate::infer::{self, Facts};
use crate::prepare::{self, FeedSpec, Request};
use crate::report;
use std::collections::HashMap;

/// The scene.
pub struct Scene {
    /// The program as TensorFlow's pass sees it, with the copies of constants that clusters have.
    pub program: Program,
    /// Its clusters, with the edges that joined nothing.
    pub found: Clustering,
    /// What is known of its tensors.
    pub facts: Facts,
    /// How the clusters were formed.
    pub options: Options,
    /// Nodes of the file that the program has no more.
    pub gone: usize,
    /// What was assumed, a sentence each; it went to standard error.
    pub assumed: Vec<String>,
    /// The tensors of the file that arguments of the program stand for, by the argument's output.
    pub fed: HashMap<String, String>,
}

impl Scene {
    /// The scene of a file. Errors: those of reading, clustering and inferring it.
    pub fn load(args: &GraphArgs, pass: &ClusterPassArgs) -> Result<Scene> {
        let mut options = clustering::options(pass, args.quiet)?;
        options.refused_edges = true;
        let mut request = graph::request(args)?;
        let clustering::Loaded { mut program, gone, assumed } = clustering::load(args, &mut request, &mut options)?;
        graph_dump::ask(&mut options);
        let mut found = clustering::find(args, &program, &options)?;
        if options.seen {
            clustering::tell(args, &program, &options, &mut found)?;
        }
        report::with_copies(&mut program, &found);
        let fed = if options.entrance == Entrance::Saved { name_arguments(&mut request) } else { HashMap::new() };
        let saved = options.entrance == Entrance::Saved;
        let facts = facts(&mut program, request, saved).map_err(|e| graph::in_file(e, args))?;
        Ok(Scene { program, found, facts, options, gone: gone.len(), assumed, fed })
    }
}

/// Names feeds as the arguments that the cut made of them, where it made any; the tensors by the arguments' outputs.
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

/// What is known of the tensors of a program that was brought to the pass. A feed that the cut made an argument has the
/// argument's name.
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
    let open = prepare::open(program, &request)?;
    Ok(infer::infer(program, &open.feeds))
}
