//! Segment reductions: sums, products and extremes by segment number.
use crate::diag::Result;
use crate::dims;
use crate::ops::ShapeCtx;
use crate::ops::array::scatter::{NanResult, extremum_computation, scatter, scatter_with_computation};
use crate::ops::checks;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("UnsortedSegmentSum", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Add))
        .with_check(checks::check_unsorted_segments)
        .shape(segment_shape)
        .constant_inputs(&[2])
        .work(Work::PerInputElement),
    op("UnsortedSegmentProd", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Multiply))
        .with_check(checks::check_unsorted_segments)
        .shape(segment_shape)
        .constant_inputs(&[2])
        .work(Work::PerInputElement),
    op("UnsortedSegmentMax", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Maximum))
        .with_check(checks::check_unsorted_segments)
        .shape(segment_shape)
        .constant_inputs(&[2])
        .work(Work::PerInputElement),
    op("UnsortedSegmentMin", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Minimum))
        .with_check(checks::check_unsorted_segments)
        .shape(segment_shape)
        .constant_inputs(&[2])
        .work(Work::PerInputElement),
    op("SegmentSumV2", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Add))
        .with_check(checks::check_sorted_segments)
        .shape(segment_shape)
        .constant_inputs(&[2])
        .work(Work::PerInputElement),
    op("SegmentProdV2", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Multiply))
        .with_check(checks::check_sorted_segments)
        .shape(segment_shape)
        .constant_inputs(&[2]),
    op("SegmentMaxV2", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Maximum))
        .with_check(checks::check_sorted_segments)
        .shape(segment_shape)
        .constant_inputs(&[2]),
    op("SegmentMinV2", "data segment_ids num_segments -> output", |cx| segment(cx, ScalarOp::Minimum))
        .with_check(checks::check_sorted_segments)
        .shape(segment_shape)
        .constant_inputs(&[2]),
];

/// Largest finite number of a float type; infinity for other types, where it saturates.
pub fn largest_finite(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::MAX),
        DType::F64 => f64::MAX,
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7f7f_0000)),
        _ => f64::INFINITY,
    }
}

/// Value of an empty segment: the neutral element, and for extremes the type's finite limit.
fn neutral(dtype: DType, op: ScalarOp) -> f64 {
    let limit = largest_finite(dtype);
    match op {
        ScalarOp::Multiply => 1.0,
        ScalarOp::Maximum => -limit,
        ScalarOp::Minimum => limit,
        _ => 0.0,
    }
}

/// Lowers a segment reduction: rows of the data are combined by segment; segment numbers out of range are dropped.
fn segment(cx: &mut LowerCtx, op: ScalarOp) -> Result<Vec<Value>> {
    let (data, ids, n) = (cx.arg(0)?, cx.arg(1)?, cx.size_from_input(2)?);
    let (dims, places) = (cx.b.dims(data).to_vec(), cx.b.dims(ids).to_vec());
    if dims.len() < places.len() || dims[..places.len()] != places {
        return Err(cx.shape_mismatch(format!("segment numbers of {places:?} for data of {dims:?}")));
    }
    let out = [&[n][..], &dims[places.len()..]].concat();
    let dtype = cx.b.dtype(data);
    let base = cx.b.full(dtype, &out, neutral(dtype, op));
    let ids = cx.b.reshape(ids, &[&places[..], &dims![1]].concat());
    let y = match op {
        ScalarOp::Maximum | ScalarOp::Minimum if dtype.is_float() => {
            let comp = extremum_computation(cx.b, dtype, op, NanResult::New);
            scatter_with_computation(cx, base, ids, data, comp)?
        }
        _ => scatter(cx, base, ids, data, Some(op))?,
    };
    cx.one_output(y)
}

/// Shape function: one row per segment in place of the dimensions of the segment numbers.
fn segment_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.size_from_input(2);
    match (cx.ranked_dims(0)?, cx.ranked_dims(1)?) {
        (Some(data), Some(ids)) if ids.len() <= data.len() => {
            cx.one_output_like(0, [&[n], &data[ids.len()..]].concat())
        }
        (Some(_), Some(_)) => Err(cx.shape_mismatch("there are more dimensions of segment numbers than of data")),
        (None, _) => {
            let dims = cx.unranked_from(0);
            cx.one_output_like(0, dims)
        }
        (_, None) => {
            let dims = cx.unranked_from(1);
            cx.one_output_like(0, dims)
        }
    }
}
