//! Slices, splits and permutations of elements: `Slice`, `Split`, `Unpack`, `Reverse`, `Roll`.
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::SliceDim;
use crate::hlo::symbolic::{Dim, InstId, Op};
use crate::ops::ShapeCtx;
use crate::ops::checks;
use crate::ops::fact::{Fact, InferredInt};
use crate::ops::math::special::compare_scalar;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::Direction;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Slice", "input begin size -> output", slice)
        .with_check(checks::check_slice_bounds)
        .moves_strings()
        .shape(slice_shape)
        .constant_inputs(&[2]),
    op("Split", "split_dim value -> output*", split).moves_strings().shape(split_shape).constant_inputs(&[0]),
    op("SplitV", "value size_splits split_dim -> output*", split_v)
        .moves_strings()
        .shape(split_v_shape)
        .constant_inputs(&[1, 2]),
    op("Unpack", "value -> output*", unpack).moves_strings().shape(unpack_shape),
    op("ReverseV2", "tensor axis -> output", reverse_v2).moves_strings().shape(like_first_input).constant_inputs(&[1]),
    op("Reverse", "tensor dims -> output", reverse).moves_strings().shape(like_first_input).constant_inputs(&[1]),
    op("Roll", "input shift axis -> output", roll).moves_strings().shape(like_first_input).constant_inputs(&[2]),
];

/// Lowers `Slice`; begin and size may be known only at run time.
fn slice(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let rank = [Dim::from(dims.len())];
    if cx.dims(1)? != rank || cx.dims(2)? != rank {
        return Err(cx.shape_mismatch(format!("a begin or size of another length than the rank {}", dims.len())));
    }
    let size = match cx.constant_dims(2) {
        Ok(size) => size,
        Err(refused) if cx.b.carries_checks() => return slice_of_any_size(cx).or(Err(refused)),
        Err(refused) => return Err(refused),
    };
    let is_rest = |size: Dim| !size.varies() && size == -1;
    if let Ok(begin) = cx.constant_dims(1) {
        let mut parts = Vec::with_capacity(dims.len());
        for ((&begin, &size), &n) in begin.iter().zip(&size).zip(&dims) {
            let limit = if is_rest(size) { Some(n) } else { begin.checked_add(size) };
            match limit {
                Some(limit) if begin >= 0 && limit >= begin && limit <= n => {
                    parts.push(SliceDim { start: begin, limit, stride: Dim::from(1) });
                }
                _ => return Err(cx.shape_mismatch(format!("{size} elements from {begin} are not within {n}"))),
            }
        }
        let y = cx.b.slice(x, &parts);
        return cx.one_output(y);
    }
    let sizes: Option<Vec<Dim>> =
        size.iter().zip(&dims).map(|(&s, &n)| s.into_nonnegative().filter(|&s| s <= n)).collect();
    let Some(sizes) = sizes else {
        return Err(cx.unsupported_case("a slice to the end from a begin that is not constant"));
    };
    let begin = cx.arg(1)?;
    let mut operands = vec![x];
    for axis in 0..dims.len() {
        let one = cx.b.slice_axis(begin, 0, Dim::from(axis), Dim::from(axis) + 1);
        operands.push(cx.b.reshape(one, &[]));
    }
    let y = cx.b.add_inst(Op::DynamicSlice(sizes), &operands);
    cx.one_output(y)
}

/// Lowers `Slice` with a number of elements along some axis that depends on the data.
fn slice_of_any_size(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (mut x, dims, begin, size) = (cx.arg(0)?, cx.dims(0)?, cx.arg(1)?, cx.arg(2)?);
    let (begin, size) = (cx.b.convert(begin, DType::S32), cx.b.convert(size, DType::S32));
    for (axis, &n) in dims.iter().enumerate() {
        let one = |cx: &mut LowerCtx, of: InstId| {
            let one = cx.b.slice_axis(of, 0, Dim::from(axis), Dim::from(axis) + 1);
            cx.b.reshape(one, &[])
        };
        let (begin, size) = (one(cx, begin), one(cx, size));
        let whole = cx.b.full_like(begin, n);
        let rest = cx.b.sub(whole, begin);
        let is_rest = compare_scalar(cx.b, Direction::Eq, size, -1.0);
        let count = cx.b.select(is_rest, rest, size);
        let made = format!("what `{}` takes", cx.node.name);
        let count = cx.bounded_size(count, n, &made)?;
        let places = cx.b.iota(DType::S32, &[count], 0);
        let begin = cx.b.broadcast_to(begin, &[count]);
        let places = cx.b.add(places, begin);
        x = super::gather::gather_along_axis(cx, x, places, axis, 0)?;
    }
    cx.one_output(x)
}

