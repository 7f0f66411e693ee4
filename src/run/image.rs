//! Relocatable ELF objects in the memory of this process: no linker, no file, no loader of the system.
//!
//! All sections of all objects lie in one mapping, code first, then constants, then data, each kind with its own protection. An
//! undefined symbol that no object defines is reached through a stub beside the code, as its address may be out of reach of a
//! relative jump. Source of the relocations: the System V ABI's supplement for x86-64, section 4.4.1.
#![expect(
    unsafe_code,
    reason = "maps memory, makes it executable and asks the system's loader for functions of C libraries"
)]
use crate::diag::{Error, Result};
use memmap2::{MmapMut, MmapOptions};
use object::elf;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags, SymbolIndex};
use std::collections::HashMap;
use std::ffi::{CString, c_void};

/// Bytes of a stub, aligned.
const STUB: usize = 32;

/// Code outside of an image.
#[derive(Clone, Copy, Debug)]
pub struct ExternalCode {
    /// Address of the code.
    pub code: *const c_void,
    /// Value of register `r11` when the code begins, for functions that serve several symbols.
    pub context: *const c_void,
}

/// Objects that are loaded into this process.
#[derive(Debug)]
pub struct Image {
    map: MmapMut,
    /// Offset of each symbol that the objects define for others.
    symbols: HashMap<String, usize>,
}

// SAFETY: the mapping does not change once it is loaded, but for data of the code, which is written as the code's threads agree.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

/// Protection that a section needs, in the order in which sections lie in the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    Execute,
    Read,
    Write,
}

/// A section with its offset in the mapping.
struct Placed {
    object: usize,
    index: object::SectionIndex,
    access: Access,
    offset: usize,
}

impl Image {
    /// Whether this process can load objects without a linker: on x86-64 Linux.
    pub const SUPPORTED: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

    /// Loads objects; `external` has the functions of symbols that none of them defines, before those of this process.
    ///
    /// # Errors
    /// Internal ones: damaged objects, relocations that are not known, symbols that are nowhere, no memory.
    pub fn load(objects: &[&[u8]], external: &dyn Fn(&str) -> Option<ExternalCode>) -> Result<Image> {
        let files: Vec<ElfFile64> =
            objects.iter().map(|bytes| ElfFile64::parse(*bytes)).collect::<Result<_, _>>().map_err(damaged)?;
        let mut layout = Layout::of(&files)?;
        let map = MmapOptions::new().len(layout.bytes.max(1)).map_anon().map_err(|e| failed(e.to_string()))?;
        let mut loading = Loading { files: &files, symbols: HashMap::new(), stubs: HashMap::new(), map, next_stub: 0 };
        loading.copy(&layout)?;
        loading.define(&layout)?;
        loading.relocate(&layout, external)?;
        let Loading { map, symbols, .. } = loading;
        layout.protect(&map)?;
        Ok(Image { map, symbols })
    }

    /// The address of a symbol that an object defines.
    pub fn symbol(&self, name: &str) -> Option<*const c_void> {
        self.symbols.get(name).map(|&offset| self.map[offset..].as_ptr().cast())
    }

    /// Bytes of memory that the image takes.
    pub fn bytes(&self) -> usize {
        self.map.len()
    }
}

/// Places of all sections that are loaded.
struct Layout {
    placed: Vec<Placed>,
    /// Place of a section, by object and index.
    places: HashMap<(usize, usize), usize>,
    /// Offsets at which constants and data begin.
    constants: usize,
    data: usize,
    bytes: usize,
}

