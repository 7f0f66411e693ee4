//! Weights in an object file of any kind: LLVM's text has zeros in their place, and they are put into the file that it makes.
mod coff;
mod elf;
mod elf_link;
mod macho;
mod wasm;

use crate::diag::{Code, Error, Result};
use crate::target::{ObjectFormat, Target};
use crate::util::pieces::Pieces;
use bytes::Bytes;
use object::{Object as _, ObjectSymbol};
use std::fmt::Write;

pub use elf_link::{can_link, link_objects};

/// The alignment of weights in memory and, but for WebAssembly, in the file.
pub const ALIGN: u64 = 64;

/// Size of weights from which they get a section after all others: code and unwind tables use 32-bit offsets, which reach 2 GiB, and a
/// program may link several models.
const MOST_NEAR: u64 = 1 << 30;

/// The position of the weights in an object file.
struct Gap {
    /// Offset of the first byte of the weights.
    at: usize,
    /// The first byte of LLVM's file after them: the end of the file if they follow everything.
    rest: usize,
}

/// The LLVM text of a global with `bytes` zero bytes, which the weights later replace.
///
/// Errors: `Code::TooLarge` for more than the target's code reaches.
pub fn weights_global(symbol: &str, bytes: u64, target: &Target) -> Result<String> {
    let has_far = target.format() == ObjectFormat::Elf && elf::has_large_section(target.arch());
    if bytes > MOST_NEAR && !has_far {
        return Err(Error::user(
            Code::TooLarge,
            format!(
                "{bytes} bytes of constants are more than the {MOST_NEAR} that code for `{}` can have",
                target.triple
            ),
        ));
    }
    let mut place = match target.format() {
        ObjectFormat::Elf => elf::global_attributes(symbol, bytes, target.arch()),
        ObjectFormat::Coff => coff::section_name(symbol),
        ObjectFormat::MachO => macho::SECTION.to_string(),
        ObjectFormat::Wasm => wasm::section_name(symbol),
    };
    if !place.contains('"') {
        place = format!("\"{place}\"");
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "@{symbol} = hidden global [{} x i8] zeroinitializer, section {place}, align {ALIGN}",
        bytes.max(1)
    );
    Ok(text)
}

/// Whether a file has the expected object format.
pub fn is_of_format(made: &[u8], format: ObjectFormat) -> bool {
    match format {
        ObjectFormat::Elf => made.starts_with(elf::MAGIC),
        ObjectFormat::Coff => coff::is_coff(made),
        ObjectFormat::MachO => made.starts_with(macho::MAGIC),
        ObjectFormat::Wasm => made.starts_with(wasm::MAGIC),
    }
}

/// Inserts `weights`, each piece with its offset, in place of the `bytes` zeros of `symbol`.
///
/// Errors: an internal error if the object is not as LLVM makes them.
pub fn insert_weights(
    mut made: Vec<u8>,
    symbol: &str,
    bytes: u64,
    weights: impl Iterator<Item = (u64, Bytes)>,
    target: &Target,
) -> Result<Pieces> {
    let gap = match target.format() {
        ObjectFormat::Elf => {
            elf::set_weights_section(&mut made, elf::WeightsSection::for_bytes(bytes, target.arch()), symbol)?
        }
        ObjectFormat::Coff => coff::set_weights_section(&mut made, symbol).ok_or_else(missing)?,
        ObjectFormat::MachO => macho::set_weights_section(&mut made).ok_or_else(missing)?,
        ObjectFormat::Wasm => wasm::locate_weights(&made, symbol).ok_or_else(missing)?,
    };
    let rest = made.split_off(gap.rest);
    made.truncate(gap.at);
    let (mut content, start) = (Pieces::default(), gap.at as u64);
    content.push(made);
    content.fill(start);
    for (offset, data) in weights {
        content.fill(start + offset);
        content.push(data);
    }
    let end = start + bytes.max(1);
    content.fill(end);
    if content.len() != end {
        return Err(Error::internal("codegen", "weights beyond their section"));
    }
    if !rest.is_empty() {
        content.push(rest);
    }
    Ok(content)
}

/// The undefined symbols of an object.
pub fn undefined_symbols(made: &[u8], format: ObjectFormat) -> Result<Vec<String>> {
    if format == ObjectFormat::Wasm {
        return wasm::imported_functions(made).ok_or_else(missing);
    }
    let file = object::File::parse(made).map_err(|e| Error::internal("codegen", e.to_string()))?;
    let names = file.symbols().filter(|s| s.is_undefined()).filter_map(|s| s.name().ok().map(str::to_string));
    Ok(names
        .filter(|n| !n.is_empty())
        .map(|n| if format == ObjectFormat::MachO { n[1..].to_string() } else { n })
        .collect())
}

fn missing() -> Error {
    Error::internal("codegen", "the section of the weights is missing")
}

/// The position of weights that are appended to a file, aligned.
fn behind(made: &[u8]) -> Gap {
    Gap { at: made.len().next_multiple_of(ALIGN as usize), rest: made.len() }
}

/// The `N` bytes of a file at offset `at`.
fn bytes_at<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..)?.first_chunk().copied()
}

/// Reads a little-endian 32-bit number.
fn word(file: &[u8], at: usize) -> Option<usize> {
    bytes_at(file, at).map(|bytes| u32::from_le_bytes(bytes) as usize)
}

/// Overwrites bytes of a file.
fn put(file: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    file.get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
    Some(())
}
