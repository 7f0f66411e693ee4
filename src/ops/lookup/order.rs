//! Iteration order of TensorFlow's hash tables: that of `std::unordered_map` of libstdc++.
//!
//! All keys form one list, in which the keys of a bucket are adjacent. A new key goes to the front of its bucket, or to the
//! front of the list if its bucket is empty. When keys outnumber buckets, the table is rehashed: the keys are inserted into
//! more buckets, in list order. A key is its own hash, as 64 bits. Source: measured with TensorFlow 2.21; the bucket counts are
//! primes of libstdc++'s `_Prime_rehash_policy`, each the first at least twice as large as the one before.
use std::collections::HashMap;

/// Bucket counts, in the order in which a table grows.
pub const BUCKETS: [u64; 22] = [
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172_933, 351_061, 712_697, 1_447_153,
    2_938_679, 5_967_347, 12_117_689, 24_607_243, 49_969_847,
];

/// Order in which a hash table iterates over distinct `keys` inserted one by one, as positions, and its bucket count.
pub fn iteration_order(keys: &[u64]) -> (Vec<usize>, u64) {
    let mut buckets = 0;
    let mut list: Vec<usize> = Vec::new();
    let mut done = 0;
    while done < keys.len() {
        buckets = BUCKETS.into_iter().find(|&n| n > buckets).unwrap_or(buckets);
        let room = usize::try_from(buckets).unwrap_or(usize::MAX).max(done + 1);
        let end = keys.len().min(if BUCKETS.last() == Some(&buckets) { keys.len() } else { room });
        list = added(keys, &[&list[..], &(done..end).collect::<Vec<_>>()].concat(), buckets);
        done = end;
    }
    (list, buckets)
}

/// Iteration order of keys inserted in this order into an empty table with `buckets` buckets.
fn added(keys: &[u64], order: &[usize], buckets: u64) -> Vec<usize> {
    let mut members: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut seen = Vec::new();
    for &i in order {
        let bucket = keys[i] % buckets;
        let own = members.entry(bucket).or_default();
        if own.is_empty() {
            seen.push(bucket);
        }
        own.push(i);
    }
    seen.iter().rev().flat_map(|bucket| members[bucket].iter().rev().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::iteration_order;

    /// `MutableHashTable.export` of TensorFlow 2.21 gives these orders.
    #[test]
    fn keys_are_listed_as_tensorflow_lists_them() {
        let order = |keys: &[u64]| iteration_order(keys).0.into_iter().map(|i| keys[i]).collect::<Vec<_>>();
        assert_eq!(order(&[3, 5, 7]), [7, 5, 3]);
        assert_eq!(order(&[3, 5, 7, 16, 29, 100]), [100, 7, 5, 29, 16, 3]);
        let keys = [3, 5, 7, 16, 29, 100, 20, 21, 22, 23, 24, 25, 26, 27, 28];
        assert_eq!(order(&keys), [28, 27, 3, 16, 29, 5, 7, 20, 100, 22, 21, 23, 24, 25, 26]);
    }
}
