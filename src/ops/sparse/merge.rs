//! Sparse tensors merged element by element, reduced over axes, and split along an axis; gradients of sums and slices.
use super::parts::data_dependent_shape;
use super::runs::{SortedRuns, mask_positions, unravel_indices};
use super::{column, columns, element, indices, linear};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::fact::Fact;
use crate::ops::math::special::compare_scalar;
use crate::ops::op_lowering::op;
use crate::ops::shape::S64;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op(
        "SparseSparseMaximum",
        "a_indices a_values a_shape b_indices b_values b_shape -> output_indices output_values",
        |cx| joined(cx, Direction::Gt),
    )
    .shape(joined_shape)
    .dtypes("real numbers"),
    op(
        "SparseSparseMinimum",
        "a_indices a_values a_shape b_indices b_values b_shape -> output_indices output_values",
        |cx| joined(cx, Direction::Lt),
    )
    .shape(joined_shape)
    .dtypes("real numbers"),
    op(
        "SparseReduceSumSparse",
        "input_indices input_values input_shape reduction_axes -> output_indices output_values output_shape",
        |cx| reduced(cx, ScalarOp::Add),
    )
    .shape(reduced_shape)
    .constant_inputs(&[3]),
    op(
        "SparseReduceMaxSparse",
        "input_indices input_values input_shape reduction_axes -> output_indices output_values output_shape",
        |cx| reduced(cx, ScalarOp::Maximum),
    )
    .shape(reduced_shape)
    .constant_inputs(&[3])
    .dtypes("real numbers"),
    op("SparseSplit", "split_dim indices values shape -> output_indices* output_values* output_shape*", split)
        .shape(split_shape)
        .constant_inputs(&[0]),
    op("SparseAddGrad", "backprop_val_grad a_indices b_indices sum_indices -> a_val_grad b_val_grad", add_gradient)
        .shape(|cx| {
            let (n, m) = (cx.dims_of_rank(1, 2)?[0], cx.dims_of_rank(2, 2)?[0]);
            Ok(vec![cx.one_output_like(0, vec![n])?.remove(0), cx.one_output_like(0, vec![m])?.remove(0)])
        }),
    op("SparseSliceGrad", "backprop_val_grad input_indices input_start output_indices -> val_grad", slice_gradient)
        .shape(|cx| {
            let n = cx.dims_of_rank(1, 2)?[0];
            cx.one_output_like(0, vec![n])
        }),
];

fn check_real(cx: &LowerCtx, dtype: DType) -> Result<()> {
    if dtype.is_complex() || dtype == DType::Pred {
        return Err(cx.unsupported_case(format!("{} of {dtype}; real numbers are supported", cx.node.op)));
    }
    Ok(())
}

/// Lowers `SparseSparseMaximum` and `SparseSparseMinimum`: elements that either tensor has, in row-major order. The second
/// one's element wins if it is NaN or in relation `second` to the first one's. A missing element counts as zero.
fn joined(cx: &mut LowerCtx, second: Direction) -> Result<Vec<Value>> {
    let ((a, n, rank), (b, m, other), shape) = (indices(cx, 0)?, indices(cx, 3)?, cx.arg(2)?);
    if rank != other || rank == 0 || cx.b.dims(shape) != [Dim::from(rank)] {
        return Err(cx.shape_mismatch(format!("sparse tensors of ranks {rank} and {other}")));
    }
    let values = [cx.arg(1)?, cx.arg(4)?];
    let dtype = cx.b.dtype(values[0]);
    check_real(cx, dtype)?;
    let keys = [a, b].map(|places| linear(cx, places, shape));
    let keys = cx.b.concatenate(&keys, 0);
    let runs = SortedRuns::from_keys(cx, &[keys])?;
    // Each side's elements, with zeros in place of the other side's; a run has at most one element of each side.
    let (zeros_a, zeros_b) = (cx.b.full(dtype, &[n], 0.0), cx.b.full(dtype, &[m], 0.0));
    let mut sides = Vec::with_capacity(2);
    for parts in [[values[0], zeros_b], [zeros_a, values[1]]] {
        let all = cx.b.concatenate(&parts, 0);
        let all = gather_along_axis(cx, all, runs.order, 0, 0)?;
        sides.push(all);
    }
    let is_b: Vec<InstId> = [(n, 0.0), (m, 1.0)].map(|(n, is)| cx.b.full(DType::Pred, &[n], is)).into();
    let is_b = cx.b.concatenate(&is_b, 0);
    let is_b = gather_along_axis(cx, is_b, runs.order, 0, 0)?;
    let is_a = cx.b.unary(ScalarOp::Not, is_b);
    let [x, y] = [(is_a, sides[0]), (is_b, sides[1])].map(|(own, x)| placed_in_runs(cx, &runs, own, x));
    let (x, y) = (x?, y?);
    let (beyond, is_nan) = (cx.b.compare(second, y, x), cx.b.compare(Direction::Ne, y, y));
    let chosen = cx.b.elementwise(ScalarOp::Or, &[beyond, is_nan]);
    let y = cx.b.select(chosen, y, x);
    let (at, count) = mask_positions(cx, runs.exists, "the list of elements")?;
    let (keys, y) = (gather_along_axis(cx, runs.keys[0], at, 0, 0)?, gather_along_axis(cx, y, at, 0, 0)?);
    let places = unravel_indices(cx, keys, shape, rank);
    let places = columns(cx, &places, count);
    Ok(vec![Value::Array(places), Value::Array(y)])
}

