//! `NextAfter`, the next float in the direction of another one, and the cross product.
use super::expr::build_formula;
use crate::diag::Result;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("NextAfter", "x1 x2 -> output",  next_after).pointwise().dtypes("f32, f64"),
    op("Cross",     "a b -> product",   cross).shape(like_first_input).dtypes("integers, floats"),
];

/// Lowers `NextAfter`: the neighbor of `x1` in the direction of `x2`. The bits of floats without the sign are ordered like
/// integers.
fn next_after(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (from, to, dtype) = (cx.arg(0)?, cx.arg(1)?, cx.dtype(0)?);
    let (bits, sign, low) = match dtype {
        DType::F32 => (DType::U32, Tensor::scalar(1u32 << 31), Tensor::scalar(u32::MAX >> 1)),
        DType::F64 => (DType::U64, Tensor::scalar(1u64 << 63), Tensor::scalar(u64::MAX >> 1)),
        other => return Err(cx.unsupported_case(format!("NextAfter of {other}; f32 and f64 are supported"))),
    };
    let (from, to) = cx.b.broadcast_together(from, to);
    let (sign, low) = (cx.b.constant(sign), cx.b.constant(low));
    let words = [from, to].map(|x| cx.b.unary(ScalarOp::BitcastConvert(bits), x));
    let stepped = build_formula(cx.b, [words[0], words[1], sign, low], |[from, to, sign, low]| {
        let (size, goal) = (from.and(low), to.and(low));
        let smaller = size.gt(goal).or(from.and(sign).not_equals(to.and(sign)));
        let step = (from - 1.0).select_where(smaller, from + 1.0);
        let least = to.and(sign).or(from.constant(1.0));
        let at_zero = to.select_where(goal.equals(0.0), least);
        let step = at_zero.select_where(size.equals(0.0), step);
        to.select_where(from.equals(to), step)
    });
    let y = cx.b.unary(ScalarOp::BitcastConvert(dtype), stepped);
    let y =
        build_formula(cx.b, [y, from, to], |[y, from, to]| y.replace_where(from.is_nan().or(to.is_nan()), f64::NAN));
    cx.one_output(y)
}

/// Lowers `Cross`: the cross product of vectors along the last dimension, which has three elements.
fn cross(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, y, dims) = (cx.arg(0)?, cx.arg(1)?, cx.dims(0)?);
    if dims.last() != Some(&Dim::from(3)) || cx.dims(1)? != dims {
        return Err(
            cx.shape_mismatch(format!("vectors of three in arrays of one shape, not {dims:?} and {:?}", cx.dims(1)?))
        );
    }
    let last = dims.len() - 1;
    let mut part = |x: InstId, i: Dim| cx.b.slice_axis(x, last, i, i + 1);
    let (a, b): ([InstId; 3], [InstId; 3]) =
        ([0, 1, 2].map(|i| part(x, Dim::from(i))), [0, 1, 2].map(|i| part(y, Dim::from(i))));
    let parts = [(1, 2), (2, 0), (0, 1)]
        .map(|(i, j)| build_formula(cx.b, [a[i], b[j], a[j], b[i]], |[ai, bj, aj, bi]| ai * bj - aj * bi));
    let z = cx.b.concatenate(&parts, last);
    cx.one_output(z)
}
