//! Weights in WebAssembly's objects: LLVM writes a segment of zeros, and they are put in its place. Sections and their numbers are
//! those of the WebAssembly specification ("Binary Format") and of tool-conventions ("Linking").
use super::Gap;

/// Magic number of WebAssembly modules.
pub const MAGIC: &[u8] = b"\0asm";
const HEADER_BYTES: usize = 8;
/// Section ids.
const CUSTOM: u8 = 0;
const IMPORTS: u8 = 2;
const DATA: u8 = 11;
/// Id of the subsection of the custom section `linking` that names data segments.
const SEGMENT_INFO: u8 = 5;

/// The name of the data segment for a model's weights.
pub fn section_name(symbol: &str) -> String {
    format!(".rodata.{symbol}")
}

/// Reader of a byte slice.
#[derive(Clone, Copy)]
struct Reader<'a> {
    file: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.file.get(..self.end)?.get(self.at)?;
        self.at += 1;
        Some(byte)
    }
    /// Reads an unsigned LEB128 number.
    fn number(&mut self) -> Option<usize> {
        let mut number = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(number).ok();
            }
        }
        None
    }
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        let bytes = self.file.get(..self.end)?.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(bytes)
    }
    /// Reads a section: its id and content.
    fn next_section(&mut self) -> Option<(u8, Reader<'a>)> {
        let kind = self.byte()?;
        let count = self.number()?;
        let end = self.at.checked_add(count).filter(|&end| end <= self.end)?;
        let part = Reader { end, ..*self };
        self.at = end;
        Some((kind, part))
    }
}

/// The sections with their ids.
fn sections(made: &[u8]) -> impl Iterator<Item = (u8, Reader<'_>)> {
    let mut all = Reader { file: made, at: HEADER_BYTES, end: made.len() };
    std::iter::from_fn(move || all.next_section())
}

/// Locates the zero bytes that the weights replace.
pub fn locate_weights(made: &[u8], symbol: &str) -> Option<Gap> {
    let wanted = section_name(symbol);
    let number = segments(made)?.into_iter().position(|name| name == wanted.as_bytes())?;
    let (_, mut data) = sections(made).find(|section| section.0 == DATA)?;
    data.number()?;
    for i in 0.. {
        // the memory is the first; its address is a constant and the end of an expression
        data.number()?;
        data.byte()?;
        data.number()?;
        data.byte()?;
        let content = data.bytes()?;
        if i == number {
            return Some(Gap { at: data.at - content.len(), rest: data.at });
        }
    }
    None
}

/// The names of data segments, in order.
fn segments(made: &[u8]) -> Option<Vec<&[u8]>> {
    let linking = sections(made).filter(|section| section.0 == CUSTOM).map(|section| section.1);
    let mut linking = linking.into_iter().find_map(|mut s| (s.bytes()? == b"linking").then_some(s))?;
    linking.number()?;
    let (_, mut info) = std::iter::from_fn(|| linking.next_section()).find(|part| part.0 == SEGMENT_INFO)?;
    let mut names = Vec::new();
    for _ in 0..info.number()? {
        names.push(info.bytes()?);
        // alignment and flags
        info.number()?;
        info.number()?;
    }
    Some(names)
}

/// The names of imported functions.
pub fn imported_functions(made: &[u8]) -> Option<Vec<String>> {
    let Some((_, mut all)) = sections(made).find(|section| section.0 == IMPORTS) else { return Some(Vec::new()) };
    let mut names = Vec::new();
    for _ in 0..all.number()? {
        all.bytes()?;
        let name = String::from_utf8_lossy(all.bytes()?).into_owned();
        match all.byte()? {
            0 => {
                all.number()?;
                names.push(name);
            }
            // a table has a type before its limits
            kind @ (1 | 2) => {
                if kind == 1 {
                    all.byte()?;
                }
                if all.number()? & 1 == 1 {
                    all.number()?;
                }
                all.number()?;
            }
            // a global's type, and whether it changes
            3 => {
                all.byte()?;
                all.byte()?;
            }
            _ => return None,
        }
    }
    Some(names)
}
