//! Eigenvalues of symmetric matrices and singular values, by Jacobi rotations.
//!
//! Source: Golub and Van Loan, "Matrix Computations", 8.5 (symmetric) and 8.6.3 (one-sided, after Hestenes). A sweep rotates
//! every pair of rows once; sweeps repeat until one rotates nothing. The sign of a vector is not determined mathematically. For
//! a complex matrix, the second row of a pair is first multiplied by a number of magnitude 1, so that the off-diagonal element
//! and the rotation are real.
use super::{adjoint, conjugate, factor, line, with_line};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Builder, CompId, Dim, InstId, Op, Shape};
use crate::ops::math::expr::build_formula;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

const NUMBERS: &str = "f32, f64, c64, c128";
const REAL: &str = "f32, f64";
/// Largest number of sweeps. Convergence is quadratic, and even large matrices take fewer than ten.
const SWEEPS: f64 = 30.0;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("SelfAdjointEigV2", "input -> e v",   self_adjoint_eig).dtypes(NUMBERS),
    op("Svd",              "input -> s u v", svd).dtypes(NUMBERS),
    op("XlaSelfAdjointEig", "a -> w v",      xla_eigen).dtypes(REAL),
    op("XlaSvd",           "a -> s u v",     xla_svd).dtypes(REAL),
];

/// Kind of Jacobi rotations, by the matrix that they diagonalize.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Rotations that diagonalize the symmetric matrix itself: rows and columns are rotated.
    TwoSided,
    /// Rotations that diagonalize the Gram matrix of the rows: only rows are rotated, until they are orthogonal.
    OneSided,
}

/// A batch of matrices with a single batch dimension.
struct Batch {
    lead: Vec<Dim>,
    count: Dim,
    rows: Dim,
    columns: Dim,
}

impl Batch {
    fn of(cx: &LowerCtx) -> Result<Batch> {
        let dims = cx.dims(0)?;
        let [ref lead @ .., rows, columns] = dims[..] else {
            return Err(cx.shape_mismatch(format!("matrices are needed, not {dims:?}")));
        };
        match cx.dtype(0)? {
            DType::F32 | DType::F64 | DType::C64 | DType::C128 => {}
            other => return Err(cx.unsupported_case(format!("{} of {other}; {NUMBERS} are supported", cx.node.op))),
        }
        let count = crate::symbolic::product(lead).ok_or_else(|| cx.shape_mismatch("the batch overflows"))?;
        Ok(Batch { lead: lead.to_vec(), count, rows, columns })
    }
    fn back(&self, b: &mut Builder, x: InstId) -> InstId {
        let dims = [&self.lead[..], &b.dims(x)[1..]].concat();
        b.reshape(x, &dims)
    }
}

/// Lowers `SelfAdjointEigV2`: eigenvalues in ascending order, and eigenvectors as columns. Only the lower triangle is read.
pub(super) fn self_adjoint_eig(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let batch = Batch::of(cx)?;
    let n = batch.rows;
    if n != batch.columns {
        return Err(cx.shape_mismatch(format!("{n} by {} matrices are not square", batch.columns)));
    }
    let (x, dtype) = (cx.arg(0)?, cx.dtype(0)?);
    let x = cx.b.reshape(x, &[batch.count, n, n]);
    let (values, columns) = hermitian_eigen(cx.b, x);
    let values = cx.b.convert(values, dtype);
    let values = batch.back(cx.b, values);
    if !cx.node.bool("compute_v").unwrap_or(true) {
        let none = cx.b.full(dtype, &dims![0], 0.0);
        return Ok(vec![Value::Array(values), Value::Array(none)]);
    }
    let columns = batch.back(cx.b, columns);
    Ok(vec![Value::Array(values), Value::Array(columns)])
}

/// Real eigenvalues `[batch, n]` in ascending order, and eigenvectors as columns, from the lower triangles of `x [batch, n,
/// n]`.
pub(super) fn hermitian_eigen(b: &mut Builder, x: InstId) -> (InstId, InstId) {
    let (dims, dtype) = (b.dims(x).to_vec(), b.dtype(x));
    let symmetric = hermitian_from_lower(b, x);
    let vectors = super::identity(b, dtype, &dims);
    let (x, vectors) = if dims[1] > 1 { sweep(b, symmetric, vectors, Kind::TwoSided) } else { (symmetric, vectors) };
    let values = real_diagonal(b, x);
    let (values, vectors) = ordered(b, values, vectors, Direction::Lt);
    (values, adjoint(b, vectors))
}

