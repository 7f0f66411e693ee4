//! `fft` in terms of complex transforms along the last axis that have a kernel (`schedule/families/fourier/`), small matrices and products.
//!
//! Lines of n = a·b numbers are a rows of b. With w(n) = e^(-2πi/n),
//!
//! `X[k1 + a·k2] = Σ_j2 w(b)^(j2·k2) · w(n)^(j2·k1) · Σ_j1 w(a)^(j1·k1) · x[j1·b + j2]`
//!
//! so that a transform is a transform of a, a product with constants, and a transform of b. Where n is the length of a kernel it is not
//! divided; few numbers, and a prime number of them, are multiplied with the matrix of the transform. A length with a large prime factor
//! becomes a convolution of a power of two (Bluestein: `jk = (j² + k² - (k-j)²) / 2`). Constants are computed in doubles. An even number n of
//! real numbers is transformed as n/2 complex ones, the elements with even indices being the real parts (`real.rs`).
pub mod kernel;
mod real;

use self::kernel::fft_radices;
use super::expand_with;
use crate::diag::Result;
use crate::hlo::attrs::{DotDims, FftKind, PadDim};
use crate::hlo::{Builder, InstId, Literal, Module, Op};
use crate::interp;
use crate::optimize::rewrite::{Changed, rewrite};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};
use std::f64::consts::{PI, TAU};

/// Largest length that is transformed by one product with a matrix, whatever its factors.
const FEW: u64 = 16;
/// Largest prime length that is transformed by one product.
const MOST_DIRECT: u64 = 160;

/// Replaces every `fft` without a kernel.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| {
        let Op::Fft { kind, length } = editor.op(id).clone() else { return Ok(None) };
        let Some(shape) = editor.array(id).cloned() else { return Ok(None) };
        if fft_radices(kind, &length, shape.dtype).is_some() && shape.elements() > 0 {
            return Ok(None);
        }
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
    let to_last: Vec<usize> = (0..dims.len()).filter(|&d| d != axis).chain([axis]).collect();
    let mut back = vec![0; dims.len()];
    for (i, &d) in to_last.iter().enumerate() {
        back[d] = i;
    }
    let moved: Vec<u64> = to_last.iter().map(|&d| dims[d]).collect();
    let lines = [moved.iter().product::<u64>() / dims[axis], dims[axis]];
    let last = x.map_both(b, |b, x| {
        let x = b.transpose(x, &to_last);
        b.reshape(x, &lines)
    });
    transform_lines(b, last, inverse).map_both(b, |b, x| {
        let x = b.reshape(x, &moved);
        b.transpose(x, &back)
    })
}

