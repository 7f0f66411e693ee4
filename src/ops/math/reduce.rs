//! Reductions over constant axes.
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, CompId, Dim, InstId, Op, Shape};
use crate::ops::ShapeCtx;
use crate::ops::fact::{Fact, InferredInt};
use crate::ops::op_lowering::op;
use crate::ops::shape::reduction_shape;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Sum", "input axes -> output", |cx| fold(cx, ScalarOp::Add, 0.0))
        .shape(reduction_shape)
        .constant_inputs(&[1])
        .work(Work::PerInputElement),
    op("Prod", "input axes -> output", |cx| fold(cx, ScalarOp::Multiply, 1.0))
        .shape(prod_shape)
        .constant_inputs(&[1])
        .work(Work::PerInputElement),
    op("Max", "input axes -> output", |cx| fold(cx, ScalarOp::Maximum, f64::NEG_INFINITY))
        .shape(reduction_shape)
        .constant_inputs(&[1])
        .work(Work::PerInputElement),
    op("Min", "input axes -> output", |cx| fold(cx, ScalarOp::Minimum, f64::INFINITY))
        .shape(reduction_shape)
        .constant_inputs(&[1])
        .work(Work::PerInputElement),
    op("All", "input axes -> output", |cx| fold(cx, ScalarOp::And, 1.0))
        .shape(reduction_shape)
        .constant_inputs(&[1])
        .dtypes("pred")
        .work(Work::PerInputElement),
    op("Any", "input axes -> output", |cx| fold(cx, ScalarOp::Or, 0.0))
        .shape(reduction_shape)
        .constant_inputs(&[1])
        .dtypes("pred")
        .work(Work::PerInputElement),
    op("Mean", "input axes -> output", mean).shape(reduction_shape).constant_inputs(&[1]).work(Work::PerInputElement),
    op("EuclideanNorm", "input axes -> output", euclidean_norm)
        .shape(reduction_shape)
        .constant_inputs(&[1])
        .work(Work::PerInputElement),
    op("ArgMax", "input dimension -> output", |cx| arg_extreme(cx, Direction::Gt))
        .shape(arg_shape)
        .constant_inputs(&[1])
        .work(Work::PerInputElement),
    op("ArgMin", "input dimension -> output", |cx| arg_extreme(cx, Direction::Lt))
        .shape(arg_shape)
        .constant_inputs(&[1])
        .work(Work::PerInputElement),
];

/// Axes in input 1, normalized to the rank of input 0, without duplicates, in order.
fn axes(cx: &LowerCtx) -> Result<Vec<usize>> {
    let rank = cx.dims(0)?.len();
    let mut axes = Vec::new();
    for axis in cx.constant_ints(1)? {
        axes.push(cx.normalize_axis(axis, rank)?);
    }
    axes.sort_unstable();
    axes.dedup();
    Ok(axes)
}

/// Reduces over axes; narrow floats are accumulated in f32.
pub fn reduce_axes(b: &mut Builder, x: InstId, op: ScalarOp, init: f64, axes: &[usize]) -> InstId {
    if axes.is_empty() {
        return x;
    }
    let dtype = b.dtype(x);
    let sums = matches!(op, ScalarOp::Add | ScalarOp::Multiply);
    let work = if sums && dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype };
    let x = b.convert(x, work);
    let init = b.scalar(work, init);
    let y = b.reduce(x, init, op, axes);
    b.convert(y, dtype)
}

/// Restores the reduced axes with size 1 if the node sets `keep_dims`.
fn keep(cx: &mut LowerCtx, y: InstId, axes: &[usize]) -> Result<Vec<Value>> {
    if !cx.bool_attr("keep_dims") {
        return cx.one_output(y);
    }
    let mut dims = cx.dims(0)?;
    for &axis in axes {
        dims[axis] = Dim::from(1);
    }
    let y = cx.b.reshape(y, &dims);
    cx.one_output(y)
}

fn fold(cx: &mut LowerCtx, op: ScalarOp, init: f64) -> Result<Vec<Value>> {
    let (x, axes) = (cx.arg(0)?, axes(cx)?);
    let y = reduce_axes(cx.b, x, op, init, &axes);
    keep(cx, y, &axes)
}

/// Lowers `Mean`: the sum divided by the count; integers truncate. Sums of narrow types are neither rounded before the division
/// nor wrap around.
fn mean(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, axes) = (cx.arg(0)?, axes(cx)?);
    let dtype = cx.b.dtype(x);
    let count: Dim = axes.iter().map(|&a| cx.b.dims(x)[a]).product();
    let work = match dtype.is_float() && dtype.bits() < 32 {
        true => DType::F32,
        false if dtype.is_integer() && dtype.is_signed() => DType::S64,
        false if dtype.is_integer() => DType::U64,
        false => dtype,
    };
    let wide = cx.b.convert(x, work);
    let sum = reduce_axes(cx.b, wide, ScalarOp::Add, 0.0, &axes);
    let y = if !dtype.is_float() && count == 0 {
        cx.b.full_like(sum, 0.0)
    } else {
        let n = cx.b.full_like(sum, count);
        cx.b.div(sum, n)
    };
    let y = cx.b.convert(y, dtype);
    keep(cx, y, &axes)
}

