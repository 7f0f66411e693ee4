//! Parts of arrays at fixed places, and elements in another order.
use crate::diag::{Code, Error, Result};
use crate::graph::Node;
use crate::hlo::attrs::SliceDim;
use crate::hlo::{InstId, Op};
use crate::ops::ShapeCtx;
use crate::ops::fact::{Fact, Int};
use crate::ops::math::special;
use crate::ops::row::op;
use crate::ops::shape::same;
use crate::ops::symbols::{Dim, Why};
use crate::ops::{LowerCtx, OpRow, Value};
use crate::tensor::DType;

/// The rows of this file.
pub const ROWS: &[OpRow] = &[
    op("Slice", "input begin size -> output", slice).shape(slice_shape).constants(&[2]),
    op("StridedSlice", "input begin end strides -> output", strided_slice)
        .shape(strided_slice_shape)
        .constants(&[1, 2, 3]),
    op("TensorStridedSliceUpdate", "input begin end strides value -> output", strided_update)
        .shape(same)
        .constants(&[1, 2, 3]),
    op("StridedSliceGrad", "shape begin end strides dy -> output", strided_gradient)
        .shape(strided_gradient_shape)
        .constants(&[0, 1, 2, 3]),
    op("Split", "split_dim value -> output*", split).shape(split_shape).constants(&[0]),
    op("SplitV", "value size_splits split_dim -> output*", split_v).shape(split_v_shape).constants(&[1, 2]),
    op("Unpack", "value -> output*", unpack).shape(unpack_shape),
    op("ReverseV2", "tensor axis -> output", reverse_v2).shape(same).constants(&[1]),
    op("Reverse", "tensor dims -> output", reverse).shape(same).constants(&[1]),
    op("Roll", "input shift axis -> output", roll).shape(same).constants(&[2]),
];

/// A slice whose begin may be known at run time only; its size is fixed.
fn slice(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, size) = (cx.arg(0)?, cx.dims(0)?, cx.constant_ints(2)?);
    if size.len() != dims.len() || cx.dims(1)? != [dims.len() as u64] {
        return Err(cx.mismatch(format!("a begin or size of another length than the rank {}", dims.len())));
    }
    if let Ok(begin) = cx.constant_ints(1) {
        let mut parts = Vec::with_capacity(dims.len());
        for ((&begin, &size), &n) in begin.iter().zip(&size).zip(&dims) {
            let limit = if size == -1 { Some(n as i64) } else { begin.checked_add(size) };
            match limit {
                Some(limit) if begin >= 0 && limit >= begin && limit as u64 <= n => {
                    parts.push(SliceDim { start: begin as u64, limit: limit as u64, stride: 1 });
                }
                _ => return Err(cx.mismatch(format!("{size} elements from {begin} are not within {n}"))),
            }
        }
        let y = cx.b.slice(x, &parts);
        return cx.one(y);
    }
    let sizes: Option<Vec<u64>> =
        size.iter().zip(&dims).map(|(&s, &n)| u64::try_from(s).ok().filter(|&s| s <= n)).collect();
    let Some(sizes) = sizes else {
        return Err(cx.unsupported("a slice to the end from a begin that is not constant"));
    };
    let begin = cx.arg(1)?;
    let mut operands = vec![x];
    for axis in 0..dims.len() {
        let one = cx.b.slice_axis(begin, 0, axis as u64, axis as u64 + 1);
        operands.push(cx.b.reshape(one, &[]));
    }
    let y = cx.b.add_inst(Op::DynamicSlice(sizes), &operands);
    cx.one(y)
}

/// What a strided slice takes of one dimension.
#[derive(Clone, Copy)]
struct Taken {
    start: i64,
    stride: i64,
    count: u64,
}

/// A strided slice, worked out.
struct Plan {
    /// One entry a dimension of the input.
    taken: Vec<Taken>,
    /// The sizes of the result: new ones put in, shrunk ones left out.
    result: Vec<u64>,
}

/// One entry of a strided slice, in the order of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// A new dimension of size 1.
    New,
    /// The next dimension of the input as it is.
    Whole,
    /// One element of the next dimension: entry `i` of begin; `true` where its mask bit makes that the first.
    Index(usize, bool),
    /// A range of the next dimension: entry `i` of begin, end and strides; which of its ends are open.
    Range(usize, bool, bool),
}

