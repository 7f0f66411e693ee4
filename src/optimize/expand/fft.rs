//! `fft` as products with small matrices.
//!
//! Lines of n = n1·n2 numbers are n1 rows of n2. With w(n) = e^(-2πi/n),
//!
//! `X[k1 + n1·k2] = Σ_j2 w(n2)^(j2·k2) · w(n)^(j2·k1) · Σ_j1 w(n1)^(j1·k1) · x[j1·n2 + j2]`
//!
//! so that a transform is a product with the matrix of n1, a product with constants, and a transform of n2. A length with a large
//! prime factor becomes a convolution of a power of two (Bluestein: `jk = (j² + k² - (k-j)²) / 2`). Real and imaginary parts are an
//! axis of two, `[lines, 2, n]`, along which the products sum too; constants are computed in doubles. An even number n of real
//! numbers is transformed as n/2 complex ones, the elements with even indices being the real parts (`real.rs`).
//!
//! A product with the matrix of r costs 4·r multiply-adds a number, and passes over all numbers besides: `best_radix` finds the factors
//! that cost least.
mod real;

use super::expand_with;
use crate::diag::Result;
use crate::hlo::attrs::{DotDims, FftKind, PadDim};
use crate::hlo::{Builder, InstId, Literal, Module, Op};
use crate::interp;
use crate::optimize::rewrite::{Changed, rewrite};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;
use std::f64::consts::{PI, TAU};

/// Size of the largest matrix of a step.
const RADIX: u64 = 32;
/// Cost of passing over all numbers in a step, in multiply-adds a number.
const PASS: u64 = 40;
/// Largest prime length that is transformed by one product.
const DIRECT: u64 = 160;

/// Replaces every `fft`.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| {
        let Op::Fft { kind, length } = editor.op(id).clone() else { return Ok(None) };
        let Some(shape) = editor.array(id).cloned() else { return Ok(None) };
        expand_with(editor, id, |b, operands| {
            if shape.elements() == 0 || b.dims(operands[0]).contains(&0) {
                return Some(b.full(shape.dtype, &shape.dims, 0.0));
            }
            Some(transform_last_axes(b, operands[0], kind, &length))
        })
    })
}

/// Complex arrays; `im` is `None` if all elements are real.
#[derive(Clone, Copy)]
struct ComplexPair {
    re: InstId,
    im: Option<InstId>,
}

impl ComplexPair {
    fn map_both(self, b: &mut Builder, f: impl Fn(&mut Builder, InstId) -> InstId) -> ComplexPair {
        ComplexPair { re: f(b, self.re), im: self.im.map(|im| f(b, im)) }
    }
    fn imaginary_or_zero(self, b: &mut Builder) -> InstId {
        self.im.unwrap_or_else(|| b.full_like(self.re, 0.0))
    }
}

/// The Fourier transform over the last dimensions.
fn transform_last_axes(b: &mut Builder, x: InstId, kind: FftKind, length: &[u64]) -> InstId {
    let rank = b.rank(x);
    let lead = rank - length.len();
    let last = rank - 1;
    let inverse = matches!(kind, FftKind::Ifft | FftKind::Irfft);
    let mut pair = match kind {
        FftKind::Rfft => ComplexPair { re: x, im: None },
        FftKind::Fft | FftKind::Ifft | FftKind::Irfft => {
            let (re, im) = (b.unary(ScalarOp::Real, x), b.unary(ScalarOp::Imag, x));
            ComplexPair { re, im: Some(im) }
        }
    };
    let n = length[length.len() - 1];
    if kind == FftKind::Irfft {
        for axis in lead..last {
            pair = transform_axis(b, pair, axis, inverse);
        }
        if n.is_multiple_of(2) {
            return real::inverse_transform(b, pair, n);
        }
        pair = complete_by_conjugates(b, pair, n);
        return transform_axis(b, pair, last, inverse).re;
    }
    pair = match kind {
        FftKind::Rfft if n.is_multiple_of(2) => real::transform(b, x, n),
        FftKind::Rfft => {
            let whole = transform_axis(b, pair, last, inverse);
            whole.map_both(b, |b, x| b.slice_axis(x, last, 0, n / 2 + 1))
        }
        _ => transform_axis(b, pair, last, inverse),
    };
    for axis in lead..last {
        pair = transform_axis(b, pair, axis, inverse);
    }
    let im = pair.imaginary_or_zero(b);
    b.binary(ScalarOp::Complex, pair.re, im)
}

