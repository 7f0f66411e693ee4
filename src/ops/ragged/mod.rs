//! `ragged_*_op.cc`: rows of unlike lengths, as the values of all rows and the places at which rows begin, their splits.
//!
//! `splits [n + 1]` are the places, 0 first, and how many values there are, last. What TensorFlow's kernels refuse at run time, splits
//! that fall or lead out of the values, gives values of other rows here.
mod dense;
mod fill;
mod gather;
mod range;
mod sparse;
mod variant;

use super::{LowerCtx, OpRow};
use crate::diag::Result;
use crate::dims;
use crate::hlo::open::Dim;
use crate::hlo::open::InstId;
use crate::ops::array::gather::take_axis;
use crate::ops::array::scatter;
use crate::ops::compact::prefix_reduce;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpRow]] = &[range::ROWS, gather::ROWS, dense::ROWS, fill::ROWS, sparse::ROWS, variant::ROWS];

/// Where each of `total` values is: the number of its row, and its place in that row. Both are `s32[total]`.
pub(in crate::ops) fn places(cx: &mut LowerCtx, splits: InstId, total: Dim) -> Result<(InstId, InstId)> {
    let splits = cx.b.convert(splits, DType::S32);
    let n = cx.b.dims(splits).first().copied().unwrap_or(Dim::from(0)).saturating_sub(1);
    // one more row from each split on but the first; that behind the last value is nobody's
    let marks = cx.b.full(DType::S32, &[total], 0.0);
    let (begins, ones) = (cx.b.slice_axis(splits, 0, Dim::from(1), n + 1), cx.b.full(DType::S32, &[n], 1.0));
    let begins = cx.b.reshape(begins, &dims![n, 1]);
    let marks = scatter(cx, marks, begins, ones, Some(ScalarOp::Add))?;
    let row = prefix_reduce(cx, marks, ScalarOp::Add, 0.0);
    let first = take_axis(cx, splits, row, 0, 0)?;
    let own = cx.b.iota(DType::S32, &[total], 0);
    let at = cx.b.sub(own, first);
    Ok((row, at))
}

/// The splits of rows of these lengths, `[n]` to `[n + 1]`, and how many values there are, a scalar.
pub(super) fn splits(cx: &mut LowerCtx, lengths: InstId) -> (InstId, InstId) {
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

/// How many values each row has, of its splits: `[n]`.
fn lengths(cx: &mut LowerCtx, splits: InstId) -> InstId {
    let n = cx.b.dims(splits)[0].saturating_sub(1);
    let (begins, ends) = (cx.b.slice_axis(splits, 0, Dim::from(0), n), cx.b.slice_axis(splits, 0, Dim::from(1), n + 1));
    cx.b.sub(ends, begins)
}

/// How many rows splits have; `None` where they are no splits.
pub(in crate::ops) fn rows(cx: &LowerCtx, splits: InstId) -> Option<Dim> {
    match cx.b.dims(splits) {
        [n] => n.checked_sub(1),
        _ => None,
    }
}
