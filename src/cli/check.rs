//! `tfaot check`: whether a whole graph can be compiled.
use super::args::CheckArgs;
use super::{Verdict, graph, out};
use crate::diag::{Code, Diagnostic, Error, Group, Result, grouped};
use crate::graph::Endpoint;
use crate::import::{self, Loaded};
use crate::prepare::{self, Request};
use crate::{compile, infer, lower};
use serde_json::{Value, json};

/// Prints the verdict, with everything that blocks. A broken invariant of ours is a blocker like any other.
pub fn run(args: &CheckArgs) -> Result<Verdict> {
    let request = graph::request(&args.graph)?;
    let target = graph::target(&args.target)?;
    let name = graph::model_name(None, &args.graph.graph)?;
    let fronts = compile::fronts(&args.graph.graph, args.graph.format.as_deref(), &request);
    let warnings = fronts.as_ref().map_or(Vec::new(), |fronts| fronts.warnings.clone());
    let problem = match fronts {
        Ok(fronts) => fronts.entries.into_iter().find_map(|e| compile::plan(e.lowered, &name, "", &target).err()),
        Err(e) => Some(e),
    };
    let mut all = problem.map(|e| graph::in_file(e, &args.graph).into_diagnostics()).unwrap_or_default();
    if let [only] = &all[..]
        && only.code == Code::Io
    {
        return Err(Error::User(all));
    }
    if !all.is_empty() {
        // a file that can't be read to its end says so already
        let more = hidden(args, &request).unwrap_or_default();
        for d in graph::in_file(Error::User(more), &args.graph).into_diagnostics() {
            let told = |a: &Diagnostic| a.code == d.code && a.place == d.place;
            if !all.iter().any(told) {
                all.push(d);
            }
        }
        all = lower::grouped(all);
    }
    out::warnings(&warnings, &args.graph.graph.display().to_string());
    if args.json {
        let list = |of: &[Diagnostic]| of.iter().map(blocker).collect::<Vec<Value>>();
        let groups: Vec<Value> = grouped(all.iter().cloned()).iter().map(group).collect();
        let (blockers, warnings) = (list(&all), list(&warnings));
        out::json(
            &json!({"compilable": all.is_empty(), "blockers": blockers, "groups": groups, "warnings": warnings}),
        )?;
    } else if all.is_empty() {
        out::line("compilable")?;
    } else {
        let causes = grouped(all.iter().cloned()).len();
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        out::line(format_args!("not compilable: {} of {}", count(all.len(), "blocker"), count(causes, "cause")))?;
    }
    if all.is_empty() {
        return Ok(Verdict::Yes);
    }
    if args.all {
        out::each_error(Error::User(all))
    } else {
        out::error(Error::User(all))
    }
    Ok(Verdict::No)
}

/// Blockers that others may hide: ops without a lowering, which stand behind open feeds or behind one another, and shapes that contradict
/// each other whatever the open sizes are.
fn hidden(args: &CheckArgs, request: &Request) -> Result<Vec<Diagnostic>> {
    let Loaded::Graph(mut program) = import::load_any(&args.graph.graph, args.graph.format.as_deref())? else {
        return Ok(Vec::new());
    };
    program.freeze(|_| false);
    let mut reached = prepare::reach(*program, request)?;
    if let Err(error) = prepare::functionalize(&mut reached) {
        return Ok(error.into_diagnostics());
    }
    let feeds: Vec<Endpoint> = reached.feeds.iter().map(|f| f.at).collect();
    let fetches: Vec<Endpoint> = reached.fetches.iter().map(|f| f.1).collect();
    let mut all = lower::refusals(&reached.program, &feeds, &fetches);
    all.extend(infer::infer(&reached.program, &reached.feeds).problems);
    Ok(all)
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
