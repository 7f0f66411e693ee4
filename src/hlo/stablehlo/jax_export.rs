//! Reader of files from `jax.export.Exported.serialize()`: a flatbuffer that contains a module in bytecode.
//!
//! Only the platforms and the module are read; types, trees and shardings serve JAX, and are in the module as well. Source:
//! JAX's `serialization.fbs`, versions 1 to 11.
use super::bytecode;
use bytes::Bytes;

/// Indices of fields in the table's list of offsets.
mod field {
    pub const PLATFORMS: usize = 9;
    pub const MODULE: usize = 13;
}

/// Upper limit of platforms of a program.
const MOST_PLATFORMS: usize = 64;

/// Fields of an exported function that are used.
pub(super) struct Exported {
    /// Platforms that the module supports, such as `cpu`.
    pub platforms: Vec<String>,
    /// Module in bytecode.
    pub module: Bytes,
}

impl Exported {
    /// Reads an exported function; `None` for other bytes.
    pub fn read(bytes: &Bytes) -> Option<Exported> {
        let root = FlatTable::parse_at(bytes, offset(bytes, 0)?)?;
        let (start, length) = root.vector(field::MODULE)?;
        let module = bytes.slice(start..start.checked_add(length).filter(|&end| end <= bytes.len())?);
        if !bytecode::is_bytecode(&module) {
            return None;
        }
        let mut platforms = Vec::new();
        if let Some((start, count)) = root.vector(field::PLATFORMS) {
            for i in 0..count.min(MOST_PLATFORMS) {
                let (at, length) = vector(bytes, start.checked_add(4 * i)?)?;
                let text = bytes.get(at..at.checked_add(length)?)?;
                platforms.push(String::from_utf8_lossy(text).into_owned());
            }
        }
        Some(Exported { platforms, module })
    }
}

/// Integer at offset `at`.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

/// Target of the forward offset at `at`.
fn offset(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(usize::try_from(number(bytes, at)?).ok()?)
}

/// First element and length of the list to which the offset at `at` points.
fn vector(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let list = offset(bytes, at)?;
    Some((list.checked_add(4)?, usize::try_from(number(bytes, list)?).ok()?))
}

/// A FlatBuffers table: its offset, and that of its list of field offsets.
struct FlatTable<'a> {
    bytes: &'a [u8],
    at: usize,
    fields: usize,
}

impl<'a> FlatTable<'a> {
    fn parse_at(bytes: &'a [u8], at: usize) -> Option<Self> {
        // The list of offsets may lie before the table or behind it.
        let distance = number(bytes, at)? as i32;
        let fields = usize::try_from(i64::try_from(at).ok()? - i64::from(distance)).ok()?;
        Some(FlatTable { bytes, at, fields })
    }
    /// First element and length of the list in field `n`.
    fn vector(&self, n: usize) -> Option<(usize, usize)> {
        let short = |at: usize| -> Option<usize> {
            let two = self.bytes.get(at..at.checked_add(2)?)?;
            Some(usize::from(u16::from_le_bytes(two.try_into().ok()?)))
        };
        // The list of offsets begins with its own size and the table's.
        let place = 4 + 2 * n;
        if place + 2 > short(self.fields)? {
            return None;
        }
        match short(self.fields.checked_add(place)?)? {
            0 => None,
            inside => vector(self.bytes, self.at.checked_add(inside)?),
        }
    }
}
