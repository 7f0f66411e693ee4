//! Reasons that exclude nodes from clusters, grouped and sorted by the work that they cost; and reasons why clusters were not merged.
use super::graph::GraphColumns;
use super::model::{Blocker, ClusteringGain, MergeObstacle};
use crate::cluster::{self, Clustering, ClusteringOptions};
use crate::diag::Code;
use crate::diag::codes::CODES;
use crate::graph::Program;
use crate::ops;
use std::collections::{BTreeMap, BTreeSet};

/// Number of nodes above which a graph is not clustered again to evaluate each blocker.
const MOST_NODES: usize = 20_000;
/// Maximum number of ops for which clustering is repeated as if XLA compiled them.
const MOST_ASKED: usize = 8;

/// Whether a reason is an obstacle. Nodes that are never in clusters, and choices of TensorFlow that cost nothing, are not.
fn blocks(code: &str) -> bool {
    let row = CODES.iter().find(|r| r.code.id() == code);
    !matches!(
        row.map(|r| r.code),
        Some(
            Code::GraphArgument
                | Code::Declustered
                | Code::NotFetched
                | Code::ExpandedNode
                | Code::LoopConstant
                | Code::OwnCluster
        )
    )
}

/// Whether a reason concerns the op rather than the individual node.
fn is_of_op(code: &str) -> bool {
    let row = CODES.iter().find(|r| r.code.id() == code);
    !matches!(
        row.map(|r| r.code),
        Some(
            Code::ClusterTooSmall
                | Code::Declustered
                | Code::GraphArgument
                | Code::NotFetched
                | Code::ExpandedNode
                | Code::ClusteringOff
                | Code::FuelSpent
                | Code::NoCompilationDevice
                | Code::AlreadyClustered
                | Code::LoopsCross
                | Code::OwnCluster
        )
    )
}

/// Groups of excluded nodes, by what they cost.
pub fn blocker_groups(columns: &GraphColumns) -> Vec<Blocker> {
    let nodes = &columns.nodes;
    let mut cuts = vec![0usize; nodes.name.len()];
    for edge in &columns.edges {
        edge.path.iter().collect::<BTreeSet<_>>().into_iter().for_each(|&n| cuts[n as usize] += 1);
    }
    let mut groups: BTreeMap<(&str, &str), Blocker> = BTreeMap::new();
    for (i, reason) in nodes.reason.iter().enumerate() {
        let Some(reason) = reason.and_then(|r| columns.reasons.get(r as usize)) else { continue };
        let op = columns.ops[nodes.op[i] as usize].as_str();
        let key = (reason.code.as_str(), if is_of_op(&reason.code) { op } else { "" });
        let group = groups.entry(key).or_insert_with(|| Blocker {
            code: reason.code.clone(),
            slug: reason.slug,
            op: key.1.to_string(),
            reason: if key.1.is_empty() { reason.about.to_string() } else { reason.text.clone() },
            cure: reason.cure,
            blocks: blocks(&reason.code) && !ops::is_boundary(op),
            nodes: Vec::new(),
            flops: 0,
            cuts: 0,
            gain: None,
        });
        group.nodes.push(i as u32);
        group.flops = group.flops.saturating_add(nodes.flops[i].unwrap_or(0));
        group.cuts += cuts[i];
    }
    let mut groups: Vec<Blocker> = groups.into_values().collect();
    sort(&mut groups);
    groups
}

/// Sorts the most valuable groups first: by the work that would be gained or is outside, then by the number of nodes.
fn sort(groups: &mut [Blocker]) {
    let worth = |b: &Blocker| {
        let gain = b.gain.unwrap_or(ClusteringGain { nodes: 0, flops: 0, clusters: 0 });
        let flops = (b.flops as i128).max(gain.flops.into());
        let nodes = (b.nodes.len() as i64).max(gain.nodes);
        (!b.blocks, std::cmp::Reverse(flops), std::cmp::Reverse(b.cuts), std::cmp::Reverse(nodes))
    };
    groups.sort_by_key(worth);
}

/// Repeats clustering as if XLA compiled the op of each of the first groups, and records the gain.
///
/// # Errors
/// Errors of clustering.
pub fn evaluate_what_ifs(
    report: &mut super::Report,
    program: &Program,
    found: &Clustering,
    options: &ClusteringOptions,
) -> crate::diag::Result<()> {
    if report.summary.nodes > MOST_NODES {
        return Ok(());
    }
    let flops = &report.columns.nodes.flops;
    let inside = |found: &Clustering| -> i64 {
        let all = found.nodes.iter().zip(flops).filter(|(n, _)| n.cluster.is_ok());
        all.fold(0u64, |sum, (_, f)| sum.saturating_add(f.unwrap_or(0))) as i64
    };
    let now = inside(found);
    let mut asked = options.clone();
    asked.refused_edges = false;
    for blocker in report.blockers.iter_mut().filter(|b| b.blocks && !b.op.is_empty()).take(MOST_ASKED) {
        asked.what_if = vec![blocker.op.clone()];
        let then = cluster::cluster(program, &program.graph, &asked)?;
        blocker.gain = Some(ClusteringGain {
            nodes: then.clustered_node_count() as i64 - found.clustered_node_count() as i64,
            flops: inside(&then) - now,
            clusters: then.clusters.len() as i64 - found.clusters.len() as i64,
        });
    }
    sort(&mut report.blockers);
    Ok(())
}

/// Reasons why clusters were not merged, with the edges that each affected.
pub fn merge_obstacles(columns: &GraphColumns) -> Vec<MergeObstacle> {
    let mut by_code: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (i, edge) in columns.edges.iter().enumerate() {
        by_code.entry(&edge.code).or_default().push(i as u32);
    }
    let mut stops: Vec<MergeObstacle> = by_code
        .into_iter()
        .filter_map(|(code, edges)| {
            let row = Code::parse(code)?;
            Some(MergeObstacle { code: code.to_string(), slug: row.slug, about: row.about, cure: row.cure, edges })
        })
        .collect();
    stops.sort_by_key(|s| std::cmp::Reverse(s.edges.len()));
    stops
}