/// Completes the last dimension to `n` elements: those after the first half are conjugates.
fn complete_by_conjugates(b: &mut Builder, x: ComplexPair, n: u64) -> ComplexPair {
    let last = b.rank(x.re) - 1;
    let behind = n - (n / 2 + 1);
    let rest = |b: &mut Builder, x: InstId| {
        let part = b.slice_axis(x, last, 1, 1 + behind);
        b.add_inst(Op::Reverse(vec![last]), &[part])
    };
    let im = x.imaginary_or_zero(b);
    if behind == 0 {
        return ComplexPair { re: x.re, im: Some(im) };
    }
    let (re_rest, im_rest) = (rest(b, x.re), rest(b, im));
    let im_rest = b.unary(ScalarOp::Negate, im_rest);
    ComplexPair { re: b.concatenate(&[x.re, re_rest], last), im: Some(b.concatenate(&[im, im_rest], last)) }
}

/// The transform along `axis`; the inverse divides by the length.
fn transform_axis(b: &mut Builder, x: ComplexPair, axis: usize, inverse: bool) -> ComplexPair {
    let dims = b.dims(x.re).to_vec();
    let n = dims[axis];
    let to_last: Vec<usize> = (0..dims.len()).filter(|&d| d != axis).chain([axis]).collect();
    let mut back = vec![0; dims.len()];
    for (i, &d) in to_last.iter().enumerate() {
        back[d] = i;
    }
    let moved: Vec<u64> = to_last.iter().map(|&d| dims[d]).collect();
    let last = x.map_both(b, |b, x| b.transpose(x, &to_last));
    let lines = join_parts(b, last);
    let done = transform_lines(b, lines, n, inverse);
    split_parts(b, done, &moved).map_both(b, |b, x| {
        let x = if inverse { divide_by_length(b, x, n) } else { x };
        b.transpose(x, &back)
    })
}

/// The lines along the last axis as `[lines, 2, n]`: real parts, then imaginary ones.
fn join_parts(b: &mut Builder, x: ComplexPair) -> InstId {
    let n = b.dims(x.re).last().copied().unwrap_or(1);
    let lines = b.dims(x.re).iter().product::<u64>() / n;
    let im = x.imaginary_or_zero(b);
    let parts = [x.re, im].map(|x| b.reshape(x, &[lines, 1, n]));
    b.concatenate(&parts, 1)
}

/// Real and imaginary parts of `[lines, 2, n]`, as arrays of sizes `dims`.
fn split_parts(b: &mut Builder, x: InstId, dims: &[u64]) -> ComplexPair {
    let [re, im] = [0, 1].map(|at| {
        let part = b.slice_axis(x, 1, at, at + 1);
        b.reshape(part, dims)
    });
    ComplexPair { re, im: Some(im) }
}

fn divide_by_length(b: &mut Builder, x: InstId, n: u64) -> InstId {
    let scale = b.full_like(x, 1.0 / n as f64);
    b.mul(x, scale)
}

/// The factor of `n` that is transformed first, and the cost of the transform a number; none where `n` has a large prime factor alone.
fn best_radix(n: u64, known: &mut HashMap<u64, (Option<u64>, u64)>) -> (Option<u64>, u64) {
    if n == 1 {
        return (None, 0);
    }
    if let Some(&found) = known.get(&n) {
        return found;
    }
    let mut divisors: Vec<u64> = (2..=RADIX.min(n)).filter(|&d| n.is_multiple_of(d)).collect();
    if divisors.is_empty() && n <= DIRECT {
        divisors.push(n);
    }
    let costs = divisors.iter().map(|&d| (Some(d), 4 * d + PASS + best_radix(n / d, known).1));
    let best = costs.min_by_key(|(_, cost)| *cost);
    // Bluestein's algorithm: two transforms of the next power of two but one
    let found = best.unwrap_or_else(|| (None, 16 * PASS * u64::from(n.ilog2())));
    known.insert(n, found);
    found
}

