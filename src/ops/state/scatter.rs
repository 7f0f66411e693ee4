//! Parts of variables changed at run-time indices. An update outside is dropped (TensorFlow's CPU kernels refuse it).
use super::into;
use crate::diag::Result;
use crate::dims;
use crate::hlo::open::InstId;
use crate::ops::array::{scatter, scatter_onto};
use crate::ops::checks;
use crate::ops::row::op;
use crate::ops::shape::nothing;
use crate::ops::{LowerCtx, OpRow, Value};
use crate::scalar::ScalarOp;

const ROWS_SIGNATURE: &str = "resource indices updates ->";
const ND: &str = "ref indices updates ->";

/// The rows of this file.
pub const ROWS: &[OpRow] = &[
    rows("ResourceScatterUpdate", |cx| into(cx, |cx| at_rows(cx, None))).checked(checks::rows),
    rows("ResourceScatterAdd", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Add)))).checked(checks::rows),
    rows("ResourceScatterSub", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Subtract)))).checked(checks::rows),
    rows("ResourceScatterMul", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Multiply)))).checked(checks::rows),
    rows("ResourceScatterDiv", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Divide)))).checked(checks::rows),
    rows("ResourceScatterMin", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Minimum)))).checked(checks::rows),
    rows("ResourceScatterMax", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Maximum)))).checked(checks::rows),
    nd("ResourceScatterNdUpdate", |cx| into(cx, |cx| scatter_onto(cx, None))).checked(checks::places),
    nd("ResourceScatterNdAdd", |cx| into(cx, |cx| scatter_onto(cx, Some(ScalarOp::Add)))).checked(checks::places),
    nd("ResourceScatterNdSub", |cx| into(cx, |cx| scatter_onto(cx, Some(ScalarOp::Subtract)))).checked(checks::places),
    nd("ResourceScatterNdMin", |cx| into(cx, |cx| scatter_onto(cx, Some(ScalarOp::Minimum)))).checked(checks::places),
    nd("ResourceScatterNdMax", |cx| into(cx, |cx| scatter_onto(cx, Some(ScalarOp::Maximum)))).checked(checks::places),
];

type Lowering = fn(&mut LowerCtx) -> Result<Vec<Value>>;

const fn rows(name: &'static str, lower: Lowering) -> OpRow {
    op(name, ROWS_SIGNATURE, lower).shape(nothing).writes(&[0])
}

const fn nd(name: &'static str, lower: Lowering) -> OpRow {
    op(name, ND, lower).shape(nothing).writes(&[0])
}

/// Input 0 with the rows that input 1 names combined with those of input 2.
fn at_rows(cx: &mut LowerCtx, op: Option<ScalarOp>) -> Result<Vec<Value>> {
    let (x, indices, updates) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let y = scatter_rows(cx, x, indices, updates, op)?;
    cx.one(y)
}

/// `x` with `updates` combined with the rows that `indices` name.
pub(super) fn scatter_rows(
    cx: &mut LowerCtx,
    x: InstId,
    indices: InstId,
    updates: InstId,
    op: Option<ScalarOp>,
) -> Result<InstId> {
    let places = [cx.b.dims(indices), &dims![1]].concat();
    let indices = cx.b.reshape(indices, &places);
    scatter(cx, x, indices, updates, op)
}
