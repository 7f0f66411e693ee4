//! Tables of a bytecode file, to which everything else points.
use std::cell::Cell;

use super::cursor::Cursor;
use crate::diag::{Code, Error, Result};
use bytes::Bytes;

/// Newest version of the encoding that is supported.
const NEWEST: u64 = 6;
/// First version in which the names of dialects have a flag, followed by versions.
const DIALECT_VERSIONS: u64 = 1;
/// First version in which the names of operations are counted.
const COUNTED_OPERATIONS: u64 = 4;
/// First version in which operations have properties, and the names of operations a flag.
pub(super) const PROPERTIES: u64 = 5;

/// Upper limit of bytes of attributes and types that are read, counted at each use: only entries that reference each other repeatedly
/// need more.
const MOST_READ: u64 = 1 << 26;
/// Upper limit in bytes of constants that are encoded as one repeated element.
const MOST_REPEATED: u64 = 1 << 30;
/// Largest nesting depth of entries and regions.
pub(super) const MOST_DEPTH: usize = 64;

/// Encoded attribute or type.
#[derive(Clone)]
pub(super) struct EncodedEntry<'a> {
    /// Name of the dialect that defines the encoding.
    pub dialect: &'a str,
    /// Whether the encoding is the dialect's binary one, as opposed to text.
    pub custom: bool,
    /// Encoded content.
    pub data: Cursor<'a>,
}

/// Tables of strings, operations, attributes and types that operations point to.
pub(super) struct Tables<'a> {
    /// Version of the encoding.
    pub version: u64,
    strings: Vec<&'a str>,
    operations: Vec<String>,
    attributes: Vec<EncodedEntry<'a>>,
    types: Vec<EncodedEntry<'a>>,
    properties: Vec<Cursor<'a>>,
    read: Cell<u64>,
    repeated: Cell<u64>,
}

