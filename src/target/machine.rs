//! Machine model of the schedules: capacities of caches, throughput of a cycle, and costs of going to a cache farther away.
//!
//! Sizes of caches are a processor's own, by its name ([`Caches::for_cpu`]). Costs are those that were measured on one processor with
//! AVX-512, 32 KiB of first level and 1 MiB of second level (the one of `docs/performance.md`); they are taken for all others too.

/// The data caches of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Size in bytes of the first-level data cache.
    pub l1d: u64,
    /// Size in bytes of the second-level cache.
    pub l2: u64,
}

/// Caches assumed for a processor without a row, such as `x86-64-v3` or a part of AArch64's.
const DEFAULT: Caches = Caches { l1d: 32 << 10, l2: 1 << 20 };

/// Cache sizes by processor names: KiB of the first and second level from the vendors' optimization manuals; for hybrid processors those of
/// the fast cores. AArch64's tiles were measured with a first level of 32 KiB only, so its rows keep that.
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

    /// `count` sixteenths of the second-level cache, in bytes.
    pub fn l2_sixteenths(&self, count: u64) -> u64 {
        self.l2 / 16 * count
    }
}

/// Throughput and latency of a core's vector units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExecutionPorts {
    /// Vector multiply-adds that start per cycle.
    pub fmas: f64,
    /// Vector loads that start per cycle.
    pub loads: f64,
    /// Latency of a multiply-add in cycles: the time until the next one of the same sum can start.
    pub fma_latency: f64,
    /// Micro-operations that are issued per cycle, if fewer than the ports execute; a load counts as two.
    pub micro_ops: Option<f64>,
}

impl ExecutionPorts {
    /// Two multiply-adds and two loads a cycle: x86-64 since Haswell and Zen 2.
    pub const X86: ExecutionPorts = ExecutionPorts { fmas: 2.0, loads: 2.0, fma_latency: 4.0, micro_ops: None };
    /// The narrowest of AArch64's processors that was measured, Neoverse N1.
    pub const NEOVERSE_N1: ExecutionPorts = ExecutionPorts { micro_ops: Some(3.0), ..ExecutionPorts::X86 };
}

/// Vector products of words that start per cycle where another instruction adds them to the sums: two instructions on three ports, and so many were
/// measured on Zen 3, whose four ports share them unevenly.
pub const PRODUCTS_ADDED_APART: f64 = 1.5;
/// Bytes per cycle that a matrix product reads of its panel from the second-level cache.
pub const L2_BYTES: f64 = 32.0;
/// Bytes per cycle of weights from the second-level cache if each row reads them again: fewer, as each row starts a new stream.
pub const L2_BYTES_BY_ROW: f64 = 26.0;
/// Bytes per cycle from the third-level cache.
pub const L3_BYTES: f64 = 8.0;
/// Cycles that an f32 element takes to the third level and back, written by one kernel and read by the next: 1.2 million of them
/// took 0.11 ms.
pub const L3_THERE_AND_BACK: f64 = 0.33;
/// Fewest vector operations, of a cycle each, for which a second thread pays: less work is done before two threads are synchronized, some
/// 1.5 µs. Handing over and waiting take about half a microsecond, and data made by two threads comes slowly from the other's cache.
pub const WORTH_SHARING: u64 = 6_000;
/// Cycles that fusion saves per attention score in the third-level cache, which an unfused score passes twice: from the product to the
/// softmax, and from there to the next product. A million of them took 0.3 ms.
pub const L3_SCORE: f64 = 1.0;
/// Cycles that fusion saves per attention score in the second-level cache: one thread gains nothing, two gain 1 or 2 %.
pub const L2_SCORE: f64 = 0.1;
/// Time to load a vector of weights from the third-level cache, in vector operations; from the second level it is 1.
pub const L3_VECTOR: f64 = 6.0;
/// Scalar f32 multiply-adds per cycle that products of one row of pixels reach with AVX-512: half of the peak.
pub const F32_FMAS: f64 = 16.0;
/// Fixed cost of an element of a product (start, end and store), in scalar f32 multiply-adds.
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
