//! Random bits by Philox4x32-10 and ThreeFry2x32-20, and `rng` on top of a fixed Philox stream.
use super::box_walk::strides;
use super::operands::{invalid_hlo, unsupported_hlo};
use crate::diag::Result;
use crate::hlo::{ArrayShape, Literal, Shape};
use crate::scalar::eval;
use crate::tensor::{DType, Tensor};

/// Four words of block `counter` of the Philox stream `key`.
pub(super) fn philox(key: u64, counter: u128) -> [u32; 4] {
    let mut c = [counter as u32, (counter >> 32) as u32, (counter >> 64) as u32, (counter >> 96) as u32];
    let (mut k0, mut k1) = (key as u32, (key >> 32) as u32);
    for _ in 0..10 {
        let p0 = u64::from(c[0]) * 0xD251_1F53;
        let p1 = u64::from(c[2]) * 0xCD9E_8D57;
        c = [(p1 >> 32) as u32 ^ c[1] ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k1, p0 as u32];
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    c
}

/// Two words of block `counter` of the ThreeFry stream `key`.
fn three_fry(key: u64, counter: u64) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let (k0, k1) = (key as u32, (key >> 32) as u32);
    let keys = [k0, k1, k0 ^ k1 ^ 0x1BD1_1BDA];
    let mut x = [(counter as u32).wrapping_add(k0), ((counter >> 32) as u32).wrapping_add(k1)];
    for round in 0..5usize {
        for r in ROTATIONS[round % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(r) ^ x[0];
        }
        x[0] = x[0].wrapping_add(keys[(round + 1) % 3]);
        x[1] = x[1].wrapping_add(keys[(round + 2) % 3]).wrapping_add(round as u32 + 1);
    }
    x
}

/// Pairs of words as 64-bit values, low word first.
fn join(words: &[u32]) -> Vec<u64> {
    words.chunks_exact(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32).collect()
}

/// Evaluates `rng-bit-generator`: new state and random bits, or the bits alone, as declared.
pub(super) fn bit_generator(state: &Tensor, algorithm: &str, shape: &Shape) -> Result<Literal> {
    let bits_shape = match shape {
        Shape::Array(a) => a,
        Shape::Tuple(parts) => parts
            .get(1)
            .and_then(Shape::as_array)
            .ok_or_else(|| invalid_hlo(format!("random bits of shape {shape}")))?,
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
            return Err(invalid_hlo(format!("random bits of shape {shape}")));
        }
    };
    let words: Vec<u64> = state_words(state)?;
    let (new, bits) = match algorithm {
        "rng_three_fry" => three_fry_bits(&words, bits_shape)?,
        "rng_philox" | "rng_default" => philox_bits(&words, bits_shape)?,
        other => return Err(unsupported_hlo(format!("random algorithm `{other}`"))),
    };
    let bits = Literal::Array(bits);
    if shape.as_array().is_some() {
        return Ok(bits);
    }
    let new: Vec<u8> = new.iter().flat_map(|w| w.to_le_bytes()).collect();
    Ok(Literal::Tuple(vec![Literal::Array(Tensor::new(state.dtype, state.dims.clone(), new)), bits]))
}

/// State as 64-bit words: key, counter, and possibly the upper half of the counter. If that is missing, Philox has the key
/// there, as in XLA, which reads such a state in reverse.
fn state_words(state: &Tensor) -> Result<Vec<u64>> {
    if !matches!(state.bytes.len(), 16 | 24) {
        return Err(invalid_hlo(format!("a random state of {state:?}")));
    }
    Ok(state.view::<u64>().into_owned())
}

fn philox_bits(state: &[u64], shape: &ArrayShape) -> Result<(Vec<u64>, Tensor)> {
    let counter = u128::from(state[1]) | u128::from(state.get(2).copied().unwrap_or(state[0])) << 64;
    let n = shape.elements();
    let blocks = if shape.dtype.bytes() == 8 { n.div_ceil(2) } else { n.div_ceil(4) };
    let words: Vec<u32> = (0..blocks).flat_map(|i| philox(state[0], counter.wrapping_add(u128::from(i)))).collect();
    let next = counter.wrapping_add(u128::from(blocks));
    let mut new = vec![state[0], next as u64];
    if state.len() == 3 {
        new.push((next >> 64) as u64);
    }
    Ok((new, narrow(words, shape)?))
}