/// Lowers `XlaSelfAdjointEig`: eigenvalues and eigenvectors from the lower or the upper triangles. The op's limits for XLA's
/// own iteration are ignored.
fn xla_eigen(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let batch = real_batch(cx)?;
    let n = batch.rows;
    if n != batch.columns {
        return Err(cx.shape_mismatch(format!("{n} by {} matrices are not square", batch.columns)));
    }
    let x = cx.arg(0)?;
    let x = cx.b.reshape(x, &[batch.count, n, n]);
    let x = if cx.bool_attr("lower") { x } else { cx.b.transpose(x, &[0, 2, 1]) };
    let (values, columns) = hermitian_eigen(cx.b, x);
    let (values, columns) = (batch.back(cx.b, values), batch.back(cx.b, columns));
    Ok(vec![Value::Array(values), Value::Array(columns)])
}

/// Lowers `XlaSvd`: singular values, and the full sets of left and right singular vectors.
fn xla_svd(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let batch = real_batch(cx)?;
    let (m, n, x) = (batch.rows, batch.columns, cx.arg(0)?);
    let b = &mut *cx.b;
    let x = b.reshape(x, &[batch.count, m, n]);
    let turned = orthogonalize_rows(b, x);
    let (u, v) = turned.singular_vectors(b);
    let all = [turned.sizes, complete_basis(b, u, m), complete_basis(b, v, n)];
    Ok(all.into_iter().map(|x| Value::Array(batch.back(b, x))).collect())
}

fn real_batch(cx: &LowerCtx) -> Result<Batch> {
    match cx.dtype(0)? {
        DType::F32 | DType::F64 => Batch::of(cx),
        other => Err(cx.unsupported_case(format!("{} of {other}; {REAL} are supported", cx.node.op))),
    }
}

/// Lowers `Svd`: singular values in descending order, and left and right singular vectors as columns.
pub(super) fn svd(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let batch = Batch::of(cx)?;
    let (m, n, dtype) = (batch.rows, batch.columns, cx.dtype(0)?);
    let vectors_too = cx.node.bool("compute_uv").unwrap_or(true);
    let full = cx.bool_attr("full_matrices");
    let x = cx.arg(0)?;
    let b = &mut *cx.b;
    let x = b.reshape(x, &[batch.count, m, n]);
    let turned = orthogonalize_rows(b, x);
    let values = b.convert(turned.sizes, dtype);
    let values = batch.back(b, values);
    if !vectors_too {
        let none = b.full(dtype, &dims![0], 0.0);
        return Ok(vec![Value::Array(values), Value::Array(none), Value::Array(none)]);
    }
    let (u, v) = turned.singular_vectors(b);
    let (u, v) = if full { (complete_basis(b, u, m), complete_basis(b, v, n)) } else { (u, v) };
    let (u, v) = (batch.back(b, u), batch.back(b, v));
    Ok(vec![Value::Array(values), Value::Array(u), Value::Array(v)])
}

/// Result of a one-sided Jacobi iteration: the orthogonalized rows of the shorter side.
pub(super) struct OrthogonalizedRows {
    /// Lengths of the rows in descending order, `[batch, p]`: the singular values.
    pub sizes: InstId,
    /// The rows, with the accumulated rotations beside them.
    both: InstId,
    /// Number of elements of a row.
    long: Dim,
    /// Whether the rows are those of the matrix, as opposed to its columns.
    wide: bool,
}

