//! `ListDiff`: the difference of two vectors, of data-dependent length.
use super::gather::gather_along_axis;
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::compact::compact_mask;
use crate::ops::fact::Fact;
use crate::ops::math::special::table_keys_equal;
use crate::ops::op_lowering::op;
use crate::ops::shape_ctx::ShapeCtx;
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{ScalarOp, eval};
use crate::tensor::{DType, Tensor};
use num_complex::Complex;
use std::collections::HashSet;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] =
    &[op("ListDiff", "x y -> out idx", list_diff).constant_inputs(&[0, 1]).shape(list_diff_shape)];

/// Shape function of `ListDiff`: two vectors of one data-dependent length.
fn list_diff_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.fresh_dim(UnknownReason::Data);
    let index = cx.attr_type("out_idx");
    Ok(vec![Fact::new(cx.dtype(0), vec![n].into()), Fact::new(index, vec![n].into())])
}

/// Keys of the elements of a vector, equal if the elements are equal; `None` for NaN, which equals nothing.
fn keys(x: &Tensor) -> Vec<Option<Vec<u8>>> {
    if !x.dtype.is_float() && !x.dtype.is_complex() {
        return x.bytes.chunks(x.dtype.bytes()).map(|v| Some(v.to_vec())).collect();
    }
    // Adding 0 turns -0 into 0, adding -0 changes nothing: `same_key` says for which types.
    let zero = if matches!(x.dtype, DType::F16 | DType::BF16) { -0.0 } else { 0.0 };
    let key = |v: &Complex<f64>| {
        let parts = [v.re + zero, v.im + zero];
        (!parts[0].is_nan() && !parts[1].is_nan()).then(|| parts.iter().flat_map(|p| p.to_le_bytes()).collect())
    };
    eval::convert(x, DType::C128).view::<Complex<f64>>().iter().map(key).collect()
}

/// Lowers `ListDiff` at run time, by comparing all pairs.
fn at_run_time(cx: &mut LowerCtx, x: InstId, y: InstId) -> Result<Vec<Value>> {
    let (n, m) = (cx.b.dims(x)[0], cx.b.dims(y)[0]);
    let (ones, others) = (cx.b.broadcast(x, &[n, m], &[0]), cx.b.broadcast(y, &[n, m], &[1]));
    let is_equal = table_keys_equal(cx.b, ones, others);
    let no = cx.b.scalar(DType::Pred, 0.0);
    let is_there = cx.b.reduce(is_equal, no, ScalarOp::Or, &[1]);
    let is_left = cx.b.elementwise(ScalarOp::Not, &[is_there]);
    let kept = compact_mask(cx, is_left)?;
    let count = cx.data_dependent_size(kept.count, n, "the list of what is left")?;
    let places = cx.first_elements(kept.places, count)?;
    let out = gather_along_axis(cx, x, places, 0, 0)?;
    let index_type = cx.attr_dtype("out_idx")?;
    Ok(vec![Value::Array(out), Value::Array(cx.b.convert(places, index_type))])
}

/// Lowers `ListDiff`: the elements of `x` that are not in `y`, in order, and their positions in `x`.
fn list_diff(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (first, second) = (cx.arg(0)?, cx.arg(1)?);
    if cx.b.rank(first) != 1 || cx.b.rank(second) != 1 {
        return Err(cx.shape_mismatch(format!("{} and {}, not vectors", cx.b.shape(first), cx.b.shape(second))));
    }
    let (Ok(x), Ok(y)) = (cx.constant(0), cx.constant(1)) else { return at_run_time(cx, first, second) };
    let removed: HashSet<Vec<u8>> = keys(&y).into_iter().flatten().collect();
    let kept = |key: &Option<Vec<u8>>| key.as_ref().is_none_or(|k| !removed.contains(k));
    let places: Vec<usize> = keys(&x).iter().enumerate().filter(|(_, k)| kept(k)).map(|(i, _)| i).collect();
    let size = x.dtype.bytes();
    let bytes: Vec<u8> = places.iter().flat_map(|&i| x.bytes[i * size..(i + 1) * size].iter().copied()).collect();
    let out = cx.b.constant(Tensor::new(x.dtype, vec![places.len() as u64], bytes));
    let index_type = cx.attr_dtype("out_idx")?;
    let places: Vec<Dim> = places.into_iter().map(Dim::from).collect();
    let places = super::shape::dims_constant(cx, index_type, &dims![places.len()], &places)?;
    Ok(vec![Value::Array(out), Value::Array(places)])
}
