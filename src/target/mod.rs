//! The machine that code is compiled for: facts only, no LLVM.
pub mod cpus;
pub mod features;
pub mod hwcaps;
pub mod machine;
mod pairs;
mod precision;
pub mod tiles;
mod tuning;

pub use pairs::PairSums;
pub use precision::{MathType, Precision, Reduced, WeightType};
pub use tuning::{Choice, LoopOrder, Method, Trial, Tuning};

use crate::diag::{Code, Diagnostic, Result};
use cpus::Cpu;
use features::Asks;
use machine::{Caches, Ports};

/// Bytes of a line of a cache: what moves together.
pub const LINE: u64 = 64;

/// A target machine, and how exact code for it must be.
#[derive(Clone, Debug, PartialEq)]
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
    /// What the caches hold.
    pub caches: Caches,
    /// What a cycle takes in.
    pub ports: Ports,
    /// How exact the code must be.
    pub precision: Precision,
    /// Measured choices that code for it is made with.
    pub tuning: Tuning,
    /// Plans that code for it follows, as `compile --emit plan` writes them.
    pub plans: Option<String>,
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
        let known = |arch: &str, name: &str| cpus::find(arch, name).ok_or_else(|| unknown_cpu(arch, name));
        let (cpu, level) = match (arch, named) {
            ("aarch64" | "arm64", name) => (known("aarch64", name.unwrap_or("generic"))?, Level::Neon),
            ("x86_64", Some(name)) => known("x86_64", name).map(|cpu| (cpu, cpu.x86_level()))?,
            ("x86_64", None) if host => known("x86_64", host_level()).map(|cpu| (cpu, cpu.x86_level()))?,
            ("x86_64", None) => (known("x86_64", "x86-64")?, Level::Sse2),
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
        match level {
            Level::Neon => hwcaps::check(features)?,
            Level::Sse2 | Level::Avx2 | Level::Avx512 => features::check(features)?,
        }
        let here = host && named.is_none();
        let told = |name: &str| features::switched(features, name);
        let bf16_pairs = PairSums::of(level).filter(|sums| has_pair_sums(*sums, cpu, here, told));
        Ok(Target {
            triple: triple.to_string(),
            cpu: cpu.name.to_string(),
            features: features.to_string(),
            vector_bits,
            vector_registers,
            fma,
            bf16_pairs,
            bf16_tiles: bf16_pairs == Some(PairSums::Avx512Bf16) && tiles::has(cpu, here, told),
            caches: Caches::of(cpu.name),
            ports: if level == Level::Neon { Ports::NEOVERSE_N1 } else { Ports::X86 },
            precision: Precision::default(),
            tuning: Tuning::default(),
            plans: None,
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
    /// LLVM's name of the oldest processor that has what [`Self::level`] promises: code is made for it with
    /// [`Self::code_features`], and tuned for `cpu`, so that [`Self::asks`] has all that the code needs.
    pub fn code_cpu(&self) -> &'static str {
        match self.level() {
            Level::Sse2 => "x86-64",
            Level::Avx2 => "x86-64-v3",
            Level::Avx512 => "x86-64-v4",
            Level::Neon => "generic",
        }
    }
    /// LLVM's string of the features that code may use beside those of [`Self::code_cpu`].
    pub fn code_features(&self) -> String {
        match self.level() {
            Level::Sse2 | Level::Avx2 | Level::Avx512 => self.features.clone(),
            Level::Neon => self.hwcap_features().iter().map(|name| format!("+{name}")).collect::<Vec<_>>().join(","),
        }
    }
    /// What AArch64 code uses of what Linux tells of.
    fn hwcap_features(&self) -> Vec<&'static str> {
        let cpu = cpus::find("aarch64", &self.cpu);
        hwcaps::in_code(|name| cpu.is_some_and(|cpu| cpu.has(name)), &self.features)
    }
    /// What `NAME_supported` asks a machine for: all that [`Self::code_cpu`] and [`Self::code_features`] have beyond the
    /// architecture's oldest processors. Linux alone wants to be asked for registers, and tells of AArch64's processors.
    pub fn asks(&self) -> Asks {
        let linux = self.triple.contains("linux");
        match self.level() {
            Level::Neon if linux => Asks { hwcaps: hwcaps::words(&self.hwcap_features()), ..Asks::default() },
            Level::Neon => Asks::default(),
            level => {
                let asks = features::asks(level, &self.features);
                Asks { request: asks.request.filter(|_| linux), ..asks }
            }
        }
    }
    /// Whether programs can find out if a machine has what the code needs; where not, they are taken at their word.
    pub fn can_be_asked(&self) -> bool {
        self.level() != Level::Neon || self.triple.contains("linux") || self.hwcap_features().is_empty()
    }
    /// LLVM's name of the oldest processor of the architecture.
    pub fn oldest_cpu(&self) -> &'static str {
        match self.level() {
            Level::Sse2 | Level::Avx2 | Level::Avx512 => "x86-64",
            Level::Neon => "generic",
        }
    }
    /// What tells the instruction sets of processors apart, the newer the larger: the level, whether code uses tiles, and on
    /// AArch64 the features of the code, by their number first.
    pub fn instructions(&self) -> (Level, bool, usize, Vec<&'static str>) {
        let features = match self.level() {
            Level::Neon => self.hwcap_features(),
            Level::Sse2 | Level::Avx2 | Level::Avx512 => Vec::new(),
        };
        (self.level(), self.bf16_tiles && self.precision.math == MathType::Bf16, features.len(), features)
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

fn unknown_cpu(arch: &str, name: &str) -> Diagnostic {
    let spelled = if arch == "x86_64" { "x86-64" } else { "AArch64" };
    let near = cpus::near(arch, name);
    let all = "`tfaot targets` lists all";
    let help = if near.is_empty() { all.to_string() } else { format!("near are {}; {all}", near.join(", ")) };
    Diagnostic::new(Code::UnknownTarget, format!("`{name}` is no {spelled} processor that LLVM knows")).help(help)
}

/// Whether a processor has an instruction: as its features say, else as this machine has it, else by its name.
fn has_pair_sums(sums: PairSums, cpu: Cpu, here: bool, told: impl Fn(&str) -> Option<bool>) -> bool {
    told(sums.feature()).unwrap_or_else(|| (here && machine_has_pair_sums()) || cpu.has(sums.feature()))
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
fn host_level() -> &'static str {
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
            return "x86-64-v4";
        }
        if v3 {
            return "x86-64-v3";
        }
    }
    "x86-64"
}
