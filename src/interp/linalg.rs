//! Linear algebra and batch normalization, computed in f64.
use num_complex::Complex;

use super::box_walk::strides;
use super::operands::invalid_hlo;
use crate::diag::Result;
use crate::hlo::attrs::{FftKind, Transpose};
use crate::hlo::{ArrayShape, Literal};
use crate::scalar::eval::{complex_tensor, complex_values, convert};
use crate::tensor::{DType, Tensor};

type C = Complex<f64>;

/// Form in which `triangular-solve` takes its operands.
pub(super) struct TriangularForm {
    pub(super) left_side: bool,
    pub(super) lower: bool,
    pub(super) unit_diagonal: bool,
    pub(super) transpose: Transpose,
}

/// Evaluates `fft`, a discrete Fourier transform over the last dimensions.
pub(super) fn fft(x: &Tensor, kind: FftKind, length: &[u64], shape: &ArrayShape) -> Result<Tensor> {
    let mut values = complex_values(x);
    let mut dims = x.dims.clone();
    let lead = dims.len() - length.len();
    let last = dims.len() - 1;
    let n = length[length.len() - 1] as usize;
    if values.is_empty() || shape.elements() == 0 {
        return Ok(complex_tensor(shape.dtype, shape.dims.clone(), vec![C::ZERO; shape.elements() as usize]));
    }
    match kind {
        FftKind::Fft | FftKind::Ifft => {
            (lead..=last).for_each(|a| along(&mut values, &dims, a, kind == FftKind::Ifft));
        }
        FftKind::Rfft => {
            along(&mut values, &dims, last, false);
            values = values.chunks_exact(n).flat_map(|line| line[..n / 2 + 1].to_vec()).collect();
            dims[last] = n as u64 / 2 + 1;
            (lead..last).for_each(|a| along(&mut values, &dims, a, false));
        }
        FftKind::Irfft => {
            (lead..last).for_each(|a| along(&mut values, &dims, a, true));
            let whole =
                |line: &[C]| (0..n).map(|k| if k <= n / 2 { line[k] } else { line[n - k].conj() }).collect::<Vec<_>>();
            values = values.chunks_exact(n / 2 + 1).flat_map(whole).collect();
            dims[last] = n as u64;
            along(&mut values, &dims, last, true);
        }
    }
    Ok(complex_tensor(shape.dtype, shape.dims.clone(), values))
}

/// Transforms every line along `axis`; the inverse transform divides by the length.
fn along(values: &mut [C], dims: &[u64], axis: usize, inverse: bool) {
    let (n, step) = (dims[axis] as usize, strides(dims)[axis] as usize);
    let mut line = vec![C::ZERO; n];
    for outer in (0..values.len()).step_by((n * step).max(1)) {
        for start in outer..outer + step {
            (0..n).for_each(|i| line[i] = values[start + i * step]);
            let done = if inverse {
                let conjugated: Vec<C> = line.iter().map(C::conj).collect();
                transform(&conjugated).into_iter().map(|v| v.conj() / n as f64).collect()
            } else {
                transform(&line)
            };
            (0..n).for_each(|i| values[start + i * step] = done[i]);
        }
    }
}

fn root(k: usize, n: usize) -> C {
    C::from_polar(1.0, -std::f64::consts::TAU * (k % n) as f64 / n as f64)
}

/// Forward transform of any length: by halves (even lengths of powers of two), by definition, or by Bluestein's algorithm.
fn transform(x: &[C]) -> Vec<C> {
    let n = x.len();
    if n.is_power_of_two() {
        return by_halves(x);
    }
    if n <= 64 {
        return (0..n).map(|k| x.iter().enumerate().map(|(i, v)| v * root(i * k, n)).sum()).collect();
    }
    // e^(-2πi jk/n) = w(j) w(k) conj(w(k - j)) with w(j) = e^(-πi j²/n).
    let chirp: Vec<C> = (0..n).map(|j| root((j as u128 * j as u128 % (2 * n) as u128) as usize, 2 * n)).collect();
    let size = (2 * n - 1).next_power_of_two();
    let (mut a, mut b) = (vec![C::ZERO; size], vec![C::ZERO; size]);
    for j in 0..n {
        a[j] = x[j] * chirp[j];
        b[j] = chirp[j].conj();
        b[(size - j) % size] = chirp[j].conj();
    }
    let product: Vec<C> = by_halves(&a).iter().zip(by_halves(&b)).map(|(p, q)| (p * q).conj()).collect();
    let folded = by_halves(&product);
    (0..n).map(|k| folded[k].conj() / size as f64 * chirp[k]).collect()
}

/// Cooley-Tukey transform of a power of two.
fn by_halves(x: &[C]) -> Vec<C> {
    let n = x.len();
    let bits = n.trailing_zeros();
    let mut out: Vec<C> =
        (0..n).map(|i| x[if bits == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - bits) }]).collect();
    let mut half = 1;
    while half < n {
        let roots: Vec<C> = (0..half).map(|k| root(k, 2 * half)).collect();
        for block in out.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((a, b), w) in low.iter_mut().zip(high).zip(&roots) {
                let (u, v) = (*a, *b * w);
                *a = u + v;
                *b = u - v;
            }
        }
        half *= 2;
    }
    out
}

