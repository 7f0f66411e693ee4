//! TensorFlow's auto-clustering, offline: a graph to the clusters that TensorFlow would form in it, and the reason for every
//! node that is in none.
//!
//! The steps, each a file, in the order in which they run: `entrance` brings a saved graph to what TensorFlow hands the pass,
//! `flow` imports it with TensorFlow's numbers of nodes and edges, `candidates` (over `compilable` and `constants`) says which
//! nodes may be clustered, `deadness` (over `predicate` and `frames`) when nodes are alive, `resources` which operations on
//! variables are kept apart, `contract` (over `cycles`) joins clusters, `mark` drops and names them.
//!
//! Facts come from TensorFlow 2.21; `table` is generated from its registries. Nothing is compiled here.
//!
//! # How ties are decided
//!
//! - It is TensorFlow's MarkForCompilation with the passes around it, on the graph alone: nothing is lowered. Ties between
//!   clusters are decided by numbers of nodes and edges and by the order of neighbours, so `flow.rs` numbers as TensorFlow's
//!   importer does and `cycles.rs` keeps its sets in TensorFlow's order, swaps included.
//! - `dynamism.rs` and `decluster.rs` are the passes behind the marking, `functions.rs` the bodies of functions that
//!   TensorFlow clusters apart. `seen.rs` keeps what the pass was handed; `dump/graphs/` writes it as TensorFlow does, byte
//!   for byte in binary, so that the fingerprint in deterministic names is TensorFlow's too.
//! - What TensorFlow registers is data: `opdef/tensorflow.txt` and `cluster/compilability.tsv`, both generated from the pip
//!   package.
mod beyond_xla;
mod candidates;
mod clone_constants;
mod compilable;
mod constants;
mod contract;
mod cycles;
mod deadness;
mod decluster;
mod devices;
mod dynamism;
mod entrance;
mod flags;
mod flow;
mod frames;
mod functions;
mod inline;
mod mark;
mod placement;
mod predicate;
mod reason;
mod resources;
mod scoping;
mod snapshot;
mod signature;
mod table;

pub use beyond_xla::CheckPolicy;
pub use candidates::{MUST, marked_function};
pub use entrance::{GraphCut, ImportedProgram, bring, is_dump};
pub use flags::{ClusteringFlags, JitLevel};
pub use functions::{Body, called, cluster_functions};
pub use reason::{EdgeReason, ExclusionReason};
pub use snapshot::{GraphSnapshot, SnapshotNode};

use crate::diag::Result;
use crate::graph::{Function, Graph, Program};
use std::collections::{HashMap, HashSet};

/// Options of the clustering pass.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The flags.
    pub flags: ClusteringFlags,
    /// The session's jit level, which the flags override.
    pub session_level: Option<JitLevel>,
    /// Whether the session asks for clusters on the CPU whatever the level.
    pub session_cpu_jit: bool,
    /// Whether the edges that joined nothing are told.
    pub refused_edges: bool,
    /// Whether what the pass was handed is told.
    pub seen: bool,
    /// Where the graph comes from.
    pub entrance: Entrance,
    /// How far the passes are run.
    pub until: Until,
    /// Ops that are taken as if XLA compiled them, to see what would change.
    pub what_if: Vec<String>,
    /// Whether clusters may have what tfaot compiles and XLA does not take: loops, conditions, ops without a kernel of XLA's.
    pub beyond_xla: bool,
    /// Treatment of nodes beyond XLA that check values or print.
    pub checks: CheckPolicy,
    /// Nodes that no cluster may have.
    pub left_out: HashSet<String>,
    /// For nodes of the graph the number of the set of steps that run them: nodes of different sets are not joined.
    pub steps: HashMap<String, u32>,
}

/// How far the passes are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// Clusters are named, as TensorFlow's `mark_for_compilation` dump has them.
    #[default]
    Marked,
    /// Nodes are taken out of clusters again, as TensorFlow does before it compiles them.
    Declustered,
}

/// Where a graph comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entrance {
    /// TensorFlow wrote it just before it clustered: it is taken as it is.
    #[default]
    Dump,
    /// A saved graph: the passes that TensorFlow runs before are run here.
    Saved,
}

impl Options {
    /// The level for a graph with exactly one GPU, or for any other.
    fn level(&self, one_gpu: bool) -> JitLevel {
        let flag = if one_gpu { self.flags.single_gpu } else { self.flags.general };
        flag.or(self.session_level).unwrap_or(JitLevel::Off)
    }
}