/// Orthogonalizes the rows or the columns, whichever are fewer, of matrices `[batch, m, n]`.
pub(super) fn orthogonalize_rows(b: &mut Builder, x: InstId) -> OrthogonalizedRows {
    let (dims, dtype) = (b.dims(x).to_vec(), b.dtype(x));
    let [m, n] = [dims[1], dims[2]];
    // The shorter side becomes rows, which are orthogonalized.
    let wide = m <= n;
    let rows = if wide { x } else { b.transpose(x, &[0, 2, 1]) };
    let (p, long) = (m.min(n), m.max(n));
    let turns = super::identity(b, dtype, &[dims[0], p, p]);
    let (rows, turns) = if p > 1 { sweep(b, rows, turns, Kind::OneSided) } else { (rows, turns) };
    let squares = inner(b, rows, rows, 2);
    let squares = real(b, squares);
    let sizes = b.unary(ScalarOp::Sqrt, squares);
    let both = b.concatenate(&[rows, turns], 2);
    let (sizes, both) = ordered(b, sizes, both, Direction::Gt);
    OrthogonalizedRows { sizes, both, long, wide }
}

impl OrthogonalizedRows {
    /// Left and right singular vectors, as columns.
    pub(super) fn singular_vectors(&self, b: &mut Builder) -> (InstId, InstId) {
        let whole = b.dims(self.both)[2];
        let (rows, turns) =
            (b.slice_axis(self.both, 2, Dim::from(0), self.long), b.slice_axis(self.both, 2, self.long, whole));
        let dims = b.dims(rows).to_vec();
        let wide_sizes = b.broadcast(self.sizes, &dims, &[0, 1]);
        let none = b.full_like(wide_sizes, 0.0);
        let is_none = b.compare(Direction::Eq, wide_sizes, none);
        let by = b.convert(wide_sizes, b.dtype(rows));
        let (units, zeros) = (b.div(rows, by), b.full_like(rows, 0.0));
        let units = b.select(is_none, zeros, units);
        if self.wide {
            (adjoint(b, turns), adjoint(b, units))
        } else {
            (b.transpose(units, &[0, 2, 1]), b.transpose(turns, &[0, 2, 1]))
        }
    }
}

/// Orthonormal columns `[batch, n, p]`, extended to an orthonormal basis of `n` columns.
pub(super) fn complete_basis(b: &mut Builder, x: InstId, n: Dim) -> InstId {
    let dims = b.dims(x).to_vec();
    let missing = n - dims[2];
    if missing == 0 {
        return x;
    }
    if dims[2] == 0 {
        return super::identity(b, b.dtype(x), &[dims[0], n, n]);
    }
    // The reflections that map the columns to the first axes map the other axes to their orthogonal complement.
    let zeros = b.full(b.dtype(x), &[dims[0], n, missing], 0.0);
    let (packed, taus) = factor::packed_qr(b, x);
    let wide = b.concatenate(&[packed, zeros], 2);
    let all = factor::product_of_reflections(b, wide, taus);
    let rest = b.slice_axis(all, 2, dims[2], n);
    b.concatenate(&[x, rest], 2)
}

/// Inner products of slices along `axis`, the second one conjugated.
fn inner(b: &mut Builder, x: InstId, y: InstId, axis: usize) -> InstId {
    let y = conjugate(b, y);
    let all = b.mul(x, y);
    super::total(b, all, axis)
}

/// Real part of a complex array; a real array itself.
fn real(b: &mut Builder, x: InstId) -> InstId {
    if b.dtype(x).is_complex() { b.unary(ScalarOp::Real, x) } else { x }
}

/// Phases: numbers of magnitude 1 by which `x` is divided to become real; 1 for zero.
pub(super) fn phase(b: &mut Builder, x: InstId) -> InstId {
    let (dtype, size) = (b.dtype(x), b.unary(ScalarOp::Abs, x));
    let none = b.full_like(size, 0.0);
    let is_none = b.compare(Direction::Eq, size, none);
    let size = b.convert(size, dtype);
    let (unit, one) = (b.div(x, size), b.full_like(x, 1.0));
    b.select(is_none, one, unit)
}

/// Hermitian matrix from its lower triangle, with the diagonal taken to be real.
pub(super) fn hermitian_from_lower(b: &mut Builder, x: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let (row, column) = (b.iota(DType::S32, &dims, 1), b.iota(DType::S32, &dims, 2));
    let lower = b.compare(Direction::Ge, row, column);
    let turned = adjoint(b, x);
    let whole = b.select(lower, x, turned);
    if !b.dtype(x).is_complex() {
        return whole;
    }
    let (on, part) = (b.compare(Direction::Eq, row, column), b.unary(ScalarOp::Real, x));
    let part = b.convert(part, b.dtype(x));
    b.select(on, part, whole)
}

