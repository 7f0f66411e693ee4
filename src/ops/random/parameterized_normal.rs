//! Truncated normal random numbers with means, deviations and bounds as inputs, with the same draws as TensorFlow's CPU kernel.
//!
//! Source: Robert, "Simulation of truncated normal variables" (1995). Normal numbers are rejected if one bound is more than 1.3
//! deviations from the mean and the other on its far side; else uniform numbers between near bounds, or exponential ones from
//! the lower bound on. All elements take blocks from one stream, one after the other: an element starts behind the block with
//! which the previous one ended, and elements with the same parameters share the rest of a block.
use super::truncated_normal::{add_to_counter, block_numbers};
use super::{Draw, Generator, from_seed, rounds, sizes, split, unit_f32, unit_f64, wrong_type};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Builder, CompId, Dim, InstId, Op, Shape};
use crate::ops::math::expr::{build_formula, build_formulas};
use crate::ops::op_lowering::op;
use crate::ops::shape::shape_from_input_value;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Element types of TensorFlow's kernel.
pub(super) const TYPES: &str = "f16, f32, f64";
/// Distance of a bound from the mean, in deviations, from which on normal numbers are tried.
const NORMAL_FROM: f64 = 1.3;
/// Number of consecutive rejections after which TensorFlow's kernel gives up.
const ATTEMPTS: f64 = 1000.0;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] =
    &[op("StatelessParameterizedTruncatedNormal", "shape seed means stddevs minvals maxvals -> output", stateless)
        .shape(shape_from_input_value)
        .constant_inputs(&[0])
        .dtypes(TYPES)];

fn stateless(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, count) = sizes(cx, 0)?;
    let (seed, dtype) = (cx.arg(1)?, cx.attr_dtype("dtype")?);
    if dtype == DType::BF16 {
        return Err(wrong_type(cx, dtype, TYPES));
    }
    let generator = from_seed(cx, seed)?;
    super::drawn(cx, &generator, &Draw { dtype, dims, count, bounds: 2 }, draw_truncated_normal)
}

/// Draws truncated normal numbers; inputs `draw.bounds` to `draw.bounds + 3` are means, deviations, lower and upper bounds.
///
/// The trailing sizes of the result are those of the parameters, which are broadcast to them.
pub(super) fn draw_truncated_normal(cx: &mut LowerCtx, generator: &Generator, draw: &Draw) -> Result<InstId> {
    let [mean, deviation, low, high] = [0, 1, 2, 3].map(|i| cx.arg(draw.bounds + i));
    let given = [mean?, deviation?, low?, high?];
    let rank = given.iter().map(|&x| cx.b.rank(x)).max().unwrap_or(0);
    let outer = draw.dims.len().checked_sub(rank);
    let of = outer.map(|n| draw.dims[n..].to_vec());
    let Some(of) =
        of.filter(|of| given.iter().all(|&x| Builder::broadcast_dims(cx.b.dims(x), of).as_ref() == Some(of)))
    else {
        let told = given.map(|x| format!("{:?}", cx.b.dims(x))).join(", ");
        return Err(
            cx.shape_mismatch(format!("samples of {:?}, which parameters of {told} do not broadcast to", draw.dims))
        );
    };
    let groups = of.iter().product::<Dim>();
    if draw.count.is_zero() {
        return Ok(cx.b.full(draw.dtype, &dims![0], 0.0));
    }
    let work = if draw.dtype == DType::BF16 { DType::F32 } else { draw.dtype };
    let given = given.map(|x| {
        let x = cx.b.convert(x, work);
        let x = cx.b.broadcast_to(x, &of);
        cx.b.reshape(x, &dims![groups])
    });
    let y = sampled(cx.b, generator, given, draw.count / groups)?;
    let y = cx.b.transpose(y, &[1, 0]);
    let y = cx.b.reshape(y, &[draw.count]);
    Ok(cx.b.convert(y, draw.dtype))
}

/// Columns of the parameter table.
const MEAN: usize = 0;
const DEVIATION: usize = 1;
const FROM: usize = 2;
const TO: usize = 3;
const METHOD: usize = 4;
const COLUMNS: usize = 5;

/// Sampling methods, values of column `METHOD`.
const NORMAL: f64 = 0.0;
const UNIFORM: f64 = 1.0;
const EXPONENTIAL: f64 = 2.0;
const INVALID: f64 = 3.0;

