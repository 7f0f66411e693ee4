//! Perfect hashing: each of the given keys gets a slot of its own, found with two multiplications and one access to a small
//! array.
//!
//! A key is mixed to 64 bits. Some of the bits select a bucket; others give a start slot and a step. The displacement of a
//! bucket is the number of steps after which all its keys lie in free slots. Buckets with the most keys are placed first.
//! Source: Belazzougui, Botelho, Dietzfelbinger, "Hash, displace, and compress", ESA 2009; the mixing is the finalizer of
//! SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
use crate::diag::Result;
use crate::hlo::symbolic::InstId;
use crate::ops::LowerCtx;
use crate::ops::array::gather::gather_along_axis;
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Largest number of keys of a table.
const MOST_KEYS: usize = 1 << 24;
/// Average number of keys in a bucket.
const IN_BUCKET: usize = 4;
/// Number of seeds tried before construction fails, as a seed may not place all keys.
const MOST_SEEDS: u64 = 64;
/// Shifts and factors of the mixing function.
const MIX: [(u32, u64); 2] = [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)];
/// Final shift of the mixing function.
const LAST_SHIFT: u32 = 31;
/// Position of the bits of a mixed key that give its start slot; the bits from 0 on give its bucket.
const START: u32 = 24;
/// Position of the bits of a mixed key that give the step between slots.
const STEP: u32 = 40;

/// Perfect hash function from a set of keys to slots.
#[derive(Debug, PartialEq)]
pub struct PerfectHash {
    seed: u64,
    /// Displacement of each bucket; the number of buckets is a power of two.
    displacements: Vec<u32>,
    /// Index of the key in each slot; the number of slots is a power of two. An empty slot has index 0, a key whose own slot is
    /// elsewhere, so that no key looked up in the empty slot compares equal.
    slots: Vec<u32>,
}

/// Keys as 64-bit words, sign-extended if signed.
pub fn keys_as_words(keys: &Tensor) -> Vec<u64> {
    (0..keys.len()).map(|i| keys.get_i64(i).map_or(0, |k| k as u64)).collect()
}

fn mixed(key: u64, seed: u64) -> u64 {
    let mut x = key ^ seed;
    for (shift, factor) in MIX {
        x = (x ^ (x >> shift)).wrapping_mul(factor);
    }
    x ^ (x >> LAST_SHIFT)
}

/// Slot, of `slots`, of a key mixed to `x`, after `moves` steps.
fn slot(x: u64, moves: u64, slots: usize) -> usize {
    let step = (x >> STEP) | 1;
    ((x >> START).wrapping_add(moves.wrapping_mul(step)) & (slots as u64 - 1)) as usize
}