fn split(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(1)?, cx.dims(1)?);
    let axis = cx.normalize_axis(cx.constant_int(0)?, dims.len())?;
    let n = cx.require_attr(cx.node.int("num_split"), "num_split")?;
    let n = Dim::size(n).ok().filter(|&n| n > 0 && dims[axis] % n == 0);
    let Some(n) = n else { return Err(cx.shape_mismatch(format!("{dims:?} does not split evenly along {axis}"))) };
    pieces(cx, x, axis, &vec![dims[axis] / n; n.guarded_index()])
}

fn pieces(cx: &mut LowerCtx, x: InstId, axis: usize, sizes: &[Dim]) -> Result<Vec<Value>> {
    let mut start = Dim::from(0);
    let mut out = Vec::with_capacity(sizes.len());
    for &size in sizes {
        out.push(Value::Array(cx.b.slice_axis(x, axis, start, start + size)));
        start += size;
    }
    Ok(out)
}

fn split_v(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, sizes) = (cx.arg(0)?, cx.dims(0)?, cx.sizes_from_input(1)?);
    let axis = cx.normalize_axis(cx.constant_int(2)?, dims.len())?;
    let is_rest = |size: Dim| !size.varies() && size == -1;
    let known: Dim = sizes.iter().filter(|&&s| !is_rest(s)).sum();
    let rest = dims[axis] - known;
    let open = sizes.iter().filter(|&&s| is_rest(s)).count();
    if open > 1 || rest < 0 || (open == 0 && rest != 0) || sizes.iter().any(|&s| s < -1) {
        return Err(cx.shape_mismatch(format!("{sizes:?} does not split {} elements", dims[axis])));
    }
    let sizes: Vec<Dim> = sizes.iter().map(|&s| if is_rest(s) { rest } else { s }).collect();
    pieces(cx, x, axis, &sizes)
}

fn unpack(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, mut dims) = (cx.arg(0)?, cx.dims(0)?);
    let axis = cx.normalize_axis(cx.node.int("axis").unwrap_or(0), dims.len())?;
    let n = dims.remove(axis);
    if cx.node.int("num").is_some_and(|want| want != n.guarded_value()) || n > 1 << 20 {
        return Err(cx.shape_mismatch(format!("dimension {axis} has {n} parts, which is not what the node says")));
    }
    let mut out = Vec::with_capacity(n.guarded_index());
    for i in 0..n.guarded_count() {
        let part = cx.b.slice_axis(x, axis, Dim::from(i), Dim::from(i + 1));
        out.push(Value::Array(cx.b.reshape(part, &dims)));
    }
    Ok(out)
}

fn reverse_axes(cx: &mut LowerCtx, axes: Vec<usize>) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let y = if axes.is_empty() { x } else { cx.b.add_inst(Op::Reverse(axes), &[x]) };
    cx.one_output(y)
}

fn reverse_v2(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let rank = cx.dims(0)?.len();
    let axes = cx.constant_ints(1)?.iter().map(|&a| cx.normalize_axis(a, rank)).collect::<Result<Vec<_>>>()?;
    reverse_axes(cx, axes)
}

fn reverse(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let flags = cx.constant_ints(1)?;
    if flags.len() != cx.dims(0)?.len() {
        return Err(cx.shape_mismatch("one flag a dimension is needed"));
    }
    let axes = (0..flags.len()).filter(|&i| flags[i] != 0).collect();
    reverse_axes(cx, axes)
}

