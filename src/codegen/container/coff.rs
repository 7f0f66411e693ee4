//! Weights in Windows's objects: LLVM leaves a section of zeros without bytes, as uninitialized data, and its header is told where
//! they lie. Fields and numbers are those of Microsoft's "PE Format".
use super::{Gap, behind, bytes_at, put, word};

/// Size of the COFF file header in bytes; the constants after it are the offsets of its fields for the number of sections, the symbol table
/// and the number of symbols.
const HEADER_BYTES: usize = 20;
const MACHINES: [u16; 2] = [0x8664, 0xaa64];
const SECTIONS: usize = 2;
const SYMBOLS_AT: usize = 8;
const SYMBOLS: usize = 12;
const SYMBOL_BYTES: usize = 18;
/// Size of a section header in bytes, and of the name in it.
const SECTION_BYTES: usize = 40;
const NAME_BYTES: usize = 8;
const POINTER_TO_RAW_DATA: usize = 20;
const CHARACTERISTICS: usize = 36;
/// Section flags: initialized data, aligned to 64 bytes, read-only.
const READ_ONLY: u32 = 0x40 | 0x0070_0000 | 0x4000_0000;

/// The name of the section for a model's weights: linkers place it among the constants and drop the suffix after `$`.
pub fn section_name(symbol: &str) -> String {
    format!(".rdata${symbol}")
}

/// Whether a file is a COFF object for a supported processor.
pub fn is_coff(made: &[u8]) -> bool {
    bytes_at(made, 0).is_some_and(|bytes| MACHINES.contains(&u16::from_le_bytes(bytes)))
}

/// Turns the empty section that LLVM emitted into one with the weights, whose bytes follow the file.
pub fn set_weights_section(made: &mut [u8], symbol: &str) -> Option<Gap> {
    let wanted = section_name(symbol);
    let count = usize::from(u16::from_le_bytes(bytes_at(made, SECTIONS)?));
    let texts = word(made, SYMBOLS_AT)?.checked_add(word(made, SYMBOLS)?.checked_mul(SYMBOL_BYTES)?)?;
    let mut headers = (0..count).map(|i| HEADER_BYTES + i * SECTION_BYTES);
    let at = headers.find(|&at| name(made, at, texts).is_some_and(|name| name == wanted.as_bytes()))?;
    let gap = behind(made);
    put(made, at + POINTER_TO_RAW_DATA, &u32::try_from(gap.at).ok()?.to_le_bytes())?;
    put(made, at + CHARACTERISTICS, &READ_ONLY.to_le_bytes())?;
    Some(gap)
}

/// The name of a section, from its header or, for longer names (`/` and an offset), from the string table.
fn name(made: &[u8], header: usize, texts: usize) -> Option<&[u8]> {
    let short = made.get(header..header + NAME_BYTES)?;
    let until_zero = |bytes: &'_ [u8]| bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let short = &short[..until_zero(short)];
    let Some(number) = short.strip_prefix(b"/") else { return Some(short) };
    let from = texts.checked_add(std::str::from_utf8(number).ok()?.parse().ok()?)?;
    let rest = made.get(from..)?;
    Some(&rest[..until_zero(rest)])
}