/// Order of the square matrices in the last two dimensions.
fn square(x: &Tensor) -> Result<usize> {
    match x.dims[..] {
        [.., rows, columns] if rows == columns => Ok(rows as usize),
        _ => Err(invalid_hlo(format!("{x:?} holds no square matrices"))),
    }
}

/// Cholesky factor of the last two dimensions, with zeros in the other triangle; all NaN for a matrix that is not positive
/// definite.
pub(super) fn cholesky(x: &Tensor, lower: bool) -> Result<Tensor> {
    let n = square(x)?;
    let a = complex_values(x);
    let mut out = vec![C::ZERO; a.len()];
    for (a, out) in a.chunks_exact((n * n).max(1)).zip(out.chunks_exact_mut((n * n).max(1))) {
        let entry = |i: usize, j: usize| if lower { a[i * n + j] } else { a[j * n + i].conj() };
        let mut l = vec![C::ZERO; n * n];
        for j in 0..n {
            let square = (0..j).map(|k| l[j * n + k].norm_sqr()).sum::<f64>();
            let pivot = (entry(j, j).re - square).sqrt();
            l[j * n + j] = C::new(pivot, 0.0);
            for i in j + 1..n {
                let done = (0..j).map(|k| l[i * n + k] * l[j * n + k].conj()).sum::<C>();
                l[i * n + j] = (entry(i, j) - done) / pivot;
            }
        }
        // Elements behind a NaN pivot are NaN as well.
        if l.last().is_some_and(|pivot| pivot.re.is_nan()) {
            out.fill(C::new(f64::NAN, 0.0));
            continue;
        }
        for i in 0..n {
            for j in 0..n {
                out[i * n + j] = if lower { l[i * n + j] } else { l[j * n + i].conj() };
            }
        }
    }
    Ok(complex_tensor(x.dtype, x.dims.clone(), out))
}

/// Quotient whose parts are divided separately if the divisor is real, so that a divisor of 0 gives infinities.
fn quotient(a: C, b: C) -> C {
    if b.im == 0.0 { a.unscale(b.re) } else { a / b }
}

/// Evaluates `triangular-solve`: x of op(a) x = b, or of x op(a) = b.
pub(super) fn triangular_solve(a: &Tensor, b: &Tensor, form: TriangularForm) -> Result<Tensor> {
    let n = square(a)?;
    let rank = b.dims.len();
    let side = if form.left_side { rank.wrapping_sub(2) } else { rank.wrapping_sub(1) };
    let fits = rank == a.dims.len()
        && a.dtype == b.dtype
        && b.dims[..rank - 2] == a.dims[..rank - 2]
        && b.dims[side] as usize == n;
    if !fits {
        return Err(invalid_hlo(format!("triangular-solve of {a:?} and {b:?}")));
    }
    let columns = b.dims[rank - 2..].iter().product::<u64>() as usize / n.max(1);
    let (matrices, mut out) = (complex_values(a), complex_values(b));
    let transposed = form.transpose != Transpose::No;
    let is_real = !b.dtype.is_complex();
    for (a, x) in matrices.chunks_exact((n * n).max(1)).zip(out.chunks_exact_mut((n * columns).max(1))) {
        // A system from the right is the transposed system from the left.
        let flip = transposed == form.left_side;
        let entry = |i: usize, j: usize| {
            let (row, column) = if flip { (j, i) } else { (i, j) };
            let value = a[row * n + column];
            match (row == column && form.unit_diagonal, form.transpose == Transpose::Adjoint) {
                (true, _) => C::ONE,
                (false, true) => value.conj(),
                (false, false) => value,
            }
        };
        let forward = form.lower != flip;
        for c in 0..columns {
            let at = |i: usize| if form.left_side { i * columns + c } else { c * n + i };
            for step in 0..n {
                let i = if forward { step } else { n - 1 - step };
                let known = if forward { 0..i } else { i + 1..n };
                let done = known.map(|j| entry(i, j) * x[at(j)]).sum::<C>();
                x[at(i)] = quotient(x[at(i)] - done, entry(i, i));
                if is_real {
                    // Infinity times an imaginary part of 0 would be NaN.
                    x[at(i)].im = 0.0;
                }
            }
        }
    }
    Ok(complex_tensor(b.dtype, b.dims.clone(), out))
}

/// Array as f64, with the channel of each element.
struct Channels {
    values: Vec<f64>,
    step: usize,
    count: usize,
}

