//! The machine that code is compiled for: facts only.

/// A target machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// LLVM's triple.
    pub triple: String,
    /// LLVM's CPU name.
    pub cpu: String,
    /// LLVM's feature string, `+avx2,-fma`.
    pub features: String,
    /// Bits of a vector register that code should use.
    pub vector_bits: u32,
    /// Number of vector registers.
    pub vector_registers: u32,
    /// Whether multiply-add is one instruction.
    pub fma: bool,
}
