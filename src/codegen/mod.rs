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
use object::{Object as _, ObjectSection, ObjectSymbol};

/// A relocatable object, whole: code, weights, metadata.
#[derive(Clone, Debug)]
pub struct Object {
    /// The file's bytes.
    pub bytes: Vec<u8>,
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
    let text = module::emit(program, target, launches)?;
    let mut bytes = llvm::object(&text, target)?;
    let at = {
        let file = object::File::parse(&*bytes).map_err(|e| Error::internal("codegen", e.to_string()))?;
        let stray: Vec<&str> = file
            .symbols()
            .filter(|s| s.is_undefined())
            .filter_map(|s| s.name().ok())
            .filter(|n| !n.is_empty() && !ALLOWED.contains(n))
            .collect();
        if !stray.is_empty() {
            return Err(Error::internal("codegen", format!("the object needs {}", stray.join(", "))));
        }
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
    Ok(Object { bytes })
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
