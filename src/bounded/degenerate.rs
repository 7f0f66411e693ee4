//! Whether the instance for some sizes, mostly 1, is the general one but for instructions that move nothing there: a broadcast to one
//! row, a reshape to the same sizes.
use super::extent::Extent;
use super::instance::{Elements, Form, Varying, numbers, plain};
use crate::hlo::{CompId, Computation, InstId, Literal, Module, Op};
use crate::interp;
use crate::scalar::eval;
use crate::tensor::Tensor;
use std::collections::HashMap;

/// A value: the number of the step that makes it, and its sizes.
type Value = (usize, Vec<Vec<u64>>);

/// An instruction that does something.
#[derive(PartialEq)]
struct Step {
    op: Op,
    numbers: Vec<i64>,
    constant: Option<Tensor>,
    called: Vec<usize>,
    operands: Vec<Value>,
    dims: Vec<Vec<u64>>,
}

/// Whether `base`, of which `forms` tell how it varies, is `other` for the sizes `at`.
pub fn equal_at(base: &Module, forms: &[Form], at: &[u64], other: &Module) -> bool {
    let (ours, theirs) = (base.reachable(), other.reachable());
    if ours.len() != theirs.len() {
        return false;
    }
    let fixed = Form::fixed(other);
    ours.iter().zip(&theirs).zip(forms.iter().zip(&fixed)).all(|((&a, &b), (form, own))| {
        let general = steps(&base.comps[a], form, at, &ours);
        let exact = steps(&other.comps[b], own, &[], &theirs);
        general.is_some() && general == exact
    })
}

/// The steps of a computation and what its root is; `None` where a number is not known.
fn steps(comp: &Computation, form: &Form, at: &[u64], comps: &[CompId]) -> Option<(Vec<Step>, Value)> {
    let mut steps: Vec<Step> = Vec::new();
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
        let mut op = plain(&inst.op);
        if let Op::Broadcast(map) = &inst.op {
            // axes of size 1 say nothing of where elements go
            let own = operands[0].1.first().cloned().unwrap_or_default();
            op = Op::Broadcast(map.iter().zip(&own).filter(|(_, n)| **n != 1).map(|(&m, _)| m).collect());
            operands[0].1 = vec![own.into_iter().filter(|&n| n != 1).collect()];
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
        let called = inst.op.called().iter().map(|c| comps.iter().position(|d| d == c).unwrap_or(0)).collect();
        steps.push(Step { op, numbers, constant, called, operands, dims: dims.clone() });
        values.insert(id, (steps.len() - 1, dims));
    }
    let root = values.get(&comp.root)?.clone();
    Some((steps, root))
}

fn sizes(varying: &Varying, at: &[u64]) -> Option<Vec<Vec<u64>>> {
    let one = |e: &Extent| e.at(at).and_then(|n| u64::try_from(n).ok());
    varying.dims.iter().map(|dims| dims.iter().map(one).collect()).collect()
}

/// Whether the result is the operand in other sizes.
fn moves_nothing(op: &Op, operands: &[Value], dims: &[Vec<u64>]) -> bool {
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
    let numbers = |extents: &[Extent]| extents.iter().map(|e| e.at(at)).collect::<Option<Vec<i64>>>();
    let of = |values: Vec<f64>| eval::convert(&Tensor::of(&t.dims, &values), t.dtype);
    match &varying.elements {
        None => Some(interp::first_part(t, dims.to_vec())),
        Some(Elements::Numbers(e)) => Some(of(numbers(e)?.into_iter().map(|n| n as f64).collect())),
        Some(Elements::Reciprocals(e)) => {
            let one = |n: i64| Tensor::scalar_of(t.dtype, 1.0 / n as f64).bytes.to_vec();
            let bytes: Vec<u8> = numbers(e)?.into_iter().flat_map(one).collect();
            Some(Tensor::new(t.dtype, t.dims.clone(), bytes))
        }
    }
}