/// The transform of each line of `[lines, n]`; the inverse divides by n.
fn transform_lines(b: &mut Builder, x: ComplexPair, inverse: bool) -> ComplexPair {
    let [lines, n] = b.dims(x.re)[..] else { return x };
    let kind = if inverse { FftKind::Ifft } else { FftKind::Fft };
    let complex = if b.dtype(x.re) == DType::F64 { DType::C128 } else { DType::C64 };
    let has_kernel = |n: u64| fft_radices(kind, &[n], complex).is_some();
    let is_prime = |n: u64| (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    if n == 1 {
        return x;
    }
    let has_matrix = |n: u64| n <= FEW || n <= MOST_DIRECT && is_prime(n);
    if has_matrix(n) {
        return multiply_by_matrix(b, x, inverse);
    }
    if has_kernel(n) {
        let im = x.imaginary_or_zero(b);
        let lines = b.binary(ScalarOp::Complex, x.re, im);
        let done = b.add_inst(Op::Fft { kind, length: vec![n] }, &[lines]);
        return ComplexPair { re: b.unary(ScalarOp::Real, done), im: Some(b.unary(ScalarOp::Imag, done)) };
    }
    let divisors = (2..n).take_while(|d| d * d <= n).filter(|&d| n.is_multiple_of(d)).flat_map(|d| [d, n / d]);
    let Some(first) = divisors.filter(|&d| has_matrix(d) || has_kernel(d)).max() else {
        return bluestein(b, x, inverse);
    };
    let rest = n / first;
    let apart = x.map_both(b, |b, x| {
        let x = b.reshape(x, &[lines, first, rest]);
        let x = b.transpose(x, &[0, 2, 1]);
        b.reshape(x, &[lines * rest, first])
    });
    let roots = |i: u64| unit_root(TAU * ((i / first) * (i % first) % n) as f64 / n as f64, inverse);
    let roots: Vec<(f64, f64)> = (0..n).map(roots).collect();
    let done = transform_lines(b, apart, inverse).map_both(b, |b, x| b.reshape(x, &[lines, n]));
    let turned = multiply_by_constants(b, done, &roots).map_both(b, |b, x| {
        let x = b.reshape(x, &[lines, rest, first]);
        let x = b.transpose(x, &[0, 2, 1]);
        b.reshape(x, &[lines * first, rest])
    });
    transform_lines(b, turned, inverse).map_both(b, |b, x| {
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

/// The products of lines of complex numbers `[lines, n]` with n constants.
fn multiply_by_constants(b: &mut Builder, x: ComplexPair, by: &[(f64, f64)]) -> ComplexPair {
    let (dtype, dims, im) = (b.dtype(x.re), b.dims(x.re).to_vec(), x.imaginary_or_zero(b));
    let [cos, sin] = [|w: &(f64, f64)| w.0, |w: &(f64, f64)| w.1].map(|part| {
        let factor = table(b, dtype, &[by.len() as u64], by.iter().map(part));
        b.broadcast(factor, &dims, &[1])
    });
    let [re_cos, im_sin, re_sin, im_cos] = [(x.re, cos), (im, sin), (x.re, sin), (im, cos)].map(|(x, by)| b.mul(x, by));
    ComplexPair { re: b.sub(re_cos, im_sin), im: Some(b.add(re_sin, im_cos)) }
}

/// The transform of lines `[lines, n]` by the matrix of n; real and imaginary parts are an axis that the product sums along too.
fn multiply_by_matrix(b: &mut Builder, x: ComplexPair, inverse: bool) -> ComplexPair {
    let (dtype, dims) = (b.dtype(x.re), b.dims(x.re).to_vec());
    let [lines, n] = dims[..] else { return x };
    let scale = if inverse { 1.0 / n as f64 } else { 1.0 };
    let root = |i: u64| unit_root(TAU * ((i / n) * (i % n) % n) as f64 / n as f64, inverse);
    let w: Vec<(f64, f64)> = (0..n * n).map(root).map(|(cos, sin)| (cos * scale, sin * scale)).collect();
    // Row j holds what number j adds to the real parts, then what it adds to the imaginary ones.
    let row = |f: fn(&(f64, f64)) -> f64, g: fn(&(f64, f64)) -> f64| {
        w.chunks_exact(n as usize).flat_map(move |row| row.iter().map(f).chain(row.iter().map(g))).collect::<Vec<_>>()
    };
    let (of_real, of_imaginary) = (row(|w| w.0, |w| w.1), row(|w| -w.1, |w| w.0));
    let matrix = table(b, dtype, &[2, n, 2 * n], of_real.into_iter().chain(of_imaginary));
    let im = x.imaginary_or_zero(b);
    let parts = [x.re, im].map(|x| b.reshape(x, &[lines, 1, n]));
    let parts = b.concatenate(&parts, 1);
    let contracted = DotDims { lhs_contracting: vec![1, 2], rhs_contracting: vec![0, 1], ..DotDims::default() };
    let sums = b.dot(parts, matrix, contracted);
    ComplexPair { re: b.slice_axis(sums, 1, 0, n), im: Some(b.slice_axis(sums, 1, n, 2 * n)) }
}

/// The transform of lines `[lines, n]` of a length with a large prime factor by Bluestein's algorithm: a convolution with e^(πi·j²/n).
fn bluestein(b: &mut Builder, x: ComplexPair, inverse: bool) -> ComplexPair {
    let n = b.dims(x.re).last().copied().unwrap_or(1);
    let size = (2 * n - 1).next_power_of_two();
    let turn = |j: u64| unit_root(PI * (u128::from(j) * u128::from(j) % u128::from(2 * n)) as f64 / n as f64, inverse);
    let chirp: Vec<(f64, f64)> = (0..n).map(turn).collect();
    let mut kernel = vec![(0.0, 0.0); size as usize];
    for (j, w) in chirp.iter().enumerate() {
        kernel[j] = (w.0, -w.1);
        kernel[(size as usize - j) % size as usize] = (w.0, -w.1);
    }
    let Some(spectrum) = transform_constants(&kernel) else { return x };
    let zero = b.scalar(b.dtype(x.re), 0.0);
    let behind = PadDim { low: 0, high: (size - n) as i64, interior: 0 };
    let grown = multiply_by_constants(b, x, &chirp).map_both(b, |b, x| b.pad(x, zero, &[PadDim::default(), behind]));
    let there = transform_lines(b, grown, false);
    let multiplied = multiply_by_constants(b, there, &spectrum);
    let cut = transform_lines(b, multiplied, true).map_both(b, |b, x| b.slice_axis(x, 1, 0, n));
    let scale = if inverse { 1.0 / n as f64 } else { 1.0 };
    let last: Vec<(f64, f64)> = chirp.iter().map(|w| (w.0 * scale, w.1 * scale)).collect();
    multiply_by_constants(b, cut, &last)
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
