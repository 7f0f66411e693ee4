//! The interpreter: every opcode on tensors, plainly. It shares facts with the code generator, never execution.
use crate::diag::{Error, Result};
use crate::hlo::{Builder, CompId, InstId, Literal, Module};
use crate::tensor::Tensor;

/// The result of computation `comp` on `args`, one a parameter.
pub fn evaluate(_module: &Module, _comp: CompId, _args: &[Literal]) -> Result<Literal> {
    Err(Error::internal("interp", "not written"))
}

/// The value of `id` in the computation that is open, if it depends on no parameter and is an array.
pub fn constant_value(_b: &Builder, _id: InstId) -> Option<Tensor> {
    None
}
