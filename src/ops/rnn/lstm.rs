//! Long short-term memory: `LSTMBlockCell`, `BlockLSTM` and `BlockLSTMV2`.
//!
//! Source: TensorFlow's `lstm_ops.cc`, with the same order of operations.
use super::{Transposed, in_rows, product};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::counted_loop::{counted_loop, replace_slice_at, slice_at};
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const SEQUENCE: &str = "seq_len_max x cs_prev h_prev w wci wcf wco b -> i cs f o ci co h";
const FLOATS: &str = "f16, f32";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("LSTMBlockCell", "x cs_prev h_prev w wci wcf wco b -> i cs f o ci co h", cell).shape(cell_shape).dtypes(FLOATS),
    op("BlockLSTM",     SEQUENCE, |cx| sequence(cx, GateOrder::InputCellForgetOutput)).shape(sequence_shape).dtypes(FLOATS),
    op("BlockLSTMV2",   SEQUENCE, |cx| sequence(cx, GateOrder::InputForgetCellOutput)).shape(sequence_shape).dtypes(FLOATS),
];

/// Order of the gates along the columns of the weights.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GateOrder {
    InputCellForgetOutput,
    InputForgetCellOutput,
}

impl GateOrder {
    /// Values for gates `[input, cell, forget, output]`, rearranged to their order in the weights.
    pub(super) fn arrange<T: Copy>(self, [input, cell, forget, output]: [T; 4]) -> [T; 4] {
        match self {
            GateOrder::InputCellForgetOutput => [input, cell, forget, output],
            GateOrder::InputForgetCellOutput => [input, forget, cell, output],
        }
    }
}

/// Weights and bias of an LSTM cell, the same for all steps of a sequence.
#[derive(Clone, Copy)]
pub(super) struct LstmWeights {
    pub(super) w: InstId,
    /// Peephole weights of the cell state in the input, forget and output gates.
    pub(super) peepholes: [InstId; 3],
    pub(super) bias: InstId,
}

/// Attributes of an LSTM cell.
#[derive(Clone, Copy)]
struct Attributes {
    gates: GateOrder,
    forget_bias: f64,
    /// Magnitude to which cell states are clipped; no clipping if it is not positive.
    clip: f64,
    has_peepholes: bool,
}

impl Attributes {
    fn parse(cx: &LowerCtx, gates: GateOrder, forget_bias: f64) -> Attributes {
        let number = |name: &str, default: f64| cx.node.float(name).map_or(default, f64::from);
        Attributes {
            gates,
            forget_bias: number("forget_bias", forget_bias),
            clip: number("cell_clip", 3.0),
            has_peepholes: cx.bool_attr("use_peephole"),
        }
    }
}

/// Weights in consecutive inputs from index `first` on.
pub(super) fn lstm_weights(cx: &LowerCtx, first: usize) -> Result<LstmWeights> {
    let [w, input, forget, output, bias] = [0, 1, 2, 3, 4].map(|i| cx.arg(first + i));
    Ok(LstmWeights { w: w?, peepholes: [input?, forget?, output?], bias: bias? })
}

/// Rejects weights that do not fit an input and a state of these sizes.
pub(super) fn check_lstm_weights(cx: &LowerCtx, x: &[Dim], state: &[Dim], weights: &LstmWeights) -> Result<()> {
    let ([batch, input], [items, cell]) = (x, state) else {
        return Err(cx.shape_mismatch(format!("an input {x:?} and a state {state:?}, which must be matrices")));
    };
    let vectors = weights.peepholes.iter().all(|&p| cx.b.dims(p) == [*cell]);
    let fits = cx.b.dims(weights.w) == [input + cell, 4 * cell] && cx.b.dims(weights.bias) == [4 * cell];
    if batch != items || !vectors || !fits {
        return Err(
            cx.shape_mismatch(format!("weights {:?} for an input {x:?} and a state {state:?}", cx.b.dims(weights.w)))
        );
    }
    Ok(())
}

fn cell(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, memory, output, weights) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, lstm_weights(cx, 3)?);
    check_lstm_weights(cx, &cx.dims(0)?, &cx.dims(1)?, &weights)?;
    check_lstm_weights(cx, &cx.dims(0)?, &cx.dims(2)?, &weights)?;
    let attributes = Attributes::parse(cx, GateOrder::InputCellForgetOutput, 1.0);
    Ok(step(cx.b, &attributes, x, [memory, output], &weights).map(Value::Array).into())
}

