//! Run-time checks that a program makes of an x86-64 processor before it runs code with instructions that not all have: bits of `cpuid` and of
//! the register state that the system saves, as in Intel's manual (volume 2A, CPUID; volume 1, chapter 13) and AMD's (volume 3, appendix E).
use super::IsaLevel;
use crate::diag::{Code, Diagnostic, Result};

/// A register of the result of `cpuid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuidRegister {
    /// `eax`
    A,
    /// `ebx`
    B,
    /// `ecx`
    C,
    /// `edx`
    D,
}

/// Bits that must be set in one result register of the x86 instruction `cpuid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuidCheck {
    /// The leaf, which `cpuid` takes in `eax`.
    pub leaf: u32,
    /// The subleaf, which `cpuid` takes in `ecx`.
    pub part: u32,
    /// The result register that holds the bits.
    pub register: CpuidRegister,
    /// The bits.
    pub mask: u32,
}

/// The run-time checks by which a program finds out whether a machine supports its code; a check without bits always passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineChecks {
    /// Checks of x86-64 features by `cpuid`, sorted, one for each result register.
    pub asks: Vec<CpuidCheck>,
    /// Required bits of XCR0: the registers that the operating system saves.
    pub state: u32,
    /// Bit of XCR0 of registers that a process must request from the operating system before use (AMX tiles on Linux).
    pub request: Option<u32>,
    /// Bits of Linux's `AT_HWCAP` and `AT_HWCAP2` on AArch64 and RISC-V.
    pub hwcaps: [u64; 2],
}

impl MachineChecks {
    /// Whether there is nothing to check: every machine of the architecture supports the code.
    pub fn is_empty(&self) -> bool {
        self.asks.is_empty() && self.hwcaps == [0; 2]
    }
}

/// State components in XCR0 of AVX: the 128-bit and 256-bit registers.
const YMM: u32 = 0x6;
/// State components in XCR0 of AVX-512: those of AVX, the 512-bit registers and the mask registers.
const ZMM: u32 = 0xe6;

/// Number of the XCR0 bit for the contents of AMX tiles.
pub(super) const TILE_DATA: u32 = 18;
/// State components in XCR0 of AMX: tile contents and tile configuration.
const TILES: u32 = 1 << TILE_DATA | 1 << 17;

/// An x86-64 feature: LLVM's name, the `cpuid` leaf, subleaf, register and bit that report it, and the XCR0 components that it needs.
type Row = (&'static str, u32, u32, CpuidRegister, u32, u32);

use CpuidRegister::{A, B, C, D};
#[rustfmt::skip]
const FEATURES: &[Row] = &[
    ("adx", 7, 0, B, 19, 0),
    ("aes", 1, 0, C, 25, 0),
    ("amx-bf16", 7, 0, D, 22, TILES),
    ("amx-int8", 7, 0, D, 25, TILES),
    ("amx-tile", 7, 0, D, 24, TILES),
    ("avx", 1, 0, C, 28, YMM),
    ("avx2", 7, 0, B, 5, YMM),
    ("avx512bf16", 7, 1, A, 5, ZMM),
    ("avx512bitalg", 7, 0, C, 12, ZMM),
    ("avx512bw", 7, 0, B, 30, ZMM),
    ("avx512cd", 7, 0, B, 28, ZMM),
    ("avx512dq", 7, 0, B, 17, ZMM),
    ("avx512f", 7, 0, B, 16, ZMM),
    ("avx512fp16", 7, 0, D, 23, ZMM),
    ("avx512ifma", 7, 0, B, 21, ZMM),
    ("avx512vbmi", 7, 0, C, 1, ZMM),
    ("avx512vbmi2", 7, 0, C, 6, ZMM),
    ("avx512vl", 7, 0, B, 31, ZMM),
    ("avx512vnni", 7, 0, C, 11, ZMM),
    ("avx512vpopcntdq", 7, 0, C, 14, ZMM),
    ("avxvnni", 7, 1, A, 4, YMM),
    ("bmi", 7, 0, B, 3, 0),
    ("bmi2", 7, 0, B, 8, 0),
    ("cx16", 1, 0, C, 13, 0),
    ("f16c", 1, 0, C, 29, YMM),
    ("fma", 1, 0, C, 12, YMM),
    ("gfni", 7, 0, C, 8, 0),
    ("lzcnt", 0x8000_0001, 0, C, 5, 0),
    ("movbe", 1, 0, C, 22, 0),
    ("pclmul", 1, 0, C, 1, 0),
    ("popcnt", 1, 0, C, 23, 0),
    ("sha", 7, 0, B, 29, 0),
    ("sse3", 1, 0, C, 0, 0),
    ("sse4.1", 1, 0, C, 19, 0),
    ("sse4.2", 1, 0, C, 20, 0),
    ("sse4a", 0x8000_0001, 0, C, 6, 0),
    ("ssse3", 1, 0, C, 9, 0),
    ("vaes", 7, 0, C, 9, YMM),
    ("vpclmulqdq", 7, 0, C, 10, YMM),
];

/// Features of every x86-64 processor.
const BASELINE: &[&str] = &["64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"];

/// The feature bit that says whether programs may read XCR0.
const OSXSAVE: Row = ("osxsave", 1, 0, C, 27, 0);

/// Features of x86-64-v3 beyond the baseline. Those of v2 are left out: every processor with AVX2 has them.
pub(super) const AVX2: &[&str] = &["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"];
/// Features of x86-64-v4 beyond v3.
pub(super) const AVX512: &[&str] = &["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"];

/// Run-time checks for x86-64 code of `level` with `features` (`+avx2,-fma`).
pub fn machine_checks(level: IsaLevel, features: &str) -> MachineChecks {
    let mut names: Vec<&str> = match level {
        IsaLevel::Neon | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Simd128 | IsaLevel::Fpv4 => {
            return MachineChecks::default();
        }
        IsaLevel::Sse2 => vec![],
        IsaLevel::Avx2 => AVX2.to_vec(),
        IsaLevel::Avx512 => [AVX2, AVX512].concat(),
    };
    names.extend(enabled_features(features));
    let mut rows: Vec<&Row> = FEATURES.iter().filter(|row| names.contains(&row.0)).collect();
    let state = rows.iter().fold(0, |all, row| all | row.5);
    if state != 0 {
        rows.push(&OSXSAVE);
    }
    rows.sort_by_key(|row| (row.1, row.2, row.3));
    let mut asks: Vec<CpuidCheck> = Vec::new();
    for &&(_, leaf, part, register, bit, _) in &rows {
        match asks.last_mut().filter(|a| (a.leaf, a.part, a.register) == (leaf, part, register)) {
            Some(ask) => ask.mask |= 1 << bit,
            None => asks.push(CpuidCheck { leaf, part, register, mask: 1 << bit }),
        }
    }
    MachineChecks { asks, state, request: (state & TILES != 0).then_some(TILE_DATA), ..MachineChecks::default() }
}

/// Whether a processor reports a feature; `cpuid` returns the result registers for a leaf and a subleaf.
#[cfg(target_arch = "x86_64")]
pub(super) fn cpuid_has(name: &str, cpuid: impl Fn(u32, u32) -> [u32; 4]) -> bool {
    let row = FEATURES.iter().find(|row| row.0 == name);
    row.is_some_and(|&(_, leaf, part, register, bit, _)| cpuid(leaf, part)[register as usize] >> bit & 1 == 1)
}

/// LLVM's names of all features that `cpuid` can report.
pub fn feature_names() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().map(|row| row.0)
}