fn roll(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (mut x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let axes = cx.constant_ints(2)?;
    let Ok(shifts) = cx.constant_dims(1) else { return roll_at_run_time(cx, &axes) };
    if shifts.len() != axes.len() {
        return Err(cx.shape_mismatch("shift and axis have different lengths"));
    }
    let mut turns = Vec::with_capacity(axes.len());
    for (&shift, &axis) in shifts.iter().zip(&axes) {
        let axis = cx.normalize_axis(axis, dims.len())?;
        match rotation(shift, dims[axis]) {
            Some(by) => turns.push((axis, by)),
            None => return roll_at_run_time(cx, &axes),
        }
    }
    for (axis, by) in turns {
        let n = dims[axis];
        if !by.is_zero() {
            let (end, start) = (cx.b.slice_axis(x, axis, n - by, n), cx.b.slice_axis(x, axis, Dim::from(0), n - by));
            x = cx.b.concatenate(&[end, start], axis);
        }
    }
    cx.one_output(x)
}

/// Distance by which `n` elements are rotated towards the end, in `0..n`; `None` if it does not follow from the sizes.
fn rotation(shift: Dim, n: Dim) -> Option<Dim> {
    if !shift.varies() && !n.varies() {
        return Some(if n == 0 {
            Dim::from(0)
        } else {
            Dim::from(shift.concrete_value().rem_euclid(n.concrete_value()))
        });
    }
    let by = if shift.varies() || shift >= 0 { shift } else { n + shift };
    let is = |truth: Dim, value: i64| !truth.varies() && truth == value;
    (is(by.is_less(0), 0) && is(by.is_less(n), 1)).then_some(by)
}

/// Lowers `Roll` with run-time shifts: a gather along each axis from `(position - shift) mod size`.
fn roll_at_run_time(cx: &mut LowerCtx, axes: &[i64]) -> Result<Vec<Value>> {
    let (mut x, dims, shifts) = (cx.arg(0)?, cx.dims(0)?, cx.arg(1)?);
    let shifts = cx.b.reshape(shifts, &dims![axes.len()]);
    if crate::symbolic::has_zero(&dims) {
        return cx.one_output(x);
    }
    for (i, &axis) in axes.iter().enumerate() {
        let axis = cx.normalize_axis(axis, dims.len())?;
        let shift = cx.b.slice_axis(shifts, 0, Dim::from(i), Dim::from(i) + 1);
        let position = cx.b.iota(cx.b.dtype(shift), &[dims[axis]], 0);
        let from = cx.b.sub(position, shift);
        let size = cx.b.full_like(from, dims[axis]);
        let from = crate::ops::math::binary::floor_mod(cx.b, from, size);
        x = super::gather::gather_along_axis(cx, x, from, axis, 0)?;
    }
    cx.one_output(x)
}

fn slice_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (begin, size) = (cx.partial_ints(1), cx.partial_ints(2));
    let rank = begin.as_ref().or(size.as_ref()).map(Vec::len);
    let dims = match (cx.ranked_dims(0)?, rank) {
        (Some(dims), _) => dims,
        (None, Some(rank)) => cx.dims_of_rank(0, rank)?,
        (None, None) => {
            let dims = cx.unranked_from(0);
            return cx.one_output_like(0, dims);
        }
    };
    let fits = |v: &Option<Vec<InferredInt>>| v.as_ref().is_none_or(|v| v.len() == dims.len());
    if !fits(&begin) || !fits(&size) {
        return Err(cx.shape_mismatch(format!("a begin or size of another length than the rank {}", dims.len())));
    }
    let entry = |v: &Option<Vec<InferredInt>>, i: usize| v.as_ref().map_or(InferredInt::Unknown, |v| v[i]);
    let mut out = Vec::with_capacity(dims.len());
    for (i, &n) in dims.iter().enumerate() {
        out.push(match (entry(&begin, i).as_dim(), entry(&size, i)) {
            (Some(begin), InferredInt::Known(-1)) => cx.sub(n, begin),
            (None, InferredInt::Known(-1)) => cx.fresh_dim(UnknownReason::Value(1)),
            (_, size) => size.as_dim().unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(2))),
        });
    }
    let values = cx.partial_ints(0).filter(|v| out.len() == 1 && dims == [InferredDim::Known(v.len() as u64)]);
    if let (Some(values), Some(dtype), InferredInt::Known(from), &[InferredDim::Known(n)]) =
        (values, cx.dtype(0), entry(&begin, 0), &out[..])
    {
        let part = usize::try_from(from).ok().and_then(|from| values.get(from..from.checked_add(n as usize)?));
        if let Some(part) = part {
            return Ok(vec![Fact::from_ints(dtype, &[n], part.to_vec())]);
        }
    }
    cx.one_output_like(0, out)
}