/// Real parts of the diagonal of each matrix.
pub(super) fn real_diagonal(b: &mut Builder, x: InstId) -> InstId {
    let all = super::diagonal(b, x);
    real(b, all)
}

/// Sorts values, and permutes the rows along with them.
fn ordered(b: &mut Builder, values: InstId, rows: InstId, first: Direction) -> (InstId, InstId) {
    let dims = b.dims(rows).to_vec();
    if crate::symbolic::has_zero(&dims) {
        return (values, rows);
    }
    let keys = b.broadcast(values, &dims, &[0, 1]);
    let types = [b.dtype(values), b.dtype(rows)];
    b.begin_computation("in_front");
    let params: Vec<InstId> = (0..4).map(|i| b.parameter(Shape::array(types[i / 2], []))).collect();
    let root = b.elementwise(ScalarOp::Compare(first, CompareKind::Total), &params[..2]);
    let comp = b.end_computation(root);
    let sorted = b.add_inst(Op::Sort { dim: 1, is_stable: true, comp }, &[keys, rows]);
    let (keys, rows) = (b.get_tuple_element(sorted, 0), b.get_tuple_element(sorted, 1));
    let column = b.slice_axis(keys, 2, Dim::from(0), Dim::from(1));
    (b.reshape(column, &dims[..2]), rows)
}

/// Jacobi sweeps over all pairs of rows, until a sweep rotates nothing. Results: the array, and `turns` with its rows rotated likewise.
fn sweep(b: &mut Builder, x: InstId, turns: InstId, kind: Kind) -> (InstId, InstId) {
    let (zero, more) = (b.scalar(DType::S32, 0.0), b.scalar(DType::Pred, 1.0));
    let start = b.tuple(&[zero, more, x, turns]);
    let shape = b.shape(start).clone();
    b.begin_computation("unfinished");
    let state = b.parameter(shape.clone());
    let [count, more] = [0, 1].map(|i| b.get_tuple_element(state, i));
    let last = b.scalar(DType::S32, SWEEPS);
    let left = b.compare(Direction::Lt, count, last);
    let root = b.binary(ScalarOp::And, left, more);
    let cond = b.end_computation(root);
    b.begin_computation("sweep");
    let state = b.parameter(shape);
    let [count, x, turns] = [0, 2, 3].map(|i| b.get_tuple_element(state, i));
    let (turned, x, turns) = all_pairs(b, x, turns, kind);
    let one = b.scalar(DType::S32, 1.0);
    let next = b.add(count, one);
    let root = b.tuple(&[next, turned, x, turns]);
    let body = b.end_computation(root);
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    (b.get_tuple_element(end, 2), b.get_tuple_element(end, 3))
}

/// Single sweep over the pairs p < q, row by row; the last result tells whether any pair was rotated.
fn all_pairs(b: &mut Builder, x: InstId, turns: InstId, kind: Kind) -> (InstId, InstId, InstId) {
    let n = b.dims(x)[1];
    let (first, second, none) = (b.scalar(DType::S32, 0.0), b.scalar(DType::S32, 1.0), b.scalar(DType::Pred, 0.0));
    let start = b.tuple(&[first, second, none, x, turns]);
    let shape = b.shape(start).clone();
    let cond = b.counter_below("pairs_left", &shape, n - 1);
    let body = turn_pair(b, &shape, n, kind);
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    (b.get_tuple_element(end, 2), b.get_tuple_element(end, 3), b.get_tuple_element(end, 4))
}

/// Rotation angle of a pair of rows for each matrix, as cosine and sine.
#[derive(Clone, Copy)]
struct Angle {
    cosine: InstId,
    sine: InstId,
    /// Phase by which the second of two complex rows is multiplied before the rotation.
    phase: Option<InstId>,
}

