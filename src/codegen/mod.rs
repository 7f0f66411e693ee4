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
//!   into the closure. The weights are zeros in that text that take no place in the object: `codegen/elf.rs` tells the header
//!   of their section where they lie behind it, and nothing copies them before the file is written (`util/pieces.rs`). So
//!   objects are ELF only.
//! - With several `--cpu`, the model is scheduled once an instruction set (of which AMX makes another) under names of its
//!   own, and `NAME_run` calls the newest that the machine supports. Code is made for the instruction set that
//!   `NAME_supported` asks for and only tuned for the processor; what `--features` switches on is asked for too, and refused
//!   where it can't be (`target/features.rs`).
//! - A function whose sizes vary is several programs of fixed sizes and a driver that runs one of them (`codegen/sized.rs`).
//! - `NAME_supported` stores its answer in one word of the object, always the same value: asking the processor takes
//!   microseconds in a virtual machine, which is more than a small model's call. It is the only memory of the object that
//!   changes. Objects that use AMX ask Linux for its registers there, once. AArch64 code asks Linux, which alone can be
//!   asked, which of the features it has that not every processor has (`target/hwcaps.rs`, `codegen/hwcaps.rs`). What
//!   processors have is LLVM's word (`target/cpus.tsv`).
mod complex;
mod convert;
#[cfg(test)]
mod cpus;
mod elf;
mod float;
mod function;
mod hwcaps;
mod idioms;
mod info;
mod integer;
mod llvm;
mod masked;
mod math;
mod module;
mod scalar;
mod sized;
mod small_float;
mod start;
mod supported;
mod tiles;
mod value;

pub use module::E_CPU;
pub use sized::{E_BOUND, E_SIZE};

use crate::diag::{Code, Error, Result};
use crate::kernel::{Bundle, KernelId, Program};
use crate::target::Target;
use crate::util::id_vec::IdVec;
use crate::util::pieces::Pieces;
use elf::WeightsSection;
use object::{Object as _, ObjectSymbol};

/// A relocatable object, whole: code, weights, metadata.
#[derive(Clone, Debug)]
pub struct Object {
    /// The file's content; weights are shared with the program.
    pub content: Pieces,
}

/// What else a compile can print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
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

/// Undefined symbols that an object may have.
const ALLOWED: &[&str] = &["memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"];

/// Compiles `program`; symbols carry `program.name`.
pub fn compile(program: &Program, target: &Target, launches: Launches) -> Result<Object> {
    compile_bundle(&Bundle::of(program, target), launches)
}

/// One object of all functions of a model for all its targets; where there are several, a function calls the first that the machine
/// supports.
///
/// Errors: `Code::UnknownTarget` where the target's objects are no ELF.
pub fn compile_bundle(bundle: &Bundle, launches: Launches) -> Result<Object> {
    let (_, target) = bundle.variants.first().ok_or_else(|| Error::internal("codegen", "no target"))?;
    if !llvm::object("", target)?.starts_with(elf::MAGIC) {
        return Err(Error::user(
            Code::UnknownTarget,
            format!("objects for `{}` are not ELF; targets whose objects are ELF are supported", target.triple),
        ));
    }
    let mut made = llvm::object(&module::emit(bundle, launches)?.0, target)?;
    no_strays(&made)?;
    let start = (made.len() as u64).next_multiple_of(elf::WEIGHTS_ALIGN);
    let section = WeightsSection::of(bundle.face.weights_bytes, &target.triple);
    elf::place(&mut made, section, &module::weights_symbol(&bundle.face.name), start)?;
    let mut content = Pieces::default();
    content.push(made);
    content.fill(start);
    for (offset, data) in &bundle.weights {
        content.fill(start + offset);
        content.push(data.clone());
    }
    let end = start + bundle.face.weights_bytes.max(1);
    content.fill(end);
    if content.len() == end {
        Ok(Object { content })
    } else {
        Err(Error::internal("codegen", "weights beyond their section"))
    }
}

fn no_strays(bytes: &[u8]) -> Result<()> {
    let file = object::File::parse(bytes).map_err(|e| Error::internal("codegen", e.to_string()))?;
    let stray: Vec<&str> = file
        .symbols()
        .filter(|s| s.is_undefined())
        .filter_map(|s| s.name().ok())
        .filter(|n| !n.is_empty() && !ALLOWED.contains(n))
        .collect();
    if stray.is_empty() {
        Ok(())
    } else {
        Err(Error::internal("codegen", format!("the object needs {}", stray.join(", "))))
    }
}

/// The object of LLVM's text that is no model: what stands around models in a library.
pub fn assemble(text: &str, target: &Target) -> Result<Vec<u8>> {
    llvm::object(text, target)
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
    /// The text.
    pub text: String,
    /// The symbol of each kernel's function: those of one form share it.
    pub functions: IdVec<KernelId, String>,
}

/// The assembly of a program, without weights.
pub fn assembly(program: &Program, target: &Target) -> Result<Assembly> {
    let (text, functions) = module::emit(&Bundle::of(program, target), Launches::Direct)?;
    Ok(Assembly { text: llvm::assembly(&text, target)?, functions: functions.symbols })
}

/// The same as text, without weights.
pub fn print(program: &Program, target: &Target, what: Text) -> Result<String> {
    let (text, _) = module::emit(&Bundle::of(program, target), Launches::Direct)?;
    match what {
        Text::LlvmIr => Ok(text),
        Text::LlvmIrOptimized => llvm::optimized(&text, target),
        Text::Assembly => llvm::assembly(&text, target),
    }
}
