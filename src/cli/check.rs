//! `tfaot check`: tests whether a whole graph can be compiled.
use super::args::CheckArgs;
use super::{ExitStatus, graph, out};
use crate::diag::{Diagnostic, Error, Group, Result, grouped};
use crate::model::{Check, ModelFile, check};
use crate::target::KeptProduct;
use serde_json::{Value, json};

/// Prints whether the graph can be compiled, with all blockers.
pub fn run(args: &CheckArgs) -> Result<ExitStatus> {
    let request = graph::request(&args.graph)?;
    let code = graph::code_request(&args.target)?;
    let name = graph::model_name(None, &args.graph.graph)?;
    let model = ModelFile::open(&args.graph.graph).with_format(args.graph.format.as_deref());
    let Check { blockers: all, warnings, quantized } = check(&model, &request, &name, &code)?;
    out::warnings(&warnings, &args.graph.graph.display().to_string());
    if args.json {
        let list = |of: &[Diagnostic]| of.iter().map(blocker).collect::<Vec<Value>>();
        let groups: Vec<Value> = grouped(all.iter().cloned()).iter().map(group).collect();
        let (blockers, warnings) = (list(&all), list(&warnings));
        out::json(
            &json!({"compilable": all.is_empty(), "blockers": blockers, "groups": groups, "warnings": warnings, "quantized": quantized}),
        )?;
    } else if all.is_empty() {
        out::line("compilable")?;
        if !quantized.is_empty() {
            out::line(&quantized)?;
            quantized.integers.iter().try_for_each(|name| out::line(format_args!("  integers  {name}")))?;
            let kept = |k: &KeptProduct| out::line(format_args!("  floats    {}: {}", k.name, k.reason));
            quantized.kept.iter().try_for_each(kept)?;
        }
    } else {
        let causes = grouped(all.iter().cloned()).len();
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        out::line(format_args!("not compilable: {} of {}", count(all.len(), "blocker"), count(causes, "cause")))?;
    }
    if all.is_empty() {
        return Ok(ExitStatus::Yes);
    }
    if args.all {
        out::each_error(Error::User(all))
    } else {
        out::error(Error::User(all))
    }
    Ok(ExitStatus::No)
}

fn group(group: &Group) -> Value {
    json!({
        "code": group.first.code.id(),
        "reason": group.first.message,
        "nodes": group.nodes(),
        "first": group.named(),
        "help": group.first.help,
    })
}

fn blocker(d: &Diagnostic) -> Value {
    json!({
        "node": d.place.node.as_deref().unwrap_or(""),
        "op": d.place.op.as_deref().unwrap_or(""),
        "code": d.code.id(),
        "reason": d.message,
        "function": d.place.function,
        "notes": d.notes,
        "help": d.help,
    })
}
