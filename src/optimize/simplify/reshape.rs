//! Rules whose root is `reshape`.
use super::moved_ones;
use crate::diag::Result;
use crate::hlo::{InstId, Op};
use crate::optimize::constant::{is_replaceable_weight, splat_of};
use crate::optimize::rewrite::Editor;
use crate::scalar::ScalarOp;
use crate::tensor::Tensor;

/// A simpler form of `reshape(x)`.
pub fn simplify(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    let dims = editor.dims(id).to_vec();
    // reshape(x) to its own sizes = x
    if editor.dims(x) == dims {
        return Ok(Some(x));
    }
    match editor.op(x).clone() {
        // reshape(reshape(x)) = reshape(x)
        Op::Reshape => {
            let source = editor.operand(x, 0);
            Ok(Some(editor.add_reshape(source, &dims)))
        }
        // reshape(constant) = constant, but that numbers of code are none that may be replaced
        Op::Constant(_) if dims.is_empty() && is_replaceable_weight(editor, x) => Ok(None),
        Op::Constant(_) => Ok(editor.constant(x).cloned().map(|t| editor.add_constant(Tensor { dims, ..t }))),
        Op::Broadcast(map) => Ok(of_broadcast(editor, x, &map, &dims)),
        Op::Elementwise(op) => of_elementwise(editor, x, op, &dims),
        _ => Ok(None),
    }
}

/// reshape(broadcast(x)) = broadcast(x), where the reshape only moves ones or `x` is one element.
fn of_broadcast(editor: &mut Editor, broadcast: InstId, map: &[usize], dims: &[u64]) -> Option<InstId> {
    let x = editor.operand(broadcast, 0);
    if editor.dims(x).is_empty() {
        return Some(editor.add_broadcast(x, dims, &[]));
    }
    let moved = moved_ones(editor.dims(broadcast), dims)?;
    let new_map: Vec<usize> = map.iter().filter_map(|&m| moved[m]).collect();
    let kept: Vec<u64> = editor.dims(x).iter().copied().filter(|&n| n != 1).collect();
    if kept.len() != new_map.len() {
        return None;
    }
    let x = editor.add_reshape(x, &kept);
    Some(editor.add_broadcast(x, dims, &new_map))
}

/// reshape(f(reshape(x), splat)) = reshape(f(x, splat)): one reshape fewer.
fn of_elementwise(editor: &mut Editor, point: InstId, op: ScalarOp, dims: &[u64]) -> Result<Option<InstId>> {
    if editor.uses(point) != 1 {
        return Ok(None);
    }
    let operands = editor.operands(point).to_vec();
    let point_dims = editor.dims(point).to_vec();
    let reshaped = operands.iter().copied().find(|&o| matches!(editor.op(o), Op::Reshape));
    let Some(inner) = reshaped.map(|o| editor.dims(editor.operand(o, 0)).to_vec()) else { return Ok(None) };
    let fits = |&o: &InstId| match editor.op(o) {
        Op::Reshape => editor.dims(editor.operand(o, 0)) == inner && editor.dims(o) == point_dims,
        _ => editor.dims(o) == point_dims && splat_of(editor, o).is_some(),
    };
    if !operands.iter().all(fits) {
        return Ok(None);
    }
    let mut new = Vec::with_capacity(operands.len());
    for o in operands {
        let source = editor.operands(o).first().copied();
        new.push(match (splat_of(editor, o), source) {
            (Some(value), _) => {
                let scalar = editor.add_constant(value);
                editor.add_broadcast(scalar, &inner, &[])
            }
            (None, Some(source)) => source,
            (None, None) => return Ok(None),
        });
    }
    let moved = editor.add_instruction(Op::Elementwise(op), &new)?;
    Ok(Some(editor.add_reshape(moved, dims)))
}
