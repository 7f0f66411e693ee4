//! Text and JSON forms of clusters, and their comparison with an earlier result.
use crate::cluster::{Clustering, ExclusionReason, FunctionClustering, NodeVerdict, RefusedEdge};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Number of example nodes for each reason in the table.
const EXAMPLES: usize = 4;

/// The JSON document; `docs/clustering.md` describes it.
pub fn json_document(source: &str, found: &Clustering, bodies: &[FunctionClustering]) -> Value {
    let mut document = of_graph(found);
    let functions = bodies.iter().map(|body| {
        let mut function = json!({"function": &*body.name});
        if let (Some(all), Value::Object(more)) = (function.as_object_mut(), of_graph(&body.clustering)) {
            all.extend(more);
        }
        function
    });
    document["functions"] = functions.collect();
    document["file"] = json!(source);
    document
}

fn of_graph(found: &Clustering) -> Value {
    let mut ops: Vec<BTreeMap<&str, u64>> = vec![BTreeMap::new(); found.clusters.len()];
    let mut outside = Vec::new();
    for node in &found.nodes {
        match &node.cluster {
            Ok(at) => {
                *ops[*at as usize].entry(&node.op).or_default() += 1;
            }
            Err(why) => {
                let row = why.code().row();
                outside.push(json!({"node": node.name, "op": node.op, "code": why.code().id(), "slug": row.slug, "reason": why.text(&node.op)}));
            }
        }
    }
    let clusters: Vec<Value> = found
        .clusters
        .iter()
        .zip(ops)
        .map(|(c, ops)| json!({"name": c.name, "nodes": c.nodes, "effective": c.effective, "device": c.device, "ops": ops}))
        .collect();
    let edges: Vec<Value> = found.refused.iter().map(edge).collect();
    json!({
        "nodes": found.nodes.len(),
        "clustered": found.clustered_node_count(),
        "coverage": found.coverage(),
        "clusters": clusters,
        "outside": outside,
        "edges": edges,
        "assignments": assignments(found),
    })
}

/// By node: the name of its cluster, or null.
pub fn assignments(found: &Clustering) -> Map<String, Value> {
    let name = |at: &u32| json!(found.clusters[*at as usize].name);
    found.nodes.iter().map(|n| (n.name.clone(), n.cluster.as_ref().map_or(Value::Null, name))).collect()
}

fn edge(edge: &RefusedEdge) -> Value {
    let row = edge.why.code().row();
    json!({"from": edge.from, "to": edge.to, "code": edge.why.code().id(), "slug": row.slug, "reason": edge.why.text()})
}

/// A readable summary: clusters, nodes outside by reason, and reasons why clusters were not merged.
pub fn summary_table(found: &Clustering) -> String {
    let mut text = String::new();
    let (all, inside) = (found.nodes.len(), found.clustered_node_count());
    let share = 100.0 * found.coverage();
    let _ = writeln!(text, "{inside} of {all} nodes are in {} clusters ({share:.1} %)", found.clusters.len());
    for c in &found.clusters {
        let _ = writeln!(text, "  {:14} {:>7} nodes {:>7} effective", c.name, c.nodes, c.effective);
    }
    let outside: Vec<(&NodeVerdict, _)> =
        found.nodes.iter().filter_map(|n| n.cluster.as_ref().err().map(|why| (n, why))).collect();
    let mut reasons: BTreeMap<_, Vec<&NodeVerdict>> = BTreeMap::new();
    outside.iter().for_each(|(n, why)| reasons.entry(why.code().row().number).or_default().push(n));
    let mut reasons: Vec<_> = reasons.into_values().collect();
    reasons.sort_by_key(|nodes| std::cmp::Reverse(nodes.len()));
    if !reasons.is_empty() {
        text.push_str("outside:\n");
    }
    for nodes in reasons {
        let Some(Err(why)) = nodes.first().map(|n| &n.cluster) else { continue };
        let shown: Vec<String> = nodes.iter().take(EXAMPLES).map(|n| format!("{} ({})", n.name, n.op)).collect();
        let more = if nodes.len() > EXAMPLES { ", ..." } else { "" };
        let row = why.code().row();
        let _ = writeln!(text, "  {} {:22} {:>7}  {}{more}", why.code().id(), row.slug, nodes.len(), shown.join(", "));
    }
    stops(&mut text, &found.refused);
    text
}