impl<'a> Tables<'a> {
    /// Reads the tables of a file, and returns them with its section of operations.
    pub fn read(file: &'a Bytes) -> Result<(Self, Cursor<'a>)> {
        let mut at = Cursor::new(file);
        let magic = at.sub_cursor(super::MAGIC.len() as u64)?;
        if magic.bytes() != super::MAGIC {
            return Err(at.error("this is no bytecode of MLIR"));
        }
        let version = at.number()?;
        let producer = at.text()?;
        if version > NEWEST {
            let told =
                format!("bytecode of version {version}, written by `{producer}`; versions up to {NEWEST} are read");
            return Err(Error::user(Code::HloUnsupported, told));
        }
        let mut sections: [Option<Cursor>; 9] = Default::default();
        while !at.at_end() {
            let (kind, data) = at.section()?;
            match sections.get_mut(usize::from(kind)) {
                Some(place @ None) => *place = Some(data),
                _ => return Err(at.error(format_args!("section {kind} is unknown or not the first of its kind"))),
            }
        }
        let [strings, dialects, entries, offsets, ir, .., properties] = sections;
        let missing = || at.error("a section is missing");
        let mut tables = Tables {
            version,
            strings: string_table(strings.ok_or_else(missing)?)?,
            operations: Vec::new(),
            attributes: Vec::new(),
            types: Vec::new(),
            properties: Vec::new(),
            read: Cell::new(0),
            repeated: Cell::new(0),
        };
        let dialects = tables.dialects(dialects.ok_or_else(missing)?)?;
        tables.entries(&dialects, entries.ok_or_else(missing)?, offsets.ok_or_else(missing)?)?;
        if let Some(mut all) = properties {
            let n = all.count()?;
            for _ in 0..n {
                let length = all.number()?;
                tables.properties.push(all.sub_cursor(length)?);
            }
        }
        Ok((tables, ir.ok_or_else(missing)?))
    }
    /// Reads the names of dialects, and also those of operations.
    fn dialects(&mut self, mut at: Cursor<'a>) -> Result<Vec<&'a str>> {
        let n = at.count()?;
        let mut dialects = Vec::with_capacity(n);
        for _ in 0..n {
            let (name, versioned) =
                if self.version < DIALECT_VERSIONS { (at.number()?, false) } else { at.number_with_flag()? };
            dialects.push(self.string(name, &at)?);
            if versioned {
                at.section()?;
            }
        }
        if self.version >= COUNTED_OPERATIONS {
            at.number()?;
        }
        while !at.at_end() {
            let (dialect, n) = (entry_at(&dialects, at.number()?, &at)?, at.count()?);
            for _ in 0..n {
                let name = if self.version < PROPERTIES { at.number()? } else { at.number_with_flag()?.0 };
                self.operations.push(format!("{dialect}.{}", self.string(name, &at)?));
            }
        }
        Ok(dialects)
    }
    /// Splits the encoded attributes, then types, by their sizes.
    fn entries(&mut self, dialects: &[&'a str], mut data: Cursor<'a>, mut at: Cursor<'a>) -> Result<()> {
        let counts = [at.number()?, at.number()?];
        for (all, count) in [&mut self.attributes, &mut self.types].into_iter().zip(counts) {
            let count = at.checked_count(count)?;
            while all.len() < count {
                let (dialect, n) = (*entry_at(dialects, at.number()?, &at)?, at.count()?);
                for _ in 0..n {
                    let (length, custom) = at.number_with_flag()?;
                    all.push(EncodedEntry { dialect, custom, data: data.sub_cursor(length)? });
                }
            }
        }
        Ok(())
    }
    /// String `index`; an error points to `at`.
    pub fn string(&self, index: u64, at: &Cursor) -> Result<&'a str> {
        entry_at(&self.strings, index, at).copied()
    }
    /// Name of operation `index`, with its dialect.
    pub fn operation(&self, index: u64, at: &Cursor) -> Result<&str> {
        entry_at(&self.operations, index, at).map(String::as_str)
    }
    /// Attribute `index`.
    pub fn attribute(&self, index: u64, at: &Cursor) -> Result<EncodedEntry<'a>> {
        self.entry(&self.attributes, index, at)
    }
    /// Type `index`.
    pub fn ty(&self, index: u64, at: &Cursor) -> Result<EncodedEntry<'a>> {
        self.entry(&self.types, index, at)
    }
    /// Properties with number `index`.
    pub fn property(&self, index: u64, at: &Cursor) -> Result<Cursor<'a>> {
        entry_at(&self.properties, index, at).cloned()
    }
    fn entry(&self, all: &[EncodedEntry<'a>], index: u64, at: &Cursor) -> Result<EncodedEntry<'a>> {
        let entry = entry_at(all, index, at)?;
        // The content of a constant is shared, not copied.
        let cost = 1 + entry.data.remaining().min(256) as u64;
        charge(&self.read, cost, MOST_READ, at)?;
        Ok(entry.clone())
    }
    /// Counts the bytes of a constant of one repeated element. Errors: `Code::TooLarge`.
    pub fn count_repeated_bytes(&self, bytes: u64, at: &Cursor) -> Result<()> {
        charge(&self.repeated, bytes, MOST_REPEATED, at)
    }
}

fn charge(spent: &Cell<u64>, cost: u64, most: u64, at: &Cursor) -> Result<()> {
    let all = spent.get().saturating_add(cost);
    spent.set(all);
    if all <= most {
        return Ok(());
    }
    Err(at.error("much more is meant than is written").map(|d| crate::diag::Diagnostic { code: Code::TooLarge, ..d }))
}

fn entry_at<'t, T>(all: &'t [T], index: u64, at: &Cursor) -> Result<&'t T> {
    let found = usize::try_from(index).ok().and_then(|i| all.get(i));
    found.ok_or_else(|| at.error(format_args!("entry {index} of {} is named", all.len())))
}

/// Reads the lengths from the last string to the first, then the strings, each with a trailing zero.
fn string_table(mut at: Cursor<'_>) -> Result<Vec<&str>> {
    let n = at.count()?;
    let lengths = (0..n).map(|_| at.number()).collect::<Result<Vec<_>>>()?;
    let mut all = Vec::with_capacity(n);
    for &length in lengths.iter().rev() {
        let bytes = at.sub_cursor(length)?.bytes();
        let text = bytes.strip_suffix(b"\0").and_then(|b| std::str::from_utf8(b).ok());
        // Opaque bytes are strings too, but are not used here.
        all.push(text.unwrap_or("\u{fffd}"));
    }
    Ok(all)
}