/// Checks that `NAME_supported` can test every enabled x86-64 feature. Errors: `Code::UnknownTarget` for a feature that it cannot test.
pub(super) fn check_features(features: &str) -> Result<()> {
    check_features_against(features, BASELINE, feature_names())
}

/// Checks that every enabled feature is in `baseline` or among the testable features `asked`. Errors: `Code::UnknownTarget` for any other.
pub(super) fn check_features_against(
    features: &str,
    baseline: &[&str],
    asked: impl Iterator<Item = &'static str>,
) -> Result<()> {
    let asked: Vec<&str> = asked.collect();
    let unknown = enabled_features(features).into_iter().find(|name| !baseline.contains(name) && !asked.contains(name));
    let Some(name) = unknown else { return Ok(()) };
    Err(Diagnostic::new(
        Code::UnknownTarget,
        format!("`+{name}` is no feature that compiled code can ask a machine for"),
    )
    .help(if asked.is_empty() {
        "code for this architecture is of one kind".into()
    } else {
        format!("one of {}", asked.join(", "))
    })
    .into())
}

/// Whether an LLVM feature string (`+avx2,-fma`) turns a feature on or off; the last mention counts, and `None` means no mention.
pub(super) fn feature_switch(features: &str, name: &str) -> Option<bool> {
    features.split(',').rev().find_map(|f| match f.trim().split_at_checked(1) {
        Some(("+", on)) if on == name => Some(true),
        Some(("-", off)) if off == name => Some(false),
        _ => None,
    })
}

/// The features that an LLVM feature string enables; the last mention of each counts.
pub(super) fn enabled_features(features: &str) -> Vec<&str> {
    let mut on: Vec<&str> = Vec::new();
    for feature in features.split(',').map(str::trim) {
        let name = feature.trim_start_matches(['+', '-']);
        on.retain(|n| *n != name);
        if feature.starts_with('+') {
            on.push(name);
        }
    }
    on
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_asked_for_beside_the_level() {
        let ask = |leaf, part, register, mask| CpuidCheck { leaf, part, register, mask };
        assert_eq!(machine_checks(IsaLevel::Sse2, ""), MachineChecks::default());
        let one = MachineChecks { asks: vec![ask(7, 0, C, 1 << 8)], ..MachineChecks::default() };
        assert_eq!(machine_checks(IsaLevel::Sse2, "+gfni,+sse3,-sse3"), one);
        let three = machine_checks(IsaLevel::Avx2, "+avx512bf16");
        let of_first = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29;
        let of_seventh = 1 << 3 | 1 << 5 | 1 << 8;
        let all =
            [ask(1, 0, C, of_first), ask(7, 0, B, of_seventh), ask(7, 1, A, 1 << 5), ask(0x8000_0001, 0, C, 1 << 5)];
        assert_eq!(three, MachineChecks { asks: all.to_vec(), state: ZMM, ..MachineChecks::default() });
        let tiles = machine_checks(IsaLevel::Sse2, "+amx-tile,+amx-bf16");
        let of_first = ask(1, 0, C, 1 << 27);
        let of_tiles = [of_first, ask(7, 0, D, 1 << 22 | 1 << 24)].to_vec();
        assert_eq!(
            tiles,
            MachineChecks { asks: of_tiles, state: 0x6_0000, request: Some(18), ..MachineChecks::default() }
        );
    }

    #[test]
    fn what_can_not_be_asked_is_refused() {
        assert!(check_features("+sse2,+avx2,-nonsense,+gfni").is_ok());
        assert!(check_features("+nonsense").is_err());
        assert!(check_features("+nonsense,-nonsense").is_ok());
    }

    #[test]
    fn rows_are_in_order() {
        assert!(FEATURES.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
