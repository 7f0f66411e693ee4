//! The machine that kernels are made for, with what is asked of them.
use crate::target::{CodeRequest, PanelSizes, Target, virtual_machine};

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
}
