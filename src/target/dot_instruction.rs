//! Instructions that add the products of neighbouring elements to a sum: two of bfloat16 to an f32, four of a byte or two of 16 bits to an s32.
use super::IsaLevel;

/// An instruction that multiplies the elements of two 32-bit words and adds the products to a sum. For bfloat16 an instruction differs in how
/// `z + x₀·y₀ + x₁·y₁` is rounded, and takes subnormal numbers as zeros; sums of integers are exact modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DotInstruction {
    /// AVX512-BF16's `vdpbf16ps` (Intel's manual, volume 2C): `z + x₁·y₁`, rounded to nearest, and `x₀·y₀` added to that likewise.
    Avx512Bf16,
    /// AArch64's `bfdot` (FEAT_BF16; Arm's manual, `BFDotAdd`): the sum of both products, and `z` added to that, each rounded to
    /// odd.
    Bfdot,
    /// `vpdpbusd` of AVX512-VNNI or AVX-VNNI (Intel's manual, volume 2C): bytes of `x` without a sign by bytes of `y` with one.
    Vpdpbusd,
    /// AArch64's `sdot` (FEAT_DotProd): bytes with a sign.
    Sdot,
    /// AArch64's `udot` (FEAT_DotProd): bytes without a sign.
    Udot,
    /// `pmaddwd` of SSE2, AVX2 and AVX-512 BW (Intel's manual, volume 2B) and an addition: 16 bits with a sign.
    Pmaddwd,
    /// `vpdpwssd` of AVX512-VNNI or AVX-VNNI (Intel's manual, volume 2C): 16 bits with a sign.
    Vpdpwssd,
}

impl DotInstruction {
    /// The bfloat16 dot-product instruction that some processors with the instruction set `level` have.
    pub(super) fn of_bf16(level: IsaLevel) -> Option<DotInstruction> {
        match level {
            IsaLevel::Avx512 => Some(DotInstruction::Avx512Bf16),
            IsaLevel::Neon => Some(DotInstruction::Bfdot),
            IsaLevel::Sse2 | IsaLevel::Avx2 | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Simd128 | IsaLevel::Fpv4 => {
                None
            }
        }
    }
    /// The 8-bit dot-product instruction that some processors with the instruction set `level` have. A processor with `sdot` has `udot`
    /// too.
    pub(super) fn of_bytes(level: IsaLevel) -> Option<DotInstruction> {
        match level {
            IsaLevel::Avx512 | IsaLevel::Avx2 => Some(DotInstruction::Vpdpbusd),
            IsaLevel::Neon => Some(DotInstruction::Sdot),
            IsaLevel::Sse2 | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Simd128 | IsaLevel::Fpv4 => None,
        }
    }
    /// The 16-bit dot-product instructions of the instruction set `level`, the fastest first; every processor has the last.
    pub(super) fn of_shorts(level: IsaLevel) -> &'static [DotInstruction] {
        match level {
            IsaLevel::Avx512 | IsaLevel::Avx2 => &[DotInstruction::Vpdpwssd, DotInstruction::Pmaddwd],
            IsaLevel::Sse2 => &[DotInstruction::Pmaddwd],
            IsaLevel::Neon | IsaLevel::Rv64 | IsaLevel::Rvv | IsaLevel::Simd128 | IsaLevel::Fpv4 => &[],
        }
    }
    /// LLVM's name of the feature that the instruction needs beside the instruction set `level`; `None` if every processor with that has it.
    pub fn feature(self, level: IsaLevel) -> Option<&'static str> {
        match self {
            DotInstruction::Avx512Bf16 => Some("avx512bf16"),
            DotInstruction::Bfdot => Some("bf16"),
            DotInstruction::Vpdpbusd | DotInstruction::Vpdpwssd if level == IsaLevel::Avx2 => Some("avxvnni"),
            DotInstruction::Vpdpbusd | DotInstruction::Vpdpwssd => Some("avx512vnni"),
            DotInstruction::Sdot | DotInstruction::Udot => Some("dotprod"),
            DotInstruction::Pmaddwd => None,
        }
    }
    /// The number of elements that a 32-bit word holds.
    pub fn terms_per_word(self) -> u64 {
        match self {
            DotInstruction::Avx512Bf16 | DotInstruction::Bfdot | DotInstruction::Pmaddwd | DotInstruction::Vpdpwssd => {
                2
            }
            DotInstruction::Vpdpbusd | DotInstruction::Sdot | DotInstruction::Udot => 4,
        }
    }
    /// Whether the sums are 32-bit integers; otherwise they are f32 sums of bfloat16 products.
    pub fn is_integer(self) -> bool {
        !matches!(self, DotInstruction::Avx512Bf16 | DotInstruction::Bfdot)
    }
    /// Whether the elements of the first and of the second operand are signed.
    pub fn operand_signs(self) -> [bool; 2] {
        match self {
            DotInstruction::Vpdpbusd => [false, true],
            DotInstruction::Udot => [false, false],
            _ => [true, true],
        }
    }
    /// The bits of the sum `z` of one element and the products of two words, whose first elements are in the low end.
    pub fn evaluate_sum(self, x: u32, y: u32, z: u32) -> u32 {
        let halves = |word: u32| [word << 16, word & 0xffff_0000].map(|bits| flush_subnormal(f32::from_bits(bits)));
        let bits = 32 / self.terms_per_word() as u32;
        let element = |word: u32, place: u64, is_signed: bool| {
            let at_top = word << (32 - bits - bits * place as u32);
            if is_signed { (at_top.cast_signed() >> (32 - bits)).cast_unsigned() } else { at_top >> (32 - bits) }
        };
        let products = || {
            let [first, second] = self.operand_signs();
            let all = (0..self.terms_per_word()).map(|i| element(x, i, first).wrapping_mul(element(y, i, second)));
            all.fold(z, u32::wrapping_add)
        };
        let ([x0, x1], [y0, y1], sum) = (halves(x), halves(y), flush_subnormal(f32::from_bits(z)));
        match self {
            DotInstruction::Avx512Bf16 => {
                let sum = flush_subnormal(x1.mul_add(y1, sum));
                flush_subnormal(x0.mul_add(y0, sum)).to_bits()
            }
            DotInstruction::Bfdot => {
                // a product of two numbers of 8 bits is exact in f32, or beyond its range
                let products = add_to_odd(flush_subnormal(x0 * y0), flush_subnormal(x1 * y1));
                add_to_odd(sum, products).to_bits()
            }
            _ => products(),
        }
    }
}

