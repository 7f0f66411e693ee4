//! Schur decomposition `a = z t z*`, by implicit QR steps that chase a bulge down an unreduced part of a Hessenberg matrix.
//!
//! Source: Golub and Van Loan, "Matrix Computations", 7.5. Real matrices use Francis's double shift, so that everything stays
//! real and pairs of complex eigenvalues stay in 2-by-2 blocks. Complex matrices use Wilkinson's single shift. All functions
//! take a single matrix.
use super::blocks::standardize_blocks;
use super::hessenberg::{hessenberg_decomposition, zero_below_subdiagonal};
use crate::dims;
use crate::hlo::symbolic::PadDim;
use crate::hlo::symbolic::{Builder, CompId, Dim, InstId, Op, Shape};
use crate::ops::math::expr::build_formula;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Limit of QR steps per row of the matrix, that of LAPACK's `hqr`.
const STEPS: u64 = 30;
/// Number of steps on one part after which an exceptional shift breaks a cycle, as in LAPACK.
const UNUSUAL: f64 = 10.0;

/// Schur decomposition of a matrix.
pub(super) struct Schur {
    /// Quasi-triangular factor `[n, n]`: upper triangular, apart from 2-by-2 blocks with equal diagonal elements.
    pub t: InstId,
    /// Unitary factor, `[n, n]`.
    pub z: InstId,
    /// Order of the part that did not converge, s32; 0 on success.
    pub failed: InstId,
}

/// Schur decomposition of `a [n, n]`.
pub(super) fn schur(b: &mut Builder, a: InstId) -> Schur {
    let n = b.dims(a)[0];
    if n < 2 {
        let (z, failed) = (super::identity(b, b.dtype(a), &[n, n]), b.scalar(DType::S32, 0.0));
        return Schur { t: a, z, failed };
    }
    let (h, z) = hessenberg_decomposition(b, a);
    // An extra row and column, so that a reflection of three rows fits where only two remain.
    let zero = b.scalar(b.dtype(a), 0.0);
    let border = [PadDim { low: Dim::from(0), high: Dim::from(1), interior: Dim::from(0) }; 2];
    let (h, z) = (b.pad(h, zero, &border), b.pad(z, zero, &border));
    let (h, part) = deflated(b, h);
    let [steps, on_part] = [0.0; 2].map(|x| b.scalar(DType::S32, x));
    let start = b.tuple(&[steps, on_part, part[0], part[1], h, z]);
    let shape = b.shape(start).clone();
    let (cond, body) = (unfinished(b, &shape, n), step(b, &shape));
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    let [last, h, z] = [3, 4, 5].map(|i| b.get_tuple_element(end, i));
    let (t, z) = if b.dtype(a).is_complex() { (h, z) } else { standardize_blocks(b, h, z, n) };
    let [t, z] = [t, z].map(|x| {
        let rows = b.slice_axis(x, 0, Dim::from(0), n);
        b.slice_axis(rows, 1, Dim::from(0), n)
    });
    let none = b.scalar(DType::S32, 0.0);
    let (is_left, one) = (b.compare(Direction::Gt, last, none), b.scalar(DType::S32, 1.0));
    let order = b.add(last, one);
    Schur { t, z, failed: b.select(is_left, order, none) }
}

/// Element `[i, j]` of a matrix.
pub(super) fn matrix_element(b: &mut Builder, x: InstId, i: InstId, j: InstId) -> InstId {
    let one = matrix_block(b, x, [i, j], [Dim::from(1), Dim::from(1)]);
    b.reshape(one, &[])
}

/// Block of `sizes` whose first element is at `at`.
pub(super) fn matrix_block(b: &mut Builder, x: InstId, at: [InstId; 2], sizes: [Dim; 2]) -> InstId {
    b.add_inst(Op::DynamicSlice(sizes.to_vec()), &[x, at[0], at[1]])
}

/// Integer scalar plus a constant.
pub(super) fn add_constant(b: &mut Builder, i: InstId, by: f64) -> InstId {
    let by = b.scalar(DType::S32, by);
    b.add(i, by)
}

