//! Intel's AMX: blocks of bfloat16 or of bytes that one instruction multiplies, in eight registers that each hold a tile of memory.
use super::cpus::Cpu;
use super::dot_instruction::flush_subnormal;

/// Most rows of an AMX tile.
pub const ROWS: u64 = 16;
/// Columns of an AMX tile of sums.
pub const COLUMNS: u64 = 16;

/// The products that a tile instruction adds to sums of 32 bits, by the types of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileProduct {
    /// Pairs of bfloat16 and sums of f32: `tdpbf16ps`.
    Bf16,
    /// Groups of four bytes and sums of s32, modulo 2^32: `tdpbssd`, `tdpbsud`, `tdpbusd` and `tdpbuud`.
    Bytes {
        /// Whether the bytes of the left and of the right side are signed.
        signs: [bool; 2],
    },
}

impl TileProduct {
    /// Number of elements of one side that a 32-bit word holds.
    pub fn terms_per_word(self) -> u64 {
        match self {
            TileProduct::Bf16 => 2,
            TileProduct::Bytes { .. } => 4,
        }
    }

    /// Most terms that one instruction adds to each sum: a row of a tile has 16 words.
    pub fn most_terms(self) -> u64 {
        16 * self.terms_per_word()
    }

    /// The name of the instruction.
    pub fn instruction(self) -> &'static str {
        match self {
            TileProduct::Bf16 => "tdpbf16ps",
            TileProduct::Bytes { signs: [true, true] } => "tdpbssd",
            TileProduct::Bytes { signs: [true, false] } => "tdpbsud",
            TileProduct::Bytes { signs: [false, true] } => "tdpbusd",
            TileProduct::Bytes { signs: [false, false] } => "tdpbuud",
        }
    }

    /// LLVM's names of the features that the instruction needs.
    pub fn features(self) -> [&'static str; 2] {
        match self {
            TileProduct::Bf16 => ["amx-tile", "amx-bf16"],
            TileProduct::Bytes { .. } => ["amx-tile", "amx-int8"],
        }
    }

    /// The bits of the sum `z` and the products of all `words` of a row of the left side with those of a column of the right side. First terms
    /// are in the low ends of words.
    pub fn evaluate_sum(self, words: impl Iterator<Item = (u32, u32)>, z: u32) -> u32 {
        match self {
            TileProduct::Bf16 => evaluate_bf16_sum(words, f32::from_bits(z)).to_bits(),
            TileProduct::Bytes { signs } => {
                let element = |word: u32, place: usize, is_signed: bool| {
                    let byte = word.to_le_bytes()[place];
                    if is_signed { i32::from(byte.cast_signed()) } else { i32::from(byte) }
                };
                let product = |(x, y): (u32, u32), place| element(x, place, signs[0]) * element(y, place, signs[1]);
                let products = words.flat_map(|word| (0..4).map(move |place| product(word, place)));
                products.fold(z, |sum, product| sum.wrapping_add(product.cast_unsigned()))
            }
        }
    }
}

/// The result of `tdpbf16ps` for the sum `z` and pairs of factors, a word each (Intel's manual, volume 2, TDPBF16PS): the products of low
/// halves are added one after another to a sum that begins at zero, those of high halves to another, each by one multiply-add; the second sum
/// is added to the first, and that to `z`. Each step is rounded to nearest, and subnormal numbers are taken as zeros and become zeros, whatever
/// MXCSR says.
fn evaluate_bf16_sum(pairs: impl Iterator<Item = (u32, u32)>, z: f32) -> f32 {
    let mut sums = [0f32; 2];
    for (x, y) in pairs {
        for (half, sum) in sums.iter_mut().enumerate() {
            let factor =
                |word: u32| flush_subnormal(f32::from_bits(if half == 0 { word << 16 } else { word & 0xffff_0000 }));
            *sum = flush_subnormal(factor(x).mul_add(factor(y), *sum));
        }
    }
    flush_subnormal(flush_subnormal(z) + flush_subnormal(sums[0] + sums[1]))
}