/// The transform of each line of `[lines, 2, n]`, without division.
fn transform_lines(b: &mut Builder, x: InstId, n: u64, inverse: bool) -> InstId {
    let lines = b.dims(x)[0];
    let mut known = HashMap::new();
    let Some(first) = best_radix(n, &mut known).0 else {
        return if n == 1 { x } else { bluestein(b, x, n, inverse) };
    };
    let apart = b.reshape(x, &[lines, 2, first, n / first]);
    let mut x = product(b, apart, [1, 2], inverse);
    let (mut digits, mut rest) = (vec![lines, first], n / first);
    // [lines, rest, k1·k2·..., 2, k], of which the last digit k is that of the last product
    x = b.reshape(x, &[lines, rest, 1, 2, first]);
    while rest > 1 {
        let [_, _, earlier, _, last] = b.dims(x)[..] else { return x };
        x = multiply_by_roots(b, x, rest * last, inverse);
        let Some(next) = best_radix(rest, &mut known).0 else {
            let ahead = b.transpose(x, &[0, 2, 4, 3, 1]);
            let own = b.reshape(ahead, &[lines * earlier * last, 2, rest]);
            x = bluestein(b, own, rest, inverse);
            digits.push(rest);
            break;
        };
        rest /= next;
        let apart = b.reshape(x, &[lines, next, rest, earlier, 2, last]);
        let sums = product(b, apart, [4, 1], inverse);
        x = b.reshape(sums, &[lines, rest, earlier * last, 2, next]);
        digits.push(next);
    }
    // the digit that was transformed last is the highest
    let count = digits.len() - 1;
    let last = digits.pop().unwrap_or(1);
    let order: Vec<usize> = [0, count, count + 1].into_iter().chain((1..count).rev()).collect();
    let x = b.reshape(x, &[&digits[..], &[2, last]].concat());
    let x = b.transpose(x, &order);
    b.reshape(x, &[lines, 2, n])
}

/// e^(-i·angle), or its conjugate.
fn unit_root(angle: f64, conjugated: bool) -> (f64, f64) {
    (angle.cos(), if conjugated { angle.sin() } else { -angle.sin() })
}

fn table(b: &mut Builder, dtype: DType, dims: &[u64], values: impl Iterator<Item = f64>) -> InstId {
    let wide = Tensor::from_vec(DType::F64, dims.to_vec(), values.collect::<Vec<f64>>());
    b.constant(crate::scalar::eval::convert(&wide, dtype))
}

/// The complex numbers `[lines, rest, digits, 2, last]`, of which entry (j, k) along dimensions 1 and 4 is multiplied by w(n)^(j·k).
fn multiply_by_roots(b: &mut Builder, x: InstId, n: u64, inverse: bool) -> InstId {
    let [_, _, _, _, last] = b.dims(x)[..] else { return x };
    let turn = |i: u64| unit_root(TAU * ((i / last) * (i % last) % n) as f64 / n as f64, inverse);
    let turns: Vec<(f64, f64)> = (0..n).map(turn).collect();
    multiply_by_constants(b, x, &turns)
}

/// The products of the complex numbers `[lines, rest, digits, 2, last]` with constants `[rest, last]`.
fn multiply_by_constants(b: &mut Builder, x: InstId, by: &[(f64, f64)]) -> InstId {
    let (dtype, dims) = (b.dtype(x), b.dims(x).to_vec());
    let [_, rest, _, _, last] = dims[..] else { return x };
    let both = |f: fn(&(f64, f64)) -> f64, g: fn(&(f64, f64)) -> f64| {
        by.chunks_exact(last as usize)
            .flat_map(move |row| row.iter().map(f).chain(row.iter().map(g)))
            .collect::<Vec<_>>()
    };
    let factors = [both(|w| w.0, |w| w.0), both(|w| -w.1, |w| w.1)].map(|values| {
        let factor = table(b, dtype, &[rest, 2, last], values.into_iter());
        b.broadcast(factor, &dims, &[1, 3, 4])
    });
    let swapped = b.add_inst(Op::Reverse(vec![3]), &[x]);
    let (own, other) = (b.mul(x, factors[0]), b.mul(swapped, factors[1]));
    b.add(own, other)
}

