//! Slices, sums and row-wise softmax of sparse tensors.
use super::runs::{SortedRuns, change_mask, mask_positions, unravel_indices};
use super::{column, columns, element, indices, linear};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::scatter;
use crate::ops::compact::{compact_mask, prefix_reduce};
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::{S64, like_second_input};
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("SparseSlice", "indices values shape start size -> output_indices output_values output_shape", slice)
        .moves_strings()
        .shape(data_dependent_shape),
    op("SparseSoftmax", "sp_indices sp_values sp_shape -> output", softmax).shape(like_second_input),
    op(
        "SparseAdd",
        "a_indices a_values a_shape b_indices b_values b_shape thresh -> sum_indices sum_values sum_shape",
        add,
    )
    .shape(data_dependent_shape),
];

/// Lowers `SparseSlice`: the elements from `start` to `start + size`, with indices relative to `start`.
fn slice(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((places, n, rank), values, shape) = (indices(cx, 0)?, cx.arg(1)?, cx.arg(2)?);
    let (start, size) = (cx.arg(3)?, cx.arg(4)?);
    for one in [shape, start, size] {
        if cx.b.dims(one) != [Dim::from(rank)] {
            return Err(cx.shape_mismatch(format!("{} for indices of rank {rank}", cx.b.shape(one))));
        }
    }
    let zero = cx.b.full(DType::S64, &[n], 0.0);
    let (mut inside, mut moved) = (cx.b.full(DType::Pred, &[n], 1.0), Vec::with_capacity(rank));
    for k in 0..rank {
        let (own, first, count) = (column(cx, places, k), element(cx, start, k), element(cx, size, k));
        let (first, count) = (cx.b.broadcast(first, &[n], &[]), cx.b.broadcast(count, &[n], &[]));
        let own = cx.b.sub(own, first);
        let (from, to) = (cx.b.compare(Direction::Ge, own, zero), cx.b.compare(Direction::Lt, own, count));
        let both = cx.b.elementwise(ScalarOp::And, &[from, to]);
        inside = cx.b.elementwise(ScalarOp::And, &[inside, both]);
        moved.push(own);
    }
    let kept = compact_mask(cx, inside)?;
    let count = cx.data_dependent_size(kept.count, n, "the list of elements")?;
    let at = cx.first_elements(kept.places, count)?;
    let moved = columns(cx, &moved, n);
    let (places, values) = (gather_along_axis(cx, moved, at, 0, 0)?, gather_along_axis(cx, values, at, 0, 0)?);
    // A slice is truncated to the shape.
    let rest = cx.b.sub(shape, start);
    let none = cx.b.full_like(rest, 0.0);
    let rest = cx.b.min(size, rest);
    let shape = cx.b.max(rest, none);
    Ok(vec![Value::Array(places), Value::Array(values), Value::Array(shape)])
}

/// For elements in row-major order, the number of the run that agrees in all index columns but the last: `s32[n]`.
fn runs(cx: &mut LowerCtx, places: InstId, n: Dim, rank: usize) -> InstId {
    let mut begins = cx.b.full(DType::Pred, &[n], 0.0);
    for k in 0..rank.saturating_sub(1) {
        let own = column(cx, places, k);
        let differs = change_mask(cx, own);
        begins = cx.b.elementwise(ScalarOp::Or, &[begins, differs]);
    }
    let begins = cx.b.convert(begins, DType::S32);
    prefix_reduce(cx, begins, ScalarOp::Add, 0.0)
}

/// Lowers `SparseSoftmax`: softmax over the elements of each row along the last axis.
fn softmax(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((places, n, rank), values) = (indices(cx, 0)?, cx.arg(1)?);
    if n.is_zero() {
        return cx.one_output(values);
    }
    let run = runs(cx, places, n, rank);
    let to = cx.b.reshape(run, &dims![n, 1]);
    let dtype = cx.b.dtype(values);
    let least = cx.b.full(dtype, &[n], f64::NEG_INFINITY);
    let most = scatter(cx, least, to, values, Some(ScalarOp::Maximum))?;
    let most = gather_along_axis(cx, most, run, 0, 0)?;
    let shifted = cx.b.sub(values, most);
    let power = cx.b.elementwise(ScalarOp::Exp, &[shifted]);
    let zeros = cx.b.full(dtype, &[n], 0.0);
    let sums = scatter(cx, zeros, to, power, Some(ScalarOp::Add))?;
    let sums = gather_along_axis(cx, sums, run, 0, 0)?;
    let y = cx.b.div(power, sums);
    cx.one_output(y)
}

/// Lowers `SparseAdd`: the elements of both tensors in row-major order. Elements of equal index are added, and dropped if the
/// magnitude of the sum is below the threshold.
fn add(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((a, n, rank), (b, m, other), shape) = (indices(cx, 0)?, indices(cx, 3)?, cx.arg(2)?);
    if rank != other || cx.b.dims(shape) != [Dim::from(rank)] {
        return Err(cx.shape_mismatch(format!("sparse tensors of ranks {rank} and {other}")));
    }
    let (threshold, total) = (cx.arg(6)?, n + m);
    let all = [(a, cx.arg(1)?), (b, cx.arg(4)?)];
    let keys = all.map(|(places, _)| linear(cx, places, shape));
    let (keys, values) = (cx.b.concatenate(&keys, 0), cx.b.concatenate(&all.map(|x| x.1), 0));
    let runs = SortedRuns::from_keys(cx, &[keys])?;
    let sums = runs.reduce_runs(cx, values, Some(ScalarOp::Add), 0.0)?;
    let size = cx.b.elementwise(ScalarOp::Abs, &[sums]);
    let threshold = cx.b.reshape(threshold, &[]);
    let threshold = cx.b.broadcast(threshold, &[total], &[]);
    let is_large = cx.b.compare(Direction::Ge, size, threshold);
    let one = cx.b.full(DType::S32, &[total], 1.0);
    let counts = runs.reduce_runs(cx, one, Some(ScalarOp::Add), 0.0)?;
    let is_single = cx.b.compare(Direction::Le, counts, one);
    let is_large = cx.b.elementwise(ScalarOp::Or, &[is_large, is_single]);
    let held = cx.b.elementwise(ScalarOp::And, &[runs.exists, is_large]);
    let (at, count) = mask_positions(cx, held, "the list of elements")?;
    let (keys, sums) = (gather_along_axis(cx, runs.keys[0], at, 0, 0)?, gather_along_axis(cx, sums, at, 0, 0)?);
    let places = unravel_indices(cx, keys, shape, rank);
    let places = columns(cx, &places, count);
    Ok(vec![Value::Array(places), Value::Array(sums), Value::Array(shape)])
}

/// Shape function: indices, values and dense shape, of a data-dependent number of elements.
pub(super) fn data_dependent_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (rank, n) = (cx.dims_of_rank(0, 2)?[1], cx.fresh_dim(UnknownReason::Data));
    Ok(vec![
        Fact::new(S64, vec![n, rank].into()),
        Fact::new(cx.dtype(1), vec![n].into()),
        Fact::new(S64, vec![rank].into()),
    ])
}
