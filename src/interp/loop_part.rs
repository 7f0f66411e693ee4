//! Final value of one element of a loop's state, evaluated from only as much of the loop as that element needs.
//!
//! A loop that counts iterations while it computes has a counter whose final value is known at compile time, although the rest
//! of its state is not.
use super::constant::symbolic_value;
use super::excerpt::extract_subgraph;
use super::machine::{Machine, check_shapes};
use super::opcodes::machine_with_every_opcode;
use super::operands::Operands;
use crate::hlo::{Builder, CompId, Computation, InstId, Literal, Op, SizeRepr, SymbolicArray};
use crate::symbolic::trace;
use crate::tensor::Tensor;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Budget of element operations for one value.
const BUDGET: u64 = 1 << 26;
/// Limit on the instructions run by the iterations of a loop.
const STEPS: u64 = 1 << 22;
/// Largest nesting depth of loops.
const MOST_DEPTH: usize = 16;

/// Value of an array of the current computation like [`super::constant_value`], which also evaluates loops, but only the state
/// elements that are needed. `None` if it depends on a parameter, or takes too much work.
pub fn constant_value_through_loops<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<Tensor> {
    symbolic_value_through_loops(b, id).map(SymbolicArray::pin_sizes)
}

/// Value of an array like [`constant_value_through_loops`], with expressions for elements that depend on open sizes.
pub fn symbolic_value_through_loops<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<SymbolicArray> {
    if let Some(known) = trace::is_recording().then(|| symbolic_value(b, id)).flatten() {
        return Some(known);
    }
    let (module, id) = extract_subgraph(b, id, |_| true)?;
    let m = machine_with_every_opcode(&module, BUDGET, STEPS);
    match values(&m, module.entry(), &BTreeMap::new(), &[id], MOST_DEPTH)?.remove(0) {
        Literal::Array(value) => Some(SymbolicArray { value, sizes: None }),
        Literal::Tuple(_) | Literal::Token => None,
    }
}

/// Dependences of an instruction, for the excerpt of a loop that one element of its state needs.
enum Needs {
    /// Dependence on other instructions.
    Values(Vec<InstId>),
    /// Dependence on an element of the tuple parameter.
    Part(usize),
    /// Dependence on a loop: its condition, its body, the instructions of its initial state, the needed state elements, and the element that is
    /// read.
    Loop { cond: CompId, body: CompId, init: Vec<InstId>, parts: BTreeSet<usize>, part: usize },
}

fn needs(m: &Machine, comp: &Computation, id: InstId, depth: usize) -> Option<Needs> {
    let inst = comp.insts.get(id)?;
    let Op::GetTupleElement(part) = inst.op else {
        let known = !matches!(inst.op, Op::Parameter(_) | Op::Rng { .. } | Op::Foreign(_) | Op::While { .. });
        return known.then(|| Needs::Values(inst.operands.clone()));
    };
    let tuple = comp.insts.get(*inst.operands.first()?)?;
    match tuple.op {
        Op::Parameter(_) => Some(Needs::Part(part)),
        Op::Tuple => Some(Needs::Values(vec![*tuple.operands.get(part)?])),
        Op::While { cond, body } => {
            let init = comp.insts.get(*tuple.operands.first()?).filter(|i| matches!(i.op, Op::Tuple))?;
            let parts = needed_parts(m, cond, body, part, depth.checked_sub(1)?)?;
            Some(Needs::Loop { cond, body, init: init.operands.clone(), parts, part })
        }
        _ => Some(Needs::Values(inst.operands.clone())),
    }
}

/// State elements that decide the number of iterations and the final value of element `part`.
fn needed_parts(m: &Machine, cond: CompId, body: CompId, part: usize, depth: usize) -> Option<BTreeSet<usize>> {
    let (cond, body) = (m.computation(cond).ok()?, m.computation(body).ok()?);
    let next = body.insts.get(body.root).filter(|root| matches!(root.op, Op::Tuple))?;
    let mut all = reads(m, cond, cond.root, depth)?;
    all.insert(part);
    let mut todo: Vec<usize> = all.iter().copied().collect();
    while let Some(part) = todo.pop() {
        let more = reads(m, body, *next.operands.get(part)?, depth)?;
        todo.extend(more.into_iter().filter(|&part| all.insert(part)));
    }
    Some(all)
}