impl PerfectHash {
    /// Perfect hash function for distinct keys; `None` if there are none. The error describes what is wrong with the keys.
    pub fn new(keys: &[u64]) -> Result<Option<PerfectHash>, String> {
        if keys.is_empty() {
            return Ok(None);
        }
        if keys.len() > MOST_KEYS {
            return Err(format!("a table of {} keys; {MOST_KEYS} are supported", keys.len()));
        }
        let seeds = (0..MOST_SEEDS).map(|s| s.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let found = seeds.into_iter().find_map(|seed| PerfectHash::with_seed(keys, seed));
        found.map(Some).ok_or_else(|| "no perfect hash function was found for the keys of a table".to_string())
    }

    fn with_seed(keys: &[u64], seed: u64) -> Option<PerfectHash> {
        let slots = (keys.len() + keys.len() / 4).next_power_of_two();
        let buckets = (keys.len() / IN_BUCKET).max(1).next_power_of_two();
        let mixed: Vec<u64> = keys.iter().map(|&key| mixed(key, seed)).collect();
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); buckets];
        for (i, x) in mixed.iter().enumerate() {
            members[*x as usize & (buckets - 1)].push(i as u32);
        }
        let mut order: Vec<usize> = (0..buckets).collect();
        order.sort_by_key(|&b| std::cmp::Reverse(members[b].len()));
        let (mut displacements, mut taken) = (vec![0; buckets], vec![None; slots]);
        for bucket in order {
            let members = &members[bucket];
            let at = |i: u32, moves: u64| slot(mixed[i as usize], moves, slots);
            let fits = |&moves: &u64| {
                let mut places: Vec<usize> = members.iter().map(|&i| at(i, moves)).collect();
                places.sort_unstable();
                places.windows(2).all(|w| w[0] != w[1]) && places.iter().all(|&p| taken[p].is_none())
            };
            let moves = (0..slots as u64).find(fits)?;
            members.iter().for_each(|&i| taken[at(i, moves)] = Some(i));
            displacements[bucket] = moves as u32;
        }
        let slots = taken.into_iter().map(|t| t.unwrap_or(0)).collect();
        Some(PerfectHash { seed, displacements, slots })
    }

    /// Slot of each key if it is in the set, else any slot; `s32` of the shape of `keys`.
    pub fn slot(&self, cx: &mut LowerCtx, keys: InstId) -> Result<InstId> {
        let dims = cx.b.dims(keys).to_vec();
        let number = |cx: &mut LowerCtx, n: u64| {
            let n = cx.b.constant(Tensor::scalar(n));
            cx.b.broadcast(n, &dims, &[])
        };
        let shifted = |cx: &mut LowerCtx, x: InstId, by: u32| {
            let by = number(cx, u64::from(by));
            cx.b.elementwise(ScalarOp::ShiftRightLogical, &[x, by])
        };
        let wide = if cx.b.dtype(keys).is_signed() { cx.b.convert(keys, DType::S64) } else { keys };
        let mut x = cx.b.convert(wide, DType::U64);
        if self.seed != 0 {
            let seed = cx.b.constant(Tensor::scalar(self.seed));
            x = cx.b.binary(ScalarOp::Xor, x, seed);
        }
        for (shift, factor) in MIX {
            let high = shifted(cx, x, shift);
            let factor = cx.b.constant(Tensor::scalar(factor));
            x = cx.b.elementwise(ScalarOp::Xor, &[x, high]);
            x = cx.b.mul(x, factor);
        }
        let high = shifted(cx, x, LAST_SHIFT);
        x = cx.b.elementwise(ScalarOp::Xor, &[x, high]);
        let low = |cx: &mut LowerCtx, x: InstId, size: usize| {
            let mask = cx.b.constant(Tensor::scalar(size as u64 - 1));
            cx.b.binary(ScalarOp::And, x, mask)
        };
        let bucket = low(cx, x, self.displacements.len());
        let bucket = cx.b.convert(bucket, DType::S32);
        let moves = cx.b.constant(Tensor::of(&[self.displacements.len() as u64], &self.displacements));
        let moves = gather_along_axis(cx, moves, bucket, 0, 0)?;
        let moves = cx.b.convert(moves, DType::U64);
        let (start, step) = (shifted(cx, x, START), shifted(cx, x, STEP));
        let odd = cx.b.constant(Tensor::scalar(1u64));
        let step = cx.b.binary(ScalarOp::Or, step, odd);
        let moved = cx.b.mul(moves, step);
        let place = cx.b.add(start, moved);
        let place = low(cx, place, self.slots.len());
        Ok(cx.b.convert(place, DType::S32))
    }

    /// Rows of a table, one per key, rearranged by slot.
    pub fn rows_by_slot(&self, rows: &Tensor) -> Tensor {
        let count = rows.dims.first().copied().unwrap_or(1).max(1);
        let size = rows.bytes.len() / count as usize;
        let bytes: Vec<u8> =
            self.slots.iter().flat_map(|&i| &rows.bytes[i as usize * size..(i as usize + 1) * size]).copied().collect();
        let dims = [&[self.slots.len() as u64], rows.dims.get(1..).unwrap_or(&[])].concat();
        Tensor::new(rows.dtype, dims, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_slot_of_its_own() {
        let sets: [Vec<u64>; 5] = [
            vec![7],
            (0..1000).collect(),
            (0..5000).map(|i| i << 40).collect(),
            (0..777u64).map(|i| i.wrapping_mul(0x1234_5678_9abc_def1)).collect(),
            vec![0, u64::MAX, 1 << 63, (1 << 63) - 1],
        ];
        for keys in sets {
            let hash = PerfectHash::new(&keys).unwrap().unwrap();
            let buckets = hash.displacements.len() as u64;
            for (i, &key) in keys.iter().enumerate() {
                let x = mixed(key, hash.seed);
                let moves = hash.displacements[(x & (buckets - 1)) as usize];
                let at = slot(x, u64::from(moves), hash.slots.len());
                assert_eq!(hash.slots[at] as usize, i, "{key} of {} keys", keys.len());
            }
        }
        assert_eq!(PerfectHash::new(&[]), Ok(None));
    }
}
