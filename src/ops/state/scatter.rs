//! Scatter updates of variables at run-time indices. An update out of range is dropped, where TensorFlow's CPU kernels report
//! an error.
use super::into;
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::InstId;
use crate::ops::array::{scatter, scatter_onto};
use crate::ops::checks;
use crate::ops::op_lowering::op;
use crate::ops::shape::no_outputs;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;

const ROWS_SIGNATURE: &str = "resource indices updates ->";
const ND: &str = "ref indices updates ->";

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    rows("ResourceScatterUpdate", |cx| into(cx, |cx| at_rows(cx, None))).with_check(checks::check_row_indices),
    rows("ResourceScatterAdd", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Add))))
        .with_check(checks::check_row_indices),
    rows("ResourceScatterSub", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Subtract))))
        .with_check(checks::check_row_indices),
    rows("ResourceScatterMul", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Multiply))))
        .with_check(checks::check_row_indices),
    rows("ResourceScatterDiv", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Divide))))
        .with_check(checks::check_row_indices),
    rows("ResourceScatterMin", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Minimum))))
        .with_check(checks::check_row_indices),
    rows("ResourceScatterMax", |cx| into(cx, |cx| at_rows(cx, Some(ScalarOp::Maximum))))
        .with_check(checks::check_row_indices),
    nd("ResourceScatterNdUpdate", |cx| into(cx, |cx| scatter_onto(cx, None))).with_check(checks::check_index_tuples),
    nd("ResourceScatterNdAdd", |cx| into(cx, |cx| scatter_onto(cx, Some(ScalarOp::Add))))
        .with_check(checks::check_index_tuples),
    nd("ResourceScatterNdSub", |cx| into(cx, |cx| scatter_onto(cx, Some(ScalarOp::Subtract))))
        .with_check(checks::check_index_tuples),
    nd("ResourceScatterNdMin", |cx| into(cx, |cx| scatter_onto(cx, Some(ScalarOp::Minimum))))
        .with_check(checks::check_index_tuples),
    nd("ResourceScatterNdMax", |cx| into(cx, |cx| scatter_onto(cx, Some(ScalarOp::Maximum))))
        .with_check(checks::check_index_tuples),
];

type Lowering = fn(&mut LowerCtx) -> Result<Vec<Value>>;

const fn rows(name: &'static str, lower: Lowering) -> OpLowering {
    op(name, ROWS_SIGNATURE, lower).shape(no_outputs).assigns_inputs(&[0])
}

const fn nd(name: &'static str, lower: Lowering) -> OpLowering {
    op(name, ND, lower).shape(no_outputs).assigns_inputs(&[0])
}

/// Lowers a row scatter: input 2 combined with the rows of input 0 that input 1 selects.
fn at_rows(cx: &mut LowerCtx, op: Option<ScalarOp>) -> Result<Vec<Value>> {
    let (x, indices, updates) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let y = scatter_rows(cx, x, indices, updates, op)?;
    cx.one_output(y)
}

/// Scatters `updates` to the rows of `x` that `indices` select.
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
