//! Linear algebra on the last two dimensions of an array; the dimensions before them are a batch.
//!
//! Solving, inverting and determinants share one Gauss-Jordan elimination with partial pivoting, a loop over columns that is
//! vectorized over the batch.
mod band_solve;
mod batch;
mod blocks;
mod eigenvectors;
mod exponential;
mod factor;
mod functions;
mod hessenberg;
mod jacobi;
pub mod lapack;
mod least_squares;
mod schur;
mod tridiagonal;

use super::ShapeCtx;
use super::counted_loop::counted_loop;
use super::fact::{Dims, Fact};
use super::op_lowering::op;
use super::shape::like_first_input;
use super::{LowerCtx, OpLowering, Value};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, InstId, Op};
use crate::hlo::symbolic::{Dim, SliceDim, Transpose};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const FIELDS: &str = "f32, f64, c64, c128";

/// Definitions of the ops of this family.
#[rustfmt::skip]
pub const ROWS: &[&[OpLowering]] = &[&[
    op("Cholesky",              "input -> output",        cholesky).shape(like_first_input).dtypes(FIELDS),
    op("MatrixTriangularSolve", "matrix rhs -> output",   triangular_solve).shape(solve_shape).dtypes(FIELDS),
    op("MatrixSolve",           "matrix rhs -> output",   solve).shape(solve_shape).dtypes(FIELDS),
    op("MatrixInverse",         "input -> output",        inverse).shape(like_first_input).dtypes(FIELDS),
    op("Qr",                    "input -> q r",           qr).shape(qr_shape).dtypes(FIELDS),
    op("MatrixDeterminant",     "input -> output",        determinant).shape(|cx| determinant_shape(cx, 1)).dtypes(FIELDS),
    op("LogMatrixDeterminant",  "input -> sign log_abs_determinant", log_determinant).shape(|cx| determinant_shape(cx, 2)).dtypes(FIELDS),
], tridiagonal::ROWS, jacobi::ROWS, least_squares::ROWS, functions::ROWS, exponential::ROWS, band_solve::ROWS, batch::ROWS];

/// Sizes of input `i` and the order of its matrices, which must be square.
fn square(cx: &LowerCtx, i: usize) -> Result<(Vec<Dim>, Dim)> {
    let dims = cx.dims(i)?;
    match dims[..] {
        [.., rows, columns] if rows == columns => Ok((dims, rows)),
        _ => Err(cx.shape_mismatch(format!("input {i} must be square matrices, not {dims:?}"))),
    }
}

/// Conjugate transpose of each matrix.
fn adjoint(b: &mut Builder, x: InstId) -> InstId {
    let rank = b.rank(x);
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(rank - 2, rank - 1);
    let x = b.transpose(x, &perm);
    conjugate(b, x)
}

fn cholesky(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, _) = square(cx, 0)?;
    let x = cx.arg(0)?;
    let y = cx.b.add_inst(Op::Cholesky { lower: true }, &[x]);
    let (rank, zero) = (dims.len(), cx.b.full_like(y, 0.0));
    let (row, column) = (cx.b.iota(DType::S32, &dims, rank - 2), cx.b.iota(DType::S32, &dims, rank - 1));
    let lower = cx.b.compare(Direction::Ge, row, column);
    let y = cx.b.select(lower, y, zero);
    cx.one_output(y)
}

/// Both operands, broadcast to common batch dimensions.
fn batched(cx: &mut LowerCtx, a: InstId, b: InstId) -> Result<(InstId, InstId)> {
    let (x, y) = (cx.b.dims(a).to_vec(), cx.b.dims(b).to_vec());
    let (i, j) = (x.len() - 2, y.len() - 2);
    let Some(batch) = Builder::broadcast_dims(&x[..i], &y[..j]) else {
        return Err(cx.shape_mismatch(format!("{x:?} and {y:?} have batches that do not fit")));
    };
    let a = cx.b.broadcast_to(a, &[&batch[..], &x[i..]].concat());
    Ok((a, cx.b.broadcast_to(b, &[&batch[..], &y[j..]].concat())))
}

