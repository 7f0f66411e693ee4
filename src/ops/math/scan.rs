//! Running sums and products.
use crate::diag::Result;
use crate::hlo::attrs::WindowDim;
use crate::hlo::{InstId, Op};
use crate::ops::row::op;
use crate::ops::{LowerCtx, OpRow, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// The rows of this file.
pub const ROWS: &[OpRow] = &[
    op("Cumsum", "x axis -> out", |cx| scan(cx, ScalarOp::Add, 0.0)).constants(&[1]),
    op("Cumprod", "x axis -> out", |cx| scan(cx, ScalarOp::Multiply, 1.0)).constants(&[1]),
];

/// A window as long as the axis, padded on one side, so that position `i` sees all up to itself.
fn scan(cx: &mut LowerCtx, op: ScalarOp, neutral: f64) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let axis = cx.axis(cx.constant_int(1)?, cx.b.rank(x))?;
    let dtype = cx.b.dtype(x);
    if cx.b.dims(x).contains(&0) {
        return cx.one(x);
    }
    let work = if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype };
    let wide = cx.b.convert(x, work);
    let y = running(cx, wide, axis, op, neutral);
    let y = cx.b.convert(y, dtype);
    cx.one(y)
}

fn running(cx: &mut LowerCtx, x: InstId, axis: usize, op: ScalarOp, neutral: f64) -> InstId {
    let n = cx.b.dims(x)[axis];
    let (exclusive, reverse) = (i64::from(cx.flag("exclusive")), cx.flag("reverse"));
    let mut window = vec![WindowDim::default(); cx.b.rank(x)];
    let (near, far) = (-exclusive, n as i64 - 1 + exclusive);
    window[axis].size = n;
    (window[axis].pad_low, window[axis].pad_high) = if reverse { (near, far) } else { (far, near) };
    let init = cx.b.scalar(cx.b.dtype(x), neutral);
    let comp = cx.b.scalar_computation(op, cx.b.dtype(x));
    cx.b.add_inst(Op::ReduceWindow { window, comp }, &[x, init])
}
