//! Inferred types in words and in JSON: `?` is a size that is not known, and each says where it comes from.
use crate::graph::{Graph, Program};
use crate::infer::{Facts, GraphFacts, Remedy};
use crate::ops::fact::{Dims, Fact};
use crate::ops::symbols::{Dim, DimId};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A type as HLO writes it, with `?` for what is not known.
fn spelled(fact: &Fact) -> String {
    let dtype = fact.dtype.map_or("?".to_string(), |t| t.to_string());
    format!("{dtype}{}", fact.dims)
}

/// One tensor: name, type, sizes (null: unknown; no list: unknown rank), and the origins of its unknown sizes.
pub fn tensor(program: &Program, facts: &Facts, name: &str, fact: Option<&Fact>) -> Value {
    let Some(fact) = fact else { return json!({"name": name, "type": "?[...]"}) };
    let dims: Value = match &fact.dims {
        Dims::Unranked(_) => Value::Null,
        Dims::Ranked(dims) => dims.iter().map(|d| if let Dim::Known(n) = d { json!(n) } else { Value::Null }).collect(),
    };
    let mut out = json!({"name": name, "type": spelled(fact), "dims": dims});
    let why: Vec<Value> = fact.dims.unknowns().map(|id| json!(in_words(program, facts, id).0)).collect();
    if !why.is_empty() {
        out["unknown"] = json!(why);
    }
    out
}

/// Where an unknown size comes from, and what would fix it, if anything would.
fn in_words(program: &Program, facts: &Facts, id: DimId) -> (String, String) {
    let e = facts.explain(program, id);
    let inside = e.function.map_or(String::new(), |f| format!(" of function `{f}`"));
    let remedy = match &e.remedy {
        Remedy::None => String::new(),
        Remedy::Feed { name, dim: Some(dim) } => format!("bind it with --dim {name}[{dim}]=N"),
        Remedy::Feed { name, dim: None } => format!("give its shape: --feed {name}=f32[1,224,224,3]"),
    };
    (format!("node `{}` ({}){inside}: {}", e.node, e.op, e.reason), remedy)
}

/// Every origin of unknown sizes with the number of tensors that have one from there, the most first.
pub fn origins(program: &Program, facts: &Facts) -> Value {
    let mut counts: BTreeMap<DimId, u64> = BTreeMap::new();
    for graph in std::iter::once(&facts.graph).chain(&facts.functions) {
        for fact in graph.iter().flat_map(|outputs| outputs.iter()) {
            let mut roots: Vec<DimId> = fact.dims.unknowns().map(|id| facts.symbols.root(id)).collect();
            roots.sort_unstable();
            roots.dedup();
            for root in roots {
                *counts.entry(root).or_default() += 1;
            }
        }
    }
    // Several sizes may have one cause.
    let mut by_text: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut sorted: Vec<_> = counts.into_iter().collect();
    sorted.sort_by_key(|&(id, n)| (std::cmp::Reverse(n), id));
    for (id, n) in sorted.into_iter().take(MOST_ORIGINS) {
        *by_text.entry(in_words(program, facts, id)).or_default() += n;
    }
    let mut rows: Vec<_> = by_text.into_iter().collect();
    rows.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    rows.into_iter().map(|((text, remedy), n)| json!({"text": text, "remedy": remedy, "tensors": n})).collect()
}

/// No more causes are told.
const MOST_ORIGINS: usize = 1000;

/// Every tensor of the graph and of the functions that are called.
pub fn tensors(program: &Program, facts: &Facts) -> Value {
    let mut out = Vec::new();
    let mut add = |graph: &Graph, known: &GraphFacts, function: Option<&str>| {
        for (node, outputs) in graph.nodes.values().zip(known) {
            for (port, fact) in outputs.iter().enumerate() {
                let mut one = tensor(program, facts, &format!("{}:{port}", node.name), Some(fact));
                one["op"] = json!(&*node.op);
                if let Some(function) = function {
                    one["function"] = json!(function);
                }
                out.push(one);
            }
        }
    };
    add(&program.graph, &facts.graph, None);
    for ((name, function), known) in program.functions.iter().zip(&facts.functions) {
        add(&function.graph, known, Some(name));
    }
    Value::Array(out)
}
