//! The roofline of a kernel: the minimum time in which this machine can run it, limited by its multiply-adds or its memory traffic.
use super::caches::{LEVELS, MachineCaches};
use super::{bandwidth, multiply_adds};
use crate::diag::Result;
use crate::kernel::MemoryTraffic;
use crate::target::Target;

/// Limits of a given number of threads.
pub struct Roofline {
    /// GFLOP/s of multiply-adds on registers.
    pub gflops: f64,
    /// Caches and memory, nearest first.
    memories: Vec<Memory>,
    /// GB/s of the nearest memory that holds all bytes of a call, from which constants are read.
    constants_gbs: f64,
}

struct Memory {
    bytes: u64,
    gbs: f64,
}

impl Roofline {
    /// Measures the limits; `bytes` is the number of bytes that a call reads and writes.
    ///
    /// # Errors
    /// Errors of compiling and loading.
    pub fn measure(target: &Target, threads: usize, bytes: u64) -> Result<Roofline> {
        let caches = MachineCaches::of_this_machine();
        let mut memories = Vec::new();
        for &level in LEVELS {
            let Some(region) = caches.bytes_per_thread(level, threads) else { continue };
            let gbs = bandwidth::measure_gbs(target, region, threads)?;
            let holds = caches.get(level).map_or(u64::MAX, |c| c.bytes * c.count.min(threads as u64));
            memories.push(Memory { bytes: holds, gbs });
        }
        let gflops = multiply_adds::gflops_of_one_thread(target)? * threads as f64;
        let mut roof = Roofline { gflops, memories, constants_gbs: 0.0 };
        roof.constants_gbs = roof.gbs(bytes);
        Ok(roof)
    }

    /// Minimum milliseconds of a launch. Constants come from the memory that holds the whole model, as a call reads all of them; values
    /// were just written, and come from the nearest memory that holds those of the kernel.
    pub fn least_ms(&self, flops: u64, touched: MemoryTraffic) -> f64 {
        let read = touched.constants as f64 / self.constants_gbs + touched.values as f64 / self.gbs(touched.values);
        (flops as f64 / self.gflops).max(read) / 1e6
    }

    /// GB/s of the nearest memory that holds `bytes` bytes.
    fn gbs(&self, bytes: u64) -> f64 {
        let holds = self.memories.iter().find(|m| bytes <= m.bytes);
        holds.or(self.memories.last()).map_or(f64::INFINITY, |m| m.gbs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_bound_by_what_takes_longer() {
        let memories = vec![Memory { bytes: 1000, gbs: 200.0 }, Memory { bytes: u64::MAX, gbs: 10.0 }];
        let roof = Roofline { gflops: 100.0, memories, constants_gbs: 10.0 };
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-12, "{a} is not {b}");
        near(roof.least_ms(100_000_000, MemoryTraffic { constants: 0, values: 1000 }), 1.0);
        near(roof.least_ms(1, MemoryTraffic { constants: 10_000_000, values: 0 }), 1.0);
        near(roof.least_ms(1, MemoryTraffic { constants: 0, values: 10_000_000 }), 1.0);
        near(roof.least_ms(1, MemoryTraffic { constants: 0, values: 1000 }), 5e-6);
    }
}
