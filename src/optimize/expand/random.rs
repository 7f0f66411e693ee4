//! Random bits in integer opcodes: Philox4x32-10 and ThreeFry2x32-20, and `rng` on top of a fixed Philox stream.
//!
//! Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011); XLA's `rng-bit-generator`.
use super::expand_with;
use crate::diag::Result;
use crate::hlo::{ArrayShape, Builder, InstId, Module, Op, Shape};
use crate::optimize::rewrite::{Changed, rewrite};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, DTypeClass, Tensor};

/// The key of the stream that `rng` draws from.
const RNG_KEY: u64 = 0x5eed;

/// Replaces `rng-bit-generator` and `rng`.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| match editor.op(id).clone() {
        Op::RngBitGenerator { algorithm } => {
            let shape = editor.shape(id).clone();
            expand_with(editor, id, |b, operands| bit_generator(b, operands[0], &algorithm, &shape))
        }
        Op::Rng { normal } => {
            let Some(shape) = editor.array(id).cloned() else { return Ok(None) };
            expand_with(editor, id, |b, operands| {
                let drawn = shape.elements() > 0 && shape.dtype.class() != DTypeClass::Complex;
                drawn.then(|| draw_distribution(b, [operands[0], operands[1]], normal, &shape))
            })
        }
        _ => Ok(None),
    })
}

fn bit_generator(b: &mut Builder, state: InstId, algorithm: &str, shape: &Shape) -> Option<InstId> {
    let bits_shape = match shape {
        Shape::Array(a) => a.clone(),
        Shape::Tuple(parts) => parts.get(1)?.as_array()?.clone(),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => return None,
    };
    let words = state_words(b, state)?;
    if bits_shape.dtype.class() == DTypeClass::Complex {
        return None;
    }
    if bits_shape.elements() == 0 {
        // nothing is drawn, and the state stays
        let none = b.constant(Tensor::new(bits_shape.dtype, bits_shape.dims.clone(), Vec::new()));
        return Some(if shape.as_array().is_some() { none } else { b.tuple(&[state, none]) });
    }
    let (new, bits) = match algorithm {
        "rng_three_fry" => three_fry_bits(b, &words, &bits_shape)?,
        "rng_philox" | "rng_default" => philox_bits(b, &words, &bits_shape)?,
        _ => return None,
    };
    if shape.as_array().is_some() {
        return Some(bits);
    }
    let new: Vec<InstId> = new.into_iter().map(|w| b.reshape(w, &[1])).collect();
    let new = b.concatenate(&new, 0);
    let new = as_state(b, new, state)?;
    Some(b.tuple(&[new, bits]))
}

/// The state as two or three 64-bit words.
fn state_words(b: &mut Builder, state: InstId) -> Option<Vec<InstId>> {
    let dtype = b.dtype(state);
    let n = b.dims(state).iter().product::<u64>();
    let flat = b.reshape(state, &[n]);
    let (wide, count) = match dtype.bits() {
        64 => (bits_as(b, flat, DType::U64), n),
        32 if n % 2 == 0 => {
            let halves = bits_as(b, flat, DType::U32);
            (join_neighbors(b, halves), n / 2)
        }
        _ => return None,
    };
    let word = |i: u64| {
        let one = b.slice_axis(wide, 0, i, i + 1);
        b.reshape(one, &[])
    };
    matches!(count, 2 | 3).then(|| (0..count).map(word).collect())
}

/// Converts 64-bit words to the type and shape of `like`.
fn as_state(b: &mut Builder, words: InstId, like: InstId) -> Option<InstId> {
    let (dtype, dims) = (b.dtype(like), b.dims(like).to_vec());
    let words = if dtype.bits() == 64 {
        words
    } else {
        let (low, high) = split_words(b, words);
        interleave(b, &[low, high])
    };
    let cast = bits_as(b, words, dtype);
    Some(b.reshape(cast, &dims))
}

