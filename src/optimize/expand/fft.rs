//! `fft` as products with small matrices.
//!
//! Lines of n = n1·n2 numbers are n1 rows of n2. With w(n) = e^(-2πi/n),
//!
//! `X[k1 + n1·k2] = Σ_j2 w(n2)^(j2·k2) · w(n)^(j2·k1) · Σ_j1 w(n1)^(j1·k1) · x[j1·n2 + j2]`
//!
//! so that a transform is a product with the matrix of n1, a product with constants, and a transform of n2. A length with a large
//! prime factor becomes a convolution of a power of two (Bluestein: `jk = (j² + k² - (k-j)²) / 2`). Numbers are two arrays, real
//! and imaginary parts; constants are computed in doubles. Cost of n = 2^a: a·n·32/5 multiply-adds of real numbers or so.
use super::expand_with;
use crate::diag::Result;
use crate::hlo::attrs::{DotDims, FftKind, PadDim};
use crate::hlo::{Builder, InstId, Literal, Module, Op};
use crate::interp;
use crate::optimize::rewrite::{Changed, rewrite};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};
use std::f64::consts::{PI, TAU};

/// Size of the largest matrix of a step.
const RADIX: u64 = 32;
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
        pair = complete_by_conjugates(b, pair, n);
        return transform_axis(b, pair, last, inverse).re;
    }
    pair = transform_axis(b, pair, last, inverse);
    if kind == FftKind::Rfft {
        pair = pair.map_both(b, |b, x| b.slice_axis(x, last, 0, n / 2 + 1));
    }
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
    let lines = dims.iter().product::<u64>() / n;
    let flat = x.map_both(b, |b, x| {
        let x = b.transpose(x, &to_last);
        b.reshape(x, &[lines, n])
    });
    let done = transform_lines(b, flat, n, inverse);
    done.map_both(b, |b, x| {
        let x = if inverse && n > 1 {
            let scale = b.full_like(x, 1.0 / n as f64);
            b.mul(x, scale)
        } else {
            x
        };
        let x = b.reshape(x, &moved);
        b.transpose(x, &back)
    })
}

/// The largest factor of `n` that is transformed by one matrix.
fn largest_radix(n: u64) -> Option<u64> {
    if n <= RADIX { Some(n) } else { (2..=RADIX).rev().find(|d| n.is_multiple_of(*d)) }
}

/// The transform of each line of `[lines, n]`, without division.
fn transform_lines(b: &mut Builder, x: ComplexPair, n: u64, inverse: bool) -> ComplexPair {
    let lines = b.dims(x.re)[0];
    if n == 1 {
        return x;
    }
    let first = match largest_radix(n) {
        Some(first) => first,
        None if n <= DIRECT => n,
        None => return bluestein(b, x, n, inverse),
    };
    let rest = n / first;
    let rows = x.map_both(b, |b, x| b.reshape(x, &[lines, first, rest]));
    let sums = product(b, rows, first, inverse);
    if rest == 1 {
        return sums.map_both(b, |b, x| b.reshape(x, &[lines, n]));
    }
    // [lines, rest, first], entry (j2, k1) times w(n)^(j2·k1)
    let turns =
        (0..rest * first).map(|i| (i / first) * (i % first) % n).map(|t| unit_root(TAU * t as f64 / n as f64, inverse));
    let turned = multiply_by_constants(b, sums, &turns.collect::<Vec<_>>(), &[rest, first]);
    let lines_of_rest = turned.map_both(b, |b, x| {
        let x = b.transpose(x, &[0, 2, 1]);
        b.reshape(x, &[lines * first, rest])
    });
    let done = transform_lines(b, lines_of_rest, rest, inverse);
    done.map_both(b, |b, x| {
        let x = b.reshape(x, &[lines, first, rest]);
        let x = b.transpose(x, &[0, 2, 1]);
        b.reshape(x, &[lines, n])
    })
}

/// e^(-i·angle), or its conjugate.
fn unit_root(angle: f64, conjugated: bool) -> (f64, f64) {
    (angle.cos(), if conjugated { angle.sin() } else { -angle.sin() })
}

