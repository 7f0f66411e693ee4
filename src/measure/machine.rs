//! Limits of this machine, on one thread and on all.
use super::caches::{LEVELS, MachineCaches, MemoryLevel};
use super::{bandwidth, multiply_adds};
use crate::codegen::{self, Launches};
use crate::compile::Built;
use crate::diag::Result;
use crate::hlo;
use crate::kernel::Program;
use crate::run::{Session, ThreadPool};
use crate::target::Target;
use crate::tensor::Tensor;
use std::time::{Duration, Instant};

/// Number of calls by which a limit is measured; the fastest counts, so that other programs do not lower the limit.
const CALLS: usize = 40;

/// A rate on one thread and on all threads; `None` if it does not exist on the machine.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// The rate of one thread.
    pub one_thread: Option<f64>,
    /// The rate of all hardware threads together.
    pub all_threads: Option<f64>,
}

/// The limits of this machine.
pub struct MachineLimits {
    /// Number of hardware threads.
    pub threads: usize,
    /// GFLOP/s of f32 multiply-adds by vector width in bits, widest first.
    pub multiply_adds: Vec<(u64, Throughput)>,
    /// GB/s of reads by memory level, nearest first.
    pub memory: Vec<(MemoryLevel, Throughput)>,
    /// The caches on which the memory figures are based.
    pub caches: MachineCaches,
    /// Minimum time to distribute a loop to all threads and wait for them; `None` if there is one thread.
    pub handover: Option<Duration>,
}

impl MachineLimits {
    /// Measures this machine with code for `target`; takes some seconds.
    ///
    /// # Errors
    /// Errors of compiling and loading.
    pub fn measure(target: &Target) -> Result<MachineLimits> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let on_both = |measure: &dyn Fn(usize) -> Result<Option<f64>>| -> Result<Throughput> {
            let one_thread = measure(1)?;
            Ok(Throughput { one_thread, all_threads: if threads > 1 { measure(threads)? } else { one_thread } })
        };
        let mut multiply_adds = Vec::new();
        let mut bits = target.vector_bits;
        while bits >= 128 {
            multiply_adds
                .push((bits, on_both(&|threads| multiply_adds::measure_gflops(target, bits / 32, threads).map(Some))?));
            bits /= 2;
        }
        let caches = MachineCaches::of_this_machine();
        let mut memory = Vec::new();
        for &level in LEVELS {
            let bytes = |threads| caches.bytes_per_thread(level, threads);
            let measure =
                |threads| bytes(threads).map(|bytes| bandwidth::measure_gbs(target, bytes, threads)).transpose();
            memory.push((level, on_both(&measure)?));
        }
        let handover = if threads > 1 { Some(ThreadPool::new(threads)?.measure_dispatch_time()) } else { None };
        Ok(MachineLimits { threads, multiply_adds, memory, caches, handover })
    }
}

/// Ratio of the multiply-adds per second of `threads` threads to those of one. The ratio is below `threads` if a virtual machine has
/// several of its processors on one core.
///
/// # Errors
/// Errors of compiling and loading.
pub fn parallel_speedup(target: &Target, threads: usize) -> Result<f64> {
    Ok(multiply_adds::measure_gflops(target, target.lanes(4), threads)? / multiply_adds::gflops_of_one_thread(target)?)
}

/// Minimum seconds of a call of `program`, measured for at most a second.
pub(super) fn min_call_seconds(program: Program, target: &Target, args: &[Tensor], threads: usize) -> Result<f64> {
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
