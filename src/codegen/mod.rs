//! Kernels to machine code: LLVM text by our own small emitter, LLVM for registers and instructions, and the weights
//! written into the finished object beside LLVM (100 MB of constants take it minutes).
mod complex;
mod convert;
mod float;
mod function;
mod integer;
mod llvm;
mod math;
mod module;
mod scalar;
mod small_float;
mod value;

pub use module::E_CPU;

use crate::diag::{Error, Result};
use crate::kernel::Program;
use crate::target::Target;
use bytes::Bytes;
use object::{Object as _, ObjectSection, ObjectSymbol};

/// A relocatable object, whole: code, weights, metadata.
#[derive(Clone, Debug)]
pub struct Object {
    /// The file's bytes.
    pub bytes: Bytes,
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
    /// Every kernel through the executor; a table `NAME_kernels` of their addresses tells which is which.
    Observed,
}

/// Undefined symbols that an object may have.
const ALLOWED: &[&str] = &["memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"];

/// Compiles `program`; symbols carry `program.name`.
pub fn compile(program: &Program, target: &Target, launches: Launches) -> Result<Object> {
    finish(&module::emit(program, target, launches)?, target, &[program])
}

/// One object of a model for several targets, best first: `NAME_run` calls the first that the machine supports.
///
/// `face` has the names, arguments and results that callers see; each variant has a name of its own.
pub fn compile_variants(face: &Program, variants: &[(Program, Target)]) -> Result<Object> {
    let (_, first) = variants.first().ok_or_else(|| Error::internal("codegen", "no target"))?;
    let programs: Vec<&Program> = variants.iter().map(|v| &v.0).collect();
    // functions say themselves what they are compiled for; what is common to them is the oldest processor's
    let base = Target { cpu: first.oldest_cpu().to_string(), features: String::new(), ..first.clone() };
    finish(&module::emit_variants(face, variants)?, &base, &programs)
}

/// LLVM's text to an object with the weights of `programs` in it.
fn finish(text: &str, target: &Target, programs: &[&Program]) -> Result<Object> {
    let mut bytes = llvm::object(text, target)?;
    no_strays(&bytes)?;
    for program in programs {
        patch(&mut bytes, program)?;
    }
    Ok(Object { bytes: bytes.into() })
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

/// Writes the constants of `program` into its section.
fn patch(bytes: &mut [u8], program: &Program) -> Result<()> {
    let at = {
        let file = object::File::parse(&*bytes).map_err(|e| Error::internal("codegen", e.to_string()))?;
        let section = file
            .section_by_name(&module::weights_section(&program.name))
            .ok_or_else(|| Error::internal("codegen", "the object has no section for the weights"))?;
        section
            .file_range()
            .map(|r| r.0 as usize)
            .ok_or_else(|| Error::internal("codegen", "the weights' section has no bytes"))?
    };
    for (offset, data) in &program.weights {
        let from = at + *offset as usize;
        let slot = bytes
            .get_mut(from..from + data.len())
            .ok_or_else(|| Error::internal("codegen", "weights beyond their section"))?;
        slot.copy_from_slice(data);
    }
    Ok(())
}

/// The object of LLVM's text that is no model: what stands around models in a library.
pub fn assemble(text: &str, target: &Target) -> Result<Vec<u8>> {
    llvm::object(text, target)
}

/// LLVM's name of this machine's processor.
pub fn host_cpu() -> String {
    llvm::host_cpu()
}

/// The same as text, without weights.
pub fn print(program: &Program, target: &Target, what: Text) -> Result<String> {
    let text = module::emit(program, target, Launches::Direct)?;
    match what {
        Text::LlvmIr => Ok(text),
        Text::LlvmIrOptimized => llvm::optimized(&text, target),
        Text::Assembly => llvm::assembly(&text, target),
    }
}
