//! LU and QR factorizations in LAPACK's packed forms: loops over columns, vectorized over the batch.
use super::{column_at, conjugate, identity, pivot_at, reflect_rows, reflector, row_where};
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::counted_loop::counted_loop;
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::tensor::DType;

/// `x` with element `k` of its last dimension replaced by `value`.
pub(super) fn replace_column(b: &mut Builder, x: InstId, k: InstId, value: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let last = dims.len() - 1;
    let index = b.iota(DType::S32, &dims, last);
    let is_k = b.compare(Direction::Eq, index, k);
    let wide = b.broadcast(value, &dims, &(0..last).collect::<Vec<_>>());
    b.select(is_k, wide, x)
}

/// LU factorization with partial pivoting of `a [batch.., m, n]`: both factors in one array, without the lower one's unit
/// diagonal, and for each column the row exchanged with it, `[batch.., min(m, n)]`, counted from 1.
pub(super) fn lu(b: &mut Builder, a: InstId) -> (InstId, InstId) {
    let dims = b.dims(a).to_vec();
    let rank = dims.len();
    let p = dims[rank - 2].min(dims[rank - 1]);
    let pivots = b.full(DType::S32, &[&dims[..rank - 2], &[p]].concat(), 1.0);
    let parts = counted_loop(b, "eliminate_below", p, &[a, pivots], |b, k, parts| {
        let (a, pivots) = (parts[0], parts[1]);
        let rows = dims[..rank - 1].to_vec();
        let (lead, by_row): (Vec<usize>, Vec<usize>) = ((0..rank - 2).collect(), (0..rank - 1).collect());
        let by_column: Vec<usize> = (0..rank).filter(|&axis| axis != rank - 2).collect();
        let column = column_at(b, a, k);
        let pivot_row = pivot_at(b, column, k);
        // Exchange of the two rows.
        let index = b.iota(DType::S32, &rows, rank - 2);
        let pivot_index = b.broadcast(pivot_row, &rows, &lead);
        let (is_pivot, is_k) = (b.compare(Direction::Eq, index, pivot_index), b.compare(Direction::Eq, index, k));
        let (top, old) = (row_where(b, a, is_pivot), row_where(b, a, is_k));
        let (wide_top, wide_old) = (b.broadcast(top, &dims, &by_column), b.broadcast(old, &dims, &by_column));
        let (on_pivot, on_k) = (b.broadcast(is_pivot, &dims, &by_row), b.broadcast(is_k, &dims, &by_row));
        let a = b.select(on_pivot, wide_old, a);
        let a = b.select(on_k, wide_top, a);
        // Multipliers below the diagonal. If the pivot is zero, all elements below it are zero and stay so.
        let column = column_at(b, a, k);
        let pivot = column_at(b, top, k);
        let (zero, one) = (b.full_like(pivot, 0.0), b.full_like(pivot, 1.0));
        let none = b.compare(Direction::Eq, pivot, zero);
        let divisor = b.select(none, one, pivot);
        let divisor = b.broadcast(divisor, &rows, &lead);
        let factors = b.div(column, divisor);
        let (below, zeros) = (b.compare(Direction::Gt, index, k), b.full_like(column, 0.0));
        let factors_below = b.select(below, factors, zeros);
        // Elements right of the column and below its diagonal element.
        let place = b.iota(DType::S32, &dims, rank - 1);
        let right = b.compare(Direction::Gt, place, k);
        let wide = b.broadcast(factors_below, &dims, &by_row);
        let part = b.mul(wide, wide_top);
        let reduced = b.sub(a, part);
        let a = b.select(right, reduced, a);
        let own = b.select(below, factors, column);
        let a = replace_column(b, a, k, own);
        let one = b.scalar(DType::S32, 1.0);
        let number = b.add(pivot_row, one);
        vec![a, replace_column(b, pivots, k, number)]
    });
    (parts[0], parts[1])
}

/// QR factorization of `a [batch.., m, n]`: `r` on and above the diagonal, the Householder vectors below it, and their factors
/// `tau`, `[batch.., min(m, n)]`.
pub(super) fn packed_qr(b: &mut Builder, a: InstId) -> (InstId, InstId) {
    let dims = b.dims(a).to_vec();
    let rank = dims.len();
    let p = dims[rank - 2].min(dims[rank - 1]);
    let taus = b.full(b.dtype(a), &[&dims[..rank - 2], &[p]].concat(), 0.0);
    let parts = counted_loop(b, "reflect_packed", p, &[a, taus], |b, k, parts| {
        let (a, taus) = reflect_packed(b, parts[0], parts[1], k);
        vec![a, taus]
    });
    (parts[0], parts[1])
}

/// Applies the reflection for column `k`, and stores its vector in the elements that it clears.
fn reflect_packed(b: &mut Builder, a: InstId, taus: InstId, k: InstId) -> (InstId, InstId) {
    let (v, tau) = reflector(b, a, k);
    let turned = reflect_rows(b, a, v, tau);
    let a = store_reflection_vector(b, [a, turned], v, k);
    let tau = conjugate(b, tau);
    (a, replace_column(b, taus, k, tau))
}

/// Matrices after a reflection whose vector `v` is stored in column `k` below row `k`. Columns to the left already hold vectors
/// and keep them.
pub(super) fn store_reflection_vector(b: &mut Builder, [before, turned]: [InstId; 2], v: InstId, k: InstId) -> InstId {
    let dims = b.dims(before).to_vec();
    let rank = dims.len();
    let place = b.iota(DType::S32, &dims, rank - 1);
    let left = b.compare(Direction::Lt, place, k);
    let a = b.select(left, before, turned);
    let column = column_at(b, a, k);
    let index = b.iota(DType::S32, &dims[..rank - 1], rank - 2);
    let below = b.compare(Direction::Gt, index, k);
    let own = b.select(below, v, column);
    replace_column(b, a, k, own)
}