/// The transform by the matrix of a digit, along the dimensions `[parts, digit]` of an array: its other dimensions, and at the end real
/// and imaginary parts by the digit.
fn product(b: &mut Builder, x: InstId, [parts, digit]: [usize; 2], inverse: bool) -> InstId {
    let dtype = b.dtype(x);
    let n = b.dims(x)[digit];
    let w: Vec<(f64, f64)> =
        (0..n * n).map(|i| unit_root(TAU * ((i / n) * (i % n) % n) as f64 / n as f64, inverse)).collect();
    // Row j holds what number j adds to the real parts, then what it adds to the imaginary ones.
    let row = |f: fn(&(f64, f64)) -> f64, g: fn(&(f64, f64)) -> f64| {
        w.chunks_exact(n as usize).flat_map(move |row| row.iter().map(f).chain(row.iter().map(g))).collect::<Vec<_>>()
    };
    let (of_real, of_imaginary) = (row(|w| w.0, |w| w.1), row(|w| -w.1, |w| w.0));
    let matrix = table(b, dtype, &[2, n, 2 * n], of_real.into_iter().chain(of_imaginary));
    let dims = DotDims { lhs_contracting: vec![parts, digit], rhs_contracting: vec![0, 1], ..DotDims::default() };
    b.dot(x, matrix, dims)
}

/// The transform of lines `[lines, 2, n]` of a length with a large prime factor by Bluestein's algorithm: a convolution with e^(πi·j²/n).
fn bluestein(b: &mut Builder, x: InstId, n: u64, inverse: bool) -> InstId {
    let size = (2 * n - 1).next_power_of_two();
    let turn = |j: u64| unit_root(PI * (u128::from(j) * u128::from(j) % u128::from(2 * n)) as f64 / n as f64, inverse);
    let chirp: Vec<(f64, f64)> = (0..n).map(turn).collect();
    let mut kernel = vec![(0.0, 0.0); size as usize];
    for (j, w) in chirp.iter().enumerate() {
        kernel[j] = (w.0, -w.1);
        kernel[(size as usize - j) % size as usize] = (w.0, -w.1);
    }
    let Some(spectrum) = transform_constants(&kernel) else { return x };
    let lines = b.dims(x)[0];
    let multiply = |b: &mut Builder, x: InstId, by: &[(f64, f64)]| {
        let length = by.len() as u64;
        let x = b.reshape(x, &[lines, 1, 1, 2, length]);
        let x = multiply_by_constants(b, x, by);
        b.reshape(x, &[lines, 2, length])
    };
    let turned = multiply(b, x, &chirp);
    let zero = b.scalar(b.dtype(x), 0.0);
    let behind = PadDim { low: 0, high: (size - n) as i64, interior: 0 };
    let grown = b.pad(turned, zero, &[PadDim::default(), PadDim::default(), behind]);
    let there = transform_lines(b, grown, size, false);
    let multiplied = multiply(b, there, &spectrum);
    let back = transform_lines(b, multiplied, size, true);
    let cut = b.slice_axis(back, 2, 0, n);
    let last: Vec<(f64, f64)> = chirp.iter().map(|w| (w.0 / size as f64, w.1 / size as f64)).collect();
    multiply(b, cut, &last)
}

/// The transform of constants, by the interpreter.
fn transform_constants(x: &[(f64, f64)]) -> Option<Vec<(f64, f64)>> {
    let mut b = Builder::new("spectrum");
    let dims = vec![x.len() as u64];
    let flat: Vec<f64> = x.iter().flat_map(|v| [v.0, v.1]).collect();
    let bytes: Vec<u8> = flat.iter().flat_map(|v| v.to_le_bytes()).collect();
    let values = b.constant(Tensor::new(DType::C128, dims.clone(), bytes));
    let root = b.add_inst(Op::Fft { kind: FftKind::Fft, length: dims }, &[values]);
    let module = b.finish(root).ok()?;
    let Ok(Literal::Array(t)) = interp::evaluate(&module, module.entry, &[]) else { return None };
    let parts: Vec<f64> =
        t.bytes.chunks_exact(8).map(|c| f64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]])).collect();
    Some(parts.chunks_exact(2).map(|p| (p[0], p[1])).collect())
}
