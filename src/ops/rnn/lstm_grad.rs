//! Gradients of long short-term memory: `LSTMBlockCellGrad`, `BlockLSTMGrad` and `BlockLSTMGradV2`.
//!
//! Source: TensorFlow's `lstm_ops.cc` and `lstm_ops.h`, with the same order of operations.
use super::lstm::{GateOrder, LstmWeights, check_lstm_weights, lstm_weights};
use super::{Transposed, in_rows, one_minus, product, product_of};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::counted_loop::{counted_loop, replace_slice_at, slice_at};
use crate::ops::fact::Fact;
use crate::ops::nn::sum_axes;
use crate::ops::op_lowering::op;
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::Direction;
use crate::symbolic::Dim;
use crate::tensor::DType;

const CELL: &str =
    "x cs_prev h_prev w wci wcf wco b i cs f o ci co cs_grad h_grad -> cs_prev_grad dicfo wci_grad wcf_grad wco_grad";
const SEQUENCE: &str = "seq_len_max x cs_prev h_prev w wci wcf wco b i cs f o ci co h cs_grad h_grad -> x_grad cs_prev_grad h_prev_grad w_grad wci_grad wcf_grad wco_grad b_grad";
const FLOATS: &str = "f16, f32";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("LSTMBlockCellGrad", CELL, cell).shape(cell_shape).dtypes(FLOATS),
    op("BlockLSTMGrad",     SEQUENCE, |cx| sequence(cx, GateOrder::InputCellForgetOutput)).shape(sequence_shape).dtypes(FLOATS),
    op("BlockLSTMGradV2",   SEQUENCE, |cx| sequence(cx, GateOrder::InputForgetCellOutput)).shape(sequence_shape).dtypes(FLOATS),
];

/// Inputs and intermediate results of an LSTM step, and the gradients of its outputs.
#[derive(Clone, Copy)]
struct Step {
    /// Cell state before the step.
    memory: InstId,
    /// Input gate, cell state, forget gate, output gate, cell input, and tanh of the cell state.
    made: [InstId; 6],
    /// Gradients of the cell state and of the output.
    grads: [InstId; 2],
}

/// Gradients computed for an LSTM step.
struct StepGrads {
    memory: InstId,
    /// Gradients of the gates, concatenated in the order of the weights.
    gates: InstId,
    /// Gradients of the peephole weights; zeros if there are none.
    peepholes: [InstId; 3],
}

fn step_grads(b: &mut Builder, gates: GateOrder, peepholes: Option<[InstId; 3]>, s: &Step) -> StepGrads {
    let ([i, now, f, o, c, shown], [memory_grad, output_grad]) = (s.made, s.grads);
    let rest = one_minus(b, o);
    let d_o = product_of(b, &[o, rest, output_grad, shown]);
    let one_less_square = |b: &mut Builder, x: InstId| {
        let square = b.mul(x, x);
        one_minus(b, square)
    };
    let slope = one_less_square(b, shown);
    let through = product_of(b, &[slope, output_grad, o]);
    let mut d_now = b.add(through, memory_grad);
    if let Some([.., wco]) = peepholes {
        let weight = in_rows(b, wco, d_o);
        let seen = b.mul(d_o, weight);
        d_now = b.add(d_now, seen);
    }
    let slope = one_less_square(b, c);
    let d_c = product_of(b, &[slope, d_now, i]);
    let rest = one_minus(b, f);
    let d_f = product_of(b, &[f, rest, d_now, s.memory]);
    let rest = one_minus(b, i);
    let d_i = product_of(b, &[i, rest, d_now, c]);
    let all = b.concatenate(&gates.arrange([d_i, d_c, d_f, d_o]), 1);
    let mut memory = b.mul(d_now, f);
    if let Some([wci, wcf, _]) = peepholes {
        for (grad, weight) in [(d_i, wci), (d_f, wcf)] {
            let weight = in_rows(b, weight, grad);
            let seen = b.mul(grad, weight);
            memory = b.add(memory, seen);
        }
    }
    let parts = [(d_i, s.memory), (d_f, s.memory), (d_o, now)];
    let peepholes = parts.map(|(grad, seen)| {
        let each = b.mul(grad, seen);
        let total = sum_axes(b, each, &[0]);
        if peepholes.is_some() { total } else { b.full_like(total, 0.0) }
    });
    StepGrads { memory, gates: all, peepholes }
}

fn peepholes(cx: &LowerCtx, weights: &LstmWeights) -> Option<[InstId; 3]> {
    cx.bool_attr("use_peephole").then_some(weights.peepholes)
}

fn cell(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let weights = lstm_weights(cx, 3)?;
    check_lstm_weights(cx, &cx.dims(0)?, &cx.dims(1)?, &weights)?;
    let state = cx.dims(1)?;
    let parts = cx.arg_range(8, 16)?;
    if parts.iter().any(|&part| cx.b.dims(part) != state) {
        return Err(cx.shape_mismatch(format!("what a cell of {state:?} made has other sizes")));
    }
    let &[i, now, f, o, c, shown, memory_grad, output_grad] = &parts[..] else {
        return Err(cx.shape_mismatch("what a cell made is missing"));
    };
    let step = Step { memory: cx.arg(1)?, made: [i, now, f, o, c, shown], grads: [memory_grad, output_grad] };
    let peepholes = peepholes(cx, &weights);
    let grads = step_grads(cx.b, GateOrder::InputCellForgetOutput, peepholes, &step);
    let [wci, wcf, wco] = grads.peepholes;
    Ok([grads.memory, grads.gates, wci, wcf, wco].map(Value::Array).into())
}

