//! Run-time checks that a program makes of AArch64 and RISC-V processors through Linux, before it runs code with instructions that not all
//! have: bits of two words that the kernel hands to every process (`Documentation/arch/arm64/elf_hwcaps.rst`). The processor's own registers
//! are closed to programs.
use super::features::{self, feature_switch};
use crate::diag::Result;

/// An AArch64 feature: LLVM's name, the word that reports it (0: `AT_HWCAP`, 1: `AT_HWCAP2`), its bits there, and the feature that it
/// extends.
type Row = (&'static str, usize, u64, Option<&'static str>);

/// The AArch64 features whose instructions LLVM may choose for loops over arrays; those for atomics, ciphers and systems are left out. A
/// feature follows the one that it extends.
#[rustfmt::skip]
const FEATURES: &[Row] = &[
    ("complxnum", 0, 1 << 14,           None),
    ("dotprod",   0, 1 << 20,           None),
    ("fullfp16",  0, 1 << 9 | 1 << 10,  None), // of scalars and of vectors
    ("fp16fml",   0, 1 << 23,           Some("fullfp16")),
    ("jsconv",    0, 1 << 13,           None),
    ("rdm",       0, 1 << 12,           None),
    ("sha3",      0, 1 << 17 | 1 << 21, None), // with SHA-512, as LLVM's is; has the exclusive or of three vectors
    ("sve",       0, 1 << 22,           Some("fullfp16")),
    ("bf16",      1, 1 << 14,           None),
    ("cssc",      1, 1 << 34,           None),
    ("fptoint",   1, 1 << 8,            None),
    ("i8mm",      1, 1 << 13,           None),
    ("mops",      1, 1 << 43,           None),
    ("sve2",      1, 1 << 1,            Some("sve")),
    ("sve2p1",    1, 1 << 36,           Some("sve2")),
];

/// The capability words that report RISC-V's vector extension: `AT_HWCAP` has a bit for each letter of the instruction set
/// (`arch/riscv/include/uapi/asm/hwcap.h`).
pub(super) const RISCV_V: [u64; 2] = [1 << (b'V' - b'A'), 0];

/// Features of every AArch64 processor that Linux runs programs on.
const BASELINE: &[&str] = &["fp-armv8", "neon"];

/// The AArch64 features that code may use: those of the processor, changed by an LLVM feature string (`+sve,-bf16`). Enabling a feature
/// enables the one that it extends, and disabling one disables those that extend it.
pub(super) fn code_features(cpu_has: impl Fn(&str) -> bool, features: &str) -> Vec<&'static str> {
    let base = |name: &str| FEATURES.iter().find(|row| row.0 == name).and_then(|row| row.3);
    let mut asked_for: Vec<&str> = features::enabled_features(features);
    let mut at = 0;
    while let Some(name) = asked_for.get(at) {
        asked_for.extend(base(name));
        at += 1;
    }
    let mut on: Vec<&'static str> = Vec::new();
    for &(name, _, _, extended) in FEATURES {
        let by_itself = cpu_has(name) && feature_switch(features, name) != Some(false);
        if asked_for.contains(&name) || (by_itself && extended.is_none_or(|base| on.contains(&base))) {
            on.push(name);
        }
    }
    on
}

/// The bits of `AT_HWCAP` and of `AT_HWCAP2` that code with these features needs.
pub(super) fn hwcap_words(names: &[&str]) -> [u64; 2] {
    let mut words = [0; 2];
    for &(_, word, bits, _) in FEATURES.iter().filter(|row| names.contains(&row.0)) {
        words[word] |= bits;
    }
    words
}

/// LLVM's names of all features that Linux can report.
pub fn feature_names() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().map(|row| row.0)
}

/// Checks that Linux reports every enabled AArch64 feature. Errors: `Code::UnknownTarget` for a feature that it does not report.
pub(super) fn check_features(features: &str) -> Result<()> {
    features::check_features_against(features, BASELINE, feature_names())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_bring_what_they_extend() {
        let none = |_: &str| false;
        assert_eq!(code_features(none, ""), [""; 0]);
        assert_eq!(code_features(none, "+sve2,+bf16,-bf16"), ["fullfp16", "sve", "sve2"]);
        let all = |_: &str| true;
        let left = code_features(all, "-sve");
        assert!(left.contains(&"fullfp16") && !left.iter().any(|name| name.starts_with("sve")), "{left:?}");
        assert!(!code_features(all, "-fullfp16").contains(&"sve2"));
    }

    #[test]
    fn words_are_those_of_linux() {
        assert_eq!(hwcap_words(&["fullfp16", "dotprod", "sve"]), [1 << 9 | 1 << 10 | 1 << 20 | 1 << 22, 0]);
        assert_eq!(hwcap_words(&["bf16", "i8mm", "sve2"]), [0, 1 << 14 | 1 << 13 | 1 << 1]);
    }

    #[test]
    fn what_can_not_be_asked_is_refused() {
        assert!(check_features("+sve2,-nonsense,+neon").is_ok());
        assert!(check_features("+nonsense").is_err());
    }
}
