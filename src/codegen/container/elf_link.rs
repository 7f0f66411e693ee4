//! Several ELF objects as one, as linkers do with `-r`: sections of one name lie one behind the other, and what one object takes from
//! another is the symbol of that. What the others define is nobody's but the first one's: its symbols become local.
use crate::diag::{Error, Result};
use crate::target::{Arch, ObjectFormat, Target};
use object::elf::{SHF_ALLOC, SHF_MERGE, SHF_STRINGS, STB_LOCAL, STV_DEFAULT, SymbolInfo, SymbolOther};
use object::read::{File, Relocation, RelocationTarget, Section, SectionIndex, Symbol, SymbolIndex};
use object::write::{self, SectionId, SymbolId};
use object::{
    Object as _, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};
use std::collections::HashMap;
use std::fmt::Display;

/// The position of an input section in the linked object.
#[derive(Clone, Copy)]
struct SectionPosition {
    section: SectionId,
    offset: u64,
}

/// A symbol of an input object as a symbol of the joined object, and an offset in bytes from that.
type SymbolOffset = (SymbolId, u64);

/// Whether objects for a target can be linked here: ELF, with relocations that have explicit addends and name a symbol each.
pub fn can_link(target: &Target) -> bool {
    target.format() == ObjectFormat::Elf && matches!(target.arch(), Arch::X86_64 | Arch::Aarch64)
}

/// Links `parts` into one object; a single one is returned unchanged.
///
/// Errors: internal, if they are not as LLVM makes them.
pub fn link_objects(mut parts: Vec<Vec<u8>>) -> Result<Vec<u8>> {
    match parts.len() {
        1 => Ok(parts.remove(0)),
        _ => join(&parts),
    }
}

fn join(parts: &[Vec<u8>]) -> Result<Vec<u8>> {
    let parsed: Vec<File> = parts.iter().map(|part| File::parse(&part[..]).map_err(odd)).collect::<Result<_>>()?;
    let first = parsed.first().ok_or_else(|| odd("there is none"))?;
    let mut whole = LinkedObject::new(first)?;
    let mut places = Vec::new();
    for (i, part) in parsed.iter().enumerate() {
        places.push(whole.sections(part, i == 0)?);
    }
    // those that define come first, so that what names them finds them
    let mut symbols: Vec<HashMap<SymbolIndex, SymbolOffset>> = parsed.iter().map(|_| HashMap::new()).collect();
    for defined in [true, false] {
        for (i, part) in parsed.iter().enumerate() {
            for symbol in part.symbols().filter(|s| s.is_undefined() != defined) {
                if let Some(found) = whole.symbol(&symbol, &places[i], i == 0)? {
                    symbols[i].insert(symbol.index(), found);
                }
            }
        }
    }
    for (i, part) in parsed.iter().enumerate() {
        for section in part.sections() {
            let Some(&place) = places[i].get(&section.index()) else { continue };
            for (offset, relocation) in section.relocations() {
                whole.relocation(place, offset, &relocation, &symbols[i])?;
            }
        }
    }
    whole.object.write().map_err(odd)
}

/// The linked object under construction.
struct LinkedObject {
    object: write::Object<'static>,
    sections: HashMap<String, SectionId>,
    /// Symbols that one input may take from another.
    seen: HashMap<String, SymbolId>,
}

impl LinkedObject {
    fn new(first: &File) -> Result<LinkedObject> {
        let mut object = write::Object::new(first.format(), first.architecture(), first.endianness());
        object.flags = first.flags();
        Ok(LinkedObject { object, sections: HashMap::new(), seen: HashMap::new() })
    }

    /// Adds the sections that are loaded; of others those of the first object.
    fn sections(&mut self, part: &File, is_first: bool) -> Result<HashMap<SectionIndex, SectionPosition>> {
        let mut places = HashMap::new();
        for section in part.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return Err(odd("is no ELF")) };
            let is_loaded = sh_flags.0 & SHF_ALLOC.0 != 0;
            if is_loaded || is_first && section.kind() != SectionKind::Metadata {
                places.insert(section.index(), self.section(&section)?);
            }
        }
        Ok(places)
    }

    fn section(&mut self, section: &Section) -> Result<SectionPosition> {
        let name = section.name().map_err(odd)?;
        let id = match self.sections.get(name) {
            Some(&id) => id,
            None => {
                let id = self.object.add_section(Vec::new(), name.into(), section.kind());
                self.object.section_mut(id).flags = unmerged_flags(section.flags());
                self.sections.insert(name.to_string(), id);
                id
            }
        };
        let (align, to) = (section.align().max(1), self.object.section_mut(id));
        let offset = match to.is_bss() {
            true => to.append_bss(section.size(), align),
            false => to.append_data(section.data().map_err(odd)?, align),
        };
        Ok(SectionPosition { section: id, offset })
    }

    /// The symbol of the linked object for an input symbol; `None` if no relocation needs it.
    fn symbol(
        &mut self,
        symbol: &Symbol,
        places: &HashMap<SectionIndex, SectionPosition>,
        is_first: bool,
    ) -> Result<Option<SymbolOffset>> {
        let name = symbol.name().map_err(odd)?;
        if let Some(&known) = self.seen.get(name).filter(|_| symbol.is_global()) {
            return Ok(Some((known, 0)));
        }
        let place = symbol.section_index().and_then(|section| places.get(&section));
        let section = match (symbol.kind(), place) {
            (SymbolKind::Section, Some(place)) => {
                return Ok(Some((self.object.section_symbol(place.section), place.offset)));
            }
            (SymbolKind::File, _) if is_first => write::SymbolSection::None,
            (_, Some(place)) => write::SymbolSection::Section(place.section),
            (_, None) if symbol.is_undefined() && symbol.is_global() => write::SymbolSection::Undefined,
            // of sections that are left out, and the empty one that each table begins with
            (_, None) => return Ok(None),
        };
        let own = write::Symbol {
            name: name.into(),
            value: symbol.address() + place.map_or(0, |place| place.offset),
            size: symbol.size(),
            kind: symbol.kind(),
            scope: symbol.scope(),
            weak: symbol.is_weak(),
            section,
            flags: flags(symbol)?,
        };
        let is_theirs = !is_first && !symbol.is_undefined();
        let id = self.object.add_symbol(if is_theirs { local(own) } else { own });
        if symbol.is_global() {
            self.seen.insert(name.to_string(), id);
        }
        Ok(Some((id, 0)))
    }

    fn relocation(
        &mut self,
        place: SectionPosition,
        offset: u64,
        relocation: &Relocation,
        symbols: &HashMap<SymbolIndex, SymbolOffset>,
    ) -> Result<()> {
        let RelocationTarget::Symbol(symbol) = relocation.target() else { return Err(odd("names no symbol")) };
        let &(symbol, behind) = symbols.get(&symbol).ok_or_else(|| odd("names a symbol that is left out"))?;
        if relocation.has_implicit_addend() {
            return Err(odd("has offsets in its code"));
        }
        let addend = relocation.addend().wrapping_add_unsigned(behind);
        let own = write::Relocation { offset: place.offset + offset, symbol, addend, flags: relocation.flags() };
        self.object.add_relocation(place.section, own).map_err(odd)
    }
}

