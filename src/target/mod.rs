//! The machine that code is compiled for: facts only, no LLVM.
pub mod cpus;
pub mod features;
pub mod hwcaps;
mod level;
pub mod machine;
mod dot_instruction;
mod portable;
mod precision;
mod quantization;
mod request;
mod system;
pub mod tiles;
mod tuning;

pub use dot_instruction::DotInstruction;
pub use level::IsaLevel;
pub use portable::virtual_machine;
pub use precision::{MathType, Precision, RoundingCounts, WeightType};
pub use quantization::{KeptProduct, QuantizedMath, QuantizedProducts};
pub use request::CodeRequest;
pub use system::{Arch, ObjectFormat};
pub use tuning::{ConvolutionMethod, LoopOrder, PanelSize, PanelSizes, TileChoice, Tuning, TuningTrial};

use crate::diag::{Code, Diagnostic, Result};
use cpus::Cpu;
use features::MachineChecks;
use machine::{Caches, ExecutionPorts};
use tiles::TileProduct;

/// Size of a cache line in bytes.
pub const LINE: u64 = 64;

/// A target machine: facts, and nothing that grows while code is made.
///
/// ```
/// let board = tfaot::Target::resolve(Some("aarch64-unknown-linux-gnu"), Some("cortex-a72"), None)?;
/// println!("{} with {} bits a vector", board.cpu, board.vector_bits);
/// # Ok::<(), tfaot::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// LLVM's triple.
    pub triple: String,
    /// The instruction set that code uses.
    pub level: IsaLevel,
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
    /// The dot-product instruction for pairs of bfloat16, if the target has one.
    pub bf16_dot: Option<DotInstruction>,
    /// The dot-product instruction for groups of four bytes, if the target has one.
    pub byte_dot: Option<DotInstruction>,
    /// The dot-product instruction for pairs of 16-bit integers, if the target has one.
    pub short_dot: Option<DotInstruction>,
    /// Whether bfloat16 blocks are multiplied with AMX tile instructions ([`tiles`]).
    pub bf16_tiles: bool,
    /// Whether blocks of bytes are multiplied with AMX tile instructions.
    pub byte_tiles: bool,
    /// Sizes of the data caches.
    pub caches: Caches,
    /// Throughput and latency of the core's vector units.
    pub ports: ExecutionPorts,
}

