//! CRC-32C (Castagnoli), and the masked form that TensorFlow and LevelDB store.

/// The reflected polynomial 0x1edc6f41.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Table `k` holds the remainder of byte `b` followed by `k` zero bytes.
const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut b = 0;
    while b < 256 {
        let mut r = b as u32;
        let mut bit = 0;
        while bit < 8 {
            r = if r & 1 == 1 { (r >> 1) ^ POLYNOMIAL } else { r >> 1 };
            bit += 1;
        }
        tables[0][b] = r;
        b += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut b = 0;
        while b < 256 {
            let r = tables[k - 1][b];
            tables[k][b] = (r >> 8) ^ tables[0][(r & 0xff) as usize];
            b += 1;
        }
        k += 1;
    }
    tables
}

/// The checksum of the concatenation of `parts`.
pub fn crc32c(parts: &[&[u8]]) -> u32 {
    let mut crc = !0u32;
    for part in parts {
        let mut chunks = part.chunks_exact(8);
        for c in &mut chunks {
            let low = crc ^ u32::from_le_bytes([c[0], c[1], c[2], c[3]]);
            let high = u32::from_le_bytes([c[4], c[5], c[6], c[7]]);
            let mut next = 0;
            for (i, word) in [low, high].into_iter().enumerate() {
                for (j, byte) in word.to_le_bytes().into_iter().enumerate() {
                    next ^= TABLES[7 - 4 * i - j][byte as usize];
                }
            }
            crc = next;
        }
        for &byte in chunks.remainder() {
            crc = (crc >> 8) ^ TABLES[0][((crc ^ u32::from(byte)) & 0xff) as usize];
        }
    }
    !crc
}

/// Whether `stored`, a checksum in LevelDB's masked form, is that of `parts`.
pub fn matches_masked(stored: u32, parts: &[&[u8]]) -> bool {
    stored == crc32c(parts).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn known_sums() {
        // RFC 3720, B.4, and the usual check value.
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 20], &[0xff; 12]]), 0x62a8_ab43);
    }
}
