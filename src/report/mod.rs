//! The report on a graph, as a self-contained HTML page or as a JSON document.
//!
//! Input: a program as TensorFlow's clustering pass receives it, its clusters, the inferred facts about its tensors, and what the
//! caller compiled of it. Output: a [`Report`], which is plain data, and [`page::render`], which makes a page of it. This module neither
//! compiles nor measures nor touches files; the same input gives the same bytes.
//!
//! `graph` lists the nodes in columns, `flops` estimates their work, `blockers` groups what excludes nodes from clusters, `part` finds
//! the border of a cluster so that it can be compiled alone, `order` sorts clusters topologically, `code` describes compiled code.
//!
//! # How it works
//!
//! - `report/` holds pure functions on data: nodes in columns, work by node, blockers, and the code of each cluster. `cli/report.rs`
//!   loads, clusters, infers and compiles, and supplies the pieces; `report --json` prints the data, and the page contains the same
//!   data, compressed.
//! - Models are compiled as a whole as well, one function per signature (`overview.rs`), with which the page begins. `baseline.rs`
//!   compares the report with an earlier document.
//! - A cluster is compiled alone: `part.rs` feeds the tensors that cross its border, with the inferred shapes. A kernel carries the
//!   names of its instructions, and those carry the names of nodes, so that one selection is highlighted in all panes.
//! - The page is `report/page/`: the summary is plain HTML written by `answer.rs`, the rest is drawn by scripts in separate files that are
//!   concatenated. The page's content security policy names the hashes of script and style and forbids everything else, so that
//!   nothing from a graph is executed.
//! - Only expanded groups are laid out (`layout.js`), on a canvas; `painter.js` draws the same for SVG.
mod baseline;
mod blockers;
pub mod code;
mod flops;
mod graph;
mod memory;
mod model;
mod order;
pub mod page;
mod part;
#[cfg(test)]
mod tests;
pub mod overview;

pub use baseline::compare;
pub use blockers::evaluate_what_ifs;
pub use graph::add_constant_copies;
pub use model::{Blocker, ClusterReport, ClusteringGain, CodeReport, CompileRefusal, MergeObstacle, OpenSize, Report};
pub use order::sort_topologically;
pub use overview::FunctionSummary;
pub use part::{ClusterBorder, cluster_border, fold_known_inputs};

use crate::cluster::Clustering;
use crate::graph::Program;
use crate::infer::{Facts, SizeOrigin};
use graph::GraphColumns;
use model::CoverageSummary;

/// Inputs from which a report is made.
pub struct Input<'a> {
    /// The program whose top-level graph was clustered, after [`add_constant_copies`].
    pub program: &'a Program,
    /// Clusters of the graph, with the edges that were not merged.
    pub found: &'a Clustering,
    /// Inferred facts about the graph's tensors.
    pub facts: &'a Facts,
    /// Number of nodes of the file that preprocessing removed.
    pub gone: usize,
    /// Assumptions, one sentence each.
    pub assumed: Vec<String>,
    /// The name of the file in the report.
    pub source: String,
}

/// The report of a graph, without code; the caller adds the code of [`Report::clusters`].
pub fn report(input: &Input) -> Report {
    let Input { program, found, facts, .. } = input;
    let flops = flops::node_flops(program, facts);
    let columns = GraphColumns::new(program, found, facts, &flops);
    let clusters = clusters(input, &columns);
    let nodes = columns.nodes.name.len();
    let known = |inside: bool| -> u64 {
        let all = columns.nodes.flops.iter().zip(&columns.nodes.cluster);
        all.filter(|(_, c)| !inside || c.is_some()).fold(0, |sum, (f, _)| sum.saturating_add(f.unwrap_or(0)))
    };
    let (total, inside) = (known(false), known(true));
    let part = |a: u64, b: u64| if b == 0 { 0.0 } else { a as f64 / b as f64 };
    Report {
        version: model::VERSION,
        tool: concat!("tfaot ", env!("CARGO_PKG_VERSION")).to_string(),
        source: input.source.clone(),
        models: Vec::new(),
        next: Vec::new(),
        baseline: None,
        summary: CoverageSummary {
            nodes,
            clustered: found.clustered_node_count(),
            node_coverage: part(found.clustered_node_count(), nodes as u64),
            flops: total,
            clustered_flops: inside,
            flops_coverage: part(inside, total),
            unknown_flops: columns.nodes.flops.iter().filter(|f| f.is_none()).count(),
            gone: input.gone,
            functions: program.functions.len(),
            profiled: false,
        },
        assumed: input.assumed.clone(),
        blockers: blockers::blocker_groups(&columns),
        stops: blockers::merge_obstacles(&columns),
        open_sizes: open_sizes(input),
        clusters,
        columns,
        code: Vec::new(),
    }
}

/// Maximum number of causes of open sizes; `tfaot inspect` lists them all.
const MOST_CAUSES: usize = 40;

fn open_sizes(input: &Input) -> Vec<OpenSize> {
    let causes = input.facts.size_origins(input.program).into_iter().take(MOST_CAUSES);
    let node =
        |e: &SizeOrigin| e.function.is_none().then(|| input.program.graph.find(&e.node)).flatten().map(|id| id.0);
    let told = |(e, tensors): (SizeOrigin, u64)| OpenSize {
        why: e.to_string(),
        remedy: e.remedy.to_string(),
        node: node(&e),
        tensors,
    };
    causes.map(told).collect()
}

fn clusters(input: &Input, columns: &GraphColumns) -> Vec<ClusterReport> {
    let mut all: Vec<ClusterReport> = input.found.clusters.iter().map(ClusterReport::new).collect();
    for (flops, at) in columns.nodes.flops.iter().zip(&columns.nodes.cluster) {
        if let Some(cluster) = at.and_then(|at| all.get_mut(at as usize)) {
            match flops {
                Some(n) => cluster.flops = cluster.flops.saturating_add(*n),
                None => cluster.unknown_flops += 1,
            }
        }
    }
    all
}
