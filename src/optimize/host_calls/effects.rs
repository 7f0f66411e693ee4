//! The order of effects: a scalar goes through every call with an effect, and through all computations that have one.
use super::{
    effect_shape, effectful_computations, extend_parameter, is_effect, push, push_with_last, redirect, replace,
    replace_region,
};
use crate::diag::{Code, Diagnostic, Result};
use crate::hlo::{CompId, Computation, InstId, Literal, Module, Op, Shape};
use crate::tensor::Tensor;
use std::collections::HashMap;

/// How a computation gets and gives the scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Caller {
    /// A `call`: a further parameter, and a pair of the result and the scalar.
    Call,
    /// The body of a loop, or a branch: a further part of the only parameter, and of the result.
    Region,
    /// The condition of a loop: a further part of the parameter, which is not used.
    Condition,
}

/// Orders the effects of a module; the entry has the scalar as its last result.
///
/// # Errors
/// `Code::HloUnsupported` for effects in computations of reductions, sorts, maps and other instructions that call a computation any
/// number of times.
pub fn order_effects(module: &mut Module) -> Result<()> {
    let is_effectful = effectful_computations(module);
    let mut threading = Threading { module, is_effectful, done: HashMap::new() };
    let entry = threading.module.entry;
    let mut comp = threading.module.comps[entry].clone();
    let none = Op::Constant(Literal::Array(Tensor::scalar(0i32)));
    let start = push(&mut comp, none, Vec::new(), effect_shape());
    let end = threading.thread(&mut comp, start)?;
    let root = comp.root;
    comp.root = push_with_last(&mut comp, root, end);
    threading.module.comps[entry] = comp;
    Ok(())
}

struct Threading<'m> {
    module: &'m mut Module,
    /// By computation of the original module, whether it has an effect.
    is_effectful: Vec<bool>,
    /// Computations with the scalar, by original and caller.
    done: HashMap<(CompId, Caller), CompId>,
}

impl Threading<'_> {
    fn is_effectful(&self, id: CompId) -> bool {
        self.is_effectful.get(id.0 as usize).copied().unwrap_or(false)
    }

    /// The computation `id` with the scalar, for a caller.
    fn computation(&mut self, id: CompId, caller: Caller) -> Result<CompId> {
        if let Some(&done) = self.done.get(&(id, caller)) {
            return Ok(done);
        }
        let mut comp = self.module.comps[id].clone();
        let start = match caller {
            Caller::Call => {
                let number = comp.params.len();
                let param = push(&mut comp, Op::Parameter(number), Vec::new(), effect_shape());
                comp.params.push(param);
                Some(param)
            }
            Caller::Region | Caller::Condition => extend_parameter(&mut comp, &effect_shape()),
        };
        let Some(start) = start else { return Err(refuse("a computation of several parameters")) };
        if caller != Caller::Condition {
            let end = self.thread(&mut comp, start)?;
            comp.root = match caller {
                Caller::Call => {
                    let shape = Shape::Tuple(vec![comp[comp.root].shape.clone(), effect_shape()]);
                    let parts = vec![comp.root, end];
                    push(&mut comp, Op::Tuple, parts, shape)
                }
                Caller::Region | Caller::Condition => {
                    let root = comp.root;
                    push_with_last(&mut comp, root, end)
                }
            };
        }
        comp.name = format!("{}.effects", comp.name);
        let made = self.module.comps.push(comp);
        self.done.insert((id, caller), made);
        Ok(made)
    }

    /// Leads the scalar through the effects of a computation; returns it as the last one leaves it.
    fn thread(&mut self, comp: &mut Computation, start: InstId) -> Result<InstId> {
        let mut state = start;
        for at in self.effects(comp) {
            state = self.thread_instruction(comp, at, state)?;
        }
        Ok(state)
    }

    /// The instructions with effects, in the order of the program: each behind those that it depends on, else as they are listed.
    fn effects(&self, comp: &Computation) -> Vec<InstId> {
        let has_effect = |id: &InstId| match &comp[*id].op {
            Op::Foreign(call) if is_effect(call) => true,
            op => op.called_computations().iter().any(|&called| self.is_effectful(called)),
        };
        let listed: Vec<InstId> = comp.insts.ids().filter(has_effect).collect();
        comp.post_order_from(listed.into_iter()).into_iter().filter(has_effect).collect()
    }

    fn thread_instruction(&mut self, comp: &mut Computation, at: InstId, state: InstId) -> Result<InstId> {
        let shape = comp[at].shape.clone();
        match comp[at].op.clone() {
            Op::Foreign(call) if is_effect(&call) => {
                comp.insts[at].operands.insert(0, state);
                Ok(push(comp, Op::GetTupleElement(0), vec![at], effect_shape()))
            }
            Op::Call(callee) => {
                let callee = self.computation(callee, Caller::Call)?;
                let mut operands = comp[at].operands.clone();
                operands.push(state);
                let pair = Shape::Tuple(vec![shape.clone(), effect_shape()]);
                replace(comp, at, Op::Call(callee), operands, pair);
                let count = comp.insts.len();
                let result = push(comp, Op::GetTupleElement(0), vec![at], shape);
                redirect(comp, count, &HashMap::from([(at, result)]));
                Ok(push(comp, Op::GetTupleElement(1), vec![at], effect_shape()))
            }
            Op::While { cond, body } => {
                let cond = self.computation(cond, Caller::Condition)?;
                let body = self.computation(body, Caller::Region)?;
                Ok(thread_region(comp, at, Op::While { cond, body }, state))
            }
            Op::Conditional(branches) => {
                let all = branches.iter().map(|&b| self.computation(b, Caller::Region)).collect::<Result<Vec<_>>>()?;
                Ok(thread_region(comp, at, Op::Conditional(all), state))
            }
            op => Err(refuse(&format!("a computation of `{}`", op.name()))),
        }
    }
}

/// Leads the scalar through the loop or the branches `at`, which become `op`; returns it as they leave it.
fn thread_region(comp: &mut Computation, at: InstId, op: Op, state: InstId) -> InstId {
    let last = replace_region(comp, at, op, state);
    push(comp, Op::GetTupleElement(last), vec![at], effect_shape())
}

fn refuse(place: &str) -> crate::diag::Error {
    let told = format!("a custom call with an effect stands in {place}, which may be evaluated any number of times");
    Diagnostic::new(Code::HloUnsupported, told).help("call it outside of there").into()
}
