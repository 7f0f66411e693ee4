//! Equivalence of two modules by value numbering: a function lowered for particular sizes (mostly 1) against the general one at these sizes,
//! except for instructions that do nothing there, such as a broadcast to one row or a reshape to the same sizes.
use super::extent::Extent;
use super::size_exprs::{ComputationExprs, InstExprs, attribute_numbers, with_zeroed_sizes};
use crate::hlo::{CompId, Computation, InstId, Literal, Module, Op};
use crate::interp;
use crate::tensor::Tensor;
use std::collections::HashMap;

/// Value number of an instruction, and the dimensions of its arrays.
type NumberedValue = (usize, Vec<Vec<u64>>);

/// Key of an instruction in value numbering, apart from its op: attributes, called computations, operands and dimensions.
#[derive(PartialEq, Eq, Hash)]
struct ValueKey {
    name: String,
    numbers: Vec<i64>,
    called: Vec<usize>,
    operands: Vec<NumberedValue>,
    dims: Vec<Vec<u64>>,
}

/// Value numbering of instructions: two instructions get the same number if they compute the same value.
#[derive(Default)]
struct ValueNumbering {
    known: HashMap<ValueKey, Vec<(Op, Option<Tensor>, usize)>>,
    count: usize,
}

impl ValueNumbering {
    fn number_of(&mut self, work: ValueKey, op: Op, constant: Option<Tensor>) -> usize {
        let alike = self.known.entry(work).or_default();
        if let Some((_, _, number)) = alike.iter().find(|(o, c, _)| *o == op && *c == constant) {
            return *number;
        }
        self.count += 1;
        alike.push((op, constant, self.count));
        self.count
    }
}

/// Whether the module `base`, with the size expressions `forms`, computes the same as `other` at the sizes `at`.
pub fn computes_same_at(base: &Module, forms: &[ComputationExprs], at: &[u64], other: &Module) -> bool {
    let mut numbering = ValueNumbering::default();
    let general = numbering.number_module(base, forms, at);
    let exact = numbering.number_module(other, &ComputationExprs::constant(other), &[]);
    general.is_some() && general == exact
}

impl ValueNumbering {
    /// Value number of the entry computation's root; `None` where an expression has no value for the sizes `at`.
    fn number_module(&mut self, module: &Module, forms: &[ComputationExprs], at: &[u64]) -> Option<NumberedValue> {
        let mut comps: HashMap<CompId, usize> = HashMap::new();
        let mut last = None;
        for (id, form) in module.reachable().into_iter().zip(forms) {
            let root = self.number_computation(&module.comps[id], form, at, &comps)?;
            let params = module.comps[id].params.len() as i64;
            let work = ValueKey {
                name: "computation".to_string(),
                numbers: vec![params],
                called: vec![],
                operands: vec![root.clone()],
                dims: vec![],
            };
            comps.insert(id, self.number_of(work, Op::Tuple, None));
            last = Some(root);
        }
        last
    }

    fn number_computation(
        &mut self,
        comp: &Computation,
        form: &ComputationExprs,
        at: &[u64],
        comps: &HashMap<CompId, usize>,
    ) -> Option<NumberedValue> {
        let mut values: HashMap<InstId, NumberedValue> = HashMap::new();
        for (&id, varying) in form.order.iter().zip(form.varying.iter()) {
            let inst = &comp.insts[id];
            let dims = dims_at(varying, at)?;
            let mut operands: Vec<NumberedValue> = inst.operands.iter().map(|o| values[o].clone()).collect();
            if is_noop(&inst.op, &operands, &dims) {
                let (made, _) = operands.swap_remove(0);
                values.insert(id, (made, dims));
                continue;
            }
            let is_empty = !matches!(inst.op, Op::Parameter(_)) && matches!(&dims[..], [one] if one.contains(&0));
            if is_empty {
                // arrays without elements are equal
                let work = ValueKey {
                    name: "empty".to_string(),
                    numbers: vec![],
                    called: vec![],
                    operands: vec![],
                    dims: dims.clone(),
                };
                values.insert(id, (self.number_of(work, Op::Tuple, None), dims));
                continue;
            }
            let (mut op, mut told) = (with_zeroed_sizes(&inst.op), dims.clone());
            if let (Op::Broadcast(map), [to]) = (&inst.op, &dims[..]) {
                // axes of size 1 do not affect where elements go, in the operand and in the result
                let own = operands[0].1.first().cloned().unwrap_or_default();
                let place = |&m: &usize| to.iter().take(m).filter(|n| **n != 1).count();
                op = Op::Broadcast(map.iter().zip(&own).filter(|(_, n)| **n != 1).map(|(m, _)| place(m)).collect());
                let without_ones = |dims: &[u64]| vec![dims.iter().copied().filter(|&n| n != 1).collect()];
                (operands[0].1, told) = (without_ones(&own), without_ones(to));
            }
            let constant = match &inst.op {
                Op::Constant(Literal::Array(t)) => {
                    op = Op::Tuple;
                    Some(constant_at(t, varying, at, dims.first()?)?)
                }
                _ => None,
            };
            let numbers = match varying.numbers.is_empty() {
                true => attribute_numbers(&inst.op),
                false => varying.numbers.iter().map(|e| e.value_at(at)).collect::<Option<_>>()?,
            };
            let called = inst.op.called_computations().iter().map(|c| comps.get(c).copied()).collect::<Option<_>>()?;
            let work = ValueKey { name: inst.op.name().to_string(), numbers, called, operands, dims: told };
            values.insert(id, (self.number_of(work, op, constant), dims));
        }
        values.get(&comp.root).cloned()
    }
}

fn dims_at(varying: &InstExprs, at: &[u64]) -> Option<Vec<Vec<u64>>> {
    let one = |e: &Extent| e.value_at(at).and_then(|n| u64::try_from(n).ok());
    varying.dims.iter().map(|dims| dims.iter().map(one).collect()).collect()
}

/// Whether an instruction returns the elements of its first operand in the same order.
fn is_noop(op: &Op, operands: &[NumberedValue], dims: &[Vec<u64>]) -> bool {
    // a scatter without updates
    if let (Op::Scatter { .. }, [_, _, (_, updates)]) = (op, operands) {
        return updates.iter().flatten().any(|&n| n == 0);
    }
    let ([(_, from)], [to]) = (operands, dims) else { return false };
    let [from] = &from[..] else { return false };
    match op {
        Op::Reshape | Op::Copy => true,
        Op::Broadcast(map) => map.is_sorted() && from.iter().product::<u64>() == to.iter().product::<u64>(),
        Op::Transpose(perm) => {
            let moved: Vec<usize> = perm.iter().copied().filter(|&p| from[p] != 1).collect();
            moved.is_sorted()
        }
        _ => false,
    }
}

/// Value of a constant at the sizes `at`; `None` where an element has no value.
fn constant_at(t: &Tensor, varying: &InstExprs, at: &[u64], dims: &[u64]) -> Option<Tensor> {
    match &varying.elements {
        None => Some(interp::leading_elements(t, dims.to_vec())),
        Some(elements) => {
            let numbers = elements.iter().map(|e| e.value_at(at)).collect::<Option<Vec<i64>>>()?;
            let bytes = numbers.iter().flat_map(|&n| Tensor::scalar_from_i64(t.dtype, n).bytes.to_vec());
            Some(Tensor::new(t.dtype, t.dims.clone(), bytes.collect::<Vec<u8>>()))
        }
    }
}
