//! `tfaot bench --profile`: the time of each kernel compared with the machine's limits.
use super::effort;
use crate::cli::args::BenchArgs;
use crate::cli::out;
use crate::compile::Built;
use crate::diag::Result;
use crate::measure::Profile;
use crate::measure::profile::KernelProfile;
use crate::run::Session;
use crate::target::Target;
use serde_json::{Value, json};

/// Maximum number of further nodes that a line names besides the kernel's label.
const NAMED: usize = 3;

/// Sums over the whole model.
struct Totals {
    ms: f64,
    flops: u64,
    direct_flops: u64,
    roofline_ms: f64,
}

/// Measures the kernels of an object compiled with `Launches::Observed`, and prints them, the slowest first.
pub fn run(built: &Built, target: &Target, session: &mut Session, args: &BenchArgs) -> Result<()> {
    let profile = Profile::measure(built, target, session, args.threads.into(), &effort(args))?;
    let totals = Totals {
        ms: profile.sum(|k| k.ms),
        flops: profile.sum(|k| k.flops),
        direct_flops: profile.sum(|k| k.direct_flops),
        roofline_ms: profile.sum(|k| k.roofline_ms),
    };
    if args.json { print_json(built, &profile, &totals, args) } else { print_table(&profile, &totals, args) }
}

fn print_json(built: &Built, profile: &Profile, totals: &Totals, args: &BenchArgs) -> Result<()> {
    let peak = profile.peak_gflops;
    let shared = crate::kernel::parallel_kernels(&built.program);
    let kernel = |k: &KernelProfile| {
        json!({
            "kernel": k.id.0, "name": k.kernel.label, "nodes": k.nodes, "ms": k.ms, "launches": k.launches,
            "flops": k.flops, "direct_flops": k.direct_flops, "bytes": k.bytes, "gflops": k.gflops(), "gbs": k.gbs(),
            "peak_share": k.gflops() / peak, "roofline_ms": k.roofline_ms, "chunks": k.kernel.chunk_count(),
            "shared": shared[k.id], "work": k.kernel.work(),
        })
    };
    let kernels: Vec<Value> = profile.kernels.iter().map(kernel).collect();
    out::json(&json!({
        "sum_ms": totals.ms, "runs": profile.calls, "threads": args.threads, "peak_gflops": peak, "flops": totals.flops,
        "peak_share": totals.flops as f64 / (totals.ms * 1e6 * peak), "direct_flops": totals.direct_flops,
        "direct_peak_share": totals.direct_flops as f64 / (totals.ms * 1e6 * peak),
        "roofline_ms": totals.roofline_ms, "kernels": kernels,
    }))
}

fn print_table(profile: &Profile, totals: &Totals, args: &BenchArgs) -> Result<()> {
    let (peak, total, calls) = (profile.peak_gflops, totals.ms, profile.calls);
    out::line(format_args!(
        "{:>9} {:>6} {:>8} {:>6} {:>7} {:>6} {:>7} {:>8}  kernel",
        "ms", "time", "GFLOP/s", "peak", "GB/s", "roof", "chunks", "launches"
    ))?;
    for k in &profile.kernels {
        out::line(format_args!(
            "{:>9.4} {:>5.1}% {:>8.1} {:>5.1}% {:>7.1} {:>5.1}% {:>7} {:>8}  k{} {}{}",
            k.ms,
            100.0 * k.ms / total,
            k.gflops(),
            100.0 * k.gflops() / peak,
            k.gbs(),
            100.0 * k.roofline_ms / k.ms,
            k.kernel.chunk_count(),
            k.launches,
            k.id.0,
            k.kernel.label,
            other_nodes(k),
        ))?;
    }
    out::line(format_args!(
        "{total:.3} ms: the sum of {} kernels' least times in {calls} calls on {} threads; {:.1} GFLOP/s of {peak:.1} ({:.1}%), {:.1}% by direct sums; the roofline is {:.3} ms ({:.1}%)",
        profile.kernels.len(),
        args.threads,
        totals.flops as f64 / (total * 1e6),
        100.0 * totals.flops as f64 / (total * 1e6 * peak),
        100.0 * totals.direct_flops as f64 / (total * 1e6 * peak),
        totals.roofline_ms,
        100.0 * totals.roofline_ms / total,
    ))
}

/// Nodes that the kernel's label does not name, in parentheses.
fn other_nodes(k: &KernelProfile) -> String {
    let others: Vec<&str> = k.nodes.iter().map(String::as_str).filter(|n| !k.kernel.label.ends_with(n)).collect();
    match others.len() {
        0 => String::new(),
        n if n <= NAMED => format!(" (with {})", others.join(", ")),
        n => format!(" (with {} and {} more)", others[..NAMED].join(", "), n - NAMED),
    }
}
