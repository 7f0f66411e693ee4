//! `tfaot inspect`: describes a graph and the inferred facts about its tensors, without lowering it.
use super::args::InspectArgs;
use super::{ExitStatus, graph, out, shapes};
use crate::diag::Result;
use crate::graph::{Attr, Endpoint};
use crate::infer::{self, Facts};
use crate::prepare::{self, ReachableProgram};
use crate::{import, ops};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Prints the description of the graph.
pub fn run(args: &InspectArgs) -> Result<ExitStatus> {
    let program = import::load(&args.graph.graph, args.graph.format.as_deref())?;
    let request = graph::request(&args.graph)?;
    let in_file = InFile { nodes: program.graph.nodes.len(), functions: program.functions.len() };
    let request = prepare::merge_all_signatures(&program, &request);
    let reached = prepare::cut_to_request(program, &request).map_err(|e| graph::with_file(e, &args.graph))?;
    let known = infer::infer(&reached.program, &reached.feeds);
    let mut facts = describe(&reached, &in_file, &known);
    if args.shapes {
        facts["tensors"] = shapes::tensors_json(&reached.program, &known);
    }
    if args.json {
        out::json(&facts)?
    } else {
        out::text(&as_text(&facts))?
    }
    for problem in &known.problems {
        out::error(graph::with_file(problem.clone().into(), &args.graph));
    }
    // The process ends here: freeing a million nodes would waste time.
    std::mem::forget((reached, known));
    Ok(ExitStatus::Yes)
}

/// Numbers of nodes and functions in the file, reached or not.
struct InFile {
    nodes: usize,
    functions: usize,
}

/// The facts as a JSON document. It covers what the request reaches, and the names of all signatures.
fn describe(reached: &ReachableProgram, in_file: &InFile, known: &Facts) -> Value {
    let program = &reached.program;
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
    let has_row = |op: &str| {
        ops::find_op(op).is_some()
            || ops::host::find_host_op(op).is_some_and(|row| row.role.is_structural())
            || prepare::is_control_flow(op)
            || program.functions.contains_key(op)
    };
    let unsupported: Vec<&str> = counts.keys().copied().filter(|op| !has_row(op)).collect();
    let mut by_count: Vec<_> = counts.iter().collect();
    by_count.sort_by_key(|&(op, n)| (std::cmp::Reverse(*n), *op));
    let signature = |pairs: &[(String, String)]| -> Value {
        pairs.iter().map(|(name, tensor)| json!({"name": name, "tensor": tensor})).collect()
    };
    let tensor = |at: Endpoint, called: Option<&Option<String>>| -> Value {
        let node = &program.graph.nodes[at.node];
        let mut value = shapes::tensor_json(program, known, &format!("{}:{}", node.name, at.port), known.at(at));
        value["op"] = json!(&*node.op);
        if let Some(called) = called.into_iter().flatten().next() {
            value["signature_name"] = json!(called);
        }
        value
    };
    json!({
        "file": program.source,
        "producer": program.producer,
        "nodes": program.graph.nodes.len(),
        "nodes_in_file": in_file.nodes,
        "functions_in_file": in_file.functions,
        "functions": program.functions.iter().map(|(name, f)| json!({"name": &**name, "args": f.args.len(), "results": f.rets.len(), "nodes": f.graph.nodes.len()})).collect::<Vec<_>>(),
        "inputs": reached.feeds.iter().enumerate().map(|(i, f)| tensor(f.at, reached.called.feeds.get(i))).collect::<Vec<_>>(),
        "outputs": reached.fetches.iter().enumerate().map(|(i, f)| tensor(f.1, reached.called.fetches.get(i))).collect::<Vec<_>>(),
        "unknown": shapes::size_origins_json(program, known),
        "signatures": program.signatures.iter().map(|s| json!({"name": s.name, "inputs": signature(&s.inputs), "outputs": signature(&s.outputs)})).collect::<Vec<_>>(),
        "ops": by_count.iter().map(|(op, n)| json!({"op": op, "count": n, "supported": has_row(op)})).collect::<Vec<_>>(),
        "unsupported_ops": unsupported,
        "parameters": parameters,
        "constant_bytes": constant_bytes,
    })
}

/// A count, with the total if that is larger.
fn count_of_all(some: Option<u64>, all: Option<u64>) -> String {
    let (some, all) = (some.unwrap_or(0), all.unwrap_or(0));
    if some < all { format!("{some} of {all}") } else { some.to_string() }
}

fn as_text(facts: &Value) -> String {
    let list = |key: &str| facts[key].as_array().cloned().unwrap_or_default();
    let word = |value: &Value, key: &str| value[key].as_str().unwrap_or("").to_string();
    let mut text = format!(
        "{}: {} nodes, {} functions, {} parameters ({} bytes of constants), producer {}\n",
        word(facts, "file"),
        count_of_all(facts["nodes"].as_u64(), facts["nodes_in_file"].as_u64()),
        count_of_all(Some(list("functions").len() as u64), facts["functions_in_file"].as_u64()),
        facts["parameters"],
        facts["constant_bytes"],
        facts["producer"],
    );
    text += "\ninputs\n";
    // the signature's name first, if there is one
    let named = |tensor: &Value| match word(tensor, "signature_name") {
        called if called.is_empty() => word(tensor, "name"),
        called => format!("{called}  {}", word(tensor, "name")),
    };
    for input in list("inputs") {
        text += &format!("  {}  {}\n", named(&input), word(&input, "type"));
    }
    text += "\noutputs\n";
    for output in list("outputs").iter().take(50) {
        text += &format!("  {}  {}  {}\n", named(output), word(output, "type"), word(output, "op"));
    }
    let unknown = list("unknown");
    if !unknown.is_empty() {
        text += "\nunknown sizes, and in how many tensors\n";
    }
    for origin in unknown.iter().take(50) {
        text += &format!("  {:>7}  {}", origin["tensors"].to_string(), word(origin, "text"));
        let remedy = word(origin, "remedy");
        text += &if remedy.is_empty() { "\n".to_string() } else { format!("; {remedy}\n") };
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
    if facts.get("tensors").is_some() {
        text += "\ntensors\n";
    }
    let mut function = String::new();
    for tensor in list("tensors") {
        let inside = word(&tensor, "function");
        if inside != function {
            text += &format!("function {inside}\n");
            function = inside;
        }
        text += &format!("  {}  {}  {}\n", word(&tensor, "name"), word(&tensor, "type"), word(&tensor, "op"));
    }
    text
}