/// The flags of a section without merging of constants by the linker, for which their size would have to be known.
fn unmerged_flags(flags: SectionFlags) -> SectionFlags {
    match flags {
        SectionFlags::Elf { sh_type, sh_flags } => {
            let merges = SHF_MERGE.0 | SHF_STRINGS.0;
            SectionFlags::Elf { sh_type, sh_flags: object::elf::SectionFlags(sh_flags.0 & !merges) }
        }
        other => other,
    }
}

/// Converts the flags of a symbol; those of ELF refer to no section or symbol.
fn flags(symbol: &Symbol) -> Result<SymbolFlags<SectionId, SymbolId>> {
    match symbol.flags() {
        SymbolFlags::Elf { st_info, st_other } => Ok(SymbolFlags::Elf { st_info, st_other }),
        _ => Err(odd("is no ELF")),
    }
}

/// A symbol that no other object sees.
fn local(symbol: write::Symbol) -> write::Symbol {
    let flags = match symbol.flags {
        SymbolFlags::Elf { st_info, .. } => SymbolFlags::Elf {
            st_info: SymbolInfo::new(STB_LOCAL, st_info.st_type()),
            st_other: SymbolOther(STV_DEFAULT.0),
        },
        other => other,
    };
    write::Symbol { scope: SymbolScope::Compilation, flags, ..symbol }
}

fn odd(why: impl Display) -> Error {
    Error::internal("codegen", format!("one of several objects: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::llvm;

    const CALLER: &str = "declare hidden float @k(float)\ndefine float @f(float %x) {\n  %y = fadd float %x, 1.5\n  %z = call float @k(float %y)\n  ret float %z\n}\n";
    const CALLEE: &str = "define hidden float @k(float %x) {\n  %y = fadd float %x, 2.5\n  ret float %y\n}\n";

    /// The constant that the code of function `name` adds: what its only relocation into constants is about.
    fn added(file: &File, name: &str) -> f32 {
        let symbols = || file.symbols();
        let function = symbols().find(|s| s.name() == Ok(name)).expect("the function");
        let code = file.section_by_name(".text").expect("code");
        let own = function.address()..function.address() + function.size();
        let constants = file.section_by_name(".rodata.cst4").expect("constants");
        let of_constants = |r: &Relocation| match r.target() {
            RelocationTarget::Symbol(s) => {
                file.symbol_by_index(s).ok().filter(|s| s.section_index() == Some(constants.index()))
            }
            _ => None,
        };
        let named =
            |(at, r): (u64, Relocation)| Some((of_constants(&r).filter(|_| own.contains(&at))?.address(), r.addend()));
        let (symbol, addend) = code.relocations().find_map(named).expect("it names a constant");
        // an offset from the end of the instruction, four bytes behind the field
        let at = symbol.wrapping_add_signed(addend + 4) as usize;
        let bytes = constants.data().expect("constants")[at..at + 4].try_into().expect("four bytes");
        f32::from_le_bytes(bytes)
    }

    #[test]
    fn what_one_takes_from_another_is_in_the_whole_and_seen_by_nobody_else() {
        let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64"), None).expect("a known target");
        let (parts, _) = llvm::compile_objects(&[CALLER.to_string(), CALLEE.to_string()], &target).expect("objects");
        let whole = link_objects(parts).expect("one object");
        let file = File::parse(&whole[..]).expect("an object");
        let seen =
            |name: &str| file.symbols().find(|s| s.name() == Ok(name)).map(|s| (s.is_global(), s.is_undefined()));
        assert_eq!((seen("f"), seen("k")), (Some((true, false)), Some((false, false))));
        assert_eq!((added(&file, "f"), added(&file, "k")), (1.5, 2.5));
    }
}
