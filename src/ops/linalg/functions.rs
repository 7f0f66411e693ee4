//! LU factors, eigenvalues, square roots and logarithms of general square matrices.
//!
//! Source: Higham, "Functions of Matrices": 6.2 (square roots of triangular matrices) and 11.5 (logarithm by inverse scaling
//! and squaring). Roots and logarithms are computed in double precision and rounded once.
use super::blocks::complex_schur_form;
use super::eigenvectors::{EigenvectorSides, eigendecomposition, eigenvalue_parts, for_each_matrix};
use super::factor::{self, swap_elements};
use super::least_squares::batch_matmul;
use super::schur::{Schur, schur};
use super::{adjoint, column_at, identity, line, square, with_line};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Transpose;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op, Shape};
use crate::ops::counted_loop::counted_loop;
use crate::ops::fact::{Dims, Fact};
use crate::ops::math::expr::{build_formula, loop_condition};
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("Lu",                "input -> lu p",   lu).shape(lu_shape).dtypes(super::FIELDS),
    op("Eig",               "input -> e v",    general_eigen).shape(eigen_shape).dtypes(super::FIELDS),
    op("MatrixSquareRoot",  "input -> output", |cx| of_matrices(cx, "matrix_square_root", root)).shape(like_first_input).dtypes(super::FIELDS),
    op("MatrixLogarithm",   "input -> output", logarithms).shape(like_first_input).dtypes("c64, c128"),
];

/// Largest number of square roots that the logarithm takes; even the largest double is near 1 after 11.
const MOST_ROOTS: f64 = 64.0;
/// Distance from the identity up to which the logarithm's approximant of degree 7 is exact in double precision.
const NEAR_IDENTITY: f64 = 0.264_296_083_111_143_5;
/// Gauss-Legendre nodes of degree 7 on the unit interval. With the weights they form the partial fractions of the logarithm's
/// approximant.
const NODES: [f64; 7] = [
    0.025_446_043_828_620_737,
    0.129_234_407_200_302_77,
    0.297_077_424_311_301_4,
    0.5,
    0.702_922_575_688_698_5,
    0.870_765_592_799_697_2,
    0.974_553_956_171_379_3,
];
const WEIGHTS: [f64; 7] = [
    0.064_742_483_084_434_85,
    0.139_852_695_744_638_33,
    0.190_915_025_252_559_47,
    0.208_979_591_836_734_7,
    0.190_915_025_252_559_47,
    0.139_852_695_744_638_33,
    0.064_742_483_084_434_85,
];

/// Double-precision type in which matrix functions are computed.
pub(super) fn double_precision(dtype: DType) -> DType {
    if dtype.is_complex() { DType::C128 } else { DType::F64 }
}

/// Matrices of input 0 as `[count, n, n]`, and the sizes of the input.
pub(super) fn input_matrices(cx: &mut LowerCtx) -> Result<(InstId, Vec<Dim>)> {
    let (dims, n) = square(cx, 0)?;
    let x = cx.arg(0)?;
    let dtype = cx.b.dtype(x);
    if !matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128) {
        return Err(cx.unsupported_case(format!("{} of {dtype}; {} are supported", cx.node.op, super::FIELDS)));
    }
    Ok((cx.b.reshape(x, &[dims[..dims.len() - 2].iter().product(), n, n]), dims))
}

/// Lowers a function of one matrix `[n, n]`, applied to each matrix of input 0.
fn of_matrices(cx: &mut LowerCtx, name: &str, f: fn(&mut Builder, InstId) -> InstId) -> Result<Vec<Value>> {
    let (x, dims) = input_matrices(cx)?;
    let dtype = cx.dtype(0)?;
    if crate::symbolic::has_zero(&dims) {
        return cx.one_output(cx.arg(0)?);
    }
    let x = cx.b.convert(x, double_precision(dtype));
    let result = (cx.b.dtype(x), cx.b.dims(x)[1..].to_vec());
    let y = for_each_matrix(cx.b, name, x, &[result], |b, a| vec![f(b, a)])[0];
    let y = cx.b.reshape(y, &dims);
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Lowers `Lu`: both triangular factors in one array, and the row permutation.
fn lu(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, n) = square(cx, 0)?;
    let (a, index_type) = (cx.arg(0)?, cx.attr_dtype("output_idx_type")?);
    let rank = dims.len();
    let b = &mut *cx.b;
    let (factors, pivots) = factor::lu(b, a);
    let order = b.iota(DType::S32, &dims[..rank - 1], rank - 2);
    let parts = counted_loop(b, "exchange_rows", n, &[order, pivots], |b, k, parts| {
        let pivot = column_at(b, parts[1], k);
        let one = b.full_like(pivot, 1.0);
        let other = b.sub(pivot, one);
        vec![swap_elements(b, parts[0], k, other), parts[1]]
    });
    let order = b.convert(parts[0], index_type);
    Ok(vec![Value::Array(factors), Value::Array(order)])
}

