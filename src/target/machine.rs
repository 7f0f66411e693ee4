//! Machine model of the schedules: capacities of caches, throughput of a cycle, and costs of going to a cache farther away.
//!
//! Sizes of caches are a processor's own, by its name ([`Caches::for_cpu`]). Costs are those that were measured on one processor with
//! AVX-512, 32 KiB of first level and 1 MiB of second level (the one of `docs/performance.md`); they are taken for all others too.

/// The data caches of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Bytes of the first level.
    pub l1d: u64,
    /// Bytes of the second level.
    pub l2: u64,
}

/// Caches assumed for a processor without a row, such as `x86-64-v3` or a part of AArch64's.
const DEFAULT: Caches = Caches { l1d: 32 << 10, l2: 1 << 20 };

/// Names of processors with KiB of both levels, as their vendors' optimization manuals say; of hybrid ones those of the fast cores.
/// AArch64's tiles were chosen with a first level of 32 KiB and nobody has measured others, so that theirs stays at that.
#[rustfmt::skip]
const ROWS: &[(&[&str], u64, u64)] = &[
    (&["nehalem", "westmere", "sandybridge", "ivybridge", "haswell", "broadwell", "skylake"], 32, 256),
    (&["znver1", "znver2", "znver3"], 32, 512),
    (&["icelake-client", "rocketlake"], 48, 512),
    (&["skylake-avx512", "cascadelake", "cooperlake", "znver4"], 32, 1024),
    (&["znver5"], 48, 1024),
    (&["icelake-server", "tigerlake", "alderlake"], 48, 1280),
    (&["sapphirerapids", "emeraldrapids", "graniterapids", "raptorlake"], 48, 2048),
    (&["ampere1", "ampere1a", "ampere1b", "neoverse-v2", "grace"], 32, 2048),
];

impl Caches {
    /// Cache sizes of the processor with LLVM's name `cpu`: 32 KiB and 1 MiB where there is no row for it.
    pub fn for_cpu(cpu: &str) -> Caches {
        let row = ROWS.iter().find(|(names, ..)| names.contains(&cpu));
        row.map_or(DEFAULT, |&(_, l1d, l2)| Caches { l1d: l1d << 10, l2: l2 << 10 })
    }

    /// Bytes of so many sixteenths of the second level.
    pub fn l2_sixteenths(&self, count: u64) -> u64 {
        self.l2 / 16 * count
    }
}

/// Throughput and latency of a core's vector units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ports {
    /// Multiply-adds of vectors that begin in a cycle.
    pub fmas: f64,
    /// Loads of vectors that begin in a cycle.
    pub loads: f64,
    /// Cycles from a multiply-add to the next of the same sum.
    pub fma_latency: f64,
    /// Micro-operations that enter in a cycle, where that is less than what the ports do; a load is two of them.
    pub micro_ops: Option<f64>,
}

impl Ports {
    /// Two multiply-adds and two loads a cycle: x86-64 since Haswell and Zen 2.
    pub const X86: Ports = Ports { fmas: 2.0, loads: 2.0, fma_latency: 4.0, micro_ops: None };
    /// The narrowest of AArch64's processors that was measured, Neoverse N1.
    pub const NEOVERSE_N1: Ports = Ports { micro_ops: Some(3.0), ..Ports::X86 };
}

/// Bytes that a product's panel has a cycle from the second level, while it multiplies.
pub const L2_BYTES: f64 = 32.0;
/// Bytes that weights have a cycle from the second level where they are read again for each row: less, as each row begins anew.
pub const L2_BYTES_BY_ROW: f64 = 26.0;
/// Bytes that a cycle reads from the third level.
pub const L3_BYTES: f64 = 8.0;
/// Cycles that an f32 element takes to the third level and back, written by one kernel and read by the next: 1.2 million of them
/// took 0.11 ms.
pub const L3_THERE_AND_BACK: f64 = 0.33;
/// Operations on vectors, of a cycle each, from which on a kernel is worth another thread: less is done before two threads have met,
/// some 1.5 µs. To hand over and to wait takes about half a microsecond, and what one thread reads that two have made comes slowly
/// from the other's cache.
pub const WORTH_SHARING: u64 = 6_000;
/// Cycles that a score of attention takes through the third level: there and back as what a product makes, and again as what its
/// row's reductions leave. A million of them took 0.3 ms.
pub const L3_SCORE: f64 = 1.0;
/// Cycles that a score of attention takes through the second level: one thread is as fast with as without it, two are 1 or 2 % faster.
pub const L2_SCORE: f64 = 0.1;
/// Vector operations in the time that a vector of weights takes from the third level, where one from the second takes one.
pub const L3_VECTOR: f64 = 6.0;
/// Multiply-adds of f32 elements in a cycle, as products of a row of pixels reach them with AVX-512: half of what its ports can do.
pub const F32_FMAS: f64 = 16.0;
/// Multiply-adds in the time that beginning, ending and storing an element takes beside its terms.
pub const F32_ENDS: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_have_a_default() {
        for cpu in ["x86-64-v3", "x86-64-v4", "neoverse-n1", "nobody"] {
            assert_eq!(Caches::for_cpu(cpu), Caches { l1d: 32768, l2: 1_048_576 }, "{cpu}");
        }
        assert_eq!(Caches::for_cpu("znver3").l2, 512 << 10);
        assert_eq!(Caches::for_cpu("sapphirerapids"), Caches { l1d: 48 << 10, l2: 2 << 20 });
        assert_eq!(Caches::for_cpu("haswell").l2_sixteenths(5), 80 << 10);
    }
}
