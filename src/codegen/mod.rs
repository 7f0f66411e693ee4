//! Kernels to machine code: LLVM text by our own small emitter, LLVM for registers and instructions, and the weights
//! put behind the object that LLVM made (100 MB of constants take it minutes).
//!
//! # How it works
//!
//! - Floats below 32 bits are their bits in LLVM's text (`codegen/small_float.rs` decodes and encodes them); ops on them are
//!   f32's, rounded each time, but sums and products of many are kept in f32 (`DType::accumulator`). A complex value is a
//!   pair of vectors.
//! - Functions (`codegen/math/`) are our own vectors; the rare argument they can't do (sin 1e300) is done lane by lane by a
//!   function of the object (`math/slow.rs`). With AVX-512, whose `vpermd` looks up sixteen words, e^x has a table of the
//!   sixteenths of a power of two (`math/sixteenths.rs`), and erf and erfc are sixteen polynomials (`math/pieces.rs`). HLO
//!   has no erfc and no softplus: lowering writes `scalar/formula.rs` out, and `codegen/idioms.rs` knows those formulas
//!   again, as it does x·logistic(x) and mish.
//! - `codegen/` prints LLVM's text itself and lets LLVM only assign registers and choose instructions (`sroa`, `early-cse`,
//!   no pipeline). Kernels that differ in nothing but where their memory is share one function: the driver puts the addresses
//!   into the closure. The weights are zeros in that text: `codegen/container/` puts them into the object, or behind it with their
//!   section's header told where they lie (ELF, COFF, Mach-O, WebAssembly), and nothing copies them before the file is written
//!   (`util/pieces.rs`).
//! - The functions of kernels name nothing but their own helpers, and only drivers name them. So a model with much code is several
//!   modules (`module::ModelIr::split_modules`), which as many threads as there are processors give LLVM, and whose objects become one
//!   (`container/elf_link.rs`). Of LLVM's work, half of what compiling a large model takes, each processor has its share.
//! - Addresses have 8 or 4 bytes ([`crate::target::Arch::pointer_bytes`]), which LLVM's data layout says: the text counts pointers,
//!   not bytes. Sizes and indices are `i64` everywhere.
//! - C source is written from the same text, for a machine without instructions of its own (`codegen/c/`).
//! - With several `--cpu`, the model is scheduled once an instruction set (of which AMX makes another) under names of its
//!   own, and `NAME_run` calls the newest that the machine supports. Code is made for the instruction set that
//!   `NAME_supported` asks for and only tuned for the processor; what `--features` switches on is asked for too, and refused
//!   where it can't be (`target/features.rs`).
//! - A function whose sizes vary is several programs of fixed sizes and a driver that runs one of them (`codegen/size_dispatch.rs`).
//! - Constants in a file of their own (`codegen/weights_file.rs`) are behind a pointer of the call, whose header is looked at first.
//! - `NAME_supported` stores its answer in one word of the object, always the same value: asking the processor takes
//!   microseconds in a virtual machine, which is more than a small model's call. It is the only memory of the object that
//!   changes. Objects that use AMX ask Linux for its registers there, once. AArch64 code asks Linux, which alone can be
//!   asked, which of the features it has that not every processor has (`target/hwcaps.rs`, `codegen/hwcaps.rs`). What
//!   processors have is LLVM's word (`target/cpus.tsv`).
mod arith;
mod backend;
mod c;
mod complex;
mod container;
mod convert;
mod driver;
#[cfg(test)]
mod cpus;
mod float;
mod function;
mod hwcaps;
mod idioms;
mod info;
mod integer;
mod lines;
mod llvm;
mod interleave;
mod masked_vectors;
mod math;
mod module;
mod portable;
mod ranks;
mod scalar;
mod self_test;
mod size_dispatch;
mod small_float;
mod stack;
mod start;
mod cpu_check;
mod tiles;
mod value;
mod weights_file;

