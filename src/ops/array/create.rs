//! Creation of arrays from a few numbers: `Fill`, `Range`, `LinSpace`, `OneHot`.
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::interp;
use crate::ops::ShapeCtx;
use crate::ops::fact::{Fact, InferredInt};
use crate::ops::math::special::{compare_scalar, div_ceil};
use crate::ops::op_lowering::op;
use crate::ops::shape::shape_from_input_value;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::Direction;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Fill", "dims value -> output", fill).moves_strings().shape(fill_shape).constant_inputs(&[0]),
    op("Empty", "shape -> output", empty).shape(shape_from_input_value).constant_inputs(&[0]),
    op("Range", "start limit delta -> output", range).shape(range_shape).constant_inputs(&[0, 1, 2]),
    op("LinSpace", "start stop num -> output", lin_space).shape(lin_space_shape).constant_inputs(&[2]),
    op("OneHot", "indices depth on_value off_value -> output", one_hot).shape(one_hot_shape).constant_inputs(&[1]),
];

fn fill(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, value) = (super::shape::shape_from_input(cx, 0)?, cx.arg(1)?);
    let value = cx.b.reshape(value, &[]);
    let y = cx.b.broadcast(value, &dims, &[]);
    cx.one_output(y)
}

fn empty(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, dtype) = (super::shape::shape_from_input(cx, 0)?, cx.attr_dtype("dtype")?);
    let y = cx.b.full(dtype, &dims, 0.0);
    cx.one_output(y)
}

/// Lowers `Range`: `start + i * delta`.
fn range(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (start, delta) = (cx.arg(0)?, cx.arg(2)?);
    let dtype = cx.b.dtype(start);
    let is_known = (0..3).all(|i| cx.symbolic_value(i).is_some());
    let count = if is_known || dtype.is_float() { known_steps(cx)? } else { steps_at_run_time(cx)? };
    let steps = cx.b.iota(dtype, &[count], 0);
    let (start, delta) = (cx.b.reshape(start, &[]), cx.b.reshape(delta, &[]));
    let offsets = cx.b.mul(steps, delta);
    let y = cx.b.add(offsets, start);
    cx.one_output(y)
}

/// Number of elements of a range whose start and limit are known at compile time.
fn known_steps(cx: &LowerCtx) -> Result<Dim> {
    let too_long = || crate::diag::Error::user(crate::diag::Code::TooLarge, "a range of more than 2^32 elements");
    let count = if cx.dtype(0)?.is_float() {
        let value = |i: usize| -> Result<f64> {
            cx.constant(i)?.get_f64(0).ok_or_else(|| cx.shape_mismatch(format!("input {i} must be a scalar")))
        };
        let (start, limit, delta) = (value(0)?, value(1)?, value(2)?);
        ((limit - start) / delta).ceil().max(0.0)
    } else {
        let (start, limit, delta) = (cx.constant_dim(0)?, cx.constant_dim(1)?, cx.constant_int(2)?);
        let span = limit.signed_sub(start).filter(|_| delta != 0);
        let span = span.map(|span| if delta < 0 { -span } else { span }).filter(|&span| span >= 0);
        let Some(span) = span else {
            return Err(cx.shape_mismatch(format!("no range from {start} to {limit} by {delta}")));
        };
        let count = span.div_ceil(delta.unsigned_abs());
        return if count > 1u64 << 32 { Err(too_long()) } else { Ok(count) };
    };
    if count.is_nan() || count > (1u64 << 32) as f64 {
        return Err(too_long());
    }
    Ok(Dim::from(count as u64))
}

/// Number of elements of a range whose ends are known only at run time, with a constant step.
fn steps_at_run_time(cx: &mut LowerCtx) -> Result<Dim> {
    let delta = cx.constant_int(2)?;
    if delta == 0 {
        return Err(cx.shape_mismatch("a range by 0"));
    }
    let (start, limit) = (cx.b.reshape(cx.arg(0)?, &[]), cx.b.reshape(cx.arg(1)?, &[]));
    let (from, to) = if delta > 0 { (start, limit) } else { (limit, start) };
    let (from, to) = (cx.b.convert(from, DType::S64), cx.b.convert(to, DType::S64));
    let is_from_zero = interp::constant_value(cx.b, from).and_then(|t| t.get_i64(0)) == Some(0);
    let span = if is_from_zero { to } else { cx.b.sub(to, from) };
    let count = div_ceil(cx.b, span, Dim::from(delta.unsigned_abs()));
    let made = format!("the range `{}`", cx.node.name);
    cx.size_from_scalar(count, &made)
}

