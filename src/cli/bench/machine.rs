//! `tfaot bench --machine`: limits of this machine.
use crate::cli::args::BenchArgs;
use crate::cli::{ExitStatus, graph, out};
use crate::codegen;
use crate::diag::Result;
use crate::measure::{MachineLimits, Throughput, caches::MemoryLevel};
use crate::target::Target;
use serde_json::json;

/// Measures and prints the limits. Errors: those of compiling and loading, `Code::UnknownTarget`.
pub fn run(args: &BenchArgs) -> Result<ExitStatus> {
    let target = graph::code_request(&args.target)?.target;
    let limits = MachineLimits::measure(&target)?;
    if args.json {
        print_json(&target, &limits)?
    } else {
        print_table(&target, &limits)?
    }
    Ok(ExitStatus::Yes)
}

fn print_json(target: &Target, limits: &MachineLimits) -> Result<()> {
    let widths: Vec<_> = limits
        .multiply_adds
        .iter()
        .map(|(bits, f)| json!({"bits": bits, "one_gflops": f.one_thread, "all_gflops": f.all_threads}))
        .collect();
    let of_level = |(level, f): &(MemoryLevel, Throughput)| {
        let cache = limits.caches.get(*level);
        json!({
            "level": level.name(), "bytes": cache.map(|c| c.bytes), "count": cache.map(|c| c.count),
            "one_gbs": f.one_thread, "all_gbs": f.all_threads,
        })
    };
    let memory: Vec<_> = limits.memory.iter().map(of_level).collect();
    out::json(&json!({
        "triple": target.triple, "llvm_cpu": codegen::host_cpu(), "cpu": target.cpu, "threads": limits.threads,
        "caches_known": limits.caches.known, "fma": widths, "memory": memory,
        "handover_ns": limits.handover.map(|time| time.as_nanos() as u64),
    }))
}

fn print_table(target: &Target, limits: &MachineLimits) -> Result<()> {
    out::line(format_args!("{}, LLVM's `{}`, code for `{}`", target.triple, codegen::host_cpu(), target.cpu))?;
    let figure = |x: Option<f64>| x.map_or("–".to_string(), |x| format!("{x:.1}"));
    let head = format!("{} threads", limits.threads);
    out::line(format_args!("{:<34} {:>10} {head:>10}", "f32 multiply-adds, GFLOP/s", "1 thread"))?;
    for (bits, f) in &limits.multiply_adds {
        let (one, all) = (figure(f.one_thread), figure(f.all_threads));
        out::line(format_args!("  {:<32} {one:>10} {all:>10}", format!("{bits} bits")))?;
    }
    out::line(format_args!("{:<34} {:>10} {head:>10}", "memory read, GB/s", "1 thread"))?;
    for (level, f) in &limits.memory {
        let cache = limits.caches.get(*level);
        let size = cache.map_or(String::new(), |c| format!("{} KiB, {} of them", c.bytes >> 10, c.count));
        let assumed = if limits.caches.known || size.is_empty() { "" } else { " (assumed)" };
        let name = format!("{} {size}{assumed}", level.name());
        out::line(format_args!("  {name:<32} {:>10} {:>10}", figure(f.one_thread), figure(f.all_threads)))?;
    }
    if let Some(time) = limits.handover {
        let ns = time.as_nanos() as u64;
        out::line(format_args!("{:<34} {:>10} {ns:>10}", "a loop to all threads and back, ns", ""))?;
    }
    Ok(())
}
