//! TensorFlow's auto-clustering, offline: finds the clusters that TensorFlow would form in a graph, and for every node outside of
//! them the reason.
//!
//! The steps, each a file, in the order in which they run: `preprocess` runs the passes that TensorFlow runs on a saved graph before
//! it clusters, `flow` imports the graph with TensorFlow's numbers of nodes and edges, `candidates` (over `compilable` and
//! `constants`) selects the nodes that may be clustered, `deadness` (over `predicate` and `frames`) computes when nodes are alive,
//! `resources` finds the operations on variables that must be kept apart, `contract` (over `cycles`) merges clusters, `mark` drops
//! the small ones and names the others.
//!
//! Facts come from TensorFlow 2.21; `registrations` is generated from its registries. Nothing is compiled here.
//!
//! # How ties are decided
//!
//! - The algorithm is TensorFlow's MarkForCompilation with the passes around it, on the graph alone: nothing is lowered. Ties between
//!   clusters are decided by the numbers of nodes and edges and by the order of neighbours, so `flow.rs` numbers as TensorFlow's
//!   importer does and `cycles.rs` keeps its sets in TensorFlow's order, swaps included.
//! - `dynamism.rs` and `decluster.rs` are the passes behind the marking, `functions.rs` clusters the bodies of functions that
//!   TensorFlow clusters separately. `snapshot.rs` keeps the graph that the pass received; `dump/graphs/` writes it as TensorFlow
//!   does, byte for byte in binary, so that the fingerprint in deterministic names is TensorFlow's too.
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
mod preprocess;
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
mod registrations;

pub use beyond_xla::CheckAndPrintPolicy;
pub use candidates::{MUST_COMPILE_ATTR, jit_compile_function};
pub use flags::{ClusteringFlags, JitLevel};
pub use functions::{FunctionClustering, called_function, cluster_functions};
pub use preprocess::{FeedsAndFetches, PreprocessingReport, is_dump, preprocess};
pub use reason::{ExclusionReason, UnmergedEdgeReason};
pub use snapshot::{GraphSnapshot, SnapshotNode};

use crate::diag::Result;
use crate::graph::{Function, Graph, Program};
use std::collections::{HashMap, HashSet};

/// Options of a clustering run: TensorFlow's flags, extensions beyond XLA, and what the result records.
#[derive(Clone, Debug, Default)]
pub struct ClusteringOptions {
    /// Flags of `TF_XLA_FLAGS`.
    pub flags: ClusteringFlags,
    /// The session's jit level, which the flags override.
    pub session_level: Option<JitLevel>,
    /// Whether the session requests clusters on the CPU whatever the jit level.
    pub session_cpu_jit: bool,
    /// Whether the result lists the edges whose ends were not merged, each with the reason.
    pub refused_edges: bool,
    /// Whether the result holds a snapshot of the graph as the pass received it.
    pub snapshot: bool,
    /// Whether the graph is a dump or a saved graph that must be preprocessed.
    pub origin: GraphOrigin,
    /// The last pass to run.
    pub last_pass: StopAfterPass,
    /// Ops to treat as if XLA compiled them, to see what would change.
    pub what_if: Vec<String>,
    /// Whether clusters may hold what tfaot compiles and XLA does not: loops, conditions, ops without an XLA kernel.
    pub beyond_xla: bool,
    /// Treatment of nodes that check values or print, where clusters go beyond XLA.
    pub checks: CheckAndPrintPolicy,
    /// Names of nodes that no cluster may hold.
    pub excluded_nodes: HashSet<String>,
    /// Step set of a node by the node's name: an id for the session runs that execute it. Nodes of different step sets are not merged.
    pub step_sets: HashMap<String, u32>,
}

/// The last pass of a clustering run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopAfterPass {
    /// Clusters are formed and named, as in TensorFlow's `mark_for_compilation` dump.
    #[default]
    Marking,
    /// Nodes are then removed from clusters by PartiallyDecluster, as TensorFlow does before it compiles them.
    Declustering,
}

/// The kind of graph that is clustered: a saved one, or one that TensorFlow dumped while it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphOrigin {
    /// A dump that TensorFlow wrote just before it clustered; the graph is used as it is.
    #[default]
    Dump,
    /// A saved graph, on which the passes that TensorFlow runs before clustering are run first.
    Saved,
}

impl ClusteringOptions {
    /// The jit level for a graph with exactly one GPU (`one_gpu`), or for any other.
    fn level(&self, one_gpu: bool) -> JitLevel {
        let flag = if one_gpu { self.flags.single_gpu } else { self.flags.general };
        flag.or(self.session_level).unwrap_or(JitLevel::Off)
    }
}

