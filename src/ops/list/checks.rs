//! Run-time checks of `--checked` for TensorLists, TensorArrays and stacks.
use super::length;
use crate::diag::{Error, Result};
use crate::hlo::symbolic::InstId;
use crate::ops::{LowerCtx, Value, checks};

/// Checks that the indices in input 1 are within the list in input 0.
///
/// # Errors
/// `TypeMismatch` if input 0 is not a list.
pub fn check_element_index(cx: &mut LowerCtx) -> Result<()> {
    let length = count(cx)?;
    checks::fail_outside_list(cx, Some(length))
}

/// Checks that the write index in input 1 is within the list in input 0; a list that grows accepts every index from 0 on.
///
/// # Errors
/// `TypeMismatch` if input 0 is not a list.
pub fn check_write_index(cx: &mut LowerCtx) -> Result<()> {
    if cx.bool_attr("resize_if_index_out_of_bounds") {
        return checks::fail_outside_list(cx, None);
    }
    check_element_index(cx)
}

/// Checks that the list in input 0 is not empty, before its last element is removed.
///
/// # Errors
/// `TypeMismatch` if input 0 is not a list.
pub fn check_not_empty(cx: &mut LowerCtx) -> Result<()> {
    let length = count(cx)?;
    checks::fail_if_empty(cx, length);
    Ok(())
}

/// Number of elements of the list in input 0.
fn count(cx: &mut LowerCtx) -> Result<InstId> {
    match length(cx)?.first() {
        Some(Value::Array(length)) => Ok(*length),
        _ => Err(Error::internal("lower", "a list without a length")),
    }
}
