//! Max pools whose results depend on the position of the largest element.
use super::pool::pool_shape;
use super::pool::{PoolAttrs, lowest_value};
use crate::diag::Result;
use crate::hlo::symbolic::WindowDim;
use crate::hlo::symbolic::{Builder, InstId, Op, Shape};
use crate::ops::ShapeCtx;
use crate::ops::array::scatter::scatter;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_second_input;
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::tensor::DType;

const GRAD: &str = "orig_input orig_output grad -> output";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("MaxPoolWithArgmax",   "input -> output argmax", with_argmax).shape(with_argmax_shape).work(Work::Pool),
    op("MaxPoolGradWithArgmax", "input grad argmax -> output", gradient).shape(|cx| cx.one_output_like(0, cx.dims(0)?)).dtypes("real numbers"),
    op("MaxPoolGradGrad",     GRAD, |cx| grad_grad(cx, 2)).shape(like_second_input),
    op("MaxPoolGradGradV2",   "orig_input orig_output grad ksize strides -> output", |cx| grad_grad(cx, 2)).shape(like_second_input).constant_inputs(&[3, 4]),
    op("MaxPool3DGradGrad",   GRAD, |cx| grad_grad(cx, 3)).shape(like_second_input),
];

/// Largest element of each window, and the element of `payload` at its first position; 0 of `payload` if no element may start.
///
/// The search starts at the first element for which `begins` is true; then each element that compares larger replaces it. A NaN
/// at the start stays; any other NaN is skipped.
fn largest_with(b: &mut Builder, x: InstId, payload: InstId, begins: InstId, window: Vec<WindowDim>) -> [InstId; 2] {
    let types = [b.dtype(x), b.dtype(payload), DType::Pred];
    b.begin_computation("first_or_larger");
    let [a, p, taken] = types.map(|t| b.parameter(Shape::array(t, [])));
    let [c, q, begins_here] = types.map(|t| b.parameter(Shape::array(t, [])));
    let larger = b.elementwise(ScalarOp::Compare(Direction::Gt, CompareKind::Partial), &[c, a]);
    let none_yet = b.unary(ScalarOp::Not, taken);
    let first = b.binary(ScalarOp::And, none_yet, begins_here);
    let larger = b.binary(ScalarOp::Or, first, larger);
    let value = b.elementwise(ScalarOp::Select, &[larger, c, a]);
    let carried = b.elementwise(ScalarOp::Select, &[larger, q, p]);
    let taken = b.binary(ScalarOp::Or, taken, begins_here);
    let root = b.tuple(&[value, carried, taken]);
    let comp = b.end_computation(root);
    let (least, nothing, none) = (lowest_value(b, types[0]), b.scalar(types[1], 0.0), b.scalar(DType::Pred, 0.0));
    let both = b.add_inst(Op::ReduceWindow { window, comp }, &[x, payload, begins, least, nothing, none]);
    [0, 1].map(|i| b.get_tuple_element(both, i))
}

/// Lowers `MaxPoolGradWithArgmax`: the gradient of each window is added at the position of its largest element.
fn gradient(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, grad, at) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let (dims, windows, dtype) = (cx.b.dims(x).to_vec(), cx.b.dims(grad).to_vec(), cx.b.dtype(x));
    let ([batch, ..], [images, rest @ ..]) = (&dims[..], &windows[..]) else {
        return Err(cx.shape_mismatch("images have a batch"));
    };
    if batch != images || cx.b.dims(at) != windows || cx.b.dtype(grad) != dtype {
        return Err(cx.shape_mismatch(format!("a gradient {windows:?} of a pool of {dims:?}, and as many places")));
    }
    let each = rest.iter().product::<Dim>();
    let all = dims[1..].iter().product::<Dim>();
    let wide = cx.b.convert(at, DType::S64);
    let mut at = cx.b.reshape(wide, &[batch * each]);
    if !cx.bool_attr("include_batch_in_index") {
        let image = cx.b.iota(DType::S64, &[*batch, each], 0);
        let size = cx.b.scalar(DType::S64, all);
        let first = cx.b.mul(image, size);
        let first = cx.b.reshape(first, &[batch * each]);
        at = cx.b.add(at, first);
    }
    let zeros = cx.b.full(dtype, &[batch * all], 0.0);
    let (at, grad) = (cx.b.reshape(at, &[batch * each, Dim::from(1)]), cx.b.reshape(grad, &[batch * each]));
    let y = scatter(cx, zeros, at, grad, Some(ScalarOp::Add))?;
    let y = cx.b.reshape(y, &dims);
    cx.one_output(y)
}

/// Lowers `MaxPoolWithArgmax`: the pool, and the position of each largest element, `(row * columns + column) * channels +
/// channel`, including the batch if `include_batch_in_index`.
fn with_argmax(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let pool = PoolAttrs::parse(cx, 2, 1)?;
    let dims = cx.dims(0)?;
    let window = pool.windows(&dims)?;
    if pool.ksize[0] != 1 || pool.ksize[3] != 1 {
        return Err(cx.unsupported_case(format!("a window {:?}; one over rows and columns is supported", pool.ksize)));
    }
    let index_type = cx.attr_dtype("Targmax")?;
    let x = cx.arg(0)?;
    let from = if cx.bool_attr("include_batch_in_index") { 0 } else { 1 };
    let mut place = cx.b.full(index_type, &dims, 0.0);
    for axis in from..4 {
        let (i, n) = (cx.b.iota(index_type, &dims, axis), cx.b.full(index_type, &dims, dims[axis]));
        place = cx.b.mul(place, n);
        place = cx.b.add(place, i);
    }
    let every = cx.b.full(DType::Pred, &dims, 1.0);
    let [y, places] = largest_with(cx.b, x, place, every, window);
    Ok(vec![Value::Array(y), Value::Array(places)])
}

/// Lowers `MaxPoolGradGrad`: each window takes the element of `grad` at its first element that equals the pool's result, and 0
/// if none does: a window of -inf alone, whose pool is the lowest finite number.
fn grad_grad(cx: &mut LowerCtx, spatial: usize) -> Result<Vec<Value>> {
    let pool = PoolAttrs::parse(cx, spatial, 3)?;
    let dims = cx.dims(0)?;
    if cx.dims(2)? != dims {
        return Err(cx.shape_mismatch(format!("the gradient must have the sizes of the input, {dims:?}")));
    }
    let window = pool.windows(&dims)?;
    let (x, pooled, grad) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let numbers = cx.b.compare(Direction::Eq, x, x);
    let [largest, taken] = largest_with(cx.b, x, grad, numbers, window);
    if cx.b.dims(largest) != cx.b.dims(pooled) {
        return Err(cx.shape_mismatch(format!("the result of the pool must have the sizes {:?}", cx.b.dims(largest))));
    }
    let equal = cx.b.compare(Direction::Eq, largest, pooled);
    let zero = cx.b.full_like(taken, 0.0);
    let y = cx.b.select(equal, taken, zero);
    cx.one_output(y)
}

fn with_argmax_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let mut out = pool_shape(cx, 2)?;
    let dims = out[0].dims.clone();
    out.push(Fact::new(cx.attr_type("Targmax"), dims));
    Ok(out)
}
