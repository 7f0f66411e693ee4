//! Rules whose root is `transpose`.
use crate::diag::Result;
use crate::hlo::{InstId, Op};
use crate::optimize::rewrite::Editor;

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
