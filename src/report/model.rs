//! The data of a report, in the structure of its JSON. Nodes, strings and reasons are referred to by their index in a list.
use super::baseline::Baseline;
use super::graph::GraphColumns;
use super::overview::{FunctionSummary, NextStep};
use crate::cluster;
use crate::target::QuantizedProducts;
use serde::Serialize;

/// Version of the JSON structure; to be incremented when a reader of the previous version could misread the document.
pub const VERSION: u32 = 1;

/// A report on a graph: its clusters, the reasons for nodes outside of them, and the gain of removing each reason. It is serialized
/// as JSON.
///
/// ```
/// let report = tfaot::ModelFile::open("testdata/graphs/attention/graph.pb").report()?;
/// let json = serde_json::to_value(&report).expect("it is JSON");
/// assert_eq!(json["version"], report.version);
/// # Ok::<(), tfaot::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of the JSON structure.
    pub version: u32,
    /// The program and version that made the report.
    pub tool: String,
    /// The graph's file.
    pub source: String,
    /// The model as its user sees it, one function per signature; empty if only clusters were requested, or the file is a dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<FunctionSummary>,
    /// Suggestions of next steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<NextStep>,
    /// The comparison with an earlier report, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Coverage of the graph by clusters, in numbers.
    pub summary: CoverageSummary,
    /// Assumptions, one sentence each.
    pub assumed: Vec<String>,
    /// Reasons that exclude nodes from clusters, the most valuable first.
    pub blockers: Vec<Blocker>,
    /// Reasons why clusters were not merged, the most frequent first.
    pub stops: Vec<MergeObstacle>,
    /// Origins of unknown sizes, the most frequent first.
    pub open_sizes: Vec<OpenSize>,
    /// The clusters by number.
    pub clusters: Vec<ClusterReport>,
    /// The nodes and edges of the graph.
    #[serde(flatten)]
    pub columns: GraphColumns,
    /// The code of compiled clusters and functions; [`ClusterReport::code`] and [`FunctionSummary::code`] point here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeReport>,
}

/// Coverage of the graph by clusters, in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct CoverageSummary {
    /// Number of nodes of the graph.
    pub nodes: usize,
    /// Number of nodes in clusters.
    pub clustered: u64,
    /// The fraction of nodes that are in clusters.
    pub node_coverage: f64,
    /// Floating-point operations of a call, as far as known; loop bodies count once.
    pub flops: u64,
    /// Floating-point operations of nodes in clusters.
    pub clustered_flops: u64,
    /// The fraction of floating-point operations that are in clusters; 0 if none are known.
    pub flops_coverage: f64,
    /// Number of nodes of unknown work: with open sizes, or an op without an estimate.
    pub unknown_flops: usize,
    /// Number of nodes of the file that were inlined or pruned.
    pub gone: usize,
    /// Number of functions in the library.
    pub functions: usize,
    /// Whether the times of kernels were measured.
    pub profiled: bool,
}

/// Nodes that are excluded from clusters for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Blocker {
    /// The code, such as `TFA0508`.
    pub code: String,
    /// The name of the code.
    pub slug: &'static str,
    /// The op, if the reason concerns the op; else empty.
    pub op: String,
    /// The reason for the first node if it concerns the op, else the meaning of the code.
    pub reason: String,
    /// The usual remedy for the exclusion reason.
    pub cure: &'static str,
    /// Whether the reason is an obstacle; that for nodes which are never in clusters, such as arguments, is not.
    pub blocks: bool,
    /// Indices of the excluded nodes.
    pub nodes: Vec<u32>,
    /// Floating-point operations of the nodes, as far as known.
    pub flops: u64,
    /// Number of edges whose clusters were not merged because of one of the nodes.
    pub cuts: usize,
    /// The effect on clusters if XLA compiled the op; `None` if this was not evaluated.
    pub gain: Option<ClusteringGain>,
}

/// The effect on clusters if XLA compiled an op.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClusteringGain {
    /// Number of additional nodes in clusters.
    pub nodes: i64,
    /// Floating-point operations that would be in clusters in addition.
    pub flops: i64,
    /// Change of the number of clusters.
    pub clusters: i64,
}

/// Edges whose clusters were not merged for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct MergeObstacle {
    /// The diagnostic code, such as `TFA0508`.
    pub code: String,
    /// The diagnostic code's name in words.
    pub slug: &'static str,
    /// The meaning of the code.
    pub about: &'static str,
    /// The usual remedy for the blocker.
    pub cure: &'static str,
    /// Indices into `GraphColumns::edges`.
    pub edges: Vec<u32>,
}

/// The origin of unknown sizes.
#[derive(Clone, Debug, Serialize)]
pub struct OpenSize {
    /// The node, its op, and the reason why it does not know a size, in words.
    pub why: String,
    /// The action that would determine the size; empty if it is known only when the graph runs.
    pub remedy: String,
    /// Index of the node, if it belongs to the top-level graph.
    pub node: Option<u32>,
    /// Number of tensors that have a size of this origin.
    pub tensors: u64,
}

