//! Rules whose root is `concatenate`.
use crate::diag::Result;
use crate::hlo::attrs::SliceDim;
use crate::hlo::{InstId, Op};
use crate::optimize::rewrite::Editor;

/// A simpler form of `concatenate(parts)`.
pub fn simplify(editor: &mut Editor, id: InstId, axis: usize) -> Result<Option<InstId>> {
    let parts = editor.operands(id).to_vec();
    // concatenate(x) = x
    if let [one] = parts[..] {
        return Ok(Some(one));
    }
    let mut flat: Vec<InstId> = Vec::with_capacity(parts.len());
    for &part in &parts {
        // Empty parts say nothing.
        if editor.dims(part)[axis] == 0 && editor.element_count(id) != 0 {
            continue;
        }
        // concatenate(concatenate(a, b), c) = concatenate(a, b, c)
        match editor.op(part) {
            Op::Concatenate(inner) if *inner == axis && editor.uses(part) == 1 => {
                flat.extend_from_slice(editor.operands(part));
            }
            _ => flat.push(part),
        }
    }
    let mut merged: Vec<InstId> = Vec::with_capacity(flat.len());
    for part in flat.iter().copied() {
        match merged.last().copied().and_then(|last| merge_adjacent_slices(editor, last, part, axis)) {
            Some((source, dims)) => {
                let joined = editor.add_instruction(Op::Slice(dims), &[source])?;
                merged.pop();
                merged.push(joined);
            }
            None => merged.push(part),
        }
    }
    if merged == parts {
        return Ok(None);
    }
    match merged[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Ok(Some(editor.add_instruction(Op::Concatenate(axis), &merged)?)),
    }
}

/// concatenate(slice(x, 0..3), slice(x, 3..5)) = slice(x, 0..5)
fn merge_adjacent_slices(editor: &Editor, a: InstId, b: InstId, axis: usize) -> Option<(InstId, Vec<SliceDim>)> {
    let (Op::Slice(first), Op::Slice(second)) = (editor.op(a), editor.op(b)) else { return None };
    let source = editor.operand(a, 0);
    let fits =
        source == editor.operand(b, 0)
            && first.iter().zip(second).enumerate().all(|(d, (x, y))| {
                if d == axis { x.stride == 1 && y.stride == 1 && x.limit == y.start } else { x == y }
            });
    let mut dims = first.clone();
    dims[axis].limit = second[axis].limit;
    fits.then_some((source, dims))
}