/// Lowers `Eig`: complex eigenvalues and eigenvectors, as columns of length 1. Computed in the precision of the input, as the
/// order of a real matrix's eigenvalues depends on the number of iterations, as in TensorFlow. Those of complex matrices are
/// ordered by magnitude.
fn general_eigen(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = input_matrices(cx)?;
    let (out, n) = (cx.attr_dtype("Tout")?, dims[dims.len() - 1]);
    let right = cx.node.bool("compute_v").unwrap_or(true);
    if !out.is_complex() {
        return Err(cx.unsupported_case(format!("eigenvalues of type {out}; they are complex")));
    }
    let sizes = if right { dims.clone() } else { vec![Dim::from(0)] };
    let line = &dims[..dims.len() - 1];
    if crate::symbolic::has_zero(&dims) {
        let (values, vectors) = (cx.b.full(out, line, 0.0), cx.b.full(out, &sizes, 0.0));
        return Ok(vec![Value::Array(values), Value::Array(vectors)]);
    }
    let complex = if matches!(cx.b.dtype(x), DType::F32 | DType::C64) { DType::C64 } else { DType::C128 };
    let results = [(complex, vec![n]), (complex, vec![n, n])];
    let parts = for_each_matrix(cx.b, "eigen", x, &results, |b, a| {
        match eigendecomposition(b, a, &EigenvectorSides { left: false, right })[..] {
            [real, imaginary, _, vectors, _] => {
                vec![b.elementwise(ScalarOp::Complex, &[real, imaginary]), vectors]
            }
            [values, _, vectors, _] => by_size(b, values, vectors),
            _ => Vec::new(),
        }
    });
    let (values, vectors) = (cx.b.reshape(parts[0], line), cx.b.reshape(parts[1], &dims));
    let values = cx.b.convert(values, out);
    let vectors = if right { cx.b.convert(vectors, out) } else { cx.b.full(out, &sizes, 0.0) };
    Ok(vec![Value::Array(values), Value::Array(vectors)])
}

/// Eigenvalues of a complex matrix in ascending order of magnitude, with their eigenvectors.
fn by_size(b: &mut Builder, values: InstId, vectors: InstId) -> Vec<InstId> {
    let (dims, complex) = (b.dims(vectors).to_vec(), b.dtype(values));
    let size = b.unary(ScalarOp::Abs, values);
    let real = b.dtype(size);
    let keys = b.broadcast(size, &dims, &[1]);
    let wide = b.broadcast(values, &dims, &[1]);
    b.begin_computation("smaller");
    let key = [0, 1].map(|_| b.parameter(Shape::array(real, [])));
    for _ in 0..4 {
        b.parameter(Shape::array(complex, []));
    }
    let root = b.compare(Direction::Lt, key[0], key[1]);
    let comp = b.end_computation(root);
    let sorted = b.add_inst(Op::Sort { dim: 1, is_stable: true, comp }, &[keys, wide, vectors]);
    let (values, vectors) = (b.get_tuple_element(sorted, 1), b.get_tuple_element(sorted, 2));
    let row = b.slice_axis(values, 0, Dim::from(0), Dim::from(1));
    vec![b.reshape(row, &dims[1..]), vectors]
}

/// Similarity transform back from Schur form: `z t z*`.
fn turned_back(b: &mut Builder, t: InstId, z: InstId) -> InstId {
    let y = batch_matmul(b, z, t);
    let back = adjoint(b, z);
    batch_matmul(b, y, back)
}

