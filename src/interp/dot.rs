//! `dot`: operands brought to `[batch, m, k]` and `[batch, k, n]`, then one typed product.
use std::ops::Range;

use bytemuck::Pod;
use num_complex::Complex;

use super::machine::{Machine, invalid};
use super::shape_ops::transpose;
use crate::diag::Result;
use crate::hlo::attrs::DotDims;
use crate::hlo::{ArrayShape, Shape, infer};
use crate::scalar::eval;
use crate::tensor::{DType, DTypeClass, Tensor};

/// What a product needs of its elements.
pub(super) trait Ring: Pod + Send {
    /// The neutral element of the sum.
    const ZERO: Self;
    /// `self + x * y`.
    fn plus(self, x: Self, y: Self) -> Self;
    /// `self + x`.
    fn sum(self, x: Self) -> Self;
}

macro_rules! rings {
    ($($int:ident)*; $($float:ty = $zero:expr),*) => {
        $(impl Ring for $int {
            const ZERO: $int = 0;
            fn plus(self, x: $int, y: $int) -> $int { self.wrapping_add(x.wrapping_mul(y)) }
            fn sum(self, x: $int) -> $int { self.wrapping_add(x) }
        })*
        $(impl Ring for $float {
            const ZERO: $float = $zero;
            fn plus(self, x: $float, y: $float) -> $float { self + x * y }
            fn sum(self, x: $float) -> $float { self + x }
        })*
    };
}
rings! { i32 i64 u32 u64; f32 = 0.0, f64 = 0.0, Complex<f32> = Complex::new(0.0, 0.0), Complex<f64> = Complex::new(0.0, 0.0) }

/// The type in which products of results of `dtype` are summed.
pub(super) fn accumulator(dtype: DType) -> DType {
    match dtype.class() {
        DTypeClass::Pred => DType::S32,
        DTypeClass::Signed if dtype.bits() < 32 => DType::S32,
        DTypeClass::Unsigned if dtype.bits() < 32 => DType::U32,
        DTypeClass::Float if dtype != DType::F64 => DType::F32,
        _ => dtype,
    }
}

/// Runs `$body` with `$T` the Rust type of an accumulator.
macro_rules! with_ring {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::S32 => {
                type $T = i32;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::S64 => {
                type $T = i64;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::C64 => {
                type $T = num_complex::Complex<f32>;
                $body
            }
            DType::C128 => {
                type $T = num_complex::Complex<f64>;
                $body
            }
            _ => {
                type $T = f32;
                $body
            }
        }
    };
}
pub(super) use with_ring;

/// Batched matrix product; the element type is that of `shape`, f16 and bf16 are summed in f32.
pub(super) fn dot(m: &Machine, x: &Tensor, y: &Tensor, d: &DotDims, shape: &ArrayShape) -> Result<Tensor> {
    let array = |t: &Tensor| Shape::array(shape.dtype, t.dims.clone());
    let inferred = infer::infer(&crate::hlo::Op::Dot(d.clone()), &[&array(x), &array(y)], m.module).map_err(invalid)?;
    // Actual sizes may be below the declared bounds; the machine compares them.
    let Some(shape) = inferred.as_array() else { return Err(invalid(format!("{shape} is declared for dot"))) };
    let sum = accumulator(shape.dtype);
    let free = |t: &Tensor, batch: &[usize], contracted: &[usize]| -> Vec<usize> {
        (0..t.dims.len()).filter(|i| !batch.contains(i) && !contracted.contains(i)).collect()
    };
    let size = |t: &Tensor, axes: &[usize]| axes.iter().map(|&a| t.dims[a]).product::<u64>() as usize;
    let x_free = free(x, &d.lhs_batch, &d.lhs_contracting);
    let y_free = free(y, &d.rhs_batch, &d.rhs_contracting);
    let (b, rows, k, n) = (size(x, &d.lhs_batch), size(x, &x_free), size(x, &d.lhs_contracting), size(y, &y_free));
    m.charge((b as u64).saturating_mul(rows as u64).saturating_mul(k as u64).saturating_mul(n as u64))?;
    let xs = eval::convert(&transpose(x, &[&d.lhs_batch[..], &x_free, &d.lhs_contracting].concat()), sum);
    let by_rows = n >= 8;
    let y_order = if by_rows {
        [&d.rhs_batch[..], &d.rhs_contracting, &y_free].concat()
    } else {
        [&d.rhs_batch[..], &y_free, &d.rhs_contracting].concat()
    };
    let ys = eval::convert(&transpose(y, &y_order), sum);
    let out = with_ring!(sum, T => {
        let (xs, ys) = (xs.view::<T>(), ys.view::<T>());
        let mut out = vec![<T as Ring>::ZERO; b * rows * n];
        for i in 0..b * rows {
            let batch = i / rows.max(1);
            let (x_row, y_matrix) = (&xs[span(i, k)], &ys[span(batch, k * n)]);
            let out_row = &mut out[span(i, n)];
            if by_rows {
                row_times_strided(out_row, x_row, y_matrix, n);
            } else {
                for (j, o) in out_row.iter_mut().enumerate() {
                    *o = inner_product(x_row, &y_matrix[span(j, k)]);
                }
            }
        }
        Tensor::from_vec(sum, shape.dims.clone(), out)
    });
    Ok(eval::convert(&out, shape.dtype))
}

fn span(i: usize, n: usize) -> Range<usize> {
    i * n..(i + 1) * n
}

/// Σ xᵢ yᵢ in eight partial sums.
fn inner_product<T: Ring>(x: &[T], y: &[T]) -> T {
    let mut parts = [T::ZERO; 8];
    let (xs, ys) = (x.chunks_exact(8), y.chunks_exact(8));
    let mut total = xs.remainder().iter().zip(ys.remainder()).fold(T::ZERO, |s, (&a, &b)| s.plus(a, b));
    for (a, b) in xs.zip(ys) {
        for i in 0..8 {
            parts[i] = parts[i].plus(a[i], b[i]);
        }
    }
    for p in parts {
        total = total.sum(p);
    }
    total
}

/// `out += x · matrix`, the matrix having rows of `n` elements that lie `stride >= n` apart.
pub(super) fn row_times_strided<T: Ring>(out: &mut [T], x: &[T], matrix: &[T], stride: usize) {
    let n = out.len();
    let mut k = 0;
    while k + 4 <= x.len() {
        let row = |i: usize| &matrix[(k + i) * stride..(k + i) * stride + n];
        let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
        let (x0, x1, x2, x3) = (x[k], x[k + 1], x[k + 2], x[k + 3]);
        for ((((o, &a), &b), &c), &d) in out.iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
            *o = o.plus(x0, a).plus(x1, b).plus(x2, c).plus(x3, d);
        }
        k += 4;
    }
    for (i, &v) in x.iter().enumerate().skip(k) {
        for (o, &a) in out.iter_mut().zip(&matrix[i * stride..i * stride + n]) {
            *o = o.plus(v, a);
        }
    }
}