impl Target {
    /// Resolves a triple, a processor and features; what is missing is this machine's (or, for another architecture, its
    /// baseline).
    ///
    /// ```
    /// use tfaot::Target;
    ///
    /// let here = Target::resolve(None, None, None)?;
    /// let server = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v3"), None)?;
    /// assert_eq!(server.vector_bits, 256);
    /// # let _ = here;
    /// # Ok::<(), tfaot::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Code::UnknownTarget`.
    pub fn resolve(triple: Option<&str>, cpu: Option<&str>, features: Option<&str>) -> Result<Target> {
        let triple = triple.unwrap_or(HOST_TRIPLE);
        let arch = Arch::from_triple(triple)?;
        let host = Arch::from_triple(HOST_TRIPLE)? == arch;
        let named = cpu.filter(|&name| name != "native");
        let name = named.unwrap_or(if host { host_level() } else { default_cpu(arch) });
        let cpu = cpus::find(arch.name(), name).ok_or_else(|| unknown_cpu(arch, name))?;
        let features = features.unwrap_or("");
        match arch {
            Arch::X86_64 => features::check_features(features)?,
            Arch::Aarch64 => hwcaps::check_features(features)?,
            Arch::Riscv64 => features::check_features_against(features, &[], ["v"].into_iter())?,
            Arch::Wasm32 | Arch::Thumb => features::check_features_against(features, &[], [].into_iter())?,
        }
        let level = level(arch, cpu, features);
        let here = host && named.is_none();
        let told = |name: &str| features::feature_switch(features, name);
        let has = |instruction: &DotInstruction| match instruction.feature(level) {
            Some(feature) => told(feature).unwrap_or_else(|| here && machine_has(feature) || cpu.has(feature)),
            None => true,
        };
        let (bf16_dot, byte_dot) = (DotInstruction::of_bf16(level), DotInstruction::of_bytes(level));
        let (bf16_dot, byte_dot) = (bf16_dot.filter(has), byte_dot.filter(has));
        let has_tiles = |product: TileProduct| tiles::has_product(product, cpu, here, told);
        Ok(Target {
            triple: triple.to_string(),
            level,
            cpu: cpu.name.to_string(),
            features: features.to_string(),
            vector_bits: level.vector_bits(),
            vector_registers: level.vector_registers(),
            fma: level.has_fma(),
            bf16_dot,
            byte_dot,
            short_dot: DotInstruction::of_shorts(level).iter().copied().find(has),
            bf16_tiles: bf16_dot == Some(DotInstruction::Avx512Bf16) && has_tiles(TileProduct::Bf16),
            // what is too small for tiles goes by words
            byte_tiles: byte_dot == Some(DotInstruction::Vpdpbusd)
                && has_tiles(TileProduct::Bytes { signs: [true; 2] }),
            caches: Caches::for_cpu(cpu.name),
            ports: if level == IsaLevel::Neon { ExecutionPorts::NEOVERSE_N1 } else { ExecutionPorts::X86 },
        })
    }
    /// Enables the feature that a dot-product instruction needs.
    pub fn enable_instruction(&mut self, instruction: DotInstruction) {
        if let Some(feature) = instruction.feature(self.level) {
            self.switch_on(feature);
        }
    }
    /// Enables the features that the tile instruction of `product` needs.
    pub fn enable_tiles(&mut self, product: TileProduct) {
        product.features().into_iter().for_each(|name| self.switch_on(name));
    }
    /// Enables a feature unless it is enabled already.
    fn switch_on(&mut self, name: &str) {
        if features::feature_switch(&self.features, name) != Some(true) {
            let comma = if self.features.is_empty() { "" } else { "," };
            self.features += &format!("{comma}+{name}");
        }
    }
    /// Number of elements of so many bytes that a vector holds.
    pub fn lanes(&self, element_bytes: u64) -> u64 {
        (self.vector_bits / 8 / element_bytes.max(1)).max(1)
    }
    /// The target for C source, which an unknown compiler translates: of the instruction set only vector width and fused multiply-add
    /// remain.
    pub fn for_c_source(&self) -> Target {
        Target {
            level: IsaLevel::Sse2,
            features: String::new(),
            bf16_dot: None,
            byte_dot: None,
            short_dot: None,
            bf16_tiles: false,
            byte_tiles: false,
            ..self.clone()
        }
    }
    /// The architecture.
    pub fn arch(&self) -> Arch {
        match self.level {
            IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Avx512 => Arch::X86_64,
            IsaLevel::Neon => Arch::Aarch64,
            IsaLevel::Rv64 | IsaLevel::Rvv => Arch::Riscv64,
            IsaLevel::Simd128 => Arch::Wasm32,
            IsaLevel::Fpv4 => Arch::Thumb,
        }
    }
    /// The format of object files for the target.
    pub fn format(&self) -> ObjectFormat {
        ObjectFormat::from_triple(&self.triple)
    }
    /// LLVM's names of the vector registers.
    pub fn vector_register_names(&self) -> impl Iterator<Item = String> + use<> {
        let (kind, count) = self.level.register_names();
        (0..count).map(move |number| format!("{kind}{number}"))
    }
    /// LLVM's name of the processor whose instructions code may use, beside [`Self::code_features`]: the oldest with the instruction set
    /// [`Self::level`], so that [`Self::machine_checks`] covers all that code needs; `cpu` only tunes it. Code for a microcontroller uses
    /// all instructions of that processor.
    pub fn code_cpu(&self) -> &str {
        if self.level == IsaLevel::Fpv4 { &self.cpu } else { self.level.baseline_cpu() }
    }
    /// LLVM's name of the processor to tune for.
    pub fn tune_cpu(&self) -> &str {
        if cpus::is_instruction_set(&self.cpu) { self.level.baseline_cpu() } else { &self.cpu }
    }
    /// LLVM's feature string of what code may use beyond [`Self::code_cpu`].
    pub fn code_features(&self) -> String {
        match self.arch() {
            Arch::X86_64 => self.features.clone(),
            Arch::Aarch64 => self.hwcap_features().iter().map(|name| format!("+{name}")).collect::<Vec<_>>().join(","),
            Arch::Riscv64 | Arch::Wasm32 | Arch::Thumb => self.level.features().to_string(),
        }
    }
    /// Features used by AArch64 code that Linux reports in its hardware capability words.
    fn hwcap_features(&self) -> Vec<&'static str> {
        let cpu = cpus::find("aarch64", &self.cpu);
        hwcaps::code_features(|name| cpu.is_some_and(|cpu| cpu.has(name)), &self.features)
    }
    /// Run-time checks of `NAME_supported`: features that [`Self::code_cpu`] and [`Self::code_features`] have beyond the architecture's
    /// oldest processors. Only Linux requires a request to use registers, and only Linux reports AArch64's features.
    pub fn machine_checks(&self) -> MachineChecks {
        let linux = self.triple.contains("linux");
        match self.level {
            IsaLevel::Neon if linux => {
                MachineChecks { hwcaps: hwcaps::hwcap_words(&self.hwcap_features()), ..MachineChecks::default() }
            }
            IsaLevel::Rvv if linux => MachineChecks { hwcaps: hwcaps::RISCV_V, ..MachineChecks::default() },
            IsaLevel::Neon | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Simd128 | IsaLevel::Fpv4 => {
                MachineChecks::default()
            }
            level @ (IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Avx512) => {
                let asks = features::machine_checks(level, &self.features);
                MachineChecks { request: asks.request.filter(|_| linux), ..asks }
            }
        }
    }
    /// Whether programs can test at run time whether a machine supports the code; otherwise support is assumed.
    pub fn can_check_machine(&self) -> bool {
        match self.level {
            IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Avx512 | IsaLevel::Rv64 => true,
            IsaLevel::Neon => self.triple.contains("linux") || self.hwcap_features().is_empty(),
            IsaLevel::Rvv => self.triple.contains("linux"),
            IsaLevel::Simd128 | IsaLevel::Fpv4 => false,
        }
    }
}