/// What each of `n` entries of begin, end and strides says about an input of this rank, by the five masks of the node.
fn items(node: &Node, n: usize, rank: usize) -> Result<Vec<Item>> {
    let wrong = |message: String| Error::user(Code::ShapeMismatch, message);
    if n > 62 {
        return Err(wrong(format!("{n} indices")));
    }
    let mask = |name: &str| node.int(name).unwrap_or(0);
    let (begin_mask, end_mask) = (mask("begin_mask"), mask("end_mask"));
    let (ellipsis, new_axis, shrink) = (mask("ellipsis_mask"), mask("new_axis_mask"), mask("shrink_axis_mask"));
    let bit = |mask: i64, i: usize| mask >> i & 1 == 1;
    if (0..n).filter(|&i| bit(ellipsis, i)).count() > 1 {
        return Err(wrong("more than one ellipsis".to_string()));
    }
    let used = (0..n).filter(|&i| !bit(ellipsis, i) && !bit(new_axis, i)).count();
    let free = rank.checked_sub(used).ok_or_else(|| wrong(format!("{used} indices into rank {rank}")))?;
    let mut out = Vec::with_capacity(rank + n);
    let mut taken = 0;
    for i in 0..n {
        if bit(ellipsis, i) {
            out.resize(out.len() + free, Item::Whole);
            taken += free;
        } else if bit(new_axis, i) {
            out.push(Item::New);
        } else {
            let (begin, end) = (bit(begin_mask, i), bit(end_mask, i));
            out.push(if bit(shrink, i) { Item::Index(i, begin) } else { Item::Range(i, begin, end) });
            taken += 1;
        }
    }
    out.resize(out.len() + rank - taken, Item::Whole);
    Ok(out)
}

/// NumPy's basic slicing over an input of `dims`; begin, end and strides are inputs `at`, `at+1`, `at+2`.
fn plan(cx: &LowerCtx, dims: &[u64], at: usize) -> Result<Plan> {
    let (begin, end, strides) = (cx.constant_ints(at)?, cx.constant_ints(at + 1)?, cx.constant_ints(at + 2)?);
    if end.len() != begin.len() || strides.len() != begin.len() {
        return Err(cx.mismatch("begin, end and strides have different lengths"));
    }
    let mut out = Plan { taken: Vec::new(), result: Vec::new() };
    for item in items(cx.node, begin.len(), dims.len())? {
        let size = |out: &Plan| dims[out.taken.len()];
        match item {
            Item::New => out.result.push(1),
            Item::Whole => {
                let count = size(&out);
                out.taken.push(Taken { start: 0, stride: 1, count });
                out.result.push(count);
            }
            Item::Index(i, first) => {
                let d = size(&out) as i64;
                let start = if begin[i] < 0 { begin[i].saturating_add(d) } else { begin[i] };
                if !first && (start < 0 || start >= d) {
                    return Err(cx.mismatch(format!("index {} is out of range for size {d}", begin[i])));
                }
                out.taken.push(Taken { start: if first { 0 } else { start }, stride: 1, count: 1 });
            }
            Item::Range(i, open_begin, open_end) => {
                let taken = range(size(&out) as i64, begin[i], end[i], strides[i], open_begin, open_end)
                    .ok_or_else(|| cx.mismatch("a stride of 0"))?;
                out.taken.push(taken);
                out.result.push(taken.count);
            }
        }
    }
    Ok(out)
}

/// What `begin:end:stride` takes of `d` elements, clamped; `None` for a stride of 0.
fn range(d: i64, begin: i64, end: i64, stride: i64, open_begin: bool, open_end: bool) -> Option<Taken> {
    if stride == 0 {
        return None;
    }
    let (low, high) = if stride > 0 { (0, d) } else { (-1, d - 1) };
    let clamp = |v: i64| (if v < 0 { v.saturating_add(d) } else { v }).clamp(low, high);
    let (first, last) = if stride > 0 { (low, high) } else { (high, low) };
    let start = if open_begin { first } else { clamp(begin) };
    let stop = if open_end { last } else { clamp(end) };
    let span = if stride > 0 { stop - start } else { start - stop };
    let count = if span > 0 { (span as u64).div_ceil(stride.unsigned_abs()) } else { 0 };
    Some(Taken { start, stride, count })
}