/// QR factorization with column pivoting: each step takes the longest remaining column, the first of equal ones. The last
/// result is the column order, `[batch.., n]`, s32 counted from 1. Source: LAPACK's `geqp3`.
pub(super) fn pivoted_qr(b: &mut Builder, a: InstId) -> (InstId, InstId, InstId) {
    let dims = b.dims(a).to_vec();
    let rank = dims.len();
    let (m, n) = (dims[rank - 2], dims[rank - 1]);
    let line = [&dims[..rank - 2], &[n]].concat();
    let (index, one) = (b.iota(DType::S32, &line, rank - 2), b.full(DType::S32, &line, 1.0));
    let order = b.add(index, one);
    let taus = b.full(b.dtype(a), &[&dims[..rank - 2], &[m.min(n)]].concat(), 0.0);
    let parts = counted_loop(b, "reflect_longest", m.min(n), &[a, order, taus], |b, k, parts| {
        let (a, order, taus) = (parts[0], parts[1], parts[2]);
        let row = b.iota(DType::S32, &dims, rank - 2);
        let (left, zero) = (b.compare(Direction::Ge, row, k), b.full_like(a, 0.0));
        let rest = b.select(left, a, zero);
        let lengths = super::norm_squared(b, rest, rank - 2);
        let longest = pivot_at(b, lengths, k);
        let (a, order) = (swap_elements(b, a, k, longest), swap_elements(b, order, k, longest));
        let (packed, taus) = reflect_packed(b, a, taus, k);
        vec![packed, order, taus]
    });
    (parts[0], parts[1], parts[2])
}

/// Exchanges elements `k` and `other [batch..]` of the last dimension.
pub(super) fn swap_elements(b: &mut Builder, x: InstId, k: InstId, other: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let last = dims.len() - 1;
    let index = b.iota(DType::S32, &dims, last);
    let other = b.broadcast(other, &dims, &(0..b.rank(other)).collect::<Vec<_>>());
    let is_other = b.compare(Direction::Eq, index, other);
    let none = b.full_like(x, 0.0);
    let alone = b.select(is_other, x, none);
    let theirs = super::total(b, alone, last);
    let own = column_at(b, x, k);
    let own = b.broadcast(own, &dims, &(0..last).collect::<Vec<_>>());
    let x = b.select(is_other, own, x);
    replace_column(b, x, k, theirs)
}

/// `x [batch.., m, columns]` multiplied by the product of the reflections, first to last, whose vectors are below the diagonal
/// of `a [batch.., m, n]`; by its adjoint if `adjoint`.
pub(super) fn apply_reflections(b: &mut Builder, a: InstId, taus: InstId, x: InstId, adjoint: bool) -> InstId {
    let dims = b.dims(a).to_vec();
    let rank = dims.len();
    let count = b.dims(taus).last().copied().unwrap_or(Dim::from(0));
    let parts = counted_loop(b, "multiply_by_reflections", count, &[x, a, taus], |b, step, parts| {
        let (x, a, taus) = (parts[0], parts[1], parts[2]);
        let last = b.scalar(DType::S32, count - 1);
        let k = if adjoint { step } else { b.sub(last, step) };
        let index = b.iota(DType::S32, &dims[..rank - 1], rank - 2);
        let (is_k, below) = (b.compare(Direction::Eq, index, k), b.compare(Direction::Gt, index, k));
        let column = column_at(b, a, k);
        let (one, zero) = (b.full_like(column, 1.0), b.full_like(column, 0.0));
        let v = b.select(below, column, zero);
        let v = b.select(is_k, one, v);
        let tau = column_at(b, taus, k);
        let tau = if adjoint { conjugate(b, tau) } else { tau };
        vec![reflect_rows(b, x, v, tau), a, taus]
    });
    parts[0]
}

/// First `n` columns of the product of the reflections whose vectors are below the diagonal of `a [batch.., m, n]`, with
/// factors `taus [batch.., k]`.
pub(super) fn product_of_reflections(b: &mut Builder, a: InstId, taus: InstId) -> InstId {
    let dims = b.dims(a).to_vec();
    let q = identity(b, b.dtype(a), &dims);
    apply_reflections(b, a, taus, q, false)
}

/// Position, counted from 1, of the first zero on the diagonal of `a [batch.., m, n]`; 0 if there is none.
pub(super) fn first_zero_on_diagonal(b: &mut Builder, a: InstId) -> InstId {
    let dims = b.dims(a).to_vec();
    let rank = dims.len();
    let (row, column) = (b.iota(DType::S32, &dims, rank - 2), b.iota(DType::S32, &dims, rank - 1));
    let diagonal = b.compare(Direction::Eq, row, column);
    let zero = b.full_like(a, 0.0);
    let is_zero = b.compare(Direction::Eq, a, zero);
    let found = b.binary(ScalarOp::And, diagonal, is_zero);
    let (one, none) = (b.scalar(DType::S32, 1.0), b.scalar(DType::S32, f64::from(i32::MAX)));
    let number = b.add(row, one);
    let number = b.select(found, number, none);
    let least = b.reduce(number, none, ScalarOp::Minimum, &[rank - 2, rank - 1]);
    let (missing, zero) = (b.compare(Direction::Eq, least, none), b.full_like(least, 0.0));
    b.select(missing, zero, least)
}