/// The triple of this machine.
pub const HOST_TRIPLE: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

/// The default processor of an architecture other than this machine's.
fn default_cpu(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "x86-64",
        Arch::Aarch64 | Arch::Wasm32 => "generic",
        Arch::Riscv64 => "rv64gc",
        Arch::Thumb => "cortex-m4",
    }
}

/// The processors that an object supports if the user names none: x86-64 processors of the last ten years, with a variant for 512-bit
/// vectors; on AArch64 also ARMv8.2 if Linux can report features; for other architectures the oldest.
///
/// # Errors
/// `Code::UnknownTarget`.
pub fn portable_cpus(triple: Option<&str>) -> Result<Vec<&'static str>> {
    let triple = triple.unwrap_or(HOST_TRIPLE);
    Ok(match Arch::from_triple(triple)? {
        Arch::X86_64 => vec!["x86-64-v3", "x86-64-v4"],
        Arch::Aarch64 if triple.contains("linux") => vec!["cortex-a76"],
        arch => vec![default_cpu(arch)],
    })
}

/// The instruction set of a processor with `features` (`+v`) on and off.
fn level(arch: Arch, cpu: Cpu, features: &str) -> IsaLevel {
    match arch {
        Arch::X86_64 => cpu.x86_level(),
        Arch::Aarch64 => IsaLevel::Neon,
        Arch::Riscv64 if features::feature_switch(features, "v").unwrap_or_else(|| cpu.has("v")) => IsaLevel::Rvv,
        Arch::Riscv64 => IsaLevel::Rv64,
        Arch::Wasm32 => IsaLevel::Simd128,
        Arch::Thumb => IsaLevel::Fpv4,
    }
}

fn unknown_cpu(arch: Arch, name: &str) -> Diagnostic {
    let (arch, spelled) = (arch.name(), arch.display_name());
    let near = cpus::similar_names(arch, name);
    let all = "`tfaot targets` lists all";
    let help = if near.is_empty() { all.to_string() } else { format!("near are {}; {all}", near.join(", ")) };
    Diagnostic::new(Code::UnknownTarget, format!("`{name}` is no {spelled} processor that LLVM knows")).help(help)
}

/// Whether this machine's processor has the feature of a dot-product instruction, by LLVM's name.
#[cfg(target_arch = "x86_64")]
fn machine_has(feature: &str) -> bool {
    match feature {
        "avx512bf16" => std::is_x86_feature_detected!("avx512bf16"),
        "avx512vnni" => std::is_x86_feature_detected!("avx512vnni"),
        "avxvnni" => std::is_x86_feature_detected!("avxvnni"),
        _ => false,
    }
}

/// Whether this machine's processor has the feature of a dot-product instruction, by LLVM's name.
#[cfg(target_arch = "aarch64")]
fn machine_has(feature: &str) -> bool {
    match feature {
        "bf16" => std::arch::is_aarch64_feature_detected!("bf16"),
        "dotprod" => std::arch::is_aarch64_feature_detected!("dotprod"),
        _ => false,
    }
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
    default_cpu(if cfg!(target_arch = "aarch64") { Arch::Aarch64 } else { Arch::X86_64 })
}