pub use backend::Backend;
pub use c::CBackend;
pub use info::ABI_VERSION;
pub use lines::strip_directives as own_lines;
pub use llvm::{prefer_fast_compilation, supports_triple};
pub use module::{E_CALL, E_CPU};
pub use ranks::E_RANKS;
pub use self_test::E_SELFTEST;
pub use size_dispatch::{E_BOUND, E_CHECK, E_SIZE};
pub use stack::StackDepths;
pub use weights_file::E_WEIGHTS;

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::kernel::{Bundle, HOST_CALL_SYMBOL, KernelId, ModelInterface, Program};
use crate::target::{Arch, ObjectFormat, Target};
use crate::util::id_vec::IdVec;
use crate::util::pieces::Pieces;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// A relocatable object, whole: code, weights, metadata.
#[derive(Clone, Debug)]
pub struct Object {
    /// The file's content; weights are shared with the program.
    pub content: Pieces,
    /// The stack depth of its functions; empty where no machine code was made.
    pub stack: StackDepths,
}

/// Textual forms of the code that a compile can print beside the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// LLVM IR, before LLVM's passes.
    LlvmIr,
    /// LLVM IR, after them.
    LlvmIrOptimized,
    /// Assembly.
    Assembly,
}

/// How the driver starts kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launches {
    /// Kernels with enough work through the executor, the others at once.
    Direct,
    /// Every kernel through the executor, its number in the first word of the closure.
    Observed,
}

/// Undefined symbols that an object may have: functions that every C library has, and what LLVM names itself.
const ALLOWED: &[&str] = &["memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"];
/// On Windows, of the C compiler's library: what makes a large stack frame, and a mark of programs with floats.
const ALLOWED_COFF: &[&str] = &["__chkstk", "___chkstk_ms", "_fltused"];
/// Apple's name of `memset` with zeros.
const ALLOWED_MACH_O: &[&str] = &["__bzero", "bzero"];
/// How names begin of what Arm's C compilers have in their own libraries (libgcc, compiler-rt): arithmetic of 64 bits, copies.
const ALLOWED_THUMB: &str = "__";

/// The back end that makes objects, by LLVM.
pub struct Llvm;

impl Backend for Llvm {
    fn code(&self, bundle: &Bundle, launches: Launches) -> Result<Pieces> {
        compile_bundle(bundle, launches).map(|object| object.content)
    }
}

/// Compiles `program`; symbols carry `program.name`.
///
/// # Errors
/// Errors of [`compile_bundle`].
pub fn compile(program: &Program, target: &Target, launches: Launches) -> Result<Object> {
    compile_bundle(&Bundle::of_program(program, target), launches)
}

/// One object of all functions of a model for all its targets; where there are several, a function calls the first that the machine
/// supports.
///
/// # Errors
/// `Code::UnknownTarget` where the target's objects are of no kind that is known, or its processors lack an instruction
/// that the model needs; `Code::TooLarge` for more constants than its code reaches.
pub fn compile_bundle(bundle: &Bundle, launches: Launches) -> Result<Object> {
    let (_, target) = bundle.variants.first().ok_or_else(|| Error::internal("codegen", "no target"))?;
    require_known_format(target)?;
    one_prototype_each(&bundle.face)?;
    // what the text was written from is not kept while LLVM works
    let parts = module::emit(bundle, launches, None)?.0.split_modules();
    let (objects, frames) = llvm::compile_objects(&parts, target)?;
    let widest = bundle.variants.iter().map(|(_, target)| target.vector_bits / 8).max().unwrap_or(0);
    let stack = StackDepths::new(&parts, &frames, target, widest);
    drop(parts);
    let made = container::link_objects(objects)?;
    no_strays(&made, target, &bundle.face)?;
    if bundle.face.file.is_some() {
        return Ok(Object { content: made.into(), stack });
    }
    let (symbol, bytes) = (module::weights_symbol(&bundle.face.name), bundle.face.weights_bytes);
    let weights = bundle.weights.iter().map(|(offset, data)| (*offset, data.clone()));
    Ok(Object { content: container::insert_weights(made, &symbol, bytes, weights, target)?, stack })
}

/// Errors: `Code::UnknownTarget` where LLVM's objects for a triple are of no kind that is known. What is known of a triple is kept.
fn require_known_format(target: &Target) -> Result<()> {
    static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known().contains(&target.triple) {
        return Ok(());
    }
    if !container::is_of_format(&llvm::compile_object("", target)?, target.format()) {
        let told = format!("objects for `{}` are none of ELF, COFF, Mach-O and WebAssembly", target.triple);
        return Err(Error::user(Code::UnknownTarget, told));
    }
    known().insert(target.triple.clone());
    Ok(())
}

