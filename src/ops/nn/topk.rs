//! `TopK`, `ApproxTopK` and `InTopK`: the largest elements of the last dimension.
use crate::diag::{Code, Error, Result};
use crate::graph::TfType;
use crate::hlo::symbolic::{Dim, InstId, Op};
use crate::ops::ShapeCtx;
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::shape::{PRED, S32};
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("TopK",     "input -> values indices",   |cx| { let k = cx.require_attr(cx.node.int("k"), "k")?; top_k(cx, k.into()) }).shape(|cx| { let k = cx.node.int("k").and_then(|k| u64::try_from(k).ok()); top_k_shape(cx, k.map(InferredDim::Known)) }),
    op("TopKV2",   "input k -> values indices", of_argument).shape(|cx| { let k = cx.size_from_input(1); top_k_shape(cx, Some(k)) }).constant_inputs(&[1]),
    op("ApproxTopK", "input -> values indices", approx_top_k).dtypes("f16, bf16, f32; aggregate_to_topk"),
    op("InTopK",   "predictions targets -> precision",   in_top_k).shape(in_top_k_shape).dtypes("predictions: f32"),
    op("InTopKV2", "predictions targets k -> precision", in_top_k).shape(in_top_k_shape).dtypes("predictions: f32"),
];

fn of_argument(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if cx.symbolic_value(1).is_some() {
        let k = cx.constant_dim(1)?;
        return top_k(cx, k);
    }
    let Some(&most) = cx.dims(0)?.last() else { return Err(cx.shape_mismatch("a scalar has no last dimension")) };
    let count = cx.arg(1)?;
    let count = cx.b.reshape(count, &[]);
    let k = cx.bounded_size(count, most, "the largest elements")?;
    top_k(cx, k)
}

/// Lowers `TopK`: the `k` largest elements of the last dimension in descending order, and their indices; of equal elements the
/// lower index comes first.
fn top_k(cx: &mut LowerCtx, k: Dim) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let Some(&n) = dims.last() else { return Err(cx.shape_mismatch("a scalar has no last dimension")) };
    let k = Dim::size(k).map_err(|_| Error::user(Code::BadInputs, format!("k is {k}")))?;
    if k > n {
        return Err(cx.shape_mismatch(format!("k is {k}, and the last dimension has {n} elements")));
    }
    let index_type = match cx.node.tf_type("index_type") {
        Some(TfType::Data(t)) => t,
        _ => DType::S32,
    };
    let (values, indices) = ordered(cx, x, k, true);
    let indices = cx.b.convert(indices, index_type);
    Ok(vec![Value::Array(values), Value::Array(indices)])
}

/// Lowers `ApproxTopK`: the `k` largest (or smallest) elements along any dimension, computed exactly.
fn approx_top_k(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let axis = cx.normalize_axis(cx.node.int("reduction_dimension").unwrap_or(-1), dims.len())?;
    let k = cx.require_attr(cx.node.int("k"), "k")?;
    let k = Dim::size(k).ok().filter(|&k| k <= dims[axis]);
    let k =
        k.ok_or_else(|| cx.shape_mismatch(format!("k is beyond the {} elements of dimension {axis}", dims[axis])))?;
    if cx.node.bool("aggregate_to_topk") == Some(false) {
        return Err(cx.unsupported_case("ApproxTopK without aggregate_to_topk"));
    }
    let largest = cx.node.bool("is_max_k").unwrap_or(true);
    let mut order: Vec<usize> = (0..dims.len()).collect();
    order.swap(axis, dims.len() - 1);
    let moved = cx.b.transpose(x, &order);
    let (values, indices) = ordered(cx, moved, k, largest);
    Ok([values, indices].map(|part| Value::Array(cx.b.transpose(part, &order))).to_vec())
}

/// First `k` elements of the last dimension by order, and their s32 indices; of equal elements the lower index comes first.
fn ordered(cx: &mut LowerCtx, x: InstId, k: Dim, largest: bool) -> (InstId, InstId) {
    let kind = if largest && cx.b.dtype(x).is_float() { CompareKind::Partial } else { CompareKind::Total };
    let both = cx.b.add_inst(Op::TopK { k, largest, kind }, &[x]);
    (cx.b.get_tuple_element(both, 0), cx.b.get_tuple_element(both, 1))
}

/// Lowers `InTopK`: whether fewer than `k` predictions of a row exceed that of its target.
///
/// False for a target that is not a class, and if any prediction of the row is infinite or NaN.
fn in_top_k(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, targets, dims) = (cx.arg(0)?, cx.arg(1)?, cx.dims(0)?);
    if dims.len() != 2 || cx.b.dims(targets) != &dims[..1] {
        return Err(cx.shape_mismatch(format!("predictions {dims:?} must be a matrix, and targets one a row of it")));
    }
    let index_type = cx.b.dtype(targets);
    let k = match cx.node.int("k") {
        Some(k) => cx.b.scalar(index_type, k as f64),
        None => {
            let k = cx.arg(2)?;
            cx.b.convert(k, index_type)
        }
    };
    let b = &mut *cx.b;
    let classes = b.iota(index_type, &dims, 1);
    let wanted = b.broadcast(targets, &dims, &[0]);
    let hit = b.compare(Direction::Eq, classes, wanted);
    let zeros = b.full_like(x, 0.0);
    let alone = b.select(hit, x, zeros);
    let zero = b.scalar(b.dtype(x), 0.0);
    let own = b.reduce(alone, zero, ScalarOp::Add, &[1]);
    let own = b.broadcast(own, &dims, &[0]);
    let better = b.compare(Direction::Gt, x, own);
    let better = b.convert(better, index_type);
    let none = b.scalar(index_type, 0.0);
    let rank = b.reduce(better, none, ScalarOp::Add, &[1]);
    let k = b.broadcast(k, &dims[..1], &[]);
    let in_front = b.compare(Direction::Lt, rank, k);
    let finite = b.unary(ScalarOp::IsFinite, x);
    let finite = fold(b, finite, ScalarOp::And, 1.0);
    let exists = fold(b, hit, ScalarOp::Or, 0.0);
    let y = b.binary(ScalarOp::And, in_front, finite);
    let y = b.binary(ScalarOp::And, y, exists);
    cx.one_output(y)
}

/// Reduces the last dimension of a matrix of truth values.
fn fold(b: &mut crate::hlo::symbolic::Builder, x: InstId, op: ScalarOp, neutral: f64) -> InstId {
    let init = b.scalar(DType::Pred, neutral);
    b.reduce(x, init, op, &[1])
}

fn top_k_shape(cx: &mut ShapeCtx, k: Option<InferredDim>) -> Result<Vec<Fact>> {
    let k = k.ok_or_else(|| cx.shape_mismatch("k is missing or negative"))?;
    let dims: Dims = match cx.ranked_dims(0)? {
        Some(mut dims) => {
            let last =
                dims.last_mut().ok_or_else(|| Error::user(Code::ShapeMismatch, "a scalar has no last dimension"))?;
            *last = k;
            dims.into()
        }
        None => cx.unranked_from(0),
    };
    Ok(vec![Fact::new(cx.dtype(0), dims.clone()), Fact::new(cx.attr_type("index_type").or(S32), dims)])
}

fn in_top_k_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (predictions, targets) = (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(1, 1)?);
    let rows = cx.merge_dim(predictions[0], targets[0]).ok_or_else(|| cx.shape_mismatch("a target a row is needed"))?;
    cx.one_output(PRED, vec![rows])
}