/// The elements that a plan takes, in the plan's order, with the input's rank.
fn take(cx: &mut LowerCtx, x: InstId, taken: &[Taken]) -> InstId {
    let part = |t: &Taken| {
        if t.count == 0 {
            return SliceDim { start: 0, limit: 0, stride: 1 };
        }
        let last = t.start + (t.count as i64 - 1) * t.stride;
        let (low, high) = (t.start.min(last) as u64, t.start.max(last) as u64);
        SliceDim { start: low, limit: high + 1, stride: t.stride.unsigned_abs() }
    };
    let parts: Vec<SliceDim> = taken.iter().map(part).collect();
    let y = cx.b.slice(x, &parts);
    reversed(cx, y, taken)
}

fn reversed(cx: &mut LowerCtx, x: InstId, taken: &[Taken]) -> InstId {
    let back: Vec<usize> = (0..taken.len()).filter(|&i| taken[i].stride < 0).collect();
    if back.is_empty() { x } else { cx.b.add_inst(Op::Reverse(back), &[x]) }
}

fn strided_slice(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    if let Err(not_constant) = cx.constant_ints(1) {
        return dynamic_row(cx, x, &dims)?.ok_or(not_constant);
    }
    let plan = plan(cx, &dims, 1)?;
    let y = take(cx, x, &plan.taken);
    let y = cx.b.reshape(y, &plan.result);
    cx.one(y)
}

/// `x[i]` at a run-time `i` of a vector `begin` of one: the one case of a begin that is not constant and whose size is fixed.
fn dynamic_row(cx: &mut LowerCtx, x: InstId, dims: &[u64]) -> Result<Option<Vec<Value>>> {
    let begin = cx.arg(1)?;
    let others = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"];
    let plain = others.iter().all(|m| cx.node.int(m).unwrap_or(0) == 0);
    let n = cx.dims(1)?.first().copied().unwrap_or(0);
    let all = n > 0 && n < 63 && cx.node.int("shrink_axis_mask") == Some((1 << n) - 1);
    if !plain || !all || n > dims.len() as u64 || dims.contains(&0) {
        return Ok(None);
    }
    let mut sizes = dims.to_vec();
    let mut operands = vec![x];
    for axis in 0..dims.len() {
        if axis as u64 >= n {
            operands.push(cx.b.scalar(cx.b.dtype(begin), 0.0));
            continue;
        }
        sizes[axis] = 1;
        let one = cx.b.slice_axis(begin, 0, axis as u64, axis as u64 + 1);
        let one = cx.b.reshape(one, &[]);
        let behind = special::add_scalar(cx.b, one, dims[axis] as f64);
        let negative = special::compare_scalar(cx.b, crate::scalar::Direction::Lt, one, 0.0);
        operands.push(cx.b.select(negative, behind, one));
    }
    let y = cx.b.add_inst(Op::DynamicSlice(sizes), &operands);
    let y = cx.b.reshape(y, &dims[n as usize..]);
    Ok(Some(vec![Value::Array(y)]))
}

/// The input with the slice replaced by `value`.
fn strided_update(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, value) = (cx.arg(0)?, cx.dims(0)?, cx.arg(4)?);
    let plan = plan(cx, &dims, 1)?;
    let value = cx.b.broadcast_to(value, &plan.result);
    let y = scattered(cx, value, &plan, &dims, x)?;
    cx.one(y)
}

/// Zeros with the slice replaced by the gradient.
fn strided_gradient(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, dy) = (super::shape::sizes(cx, 0)?, cx.arg(4)?);
    let plan = plan(cx, &dims, 1)?;
    let zeros = cx.b.full(cx.b.dtype(dy), &dims, 0.0);
    let y = scattered(cx, dy, &plan, &dims, zeros)?;
    cx.one(y)
}

