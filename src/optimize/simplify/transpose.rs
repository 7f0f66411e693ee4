//! Rules whose root is `transpose`.
use crate::diag::Result;
use crate::hlo::attrs::DotDims;
use crate::hlo::{InstId, Op};
use crate::optimize::rewrite::Editor;
use crate::scalar::ScalarOp;

/// A simpler form of `transpose(x)`.
pub fn simplify(editor: &mut Editor, id: InstId, perm: &[usize]) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    // transpose(x) by the identity = x
    if perm.iter().enumerate().all(|(i, &p)| i == p) {
        return Ok(Some(x));
    }
    // A transpose that keeps the order of all dimensions but ones is a reshape.
    let moving: Vec<usize> = perm.iter().copied().filter(|&p| editor.dims(x)[p] != 1).collect();
    if moving.is_sorted() {
        let dims = editor.dims(id).to_vec();
        return Ok(Some(editor.add_reshape(x, &dims)));
    }
    match editor.op(x).clone() {
        // transpose(transpose(x)) = transpose(x)
        Op::Transpose(inner) => {
            let source = editor.operand(x, 0);
            let both: Vec<usize> = perm.iter().map(|&p| inner[p]).collect();
            Ok(Some(editor.add_instruction(Op::Transpose(both), &[source])?))
        }
        Op::Broadcast(map) => of_broadcast(editor, id, x, perm, &map).map(Some),
        Op::Dot(dims) => Ok(of_product(editor, id, perm, &dims)),
        _ => Ok(None),
    }
}

/// transpose(broadcast(x)) = broadcast(transpose(x)), the smaller transpose.
fn of_broadcast(editor: &mut Editor, id: InstId, broadcast: InstId, perm: &[usize], map: &[usize]) -> Result<InstId> {
    let x = editor.operand(broadcast, 0);
    let mut target: Vec<(usize, usize)> =
        map.iter().enumerate().filter_map(|(i, m)| Some((perm.iter().position(|p| p == m)?, i))).collect();
    target.sort();
    let order: Vec<usize> = target.iter().map(|t| t.1).collect();
    let x = if order.is_sorted() { x } else { editor.add_instruction(Op::Transpose(order), &[x])? };
    let dims = editor.dims(id).to_vec();
    Ok(editor.add_broadcast(x, &dims, &target.iter().map(|t| t.0).collect::<Vec<_>>()))
}

/// transpose(dot(x, y)) = dot(y, x), where the transpose puts the free axes of `y` before those of `x`, each in their order, and nothing
/// else reads the product: it is stored row by row. Weights stay on the right, where they are packed at compile time.
fn of_product(editor: &mut Editor, id: InstId, perm: &[usize], dims: &DotDims) -> Option<InstId> {
    let product = editor.operand(id, 0);
    let (x, y) = (editor.operand(product, 0), editor.operand(product, 1));
    let batch = dims.lhs_batch.len();
    let right_free = editor.dims(y).len() - batch - dims.rhs_contracting.len();
    let right = perm.len() - right_free..perm.len();
    let is_swap = perm.iter().copied().eq((0..batch).chain(right.clone()).chain(batch..right.start));
    if !is_swap || editor.uses(product) > 1 || is_weight(editor, y) && !is_weight(editor, x) {
        return None;
    }
    let swapped = DotDims {
        lhs_batch: dims.rhs_batch.clone(),
        rhs_batch: dims.lhs_batch.clone(),
        lhs_contracting: dims.rhs_contracting.clone(),
        rhs_contracting: dims.lhs_contracting.clone(),
    };
    // a product of bytes has sums of another type
    let shape = editor.shape(id).clone();
    Some(editor.add_instruction_with_shape(Op::Dot(Box::new(swapped)), &[y, x], shape))
}

/// Whether the elements of `id` are constants, perhaps of a narrower type.
fn is_weight(editor: &Editor, id: InstId) -> bool {
    match editor.op(id) {
        Op::Constant(_) => true,
        Op::Elementwise(ScalarOp::Convert(_)) => is_weight(editor, editor.operand(id, 0)),
        _ => false,
    }
}
