//! Labels of kernels: the name of the instruction in a kernel that is the most work, which is what people look for in a profile. A
//! convolution gives its name to a kernel that ends in the activation behind it.
use crate::hlo::{ArrayShape, Computation, InstId, Op};
use crate::kernel::Kernel;
use crate::schedule::emit::Emitter;

impl Emitter<'_> {
    /// Records in the kernels from number `first` on which instructions they compute: `id` and the instructions inlined into it.
    pub(in crate::schedule) fn record_instruction_names(&mut self, id: InstId, first: usize) {
        let insts = self.scope.fusion.computed_instructions(self.scope.comp, id);
        for kernel in self.program.kernels.values_mut().skip(first) {
            kernel.insts = insts.iter().map(|&id| self.scope.comp[id].name.clone()).collect();
            label_kernel(kernel, self.scope.comp, id, &insts);
        }
    }
}

/// Cost of a function such as `exp`, in additions.
const LONG: u64 = 20;

/// The instruction of `insts` with the most operations, the first of equals; `None` if none computes anything.
fn heaviest_instruction(comp: &Computation, insts: &[InstId]) -> Option<InstId> {
    let mut found: Option<(u64, InstId)> = None;
    for &id in insts {
        let work = operation_count(comp, id);
        if work > found.map_or(0, |(most, _)| most) {
            found = Some((work, id));
        }
    }
    found.map(|(_, id)| id)
}

/// Approximate number of operations of an instruction; 0 if it only moves data.
fn operation_count(comp: &Computation, id: InstId) -> u64 {
    let inst = &comp[id];
    let array = |id: InstId| comp[id].shape.as_array();
    let size = |id: InstId| array(id).map_or(0, ArrayShape::elements);
    let extent = |a: Option<&ArrayShape>, axis: usize| a.and_then(|a| a.dims.get(axis).copied()).unwrap_or(1);
    match &inst.op {
        Op::Dot(dims) => {
            let left = inst.operands.first().and_then(|&o| array(o));
            let terms = dims.lhs_contracting.iter().map(|&axis| extent(left, axis));
            terms.fold(2 * size(id), u64::saturating_mul)
        }
        Op::Convolution(dims) => {
            let kernel = inst.operands.get(1).and_then(|&o| array(o));
            let features = extent(kernel, dims.kernel_output_feature).max(1);
            (2 * size(id)).saturating_mul(kernel.map_or(0, ArrayShape::elements) / features)
        }
        Op::ReduceWindow { window, .. } => window.iter().map(|d| d.size).fold(size(id), u64::saturating_mul),
        Op::Reduce { .. } => inst.operands.first().map_or(0, |&o| size(o)),
        Op::Elementwise(op) => size(id).saturating_mul(if op.is_long() { LONG } else { 1 }),
        _ => 0,
    }
}

/// The label of an instruction in profiles and in the text of kernels.
pub fn instruction_label(comp: &Computation, id: InstId) -> String {
    let inst = &comp[id];
    if inst.metadata.op_name.is_empty() {
        inst.name.clone()
    } else {
        format!("{} {}", inst.op.name(), inst.metadata.op_name)
    }
}

/// Labels a kernel that ends in `root` by the instruction of `insts` with the most operations.
pub fn label_kernel(kernel: &mut Kernel, comp: &Computation, root: InstId, insts: &[InstId]) {
    let Some(heavy) = heaviest_instruction(comp, insts).filter(|&id| id != root) else { return };
    // What the passes made has no name that the user knows.
    if comp[heavy].metadata.op_name.is_empty() && !comp[root].metadata.op_name.is_empty() {
        return;
    }
    if let Some(what) = kernel.label.strip_suffix(&instruction_label(comp, root)) {
        kernel.label = format!("{what}{}", instruction_label(comp, heavy));
    }
}
