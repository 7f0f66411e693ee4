//! Eigenvalues of symmetric matrices and singular values, by Jacobi's rotations.
//!
//! Source: Golub and Van Loan, "Matrix Computations", 8.5 (symmetric) and 8.6.3 (one-sided, after Hestenes). A sweep rotates every pair of
//! rows once; sweeps go on until nothing is left to rotate. The sign of a vector is not determined by its meaning.
use crate::diag::Result;
use crate::hlo::{Builder, CompId, InstId, Op, Shape};
use crate::ops::math::expr::formula;
use crate::ops::row::op;
use crate::ops::{LowerCtx, OpRow, Value};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::{DType, element_count};

const REAL: &str = "f32, f64";
/// Sweeps at most; convergence is quadratic, and large matrices take fewer than ten.
const SWEEPS: f64 = 30.0;

/// The rows of this file.
#[rustfmt::skip]
pub const ROWS: &[OpRow] = &[
    op("SelfAdjointEigV2", "input -> e v",   eigen).dtypes(REAL),
    op("Svd",              "input -> s u v", svd).dtypes("f32, f64; full_matrices only of square ones"),
];

/// What the rotations of a pair diagonalise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The symmetric matrix itself: rows and columns are rotated.
    TwoSided,
    /// The products of rows: only rows are rotated, until they are orthogonal.
    OneSided,
}

/// A batch of matrices, one dimension for the batch.
struct Batch {
    lead: Vec<u64>,
    count: u64,
    rows: u64,
    columns: u64,
}

impl Batch {
    fn of(cx: &LowerCtx) -> Result<Batch> {
        let dims = cx.dims(0)?;
        let [ref lead @ .., rows, columns] = dims[..] else {
            return Err(cx.mismatch(format!("matrices are needed, not {dims:?}")));
        };
        match cx.dtype(0)? {
            DType::F32 | DType::F64 => {}
            other => return Err(cx.unsupported(format!("{} of {other}; {REAL} are supported", cx.node.op))),
        }
        let count = element_count(lead).ok_or_else(|| cx.mismatch("the batch overflows"))?;
        Ok(Batch { lead: lead.to_vec(), count, rows, columns })
    }
    fn back(&self, b: &mut Builder, x: InstId) -> InstId {
        let dims = [&self.lead[..], &b.dims(x)[1..]].concat();
        b.reshape(x, &dims)
    }
}

/// Eigenvalues in rising order, and eigenvectors as columns. Only the lower triangle is read.
fn eigen(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let batch = Batch::of(cx)?;
    let n = batch.rows;
    if n != batch.columns {
        return Err(cx.mismatch(format!("{n} by {} matrices are not square", batch.columns)));
    }
    let (x, dtype) = (cx.arg(0)?, cx.dtype(0)?);
    let x = cx.b.reshape(x, &[batch.count, n, n]);
    let (values, columns) = eigen_of(cx.b, x);
    let values = batch.back(cx.b, values);
    if !cx.node.bool("compute_v").unwrap_or(true) {
        let none = cx.b.full(dtype, &[0], 0.0);
        return Ok(vec![Value::Array(values), Value::Array(none)]);
    }
    let columns = batch.back(cx.b, columns);
    Ok(vec![Value::Array(values), Value::Array(columns)])
}

/// Eigenvalues `[batch, n]` in rising order and eigenvectors as columns of the lower triangles of real `x [batch, n, n]`.
pub(super) fn eigen_of(b: &mut Builder, x: InstId) -> (InstId, InstId) {
    let (dims, dtype) = (b.dims(x).to_vec(), b.dtype(x));
    let symmetric = mirrored(b, x);
    let vectors = super::identity(b, dtype, &dims);
    let (x, vectors) = if dims[1] > 1 { sweep(b, symmetric, vectors, Kind::TwoSided) } else { (symmetric, vectors) };
    let values = diagonal(b, x);
    let (values, vectors) = ordered(b, values, vectors, Direction::Lt);
    (values, b.transpose(vectors, &[0, 2, 1]))
}

