//! `tfaot bench --profile`: the time of each kernel, beside what the machine could do.
use super::args::BenchArgs;
use super::machine::Roof;
use super::out;
use crate::compile::Built;
use crate::diag::Result;
use crate::kernel::{Kernel, KernelId, Program};
use crate::run::{KernelTime, Session};
use crate::target::Target;
use indexmap::IndexSet;
use serde_json::json;
use std::collections::HashMap;
use std::time::Instant;

/// Nodes beside that of the label that a line names.
const NAMED: usize = 3;

/// One line of the profile.
struct Row<'a> {
    id: KernelId,
    kernel: &'a Kernel,
    /// The shortest time of all its launches in one call.
    ms: f64,
    launches: u64,
    /// Bytes that it reads and writes, in all launches.
    bytes: u64,
    /// Floating-point operations of all launches.
    flops: u64,
    /// Those of direct sums.
    direct_flops: u64,
    /// Milliseconds that this machine would take at least.
    roofline_ms: f64,
    /// The nodes that its instructions come from, in the order in which it names them.
    nodes: Vec<String>,
}

/// Measures and prints the kernels of an object made with `Launches::Observed`, the slowest first.
pub fn run(built: &Built, target: &Target, session: &mut Session, args: &BenchArgs) -> Result<()> {
    let program = &built.program;
    let (least, calls) = measure(program, session, args.runs, args.seconds)?;
    let insts = built.module.comps.values().flat_map(|c| c.insts.values());
    let nodes = insts.map(|i| (i.name.as_str(), i.metadata.op_name.as_str())).collect();
    let roof = Roof::measure(target, args.threads.into(), program.weights_bytes + program.workspace_bytes)?;
    let peak = roof.gflops;
    let spent = |id: KernelId| least.get(id.0 as usize).copied().unwrap_or_default();
    let mut rows: Vec<Row> =
        program.kernels.iter().map(|(id, kernel)| row(program, &nodes, (id, kernel), spent(id), &roof)).collect();
    rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let total: f64 = rows.iter().map(|r| r.ms).sum();
    let flops: u64 = rows.iter().map(|r| r.flops).sum();
    let direct: u64 = rows.iter().map(|r| r.direct_flops).sum();
    let direct_share = direct as f64 / (total * 1e6 * peak);
    let least_ms: f64 = rows.iter().map(|r| r.roofline_ms).sum();
    let shared = crate::kernel::shared(program);
    let rate = |r: &Row| (r.flops as f64 / (r.ms * 1e6), r.bytes as f64 / (r.ms * 1e6));
    if args.json {
        let kernels: Vec<_> = rows
            .iter()
            .map(|r| {
                let (gflops, gbs) = rate(r);
                json!({
                    "kernel": r.id.0, "name": r.kernel.label, "nodes": r.nodes, "ms": r.ms, "launches": r.launches,
                    "flops": r.flops, "direct_flops": r.direct_flops, "bytes": r.bytes, "gflops": gflops, "gbs": gbs,
                    "peak_share": gflops / peak, "roofline_ms": r.roofline_ms, "chunks": r.kernel.count(),
                    "shared": shared[r.id], "work": r.kernel.work(),
                })
            })
            .collect();
        return out::json(&json!({
            "sum_ms": total, "runs": calls, "threads": args.threads, "peak_gflops": peak, "flops": flops,
            "peak_share": flops as f64 / (total * 1e6 * peak), "direct_flops": direct, "direct_peak_share": direct_share,
            "roofline_ms": least_ms, "kernels": kernels,
        }));
    }
    out::line(format_args!(
        "{:>9} {:>6} {:>8} {:>6} {:>7} {:>6} {:>7} {:>8}  kernel",
        "ms", "time", "GFLOP/s", "peak", "GB/s", "roof", "chunks", "launches"
    ))?;
    for r in &rows {
        let (gflops, gbs) = rate(r);
        out::line(format_args!(
            "{:>9.4} {:>5.1}% {:>8.1} {:>5.1}% {:>7.1} {:>5.1}% {:>7} {:>8}  k{} {}{}",
            r.ms,
            100.0 * r.ms / total,
            gflops,
            100.0 * gflops / peak,
            gbs,
            100.0 * r.roofline_ms / r.ms,
            r.kernel.count(),
            r.launches,
            r.id.0,
            r.kernel.label,
            others(r),
        ))?;
    }
    out::line(format_args!(
        "{total:.3} ms: the sum of {} kernels' least times in {calls} calls on {} threads; {:.1} GFLOP/s of {peak:.1} ({:.1}%), {:.1}% by direct sums; the roofline is {least_ms:.3} ms ({:.1}%)",
        rows.len(),
        args.threads,
        flops as f64 / (total * 1e6),
        100.0 * flops as f64 / (total * 1e6 * peak),
        100.0 * direct_share,
        100.0 * least_ms / total,
    ))
}

/// The nodes that the label does not name.
fn others(r: &Row) -> String {
    let others: Vec<&str> = r.nodes.iter().map(String::as_str).filter(|n| !r.kernel.label.ends_with(n)).collect();
    match others.len() {
        0 => String::new(),
        n if n <= NAMED => format!(" (with {})", others.join(", ")),
        n => format!(" (with {} and {} more)", others[..NAMED].join(", "), n - NAMED),
    }
}

fn row<'a>(
    program: &Program,
    nodes: &HashMap<&str, &str>,
    (id, kernel): (KernelId, &'a Kernel),
    spent: KernelTime,
    roof: &Roof,
) -> Row<'a> {
    let touched = kernel.touched(&program.buffers);
    let mut named: IndexSet<&str> = IndexSet::new();
    named.extend(kernel.insts.iter().filter_map(|i| nodes.get(i.as_str()).copied()).filter(|n| !n.is_empty()));
    Row {
        id,
        kernel,
        ms: (spent.time.as_secs_f64() * 1e3).max(1e-6),
        launches: spent.launches,
        bytes: spent.launches * (touched.constants + touched.values),
        flops: spent.launches * kernel.flops,
        direct_flops: spent.launches * kernel.direct_flops.unwrap_or(kernel.flops),
        roofline_ms: spent.launches as f64 * roof.least_ms(kernel.flops, touched),
        nodes: named.into_iter().map(str::to_string).collect(),
    }
}

/// The least time of each kernel over the calls that fit into the seconds, and the number of calls.
///
/// Errors: those of a call.
pub fn measure(
    program: &Program,
    session: &mut Session,
    runs: Option<u64>,
    seconds: f64,
) -> Result<(Vec<KernelTime>, u64)> {
    let mut least: Vec<KernelTime> = Vec::new();
    let shared = crate::kernel::shared(program);
    let (start, mut calls) = (Instant::now(), 0);
    loop {
        let mut spent = vec![KernelTime::default(); program.kernels.len()];
        session.call_observed(&shared, &mut spent)?;
        calls += 1;
        if least.is_empty() {
            least.clone_from(&spent);
        }
        for (old, new) in least.iter_mut().zip(spent) {
            if new.time < old.time {
                *old = new;
            }
        }
        let enough = match runs {
            Some(runs) => calls >= runs,
            None => calls >= 5 && start.elapsed().as_secs_f64() > seconds.clamp(0.0, 3600.0),
        };
        if enough {
            return Ok((least, calls));
        }
    }
}
