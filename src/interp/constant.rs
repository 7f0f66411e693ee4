//! Values that a computation under construction already determines.
use super::excerpt::excerpt;
use super::machine::{Machine, Plan, check};
use super::opcodes::machine;
use crate::hlo::{Builder, Computation, Inst, InstId, Literal, Op, Size};
use crate::tensor::Tensor;

/// Element operations that one constant may cost.
const BUDGET: u64 = 1 << 26;

/// The value of `id` in the computation that is open, if it depends on no parameter and is an array.
///
/// `None` also where the value takes more than about 2^26 element operations, or an instruction of it can't be run.
pub fn constant_value<D: Size>(b: &Builder<D>, id: InstId) -> Option<Tensor> {
    if let Op::Constant(Literal::Array(t)) = &b.current().insts.get(id)?.op {
        return Some(t.clone());
    }
    let (module, id) = excerpt(b, id, is_known)?;
    let comp = module.entry();
    let order = comp.post_order_to(id);
    check(comp, &order, &module).ok()?;
    let plan = Plan::new(comp, order, id);
    match machine(&module, BUDGET, BUDGET).run_constant(comp, &plan) {
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

/// Whether an instruction makes the same in every call, if its operands are the same.
fn is_known<D: Size>(inst: &Inst<D>) -> bool {
    !matches!(inst.op, Op::Parameter(_) | Op::Rng { .. } | Op::Foreign(_) | Op::ReplicaId | Op::PartitionId)
}
