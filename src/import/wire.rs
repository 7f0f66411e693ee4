//! Reader of the protobuf wire format, field by field from one block of bytes that is never copied.
use crate::diag::{Code, Error, Result};
use bytes::Bytes;

/// Maximum depth of nested messages; real files stay below 20.
const MOST_DEPTH: u32 = 64;

/// Reads the fields of one message in order.
#[derive(Clone)]
pub struct WireReader<'a> {
    file: &'a Bytes,
    data: &'a [u8],
    at: usize,
    message: &'static str,
    depth: u32,
}

/// One field of a message.
#[derive(Clone, Copy)]
pub struct WireField<'a> {
    /// The field's number.
    pub number: u32,
    /// The encoded value.
    pub value: WireValue<'a>,
    file: &'a Bytes,
    message: &'static str,
    depth: u32,
}

/// The encoded value of a field.
#[derive(Clone, Copy)]
pub enum WireValue<'a> {
    /// A variable-length integer: wire type 0.
    Varint(u64),
    /// Eight bytes: wire type 1.
    Fixed64(u64),
    /// Strings, bytes, messages and packed lists: wire type 2.
    Bytes(&'a [u8]),
    /// Four bytes: wire type 5.
    Fixed32(u32),
}

impl<'a> WireReader<'a> {
    /// A reader of `file` as one message, whose name is used in errors.
    pub fn new(file: &'a Bytes, message: &'static str) -> Self {
        WireReader { file, data: file, at: 0, message, depth: 0 }
    }
    /// The next field, or `None` at the end.
    ///
    /// # Errors
    /// `BadEncoding`.
    #[expect(clippy::should_implement_trait, reason = "an iterator of results reads worse in loops that return early")]
    pub fn next(&mut self) -> Result<Option<WireField<'a>>> {
        if self.at == self.data.len() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|n| (1..1 << 29).contains(n));
        let number = number.ok_or_else(|| self.bad("a field number is out of range"))?;
        let value = match tag & 7 {
            0 => WireValue::Varint(self.varint()?),
            1 => WireValue::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let n = self.varint()?;
                WireValue::Bytes(self.take(n)?)
            }
            5 => WireValue::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(self.bad("a wire type is unknown")),
        };
        Ok(Some(WireField { number, value, file: self.file, message: self.message, depth: self.depth }))
    }
    /// The number of remaining fields with this number, up to the first malformed one.
    pub fn count_fields(&self, number: u32) -> usize {
        let (mut rest, mut found) = (self.clone(), 0);
        while let Ok(Some(field)) = rest.next() {
            found += usize::from(field.number == number);
        }
        found
    }
    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let &byte = self.data.get(self.at).ok_or_else(|| self.bad("a number is cut short"))?;
            self.at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.bad("a number has more than ten bytes"))
    }
    fn take(&mut self, n: u64) -> Result<&'a [u8]> {
        let end = usize::try_from(n).ok().and_then(|n| self.at.checked_add(n)).filter(|&end| end <= self.data.len());
        let end = end.ok_or_else(|| self.bad("a field is longer than what holds it"))?;
        let part = &self.data[self.at..end];
        self.at = end;
        Ok(part)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }
    fn bad(&self, what: &str) -> Error {
        let at = self.data.as_ptr() as usize - self.file.as_ptr() as usize + self.at;
        Error::user(Code::BadEncoding, format!("{what} in a {} at byte {at}", self.message))
    }
}

