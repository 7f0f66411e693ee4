//! `tfaot bench --profile`: the time of each kernel, beside what the machine could do.
use super::args::BenchArgs;
use super::native::Session;
use super::{machine, out};
use crate::compile::Built;
use crate::diag::Result;
use crate::kernel::{Kernel, KernelId, Program};
use crate::target::Target;
use serde_json::json;
use std::time::{Duration, Instant};

/// One line of the profile.
struct Row<'a> {
    id: KernelId,
    kernel: &'a Kernel,
    /// The shortest time of all its launches in one call.
    ms: f64,
    /// Bytes of the buffers that it touches.
    bytes: u64,
}

/// Measures and prints the kernels of an object made with `Launches::Observed`, the slowest first.
pub fn run(built: &Built, target: &Target, session: &mut Session, args: &BenchArgs) -> Result<()> {
    let program = &built.program;
    let (least, calls) = measure(program, session, args.runs, args.seconds)?;
    let peak = machine::fma_gflops(target)? * f64::from(args.threads);
    let mut rows: Vec<Row> = program.kernels.iter().map(|(id, kernel)| row(program, id, kernel, &least)).collect();
    rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let total: f64 = rows.iter().map(|r| r.ms).sum();
    let rate = |r: &Row| (r.kernel.flops as f64 / (r.ms * 1e6), r.bytes as f64 / (r.ms * 1e6));
    if args.json {
        let kernels: Vec<_> = rows
            .iter()
            .map(|r| {
                let (gflops, gbs) = rate(r);
                json!({
                    "kernel": r.id.0, "name": r.kernel.label, "ms": r.ms, "flops": r.kernel.flops, "bytes": r.bytes,
                    "gflops": gflops, "gbs": gbs, "peak_share": gflops / peak, "chunks": r.kernel.count(),
                })
            })
            .collect();
        return out::json(&json!({
            "sum_ms": total, "runs": calls, "threads": args.threads, "peak_gflops": peak, "flops": program.flops,
            "peak_share": program.flops as f64 / (total * 1e6 * peak), "kernels": kernels,
        }));
    }
    out::line(format_args!(
        "{:>9} {:>6} {:>8} {:>6} {:>7} {:>7}  kernel",
        "ms", "time", "GFLOP/s", "peak", "GB/s", "chunks"
    ))?;
    for r in &rows {
        let (gflops, gbs) = rate(r);
        out::line(format_args!(
            "{:>9.4} {:>5.1}% {:>8.1} {:>5.1}% {:>7.1} {:>7}  k{} {}",
            r.ms,
            100.0 * r.ms / total,
            gflops,
            100.0 * gflops / peak,
            gbs,
            r.kernel.count(),
            r.id.0,
            r.kernel.label,
        ))?;
    }
    out::line(format_args!(
        "{total:.3} ms: the sum of {} kernels' least times in {calls} calls on {} threads; {:.1} GFLOP/s of {peak:.1} ({:.1}%)",
        rows.len(),
        args.threads,
        program.flops as f64 / (total * 1e6),
        100.0 * program.flops as f64 / (total * 1e6 * peak),
    ))
}

fn row<'a>(program: &Program, id: KernelId, kernel: &'a Kernel, least: &[Duration]) -> Row<'a> {
    let size = |b| {
        let buffer = &program.buffers[b];
        buffer.elements * buffer.dtype.bytes() as u64
    };
    let time = least.get(id.0 as usize).copied().unwrap_or_default();
    Row { id, kernel, ms: (time.as_secs_f64() * 1e3).max(1e-6), bytes: kernel.buffers().into_iter().map(size).sum() }
}

/// The least time of each kernel over the calls that fit into the seconds, and the number of calls.
///
/// Errors: those of a call.
pub fn measure(
    program: &Program,
    session: &mut Session,
    runs: Option<u64>,
    seconds: f64,
) -> Result<(Vec<Duration>, u64)> {
    let mut least = vec![Duration::MAX; program.kernels.len()];
    let (start, mut calls) = (Instant::now(), 0);
    loop {
        let mut times = vec![Duration::ZERO; program.kernels.len()];
        session.call_observed(program, &mut times)?;
        calls += 1;
        for (old, new) in least.iter_mut().zip(times) {
            *old = (*old).min(new);
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