impl Channels {
    fn new(x: &Tensor, axis: usize) -> Result<Channels> {
        let count = *x.dims.get(axis).ok_or_else(|| invalid_hlo("feature_index is beyond the rank"))? as usize;
        Ok(Channels { values: doubles(x), step: strides(&x.dims)[axis] as usize, count })
    }
    fn of(&self, i: usize) -> usize {
        i / self.step % self.count
    }
    /// Sum of `f(index, value)` over each channel.
    fn sums(&self, f: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        let mut out = vec![0.0; self.count];
        for (i, &v) in self.values.iter().enumerate() {
            out[self.of(i)] += f(i, v);
        }
        out
    }
}

fn doubles(x: &Tensor) -> Vec<f64> {
    convert(x, DType::F64).view::<f64>().into_owned()
}

fn rounded(dtype: DType, dims: &[u64], values: Vec<f64>) -> Literal {
    Literal::Array(convert(&Tensor::from_vec(DType::F64, dims.to_vec(), values), dtype))
}

/// Channel vectors among the operands, each of `count` elements.
fn vectors<const N: usize>(operands: &[&Tensor], count: usize) -> Result<[Vec<f64>; N]> {
    let all: Vec<Vec<f64>> = operands.iter().take(N).map(|t| doubles(t)).collect();
    match <[Vec<f64>; N]>::try_from(all) {
        Ok(all) if all.iter().all(|v| v.len() == count) => Ok(all),
        _ => Err(invalid_hlo("batch norm needs one number a channel")),
    }
}

/// Evaluates `batch-norm-training`: (y, mean, biased variance) from (x, scale, offset).
pub(super) fn batch_norm_training(operands: &[&Tensor], epsilon: f32, axis: usize) -> Result<Literal> {
    let x = operands.first().ok_or_else(|| invalid_hlo("batch norm needs operands"))?;
    let c = Channels::new(x, axis)?;
    let [scale, offset] = vectors(&operands[1..], c.count)?;
    let n = (c.values.len() / c.count.max(1)) as f64;
    let mean: Vec<f64> = c.sums(|_, v| v).iter().map(|s| s / n).collect();
    let variance: Vec<f64> = c.sums(|i, v| (v - mean[c.of(i)]).powi(2)).iter().map(|s| s / n).collect();
    let y = normalised(&c, &scale, &offset, &mean, &variance, epsilon);
    let channel = [c.count as u64];
    Ok(Literal::Tuple(vec![
        rounded(x.dtype, &x.dims, y),
        rounded(x.dtype, &channel, mean),
        rounded(x.dtype, &channel, variance),
    ]))
}

fn normalised(c: &Channels, scale: &[f64], offset: &[f64], mean: &[f64], variance: &[f64], epsilon: f32) -> Vec<f64> {
    let one = |(i, v): (usize, &f64)| {
        let k = c.of(i);
        (v - mean[k]) / (variance[k] + f64::from(epsilon)).sqrt() * scale[k] + offset[k]
    };
    c.values.iter().enumerate().map(one).collect()
}

/// Evaluates `batch-norm-inference`: y from (x, scale, offset, mean, variance).
pub(super) fn batch_norm_inference(operands: &[&Tensor], epsilon: f32, axis: usize) -> Result<Literal> {
    let x = operands.first().ok_or_else(|| invalid_hlo("batch norm needs operands"))?;
    let c = Channels::new(x, axis)?;
    let [scale, offset, mean, variance] = vectors(&operands[1..], c.count)?;
    Ok(rounded(x.dtype, &x.dims, normalised(&c, &scale, &offset, &mean, &variance, epsilon)))
}

/// Evaluates `batch-norm-grad`: (grad x, grad scale, grad offset) from (x, scale, mean, variance, grad y).
pub(super) fn batch_norm_grad(operands: &[&Tensor], epsilon: f32, axis: usize) -> Result<Literal> {
    let [x, _, _, _, grad] = operands else { return Err(invalid_hlo("batch-norm-grad needs five operands")) };
    let c = Channels::new(x, axis)?;
    let [scale, mean, variance] = vectors(&operands[1..4], c.count)?;
    let dy = doubles(grad);
    if dy.len() != c.values.len() {
        return Err(invalid_hlo("the gradient has not the sizes of the operand"));
    }
    let n = (c.values.len() / c.count.max(1)) as f64;
    let root: Vec<f64> = variance.iter().map(|v| 1.0 / (v + f64::from(epsilon)).sqrt()).collect();
    let sum = c.sums(|i, _| dy[i]);
    let along = c.sums(|i, v| dy[i] * (v - mean[c.of(i)]));
    let dx = c.values.iter().enumerate().map(|(i, v)| {
        let k = c.of(i);
        scale[k] * root[k] * (dy[i] - sum[k] / n - (v - mean[k]) * root[k] * root[k] * along[k] / n)
    });
    let dx = dx.collect();
    let d_scale = along.iter().zip(&root).map(|(a, r)| a * r).collect();
    let channel = [c.count as u64];
    Ok(Literal::Tuple(vec![
        rounded(x.dtype, &x.dims, dx),
        rounded(x.dtype, &channel, d_scale),
        rounded(x.dtype, &channel, sum),
    ]))
}
