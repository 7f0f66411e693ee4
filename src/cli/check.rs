//! `tfaot check`: whether a whole graph can be compiled.
use super::args::CheckArgs;
use super::{Verdict, graph, out};
use crate::compile;
use crate::diag::{Diagnostic, Error, Result};
use serde_json::{Value, json};

/// Prints the verdict, with everything that blocks.
pub fn run(args: &CheckArgs) -> Result<Verdict> {
    let request = graph::request(&args.graph)?;
    let target = graph::target(&args.target)?;
    let name = graph::model_name(None, &args.graph.graph)?;
    let front = compile::front(&args.graph.graph, args.graph.format.as_deref(), &request);
    let problem = match front {
        Ok(front) => user_error(compile::plan(front.lowered, &name, "", &target).err()),
        Err(e) => Some(e),
    };
    let Some(problem) = problem else {
        if args.json {
            out::json(&json!({"compilable": true, "blockers": []}))?;
        } else {
            out::line("compilable")?;
        }
        return Ok(Verdict::Yes);
    };
    let problem = graph::in_file(problem, &args.graph);
    let all = problem.clone().into_diagnostics();
    if args.json {
        let blockers: Vec<Value> = all.iter().map(blocker).collect();
        out::json(&json!({"compilable": false, "blockers": blockers}))?;
    } else {
        out::line(format_args!("not compilable: {} blocker{}", all.len(), if all.len() == 1 { "" } else { "s" }))?;
    }
    out::error(Error::User(all));
    Ok(Verdict::No)
}

/// A broken invariant of ours says nothing about the graph: it is told, and is no blocker.
fn user_error(problem: Option<Error>) -> Option<Error> {
    problem.filter(|e| match e {
        Error::User(_) => true,
        Error::Internal { .. } => {
            out::error(e.clone());
            false
        }
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
