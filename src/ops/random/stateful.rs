//! Random numbers from a generator that is part of the program's state.
//!
//! A generator of TensorFlow 2 is a variable of three integers, two for the counter and one for the key. A draw advances the
//! counter by 256 blocks per element, as TensorFlow's CPU kernels do, so that the numbers are the same.
//!
//! The ops of TensorFlow 1 have hidden generators. Here a single variable serves all of them: a key and the number of draws.
//! Each draw scrambles both and the op's seeds into a key and counter of its own, so that no two draws share words.
use super::binomial;
use super::categories::CategoricalInputs;
use super::gamma::draw_gamma;
use super::poisson::draw_poisson;
use super::{
    Algorithm, Distribution, Draw, FLOATS, Generator, INTS, bits, counted, drawn, element, from_seed, full_int, normal,
    parameterized_normal, ranged, sizes, streams, truncated_normal, uniform,
};
use crate::diag::{Code, Diagnostic, Result};
use crate::dims;
use crate::hlo::symbolic::{InstId, Op};
use crate::ops::array::gather;
use crate::ops::fact::{Dims, Fact};
use crate::ops::math::reduce::arg_extremum;
use crate::ops::op_lowering::op;
use crate::ops::shape::{S64, like_first_input, no_outputs, shape_from_input_value};
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::tensor::{DType, Tensor};

/// Blocks that TensorFlow reserves for each drawn element.
const BLOCKS: f64 = 256.0;

const OF_VARIABLE: &str = "resource algorithm shape -> output";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("RngReadAndSkip", "resource alg delta -> value", read_and_skip).shape(|cx| { cx.one_output(S64, vec![InferredDim::Known(3)]) }).assigns_inputs(&[0]).constant_inputs(&[1]),
    op("RngSkip", "resource algorithm delta ->", skip_only).shape(no_outputs).assigns_inputs(&[0]).constant_inputs(&[1]),
    op("StatefulUniform", OF_VARIABLE, |cx| from_variable(cx, uniform)).shape(from_third).assigns_inputs(&[0]).constant_inputs(&[1, 2]).dtypes(FLOATS),
    op("StatefulStandardNormalV2", OF_VARIABLE, |cx| from_variable(cx, normal)).shape(from_third).assigns_inputs(&[0]).constant_inputs(&[1, 2]).dtypes(FLOATS),
    op("StatefulTruncatedNormal", OF_VARIABLE, |cx| from_variable(cx, truncated_normal::draw_truncated_normal)).shape(from_third).assigns_inputs(&[0]).constant_inputs(&[1, 2]).dtypes(FLOATS),
    op("StatefulUniformInt", "resource algorithm shape minval maxval -> output", |cx| from_variable(cx, ranged)).shape(from_third).assigns_inputs(&[0]).constant_inputs(&[1, 2]).dtypes(INTS),
    op("StatefulUniformFullInt", OF_VARIABLE, |cx| from_variable(cx, full_int)).shape(from_third).assigns_inputs(&[0]).constant_inputs(&[1, 2]).dtypes(INTS),
    op("RandomUniform", "shape -> output", |cx| from_hidden(cx, "dtype", uniform)).shape(shape_from_input_value).draws_random().constant_inputs(&[0]).dtypes(FLOATS),
    op("RandomStandardNormal", "shape -> output", |cx| from_hidden(cx, "dtype", normal)).shape(shape_from_input_value).draws_random().constant_inputs(&[0]).dtypes(FLOATS),
    op("TruncatedNormal", "shape -> output", |cx| from_hidden(cx, "dtype", truncated_normal::draw_truncated_normal)).shape(shape_from_input_value).draws_random().constant_inputs(&[0]).dtypes(FLOATS),
    op("ParameterizedTruncatedNormal", "shape means stdevs minvals maxvals -> output", between_ends).shape(shape_from_input_value).draws_random().constant_inputs(&[0]).dtypes("f16, bf16, f32, f64"),
    op("RandomUniformInt", "shape minval maxval -> output", |cx| from_hidden(cx, "Tout", ranged)).shape(int_shape).draws_random().constant_inputs(&[0]).dtypes(INTS),
    op("StatefulRandomBinomial", "resource algorithm shape counts probs -> output", binomial_of_variable).shape(from_third).assigns_inputs(&[0]).constant_inputs(&[1, 2]).dtypes("f16, f32, f64, s32, s64"),
    op("RandomGamma", "shape alpha -> output", |cx| each(cx, draw_gamma)).shape(|cx| each_shape(cx, "T")).draws_random().constant_inputs(&[0]).dtypes("f16, f32, f64"),
    op("RandomPoissonV2", "shape rate -> output", |cx| each(cx, draw_poisson)).shape(|cx| each_shape(cx, "dtype")).draws_random().constant_inputs(&[0]).dtypes("f16, f32, f64, s32, s64"),
    op("RandomPoisson", "shape rate -> output", |cx| each(cx, draw_poisson)).shape(|cx| each_shape(cx, "dtype")).draws_random().constant_inputs(&[0]).dtypes("f16, f32, f64"),
    op("NonDeterministicInts", "shape -> output", |cx| from_hidden(cx, "dtype", full_int)).shape(shape_from_input_value).draws_random().constant_inputs(&[0]).dtypes(INTS),
    op("RandomShuffle", "value -> output", shuffle).shape(like_first_input).draws_random(),
    op("Multinomial", "logits num_samples -> output", categories).shape(super::categories::categorical_shape).draws_random().constant_inputs(&[1]).dtypes("f16, bf16, f32, f64"),
];