impl Layout {
    fn of(files: &[ElfFile64]) -> Result<Layout> {
        let mut placed = Vec::new();
        let mut undefined = 0;
        for (object, file) in files.iter().enumerate() {
            undefined += file.symbols().filter(ObjectSymbol::is_undefined).count();
            for section in file.sections() {
                let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                    return Err(failed("no section of ELF"));
                };
                let has = |flag: elf::SectionFlags| sh_flags.contains(flag);
                if !has(elf::SHF_ALLOC) {
                    continue;
                }
                if has(elf::SHF_TLS) {
                    return Err(failed("an object has memory of threads"));
                }
                // what is only written while it is relocated is constant afterwards
                let is_constant = section.name().is_ok_and(|name| name.starts_with(".data.rel.ro"));
                let access = match (has(elf::SHF_EXECINSTR), has(elf::SHF_WRITE) && !is_constant) {
                    (true, _) => Access::Execute,
                    (false, false) => Access::Read,
                    (false, true) => Access::Write,
                };
                placed.push(Placed { object, index: section.index(), access, offset: 0 });
            }
        }
        placed.sort_by_key(|p| p.access);
        let page = page_bytes();
        let mut end = undefined * STUB;
        let (mut last, mut starts) = (Access::Execute, [0; 3]);
        let mut places = HashMap::new();
        for one in &mut placed {
            while last < one.access {
                end = end.next_multiple_of(page);
                last = if last == Access::Execute { Access::Read } else { Access::Write };
                starts[last as usize] = end;
            }
            let section = files[one.object].section_by_index(one.index).map_err(damaged)?;
            let align = usize::try_from(section.align()).unwrap_or(1).max(1);
            if align > page || !align.is_power_of_two() {
                return Err(failed("a section wants more alignment than a page"));
            }
            one.offset = end.next_multiple_of(align);
            let bytes = usize::try_from(section.size()).map_err(|_| failed("a section is too large"))?;
            end = one.offset.checked_add(bytes).ok_or_else(|| failed("the sections are too large"))?;
            places.insert((one.object, one.index.0), one.offset);
        }
        while last < Access::Write {
            end = end.next_multiple_of(page);
            last = if last == Access::Execute { Access::Read } else { Access::Write };
            starts[last as usize] = end;
        }
        Ok(Layout { placed, places, constants: starts[1], data: starts[2], bytes: end.next_multiple_of(page) })
    }

    /// Makes code executable and constants read-only.
    fn protect(&mut self, map: &MmapMut) -> Result<()> {
        let all =
            [(0, self.constants, libc::PROT_READ | libc::PROT_EXEC), (self.constants, self.data, libc::PROT_READ)];
        for (begin, end, protection) in all {
            if begin == end {
                continue;
            }
            // SAFETY: the pages belong to the mapping, and nothing refers to them yet.
            let code = unsafe { libc::mprotect(map.as_ptr().add(begin).cast_mut().cast(), end - begin, protection) };
            if code != 0 {
                return Err(failed(format!("memory for code: {}", std::io::Error::last_os_error())));
            }
        }
        Ok(())
    }
}

/// Objects that are being copied and relocated into memory.
struct Loading<'a> {
    files: &'a [ElfFile64<'a>],
    map: MmapMut,
    symbols: HashMap<String, usize>,
    /// Offset of the stub of each symbol that is outside.
    stubs: HashMap<String, usize>,
    next_stub: usize,
}