fn bits_as(b: &mut Builder, x: InstId, dtype: DType) -> InstId {
    if b.dtype(x) == dtype { x } else { b.unary(ScalarOp::BitcastConvert(dtype), x) }
}

fn constant_like(b: &mut Builder, like: InstId, value: u64) -> InstId {
    let (dtype, dims) = (b.dtype(like), b.dims(like).to_vec());
    let scalar = if dtype == DType::U64 { Tensor::scalar(value) } else { Tensor::scalar(value as u32) };
    let scalar = b.constant(scalar);
    b.broadcast(scalar, &dims, &[])
}

/// Splits 64-bit words into low and high 32-bit words.
fn split_words(b: &mut Builder, x: InstId) -> (InstId, InstId) {
    let by = constant_like(b, x, 32);
    let high = b.binary(ScalarOp::ShiftRightLogical, x, by);
    (b.convert(x, DType::U32), b.convert(high, DType::U32))
}

/// Joins low and high 32-bit words to 64-bit words.
fn join_words(b: &mut Builder, low: InstId, high: InstId) -> InstId {
    let (low, high) = (b.convert(low, DType::U64), b.convert(high, DType::U64));
    let by = constant_like(b, high, 32);
    let high = b.binary(ScalarOp::ShiftLeft, high, by);
    b.binary(ScalarOp::Or, low, high)
}

/// Joins every two neighboring 32-bit words to one of 64 bits, the first low.
fn join_neighbors(b: &mut Builder, x: InstId) -> InstId {
    let n = b.dims(x)[0] / 2;
    let pairs = b.reshape(x, &[n, 2]);
    let part = |b: &mut Builder, i: u64| {
        let one = b.slice_axis(pairs, 1, i, i + 1);
        b.reshape(one, &[n])
    };
    let (low, high) = (part(b, 0), part(b, 1));
    join_words(b, low, high)
}

/// Interleaves vectors of equal length.
fn interleave(b: &mut Builder, parts: &[InstId]) -> InstId {
    let n = b.dims(parts[0])[0];
    let columns: Vec<InstId> = parts.iter().map(|&p| b.reshape(p, &[n, 1])).collect();
    let all = b.concatenate(&columns, 1);
    b.reshape(all, &[n * parts.len() as u64])
}

/// Philox: the four 32-bit words of each block for keys `[n]` and counters `[n]` (low and high halves), all 64-bit.
fn philox(b: &mut Builder, key: InstId, low: InstId, high: InstId) -> [InstId; 4] {
    let ((c0, c1), (c2, c3)) = (split_words(b, low), split_words(b, high));
    let (mut k0, mut k1) = split_words(b, key);
    let mut c = [c0, c1, c2, c3];
    let product = |b: &mut Builder, x: InstId, by: u64| {
        let x = b.convert(x, DType::U64);
        let by = constant_like(b, x, by);
        let p = b.mul(x, by);
        split_words(b, p)
    };
    for _ in 0..10 {
        let ((low0, high0), (low1, high1)) = (product(b, c[0], 0xD251_1F53), product(b, c[2], 0xCD9E_8D57));
        let (x, y) = (b.binary(ScalarOp::Xor, high1, c[1]), b.binary(ScalarOp::Xor, high0, c[3]));
        c = [b.binary(ScalarOp::Xor, x, k0), low1, b.binary(ScalarOp::Xor, y, k1), low0];
        let (step0, step1) = (constant_like(b, k0, 0x9E37_79B9), constant_like(b, k1, 0xBB67_AE85));
        (k0, k1) = (b.add(k0, step0), b.add(k1, step1));
    }
    c
}

/// The counter's low and high word after `by` more blocks.
fn advance_counter(b: &mut Builder, low: InstId, high: InstId, by: InstId) -> (InstId, InstId) {
    let sum = b.add(low, by);
    let over = b.compare(Direction::Lt, sum, by);
    let carry = b.convert(over, DType::U64);
    (sum, b.add(high, carry))
}

