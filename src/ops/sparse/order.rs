//! Sparse tensors with their elements reordered, reshaped or concatenated.
use super::{column, columns, element, indices, linear, strides};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Dim, InstId, Op};
use crate::ops::array::gather::gather_along_axis;
use crate::ops::fact::Fact;
use crate::ops::host::sparse_reshape_shape as reshape_shape;
use crate::ops::op_lowering::op;
use crate::ops::shape::S64;
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("SparseReorder", "input_indices input_values input_shape -> output_indices output_values", reorder)
        .moves_strings()
        .shape(reorder_shape),
    op("SparseReshape", "input_indices input_shape new_shape -> output_indices output_shape", reshape)
        .shape(reshape_shape),
    op("SparseConcat", "inputs* -> output_indices output_values output_shape", concatenate).shape(concatenate_shape),
];

/// Permutation that sorts the keys `s64[n]` in ascending order, stably.
pub(super) fn sorting_permutation(cx: &mut LowerCtx, keys: InstId) -> InstId {
    let n = cx.b.dims(keys)[0];
    let own = cx.b.iota(DType::S32, &[n], 0);
    let comp = cx.b.ascending_computation(cx.b.dtype(keys));
    let sorted = cx.b.add_inst(Op::Sort { dim: 0, is_stable: true, comp }, &[keys, own]);
    cx.b.get_tuple_element(sorted, 1)
}

/// Indices and values sorted in row-major order.
fn in_order(cx: &mut LowerCtx, places: InstId, values: InstId, shape: InstId) -> Result<(InstId, InstId)> {
    if cx.b.dims(places)[0].is_zero() {
        return Ok((places, values));
    }
    let keys = linear(cx, places, shape);
    let order = sorting_permutation(cx, keys);
    Ok((gather_along_axis(cx, places, order, 0, 0)?, gather_along_axis(cx, values, order, 0, 0)?))
}

fn reorder(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((places, ..), values, shape) = (indices(cx, 0)?, cx.arg(1)?, cx.arg(2)?);
    let (places, values) = in_order(cx, places, values, shape)?;
    Ok(vec![Value::Array(places), Value::Array(values)])
}

/// Lowers `SparseReshape`: the indices of the elements in another shape, of which one size may be -1 and is inferred.
///
/// Shapes: `input_indices s64[n, rank]`, `new_shape s64[k]` -> `s64[n, k]`, `s64[k]`.
fn reshape(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((places, n, rank), shape, new) = (indices(cx, 0)?, cx.arg(1)?, cx.arg(2)?);
    if cx.b.dims(shape) != [Dim::from(rank)] || cx.b.rank(new) != 1 {
        return Err(cx.shape_mismatch(format!(
            "shapes {} and {}, where indices have rank {rank}",
            cx.b.shape(shape),
            cx.b.shape(new)
        )));
    }
    let one = cx.b.scalar(DType::S64, 1.0);
    let product = |cx: &mut LowerCtx, x: InstId| cx.b.reduce(x, one, ScalarOp::Multiply, &[0]);
    let zero = cx.b.scalar(DType::S64, 0.0);
    let open = cx.b.compare(Direction::Lt, new, zero);
    let told = cx.b.select(open, one, new);
    let (all, known) = (product(cx, shape), product(cx, told));
    let known = cx.b.max(known, one);
    let left = cx.b.div(all, known);
    let filled = cx.b.select(open, left, new);
    let new = told_apart(cx, new, filled);
    let count = product(cx, new);
    if let (Some(a), Some(b)) = (known_scalar(cx, all), known_scalar(cx, count))
        && a != b
    {
        return Err(cx.shape_mismatch(format!("{a} elements can't be given a shape of {b}")));
    }
    let mut rest = linear(cx, places, shape);
    let k = cx.b.dims(new)[0].guarded_index();
    let mut out = Vec::with_capacity(k);
    for stride in strides(cx, new, k) {
        let stride = cx.b.max(stride, one);
        let at = cx.b.div(rest, stride);
        rest = cx.b.binary(ScalarOp::Remainder, rest, stride);
        out.push(at);
    }
    let places = columns(cx, &out, n);
    Ok(vec![Value::Array(places), Value::Array(new)])
}