fn table(b: &mut Builder, dtype: DType, dims: &[u64], values: impl Iterator<Item = f64>) -> InstId {
    let wide = Tensor::from_vec(DType::F64, dims.to_vec(), values.collect::<Vec<f64>>());
    b.constant(crate::scalar::eval::convert(&wide, dtype))
}

/// The product of complex numbers with constants in the shape of their last dimensions.
fn multiply_by_constants(b: &mut Builder, x: ComplexPair, by: &[(f64, f64)], dims: &[u64]) -> ComplexPair {
    let dtype = b.dtype(x.re);
    let re = table(b, dtype, dims, by.iter().map(|w| w.0));
    let im = table(b, dtype, dims, by.iter().map(|w| w.1));
    let (mut real, mut imaginary) = (b.mul(x.re, re), b.mul(x.re, im));
    if let Some(x_im) = x.im {
        let (a, c) = (b.mul(x_im, im), b.mul(x_im, re));
        (real, imaginary) = (b.sub(real, a), b.add(imaginary, c));
    }
    ComplexPair { re: real, im: Some(imaginary) }
}

/// The transform of dimension 1 of `[lines, n, rest]` by its matrix: `[lines, rest, n]`.
fn product(b: &mut Builder, x: ComplexPair, n: u64, inverse: bool) -> ComplexPair {
    let dtype = b.dtype(x.re);
    let [lines, _, rest] = b.dims(x.re)[..] else { return x };
    let w: Vec<(f64, f64)> =
        (0..n * n).map(|i| unit_root(TAU * ((i / n) * (i % n) % n) as f64 / n as f64, inverse)).collect();
    // Row j holds what number j adds to the real parts, then what it adds to the imaginary ones.
    let row = |f: fn(&(f64, f64)) -> f64, g: fn(&(f64, f64)) -> f64| {
        w.chunks_exact(n as usize).flat_map(move |row| row.iter().map(f).chain(row.iter().map(g))).collect::<Vec<_>>()
    };
    let by = |b: &mut Builder, x: InstId, values: Vec<f64>| {
        let matrix = table(b, dtype, &[n, 2 * n], values.into_iter());
        let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() };
        b.dot(x, matrix, dims)
    };
    let mut sum = by(b, x.re, row(|w| w.0, |w| w.1));
    if let Some(im) = x.im {
        let other = by(b, im, row(|w| -w.1, |w| w.0));
        sum = b.add(sum, other);
    }
    let sum = b.reshape(sum, &[lines, rest, 2 * n]);
    ComplexPair { re: b.slice_axis(sum, 2, 0, n), im: Some(b.slice_axis(sum, 2, n, 2 * n)) }
}

/// The transform of a length with a large prime factor by Bluestein's algorithm: a convolution with e^(πi·j²/n).
fn bluestein(b: &mut Builder, x: ComplexPair, n: u64, inverse: bool) -> ComplexPair {
    let size = (2 * n - 1).next_power_of_two();
    let turn = |j: u64| unit_root(PI * (u128::from(j) * u128::from(j) % u128::from(2 * n)) as f64 / n as f64, inverse);
    let chirp: Vec<(f64, f64)> = (0..n).map(turn).collect();
    let mut kernel = vec![(0.0, 0.0); size as usize];
    for (j, w) in chirp.iter().enumerate() {
        kernel[j] = (w.0, -w.1);
        kernel[(size as usize - j) % size as usize] = (w.0, -w.1);
    }
    let Some(spectrum) = transform_constants(&kernel) else { return x };
    let turned = multiply_by_constants(b, x, &chirp, &[n]);
    let grown = turned.map_both(b, |b, x| {
        let zero = b.scalar(b.dtype(x), 0.0);
        b.pad(x, zero, &[PadDim::default(), PadDim { low: 0, high: (size - n) as i64, interior: 0 }])
    });
    let there = transform_lines(b, grown, size, false);
    let multiplied = multiply_by_constants(b, there, &spectrum, &[size]);
    let back = transform_lines(b, multiplied, size, true);
    let cut = back.map_both(b, |b, x| b.slice_axis(x, 1, 0, n));
    let last: Vec<(f64, f64)> = chirp.iter().map(|w| (w.0 / size as f64, w.1 / size as f64)).collect();
    multiply_by_constants(b, cut, &last, &[n])
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