/// Matrix and right-hand sides of a linear system, with their shapes checked.
fn system(cx: &mut LowerCtx) -> Result<(InstId, InstId)> {
    let (_, n) = square(cx, 0)?;
    let rhs = cx.dims(1)?;
    if rhs.len() < 2 || rhs[rhs.len() - 2] != n {
        return Err(cx.shape_mismatch(format!("right-hand sides {rhs:?} for matrices of {n} rows")));
    }
    let (a, b) = (cx.arg(0)?, cx.arg(1)?);
    batched(cx, a, b)
}

fn triangular_solve(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let lower = cx.node.bool("lower").unwrap_or(true);
    let transpose_a = if cx.bool_attr("adjoint") { Transpose::Adjoint } else { Transpose::No };
    let (a, b) = system(cx)?;
    let solve = Op::TriangularSolve { left_side: true, lower, unit_diagonal: false, transpose_a };
    let y = cx.b.add_inst(solve, &[a, b]);
    cx.one_output(y)
}

fn solve(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (mut a, rhs) = system(cx)?;
    if cx.bool_attr("adjoint") {
        a = adjoint(cx.b, a);
    }
    let (y, _) = eliminate(cx.b, a, rhs);
    cx.one_output(y)
}

fn inverse(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, _) = square(cx, 0)?;
    let mut a = cx.arg(0)?;
    if cx.bool_attr("adjoint") {
        a = adjoint(cx.b, a);
    }
    let ones = identity(cx.b, cx.b.dtype(a), &dims);
    let (y, _) = eliminate(cx.b, a, ones);
    cx.one_output(y)
}

fn pivots_of(cx: &mut LowerCtx) -> Result<InstId> {
    let (dims, _) = square(cx, 0)?;
    let a = cx.arg(0)?;
    let mut none = dims.clone();
    none[dims.len() - 1] = Dim::from(0);
    let empty = cx.b.full(cx.b.dtype(a), &none, 0.0);
    Ok(eliminate(cx.b, a, empty).1)
}

fn product(b: &mut Builder, x: InstId) -> InstId {
    let one = b.scalar(b.dtype(x), 1.0);
    let last = b.rank(x) - 1;
    b.reduce(x, one, ScalarOp::Multiply, &[last])
}

fn determinant(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let pivots = pivots_of(cx)?;
    let y = product(cx.b, pivots);
    cx.one_output(y)
}

fn log_determinant(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let pivots = pivots_of(cx)?;
    let b = &mut *cx.b;
    let size = b.unary(ScalarOp::Abs, pivots);
    let signs = b.unary(ScalarOp::Sign, pivots);
    let sign = product(b, signs);
    let logs = b.unary(ScalarOp::Log, size);
    let zero = b.scalar(b.dtype(logs), 0.0);
    let last = b.rank(logs) - 1;
    let log = b.reduce(logs, zero, ScalarOp::Add, &[last]);
    let log = b.convert(log, b.dtype(sign));
    Ok(vec![Value::Array(sign), Value::Array(log)])
}

/// Solves `a x = rhs` for batches of square matrices; also the pivots `[batch.., n]`, negated where rows were exchanged, whose
/// product is the determinant.
///
/// Shapes: `a [batch.., n, n]`, `rhs [batch.., n, m]` -> `[batch.., n, m]`.
fn eliminate(b: &mut Builder, a: InstId, rhs: InstId) -> (InstId, InstId) {
    let dims = b.dims(a).to_vec();
    let (rank, n) = (dims.len(), dims[dims.len() - 1]);
    if n == 0 {
        let pivots = b.full(b.dtype(a), &dims[..rank - 1], 1.0);
        return (rhs, pivots);
    }
    let work = b.concatenate(&[a, rhs], rank - 1);
    let whole = b.dims(work).to_vec();
    let pivots = b.full(b.dtype(a), &dims[..rank - 1], 1.0);
    let end = counted_loop(b, "eliminate_column", n, &[work, pivots], |b, k, state| {
        eliminate_column(b, k, [state[0], state[1]]).to_vec()
    });
    let (work, pivots) = (end[0], end[1]);
    let part = |(i, &size): (usize, &Dim)| SliceDim {
        start: if i + 1 == rank { n } else { Dim::from(0) },
        limit: size,
        stride: Dim::from(1),
    };
    let parts: Vec<_> = whole.iter().enumerate().map(part).collect();
    (b.slice(work, &parts), pivots)
}

