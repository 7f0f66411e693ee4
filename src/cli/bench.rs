//! `tfaot bench`: the time of a call of compiled code.
use super::args::BenchArgs;
use super::native::{Model, Session};
use super::{Verdict, graph, inputs, machine, out, profile};
use crate::codegen::Launches;
use crate::compile::{self, Compiled};
use crate::diag::Result;
use crate::kernel::Face;
use crate::package::metadata;
use serde_json::json;
use std::time::{Duration, Instant};

/// Compiles, warms up, measures, prints.
pub fn run(args: &BenchArgs) -> Result<Verdict> {
    let Some(graph_args) = &args.graph else { return machine::run(args) };
    let start = Instant::now();
    let target = graph::target(&args.target)?;
    let name = graph::model_name(None, &graph_args.graph)?;
    let functions = graph::function(graph_args)?;
    let lowered = &functions.all[0].1;
    let (keys, infos) = (graph::result_keys(graph_args, lowered), lowered.args.clone());
    let launches = if args.profile { Launches::Observed } else { Launches::Direct };
    let targets = std::slice::from_ref(&target);
    let built = compile::build_all(functions, &name, &name, targets, launches, &mut []);
    let built = built.and_then(Compiled::only).map_err(|e| graph::in_file(e, graph_args))?;
    let compile_s = start.elapsed().as_secs_f64();
    let values = inputs::load(args.inputs.as_deref(), &infos)?;
    let model = Model::load(&Face::of(&built.program), &built.object, &target, args.threads.into())?;
    if !args.profile {
        // what is timed has memory of its own, aligned as vectors are
        model.call_between_pages(0, &values, &mut model.start()?)?;
    }
    let mut session = Session::of(model, &values)?;
    drop(values);
    if args.profile {
        profile::run(&built, &target, &mut session, args)?;
        return Ok(Verdict::Yes);
    }
    let (times, together) = measure(&mut session, args)?;
    let milliseconds = |t: Duration| t.as_secs_f64() * 1e3 / f64::from(together);
    let (min_ms, median_ms) = (milliseconds(times[0]), milliseconds(times[times.len() / 2]));
    let runs = times.len() as u64 * u64::from(together);
    // nanoseconds where calls are short
    let digits = if min_ms < 0.01 { 6 } else { 3 };
    let flops = built.program.flops as f64;
    if args.json {
        let handover = session.handover();
        let cores = handover.map(|_| machine::cores(&target, args.threads.into())).transpose()?;
        out::json(&json!({
            "min_ms": min_ms,
            "median_ms": median_ms,
            "runs": runs,
            "threads": args.threads,
            "handover_ns": handover.map(|t| t.as_nanos() as u64),
            "cores": cores,
            "compile_s": compile_s,
            "peak_rss_bytes": peak_rss_bytes(),
            "object_bytes": built.object.content.len(),
            "workspace_bytes": built.program.workspace_bytes,
            "state_bytes": built.program.state_bytes(),
            "flops": built.program.flops,
            "cpu": target.cpu,
            "weights_bytes": built.program.weights_bytes,
            "precision": metadata::precision(&built.program.reduced),
        }))?;
    } else {
        let rate = flops / (min_ms * 1e6);
        out::line(format_args!(
            "min {min_ms:.digits$} ms, median {median_ms:.digits$} ms of {runs} runs on {} threads; {rate:.1} GFLOP/s; compiled in {compile_s:.2} s; object {} bytes, workspace {} bytes",
            args.threads,
            built.object.content.len(),
            built.program.workspace_bytes,
        ))?;
    }
    if let Some(path) = &args.outputs {
        graph::deliver(Some(path), keys, session.results())?;
    }
    Ok(Verdict::Yes)
}

/// Calls that take less are timed several together, since reading the clock takes some 25 ns.
const SHORTEST: Duration = Duration::from_micros(4);

/// Sorted times after a warm-up, each of so many calls; at least one, by default at least five. A number of runs that was
/// asked for is of single calls.
fn measure(session: &mut Session, args: &BenchArgs) -> Result<(Vec<Duration>, u32)> {
    let budget = Duration::from_secs_f64(args.seconds.clamp(0.0, 3600.0));
    let mut timed = |calls: u32| -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..calls {
            session.call()?;
        }
        Ok(start.elapsed())
    };
    let warm = Instant::now();
    for _ in 0..3 {
        timed(1)?;
        if warm.elapsed() > budget / 4 {
            break;
        }
    }
    let mut together = 1;
    while args.runs.is_none() && together < 1 << 16 && timed(together)? < SHORTEST {
        together *= 2;
    }
    let start = Instant::now();
    let mut times = Vec::new();
    loop {
        times.push(timed(together)?);
        let enough = match args.runs {
            Some(runs) => times.len() as u64 >= runs,
            None => (times.len() >= 5 && start.elapsed() > budget) || start.elapsed() > budget * 10,
        };
        if enough {
            times.sort();
            return Ok((times, together));
        }
    }
}

/// The most memory that this process has had, or 0 where the system does not say.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).map_or(0, |kb| kb * 1024)
}