/// Replaces a subnormal number by zero.
pub(super) fn flush_subnormal(v: f32) -> f32 {
    if v.is_subnormal() { 0f32.copysign(v) } else { v }
}

/// The sum `a + b` rounded to odd: truncated towards zero, with the last bit set if the sum was inexact.
fn add_to_odd(a: f32, b: f32) -> f32 {
    let sum = f64::from(a) + f64::from(b);
    if sum.is_nan() {
        return f32::from_bits(0x7fc0_0000);
    }
    if sum.abs() >= 2f64.powi(128) {
        return f32::INFINITY.copysign(sum as f32);
    }
    // what the sum of two f32 loses in an f64 is an f64 (Knuth's two-sum)
    let part = sum - f64::from(a);
    let lost = (f64::from(a) - (sum - part)) + (f64::from(b) - part);
    let near = sum as f32;
    let over = (f64::from(near) - sum) - lost;
    if over == 0.0 {
        return flush_subnormal(near);
    }
    let beyond = (over > 0.0) == (near > 0.0);
    flush_subnormal(f32::from_bits((near.to_bits() - u32::from(beyond)) | 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_to_odd() {
        let tiny = f32::MIN_POSITIVE;
        // 1 + 2^-30 is cut off to 1, whose last bit becomes 1; 1 - 2^-30 to the number before 1, which is odd
        assert_eq!(add_to_odd(1.0, 2f32.powi(-30)), 1.0 + f32::EPSILON);
        assert_eq!(add_to_odd(1.0, -(2f32.powi(-30))), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(add_to_odd(-1.0, -(2f32.powi(-100))), -1.0 - f32::EPSILON);
        assert_eq!(add_to_odd(-1.0, 2f32.powi(-100)), -1.0 + f32::EPSILON / 2.0);
        assert_eq!(add_to_odd(3.0, 4.0), 7.0);
        assert_eq!(add_to_odd(f32::MAX, f32::MAX), f32::INFINITY);
        assert_eq!(add_to_odd(f32::MAX, 1.0), f32::MAX);
        assert_eq!(add_to_odd(1.5 * tiny, -tiny).to_bits(), 0);
        assert_eq!(add_to_odd(f32::INFINITY, f32::NEG_INFINITY).to_bits(), 0x7fc0_0000);
    }
}
