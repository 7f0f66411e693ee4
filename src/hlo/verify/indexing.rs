//! Rule 6: axes and index operands of the ops that move data.
use super::{CheckResult, array};
use crate::hlo::attrs::*;
use crate::hlo::{ArrayShape, Inst, Op, Shape};
use crate::tensor::DType;

/// Checks axes and index operands.
pub(super) fn check(op: &Op, inst: &Inst, shapes: &[&Shape]) -> CheckResult {
    match op {
        Op::Constant(value) => literal_fits(value, &inst.shape),
        Op::DynamicSlice(_) => check_starts(array(shapes, 0)?, shapes, 1),
        Op::DynamicUpdateSlice => check_starts(array(shapes, 0)?, shapes, 2),
        Op::Gather(d) => gather(array(shapes, 0)?, array(shapes, 1)?, d),
        Op::Scatter { dims, .. } => {
            let k = shapes.len() / 2;
            for i in 0..k {
                scatter(array(shapes, i)?, array(shapes, k)?, array(shapes, k + 1 + i)?, dims)?;
            }
            Ok(())
        }
        Op::Sort { dim, .. } => {
            let first = array(shapes, 0)?;
            for i in 0..shapes.len() {
                if array(shapes, i)?.dims != first.dims {
                    return Err("operands of a sort differ in their dimensions".to_string());
                }
            }
            if *dim < first.rank() { Ok(()) } else { Err(format!("dimension {dim} is beyond {first}")) }
        }
        Op::GetDimensionSize(d) => {
            let x = array(shapes, 0)?;
            if *d < x.rank() { Ok(()) } else { Err(format!("dimension {d} is out of bounds of {x}")) }
        }
        Op::SetDimensionSize(d) => {
            let (x, size) = (array(shapes, 0)?, array(shapes, 1)?);
            let fits = *d < x.rank() && size.rank() == 0 && size.dtype == DType::S32;
            if fits { Ok(()) } else { Err(format!("dimension {d} of {x} set to {size}")) }
        }
        Op::SelectAndScatter { window, .. } => {
            let (x, source, init) = (array(shapes, 0)?, array(shapes, 1)?, array(shapes, 2)?);
            let sizes: Option<Vec<u64>> = window.iter().zip(&x.dims).map(|(w, &n)| w.output_size(n)).collect();
            let fits = window.len() == x.rank() && sizes.as_ref() == Some(&source.dims) && init.rank() == 0;
            if fits && source.dtype == x.dtype && init.dtype == x.dtype {
                Ok(())
            } else {
                Err(format!("source {source} and initial value {init} do not fit {x}"))
            }
        }
        Op::Cholesky { .. } => square(array(shapes, 0)?),
        Op::TriangularSolve { left_side, .. } => {
            let (a, b) = (array(shapes, 0)?, array(shapes, 1)?);
            square(a)?;
            let n = a.rank();
            let axis = if *left_side { 2 } else { 1 };
            let fits = b.rank() == n
                && a.dtype == b.dtype
                && b.dims[..n - 2] == a.dims[..n - 2]
                && b.dims[n - axis] == a.dims[n - 1];
            if fits { Ok(()) } else { Err(format!("{b} does not fit the triangle {a}")) }
        }
        Op::BatchNormTraining { feature_index, .. }
        | Op::BatchNormInference { feature_index, .. }
        | Op::BatchNormGrad { feature_index, .. } => batch_norm(op, shapes, *feature_index),
        _ => Ok(()),
    }
}

fn literal_fits(value: &crate::hlo::Literal, shape: &Shape) -> CheckResult {
    // `written` compared the shapes; an opaque part has no value.
    if shape.leaves().len() == value.leaves().len() { Ok(()) } else { Err("a constant has no value".to_string()) }
}

fn square(a: &ArrayShape) -> CheckResult {
    let n = a.rank();
    let fits = n >= 2 && a.dims[n - 1] == a.dims[n - 2] && (a.dtype.is_float() || a.dtype.is_complex());
    if fits { Ok(()) } else { Err(format!("{a} is no batch of square matrices")) }
}

fn batch_norm(op: &Op, shapes: &[&Shape], feature: usize) -> CheckResult {
    let x = array(shapes, 0)?;
    let channels = *x.dims.get(feature).ok_or("feature_index is beyond the rank")?;
    let grad = matches!(op, Op::BatchNormGrad { .. });
    for i in 1..shapes.len() {
        let a = array(shapes, i)?;
        let fits = if grad && i == 4 { a.dims == x.dims } else { a.dims == [channels] };
        if !fits {
            return Err(format!("operand {i} is {a} for {channels} channels"));
        }
    }
    Ok(())
}

/// Checks start indices: one integer scalar per axis, or one vector of them.
fn check_starts(x: &ArrayShape, shapes: &[&Shape], from: usize) -> CheckResult {
    let n = shapes.len() - from;
    let first = if n > 0 { Some(array(shapes, from)?) } else { None };
    if n == 1 && first.is_some_and(|f| f.rank() == 1) {
        let f = array(shapes, from)?;
        let fits = f.dtype.is_integer() && f.dims == [x.rank() as u64];
        return if fits { Ok(()) } else { Err(format!("start indices {f} for {x}")) };
    }
    if n != x.rank() {
        return Err(format!("{n} start indices for {x}"));
    }
    for i in from..shapes.len() {
        let index = array(shapes, i)?;
        if index.rank() != 0 || !index.dtype.is_integer() {
            return Err(format!("start index {i} is {index}, not an integer scalar"));
        }
        if first.is_some_and(|f| f.dtype != index.dtype) {
            return Err("start indices must all have one type".to_string());
        }
    }
    Ok(())
}

