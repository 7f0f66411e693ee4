//! Scopes around Stage and Unstage, which keep the two sides of an input pipeline in different clusters.
use super::flow::FlowGraph;
use crate::graph::Attr;
use std::collections::HashMap;

/// Scopes of the nodes that come before a Stage or after an Unstage, each appended to the scope that the node had.
pub fn run(flow: &FlowGraph) -> HashMap<u32, String> {
    let mut scopes: HashMap<u32, String> = HashMap::new();
    let mut fresh = 0u64;
    for n in flow.op_nodes() {
        let forward = match flow.op(n) {
            "Unstage" => true,
            "Stage" => false,
            _ => continue,
        };
        let mut open = vec![n];
        let mut seen = vec![false; flow.nodes.len()];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            let scope = scopes.entry(at).or_insert_with(|| initial_scope(flow, at));
            if !scope.is_empty() {
                scope.push('&');
            }
            scope.push_str(&format!("_{fresh}"));
            if forward {
                open.extend(flow.out_edges(at).map(|e| e.dst));
            } else {
                open.extend(flow.in_edges(at).map(|e| e.src));
            }
        }
        fresh += 1;
    }
    scopes
}

fn initial_scope(flow: &FlowGraph, n: u32) -> String {
    match flow.nodes[n as usize].node.and_then(|node| node.attr("_XlaInternalScope")) {
        Some(Attr::Str(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}
