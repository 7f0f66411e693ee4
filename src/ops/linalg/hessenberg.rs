//! Reduction to Hessenberg or tridiagonal form by similarity transforms, the first stage of eigenvalue computation.
//!
//! Source: Golub and Van Loan, "Matrix Computations", 7.4.2 and 8.3.1, and the documentation of LAPACK's `gehrd` and `sytrd`,
//! which says how the reflections are stored.
use super::factor::{product_of_reflections, replace_column, store_reflection_vector};
use super::{adjoint, conjugate, identity, reflect_rows, reflector};
use crate::hlo::symbolic::PadDim;
use crate::hlo::symbolic::{Builder, InstId, Op};
use crate::ops::counted_loop::counted_loop;
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::tensor::DType;

/// Hessenberg form of `a [batch.., n, n]` in LAPACK's packed form: the Householder vectors are below the subdiagonal. The
/// second result is their factors `[batch.., n - 1]`.
pub(super) fn packed_hessenberg(b: &mut Builder, a: InstId) -> (InstId, InstId) {
    let dims = b.dims(a).to_vec();
    let (rank, n) = (dims.len(), dims[dims.len() - 1]);
    let count = n.saturating_sub(1);
    let taus = b.full(b.dtype(a), &[&dims[..rank - 2], &[count]].concat(), 0.0);
    if count == 0 {
        return (a, taus);
    }
    let parts = counted_loop(b, "reflect_both_sides", count, &[a, taus], |b, k, parts| {
        let (a, taus) = (parts[0], parts[1]);
        let (top, below) =
            (b.slice_axis(a, rank - 2, Dim::from(0), Dim::from(1)), b.slice_axis(a, rank - 2, Dim::from(1), n));
        let (v, tau) = reflector(b, below, k);
        let turned = reflect_rows(b, below, v, tau);
        let below = store_reflection_vector(b, [below, turned], v, k);
        let a = b.concatenate(&[top, below], rank - 2);
        // The same reflection, applied to the columns.
        let (first, others) =
            (b.slice_axis(a, rank - 1, Dim::from(0), Dim::from(1)), b.slice_axis(a, rank - 1, Dim::from(1), n));
        let others = adjoint(b, others);
        let others = reflect_rows(b, others, v, tau);
        let others = adjoint(b, others);
        let a = b.concatenate(&[first, others], rank - 1);
        let tau = conjugate(b, tau);
        vec![a, replace_column(b, taus, k, tau)]
    });
    (parts[0], parts[1])
}

/// Hessenberg form `h` and transform `q` with `a = q h q*`, all `[batch.., n, n]`.
pub(super) fn hessenberg_decomposition(b: &mut Builder, a: InstId) -> (InstId, InstId) {
    let dims = b.dims(a).to_vec();
    let (rank, n) = (dims.len(), dims[dims.len() - 1]);
    let ones = identity(b, b.dtype(a), &dims);
    if n < 2 {
        return (a, ones);
    }
    let (packed, taus) = packed_hessenberg(b, a);
    let vectors = b.slice_axis(packed, rank - 2, Dim::from(1), n);
    let vectors = b.slice_axis(vectors, rank - 1, Dim::from(0), n - 1);
    let q = product_of_reflections(b, vectors, taus);
    let mut border = vec![PadDim::default(); rank];
    for axis in [rank - 2, rank - 1] {
        border[axis] = PadDim { low: Dim::from(1), high: Dim::from(0), interior: Dim::from(0) };
    }
    let zero = b.scalar(b.dtype(a), 0.0);
    let q = b.pad(q, zero, &border);
    let (row, column) = (b.iota(DType::S32, &dims, rank - 2), b.iota(DType::S32, &dims, rank - 1));
    let first = b.full_like(row, 0.0);
    let corner = b.binary(ScalarOp::Maximum, row, column);
    let corner = b.compare(Direction::Eq, corner, first);
    (zero_below_subdiagonal(b, packed), b.select(corner, ones, q))
}

/// Matrices with zeros below the subdiagonal.
pub(super) fn zero_below_subdiagonal(b: &mut Builder, x: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let rank = dims.len();
    let (row, column) = (b.iota(DType::S32, &dims, rank - 2), b.iota(DType::S32, &dims, rank - 1));
    let one = b.full_like(column, 1.0);
    let limit = b.add(column, one);
    let (kept, zero) = (b.compare(Direction::Le, row, limit), b.full_like(x, 0.0));
    b.select(kept, x, zero)
}

/// Tridiagonal forms of Hermitian matrices of which one triangle is given.
pub(super) struct Tridiagonal {
    /// Tridiagonal matrix and Householder vectors in the given triangle; the other triangle is unchanged.
    pub packed: InstId,
    /// Diagonal `[batch.., n]` and off-diagonal `[batch.., n - 1]`, both real.
    pub diagonal: InstId,
    pub beside: InstId,
    /// Factors of the reflections, `[batch.., n - 1]`.
    pub taus: InstId,
}

/// Tridiagonal forms from the lower triangles of `a [batch.., n, n]`.
pub(super) fn tridiagonal_from_lower(b: &mut Builder, a: InstId) -> Tridiagonal {
    let dims = b.dims(a).to_vec();
    let (rank, n) = (dims.len(), dims[dims.len() - 1]);
    let whole = super::jacobi::hermitian_from_lower(b, a);
    let (reduced, taus) = packed_hessenberg(b, whole);
    let (row, column) = (b.iota(DType::S32, &dims, rank - 2), b.iota(DType::S32, &dims, rank - 1));
    let lower = b.compare(Direction::Ge, row, column);
    let kept = b.select(lower, reduced, a);
    let below = b.slice_axis(reduced, rank - 2, n.min(1), n);
    let below = b.slice_axis(below, rank - 1, Dim::from(0), n.saturating_sub(1));
    let (diagonal, beside) = (super::jacobi::real_diagonal(b, reduced), super::jacobi::real_diagonal(b, below));
    Tridiagonal { packed: kept, diagonal, beside, taus }
}

/// Tridiagonal forms from the upper triangles: those of the matrices with rows and columns in reverse order.
pub(super) fn tridiagonal_from_upper(b: &mut Builder, a: InstId) -> Tridiagonal {
    let last = b.rank(a) - 1;
    let turned = b.add_inst(Op::Reverse(vec![last - 1, last]), &[a]);
    let t = tridiagonal_from_lower(b, turned);
    let packed = b.add_inst(Op::Reverse(vec![last - 1, last]), &[t.packed]);
    let [diagonal, beside, taus] =
        [t.diagonal, t.beside, t.taus].map(|x| b.add_inst(Op::Reverse(vec![last - 1]), &[x]));
    Tridiagonal { packed, diagonal, beside, taus }
}
