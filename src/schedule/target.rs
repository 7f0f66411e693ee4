//! The machine that kernels are made for, with what is asked of them.
use crate::target::{CodeRequest, IsaLevel, PanelSizes, Target, virtual_machine};

/// Target of kernels: the code request and the packed panels that other programs of the same function share.
#[derive(Clone, Copy, Debug)]
pub struct KernelTarget<'a> {
    /// The target machine, and the precision, tuning and plans of its code.
    pub request: &'a CodeRequest,
    /// Panel sizes in the code for other sizes or processors of the same function, which shares its constants where panels are equal.
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

    /// The processor, if its vector registers hold fewer bits in total than those of the machine that tiles are chosen for.
    pub fn smaller_processor(&self) -> Option<&'a Target> {
        let bits = |target: &Target| target.vector_bits * target.vector_registers;
        Some(self.processor()).filter(|processor| bits(processor) < bits(self.machine()))
    }

    /// Number of the machine's vectors that the registers of the processor hold, at most the machine's number of registers.
    pub fn vectors_in_registers(&self) -> u64 {
        let (machine, processor) = (self.machine(), self.processor());
        let held = processor.vector_registers * processor.vector_bits / machine.vector_bits;
        held.clamp(1, machine.vector_registers)
    }

    /// Number of lanes of the processor's vectors for elements of `bytes` bytes, at most that of the machine's vectors.
    pub fn processor_lanes(&self, bytes: u64) -> u64 {
        self.processor().lanes(bytes).min(self.machine().lanes(bytes))
    }

    /// Whether masked loads and stores take the processor no longer than those of full vectors.
    pub fn has_masks(&self) -> bool {
        self.processor().level == IsaLevel::Avx512
    }
}
