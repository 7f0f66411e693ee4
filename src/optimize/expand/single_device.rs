//! Collectives of one device, and operations that start in one instruction and are done in another: what one device gets is what it has,
//! and a start does all there is to do.
use crate::diag::Result;
use crate::hlo::attrs::ForeignOp;
use crate::hlo::groups::is_self_permute;
use crate::hlo::{InstId, Op, Shape};
use crate::optimize::rewrite::Editor;
use crate::tensor::Tensor;

/// The value of a collective (or the start or end of one) on one device; `None` if the declared shape does not fit.
pub fn expand_on_one_device(editor: &mut Editor, id: InstId, f: &ForeignOp) -> Result<Option<InstId>> {
    match f.opcode.as_str() {
        "all-reduce" | "all-gather" | "reduce-scatter" | "all-to-all" | "collective-broadcast" | "async-update" => {
            forward_operands(editor, id)
        }
        "collective-permute" => expand_permute(editor, id, f),
        // A start of one operand may give it beside the result.
        "all-reduce-start" if !is_started(editor, id) => forward_operands(editor, id),
        "collective-permute-start" if !is_started(editor, id) => expand_permute(editor, id, f),
        "all-reduce-start" | "all-gather-start" | "copy-start" => {
            let x = editor.operand(id, 0);
            start_result(editor, id, x, x)
        }
        "collective-permute-start" => {
            let x = editor.operand(id, 0);
            let received = permuted_on_one_device(editor, f, x);
            start_result(editor, id, x, received)
        }
        "async-start" => {
            let Some(&(_, callee)) = f.calls.first() else { return Ok(None) };
            let operands = editor.operands(id).to_vec();
            let (given, result) =
                (editor.add_instruction(Op::Tuple, &operands)?, editor.add_instruction(Op::Call(callee), &operands)?);
            start_result(editor, id, given, result)
        }
        "copy-done" => tuple_element(editor, id, 0),
        "all-gather-done" | "async-done" => tuple_element(editor, id, 1),
        "all-reduce-done" | "collective-permute-done" => {
            let x = editor.operand(id, 0);
            if editor.shape(x).same_type_and_dims(editor.shape(id)) {
                Ok(Some(x))
            } else {
                tuple_element(editor, id, 1)
            }
        }
        _ => Ok(None),
    }
}

/// The operands themselves, as one value or as a tuple, whichever is declared; `None` where they don't fit.
pub fn forward_operands(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    let operands = editor.operands(id).to_vec();
    as_declared(editor, id, &operands)
}

/// `parts` as the instruction declares them: the first of them, or all of them.
fn as_declared(editor: &mut Editor, id: InstId, parts: &[InstId]) -> Result<Option<InstId>> {
    let Some(&first) = parts.first() else { return Ok(None) };
    if editor.shape(first).same_type_and_dims(editor.shape(id)) {
        return Ok(Some(first));
    }
    let tuple = editor.add_instruction(Op::Tuple, parts)?;
    Ok(editor.shape(tuple).same_type_and_dims(editor.shape(id)).then_some(tuple))
}

/// Whether an asynchronous start returns its operand, its result and context values.
fn is_started(editor: &Editor, id: InstId) -> bool {
    editor.operands(id).len() == 1 && editor.shape(id).as_tuple().is_some_and(|parts| parts.len() >= 2)
}

fn expand_permute(editor: &mut Editor, id: InstId, f: &ForeignOp) -> Result<Option<InstId>> {
    let operands = editor.operands(id).to_vec();
    let received: Vec<InstId> = operands.into_iter().map(|x| permuted_on_one_device(editor, f, x)).collect();
    as_declared(editor, id, &received)
}

/// The device's part of `x` after a collective permute on one device: `x` where it sends to itself, else zeros.
fn permuted_on_one_device(editor: &mut Editor, f: &ForeignOp, x: InstId) -> InstId {
    if is_self_permute(f) { x } else { zeros(editor, &editor.shape(x).clone()).unwrap_or(x) }
}

/// Zeros of a shape of arrays.
fn zeros(editor: &mut Editor, shape: &Shape) -> Option<InstId> {
    match shape {
        Shape::Array(a) => {
            let zero = editor.add_constant(Tensor::scalar_from_f64(a.dtype, 0.0));
            Some(editor.add_broadcast(zero, &a.dims, &[]))
        }
        Shape::Tuple(parts) => {
            let parts: Option<Vec<InstId>> = parts.iter().map(|p| zeros(editor, p)).collect();
            editor.add_instruction(Op::Tuple, &parts?).ok()
        }
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => None,
    }
}

/// The value of an asynchronous start: input, result, and zeros for its context.
fn start_result(editor: &mut Editor, id: InstId, input: InstId, result: InstId) -> Result<Option<InstId>> {
    let Some(parts) = editor.shape(id).as_tuple().map(<[Shape]>::to_vec) else { return Ok(None) };
    let mut all = vec![input, result];
    for shape in parts.iter().skip(2) {
        let Some(zero) = zeros(editor, shape) else { return Ok(None) };
        all.push(zero);
    }
    as_declared(editor, id, &all)
}

fn tuple_element(editor: &mut Editor, id: InstId, i: usize) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    let Some(shape) = editor.shape(x).as_tuple().and_then(|parts| parts.get(i)).cloned() else { return Ok(None) };
    let part = editor.add_instruction_with_shape(Op::GetTupleElement(i), &[x], shape);
    as_declared(editor, id, &[part])
}