/// An edge whose clusters were not merged.
#[derive(Clone, Debug, Serialize)]
pub struct EdgeReport {
    /// A node of the cluster where the edge starts.
    pub from: Option<u32>,
    /// A node of the cluster where the edge ends.
    pub to: Option<u32>,
    /// The diagnostic code, such as `TFA0508`.
    pub code: String,
    /// The reason as a sentence.
    pub reason: String,
    /// For a cycle: the nodes on the path outside of the clusters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<u32>,
}

/// A cluster and its code.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterReport {
    /// The cluster's name.
    pub name: String,
    /// The number of nodes in the cluster.
    pub nodes: u64,
    /// Number of nodes other than constants and identities.
    pub effective: i64,
    /// The device on which TensorFlow would run the cluster.
    pub device: String,
    /// Floating-point operations of its nodes, as far as known.
    pub flops: u64,
    /// Number of nodes of unknown work.
    pub unknown_flops: usize,
    /// The cluster's code, as an index into `code`.
    pub code: Option<u32>,
    /// Number of nodes that the code omits because no result needs them, such as assignments.
    pub left_out: usize,
    /// Reasons why there is no code; empty if there is, or if none was requested.
    pub refused: Vec<CompileRefusal>,
}

impl ClusterReport {
    pub(super) fn new(of: &cluster::Cluster) -> ClusterReport {
        ClusterReport {
            name: of.name.clone(),
            nodes: of.nodes,
            effective: of.effective,
            device: of.device.clone(),
            flops: 0,
            unknown_flops: 0,
            code: None,
            left_out: 0,
            refused: Vec::new(),
        }
    }
}

/// A reason why a cluster is not compiled alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompileRefusal {
    /// The code, such as `TFA0009`.
    pub code: String,
    /// The diagnostic code's name in words.
    pub slug: &'static str,
    /// Index of the node concerned, if it belongs to the top-level graph.
    pub node: Option<u32>,
    /// The reason as a sentence.
    pub text: String,
    /// The remedy.
    pub help: Option<String>,
}

/// A compiled cluster or function.
#[derive(Clone, Debug, Serialize)]
pub struct CodeReport {
    /// The processor for which the code was compiled.
    pub target: String,
    /// The optimized module as HLO text.
    pub hlo: String,
    /// Kernels of the program.
    pub kernels: Vec<KernelReport>,
    /// Buffers of the program.
    pub buffers: Vec<BufferReport>,
    /// Indices of kernels in the order of a call; loop bodies appear once.
    pub launches: Vec<u32>,
    /// Size of the constants in bytes.
    pub weights_bytes: u64,
    /// Size of the workspace in bytes.
    pub workspace_bytes: u64,
    /// Products of quantised activations: which are computed on integers, and what keeps the others on floats.
    #[serde(skip_serializing_if = "QuantizedProducts::is_empty")]
    pub quantized: QuantizedProducts,
    /// Floating-point operations of a call; loop bodies count once.
    pub flops: u64,
    /// Number of measured calls; 0: none.
    pub runs: u64,
}

/// A kernel of compiled code.
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// Text of what the kernel computes, with the names of TensorFlow's nodes.
    pub label: String,
    /// Names of the module's instructions that the kernel computes.
    pub insts: Vec<String>,
    /// Indices of the buffers that the kernel accesses.
    pub buffers: Vec<u32>,
    /// Floating-point operations of one launch.
    pub flops: u64,
    /// Total size of these buffers in bytes.
    pub bytes: u64,
    /// The kernel's loops, as text.
    pub text: String,
    /// The kernel's machine code, as assembly.
    pub asm: String,
    /// By line of `asm`: the line of `text`, from 1 on, for which it was generated; 0: none.
    pub asm_lines: Vec<u32>,
    /// Minimum over calls of the time of all its launches in one call, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// Lower bound of this time on the measured machine, in milliseconds: that of its arithmetic or of its memory traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline_ms: Option<f64>,
}

/// The memory in which a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceLocationReport {
    /// The caller's argument.
    Argument,
    /// The caller's result.
    Result,
    /// The model's constants.
    Weights,
    /// The caller's state.
    State,
    /// The workspace.
    Workspace,
    /// A kernel's stack.
    Stack,
}

/// A buffer of compiled code.
#[derive(Clone, Debug, Serialize)]
pub struct BufferReport {
    /// Type and shape, such as `f32[1024]`.
    pub shape: String,
    /// The buffer's size in bytes.
    pub bytes: u64,
    /// The memory that the buffer lies in.
    pub place: SourceLocationReport,
    /// Offset of the buffer in that memory in bytes, or the index of the argument or result.
    pub at: u64,
    /// Position in `launches` of the first launch that accesses the buffer; none if no launch does.
    pub first: Option<u32>,
    /// Position of the last such launch, extended to the end of loops through which the buffer lives.
    pub last: Option<u32>,
}