/// Singular values in falling order, and the vectors of both sides as columns.
fn svd(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let batch = Batch::of(cx)?;
    let (m, n, dtype) = (batch.rows, batch.columns, cx.dtype(0)?);
    let vectors_too = cx.node.bool("compute_uv").unwrap_or(true);
    if vectors_too && cx.flag("full_matrices") && m != n {
        return Err(cx.unsupported(format!("full_matrices of {m} by {n} matrices; square ones are supported")));
    }
    let x = cx.arg(0)?;
    let b = &mut *cx.b;
    let x = b.reshape(x, &[batch.count, m, n]);
    let turned = turned_rows(b, x);
    let values = batch.back(b, turned.sizes);
    if !vectors_too {
        let none = b.full(dtype, &[0], 0.0);
        return Ok(vec![Value::Array(values), Value::Array(none), Value::Array(none)]);
    }
    let (u, v) = turned.vectors(b);
    let (u, v) = (batch.back(b, u), batch.back(b, v));
    Ok(vec![Value::Array(values), Value::Array(u), Value::Array(v)])
}

/// The rows of the shorter side made orthogonal.
pub(super) struct Turned {
    /// Their lengths in falling order, `[batch, p]`: the singular values.
    pub sizes: InstId,
    /// The rows, and beside them what turned them.
    both: InstId,
    /// Elements of a row.
    long: u64,
    /// The rows are those of the matrix, not its columns.
    wide: bool,
}

/// Makes the rows or columns, whichever are fewer, of real matrices `[batch, m, n]` orthogonal.
pub(super) fn turned_rows(b: &mut Builder, x: InstId) -> Turned {
    let (dims, dtype) = (b.dims(x).to_vec(), b.dtype(x));
    let [m, n] = [dims[1], dims[2]];
    // The shorter side becomes rows that are made orthogonal.
    let wide = m <= n;
    let rows = if wide { x } else { b.transpose(x, &[0, 2, 1]) };
    let (p, long) = (m.min(n), m.max(n));
    let turns = super::identity(b, dtype, &[dims[0], p, p]);
    let (rows, turns) = if p > 1 { sweep(b, rows, turns, Kind::OneSided) } else { (rows, turns) };
    let squares = b.mul(rows, rows);
    let squares = super::total(b, squares, 2);
    let sizes = b.unary(ScalarOp::Sqrt, squares);
    let both = b.concatenate(&[rows, turns], 2);
    let (sizes, both) = ordered(b, sizes, both, Direction::Gt);
    Turned { sizes, both, long, wide }
}

impl Turned {
    /// The singular vectors of the left and of the right side, as columns.
    pub(super) fn vectors(&self, b: &mut Builder) -> (InstId, InstId) {
        let whole = b.dims(self.both)[2];
        let (rows, turns) = (b.slice_axis(self.both, 2, 0, self.long), b.slice_axis(self.both, 2, self.long, whole));
        let dims = b.dims(rows).to_vec();
        let wide_sizes = b.broadcast(self.sizes, &dims, &[0, 1]);
        let units = formula(b, [rows, wide_sizes], |[row, size]| (row / size).except(size.equals(0.0), 0.0));
        let (units, turns) = (b.transpose(units, &[0, 2, 1]), b.transpose(turns, &[0, 2, 1]));
        if self.wide { (turns, units) } else { (units, turns) }
    }
}

/// The symmetric matrix of the lower triangle.
fn mirrored(b: &mut Builder, x: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let (row, column) = (b.iota(DType::S32, &dims, 1), b.iota(DType::S32, &dims, 2));
    let lower = b.compare(Direction::Ge, row, column);
    let turned = b.transpose(x, &[0, 2, 1]);
    b.select(lower, x, turned)
}

