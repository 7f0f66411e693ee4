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
    /// WebAssembly's 128-bit vectors, which engines hold in the machine's registers, at least 16.
    Simd128,
    /// Armv7E-M's FPv4: 32 registers of one f32, which make 8 vectors of 4. The C compiler's run-time library does 64-bit arithmetic.
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
    /// Whether there are fused multiply-add instructions for f32 and f64.
    pub fn has_fma(self) -> bool {
        match self {
            IsaLevel::Avx2 | IsaLevel::Avx512 | IsaLevel::Neon | IsaLevel::Rv64 | IsaLevel::Rvv => true,
            IsaLevel::Sse2 | IsaLevel::Simd128 | IsaLevel::Fpv4 => false,
        }
    }
    /// Whether there is a fused multiply-add instruction for f32.
    pub fn has_fma_f32(self) -> bool {
        self.has_fma() || self == IsaLevel::Fpv4
    }
    /// Whether there are instructions that round floats to integral values.
    pub fn has_rounding(self) -> bool {
        match self {
            IsaLevel::Avx2 | IsaLevel::Avx512 | IsaLevel::Neon | IsaLevel::Simd128 => true,
            IsaLevel::Sse2 | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Fpv4 => false,
        }
    }
    /// Whether there are instructions that convert between f16 and f32.
    pub fn has_f16_conversion(self) -> bool {
        match self {
            IsaLevel::Avx2 | IsaLevel::Avx512 | IsaLevel::Neon => true,
            IsaLevel::Sse2 | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Simd128 | IsaLevel::Fpv4 => false,
        }
    }
    /// Whether code loads and stores some lanes of a vector by LLVM's masked intrinsics. AVX2's instruction for it takes a dozen
    /// micro-operations to store, and a load of what it stored waits for the cache; LLVM takes the intrinsics apart lane by lane for the
    /// others. C source, which is made as for SSE2, copies the elements.
    pub fn has_masked_access(self) -> bool {
        match self {
            IsaLevel::Avx512 | IsaLevel::Rvv | IsaLevel::Sse2 => true,
            IsaLevel::Avx2 | IsaLevel::Neon | IsaLevel::Rv64 | IsaLevel::Simd128 | IsaLevel::Fpv4 => false,
        }
    }
    /// LLVM's name of the oldest processor with this instruction set, or a similar one: [`IsaLevel::features`] has what that lacks.
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
    /// LLVM's feature string of what the instruction set has beyond [`IsaLevel::baseline_cpu`].
    pub fn features(self) -> &'static str {
        match self {
            IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Avx512 | IsaLevel::Neon | IsaLevel::Fpv4 => "",
            IsaLevel::Rv64 => "+m,+a,+f,+d,+c",
            IsaLevel::Rvv => "+m,+a,+f,+d,+c,+v",
            IsaLevel::Simd128 => "+simd128",
        }
    }
    /// The instruction set that every processor of the same architecture supports.
    pub fn baseline(self) -> IsaLevel {
        match self {
            IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Avx512 => IsaLevel::Sse2,
            IsaLevel::Rv64 | IsaLevel::Rvv => IsaLevel::Rv64,
            IsaLevel::Neon | IsaLevel::Simd128 | IsaLevel::Fpv4 => self,
        }
    }
    /// The prefix of LLVM's names of the vector registers (`xmm`), and their number; 0 if the code has no registers.
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
