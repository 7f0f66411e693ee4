//! `map` of a computation that works with arrays or loops, as a loop over the elements; others are applied within kernels.
use super::expand_with;
use super::scan::ScanCall;
use crate::diag::Result;
use crate::hlo::{ArrayShape, Builder, CompId, InstId, Module, Op};
use crate::optimize::rewrite::{Changed, rewrite};

/// Replaces maps of computations that kernels can't apply, nested ones too.
pub fn expand(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    loop {
        let now = rewrite(module, |editor, id| {
            let Op::Map { comp, .. } = *editor.op(id) else { return Ok(None) };
            if is_of_scalars(editor.module(), comp) {
                return Ok(None);
            }
            let of = |id: &InstId| editor.array(*id).cloned();
            let operands: Option<Vec<ArrayShape>> = editor.operands(id).iter().map(of).collect();
            let (Some(operands), Some(result)) = (operands, editor.array(id).cloned()) else { return Ok(None) };
            let module = editor.module().clone();
            expand_with(editor, id, |b, args| element_by_element(b, &module, comp, &operands, args, &result))
        })?;
        if now == Changed::No {
            return Ok(changed);
        }
        changed = Changed::Yes;
    }
}

/// Whether kernels can inline a computation: each of its values is a scalar, or a tuple of scalars, and it has no loop.
fn is_of_scalars(module: &Module, comp: CompId) -> bool {
    module.comps[comp].insts.values().all(|inst| {
        let is_applied = matches!(
            inst.op,
            Op::Parameter(_)
                | Op::Constant(_)
                | Op::Iota(_)
                | Op::Elementwise(_)
                | Op::Reshape
                | Op::Broadcast(_)
                | Op::Copy
                | Op::OptimizationBarrier
                | Op::Tuple
                | Op::GetTupleElement(_)
                | Op::Call(_)
                | Op::Fusion { .. }
                | Op::Map { .. }
                | Op::Conditional(_)
        );
        let is_one = |a: &&ArrayShape| a.elements() == 1;
        is_applied
            && inst.shape.leaves().iter().all(is_one)
            && inst.op.called_computations().into_iter().all(|callee| is_of_scalars(module, callee))
    })
}

/// A loop over all elements of `args`, flattened to one dimension.
fn element_by_element(
    b: &mut Builder,
    module: &Module,
    callee: CompId,
    shapes: &[ArrayShape],
    args: &[InstId],
    result: &ArrayShape,
) -> Option<InstId> {
    let places = result.elements();
    i32::try_from(places).ok()?;
    let line = |x: &ArrayShape| ArrayShape::new(x.dtype, vec![places]);
    let flat: Vec<InstId> = args.iter().map(|&x| b.reshape(x, &[places])).collect();
    let scan = ScanCall {
        axis: 0,
        reverse: false,
        callee,
        places,
        xs: shapes.iter().map(line).collect(),
        outputs: vec![line(result)],
        carries: 0,
    };
    let all = scan.expand_to_loop(b, module, &flat)?;
    let values = b.get_tuple_element(all, 0);
    Some(b.reshape(values, &result.dims))
}
