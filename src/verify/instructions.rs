//! Search for the instruction of a module whose result departs first, by the method of `blame.rs`.
use super::VerifyOptions;
use super::blame::{Blame, MOST_ALONE, MOST_BYTES, OpComparison};
use crate::compile;
use crate::diag::{Code, Error, Result};
use crate::hlo::{Computation, InstId, Op, Shape};
use crate::lower::Lowered;
use crate::run;
use crate::tensor::{Tensor, TensorInfo};
use std::collections::HashMap;

/// Compares the results of all array instructions of the entry computation.
///
/// # Errors
/// Errors of compiling and running; `Code::TooLarge` for too many bytes.
pub(super) fn compare_instructions(lowered: &Lowered, args: &[Tensor], conditions: &VerifyOptions) -> Result<Blame> {
    let entry = lowered.module.entry();
    let kept: Vec<InstId> = entry.post_order().into_iter().filter(|&id| is_computed(entry, id)).collect();
    let all = with_results(lowered, &kept);
    let bytes = all.results.iter().fold(0u64, |sum, info| sum.saturating_add(info.bytes()));
    if bytes > MOST_BYTES {
        let told = format!("the intermediate results take {bytes} bytes, and up to {MOST_BYTES} are compared");
        return Err(Error::user(Code::TooLarge, told));
    }
    let plain = run::interpret(&all, args.to_vec())?;
    let native = conditions.call(all, args)?;
    let mut known: HashMap<InstId, &Tensor> = entry.params.iter().copied().zip(args).collect();
    known.extend(kept.iter().copied().zip(&plain));
    let mut steps = Vec::with_capacity(kept.len());
    let mut tried = 0;
    for (i, &id) in kept.iter().enumerate() {
        let total = conditions.excess(&native[i], &plain[i]);
        let mut own = None;
        if total > 1.0 && tried < MOST_ALONE {
            tried += 1;
            if let Some((alone, inputs)) = alone(lowered, id, &known) {
                let got = conditions.call(alone, &inputs)?;
                own = got.first().map(|got| conditions.excess(got, &plain[i]));
            }
        }
        let inst = &entry.insts[id];
        steps.push(OpComparison {
            tensor: inst.name.clone(),
            op: inst.op.name().to_string(),
            total,
            own,
            expectation: false,
        });
    }
    Ok(Blame { steps, others: Vec::new() })
}

/// Whether an instruction computes an array: it is neither a parameter nor a constant.
fn is_computed(entry: &Computation, id: InstId) -> bool {
    let inst = &entry.insts[id];
    let is_input = matches!(inst.op, Op::Parameter(_) | Op::Constant(_));
    !is_input && inst.shape.as_array().is_some()
}

/// A copy of the module that returns the given instructions of its entry computation.
fn with_results(lowered: &Lowered, kept: &[InstId]) -> Lowered {
    let mut all = lowered.clone();
    let entry = all.module.entry;
    let comp = &mut all.module.comps[entry];
    all.results = infos(comp, kept);
    let shapes = kept.iter().map(|&id| comp.insts[id].shape.clone()).collect();
    let root = comp.insts[comp.root].clone();
    let tuple = crate::hlo::Inst {
        name: "kept".to_string(),
        op: Op::Tuple,
        operands: kept.to_vec(),
        shape: Shape::Tuple(shapes),
        ..root
    };
    comp.root = comp.insts.push(tuple);
    all
}

fn infos(comp: &Computation, ids: &[InstId]) -> Vec<TensorInfo> {
    let one = |(i, &id): (usize, &InstId)| {
        let array = comp.array_shape(id);
        TensorInfo {
            name: comp.insts[id].name.clone(),
            called: None,
            field: format!("r{i}"),
            dtype: array.dtype,
            dims: array.dims.clone(),
        }
    };
    ids.iter().enumerate().map(one).collect()
}

/// A module of one instruction, with the arrays that are its operands; `None` if an operand's value is unknown.
fn alone(lowered: &Lowered, id: InstId, known: &HashMap<InstId, &Tensor>) -> Option<(Lowered, Vec<Tensor>)> {
    let mut module = lowered.module.clone();
    let entry = module.entry;
    let comp = &mut module.comps[entry];
    let mut params: Vec<InstId> = Vec::new();
    let mut inputs = Vec::new();
    for operand in comp.insts[id].operands.clone() {
        if params.contains(&operand) || matches!(comp.insts[operand].op, Op::Constant(_)) {
            continue;
        }
        inputs.push((*known.get(&operand)?).clone());
        comp.insts[operand].op = Op::Parameter(params.len());
        comp.insts[operand].operands.clear();
        params.push(operand);
    }
    let args = infos(comp, &params);
    comp.params = params;
    comp.root = id;
    let lowered = compile::wrap_module(module).ok()?;
    Some((Lowered { args, ..lowered }, inputs))
}