/// Mask `[row, column]` of the elements right below the diagonal.
fn below_diagonal(b: &mut Builder, dims: &[Dim]) -> InstId {
    let (row, column) = (b.iota(DType::S32, dims, 0), b.iota(DType::S32, dims, 1));
    let next = b.full_like(column, 1.0);
    let next = b.add(column, next);
    b.compare(Direction::Eq, row, next)
}

/// Sums over each column of the elements where `mask` is true.
fn by_column(b: &mut Builder, x: InstId, mask: InstId) -> InstId {
    let zero = b.full_like(x, 0.0);
    let alone = b.select(mask, x, zero);
    super::total(b, alone, 0)
}

/// Vector shifted by one position towards the end; the first element becomes zero.
fn to_next(b: &mut Builder, x: InstId) -> InstId {
    let zero = b.scalar(b.dtype(x), 0.0);
    b.pad(x, zero, &[PadDim { low: Dim::from(1), high: Dim::from(-1), interior: Dim::from(0) }])
}

/// Deflation: sets negligible elements below the diagonal to zero, and finds the first and last row of the lowest part left to
/// reduce (0 for both if none is left).
fn deflated(b: &mut Builder, h: InstId) -> (InstId, [InstId; 2]) {
    let dims = b.dims(h).to_vec();
    let below = below_diagonal(b, &dims);
    let size = b.unary(ScalarOp::Abs, h);
    let sizes = super::diagonal(b, size);
    let beside = by_column(b, size, below);
    let rows = b.broadcast(sizes, &dims, &[0]);
    let next = by_column(b, rows, below);
    let zero = b.scalar(b.dtype(size), 0.0);
    let largest = b.reduce(size, zero, ScalarOp::Maximum, &[0, 1]);
    let largest = b.broadcast(largest, &dims[..1], &[]);
    let small = build_formula(b, [beside, sizes, next, largest], |[beside, own, next, largest]| {
        let around = own + next;
        beside.le(around.select_where(around.gt(0.0), largest) * beside.epsilon())
    });
    let wide = b.broadcast(small, &dims, &[1]);
    let (gone, none) = (b.binary(ScalarOp::And, wide, below), b.full_like(h, 0.0));
    let h = b.select(gone, none, h);
    let joined = b.unary(ScalarOp::Not, small);
    // A real matrix is finished if no unreduced part has three rows or more.
    let inside = if b.dtype(h).is_complex() {
        joined
    } else {
        let before = to_next(b, joined);
        b.binary(ScalarOp::And, joined, before)
    };
    let index = b.iota(DType::S32, &dims[..1], 0);
    let one = b.full_like(index, 1.0);
    let (behind, none) = (b.add(index, one), b.full_like(index, 0.0));
    let start = b.scalar(DType::S32, 0.0);
    let ends = b.select(inside, behind, none);
    let last = b.reduce(ends, start, ScalarOp::Maximum, &[0]);
    let end = b.compare(Direction::Lt, index, last);
    let starts = b.binary(ScalarOp::And, small, end);
    let starts = b.select(starts, behind, none);
    let first = b.reduce(starts, start, ScalarOp::Maximum, &[0]);
    (h, [first, last])
}

fn unfinished(b: &mut Builder, shape: &Shape, n: Dim) -> CompId {
    b.begin_computation("unreduced");
    let state = b.parameter(shape.clone());
    let [steps, last] = [0, 3].map(|i| b.get_tuple_element(state, i));
    let (most, none) = (b.scalar(DType::S32, STEPS * n.max(10)), b.scalar(DType::S32, 0.0));
    let (left, some) = (b.compare(Direction::Lt, steps, most), b.compare(Direction::Gt, last, none));
    let root = b.binary(ScalarOp::And, left, some);
    b.end_computation(root)
}

/// Loop body of a QR step on the unreduced part recorded in the state.
fn step(b: &mut Builder, shape: &Shape) -> CompId {
    b.begin_computation("qr_step");
    let state = b.parameter(shape.clone());
    let [steps, on_part, first, last, h, z] = [0, 1, 2, 3, 4, 5].map(|i| b.get_tuple_element(state, i));
    let x = first_column(b, h, [first, last], on_part);
    let (h, z) = chase(b, h, z, x, [first, last]);
    let h = zero_below_subdiagonal(b, h);
    let (h, part) = deflated(b, h);
    let (steps, longer) = (add_constant(b, steps, 1.0), add_constant(b, on_part, 1.0));
    let (same, none) = (b.compare(Direction::Eq, part[1], last), b.scalar(DType::S32, 0.0));
    let on_part = b.select(same, longer, none);
    let root = b.tuple(&[steps, on_part, part[0], part[1], h, z]);
    b.end_computation(root)
}