/// The diagonal of each matrix.
fn diagonal(b: &mut Builder, x: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let (row, column) = (b.iota(DType::S32, &dims, 1), b.iota(DType::S32, &dims, 2));
    let (on, zero) = (b.compare(Direction::Eq, row, column), b.full_like(x, 0.0));
    let alone = b.select(on, x, zero);
    super::total(b, alone, 2)
}

/// Values in order and their rows with them: each column of the rows is sorted along with the values.
fn ordered(b: &mut Builder, values: InstId, rows: InstId, first: Direction) -> (InstId, InstId) {
    let (dims, dtype) = (b.dims(rows).to_vec(), b.dtype(rows));
    if dims.contains(&0) {
        return (values, rows);
    }
    let keys = b.broadcast(values, &dims, &[0, 1]);
    b.begin("in_front");
    let params: Vec<InstId> = (0..4).map(|_| b.parameter(Shape::array(dtype, []))).collect();
    let root = b.elementwise(ScalarOp::Compare(first, CompareKind::Total), &params[..2]);
    let comp = b.end(root);
    let sorted = b.add_inst(Op::Sort { dim: 1, is_stable: true, comp }, &[keys, rows]);
    let (keys, rows) = (b.get_tuple_element(sorted, 0), b.get_tuple_element(sorted, 1));
    let column = b.slice_axis(keys, 2, 0, 1);
    (b.reshape(column, &dims[..2]), rows)
}

/// Sweeps until a whole one has turned nothing: the array, and `turns` with its rows turned likewise.
fn sweep(b: &mut Builder, x: InstId, turns: InstId, kind: Kind) -> (InstId, InstId) {
    let (zero, more) = (b.scalar(DType::S32, 0.0), b.scalar(DType::Pred, 1.0));
    let start = b.tuple(&[zero, more, x, turns]);
    let shape = b.shape(start).clone();
    b.begin("unfinished");
    let state = b.parameter(shape.clone());
    let [count, more] = [0, 1].map(|i| b.get_tuple_element(state, i));
    let last = b.scalar(DType::S32, SWEEPS);
    let left = b.compare(Direction::Lt, count, last);
    let root = b.binary(ScalarOp::And, left, more);
    let cond = b.end(root);
    b.begin("sweep");
    let state = b.parameter(shape);
    let [count, x, turns] = [0, 2, 3].map(|i| b.get_tuple_element(state, i));
    let (turned, x, turns) = all_pairs(b, x, turns, kind);
    let one = b.scalar(DType::S32, 1.0);
    let next = b.add(count, one);
    let root = b.tuple(&[next, turned, x, turns]);
    let body = b.end(root);
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    (b.get_tuple_element(end, 2), b.get_tuple_element(end, 3))
}

/// One sweep over the pairs p < q, row by row; also whether any of them was turned.
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

/// Places `at` of dimension `axis`, as an array without it.
fn line(b: &mut Builder, x: InstId, axis: usize, at: InstId) -> InstId {
    let mut sizes = b.dims(x).to_vec();
    sizes[axis] = 1;
    let zero = b.scalar(DType::S32, 0.0);
    let mut operands = vec![x, zero, zero, zero];
    operands[axis + 1] = at;
    let one = b.add_inst(Op::DynamicSlice(sizes.clone()), &operands);
    sizes.remove(axis);
    b.reshape(one, &sizes)
}

fn with_line(b: &mut Builder, x: InstId, axis: usize, at: InstId, value: InstId) -> InstId {
    let mut sizes = b.dims(x).to_vec();
    sizes[axis] = 1;
    let value = b.reshape(value, &sizes);
    let zero = b.scalar(DType::S32, 0.0);
    let mut operands = vec![x, value, zero, zero, zero];
    operands[axis + 2] = at;
    b.add_inst(Op::DynamicUpdateSlice, &operands)
}

