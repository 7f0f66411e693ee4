//! Whether a function lowered for some sizes, mostly 1, is the general one but for instructions that move nothing there: a broadcast to
//! one row, a reshape to the same sizes.
use super::extent::Extent;
use super::form::{Form, Varying, numbers, plain};
use crate::hlo::{CompId, Computation, InstId, Literal, Module, Op};
use crate::interp;
use crate::tensor::Tensor;
use std::collections::HashMap;

/// A value: the number of the step that makes it, and its sizes.
type Value = (usize, Vec<Vec<u64>>);

/// An instruction without its op: the numbers in its attributes, the computations that it calls, and its operands.
#[derive(PartialEq, Eq, Hash)]
struct Work {
    name: String,
    numbers: Vec<i64>,
    called: Vec<usize>,
    operands: Vec<Value>,
    dims: Vec<Vec<u64>>,
}

/// Steps that do something, equal ones once: two values are equal if their steps are the same.
#[derive(Default)]
struct Steps {
    known: HashMap<Work, Vec<(Op, Option<Tensor>, usize)>>,
    count: usize,
}

impl Steps {
    fn number(&mut self, work: Work, op: Op, constant: Option<Tensor>) -> usize {
        let alike = self.known.entry(work).or_default();
        if let Some((_, _, number)) = alike.iter().find(|(o, c, _)| *o == op && *c == constant) {
            return *number;
        }
        self.count += 1;
        alike.push((op, constant, self.count));
        self.count
    }
}

/// Whether `base`, of which `forms` tell how it varies, is `other` for the sizes `at`.
pub fn equal_at(base: &Module, forms: &[Form], at: &[u64], other: &Module) -> bool {
    let mut steps = Steps::default();
    let general = steps.module(base, forms, at);
    let exact = steps.module(other, &Form::fixed(other), &[]);
    general.is_some() && general == exact
}

impl Steps {
    /// The number of the entry; `None` where a number is not known.
    fn module(&mut self, module: &Module, forms: &[Form], at: &[u64]) -> Option<Value> {
        let mut comps: HashMap<CompId, usize> = HashMap::new();
        let mut last = None;
        for (id, form) in module.reachable().into_iter().zip(forms) {
            let root = self.computation(&module.comps[id], form, at, &comps)?;
            let params = module.comps[id].params.len() as i64;
            let work = Work {
                name: "computation".to_string(),
                numbers: vec![params],
                called: vec![],
                operands: vec![root.clone()],
                dims: vec![],
            };
            comps.insert(id, self.number(work, Op::Tuple, None));
            last = Some(root);
        }
        last
    }

    fn computation(
        &mut self,
        comp: &Computation,
        form: &Form,
        at: &[u64],
        comps: &HashMap<CompId, usize>,
    ) -> Option<Value> {
        let mut values: HashMap<InstId, Value> = HashMap::new();
        for (&id, varying) in form.order.iter().zip(form.varying.iter()) {
            let inst = &comp.insts[id];
            let dims = sizes(varying, at)?;
            let mut operands: Vec<Value> = inst.operands.iter().map(|o| values[o].clone()).collect();
            if moves_nothing(&inst.op, &operands, &dims) {
                let (made, _) = operands.swap_remove(0);
                values.insert(id, (made, dims));
                continue;
            }
            let is_empty = !matches!(inst.op, Op::Parameter(_)) && matches!(&dims[..], [one] if one.contains(&0));
            if is_empty {
                // one array without elements is like another
                let work = Work {
                    name: "empty".to_string(),
                    numbers: vec![],
                    called: vec![],
                    operands: vec![],
                    dims: dims.clone(),
                };
                values.insert(id, (self.number(work, Op::Tuple, None), dims));
                continue;
            }
            let (mut op, mut told) = (plain(&inst.op), dims.clone());
            if let (Op::Broadcast(map), [to]) = (&inst.op, &dims[..]) {
                // axes of size 1 say nothing of where elements go, in the operand and in the result
                let own = operands[0].1.first().cloned().unwrap_or_default();
                let place = |&m: &usize| to.iter().take(m).filter(|n| **n != 1).count();
                op = Op::Broadcast(map.iter().zip(&own).filter(|(_, n)| **n != 1).map(|(m, _)| place(m)).collect());
                let without_ones = |dims: &[u64]| vec![dims.iter().copied().filter(|&n| n != 1).collect()];
                (operands[0].1, told) = (without_ones(&own), without_ones(to));
            }
            let constant = match &inst.op {
                Op::Constant(Literal::Array(t)) => {
                    op = Op::Tuple;
                    Some(constant(t, varying, at, dims.first()?)?)
                }
                _ => None,
            };
            let numbers = match varying.numbers.is_empty() {
                true => numbers(&inst.op),
                false => varying.numbers.iter().map(|e| e.at(at)).collect::<Option<_>>()?,
            };
            let called = inst.op.called_computations().iter().map(|c| comps.get(c).copied()).collect::<Option<_>>()?;
            let work = Work { name: inst.op.name().to_string(), numbers, called, operands, dims: told };
            values.insert(id, (self.number(work, op, constant), dims));
        }
        values.get(&comp.root).cloned()
    }
}

fn sizes(varying: &Varying, at: &[u64]) -> Option<Vec<Vec<u64>>> {
    let one = |e: &Extent| e.at(at).and_then(|n| u64::try_from(n).ok());
    varying.dims.iter().map(|dims| dims.iter().map(one).collect()).collect()
}

/// Whether the result is the operand in other sizes.
fn moves_nothing(op: &Op, operands: &[Value], dims: &[Vec<u64>]) -> bool {
    // no update
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

/// A constant for the sizes `at`.
fn constant(t: &Tensor, varying: &Varying, at: &[u64], dims: &[u64]) -> Option<Tensor> {
    match &varying.elements {
        None => Some(interp::first_part(t, dims.to_vec())),
        Some(elements) => {
            let numbers = elements.iter().map(|e| e.at(at)).collect::<Option<Vec<i64>>>()?;
            let bytes = numbers.iter().flat_map(|&n| Tensor::scalar_of_int(t.dtype, n).bytes.to_vec());
            Some(Tensor::new(t.dtype, t.dims.clone(), bytes.collect::<Vec<u8>>()))
        }
    }
}