/// Slices p and q along `axis`, rotated by an angle.
fn turned(b: &mut Builder, x: InstId, axis: usize, [p, q]: [InstId; 2], angle: Angle) -> InstId {
    let (a, mut d) = (line(b, x, axis, p), line(b, x, axis, q));
    let (dims, dtype) = (b.dims(a).to_vec(), b.dtype(a));
    if let Some(phase) = angle.phase {
        let phase = b.broadcast(phase, &dims, &[0]);
        d = b.mul(phase, d);
    }
    let [c, s] = [angle.cosine, angle.sine].map(|x| {
        let x = b.convert(x, dtype);
        b.broadcast(x, &dims, &[0])
    });
    let up = build_formula(b, [a, d, c, s], |[a, d, c, s]| c * a - s * d);
    let down = build_formula(b, [a, d, c, s], |[a, d, c, s]| s * a + c * d);
    let x = with_line(b, x, axis, p, up);
    with_line(b, x, axis, q, down)
}

fn turn_pair(b: &mut Builder, shape: &Shape, n: Dim, kind: Kind) -> CompId {
    b.begin_computation("turn_pair");
    let state = b.parameter(shape.clone());
    let [p, q, any, x, turns] = [0, 1, 2, 3, 4].map(|i| b.get_tuple_element(state, i));
    let (row_p, row_q) = (line(b, x, 1, p), line(b, x, 1, q));
    // Symmetric 2-by-2 matrix to diagonalize: its diagonal and its off-diagonal element.
    let [low, high, beside] = match kind {
        Kind::OneSided => [(row_p, row_p), (row_q, row_q), (row_p, row_q)].map(|(x, y)| inner(b, x, y, 1)),
        Kind::TwoSided => [(row_p, p), (row_q, q), (row_p, q)].map(|(row, at)| {
            let one = b.scalar(DType::S32, 0.0);
            let sizes = vec![b.dims(row)[0], Dim::from(1)];
            let element = b.add_inst(Op::DynamicSlice(sizes.clone()), &[row, one, at]);
            b.reshape(element, &sizes[..1])
        }),
    };
    let is_complex = b.dtype(beside).is_complex();
    let phase = is_complex.then(|| phase(b, beside));
    let (low, high) = (real(b, low), real(b, high));
    let beside = if is_complex { b.unary(ScalarOp::Abs, beside) } else { beside };
    // Threshold below which an off-diagonal element counts as zero: relative to both row lengths for one-sided rotations, and
    // to the largest eigenvalue for symmetric ones.
    let small = build_formula(b, [low, high, beside], |[low, high, beside]| {
        let size = match kind {
            Kind::OneSided => (low * high).sqrt(),
            Kind::TwoSided => (low.abs() + high.abs()) * 0.5,
        };
        beside.abs().le(size * beside.epsilon())
    });
    let tangent = build_formula(b, [low, high, beside, small], |[low, high, beside, small]| {
        let ratio = (high - low) / (beside * 2.0);
        let t = 1.0 / (ratio.abs() + (ratio * ratio + 1.0).sqrt());
        (-t).select_where(ratio.lt(0.0), t).replace_where(small, 0.0)
    });
    let c = build_formula(b, [tangent], |[t]| 1.0 / (t * t + 1.0).sqrt());
    let s = build_formula(b, [tangent, c], |[t, c]| t * c);
    let angle = Angle { cosine: c, sine: s, phase };
    let mut y = turned(b, x, 1, [p, q], angle);
    if kind == Kind::TwoSided {
        let phase = phase.map(|phase| conjugate(b, phase));
        y = turned(b, y, 2, [p, q], Angle { phase, ..angle });
    }
    let turns = turned(b, turns, 1, [p, q], angle);
    let large = b.unary(ScalarOp::Not, small);
    let none = b.scalar(DType::Pred, 0.0);
    let large = b.reduce(large, none, ScalarOp::Or, &[0]);
    let any = b.binary(ScalarOp::Or, any, large);
    let next = next_pair(b, p, q, n);
    let root = b.tuple(&[next[0], next[1], any, y, turns]);
    b.end_computation(root)
}

/// Next pair of rows of a sweep: (p, q + 1), or (p + 1, p + 2) if q was the last row.
fn next_pair(b: &mut Builder, p: InstId, q: InstId, n: Dim) -> [InstId; 2] {
    let (one, end) = (b.scalar(DType::S32, 1.0), b.scalar(DType::S32, n));
    let (below, right) = (b.add(p, one), b.add(q, one));
    let past = b.compare(Direction::Ge, right, end);
    let corner = b.add(below, one);
    [b.select(past, below, p), b.select(past, corner, right)]
}