/// Elements of the tuple parameter on which a value depends.
fn reads(m: &Machine, comp: &Computation, id: InstId, depth: usize) -> Option<BTreeSet<usize>> {
    let (mut parts, mut seen, mut todo) = (BTreeSet::new(), HashSet::new(), vec![id]);
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        match needs(m, comp, id, depth)? {
            Needs::Values(ids) => todo.extend(ids),
            Needs::Part(part) => drop(parts.insert(part)),
            Needs::Loop { init, parts, .. } => {
                for part in parts {
                    todo.push(*init.get(part)?);
                }
            }
        }
    }
    Some(parts)
}

/// Values of instructions, evaluated with given values of some elements of the tuple parameter.
fn values(
    m: &Machine,
    comp: &Computation,
    given: &BTreeMap<usize, Literal>,
    ids: &[InstId],
    depth: usize,
) -> Option<Vec<Literal>> {
    let mut known: HashMap<InstId, Literal> = HashMap::new();
    let mut todo: Vec<(InstId, bool)> = ids.iter().map(|&id| (id, false)).collect();
    while let Some((id, ready)) = todo.pop() {
        if known.contains_key(&id) {
            continue;
        }
        let needs = needs(m, comp, id, depth)?;
        let before: Vec<InstId> = match &needs {
            Needs::Values(ids) => ids.clone(),
            Needs::Part(_) => Vec::new(),
            Needs::Loop { init, parts, .. } => parts.iter().filter_map(|&p| init.get(p).copied()).collect(),
        };
        if !ready {
            todo.push((id, true));
            todo.extend(before.into_iter().map(|id| (id, false)));
            continue;
        }
        let value = match needs {
            Needs::Part(part) => given.get(&part)?.clone(),
            Needs::Values(ids) if ids != comp[id].operands => known.get(ids.first()?)?.clone(),
            Needs::Values(ids) => {
                let operands: Vec<&Literal> = ids.iter().map(|id| known.get(id)).collect::<Option<_>>()?;
                check_shapes(comp, &[id], m.module).ok()?;
                m.run_instruction(comp, &comp[id], Operands(&operands), &[]).ok()?
            }
            Needs::Loop { cond, body, init, parts, part } => {
                let first = parts.iter().map(|&p| Some((p, known.get(init.get(p)?)?.clone())));
                run(m, cond, body, first.collect::<Option<_>>()?, depth.checked_sub(1)?)?.remove(&part)?
            }
        };
        known.insert(id, value);
    }
    ids.iter().map(|id| known.get(id).cloned()).collect()
}

/// Runs a loop on some elements of its state.
fn run(
    m: &Machine,
    cond: CompId,
    body: CompId,
    mut state: BTreeMap<usize, Literal>,
    depth: usize,
) -> Option<BTreeMap<usize, Literal>> {
    let (condition, inside) = (m.computation(cond).ok()?, m.computation(body).ok()?);
    let parts: Vec<usize> = state.keys().copied().collect();
    let next = &inside[inside.root].operands;
    let next: Vec<InstId> = parts.iter().map(|&part| next.get(part).copied()).collect::<Option<_>>()?;
    loop {
        m.charge_iteration(cond, body).ok()?;
        match &values(m, condition, &state, &[condition.root], depth)?[0] {
            Literal::Array(t) if t.len() == 1 && t.bytes[0] == 0 => return Some(state),
            Literal::Array(_) => {}
            Literal::Tuple(_) | Literal::Token => return None,
        }
        state = parts.iter().copied().zip(values(m, inside, &state, &next, depth)?).collect();
    }
}
