//! Arrays without elements, and folds over nothing: constants and initial values, so that no loop has to run no times.
use super::expand_with;
use crate::diag::Result;
use crate::hlo::{Inst, InstId, Module, Op};
use crate::optimize::rewrite::{Changed, Editor, rewrite};
use crate::tensor::Tensor;

/// Replaces arrays without elements, products and reductions over none, and pads of none.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| {
        let inst = editor.comp()[id].clone();
        if let Some(a) = inst.shape.as_array().filter(|a| a.elements() == 0) {
            let known = matches!(inst.op, Op::Constant(_) | Op::Parameter(_));
            let value = || Tensor::new(a.dtype, a.dims.clone(), Vec::new());
            return Ok((!known).then(|| editor.add_constant(value())));
        }
        let nothing =
            |i: usize| inst.operands.get(i).is_some_and(|&o| editor.array(o).is_some_and(|a| a.elements() == 0));
        match inst.op {
            Op::Dot(_) | Op::Convolution(_) if nothing(0) || nothing(1) => zeros(editor, id),
            Op::Pad(_) if nothing(0) => broadcast_scalars(editor, id, &inst, inst.operands[1..].to_vec()),
            Op::Reduce { .. } | Op::ReduceWindow { .. } if nothing(0) => {
                broadcast_scalars(editor, id, &inst, inst.operands[inst.operands.len() / 2..].to_vec())
            }
            _ => Ok(None),
        }
    })
}

fn zeros(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    let Some(a) = editor.array(id).cloned() else { return Ok(None) };
    expand_with(editor, id, |b, _| Some(b.full(a.dtype, &a.dims, 0.0)))
}

/// The broadcasts of scalars to the shape of the result, or of its parts.
fn broadcast_scalars(editor: &mut Editor, id: InstId, inst: &Inst, scalars: Vec<InstId>) -> Result<Option<InstId>> {
    let leaves = inst.shape.leaves();
    let from = inst.operands.len() - scalars.len();
    expand_with(editor, id, |b, operands| {
        let parts: Vec<InstId> =
            leaves.iter().zip(&operands[from..]).map(|(a, &x)| b.broadcast(x, &a.dims, &[])).collect();
        Some(if inst.shape.as_array().is_some() { *parts.first()? } else { b.tuple(&parts) })
    })
}
