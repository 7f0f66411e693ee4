//! The report: what became of a graph, as one HTML page that needs nothing else, or as a JSON document.
//!
//! In: a program brought to what TensorFlow's pass sees, its clusters, what is known of its tensors, and what the caller
//! compiled of them. Out: a [`Report`], which is plain data, and [`page::render`], which puts it into a page. Nothing here
//! compiles, measures, or touches files; the same input gives the same bytes.
//!
//! `graph` tells the nodes in columns, `flops` estimates their work, `blockers` groups what keeps nodes outside, `part` cuts a
//! cluster out so that it can be compiled alone, `order` says in which order such parts can run, `code` tells what came of that.
//!
//! # How it works
//!
//! - `report/` is data from values: nodes in columns, work by node, blockers, and for each cluster what was compiled of it.
//!   `cli/report.rs` loads, clusters, infers and compiles, and hands the pieces over; `report --json` prints the data, the
//!   page holds the same, packed.
//! - Models are compiled whole too, a function each (`whole.rs`): that is what the page begins with. `baseline.rs` compares with
//!   an earlier document.
//! - A cluster is compiled alone: `part.rs` feeds what crosses its border with the shapes that inference knows. A kernel
//!   carries the names of the instructions in it, and those the names of nodes: that is how one choice lights all panes.
//! - The page is `report/page/`: the answer is plain HTML written by `answer.rs`, the rest is drawn by scripts that stand
//!   there as files and are put together into one. Its policy names the hash of that script and of the style and forbids
//!   everything else, so that nothing out of a graph runs.
//! - Only opened groups are laid out (`layout.js`), on a canvas; `painter.js` draws the same for SVG.
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
pub use blockers::what_ifs;
pub use graph::with_copies;
pub use model::{Blocker, ClusterReport, CodeReport, Gain, OpenSize, Refusal, Report, Stop};
pub use order::in_order;
pub use overview::FunctionSummary;
pub use part::{ClusterBorder, cluster_border, settle};

use crate::cluster::Clustering;
use crate::graph::Program;
use crate::infer::{Facts, SizeOrigin};
use graph::GraphColumns;
use model::Summary;

/// Inputs from which a report is made.
pub struct Input<'a> {
    /// The program whose top-level graph was clustered; [`with_copies`] has put the copies of constants into it.
    pub program: &'a Program,
    /// Clusters of the graph, with the edges that joined nothing.
    pub found: &'a Clustering,
    /// Inferred facts about the graph's tensors.
    pub facts: &'a Facts,
    /// Nodes of the file that are not in the graph any more.
    pub gone: usize,
    /// Assumptions that were made, a sentence each.
    pub assumed: Vec<String>,
    /// The file as it is called in the report.
    pub source: String,
}

/// The report of a graph, without code: [`Report::clusters`] are filled in by who compiles them.
pub fn report(input: &Input) -> Report {
    let Input { program, found, facts, .. } = input;
    let flops = flops::of_graph(program, facts);
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
        summary: Summary {
            nodes,
            clustered: found.clustered(),
            node_coverage: part(found.clustered(), nodes as u64),
            flops: total,
            clustered_flops: inside,
            flops_coverage: part(inside, total),
            unknown_flops: columns.nodes.flops.iter().filter(|f| f.is_none()).count(),
            gone: input.gone,
            functions: program.functions.len(),
            profiled: false,
        },
        assumed: input.assumed.clone(),
        blockers: blockers::groups(&columns),
        stops: blockers::stops(&columns),
        open_sizes: open_sizes(input),
        clusters,
        columns,
        code: Vec::new(),
    }
}

/// More causes are left to `tfaot inspect`.
const MOST_CAUSES: usize = 40;

fn open_sizes(input: &Input) -> Vec<OpenSize> {
    let causes = input.facts.origins(input.program).into_iter().take(MOST_CAUSES);
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
