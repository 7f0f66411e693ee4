//! Eigenvalues and eigenvectors of general matrices, by the Schur form.
//!
//! Source: Golub and Van Loan, "Matrix Computations", 7.6.4. Vectors are scaled as the documentation of LAPACK's `geev` says:
//! to length 1, with a real largest element.
use super::blocks::complex_schur_form;
use super::least_squares::batch_matmul;
use super::schur::{Schur, schur};
use super::{line, with_line};
use crate::hlo::symbolic::PadDim;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::counted_loop::counted_loop;
use crate::ops::math::expr::build_formula;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Applies `f` to each matrix of `a [count, n, n]`, one after the other, as the number of iterations depends on the matrix.
/// `types` gives the element type and sizes of each result for one matrix.
pub(super) fn for_each_matrix(
    b: &mut Builder,
    name: &str,
    a: InstId,
    types: &[(DType, Vec<Dim>)],
    f: impl FnOnce(&mut Builder, InstId) -> Vec<InstId>,
) -> Vec<InstId> {
    let count = b.dims(a)[0];
    let mut state = vec![a];
    for (dtype, dims) in types {
        state.push(b.full(*dtype, &[&[count], &dims[..]].concat(), 0.0));
    }
    let parts = counted_loop(b, name, count, &state, |b, i, mut parts| {
        let one = line(b, parts[0], 0, i);
        let results = f(b, one);
        for (part, result) in parts[1..].iter_mut().zip(results) {
            *part = with_line(b, *part, 0, i, result);
        }
        parts
    });
    parts[1..].to_vec()
}

/// Eigenvalues `[n]` of a matrix in real Schur form: real and imaginary parts. The positive imaginary part of a conjugate pair
/// comes first.
pub(super) fn eigenvalue_parts(b: &mut Builder, t: InstId) -> [InstId; 2] {
    let n = b.dims(t)[0];
    let real = super::diagonal(b, t);
    if n < 2 {
        return [real, b.full_like(real, 0.0)];
    }
    let mut beside = |rows: Dim, columns: Dim| {
        let part = b.slice_axis(t, 0, rows, n - 1 + rows);
        let part = b.slice_axis(part, 1, columns, n - 1 + columns);
        super::diagonal(b, part)
    };
    let (above, below) = (beside(Dim::from(0), Dim::from(1)), beside(Dim::from(1), Dim::from(0)));
    let size = build_formula(b, [above, below], |[above, below]| above.abs().sqrt() * below.abs().sqrt());
    let zero = b.scalar(b.dtype(size), 0.0);
    let first = b.pad(size, zero, &[PadDim { low: Dim::from(0), high: Dim::from(1), interior: Dim::from(0) }]);
    let second = b.pad(size, zero, &[PadDim { low: Dim::from(1), high: Dim::from(0), interior: Dim::from(0) }]);
    [real, b.sub(first, second)]
}

/// Eigenvectors to compute: left ones, right ones or both.
pub(super) struct EigenvectorSides {
    pub left: bool,
    pub right: bool,
}

/// Eigendecomposition. Results: real and imaginary parts of the eigenvalues of a real `a [n, n]`, or the eigenvalues of a
/// complex one; left and right eigenvectors as complex columns, zeros if not `wanted`; and the order of the part that did not
/// converge.
pub(super) fn eigendecomposition(b: &mut Builder, a: InstId, wanted: &EigenvectorSides) -> Vec<InstId> {
    let dims = b.dims(a).to_vec();
    let Schur { t, z, failed } = schur(b, a);
    let is_real = !b.dtype(a).is_complex();
    let (mut values, complex, imaginary) = if is_real {
        let [real, imaginary] = eigenvalue_parts(b, t);
        let values = b.elementwise(ScalarOp::Complex, &[real, imaginary]);
        (vec![real, imaginary], values, Some(imaginary))
    } else {
        let values = super::diagonal(b, t);
        (vec![values], values, None)
    };
    let dtype = b.dtype(complex);
    let none = b.full(dtype, &dims, 0.0);
    let (t, z) = if is_real && (wanted.left || wanted.right) {
        let (t, z) = (b.convert(t, dtype), b.convert(z, dtype));
        complex_schur_form(b, t, z)
    } else {
        (t, z)
    };
    let left = if wanted.left {
        // Left eigenvectors are those of the adjoint, which is upper triangular with rows and columns in reverse order.
        let [lower, values] = [super::adjoint(b, t), super::conjugate(b, complex)];
        let upper = b.add_inst(Op::Reverse(vec![0, 1]), &[lower]);
        let values = b.add_inst(Op::Reverse(vec![0]), &[values]);
        let y = of_triangle(b, upper, values);
        let y = b.add_inst(Op::Reverse(vec![0, 1]), &[y]);
        scaled(b, z, y, imaginary)
    } else {
        none
    };
    let right = if wanted.right {
        let y = of_triangle(b, t, complex);
        scaled(b, z, y, imaginary)
    } else {
        none
    };
    values.extend([left, right, failed]);
    values
}

