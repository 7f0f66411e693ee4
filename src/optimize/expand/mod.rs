//! Opcodes that have no kernel of their own, written with opcodes that have one.
//!
//! These passes run once, between the pipeline and scheduling: the interpreter evaluates the opcodes themselves, so that the
//! two can be compared.
mod single_device;
mod batch_groups;
mod batch_norm;
mod bitcast;
mod collectives;
mod custom_call;
mod depthwise;
mod empty;
pub mod fft;
mod foreign;
mod map;
mod products;
mod random;
mod scan;

use super::Pass;
use super::rewrite::{Changed, Editor, rewrite};
use crate::diag::Result;
use crate::hlo::attrs::ForeignOp;
use crate::hlo::{Builder, CompId, InstId, Module, Op, symbolic};
use crate::util::id_vec::Id;

/// Every expansion, in the order in which they run.
#[rustfmt::skip]
pub const EXPANSIONS: &[Pass] = &[
    Pass { name: "expand-scan",         about: "writes scans as loops",                                        run: scan::expand },
    Pass { name: "expand-map",          about: "writes maps of computations with arrays as loops",             run: map::expand },
    Pass { name: "expand-empty",        about: "puts constants for arrays and folds of no elements",             run: empty::expand },
    Pass { name: "expand-collectives",  about: "writes collectives with moves of blocks and sums in the order of devices", run: collectives::expand },
    Pass { name: "expand-foreign",      about: "puts plain opcodes for those that mean little on one device",  run: foreign::expand },
    Pass { name: "expand-custom-call",  about: "turns arrays as the functions of custom calls want them",     run: custom_call::expand },
    Pass { name: "expand-products",     about: "makes products in the type of factors that are wider than the result", run: products::expand },
    Pass { name: "expand-batch-norm",   about: "writes batch norm with sums and pointwise opcodes",            run: batch_norm::expand },
    Pass { name: "expand-batch-groups", about: "writes groups of a convolution's batch as groups of features", run: batch_groups::expand },
    Pass { name: "expand-depthwise",    about: "writes groups of one channel with one result each, channels last", run: depthwise::expand },
    Pass { name: "expand-random",       about: "writes generators of random bits with integer opcodes",        run: random::expand },
    Pass { name: "expand-bitcast",      about: "writes reinterpretations of another width with shifts",        run: bitcast::expand },
    Pass { name: "expand-fft",          about: "writes Fourier transforms as products with small matrices",    run: fft::expand },
];

/// Replaces calls that leave the module by what `write` makes of them; it gets the call with all its attributes, the operands and the
/// declared shape.
///
/// # Errors
/// Errors of `write`.
pub fn replace_foreign_calls(
    module: &mut Module,
    write: impl Fn(&mut symbolic::Builder, &ForeignOp, &[InstId], &symbolic::Shape) -> Result<Option<InstId>>,
) -> Result<Changed> {
    rewrite(module, |editor, id| {
        let Op::Foreign(mut call) = editor.op(id).clone() else { return Ok(None) };
        if call.opcode != "custom-call" {
            return Ok(None);
        }
        call.attrs.extend(editor.comp()[id].extra.iter().cloned());
        let mut b = symbolic::Builder::new("call");
        let (mut given, mut operands) = (Vec::new(), Vec::new());
        for &operand in editor.operands(id) {
            // What says how to compute is told in operands that are constants, or one number for all elements.
            let repeated = match editor.op(operand) {
                Op::Broadcast(_) => editor.constant(editor.operands(operand)[0]).cloned(),
                _ => None,
            };
            operands.push(match (editor.constant(operand).cloned(), repeated) {
                (Some(value), _) => b.constant(value),
                (None, Some(value)) => {
                    let value = b.constant(value);
                    b.push(editor.op(operand).to_symbolic(), &[value], editor.shape(operand).to_symbolic())
                }
                (None, None) => {
                    given.push(operand);
                    b.parameter(editor.shape(operand).to_symbolic())
                }
            });
        }
        let Some(root) = write(&mut b, &call, &operands, &editor.shape(id).to_symbolic())? else { return Ok(None) };
        let module = b.finish(root)?.at_current_sizes();
        inline_module(editor, module, &given).map(Some)
    })
}

/// Replaces `id` by what `write` builds from its operands; `None` if it builds nothing.
fn expand_with(
    editor: &mut Editor,
    id: InstId,
    write: impl FnOnce(&mut Builder, &[InstId]) -> Option<InstId>,
) -> Result<Option<InstId>> {
    let operands = editor.operands(id).to_vec();
    let mut b = Builder::new("expansion");
    let params: Vec<InstId> = operands.iter().map(|&o| b.parameter(editor.shape(o).clone())).collect();
    let Some(root) = write(&mut b, &params) else { return Ok(None) };
    let module = b.finish(root)?;
    inline_module(editor, module, &operands).map(Some)
}

/// Copies the entry of `from` into the computation, with `args` for its parameters, and the computations that it calls.
pub(super) fn inline_module(editor: &mut Editor, mut from: Module, args: &[InstId]) -> Result<InstId> {
    let mut moved: Vec<Option<CompId>> = vec![None; from.comps.len()];
    for id in from.comps.ids() {
        for at in from.comps[id].insts.ids() {
            for callee in from.comps[id].insts[at].op.called_computations_mut() {
                if let Some(to) = moved[callee.index()] {
                    *callee = to;
                }
            }
        }
        if id != from.entry {
            moved[id.index()] = Some(editor.add_computation(from.comps[id].clone()));
        }
    }
    let body = &from.comps[from.entry];
    let mut new: Vec<InstId> = Vec::with_capacity(body.insts.len());
    for inst in body.insts.values() {
        let value = match inst.op {
            Op::Parameter(n) => args[n],
            _ => {
                let operands: Vec<InstId> = inst.operands.iter().map(|o| new[o.index()]).collect();
                editor.add_instruction_with_shape(inst.op.clone(), &operands, inst.shape.clone())
            }
        };
        new.push(value);
    }
    Ok(new[body.root.index()])
}
