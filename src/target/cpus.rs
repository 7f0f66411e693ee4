//! Processors by LLVM's names.
use super::Level;

/// Name and instruction set, oldest first.
pub const CPUS: &[(&str, Level)] = &[
    ("x86-64", Level::Sse2),
    ("x86-64-v2", Level::Sse2),
    ("nehalem", Level::Sse2),
    ("sandybridge", Level::Sse2),
    ("x86-64-v3", Level::Avx2),
    ("haswell", Level::Avx2),
    ("broadwell", Level::Avx2),
    ("skylake", Level::Avx2),
    ("alderlake", Level::Avx2),
    ("znver1", Level::Avx2),
    ("znver2", Level::Avx2),
    ("znver3", Level::Avx2),
    ("x86-64-v4", Level::Avx512),
    ("skylake-avx512", Level::Avx512),
    ("cascadelake", Level::Avx512),
    ("icelake-server", Level::Avx512),
    ("sapphirerapids", Level::Avx512),
    ("znver4", Level::Avx512),
    ("znver5", Level::Avx512),
];

/// Those that have AVX512-BF16.
pub const BF16_CPUS: &[&str] = &["sapphirerapids", "znver4", "znver5"];