fn sequence(cx: &mut LowerCtx, gates: GateOrder) -> Result<Vec<Value>> {
    let (most, x, memory, output, weights) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?, lstm_weights(cx, 4)?);
    let [time, batch, input] = cx.dims(1)?[..] else { return Err(cx.shape_mismatch("x must be of rank 3")) };
    check_lstm_weights(cx, &[batch, input], &cx.dims(2)?, &weights)?;
    check_lstm_weights(cx, &[batch, input], &cx.dims(3)?, &weights)?;
    let cell = cx.b.dims(memory)[1];
    let made = cx.arg_range(9, 18)?;
    if made.iter().any(|&part| cx.b.dims(part) != [time, batch, cell]) {
        return Err(cx.shape_mismatch(format!("what {time} cells of {:?} made has other sizes", [batch, cell])));
    }
    let most = cx.b.reshape(most, &[]);
    let most = cx.b.convert(most, DType::S32);
    // Values before each step.
    let mut before = |first: InstId, all: InstId| {
        let first = cx.b.reshape(first, &dims![1, batch, cell]);
        let rest = cx.b.slice_axis(all, 0, Dim::from(0), time.saturating_sub(1));
        let shifted = cx.b.concatenate(&[first, rest], 0);
        cx.b.slice_axis(shifted, 0, Dim::from(0), time)
    };
    let (memories, outputs) = (before(memory, made[1]), before(output, made[6]));
    let dtype = cx.b.dtype(x);
    let dims = [&[time, batch, input][..], &[batch, cell], &[batch, cell], &[input + cell, 4 * cell]];
    let mut start: Vec<InstId> = dims.iter().map(|dims| cx.b.full(dtype, dims, 0.0)).collect();
    start.extend([cell, cell, cell, 4 * cell].map(|n| cx.b.full(dtype, &[n], 0.0)));
    let peepholes = peepholes(cx, &weights);
    let of_weights = [weights.w, weights.peepholes[0], weights.peepholes[1], weights.peepholes[2]];
    let state = [&start[..], &[most, x, memories, outputs], &of_weights, &made].concat();
    let size = start.len();
    let end = counted_loop(cx.b, "lstm_gradient", time, &state, |b, round, parts| {
        let (sums, given) = parts.split_at(size);
        let (&[most, x, memories, outputs, w, wci, wcf, wco], made) =
            (given.first_chunk().unwrap_or(&[round; 8]), &given[8..]);
        let last = b.full_like(round, time - 1);
        let t = b.sub(last, round);
        let part: Vec<InstId> = made.iter().map(|&all| slice_at(b, all, t)).collect();
        let (memory_grad, output_grad) = (b.add(sums[1], part[7]), b.add(sums[2], part[8]));
        let memory = slice_at(b, memories, t);
        let made = [part[0], part[1], part[2], part[3], part[4], part[5]];
        let step = Step { memory, made, grads: [memory_grad, output_grad] };
        let grads = step_grads(b, gates, peepholes.map(|_| [wci, wcf, wco]), &step);
        let joined_grad = product(b, grads.gates, w, Transposed::Right);
        let (x_grad, h_grad) =
            (b.slice_axis(joined_grad, 1, Dim::from(0), input), b.slice_axis(joined_grad, 1, input, input + cell));
        let (now, output) = (slice_at(b, x, t), slice_at(b, outputs, t));
        let joined = b.concatenate(&[now, output], 1);
        let w_grad = product(b, joined, grads.gates, Transposed::Left);
        let b_grad = sum_axes(b, grads.gates, &[0]);
        let x_grads = replace_slice_at(b, sums[0], t, x_grad);
        let mut next = vec![x_grads, grads.memory, h_grad];
        let [wci_grad, wcf_grad, wco_grad] = grads.peepholes;
        for (&sum, grad) in sums[3..].iter().zip([w_grad, wci_grad, wcf_grad, wco_grad, b_grad]) {
            next.push(b.add(sum, grad));
        }
        let is_within = b.compare(Direction::Lt, t, most);
        for (now, &before) in next.iter_mut().zip(sums) {
            *now = b.select(is_within, *now, before);
        }
        next.extend(given);
        next
    });
    Ok(end[..size].iter().map(|&grad| Value::Array(grad)).collect())
}

fn cell_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (dims, dtype) = (cx.dims_of_rank(1, 2)?, cx.dtype(0));
    let four = cx.mul(dims[1], InferredDim::Known(4));
    let mut out = vec![Fact::new(dtype, dims.clone().into()), Fact::new(dtype, vec![dims[0], four].into())];
    out.extend((0..3).map(|_| Fact::new(dtype, vec![dims[1]].into())));
    Ok(out)
}

fn sequence_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    (1..9).map(|i| Ok(Fact::new(cx.dtype(1), cx.dims(i)?))).collect()
}
