//! `data_flow_ops.cc`: TensorArrays and stacks of TensorFlow 1, with a number of elements that is fixed at compile time.
//!
//! What they hold is in [`super::holder`]; the flow that goes from op to op only orders them, and is passed on as it is.
mod stack;
mod tensor_array;

use super::holder::HolderId;
use super::{LowerCtx, OpRow, Value};
use crate::diag::{Code, Error, Result};

/// The rows of this family.
pub const ROWS: &[&[OpRow]] = &[tensor_array::ROWS, stack::ROWS];

/// The holder whose handle is input `i`.
fn holder(cx: &LowerCtx, i: usize) -> Result<HolderId> {
    match cx.args.get(i) {
        Some(Value::Holder(id)) => Ok(*id),
        _ => Err(Error::user(Code::TypeMismatch, format!("input {i} must be the handle of a TensorArray or stack"))),
    }
}

/// An op on a list, for elements and these further inputs.
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