/// Column `k`: brings its largest element at or below the diagonal to row `k`, scales that row to 1, and clears the column elsewhere.
fn eliminate_column(b: &mut Builder, k: InstId, [work, pivots]: [InstId; 2]) -> [InstId; 2] {
    let dims = b.dims(work).to_vec();
    let rank = dims.len();
    let (rows, batch) = (&dims[..rank - 1], &dims[..rank - 2]);
    let lead: Vec<usize> = (0..rank - 2).collect();
    let by_row: Vec<usize> = (0..rank - 1).collect();
    let by_column: Vec<usize> = (0..rank).filter(|&a| a != rank - 2).collect();
    let index = b.iota(DType::S32, rows, rank - 2);
    let column = column_at(b, work, k);
    let current = b.broadcast(k, batch, &[]);
    let pivot_row = pivot_at(b, column, k);
    let swapped = b.compare(Direction::Ne, pivot_row, current);
    let pivot_index = b.broadcast(pivot_row, rows, &lead);
    let (is_pivot, is_current) = (b.compare(Direction::Eq, index, pivot_index), b.compare(Direction::Eq, index, k));
    let top = row_where(b, work, is_pivot);
    let old = row_where(b, work, is_current);
    // Exchange of the two rows.
    let mask = b.broadcast(is_pivot, &dims, &by_row);
    let old_wide = b.broadcast(old, &dims, &by_column);
    let work = b.select(mask, old_wide, work);
    // Pivot, and its row divided by it.
    let top_at_k = column_at(b, top, k);
    let line = b.dims(top).to_vec();
    let divisor = b.broadcast(top_at_k, &line, &lead);
    let scaled = b.div(top, divisor);
    // Clear the column in all rows but k.
    let factor = column_at(b, work, k);
    let (factor, scaled_wide) = (b.broadcast(factor, &dims, &by_row), b.broadcast(scaled, &dims, &by_column));
    let part = b.mul(factor, scaled_wide);
    let cleared = b.sub(work, part);
    let mask = b.broadcast(is_current, &dims, &by_row);
    let work = b.select(mask, scaled_wide, cleared);
    // Record the pivot.
    let negated = b.unary(ScalarOp::Negate, top_at_k);
    let pivot = b.select(swapped, negated, top_at_k);
    let pivot = b.broadcast(pivot, rows, &lead);
    [work, b.select(is_current, pivot, pivots)]
}

/// Row of the first of the largest elements of `column [batch.., rows]` at or below row `k` by magnitude; `k` if all are NaN.
fn pivot_at(b: &mut Builder, column: InstId, k: InstId) -> InstId {
    let rows = b.dims(column).to_vec();
    let last = rows.len() - 1;
    let (batch, n) = (&rows[..last], rows[last]);
    let lead: Vec<usize> = (0..last).collect();
    let index = b.iota(DType::S32, &rows, last);
    let size = b.unary(ScalarOp::Abs, column);
    let (below, out) = (b.compare(Direction::Ge, index, k), b.full_like(size, -1.0));
    let size = b.select(below, size, out);
    let lowest = b.scalar(b.dtype(size), -1.0);
    let best = b.reduce(size, lowest, ScalarOp::Maximum, &[last]);
    let best = b.broadcast(best, &rows, &lead);
    let (is_best, behind) = (b.compare(Direction::Eq, size, best), b.full(DType::S32, &rows, n));
    let candidate = b.select(is_best, index, behind);
    let candidate = b.select(below, candidate, behind);
    let end = b.scalar(DType::S32, n);
    let pivot_row = b.reduce(candidate, end, ScalarOp::Minimum, &[last]);
    let current = b.broadcast(k, batch, &[]);
    let behind = b.full(DType::S32, batch, n);
    let missing = b.compare(Direction::Ge, pivot_row, behind);
    b.select(missing, current, pivot_row)
}

