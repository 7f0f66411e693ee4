//! Rules of ops that rarely do anything.
use crate::diag::Result;
use crate::hlo::{InstId, Op};
use crate::optimize::rewrite::Editor;
use crate::tensor::Tensor;

/// Simplifies a `reverse`: along dimensions of size 1 it does nothing, and two cancel.
pub fn reverse(editor: &mut Editor, id: InstId, dims: &[usize]) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    let kept: Vec<usize> = dims.iter().copied().filter(|&d| editor.dims(x)[d] > 1).collect();
    if kept.is_empty() {
        return Ok(Some(x));
    }
    if let Op::Reverse(inner) = editor.op(x) {
        let once = |a: &[usize], b: &[usize]| a.iter().copied().filter(|d| !b.contains(d)).collect::<Vec<_>>();
        let both = [once(&kept, inner), once(inner, &kept)].concat();
        let source = editor.operand(x, 0);
        return Ok(Some(if both.is_empty() {
            source
        } else {
            editor.add_instruction(Op::Reverse(both), &[source])?
        }));
    }
    if kept.len() < dims.len() { Ok(Some(editor.add_instruction(Op::Reverse(kept), &[x])?)) } else { Ok(None) }
}

/// Removes a copy that does not change the layout.
pub fn copy(editor: &mut Editor, id: InstId) -> Option<InstId> {
    let x = editor.operand(id, 0);
    (editor.shape(x) == editor.shape(id)).then_some(x)
}

/// Replaces a bitcast between shapes without layouts by a reshape.
pub fn bitcast(editor: &mut Editor, id: InstId) -> Option<InstId> {
    let x = editor.operand(id, 0);
    let (from, to) = (editor.array(x)?, editor.array(id)?);
    if from.dtype != to.dtype || from.layout.is_some() || to.layout.is_some() || from.elements() != to.elements() {
        return None;
    }
    let shape = editor.shape(id).clone();
    Some(editor.add_instruction_with_shape(Op::Reshape, &[x], shape))
}

/// Replaces the size of a static dimension by a constant, and that of a dimension that was set by the value it was set to.
pub fn dimension_size(editor: &mut Editor, id: InstId, dim: usize) -> Option<InstId> {
    let x = editor.operand(id, 0);
    if let Op::SetDimensionSize(set) = editor.op(x) {
        let size = editor.operand(x, 1);
        return (*set == dim && editor.dims(size).is_empty()).then_some(size);
    }
    let size = *editor.dims(editor.operand(id, 0)).get(dim)?;
    Some(editor.add_constant(Tensor::scalar(i32::try_from(size).ok()?)))
}
