//! Rules that a program must obey before it becomes machine code; checked on every compile. A failure is always our bug.
//!
//! | rule | what holds |
//! |---|---|
//! | k1 | an expression reads only expressions that were made before it, and only registers and buffers that are there |
//! | k2 | a variable is read inside its own loop (or has one value); no loop opens a variable that is open |
//! | k3 | every index of a load or store stays inside its buffer for all values of the loop variables |
//! | k4 | operands of an op have one type and its result the stated one; stores and registers get values of their type |
//! | k5 | conditions are `pred`, numbers in indices are integers, and both are the same in all lanes |
//! | k6 | the number of a register is constant once loops are unrolled and within its array; so is a lane |
//! | k7 | vector loops do not nest, and a register of several lanes is read whole only in a vector loop as wide |
//! | k8 | arguments and constants are never stored to; places lie inside the constants and the workspace |
//! | k9 | memory is defined before it is read, on every path through the steps, and not overwritten by another buffer between |
//! | k10 | a launch reads a buffer that it overwrites through another one only element for element |
//! | k11 | of steps that run at once none writes memory that another touches |
//! | k12 | blocks of sums stand outside of vector loops, are of bf16 or of bytes in whole words, and no tile is larger than the processor's |
//! | k13 | variables lie apart in the state, a buffer of the state is one of them, whole, and each that changes is stored to |
mod body;
mod flow;
mod memory;
mod state;
mod tiles;

pub use body::{for_each_operand, for_each_run_time_value};

use super::{BufferLocation, Program};
use crate::diag::{Error, Result};

/// Checks every rule.
///
/// # Errors
/// Internal, with the rule's number and the kernel's.
pub fn verify(program: &Program) -> Result<()> {
    check_buffer_bounds(program)?;
    state::check_state(program).map_err(|why| fault("state", &why))?;
    for (id, kernel) in program.kernels.iter() {
        body::check_kernel(program, kernel).map_err(|why| fault(&format!("k{} `{}`", id.0, kernel.label), &why))?;
    }
    flow::check_data_flow(program).map_err(|why| fault("steps", &why))
}

/// Most bytes of a buffer on the stack.
const STACK_BYTES: u64 = 64 << 10;

/// A violated rule and the offence, as text.
type Fault = String;

fn fault(place: &str, why: &Fault) -> Error {
    Error::internal("kernel verifier", format!("{place}: {why}"))
}

/// Size in bytes of the memory that a buffer's location has.
fn bytes(program: &Program, buf: super::BufId) -> u64 {
    program.buffers[buf].elements.saturating_mul(program.buffers[buf].dtype.bytes() as u64)
}

/// Checks rule k8: every buffer lies inside the memory of its location.
fn check_buffer_bounds(program: &Program) -> Result<()> {
    for (id, buffer) in program.buffers.iter() {
        let size = bytes(program, id);
        let given = |info: Option<&crate::tensor::TensorInfo>| info.map_or(0, crate::tensor::TensorInfo::bytes);
        let (from, most) = match buffer.place {
            BufferLocation::Arg(i) => (0, given(program.args.get(i))),
            BufferLocation::Result(i) => (0, given(program.results.get(i))),
            BufferLocation::Weights(at) => (at, program.weights_bytes),
            BufferLocation::State(at) => (at, program.state_bytes()),
            BufferLocation::Workspace(at) => (at, program.workspace_bytes),
            BufferLocation::Stack => (0, STACK_BYTES),
        };
        // what no kernel touches has no place of its own
        let idle = matches!(buffer.place, BufferLocation::Workspace(0));
        if from.saturating_add(size) > most && !idle {
            return Err(fault(&format!("b{}", id.0), &format!("k8: {size} bytes at {from} of {most}")));
        }
    }
    Ok(())
}
