//! `tfaot bench`: the time of a call of compiled code.
use super::args::BenchArgs;
use super::native::Session;
use super::{Verdict, graph, inputs, machine, out, profile};
use crate::codegen::Launches;
use crate::compile;
use crate::diag::Result;
use crate::package::metadata;
use serde_json::json;
use std::time::{Duration, Instant};

/// Compiles, warms up, measures, prints.
pub fn run(args: &BenchArgs) -> Result<Verdict> {
    let Some(graph_args) = &args.graph else { return machine::run(args) };
    let start = Instant::now();
    let target = graph::target(&args.target)?;
    let name = graph::model_name(None, &graph_args.graph)?;
    let front = graph::front(graph_args)?;
    let keys = graph::result_keys(graph_args, &front.lowered);
    let infos = front.lowered.args.clone();
    let launches = if args.profile { Launches::Observed } else { Launches::Direct };
    let built = compile::build(front.lowered, &name, &name, &target, launches, &mut None)
        .map_err(|e| graph::in_file(e, graph_args))?;
    let compile_s = start.elapsed().as_secs_f64();
    let values = inputs::load(args.inputs.as_deref(), &infos)?;
    let mut session = Session::new(&built, &target, &values, args.threads.into())?;
    drop(values);
    if args.profile {
        profile::run(&built, &target, &mut session, args)?;
        return Ok(Verdict::Yes);
    }
    let times = measure(&mut session, args)?;
    let milliseconds = |t: Duration| t.as_secs_f64() * 1e3;
    let (min_ms, median_ms) = (milliseconds(times[0]), milliseconds(times[times.len() / 2]));
    let flops = built.program.flops as f64;
    if args.json {
        out::json(&json!({
            "min_ms": min_ms,
            "median_ms": median_ms,
            "runs": times.len(),
            "threads": args.threads,
            "compile_s": compile_s,
            "peak_rss_bytes": peak_rss_bytes(),
            "object_bytes": built.object.bytes.len(),
            "workspace_bytes": built.program.workspace_bytes,
            "flops": built.program.flops,
            "cpu": target.cpu,
            "weights_bytes": built.program.weights_bytes,
            "precision": metadata::precision(&built.program.reduced),
        }))?;
    } else {
        let rate = flops / (min_ms * 1e6);
        out::line(format_args!(
            "min {min_ms:.3} ms, median {median_ms:.3} ms of {} runs on {} threads; {rate:.1} GFLOP/s; compiled in {compile_s:.2} s; object {} bytes, workspace {} bytes",
            times.len(),
            args.threads,
            built.object.bytes.len(),
            built.program.workspace_bytes,
        ))?;
    }
    if let Some(path) = &args.outputs {
        graph::deliver(Some(path), keys, session.results())?;
    }
    Ok(Verdict::Yes)
}

/// Sorted times of calls after a warm-up; at least one, by default at least five.
fn measure(session: &mut Session, args: &BenchArgs) -> Result<Vec<Duration>> {
    let budget = Duration::from_secs_f64(args.seconds.clamp(0.0, 3600.0));
    let warm = Instant::now();
    for _ in 0..3 {
        session.call()?;
        if warm.elapsed() > budget / 4 {
            break;
        }
    }
    let start = Instant::now();
    let mut times = Vec::new();
    loop {
        let call = Instant::now();
        session.call()?;
        times.push(call.elapsed());
        let enough = match args.runs {
            Some(runs) => times.len() as u64 >= runs,
            None => (times.len() >= 5 && start.elapsed() > budget) || start.elapsed() > budget * 10,
        };
        if enough {
            times.sort();
            return Ok(times);
        }
    }
}

/// The most memory that this process has had, or 0 where the system does not say.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).map_or(0, |kb| kb * 1024)
}
