//! `tfaot bench` of several models, timed alternately so that disturbances of the machine affect all of them alike.
use super::effort;
use crate::cli::args::{BenchArgs, GraphArgs};
use crate::cli::{ExitStatus, graph, out, sizes};
use crate::codegen::Launches;
use crate::compile;
use crate::diag::{Code, Error, Result};
use crate::measure::{Timer, Times};
use crate::run;
use crate::run::arguments;
use crate::run::{Model, Session};
use crate::target::{CodeRequest, Target};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// A loaded model and its measured times.
struct Racer {
    name: String,
    session: Session,
    timer: Timer,
    times: Vec<Duration>,
    facts: Value,
}

/// Compiles all models, warms each up, times them alternately, and prints a line for each.
pub fn run(first: &GraphArgs, args: &BenchArgs) -> Result<ExitStatus> {
    let code = graph::code_request(&args.target)?;
    if args.file.source().file().is_some() {
        return Err(Error::user(Code::BadOption, "a file of weights is for one graph, and several are timed"));
    }
    let paths = std::iter::once(&first.graph).chain(&args.others);
    let mut racers = paths.map(|path| racer(path, first, args, &code)).collect::<Result<Vec<_>>>()?;
    let (start, effort, models) = (Instant::now(), effort(args), racers.len() as u32);
    loop {
        for racer in &mut racers {
            racer.times.push(racer.timer.time(&mut racer.session)?);
        }
        if effort.is_done(racers[0].times.len() as u64, start, models) {
            return print_race(racers, args, &code.target);
        }
    }
}

fn racer(path: &Path, first: &GraphArgs, args: &BenchArgs, code: &CodeRequest) -> Result<Racer> {
    let graph_args = GraphArgs { graph: path.to_path_buf(), ..first.clone() };
    let name = graph::model_name(None, path)?;
    let functions = graph::lower_only_function(&graph_args)?;
    let lowered = functions.all[0].1.clone();
    let requests = std::slice::from_ref(code);
    let built = compile::build_functions(
        args.file.source().mark_functions(functions),
        &name,
        &name,
        requests,
        Launches::Direct,
        &mut [],
    );
    let built = built.map_err(|e| graph::with_file(e, &graph_args))?;
    let face = &built.bundle.face;
    let values = arguments::for_function(None, &lowered, &sizes::parse(&args.sizes)?)?;
    let given = run::sizes::sizes_of_arguments(&face.entries[0].sizes, &lowered.args, &values)?;
    let model = Model::load_compiled(&built, None, &code.target, args.threads.into())?;
    let (bytes, workspace) = (built.object.content.len(), face.workspace_bytes());
    model.call_guarded(0, &values, &mut model.initial_state()?)?;
    let flops = built.into_program_for_sizes(&given)?.program.flops;
    let mut session = Session::new(model, &values)?;
    let timer = Timer::warm_up(&mut session, &effort(args))?;
    let facts = json!({"object_bytes": bytes, "workspace_bytes": workspace, "flops": flops});
    Ok(Racer { name: path.display().to_string(), session, timer, times: Vec::new(), facts })
}

fn print_race(racers: Vec<Racer>, args: &BenchArgs, target: &Target) -> Result<ExitStatus> {
    let rows: Vec<(String, Times, Value)> =
        racers.into_iter().map(|r| (r.name, r.timer.distribution(r.times), r.facts)).collect();
    let median = rows.first().map_or(0.0, |r| r.1.median_ms);
    if args.json {
        let row = |(name, t, facts): &(String, Times, Value)| {
            let mut row = json!({"graph": name, "min_ms": t.min_ms, "median_ms": t.median_ms, "p90_ms": t.p90_ms, "p99_ms": t.p99_ms,
                "max_ms": t.max_ms, "runs": t.runs, "together": t.together, "warmup_runs": t.warmup_runs, "of_first": t.median_ms / median});
            row.as_object_mut().into_iter().for_each(|row| row.extend(facts.as_object().cloned().unwrap_or_default()));
            row
        };
        let models: Vec<Value> = rows.iter().map(row).collect();
        out::json(&json!({"models": models, "threads": args.threads, "cpu": target.cpu}))?;
        return Ok(ExitStatus::Yes);
    }
    let head = ["min ms", "median ms", "90 % in", "99 % in", "max ms", "of first"];
    let head: String = head.iter().map(|h| format!("{h:>11} ")).collect();
    out::line(format_args!(
        "{head} graph, {} threads, after {} calls to warm up each",
        args.threads, rows[0].1.warmup_runs
    ))?;
    for (name, t, _) in &rows {
        let figures: String =
            [t.min_ms, t.median_ms, t.p90_ms, t.p99_ms, t.max_ms].iter().map(|ms| format!("{ms:>11.6} ")).collect();
        out::line(format_args!("{figures}{:>11.3}  {name} ({} calls)", t.median_ms / median, t.runs))?;
    }
    Ok(ExitStatus::Yes)
}
