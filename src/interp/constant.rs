//! Values that a computation under construction already determines.
use super::excerpt::excerpt;
use super::machine::{EvaluationPlan, Machine, check};
use super::opcodes::machine;
use super::sizes::size_elements;
use crate::hlo::{Builder, Computation, Inst, InstId, Literal, Op, SizeRepr, SymbolicArray};
use crate::symbolic::trace;
use crate::tensor::Tensor;

/// Element operations that one constant may cost.
const BUDGET: u64 = 1 << 26;

/// The value of `id` in the computation that is open, which it must have in every call, if it depends on no parameter and is an array.
///
/// `None` also where the value takes more than about 2^26 element operations, or an instruction of it can't be run.
pub fn constant_value<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<Tensor> {
    known_value(b, id).map(SymbolicArray::pinned)
}

/// Constant value of `id` in the innermost open computation, with the elements that follow from sizes of arrays.
///
/// `None` where [`constant_value`] has none.
pub fn known_value<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<SymbolicArray> {
    let is_recording = trace::is_recording();
    if let Op::Constant(_) = &b.current().insts.get(id)?.op {
        return SymbolicArray::of_constant(b, id);
    }
    if let Some(sizes) = is_recording.then(|| size_elements(b, id)).flatten() {
        let array = b.shape(id).at_hand();
        let array = array.as_array()?;
        let bytes = sizes.iter().flat_map(|e| Tensor::scalar_of_int(array.dtype, e.at_hand()).bytes.to_vec());
        let value = Tensor::new(array.dtype, array.dims.clone(), bytes.collect::<Vec<u8>>());
        let varies = sizes.iter().any(|e| e.varies());
        return Some(SymbolicArray { value, sizes: varies.then_some(sizes) });
    }
    evaluated(b, id).map(|value| SymbolicArray { value, sizes: None })
}

/// The value of an array, which it must have in every call.
pub(super) fn evaluated<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<Tensor> {
    let (module, id) = excerpt(b, id, is_known)?;
    let comp = module.entry();
    let order = comp.post_order_to(id);
    check(comp, &order, &module).ok()?;
    let plan = EvaluationPlan::new(comp, order, id);
    match machine(&module, BUDGET, BUDGET).run_constant(comp, &plan) {
        Some(Literal::Array(value)) => Some(value),
        Some(Literal::Tuple(_) | Literal::Token) | None => None,
    }
}

impl Machine<'_> {
    fn run_constant(&self, comp: &Computation, plan: &EvaluationPlan) -> Option<Literal> {
        // No parameter is in the plan, so none is read.
        let args = vec![Literal::Token; comp.params.len()];
        self.run(comp, plan, &args).ok()
    }
}

/// Whether an instruction makes the same in every call, if its operands are the same.
fn is_known<D: SizeRepr>(inst: &Inst<D>) -> bool {
    !matches!(inst.op, Op::Parameter(_) | Op::Rng { .. } | Op::Foreign(_) | Op::ReplicaId | Op::PartitionId)
}