fn euclidean_norm(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, axes) = (cx.arg(0)?, axes(cx)?);
    let dtype = cx.b.dtype(x);
    let work = if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype };
    let x = cx.b.convert(x, work);
    let c = super::unary::conj(cx.b, x);
    let square = cx.b.mul(x, c);
    let sum = reduce_axes(cx.b, square, ScalarOp::Add, 0.0, &axes);
    // Squares of integers wrap around in their own type, as in TensorFlow.
    let sum = if dtype.is_integer() { cx.b.convert(sum, DType::F64) } else { sum };
    let y = cx.b.unary(ScalarOp::Sqrt, sum);
    let y = super::cast::convert(cx.b, y, dtype);
    keep(cx, y, &axes)
}

/// Lowers `ArgMax` and `ArgMin`: the position of the first largest (smallest) element; NaN never wins.
fn arg_extreme(cx: &mut LowerCtx, better: Direction) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let axis = cx.normalize_axis(cx.constant_int(1)?, cx.b.rank(x))?;
    let out = cx.attr_dtype("output_type")?;
    if cx.b.dims(x)[axis] == 0 {
        return Err(cx.shape_mismatch("the dimension to search is empty"));
    }
    let y = arg_extremum(cx.b, x, axis, better);
    let y = cx.b.convert(y, out);
    cx.one_output(y)
}

/// Positions, s32 or s64, of the first largest or smallest element along one axis; `better` compares.
pub fn arg_extremum(b: &mut Builder, x: InstId, axis: usize, better: Direction) -> InstId {
    let x = if b.dtype(x) == DType::Pred { b.convert(x, DType::U8) } else { x };
    let (dtype, dims) = (b.dtype(x), b.dims(x).to_vec());
    let index = if dims[axis] > Dim::from(i32::MAX) { DType::S64 } else { DType::S32 };
    let positions = b.iota(index, &dims, axis);
    // The first element wins if no other exceeds the finite limit from which TensorFlow's kernel starts.
    let limit = crate::ops::math::segment::largest_finite(dtype);
    let worst = if better == Direction::Gt { -limit } else { limit };
    let worst = b.constant(Tensor::scalar_from_f64(dtype, worst));
    let zero = b.scalar(index, 0.0);
    let comp = better_pair(b, dtype, index, better);
    let pair = b.add_inst(Op::Reduce { dims: vec![axis], comp }, &[x, positions, worst, zero]);
    b.get_tuple_element(pair, 1)
}

/// Computation (v0, i0, v1, i1) that returns the better pair, of equal values the one with the lower index.
fn better_pair(b: &mut Builder, dtype: DType, index: DType, better: Direction) -> CompId {
    b.begin_computation("better");
    let v0 = b.parameter(Shape::array(dtype, []));
    let i0 = b.parameter(Shape::array(index, []));
    let v1 = b.parameter(Shape::array(dtype, []));
    let i1 = b.parameter(Shape::array(index, []));
    let wins = b.compare(better, v1, v0);
    let (same, earlier) = (b.compare(Direction::Eq, v1, v0), b.compare(Direction::Lt, i1, i0));
    let ties = b.binary(ScalarOp::And, same, earlier);
    let take = b.binary(ScalarOp::Or, wins, ties);
    let (v, i) = (b.select(take, v1, v0), b.select(take, i1, i0));
    let root = b.tuple(&[v, i]);
    b.end_computation(root)
}

/// Shape function of `Prod`: a reduction. The product of a vector of sizes is tracked as a size.
fn prod_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let out = reduction_shape(cx)?;
    let sizes: Option<Vec<InferredDim>> =
        cx.partial_ints(0).and_then(|v| v.into_iter().map(InferredInt::as_dim).collect());
    match (sizes, &out[..], out[0].dims.known_sizes(), out[0].dtype) {
        (Some(shape_from_input), [_], Some(dims), Some(dtype)) if dims.iter().all(|&d| d == 1) => {
            let product = cx.product(&shape_from_input);
            Ok(vec![Fact::from_ints(dtype, &dims, vec![product.into()])])
        }
        _ => Ok(out),
    }
}

fn arg_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dtype = cx.attr_type("output_type");
    let dims = match (cx.ranked_dims(0)?, cx.constant_int(1)) {
        (Some(mut dims), Some(axis)) => {
            dims.remove(cx.normalize_axis(axis, dims.len())?);
            dims.into()
        }
        (Some(dims), None) => cx.fresh_shape(dims.len().saturating_sub(1), UnknownReason::Value(1)),
        (None, _) => cx.unranked_from(0),
    };
    cx.one_output(dtype, dims)
}
