//! Weights behind an object: LLVM leaves their section without bytes, as those of zeros are, and its header is told where they
//! lie. Fields and numbers are those of the System V ABI, chapter "Object Files".
use crate::diag::{Error, Result};
use object::{Object as _, ObjectSection};

/// How objects begin that this can be done to: ELF, 64 bits, least byte first.
pub const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// The alignment of weights in memory and in the file.
pub const WEIGHTS_ALIGN: u64 = 64;

/// How the name of the weights' section begins while it has no bytes: LLVM gives none to `.bss`.
pub const EMPTY_PREFIX: &str = ".bss.at.";
/// How it begins in the end.
const PREFIX: &str = ".rodata.";
const _: () = assert!(EMPTY_PREFIX.len() == PREFIX.len());

/// Where the header of the file says where the headers of sections begin, and which of them has the names.
const E_SHOFF: usize = 40;
const E_SHSTRNDX: usize = 62;
const SECTION_HEADER_BYTES: usize = 64;
const SH_NAME: usize = 0;
const SH_TYPE: usize = 4;
const SH_FLAGS: usize = 8;
const SH_OFFSET: usize = 24;
const SHT_PROGBITS: u32 = 1;
const SHF_ALLOC: u64 = 2;

/// Makes a section of weights out of the one called [`EMPTY_PREFIX`] and `name`: its bytes are only read, and are to be found
/// at `offset` of the file.
///
/// Errors: an internal error where the object is not as LLVM makes them.
pub fn place(object: &mut [u8], name: &str, offset: u64) -> Result<()> {
    let odd = |why: &str| Error::internal("codegen", format!("the section of the weights {why}"));
    let parsed = object::File::parse(&*object).map_err(|e| odd(&e.to_string()))?;
    let found = parsed.section_by_name(&format!("{EMPTY_PREFIX}{name}")).ok_or_else(|| odd("is missing"))?;
    if found.kind() != object::SectionKind::UninitializedData || found.align() > WEIGHTS_ALIGN {
        return Err(odd("is of another kind"));
    }
    let index = found.index().0;
    drop(parsed);
    rename(object, index).ok_or_else(|| odd("has no name"))?;
    let at = header(object, index).ok_or_else(|| odd("has no header"))?;
    object[at + SH_TYPE..][..4].copy_from_slice(&SHT_PROGBITS.to_le_bytes());
    object[at + SH_FLAGS..][..8].copy_from_slice(&SHF_ALLOC.to_le_bytes());
    object[at + SH_OFFSET..][..8].copy_from_slice(&offset.to_le_bytes());
    Ok(())
}

/// Writes [`PREFIX`] over the beginning of the name of section `index`.
fn rename(object: &mut [u8], index: usize) -> Option<()> {
    let names = header(object, usize::from(u16::from_le_bytes(*object.get(E_SHSTRNDX..)?.first_chunk()?)))?;
    let names = word(object, names + SH_OFFSET)?;
    let own = u32::from_le_bytes(*object.get(header(object, index)? + SH_NAME..)?.first_chunk()?);
    let at = names.checked_add(own as usize)?;
    object.get_mut(at..at.checked_add(PREFIX.len())?)?.copy_from_slice(PREFIX.as_bytes());
    Some(())
}

/// Where the header of section `index` is, whole.
fn header(object: &[u8], index: usize) -> Option<usize> {
    let at = word(object, E_SHOFF)?.checked_add(index.checked_mul(SECTION_HEADER_BYTES)?)?;
    (at.checked_add(SECTION_HEADER_BYTES)? <= object.len()).then_some(at)
}

/// Eight bytes at `at` as a number.
fn word(object: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(*object.get(at..)?.first_chunk()?)).ok()
}
