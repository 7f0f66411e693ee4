//! Parallel hashing of large content: a hash of the hashes of its parts.
use crate::util::parallel;

/// Size of a hash in bytes.
pub const BYTES: usize = blake3::OUT_LEN;
/// Size in bytes of the parts that are hashed in parallel.
const PART_BYTES: usize = 4 << 20;

/// A hash.
pub type Digest = [u8; BYTES];

/// The hash of the concatenation of `pieces`, independent of the number of processors and of where the pieces are split.
pub fn hash_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let hashes = parallel::map(&parts(pieces), |part| {
        let mut hasher = blake3::Hasher::new();
        for piece in part {
            hasher.update(piece);
        }
        *hasher.finalize().as_bytes()
    });
    *blake3::hash(hashes.as_flattened()).as_bytes()
}

/// Splits the concatenation of `pieces` into parts of equal length; the last one may be shorter.
fn parts<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<&'a [u8]>> {
    let (mut all, mut room) = (Vec::new(), 0);
    for mut piece in pieces {
        while !piece.is_empty() {
            if room == 0 {
                all.push(Vec::new());
                room = PART_BYTES;
            }
            let (now, later) = piece.split_at(piece.len().min(room));
            if let Some(last) = all.last_mut() {
                last.push(now);
            }
            (piece, room) = (later, room - now.len());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_their_order_count() {
        let mut bytes = vec![0u8; 2 * PART_BYTES + 5];
        let of = |bytes: &[u8]| super::hash_pieces([bytes]);
        let zeros = of(&bytes);
        let (start, end) = bytes.split_at(PART_BYTES + 3);
        assert_eq!(super::hash_pieces([start, &[], end]), zeros);
        for at in [0, PART_BYTES - 1, PART_BYTES, 2 * PART_BYTES + 4] {
            bytes[at] = 1;
            assert_ne!(of(&bytes), zeros, "byte {at}");
            bytes[at] = 0;
        }
        assert_eq!(of(&bytes), zeros);
        assert_ne!(of(&bytes[1..]), zeros);
        bytes[0] = 1;
        let first = of(&bytes);
        bytes.swap(0, PART_BYTES);
        assert_ne!(of(&bytes), first);
    }
}
