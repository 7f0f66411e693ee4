//! Gated recurrent units: `GRUBlockCell` and its gradient.
//!
//! Source: TensorFlow's `gru_ops.h`, with the same order of operations.
use super::{Transposed, in_rows, one_minus, product, product_of};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("GRUBlockCell",     "x h_prev w_ru w_c b_ru b_c -> r u c h", cell).shape(cell_shape).dtypes("f32"),
    op("GRUBlockCellGrad", "x h_prev w_ru w_c b_ru b_c r u c d_h -> d_x d_h_prev d_c_bar d_r_bar_u_bar", gradient)
        .shape(gradient_shape).dtypes("f32"),
];

/// Sizes of the input and of the state, with the shapes of all weights checked against them.
fn sizes(cx: &LowerCtx) -> Result<[Dim; 2]> {
    let dims: Vec<Vec<Dim>> = (0..6).map(|i| cx.dims(i)).collect::<Result<_>>()?;
    let ([batch, input], [items, cell]) = (&dims[0][..], &dims[1][..]) else {
        return Err(
            cx.shape_mismatch(format!("an input {:?} and a state {:?}, which must be matrices", dims[0], dims[1]))
        );
    };
    let rows = input + cell;
    let fits = dims[2] == [rows, 2 * cell] && dims[3] == [rows, *cell] && dims[4] == [2 * cell] && dims[5] == [*cell];
    if batch != items || !fits {
        return Err(cx.shape_mismatch(format!("weights {:?} and {:?} for a state {:?}", dims[2], dims[3], dims[1])));
    }
    Ok([*input, *cell])
}

/// First `first` columns of a matrix, and the remaining ones.
fn halves(b: &mut Builder, x: InstId, first: Dim) -> [InstId; 2] {
    let all = b.dims(x)[1];
    [b.slice_axis(x, 1, Dim::from(0), first), b.slice_axis(x, 1, first, all)]
}

fn cell(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let [_, cell] = sizes(cx)?;
    let (x, state, w_gates, w_new) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let (b_gates, b_new) = (cx.arg(4)?, cx.arg(5)?);
    let b = &mut *cx.b;
    let joined = b.concatenate(&[x, state], 1);
    let gates = product(b, joined, w_gates, Transposed::Neither);
    let bias = in_rows(b, b_gates, gates);
    let gates = b.add(gates, bias);
    let [reset, update] = halves(b, gates, cell).map(|x| b.unary(ScalarOp::Logistic, x));
    let kept = b.mul(state, reset);
    let joined = b.concatenate(&[x, kept], 1);
    let new = product(b, joined, w_new, Transposed::Neither);
    let bias = in_rows(b, b_new, new);
    let new = b.add(new, bias);
    let new = b.unary(ScalarOp::Tanh, new);
    let difference = b.sub(state, new);
    let part = b.mul(update, difference);
    let h = b.add(part, new);
    Ok([reset, update, new, h].map(Value::Array).into())
}

fn gradient(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let [input, _] = sizes(cx)?;
    let dims = cx.dims(1)?;
    let (state, w_gates, w_new) = (cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let [reset, update, new, grad] = [6, 7, 8, 9].map(|i| cx.arg(i));
    let (reset, update, new, grad) = (reset?, update?, new?, grad?);
    if [reset, update, new, grad].iter().any(|&part| cx.b.dims(part) != dims) {
        return Err(cx.shape_mismatch(format!("what a cell of {dims:?} made has other sizes")));
    }
    let b = &mut *cx.b;
    let rest = one_minus(b, update);
    let square = b.mul(new, new);
    let slope = one_minus(b, square);
    let through = b.mul(grad, rest);
    let new_grad = b.mul(through, slope);
    let difference = b.sub(state, new);
    let update_grad = product_of(b, &[grad, difference, update, rest]);
    let of_new = product(b, new_grad, w_new, Transposed::Right);
    let [x_of_new, kept_grad] = halves(b, of_new, input);
    let rest = one_minus(b, reset);
    let reset_grad = product_of(b, &[kept_grad, state, reset]);
    let reset_grad = b.mul(reset_grad, rest);
    let gates_grad = b.concatenate(&[reset_grad, update_grad], 1);
    let of_gates = product(b, gates_grad, w_gates, Transposed::Right);
    let [x_of_gates, state_of_gates] = halves(b, of_gates, input);
    let x_grad = b.add(x_of_gates, x_of_new);
    let (kept, passed) = (b.mul(kept_grad, reset), b.mul(grad, update));
    let state_grad = b.add(state_of_gates, kept);
    let state_grad = b.add(state_grad, passed);
    Ok([x_grad, state_grad, new_grad, gates_grad].map(Value::Array).into())
}

fn cell_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims_of_rank(1, 2)?;
    Ok(vec![Fact::new(cx.dtype(0), dims.into()); 4])
}

fn gradient_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (x, state, dtype) = (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(1, 2)?, cx.dtype(0));
    let two = cx.mul(state[1], InferredDim::Known(2));
    let gates = vec![state[0], two];
    Ok([x, state.clone(), state, gates].into_iter().map(|dims| Fact::new(dtype, dims.into())).collect())
}
