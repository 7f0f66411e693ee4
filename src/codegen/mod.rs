//! Kernels to machine code: LLVM text by our own small emitter, LLVM for registers and instructions, and the weights
//! put behind the object that LLVM made (100 MB of constants take it minutes).
mod complex;
mod convert;
#[cfg(test)]
mod cpus;
mod elf;
mod float;
mod function;
mod hwcaps;
mod idioms;
mod integer;
mod llvm;
mod masked;
mod math;
mod module;
mod scalar;
mod small_float;
mod supported;
mod tiles;
mod value;

pub use module::E_CPU;

use crate::diag::{Code, Error, Result};
use crate::kernel::{KernelId, Program};
use crate::target::Target;
use crate::util::id_vec::IdVec;
use crate::util::pieces::Pieces;
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
    finish(&module::emit(program, target, launches)?.0, target, &[program])
}

/// One object of a model for several targets, best first: `NAME_run` calls the first that the machine supports.
///
/// `face` has the names, arguments and results that callers see; each variant has a name of its own.
pub fn compile_variants(face: &Program, variants: &[(Program, Target)]) -> Result<Object> {
    let (_, first) = variants.first().ok_or_else(|| Error::internal("codegen", "no target"))?;
    let programs: Vec<&Program> = variants.iter().map(|v| &v.0).collect();
    finish(&module::emit_variants(face, variants)?, first, &programs)
}

/// LLVM's text to an object with the weights of `programs` in it.
///
/// Errors: `Code::UnknownTarget` where the target's objects are no ELF.
fn finish(text: &str, target: &Target, programs: &[&Program]) -> Result<Object> {
    if !llvm::object("", target)?.starts_with(elf::MAGIC) {
        return Err(Error::user(
            Code::UnknownTarget,
            format!("objects for `{}` are not ELF; targets whose objects are ELF are supported", target.triple),
        ));
    }
    let mut made = llvm::object(text, target)?;
    no_strays(&made)?;
    let mut content = Pieces::default();
    let mut end = made.len() as u64;
    for program in programs {
        end = end.next_multiple_of(elf::WEIGHTS_ALIGN);
        elf::place(&mut made, &module::weights_symbol(&program.name), end)?;
        end += program.weights_bytes.max(1);
    }
    content.push(made);
    for program in programs {
        let start = content.len().next_multiple_of(elf::WEIGHTS_ALIGN);
        for (offset, data) in &program.weights {
            content.fill(start + offset);
            content.push(data.clone());
        }
        content.fill(start + program.weights_bytes.max(1));
    }
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
    /// Whose function `NAME_k…` each kernel has: those of one form share it.
    pub functions: IdVec<KernelId, KernelId>,
}

/// The assembly of a program, without weights.
pub fn assembly(program: &Program, target: &Target) -> Result<Assembly> {
    let (text, functions) = module::emit(program, target, Launches::Direct)?;
    Ok(Assembly { text: llvm::assembly(&text, target)?, functions: functions.of })
}

/// The same as text, without weights.
pub fn print(program: &Program, target: &Target, what: Text) -> Result<String> {
    let (text, _) = module::emit(program, target, Launches::Direct)?;
    match what {
        Text::LlvmIr => Ok(text),
        Text::LlvmIrOptimized => llvm::optimized(&text, target),
        Text::Assembly => llvm::assembly(&text, target),
    }
}