/// Eigenvectors of an upper triangular matrix as columns, with 1 on the diagonal.
fn of_triangle(b: &mut Builder, t: InstId, values: InstId) -> InstId {
    let (dims, n) = (b.dims(t).to_vec(), b.dims(t)[0]);
    let size = b.unary(ScalarOp::Abs, t);
    let zero = b.scalar(b.dtype(size), 0.0);
    let largest = b.reduce(size, zero, ScalarOp::Maximum, &[0, 1]);
    let ones = super::identity(b, b.dtype(t), &dims);
    let parts = counted_loop(b, "eigenvectors", n, &[ones, t, values, largest], |b, step, parts| {
        let [y, t, values, largest] = [parts[0], parts[1], parts[2], parts[3]];
        // Back substitution, from the last row to the first.
        let last = b.scalar(DType::S32, n - 1);
        let i = b.sub(last, step);
        let [row, own_row] = [t, y].map(|x| line(b, x, 0, i));
        let wide = b.broadcast(row, &dims, &[0]);
        let products = b.mul(wide, y);
        let sums = super::total(b, products, 0);
        let value = line(b, values, 0, i);
        let difference = b.sub(values, value);
        // The difference of equal eigenvalues is replaced by a rounding error.
        let distance = b.unary(ScalarOp::Abs, difference);
        let least = build_formula(b, [largest], |[x]| x.constant(1.0).select_where(x.equals(0.0), x) * x.epsilon());
        let near = b.compare(Direction::Lt, distance, least);
        let least = b.convert(least, b.dtype(t));
        let least = b.broadcast(least, &[n], &[]);
        let difference = b.select(near, least, difference);
        let column = b.iota(DType::S32, &[n], 0);
        let right = b.compare(Direction::Gt, column, i);
        let solved = b.div(sums, difference);
        let row = b.select(right, solved, own_row);
        vec![with_line(b, y, 0, i, row), t, values, largest]
    });
    parts[0]
}

/// Columns of `z y`, scaled to length 1 with a real largest element. Vectors of real eigenvalues (by `imaginary`, for real
/// matrices) are real, and those of a pair are conjugates.
fn scaled(b: &mut Builder, z: InstId, y: InstId, imaginary: Option<InstId>) -> InstId {
    let dims = b.dims(z).to_vec();
    let v = batch_matmul(b, z, y);
    let size = b.unary(ScalarOp::Abs, v);
    let zero = b.scalar(b.dtype(size), 0.0);
    let largest = b.reduce(size, zero, ScalarOp::Maximum, &[0]);
    let wide = b.broadcast(largest, &dims, &[1]);
    let index = b.iota(DType::S32, &dims, 0);
    let (is_largest, behind) = (b.compare(Direction::Eq, size, wide), b.full_like(index, dims[0]));
    let places = b.select(is_largest, index, behind);
    let end = b.scalar(DType::S32, dims[0]);
    let place = b.reduce(places, end, ScalarOp::Minimum, &[0]);
    let place = b.broadcast(place, &dims, &[1]);
    let is_place = b.compare(Direction::Eq, index, place);
    let none = b.full_like(v, 0.0);
    let head = b.select(is_place, v, none);
    let head = super::total(b, head, 0);
    let phase = super::jacobi::phase(b, head);
    let phase = b.broadcast(phase, &dims, &[1]);
    let scale = b.convert(wide, b.dtype(v));
    let v = b.div(v, scale);
    let v = b.div(v, phase);
    let length = super::norm(b, v, 0);
    let length = b.convert(length, b.dtype(v));
    let length = b.broadcast(length, &dims, &[1]);
    let v = b.div(v, length);
    let (real, part) = (b.unary(ScalarOp::Real, v), b.unary(ScalarOp::Imag, v));
    let nothing = b.full_like(part, 0.0);
    let part = b.select(is_place, nothing, part);
    let Some(imaginary) = imaginary else { return b.elementwise(ScalarOp::Complex, &[real, part]) };
    let signs = b.broadcast(imaginary, &dims, &[1]);
    let (is_real, is_second) = (b.compare(Direction::Eq, signs, nothing), b.compare(Direction::Lt, signs, nothing));
    let part = b.select(is_real, nothing, part);
    let before = |b: &mut Builder, x: InstId| {
        let zero = b.scalar(b.dtype(x), 0.0);
        b.pad(x, zero, &[PadDim::default(), PadDim { low: Dim::from(1), high: Dim::from(-1), interior: Dim::from(0) }])
    };
    let (first, first_part) = (before(b, real), before(b, part));
    let opposite = b.unary(ScalarOp::Negate, first_part);
    let (real, part) = (b.select(is_second, first, real), b.select(is_second, opposite, part));
    b.elementwise(ScalarOp::Complex, &[real, part])
}