/// Sizes `filled` of a new shape, with constants in place of those that `new` is known to give.
fn told_apart(cx: &mut LowerCtx, new: InstId, filled: InstId) -> InstId {
    let n = cx.b.dims(new)[0];
    let known =
        |at: u64| crate::ops::element::element_expr(cx.b, new, Dim::from(at)).as_size().filter(|&size| size >= 0);
    let known: Vec<Option<Dim>> = (0..n.guarded_count()).map(known).collect();
    if known.iter().all(Option::is_none) {
        return filled;
    }
    let one = |(at, known): (u64, Option<Dim>)| match known {
        Some(size) => cx.b.full(DType::S64, &dims![1], size),
        None => cx.b.slice_axis(filled, 0, Dim::from(at), Dim::from(at + 1)),
    };
    let sizes: Vec<InstId> = (0..n.guarded_count()).zip(known).map(one).collect();
    cx.b.concatenate(&sizes, 0)
}

fn known_scalar(cx: &LowerCtx, x: InstId) -> Option<Dim> {
    let known = crate::interp::symbolic_value(cx.b, x)?;
    match known.sizes {
        Some(sizes) => sizes.first().copied(),
        None => known.value.get_i64(0).map(Dim::from),
    }
}

/// Lowers `SparseConcat`: sparse tensors concatenated along an axis, in row-major order.
fn concatenate(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let parts = cx.args.len() / 3;
    let rank = indices(cx, 0)?.2;
    let axis = cx.normalize_axis(cx.require_attr(cx.node.int("concat_dim"), "concat_dim")?, rank)?;
    let mut offset = cx.b.scalar(DType::S64, 0.0);
    let (mut places, mut values) = (Vec::new(), Vec::new());
    for part in 0..parts {
        let ((own, n, r), shape) = (indices(cx, part)?, cx.arg(2 * parts + part)?);
        if r != rank || cx.b.dims(shape) != [Dim::from(rank)] {
            return Err(cx.shape_mismatch(format!("sparse tensors of ranks {rank} and {r}")));
        }
        let mut all: Vec<InstId> = (0..rank).map(|k| column(cx, own, k)).collect();
        all[axis] = cx.b.add(all[axis], offset);
        places.push(columns(cx, &all, n));
        values.push(cx.arg(parts + part)?);
        let size = element(cx, shape, axis);
        offset = cx.b.add(offset, size);
    }
    let (places, values) = (cx.b.concatenate(&places, 0), cx.b.concatenate(&values, 0));
    let first = cx.arg(2 * parts)?;
    let number = cx.b.iota(DType::S64, &dims![rank], 0);
    let own = cx.b.scalar(DType::S64, axis as f64);
    let is_axis = cx.b.compare(Direction::Eq, number, own);
    let shape = cx.b.select(is_axis, offset, first);
    let (places, values) = in_order(cx, places, values, shape)?;
    Ok(vec![Value::Array(places), Value::Array(values), Value::Array(shape)])
}

fn reorder_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(vec![cx.one_output_like(0, cx.dims(0)?)?.remove(0), cx.one_output_like(1, cx.dims(1)?)?.remove(0)])
}

/// Shape function of `SparseConcat`: the elements of all inputs, of the same rank.
fn concatenate_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let parts = cx.args.len() / 3;
    let mut n = InferredDim::Known(0);
    for part in 0..parts {
        let rows = cx.dims_of_rank(part, 2)?[0];
        n = cx.add(n, rows);
    }
    let rank = cx.dims_of_rank(0, 2)?[1];
    Ok(vec![
        Fact::new(S64, vec![n, rank].into()),
        Fact::new(cx.dtype(parts), vec![n].into()),
        Fact::new(S64, vec![rank].into()),
    ])
}
