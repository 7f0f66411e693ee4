//! Run-time checks of `--checked` for TensorLists, TensorArrays and stacks.
use super::length;
use crate::diag::{Error, Result};
use crate::hlo::open::InstId;
use crate::ops::{LowerCtx, Value, checks};

/// Indices, input 1, of elements of the list in input 0.
///
/// # Errors
/// `TypeMismatch` where input 0 is no list.
pub fn element(cx: &mut LowerCtx) -> Result<()> {
    let length = count(cx)?;
    checks::fail_outside_list(cx, Some(length))
}

/// The index, input 1, at which an element of the list in input 0 is set; one that grows takes every index from 0 on.
///
/// # Errors
/// `TypeMismatch` where input 0 is no list.
pub fn place(cx: &mut LowerCtx) -> Result<()> {
    if cx.flag("resize_if_index_out_of_bounds") {
        return checks::fail_outside_list(cx, None);
    }
    element(cx)
}

/// The list in input 0, whose last element is taken.
///
/// # Errors
/// `TypeMismatch` where input 0 is no list.
pub fn not_empty(cx: &mut LowerCtx) -> Result<()> {
    let length = count(cx)?;
    checks::fail_if_empty(cx, length);
    Ok(())
}

/// The number of elements of the list in input 0.
fn count(cx: &mut LowerCtx) -> Result<InstId> {
    match length(cx)?.first() {
        Some(Value::Array(length)) => Ok(*length),
        _ => Err(Error::internal("lower", "a list without a length")),
    }
}
