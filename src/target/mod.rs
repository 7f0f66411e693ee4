//! The machine that code is compiled for: facts only, no LLVM.
mod cpus;
pub mod features;
mod pairs;
mod precision;
pub mod tiles;
mod tuning;

pub use cpus::CPUS;
pub use pairs::PairSums;
pub use precision::{MathType, Precision, Reduced, WeightType};
pub use tuning::{Choice, LoopOrder, Method, Trial, Tuning};

use crate::diag::{Code, Diagnostic, Result};
use features::Asks;

/// Bytes of a line of a cache: what moves together.
pub const LINE: u64 = 64;

/// A target machine, and how exact code for it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// LLVM's triple.
    pub triple: String,
    /// LLVM's CPU name.
    pub cpu: String,
    /// LLVM's feature string, `+avx2,-fma`.
    pub features: String,
    /// Bits of a vector register that code should use.
    pub vector_bits: u64,
    /// Number of vector registers.
    pub vector_registers: u64,
    /// Whether multiply-add is one instruction.
    pub fma: bool,
    /// The instruction for sums of two products of bfloat16, where there is one.
    pub bf16_pairs: Option<PairSums>,
    /// Whether blocks of bfloat16 are multiplied by tiles, as [`tiles`] has them.
    pub bf16_tiles: bool,
    /// How exact the code must be.
    pub precision: Precision,
    /// Measured choices that code for it is made with.
    pub tuning: Tuning,
}

/// The instruction set that a CPU has, as far as schedules ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// SSE2: 16 registers of 128 bits.
    Sse2,
    /// AVX2 and FMA: 16 registers of 256 bits.
    Avx2,
    /// AVX-512 F, BW, DQ, VL: 32 registers of 512 bits.
    Avx512,
    /// AArch64: 32 registers of 128 bits.
    Neon,
}