/// Lines p and q turned by an angle of this cosine and sine, one a matrix.
fn turned(b: &mut Builder, x: InstId, axis: usize, [p, q]: [InstId; 2], [c, s]: [InstId; 2]) -> InstId {
    let (a, d) = (line(b, x, axis, p), line(b, x, axis, q));
    let dims = b.dims(a).to_vec();
    let (c, s) = (b.broadcast(c, &dims, &[0]), b.broadcast(s, &dims, &[0]));
    let up = formula(b, [a, d, c, s], |[a, d, c, s]| c * a - s * d);
    let down = formula(b, [a, d, c, s], |[a, d, c, s]| s * a + c * d);
    let x = with_line(b, x, axis, p, up);
    with_line(b, x, axis, q, down)
}

fn turn_pair(b: &mut Builder, shape: &Shape, n: u64, kind: Kind) -> CompId {
    b.begin("turn_pair");
    let state = b.parameter(shape.clone());
    let [p, q, any, x, turns] = [0, 1, 2, 3, 4].map(|i| b.get_tuple_element(state, i));
    let (row_p, row_q) = (line(b, x, 1, p), line(b, x, 1, q));
    // The symmetric 2 by 2 matrix to diagonalise: its diagonal and what stands beside it.
    let mut product = |a: InstId, d: InstId| {
        let all = b.mul(a, d);
        super::total(b, all, 1)
    };
    let [low, high, beside] = match kind {
        Kind::OneSided => [product(row_p, row_p), product(row_q, row_q), product(row_p, row_q)],
        Kind::TwoSided => [(row_p, p), (row_q, q), (row_p, q)].map(|(row, at)| {
            let one = b.scalar(DType::S32, 0.0);
            let sizes = vec![b.dims(row)[0], 1];
            let element = b.add_inst(Op::DynamicSlice(sizes.clone()), &[row, one, at]);
            b.reshape(element, &sizes[..1])
        }),
    };
    // Beside a diagonal of this size it counts as zero: rows are made orthogonal for their lengths, eigenvalues exact for the largest.
    let small = formula(b, [low, high, beside], |[low, high, beside]| {
        let size = match kind {
            Kind::OneSided => (low * high).sqrt(),
            Kind::TwoSided => (low.abs() + high.abs()) * 0.5,
        };
        beside.abs().le(size * beside.epsilon())
    });
    let tangent = formula(b, [low, high, beside, small], |[low, high, beside, small]| {
        let ratio = (high - low) / (beside * 2.0);
        let t = 1.0 / (ratio.abs() + (ratio * ratio + 1.0).sqrt());
        (-t).when(ratio.lt(0.0), t).except(small, 0.0)
    });
    let c = formula(b, [tangent], |[t]| 1.0 / (t * t + 1.0).sqrt());
    let s = formula(b, [tangent, c], |[t, c]| t * c);
    let mut y = turned(b, x, 1, [p, q], [c, s]);
    if kind == Kind::TwoSided {
        y = turned(b, y, 2, [p, q], [c, s]);
    }
    let turns = turned(b, turns, 1, [p, q], [c, s]);
    let large = b.unary(ScalarOp::Not, small);
    let none = b.scalar(DType::Pred, 0.0);
    let large = b.reduce(large, none, ScalarOp::Or, &[0]);
    let any = b.binary(ScalarOp::Or, any, large);
    let next = next_pair(b, p, q, n);
    let root = b.tuple(&[next[0], next[1], any, y, turns]);
    b.end(root)
}

/// (p, q + 1), or (p + 1, p + 2) where q was the last.
fn next_pair(b: &mut Builder, p: InstId, q: InstId, n: u64) -> [InstId; 2] {
    let (one, end) = (b.scalar(DType::S32, 1.0), b.scalar(DType::S32, n as f64));
    let (below, right) = (b.add(p, one), b.add(q, one));
    let past = b.compare(Direction::Ge, right, end);
    let corner = b.add(below, one);
    [b.select(past, below, p), b.select(past, corner, right)]
}