impl Loading<'_> {
    fn copy(&mut self, layout: &Layout) -> Result<()> {
        for one in &layout.placed {
            let section = self.files[one.object].section_by_index(one.index).map_err(damaged)?;
            let bytes = section.data().map_err(damaged)?;
            self.map[one.offset..one.offset + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Notes the symbols that an object defines for the others.
    fn define(&mut self, layout: &Layout) -> Result<()> {
        for (object, file) in self.files.iter().enumerate() {
            for symbol in file.symbols().filter(|s| s.is_global() && !s.is_undefined()) {
                let Some(offset) = defined_at(&symbol, object, layout) else { continue };
                self.symbols.insert(symbol.name().map_err(damaged)?.to_string(), offset);
            }
        }
        Ok(())
    }

    fn relocate(&mut self, layout: &Layout, external: &dyn Fn(&str) -> Option<ExternalCode>) -> Result<()> {
        for one in &layout.placed {
            let file = &self.files[one.object];
            let section = file.section_by_index(one.index).map_err(damaged)?;
            for (at, relocation) in section.relocations() {
                let RelocationTarget::Symbol(index) = relocation.target() else {
                    return Err(failed("a relocation without a symbol"));
                };
                let target = self.target(one.object, index, layout, external)?;
                let RelocationFlags::Elf { r_type } = relocation.flags() else {
                    return Err(failed("a relocation of another format"));
                };
                let at = one.offset + usize::try_from(at).map_err(|_| failed("a relocation outside"))?;
                self.apply(r_type, at, target, relocation.addend())?;
            }
        }
        Ok(())
    }

    /// The offset of a symbol, or that of its stub.
    fn target(
        &mut self,
        object: usize,
        index: SymbolIndex,
        layout: &Layout,
        external: &dyn Fn(&str) -> Option<ExternalCode>,
    ) -> Result<usize> {
        let symbol = self.files[object].symbol_by_index(index).map_err(damaged)?;
        if let Some(offset) = defined_at(&symbol, object, layout) {
            return Ok(offset);
        }
        let name = symbol.name().map_err(damaged)?;
        if let Some(&known) = self.symbols.get(name).or_else(|| self.stubs.get(name)) {
            return Ok(known);
        }
        let found = external(name).or_else(|| of_process(name));
        let function = found.ok_or_else(|| failed(format!("there is no function `{name}`")))?;
        let at = self.next_stub;
        self.next_stub += STUB;
        self.map[at..at + STUB].copy_from_slice(&stub(function));
        self.stubs.insert(name.to_string(), at);
        Ok(at)
    }

    fn apply(&mut self, kind: elf::RelocationType, at: usize, target: usize, addend: i64) -> Result<()> {
        let base = self.map.as_ptr() as i64;
        let outside = || failed("a relocation out of reach");
        let relative = (target as i64 + addend) - at as i64;
        match kind {
            elf::R_X86_64_64 => self.write(at, &(base + target as i64 + addend).to_le_bytes()),
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => {
                self.write(at, &i32::try_from(relative).map_err(|_| outside())?.to_le_bytes())
            }
            elf::R_X86_64_PC64 => self.write(at, &relative.to_le_bytes()),
            other => Err(failed(format!("relocation {other:?} is not known"))),
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let place = self.map.get_mut(at..at + bytes.len()).ok_or_else(|| failed("a relocation outside"))?;
        place.copy_from_slice(bytes);
        Ok(())
    }
}

/// The offset of a symbol that the object itself defines.
fn defined_at<'a>(symbol: &impl ObjectSymbol<'a>, object: usize, layout: &Layout) -> Option<usize> {
    let section = symbol.section_index()?;
    Some(layout.places.get(&(object, section.0))? + usize::try_from(symbol.address()).ok()?)
}

/// Machine code that passes a context to an external function: `movabs r11, context; movabs rax, code; jmp rax`. A call may change both
/// registers.
fn stub(function: ExternalCode) -> [u8; STUB] {
    let mut code = [0xcc; STUB];
    code[..2].copy_from_slice(&[0x49, 0xbb]);
    code[2..10].copy_from_slice(&(function.context as u64).to_le_bytes());
    code[10..12].copy_from_slice(&[0x48, 0xb8]);
    code[12..20].copy_from_slice(&(function.code as u64).to_le_bytes());
    code[20..22].copy_from_slice(&[0xff, 0xe0]);
    code
}

/// A function of the libraries that this process has.
fn of_process(name: &str) -> Option<ExternalCode> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a zero.
    let code = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!code.is_null()).then_some(ExternalCode { code, context: std::ptr::null() })
}

fn page_bytes() -> usize {
    rustix::param::page_size()
}

fn damaged(e: object::Error) -> Error {
    failed(e.to_string())
}

fn failed(why: impl Into<String>) -> Error {
    Error::internal("load", why)
}
