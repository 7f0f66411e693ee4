//! Computes now what depends on constants only.
use super::constant;
use super::cse::is_pure;
use super::rewrite::{Changed, Editor, rewrite};
use crate::diag::Result;
use crate::hlo::{CompId, Computation, Inst, InstId, Literal, Module, Op};
use crate::interp;
use crate::util::id_vec::IdVec;

/// Largest result, in bytes, that is folded to a constant.
const MAX_BYTES: u64 = 64 << 20;
/// Largest ratio of the result's bytes to those of the operands.
const MAX_GROWTH: u64 = 16;
/// Size in bytes up to which a result may exceed that ratio.
const SMALL_BYTES: u64 = 1024;
/// Upper limit of steps (multiply-adds, elements read) of a folding; more are left to run time.
const MAX_WORK: u64 = 1 << 26;

/// Replaces instructions whose operands are constants (or broadcasts of such) by their value.
///
/// `broadcast` and `iota` stay, as they are cheaper to compute than to load; calls and loops stay, as they may not end. An op that the
/// interpreter refuses stays too.
pub fn fold_constants(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| Ok(fold(editor, id)))
}

fn fold(editor: &mut Editor, id: InstId) -> Option<InstId> {
    let inst = &editor.comp()[id];
    if inst.operands.is_empty() || !is_foldable(editor.module(), &inst.op) {
        return None;
    }
    let shape = inst.shape.as_array()?.clone();
    let stored: u64 = inst.operands.iter().filter_map(|&o| editor.constant(o)).map(|t| t.bytes.len() as u64).sum();
    let fits = shape.bytes() <= MAX_BYTES && shape.bytes() <= SMALL_BYTES.max(stored.saturating_mul(MAX_GROWTH));
    if !fits || evaluation_cost(editor, id) > MAX_WORK {
        return None;
    }
    let operands = inst.operands.clone();
    // a scalar becomes a number of the code
    if shape.dims.is_empty() && operands.iter().any(|&o| constant::is_replaceable_weight(editor, o)) {
        return None;
    }
    let args = operands.iter().map(|&o| constant::value(editor, o, MAX_BYTES)).collect::<Option<Vec<_>>>()?;
    let args: Vec<Literal> = args.into_iter().map(Literal::Array).collect();
    let scratch = single_instruction_computation(&editor.comp()[id], editor.comp());
    let value = editor.with_scratch_computation(scratch, |module, comp| interp::evaluate(module, comp, &args)).ok()?;
    match value {
        Literal::Array(t) if t.dtype == shape.dtype && t.dims == shape.dims => Some(editor.add_constant(t)),
        _ => None,
    }
}

/// A computation of one instruction on parameters.
fn single_instruction_computation(inst: &Inst, comp: &Computation) -> Computation {
    let mut insts: IdVec<InstId, Inst> = IdVec::new();
    let mut push = |op, operands, shape| {
        let name = format!("i{}", insts.len());
        insts.push(Inst { name, op, operands, shape, metadata: Default::default(), extra: Vec::new() })
    };
    let params: Vec<InstId> =
        inst.operands.iter().enumerate().map(|(i, &o)| push(Op::Parameter(i), vec![], comp[o].shape.clone())).collect();
    let root = push(inst.op.clone(), params.clone(), inst.shape.clone());
    Computation { name: "folded".to_string(), insts, params, root, sizes: Vec::new(), size_constants: Vec::new() }
}

/// Whether the op always ends, has no effect, and is worth a constant.
fn is_foldable(module: &Module, op: &Op) -> bool {
    let plain = |comp: &CompId| {
        let body = module
            .comps
            .get(*comp)
            .map(|c| c.insts.values().all(|i| i.op.called_computations().is_empty() && is_pure_body(&i.op)));
        body == Some(true)
    };
    let refused = matches!(
        op,
        Op::Broadcast(_)
            | Op::Constant(_)
            | Op::Iota(_)
            | Op::While { .. }
            | Op::Call(_)
            | Op::Conditional(_)
            | Op::Fusion { .. }
            | Op::RngBitGenerator { .. }
            | Op::Tuple
            | Op::GetTupleElement(_)
            | Op::AfterAll
            | Op::AddDependency
            | Op::PartitionId
            | Op::ReplicaId
    );
    is_pure(op) && !refused && op.called_computations().iter().all(plain)
}

fn is_pure_body(op: &Op) -> bool {
    matches!(op, Op::Parameter(_)) || is_pure(op)
}

/// An upper bound of the steps of evaluating an instruction: elements read and written, times the window if there is one.
fn evaluation_cost(editor: &Editor, id: InstId) -> u64 {
    let read: u64 = editor.operands(id).iter().map(|&o| editor.element_count(o)).fold(0, u64::saturating_add);
    let out = editor.element_count(id);
    let per_output = match editor.op(id) {
        Op::Dot(d) => d.lhs_contracting.iter().map(|&a| editor.dims(editor.operand(id, 0))[a]).product(),
        Op::Convolution(d) => {
            let kernel = editor.dims(editor.operand(id, 1));
            let window: u64 = d.kernel_spatial.iter().map(|&a| kernel[a]).product();
            window.saturating_mul(kernel[d.kernel_input_feature])
        }
        Op::ReduceWindow { window, .. } => window.iter().map(|w| w.size).fold(1, u64::saturating_mul),
        _ => 1,
    };
    read.saturating_add(out.saturating_mul(per_output))
}
