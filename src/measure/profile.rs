//! Times of a model's kernels, compared with the roofline of this machine.
use super::roofline::Roofline;
use crate::compile::Built;
use crate::diag::Result;
use crate::kernel::{Kernel, KernelId, Program};
use crate::run::{KernelTime, Session};
use crate::target::Target;
use indexmap::IndexSet;
use std::collections::HashMap;
use std::time::Instant;

/// Measurements of one kernel.
pub struct KernelProfile<'a> {
    /// Index of the kernel.
    pub id: KernelId,
    /// The kernel itself.
    pub kernel: &'a Kernel,
    /// Minimum over calls of the milliseconds of all launches in one call.
    pub ms: f64,
    /// Number of launches in one call.
    pub launches: u64,
    /// Bytes that all launches read and write.
    pub bytes: u64,
    /// Floating-point operations of all launches.
    pub flops: u64,
    /// Floating-point operations of all launches, if convolutions were computed as direct sums.
    pub direct_flops: u64,
    /// Minimum milliseconds that this machine needs for all launches, by the roofline model.
    pub roofline_ms: f64,
    /// Names of the graph's nodes whose instructions the kernel computes, in the kernel's order.
    pub nodes: Vec<String>,
}

/// Measurements of all kernels of a model.
pub struct Profile<'a> {
    /// The kernels, the slowest first.
    pub kernels: Vec<KernelProfile<'a>>,
    /// Number of measured calls.
    pub calls: u64,
    /// GFLOP/s of multiply-adds on registers with the session's number of threads.
    pub peak_gflops: f64,
}

impl<'a> Profile<'a> {
    /// Measures an object compiled with [`crate::codegen::Launches::Observed`], for a number of calls or seconds.
    ///
    /// # Errors
    /// Errors of calls, and of compiling and loading the code that measures the machine.
    pub fn measure(
        built: &'a Built,
        target: &Target,
        session: &mut Session,
        threads: usize,
        effort: &super::Effort,
    ) -> Result<Profile<'a>> {
        let program = &built.program;
        let (least, calls) = kernel_times(program, session, effort.runs, effort.seconds)?;
        let insts = built.module.comps.values().flat_map(|c| c.insts.values());
        let nodes = insts.map(|i| (i.name.as_str(), i.metadata.op_name.as_str())).collect();
        let roofline = Roofline::measure(target, threads, program.weights_bytes + program.workspace_bytes)?;
        let time = |id: KernelId| least.get(id.0 as usize).copied().unwrap_or_default();
        let profile = |(id, kernel)| KernelProfile::new(program, &nodes, id, kernel, time(id), &roofline);
        let mut kernels: Vec<KernelProfile> = program.kernels.iter().map(profile).collect();
        kernels.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        Ok(Profile { kernels, calls, peak_gflops: roofline.gflops })
    }

    /// Sum of a figure over all kernels.
    pub fn sum<T: std::iter::Sum>(&self, figure: impl Fn(&KernelProfile) -> T) -> T {
        self.kernels.iter().map(figure).sum()
    }
}

impl<'a> KernelProfile<'a> {
    fn new(
        program: &Program,
        nodes: &HashMap<&str, &str>,
        id: KernelId,
        kernel: &'a Kernel,
        time: KernelTime,
        roofline: &Roofline,
    ) -> Self {
        let touched = kernel.memory_traffic(&program.buffers);
        let mut named: IndexSet<&str> = IndexSet::new();
        named.extend(kernel.insts.iter().filter_map(|i| nodes.get(i.as_str()).copied()).filter(|n| !n.is_empty()));
        KernelProfile {
            id,
            kernel,
            ms: (time.time.as_secs_f64() * 1e3).max(1e-6),
            launches: time.launches,
            bytes: time.launches * (touched.constants + touched.values),
            flops: time.launches * kernel.flops,
            direct_flops: time.launches * kernel.direct_flops().unwrap_or(kernel.flops),
            roofline_ms: time.launches as f64 * roofline.least_ms(kernel.flops, touched),
            nodes: named.into_iter().map(str::to_string).collect(),
        }
    }

    /// GFLOP/s of the kernel.
    pub fn gflops(&self) -> f64 {
        self.flops as f64 / (self.ms * 1e6)
    }

    /// GB/s that the kernel reads and writes.
    pub fn gbs(&self) -> f64 {
        self.bytes as f64 / (self.ms * 1e6)
    }
}

/// Measures the minimum time of each kernel over `runs` calls, or over the calls that fit into `seconds`. Returns the times by index of the
/// kernel, and the number of calls.
///
/// # Errors
/// Errors of [`Session::call_observed`].
pub fn kernel_times(
    program: &Program,
    session: &mut Session,
    runs: Option<u64>,
    seconds: f64,
) -> Result<(Vec<KernelTime>, u64)> {
    let mut least: Vec<KernelTime> = Vec::new();
    let shared = crate::kernel::parallel_kernels(program);
    let (start, mut calls) = (Instant::now(), 0);
    loop {
        let mut times = vec![KernelTime::default(); program.kernels.len()];
        session.call_observed(&shared, &mut times)?;
        calls += 1;
        if least.is_empty() {
            least.clone_from(&times);
        }
        for (old, new) in least.iter_mut().zip(times) {
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
