//! `RaggedRange`: ranges as ragged rows.
use super::{row_positions, row_splits};
use crate::diag::Result;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] =
    &[op("RaggedRange", "starts limits deltas -> rt_nested_splits rt_dense_values", range).shape(range_shape)];

/// Lowers `RaggedRange`: one range per row; scalar inputs apply to all rows.
fn range(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dtype = cx.dtype(0)?;
    if dtype.is_float() {
        return Err(cx.unsupported_case(format!("ranges of {dtype}; those of integers are supported")));
    }
    let all = cx.arg_range(0, 3)?;
    let n = all.iter().find_map(|&x| cx.b.dims(x).first().copied()).unwrap_or(Dim::from(1));
    let mut wide = Vec::with_capacity(3);
    for x in all {
        if !matches!(cx.b.dims(x), [] | [_]) || cx.b.dims(x).first().is_some_and(|&m| m != n) {
            return Err(cx.shape_mismatch(format!("{} for {n} ranges", cx.b.shape(x))));
        }
        let x = if cx.b.rank(x) == 0 { cx.b.broadcast(x, &[n], &[]) } else { x };
        wide.push(cx.b.convert(x, DType::S64));
    }
    let lengths = steps(cx, wide[0], wide[1], wide[2]);
    let (splits, total) = row_splits(cx, lengths);
    let total = cx.size_from_scalar(total, "the list of values")?;
    let (row, at) = row_positions(cx, splits, total)?;
    let (start, delta) = (gather_along_axis(cx, wide[0], row, 0, 0)?, gather_along_axis(cx, wide[2], row, 0, 0)?);
    let at = cx.b.convert(at, DType::S64);
    let offset = cx.b.mul(at, delta);
    let values = cx.b.add(start, offset);
    let splits_type = cx.attr_dtype("Tsplits")?;
    Ok(vec![Value::Array(cx.b.convert(splits, splits_type)), Value::Array(cx.b.convert(values, dtype))])
}

/// Number of elements of each range from `start` to `limit` by `delta`; 0 if `delta` leads away from the limit.
fn steps(cx: &mut LowerCtx, start: InstId, limit: InstId, delta: InstId) -> InstId {
    let (zero, one) = (cx.b.full_like(delta, 0.0), cx.b.full_like(delta, 1.0));
    let is_up = cx.b.compare(Direction::Gt, delta, zero);
    let (up, down) = (cx.b.sub(limit, start), cx.b.sub(start, limit));
    let span = cx.b.select(is_up, up, down);
    let by = cx.b.elementwise(ScalarOp::Abs, &[delta]);
    let by = cx.b.max(by, one);
    // The first step is counted separately, as the sum of span and step could overflow.
    let rest = cx.b.sub(span, one);
    let further = cx.b.div(rest, by);
    let count = cx.b.add(further, one);
    let is_any = cx.b.compare(Direction::Gt, span, zero);
    cx.b.select(is_any, count, zero)
}

fn range_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let mut rows = InferredDim::Known(1);
    for i in 0..3 {
        match cx.ranked_dims(i)? {
            Some(dims) => rows = dims.first().copied().unwrap_or(rows),
            None => rows = cx.fresh_dim(UnknownReason::Data),
        }
    }
    let (splits, values) = (cx.add(rows, InferredDim::Known(1)), cx.fresh_dim(UnknownReason::Data));
    let values: Dims = vec![values].into();
    Ok(vec![Fact::new(cx.attr_type("Tsplits"), vec![splits].into()), Fact::new(cx.dtype(0), values)])
}