/// `onto` with `value` at the places that the plan takes.
fn scattered(cx: &mut LowerCtx, value: InstId, plan: &Plan, dims: &[u64], onto: InstId) -> Result<InstId> {
    let sizes: Vec<u64> = plan.taken.iter().map(|t| t.count).collect();
    if sizes.contains(&0) {
        return Ok(onto);
    }
    let value = cx.b.reshape(value, &sizes);
    let value = reversed(cx, value, &plan.taken);
    let pad = |(t, &d): (&Taken, &u64)| {
        let low = t.start.min(t.start + (t.count as i64 - 1) * t.stride);
        let step = t.stride.unsigned_abs().min(d.max(1));
        let covered = (t.count - 1) * step + 1;
        crate::hlo::attrs::PadDim { low, high: d as i64 - low - covered as i64, interior: step - 1 }
    };
    let pads: Vec<_> = plan.taken.iter().zip(dims).map(pad).collect();
    let zero = cx.b.scalar(cx.b.dtype(value), 0.0);
    let spread = cx.b.pad(value, zero, &pads);
    let yes = cx.b.full(DType::Pred, &sizes, 1.0);
    let no = cx.b.scalar(DType::Pred, 0.0);
    let mask = cx.b.pad(yes, no, &pads);
    Ok(cx.b.select(mask, spread, onto))
}

fn split(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(1)?, cx.dims(1)?);
    let axis = cx.axis(cx.constant_int(0)?, dims.len())?;
    let n = cx.required(cx.node.int("num_split"), "num_split")?;
    let n = u64::try_from(n).ok().filter(|&n| n > 0 && dims[axis] % n == 0);
    let Some(n) = n else { return Err(cx.mismatch(format!("{dims:?} does not split evenly along {axis}"))) };
    pieces(cx, x, axis, &vec![dims[axis] / n; n as usize])
}

fn pieces(cx: &mut LowerCtx, x: InstId, axis: usize, sizes: &[u64]) -> Result<Vec<Value>> {
    let mut start = 0;
    let mut out = Vec::with_capacity(sizes.len());
    for &size in sizes {
        out.push(Value::Array(cx.b.slice_axis(x, axis, start, start + size)));
        start += size;
    }
    Ok(out)
}

fn split_v(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, sizes) = (cx.arg(0)?, cx.dims(0)?, cx.constant_ints(1)?);
    let axis = cx.axis(cx.constant_int(2)?, dims.len())?;
    let known: i64 = sizes.iter().filter(|&&s| s != -1).fold(0i64, |a, &s| a.saturating_add(s));
    let rest = dims[axis] as i64 - known;
    let open = sizes.iter().filter(|&&s| s == -1).count();
    if open > 1 || rest < 0 || (open == 0 && rest != 0) || sizes.iter().any(|&s| s < -1) {
        return Err(cx.mismatch(format!("{sizes:?} does not split {} elements", dims[axis])));
    }
    let sizes: Vec<u64> = sizes.iter().map(|&s| if s == -1 { rest as u64 } else { s as u64 }).collect();
    pieces(cx, x, axis, &sizes)
}

fn unpack(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, mut dims) = (cx.arg(0)?, cx.dims(0)?);
    let axis = cx.axis(cx.node.int("axis").unwrap_or(0), dims.len())?;
    let n = dims.remove(axis);
    if cx.node.int("num").is_some_and(|want| want != n as i64) || n > 1 << 20 {
        return Err(cx.mismatch(format!("dimension {axis} has {n} parts, which is not what the node says")));
    }
    let mut out = Vec::with_capacity(n as usize);
    for i in 0..n {
        let part = cx.b.slice_axis(x, axis, i, i + 1);
        out.push(Value::Array(cx.b.reshape(part, &dims)));
    }
    Ok(out)
}

fn reverse_axes(cx: &mut LowerCtx, axes: Vec<usize>) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let y = if axes.is_empty() { x } else { cx.b.add_inst(Op::Reverse(axes), &[x]) };
    cx.one(y)
}

fn reverse_v2(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let rank = cx.dims(0)?.len();
    let axes = cx.constant_ints(1)?.iter().map(|&a| cx.axis(a, rank)).collect::<Result<Vec<_>>>()?;
    reverse_axes(cx, axes)
}

