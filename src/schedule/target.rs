//! The machine that kernels are made for, with what is asked of them.
use crate::target::{CodeRequest, PanelSizes, Target};

/// Target of kernels: the code request and the packed panels that other programs of the same function share.
#[derive(Clone, Copy, Debug)]
pub struct KernelTarget<'a> {
    /// The machine and the wishes about its code.
    pub request: &'a CodeRequest,
    /// Sizes of the panels that code for other sizes or processors of the function reads.
    pub panels: &'a PanelSizes,
}

impl<'a> KernelTarget<'a> {
    /// The machine that runs the kernels.
    pub fn machine(&self) -> &'a Target {
        &self.request.target
    }
}
