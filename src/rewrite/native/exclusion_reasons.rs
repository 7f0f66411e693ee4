//! Summary of the reasons why nodes of a graph are in no cluster.
use crate::cluster::{Clustering, NodeVerdict};
use crate::diag::Code;
use std::collections::BTreeMap;

/// Reasons why nodes are in no cluster, each with the number of nodes and the first three. The largest group comes first.
#[derive(Debug, Default)]
pub struct ExclusionCounts {
    groups: BTreeMap<(String, String), (u64, Vec<String>)>,
}

impl ExclusionCounts {
    /// Counts the nodes of one graph that clustering left out. Nodes that are never in clusters, such as arguments, are skipped.
    pub fn add(&mut self, found: &Clustering) {
        for node in &found.nodes {
            let Err(left) = &node.cluster else { continue };
            if matches!(
                left.code(),
                Code::GraphArgument | Code::ExpandedNode | Code::NotFetched | Code::LeftOut | Code::OwnCluster
            ) {
                continue;
            }
            let group = self.groups.entry((left.code().id(), left.text(&node.op))).or_default();
            group.0 += 1;
            if group.1.len() < 3 {
                group.1.push(format!("`{}` ({})", node.name, node.op));
            }
        }
    }

    /// Describes each reason in a sentence for the user that names nodes, the most frequent reason first.
    pub fn sentences(&self) -> Vec<String> {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let told = |((code, why), (count, first)): (&(String, String), &(u64, Vec<String>))| {
            let more = if *count > first.len() as u64 { ", ..." } else { "" };
            let nodes = if *count == 1 { "1 node is".to_string() } else { format!("{count} nodes are") };
            format!("{nodes} in no cluster [{code}]: {}{more}: {why}", first.join(", "))
        };
        groups.into_iter().map(told).collect()
    }
}

/// Note for the user about a loop or conditional that stays in TensorFlow because nodes inside assert or print; `None` for other nodes.
pub fn note_on_assertions_and_prints(node: &NodeVerdict) -> Option<String> {
    let left = node.cluster.as_ref().err().filter(|left| left.is_due_to_runtime_checks())?;
    let why = left.text(&node.op);
    Some(format!("`{}` ({}) stays in TensorFlow: {why}; --drop-assertions compiles it without", node.name, node.op))
}