/// The 32-bit words of `blocks` Philox blocks, in order.
fn philox_words(b: &mut Builder, key: InstId, low: InstId, high: InstId, blocks: u64) -> InstId {
    let dims = [blocks];
    let i = b.iota(DType::U64, &dims, 0);
    let [key, low, high] = [key, low, high].map(|x| b.broadcast(x, &dims, &[]));
    let (low, high) = advance_counter(b, low, high, i);
    let c = philox(b, key, low, high);
    interleave(b, &c)
}

fn philox_bits(b: &mut Builder, state: &[InstId], shape: &ArrayShape) -> Option<(Vec<InstId>, InstId)> {
    let n = shape.elements();
    let blocks = if shape.dtype.bytes() == 8 { n.div_ceil(2) } else { n.div_ceil(4) };
    // a state of two words has the key for the counter's upper half
    let high = state.get(2).copied().unwrap_or(state[0]);
    let words = philox_words(b, state[0], state[1], high, blocks);
    let by = constant_like(b, state[1], blocks);
    let (next, next_high) = advance_counter(b, state[1], high, by);
    let new = [state[0], next, next_high][..state.len()].to_vec();
    Some((new, words_as_elements(b, words, shape)?))
}

/// Converts the first words to elements of the type of `shape`.
fn words_as_elements(b: &mut Builder, words: InstId, shape: &ArrayShape) -> Option<InstId> {
    let unsigned = match shape.dtype.bits() {
        64 => DType::U64,
        32 => DType::U32,
        16 => DType::U16,
        8 => DType::U8,
        _ => return None,
    };
    let words = if unsigned == DType::U64 { join_neighbors(b, words) } else { words };
    let cut = b.slice_axis(words, 0, 0, shape.elements());
    let cut = b.convert(cut, unsigned);
    let cast = bits_as(b, cut, shape.dtype);
    Some(b.reshape(cast, &shape.dims))
}