/// Errors: `Code::HloUnsupported` where two calls want functions of one name that are not the same, or one that the object has.
fn one_prototype_each(face: &ModelInterface) -> Result<()> {
    let all = face.prototypes();
    for (i, callee) in all.iter().enumerate() {
        let name = &callee.name;
        if all[..i].iter().any(|other| other.name == *name) {
            let told = format!(
                "the custom calls of `{name}` have arrays of several types or numbers, or several API versions"
            );
            return Err(Diagnostic::new(Code::HloUnsupported, told)
                .help("give each kind of call a function of its own")
                .into());
        }
        if name.starts_with(&format!("{}_", face.name)) || *name == face.name {
            let told = format!("the custom call `{name}` has a name that the object's own functions have");
            return Err(Diagnostic::new(Code::NameClash, told).help("--name gives the model another name").into());
        }
    }
    Ok(())
}

fn no_strays(made: &[u8], target: &Target, face: &ModelInterface) -> Result<()> {
    let mut stray = container::undefined_symbols(made, target.format())?;
    stray.retain(|name| !face.calls.iter().any(|callee| callee.name == *name));
    stray.retain(|name| !(face.calls_host && name == HOST_CALL_SYMBOL));
    stray.retain(|name| {
        let name = name.as_str();
        let of_format = match target.format() {
            ObjectFormat::Coff => ALLOWED_COFF.contains(&name),
            ObjectFormat::MachO => ALLOWED_MACH_O.contains(&name),
            ObjectFormat::Elf => target.arch() == Arch::Thumb && name.starts_with(ALLOWED_THUMB),
            ObjectFormat::Wasm => false,
        };
        !of_format && !ALLOWED.contains(&name)
    });
    if stray.is_empty() {
        return Ok(());
    }
    let stray = stray.join(", ");
    match target.arch() {
        // it computes what is of 64 bits by calls, and not all that can be computed has one
        Arch::Thumb => Err(Diagnostic::new(
            Code::UnknownTarget,
            format!(
                "processors of `{}` have no instructions for what this model computes, but functions: {stray}",
                target.triple
            ),
        )
        .help("f32 in the place of f64, or --cpu cortex-m7, which has f64")
        .into()),
        _ => Err(Error::internal("codegen", format!("the object needs {stray}"))),
    }
}

/// The object of LLVM's text that is no model: what stands around models in a library.
///
/// # Errors
/// `Code::UnknownTarget` where LLVM does not know the target; internal ones, of LLVM.
pub fn assemble(text: &str, target: &Target) -> Result<Vec<u8>> {
    llvm::compile_object(text, target)
}

/// The version of LLVM: three numbers.
pub fn llvm_version() -> (u32, u32, u32) {
    llvm::version()
}

/// LLVM's name of this machine's processor.
pub fn host_cpu() -> String {
    llvm::host_cpu()
}

/// Assembly with the way to find kernels in it.
pub struct Assembly {
    /// The text; [`own_lines`] takes from a function what tells statements.
    pub text: String,
    /// The symbol of each kernel's function: those of one form share it.
    pub functions: IdVec<KernelId, String>,
}

/// The assembly of a program, without weights.
///
/// # Errors
/// `Code::UnknownTarget` where LLVM does not know the target; internal ones, of LLVM.
pub fn assembly(program: &Program, target: &Target) -> Result<Assembly> {
    let lines = Some(lines::LineTable::default());
    let (text, functions) = module::emit(&Bundle::of_program(program, target), Launches::Direct, lines)?;
    Ok(Assembly { text: llvm::emit_assembly(&text.single_module(), target)?, functions: functions.symbols })
}

/// The code of a program in one of the textual forms, without weights.
///
/// # Errors
/// `Code::UnknownTarget` where LLVM does not know the target; internal ones, of LLVM.
pub fn print(program: &Program, target: &Target, what: TextForm) -> Result<String> {
    let text = module::emit(&Bundle::of_program(program, target), Launches::Direct, None)?.0.single_module();
    match what {
        TextForm::LlvmIr => Ok(text),
        TextForm::LlvmIrOptimized => llvm::optimize(&text, target),
        TextForm::Assembly => llvm::emit_assembly(&text, target),
    }
}
