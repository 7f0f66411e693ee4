//! Sums and extremes by segment number.
use crate::diag::Result;
use crate::hlo::InstId;
use crate::ops::ShapeCtx;
use crate::ops::array::scatter::scatter;
use crate::ops::fact::Fact;
use crate::ops::row::op;
use crate::ops::{LowerCtx, OpRow, Value, Work};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// The rows of this file.
pub const ROWS: &[OpRow] = &[
    op("UnsortedSegmentSum", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Add))
        .shape(segment_shape)
        .constants(&[2])
        .work(Work::EachInput),
    op("UnsortedSegmentProd", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Multiply))
        .shape(segment_shape)
        .constants(&[2])
        .work(Work::EachInput),
    op("UnsortedSegmentMax", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Maximum))
        .shape(segment_shape)
        .constants(&[2])
        .work(Work::EachInput),
    op("UnsortedSegmentMin", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Minimum))
        .shape(segment_shape)
        .constants(&[2])
        .work(Work::EachInput),
    op("SegmentSumV2", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Add))
        .shape(segment_shape)
        .constants(&[2])
        .work(Work::EachInput),
    op("SegmentProdV2", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Multiply))
        .shape(segment_shape)
        .constants(&[2]),
    op("SegmentMaxV2", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Maximum))
        .shape(segment_shape)
        .constants(&[2]),
    op("SegmentMinV2", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Minimum))
        .shape(segment_shape)
        .constants(&[2]),
    op("Bincount", "arr size weights -> bins", bincount).shape(bincount_shape).constants(&[1]),
    op("DenseBincount", "input size weights -> output", dense_bincount).shape(dense_bincount_shape).constants(&[1]),
];

/// What an empty segment holds: the neutral element, for extremes the type's finite limit.
fn neutral(dtype: DType, op: ScalarOp) -> f64 {
    let limit = match dtype {
        DType::F32 => f64::from(f32::MAX),
        DType::F64 => f64::MAX,
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7f7f_0000)),
        _ => f64::INFINITY,
    };
    match op {
        ScalarOp::Multiply => 1.0,
        ScalarOp::Maximum => -limit,
        ScalarOp::Minimum => limit,
        _ => 0.0,
    }
}

/// Rows of the data combined at their segment; numbers out of range are dropped.
fn segment(cx: &mut LowerCtx, op: ScalarOp) -> Result<Vec<Value>> {
    let (data, ids, n) = (cx.arg(0)?, cx.arg(1)?, cx.size(2)?);
    let (dims, places) = (cx.b.dims(data).to_vec(), cx.b.dims(ids).to_vec());
    if dims.len() < places.len() || dims[..places.len()] != places {
        return Err(cx.mismatch(format!("segment numbers of {places:?} for data of {dims:?}")));
    }
    let out = [&[n][..], &dims[places.len()..]].concat();
    let dtype = cx.b.dtype(data);
    let base = cx.b.full(dtype, &out, neutral(dtype, op));
    let ids = cx.b.reshape(ids, &[&places[..], &[1]].concat());
    let y = scatter(cx, base, ids, data, Some(op))?;
    cx.one(y)
}

/// The number of bins, and what each number adds to its bin: 1 where there are no weights.
fn bins_and_weights(cx: &mut LowerCtx) -> Result<(u64, InstId)> {
    let (n, weights, places) = (cx.size(1)?, cx.arg(2)?, cx.dims(0)?);
    let dtype = cx.b.dtype(weights);
    match cx.b.dims(weights) {
        dims if dims == places => Ok((n, weights)),
        dims if dims.contains(&0) => Ok((n, cx.b.full(dtype, &places, 1.0))),
        dims => Err(cx.mismatch(format!("weights of {dims:?} for numbers of {places:?}"))),
    }
}

/// Weights (or ones) added up by number, of a vector or of each row of a matrix; with `binary_output` a bin is 1 where a number
/// falls into it.
fn dense_bincount(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, (n, weights)) = (cx.arg(0)?, bins_and_weights(cx)?);
    let (places, dtype) = (cx.b.dims(x).to_vec(), cx.b.dtype(weights));
    let (lead, count) = match places[..] {
        [] => (vec![], 1),
        [count] => (vec![], count),
        [rows, count] => (vec![rows], count),
        _ => return Err(cx.mismatch(format!("numbers of {places:?}; a vector or a matrix is needed"))),
    };
    let column = [&lead[..], &[count, 1]].concat();
    let mut ids = cx.b.reshape(x, &column);
    if !lead.is_empty() {
        let rows = cx.b.iota(cx.b.dtype(x), &column, 0);
        ids = cx.b.concatenate(&[rows, ids], 2);
    }
    let binary = cx.flag("binary_output");
    let flat = [&lead[..], &[count]].concat();
    let added = if binary { cx.b.full(dtype, &flat, 1.0) } else { cx.b.reshape(weights, &flat) };
    let base = cx.b.full(dtype, &[&lead[..], &[n]].concat(), 0.0);
    if n == 0 {
        return cx.one(base);
    }
    let y = scatter(cx, base, ids, added, if binary { None } else { Some(ScalarOp::Add) })?;
    cx.one(y)
}

fn bincount(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (arr, (n, weights)) = (cx.arg(0)?, bins_and_weights(cx)?);
    let (places, dtype) = (cx.dims(0)?, cx.b.dtype(weights));
    let base = cx.b.full(dtype, &[n], 0.0);
    let ids = cx.b.reshape(arr, &[&places[..], &[1]].concat());
    let y = scatter(cx, base, ids, weights, Some(ScalarOp::Add))?;
    cx.one(y)
}

/// One row a segment instead of the dimensions that the segment numbers have.
fn segment_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.size(2);
    match (cx.ranked(0)?, cx.ranked(1)?) {
        (Some(data), Some(ids)) if ids.len() <= data.len() => cx.like(0, [&[n], &data[ids.len()..]].concat()),
        (Some(_), Some(_)) => Err(cx.mismatch("there are more dimensions of segment numbers than of data")),
        (None, _) => {
            let dims = cx.unranked_from(0);
            cx.like(0, dims)
        }
        (_, None) => {
            let dims = cx.unranked_from(1);
            cx.like(0, dims)
        }
    }
}

fn bincount_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.size(1);
    cx.like(2, vec![n])
}

/// A row of bins for each row of the input.
fn dense_bincount_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.size(1);
    match cx.ranked(0)? {
        Some(dims) => cx.like(2, [&dims[..dims.len().saturating_sub(1)], &[n]].concat()),
        None => {
            let dims = cx.unranked_from(0);
            cx.like(2, dims)
        }
    }
}