/// Shape function: one output whose shape is the value of input 2.
fn from_third(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(2)?;
    cx.one_output_typed_by("dtype", dims)
}

fn int_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(0)?;
    cx.one_output_typed_by("Tout", dims)
}

/// State of the generator whose handle is input 0.
fn state(cx: &mut LowerCtx) -> Result<InstId> {
    match cx.constant_int(1)? {
        1 | 3 => {}
        other => {
            return Err(
                cx.unsupported_case(format!("random algorithm {other} with a variable; 1 (Philox) is supported"))
            );
        }
    }
    let state = cx.read_variable(0)?;
    match (cx.b.dtype(state), cx.b.dims(state)) {
        (DType::S64, [n]) if *n >= 3 => Ok(state),
        _ => Err(cx.shape_mismatch(format!("the generator is {}, and Philox needs s64[3]", cx.b.shape(state)))),
    }
}

/// Advances the counter by the blocks for `elements`, a u64 scalar.
fn skip(cx: &mut LowerCtx, state: InstId, elements: InstId) -> Result<()> {
    let b = &mut *cx.b;
    let blocks = b.full_like(elements, BLOCKS);
    let by = b.mul(elements, blocks);
    let [low, high] = [0, 1].map(|i| {
        let word = element(b, state, Dim::from(i));
        b.unary(ScalarOp::BitcastConvert(DType::U64), word)
    });
    let [low, high] = super::truncated_normal::add_to_counter(b, [low, high], by);
    let mut parts: Vec<InstId> = [low, high]
        .into_iter()
        .map(|word| {
            let word = b.unary(ScalarOp::BitcastConvert(DType::S64), word);
            b.reshape(word, &dims![1])
        })
        .collect();
    let length = b.dims(state)[0];
    parts.push(b.slice_axis(state, 0, Dim::from(2), length));
    let new = b.concatenate(&parts, 0);
    cx.write_variable(0, new)
}

fn read_and_skip(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let before = state(cx)?;
    skip_only(cx)?;
    let value = cx.b.slice_axis(before, 0, Dim::from(0), Dim::from(3));
    cx.one_output(value)
}

fn skip_only(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (before, delta) = (state(cx)?, cx.arg(2)?);
    let delta = match cx.b.dtype(delta) {
        DType::S64 => cx.b.unary(ScalarOp::BitcastConvert(DType::U64), delta),
        _ => delta,
    };
    skip(cx, before, delta)?;
    Ok(vec![])
}

/// Generator from its state.
fn of_state(cx: &mut LowerCtx, state: InstId) -> Generator {
    let words = [0, 1, 2].map(|i| {
        let word = element(cx.b, state, Dim::from(i));
        cx.b.unary(ScalarOp::BitcastConvert(DType::U64), word)
    });
    Generator { key: words[2], counter: [words[0], words[1]], algorithm: Algorithm::Philox }
}

/// Lowers a draw of a distribution from the generator whose handle is input 0.
fn from_variable(cx: &mut LowerCtx, distribution: Distribution) -> Result<Vec<Value>> {
    let before = state(cx)?;
    let (dims, count) = sizes(cx, 2)?;
    let dtype = if cx.args.len() > 3 { cx.dtype(3)? } else { cx.attr_dtype("dtype")? };
    let generator = of_state(cx, before);
    let elements = cx.b.scalar(DType::U64, count);
    skip(cx, before, elements)?;
    drawn(cx, &generator, &Draw { dtype, dims, count, bounds: 3 }, distribution)
}

/// Lowers a binomial draw from the generator whose handle is input 0; the counter advances by the number of elements alone, as
/// in TensorFlow.
fn binomial_of_variable(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let before = state(cx)?;
    let (dims, _) = sizes(cx, 2)?;
    let of = binomial::parameter_dims(cx, 3)?;
    let [samples, parameters] = streams::sample_dims(cx, &dims, &of)?;
    let generator = of_state(cx, before);
    let taken = parameters.saturating_mul(200).saturating_mul(samples.saturating_add(3)) / 4;
    let taken = cx.b.scalar(DType::U64, taken);
    skip(cx, before, taken)?;
    binomial::draw_binomial(cx, &generator, &dims, 3)
}

type Each = fn(&mut LowerCtx, &Generator, &[Dim], usize) -> Result<Vec<Value>>;

/// Lowers a draw with as many samples as input 0 gives, for each parameter in input 1.
fn each(cx: &mut LowerCtx, distribution: Each) -> Result<Vec<Value>> {
    let (mut dims, _) = sizes(cx, 0)?;
    dims.extend(cx.dims(1)?);
    counted(&dims)?;
    let generator = global_generator(cx)?;
    distribution(cx, &generator, &dims, 1)
}