/// Appends the reasons why clusters were not merged, with their counts.
fn stops(text: &mut String, refused: &[RefusedEdge]) {
    let mut by_code: BTreeMap<_, (usize, &RefusedEdge)> = BTreeMap::new();
    for edge in refused {
        by_code.entry(edge.why.code().row().number).or_insert((0, edge)).0 += 1;
    }
    if !by_code.is_empty() {
        text.push_str("edges between clusters that did not become one:\n");
    }
    for (count, edge) in by_code.into_values() {
        let row = edge.why.code().row();
        let why: String = edge.why.text().chars().take(300).collect();
        let _ = writeln!(
            text,
            "  {} {:22} {count:>7}  {} -> {}: {why}",
            edge.why.code().id(),
            row.slug,
            edge.from,
            edge.to
        );
    }
}

/// Changes between two clusterings.
pub struct ClusteringDifference {
    /// The changes as text.
    pub text: String,
    /// Number of nodes that were in a cluster and are in none now.
    pub lost: usize,
}

/// Compares with the `assignments` of an earlier document. Names of clusters are ignored, as they are just numbers.
pub fn compare_assignments(old: &Map<String, Value>, found: &Clustering) -> ClusteringDifference {
    let was = |name: &str| old.get(name).and_then(Value::as_str);
    let mut text = String::new();
    let (mut lost, mut gained, mut new) = (0, 0, 0);
    for node in &found.nodes {
        match (old.contains_key(&node.name), was(&node.name), &node.cluster) {
            (false, _, _) => new += 1,
            (_, Some(before), Err(why)) => {
                lost += 1;
                let _ = writeln!(
                    text,
                    "- {} ({}) was in {before}: {} {}",
                    node.name,
                    node.op,
                    why.code().id(),
                    why.text(&node.op)
                );
            }
            (_, None, Ok(now)) => {
                gained += 1;
                let _ = writeln!(text, "+ {} ({}) is in {}", node.name, node.op, found.clusters[*now as usize].name);
            }
            (_, Some(_), Ok(_)) | (_, None, Err(_)) => {}
        }
    }
    let now: BTreeSet<&str> = found.nodes.iter().map(|n| n.name.as_str()).collect();
    let gone = old.keys().filter(|name| !now.contains(name.as_str())).count();
    let _ = writeln!(
        text,
        "{lost} nodes left clusters, {gained} came into one, {} regrouped; {new} nodes are new, {gone} are gone",
        regrouped(old, found)
    );
    ClusteringDifference { text, lost }
}

/// Number of nodes that are in clusters in both, but grouped with other nodes.
fn regrouped(old: &Map<String, Value>, found: &Clustering) -> usize {
    let mut then: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut now: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    let mut both = Vec::new();
    for node in &found.nodes {
        if let (Some(before), Ok(after)) = (old.get(&node.name).and_then(Value::as_str), &node.cluster) {
            then.entry(before).or_default().insert(&node.name);
            now.entry(*after).or_default().insert(&node.name);
            both.push((before, *after));
        }
    }
    let same: BTreeSet<(&str, u32)> = both.iter().copied().collect();
    let same: BTreeSet<(&str, u32)> = same.into_iter().filter(|(b, a)| then.get(b) == now.get(a)).collect();
    both.iter().filter(|pair| !same.contains(pair)).count()
}

/// Explanation of a node's assignment: its cluster and what limits it, or the reason for its exclusion and the page of the code.
pub fn explain_node(found: &Clustering, node: &NodeVerdict) -> String {
    let mut text = format!("{} ({})\n", node.name, node.op);
    let at = match &node.cluster {
        Err(why) => {
            let row = why.code().row();
            let _ = writeln!(
                text,
                "{}: {}\n\n{} {}: {}\nWhat helps: {}",
                if let ExclusionReason::OwnCluster(_) = why { "is a cluster of its own" } else { "is in no cluster" },
                why.text(&node.op),
                why.code().id(),
                row.slug,
                row.about,
                row.cure
            );
            return text;
        }
        Ok(at) => *at,
    };
    let cluster = &found.clusters[at as usize];
    let _ = writeln!(text, "is in {}, with {} nodes ({} effective)", cluster.name, cluster.nodes, cluster.effective);
    let mine = |name: &str| found.nodes.iter().any(|n| n.name == name && n.cluster.as_ref() == Ok(&at));
    for edge in found.refused.iter().filter(|e| mine(&e.from) || mine(&e.to)) {
        let row = edge.why.code().row();
        let _ = writeln!(
            text,
            "  {} {}: {} -> {}: {}",
            edge.why.code().id(),
            row.slug,
            edge.from,
            edge.to,
            edge.why.text()
        );
    }
    text
}
