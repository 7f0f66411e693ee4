//! Inferred types as text and JSON. An unknown size is `?`, and its origin is stated.
use crate::graph::{Graph, Program};
use crate::infer::{Facts, GraphFacts, SizeOrigin};
use crate::ops::fact::{Dims, Fact};
use crate::ops::symbols::InferredDim;
use serde_json::{Value, json};

/// A type in HLO's notation, with `?` for unknown parts.
fn spelled(fact: &Fact) -> String {
    let dtype = fact.dtype.map_or("?".to_string(), |t| t.to_string());
    format!("{dtype}{}", fact.dims)
}

/// JSON of one tensor: name, type, dimensions (null: unknown; no list: unknown rank), and the origins of unknown sizes.
pub fn tensor_json(program: &Program, facts: &Facts, name: &str, fact: Option<&Fact>) -> Value {
    let Some(fact) = fact else { return json!({"name": name, "type": "?[...]"}) };
    let dims: Value = match &fact.dims {
        Dims::Unranked(_) => Value::Null,
        Dims::Ranked(dims) => {
            dims.iter().map(|d| if let InferredDim::Known(n) = d { json!(n) } else { Value::Null }).collect()
        }
    };
    let mut out = json!({"name": name, "type": spelled(fact), "dims": dims});
    let why: Vec<Value> = fact.dims.unknowns().map(|id| json!(facts.size_origin(program, id).to_string())).collect();
    if !why.is_empty() {
        out["unknown"] = json!(why);
    }
    out
}

/// Origins of unknown sizes with the number of tensors that they affect, most frequent first.
pub fn size_origins_json(program: &Program, facts: &Facts) -> Value {
    let told = |(e, n): (SizeOrigin, u64)| json!({"text": e.to_string(), "remedy": e.remedy.to_string(), "tensors": n});
    facts.size_origins(program).into_iter().map(told).collect()
}

/// Every tensor of the graph and of the called functions.
pub fn tensors_json(program: &Program, facts: &Facts) -> Value {
    let mut out = Vec::new();
    let mut add = |graph: &Graph, known: &GraphFacts, function: Option<&str>| {
        for (node, outputs) in graph.nodes.values().zip(known) {
            for (port, fact) in outputs.iter().enumerate() {
                let mut one = tensor_json(program, facts, &format!("{}:{port}", node.name), Some(fact));
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
