//! Decisions that led to a kernel: for tuning tables, profiles and code for other sizes of the same function, never for its own code.
use super::Kernel;
use crate::target::{ConvolutionMethod, PanelSize, TileChoice};

/// Decisions that led to a kernel.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// The matrix product that the kernel computes, where there was a choice of loops.
    pub product: Option<ProductChoice>,
    /// The convolution's name in tuning tables and the algorithm chosen, where there was a choice.
    pub convolution: Option<(String, ConvolutionMethod)>,
    /// Floating-point operations that direct sums would take, where the kernel is part of another method (Winograd's).
    pub direct_flops: Option<u64>,
}

/// Loops chosen for a matrix product.
#[derive(Clone, Debug)]
pub struct ProductChoice {
    /// The product's name in tuning tables.
    pub form: String,
    /// Loop order and tile sizes.
    pub choice: TileChoice,
    /// Panels that the constants of the product were packed in.
    pub panels: PanelSize,
}

impl Kernel {
    /// The matrix product that the kernel computes, where there was a choice of loops.
    pub fn product_choice(&self) -> Option<&ProductChoice> {
        self.provenance.as_ref()?.product.as_ref()
    }

    /// The convolution's name in tuning tables and the algorithm chosen, where there was a choice.
    pub fn convolution_choice(&self) -> Option<&(String, ConvolutionMethod)> {
        self.provenance.as_ref()?.convolution.as_ref()
    }

    /// Floating-point operations that direct sums would take, where the kernel is part of another method.
    pub fn direct_flops(&self) -> Option<u64> {
        self.provenance.as_ref()?.direct_flops
    }

    /// Notes the product that the kernel computes.
    pub fn set_product_choice(&mut self, product: ProductChoice) {
        self.provenance.get_or_insert_default().product = Some(product);
    }

    /// Notes the convolution that the kernel is part of.
    pub fn set_convolution_choice(&mut self, convolution: Option<(String, ConvolutionMethod)>) {
        if convolution.is_some() || self.provenance.is_some() {
            self.provenance.get_or_insert_default().convolution = convolution;
        }
    }

    /// Notes the operations that direct sums would take.
    pub fn set_direct_flops(&mut self, direct: Option<u64>) {
        if direct.is_some() || self.provenance.is_some() {
            self.provenance.get_or_insert_default().direct_flops = direct;
        }
    }

    /// Adds the decisions that led to `other`, which is appended to this kernel; the kernel's own choices stay.
    pub(super) fn append_provenance(&mut self, other: &Kernel) {
        if self.provenance.is_none() && other.provenance.is_none() {
            return;
        }
        let direct_flops = match (self.direct_flops(), other.direct_flops()) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(self.flops).saturating_add(b.unwrap_or(other.flops))),
        };
        let own = self.provenance.get_or_insert_default();
        own.direct_flops = direct_flops;
        if own.product.is_none() {
            own.product = other.product_choice().cloned();
        }
        if own.convolution.is_none() {
            own.convolution = other.convolution_choice().cloned();
        }
    }
}
