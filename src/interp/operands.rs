//! Operands and result shapes of an instruction, with errors for missing ones and for the wrong kind.
use crate::diag::{Code, Error, Result};
use crate::hlo::{ArrayShape, Inst, Literal};
use crate::tensor::Tensor;

/// Error for a module that breaks a rule of HLO.
pub(super) fn invalid_hlo(message: impl Into<String>) -> Error {
    Error::user(Code::HloInvalid, message)
}

/// Error for HLO that the interpreter does not support.
pub(super) fn unsupported_hlo(message: impl Into<String>) -> Error {
    Error::user(Code::HloUnsupported, message)
}

/// Values of an instruction's operands.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a>(pub(super) &'a [&'a Literal]);

impl<'a> Operands<'a> {
    /// Operand `i`.
    pub(super) fn get(self, i: usize) -> Result<&'a Literal> {
        self.0.get(i).copied().ok_or_else(|| invalid_hlo(format!("operand {i} is missing")))
    }
    /// Operand `i` as an array.
    pub(super) fn array(self, i: usize) -> Result<&'a Tensor> {
        match self.get(i)? {
            Literal::Array(t) => Ok(t),
            Literal::Tuple(_) | Literal::Token => Err(invalid_hlo(format!("operand {i} is not an array"))),
        }
    }
    /// All operands as arrays.
    pub(super) fn arrays(self) -> Result<Vec<&'a Tensor>> {
        (0..self.0.len()).map(|i| self.array(i)).collect()
    }
    /// Scalar operand `i` as an integer.
    pub(super) fn integer(self, i: usize) -> Result<i64> {
        self.array(i)?.get_i64(0).ok_or_else(|| invalid_hlo(format!("operand {i} is not an integer")))
    }
}

/// A single array, or a tuple of several.
pub(super) fn one_or_tuple(mut parts: Vec<Tensor>) -> Literal {
    if parts.len() == 1 {
        Literal::Array(parts.remove(0))
    } else {
        Literal::Tuple(parts.into_iter().map(Literal::Array).collect())
    }
}

/// Array shape that an instruction declares.
pub(super) fn array_shape(inst: &Inst) -> Result<&ArrayShape> {
    inst.shape.as_array().ok_or_else(|| invalid_hlo(format!("`{}` declares {}, not an array", inst.name, inst.shape)))
}
