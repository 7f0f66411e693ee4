//! `tfaot inspect`: what a graph holds, without lowering it.
use super::args::InspectArgs;
use super::{Verdict, out};
use crate::diag::Result;
use crate::graph::{Attr, Graph, Node, PartialShape, Program};
use crate::{import, ops};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Prints the description.
pub fn run(args: &InspectArgs) -> Result<Verdict> {
    let program = import::load(&args.graph.graph, args.graph.format.as_deref())?;
    let facts = describe(&program);
    if args.json {
        out::json(&facts)?
    } else {
        out::text(&as_text(&facts))?
    }
    Ok(Verdict::Yes)
}

/// The facts as a JSON document.
fn describe(program: &Program) -> Value {
    let graphs = || std::iter::once(&program.graph).chain(program.functions.values().map(|f| &f.graph));
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut parameters, mut constant_bytes) = (0u64, 0u64);
    for node in graphs().flat_map(|g| g.nodes.values()) {
        *counts.entry(&node.op).or_default() += 1;
        if let Some(Attr::Tensor(value)) = node.attr("value").filter(|_| &*node.op == "Const") {
            parameters = parameters.saturating_add(if value.dtype.is_float() { value.len() as u64 } else { 0 });
            constant_bytes = constant_bytes.saturating_add(value.bytes.len() as u64);
        }
    }
    let known = |op: &str| ops::find(op).is_some() || STRUCTURAL.contains(&op);
    let unsupported: Vec<&str> = counts.keys().copied().filter(|op| !known(op)).collect();
    let mut by_count: Vec<_> = counts.iter().collect();
    by_count.sort_by_key(|&(op, n)| (std::cmp::Reverse(*n), *op));
    let signature = |pairs: &[(String, String)]| -> Value {
        pairs.iter().map(|(name, tensor)| json!({"name": name, "tensor": tensor})).collect()
    };
    let inputs: Vec<Value> =
        program.graph.nodes.values().filter(|n| n.op.starts_with("Placeholder")).map(input).collect();
    json!({
        "file": program.source,
        "producer": program.producer,
        "nodes": program.graph.nodes.len(),
        "functions": program.functions.iter().map(|(name, f)| json!({"name": &**name, "args": f.args.len(), "results": f.rets.len(), "nodes": f.graph.nodes.len()})).collect::<Vec<_>>(),
        "inputs": inputs,
        "outputs": sinks(&program.graph),
        "signatures": program.signatures.iter().map(|s| json!({"name": s.name, "inputs": signature(&s.inputs), "outputs": signature(&s.outputs)})).collect::<Vec<_>>(),
        "ops": by_count.iter().map(|(op, n)| json!({"op": op, "count": n, "supported": known(op)})).collect::<Vec<_>>(),
        "unsupported_ops": unsupported,
        "parameters": parameters,
        "constant_bytes": constant_bytes,
    })
}

/// Ops that stand for the graph's own structure and need no row.
const STRUCTURAL: &[&str] = &["_Arg", "_Retval", "Const", "Placeholder", "PlaceholderWithDefault", "NoOp"];

fn input(node: &Node) -> Value {
    let dtype = node.tf_type("dtype").map_or("?".to_string(), |t| t.to_string());
    let shape = match node.attr("shape") {
        Some(Attr::Shape(shape)) => shape.clone(),
        _ => PartialShape(None),
    };
    json!({"name": format!("{}:0", node.name), "type": format!("{dtype}{shape}"), "fixed": shape.fixed().is_some()})
}

/// Nodes whose outputs nobody reads.
fn sinks(graph: &Graph) -> Vec<Value> {
    let read: BTreeSet<_> = graph.nodes.values().flat_map(|n| n.inputs.iter().map(|e| e.node)).collect();
    let no_value =
        |n: &Node| matches!(&*n.op, "NoOp" | "Const" | "Assert" | "SaveV2") || n.op.starts_with("Placeholder");
    let ends = graph.nodes.iter().filter(|(id, n)| !read.contains(id) && !no_value(n));
    ends.map(|(_, n)| json!({"name": format!("{}:0", n.name), "op": &*n.op})).collect()
}

fn as_text(facts: &Value) -> String {
    let list = |key: &str| facts[key].as_array().cloned().unwrap_or_default();
    let word = |value: &Value, key: &str| value[key].as_str().unwrap_or("").to_string();
    let mut text = format!(
        "{}: {} nodes, {} functions, {} parameters ({} bytes of constants), producer {}\n",
        word(facts, "file"),
        facts["nodes"],
        list("functions").len(),
        facts["parameters"],
        facts["constant_bytes"],
        facts["producer"],
    );
    text += "\ninputs\n";
    for input in list("inputs") {
        let note = if input["fixed"] == json!(true) { "" } else { "  (bind its size with --feed or --dim)" };
        text += &format!("  {}  {}{note}\n", word(&input, "name"), word(&input, "type"));
    }
    text += "\noutputs\n";
    for output in list("outputs").iter().take(50) {
        text += &format!("  {}  {}\n", word(output, "name"), word(output, "op"));
    }
    for signature in list("signatures") {
        text += &format!("\nsignature {}\n", word(&signature, "name"));
        for (key, arrow) in [("inputs", "<-"), ("outputs", "->")] {
            for one in signature[key].as_array().into_iter().flatten() {
                text += &format!("  {} {arrow} {}\n", word(one, "name"), word(one, "tensor"));
            }
        }
    }
    text += "\nops\n";
    for op in list("ops") {
        let note = if op["supported"] == json!(true) { "" } else { "  not supported" };
        text += &format!("  {:>7}  {}{note}\n", op["count"].to_string(), word(&op, "op"));
    }
    text
}