/// Single LSTM step: input gate, cell state, forget gate, output gate, cell input, tanh of the cell state, and output, in the
/// op's order.
fn step(b: &mut Builder, a: &Attributes, x: InstId, state: [InstId; 2], weights: &LstmWeights) -> [InstId; 7] {
    let [memory, output] = state;
    let cell = b.dims(memory)[1];
    let joined = b.concatenate(&[x, output], 1);
    let gates = product(b, joined, weights.w, Transposed::Neither);
    let bias = in_rows(b, weights.bias, gates);
    let gates = b.add(gates, bias);
    let parts = [0, 1, 2, 3].map(|i| b.slice_axis(gates, 1, i * cell, (i + 1) * cell));
    let [i, c, f, o] = a.gates.arrange(parts);
    let gate = |b: &mut Builder, x: InstId, peephole: usize, memory: InstId| {
        let mut x = x;
        if a.has_peepholes {
            let weight = in_rows(b, weights.peepholes[peephole], memory);
            let seen = b.mul(memory, weight);
            x = b.add(x, seen);
        }
        b.unary(ScalarOp::Logistic, x)
    };
    let i = gate(b, i, 0, memory);
    let c = b.unary(ScalarOp::Tanh, c);
    let forget_bias = b.full_like(f, a.forget_bias);
    let f = b.add(f, forget_bias);
    let f = gate(b, f, 1, memory);
    let (taken, kept) = (b.mul(i, c), b.mul(f, memory));
    let mut now = b.add(taken, kept);
    if a.clip > 0.0 {
        let (low, high) = (b.full_like(now, -a.clip), b.full_like(now, a.clip));
        now = b.elementwise(ScalarOp::Clamp, &[low, now, high]);
    }
    let shown = b.unary(ScalarOp::Tanh, now);
    let o = gate(b, o, 2, now);
    let output = b.mul(o, shown);
    [i, now, f, o, c, shown, output]
}

/// Lowers a sequence: all steps up to `seq_len_max`, followed by zeros.
fn sequence(cx: &mut LowerCtx, gates: GateOrder) -> Result<Vec<Value>> {
    let (most, x, memory, output) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let weights = lstm_weights(cx, 4)?;
    let [time, batch, input] = cx.dims(1)?[..] else { return Err(cx.shape_mismatch("x must be of rank 3")) };
    check_lstm_weights(cx, &[batch, input], &cx.dims(2)?, &weights)?;
    check_lstm_weights(cx, &[batch, input], &cx.dims(3)?, &weights)?;
    let attributes = Attributes::parse(cx, gates, if gates == GateOrder::InputCellForgetOutput { 1.0 } else { 0.0 });
    let (cell, dtype) = (cx.b.dims(memory)[1], cx.b.dtype(x));
    let most = cx.b.reshape(most, &[]);
    let most = cx.b.convert(most, DType::S32);
    let all = cx.b.full(dtype, &[time, batch, cell], 0.0);
    let LstmWeights { w, peepholes: [wci, wcf, wco], bias } = weights;
    let state = [most, x, memory, output, w, wci, wcf, wco, bias, all, all, all, all, all, all, all];
    let end = counted_loop(cx.b, "lstm", time, &state, |b, t, parts| {
        let [most, x, memory, output, w, wci, wcf, wco, bias, ..] = parts[..] else { return parts };
        let weights = LstmWeights { w, peepholes: [wci, wcf, wco], bias };
        let now = slice_at(b, x, t);
        let made = step(b, &attributes, now, [memory, output], &weights);
        let is_within = b.compare(Direction::Lt, t, most);
        let is_within = b.broadcast(is_within, &[batch, cell], &[]);
        let none = b.full(dtype, &[batch, cell], 0.0);
        let made = made.map(|part| b.select(is_within, part, none));
        let all =
            made.iter().zip(&parts[9..]).map(|(&part, &all)| replace_slice_at(b, all, t, part)).collect::<Vec<_>>();
        [&[most, x, made[1], made[6], w, wci, wcf, wco, bias], &all[..]].concat()
    });
    Ok(end[9..].iter().map(|&all| Value::Array(all)).collect())
}

fn cell_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims: Dims = cx.dims_of_rank(1, 2)?.into();
    Ok(vec![Fact::new(cx.dtype(0), dims); 7])
}

fn sequence_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (x, state) = (cx.dims_of_rank(1, 3)?, cx.dims_of_rank(2, 2)?);
    let dims: Dims = vec![x[0], x[1], state[1]].into();
    Ok(vec![Fact::new(cx.dtype(1), dims); 7])
}