/// Vector that the first reflection of a QR step maps to an axis: a multiple of the first column of the shifted part, `[3]` or
/// `[2]`.
fn first_column(b: &mut Builder, h: InstId, [first, last]: [InstId; 2], on_part: InstId) -> InstId {
    let (second, before) = (add_constant(b, first, 1.0), add_constant(b, last, -1.0));
    let places = [(first, first), (first, second), (second, first), (second, second)];
    let [h00, h01, h10, h11] = places.map(|(i, j)| matrix_element(b, h, i, j));
    let places = [(before, before), (before, last), (last, before), (last, last)];
    let [p, q, r, s] = places.map(|(i, j)| matrix_element(b, h, i, j));
    let round = b.scalar(DType::S32, UNUSUAL);
    let (round, end) = (b.binary(ScalarOp::Remainder, on_part, round), b.scalar(DType::S32, UNUSUAL - 1.0));
    let unusual = b.compare(Direction::Eq, round, end);
    let parts = if b.dtype(h).is_complex() {
        let size = b.unary(ScalarOp::Abs, r);
        let size = b.convert(size, b.dtype(h));
        let shift = nearer_eigenvalue(b, [p, q, r, s]);
        let odd = b.add(s, size);
        let shift = b.select(unusual, odd, shift);
        vec![b.sub(h00, shift), h10]
    } else {
        let (third, above) = (add_constant(b, second, 1.0), add_constant(b, last, -2.0));
        let (h21, r1) = (matrix_element(b, h, third, second), matrix_element(b, h, before, above));
        let odd = build_formula(b, [r, r1], |[r, r1]| r.abs() + r1.abs());
        let sum =
            build_formula(b, [p, s, odd, unusual], |[p, s, odd, unusual]| (odd * 1.5).select_where(unusual, p + s));
        let det = build_formula(b, [p, q, r, s, odd, unusual], |[p, q, r, s, odd, unusual]| {
            (odd * odd).select_where(unusual, p * s - q * r)
        });
        // The column is divided by the first subdiagonal element, which is not zero here.
        let x = build_formula(b, [h00, h01, h10, sum, det], |[h00, h01, h10, sum, det]| {
            ((h00 - sum) * h00 + det) / h10 + h01
        });
        vec![x, build_formula(b, [h00, h11, sum], |[h00, h11, sum]| h00 + h11 - sum), h21]
    };
    let parts: Vec<InstId> = parts.into_iter().map(|x| b.reshape(x, &dims![1])).collect();
    b.concatenate(&parts, 0)
}

/// Eigenvalue of `[[p, q], [r, s]]` that is nearer to `s`.
fn nearer_eigenvalue(b: &mut Builder, [p, q, r, s]: [InstId; 4]) -> InstId {
    let half = build_formula(b, [p, s], |[p, s]| (p - s) * 0.5);
    let beside = b.mul(q, r);
    let root = build_formula(b, [half, beside], |[half, beside]| (half * half + beside).sqrt());
    let (plus, minus) = (b.add(half, root), b.sub(half, root));
    let sizes = [plus, minus].map(|x| b.unary(ScalarOp::Abs, x));
    let larger = b.compare(Direction::Ge, sizes[0], sizes[1]);
    let divisor = b.select(larger, plus, minus);
    let none = b.full_like(divisor, 0.0);
    let flat = b.compare(Direction::Eq, divisor, none);
    let moved = build_formula(b, [s, beside, divisor], |[s, beside, divisor]| s - beside / divisor);
    b.select(flat, s, moved)
}