/// Principal square root of a matrix; NaN for a real one with a negative eigenvalue.
fn root(b: &mut Builder, a: InstId) -> InstId {
    let Schur { t, z, .. } = schur(b, a);
    if b.dtype(a).is_complex() {
        let root = root_of_triangle(b, t);
        return turned_back(b, root, z);
    }
    let [real, imaginary] = eigenvalue_parts(b, t);
    let negative = build_formula(b, [real, imaginary], |[real, imaginary]| real.lt(0.0).and(imaginary.equals(0.0)));
    let no = b.scalar(DType::Pred, 0.0);
    let negative = b.reduce(negative, no, ScalarOp::Or, &[0]);
    let [t, z] = [t, z].map(|x| b.convert(x, DType::C128));
    let (t, z) = complex_schur_form(b, t, z);
    let root = root_of_triangle(b, t);
    let y = turned_back(b, root, z);
    let y = b.unary(ScalarOp::Real, y);
    let dims = b.dims(y).to_vec();
    let (negative, nan) = (b.broadcast(negative, &dims, &[]), b.full_like(y, f64::NAN));
    b.select(negative, nan, y)
}

/// Principal square root of an upper triangular `t [n, n]`, row by row from the last. The part of row `i` right of the diagonal
/// solves `x (R + rᵢ) = t`, with `R` the rows below and `rᵢ` the root of the diagonal element.
fn root_of_triangle(b: &mut Builder, t: InstId) -> InstId {
    let (dims, n, dtype) = (b.dims(t).to_vec(), b.dims(t)[0], b.dtype(t));
    let values = super::diagonal(b, t);
    let roots = b.unary(ScalarOp::Sqrt, values);
    let start = b.full_like(t, 0.0);
    let parts = counted_loop(b, "root_of_row", n, &[start, t, roots], |b, step, parts| {
        let [r, t, roots] = [parts[0], parts[1], parts[2]];
        let last = b.scalar(DType::S32, n - 1);
        let i = b.sub(last, step);
        let (root, row) = (line(b, roots, 0, i), line(b, t, 0, i));
        let index = b.iota(DType::S32, &[n], 0);
        let (right, own) = (b.compare(Direction::Gt, index, i), b.compare(Direction::Eq, index, i));
        let none = b.full_like(row, 0.0);
        let wanted = b.select(right, row, none);
        let wanted = b.reshape(wanted, &dims![1, n]);
        let ones = identity(b, dtype, &dims);
        let shift = b.broadcast(root, &dims, &[]);
        let shift = b.mul(ones, shift);
        let shifted = b.add(r, shift);
        let below = b.broadcast(right, &dims, &[0]);
        let system = b.select(below, shifted, ones);
        let solve =
            Op::TriangularSolve { left_side: false, lower: false, unit_diagonal: false, transpose_a: Transpose::No };
        let solved = b.add_inst(solve, &[system, wanted]);
        let solved = b.reshape(solved, &[n]);
        let root = b.broadcast(root, &[n], &[]);
        let row = b.select(own, root, solved);
        vec![with_line(b, r, 0, i, row), t, roots]
    });
    parts[0]
}

fn logarithms(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    match cx.dtype(0)? {
        DType::C64 | DType::C128 => of_matrices(cx, "matrix_logarithm", logarithm),
        other => Err(cx.unsupported_case(format!("MatrixLogarithm of {other}; c64, c128 are supported"))),
    }
}

/// Principal logarithm of a complex matrix.
fn logarithm(b: &mut Builder, a: InstId) -> InstId {
    let Schur { t, z, .. } = schur(b, a);
    let dims = b.dims(t).to_vec();
    let (near, roots) = roots_to_identity(b, t);
    let y = logarithm_near_identity(b, near);
    let factor = b.convert(roots, DType::F64);
    let factor = build_formula(b, [factor], |[count]| count.constant(2.0).pow(count));
    let factor = b.convert(factor, DType::C128);
    let factor = b.broadcast(factor, &dims, &[]);
    let y = b.mul(y, factor);
    // The logarithm of the diagonal is computed directly, without the rounding of the roots.
    let values = super::diagonal(b, t);
    let values = b.unary(ScalarOp::Log, values);
    let values = b.broadcast(values, &dims, &[0]);
    let (row, column) = (b.iota(DType::S32, &dims, 0), b.iota(DType::S32, &dims, 1));
    let on = b.compare(Direction::Eq, row, column);
    let y = b.select(on, values, y);
    turned_back(b, y, z)
}

