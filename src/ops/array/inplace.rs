//! Updates of an array's rows that TensorFlow performs in place, and copies.
use super::scatter::scatter;
use crate::diag::Result;
use crate::dims;
use crate::ops::math::special::add_scalar;
use crate::ops::op_lowering::op;
use crate::ops::shape::{forward_first_input, like_first_input};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("InplaceUpdate", "x i v -> y", |cx| with_rows(cx, Change::Replaced)).shape(like_first_input),
    op("InplaceAdd", "x i v -> y", |cx| with_rows(cx, Change::Added)).shape(like_first_input),
    op("InplaceSub", "x i v -> y", |cx| with_rows(cx, Change::Subtracted)).shape(like_first_input),
    op("DeepCopy", "x -> y", |cx| cx.one_output(cx.arg(0)?)).shape(forward_first_input).forwards_inputs(),
    op("GuaranteeConst", "input -> output", |cx| cx.one_output(cx.arg(0)?))
        .shape(forward_first_input)
        .forwards_inputs(),
];

/// Effect of an in-place op on a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Replaced,
    Added,
    Subtracted,
}

/// Lowers an in-place op: rows `i` of `x` changed by the rows of `v`, one after the other; row numbers wrap around.
///
/// Shapes: x `[n, ..]`, i `[k]`, v `[k, ..]` -> `[n, ..]`.
fn with_rows(cx: &mut LowerCtx, change: Change) -> Result<Vec<Value>> {
    let (x, i, v) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let (dims, places) = (cx.b.dims(x).to_vec(), cx.b.dims(i).to_vec());
    let (Some((&rows, row)), &[count]) = (dims.split_first(), &places[..]) else {
        return Err(cx.shape_mismatch(format!("rows {places:?} of {dims:?}")));
    };
    if rows == 0 {
        return cx.one_output(x);
    }
    if cx.b.dims(v) != [&places[..], row].concat() {
        return Err(cx.shape_mismatch(format!("{} for rows {places:?} of {dims:?}", cx.b.shape(v))));
    }
    let all = cx.b.full_like(i, rows);
    let rest = cx.b.elementwise(ScalarOp::Remainder, &[i, all]);
    let shifted = add_scalar(cx.b, rest, rows);
    let i = cx.b.elementwise(ScalarOp::Remainder, &[shifted, all]);
    let to = cx.b.reshape(i, &dims![count, 1]);
    let y = match change {
        Change::Replaced => scatter(cx, x, to, v, None)?,
        Change::Added => scatter(cx, x, to, v, Some(ScalarOp::Add))?,
        Change::Subtracted => {
            let v = cx.b.unary(ScalarOp::Negate, v);
            scatter(cx, x, to, v, Some(ScalarOp::Add))?
        }
    };
    cx.one_output(y)
}