/// Threefry: the two words of each block of the stream `key` at these counters.
fn three_fry(b: &mut Builder, key: InstId, counter: InstId) -> [InstId; 2] {
    const ROTATIONS: [[u64; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let ((k0, k1), (c0, c1)) = (split_words(b, key), split_words(b, counter));
    let mixed = b.binary(ScalarOp::Xor, k0, k1);
    let parity = constant_like(b, mixed, 0x1BD1_1BDA);
    let keys = [k0, k1, b.binary(ScalarOp::Xor, mixed, parity)];
    let mut x = [b.add(c0, k0), b.add(c1, k1)];
    for round in 0..5usize {
        for r in ROTATIONS[round % 2] {
            let sum = b.add(x[0], x[1]);
            let (left, right) = (constant_like(b, x[1], r), constant_like(b, x[1], 32 - r));
            let up = b.binary(ScalarOp::ShiftLeft, x[1], left);
            let down = b.binary(ScalarOp::ShiftRightLogical, x[1], right);
            let turned = b.binary(ScalarOp::Or, up, down);
            x = [sum, b.binary(ScalarOp::Xor, turned, sum)];
        }
        let number = constant_like(b, x[1], round as u64 + 1);
        let second = b.add(x[1], keys[(round + 2) % 3]);
        x = [b.add(x[0], keys[(round + 1) % 3]), b.add(second, number)];
    }
    x
}

fn three_fry_blocks(b: &mut Builder, state: &[InstId], blocks: u64) -> [InstId; 2] {
    let i = b.iota(DType::U64, &[blocks], 0);
    let [key, counter] = [state[0], state[1]].map(|x| b.broadcast(x, &[blocks], &[]));
    let counter = b.add(counter, i);
    three_fry(b, key, counter)
}

fn three_fry_bits(b: &mut Builder, state: &[InstId], shape: &ArrayShape) -> Option<(Vec<InstId>, InstId)> {
    let after = |b: &mut Builder, blocks: u64| {
        let by = constant_like(b, state[1], blocks);
        let mut new = state.to_vec();
        new[1] = b.add(state[1], by);
        new
    };
    if shape.dtype.bits() == 64 {
        let n = shape.elements();
        let words = three_fry_blocks(b, state, n);
        let words = interleave(b, &words);
        let bits = words_as_elements(b, words, shape)?;
        return Some((after(b, n), bits));
    }
    // One dimension is halved: the first that is even, else the longest; the two words of a block are neighbours along it.
    let dims: Vec<u64> = if shape.dims.is_empty() { vec![1] } else { shape.dims.clone() };
    let largest = (0..dims.len()).max_by_key(|&i| (dims[i], std::cmp::Reverse(i))).unwrap_or(0);
    let axis = dims.iter().position(|d| d % 2 == 0).unwrap_or(largest);
    let mut half = dims.clone();
    half[axis] = dims[axis].div_ceil(2);
    let blocks = half.iter().product::<u64>();
    let words = three_fry_blocks(b, state, blocks);
    let mut column = half.clone();
    column.insert(axis + 1, 1);
    let parts: Vec<InstId> = words.iter().map(|&w| b.reshape(w, &column)).collect();
    let both = b.concatenate(&parts, axis + 1);
    half[axis] *= 2;
    let whole_dims = b.reshape(both, &half);
    let cut = b.slice_axis(whole_dims, axis, 0, dims[axis]);
    let flat = b.reshape(cut, &[shape.elements()]);
    let bits = words_as_elements(b, flat, shape)?;
    Some((after(b, blocks), bits))
}

/// Draws from a distribution: uniform in [low, high), or normal with mean `low` and deviation `high`; computed in `f64`.
fn draw_distribution(b: &mut Builder, [low, high]: [InstId; 2], normal: bool, shape: &ArrayShape) -> InstId {
    let n = shape.elements();
    let (key, zero) = (b.constant(Tensor::scalar(RNG_KEY)), b.scalar(DType::U64, 0.0));
    let words = philox_words(b, key, zero, zero, n.div_ceil(2));
    let words = join_neighbors(b, words);
    let by = constant_like(b, words, 11);
    let digits = b.binary(ScalarOp::ShiftRightLogical, words, by);
    let digits = b.convert(digits, DType::F64);
    let scale = b.full_like(digits, 2f64.powi(-53));
    let unit = b.mul(digits, scale);
    let dims = b.dims(unit).to_vec();
    let [low, high] = [low, high].map(|x| {
        let x = b.convert(x, DType::F64);
        b.broadcast(x, &dims, &[])
    });
    let value = if normal {
        let deviate = box_muller(b, unit);
        let wide = b.mul(high, deviate);
        b.add(low, wide)
    } else {
        let range = b.sub(high, low);
        let part = b.mul(unit, range);
        b.add(low, part)
    };
    let value = if shape.dtype.is_integer() { b.unary(ScalarOp::Floor, value) } else { value };
    let cut = b.slice_axis(value, 0, 0, n);
    let cut = b.convert(cut, shape.dtype);
    b.reshape(cut, &shape.dims)
}

/// Box-Muller transform of each number and its neighbor.
fn box_muller(b: &mut Builder, u: InstId) -> InstId {
    let n = b.dims(u)[0];
    let (first, rest) = (b.slice_axis(u, 0, 0, 1), b.slice_axis(u, 0, 1, n));
    let v = b.concatenate(&[rest, first], 0);
    let (one, minus_two, turn) = (b.full_like(u, 1.0), b.full_like(u, -2.0), b.full_like(u, std::f64::consts::TAU));
    let left = b.sub(one, u);
    let log = b.unary(ScalarOp::Log, left);
    let square = b.mul(minus_two, log);
    let radius = b.unary(ScalarOp::Sqrt, square);
    let angle = b.mul(turn, v);
    let cosine = b.unary(ScalarOp::Cos, angle);
    b.mul(radius, cosine)
}