/// Scatters the sorted elements that a mask selects to the position of their run; zeros elsewhere.
fn placed_in_runs(cx: &mut LowerCtx, runs: &SortedRuns, mask: InstId, sorted: InstId) -> Result<InstId> {
    crate::ops::compact::scatter_selected(cx, mask, runs.run, Some(sorted))
}

/// Lowers reductions to a sparse result: elements are combined over some axes, and the result has an element for each remaining
/// index that has any.
fn reduced(cx: &mut LowerCtx, fold: ScalarOp) -> Result<Vec<Value>> {
    let ((places, n, rank), values, shape) = (indices(cx, 0)?, cx.arg(1)?, cx.arg(2)?);
    if cx.b.dims(shape) != [Dim::from(rank)] || cx.b.dims(values) != [n] {
        return Err(cx.shape_mismatch(format!("{n} indices of rank {rank} for {}", cx.b.shape(values))));
    }
    let axes = cx.constant_ints(3)?.into_iter().map(|a| cx.normalize_axis(a, rank)).collect::<Result<Vec<_>>>()?;
    let dtype = cx.b.dtype(values);
    if fold == ScalarOp::Maximum {
        check_real(cx, dtype)?;
    }
    let kept: Vec<usize> = (0..rank).filter(|k| !axes.contains(k)).collect();
    let own: Vec<InstId> = kept.iter().map(|&k| column(cx, places, k)).collect();
    let sizes: Vec<InstId> = kept.iter().map(|&k| cx.b.slice_axis(shape, 0, Dim::from(k), Dim::from(k) + 1)).collect();
    let small = if sizes.is_empty() { cx.b.full(DType::S64, &dims![0], 0.0) } else { cx.b.concatenate(&sizes, 0) };
    let keys = columns(cx, &own, n);
    let keys = linear(cx, keys, small);
    let runs = SortedRuns::from_keys(cx, &[keys])?;
    let start = if fold == ScalarOp::Maximum { f64::NEG_INFINITY } else { 0.0 };
    let work = if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype };
    let values = cx.b.convert(values, work);
    let y = runs.reduce_runs(cx, values, Some(fold), start)?;
    let y = cx.b.convert(y, dtype);
    let (at, count) = mask_positions(cx, runs.exists, "the list of elements")?;
    let (keys, y) = (gather_along_axis(cx, runs.keys[0], at, 0, 0)?, gather_along_axis(cx, y, at, 0, 0)?);
    let own = unravel_indices(cx, keys, small, kept.len());
    if !cx.bool_attr("keep_dims") {
        let places = columns(cx, &own, count);
        return Ok([places, y, small].map(Value::Array).into());
    }
    let none = cx.b.full(DType::S64, &[count], 0.0);
    let place = |k: usize| kept.iter().position(|&axis| axis == k);
    let all: Vec<InstId> = (0..rank).map(|k| place(k).map_or(none, |i| own[i])).collect();
    let one = cx.b.full(DType::S64, &dims![1], 1.0);
    let sizes: Vec<InstId> = (0..rank).map(|k| place(k).map_or(one, |i| sizes[i])).collect();
    let places = columns(cx, &all, count);
    let shape = if sizes.is_empty() { small } else { cx.b.concatenate(&sizes, 0) };
    Ok([places, y, shape].map(Value::Array).into())
}

