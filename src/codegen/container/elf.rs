//! Weights in ELF's objects: LLVM leaves their section without bytes, as those of zeros are, and its header is told where they
//! lie. Fields and numbers are those of the System V ABI, chapter "Object Files".
use super::{Gap, MOST_NEAR, behind, bytes_at, put};
use crate::diag::{Error, Result};
use crate::target::Arch;
use object::{Object as _, ObjectSection};

/// Magic number of ELF files.
pub const MAGIC: &[u8] = b"\x7fELF";

/// A kind of ELF section for a model's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightsSection {
    /// Prefix of the section's name while it is empty; LLVM gives `.bss` no bytes.
    empty_prefix: &'static str,
    /// Prefix of the section's name in the finished object.
    prefix: &'static str,
    /// The flags in the section header.
    flags: u32,
    /// The code-model attribute of the global in LLVM's text, which decides how code forms its address; empty for the default.
    code_model: &'static str,
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

/// Whether an architecture has a section kind for more than [`MOST_NEAR`] bytes.
pub fn has_large_section(arch: Arch) -> bool {
    matches!(arch, Arch::X86_64 | Arch::Aarch64)
}

/// The global's section and code model as LLVM's text spells them, for weights of `bytes` bytes.
pub fn global_attributes(symbol: &str, bytes: u64, arch: Arch) -> String {
    let section = WeightsSection::for_bytes(bytes, arch);
    format!("\"{}{symbol}\"{}", section.empty_prefix, section.code_model)
}

impl WeightsSection {
    /// The section kind for weights of so many bytes.
    pub fn for_bytes(bytes: u64, arch: Arch) -> Self {
        match bytes > MOST_NEAR {
            true if arch == Arch::X86_64 => LARGE_X86_64,
            true if arch == Arch::Aarch64 => LARGE_AARCH64,
            _ => NEAR,
        }
    }
}

/// Offset of the byte that gives the address width (`EI_CLASS`), and its value for 64 bits.
const EI_CLASS: usize = 4;
const ELFCLASS64: u8 = 2;
const SH_NAME: usize = 0;
const SH_TYPE: usize = 4;
const SH_FLAGS: usize = 8;
const SHT_PROGBITS: u32 = 1;
const SHF_WRITE: u32 = 1;
const SHF_ALLOC: u32 = 2;
const SHF_X86_64_LARGE: u32 = 0x1000_0000;

/// Offsets and widths of ELF header fields that depend on the address width.
struct Layout {
    /// Offset of the file header's field with the offset of section headers, and of the index of the names' section.
    e_shoff: usize,
    e_shstrndx: usize,
    section_header_bytes: usize,
    sh_offset: usize,
    address_bytes: usize,
}

const OF_32_BITS: Layout =
    Layout { e_shoff: 32, e_shstrndx: 50, section_header_bytes: 40, sh_offset: 16, address_bytes: 4 };
const OF_64_BITS: Layout =
    Layout { e_shoff: 40, e_shstrndx: 62, section_header_bytes: 64, sh_offset: 24, address_bytes: 8 };

/// Turns the empty section of `symbol` into one of read-only weights, whose bytes follow the file.
///
/// Errors: an internal error if the object is not as LLVM makes them.
pub fn set_weights_section(object: &mut [u8], section: WeightsSection, symbol: &str) -> Result<Gap> {
    let odd = |why: &str| Error::internal("codegen", format!("the section of the weights {why}"));
    let parsed = object::File::parse(&*object).map_err(|e| odd(&e.to_string()))?;
    let found =
        parsed.section_by_name(&format!("{}{symbol}", section.empty_prefix)).ok_or_else(|| odd("is missing"))?;
    if found.kind() != object::SectionKind::UninitializedData || found.align() > super::ALIGN {
        return Err(odd("is of another kind"));
    }
    let index = found.index().0;
    drop(parsed);
    let layout = if object.get(EI_CLASS) == Some(&ELFCLASS64) { OF_64_BITS } else { OF_32_BITS };
    let gap = behind(object);
    layout.place(object, index, section, gap.at).ok_or_else(|| odd("has no header"))?;
    Ok(gap)
}

impl Layout {
    /// Gives section `index` its name, its kind, and its bytes at `offset` of the file.
    fn place(&self, object: &mut [u8], index: usize, section: WeightsSection, offset: usize) -> Option<()> {
        let names = self.header(object, usize::from(u16::from_le_bytes(bytes_at(object, self.e_shstrndx)?)))?;
        let names = self.address(object, names + self.sh_offset)?;
        let at = self.header(object, index)?;
        let own = u32::from_le_bytes(bytes_at(object, at + SH_NAME)?) as usize;
        put(object, names.checked_add(own)?, section.prefix.as_bytes())?;
        put(object, at + SH_TYPE, &SHT_PROGBITS.to_le_bytes())?;
        put(object, at + SH_FLAGS, &u64::from(section.flags).to_le_bytes()[..self.address_bytes])?;
        put(object, at + self.sh_offset, &(offset as u64).to_le_bytes()[..self.address_bytes])
    }

    /// The offset of the header of section `index`, if all of it is there.
    fn header(&self, object: &[u8], index: usize) -> Option<usize> {
        let at = self.address(object, self.e_shoff)?.checked_add(index.checked_mul(self.section_header_bytes)?)?;
        (at.checked_add(self.section_header_bytes)? <= object.len()).then_some(at)
    }

    /// Reads an address-sized field at offset `at`.
    fn address(&self, object: &[u8], at: usize) -> Option<usize> {
        let mut bytes = [0; 8];
        bytes[..self.address_bytes].copy_from_slice(object.get(at..at.checked_add(self.address_bytes)?)?);
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    }
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
        let text = super::super::weights_global("m_weights", bytes, &target).expect("it is in reach")
            + "define ptr @f() {\n  ret ptr @m_weights\n}\n";
        let mut made = llvm::compile_object(&text, &target).expect("an object");
        set_weights_section(&mut made, WeightsSection::for_bytes(bytes, target.arch()), "m_weights").expect("placed");
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
        assert_eq!(placed(MOST_NEAR), (".rodata.m_weights".to_string(), SHF_ALLOC.into(), vec![R_X86_64_PC32]));
    }

    #[test]
    fn large_weights_are_out_of_the_way_of_offsets_of_32_bits() {
        let large =
            (".lrodata.m_weights".to_string(), u64::from(SHF_ALLOC | SHF_X86_64_LARGE), vec![R_X86_64_GOTOFF64]);
        assert_eq!(placed(MOST_NEAR + 1), large);
    }
}
