//! `tfaot bench --machine`: what this machine can do at most, measured by compiled code of our own.
mod caches;
mod fma;
mod read;
mod roof;

pub use caches::Caches;
pub use fma::fma_gflops;
pub use roof::Roof;

use super::args::BenchArgs;
use super::{Verdict, graph, out};
use crate::codegen::{self, Launches};
use crate::compile::Built;
use crate::diag::Result;
use crate::hlo;
use crate::kernel::Program;
use crate::run::Pool;
use crate::run::Session;
use crate::target::Target;
use crate::tensor::Tensor;
use serde_json::json;
use std::time::{Duration, Instant};

/// Calls; the best of them counts, so that a neighbour on the machine does not lower the figure.
const CALLS: usize = 40;

/// A figure at one thread and at all; nothing where the machine has no such thing.
struct Figures {
    one: Option<f64>,
    all: Option<f64>,
}

/// Measures and prints. Errors: those of compiling and loading, `Code::UnknownTarget`.
pub fn run(args: &BenchArgs) -> Result<Verdict> {
    let target = graph::target(&args.target)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let at_both = |measure: &dyn Fn(usize) -> Result<Option<f64>>| -> Result<Figures> {
        let one = measure(1)?;
        Ok(Figures { one, all: if threads > 1 { measure(threads)? } else { one } })
    };
    let mut widths = Vec::new();
    let mut bits = target.vector_bits;
    while bits >= 128 {
        widths.push((bits, at_both(&|threads| fma::gflops(&target, bits / 32, threads).map(Some))?));
        bits /= 2;
    }
    let caches = Caches::of_this_machine();
    let mut memory = Vec::new();
    for level in caches::LEVELS {
        memory.push((
            *level,
            at_both(&|threads| match caches.bytes_of_a_thread(*level, threads) {
                Some(bytes) => read::gbs(&target, bytes, threads).map(Some),
                None => Ok(None),
            })?,
        ));
    }
    let handover = if threads > 1 { Some(Pool::new(threads)?.handover().as_nanos() as u64) } else { None };
    let host = codegen::host_cpu();
    if args.json {
        let widths: Vec<_> =
            widths.iter().map(|(bits, f)| json!({"bits": bits, "one_gflops": f.one, "all_gflops": f.all})).collect();
        let of_memory = |(level, f): &(caches::Level, Figures)| {
            let cache = caches.get(*level);
            json!({
                "level": level.name(), "bytes": cache.map(|c| c.bytes), "count": cache.map(|c| c.count),
                "one_gbs": f.one, "all_gbs": f.all,
            })
        };
        let memory: Vec<_> = memory.iter().map(of_memory).collect();
        out::json(&json!({
            "triple": target.triple, "llvm_cpu": host, "cpu": target.cpu, "threads": threads,
            "caches_known": caches.known, "fma": widths, "memory": memory, "handover_ns": handover,
        }))?;
        return Ok(Verdict::Yes);
    }
    out::line(format_args!("{}, LLVM's `{host}`, code for `{}`", target.triple, target.cpu))?;
    let figure = |x: Option<f64>| x.map_or("–".to_string(), |x| format!("{x:.1}"));
    let head = format!("{threads} threads");
    out::line(format_args!("{:<34} {:>10} {head:>10}", "f32 multiply-adds, GFLOP/s", "1 thread"))?;
    for (bits, f) in &widths {
        out::line(format_args!("  {:<32} {:>10} {:>10}", format!("{bits} bits"), figure(f.one), figure(f.all)))?;
    }
    out::line(format_args!("{:<34} {:>10} {head:>10}", "memory read, GB/s", "1 thread"))?;
    for (level, f) in &memory {
        let size = caches.get(*level).map_or(String::new(), |c| format!("{} KiB, {} of them", c.bytes >> 10, c.count));
        let assumed = if caches.known || size.is_empty() { "" } else { " (assumed)" };
        let name = format!("{} {size}{assumed}", level.name());
        out::line(format_args!("  {name:<32} {:>10} {:>10}", figure(f.one), figure(f.all)))?;
    }
    if let Some(ns) = handover {
        out::line(format_args!("{:<34} {:>10} {ns:>10}", "a loop to all threads and back, ns", ""))?;
    }
    Ok(Verdict::Yes)
}

/// How many times the multiply-adds of one thread `threads` make: fewer than their number where the host of a virtual machine has
/// processors of it on one core. Errors: those of compiling and loading.
pub fn cores(target: &Target, threads: usize) -> Result<f64> {
    Ok(fma::gflops(target, target.lanes(4), threads)? / fma_gflops(target)?)
}

/// The least seconds of a call of `program`, in at most a second of calls.
fn least_seconds(program: Program, target: &Target, args: &[Tensor], threads: usize) -> Result<f64> {
    let object = codegen::compile(&program, target, Launches::Direct)?;
    let built = Built { module: hlo::Builder::new("machine").module().clone(), program, object };
    let mut session = Session::load(&built, target, args, threads)?;
    let (begin, mut least) = (Instant::now(), Duration::MAX);
    for call in 0..CALLS {
        let start = Instant::now();
        session.call()?;
        least = least.min(start.elapsed());
        if call >= 2 && begin.elapsed() > Duration::from_secs(1) {
            break;
        }
    }
    Ok(least.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_a_program() {
        let target = Target::resolve(None, Some("x86-64-v3"), None).or_else(|_| Target::resolve(None, None, None));
        let target = target.expect("a target");
        for threads in [1, 3] {
            crate::kernel::verify(&fma::program(target.lanes(4), threads)).expect("multiply-adds");
            crate::kernel::verify(&read::program(&target, 1 << 12, 2, threads)).expect("reads");
        }
    }

    #[test]
    fn every_level_is_larger_than_the_one_before() {
        let caches = Caches::of_this_machine();
        let sizes: Vec<u64> = caches::LEVELS.iter().filter_map(|&l| caches.bytes_of_a_thread(l, 1)).collect();
        assert!(sizes.is_sorted() && sizes.len() >= 3, "{sizes:?}");
    }
}
