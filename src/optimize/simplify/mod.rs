//! Algebra: rules grouped by the op at their root, one file a root. Every rule keeps values to the bit, but for the sign of
//! a zero that a window of one element would lose.
mod broadcast;
mod concatenate;
mod control;
mod dot;
mod elementwise;
mod identities;
mod pad;
mod reduce;
mod reshape;
mod slice;
mod slice_motion;
mod transpose;
mod tuple;

pub use reduce::fold_of_computation;

use super::rewrite::{Changed, Editor, rewrite};
use crate::diag::Result;
use crate::hlo::{InstId, Module, Op};
use crate::tensor::Tensor;

/// Applies every rule to every instruction, operands first.
pub fn simplify(module: &mut Module) -> Result<Changed> {
    rewrite(module, root)
}

/// A simpler instruction with the value of `id`, if a rule finds one.
fn root(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    if let Some(empty) = empty(editor, id) {
        return Ok(Some(empty));
    }
    match editor.op(id).clone() {
        Op::Elementwise(op) => elementwise::simplify(editor, id, op),
        Op::Dot(dims) => dot::simplify(editor, id, &dims),
        Op::Reshape => reshape::simplify(editor, id),
        Op::Transpose(perm) => transpose::simplify(editor, id, &perm),
        Op::Broadcast(map) => broadcast::simplify(editor, id, &map),
        Op::Slice(dims) => match slice::simplify(editor, id, &dims)? {
            Some(simpler) => Ok(Some(simpler)),
            None => slice_motion::move_slice_before_convolution(editor, id, &dims),
        },
        Op::DynamicSlice(sizes) => slice::dynamic_slice(editor, id, &sizes),
        Op::DynamicUpdateSlice => Ok(slice::dynamic_update_slice(editor, id)),
        Op::Pad(dims) => pad::simplify(editor, id, &dims),
        Op::Concatenate(axis) => concatenate::simplify(editor, id, axis),
        Op::Reduce { dims, comp } => reduce::simplify(editor, id, &dims, comp),
        Op::ReduceWindow { window, comp } => reduce::simplify_reduce_window(editor, id, &window, comp),
        Op::Reverse(dims) => identities::reverse(editor, id, &dims),
        Op::Copy => Ok(identities::copy(editor, id)),
        Op::Bitcast => Ok(identities::bitcast(editor, id)),
        Op::GetDimensionSize(dim) => Ok(identities::dimension_size(editor, id, dim)),
        Op::Tuple => Ok(tuple::simplify_rebuilt_tuple(editor, id)),
        Op::GetTupleElement(index) => Ok(tuple::tuple_element(editor, id, index)),
        Op::Map { comp, .. } => control::map(editor, id, comp),
        Op::Conditional(branches) => control::conditional(editor, id, &branches),
        _ => Ok(None),
    }
}

/// Replaces an array without elements by a constant; loops and calls stay, as they may not end.
fn empty(editor: &mut Editor, id: InstId) -> Option<InstId> {
    let shape = editor.array(id)?;
    let kept = matches!(
        editor.op(id),
        Op::Constant(_) | Op::Foreign(_) | Op::Rng { .. } | Op::Call(_) | Op::Conditional(_) | Op::While { .. }
    );
    if kept || shape.elements() != 0 {
        return None;
    }
    let value = Tensor::new(shape.dtype, shape.dims.clone(), Vec::new());
    Some(editor.add_constant(value))
}

/// For a reshape that only adds and removes dimensions of size 1: for each dimension of `from` the dimension of `to` that it becomes,
/// `None` for those of size 1.
fn moved_ones(from: &[u64], to: &[u64]) -> Option<Vec<Option<usize>>> {
    let mut targets = to.iter().enumerate().filter(|(_, n)| **n != 1);
    let mut map = vec![None; from.len()];
    for (i, n) in from.iter().enumerate().filter(|(_, n)| **n != 1) {
        let (j, m) = targets.next()?;
        if n != m {
            return None;
        }
        map[i] = Some(j);
    }
    targets.next().is_none().then_some(map)
}
