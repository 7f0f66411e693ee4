//! Intel's AMX: blocks of bfloat16 that one instruction multiplies, in eight registers that each hold a tile of memory.
use super::cpus::Cpu;
use super::dot_instruction::flush_subnormal;

/// Most rows of an AMX tile.
pub const ROWS: u64 = 16;
/// Columns of an AMX tile of sums.
pub const COLUMNS: u64 = 16;
/// Most terms (bfloat16 products) that one tile instruction adds to each sum.
pub const TERMS: u64 = 32;

/// LLVM's names of the features for bfloat16 tile products.
pub(super) const FEATURES: [&str; 2] = ["amx-tile", "amx-bf16"];

/// The result of `tdpbf16ps` for the sum `z` and pairs of factors, a word each (Intel's manual, volume 2, TDPBF16PS): the products of low
/// halves are added one after another to a sum that begins at zero, those of high halves to another, each by one multiply-add; the second sum
/// is added to the first, and that to `z`. Each step is rounded to nearest, and subnormal numbers are taken as zeros and become zeros, whatever
/// MXCSR says.
pub fn evaluate_sum(pairs: impl Iterator<Item = (u32, u32)>, z: f32) -> f32 {
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

/// Whether a processor has AMX tiles, decided by the feature string, else by this machine if the target is this machine (`here`), else by
/// the processor's name.
pub(super) fn has_tiles(cpu: Cpu, here: bool, told: impl Fn(&str) -> Option<bool>) -> bool {
    match FEATURES.map(told) {
        [Some(false), _] | [_, Some(false)] => false,
        [_, Some(true)] => true,
        [_, None] => (here && machine_has()) || FEATURES.iter().all(|name| cpu.has(name)),
    }
}

/// Whether this machine's processor has AMX tiles and its operating system saves them. The system saves them if the XSAVE area in use
/// reaches to the end of the tile data (Intel's manual, volume 1, chapter 13).
#[cfg(target_arch = "x86_64")]
fn machine_has() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const SAVED: u32 = 0xd;
    const TILES: u32 = super::features::TILE_DATA;
    if __cpuid(0).eax < SAVED {
        return false;
    }
    let has_all = FEATURES.iter().all(|name| {
        super::features::cpuid_has(name, |leaf, part| {
            let told = __cpuid_count(leaf, part);
            [told.eax, told.ebx, told.ecx, told.edx]
        })
    });
    let tiles = __cpuid_count(SAVED, TILES);
    has_all && tiles.eax > 0 && __cpuid_count(SAVED, 0).ebx >= tiles.ebx + tiles.eax
}

#[cfg(target_arch = "aarch64")]
fn machine_has() -> bool {
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
        assert_eq!(evaluate_sum([one([1.0, 2.0], [3.0, 5.0])].into_iter(), 0.5), 13.5);
        // 2^25 + 1 - 2^25 is 0 in one chain of sums; apart, the 1 of the other chain stays
        let large = 2f32.powi(25);
        let terms = [one([large, 1.0], [1.0, 1.0]), one([-large, 0.0], [1.0, 1.0])];
        assert_eq!(evaluate_sum(terms.into_iter(), 0.0), 1.0);
        // what is in the sum comes last: 2^25 + (1 + 1) is more than 2^25, (2^25 + 1) + 1 is not
        let ones = [one([1.0, 1.0], [1.0, 1.0]); 2];
        assert_eq!(evaluate_sum(ones.into_iter(), large), large + 4.0);
    }

    #[test]
    fn subnormal_numbers_are_zeros() {
        let tiny = f32::MIN_POSITIVE;
        assert_eq!(evaluate_sum(std::iter::once((word(tiny / 2.0, 0.0), word(4.0, 0.0))), 0.0), 0.0);
        assert_eq!(evaluate_sum(std::iter::once((word(tiny, 0.0), word(0.5, 0.0))), 0.0), 0.0);
        assert_eq!(evaluate_sum(std::iter::empty(), tiny / 2.0), 0.0);
        assert_eq!(evaluate_sum(std::iter::once((word(tiny, 0.0), word(1.0, 0.0))), 0.0), tiny);
    }
}
