//! `tfaot bench`: the time of a call of compiled code.
mod change;
mod machine;
mod portable;
mod profile;
mod race;

use super::args::BenchArgs;
use super::{ExitStatus, graph, out, sizes};
use crate::codegen::Launches;
use crate::compile::{self, Built, Compiled};
use crate::diag::Result;
use crate::kernel::ModelInterface;
use crate::lower::Lowered;
use crate::measure::{Effort, Times, parallel_speedup, time_calls};
use crate::package::metadata;
use crate::run;
use crate::run::arguments;
use crate::run::{Model, Session};
use crate::target::Target;
use serde_json::{Map, Value, json};
use std::time::Instant;

/// Compiles the graph, warms up, measures calls, and prints the times.
pub fn run(args: &BenchArgs) -> Result<ExitStatus> {
    let Some(graph_args) = &args.graph else { return machine::run(args) };
    if !args.others.is_empty() {
        return race::run(graph_args, args);
    }
    let start = Instant::now();
    let code = graph::code_request(&args.target)?;
    let target = &code.target;
    let name = graph::model_name(None, &graph_args.graph)?;
    let functions = graph::lower_only_function(graph_args)?;
    let lowered = functions.all[0].1.clone();
    let keys = graph::npz_result_keys(graph_args, &lowered);
    let rows = args.row.as_deref().map(|row| sizes_of(row, args)).transpose()?;
    let launches = if args.profile { Launches::Observed } else { Launches::Direct };
    let requests = std::slice::from_ref(&code);
    let functions = args.file.source().mark_functions(functions);
    let beside = (code.precision.math.is_portable() && !args.profile && rows.is_none()).then(|| functions.clone());
    let built = compile::build_functions(functions, &name, &name, requests, launches, &mut []);
    let built = built.map_err(|e| graph::with_file(e, graph_args))?;
    let compile_s = start.elapsed().as_secs_f64();
    let face = built.bundle.face.clone();
    if let Some(rows) = rows {
        return table(&built, &lowered, target, &rows, args);
    }
    let values = arguments::for_function(args.inputs.as_deref(), &lowered, &sizes::parse(&args.sizes)?)?;
    let given = run::sizes::sizes_of_arguments(&face.entries[0].sizes, &lowered.args, &values)?;
    let model = Model::load_compiled(&built, args.file.source().file(), target, args.threads.into())?;
    let built = built.into_program_for_sizes(&given)?;
    if !args.profile {
        // timed calls use separate memory, aligned to vectors
        model.call_guarded(0, &values, &mut model.initial_state()?)?;
    }
    let mut session = Session::new(model, &values)?;
    if args.profile {
        profile::run(&built, target, &mut session, args)?;
        return Ok(ExitStatus::Yes);
    }
    let old = args.compare.as_deref().map(change::load).transpose()?;
    let measured = time_calls(&mut session, &effort(args))?;
    let mut circumstances = json!({"threads": args.threads, "cpu": target.cpu, "flops": built.program.flops});
    let named: Map<String, Value> =
        face.entries[0].sizes.all.iter().zip(&given).map(|(size, &n)| (size.name.clone(), n.into())).collect();
    if !named.is_empty() {
        circumstances["sizes"] = named.clone().into();
    }
    let cost = beside
        .map(|functions| portable::portable_overhead(&mut session, functions, &code, &values, args))
        .transpose()?;
    drop(values);
    let change = old.map(|old| old.compare_with(&measured, &circumstances));
    let measurement = Measurement { built: &built, face: &face, target, args, times: &measured, compile_s };
    if args.json {
        let mut document = measurement.document(&session, change.as_ref().map(change::TimeChange::json))?;
        if !named.is_empty() {
            document["sizes"] = named.into();
        }
        document["of_fastest_math"] = json!(cost);
        out::line(&document)?;
    } else {
        out::line(measurement.sentence())?;
        if let Some(cost) = cost {
            let math = code.precision.math.name();
            out::line(format_args!("--math {math} takes {cost:.3} times the time of --math f32, in turns"))?;
        }
    }
    for line in change.iter().flat_map(|c| c.lines(digits(&measured))) {
        if args.json { out::note(format_args!("note: {line}")) } else { out::line(line)? }
    }
    if let Some(path) = &args.outputs {
        graph::write_results(Some(path), keys, session.results())?;
    }
    Ok(ExitStatus::Yes)
}

/// Number of decimals for times in milliseconds, so that nanoseconds are visible for short calls.
fn digits(measured: &Times) -> usize {
    if measured.min_ms < 0.01 { 6 } else { 3 }
}

/// A function whose calls were measured, and the results.
struct Measurement<'a> {
    built: &'a Built,
    face: &'a ModelInterface,
    target: &'a Target,
    args: &'a BenchArgs,
    times: &'a Times,
    /// Seconds taken by the compilation.
    compile_s: f64,
}

