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
    ("emeraldrapids", Level::Avx512),
    ("graniterapids", Level::Avx512),
    ("znver4", Level::Avx512),
    ("znver5", Level::Avx512),
];

/// Those that have AVX512-BF16.
pub const BF16_CPUS: &[&str] = &["sapphirerapids", "emeraldrapids", "graniterapids", "znver4", "znver5"];

/// Those that have AMX-BF16.
pub const AMX_CPUS: &[&str] = &["sapphirerapids", "emeraldrapids", "graniterapids"];

/// Those that have `bfdot`.
#[rustfmt::skip]
pub const BFDOT_CPUS: &[&str] = &[
    "ampere1", "ampere1a", "ampere1b", "ampere1c", "apple-a15", "apple-a16", "apple-a17", "apple-a18", "apple-a19",
    "apple-m2", "apple-m3", "apple-m4", "apple-m5", "apple-s10", "apple-s9", "c1-nano", "c1-premium", "c1-pro", "c1-ultra",
    "cobalt-100", "cortex-a320", "cortex-a510", "cortex-a520", "cortex-a520ae", "cortex-a710", "cortex-a715",
    "cortex-a720", "cortex-a720ae", "cortex-a725", "cortex-x2", "cortex-x3", "cortex-x4", "cortex-x925", "fujitsu-monaka",
    "gb10", "grace", "neoverse-512tvb", "neoverse-n2", "neoverse-n3", "neoverse-v1", "neoverse-v2", "neoverse-v3",
    "neoverse-v3ae", "olympus", "oryon-1",
];
