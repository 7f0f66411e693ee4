//! Rules whose root is `map` or `conditional`.
use crate::diag::Result;
use crate::hlo::{CompId, InstId, Op};
use crate::optimize::inline_calls::inline;
use crate::optimize::rewrite::{Editor, live_order};
use crate::tensor::DType;
use crate::util::id_vec::Id;

/// map(x, f) = f applied to arrays, where `f` is pointwise throughout.
pub fn map(editor: &mut Editor, id: InstId, comp: CompId) -> Result<Option<InstId>> {
    let body = editor.module().comps[comp].clone();
    let args = editor.operands(id).to_vec();
    let dims = editor.dims(id).to_vec();
    let order = live_order(&body);
    let pointwise = |i: &InstId| match &body[*i].op {
        Op::Parameter(_) | Op::Elementwise(_) => true,
        Op::Constant(_) => body[*i].shape.as_array().is_some(),
        _ => false,
    };
    if !order.iter().all(pointwise) {
        return Ok(None);
    }
    let mut new: Vec<Option<InstId>> = vec![None; body.insts.len()];
    for i in order {
        let value = match &body[i].op {
            Op::Parameter(n) => args[*n],
            Op::Elementwise(op) => {
                let operands: Vec<InstId> = body[i].operands.iter().filter_map(|o| new[o.index()]).collect();
                editor.add_instruction(Op::Elementwise(*op), &operands)?
            }
            op => {
                let scalar = editor.add_instruction_with_shape(op.clone(), &[], body[i].shape.clone());
                editor.add_broadcast(scalar, &dims, &[])
            }
        };
        new[i.index()] = Some(value);
    }
    Ok(new[body.root.index()])
}

/// conditional(constant, …) = the branch that it chooses.
pub fn conditional(editor: &mut Editor, id: InstId, branches: &[CompId]) -> Result<Option<InstId>> {
    let Some(chosen) = editor.constant(editor.operand(id, 0)).and_then(|t| t.get_i64(0).map(|v| (t.dtype, v))) else {
        return Ok(None);
    };
    let Some(last) = branches.len().checked_sub(1) else { return Ok(None) };
    let branch = match chosen {
        (DType::Pred, v) => usize::from(v == 0),
        (_, v) => usize::try_from(v).map_or(last, |v| v.min(last)),
    };
    let argument = editor.operand(id, 1 + branch);
    Ok(inline(editor, branches[branch], &[argument]))
}
