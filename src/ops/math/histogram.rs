//! `HistogramFixedWidth`: counts of the numbers in bins of equal width.
use crate::diag::Result;
use crate::dims;
use crate::graph::TfType;
use crate::ops::array::scatter::scatter;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[op("HistogramFixedWidth", "values value_range nbins -> out", histogram)
    .shape(histogram_shape)
    .constant_inputs(&[2])
    .dtypes("s32, s64, f32, f64")];

/// Lowers `HistogramFixedWidth`. Numbers below the range count in the first bin, those above it in the last one. The bin is
/// computed in f64, as in TensorFlow's kernel, which accepts no NaN.
fn histogram(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (values, range, n) = (cx.arg(0)?, cx.arg(1)?, cx.size_from_input(2)?);
    if cx.b.dims(range) != [2] || !cx.b.require_less(Dim::from(0), n) {
        return Err(
            cx.shape_mismatch(format!("{n} bins over a range of {:?} numbers; two are needed", cx.b.dims(range)))
        );
    }
    let count = cx.b.dims(values).iter().product();
    let out = cx.attr_dtype("dtype").unwrap_or(DType::S32);
    let b = &mut *cx.b;
    let values = b.reshape(values, &[count]);
    let [low, high] = [0, 1].map(|i| {
        let end = b.slice_axis(range, 0, Dim::from(i), Dim::from(i + 1));
        b.reshape(end, &[])
    });
    let width = b.sub(high, low);
    let width = b.convert(width, DType::F64);
    let bins = b.scalar(DType::F64, n);
    let width = b.div(width, bins);
    let (low, width) = (b.broadcast(low, &[count], &[]), b.broadcast(width, &[count], &[]));
    let above = b.max(values, low);
    let above = b.sub(above, low);
    let above = b.convert(above, DType::F64);
    let at = b.div(above, width);
    let last = b.full(DType::F64, &[count], n - 1);
    let at = b.min(at, last);
    let at = b.convert(at, DType::S32);
    let at = b.reshape(at, &dims![count, 1]);
    let (none, ones) = (b.full(out, &[n], 0.0), b.full(out, &[count], 1.0));
    let y = scatter(cx, none, at, ones, Some(ScalarOp::Add))?;
    cx.one_output(y)
}

fn histogram_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.size_from_input(2);
    let dtype = cx.attr_type("dtype").unwrap_or(TfType::Data(DType::S32));
    cx.one_output(dtype, vec![n])
}
