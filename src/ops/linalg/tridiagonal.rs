//! Tridiagonal matrices: products and linear systems.
use super::{line, with_line};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::PadDim;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::counted_loop::counted_loop;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_second_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("TridiagonalMatMul", "superdiag maindiag subdiag rhs -> output", product).shape(|cx| cx.one_output_like(3, cx.dims(3)?)).dtypes(super::FIELDS),
    op("TridiagonalSolve",  "diagonals rhs -> output",                  solve).shape(like_second_input).dtypes(super::FIELDS),
];

/// Lowers `TridiagonalMatMul`: row `i` of the result is `superdiag[i] rhs[i + 1] + maindiag[i] rhs[i] + subdiag[i] rhs[i - 1]`.
///
/// Shapes: each diagonal `[batch.., 1, m]`, `rhs [batch.., m, n]` -> `[batch.., m, n]`.
fn product(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (rhs, dims) = (cx.arg(3)?, cx.dims(3)?);
    let [ref batch @ .., m, _] = dims[..] else {
        return Err(cx.shape_mismatch(format!("matrices are needed, not {dims:?}")));
    };
    let (rank, line) = (dims.len(), [batch, &dims![1, m]].concat());
    for i in 0..3 {
        if cx.dims(i)? != line {
            return Err(cx.shape_mismatch(format!("a diagonal of {:?}, where {line:?} is needed", cx.dims(i)?)));
        }
    }
    if m == 0 {
        return cx.one_output(rhs);
    }
    let by_row: Vec<usize> = (0..rank - 1).collect();
    // Padding with -0.0 leaves a sum unchanged, even one of -0.0.
    let zero = cx.b.scalar(cx.b.dtype(rhs), -0.0);
    let mut sum = None;
    for (i, (low, high)) in [(0, 1), (0, 0), (1, 0)].into_iter().enumerate() {
        let diagonal = cx.b.reshape(cx.arg(i)?, &[batch, &[m]].concat());
        let factor = cx.b.broadcast(diagonal, &dims, &by_row);
        // The last element of the superdiagonal and the first of the subdiagonal have no row of `rhs`.
        let row = rank - 2;
        let factor = cx.b.slice_axis(factor, row, Dim::from(low), m - high);
        let neighbour = cx.b.slice_axis(rhs, row, Dim::from(high), m - low);
        let product = cx.b.mul(factor, neighbour);
        let mut margins = vec![PadDim::default(); rank];
        margins[row] = PadDim { low: Dim::from(low), high: Dim::from(high), interior: Dim::from(0) };
        let part = cx.b.pad(product, zero, &margins);
        sum = Some(sum.map_or(part, |sum| cx.b.add(sum, part)));
    }
    cx.one_output(sum.unwrap_or(rhs))
}

/// Lowers `TridiagonalSolve` for matrices given by superdiagonal, diagonal and subdiagonal.
///
/// Shapes: `diagonals [batch.., 3, m]`, `rhs [batch.., m, k]` -> `[batch.., m, k]`. Gaussian elimination from the first row to
/// the last, then back substitution. `partial_pivoting` exchanges a row with the next one if that has the larger element, which
/// fills in a second superdiagonal.
fn solve(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (diagonals, rhs, dims) = (cx.arg(0)?, cx.arg(1)?, cx.dims(1)?);
    let [ref batch @ .., m, _] = dims[..] else {
        return Err(cx.shape_mismatch(format!("matrices are needed, not {dims:?}")));
    };
    let want = [batch, &dims![3, m]].concat();
    if cx.dims(0)? != want {
        return Err(cx.shape_mismatch(format!("diagonals of {:?}, where {want:?} is needed", cx.dims(0)?)));
    }
    if cx.bool_attr("perturb_singular") {
        return Err(cx.unsupported_case("perturb_singular; matrices must not be singular"));
    }
    let pivoting = cx.node.bool("partial_pivoting").unwrap_or(true);
    let b = &mut *cx.b;
    let rank = dims.len();
    let lines = [0, 1, 2].map(|i| {
        let one = b.slice_axis(diagonals, rank - 2, Dim::from(i), Dim::from(i + 1));
        b.reshape(one, &dims[..rank - 1])
    });
    let y = solve_tridiagonal(b, lines, rhs, pivoting);
    cx.one_output(y)
}

/// Solutions `[batch.., m, k]` of tridiagonal systems; `lines` are the superdiagonal, diagonal and subdiagonal, `[batch.., m]`
/// each.
pub(super) fn solve_tridiagonal(b: &mut Builder, lines: [InstId; 3], rhs: InstId, pivoting: bool) -> InstId {
    let dims = b.dims(rhs).to_vec();
    if crate::symbolic::has_zero(&dims) {
        return rhs;
    }
    let (m, k) = (dims[dims.len() - 2], dims[dims.len() - 1]);
    let count = dims[..dims.len() - 2].iter().product::<Dim>();
    let [upper, main, lower] = lines.map(|x| {
        let flat = b.reshape(x, &dims![count, m]);
        b.transpose(flat, &[1, 0])
    });
    let upper = without_last(b, upper);
    let none = b.full_like(main, 0.0);
    let right = b.reshape(rhs, &dims![count, m, k]);
    let right = b.transpose(right, &[1, 0, 2]);
    let state = counted_loop(b, "eliminate_row", m - 1, &[main, upper, none, lower, right], |b, i, state| {
        eliminate_row(b, i, std::array::from_fn(|part| state[part]), pivoting)
    });
    let solved = back_substitute(b, [state[0], state[1], state[2], state[4]], m);
    let solved = b.transpose(solved, &[1, 0, 2]);
    b.reshape(solved, &dims)
}