/// Parameter table, one row per group. Bounds are in deviations from the mean. They are mirrored, with a negative deviation, if
/// only the upper one is finite, or both are below the mean.
fn parameters(b: &mut Builder, given: [InstId; 4]) -> Result<InstId> {
    let columns = build_formulas(b, &given, |x| {
        let [mean, deviation, low, high] = [x[0], x[1], x[2], x[3]];
        let one_finite = low.apply_unary(ScalarOp::IsFinite).or(high.apply_unary(ScalarOp::IsFinite));
        let valid = deviation.gt(0.0).and(low.lt(high)).and(one_finite);
        let mirrored = low.equals(f64::NEG_INFINITY).or(high.lt(mean));
        let signed = (-deviation).select_where(mirrored, deviation);
        let from = (high.select_where(mirrored, low) - mean) / signed;
        let to = (low.select_where(mirrored, high) - mean) / signed;
        let root = (from * from + 4.0).sqrt();
        let cutoff = ((from * (from - root)) / 4.0 + 0.5).exp() * 2.0 / (from + root);
        let normal = from.lt(-NORMAL_FROM).and(to.ge(0.0)).or(to.gt(NORMAL_FROM).and(from.le(0.0)));
        let method = from.constant(UNIFORM).select_where((to - from).lt(cutoff), EXPONENTIAL);
        let method = from.constant(NORMAL).select_where(normal, method).select_where(valid, INVALID);
        Ok(vec![mean, signed, from, to, method])
    })?;
    let columns: Vec<InstId> = columns
        .into_iter()
        .map(|x| {
            let groups = b.dims(x)[0];
            b.reshape(x, &dims![groups, 1])
        })
        .collect();
    Ok(b.concatenate(&columns, 1))
}

/// Draws `samples` numbers for each group of parameters, `[groups, samples]`.
///
/// The rest of a group is NaN where TensorFlow's kernel fails: for a deviation that is not positive, unordered bounds, two
/// infinite bounds, or a thousand consecutive rejections.
fn sampled(b: &mut Builder, generator: &Generator, given: [InstId; 4], samples: Dim) -> Result<InstId> {
    let table = parameters(b, given)?;
    let (dtype, groups) = (b.dtype(table), b.dims(table)[0]);
    let slots = if dtype == DType::F64 { 2 } else { 4 };
    let total = groups * samples;
    // Numbers are stored a block at a time; unused ones of a block are overwritten.
    let numbers = b.full(dtype, &[total + slots], f64::NAN);
    let (done, rejected) = (b.scalar(DType::S64, 0.0), b.scalar(DType::S32, 0.0));
    let state = [done, rejected, generator.counter[0], generator.counter[1], generator.key, table, numbers];
    let state = b.tuple(&state);
    let shape = b.shape(state).clone();
    let (cond, body) = (elements_are_left(b, &shape, total), round(b, &shape, samples)?);
    let end = b.add_inst(Op::While { cond, body }, &[state]);
    let numbers = b.get_tuple_element(end, 6);
    let numbers = b.slice_axis(numbers, 0, Dim::from(0), total);
    Ok(b.reshape(numbers, &[groups, samples]))
}

fn elements_are_left(b: &mut Builder, shape: &Shape, total: Dim) -> CompId {
    b.begin_computation("elements_are_left");
    let state = b.parameter(shape.clone());
    let done = b.get_tuple_element(state, 0);
    let total = b.scalar(DType::S64, total);
    let left = b.compare(Direction::Lt, done, total);
    b.end_computation(left)
}

/// Loop body: tries the numbers of one or two blocks for the current group.
fn round(b: &mut Builder, shape: &Shape, samples: Dim) -> Result<CompId> {
    b.begin_computation("draw_between");
    let state = b.parameter(shape.clone());
    let [done, rejected, low, high, key, table, numbers] = [0, 1, 2, 3, 4, 5, 6].map(|i| b.get_tuple_element(state, i));
    let samples = b.scalar(DType::S64, samples);
    let group = b.div(done, samples);
    let zero = b.scalar(DType::S64, 0.0);
    let row = b.add_inst(Op::DynamicSlice(vec![Dim::from(1), Dim::from(COLUMNS)]), &[table, group, zero]);
    let row = b.reshape(row, &dims![COLUMNS]);
    let columns: [InstId; COLUMNS] = std::array::from_fn(|i| super::element(b, row, Dim::from(i)));
    let one = b.scalar(DType::U64, 1.0);
    let next = add_to_counter(b, [low, high], one);
    let blocks = [block(b, [low, high], key), block(b, next, key)];
    let attempts = attempts(b, blocks, &columns)?;
    let taken = taken(b, &attempts, [done, rejected, group, samples, columns[METHOD]])?;
    let numbers = b.add_inst(Op::DynamicUpdateSlice, &[numbers, taken.block, done]);
    let by =
        build_formula(b, [columns[METHOD], one], |[method, one]| (one + 1.0).select_where(method.equals(UNIFORM), one));
    let [low, high] = add_to_counter(b, [low, high], by);
    let root = b.tuple(&[taken.done, taken.rejected, low, high, key, table, numbers]);
    Ok(b.end_computation(root))
}

/// Four words of a block, as scalars.
fn block(b: &mut Builder, counter: [InstId; 2], key: InstId) -> [InstId; 4] {
    let ([c0, c1], [c2, c3], key) = (split(b, counter[0]), split(b, counter[1]), split(b, key));
    rounds(b, [c0, c1, c2, c3], key)
}

/// Uniform numbers from a block, as many as TensorFlow takes.
fn units(b: &mut Builder, words: [InstId; 4], dtype: DType) -> Vec<InstId> {
    if dtype == DType::F64 {
        return vec![unit_f64(b, words[0], words[1]), unit_f64(b, words[2], words[3])];
    }
    let digits = if dtype == DType::F16 { 10 } else { 23 };
    words
        .map(|w| {
            let x = unit_f32(b, w, digits);
            b.convert(x, dtype)
        })
        .to_vec()
}