/// Shape function: one output for each of `sizes`, a slice of input `i` along an axis.
fn pieces_shape(
    cx: &mut ShapeCtx,
    i: usize,
    axis: Option<i64>,
    axis_input: usize,
    sizes: &[InferredDim],
) -> Result<Vec<Fact>> {
    let dims = cx.ranked_dims(i)?;
    let mut out = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let piece = match (&dims, axis) {
            (Some(dims), Some(axis)) => {
                let mut dims = dims.clone();
                let axis = cx.normalize_axis(axis, dims.len())?;
                dims[axis] = size;
                dims.into()
            }
            (Some(dims), None) => cx.fresh_shape(dims.len(), UnknownReason::Value(axis_input)),
            (None, _) => cx.unranked_from(i),
        };
        out.push(Fact::new(cx.dtype(i), piece));
    }
    Ok(out)
}

/// Largest number of outputs of an op.
const MOST_PIECES: usize = 1 << 16;

fn split_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.node.int("num_split").and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0 && n < MOST_PIECES as u64);
    let n = n.ok_or_else(|| cx.shape_mismatch("num_split must be positive"))?;
    let axis = cx.constant_int(0);
    let size = match (cx.ranked_dims(1)?, axis) {
        (Some(dims), Some(axis)) => cx.div_exact(dims[cx.normalize_axis(axis, dims.len())?], n)?,
        _ => InferredDim::Known(0),
    };
    pieces_shape(cx, 1, axis, 0, &vec![size; n as usize])
}

fn split_v_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.node.int("num_split").and_then(|n| usize::try_from(n).ok()).filter(|&n| n < MOST_PIECES);
    let n = n.ok_or_else(|| cx.shape_mismatch("num_split must be positive"))?;
    let axis = cx.constant_int(2);
    let given = cx.partial_ints(1).filter(|v| v.len() == n).unwrap_or_else(|| vec![InferredInt::Unknown; n]);
    let whole = match (cx.ranked_dims(0)?, axis) {
        (Some(dims), Some(axis)) => Some(dims[cx.normalize_axis(axis, dims.len())?]),
        _ => None,
    };
    let known: Vec<InferredDim> = given.iter().filter_map(|v| v.as_dim()).collect();
    let rest = match whole {
        Some(whole) if known.len() + 1 == n => {
            let sum = known.iter().fold(InferredDim::Known(0), |a, &b| cx.add(a, b));
            Some(cx.sub(whole, sum))
        }
        _ => None,
    };
    let mut sizes = Vec::with_capacity(n);
    for v in given {
        sizes.push(v.as_dim().or(rest).unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(1))));
    }
    pieces_shape(cx, 0, axis, 2, &sizes)
}

/// Shape function of `Unpack`: input 0 without an axis, once for each slice along it. The known elements of a vector of sizes
/// are kept.
fn unpack_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.node.int("num").and_then(|n| usize::try_from(n).ok()).filter(|&n| n < MOST_PIECES);
    let n = n.ok_or_else(|| cx.shape_mismatch("num must not be negative"))?;
    let dims = match cx.ranked_dims(0)? {
        Some(mut dims) => {
            let axis = cx.normalize_axis(cx.node.int("axis").unwrap_or(0), dims.len())?;
            if cx.merge_dim(dims.remove(axis), InferredDim::Known(n as u64)).is_none() {
                return Err(cx.shape_mismatch(format!("dimension {axis} of {} has not {n} parts", cx.dims(0)?)));
            }
            Some(dims)
        }
        None => None,
    };
    if let (Some(values), Some(dtype), Some([])) = (cx.partial_ints(0), cx.dtype(0), dims.as_deref()) {
        return Ok(values.into_iter().map(|v| Fact::from_ints(dtype, &[], vec![v])).collect());
    }
    let mut out = Vec::with_capacity(n);
    for _ in 0..n {
        let dims = dims.clone().map_or_else(|| cx.unranked_from(0), Into::into);
        out.push(Fact::new(cx.dtype(0), dims));
    }
    Ok(out)
}