impl Measurement<'_> {
    /// The measurement as JSON; `change` compares it with an earlier one.
    fn document(&self, session: &Session, change: Option<Value>) -> Result<Value> {
        let Measurement { built, face, target, args, times, .. } = self;
        let handover = session.dispatch_time();
        let cores = handover.map(|_| parallel_speedup(target, args.threads.into())).transpose()?;
        Ok(json!({
            "min_ms": times.min_ms,
            "median_ms": times.median_ms,
            "p90_ms": times.p90_ms,
            "p99_ms": times.p99_ms,
            "max_ms": times.max_ms,
            "runs": times.runs,
            "together": times.together,
            "warmup_runs": times.warmup_runs,
            "threads": args.threads,
            "handover_ns": handover.map(|t| t.as_nanos() as u64),
            "cores": cores,
            "compile_s": self.compile_s,
            "peak_rss_bytes": peak_rss_bytes(),
            "object_bytes": built.object.content.len(),
            "workspace_bytes": face.workspace_bytes(),
            "state_bytes": built.program.state_bytes(),
            "flops": built.program.flops,
            "cpu": target.cpu,
            "weights_bytes": face.weights_bytes,
            "precision": metadata::precision_json(&built.program.reduced),
            "quantized": &*built.program.quantized,
            "change": change,
        }))
    }

    /// The measurement as one line of text.
    fn sentence(&self) -> String {
        let digits = digits(self.times);
        let &Times { min_ms, median_ms, p90_ms, p99_ms, max_ms, runs, warmup_runs, .. } = self.times;
        format!(
            "min {min_ms:.digits$} ms, median {median_ms:.digits$} ms, 90 % in {p90_ms:.digits$}, 99 % in {p99_ms:.digits$}, max {max_ms:.digits$} ms of {runs} runs on {} threads after {warmup_runs} to warm up; {:.1} GFLOP/s; compiled in {:.2} s; object {} bytes, workspace {} bytes",
            self.args.threads,
            self.built.program.flops as f64 / (min_ms * 1e6),
            self.compile_s,
            self.built.object.content.len(),
            self.face.workspace_bytes(),
        )
    }
}

/// The sizes of `--size`, combined with each number of `--sizes`. Errors: `Code::BadOption`.
fn sizes_of(row: &str, args: &BenchArgs) -> Result<Vec<Vec<(String, u64)>>> {
    let (name, numbers) = row.rsplit_once('=').map_or(("", row), |(name, numbers)| (name, numbers));
    let base = sizes::parse(&args.sizes)?;
    let one = |number: &str| {
        let flag = if name.is_empty() { number.to_string() } else { format!("{name}={number}") };
        Ok([&base[..], &sizes::parse(&[flag])?].concat())
    };
    numbers.split(',').map(one).collect()
}

/// Measures calls of several sizes, and prints a line for each.
fn table(
    built: &Compiled,
    lowered: &Lowered,
    target: &Target,
    rows: &[Vec<(String, u64)>],
    args: &BenchArgs,
) -> Result<ExitStatus> {
    let face = &built.bundle.face;
    let entry = &face.entries[0];
    let mut documents = Vec::new();
    if !args.json {
        let names: String =
            entry.sizes.all[..entry.sizes.caller_size_count()].iter().map(|s| format!("{:>8} ", s.name)).collect();
        out::line(format_args!(
            "{names}{:>10} {:>10} {:>10} {:>10}  program for",
            "min ms", "median ms", "90 % ms", "GFLOP/s"
        ))?;
    }
    for told in rows {
        let values = arguments::for_function(None, lowered, told)?;
        let given = run::sizes::sizes_of_arguments(&entry.sizes, &lowered.args, &values)?;
        let model = Model::load_compiled(built, args.file.source().file(), target, args.threads.into())?;
        model.call_guarded(0, &values, &mut model.initial_state()?)?;
        let times = time_calls(&mut Session::new(model, &values)?, &effort(args))?;
        let (rung, programs) = (entry.bucket_of_call(&given), &built.bundle.variants[0].0);
        let (most, flops) = (entry.rungs.get(rung).unwrap_or(&given), programs[rung].flops);
        let (min, median, p90) = (times.min_ms, times.median_ms, times.p90_ms);
        if args.json {
            documents.push(json!({"sizes": given, "program": most, "min_ms": min, "median_ms": median, "p90_ms": p90, "runs": times.runs, "flops": flops}));
        } else {
            let numbers: String = given.iter().map(|n| format!("{n:>8} ")).collect();
            let rate = flops as f64 / (min * 1e6);
            out::line(format_args!("{numbers}{min:>10.6} {median:>10.6} {p90:>10.6} {rate:>10.1}  {most:?}"))?;
        }
    }
    if args.json {
        let names: Vec<&str> =
            entry.sizes.all[..entry.sizes.caller_size_count()].iter().map(|s| s.name.as_str()).collect();
        let facts = json!({"names": names, "rows": documents, "threads": args.threads, "cpu": target.cpu,
            "object_bytes": built.object.content.len(), "workspace_bytes": face.workspace_bytes(), "weights_bytes": face.weights_bytes});
        out::line(&facts)?;
    }
    Ok(ExitStatus::Yes)
}

/// The duration of the measurement that the flags request.
fn effort(args: &BenchArgs) -> Effort {
    Effort { runs: args.runs, seconds: args.seconds, warmup: args.warmup }
}

/// Peak memory of this process in bytes; 0 if the system does not report it.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).map_or(0, |kb| kb * 1024)
}
