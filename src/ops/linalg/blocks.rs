//! Standardization of the 2-by-2 diagonal blocks of a matrix in real Schur form.
use super::schur::{add_constant, matrix_block, matrix_element};
use crate::dims;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::counted_loop::counted_loop;
use crate::ops::math::expr::build_formula;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Makes 2-by-2 blocks with real eigenvalues triangular, and gives the others equal diagonal elements (LAPACK's standard form).
pub(super) fn standardize_blocks(b: &mut Builder, t: InstId, z: InstId, n: Dim) -> (InstId, InstId) {
    for_blocks(b, "standard_block", [t, z], n, |b, t, i| {
        let entries = entries_of(b, t, i);
        let half = build_formula(b, [entries[0], entries[3]], |[a, d]| (a - d) * 0.5);
        let root = build_formula(b, [half, entries[1], entries[2]], |[half, above, below]| half * half + above * below);
        let is_real = build_formula(b, [root], |[root]| root.ge(0.0));
        // The rotation uses an eigenvector if there is a real one, else the angle that makes the diagonal elements equal.
        let larger = build_formula(b, [half, root], |[half, root]| {
            let root = root.max(0.0).sqrt();
            half + (-root).select_where(half.lt(0.0), root)
        });
        let length = build_formula(b, [larger, entries[2]], |[x, y]| (x * x + y * y).sqrt());
        let [above, below] = [entries[1], entries[2]];
        let double = build_formula(b, [half, above, below], |[half, above, below]| {
            let sum = above + below;
            let turn = half * -2.0;
            turn.select_where(sum.ge(0.0), -turn).apply_binary(ScalarOp::Atan2, sum.abs()) * 0.5
        });
        let first = build_formula(b, [larger, length, double, is_real], |[x, length, angle, is_real]| {
            (x / length).select_where(is_real, angle.cos())
        });
        let second = build_formula(b, [below, length, double, is_real], |[y, length, angle, is_real]| {
            (y / length).select_where(is_real, angle.sin())
        });
        Turn { axis: [first, second], ends: is_real, even: true }
    })
}

/// Complex Schur form, upper triangular, from a matrix in standardized real Schur form with complex elements.
pub(super) fn complex_schur_form(b: &mut Builder, t: InstId, z: InstId) -> (InstId, InstId) {
    let n = b.dims(t)[0];
    if n < 2 {
        return (t, z);
    }
    for_blocks(b, "triangular_block", [t, z], n, |b, t, i| {
        let entries = entries_of(b, t, i);
        // With equal diagonal elements, the eigenvalues differ from them by the root of the product of the off-diagonal
        // elements.
        let root = build_formula(b, [entries[1], entries[2]], |[above, below]| (above * below).sqrt());
        let length = build_formula(b, [root, entries[2]], |[x, y]| (x.abs().square() + y.abs().square()).sqrt());
        let length = b.convert(length, b.dtype(t));
        let axis = [b.div(root, length), b.div(entries[2], length)];
        let ends = b.scalar(DType::Pred, 1.0);
        Turn { axis, ends, even: false }
    })
}

/// Rotation of two rows and columns, with its effect on the element below the diagonal.
struct Turn {
    axis: [InstId; 2],
    /// Whether the element below the diagonal becomes zero.
    ends: InstId,
    /// Whether the diagonal elements become equal where `ends` is false.
    even: bool,
}

/// Elements of the 2-by-2 block at row `i`, row-major.
fn entries_of(b: &mut Builder, t: InstId, i: InstId) -> [InstId; 4] {
    let next = add_constant(b, i, 1.0);
    [(i, i), (i, next), (next, i), (next, next)].map(|(i, j)| matrix_element(b, t, i, j))
}

/// Loop that rotates each block whose element below the diagonal is not zero.
fn for_blocks(
    b: &mut Builder,
    name: &str,
    state: [InstId; 2],
    n: Dim,
    turn: impl FnOnce(&mut Builder, InstId, InstId) -> Turn,
) -> (InstId, InstId) {
    let parts = counted_loop(b, name, n - 1, &state, |b, i, parts| {
        let (t, z) = (parts[0], parts[1]);
        let next = add_constant(b, i, 1.0);
        let below = matrix_element(b, t, next, i);
        let none = b.full_like(below, 0.0);
        let is_block = b.compare(Direction::Ne, below, none);
        let turn = turn(b, t, i);
        let one = b.full_like(none, 1.0);
        let axis = [b.select(is_block, turn.axis[0], one), b.select(is_block, turn.axis[1], none)];
        let t = turn_rows(b, t, axis, i);
        let (t, z) = (turn_columns(b, t, axis, i), turn_columns(b, z, axis, i));
        let [a, _, below, d] = entries_of(b, t, i);
        let not_block = b.unary(ScalarOp::Not, is_block);
        let ends = b.binary(ScalarOp::Or, turn.ends, not_block);
        let below = b.select(ends, none, below);
        let mut t = with_element(b, t, [next, i], below);
        if turn.even {
            let mean = build_formula(b, [a, d], |[a, d]| (a + d) * 0.5);
            let (a, d) = (b.select(ends, a, mean), b.select(ends, d, mean));
            t = with_element(b, t, [i, i], a);
            t = with_element(b, t, [next, next], d);
        }
        vec![t, z]
    });
    (parts[0], parts[1])
}

fn with_element(b: &mut Builder, x: InstId, [i, j]: [InstId; 2], value: InstId) -> InstId {
    let value = b.reshape(value, &dims![1, 1]);
    b.add_inst(Op::DynamicUpdateSlice, &[x, value, i, j])
}

/// Rows `i` and `i + 1` rotated to the axis `u` and the axis orthogonal to it.
fn turn_rows(b: &mut Builder, x: InstId, u: [InstId; 2], i: InstId) -> InstId {
    let (columns, zero, next) = (b.dims(x)[1], b.scalar(DType::S32, 0.0), add_constant(b, i, 1.0));
    let rows = [i, next].map(|i| matrix_block(b, x, [i, zero], [Dim::from(1), columns]));
    let kept = u.map(|u| super::conjugate(b, u));
    let first = build_formula(b, [rows[0], rows[1], kept[0], kept[1]], |[x, y, c, s]| c * x + s * y);
    let second = build_formula(b, [rows[0], rows[1], u[0], u[1]], |[x, y, c, s]| c * y - s * x);
    let x = b.add_inst(Op::DynamicUpdateSlice, &[x, first, i, zero]);
    b.add_inst(Op::DynamicUpdateSlice, &[x, second, next, zero])
}

/// Columns `i` and `i + 1` rotated to the axis `u` and the axis orthogonal to it.
fn turn_columns(b: &mut Builder, x: InstId, u: [InstId; 2], i: InstId) -> InstId {
    let (rows, zero, next) = (b.dims(x)[0], b.scalar(DType::S32, 0.0), add_constant(b, i, 1.0));
    let columns = [i, next].map(|i| matrix_block(b, x, [zero, i], [rows, Dim::from(1)]));
    let kept = u.map(|u| super::conjugate(b, u));
    let first = build_formula(b, [columns[0], columns[1], u[0], u[1]], |[x, y, c, s]| c * x + s * y);
    let second = build_formula(b, [columns[0], columns[1], kept[0], kept[1]], |[x, y, c, s]| c * y - s * x);
    let x = b.add_inst(Op::DynamicUpdateSlice, &[x, first, zero, i]);
    b.add_inst(Op::DynamicUpdateSlice, &[x, second, zero, next])
}