/// Applies the reflections of a QR step to rows `first` to `last`, starting with the one determined by the vector `x`.
fn chase(b: &mut Builder, h: InstId, z: InstId, x: InstId, [first, last]: [InstId; 2]) -> (InstId, InstId) {
    let start = b.tuple(&[first, last, x, h, z]);
    let shape = b.shape(start).clone();
    b.begin_computation("rows_left");
    let state = b.parameter(shape.clone());
    let [k, last] = [0, 1].map(|i| b.get_tuple_element(state, i));
    let root = b.compare(Direction::Lt, k, last);
    let cond = b.end_computation(root);
    b.begin_computation("chase");
    let state = b.parameter(shape);
    let [k, last, x, h, z] = [0, 1, 2, 3, 4].map(|i| b.get_tuple_element(state, i));
    let width = b.dims(x)[0];
    let v = unit_reflector(b, x);
    let h = reflect_rows_at(b, h, v, k);
    let (h, z) = (reflect_columns_at(b, h, v, k), reflect_columns_at(b, z, v, k));
    let next = add_constant(b, k, 1.0);
    let bulge = matrix_block(b, h, [next, k], [width, Dim::from(1)]);
    let bulge = b.reshape(bulge, &[width]);
    // Rows behind the unreduced part take no part in the reflection.
    let row = b.iota(DType::S32, &[width], 0);
    let row = b.add(row, next);
    let inside = b.compare(Direction::Le, row, last);
    let zero = b.full_like(bulge, 0.0);
    let x = b.select(inside, bulge, zero);
    let root = b.tuple(&[next, last, x, h, z]);
    let body = b.end_computation(root);
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    (b.get_tuple_element(end, 3), b.get_tuple_element(end, 4))
}

/// Unit vector `v` with which `1 - 2 v v*` maps `x` to the first axis; zero if `x` is zero.
fn unit_reflector(b: &mut Builder, x: InstId) -> InstId {
    let (dims, dtype) = (b.dims(x).to_vec(), b.dtype(x));
    let size = b.unary(ScalarOp::Abs, x);
    let zero = b.scalar(b.dtype(size), 0.0);
    let largest = b.reduce(size, zero, ScalarOp::Maximum, &[0]);
    let scale = build_formula(b, [largest], |[x]| x.constant(1.0).select_where(x.equals(0.0), x));
    let scale = b.convert(scale, dtype);
    let wide = b.broadcast(scale, &dims, &[]);
    let x = b.div(x, wide);
    let length = super::norm(b, x, 0);
    let head = b.slice_axis(x, 0, Dim::from(0), Dim::from(1));
    let phase = super::jacobi::phase(b, head);
    let phase = b.reshape(phase, &[]);
    let length = b.convert(length, dtype);
    let more = b.mul(phase, length);
    let more = b.broadcast(more, &dims, &[]);
    let (index, first) = (b.iota(DType::S32, &dims, 0), b.full(DType::S32, &dims, 0.0));
    let is_first = b.compare(Direction::Eq, index, first);
    let sum = b.add(x, more);
    let v = b.select(is_first, sum, x);
    let length = super::norm(b, v, 0);
    let length = build_formula(b, [length], |[x]| x.constant(1.0).select_where(x.equals(0.0), x));
    let length = b.convert(length, dtype);
    let wide = b.broadcast(length, &dims, &[]);
    b.div(v, wide)
}

/// Multiplies the rows from `k` on by `1 - 2 v v*` from the left.
fn reflect_rows_at(b: &mut Builder, x: InstId, v: InstId, k: InstId) -> InstId {
    let (width, columns, zero) = (b.dims(v)[0], b.dims(x)[1], b.scalar(DType::S32, 0.0));
    let rows = matrix_block(b, x, [k, zero], [width, columns]);
    let two = b.scalar(b.dtype(v), 2.0);
    let rows = super::reflect_rows(b, rows, v, two);
    b.add_inst(Op::DynamicUpdateSlice, &[x, rows, k, zero])
}

/// Multiplies the columns from `k` on by `1 - 2 v v*` from the right.
fn reflect_columns_at(b: &mut Builder, x: InstId, v: InstId, k: InstId) -> InstId {
    let (width, rows, zero) = (b.dims(v)[0], b.dims(x)[0], b.scalar(DType::S32, 0.0));
    let columns = matrix_block(b, x, [zero, k], [rows, width]);
    let turned = super::adjoint(b, columns);
    let two = b.scalar(b.dtype(v), 2.0);
    let turned = super::reflect_rows(b, turned, v, two);
    let columns = super::adjoint(b, turned);
    b.add_inst(Op::DynamicUpdateSlice, &[x, columns, zero, k])
}
