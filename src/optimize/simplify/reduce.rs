//! Rules whose root is `reduce` or `reduce-window`.
use crate::diag::Result;
use crate::hlo::attrs::{SliceDim, WindowDim};
use crate::hlo::{CompId, Fold, InstId, Module, Op, is_neutral};
use crate::optimize::constant::splat_of;
use crate::optimize::rewrite::Editor;

/// The fold that a computation of two scalars performs.
pub fn fold_of_computation(module: &Module, comp: CompId) -> Option<Fold> {
    module.comps.get(comp)?.as_fold()
}

/// Whether the fold of `id` (one array, one initial value) starts from nothing.
fn starts_neutral(editor: &Editor, id: InstId, comp: CompId) -> bool {
    let [_, init] = editor.operands(id)[..] else { return false };
    match (fold_of_computation(editor.module(), comp), splat_of(editor, init)) {
        (Some(Fold::By(op)), Some(value)) => is_neutral(op, &value),
        _ => false,
    }
}

/// A simpler form of `reduce(x, ..)`.
pub fn simplify(editor: &mut Editor, id: InstId, dims: &[usize], comp: CompId) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    let kept: Vec<usize> = dims.iter().copied().filter(|&d| editor.dims(x)[d] != 1).collect();
    if kept.is_empty() {
        return reduce_of_single_elements(editor, id);
    }
    if let Some(comp) = without_result_tuple(editor, id, comp) {
        return of_one(editor, id, Op::Reduce { dims: dims.to_vec(), comp }).map(Some);
    }
    if !starts_neutral(editor, id, comp) {
        return Ok(None);
    }
    let init = editor.operand(id, 1);
    // Dimensions of size 1 are dropped before.
    if kept.len() < dims.len() {
        let gone = |d: &usize| dims.contains(d) && !kept.contains(d);
        let sizes: Vec<u64> = (0..editor.dims(x).len()).filter(|d| !gone(d)).map(|d| editor.dims(x)[d]).collect();
        let kept = kept.iter().map(|&k| k - (0..k).filter(|d| gone(d)).count()).collect();
        let squeezed = editor.add_reshape(x, &sizes);
        return Ok(Some(editor.add_instruction(Op::Reduce { dims: kept, comp }, &[squeezed, init])?));
    }
    Ok(None)
}

/// A fold of arrays none of whose elements meet: these elements, in the sizes of the result. HLO's initial values are neutral by
/// contract, and XLA holds programs to it here alone, whatever the values are.
fn reduce_of_single_elements(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    let leaves = editor.shape(id).leaves();
    let sizes: Vec<Vec<u64>> = leaves.iter().map(|a| a.dims.clone()).collect();
    let is_tuple = editor.array(id).is_none();
    let operands = editor.operands(id).to_vec();
    let parts: Vec<InstId> = operands.iter().zip(&sizes).map(|(&x, dims)| editor.add_reshape(x, dims)).collect();
    Ok(if is_tuple { Some(editor.add_instruction(Op::Tuple, &parts)?) } else { parts.first().copied() })
}

/// The computation of a fold of one array without the tuple that it returns, where it does.
fn without_result_tuple(editor: &mut Editor, id: InstId, comp: CompId) -> Option<CompId> {
    if editor.array(id).is_some() || editor.operands(id).len() != 2 {
        return None;
    }
    let mut plain = editor.module().comps.get(comp)?.clone();
    let root = plain.insts.get(plain.root)?;
    plain.root = match (&root.op, &root.operands[..]) {
        (Op::Tuple, &[value]) => value,
        _ => return None,
    };
    Some(editor.add_computation(plain))
}

/// Replaces a fold that returns a tuple of one array by `op`, which returns the array, and a tuple of it.
fn of_one(editor: &mut Editor, id: InstId, op: Op) -> Result<InstId> {
    let operands = editor.operands(id).to_vec();
    let folded = editor.add_instruction(op, &operands)?;
    editor.add_instruction(Op::Tuple, &[folded])
}

/// A simpler form of `reduce-window(x, ..)`: windows of one element pick elements.
pub fn simplify_reduce_window(
    editor: &mut Editor,
    id: InstId,
    window: &[WindowDim],
    comp: CompId,
) -> Result<Option<InstId>> {
    if window.is_empty() {
        return reduce_of_single_elements(editor, id);
    }
    if let Some(comp) = without_result_tuple(editor, id, comp) {
        return of_one(editor, id, Op::ReduceWindow { window: window.to_vec(), comp }).map(Some);
    }
    let plain = |w: &WindowDim| w.size == 1 && w.pad_low == 0 && w.pad_high == 0 && w.lhs_dilate == 1;
    if !window.iter().all(plain) || !starts_neutral(editor, id, comp) {
        return Ok(None);
    }
    let x = editor.operand(id, 0);
    if editor.dims(x) == editor.dims(id) {
        return Ok(Some(x));
    }
    let dims = window.iter().zip(editor.dims(x)).map(|(w, &n)| SliceDim { start: 0, limit: n, stride: w.stride });
    let dims = dims.collect();
    Ok(Some(editor.add_instruction(Op::Slice(dims), &[x])?))
}
