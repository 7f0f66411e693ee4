//! Softmax and the cross-entropy losses.
use super::bias::{accumulator_type, sum_axes};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::ShapeCtx;
use crate::ops::checks;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::{Direction, ScalarOp};

const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("Softmax",    "logits -> softmax",    |cx| along_last(cx, softmax)).shape(like_first_input).dtypes(FLOATS).work(Work::PerOutputElement(5)),
    op("LogSoftmax", "logits -> logsoftmax", |cx| along_last(cx, log_softmax)).shape(like_first_input).dtypes(FLOATS).work(Work::PerOutputElement(5)),
    op("SoftmaxCrossEntropyWithLogits",       "features labels -> loss backprop", dense_loss).shape(dense_loss_shape).dtypes(FLOATS),
    op("SparseSoftmaxCrossEntropyWithLogits", "features labels -> loss backprop", sparse_loss).with_check(checks::check_labels).shape(sparse_loss_shape).dtypes(FLOATS),
];

/// Value without the last dimension of `like`, repeated along it.
fn repeat_last(b: &mut Builder, x: InstId, like: InstId) -> InstId {
    let dims = b.dims(like).to_vec();
    b.broadcast(x, &dims, &(0..dims.len() - 1).collect::<Vec<_>>())
}

/// x minus its largest element along the last dimension.
fn minus_max(b: &mut Builder, x: InstId) -> InstId {
    let last = b.rank(x) - 1;
    let lowest = b.scalar(b.dtype(x), f64::NEG_INFINITY);
    let top = b.reduce(x, lowest, ScalarOp::Maximum, &[last]);
    let top = repeat_last(b, top, x);
    b.sub(x, top)
}

/// Softmax as TensorFlow's kernel computes it, by multiplying with the inverse of the sum (`softmax_op_functor.h`).
fn softmax(b: &mut Builder, x: InstId) -> InstId {
    let shifted = minus_max(b, x);
    let e = b.unary(ScalarOp::Exp, shifted);
    let axis = b.rank(e) - 1;
    let total = sum_axes(b, e, &[axis]);
    let one = b.full_like(total, 1.0);
    let inverse = b.div(one, total);
    let inverse = repeat_last(b, inverse, e);
    b.mul(e, inverse)
}

fn log_softmax(b: &mut Builder, x: InstId) -> InstId {
    let shifted = minus_max(b, x);
    let e = b.unary(ScalarOp::Exp, shifted);
    let axis = b.rank(e) - 1;
    let total = sum_axes(b, e, &[axis]);
    let total = repeat_last(b, total, e);
    let log = b.unary(ScalarOp::Log, total);
    b.sub(shifted, log)
}

/// Lowers `f` on the input in its wide type; narrow floats are rounded once, at the end.
fn along_last(cx: &mut LowerCtx, f: fn(&mut Builder, InstId) -> InstId) -> Result<Vec<Value>> {
    let (x, dtype) = (cx.arg(0)?, cx.dtype(0)?);
    if cx.b.rank(x) == 0 {
        return Err(cx.shape_mismatch("a scalar has no last dimension"));
    }
    let x = cx.b.convert(x, accumulator_type(dtype));
    let y = f(cx.b, x);
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Lowers `SoftmaxCrossEntropyWithLogits`: the loss `sum(-labels * log_softmax(features))` of each row, and the gradient
/// `softmax(features) - labels`.
fn dense_loss(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, labels) = (cx.arg(0)?, cx.arg(1)?);
    let dtype = cx.b.dtype(x);
    let (x, labels) = cx.b.broadcast_together(x, labels);
    if cx.b.rank(x) != 2 {
        return Err(cx.shape_mismatch(format!("logits and labels must be matrices, not {:?}", cx.b.dims(x))));
    }
    let work = accumulator_type(dtype);
    let (x, labels) = (cx.b.convert(x, work), cx.b.convert(labels, work));
    loss_of(cx, x, labels, dtype, |b, labels, cost| b.mul(labels, cost))
}

/// Loss of each row and its gradient; `terms` combines the labels with the costs -log p of all classes.
fn loss_of(
    cx: &mut LowerCtx,
    x: InstId,
    labels: InstId,
    dtype: crate::tensor::DType,
    terms: fn(&mut Builder, InstId, InstId) -> InstId,
) -> Result<Vec<Value>> {
    let b = &mut *cx.b;
    let log = log_softmax(b, x);
    // Not a negation, which would make the cost of a certain class -0.0.
    let zero = b.full_like(log, 0.0);
    let cost = b.sub(zero, log);
    let terms = terms(b, labels, cost);
    let loss = sum_axes(b, terms, &[1]);
    let probability = b.unary(ScalarOp::Exp, log);
    let backprop = b.sub(probability, labels);
    Ok(vec![Value::Array(b.convert(loss, dtype)), Value::Array(b.convert(backprop, dtype))])
}

/// Label times cost for each class; 0 for a label of 0, even if the cost is infinite.
fn named_costs(b: &mut Builder, labels: InstId, cost: InstId) -> InstId {
    let zero = b.full_like(labels, 0.0);
    let unused = b.compare(Direction::Eq, labels, zero);
    let product = b.mul(labels, cost);
    b.select(unused, zero, product)
}

/// Lowers `SparseSoftmaxCrossEntropyWithLogits`, whose labels are one class number per row; an invalid number makes the row
/// NaN.
fn sparse_loss(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, labels_dims) = (cx.dims(0)?, cx.dims(1)?);
    if dims.len() != 2 || labels_dims != dims[..1] {
        return Err(
            cx.shape_mismatch(format!("logits {dims:?} must be a matrix, and labels {labels_dims:?} one a row of it"))
        );
    }
    let (x, labels, dtype) = (cx.arg(0)?, cx.arg(1)?, cx.dtype(0)?);
    let work = accumulator_type(dtype);
    let x = cx.b.convert(x, work);
    let index_type = cx.b.dtype(labels);
    let classes = cx.b.iota(index_type, &dims, 1);
    let wanted = cx.b.broadcast(labels, &dims, &[0]);
    let hit = cx.b.compare(Direction::Eq, classes, wanted);
    let (one, zero) = (cx.b.full(work, &dims, 1.0), cx.b.full(work, &dims, 0.0));
    let hot = cx.b.select(hit, one, zero);
    let (low, high) = (cx.b.full(index_type, &dims, 0.0), cx.b.full(index_type, &dims, dims[1]));
    let (not_negative, below) = (cx.b.compare(Direction::Ge, wanted, low), cx.b.compare(Direction::Lt, wanted, high));
    let valid = cx.b.binary(ScalarOp::And, not_negative, below);
    let nan = cx.b.full(work, &dims, f64::NAN);
    let hot = cx.b.select(valid, hot, nan);
    loss_of(cx, x, hot, dtype, named_costs)
}

fn dense_loss_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let both = cx.broadcast(&cx.dims(0)?, &cx.dims(1)?)?;
    let dims = cx
        .require_rank(&both, 2)
        .ok_or_else(|| cx.shape_mismatch(format!("logits and labels {both} are no matrix")))?;
    Ok(vec![Fact::new(cx.dtype(0), vec![dims[0]].into()), Fact::new(cx.dtype(0), dims.into())])
}

fn sparse_loss_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (features, labels) = (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(1, 1)?);
    let rows = cx.merge_dim(features[0], labels[0]).ok_or_else(|| cx.shape_mismatch("a label a row is needed"))?;
    Ok(vec![Fact::new(cx.dtype(0), vec![rows].into()), Fact::new(cx.dtype(0), vec![rows, features[1]].into())])
}