fn each_shape(cx: &mut ShapeCtx, attr: &str) -> Result<Vec<Fact>> {
    let outer = cx.shape_from_value(0)?;
    match (outer, cx.dims(1)?) {
        (Dims::Ranked(samples), Dims::Ranked(of)) => cx.one_output_typed_by(attr, [&samples[..], &of[..]].concat()),
        (Dims::Unranked(id), _) | (_, Dims::Unranked(id)) => {
            let unknown = cx.unranked(UnknownReason::From(id));
            cx.one_output_typed_by(attr, unknown)
        }
    }
}

/// Key and counter for one draw from the global random generator, which has no handle.
pub(super) fn global_generator(cx: &mut LowerCtx) -> Result<Generator> {
    let Some(number) = cx.store.random else {
        let told = format!("{} draws from a generator that is state, and the code has none here", cx.node.op);
        return Err(Diagnostic::new(Code::UnsupportedCase, told)
            .help("use the stateless op, with a seed as a feed")
            .into());
    };
    let before = cx.store.read(number)?;
    let seed = |name: &str| cx.node.int(name).unwrap_or(0) as u64;
    let seeds = seed("seed") ^ seed("seed2").rotate_left(32);
    let b = &mut *cx.b;
    let seeds = b.constant(Tensor::of(&[2], &[seeds, 0]));
    let one = b.constant(Tensor::of(&[2], &[0u64, 1]));
    let after = b.add(before, one);
    let (dtype, dims) = (b.dtype(after), b.dims(after).to_vec());
    let mixed = b.binary(ScalarOp::Xor, before, seeds);
    cx.store.write(number, after, dtype, &dims)?;
    from_seed(cx, mixed)
}

fn from_hidden(cx: &mut LowerCtx, attr: &str, distribution: Distribution) -> Result<Vec<Value>> {
    let (dims, count) = sizes(cx, 0)?;
    let dtype = cx.attr_dtype(attr)?;
    let generator = global_generator(cx)?;
    drawn(cx, &generator, &Draw { dtype, dims, count, bounds: 1 }, distribution)
}

/// Lowers `ParameterizedTruncatedNormal`; each row along the first axis has its own mean, deviation and bounds.
fn between_ends(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, count) = sizes(cx, 0)?;
    let dtype = cx.attr_dtype("dtype")?;
    for i in 1..cx.args.len() {
        let x = cx.arg(i)?;
        // A single number applies to all rows.
        let mut of_rows = cx.b.dims(x).to_vec();
        if of_rows.len() == 1 && of_rows[0] != 1 {
            of_rows.resize(dims.len().max(1), Dim::from(1));
            cx.args[i] = Value::Array(cx.b.reshape(x, &of_rows));
        }
    }
    let generator = global_generator(cx)?;
    drawn(cx, &generator, &Draw { dtype, dims, count, bounds: 1 }, parameterized_normal::draw_truncated_normal)
}

/// Lowers `RandomShuffle`: sorts the rows of input 0 by a random word for each.
fn shuffle(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let Some(&rows) = dims.first().filter(|&&n| n > 1) else { return cx.one_output(x) };
    let generator = global_generator(cx)?;
    let draw = Draw { dtype: DType::U64, dims: vec![rows], count: counted(&[rows])?, bounds: 0 };
    let words = bits(cx.b, &generator, true, &draw);
    let places = cx.b.iota(DType::S32, &[rows], 0);
    let comp = cx.b.ascending_computation(DType::U64);
    let sorted = cx.b.add_inst(Op::Sort { dim: 0, is_stable: true, comp }, &[words, places]);
    let order = cx.b.get_tuple_element(sorted, 1);
    cx.args = vec![Value::Array(x), Value::Array(order)];
    gather(cx)
}

/// Lowers `Multinomial`, classes with the softmax of logits as probabilities: the largest logit with Gumbel noise added.
fn categories(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let asked = CategoricalInputs::from_node(cx)?;
    let CategoricalInputs { logits, sizes, dtype } = asked;
    if asked.is_empty() {
        let none = cx.b.full(dtype, &sizes[..2], 0.0);
        return cx.one_output(none);
    }
    let generator = global_generator(cx)?;
    let draw = Draw { dtype: DType::F32, count: counted(&sizes)?, dims: sizes.to_vec(), bounds: 0 };
    let u = uniform(cx, &generator, &draw)?;
    let b = &mut *cx.b;
    let u = b.reshape(u, &sizes);
    let log = b.unary(ScalarOp::Log, u);
    let negated = b.unary(ScalarOp::Negate, log);
    let noise = b.unary(ScalarOp::Log, negated);
    let logits = b.convert(logits, DType::F32);
    let logits = b.broadcast(logits, &sizes, &[0, 2]);
    let noisy = b.sub(logits, noise);
    let index = arg_extremum(b, noisy, 2, Direction::Gt);
    let index = b.convert(index, dtype);
    cx.one_output(index)
}