/// The clustering decision for a node.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The node's name.
    pub name: String,
    /// The node's op.
    pub op: String,
    /// The index of its cluster, or why it is in none.
    pub cluster: Result<u32, ExclusionReason>,
}

/// A cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The cluster's name.
    pub name: String,
    /// The number of nodes in the cluster.
    pub nodes: u64,
    /// Nodes but constants and identities, those counted that were taken out again.
    pub effective: i64,
    /// The device that it runs on.
    pub device: String,
}

/// Two neighbouring nodes whose clusters did not become one.
#[derive(Clone, Debug)]
pub struct RefusedEdge {
    /// A node of the first cluster.
    pub from: String,
    /// A node of the second.
    pub to: String,
    /// Why.
    pub why: EdgeReason,
}

/// The clusters of a graph, and for each node its cluster or the reason why it is in none.
///
/// ```
/// let clustering = tfaot::ModelFile::open("testdata/graphs/attention/graph.pb").cluster()?;
/// for cluster in &clustering.clusters {
///     println!("{} has {} nodes on {}", cluster.name, cluster.nodes, cluster.device);
/// }
/// # assert!(clustering.clustered() > 0);
/// # Ok::<(), tfaot::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Clustering {
    /// Every node, in the order of the graph.
    pub nodes: Vec<Verdict>,
    /// The clusters, in the order of their numbers.
    pub clusters: Vec<Cluster>,
    /// The edges that joined nothing, where they were asked for.
    pub refused: Vec<RefusedEdge>,
    /// Constants that were copied for one of their users, as TensorFlow does before it clusters.
    pub copies: Vec<ConstantCopy>,
    /// The nodes that could have been clustered; each takes one of the flags' fuel.
    pub candidates: u64,
    /// The graph that the pass was handed, where it was asked for.
    pub seen: Option<GraphSnapshot>,
    /// The graph after Slices were made anew, where some were and it was asked for.
    pub remade: Option<GraphSnapshot>,
}

/// A copy of a constant.
#[derive(Clone, Debug)]
pub struct ConstantCopy {
    /// The name of the copy.
    pub name: String,
    /// The constant.
    pub of: String,
    /// The node that uses the copy.
    pub user: String,
    /// The number of the user's data input that takes the copy; `None`: the user waits for the copy, and still for the constant.
    pub input: Option<usize>,
}

impl Clustering {
    /// The number of nodes that are in clusters.
    pub fn clustered(&self) -> u64 {
        self.clusters.iter().map(|c| c.nodes).sum()
    }
    /// The fraction of nodes that are in clusters; 0 for an empty graph.
    pub fn coverage(&self) -> f64 {
        if self.nodes.is_empty() { 0.0 } else { self.clustered() as f64 / self.nodes.len() as f64 }
    }
}

/// `graph` with a full device for every node, the CPU's where none is given.
///
/// # Errors
/// `BadGraph`.
pub fn placed(graph: &Graph) -> Result<Graph> {
    let mut graph = graph.clone();
    entrance::place(&mut graph)?;
    Ok(graph)
}

/// The clusters of the body of a function, as TensorFlow finds them when it instantiates the function for itself: arguments
/// first, results at the end, everything on the CPU.
///
/// # Errors
/// Those of [`cluster`].
pub fn cluster_function(program: &Program, function: &Function, options: &Options) -> Result<Clustering> {
    let options = Options { entrance: Entrance::Saved, ..options.clone() };
    cluster(program, &function_graph(function)?, &options)
}

/// The body of a function as [`cluster_function`] clusters it.
///
/// # Errors
/// `BadGraph`.
pub fn function_graph(function: &Function) -> Result<Graph> {
    let mut body = constants::with_results(function);
    entrance::place(&mut body)?;
    Ok(body)
}

/// The clusters of `graph`, which belongs to `program` and of which every node is placed.
///
/// # Errors
/// `BadGraph` for cycles, loops that TensorFlow does not build, and nodes without a full device; `BadOption` for op names
/// in the flags that XLA does not have.
pub fn cluster(program: &Program, graph: &Graph, options: &Options) -> Result<Clustering> {
    mark::run(program, graph, options)
}

#[cfg(test)]
mod tests;
