//! LevelDB's table format, in which a checkpoint's index is stored: sorted keys in blocks, a block that lists the blocks, a footer.
//!
//! Source: LevelDB's `doc/table_format.md`.
use super::crc32c;
use crate::diag::{Code, Diagnostic, Error, Result};
use bytes::Bytes;

/// Magic number in the last eight bytes of a table.
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// Size of the footer: two handles of at most 20 bytes each, and the magic number.
const FOOTER_BYTES: usize = 48;
/// Size of the type and checksum behind a block.
const TRAILER_BYTES: usize = 5;

/// All keys with their values, in the file's order. Errors: `BadEncoding` for a damaged file, `UnsupportedCase` for compressed blocks,
/// which TensorFlow does not write.
pub fn read_entries(file: &Bytes) -> Result<Vec<(Vec<u8>, Bytes)>> {
    let footer = file.len().checked_sub(FOOTER_BYTES).map(|at| &file[at..]);
    let footer = footer.ok_or_else(|| bad("the index is shorter than its footer"))?;
    let mut tail = Cursor { bytes: footer, at: 0 };
    tail.handle()?;
    let index = tail.handle()?;
    let magic: [u8; 8] = footer[40..].try_into().map_err(|_| bad("the index has no magic number"))?;
    if u64::from_le_bytes(magic) != MAGIC {
        return Err(bad("the index does not end as a table does"));
    }
    let mut all = Vec::new();
    for (_, handle) in block(file, index)? {
        let place = Cursor { bytes: &handle, at: 0 }.handle()?;
        all.extend(block(file, place)?);
    }
    Ok(all)
}

fn bad(what: &str) -> Error {
    Error::user(Code::BadEncoding, what)
}

/// Decodes the varint at the beginning of `bytes`, and returns its value and its number of bytes; `None` if it is truncated.
pub fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut cursor = Cursor { bytes, at: 0 };
    Some((cursor.varint().ok()?, cursor.at))
}

/// Position of a block in the file.
struct Handle {
    offset: usize,
    /// Number of bytes without the trailer.
    size: usize,
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or_else(|| bad("a number of the index is cut short"))?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(bad("a number of the index is too long"))
    }
    fn size(&mut self) -> Result<usize> {
        usize::try_from(self.varint()?).map_err(|_| bad("a size of the index is too large"))
    }
    fn handle(&mut self) -> Result<Handle> {
        Ok(Handle { offset: self.size()?, size: self.size()? })
    }
}

/// Decodes the entries of one block, in which a key is stored as a shared prefix of the previous key and a suffix.
fn block(file: &Bytes, Handle { offset, size }: Handle) -> Result<Vec<(Vec<u8>, Bytes)>> {
    let end = offset.checked_add(size).filter(|e| e.checked_add(TRAILER_BYTES).is_some_and(|e| e <= file.len()));
    let end = end.ok_or_else(|| bad("a block of the index lies outside of it"))?;
    let (content, kind) = (file.slice(offset..end), file[end]);
    let stored = [file[end + 1], file[end + 2], file[end + 3], file[end + 4]];
    if !crc32c::matches_masked(u32::from_le_bytes(stored), &[&content, &[kind]]) {
        return Err(bad("a block of the index has a wrong checksum"));
    }
    if kind != 0 {
        return Err(Diagnostic::new(Code::UnsupportedCase, "the checkpoint's index is compressed")
            .help("TensorFlow writes it uncompressed; save the model again with it")
            .into());
    }
    let count = content.len().checked_sub(4).map(|at| &content[at..]);
    let count = count.and_then(|c| Some(u32::from_le_bytes(c.try_into().ok()?) as usize));
    let entries_end = count.and_then(|n| content.len().checked_sub(n.checked_mul(4)?.checked_add(4)?));
    let entries_end = entries_end.ok_or_else(|| bad("a block of the index has no list of restarts"))?;
    let mut cursor = Cursor { bytes: &content[..entries_end], at: 0 };
    let (mut all, mut key): (Vec<(Vec<u8>, Bytes)>, Vec<u8>) = (Vec::new(), Vec::new());
    while cursor.at < entries_end {
        let (shared, own, length) = (cursor.size()?, cursor.size()?, cursor.size()?);
        let key_end = cursor.at.checked_add(own).filter(|&e| e <= entries_end && shared <= key.len());
        let key_end = key_end.ok_or_else(|| bad("a key of the index is cut short"))?;
        let value_end = key_end.checked_add(length).filter(|&e| e <= entries_end);
        let value_end = value_end.ok_or_else(|| bad("a value of the index is cut short"))?;
        key.truncate(shared);
        key.extend_from_slice(&content[cursor.at..key_end]);
        all.push((key.clone(), content.slice(key_end..value_end)));
        cursor.at = value_end;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_tables_are_refused() {
        for bytes in [&[][..], &[0; 47], &[0; 48], &[0xff; 200]] {
            assert!(read_entries(&Bytes::copy_from_slice(bytes)).is_err());
        }
    }
}
