//! Values that a computation under construction already determines.
use super::machine::{Machine, Plan, check};
use super::opcodes::machine;
use crate::hlo::{Builder, Computation, InstId, Literal, Op};
use crate::tensor::Tensor;

/// Element operations that one constant may cost.
const BUDGET: u64 = 1 << 26;
/// Instructions that one constant may need.
const MAX_INSTS: usize = 1 << 16;

/// The value of `id` in the computation that is open, if it depends on no parameter and is an array.
///
/// `None` also where the value takes more than about 2^26 element operations, or an instruction of it can't be run.
pub fn constant_value(b: &Builder, id: InstId) -> Option<Tensor> {
    let comp = b.current();
    if let Op::Constant(Literal::Array(t)) = &comp.insts.get(id)?.op {
        return Some(t.clone());
    }
    let order = needed(comp, id)?;
    check(comp, &order, b.module()).ok()?;
    let plan = Plan::new(comp, order, id);
    match machine(b.module(), BUDGET, BUDGET).run_constant(comp, &plan) {
        Some(Literal::Array(t)) => Some(t),
        Some(Literal::Tuple(_) | Literal::Token) | None => None,
    }
}

impl Machine<'_> {
    fn run_constant(&self, comp: &Computation, plan: &Plan) -> Option<Literal> {
        // No parameter is in the plan, so none is read.
        let args = vec![Literal::Token; comp.params.len()];
        self.run(comp, plan, &args).ok()
    }
}

/// What `id` needs, operands before users; `None` if a parameter, a random number or another device is among it.
fn needed(comp: &Computation, id: InstId) -> Option<Vec<InstId>> {
    let mut seen = std::collections::HashSet::new();
    let mut order = Vec::new();
    let mut stack = vec![(id, 0usize)];
    while let Some((id, next)) = stack.pop() {
        let inst = comp.insts.get(id)?;
        if next == 0 {
            if !seen.insert(id) {
                continue;
            }
            let varies =
                matches!(inst.op, Op::Parameter(_) | Op::Rng { .. } | Op::Foreign(_) | Op::ReplicaId | Op::PartitionId);
            if varies || seen.len() > MAX_INSTS {
                return None;
            }
        }
        match inst.operands.get(next) {
            Some(&operand) => {
                stack.push((id, next + 1));
                if !seen.contains(&operand) {
                    stack.push((operand, 0));
                }
            }
            None => order.push(id),
        }
    }
    Some(order)
}
