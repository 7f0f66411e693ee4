//! Normal random numbers within two deviations of the mean.
//!
//! With Philox, as in TensorFlow's CPU kernels: a group of four elements (two for f64) draws blocks of its own, and takes the
//! first numbers within the bounds; 64 blocks per element are reserved. With ThreeFry, which only XLA has, the quantile
//! function is applied to one uniform number.
use super::{
    Algorithm, Draw, FLOATS, Generator, box_muller, interleave, rounds, split, three_fry, uniform, unit_f32, unit_f64,
    wrong_type,
};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, CompId, Dim, InstId, Op, Shape};
use crate::ops::LowerCtx;
use crate::ops::math::expr::{build_formula, loop_condition};
use crate::ops::math::inverse_error::erfinv;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Truncation bound, in deviations.
const END: f64 = 2.0;
/// Probability of a number below -2.
const BELOW: f64 = 0.022_750_131_948_179_212;
/// Four-word blocks reserved for each element.
const BLOCKS: f64 = 64.0;

/// Draws standard normal numbers truncated at -2 and 2.
pub(super) fn draw_truncated_normal(cx: &mut LowerCtx, generator: &Generator, draw: &Draw) -> Result<InstId> {
    let work = match draw.dtype {
        DType::F64 => DType::F64,
        DType::F32 | DType::F16 | DType::BF16 => DType::F32,
        other => return Err(wrong_type(cx, other, FLOATS)),
    };
    let y = match generator.algorithm {
        Algorithm::Philox => rejected(cx.b, generator, draw.count, work),
        Algorithm::ThreeFry if draw.dtype == DType::F16 => {
            return Err(
                cx.unsupported_case("truncated normal numbers of f16 on ThreeFry; bf16, f32 and f64 are supported")
            );
        }
        Algorithm::ThreeFry => {
            let wide = Draw { dtype: work, dims: draw.dims.clone(), count: draw.count, bounds: draw.bounds };
            let x = uniform(cx, generator, &wide)?;
            let y = inverted(cx.b, x);
            return Ok(three_fry::convert_result(cx.b, y, draw.dtype));
        }
    };
    Ok(cx.b.convert(y, draw.dtype))
}

/// Quantile function of the truncated distribution, applied to uniform numbers in [0, 1).
fn inverted(b: &mut Builder, x: InstId) -> InstId {
    build_formula(b, [x], |[x]| {
        let inner = (x * (1.0 - 2.0 * BELOW) + BELOW) * 2.0 - 1.0;
        let y = erfinv(inner) * std::f64::consts::SQRT_2;
        y.replace_where(y.lt(-END), -END).replace_where(y.gt(END), END)
    })
}

/// Loop that draws one block for each incomplete group of elements.
fn rejected(b: &mut Builder, generator: &Generator, count: Dim, work: DType) -> InstId {
    let slots = if work == DType::F64 { 2 } else { 4 };
    let dims = [count.div_ceil(slots)];
    if count.is_zero() {
        return b.full(work, &dims, 0.0);
    }
    let [low, high] = generator.counter.map(|c| b.broadcast(c, &dims, &[]));
    let index = b.iota(DType::U64, &dims, 0);
    let blocks = b.full_like(index, BLOCKS * slots as f64);
    let offset = b.mul(index, blocks);
    let [low, high] = add_to_counter(b, [low, high], offset);
    let key = b.broadcast(generator.key, &dims, &[]);
    let round = b.scalar(DType::S32, 1.0);
    let (going, full) = (b.full(DType::Pred, &dims, 1.0), b.full(DType::S32, &dims, 0.0));
    let empty = b.full(work, &dims, 0.0);
    let mut state = vec![round, going, low, high, key, full];
    state.resize(state.len() + slots as usize, empty);
    let state = b.tuple(&state);
    let shape = b.shape(state).clone();
    let (cond, body) = (loop_condition(b, &shape, f64::from(i32::MAX)), draw_block(b, &shape, work, slots as usize));
    let end = b.add_inst(Op::While { cond, body }, &[state]);
    let values: Vec<InstId> = (0..slots as usize).map(|i| b.get_tuple_element(end, 6 + i)).collect();
    interleave(b, &values, count)
}

/// 128-bit counter plus a 64-bit number.
pub(super) fn add_to_counter(b: &mut Builder, [low, high]: [InstId; 2], by: InstId) -> [InstId; 2] {
    let sum = b.add(low, by);
    let wrapped = b.compare(Direction::Lt, sum, low);
    let carry = b.convert(wrapped, DType::U64);
    [sum, b.add(high, carry)]
}

/// Numbers of one block, in the order in which they are tried.
pub(super) fn block_numbers(b: &mut Builder, words: [InstId; 4], work: DType) -> Vec<InstId> {
    if work == DType::F64 {
        let (first, second) = (unit_f64(b, words[0], words[1]), unit_f64(b, words[2], words[3]));
        return box_muller(b, first, second).to_vec();
    }
    let u = words.map(|w| unit_f32(b, w, 23));
    let ([y0, y1], [y2, y3]) = (box_muller(b, u[0], u[1]), box_muller(b, u[2], u[3]));
    vec![y0, y1, y2, y3]
}

/// Loop body that stores the numbers of one block that are within the bounds in the next free slots of each group.
fn draw_block(b: &mut Builder, shape: &Shape, work: DType, slots: usize) -> CompId {
    b.begin_computation("draw_block");
    let state = b.parameter(shape.clone());
    let [round, _, low, high, key, mut full] = [0, 1, 2, 3, 4, 5].map(|i| b.get_tuple_element(state, i));
    let mut values: Vec<InstId> = (0..slots).map(|i| b.get_tuple_element(state, 6 + i)).collect();
    let ([c0, c1], [c2, c3], keys) = (split(b, low), split(b, high), split(b, key));
    let words = rounds(b, [c0, c1, c2, c3], keys);
    for y in block_numbers(b, words, work) {
        let size = b.unary(ScalarOp::Abs, y);
        let end = b.full_like(size, END);
        let inside = b.compare(Direction::Lt, size, end);
        for (i, value) in values.iter_mut().enumerate() {
            let slot = b.full_like(full, i as f64);
            let next = b.compare(Direction::Eq, full, slot);
            let taken = b.binary(ScalarOp::And, inside, next);
            *value = b.select(taken, y, *value);
        }
        let step = b.convert(inside, DType::S32);
        full = b.add(full, step);
    }
    let all = b.full_like(full, slots as f64);
    let going = b.compare(Direction::Lt, full, all);
    let one = b.full_like(low, 1.0);
    let [low, high] = add_to_counter(b, [low, high], one);
    let step = b.scalar(DType::S32, 1.0);
    let round = b.add(round, step);
    let parts: Vec<InstId> = [round, going, low, high, key, full].into_iter().chain(values).collect();
    let root = b.tuple(&parts);
    b.end_computation(root)
}
