//! Concatenation, tiling and padding of arrays.
use crate::diag::Result;
use crate::dims;
use crate::hlo::all_always_equal;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::hlo::symbolic::PadDim;
use crate::ops::ShapeCtx;
use crate::ops::fact::{Dims, Fact, InferredInt, MOST_ELEMENTS};
use crate::ops::op_lowering::{SizeFn, op};
use crate::ops::symbols::{InferredDim, Symbols, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("ConcatV2", "values* axis -> output", |cx| concat(cx, cx.args.len().saturating_sub(1), 0))
        .moves_strings()
        .shape(|cx| concat_shape(cx, cx.args.len().saturating_sub(1), 0)),
    op("Concat", "concat_dim values* -> output", |cx| concat(cx, 0, 1))
        .moves_strings()
        .shape(|cx| concat_shape(cx, 0, 1)),
    op("ParallelConcat", "values* -> output", parallel_concat).shape(parallel_concat_shape),
    op("ConcatOffset", "concat_dim shape* -> offset*", concat_offset).shape(concat_offset_shape),
    op("Pack", "values* -> output", pack).moves_strings().shape(pack_shape),
    op("Tile", "input multiples -> output", tile).moves_strings().shape(tile_shape).constant_inputs(&[1]),
    op("Pad", "input paddings -> output", |cx| pad(cx, None))
        .shape(|cx| pad_shape(cx, Symbols::add))
        .constant_inputs(&[1]),
    op("PadV2", "input paddings constant_values -> output", |cx| pad(cx, Some(2)))
        .shape(|cx| pad_shape(cx, Symbols::add))
        .constant_inputs(&[1]),
    op("MirrorPad", "input paddings -> output", mirror_pad)
        .shape(|cx| pad_shape(cx, Symbols::add))
        .constant_inputs(&[1]),
    op("MirrorPadGrad", "input paddings -> output", mirror_pad_gradient)
        .shape(|cx| pad_shape(cx, Symbols::sub))
        .constant_inputs(&[1]),
];

/// Lowers a concatenation of the inputs from `from` on, apart from input `axis_input`.
fn concat(cx: &mut LowerCtx, axis_input: usize, from: usize) -> Result<Vec<Value>> {
    let parts = cx.arg_range(from, cx.args.len() - usize::from(from == 0))?;
    let Some(&first) = parts.first() else { return Err(cx.shape_mismatch("there is nothing to concatenate")) };
    let axis = cx.normalize_axis(cx.constant_int(axis_input)?, cx.b.rank(first))?;
    let y = cx.b.concatenate(&parts, axis);
    cx.one_output(y)
}

fn parallel_concat(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let parts = cx.arg_range(0, cx.args.len())?;
    if parts.is_empty() || cx.b.rank(parts[0]) == 0 {
        return Err(cx.shape_mismatch("the parts need a first dimension"));
    }
    let y = cx.b.concatenate(&parts, 0);
    cx.one_output(y)
}

fn concat_offset(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let axis = cx.constant_int(0)?;
    let (mut at, mut out) = (Dim::from(0), Vec::new());
    for i in 1..cx.args.len() {
        let dims = super::shape::constant_shape_from_input(cx, i)?;
        let axis = cx.normalize_axis(axis, dims.len())?;
        let offsets: Vec<Dim> = (0..dims.len()).map(|d| if d == axis { at } else { Dim::from(0) }).collect();
        out.push(Value::Array(super::shape::dims_constant(cx, cx.dtype(i)?, &dims![dims.len()], &offsets)?));
        at += dims[axis];
    }
    Ok(out)
}