/// Candidate number; all fields are scalars.
struct Attempt {
    number: InstId,
    /// Whether the group's method tries this candidate.
    is_tried: InstId,
    /// Whether the candidate is accepted.
    is_accepted: InstId,
}

/// Candidate numbers of a loop iteration, in the order in which the sampler tries them.
fn attempts(b: &mut Builder, blocks: [[InstId; 4]; 2], columns: &[InstId; COLUMNS]) -> Result<Vec<Attempt>> {
    let dtype = b.dtype(columns[MEAN]);
    let work = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let normal: Vec<InstId> = block_numbers(b, blocks[0], work).into_iter().map(|y| b.convert(y, dtype)).collect();
    let [first, second] = blocks.map(|words| units(b, words, dtype));
    let each = normal.iter().zip(&first).zip(&second).enumerate();
    each.map(|(i, ((&normal, &u), &v))| attempt(b, [normal, u, v], first.get(2 * i..2 * i + 2), columns)).collect()
}

/// Candidate from a normal number, from two uniform ones, or from the pair of the exponential method, if there is one.
fn attempt(
    b: &mut Builder,
    draws: [InstId; 3],
    pair: Option<&[InstId]>,
    columns: &[InstId; COLUMNS],
) -> Result<Attempt> {
    let has_pair = b.scalar(DType::Pred, f64::from(u8::from(pair.is_some())));
    let pair = pair.unwrap_or(&draws[1..]);
    let arrays = [&columns[..], &draws, pair, &[has_pair]].concat();
    let parts = build_formulas(b, &arrays, |x| {
        let [mean, deviation, from, to, method] = [MEAN, DEVIATION, FROM, TO, METHOD].map(|i| x[i]);
        let [normal, u, v, first, second, has_pair] = [0, 1, 2, 3, 4, 5].map(|i| x[COLUMNS + i]);
        let inside = normal.ge(from).and(normal.le(to));
        let flat = u * (to - from) + from;
        let plus = (from * from).replace_where(from.lt(0.0), 0.0);
        let below = v.le(((plus - flat * flat) / 2.0).exp());
        let alpha = (from + (from * from + 4.0).sqrt()) / 2.0;
        let far = -first.ln() / alpha + from;
        let off = (alpha - far).select_where(from.lt(alpha), from - alpha);
        let near = second.le((-off * off / 2.0).exp()).and(far.lt(to));
        let (is_normal, is_uniform) = (method.equals(NORMAL), method.equals(UNIFORM));
        let number = normal.select_where(is_normal, flat.select_where(is_uniform, far));
        let is_tried = is_normal.or(is_uniform).or(has_pair);
        let is_accepted = inside.select_where(is_normal, below.select_where(is_uniform, near)).and(is_tried);
        Ok(vec![number * deviation + mean, is_tried, is_accepted])
    })?;
    Ok(Attempt { number: parts[0], is_tried: parts[1], is_accepted: parts[2] })
}

/// State of the sampling loop after an iteration.
struct SamplerState {
    /// Accepted numbers, adjacent, followed by NaN.
    block: InstId,
    /// Number of completed elements.
    done: InstId,
    /// Number of attempts since the last acceptance.
    rejected: InstId,
}

/// Accepts candidates until the group is complete. `state` is the number of completed elements, the number of rejections, the
/// group, its size and its method.
fn taken(b: &mut Builder, attempts: &[Attempt], state: [InstId; 5]) -> Result<SamplerState> {
    let mut arrays = state.to_vec();
    arrays.extend(attempts.iter().flat_map(|a| [a.number, a.is_tried, a.is_accepted]));
    let mut parts = build_formulas(b, &arrays, |x| {
        let [done, mut rejected, group, samples, method] = [0, 1, 2, 3, 4].map(|i| x[i]);
        let end = (group + 1.0) * samples;
        let mut next = done;
        let mut slots = vec![x[5].constant(f64::NAN); attempts.len()];
        for attempt in x[5..].chunks_exact(3) {
            let [number, is_tried, is_accepted] = [0, 1, 2].map(|i| attempt[i]);
            let is_taken = is_accepted.and(next.lt(end));
            for (i, slot) in slots.iter_mut().enumerate() {
                *slot = number.select_where(is_taken.and((next - done).equals(i as f64)), *slot);
            }
            next = next + is_taken.convert(DType::S64);
            rejected = (rejected + is_tried.convert(DType::S32)).replace_where(is_accepted, 0.0);
        }
        let fails = method.equals(INVALID).or(rejected.ge(ATTEMPTS));
        let next = end.select_where(fails, next);
        let rejected = rejected.replace_where(next.equals(end), 0.0);
        Ok([vec![next, rejected], slots].concat())
    })?;
    let slots: Vec<InstId> = parts.split_off(2).into_iter().map(|x| b.reshape(x, &dims![1])).collect();
    Ok(SamplerState { block: b.concatenate(&slots, 0), done: parts[0], rejected: parts[1] })
}