/// Element `k` of the last dimension: column `k` of each matrix, or number `k` of each row.
fn column_at(b: &mut Builder, x: InstId, k: InstId) -> InstId {
    line(b, x, b.rank(x) - 1, k)
}

/// Slice at position `at` of dimension `axis`, without that dimension.
fn line(b: &mut Builder, x: InstId, axis: usize, at: InstId) -> InstId {
    let mut sizes = b.dims(x).to_vec();
    sizes[axis] = Dim::from(1);
    let zero = b.scalar(DType::S32, 0.0);
    let mut operands = vec![x];
    operands.resize(sizes.len() + 1, zero);
    operands[axis + 1] = at;
    let one = b.add_inst(Op::DynamicSlice(sizes.clone()), &operands);
    sizes.remove(axis);
    b.reshape(one, &sizes)
}

/// Array with the slice at position `at` of dimension `axis` replaced by `value`.
fn with_line(b: &mut Builder, x: InstId, axis: usize, at: InstId, value: InstId) -> InstId {
    let mut sizes = b.dims(x).to_vec();
    sizes[axis] = Dim::from(1);
    let value = b.reshape(value, &sizes);
    let zero = b.scalar(DType::S32, 0.0);
    let mut operands = vec![x, value];
    operands.resize(sizes.len() + 2, zero);
    operands[axis + 2] = at;
    b.add_inst(Op::DynamicUpdateSlice, &operands)
}

/// Row of each matrix where `mask [batch.., rows]` is true, `[batch.., columns]`.
fn row_where(b: &mut Builder, x: InstId, mask: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let rank = dims.len();
    let wide = b.broadcast(mask, &dims, &(0..rank - 1).collect::<Vec<_>>());
    let zeros = b.full_like(x, 0.0);
    let alone = b.select(wide, x, zeros);
    let zero = b.scalar(b.dtype(x), 0.0);
    b.reduce(alone, zero, ScalarOp::Add, &[rank - 2])
}

/// QR decomposition of batches of matrices `[batch.., m, n]` by Householder reflections, a loop over columns.
///
/// Outputs: `q [batch.., m, p]`, `r [batch.., p, n]`, with p = m for `full_matrices` and else min(m, n). Signs are LAPACK's:
/// each reflection maps the column to the opposite sign of its diagonal element.
fn qr(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (a, dims) = (cx.arg(0)?, cx.dims(0)?);
    let [.., m, n] = dims[..] else { return Err(cx.shape_mismatch(format!("matrices are needed, not {dims:?}"))) };
    let rank = dims.len();
    let b = &mut *cx.b;
    let square = [&dims[..rank - 2], &[m, m]].concat();
    let q = identity(b, b.dtype(a), &square);
    let end = counted_loop(b, "reflect_column", m.min(n), &[a, q], |b, k, state| {
        reflect_column(b, k, [state[0], state[1]]).to_vec()
    });
    let (r, q) = (end[0], end[1]);
    let (row, column) = (b.iota(DType::S32, &dims, rank - 2), b.iota(DType::S32, &dims, rank - 1));
    let upper = b.compare(Direction::Le, row, column);
    let zeros = b.full_like(r, 0.0);
    let r = b.select(upper, r, zeros);
    let p = if cx.bool_attr("full_matrices") { m } else { m.min(n) };
    let (q, r) = (cx.b.slice_axis(q, rank - 1, Dim::from(0), p), cx.b.slice_axis(r, rank - 2, Dim::from(0), p));
    Ok(vec![Value::Array(q), Value::Array(r)])
}

