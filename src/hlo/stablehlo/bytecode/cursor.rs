//! Cursor in bytecode, with the integer encodings of MLIR.
use crate::diag::{Code, Error, Result};
use bytes::Bytes;

/// Part of a file, with the position up to which it was read.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    file: &'a Bytes,
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Cursor at the start of a file.
    pub fn new(file: &'a Bytes) -> Self {
        Cursor { file, at: 0, end: file.len() }
    }
    /// Whether the end is reached.
    pub fn at_end(&self) -> bool {
        self.at == self.end
    }
    /// Number of bytes left.
    pub fn remaining(&self) -> usize {
        self.end - self.at
    }
    /// Error at the current position.
    pub fn error(&self, what: impl std::fmt::Display) -> Error {
        Error::user(Code::BadEncoding, format!("{what} at byte {} of the bytecode", self.at))
    }
    /// Reads a byte.
    pub fn byte(&mut self) -> Result<u8> {
        if self.at_end() {
            return Err(self.error("the bytecode is cut short"));
        }
        self.at += 1;
        Ok(self.file[self.at - 1])
    }
    /// Splits off the next `n` bytes as a cursor of their own.
    pub fn sub_cursor(&mut self, n: u64) -> Result<Cursor<'a>> {
        let n = usize::try_from(n).ok().filter(|&n| n <= self.remaining());
        let n = n.ok_or_else(|| self.error("a part is longer than what holds it"))?;
        let part = Cursor { file: self.file, at: self.at, end: self.at + n };
        self.at += n;
        Ok(part)
    }
    /// Bytes left, sharing the file's memory.
    pub fn remaining_bytes(&self) -> Bytes {
        self.file.slice(self.at..self.end)
    }
    /// Bytes left.
    pub fn bytes(&self) -> &'a [u8] {
        &self.file[self.at..self.end]
    }
    /// Reads a variable-width integer: the number of low zero bits of its first byte is the number of further bytes; eight follow a zero
    /// byte.
    pub fn number(&mut self) -> Result<u64> {
        let first = self.byte()?;
        let more = first.trailing_zeros().min(8);
        let mut value = [0; 16];
        value[0] = first;
        for place in &mut value[1..=more as usize] {
            *place = self.byte()?;
        }
        // All bits of a first byte without a one are zeros that count.
        Ok((u128::from_le_bytes(value) >> (more + 1).min(8)) as u64)
    }
    /// Reads an integer whose lowest bit is its sign.
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
    /// Reads an integer with a flag in its lowest bit.
    pub fn number_with_flag(&mut self) -> Result<(u64, bool)> {
        let value = self.number()?;
        Ok((value >> 1, value & 1 == 1))
    }
    /// Reads a count of items that take at least a byte each.
    pub fn count(&mut self) -> Result<usize> {
        let n = self.number()?;
        self.checked_count(n)
    }
    /// Checks that `n` items of at least one byte each remain.
    pub fn checked_count(&self, n: u64) -> Result<usize> {
        let n = usize::try_from(n).ok().filter(|&n| n <= self.remaining());
        n.ok_or_else(|| self.error("a list is longer than what holds it"))
    }
    /// Reads signed integers preceded by their count.
    pub fn signed_list(&mut self) -> Result<Vec<i64>> {
        let n = self.count()?;
        (0..n).map(|_| self.signed()).collect()
    }
    /// Reads text up to a zero byte.
    pub fn text(&mut self) -> Result<&'a str> {
        let rest = self.bytes();
        let length = rest.iter().position(|&b| b == 0).ok_or_else(|| self.error("a string does not end"))?;
        let text = std::str::from_utf8(&rest[..length]).map_err(|_| self.error("a string is not UTF-8"))?;
        self.at += length + 1;
        Ok(text)
    }
    /// Reads a section: its number and content.
    pub fn section(&mut self) -> Result<(u8, Cursor<'a>)> {
        let kind = self.byte()?;
        let length = self.number()?;
        if kind & 0x80 != 0 {
            let alignment = self.number()?;
            if !alignment.is_power_of_two() {
                return Err(self.error("an alignment is no power of two"));
            }
            while !(self.at as u64).is_multiple_of(alignment) {
                self.byte()?;
            }
        }
        Ok((kind & 0x7f, self.sub_cursor(length)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<u64> {
        let file = Bytes::copy_from_slice(bytes);
        Cursor::new(&file).number().ok()
    }

    #[test]
    fn numbers_have_a_length_in_their_first_byte() {
        assert_eq!(read(&[0x0b]), Some(5));
        assert_eq!(read(&[0xff]), Some(127));
        assert_eq!(read(&[0x02, 0x02]), Some(128));
        assert_eq!(read(&[0x46, 0x02]), Some(0x91));
        assert_eq!(read(&[0x80, 1, 2, 3, 4, 5, 6, 7]), Some(0x0007_0605_0403_0201));
        assert_eq!(read(&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), Some(u64::MAX));
        assert_eq!(read(&[0, 1, 2]), None);
        assert_eq!(read(&[]), None);
    }
}