impl<'a> WireField<'a> {
    /// The bytes of a string, bytes or message field.
    ///
    /// # Errors
    /// `Code::BadEncoding` where the field is something else, or is damaged.
    pub fn raw_bytes(&self) -> Result<&'a [u8]> {
        if let WireValue::Bytes(part) = self.value { Ok(part) } else { Err(self.wrong("bytes")) }
    }
    /// The bytes of a string, bytes or message field, sharing the file's memory.
    ///
    /// # Errors
    /// `Code::BadEncoding` where the field is something else, or is damaged.
    pub fn shared_bytes(&self) -> Result<Bytes> {
        Ok(self.file.slice_ref(self.raw_bytes()?))
    }
    /// A string.
    ///
    /// # Errors
    /// `Code::BadEncoding` where the field is something else, or is damaged.
    pub fn text(&self) -> Result<&'a str> {
        std::str::from_utf8(self.raw_bytes()?).map_err(|_| self.wrong("UTF-8 text"))
    }
    /// The integer in a varint field.
    ///
    /// # Errors
    /// `Code::BadEncoding` where the field is something else, or is damaged.
    pub fn varint(&self) -> Result<u64> {
        if let WireValue::Varint(v) = self.value { Ok(v) } else { Err(self.wrong("a number")) }
    }
    /// The integer in a varint field, truncated to 32 bits as everywhere in protobuf.
    ///
    /// # Errors
    /// `Code::BadEncoding` where the field is something else, or is damaged.
    pub fn int32(&self) -> Result<i32> {
        Ok(self.varint()? as i32)
    }
    /// A float.
    ///
    /// # Errors
    /// `Code::BadEncoding` where the field is something else, or is damaged.
    pub fn float(&self) -> Result<f32> {
        if let WireValue::Fixed32(v) = self.value { Ok(f32::from_bits(v)) } else { Err(self.wrong("a float")) }
    }
    /// A reader of the field as a message called `name` in errors.
    ///
    /// # Errors
    /// `Code::BadEncoding` where the field is something else, or is damaged.
    pub fn message(&self, name: &'static str) -> Result<WireReader<'a>> {
        if self.depth >= MOST_DEPTH {
            return Err(Error::user(Code::BadEncoding, format!("messages nest deeper than {MOST_DEPTH} levels")));
        }
        Ok(WireReader { file: self.file, data: self.raw_bytes()?, at: 0, message: name, depth: self.depth + 1 })
    }
    /// Calls `each` with every integer of a list, packed or not.
    ///
    /// # Errors
    /// `Code::BadEncoding` where the field is something else, or is damaged.
    pub fn for_each_number(&self, mut each: impl FnMut(u64)) -> Result<()> {
        let WireValue::Bytes(data) = self.value else {
            each(self.varint()?);
            return Ok(());
        };
        let mut packed = WireReader { file: self.file, data, at: 0, message: self.message, depth: self.depth };
        while packed.at < data.len() {
            each(packed.varint()?);
        }
        Ok(())
    }
    /// Calls `each` with every element of a list of numbers of `N` bytes, packed or not.
    ///
    /// # Errors
    /// `Code::BadEncoding` where the field is something else, or is damaged.
    pub fn for_each_fixed<const N: usize>(&self, mut each: impl FnMut([u8; N])) -> Result<()> {
        let mut out = [0; N];
        match self.value {
            WireValue::Bytes(data) => {
                let chunks = data.chunks_exact(N);
                if !chunks.remainder().is_empty() {
                    return Err(self.wrong("a whole number of elements"));
                }
                for chunk in chunks {
                    out.copy_from_slice(chunk);
                    each(out);
                }
            }
            WireValue::Fixed32(v) if N == 4 => {
                out.copy_from_slice(&v.to_le_bytes());
                each(out);
            }
            WireValue::Fixed64(v) if N == 8 => {
                out.copy_from_slice(&v.to_le_bytes());
                each(out);
            }
            WireValue::Fixed32(_) | WireValue::Fixed64(_) | WireValue::Varint(_) => {
                return Err(self.wrong("fixed-width numbers"));
            }
        }
        Ok(())
    }
    fn wrong(&self, want: &str) -> Error {
        Error::user(Code::BadEncoding, format!("field {} of a {} is not {want}", self.number, self.message))
    }
}

/// Appends a number as a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a varint field.
pub fn put_varint_field(out: &mut Vec<u8>, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, value);
}

/// Appends a string, bytes or message field.
pub fn put_bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}
