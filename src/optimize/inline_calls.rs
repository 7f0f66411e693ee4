//! Puts the body of a called computation in place of the call; a fusion is one, as kernels are cut anew.
use super::rewrite::{Changed, Editor, live_order, rewrite};
use crate::diag::Result;
use crate::hlo::{CompId, InstId, Module, Op};
use crate::util::id_vec::Id;

/// Upper limit of instructions in a computation; calls that would exceed it stay calls.
const MAX_INSTRUCTIONS: usize = 1 << 20;

/// Replaces every `call` and `fusion` by the instructions of what it calls, innermost first.
pub fn inline_calls(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| match *editor.op(id) {
        Op::Call(callee) | Op::Fusion { comp: callee, kind: _ } => {
            let args = editor.operands(id).to_vec();
            Ok(inline(editor, callee, &args))
        }
        _ => Ok(None),
    })
}

/// Copies the instructions of `callee` with `args` for its parameters; `None` if that would be too many.
pub fn inline(editor: &mut Editor, callee: CompId, args: &[InstId]) -> Option<InstId> {
    let body = editor.module().comps.get(callee)?.clone();
    if editor.comp().insts.len() + body.insts.len() > MAX_INSTRUCTIONS || body.params.len() != args.len() {
        return None;
    }
    let mut new: Vec<Option<InstId>> = vec![None; body.insts.len()];
    for id in live_order(&body) {
        let inst = &body[id];
        let value = match inst.op {
            Op::Parameter(n) => *args.get(n)?,
            _ => {
                let operands = inst.operands.iter().map(|o| new[o.index()]).collect::<Option<Vec<_>>>()?;
                editor.copy_instruction(inst, &operands)
            }
        };
        new[id.index()] = Some(value);
    }
    new[body.root.index()]
}
