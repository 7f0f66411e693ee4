//! `data_flow_ops.cc`: TensorArrays and stacks of TensorFlow 1, with a number of elements that is fixed at compile time.
//!
//! Their elements are in [`super::mutable_list`]. The flow value that connects their ops only orders them, and is passed through
//! unchanged.
mod stack;
mod tensor_array;

use super::mutable_list::MutableListId;
use super::{LowerCtx, OpLowering, Value};
use crate::diag::{Code, Error, Result};

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[tensor_array::ROWS, stack::ROWS];

/// Id of the TensorArray or stack whose handle is input `i`.
fn mutable_list_arg(cx: &LowerCtx, i: usize) -> Result<MutableListId> {
    match cx.args.get(i) {
        Some(Value::MutableList(id)) => Ok(*id),
        _ => Err(Error::user(Code::TypeMismatch, format!("input {i} must be the handle of a TensorArray or stack"))),
    }
}

/// Applies a list op `f` to the elements of a TensorArray or stack and the further inputs `more`; returns its first output.
fn on_list(
    cx: &mut LowerCtx,
    elements: Value,
    more: &[Value],
    f: fn(&mut LowerCtx) -> Result<Vec<Value>>,
) -> Result<Value> {
    let args = [&[elements], more].concat();
    let first = f(&mut cx.with_args(args))?.into_iter().next();
    first.ok_or_else(|| Error::internal("lower", "an op on lists without a result"))
}