impl Target {
    /// The target of `--target`, `--cpu`, `--features`; what is missing is this machine's (or, for another
    /// architecture, its baseline). Errors: `Code::UnknownTarget`.
    pub fn resolve(triple: Option<&str>, cpu: Option<&str>, features: Option<&str>) -> Result<Target> {
        let triple = triple.unwrap_or(HOST_TRIPLE);
        let arch = triple.split('-').next().unwrap_or("");
        let host = HOST_TRIPLE.split('-').next() == Some(arch);
        let named = cpu.filter(|&name| name != "native");
        let (cpu, level) = match (arch, cpu) {
            ("aarch64" | "arm64", cpu) => (cpu.unwrap_or("generic"), Level::Neon),
            ("x86_64", None | Some("native")) if host => host_level(),
            ("x86_64", None | Some("native")) => ("x86-64", Level::Sse2),
            ("x86_64", Some(name)) => match CPUS.iter().find(|c| c.0 == name) {
                Some((name, level)) => (*name, *level),
                None => {
                    let near: Vec<&str> = CPUS.iter().map(|c| c.0).collect();
                    return Err(Diagnostic::new(
                        Code::UnknownTarget,
                        format!("`{name}` is no x86-64 processor that tfaot knows"),
                    )
                    .help(format!("one of {}", near.join(", ")))
                    .into());
                }
            },
            _ => {
                return Err(Diagnostic::new(Code::UnknownTarget, format!("`{triple}` is no target of tfaot"))
                    .help("x86_64 and aarch64 triples are supported, such as x86_64-unknown-linux-gnu")
                    .into());
            }
        };
        let (vector_bits, vector_registers, fma) = match level {
            Level::Sse2 => (128, 16, false),
            Level::Avx2 => (256, 16, true),
            Level::Avx512 => (512, 32, true),
            Level::Neon => (128, 32, true),
        };
        let features = features.unwrap_or("");
        if level != Level::Neon {
            features::check(features)?;
        }
        let here = host && named.is_none();
        let told = |name: &str| features::switched(features, name);
        let bf16_pairs = PairSums::of(level).filter(|sums| has_pair_sums(*sums, cpu, here, told));
        Ok(Target {
            triple: triple.to_string(),
            cpu: cpu.to_string(),
            features: features.to_string(),
            vector_bits,
            vector_registers,
            fma,
            bf16_pairs,
            bf16_tiles: bf16_pairs == Some(PairSums::Avx512Bf16) && tiles::has(cpu, here, told),
            precision: Precision::default(),
            tuning: Tuning::default(),
        })
    }
    /// The same machine, for code of this precision. Errors: `Code::NoBf16Math` where the machine can't.
    pub fn with_precision(mut self, precision: Precision) -> Result<Target> {
        if precision.math == MathType::Bf16 {
            let Some(sums) = self.bf16_pairs else {
                let told = format!("`--math bf16` needs an instruction, and {} ({}) has none", self.cpu, self.triple);
                let help = match self.level() {
                    Level::Neon => "--cpu neoverse-v1, neoverse-n2 or apple-m2, or --features +bf16",
                    _ => "--cpu znver4, znver5, sapphirerapids or graniterapids, or --features +avx512bf16",
                };
                return Err(Diagnostic::new(Code::NoBf16Math, told)
                    .help(format!("{help}; --weights bf16 needs no such instruction"))
                    .into());
            };
            let of_tiles = tiles::FEATURES.into_iter().filter(|_| self.bf16_tiles);
            for name in std::iter::once(sums.feature()).chain(of_tiles) {
                if features::switched(&self.features, name) != Some(true) {
                    let comma = if self.features.is_empty() { "" } else { "," };
                    self.features += &format!("{comma}+{name}");
                }
            }
        }
        self.precision = precision;
        Ok(self)
    }
    /// Lanes of a vector of elements of this many bytes.
    pub fn lanes(&self, element_bytes: u64) -> u64 {
        (self.vector_bits / 8 / element_bytes.max(1)).max(1)
    }
    /// LLVM's names of the vector registers.
    pub fn vector_names(&self) -> impl Iterator<Item = String> + use<> {
        let kind = match self.level() {
            Level::Sse2 => "xmm",
            Level::Avx2 => "ymm",
            Level::Avx512 => "zmm",
            Level::Neon => "v",
        };
        (0..self.vector_registers).map(move |number| format!("{kind}{number}"))
    }
    /// LLVM's name of the oldest processor that has what [`Self::level`] promises: code is made for it and tuned for `cpu`,
    /// so that [`Self::asks`] has all that the code needs.
    pub fn code_cpu(&self) -> &str {
        match self.level() {
            Level::Sse2 => "x86-64",
            Level::Avx2 => "x86-64-v3",
            Level::Avx512 => "x86-64-v4",
            Level::Neon => &self.cpu,
        }
    }
    /// What `NAME_supported` asks a machine for: what [`Self::level`] promises, and the features that were switched on. Only
    /// Linux wants to be asked for registers.
    pub fn asks(&self) -> Asks {
        let asks = features::asks(self.level(), &self.features);
        Asks { request: asks.request.filter(|_| self.triple.contains("linux")), ..asks }
    }
    /// LLVM's name of the oldest processor of the architecture.
    pub fn oldest_cpu(&self) -> &'static str {
        match self.level() {
            Level::Sse2 | Level::Avx2 | Level::Avx512 => "x86-64",
            Level::Neon => "generic",
        }
    }
    /// What tells the instruction sets of processors apart, the newer the larger: the level, and whether code uses tiles.
    pub fn instructions(&self) -> (Level, bool) {
        (self.level(), self.bf16_tiles && self.precision.math == MathType::Bf16)
    }
    /// The features that code may use, for the check at run time.
    pub fn level(&self) -> Level {
        match (self.triple.starts_with("x86_64"), self.vector_bits) {
            (false, _) => Level::Neon,
            (true, 512) => Level::Avx512,
            (true, 256) => Level::Avx2,
            (true, _) => Level::Sse2,
        }
    }
}

/// The triple of this machine.
pub const HOST_TRIPLE: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

/// Whether a processor has an instruction: as its features say, else as this machine has it, else by its name.
fn has_pair_sums(sums: PairSums, cpu: &str, here: bool, told: impl Fn(&str) -> Option<bool>) -> bool {
    told(sums.feature()).unwrap_or_else(|| (here && machine_has_pair_sums()) || sums.cpus().contains(&cpu))
}

#[cfg(target_arch = "x86_64")]
fn machine_has_pair_sums() -> bool {
    std::is_x86_feature_detected!("avx512bf16")
}

#[cfg(target_arch = "aarch64")]
fn machine_has_pair_sums() -> bool {
    std::arch::is_aarch64_feature_detected!("bf16")
}

/// The best generic level of this machine.
fn host_level() -> (&'static str, Level) {
    #[cfg(target_arch = "x86_64")]
    {
        let v3 = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt")
            && std::is_x86_feature_detected!("f16c")
            && std::is_x86_feature_detected!("movbe");
        let v4 = v3
            && std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512cd")
            && std::is_x86_feature_detected!("avx512vl");
        if v4 {
            return ("x86-64-v4", Level::Avx512);
        }
        if v3 {
            return ("x86-64-v3", Level::Avx2);
        }
    }
    ("x86-64", Level::Sse2)
}
