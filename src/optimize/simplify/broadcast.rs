//! Rules whose root is `broadcast`.
use crate::diag::Result;
use crate::hlo::{InstId, Op};
use crate::optimize::constant;
use crate::optimize::rewrite::Editor;

/// A simpler form of `broadcast(x)`.
pub fn simplify(editor: &mut Editor, id: InstId, map: &[usize]) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    let dims = editor.dims(id).to_vec();
    // A broadcast that repeats nothing and keeps the order is a reshape.
    if editor.element_count(x) == editor.element_count(id) && map.is_sorted() {
        return Ok(Some(editor.add_reshape(x, &dims)));
    }
    // broadcast(constant of one value) = broadcast(scalar)
    if !map.is_empty()
        && let Some(value) = constant::stored_splat(editor, x)
    {
        let scalar = editor.add_constant(value);
        return Ok(Some(editor.add_broadcast(scalar, &dims, &[])));
    }
    // broadcast(broadcast(x)) = broadcast(x)
    if let Op::Broadcast(inner) = editor.op(x) {
        let both: Vec<usize> = inner.iter().map(|&i| map[i]).collect();
        let source = editor.operand(x, 0);
        return Ok(Some(editor.add_broadcast(source, &dims, &both)));
    }
    // Ones of the operand say nothing: they are dropped, so that equal broadcasts look equal.
    if editor.dims(x).contains(&1) {
        let kept: Vec<usize> = (0..map.len()).filter(|&i| editor.dims(x)[i] != 1).collect();
        let sizes: Vec<u64> = kept.iter().map(|&i| editor.dims(x)[i]).collect();
        let map: Vec<usize> = kept.iter().map(|&i| map[i]).collect();
        let x = editor.add_reshape(x, &sizes);
        return Ok(Some(editor.add_broadcast(x, &dims, &map)));
    }
    Ok(None)
}
