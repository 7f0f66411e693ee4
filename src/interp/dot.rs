//! `dot`: operands are rearranged to `[batch, m, k]` and `[batch, k, n]`, followed by one typed product.
use std::ops::Range;

use bytemuck::Pod;
use num_complex::Complex;

use super::machine::Machine;
use super::operands::invalid_hlo;
use super::shape_ops::transpose;
use crate::diag::Result;
use crate::hlo::attrs::DotDims;
use crate::hlo::{ArrayShape, Shape, infer};
use crate::scalar::eval;
use crate::scalar::sums::SumParts;
use crate::tensor::{DType, Tensor};

/// Arithmetic that a matrix product needs of its element type: a sum type with its zero, and multiply-add.
pub(super) trait Ring: Pod + Send {
    /// Type of sums of products.
    type Sum: Pod + Send;
    /// Element type of `Sum`.
    const SUM: DType;
    /// Zero of the sum type.
    const ZERO: Self::Sum;
    /// Multiply-add: `sum + x * y`.
    fn plus(sum: Self::Sum, x: Self, y: Self) -> Self::Sum;
    /// Multiply-add whose product is rounded before the addition, for float sums.
    fn plus_rounded(sum: Self::Sum, x: Self, y: Self) -> Self::Sum {
        Self::plus(sum, x, y)
    }
    /// Sum of two partial sums.
    fn add(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// Division of each of `outputs` sums of `terms` terms into parts.
    fn parts(terms: u64, _outputs: u64) -> SumParts {
        SumParts::in_order(terms)
    }
}

/// f32 sums follow machine code and TensorFlow: one rounding per term, and sums in parts. The f64 product of two f32 is exact,
/// and its sum nearly always rounds to f32 as a fused multiply-add does.
impl Ring for f32 {
    type Sum = f32;
    const SUM: DType = DType::F32;
    const ZERO: f32 = 0.0;
    fn plus(sum: f32, x: f32, y: f32) -> f32 {
        (f64::from(x) * f64::from(y) + f64::from(sum)) as f32
    }
    fn plus_rounded(sum: f32, x: f32, y: f32) -> f32 {
        sum + x * y
    }
    fn add(a: f32, b: f32) -> f32 {
        a + b
    }
    fn parts(terms: u64, outputs: u64) -> SumParts {
        SumParts::of_floats(terms, 1, outputs)
    }
}

macro_rules! rings {
    ($($int:ident $dtype:ident),*; $($float:ty => $wide:ty, $wide_dtype:ident, $zero:expr, $widen:expr);* $(;)?) => {
        $(impl Ring for $int {
            type Sum = $int;
            const SUM: DType = DType::$dtype;
            const ZERO: $int = 0;
            fn plus(sum: $int, x: $int, y: $int) -> $int { sum.wrapping_add(x.wrapping_mul(y)) }
            fn add(a: $int, b: $int) -> $int { a.wrapping_add(b) }
        })*
        $(impl Ring for $float {
            type Sum = $wide;
            const SUM: DType = DType::$wide_dtype;
            const ZERO: $wide = $zero;
            fn plus(sum: $wide, x: $float, y: $float) -> $wide { sum + ($widen)(x) * ($widen)(y) }
            fn add(a: $wide, b: $wide) -> $wide { a + b }
        })*
    };
}
rings! {
    i32 S32, i64 S64, u32 U32, u64 U64;
    f64 => f64, F64, 0.0, |x: f64| x;
    Complex<f32> => Complex<f64>, C128, Complex::new(0.0, 0.0), |x: Complex<f32>| Complex::new(f64::from(x.re), f64::from(x.im));
    Complex<f64> => Complex<f64>, C128, Complex::new(0.0, 0.0), |x: Complex<f64>| x;
}

/// Runs `$body` with `$T` as the Rust type of the factors.
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

/// Evaluates a batched matrix product; the element type is that of `shape`.
pub(super) fn dot(m: &Machine, x: &Tensor, y: &Tensor, d: &DotDims, shape: &ArrayShape) -> Result<Tensor> {
    let array = |t: &Tensor| Shape::array(shape.dtype, t.dims.clone());
    let inferred = infer::infer(&crate::hlo::Op::Dot(Box::new(d.clone())), &[&array(x), &array(y)], m.module)
        .map_err(invalid_hlo)?;
    // Actual sizes may be below the declared bounds; the machine compares them.
    let Some(shape) = inferred.as_array() else { return Err(invalid_hlo(format!("{shape} is declared for dot"))) };
    let product = x.dtype.product_type(y.dtype, shape.dtype);
    let work = product.accumulator_type();
    let free = |t: &Tensor, batch: &[usize], contracted: &[usize]| -> Vec<usize> {
        (0..t.dims.len()).filter(|i| !batch.contains(i) && !contracted.contains(i)).collect()
    };
    let size = |t: &Tensor, axes: &[usize]| axes.iter().map(|&a| t.dims[a]).product::<u64>() as usize;
    let x_free = free(x, &d.lhs_batch, &d.lhs_contracting);
    let y_free = free(y, &d.rhs_batch, &d.rhs_contracting);
    let (b, rows, k, n) = (size(x, &d.lhs_batch), size(x, &x_free), size(x, &d.lhs_contracting), size(y, &y_free));
    m.charge_work((b as u64).saturating_mul(rows as u64).saturating_mul(k as u64).saturating_mul(n as u64))?;
    let xs = eval::convert(&transpose(x, &[&d.lhs_batch[..], &x_free, &d.lhs_contracting].concat()), work);
    let by_rows = n >= 8;
    let y_order = if by_rows {
        [&d.rhs_batch[..], &d.rhs_contracting, &y_free].concat()
    } else {
        [&d.rhs_batch[..], &y_free, &d.rhs_contracting].concat()
    };
    let ys = eval::convert(&transpose(y, &y_order), work);
    let out = with_ring!(work, T => {
        let (xs, ys) = (xs.view::<T>(), ys.view::<T>());
        let mut out = vec![<T as Ring>::ZERO; b * rows * n];
        let mut sums = RowAccumulators::<T>::new(T::parts(k as u64, (rows * n) as u64), n);
        for i in 0..b * rows {
            let batch = i / rows.max(1);
            let (x_row, y_matrix) = (&xs[span(i, k)], &ys[span(batch, k * n)]);
            let out_row = &mut out[span(i, n)];
            if by_rows {
                sums.accumulate(out_row, |acc, terms| {
                    add_row_times_matrix::<T>(acc, &x_row[terms.clone()], &y_matrix[terms.start * n..terms.end * n], n);
                });
            } else {
                for (j, o) in out_row.iter_mut().enumerate() {
                    *o = inner_product::<T>(x_row, &y_matrix[span(j, k)]);
                }
            }
        }
        Tensor::from_vec(<T as Ring>::SUM, shape.dims.clone(), out)
    });
    Ok(eval::convert(&eval::convert(&out, product), shape.dtype))
}

/// Accumulators for the sums of one row of results, which are computed in parts.
pub(super) struct RowAccumulators<T: Ring> {
    parts: SumParts,
    part: Vec<T::Sum>,
    group: Vec<T::Sum>,
}

impl<T: Ring> RowAccumulators<T> {
    /// Accumulators for rows of `n` results.
    pub(super) fn new(parts: SumParts, n: usize) -> RowAccumulators<T> {
        RowAccumulators { parts, part: vec![T::ZERO; n], group: vec![T::ZERO; n] }
    }

