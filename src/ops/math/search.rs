//! Where numbers belong in sorted rows.
use crate::diag::Result;
use crate::ops::row::op;
use crate::ops::{LowerCtx, OpRow, Value};
use crate::scalar::{Direction, ScalarOp};

/// The rows of this file.
#[rustfmt::skip]
pub const ROWS: &[OpRow] = &[
    op("LowerBound", "sorted_inputs values -> output", |cx| bound(cx, Direction::Lt)),
    op("UpperBound", "sorted_inputs values -> output", |cx| bound(cx, Direction::Le)),
];

/// For each value the number of elements of its row that stand in the relation to it.
///
/// Shapes: `sorted_inputs [rows, n]`, `values [rows, m]` -> `[rows, m]`.
fn bound(cx: &mut LowerCtx, direction: Direction) -> Result<Vec<Value>> {
    let (sorted, values) = (cx.arg(0)?, cx.arg(1)?);
    let (&[rows, n], &[other, m]) = (cx.b.dims(sorted), cx.b.dims(values)) else {
        return Err(cx.mismatch("sorted_inputs and values must be matrices"));
    };
    if rows != other {
        return Err(cx.mismatch(format!("{rows} sorted rows for {other} rows of values")));
    }
    let out = cx.attr_dtype("out_type")?;
    let all = [rows, m, n];
    let (sorted, values) = (cx.b.broadcast(sorted, &all, &[0, 2]), cx.b.broadcast(values, &all, &[0, 1]));
    let before = cx.b.compare(direction, sorted, values);
    let ones = cx.b.convert(before, out);
    let zero = cx.b.scalar(out, 0.0);
    let y = cx.b.reduce(ones, zero, ScalarOp::Add, &[2]);
    cx.one(y)
}