fn pack(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let parts = cx.arg_range(0, cx.args.len())?;
    let Some(&first) = parts.first() else { return Err(cx.shape_mismatch("there is nothing to stack")) };
    let mut dims = cx.b.dims(first).to_vec();
    let axis = cx.normalize_axis(cx.node.int("axis").unwrap_or(0), dims.len() + 1)?;
    for &part in &parts {
        if cx.b.dims(part) != dims {
            return Err(cx.shape_mismatch(format!("{:?} and {dims:?} differ", cx.b.dims(part))));
        }
    }
    dims.insert(axis, Dim::from(1));
    let parts: Vec<InstId> = parts.iter().map(|&p| cx.b.reshape(p, &dims)).collect();
    let y = cx.b.concatenate(&parts, axis);
    cx.one_output(y)
}

/// Lowers `Tile`: inserts a dimension for the repeats in front of each dimension, then merges the two.
fn tile(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, is_known) =
        (cx.arg(0)?, cx.dims(0)?, cx.symbolic_value(1).is_some_and(|known| known.sizes.is_none()));
    let multiples = super::shape::shape_from_input(cx, 1)?;
    if multiples.len() != dims.len() {
        return Err(cx.shape_mismatch(format!("{} multiples for rank {}", multiples.len(), dims.len())));
    }
    let (mut wide, mut map, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for (&n, &d) in multiples.iter().zip(&dims) {
        if !is_known || n != 1 {
            wide.push(n);
        }
        map.push(wide.len());
        wide.push(d);
        out.push(n.checked_mul(d).ok_or_else(|| cx.shape_mismatch("the tiled size overflows"))?);
    }
    if is_known && all_always_equal(&out, &dims) {
        return cx.one_output(x);
    }
    let y = cx.b.broadcast(x, &wide, &map);
    let y = cx.b.reshape(y, &out);
    cx.one_output(y)
}

/// Padding pairs in input 1: elements before and behind each dimension.
fn paddings(cx: &mut LowerCtx) -> Result<Vec<(Dim, Dim)>> {
    let values = cx.sizes_from_input(1)?;
    let fits = |&v: &Dim| v >= 0 && v <= 1i64 << 34;
    if values.len() != 2 * cx.dims(0)?.len() || !values.iter().all(fits) {
        return Err(cx.shape_mismatch(format!("paddings {values:?} for rank {}", cx.dims(0)?.len())));
    }
    Ok(values.chunks_exact(2).map(|p| (p[0], p[1])).collect())
}

fn pad(cx: &mut LowerCtx, fill: Option<usize>) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let dims: Vec<PadDim> =
        paddings(cx)?.iter().map(|&(low, high)| PadDim { low, high, interior: Dim::from(0) }).collect();
    let fill = match fill {
        Some(i) => cx.arg(i)?,
        None => cx.b.scalar(cx.b.dtype(x), 0.0),
    };
    let fill = cx.b.reshape(fill, &[]);
    let y = cx.b.pad(x, fill, &dims);
    cx.one_output(y)
}

/// Number of edge elements that mirror padding leaves out: 1 for REFLECT, 0 for SYMMETRIC.
fn skipped(cx: &LowerCtx) -> Result<Dim> {
    match cx.node.str("mode") {
        Some("REFLECT") => Ok(Dim::from(1)),
        Some("SYMMETRIC") => Ok(Dim::from(0)),
        other => Err(cx.unsupported_case(format!("mode {other:?}; REFLECT and SYMMETRIC are supported"))),
    }
}

fn mirror_pad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (mut x, dims, skip) = (cx.arg(0)?, cx.dims(0)?, skipped(cx)?);
    for (axis, (low, high)) in paddings(cx)?.into_iter().enumerate() {
        let n = dims[axis];
        if low.max(high) + skip > n && low.max(high) > 0 {
            return Err(cx.shape_mismatch(format!("a mirrored padding of {} of {n} elements", low.max(high))));
        }
        let mut parts = vec![x];
        if low > 0 {
            let part = cx.b.slice_axis(x, axis, skip, skip + low);
            parts.insert(0, cx.b.add_inst(crate::hlo::symbolic::Op::Reverse(vec![axis]), &[part]));
        }
        if high > 0 {
            let part = cx.b.slice_axis(x, axis, n - skip - high, n - skip);
            parts.push(cx.b.add_inst(crate::hlo::symbolic::Op::Reverse(vec![axis]), &[part]));
        }
        x = cx.b.concatenate(&parts, axis);
    }
    cx.one_output(x)
}