fn reverse(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let flags = cx.constant_ints(1)?;
    if flags.len() != cx.dims(0)?.len() {
        return Err(cx.mismatch("one flag a dimension is needed"));
    }
    let axes = (0..flags.len()).filter(|&i| flags[i] != 0).collect();
    reverse_axes(cx, axes)
}

fn roll(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (mut x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let axes = cx.constant_ints(2)?;
    let Ok(shifts) = cx.constant_ints(1) else { return roll_at_run_time(cx, &axes) };
    if shifts.len() != axes.len() {
        return Err(cx.mismatch("shift and axis have different lengths"));
    }
    for (&shift, &axis) in shifts.iter().zip(&axes) {
        let axis = cx.axis(axis, dims.len())?;
        let n = dims[axis];
        let by = if n == 0 { 0 } else { shift.rem_euclid(n as i64) as u64 };
        if by > 0 {
            let (end, start) = (cx.b.slice_axis(x, axis, n - by, n), cx.b.slice_axis(x, axis, 0, n - by));
            x = cx.b.concatenate(&[end, start], axis);
        }
    }
    cx.one(x)
}

/// Each axis gathered from `(position - shift) mod size`.
fn roll_at_run_time(cx: &mut LowerCtx, axes: &[i64]) -> Result<Vec<Value>> {
    let (mut x, dims, shifts) = (cx.arg(0)?, cx.dims(0)?, cx.arg(1)?);
    let shifts = cx.b.reshape(shifts, &[axes.len() as u64]);
    if dims.contains(&0) {
        return cx.one(x);
    }
    for (i, &axis) in axes.iter().enumerate() {
        let axis = cx.axis(axis, dims.len())?;
        let shift = cx.b.slice_axis(shifts, 0, i as u64, i as u64 + 1);
        let position = cx.b.iota(cx.b.dtype(shift), &[dims[axis]], 0);
        let from = cx.b.sub(position, shift);
        let size = cx.b.full_like(from, dims[axis] as f64);
        let from = crate::ops::math::binary::floor_mod(cx.b, from, size);
        x = super::gather::take_axis(cx, x, from, axis, 0)?;
    }
    cx.one(x)
}

fn slice_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (begin, size) = (cx.ints(1), cx.ints(2));
    let rank = begin.as_ref().or(size.as_ref()).map(Vec::len);
    let dims = match (cx.ranked(0)?, rank) {
        (Some(dims), _) => dims,
        (None, Some(rank)) => cx.of_rank(0, rank)?,
        (None, None) => {
            let dims = cx.unranked_from(0);
            return cx.like(0, dims);
        }
    };
    let fits = |v: &Option<Vec<Int>>| v.as_ref().is_none_or(|v| v.len() == dims.len());
    if !fits(&begin) || !fits(&size) {
        return Err(cx.mismatch(format!("a begin or size of another length than the rank {}", dims.len())));
    }
    let entry = |v: &Option<Vec<Int>>, i: usize| v.as_ref().map_or(Int::Unknown, |v| v[i]);
    let mut out = Vec::with_capacity(dims.len());
    for (i, &n) in dims.iter().enumerate() {
        out.push(match (entry(&begin, i).size(), entry(&size, i)) {
            (Some(begin), Int::Known(-1)) => cx.sub(n, begin),
            (None, Int::Known(-1)) => cx.fresh(Why::Value(1)),
            (_, size) => size.size().unwrap_or_else(|| cx.fresh(Why::Value(2))),
        });
    }
    let values = cx.ints(0).filter(|v| out.len() == 1 && dims == [Dim::Known(v.len() as u64)]);
    if let (Some(values), Some(dtype), Int::Known(from), &[Dim::Known(n)]) =
        (values, cx.dtype(0), entry(&begin, 0), &out[..])
    {
        let part = usize::try_from(from).ok().and_then(|from| values.get(from..from.checked_add(n as usize)?));
        if let Some(part) = part {
            return Ok(vec![Fact::ints(dtype, &[n], part.to_vec())]);
        }
    }
    cx.like(0, out)
}