/// Lowers `SparseSplit`: parts along an axis; the first ones are longer by one if the axis is not divisible.
fn split(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((places, n, rank), values, shape) = (indices(cx, 1)?, cx.arg(2)?, cx.arg(3)?);
    if cx.b.dims(shape) != [Dim::from(rank)] || cx.b.dims(values) != [n] {
        return Err(cx.shape_mismatch(format!("{n} indices of rank {rank} for {}", cx.b.shape(values))));
    }
    let axis = cx.normalize_axis(cx.constant_int(0)?, rank)?;
    let parts = cx.require_attr(cx.node.int("num_split"), "num_split")?;
    let Some(parts) = Dim::size(parts).ok().filter(|&n| (1..1 << 16).contains(&n)) else {
        return Err(Error::user(Code::BadAttr, format!("num_split is {parts}")));
    };
    let size = element(cx, shape, axis);
    let known = crate::interp::constant_value(cx.b, size).and_then(|t| t.get_i64(0));
    if let Some(size) = known.filter(|&size| size < parts.guarded_value()) {
        return Err(cx.shape_mismatch(format!("{parts} parts of a dimension of {size}")));
    }
    let count = cx.b.scalar(DType::S64, parts);
    let (short, longer) = (cx.b.div(size, count), cx.b.elementwise(ScalarOp::Remainder, &[size, count]));
    let own = column(cx, places, axis);
    let number = cx.b.iota(DType::S64, &dims![rank], 0);
    let is_axis = compare_scalar(cx.b, Direction::Eq, number, axis as f64);
    let (mut all_places, mut all_values, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    for part in 0..parts.guarded_count() {
        let (here, next) = (cx.b.scalar(DType::S64, part as f64), cx.b.scalar(DType::S64, part as f64 + 1.0));
        let [start, end] = [here, next].map(|at| {
            let even = cx.b.mul(at, short);
            let more = cx.b.min(at, longer);
            cx.b.add(even, more)
        });
        let (from, to) = (cx.b.broadcast(start, &[n], &[]), cx.b.broadcast(end, &[n], &[]));
        let (above, below) = (cx.b.compare(Direction::Ge, own, from), cx.b.compare(Direction::Lt, own, to));
        let inside = cx.b.elementwise(ScalarOp::And, &[above, below]);
        let (at, _) = mask_positions(cx, inside, "the list of elements")?;
        let mut moved: Vec<InstId> = (0..rank).map(|k| column(cx, places, k)).collect();
        moved[axis] = cx.b.sub(own, from);
        let moved = columns(cx, &moved, n);
        all_places.push(gather_along_axis(cx, moved, at, 0, 0)?);
        all_values.push(gather_along_axis(cx, values, at, 0, 0)?);
        let length = cx.b.sub(end, start);
        let length = cx.b.broadcast(length, &dims![rank], &[]);
        shapes.push(cx.b.select(is_axis, length, shape));
    }
    Ok([all_places, all_values, shapes].concat().into_iter().map(Value::Array).collect())
}

/// For each row of `own [n, rank]`, the number that belongs to the same row of `others [m, rank]`; zero if there is none.
fn looked_up(cx: &mut LowerCtx, own: InstId, others: InstId, numbers: InstId) -> Result<InstId> {
    let ([n, rank], [m, same]) = (cx.b.dims(own), cx.b.dims(others)) else {
        return Err(cx.shape_mismatch("indices that are no matrices"));
    };
    let (n, rank, m, same) = (*n, *rank, *m, *same);
    if rank != same || cx.b.dims(numbers) != [m] {
        return Err(cx.shape_mismatch(format!("indices of ranks {rank} and {same}, {} for {m}", cx.b.shape(numbers))));
    }
    if m.is_zero() {
        return Ok(cx.b.full(cx.b.dtype(numbers), &[n], 0.0));
    }
    let mut is_same = cx.b.full(DType::Pred, &[n, m], 1.0);
    for k in 0..rank.guarded_index() {
        let (x, y) = (column(cx, own, k), column(cx, others, k));
        let (x, y) = (cx.b.broadcast(x, &[n, m], &[0]), cx.b.broadcast(y, &[n, m], &[1]));
        let equal = cx.b.compare(Direction::Eq, x, y);
        is_same = cx.b.elementwise(ScalarOp::And, &[is_same, equal]);
    }
    let (place, outside) = (cx.b.iota(DType::S32, &[n, m], 1), cx.b.full(DType::S32, &[n, m], -1.0));
    let place = cx.b.select(is_same, place, outside);
    let none = cx.b.scalar(DType::S32, -1.0);
    let place = cx.b.reduce(place, none, ScalarOp::Maximum, &[1]);
    let is_there = compare_scalar(cx.b, Direction::Ge, place, 0.0);
    let taken = gather_along_axis(cx, numbers, place, 0, 0)?;
    let zeros = cx.b.full_like(taken, 0.0);
    Ok(cx.b.select(is_there, taken, zeros))
}

/// Lowers the gradients of the operands of a sparse addition: the sum's gradient at the indices of each operand.
fn add_gradient(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (grad, a, b, sum) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let (x, y) = (looked_up(cx, a, sum, grad)?, looked_up(cx, b, sum, grad)?);
    Ok(vec![Value::Array(x), Value::Array(y)])
}

/// Lowers the gradient of a sparse slice: the slice's gradient at the indices of the input.
fn slice_gradient(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (grad, (whole, ..), start, (part, m, rank)) = (cx.arg(0)?, indices(cx, 1)?, cx.arg(2)?, indices(cx, 3)?);
    if cx.b.dims(start) != [Dim::from(rank)] {
        return Err(cx.shape_mismatch(format!("{} for indices of rank {rank}", cx.b.shape(start))));
    }
    let start = cx.b.broadcast(start, &dims![m, rank], &[1]);
    let moved = cx.b.add(part, start);
    let y = looked_up(cx, whole, moved, grad)?;
    cx.one_output(y)
}

/// Shape function: indices and values, of a data-dependent number of elements.
fn joined_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let mut all = data_dependent_shape(cx)?;
    all.truncate(2);
    Ok(all)
}