fn lin_space(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (start, stop, num) = (cx.arg(0)?, cx.arg(1)?, cx.size_from_input(2)?);
    if num < 1 || num > 1i64 << 32 || cx.b.rank(start) != 0 || cx.b.rank(stop) != 0 {
        return Err(cx.shape_mismatch(format!("{num} points between {} and {}", cx.b.shape(start), cx.b.shape(stop))));
    }
    if num == 1 {
        let y = cx.b.reshape(start, &dims![1]);
        return cx.one_output(y);
    }
    let dtype = cx.b.dtype(start);
    let span = cx.b.sub(stop, start);
    let last = cx.b.scalar(dtype, num - 1);
    let step = cx.b.div(span, last);
    let index = cx.b.iota(dtype, &dims![num], 0);
    let offsets = cx.b.mul(index, step);
    let y = cx.b.add(offsets, start);
    let at_end = compare_scalar(cx.b, Direction::Eq, index, num - 1);
    let y = cx.b.select(at_end, stop, y);
    // An infinite start has no finite step; the first element is the start itself.
    let at_start = compare_scalar(cx.b, Direction::Eq, index, 0.0);
    let y = cx.b.select(at_start, start, y);
    cx.one_output(y)
}

fn one_hot(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (indices, depth, on, off) = (cx.arg(0)?, cx.size_from_input(1)?, cx.arg(2)?, cx.arg(3)?);
    let Some(depth) = depth.into_nonnegative() else { return Err(cx.shape_mismatch(format!("a depth of {depth}"))) };
    let mut dims = cx.b.dims(indices).to_vec();
    let axis = cx.normalize_axis(cx.node.int("axis").unwrap_or(-1), dims.len() + 1)?;
    dims.insert(axis, depth);
    let hot = hot_mask(cx, indices, &dims, axis);
    let y = cx.b.select(hot, on, off);
    cx.one_output(y)
}

/// Mask that is true where the position along `axis` equals the index. `indices` has no such axis.
fn hot_mask(cx: &mut LowerCtx, indices: InstId, dims: &[Dim], axis: usize) -> InstId {
    let dtype = cx.b.dtype(indices);
    let indices = if dtype == DType::U8 || dtype == DType::S8 { cx.b.convert(indices, DType::S32) } else { indices };
    let dtype = cx.b.dtype(indices);
    let map: Vec<usize> = (0..dims.len()).filter(|&i| i != axis).collect();
    let wide = cx.b.broadcast(indices, dims, &map);
    let position = cx.b.iota(dtype, dims, axis);

    cx.b.compare(Direction::Eq, wide, position)
}

fn fill_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(0)?;
    cx.one_output_like(1, dims)
}

/// Shape function of `Range`: a vector with one element per step. A range from 0 by 1 to a size has that size.
fn range_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let one = |i: usize| cx.partial_ints(i).and_then(|v| v.first().copied()).unwrap_or(InferredInt::Unknown);
    let n = match (one(0), one(1).as_dim(), one(2)) {
        (InferredInt::Known(0), Some(limit), InferredInt::Known(1)) => limit,
        (InferredInt::Known(0), Some(limit), InferredInt::Known(delta @ 2..)) => {
            cx.div_ceil(limit, InferredDim::Known(delta as u64))
        }
        (InferredInt::Unknown, _, _) => cx.fresh_dim(UnknownReason::Value(0)),
        _ => cx.fresh_dim(UnknownReason::Value(1)),
    };
    cx.one_output_like(0, vec![n])
}

fn lin_space_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.size_from_input(2);
    cx.one_output_like(0, vec![n])
}

fn one_hot_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let depth = cx.size_from_input(1);
    match cx.ranked_dims(0)? {
        Some(mut dims) => {
            dims.insert(cx.normalize_axis(cx.node.int("axis").unwrap_or(-1), dims.len() + 1)?, depth);
            cx.one_output_like(2, dims)
        }
        None => {
            let dims = cx.unranked_from(0);
            cx.one_output_like(2, dims)
        }
    }
}
