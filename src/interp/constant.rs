//! Values that are already determined in a computation under construction.
use super::excerpt::extract_subgraph;
use super::machine::{EvaluationPlan, Machine, check_shapes};
use super::opcodes::machine_with_every_opcode;
use super::sizes::symbolic_elements;
use crate::hlo::{Builder, Computation, Inst, InstId, Literal, Op, SizeRepr, SymbolicArray};
use crate::symbolic::trace;
use crate::tensor::Tensor;

/// Budget of element operations for evaluating one constant.
const BUDGET: u64 = 1 << 26;

/// Value of array `id` of the current computation, if it is the same in every call, because it depends on no parameter.
///
/// `None` also if the evaluation takes more than about 2^26 element operations, or an instruction cannot be evaluated.
pub fn constant_value<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<Tensor> {
    symbolic_value(b, id).map(SymbolicArray::pin_sizes)
}

/// Value of array `id` of the current computation like [`constant_value`], with expressions for elements that depend on open
/// sizes.
///
/// `None` where [`constant_value`] has none.
pub fn symbolic_value<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<SymbolicArray> {
    let is_recording = trace::is_recording();
    if let Op::Constant(_) = &b.current_computation().insts.get(id)?.op {
        return SymbolicArray::from_constant(b, id);
    }
    if let Some(sizes) = is_recording.then(|| symbolic_elements(b, id)).flatten() {
        let array = b.shape(id).at_current_sizes();
        let array = array.as_array()?;
        let bytes = sizes.iter().flat_map(|e| Tensor::scalar_from_i64(array.dtype, e.concrete_value()).bytes.to_vec());
        let value = Tensor::new(array.dtype, array.dims.clone(), bytes.collect::<Vec<u8>>());
        let varies = sizes.iter().any(|e| e.varies());
        return Some(SymbolicArray { value, sizes: varies.then_some(sizes) });
    }
    constant_tensor(b, id).map(|value| SymbolicArray { value, sizes: None })
}

/// Value of an array that has to be the same in every call and does not depend on open sizes.
pub(super) fn constant_tensor<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<Tensor> {
    let (module, id) = extract_subgraph(b, id, is_known)?;
    let comp = module.entry();
    let order = comp.post_order_to(id);
    check_shapes(comp, &order, &module).ok()?;
    let plan = EvaluationPlan::new(comp, order, id);
    match machine_with_every_opcode(&module, BUDGET, BUDGET).run_constant(comp, &plan) {
        Some(Literal::Array(value)) => Some(value),
        Some(Literal::Tuple(_) | Literal::Token) | None => None,
    }
}

impl Machine<'_> {
    fn run_constant(&self, comp: &Computation, plan: &EvaluationPlan) -> Option<Literal> {
        // The plan contains no parameter, so that none is read.
        let args = vec![Literal::Token; comp.params.len()];
        self.run_plan(comp, plan, &args).ok()
    }
}

/// Whether an instruction has the same result in every call with equal operands.
fn is_known<D: SizeRepr>(inst: &Inst<D>) -> bool {
    !matches!(inst.op, Op::Parameter(_) | Op::Rng { .. } | Op::Foreign(_) | Op::ReplicaId | Op::PartitionId)
}
