//! Clones small constants with several consumers, one clone per consumer, so that a shared constant does not tie clusters together.
use super::ConstantCopy;
use super::flow::{CONTROL, FlowGraph, OpClass};
use crate::diag::{Code, Error, Result};
use crate::graph::Attr;
use std::collections::HashSet;

/// Constants with fewer elements than this are cloned.
const SMALL: u64 = 16;

/// Clones the small constants of `flow` and returns the clones. A graph with ops that update tensors in place is left unchanged.
pub fn run(flow: &mut FlowGraph) -> Result<Vec<ConstantCopy>> {
    let mut made = Vec::new();
    if flow.op_nodes().any(|n| matches!(flow.op(n), "InplaceUpdate" | "InplaceAdd" | "InplaceSub")) {
        return Ok(made);
    }
    let mut names: HashSet<String> = HashSet::new();
    let mut copies = 0u64;
    for n in flow.op_nodes() {
        let mut ins = flow.nodes[n as usize].in_edges.clone();
        ins.sort_unstable();
        for id in ins {
            let Some(edge) = flow.edges[id as usize] else { continue };
            if !is_small_constant(flow, edge.src) || flow.nodes[edge.src as usize].out_edges.len() == 1 {
                continue;
            }
            let Some(node) = flow.nodes[edge.src as usize].node else { continue };
            if names.is_empty() {
                names = flow.nodes.iter().map(|n| n.name.to_string()).collect();
            }
            let name = fresh(&mut names, flow.name(edge.src), &mut copies)?;
            made.push(ConstantCopy {
                name: name.clone(),
                constant: flow.name(edge.src).to_string(),
                user: flow.name(edge.dst).to_string(),
                input: usize::try_from(edge.dst_port).ok(),
            });
            let controls: Vec<_> = flow.in_edges(edge.src).collect();
            let copy = flow.add_node(name.into(), node);
            for from in controls {
                flow.add_edge(from.src, from.src_port, copy, from.dst_port);
            }
            if edge.dst_port != CONTROL {
                flow.remove_edge(id);
            }
            flow.add_edge(copy, edge.src_port, edge.dst, edge.dst_port);
        }
    }
    Ok(made)
}

fn fresh(names: &mut HashSet<String>, base: &str, copies: &mut u64) -> Result<String> {
    loop {
        let name = format!("{base}/clone_{copies}");
        *copies = copies.checked_add(1).ok_or_else(|| Error::user(Code::TooLarge, "too many constants are copied"))?;
        if names.insert(name.clone()) {
            return Ok(name);
        }
    }
}

fn is_small_constant(flow: &FlowGraph, n: u32) -> bool {
    if flow.class(n) != OpClass::Constant {
        return false;
    }
    let dims = match flow.nodes[n as usize].node.and_then(|node| node.attr("value")) {
        Some(Attr::Tensor(value)) => value.dims.iter().fold(1u64, |all, &d| all.saturating_mul(d)),
        Some(Attr::Strings(_, all)) => all.len() as u64,
        _ => return false,
    };
    dims < SMALL
}
