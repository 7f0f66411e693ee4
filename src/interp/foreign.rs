//! Opcodes that are only carried elsewhere: collectives on one device, custom calls, async pairs.
use super::machine::{Machine, Operands, unsupported};
use crate::diag::Result;
use crate::hlo::attrs::Foreign;
use crate::hlo::{Literal, Shape};

/// Runs a foreign instruction where its meaning on one device is plain.
pub(super) fn foreign(_m: &Machine, f: &Foreign, _operands: Operands, _shape: &Shape) -> Result<Literal> {
    Err(unsupported(format!("opcode `{}` has no meaning in the interpreter", f.opcode)))
}
