//! Weights behind an object: LLVM leaves their section without bytes, as those of zeros are, and its header is told where they
//! lie. Fields and numbers are those of the System V ABI, chapter "Object Files".
use crate::diag::{Error, Result};
use object::{Object as _, ObjectSection};

/// How objects begin that this can be done to: ELF, 64 bits, least byte first.
pub const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// The alignment of weights in memory and in the file.
pub const WEIGHTS_ALIGN: u64 = 64;

/// Weights of more bytes lie in a section behind all others: code and unwind tables name other memory by offsets of 32 bits, which
/// reach 2 GiB, and a program may link several models.
pub const MOST_NEAR: u64 = 1 << 30;

/// The section of a model's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightsSection {
    /// How its name begins while it has no bytes: LLVM gives none to `.bss`.
    pub empty_prefix: &'static str,
    /// How its name begins in the end.
    prefix: &'static str,
    /// The flags of its header.
    flags: u64,
    /// What LLVM's text says of the global in it: how code finds its address.
    pub code_model: &'static str,
}

const NEAR: WeightsSection =
    WeightsSection { empty_prefix: ".bss.at.", prefix: ".rodata.", flags: SHF_ALLOC, code_model: "" };
/// On x86-64: linkers put it behind all other data, where addresses of 64 bits reach (x86-64 psABI, "Large models").
const LARGE_X86_64: WeightsSection = WeightsSection {
    empty_prefix: ".bss.far.",
    prefix: ".lrodata.",
    flags: SHF_ALLOC | SHF_X86_64_LARGE,
    code_model: ", code_model \"large\"",
};
/// On AArch64, whose code reaches 4 GiB but whose unwind tables reach 2: linkers put what may be written behind those.
const LARGE_AARCH64: WeightsSection =
    WeightsSection { empty_prefix: ".bss.l.", prefix: ".ldata.", flags: SHF_ALLOC | SHF_WRITE, code_model: "" };
const _: () = assert!(NEAR.empty_prefix.len() == NEAR.prefix.len());
const _: () = assert!(LARGE_X86_64.empty_prefix.len() == LARGE_X86_64.prefix.len());
const _: () = assert!(LARGE_AARCH64.empty_prefix.len() == LARGE_AARCH64.prefix.len());

impl WeightsSection {
    /// The section for so many bytes on the target `triple`.
    pub fn of(bytes: u64, triple: &str) -> Self {
        match bytes > MOST_NEAR {
            true if triple.starts_with("x86_64") => LARGE_X86_64,
            true if triple.starts_with("aarch64") => LARGE_AARCH64,
            _ => NEAR,
        }
    }
}

/// Where the header of the file says where the headers of sections begin, and which of them has the names.
const E_SHOFF: usize = 40;
const E_SHSTRNDX: usize = 62;
const SECTION_HEADER_BYTES: usize = 64;
const SH_NAME: usize = 0;
const SH_TYPE: usize = 4;
const SH_FLAGS: usize = 8;
const SH_OFFSET: usize = 24;
const SHT_PROGBITS: u32 = 1;
const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_X86_64_LARGE: u64 = 0x1000_0000;

/// Makes a section of weights out of the empty one of `name`: its bytes are only read, and are to be found at `offset` of the
/// file.
///
/// Errors: an internal error where the object is not as LLVM makes them.
pub fn place(object: &mut [u8], section: WeightsSection, name: &str, offset: u64) -> Result<()> {
    let odd = |why: &str| Error::internal("codegen", format!("the section of the weights {why}"));
    let parsed = object::File::parse(&*object).map_err(|e| odd(&e.to_string()))?;
    let found = parsed.section_by_name(&format!("{}{name}", section.empty_prefix)).ok_or_else(|| odd("is missing"))?;
    if found.kind() != object::SectionKind::UninitializedData || found.align() > WEIGHTS_ALIGN {
        return Err(odd("is of another kind"));
    }
    let index = found.index().0;
    drop(parsed);
    rename(object, index, section.prefix).ok_or_else(|| odd("has no name"))?;
    let at = header(object, index).ok_or_else(|| odd("has no header"))?;
    object[at + SH_TYPE..][..4].copy_from_slice(&SHT_PROGBITS.to_le_bytes());
    object[at + SH_FLAGS..][..8].copy_from_slice(&section.flags.to_le_bytes());
    object[at + SH_OFFSET..][..8].copy_from_slice(&offset.to_le_bytes());
    Ok(())
}

/// Writes `prefix` over the beginning of the name of section `index`.
fn rename(object: &mut [u8], index: usize, prefix: &str) -> Option<()> {
    let names = header(object, usize::from(u16::from_le_bytes(*object.get(E_SHSTRNDX..)?.first_chunk()?)))?;
    let names = word(object, names + SH_OFFSET)?;
    let own = u32::from_le_bytes(*object.get(header(object, index)? + SH_NAME..)?.first_chunk()?);
    let at = names.checked_add(own as usize)?;
    object.get_mut(at..at.checked_add(prefix.len())?)?.copy_from_slice(prefix.as_bytes());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::llvm;
    use crate::target::Target;
    use object::{ObjectSymbol, RelocationFlags, RelocationTarget};

    /// An offset of 32 bits from where it stands, one of 64 bits from the global offset table.
    const R_X86_64_PC32: u32 = 2;
    const R_X86_64_GOTOFF64: u32 = 25;

    /// The weights' section behind an object, its flags, and the kinds of relocation by which code names it.
    fn placed(bytes: u64) -> (String, u64, Vec<u32>) {
        let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64"), None).expect("a known target");
        let section = WeightsSection::of(bytes, &target.triple);
        let text = format!(
            "@m_weights = hidden global [{bytes} x i8] zeroinitializer, section \"{}m_weights\"{}, align 64\n\
             define ptr @f() {{\n  ret ptr @m_weights\n}}\n",
            section.empty_prefix, section.code_model
        );
        let mut made = llvm::object(&text, &target).expect("an object");
        place(&mut made, section, "m_weights", 1 << 20).expect("placed");
        let file = object::File::parse(&*made).expect("an object");
        let found = file.sections().find(|s| s.size() == bytes).expect("the weights");
        let object::SectionFlags::Elf { sh_flags, .. } = found.flags() else { panic!("no ELF") };
        let of_weights = |target: RelocationTarget| match target {
            RelocationTarget::Symbol(symbol) => file
                .symbol_by_index(symbol)
                .is_ok_and(|s| s.section_index() == Some(found.index()) || s.name() == Ok("m_weights")),
            _ => false,
        };
        let relocations = file.sections().flat_map(|s| s.relocations().collect::<Vec<_>>());
        let kind = |flags| if let RelocationFlags::Elf { r_type } = flags { r_type.0 } else { 0 };
        let kinds = relocations.filter(|(_, r)| of_weights(r.target())).map(|(_, r)| kind(r.flags())).collect();
        (found.name().expect("a name").to_string(), sh_flags.0, kinds)
    }

    #[test]
    fn small_weights_are_near() {
        assert_eq!(placed(MOST_NEAR), (".rodata.m_weights".to_string(), SHF_ALLOC, vec![R_X86_64_PC32]));
    }

    #[test]
    fn large_weights_are_out_of_the_way_of_offsets_of_32_bits() {
        let large = (".lrodata.m_weights".to_string(), SHF_ALLOC | SHF_X86_64_LARGE, vec![R_X86_64_GOTOFF64]);
        assert_eq!(placed(MOST_NEAR + 1), large);
    }
}
