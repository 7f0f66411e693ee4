//! `sparse_ops.cc`: tensors as lists of indices and values, and segment reductions.
//!
//! A sparse tensor is three inputs: `indices s64[n, rank]`, `values [n]` and `shape s64[rank]`. Indices out of range are
//! dropped or clamped, where TensorFlow's kernels report an error.
mod count;
mod csr;
mod csr_product;
mod ctc;
mod ctc_beam;
mod ctc_loss;
mod ctc_step;
mod edit_distance;
mod merge;
mod order;
mod parts;
mod product;
pub(in crate::ops) mod rows;
mod runs;
mod segment;
mod sets;

use super::{LowerCtx, OpLowering};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[
    product::ROWS,
    csr::ROWS,
    csr_product::ROWS,
    order::ROWS,
    parts::ROWS,
    rows::ROWS,
    segment::ROWS,
    ctc::ROWS,
    ctc_beam::ROWS,
    ctc_loss::ROWS,
    edit_distance::ROWS,
    merge::ROWS,
    sets::ROWS,
    count::ROWS,
];

/// Index matrix in input `i`, with its number of rows and its rank (the number of columns).
fn indices(cx: &LowerCtx, i: usize) -> Result<(InstId, Dim, usize)> {
    let id = cx.arg(i)?;
    match cx.b.dims(id)[..] {
        [n, rank] if rank <= 64 => Ok((id, n, rank.guarded_index())),
        ref other => {
            Err(cx.shape_mismatch(format!("indices of {other:?}; a matrix with a row for each value is needed")))
        }
    }
}

/// Column `k` of a matrix.
fn column(cx: &mut LowerCtx, x: InstId, k: usize) -> InstId {
    let n = cx.b.dims(x)[0];
    let one = cx.b.slice_axis(x, 1, Dim::from(k), Dim::from(k) + 1);
    cx.b.reshape(one, &[n])
}

/// Element `k` of a vector, as a scalar.
fn element(cx: &mut LowerCtx, x: InstId, k: usize) -> InstId {
    let one = cx.b.slice_axis(x, 0, Dim::from(k), Dim::from(k) + 1);
    cx.b.reshape(one, &[])
}

/// Matrix whose columns are vectors of length `n`.
fn columns(cx: &mut LowerCtx, all: &[InstId], n: Dim) -> InstId {
    if all.is_empty() {
        return cx.b.full(DType::S64, &dims![n, 0], 0.0);
    }
    let all: Vec<InstId> = all.iter().map(|&x| cx.b.reshape(x, &dims![n, 1])).collect();
    cx.b.concatenate(&all, 1)
}

/// Row-major strides of an array of shape `shape s64[rank]`: one scalar per axis.
fn strides(cx: &mut LowerCtx, shape: InstId, rank: usize) -> Vec<InstId> {
    let mut stride = cx.b.scalar(DType::S64, 1.0);
    let mut out = Vec::with_capacity(rank);
    for k in (0..rank).rev() {
        out.push(stride);
        let size = element(cx, shape, k);
        stride = cx.b.mul(stride, size);
    }
    out.reverse();
    out
}

/// Row-major position of each index: `s64[n]`.
fn linear(cx: &mut LowerCtx, indices: InstId, shape: InstId) -> InstId {
    let (n, rank) = (cx.b.dims(indices)[0], cx.b.dims(indices)[1].guarded_index());
    let mut place = cx.b.full(DType::S64, &[n], 0.0);
    for (k, stride) in strides(cx, shape, rank).into_iter().enumerate() {
        let at = column(cx, indices, k);
        let at = cx.b.mul(at, stride);
        place = cx.b.add(place, at);
    }
    place
}

/// Sum of an `s32` vector.
fn total(cx: &mut LowerCtx, x: InstId) -> InstId {
    let zero = cx.b.scalar(DType::S32, 0.0);
    cx.b.reduce(x, zero, ScalarOp::Add, &[0])
}