    /// Adds all terms to `out`, which starts as zero; `add_terms` adds a range of terms to the given accumulators.
    pub(super) fn accumulate(&mut self, out: &mut [T::Sum], mut add_terms: impl FnMut(&mut [T::Sum], Range<usize>)) {
        let add = |to: &mut [T::Sum], from: &[T::Sum]| to.iter_mut().zip(from).for_each(|(a, &b)| *a = T::add(*a, b));
        let SumParts { groups, most } = &self.parts;
        if let [terms] = &groups[..]
            && terms.end <= *most
        {
            return add_terms(out, 0..terms.end as usize);
        }
        for group in groups {
            self.group.fill(T::ZERO);
            for terms in self.parts.of_group(group) {
                self.part.fill(T::ZERO);
                add_terms(&mut self.part, terms.start as usize..terms.end as usize);
                add(&mut self.group, &self.part);
            }
            add(out, &self.group);
        }
    }
}

fn span(i: usize, n: usize) -> Range<usize> {
    i * n..(i + 1) * n
}

/// Inner product Σ xᵢ yᵢ with eight partial sums.
pub(super) fn inner_product<T: Ring>(x: &[T], y: &[T]) -> T::Sum {
    let mut parts = [T::ZERO; 8];
    let (xs, ys) = (x.chunks_exact(8), y.chunks_exact(8));
    let mut total = xs.remainder().iter().zip(ys.remainder()).fold(T::ZERO, |s, (&a, &b)| T::plus(s, a, b));
    for (a, b) in xs.zip(ys) {
        for i in 0..8 {
            parts[i] = T::plus(parts[i], a[i], b[i]);
        }
    }
    for p in parts {
        total = T::add(total, p);
    }
    total
}

/// Adds a vector-matrix product, `out += x · matrix`; the matrix has rows of `n` elements, `stride >= n` apart.
pub(super) fn add_row_times_matrix<T: Ring>(out: &mut [T::Sum], x: &[T], matrix: &[T], stride: usize) {
    let n = out.len();
    let mut k = 0;
    while k + 4 <= x.len() {
        let row = |i: usize| &matrix[(k + i) * stride..(k + i) * stride + n];
        let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
        let (x0, x1, x2, x3) = (x[k], x[k + 1], x[k + 2], x[k + 3]);
        for ((((o, &a), &b), &c), &d) in out.iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
            *o = T::plus(T::plus(T::plus(T::plus(*o, x0, a), x1, b), x2, c), x3, d);
        }
        k += 4;
    }
    for (i, &v) in x.iter().enumerate().skip(k) {
        for (o, &a) in out.iter_mut().zip(&matrix[i * stride..i * stride + n]) {
            *o = T::plus(*o, v, a);
        }
    }
}
