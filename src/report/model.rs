//! The data of a report, as it stands in its JSON. Nodes, texts and reasons are named by their place in a list.
use super::baseline::Baseline;
use super::graph::GraphColumns;
use super::overview::{FunctionSummary, NextStep};
use crate::cluster;
use serde::Serialize;

/// Raised when a reader of the last version could misread the document.
pub const VERSION: u32 = 1;

/// A report on a graph: its clusters, the reasons for nodes outside of them, and the gain of each reason's removal. It is written as
/// JSON.
///
/// ```
/// let report = tfaot::ModelFile::open("testdata/graphs/attention/graph.pb").report()?;
/// let json = serde_json::to_value(&report).expect("it is JSON");
/// assert_eq!(json["version"], report.version);
/// # Ok::<(), tfaot::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this form.
    pub version: u32,
    /// The program and version that made the report.
    pub tool: String,
    /// The graph's file.
    pub source: String,
    /// The model as its user sees it, a function each; empty where only clusters were asked for, or the file is a dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<FunctionSummary>,
    /// Suggestions of next steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<NextStep>,
    /// The comparison with an earlier report, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The answer.
    pub summary: Summary,
    /// Assumptions that were made, a sentence each.
    pub assumed: Vec<String>,
    /// Reasons that keep nodes outside of clusters, the most valuable first.
    pub blockers: Vec<Blocker>,
    /// Reasons that stopped clusters from growing, the most frequent first.
    pub stops: Vec<Stop>,
    /// Where sizes that are not known come from, the most frequent first.
    pub open_sizes: Vec<OpenSize>,
    /// The clusters by number.
    pub clusters: Vec<ClusterReport>,
    /// The graph.
    #[serde(flatten)]
    pub columns: GraphColumns,
    /// The code of compiled clusters and functions; [`ClusterReport::code`] and [`FunctionSummary::code`] point here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeReport>,
}

/// The answer in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Nodes of the graph.
    pub nodes: usize,
    /// Nodes in clusters.
    pub clustered: u64,
    /// The fraction of nodes that are in clusters.
    pub node_coverage: f64,
    /// Floating-point operations of a call, as far as they are known; loops count once.
    pub flops: u64,
    /// Floating-point operations of nodes in clusters.
    pub clustered_flops: u64,
    /// The fraction of floating-point operations that are in clusters; 0 where nothing is known.
    pub flops_coverage: f64,
    /// Nodes whose work is not known: open sizes, or an op without an estimate.
    pub unknown_flops: usize,
    /// Nodes of the file that are not in the graph any more, inlined or cut off.
    pub gone: usize,
    /// Functions of the library.
    pub functions: usize,
    /// Whether kernels were measured.
    pub profiled: bool,
}

/// Nodes that are outside for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Blocker {
    /// The code, such as `TFA0508`.
    pub code: String,
    /// The name of the code.
    pub slug: &'static str,
    /// The op, where the reason is one of the op; empty where it is not.
    pub op: String,
    /// The reason of the first of the nodes where it is one of the op, else what the code means.
    pub reason: String,
    /// The usual remedy.
    pub cure: &'static str,
    /// Whether it stands in the way; what is outside by its nature, as arguments are, does not.
    pub blocks: bool,
    /// The nodes.
    pub nodes: Vec<u32>,
    /// Floating-point operations of the nodes, as far as they are known.
    pub flops: u64,
    /// Edges that joined nothing because of one of the nodes.
    pub cuts: usize,
    /// The effect on clusters if XLA compiled the op; `None` where that was not asked.
    pub gain: Option<Gain>,
}

/// The effect on clusters if XLA compiled an op.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Nodes more in clusters.
    pub nodes: i64,
    /// Floating-point operations that would be in clusters besides.
    pub flops: i64,
    /// Clusters more, less if negative.
    pub clusters: i64,
}

/// Edges between clusters that joined nothing for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Stop {
    /// The code.
    pub code: String,
    /// The diagnostic code's name in words.
    pub slug: &'static str,
    /// The meaning of the code.
    pub about: &'static str,
    /// The usual remedy.
    pub cure: &'static str,
    /// Places in `edges`.
    pub edges: Vec<u32>,
}

