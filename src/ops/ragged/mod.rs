//! `ragged_*_op.cc`: rows of different lengths, stored as the values of all rows and the row splits.
//!
//! Row splits `[n + 1]` are the positions at which rows begin, starting with 0, and the number of values. Splits that descend
//! or exceed the number of values are errors at run time in TensorFlow's kernels; here they give values of other rows.
mod dense;
mod fill;
mod gather;
mod range;
mod sparse;
mod variant;

use super::{LowerCtx, OpLowering};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::scatter;
use crate::ops::compact::prefix_reduce;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[range::ROWS, gather::ROWS, dense::ROWS, fill::ROWS, sparse::ROWS, variant::ROWS];

/// Row number of each of `total` values, and its position in that row; both `s32[total]`.
pub(in crate::ops) fn row_positions(cx: &mut LowerCtx, splits: InstId, total: Dim) -> Result<(InstId, InstId)> {
    let splits = cx.b.convert(splits, DType::S32);
    let n = cx.b.dims(splits).first().copied().unwrap_or(Dim::from(0)).saturating_sub(1);
    // The row number increases by one at every split but the first; a split behind the last value is dropped.
    let marks = cx.b.full(DType::S32, &[total], 0.0);
    let (begins, ones) = (cx.b.slice_axis(splits, 0, Dim::from(1), n + 1), cx.b.full(DType::S32, &[n], 1.0));
    let begins = cx.b.reshape(begins, &dims![n, 1]);
    let marks = scatter(cx, marks, begins, ones, Some(ScalarOp::Add))?;
    let row = prefix_reduce(cx, marks, ScalarOp::Add, 0.0);
    let first = gather_along_axis(cx, splits, row, 0, 0)?;
    let own = cx.b.iota(DType::S32, &[total], 0);
    let at = cx.b.sub(own, first);
    Ok((row, at))
}

/// Row splits `[n + 1]` of rows with these lengths `[n]`, and the total number of values, a scalar.
pub(super) fn row_splits(cx: &mut LowerCtx, lengths: InstId) -> (InstId, InstId) {
    let dtype = cx.b.dtype(lengths);
    let none = cx.b.full(dtype, &dims![1], 0.0);
    let ends = match dtype {
        DType::S32 => prefix_reduce(cx, lengths, ScalarOp::Add, 0.0),
        _ => {
            let narrow = cx.b.convert(lengths, DType::S32);
            let ends = prefix_reduce(cx, narrow, ScalarOp::Add, 0.0);
            cx.b.convert(ends, dtype)
        }
    };
    let zero = cx.b.scalar(dtype, 0.0);
    let total = cx.b.reduce(lengths, zero, ScalarOp::Add, &[0]);
    (cx.b.concatenate(&[none, ends], 0), total)
}

/// Row lengths `[n]` from row splits `[n + 1]`.
fn lengths(cx: &mut LowerCtx, splits: InstId) -> InstId {
    let n = cx.b.dims(splits)[0].saturating_sub(1);
    let (begins, ends) = (cx.b.slice_axis(splits, 0, Dim::from(0), n), cx.b.slice_axis(splits, 0, Dim::from(1), n + 1));
    cx.b.sub(ends, begins)
}

/// Number of rows of row splits; `None` if the array is not a vector.
pub(in crate::ops) fn row_count(cx: &LowerCtx, splits: InstId) -> Option<Dim> {
    match cx.b.dims(splits) {
        [n] => n.checked_sub(1),
        _ => None,
    }
}