/// Random words converted to an array of `shape`; surplus words are dropped.
fn narrow(words: Vec<u32>, shape: &ArrayShape) -> Result<Tensor> {
    let n = shape.elements() as usize;
    let bytes: Vec<u8> = match shape.dtype.bytes() {
        8 => join(&words)[..n].iter().flat_map(|w| w.to_le_bytes()).collect(),
        4 => words[..n].iter().flat_map(|w| w.to_le_bytes()).collect(),
        2 => words[..n].iter().flat_map(|&w| (w as u16).to_le_bytes()).collect(),
        1 => words[..n].iter().map(|&w| w as u8).collect(),
        _ => return Err(unsupported_hlo(format!("random bits of type {}", shape.dtype))),
    };
    Ok(Tensor::new(shape.dtype, shape.dims.clone(), bytes))
}

fn three_fry_bits(state: &[u64], shape: &ArrayShape) -> Result<(Vec<u64>, Tensor)> {
    let (key, counter) = (state[0], state[1]);
    let block = |i: u64| three_fry(key, counter.wrapping_add(i));
    let n = shape.elements();
    if shape.dtype.bytes() == 8 {
        let words = (0..n).flat_map(block).collect();
        let mut new = state.to_vec();
        new[1] = counter.wrapping_add(n);
        return Ok((new, narrow(words, shape)?));
    }
    // One dimension is halved; the two words of a block are adjacent along it.
    let dims: Vec<u64> = if shape.dims.is_empty() { vec![1] } else { shape.dims.clone() };
    let largest = (0..dims.len()).max_by_key(|&i| (dims[i], std::cmp::Reverse(i))).unwrap_or(0);
    let split = dims.iter().position(|d| d % 2 == 0).unwrap_or(largest);
    let mut half = dims.clone();
    half[split] = dims[split].div_ceil(2);
    let blocks = half.iter().product::<u64>();
    let (half_steps, steps) = (strides(&half), strides(&dims));
    let mut words = vec![0u32; n as usize];
    for i in 0..blocks {
        let mut at = 0i64;
        let mut along = 0;
        for a in 0..half.len() {
            let position = i as i64 / half_steps[a] % half[a] as i64;
            if a == split { along = 2 * position } else { at += position * steps[a] }
        }
        for (k, word) in block(i).into_iter().enumerate() {
            let position = along + k as i64;
            if position < dims[split] as i64 {
                words[(at + position * steps[split]) as usize] = word;
            }
        }
    }
    let mut new = state.to_vec();
    new[1] = counter.wrapping_add(blocks);
    Ok((new, narrow(words, shape)?))
}

/// Random numbers from a fixed stream: uniform in [a, b), or normal with mean a and deviation b.
pub(super) fn rng(a: &Tensor, b: &Tensor, normal: bool, shape: &ArrayShape) -> Result<Tensor> {
    let (Some(low), Some(high)) = (a.get_f64(0), b.get_f64(0)) else {
        return Err(invalid_hlo("rng needs two scalars"));
    };
    let n = shape.elements();
    let words: Vec<u32> = (0..n.div_ceil(2)).flat_map(|i| philox(0x5eed, u128::from(i))).collect();
    let unit: Vec<f64> = join(&words).iter().map(|w| (w >> 11) as f64 * 2f64.powi(-53)).collect();
    let count = n as usize;
    let values: Vec<f64> = if normal {
        let gauss = |u: f64, v: f64| (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        (0..count).map(|i| low + high * gauss(unit[i], unit[(i + 1) % unit.len()])).collect()
    } else {
        unit[..count].iter().map(|u| low + u * (high - low)).collect()
    };
    let integer = shape.dtype.is_integer();
    let values = values.into_iter().map(|v| if integer { v.floor() } else { v }).collect();
    Ok(eval::convert(&Tensor::from_vec(DType::F64, shape.dims.clone(), values), shape.dtype))
}