/// Whether the 1-norm distance of a matrix from the identity is too large for the approximant.
fn is_far(b: &mut Builder, t: InstId) -> InstId {
    let dims = b.dims(t).to_vec();
    let ones = identity(b, b.dtype(t), &dims);
    let rest = b.sub(t, ones);
    let size = b.unary(ScalarOp::Abs, rest);
    let zero = b.scalar(DType::F64, 0.0);
    let sums = b.reduce(size, zero, ScalarOp::Add, &[0]);
    let largest = b.reduce(sums, zero, ScalarOp::Maximum, &[0]);
    build_formula(b, [largest], |[x]| x.ge(NEAR_IDENTITY))
}

/// Triangular matrix after enough square roots to be near the identity, and their number, s32.
fn roots_to_identity(b: &mut Builder, t: InstId) -> (InstId, InstId) {
    let (round, far) = (b.scalar(DType::S32, 1.0), is_far(b, t));
    let start = b.tuple(&[round, far, t]);
    let shape = b.shape(start).clone();
    let cond = loop_condition(b, &shape, MOST_ROOTS);
    b.begin_computation("root_to_identity");
    let state = b.parameter(shape);
    let [round, t] = [0, 2].map(|i| b.get_tuple_element(state, i));
    let t = root_of_triangle(b, t);
    let (far, one) = (is_far(b, t), b.scalar(DType::S32, 1.0));
    let round = b.add(round, one);
    let root = b.tuple(&[round, far, t]);
    let body = b.end_computation(root);
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    let (round, one) = (b.get_tuple_element(end, 0), b.scalar(DType::S32, 1.0));
    (b.get_tuple_element(end, 2), b.sub(round, one))
}

/// Logarithm of a triangular matrix near the identity: the sum of `w e (1 + x e)⁻¹` over nodes `x` and weights `w`, with `e = t
/// - 1`.
fn logarithm_near_identity(b: &mut Builder, t: InstId) -> InstId {
    let dims = b.dims(t).to_vec();
    let ones = identity(b, b.dtype(t), &dims);
    let rest = b.sub(t, ones);
    let tables = [NODES, WEIGHTS].map(|table| {
        let table = b.constant(Tensor::from_vec(DType::F64, vec![table.len() as u64], table.to_vec()));
        b.convert(table, DType::C128)
    });
    let sum = b.full_like(t, 0.0);
    let parts =
        counted_loop(b, "add_fraction", Dim::from(NODES.len()), &[sum, rest, tables[0], tables[1]], |b, k, parts| {
            let [sum, rest, nodes, weights] = [parts[0], parts[1], parts[2], parts[3]];
            let [node, weight] = [nodes, weights].map(|x| {
                let one = line(b, x, 0, k);
                b.broadcast(one, &dims, &[])
            });
            let ones = identity(b, DType::C128, &dims);
            let system = build_formula(b, [ones, rest, node], |[ones, rest, node]| ones + rest * node);
            let solve =
                Op::TriangularSolve { left_side: true, lower: false, unit_diagonal: false, transpose_a: Transpose::No };
            let solved = b.add_inst(solve, &[system, rest]);
            let sum = build_formula(b, [sum, solved, weight], |[sum, solved, weight]| sum + solved * weight);
            vec![sum, rest, nodes, weights]
        });
    parts[0]
}

/// Shapes of the matrices, and of their rows.
fn matrix_and_line(cx: &mut ShapeCtx) -> Result<(Dims, Dims)> {
    Ok(match cx.ranked_dims(0)?.as_deref() {
        Some([.., _, _]) => {
            let dims = cx.dims(0)?;
            let line = dims.as_ranked().map_or(&[][..], |dims| &dims[..dims.len() - 1]);
            (Dims::ranked(dims.as_ranked().unwrap_or(&[])), Dims::ranked(line))
        }
        Some(_) => return Err(cx.shape_mismatch("matrices are needed")),
        None => (cx.unranked_from(0), cx.unranked_from(0)),
    })
}

fn lu_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (whole, line) = matrix_and_line(cx)?;
    Ok(vec![Fact::new(cx.dtype(0), whole), Fact::new(cx.attr_type("output_idx_type"), line)])
}

fn eigen_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (whole, line) = matrix_and_line(cx)?;
    let vectors = if cx.bool_attr("compute_v") { whole } else { Dims::from_sizes(&[0]) };
    let dtype = cx.attr_type("Tout");
    Ok(vec![Fact::new(dtype, line), Fact::new(dtype, vectors)])
}