fn strided_slice_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let length = |i: usize| cx.args.get(i).and_then(|a| a.dims.fixed()).and_then(|d| d.first().copied());
    let count = length(1).or(length(2)).or(length(3)).and_then(|n| usize::try_from(n).ok());
    let (Some(n), Some(dims)) = (count, cx.ranked(0)?) else {
        let dims = cx.unranked_from(if cx.dims(0)?.unknown().is_some() { 0 } else { 1 });
        return cx.like(0, dims);
    };
    let (begin, end) = (cx.ints(1), cx.ints(2));
    let strides = cx.constant_ints(3);
    let entry = |v: &Option<Vec<Int>>, i: usize| v.as_ref().and_then(|v| v.get(i).copied()).unwrap_or(Int::Unknown);
    let list = items(cx.node, n, dims.len())?;
    let (mut out, mut next) = (Vec::new(), dims.iter().copied());
    for &item in &list {
        match item {
            Item::New => out.push(Dim::Known(1)),
            Item::Whole => out.extend(next.next()),
            Item::Index(..) => drop(next.next()),
            Item::Range(i, open_begin, open_end) => {
                let Some(d) = next.next() else { continue };
                let begin = if open_begin { None } else { Some(entry(&begin, i)) };
                let end = if open_end { None } else { Some(entry(&end, i)) };
                let stride = strides.as_ref().and_then(|s| s.get(i).copied());
                out.push(range_size(cx, d, begin, end, stride)?);
            }
        }
    }
    let taken = taken_sizes(cx, &list, begin, end, strides);
    match (taken, cx.dtype(0)) {
        (Some(values), Some(dtype)) if out.is_empty() || out == [Dim::Known(values.len() as u64)] => {
            let dims: Vec<u64> = out.iter().map(|_| values.len() as u64).collect();
            Ok(vec![Fact::ints(dtype, &dims, values)])
        }
        _ => cx.like(0, out),
    }
}

/// The size of `begin:end:stride` over `d` elements; `None` is an open end.
fn range_size(cx: &mut ShapeCtx, d: Dim, begin: Option<Int>, end: Option<Int>, stride: Option<i64>) -> Result<Dim> {
    let Some(stride) = stride else { return Ok(cx.fresh(Why::Value(3))) };
    if stride == 0 {
        return Err(cx.mismatch("a stride of 0"));
    }
    let at_start = begin.is_none() || (stride > 0 && begin == Some(Int::Known(0)));
    let number = |v: Option<Int>| match v {
        Some(Int::Known(v)) => Some(v),
        None => Some(0),
        Some(Int::Size(_) | Int::Unknown) => None,
    };
    let size = match (d, number(begin), number(end), end) {
        (d, _, _, None) if at_start => Some(cx.div_ceil(d, Dim::Known(stride.unsigned_abs()))),
        (d, _, _, Some(Int::Size(id))) if at_start && stride == 1 && d == Dim::Unknown(id) => Some(d),
        (Dim::Known(d), Some(b), Some(e), _) => i64::try_from(d)
            .ok()
            .and_then(|d| range(d, b, e, stride, begin.is_none(), end.is_none()))
            .map(|t| Dim::Known(t.count)),
        (Dim::Unknown(id), Some(_), Some(_), _) => Some(cx.fresh(Why::From(id))),
        _ => None,
    };
    Ok(size.unwrap_or_else(|| cx.fresh(Why::Value(if number(begin).is_none() { 1 } else { 2 }))))
}

/// The elements that a slice takes of a vector of sizes.
fn taken_sizes(
    cx: &ShapeCtx,
    list: &[Item],
    begin: Option<Vec<Int>>,
    end: Option<Vec<Int>>,
    strides: Option<Vec<i64>>,
) -> Option<Vec<Int>> {
    let values = cx.ints(0)?;
    let number = |v: &Option<Vec<Int>>, i: usize, open: bool| match v.as_ref().and_then(|v| v.get(i)) {
        Some(Int::Known(v)) => Some(*v),
        _ => open.then_some(0),
    };
    let n = i64::try_from(values.len()).ok()?;
    let taken = match *list {
        [Item::Index(i, first)] => {
            let at = number(&begin, i, first)?;
            Taken { start: if first { 0 } else { at + if at < 0 { n } else { 0 } }, stride: 1, count: 1 }
        }
        [Item::Range(i, b, e)] => {
            range(n, number(&begin, i, b)?, number(&end, i, e)?, *strides.as_ref()?.get(i)?, b, e)?
        }
        _ => return None,
    };
    let at = |i: u64| usize::try_from(taken.start + i as i64 * taken.stride).ok().and_then(|i| values.get(i).copied());
    (0..taken.count).map(at).collect()
}

