//! Gradients of pools.
use super::bias::accumulator_type;
use super::pool::{PoolAttrs, reduce_window};
use super::window::TransposedWindow;
use super::window_counts::window_counts;
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::WindowDim;
use crate::hlo::symbolic::{Dim, InstId, Op, Shape};
use crate::ops::ShapeCtx;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{CompareKind, Direction, ScalarOp};

const MAX: &str = "orig_input orig_output grad -> output";
const AVG: &str = "orig_input_shape grad -> output";
const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("MaxPoolGrad",   MAX, |cx| max_pool_grad(cx, 2)).shape(like_first_input),
    op("MaxPoolGradV2", "orig_input orig_output grad ksize strides -> output", |cx| max_pool_grad(cx, 2)).shape(like_first_input).constant_inputs(&[3, 4]),
    op("MaxPool3DGrad", MAX, |cx| max_pool_grad(cx, 3)).shape(like_first_input),
    op("AvgPoolGrad",   AVG, |cx| avg_pool_grad(cx, 2)).shape(avg_grad_shape).constant_inputs(&[0]).dtypes(FLOATS),
    op("AvgPool3DGrad", AVG, |cx| avg_pool_grad(cx, 3)).shape(avg_grad_shape).constant_inputs(&[0]).dtypes(FLOATS),
];

/// Rejects a gradient that does not have the sizes of the pool's result.
fn check_grad(cx: &LowerCtx, x: &[Dim], grad: &[Dim], window: &[WindowDim]) -> Result<()> {
    let out: Option<Vec<Dim>> = x.iter().zip(window).map(|(&n, w)| w.output_size(n)).collect();
    if out.as_deref() != Some(grad) {
        return Err(cx.shape_mismatch(format!("the gradient {grad:?} does not fit a pool over {x:?}")));
    }
    Ok(())
}

/// Lowers `MaxPoolGrad`: each element of the gradient goes to the first largest element of its window, the first one of all
/// unless a later one compares larger.
fn max_pool_grad(cx: &mut LowerCtx, spatial: usize) -> Result<Vec<Value>> {
    let pool = PoolAttrs::parse(cx, spatial, 3)?;
    let dims = cx.dims(0)?;
    let window = pool.windows(&dims)?;
    for i in 1..3 {
        check_grad(cx, &dims, &cx.dims(i)?, &window)?;
    }
    let (x, grad) = (cx.arg(0)?, cx.arg(2)?);
    let (dtype, source) = (cx.b.dtype(x), cx.b.dtype(grad));
    let work = accumulator_type(dtype);
    let x = cx.b.convert(x, work);
    let grad = cx.b.convert(grad, work);
    cx.b.begin_computation("select");
    let first = cx.b.parameter(Shape::array(work, []));
    let second = cx.b.parameter(Shape::array(work, []));
    let larger = cx.b.elementwise(ScalarOp::Compare(Direction::Lt, CompareKind::Partial), &[first, second]);
    let root = cx.b.unary(ScalarOp::Not, larger);
    let select = cx.b.end_computation(root);
    let scatter = cx.b.scalar_computation(ScalarOp::Add, work);
    let zero = cx.b.scalar(work, 0.0);
    let y = cx.b.add_inst(Op::SelectAndScatter { window, select, scatter }, &[x, grad, zero]);
    let y = cx.b.convert(y, source);
    cx.one_output(y)
}

/// Lowers `AvgPoolGrad`: each element of the gradient, divided by the number of elements that its window covers, goes to all
/// elements of the window.
fn avg_pool_grad(cx: &mut LowerCtx, spatial: usize) -> Result<Vec<Value>> {
    let pool = PoolAttrs::parse(cx, spatial, 2)?;
    let size = |&v: &Dim| Dim::size(v).map_err(|_| Error::user(Code::TooLarge, format!("a size of {v} in input 0")));
    let dims = cx.constant_dims(0)?.iter().map(size).collect::<Result<Vec<Dim>>>()?;
    let window = pool.windows(&dims)?;
    let out = cx.dims(1)?;
    check_grad(cx, &dims, &out, &window)?;
    let (grad, dtype) = (cx.arg(1)?, cx.dtype(1)?);
    let grad = cx.b.convert(grad, accumulator_type(dtype));
    let counts = window_counts(cx.b, accumulator_type(dtype), &dims, &window, &pool.args.padding)?;
    let share = cx.b.div(grad, counts);
    let y = spread(cx, share, &dims, &window)?;
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Sum of the windows that cover each element: a windowed sum of `share`, with holes of the stride between its elements (base
/// dilation).
fn spread(cx: &mut LowerCtx, share: InstId, dims: &[Dim], window: &[WindowDim]) -> Result<InstId> {
    let out = cx.b.dims(share).to_vec();
    let turned =
        (0..dims.len()).map(|i| TransposedWindow::new(&window[i], dims[i], out[i])).collect::<Result<Vec<_>>>()?;
    let zero = cx.b.scalar(cx.b.dtype(share), 0.0);
    let window = turned.iter().map(|turned| turned.window).collect();
    let mut y = reduce_window(cx.b, share, zero, ScalarOp::Add, window);
    for (axis, turned) in turned.iter().enumerate() {
        y = turned.crop_to_input(cx.b, y, axis, dims[axis]);
    }
    Ok(y)
}

fn avg_grad_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(0)?;
    cx.one_output_like(1, dims)
}