/// Whether a processor has the tile instructions of `product`, decided by the feature string, else by this machine if the target is this
/// machine (`here`), else by the processor's name.
pub(super) fn has_product(product: TileProduct, cpu: Cpu, here: bool, told: impl Fn(&str) -> Option<bool>) -> bool {
    let features = product.features();
    match features.map(told) {
        [Some(false), _] | [_, Some(false)] => false,
        [_, Some(true)] => true,
        [_, None] => (here && machine_has(features)) || features.iter().all(|name| cpu.has(name)),
    }
}

/// Whether this machine's processor has these features of AMX and its operating system saves tiles. The system saves them if the XSAVE area in use
/// reaches to the end of the tile data (Intel's manual, volume 1, chapter 13).
#[cfg(target_arch = "x86_64")]
fn machine_has(features: [&str; 2]) -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const SAVED: u32 = 0xd;
    const TILES: u32 = super::features::TILE_DATA;
    if __cpuid(0).eax < SAVED {
        return false;
    }
    let has_all = features.iter().all(|name| {
        super::features::cpuid_has(name, |leaf, part| {
            let told = __cpuid_count(leaf, part);
            [told.eax, told.ebx, told.ecx, told.edx]
        })
    });
    let tiles = __cpuid_count(SAVED, TILES);
    has_all && tiles.eax > 0 && __cpuid_count(SAVED, 0).ebx >= tiles.ebx + tiles.eax
}

#[cfg(target_arch = "aarch64")]
fn machine_has(_: [&str; 2]) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(low: f32, high: f32) -> u32 {
        low.to_bits() >> 16 | high.to_bits() & 0xffff_0000
    }

    #[test]
    fn even_and_odd_terms_are_summed_apart() {
        let one = |x: [f32; 2], y: [f32; 2]| (word(x[0], x[1]), word(y[0], y[1]));
        assert_eq!(evaluate_bf16_sum([one([1.0, 2.0], [3.0, 5.0])].into_iter(), 0.5), 13.5);
        // 2^25 + 1 - 2^25 is 0 in one chain of sums; apart, the 1 of the other chain stays
        let large = 2f32.powi(25);
        let terms = [one([large, 1.0], [1.0, 1.0]), one([-large, 0.0], [1.0, 1.0])];
        assert_eq!(evaluate_bf16_sum(terms.into_iter(), 0.0), 1.0);
        // what is in the sum comes last: 2^25 + (1 + 1) is more than 2^25, (2^25 + 1) + 1 is not
        let ones = [one([1.0, 1.0], [1.0, 1.0]); 2];
        assert_eq!(evaluate_bf16_sum(ones.into_iter(), large), large + 4.0);
    }

    #[test]
    fn subnormal_numbers_are_zeros() {
        let tiny = f32::MIN_POSITIVE;
        assert_eq!(evaluate_bf16_sum(std::iter::once((word(tiny / 2.0, 0.0), word(4.0, 0.0))), 0.0), 0.0);
        assert_eq!(evaluate_bf16_sum(std::iter::once((word(tiny, 0.0), word(0.5, 0.0))), 0.0), 0.0);
        assert_eq!(evaluate_bf16_sum(std::iter::empty(), tiny / 2.0), 0.0);
        assert_eq!(evaluate_bf16_sum(std::iter::once((word(tiny, 0.0), word(1.0, 0.0))), 0.0), tiny);
    }

    #[test]
    fn bytes_have_the_signs_of_their_sides() {
        let (x, y) = (u32::from_le_bytes([255, 128, 127, 1]), u32::from_le_bytes([128, 255, 127, 3]));
        for (signs, want) in [
            ([true, true], 128 + 128 + 127 * 127 + 3),
            ([true, false], -128 - 128 * 255 + 127 * 127 + 3),
            ([false, true], -255 * 128 - 128 + 127 * 127 + 3),
            ([false, false], 255 * 128 * 2 + 127 * 127 + 3),
        ] {
            let product = TileProduct::Bytes { signs };
            let sum = product.evaluate_sum([(x, y), (x, 0)].into_iter(), 7);
            assert_eq!(sum.cast_signed(), want + 7, "{}", product.instruction());
        }
        // sums wrap around
        let all = TileProduct::Bytes { signs: [false; 2] };
        assert_eq!(all.evaluate_sum(std::iter::once((0xff, 0xff)), u32::MAX), 255 * 255 - 1);
    }
}