fn strided_gradient_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_of_value(0)?;
    cx.like(4, dims)
}

/// One output for each of `sizes` along an axis of input `i`.
fn pieces_shape(cx: &mut ShapeCtx, i: usize, axis: Option<i64>, axis_input: usize, sizes: &[Dim]) -> Result<Vec<Fact>> {
    let dims = cx.ranked(i)?;
    let mut out = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let piece = match (&dims, axis) {
            (Some(dims), Some(axis)) => {
                let mut dims = dims.clone();
                let axis = cx.axis(axis, dims.len())?;
                dims[axis] = size;
                dims.into()
            }
            (Some(dims), None) => cx.open(dims.len(), Why::Value(axis_input)),
            (None, _) => cx.unranked_from(i),
        };
        out.push(Fact::new(cx.dtype(i), piece));
    }
    Ok(out)
}

/// No op has more outputs.
const MOST_PIECES: usize = 1 << 16;

fn split_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.node.int("num_split").and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0 && n < MOST_PIECES as u64);
    let n = n.ok_or_else(|| cx.mismatch("num_split must be positive"))?;
    let axis = cx.constant_int(0);
    let size = match (cx.ranked(1)?, axis) {
        (Some(dims), Some(axis)) => cx.div_exact(dims[cx.axis(axis, dims.len())?], n)?,
        _ => Dim::Known(0),
    };
    pieces_shape(cx, 1, axis, 0, &vec![size; n as usize])
}

fn split_v_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.node.int("num_split").and_then(|n| usize::try_from(n).ok()).filter(|&n| n < MOST_PIECES);
    let n = n.ok_or_else(|| cx.mismatch("num_split must be positive"))?;
    let axis = cx.constant_int(2);
    let given = cx.ints(1).filter(|v| v.len() == n).unwrap_or_else(|| vec![Int::Unknown; n]);
    let whole = match (cx.ranked(0)?, axis) {
        (Some(dims), Some(axis)) => Some(dims[cx.axis(axis, dims.len())?]),
        _ => None,
    };
    let known: Vec<Dim> = given.iter().filter_map(|v| v.size()).collect();
    let rest = match whole {
        Some(whole) if known.len() + 1 == n => {
            let sum = known.iter().fold(Dim::Known(0), |a, &b| cx.add(a, b));
            Some(cx.sub(whole, sum))
        }
        _ => None,
    };
    let mut sizes = Vec::with_capacity(n);
    for v in given {
        sizes.push(v.size().or(rest).unwrap_or_else(|| cx.fresh(Why::Value(1))));
    }
    pieces_shape(cx, 0, axis, 2, &sizes)
}

/// Input 0 without an axis, once for each element of it; elements of a vector of sizes are sizes.
fn unpack_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.node.int("num").and_then(|n| usize::try_from(n).ok()).filter(|&n| n < MOST_PIECES);
    let n = n.ok_or_else(|| cx.mismatch("num must not be negative"))?;
    let dims = match cx.ranked(0)? {
        Some(mut dims) => {
            let axis = cx.axis(cx.node.int("axis").unwrap_or(0), dims.len())?;
            if cx.merge_dim(dims.remove(axis), Dim::Known(n as u64)).is_none() {
                return Err(cx.mismatch(format!("dimension {axis} of {} has not {n} parts", cx.dims(0)?)));
            }
            Some(dims)
        }
        None => None,
    };
    if let (Some(values), Some(dtype), Some([])) = (cx.ints(0), cx.dtype(0), dims.as_deref()) {
        return Ok(values.into_iter().map(|v| Fact::ints(dtype, &[], vec![v])).collect());
    }
    let mut out = Vec::with_capacity(n);
    for _ in 0..n {
        let dims = dims.clone().map_or_else(|| cx.unranked_from(0), Into::into);
        out.push(Fact::new(cx.dtype(0), dims));
    }
    Ok(out)
}