/// One Householder reflection `h = 1 - tau v v*` with `v` 1 at row `k`: `r` becomes `h r`, `q` becomes `q h*`.
fn reflect_column(b: &mut Builder, k: InstId, [r, q]: [InstId; 2]) -> [InstId; 2] {
    let (v, tau) = reflector(b, r, k);
    let r = reflect_rows(b, r, v, tau);
    let turned = adjoint(b, q);
    let turned = reflect_rows(b, turned, v, tau);
    [r, adjoint(b, turned)]
}

/// Householder vector `v [batch.., rows]`, 0 above row `k` and 1 there, and `tau [batch..]`, so that `1 - tau v v*` clears
/// column `k` below row `k`.
fn reflector(b: &mut Builder, r: InstId, k: InstId) -> (InstId, InstId) {
    let dims = b.dims(r).to_vec();
    let rank = dims.len();
    let rows = dims[..rank - 1].to_vec();
    let lead: Vec<usize> = (0..rank - 2).collect();
    let index = b.iota(DType::S32, &rows, rank - 2);
    let (is_k, below) = (b.compare(Direction::Eq, index, k), b.compare(Direction::Gt, index, k));
    let column = column_at(b, r, k);
    let zeros = b.full_like(column, 0.0);
    let tail = b.select(below, column, zeros);
    let head = b.select(is_k, column, zeros);
    let head = total(b, head, rank - 2);
    let tail_norm = norm_squared(b, tail, rank - 2);
    let head_norm = norm_squared_of(b, head);
    let both = b.add(tail_norm, head_norm);
    let norm = b.unary(ScalarOp::Sqrt, both);
    let real = b.unary(ScalarOp::Real, head);
    let none = b.full_like(real, 0.0);
    let (negated, not_negative) = (b.unary(ScalarOp::Negate, norm), b.compare(Direction::Ge, real, none));
    let beta = b.select(not_negative, negated, norm);
    let beta = b.convert(beta, b.dtype(head));
    let flat = b.compare(Direction::Eq, tail_norm, none);
    let imag = b.unary(ScalarOp::Imag, head);
    let on_axis = b.compare(Direction::Eq, imag, none);
    let flat = b.binary(ScalarOp::And, flat, on_axis);
    let no_turn = b.full_like(head, 0.0);
    let one = b.full_like(head, 1.0);
    let difference = b.sub(beta, head);
    let tau = b.div(difference, beta);
    let tau = conjugate(b, tau);
    let tau = b.select(flat, no_turn, tau);
    let below_pivot = b.sub(head, beta);
    let below_pivot = b.select(flat, one, below_pivot);
    let wide = b.broadcast(below_pivot, &rows, &lead);
    let v = b.div(tail, wide);
    let ones = b.full_like(v, 1.0);
    (b.select(is_k, ones, v), tau)
}

/// `x - tau v (v* x)`.
fn reflect_rows(b: &mut Builder, x: InstId, v: InstId, tau: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let rank = dims.len();
    let lead: Vec<usize> = (0..rank - 2).collect();
    let by_row: Vec<usize> = (0..rank - 1).collect();
    let by_column: Vec<usize> = (0..rank).filter(|&a| a != rank - 2).collect();
    let conjugated = conjugate(b, v);
    let conjugated = b.broadcast(conjugated, &dims, &by_row);
    let product = b.mul(conjugated, x);
    let projection = total(b, product, rank - 2);
    let line = b.dims(projection).to_vec();
    let tau = b.broadcast(tau, &line, &lead);
    let scaled = b.mul(tau, projection);
    let (v, scaled) = (b.broadcast(v, &dims, &by_row), b.broadcast(scaled, &dims, &by_column));
    let part = b.mul(v, scaled);
    b.sub(x, part)
}

fn conjugate(b: &mut Builder, x: InstId) -> InstId {
    if !b.dtype(x).is_complex() {
        return x;
    }
    let (real, imag) = (b.unary(ScalarOp::Real, x), b.unary(ScalarOp::Imag, x));
    let imag = b.unary(ScalarOp::Negate, imag);
    b.elementwise(ScalarOp::Complex, &[real, imag])
}

