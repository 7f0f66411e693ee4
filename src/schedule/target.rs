//! The machine that kernels are made for, with what is asked of them.
use crate::target::{CodeRequest, IsaLevel, PanelSizes, Target, virtual_machine};

/// Target of kernels: the code request and the packed panels that other programs of the same function share.
#[derive(Clone, Copy, Debug)]
pub struct KernelTarget<'a> {
    /// The machine and the wishes about its code.
    pub request: &'a CodeRequest,
    /// Sizes of the panels that code for other sizes or processors of the function reads.
    pub panels: &'a PanelSizes,
}

impl<'a> KernelTarget<'a> {
    /// The machine that decisions are made for: the target, or the virtual machine of portable arithmetic.
    pub fn machine(&self) -> &'a Target {
        virtual_machine(self.request.precision.math).unwrap_or(&self.request.target)
    }

    /// The processor that runs the kernels. It differs from [`KernelTarget::machine`] in portable arithmetic alone, which may ask it how
    /// many independent elements a chunk computes at once, and nothing else (`target/portable.rs`).
    pub fn processor(&self) -> &'a Target {
        &self.request.target
    }

    /// The processor, if its registers hold less than those of the machine that tiles are chosen for.
    pub fn smaller_processor(&self) -> Option<&'a Target> {
        let bits = |target: &Target| target.vector_bits * target.vector_registers;
        Some(self.processor()).filter(|processor| bits(processor) < bits(self.machine()))
    }

    /// Number of vectors of the machine that the processor's registers hold, at most as many as the machine has.
    pub fn vectors_in_registers(&self) -> u64 {
        let (machine, processor) = (self.machine(), self.processor());
        let held = processor.vector_registers * processor.vector_bits / machine.vector_bits;
        held.clamp(1, machine.vector_registers)
    }

    /// Lanes of the processor's vectors of elements of `bytes` bytes, at most those of the machine.
    pub fn processor_lanes(&self, bytes: u64) -> u64 {
        self.processor().lanes(bytes).min(self.machine().lanes(bytes))
    }

    /// Whether loads and stores of some lanes take the processor no longer than those of all.
    pub fn has_masks(&self) -> bool {
        self.processor().level == IsaLevel::Avx512
    }
}
