//! Banded triangular systems, and the gradient of the Cholesky factorization.
use super::{adjoint, batched, line, square};
use crate::diag::Result;
use crate::hlo::symbolic::Transpose;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::counted_loop::counted_loop;
use crate::ops::fact::{Dims, Fact};
use crate::ops::math::special::mul_scalar;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::Direction;
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("BandedTriangularSolve", "matrix rhs -> output", banded_solve).shape(banded_shape).dtypes(super::FIELDS),
    op("CholeskyGrad",          "l grad -> output",     cholesky_gradient).shape(like_first_input).dtypes("f32, f64"),
    op("BatchCholeskyGrad",     "l grad -> output",     cholesky_gradient).shape(like_first_input).dtypes("f32, f64"),
];

/// Lowers `BandedTriangularSolve` for matrices of `k` bands. Row `d` of a lower matrix holds the elements `d` positions left of
/// the diagonal; row `k - 1 - d` of an upper one holds those `d` positions right of it.
///
/// Shapes: matrix `[batch.., k, n]`, rhs `[batch.., n, m]` -> `[batch.., n, m]`.
fn banded_solve(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (bands, rhs) = (cx.dims(0)?, cx.dims(1)?);
    let ([.., k, n], [.., rows, _]) = (&bands[..], &rhs[..]) else {
        return Err(cx.shape_mismatch(format!("bands {bands:?} and right sides {rhs:?}; matrices are needed")));
    };
    if n != rows || crate::symbolic::has_zero(&bands) || crate::symbolic::has_zero(&rhs) {
        return Err(cx.shape_mismatch(format!("bands {bands:?} and right sides {rhs:?} do not fit, or are empty")));
    }
    let (k, n) = (*k, *n);
    let lower = cx.node.bool("lower").unwrap_or(true);
    let is_adjoint = cx.bool_attr("adjoint");
    let (a, b) = (cx.arg(0)?, cx.arg(1)?);
    let a = whole(cx.b, a, k.min(n), lower);
    let (a, b) = batched(cx, a, b)?;
    let transpose_a = if is_adjoint { Transpose::Adjoint } else { Transpose::No };
    let solve = Op::TriangularSolve { left_side: true, lower, unit_diagonal: false, transpose_a };
    let y = cx.b.add_inst(solve, &[a, b]);
    cx.one_output(y)
}

/// Dense matrices `[batch.., n, n]` with the `count` bands at the diagonal and zeros elsewhere.
fn whole(b: &mut Builder, bands: InstId, count: Dim, lower: bool) -> InstId {
    let dims = b.dims(bands).to_vec();
    let (rank, k, n) = (dims.len(), dims[dims.len() - 2], dims[dims.len() - 1]);
    let square = [&dims[..rank - 2], &[n, n]].concat();
    let by_row: Vec<usize> = (0..rank - 1).collect();
    let zeros = b.full(b.dtype(bands), &square, 0.0);
    let parts = counted_loop(b, "place_band", count, &[zeros, bands], |b, d, parts| {
        let place = if lower {
            d
        } else {
            let last = b.scalar(DType::S32, k - 1);
            b.sub(last, d)
        };
        let band = line(b, parts[1], rank - 2, place);
        let band = b.broadcast(band, &square, &by_row);
        let (row, column) = (b.iota(DType::S32, &square, rank - 2), b.iota(DType::S32, &square, rank - 1));
        let distance = if lower { b.sub(row, column) } else { b.sub(column, row) };
        let on = b.compare(Direction::Eq, distance, d);
        vec![b.select(on, band, parts[0]), parts[1]]
    });
    parts[0]
}

/// Lowers the gradient of the Cholesky factorization: half of `l⁻ᵀ (p + pᵀ) l⁻¹`, with `p` the lower triangle of `lᵀ grad`, its
/// diagonal halved. Source: Murray, "Differentiation of the Cholesky decomposition".
fn cholesky_gradient(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, _) = square(cx, 0)?;
    if cx.dims(1)? != dims {
        return Err(cx.shape_mismatch(format!("a factor {dims:?} and its gradient {:?}", cx.dims(1)?)));
    }
    match cx.dtype(0)? {
        DType::F32 | DType::F64 => {}
        other => return Err(cx.unsupported_case(format!("{} of {other}; f32, f64 are supported", cx.node.op))),
    }
    let (l, grad) = (cx.arg(0)?, cx.arg(1)?);
    if crate::symbolic::has_zero(&dims) {
        return cx.one_output(grad);
    }
    let b = &mut *cx.b;
    let rank = dims.len();
    let (row, column) = (b.iota(DType::S32, &dims, rank - 2), b.iota(DType::S32, &dims, rank - 1));
    let (is_lower, on, zero) =
        (b.compare(Direction::Ge, row, column), b.compare(Direction::Eq, row, column), b.full_like(l, 0.0));
    let [l, grad] = [l, grad].map(|x| b.select(is_lower, x, zero));
    let turned = adjoint(b, l);
    let p = super::least_squares::batch_matmul(b, turned, grad);
    let half = mul_scalar(b, p, 0.5);
    let p = b.select(is_lower, p, zero);
    let p = b.select(on, half, p);
    let other = adjoint(b, p);
    let p = b.add(p, other);
    let mut solve = |left_side: bool, transpose_a: Transpose, x: InstId| {
        b.add_inst(Op::TriangularSolve { left_side, lower: true, unit_diagonal: false, transpose_a }, &[l, x])
    };
    let y = solve(true, Transpose::Adjoint, p);
    let y = solve(false, Transpose::No, y);
    let y = mul_scalar(cx.b, y, 0.5);
    cx.one_output(y)
}

/// Shape function of banded solves: the broadcast batch of both inputs, with the rows and columns of the right-hand side.
fn banded_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    match (cx.ranked_dims(0)?.as_deref(), cx.ranked_dims(1)?.as_deref()) {
        (Some([batch @ .., _, n]), Some([other @ .., rows, m])) => {
            let batch = cx.broadcast(&Dims::ranked(batch), &Dims::ranked(other))?;
            let rows =
                cx.merge_dim(*n, *rows).ok_or_else(|| cx.shape_mismatch("bands and right side have different rows"))?;
            cx.one_output_like(0, [batch.as_ranked().unwrap_or(&[]), &[rows, *m]].concat())
        }
        (Some(_), Some(_)) => Err(cx.shape_mismatch("matrices are needed")),
        (first, _) => {
            let dims = cx.unranked_from(usize::from(first.is_some()));
            cx.one_output_like(0, dims)
        }
    }
}