/// Sum along one axis.
fn total(b: &mut Builder, x: InstId, axis: usize) -> InstId {
    let zero = b.scalar(b.dtype(x), 0.0);
    b.reduce(x, zero, ScalarOp::Add, &[axis])
}

/// Squared magnitudes, real.
fn norm_squared_of(b: &mut Builder, x: InstId) -> InstId {
    let size = b.unary(ScalarOp::Abs, x);
    b.mul(size, size)
}

fn norm_squared(b: &mut Builder, x: InstId, axis: usize) -> InstId {
    let squares = norm_squared_of(b, x);
    total(b, squares, axis)
}

/// Euclidean norms along one axis, real.
fn norm(b: &mut Builder, x: InstId, axis: usize) -> InstId {
    let squares = norm_squared(b, x, axis);
    b.unary(ScalarOp::Sqrt, squares)
}

/// Diagonal of each matrix: `[batch.., n, n]` -> `[batch.., n]`.
fn diagonal(b: &mut Builder, x: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let rank = dims.len();
    let (row, column) = (b.iota(DType::S32, &dims, rank - 2), b.iota(DType::S32, &dims, rank - 1));
    let (on, zero) = (b.compare(Direction::Eq, row, column), b.full_like(x, 0.0));
    let alone = b.select(on, x, zero);
    total(b, alone, rank - 1)
}

/// Batch of identity matrices of these sizes.
fn identity(b: &mut Builder, dtype: DType, dims: &[Dim]) -> InstId {
    let rank = dims.len();
    let (row, column) = (b.iota(DType::S32, dims, rank - 2), b.iota(DType::S32, dims, rank - 1));
    let diagonal = b.compare(Direction::Eq, row, column);
    let (one, zero) = (b.full(dtype, dims, 1.0), b.full(dtype, dims, 0.0));
    b.select(diagonal, one, zero)
}

/// Shape function of solves: the broadcast batch of both inputs, with the rows and columns of the right-hand side.
fn solve_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (Some(a), Some(y)) = (cx.ranked_dims(0)?, cx.ranked_dims(1)?) else {
        let dims = cx.unranked_from(usize::from(cx.ranked_dims(0)?.is_some()));
        return cx.one_output_like(0, dims);
    };
    let ([batch_a @ .., _, n], [batch_y @ .., m, k]) = (&a[..], &y[..]) else {
        return Err(cx.shape_mismatch("matrices are needed"));
    };
    let batch = cx.broadcast(&Dims::ranked(batch_a), &Dims::ranked(batch_y))?;
    let rows = cx.merge_dim(*n, *m).ok_or_else(|| cx.shape_mismatch("matrix and right side have different rows"))?;
    cx.one_output_like(0, [batch.as_ranked().unwrap_or(&[]), &[rows, *k]].concat())
}

fn qr_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.ranked_dims(0)?;
    let (q, r): (Dims, Dims) = match dims.as_deref() {
        Some([batch @ .., m, n]) => {
            let p = if cx.bool_attr("full_matrices") { *m } else { cx.symbols.min(cx.site, *m, *n) };
            ([batch, &[*m, p]].concat().into(), [batch, &[p, *n]].concat().into())
        }
        Some(_) => return Err(cx.shape_mismatch("matrices are needed")),
        None => (cx.unranked_from(0), cx.unranked_from(0)),
    };
    Ok(vec![Fact::new(cx.dtype(0), q), Fact::new(cx.dtype(0), r)])
}

fn determinant_shape(cx: &mut ShapeCtx, outputs: usize) -> Result<Vec<Fact>> {
    let dims: Dims = match cx.ranked_dims(0)?.as_deref() {
        Some([batch @ .., _, _]) => Dims::ranked(batch),
        Some(_) => return Err(cx.shape_mismatch("matrices are needed")),
        None => cx.unranked_from(0),
    };
    Ok(vec![Fact::new(cx.dtype(0), dims); outputs])
}
