//! Binary search in sorted rows: `LowerBound` and `UpperBound`.
use crate::diag::Result;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("LowerBound", "sorted_inputs values -> output", |cx| bound(cx, Bound::Lower)),
    op("UpperBound", "sorted_inputs values -> output", |cx| bound(cx, Bound::Upper)),
];

/// Side of the insertion positions that keep a row sorted.
#[derive(Clone, Copy, PartialEq)]
enum Bound {
    /// First position: behind the elements below the value.
    Lower,
    /// Last position: in front of the elements above the value.
    Upper,
}

/// Lowers `LowerBound` and `UpperBound`: the insertion position of each value in its row. No element compares below or above a
/// NaN, so that its positions are the first one and the end.
///
/// Shapes: `sorted_inputs [rows, n]`, `values [rows, m]` -> `[rows, m]`.
fn bound(cx: &mut LowerCtx, side: Bound) -> Result<Vec<Value>> {
    let (sorted, values) = (cx.arg(0)?, cx.arg(1)?);
    let (&[rows, n], &[other, m]) = (cx.b.dims(sorted), cx.b.dims(values)) else {
        return Err(cx.shape_mismatch("sorted_inputs and values must be matrices"));
    };
    if rows != other {
        return Err(cx.shape_mismatch(format!("{rows} sorted rows for {other} rows of values")));
    }
    let out = cx.attr_dtype("out_type")?;
    let all = [rows, m, n];
    let (sorted, values) = (cx.b.broadcast(sorted, &all, &[0, 2]), cx.b.broadcast(values, &all, &[0, 1]));
    let before = match side {
        Bound::Lower => cx.b.compare(Direction::Lt, sorted, values),
        Bound::Upper => {
            let (not_above, is_nan) =
                (cx.b.compare(Direction::Le, sorted, values), cx.b.compare(Direction::Ne, values, values));
            cx.b.binary(ScalarOp::Or, not_above, is_nan)
        }
    };
    let ones = cx.b.convert(before, out);
    let zero = cx.b.scalar(out, 0.0);
    let y = cx.b.reduce(ones, zero, ScalarOp::Add, &[2]);
    cx.one_output(y)
}
