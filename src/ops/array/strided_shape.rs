//! Shape functions of strided slices.
use super::strided_slice::{SliceItem, SliceRange, slice_items, slice_range};
use crate::diag::Result;
use crate::ops::ShapeCtx;
use crate::ops::fact::{Fact, InferredInt};
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::symbolic::Dim;

pub(super) fn strided_slice_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let length = |i: usize| cx.args.get(i).and_then(|a| a.dims.known_sizes()).and_then(|d| d.first().copied());
    let count = length(1).or(length(2)).or(length(3)).and_then(|n| usize::try_from(n).ok());
    let (Some(n), Some(dims)) = (count, cx.ranked_dims(0)?) else {
        let dims = cx.unranked_from(if cx.dims(0)?.first_unknown().is_some() { 0 } else { 1 });
        return cx.one_output_like(0, dims);
    };
    let (begin, end) = (cx.partial_ints(1), cx.partial_ints(2));
    let strides = cx.constant_ints(3);
    let entry = |v: &Option<Vec<InferredInt>>, i: usize| {
        v.as_ref().and_then(|v| v.get(i).copied()).unwrap_or(InferredInt::Unknown)
    };
    let list = slice_items(cx.node, n, dims.len())?;
    let (mut out, mut next) = (Vec::new(), dims.iter().copied());
    for &item in &list {
        match item {
            SliceItem::New => out.push(InferredDim::Known(1)),
            SliceItem::Whole => out.extend(next.next()),
            SliceItem::Index(..) => drop(next.next()),
            SliceItem::Range(i, open_begin, open_end) => {
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
        (Some(values), Some(dtype)) if out.is_empty() || out == [InferredDim::Known(values.len() as u64)] => {
            let dims: Vec<u64> = out.iter().map(|_| values.len() as u64).collect();
            Ok(vec![Fact::from_ints(dtype, &dims, values)])
        }
        _ => cx.one_output_like(0, out),
    }
}

/// Number of elements of `begin:end:stride` over `d` elements; `None` stands for an open end.
fn range_size(
    cx: &mut ShapeCtx,
    d: InferredDim,
    begin: Option<InferredInt>,
    end: Option<InferredInt>,
    stride: Option<i64>,
) -> Result<InferredDim> {
    let Some(stride) = stride else { return Ok(cx.fresh_dim(UnknownReason::Value(3))) };
    if stride == 0 {
        return Err(cx.shape_mismatch("a stride of 0"));
    }
    let at_start = begin.is_none() || (stride > 0 && begin == Some(InferredInt::Known(0)));
    let number = |v: Option<InferredInt>| match v {
        Some(InferredInt::Known(v)) => Some(v),
        None => Some(0),
        Some(InferredInt::Size(_) | InferredInt::Unknown) => None,
    };
    let size = match (d, number(begin), number(end), end) {
        (d, _, _, None) if at_start => Some(cx.div_ceil(d, InferredDim::Known(stride.unsigned_abs()))),
        (d, _, _, Some(InferredInt::Size(id))) if at_start && stride == 1 && d == InferredDim::Unknown(id) => Some(d),
        (InferredDim::Known(d), Some(b), Some(e), _) => i64::try_from(d)
            .ok()
            .and_then(|d| slice_range(Dim::from(d), Dim::from(b), Dim::from(e), stride, begin.is_none(), end.is_none()))
            .map(|t| InferredDim::Known(t.count.guarded_count())),
        (InferredDim::Unknown(id), Some(_), Some(_), _) => Some(cx.fresh_dim(UnknownReason::From(id))),
        _ => None,
    };
    Ok(size.unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(if number(begin).is_none() { 1 } else { 2 }))))
}

/// Elements that a strided slice takes of a vector of sizes.
fn taken_sizes(
    cx: &ShapeCtx,
    list: &[SliceItem],
    begin: Option<Vec<InferredInt>>,
    end: Option<Vec<InferredInt>>,
    strides: Option<Vec<i64>>,
) -> Option<Vec<InferredInt>> {
    let values = cx.partial_ints(0)?;
    let number = |v: &Option<Vec<InferredInt>>, i: usize, open: bool| match v.as_ref().and_then(|v| v.get(i)) {
        Some(InferredInt::Known(v)) => Some(Dim::from(*v)),
        _ => open.then_some(Dim::from(0)),
    };
    let n = Dim::from(values.len());
    let taken = match *list {
        [SliceItem::Index(i, first)] => {
            let at = number(&begin, i, first)?;
            SliceRange {
                start: if first { Dim::from(0) } else { at + if at < 0 { n } else { Dim::from(0) } },
                stride: 1,
                count: Dim::from(1),
            }
        }
        [SliceItem::Range(i, b, e)] => {
            slice_range(n, number(&begin, i, b)?, number(&end, i, e)?, *strides.as_ref()?.get(i)?, b, e)?
        }
        _ => return None,
    };
    let at = |i: u64| {
        usize::try_from(taken.start + i as i64 * Dim::from(taken.stride)).ok().and_then(|i| values.get(i).copied())
    };
    (0..taken.count.guarded_count()).map(at).collect()
}

pub(super) fn strided_slice_grad_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(0)?;
    cx.one_output_like(4, dims)
}