/// Where sizes that are not known come from.
#[derive(Clone, Debug, Serialize)]
pub struct OpenSize {
    /// The node, its op, and why it does not know, in words.
    pub why: String,
    /// The action that would make the size known; empty where nothing does before the graph runs.
    pub remedy: String,
    /// The node, where it is one of the graph.
    pub node: Option<u32>,
    /// Tensors that have a size from there.
    pub tensors: u64,
}

/// An edge that joined nothing.
#[derive(Clone, Debug, Serialize)]
pub struct EdgeReport {
    /// A node of the first cluster.
    pub from: Option<u32>,
    /// A node of the second.
    pub to: Option<u32>,
    /// The code.
    pub code: String,
    /// Why, a sentence.
    pub reason: String,
    /// For a cycle: the way outside, in nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<u32>,
}

/// A cluster.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterReport {
    /// The cluster's name.
    pub name: String,
    /// The number of nodes in the cluster.
    pub nodes: u64,
    /// Nodes but constants and identities.
    pub effective: i64,
    /// The device that it runs on.
    pub device: String,
    /// Operations of its nodes, as far as they are known.
    pub flops: u64,
    /// Nodes whose work is not known.
    pub unknown_flops: usize,
    /// The cluster's code, as an index into `code`.
    pub code: Option<u32>,
    /// Nodes that the code does not have: none of its results needs them. Assignments are such nodes.
    pub left_out: usize,
    /// Why there is no code; empty where there is, or where none was asked for.
    pub refused: Vec<Refusal>,
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

/// Why a cluster is not compiled alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The code, such as `TFA0009`.
    pub code: String,
    /// The name of the code.
    pub slug: &'static str,
    /// The node that it is about, where it is one of the graph.
    pub node: Option<u32>,
    /// A sentence.
    pub text: String,
    /// The remedy.
    pub help: Option<String>,
}

/// A compiled cluster.
#[derive(Clone, Debug, Serialize)]
pub struct CodeReport {
    /// The processor that it is made for.
    pub target: String,
    /// The optimised module.
    pub hlo: String,
    /// Kernels of the program.
    pub kernels: Vec<KernelReport>,
    /// Buffers of the program.
    pub buffers: Vec<BufferReport>,
    /// The kernels in the order of a call, loops once.
    pub launches: Vec<u32>,
    /// Bytes of constants.
    pub weights_bytes: u64,
    /// Bytes of workspace.
    pub workspace_bytes: u64,
    /// Floating-point operations of a call; loops count once.
    pub flops: u64,
    /// Calls that were measured; 0: none.
    pub runs: u64,
}

/// A kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// The computation, by TensorFlow's names.
    pub label: String,
    /// Names of the instructions of the module that are computed in it.
    pub insts: Vec<String>,
    /// The buffers that it touches.
    pub buffers: Vec<u32>,
    /// Floating-point operations of one launch.
    pub flops: u64,
    /// Bytes of those buffers.
    pub bytes: u64,
    /// The kernel's loops, as text.
    pub text: String,
    /// The kernel's machine code, as assembly.
    pub asm: String,
    /// For each line of that the line of `text` that it is of, from 1 on; 0: none.
    pub asm_lines: Vec<u32>,
    /// The least time of all its launches in one call, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// The least time in which this machine could do that, in milliseconds: that of its arithmetic, or of what it reads and writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline_ms: Option<f64>,
}

/// Where a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LocationReport {
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

/// A buffer.
#[derive(Clone, Debug, Serialize)]
pub struct BufferReport {
    /// Type and sizes, such as `f32[1024]`.
    pub shape: String,
    /// The buffer's size in bytes.
    pub bytes: u64,
    /// The memory that the buffer lies in.
    pub place: LocationReport,
    /// The first byte at that place, or the number of the argument or result.
    pub at: u64,
    /// The first of the launches that touch it; none where none does.
    pub first: Option<u32>,
    /// The last of them, those of the loops that it lives through included.
    pub last: Option<u32>,
}