/// Superdiagonal with zero in its last row, where the matrix has no element.
fn without_last(b: &mut Builder, x: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let index = b.iota(DType::S32, &dims, 0);
    let last = b.full_like(index, dims[0] - 1);
    let inside = b.compare(Direction::Lt, index, last);
    let zero = b.full_like(x, 0.0);
    b.select(inside, x, zero)
}

/// Row `i` of an array.
fn row(b: &mut Builder, x: InstId, i: InstId) -> InstId {
    line(b, x, 0, i)
}

/// Array with row `i` replaced by `value`.
fn with_row(b: &mut Builder, x: InstId, i: InstId, value: InstId) -> InstId {
    with_line(b, x, 0, i, value)
}

/// Scales each system by its factor: `f · x`.
fn scaled(b: &mut Builder, f: InstId, x: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let f = b.broadcast(f, &dims, &[0]);
    b.mul(f, x)
}

/// Eliminates the element below the diagonal in row `i + 1`.
fn eliminate_row(
    b: &mut Builder,
    i: InstId,
    [main, upper, second, lower, right]: [InstId; 5],
    pivoting: bool,
) -> Vec<InstId> {
    let one = b.scalar(DType::S32, 1.0);
    let next = b.add(i, one);
    let (pivot, above, below) = (row(b, main, i), row(b, upper, i), row(b, lower, next));
    let (next_main, next_above) = (row(b, main, next), row(b, upper, next));
    let (own, other) = (row(b, right, i), row(b, right, next));
    let swap = if pivoting {
        let (size, rival) = (b.unary(ScalarOp::Abs, pivot), b.unary(ScalarOp::Abs, below));
        b.compare(Direction::Gt, rival, size)
    } else {
        let dims = b.dims(pivot).to_vec();
        b.full(DType::Pred, &dims, 0.0)
    };
    let dims = b.dims(own).to_vec();
    let wide_swap = b.broadcast(swap, &dims, &[0]);
    // Pivot row, and the row that is reduced by it; each has three elements and its right-hand sides.
    let none = b.full_like(pivot, 0.0);
    let (stays, first, stays_second) =
        (b.select(swap, below, pivot), b.select(swap, next_main, above), b.select(swap, next_above, none));
    let (head, reduced, reduced_second) =
        (b.select(swap, pivot, below), b.select(swap, above, next_main), b.select(swap, none, next_above));
    let (kept, changed) = (b.select(wide_swap, other, own), b.select(wide_swap, own, other));
    let factor = b.div(head, stays);
    let (part, second_part, right_part) = (b.mul(factor, first), b.mul(factor, stays_second), scaled(b, factor, kept));
    let (reduced, reduced_second) = (b.sub(reduced, part), b.sub(reduced_second, second_part));
    let changed = b.sub(changed, right_part);
    let main = with_row(b, main, i, stays);
    let main = with_row(b, main, next, reduced);
    let upper = with_row(b, upper, i, first);
    let upper = with_row(b, upper, next, reduced_second);
    let second = with_row(b, second, i, stays_second);
    let right = with_row(b, right, i, kept);
    let right = with_row(b, right, next, changed);
    vec![main, upper, second, lower, right]
}

/// Back substitution for an upper triangular system with two superdiagonals.
fn back_substitute(b: &mut Builder, [main, upper, second, right]: [InstId; 4], m: Dim) -> InstId {
    let line = b.dims(right)[1..].to_vec();
    let none = b.full(b.dtype(right), &line, 0.0);
    let parts = counted_loop(b, "back_substitute", m, &[main, upper, second, right, none, none], |b, step, parts| {
        let [main, upper, second, right, x1, x2] = std::array::from_fn(|part| parts[part]);
        let last = b.scalar(DType::S32, m - 1);
        let i = b.sub(last, step);
        let (pivot, above, beyond, own) = (row(b, main, i), row(b, upper, i), row(b, second, i), row(b, right, i));
        let (part, second_part) = (scaled(b, above, x1), scaled(b, beyond, x2));
        let rest = b.sub(own, part);
        let rest = b.sub(rest, second_part);
        let divisor = b.broadcast(pivot, &line, &[0]);
        let x = b.div(rest, divisor);
        let right = with_row(b, right, i, x);
        vec![main, upper, second, right, x, x1]
    });
    parts[3]
}
