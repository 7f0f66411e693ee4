//! The noun `kernel`: loops over buffers.
use crate::tensor::TensorInfo;

/// A compiled function before it is machine code.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The model's C name; prefix of every symbol.
    pub name: String,
    /// Where it came from, for `NAME_info()->source`.
    pub source: String,
    /// Arguments.
    pub args: Vec<TensorInfo>,
    /// Results.
    pub results: Vec<TensorInfo>,
    /// Bytes of workspace that a call needs.
    pub workspace_bytes: u64,
    /// Multiply-adds times two, and other floating-point operations.
    pub flops: u64,
}
