//! Instruction sets, as far as schedules and code ask: how wide vectors are, how many there are, what is one instruction.

/// The instruction set that code uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IsaLevel {
    /// x86-64's SSE2: 16 registers of 128 bits.
    Sse2,
    /// x86-64's AVX2 and FMA: 16 registers of 256 bits.
    Avx2,
    /// x86-64's AVX-512 F, BW, DQ, VL: 32 registers of 512 bits.
    Avx512,
    /// AArch64: 32 registers of 128 bits.
    Neon,
    /// RISC-V's rv64gc: 32 registers of one float, which make 8 vectors of 4.
    Rv64,
    /// RISC-V's rv64gcv: 32 registers of at least 128 bits.
    Rvv,
    /// WebAssembly's vectors of 128 bits; engines have their machine's registers for them, at least 16.
    Simd128,
    /// Armv7E-M's FPv4: 32 registers of one f32, which make 8 vectors of 4. What is of 64 bits is computed by the C compiler's library.
    Fpv4,
}

impl IsaLevel {
    /// Bits of a vector register.
    pub fn vector_bits(self) -> u64 {
        match self {
            IsaLevel::Avx512 => 512,
            IsaLevel::Avx2 => 256,
            IsaLevel::Sse2 | IsaLevel::Neon | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Simd128 | IsaLevel::Fpv4 => {
                128
            }
        }
    }
    /// Number of vector registers.
    pub fn vector_registers(self) -> u64 {
        match self {
            IsaLevel::Avx512 | IsaLevel::Neon | IsaLevel::Rvv => 32,
            IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Simd128 => 16,
            IsaLevel::Rv64 | IsaLevel::Fpv4 => 8,
        }
    }
    /// Whether `x·y + z` is one instruction for f32 and for f64.
    pub fn has_fma(self) -> bool {
        match self {
            IsaLevel::Avx2 | IsaLevel::Avx512 | IsaLevel::Neon | IsaLevel::Rv64 | IsaLevel::Rvv => true,
            IsaLevel::Sse2 | IsaLevel::Simd128 | IsaLevel::Fpv4 => false,
        }
    }
    /// Whether `x·y + z` is one instruction for f32.
    pub fn has_fma_f32(self) -> bool {
        self.has_fma() || self == IsaLevel::Fpv4
    }
    /// Whether there are instructions that round to whole numbers.
    pub fn has_rounding(self) -> bool {
        match self {
            IsaLevel::Avx2 | IsaLevel::Avx512 | IsaLevel::Neon | IsaLevel::Simd128 => true,
            IsaLevel::Sse2 | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Fpv4 => false,
        }
    }
    /// Whether f16 becomes f32, and back, by an instruction.
    pub fn has_f16_conversion(self) -> bool {
        match self {
            IsaLevel::Avx2 | IsaLevel::Avx512 | IsaLevel::Neon => true,
            IsaLevel::Sse2 | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Simd128 | IsaLevel::Fpv4 => false,
        }
    }
    /// LLVM's name of the oldest processor that has it, as far as names tell: the rest is in [`IsaLevel::features`].
    pub fn baseline_cpu(self) -> &'static str {
        match self {
            IsaLevel::Sse2 => "x86-64",
            IsaLevel::Avx2 => "x86-64-v3",
            IsaLevel::Avx512 => "x86-64-v4",
            IsaLevel::Neon | IsaLevel::Simd128 => "generic",
            IsaLevel::Rv64 | IsaLevel::Rvv => "generic-rv64",
            IsaLevel::Fpv4 => "cortex-m4",
        }
    }
    /// LLVM's string of what it has beside [`IsaLevel::baseline_cpu`].
    pub fn features(self) -> &'static str {
        match self {
            IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Avx512 | IsaLevel::Neon | IsaLevel::Fpv4 => "",
            IsaLevel::Rv64 => "+m,+a,+f,+d,+c",
            IsaLevel::Rvv => "+m,+a,+f,+d,+c,+v",
            IsaLevel::Simd128 => "+simd128",
        }
    }
    /// The instruction set of every processor of its architecture.
    pub fn baseline(self) -> IsaLevel {
        match self {
            IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Avx512 => IsaLevel::Sse2,
            IsaLevel::Rv64 | IsaLevel::Rvv => IsaLevel::Rv64,
            IsaLevel::Neon | IsaLevel::Simd128 | IsaLevel::Fpv4 => self,
        }
    }
    /// How LLVM's names of the registers that vectors lie in begin, and how many there are of them; none where code has no registers.
    pub fn register_names(self) -> (&'static str, u64) {
        match self {
            IsaLevel::Sse2 => ("xmm", 16),
            IsaLevel::Avx2 => ("ymm", 16),
            IsaLevel::Avx512 => ("zmm", 32),
            IsaLevel::Neon | IsaLevel::Rvv => ("v", 32),
            IsaLevel::Rv64 => ("f", 32),
            IsaLevel::Fpv4 => ("s", 32),
            IsaLevel::Simd128 => ("", 0),
        }
    }
}
