//! Computes equal things once: equal computations become one, then equal instructions of a computation.
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::rewrite::{Changed, editable_computations, rewrite_computation};
use crate::diag::Result;
use crate::hlo::{CompId, Computation, InstId, Literal, Module, Op, Shape};
use crate::tensor::Tensor;

/// Replaces an instruction by an earlier one with the same op, operands and shape. Random numbers and foreign
/// instructions stay apart; constants are equal when their bytes are.
pub fn cse(module: &mut Module) -> Result<Changed> {
    let mut changed = merge_computations(module);
    for id in editable_computations(module) {
        let mut table: HashMap<u64, Vec<InstId>> = HashMap::new();
        let one = rewrite_computation(module, id, &mut |editor, at| {
            let inst = &editor.comp()[at];
            if !is_pure(&inst.op) {
                return Ok(None);
            }
            let candidates = table.entry(hash_inst(&inst.op, &inst.operands, &inst.shape)).or_default();
            let equal = candidates.iter().copied().find(|&c| {
                let other = &editor.comp()[c];
                other.operands == inst.operands
                    && other.shape == inst.shape
                    && other.op == inst.op
                    && is_same_weight(editor.module(), &other.op, &inst.op)
            });
            if equal.is_none() {
                candidates.push(at);
            }
            Ok(equal)
        })?;
        changed = changed.or(one);
    }
    Ok(changed)
}

/// Whether two equal ops stay equal when weights are replaced: those of one array do.
fn is_same_weight(module: &Module, one: &Op, other: &Op) -> bool {
    match (one, other) {
        (Op::Constant(Literal::Array(x)), Op::Constant(Literal::Array(y))) if module.is_weight(x) => {
            x.bytes.as_ptr() == y.bytes.as_ptr()
        }
        _ => true,
    }
}

/// Whether two instructions of this op on the same operands have the same value.
pub fn is_pure(op: &Op) -> bool {
    !matches!(op, Op::Rng { .. } | Op::Foreign(_) | Op::Parameter(_) | Op::OptimizationBarrier)
}

/// Redirects calls of a computation to an earlier one with the same instructions.
fn merge_computations(module: &mut Module) -> Changed {
    let mut changed = Changed::No;
    let mut known: HashMap<u64, Vec<CompId>> = HashMap::new();
    let mut same_as: HashMap<CompId, CompId> = HashMap::new();
    for id in module.reachable() {
        for inst in module.comps[id].insts.values_mut() {
            for callee in inst.op.called_computations_mut() {
                if let Some(&other) = same_as.get(callee) {
                    *callee = other;
                    changed = Changed::Yes;
                }
            }
        }
        let comp = &module.comps[id];
        let candidates = known.entry(hash_comp(comp)).or_default();
        let is_same = |other: &Computation| {
            let mut ops = comp.insts.values().zip(other.insts.values()).map(|(x, y)| (&x.op, &y.op));
            comp.has_same_instructions(other) && ops.all(|(x, y)| is_same_weight(module, x, y))
        };
        match candidates.iter().copied().find(|&c| is_same(&module.comps[c])) {
            Some(other) if id != module.entry => {
                same_as.insert(id, other);
            }
            _ => candidates.push(id),
        }
    }
    changed
}

fn hash_comp(comp: &Computation) -> u64 {
    let mut hasher = DefaultHasher::new();
    comp.params.hash(&mut hasher);
    comp.root.hash(&mut hasher);
    for inst in comp.insts.values() {
        hash_inst(&inst.op, &inst.operands, &inst.shape).hash(&mut hasher);
    }
    hasher.finish()
}

/// A hash that equal instructions share; it looks at the op's name and constants only, as payloads rarely differ else.
fn hash_inst(op: &Op, operands: &[InstId], shape: &Shape) -> u64 {
    let mut hasher = DefaultHasher::new();
    op.name().hash(&mut hasher);
    operands.hash(&mut hasher);
    shape.hash(&mut hasher);
    match op {
        Op::Elementwise(scalar) => scalar.hash(&mut hasher),
        Op::Constant(literal) => hash_literal(literal, &mut hasher),
        Op::GetTupleElement(i) | Op::Iota(i) => i.hash(&mut hasher),
        Op::Broadcast(dims) => dims.hash(&mut hasher),
        Op::Slice(dims) => dims.hash(&mut hasher),
        _ => {}
    }
    hasher.finish()
}

fn hash_literal(literal: &Literal, hasher: &mut DefaultHasher) {
    for Tensor { bytes, .. } in literal.leaves() {
        let ends = 256.min(bytes.len());
        bytes.len().hash(hasher);
        bytes[..ends].hash(hasher);
        bytes[bytes.len() - ends..].hash(hasher);
    }
}
