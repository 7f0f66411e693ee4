//! Kernels to machine code through LLVM.
use crate::diag::{Error, Result};
use crate::kernel::Program;
use crate::target::Target;

/// A relocatable object, whole: code, weights, metadata.
#[derive(Clone, Debug)]
pub struct Object {
    /// The file's bytes.
    pub bytes: Vec<u8>,
}

/// What else a compile can print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// LLVM IR.
    LlvmIr,
    /// Assembly.
    Assembly,
}

/// Compiles `program`; symbols carry `program.name`.
pub fn compile(_program: &Program, _target: &Target) -> Result<Object> {
    Err(Error::internal("codegen", "not written"))
}

/// The same as text, without weights.
pub fn print(_program: &Program, _target: &Target, _what: Text) -> Result<String> {
    Err(Error::internal("codegen", "not written"))
}