fn reduced_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.fresh_dim(UnknownReason::Data);
    let rank = match (cx.dims_of_rank(0, 2)?[1], cx.constant_ints(3)) {
        (rank, _) if cx.bool_attr("keep_dims") => rank,
        (InferredDim::Known(rank), Some(axes)) => {
            let rank = rank as usize;
            let mut axes = axes.into_iter().map(|a| cx.normalize_axis(a, rank)).collect::<Result<Vec<_>>>()?;
            axes.sort_unstable();
            axes.dedup();
            InferredDim::Known((rank - axes.len()) as u64)
        }
        _ => cx.fresh_dim(UnknownReason::Value(3)),
    };
    Ok(vec![
        Fact::new(S64, vec![n, rank].into()),
        Fact::new(cx.dtype(1), vec![n].into()),
        Fact::new(S64, vec![rank].into()),
    ])
}

fn split_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let parts = cx.node.int("num_split").and_then(|n| usize::try_from(n).ok()).unwrap_or(0).min(1 << 16);
    let rank = cx.dims_of_rank(1, 2)?[1];
    let sizes: Vec<InferredDim> = (0..parts).map(|_| cx.fresh_dim(UnknownReason::Data)).collect();
    let places = sizes.iter().map(|&n| Fact::new(S64, vec![n, rank].into()));
    let values = sizes.iter().map(|&n| Fact::new(cx.dtype(2), vec![n].into()));
    let shapes = sizes.iter().map(|_| Fact::new(S64, vec![rank].into()));
    Ok(places.chain(values).chain(shapes).collect())
}
