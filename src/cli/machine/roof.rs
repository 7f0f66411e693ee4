//! The least time in which this machine could do a kernel: that of its multiply-adds, or of what it reads and writes.
use super::caches::LEVELS;
use super::{Caches, fma_gflops, read};
use crate::diag::Result;
use crate::kernel::Touched;
use crate::target::Target;

/// What so many threads can do at most.
pub struct Roof {
    /// GFLOP/s of multiply-adds of registers.
    pub gflops: f64,
    /// The memories, the nearest first.
    memories: Vec<Memory>,
    /// Bytes per nanosecond of the memory that holds all that a call touches: its constants come from there.
    constants_gbs: f64,
}

struct Memory {
    bytes: u64,
    gbs: f64,
}

impl Roof {
    /// Measures; `bytes` is what a call touches in all. Errors: those of compiling and loading.
    pub fn measure(target: &Target, threads: usize, bytes: u64) -> Result<Roof> {
        let caches = Caches::of_this_machine();
        let mut memories = Vec::new();
        for &level in LEVELS {
            let Some(region) = caches.bytes_of_a_thread(level, threads) else { continue };
            let gbs = read::gbs(target, region, threads)?;
            let holds = caches.get(level).map_or(u64::MAX, |c| c.bytes * c.count.min(threads as u64));
            memories.push(Memory { bytes: holds, gbs });
        }
        let gflops = fma_gflops(target)? * threads as f64;
        let mut roof = Roof { gflops, memories, constants_gbs: 0.0 };
        roof.constants_gbs = roof.gbs(bytes);
        Ok(roof)
    }

    /// Milliseconds that a launch takes at least. Constants come from where all of the model is, since a call goes through
    /// all of them; values were just written, and come from the nearest memory that holds those of the kernel.
    pub fn least_ms(&self, flops: u64, touched: Touched) -> f64 {
        let read = touched.constants as f64 / self.constants_gbs + touched.values as f64 / self.gbs(touched.values);
        (flops as f64 / self.gflops).max(read) / 1e6
    }

    /// The speed of the nearest memory that holds so much.
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
        let roof = Roof { gflops: 100.0, memories, constants_gbs: 10.0 };
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-12, "{a} is not {b}");
        near(roof.least_ms(100_000_000, Touched { constants: 0, values: 1000 }), 1.0);
        near(roof.least_ms(1, Touched { constants: 10_000_000, values: 0 }), 1.0);
        near(roof.least_ms(1, Touched { constants: 0, values: 10_000_000 }), 1.0);
        near(roof.least_ms(1, Touched { constants: 0, values: 1000 }), 5e-6);
    }
}