fn mirror_pad_gradient(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (mut x, dims, skip) = (cx.arg(0)?, cx.dims(0)?, skipped(cx)?);
    for (axis, (low, high)) in paddings(cx)?.into_iter().enumerate() {
        let n = dims[axis].checked_sub(low + high).filter(|&n| low.max(high) == 0 || low.max(high) + skip <= n);
        let Some(n) = n else { return Err(cx.shape_mismatch("the paddings do not fit the gradient")) };
        let mut middle = cx.b.slice_axis(x, axis, low, low + n);
        for (start, count, at) in [(Dim::from(0), low, skip), (low + n, high, n.saturating_sub(skip + high))] {
            if count == 0 {
                continue;
            }
            let edge = cx.b.slice_axis(x, axis, start, start + count);
            let edge = cx.b.add_inst(crate::hlo::symbolic::Op::Reverse(vec![axis]), &[edge]);
            let mut pads = vec![PadDim::default(); dims.len()];
            pads[axis] = PadDim { low: at, high: n - at - count, interior: Dim::from(0) };
            let zero = cx.b.scalar(cx.b.dtype(edge), 0.0);
            let spread = cx.b.pad(edge, zero, &pads);
            middle = cx.b.add(middle, spread);
        }
        x = middle;
    }
    cx.one_output(x)
}

fn concat_shape(cx: &mut ShapeCtx, axis_input: usize, from: usize) -> Result<Vec<Fact>> {
    let axis = cx.constant_int(axis_input);
    let to = cx.args.len() - usize::from(from == 0);
    concat_inputs_shape(cx, from..to, axis, axis_input)
}

fn parallel_concat_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    concat_inputs_shape(cx, 0..cx.args.len(), Some(0), 0)
}

/// Shape function: concatenation of the inputs `parts` along an axis. The known elements of vectors of sizes are kept.
pub fn concat_inputs_shape(
    cx: &mut ShapeCtx,
    parts: std::ops::Range<usize>,
    axis: Option<i64>,
    axis_input: usize,
) -> Result<Vec<Fact>> {
    let first = parts.start;
    let mut rank = None;
    for i in parts.clone() {
        rank = rank.or(cx.ranked_dims(i)?.map(|d| d.len()));
    }
    let Some(rank) = rank else {
        let dims = cx.unranked_from(first);
        return cx.one_output_like(first, dims);
    };
    let Some(axis) = axis else {
        let dims = cx.fresh_shape(rank, UnknownReason::Value(axis_input));
        return cx.one_output_like(first, dims);
    };
    let axis = cx.normalize_axis(axis, rank)?;
    let mut out: Option<Vec<InferredDim>> = None;
    for i in parts.clone() {
        let dims = cx.dims_of_rank(i, rank)?;
        out = Some(match out {
            None => dims,
            Some(mut out) => {
                for (d, (a, &b)) in out.iter_mut().zip(&dims).enumerate() {
                    *a = if d == axis {
                        cx.add(*a, b)
                    } else {
                        let both = cx.merge_dim(*a, b);
                        both.ok_or_else(|| cx.shape_mismatch(format!("dimension {d} differs among the parts")))?
                    };
                }
                out
            }
        });
    }
    let dims = Dims::from(out.unwrap_or_default());
    let values = if rank == 1 { joined_sizes(cx, parts) } else { None };
    match (values, cx.dtype(first), dims.known_sizes()) {
        (Some(values), Some(dtype), Some(fixed)) => Ok(vec![Fact::from_ints(dtype, &fixed, values)]),
        _ => cx.one_output_like(first, dims),
    }
}

