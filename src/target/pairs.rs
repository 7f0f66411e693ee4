//! Instructions that add two products of bfloat16 to an f32.
use super::Level;

/// How `z + x₀·y₀ + x₁·y₁` is rounded, by whose instruction. Subnormal numbers are taken as zeros and become zeros in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PairSums {
    /// AVX512-BF16's `vdpbf16ps` (Intel's manual, volume 2C): `z + x₁·y₁`, rounded to nearest, and `x₀·y₀` added to that likewise.
    Avx512Bf16,
    /// AArch64's `bfdot` (FEAT_BF16; Arm's manual, `BFDotAdd`): the sum of both products, and `z` added to that, each rounded to
    /// odd.
    Bfdot,
}

impl PairSums {
    /// The instruction for sums of bf16 pairs in the instruction set of `level`, which not all of its processors have.
    pub(super) fn of(level: Level) -> Option<PairSums> {
        match level {
            Level::Avx512 => Some(PairSums::Avx512Bf16),
            Level::Neon => Some(PairSums::Bfdot),
            Level::Sse2 | Level::Avx2 | Level::Rv64 | Level::Rvv | Level::Simd128 | Level::Fpv4 => None,
        }
    }
    /// LLVM's name of the feature.
    pub fn feature(self) -> &'static str {
        match self {
            PairSums::Avx512Bf16 => "avx512bf16",
            PairSums::Bfdot => "bf16",
        }
    }
    /// The sum of one element; the words hold `x₀` in the low half and `x₁` in the high one.
    pub fn sum(self, x: u32, y: u32, z: f32) -> f32 {
        let halves = |word: u32| [word << 16, word & 0xffff_0000].map(|bits| flushed(f32::from_bits(bits)));
        let ([x0, x1], [y0, y1], z) = (halves(x), halves(y), flushed(z));
        match self {
            PairSums::Avx512Bf16 => {
                let sum = flushed(x1.mul_add(y1, z));
                flushed(x0.mul_add(y0, sum))
            }
            PairSums::Bfdot => {
                // a product of two numbers of 8 bits is exact in f32, or beyond its range
                let products = add_to_odd(flushed(x0 * y0), flushed(x1 * y1));
                add_to_odd(z, products)
            }
        }
    }
}

/// Zero in the place of a subnormal number.
pub(super) fn flushed(v: f32) -> f32 {
    if v.is_subnormal() { 0f32.copysign(v) } else { v }
}

/// The sum cut off towards zero, its last bit set where something was cut off.
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
        return flushed(near);
    }
    let beyond = (over > 0.0) == (near > 0.0);
    flushed(f32::from_bits((near.to_bits() - u32::from(beyond)) | 1))
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
