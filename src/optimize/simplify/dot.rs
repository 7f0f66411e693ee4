//! Rules whose root is `dot`.
use crate::diag::Result;
use crate::hlo::attrs::DotDims;
use crate::hlo::{InstId, Op};
use crate::optimize::rewrite::Editor;

/// A simpler form of `dot(x, y)`.
pub fn simplify(editor: &mut Editor, id: InstId, dims: &DotDims) -> Result<Option<InstId>> {
    let (x, y) = (editor.operand(id, 0), editor.operand(id, 1));
    match editor.op(y).clone() {
        Op::Transpose(perm) => of_transposed(editor, (x, y), dims, &perm),
        _ => Ok(None),
    }
}

/// dot(x, transpose(y)) = dot(x, y) over other dimensions, where those that stay keep their order and nothing else reads the
/// transpose: the right side is read into panels from where it lies.
fn of_transposed(
    editor: &mut Editor,
    (x, y): (InstId, InstId),
    dims: &DotDims,
    perm: &[usize],
) -> Result<Option<InstId>> {
    let kept: Vec<usize> = (0..perm.len())
        .filter(|a| !dims.rhs_batch.contains(a) && !dims.rhs_contracting.contains(a))
        .map(|a| perm[a])
        .collect();
    if editor.uses(y) > 1 || !kept.is_sorted() {
        return Ok(None);
    }
    let source = editor.operand(y, 0);
    let moved = |axes: &[usize]| axes.iter().map(|&a| perm[a]).collect();
    let dims =
        DotDims { rhs_batch: moved(&dims.rhs_batch), rhs_contracting: moved(&dims.rhs_contracting), ..dims.clone() };
    Ok(Some(editor.add(Op::Dot(dims), &[x, source])?))
}