fn check_distinct(axes: &[usize], rank: usize, what: &str) -> CheckResult {
    let mut seen = vec![false; rank];
    for &a in axes {
        match seen.get_mut(a) {
            Some(slot) if !*slot => *slot = true,
            _ => return Err(format!("{what} {axes:?} are not distinct axes below {rank}")),
        }
    }
    Ok(())
}

fn check_sorted(axes: &[usize], what: &str) -> CheckResult {
    if axes.is_sorted() { Ok(()) } else { Err(format!("{what} must be sorted; got {axes:?}")) }
}

/// Number of index components.
fn index_size(indices: &ArrayShape, dim: usize) -> Result<u64, String> {
    if !indices.dtype.is_integer() {
        return Err(format!("indices are {indices}, not integers"));
    }
    match dim.cmp(&indices.rank()) {
        std::cmp::Ordering::Less => Ok(indices.dims[dim]),
        std::cmp::Ordering::Equal => Ok(1),
        std::cmp::Ordering::Greater => Err(format!("index_vector_dim {dim} is beyond {indices}")),
    }
}

fn check_batching(x: &ArrayShape, indices: &ArrayShape, xs: &[usize], is: &[usize], vector: usize) -> CheckResult {
    check_sorted(xs, "operand batching dimensions")?;
    check_distinct(is, indices.rank(), "index batching dimensions")?;
    let fits =
        xs.len() == is.len() && !is.contains(&vector) && xs.iter().zip(is).all(|(&a, &b)| x.dims[a] == indices.dims[b]);
    if fits { Ok(()) } else { Err(format!("batching dimensions {xs:?} and {is:?} do not fit")) }
}

/// Operand axes of a gather that are indexed, and those that are batch axes. An axis of size 1 may be both, as its index and
/// its batch number can only be 0. For larger axes, XLA's verifier accepts that, but its code generator fails.
fn indexed_or_batched(x: &ArrayShape, d: &GatherDims) -> Vec<usize> {
    let is_both = |a: &&usize| d.start_index_map.contains(*a) && x.dims.get(**a) == Some(&1);
    let batches = d.operand_batching_dims.iter().filter(|a| !is_both(a));
    d.start_index_map.iter().chain(batches).copied().collect()
}

fn gather(x: &ArrayShape, indices: &ArrayShape, d: &GatherDims) -> CheckResult {
    check_sorted(&d.offset_dims, "offset_dims")?;
    check_sorted(&d.collapsed_slice_dims, "collapsed_slice_dims")?;
    let dropped = [&d.collapsed_slice_dims[..], &d.operand_batching_dims].concat();
    check_distinct(&dropped, x.rank(), "collapsed and batching dimensions")?;
    check_distinct(&indexed_or_batched(x, d), x.rank(), "start_index_map and batching dimensions")?;
    if index_size(indices, d.index_vector_dim)? != d.start_index_map.len() as u64 {
        return Err(format!("start_index_map {:?} does not fit {indices}", d.start_index_map));
    }
    if dropped.iter().any(|&a| d.slice_sizes.get(a).is_none_or(|&s| s > 1)) {
        return Err("collapsed and batching dimensions have slices of at most 1".to_string());
    }
    check_distinct(&d.offset_dims, indices.rank() + d.offset_dims.len(), "offset_dims")?;
    check_batching(x, indices, &d.operand_batching_dims, &d.start_indices_batching_dims, d.index_vector_dim)
}

fn scatter(x: &ArrayShape, indices: &ArrayShape, updates: &ArrayShape, d: &ScatterDims) -> CheckResult {
    check_sorted(&d.update_window_dims, "update_window_dims")?;
    check_sorted(&d.inserted_window_dims, "inserted_window_dims")?;
    check_distinct(&d.update_window_dims, updates.rank(), "update_window_dims")?;
    let dropped = [&d.inserted_window_dims[..], &d.input_batching_dims].concat();
    check_distinct(&dropped, x.rank(), "inserted and batching dimensions")?;
    check_distinct(
        &[&d.scatter_dims_to_operand_dims[..], &d.input_batching_dims].concat(),
        x.rank(),
        "scatter_dims_to_operand_dims",
    )?;
    if index_size(indices, d.index_vector_dim)? != d.scatter_dims_to_operand_dims.len() as u64 {
        return Err(format!("scatter_dims_to_operand_dims do not fit {indices}"));
    }
    check_batching(x, indices, &d.input_batching_dims, &d.scatter_indices_batching_dims, d.index_vector_dim)?;
    let window: Vec<u64> = (0..x.rank()).filter(|a| !dropped.contains(a)).map(|a| x.dims[a]).collect();
    let batch: Vec<u64> = (0..indices.rank()).filter(|&a| a != d.index_vector_dim).map(|a| indices.dims[a]).collect();
    if window.len() != d.update_window_dims.len() || updates.rank() != window.len() + batch.len() {
        return Err(format!("updates {updates} do not fit {x} and {indices}"));
    }
    let too_large = d.update_window_dims.iter().zip(&window).any(|(&a, &n)| updates.dims[a] > n);
    let rest = (0..updates.rank()).filter(|a| !d.update_window_dims.contains(a)).map(|a| updates.dims[a]);
    if too_large || !rest.eq(batch) { Err(format!("updates {updates} do not fit {x} and {indices}")) } else { Ok(()) }
}