/// Elements of the concatenated integer vectors, if any of them is known.
fn joined_sizes(cx: &ShapeCtx, parts: std::ops::Range<usize>) -> Option<Vec<InferredInt>> {
    if !parts.clone().any(|i| cx.partial_ints(i).is_some()) {
        return None;
    }
    let mut all = Vec::new();
    for i in parts {
        let n = cx.args[i].dims.known_sizes()?.first().copied().filter(|&n| n <= MOST_ELEMENTS)?;
        all.extend(cx.partial_ints(i).unwrap_or_else(|| vec![InferredInt::Unknown; n as usize]));
    }
    Some(all)
}

fn concat_offset_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(cx.args.iter().skip(1).map(|a| Fact::new(a.dtype, a.dims.clone())).collect())
}

fn pack_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.args.len();
    let mut dims = cx.dims(0)?;
    for arg in &cx.args[1..] {
        dims = cx.merge_shapes(&dims, &arg.dims)?;
    }
    let Some(inner) = dims.as_ranked() else { return cx.one_output_like(0, dims) };
    let mut out = inner.to_vec();
    out.insert(cx.normalize_axis(cx.node.int("axis").unwrap_or(0), out.len() + 1)?, InferredDim::Known(n as u64));
    let known = (0..n).any(|i| cx.partial_ints(i).is_some());
    if let (true, Some(dtype), 1) = (known, cx.dtype(0), out.len()) {
        let one = |i: usize| cx.partial_ints(i).and_then(|v| v.first().copied()).unwrap_or(InferredInt::Unknown);
        return Ok(vec![Fact::from_ints(dtype, &[n as u64], (0..n).map(one).collect())]);
    }
    cx.one_output_like(0, out)
}

fn tile_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let multiples = cx.partial_ints(1);
    let dims = match (cx.ranked_dims(0)?, &multiples) {
        (Some(dims), _) => dims,
        (None, Some(multiples)) => cx.dims_of_rank(0, multiples.len())?,
        (None, None) => {
            let dims = cx.unranked_from(0);
            return cx.one_output_like(0, dims);
        }
    };
    let multiples = multiples.unwrap_or_else(|| vec![InferredInt::Unknown; dims.len()]);
    if multiples.len() != dims.len() {
        return Err(cx.shape_mismatch(format!("{} multiples for rank {}", multiples.len(), dims.len())));
    }
    let mut out = Vec::with_capacity(dims.len());
    for (&d, n) in dims.iter().zip(multiples) {
        out.push(match n.as_dim() {
            Some(n) => cx.mul(d, n),
            None => cx.fresh_dim(UnknownReason::Value(1)),
        });
    }
    cx.one_output_like(0, out)
}

/// Shape function of padding: each dimension plus (or, by `step`, minus) the two numbers that input 1 has for it.
fn pad_shape(cx: &mut ShapeCtx, step: SizeFn) -> Result<Vec<Fact>> {
    let pairs = cx.partial_ints(1);
    let dims = match (cx.ranked_dims(0)?, &pairs) {
        (Some(dims), _) => dims,
        (None, Some(pairs)) => cx.dims_of_rank(0, pairs.len() / 2)?,
        (None, None) => {
            let dims = cx.unranked_from(0);
            return cx.one_output_like(0, dims);
        }
    };
    let pairs = pairs.unwrap_or_else(|| vec![InferredInt::Unknown; 2 * dims.len()]);
    if pairs.len() != 2 * dims.len() {
        return Err(cx.shape_mismatch(format!("{} paddings for rank {}", pairs.len(), dims.len())));
    }
    let mut out = Vec::with_capacity(dims.len());
    for (&d, pair) in dims.iter().zip(pairs.chunks_exact(2)) {
        out.push(match (pair[0].as_dim(), pair[1].as_dim()) {
            (Some(low), Some(high)) => {
                let both = cx.add(low, high);
                step(cx.symbols, cx.site, d, both)
            }
            _ => cx.fresh_dim(UnknownReason::Value(1)),
        });
    }
    cx.one_output_like(0, out)
}