/// The clustering decision for a node.
#[derive(Clone, Debug)]
pub struct NodeVerdict {
    /// The node's name.
    pub name: String,
    /// The node's op.
    pub op: String,
    /// The index of the node's cluster, or the reason why it is in none.
    pub cluster: Result<u32, ExclusionReason>,
}

/// A cluster of nodes that TensorFlow would compile together.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The cluster's name.
    pub name: String,
    /// The number of nodes in the cluster.
    pub nodes: u64,
    /// Number of nodes other than constants and identities, before declustering.
    pub effective: i64,
    /// The device that the cluster runs on.
    pub device: String,
}

/// An edge between two clusters that were not merged, with the reason.
#[derive(Clone, Debug)]
pub struct RefusedEdge {
    /// The first node of the cluster where the edge starts.
    pub from: String,
    /// The first node of the cluster where the edge ends.
    pub to: String,
    /// The reason why the clusters were not merged.
    pub why: UnmergedEdgeReason,
}

/// The clusters of a graph, and for each node its cluster or the reason why it is in none.
///
/// ```
/// let clustering = tfaot::ModelFile::open("testdata/graphs/attention/graph.pb").cluster()?;
/// for cluster in &clustering.clusters {
///     println!("{} has {} nodes on {}", cluster.name, cluster.nodes, cluster.device);
/// }
/// # assert!(clustering.clustered_node_count() > 0);
/// # Ok::<(), tfaot::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Clustering {
    /// The clustering decision for each node, in the order of the graph.
    pub nodes: Vec<NodeVerdict>,
    /// The clusters, in the order of their numbers.
    pub clusters: Vec<Cluster>,
    /// Edges whose ends were not merged; empty unless [`ClusteringOptions::refused_edges`] is set.
    pub refused: Vec<RefusedEdge>,
    /// Constants that were copied for one of their users, as TensorFlow does before it clusters.
    pub copies: Vec<ConstantCopy>,
    /// Number of nodes that could have been clustered; each consumes one unit of `--tf_xla_clustering_fuel`.
    pub candidates: u64,
    /// The graph that the pass received, if the options request a snapshot.
    pub snapshot: Option<GraphSnapshot>,
    /// The graph after Slices were replaced (`dynamism.rs`), if any was and the options request a snapshot.
    pub snapshot_after_slices: Option<GraphSnapshot>,
}

/// A copy of a small constant, made for one of its consumers.
#[derive(Clone, Debug)]
pub struct ConstantCopy {
    /// Name of the copy.
    pub name: String,
    /// The name of the constant that was copied.
    pub constant: String,
    /// Name of the node that uses the copy of the constant.
    pub user: String,
    /// Index of the user's data input that takes the copy; `None` for a control edge, of which the user keeps the one from the constant.
    pub input: Option<usize>,
}

impl Clustering {
    /// The number of nodes that are in clusters.
    pub fn clustered_node_count(&self) -> u64 {
        self.clusters.iter().map(|c| c.nodes).sum()
    }
    /// The fraction of nodes that are in clusters; 0 for an empty graph.
    pub fn coverage(&self) -> f64 {
        if self.nodes.is_empty() { 0.0 } else { self.clustered_node_count() as f64 / self.nodes.len() as f64 }
    }
}

/// Returns a copy of `graph` in which every node has a full device name, completed from the CPU's.
///
/// # Errors
/// `BadGraph`.
pub fn with_full_devices(graph: &Graph) -> Result<Graph> {
    let mut graph = graph.clone();
    preprocess::complete_devices(&mut graph)?;
    Ok(graph)
}

/// Clusters the body of a function as TensorFlow does when it instantiates the function on its own: arguments first, results last,
/// everything on the CPU.
///
/// # Errors
/// Errors of [`cluster`].
pub fn cluster_function(program: &Program, function: &Function, options: &ClusteringOptions) -> Result<Clustering> {
    let options = ClusteringOptions { origin: GraphOrigin::Saved, ..options.clone() };
    cluster(program, &function_graph(function)?, &options)
}

/// The graph of a function's body, in the form that [`cluster_function`] clusters.
///
/// # Errors
/// `BadGraph`.
pub fn function_graph(function: &Function) -> Result<Graph> {
    let mut body = constants::body_with_retvals(function);
    preprocess::complete_devices(&mut body)?;
    Ok(body)
}

/// Clusters `graph`, which belongs to `program` and whose nodes all have a full device name.
///
/// # Errors
/// `BadGraph` for cycles, loops that TensorFlow does not build, and nodes without a full device; `BadOption` for op names
/// in the flags that XLA does not have.
pub fn cluster(program: &Program, graph: &Graph, options: &ClusteringOptions) -> Result<Clustering> {
    mark::run(program, graph, options)
}

#[cfg(test)]
mod tests;
