//! Optimizer steps on rows selected by indices, applied one after the other: a repeated index sees the result of the step
//! before.
use super::{Rule, Terms, declared, operands};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::math::expr::build_formulas;
use crate::ops::{LowerCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Lowers an optimizer step on the rows that `indices` selects; indices out of range are ignored, where TensorFlow's CPU
/// kernels report an error.
pub(super) fn update_rows(cx: &mut LowerCtx, rule: Rule) -> Result<Vec<Value>> {
    let (names, variables) = declared(cx)?;
    let values = operands(cx, &names, variables)?;
    let place = |name: &str| names.iter().position(|n| *n == name).unwrap_or(0);
    let (grad, indices) = (place("grad"), place("indices"));
    let dims = cx.b.dims(values[0]).to_vec();
    let same = values[..variables].iter().all(|&v| cx.b.dims(v) == dims);
    let rows = match (cx.b.dims(values[indices]), dims.split_first(), cx.b.dims(values[grad])) {
        ([n], Some((_, row)), [m, rest @ ..]) if n == m && row == rest && same => *n,
        (indices, _, grad) => {
            return Err(
                cx.shape_mismatch(format!("indices {indices:?} and a gradient {grad:?} for variables {dims:?}"))
            );
        }
    };
    if rows.is_zero() || crate::symbolic::has_zero(&dims) {
        return Ok(vec![]);
    }
    let start = cx.b.scalar(DType::S32, 0.0);
    let parts: Vec<InstId> = [start].into_iter().chain(values).collect();
    let start = cx.b.tuple(&parts);
    let shape = cx.b.shape(start).clone();
    let cond = cx.b.counter_below("rows_left", &shape, rows);
    cx.b.begin_computation("row");
    let tuple = cx.b.parameter(shape);
    let mut parts: Vec<InstId> = (0..parts.len()).map(|i| cx.b.get_tuple_element(tuple, i)).collect();
    let (round, values) = (parts[0], parts[1..].to_vec());
    let index = window(cx.b, values[indices], round);
    let index = cx.b.reshape(index, &[]);
    let inside = inside(cx.b, index, dims[0]);
    let mut terms = values.clone();
    for (i, term) in terms.iter_mut().enumerate() {
        if i < variables {
            *term = window(cx.b, *term, index);
        } else if i == grad {
            *term = window(cx.b, *term, round);
        }
    }
    let node = cx.node;
    let new = build_formulas(cx.b, &terms, |values| rule(&Terms { node, names: &names, values }))?;
    for (i, new) in new.into_iter().enumerate() {
        let sizes = cx.b.dims(new).to_vec();
        let inside = cx.b.broadcast(inside, &sizes, &[]);
        let row = cx.b.select(inside, new, terms[i]);
        let at = places(cx.b, index, dims.len());
        parts[1 + i] = cx.b.add_inst(Op::DynamicUpdateSlice, &[&[values[i], row][..], &at].concat());
    }
    let one = cx.b.scalar(DType::S32, 1.0);
    parts[0] = cx.b.add(round, one);
    let root = cx.b.tuple(&parts);
    let body = cx.b.end_computation(root);
    let end = cx.b.add_inst(Op::While { cond, body }, &[start]);
    for i in 0..variables {
        let value = cx.b.get_tuple_element(end, i + 1);
        cx.write_variable(i, value)?;
    }
    Ok(vec![])
}

/// Whether an index is within `rows` rows.
fn inside(b: &mut Builder, index: InstId, rows: Dim) -> InstId {
    let (zero, end) = (b.full_like(index, 0.0), b.full_like(index, rows));
    let (low, high) = (b.compare(Direction::Ge, index, zero), b.compare(Direction::Lt, index, end));
    b.binary(ScalarOp::And, low, high)
}

/// Start indices of row `at` in an array of this rank.
fn places(b: &mut Builder, at: InstId, rank: usize) -> Vec<InstId> {
    let zero = b.full_like(at, 0.0);
    (0..rank).map(|d| if d == 0 { at } else { zero }).collect()
}

/// Row `at` of `x`, as an array of one row.
fn window(b: &mut Builder, x: InstId, at: InstId) -> InstId {
    let mut sizes = b.dims(x).to_vec();
    sizes[0] = Dim::from(1);
    let at = places(b, at, sizes.len());
    b.add_inst(Op::DynamicSlice(sizes), &[&[x][..], &at].concat())
}
