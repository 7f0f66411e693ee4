//! Processors by LLVM's names, and what LLVM's tables say of their instructions.
//!
//! `cpus.tsv` has a line a processor: the architecture, the name, and those of the features that [`super::features`] and
//! [`super::hwcaps`] know, and of RISC-V's `d`, which all have that are listed, and `v`. A test of `codegen` holds it equal to the
//! LLVM that is linked, and writes it (`TFAOT_BLESS=1 cargo test --lib cpus_are_those_of_llvm`).
use super::IsaLevel;
use super::features::{AVX2, AVX512};

const TABLE: &str = include_str!("cpus.tsv");

/// Generic processors, one for each instruction set for which LLVM has no processor name.
const INSTRUCTION_SETS: &[(&str, Cpu)] =
    &[("riscv64", Cpu { name: "rv64gc", features: "d" }), ("riscv64", Cpu { name: "rv64gcv", features: "d v" })];
/// Processors of the architectures for which only one instruction set is supported.
const OTHERS: &[(&str, Cpu)] = &[
    ("wasm32", Cpu { name: "generic", features: "" }),
    ("thumbv7em", Cpu { name: "cortex-m4", features: "" }),
    ("thumbv7em", Cpu { name: "cortex-m7", features: "" }),
];

/// Upper limit of similar names that the diagnostic for an unknown processor lists.
const MOST_NEAR: usize = 6;

/// A processor model with its instruction-set features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// LLVM's name of the processor.
    pub name: &'static str,
    /// LLVM's names of the features, separated by blanks.
    features: &'static str,
}

impl Cpu {
    /// LLVM's names of the processor's features that code generation distinguishes.
    pub fn features(self) -> impl Iterator<Item = &'static str> {
        self.features.split_whitespace()
    }
    /// Whether the processor has a feature, by LLVM's name.
    pub fn has(self, feature: &str) -> bool {
        self.features().any(|name| name == feature)
    }
    /// The highest x86-64 level that the processor supports completely.
    pub fn x86_level(self) -> IsaLevel {
        let has_all = |names: &[&str]| names.iter().all(|name| self.has(name));
        match (has_all(AVX2), has_all(AVX512)) {
            (true, true) => IsaLevel::Avx512,
            (true, false) => IsaLevel::Avx2,
            (false, _) => IsaLevel::Sse2,
        }
    }
}

/// The processors of an architecture (`x86_64`, `aarch64`, as [`super::Arch::name`] has them): generic ones for instruction sets first,
/// then those that LLVM knows, sorted by name.
pub fn cpus(arch: &str) -> impl Iterator<Item = Cpu> {
    let own = INSTRUCTION_SETS.iter().chain(OTHERS).filter(move |row| row.0 == arch).map(|row| row.1);
    own.chain(llvm_cpus(arch))
}

/// Processors of `arch` that LLVM knows, for architectures with many.
pub fn llvm_cpus(arch: &str) -> impl Iterator<Item = Cpu> {
    let lines = TABLE.lines().filter_map(|line| line.split_once('\t'));
    lines.filter(move |line| line.0 == arch).map(|(_, rest)| {
        let (name, features) = rest.split_once('\t').unwrap_or((rest, ""));
        Cpu { name, features }
    })
}

/// Whether a name stands for an instruction set, not for one of LLVM's processors.
pub fn is_instruction_set(name: &str) -> bool {
    INSTRUCTION_SETS.iter().any(|row| row.1.name == name)
}

/// The processor of that name.
pub fn find(arch: &str, name: &str) -> Option<Cpu> {
    cpus(arch).find(|cpu| cpu.name == name)
}

/// Processor names similar to a misspelled `name`, the most similar first: by edit distance, and names that contain it.
pub fn similar_names(arch: &str, name: &str) -> Vec<&'static str> {
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    let name = plain(name);
    let most_edits = 1 + name.chars().count() / 4;
    let rank = |known: &str| {
        let known = plain(known);
        let edits = strsim::damerau_levenshtein(&name, &known);
        let holds = name.len() > 2 && known.contains(&name);
        (edits <= most_edits || holds).then_some(edits)
    };
    let mut found: Vec<(usize, &'static str)> =
        cpus(arch).filter_map(|cpu| Some((rank(cpu.name)?, cpu.name))).collect();
    found.sort();
    found.into_iter().take(MOST_NEAR).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_from_features() {
        let level = |name: &str| find("x86_64", name).map(Cpu::x86_level);
        for name in ["x86-64", "x86-64-v2", "core2", "btver2", "sandybridge", "bdver3"] {
            assert_eq!(level(name), Some(IsaLevel::Sse2), "{name}");
        }
        // Knights Landing has AVX-512 F and CD alone
        for name in ["x86-64-v3", "haswell", "alderlake", "znver3", "knl", "bdver4"] {
            assert_eq!(level(name), Some(IsaLevel::Avx2), "{name}");
        }
        for name in ["x86-64-v4", "skx", "tigerlake", "rocketlake", "znver5", "sapphirerapids"] {
            assert_eq!(level(name), Some(IsaLevel::Avx512), "{name}");
        }
        assert_eq!(level("pentium4"), None, "it has no 64 bits");
    }

    #[test]
    fn what_is_near_is_named() {
        assert_eq!(similar_names("x86_64", "haswel"), ["haswell"]);
        assert_eq!(similar_names("x86_64", "Tiger_Lake"), ["tigerlake"]);
        assert_eq!(similar_names("aarch64", "neoverse-v9")[0], "neoverse-v1");
        assert!(similar_names("x86_64", "icelake").contains(&"icelake-server"));
        assert_eq!(similar_names("x86_64", "m68000"), [""; 0]);
    }
}
