//! Summary of auto-clustering with TensorFlow's way of counting: the message that it sends to listeners, and the lines of its log.
//!
//! Source: jit/xla_cluster_util.cc, jit/mark_for_compilation_pass.cc.
use crate::cluster::Clustering;
use crate::import::proto::tensorflow::XlaAutoClusteringSummary;
use crate::import::proto::tensorflow::xla_auto_clustering_summary::{Cluster, OpAndCount};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Counts the ops inside and outside of clusters. `_SOURCE` and `_SINK` count as `NoOp`; names are sorted as strings.
pub fn summary(found: &Clustering) -> XlaAutoClusteringSummary {
    let mut inside: BTreeMap<&str, BTreeMap<&str, i32>> = BTreeMap::new();
    let mut outside: BTreeMap<&str, i32> = BTreeMap::from([("NoOp", 2)]);
    for node in &found.nodes {
        let counts = match &node.cluster {
            Ok(at) => inside.entry(&found.clusters[*at as usize].name).or_default(),
            Err(_) => &mut outside,
        };
        *counts.entry(&node.op).or_default() += 1;
    }
    let count = |ops: &BTreeMap<&str, i32>| ops.values().sum::<i32>();
    let mut out = XlaAutoClusteringSummary::new();
    out.unclustered_node_count = count(&outside);
    out.clustered_node_count = inside.values().map(count).sum();
    out.unclustered_op_histogram = histogram(&outside);
    out.clusters = inside
        .into_iter()
        .map(|(name, ops)| {
            let mut cluster = Cluster::new();
            cluster.name = name.to_string();
            cluster.size = count(&ops);
            cluster.op_histogram = histogram(&ops);
            cluster
        })
        .collect();
    out
}

fn histogram(ops: &BTreeMap<&str, i32>) -> Vec<OpAndCount> {
    let one = |(op, &n): (&&str, &i32)| {
        let mut out = OpAndCount::new();
        out.op = op.to_string();
        out.count = n;
        out
    };
    ops.iter().map(one).collect()
}

/// The lines that TensorFlow logs at a verbosity: sizes from 2 on, ops from 3, edges between clusters from 4.
pub fn log(found: &Clustering, verbosity: u32) -> String {
    let mut out = String::new();
    if verbosity < 2 {
        return out;
    }
    let told = summary(found);
    let all = found.nodes.len() + 2;
    let part = |n: i32| format!("{n} / {all} ({:.2}%)", 100.0 * f64::from(n) / all as f64);
    // Writing to a String does not fail.
    let _ = writeln!(out, "*** Clustering info for graph of size {all}");
    let _ = writeln!(out, " Built {} clusters, size {}", told.clusters.len(), part(told.clustered_node_count));
    let ops = |out: &mut String, indent: &str, ops: &[OpAndCount]| {
        for op in ops.iter().filter(|_| verbosity >= 3) {
            let _ = writeln!(out, "{indent}{}: {} instances", op.op, op.count);
        }
    };
    for cluster in &told.clusters {
        let _ = writeln!(out, "  {} {}", cluster.name, part(cluster.size));
        ops(&mut out, "   ", &cluster.op_histogram);
    }
    let _ = writeln!(out, " Unclustered nodes: {}", part(told.unclustered_node_count));
    ops(&mut out, "  ", &told.unclustered_op_histogram);
    if verbosity >= 4 {
        edges(found, &mut out);
    }
    out
}

/// Appends the neighbours of each cluster with the number of edges between them.
fn edges(found: &Clustering, out: &mut String) {
    out.push_str("*** Inter-Cluster edges:\n");
    let Some(seen) = &found.snapshot else { return };
    let clusters = seen.cluster_names(found);
    let cluster = |n: u32| clusters.get(seen.nodes[n as usize].name.as_str()).copied();
    // By cluster: incoming and outgoing neighbours by name and cluster.
    let mut of: BTreeMap<&str, [BTreeMap<(&str, Option<&str>), u64>; 2]> = BTreeMap::new();
    for &(src, dst) in &seen.edges {
        let (from, to) = (cluster(src), cluster(dst));
        if from == to {
            continue;
        }
        for (own, side, other, theirs) in [(to, 0, src, from), (from, 1, dst, to)] {
            if let Some(own) = own {
                *of.entry(own).or_default()[side].entry((&seen.nodes[other as usize].name, theirs)).or_default() += 1;
            }
        }
    }
    if of.is_empty() {
        out.push_str("   [none]\n");
    }
    for (name, sides) in &of {
        let _ = writeln!(out, " ** Cluster {name}");
        for (side, way) in sides.iter().zip(["incoming", "outgoing"]) {
            if side.is_empty() {
                let _ = writeln!(out, "  No {way} edges.");
                continue;
            }
            let _ = writeln!(out, "  {} {way} edges", side.len());
            for ((node, cluster), count) in side {
                let _ = writeln!(out, "   {} {node} # {count}", cluster.unwrap_or("[none]"));
            }
        }
    }
}
