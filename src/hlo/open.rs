//! The nouns of this module with sizes that may vary from call to call: what lowering makes.
use super::{attrs, builder};
pub use crate::symbolic::Dim;

pub use super::{
    Anchor, Assumed, BuilderCheckpoint, Claim, ClaimQuantity, CompId, DataSize, Fold, InstId, Literal, Metadata,
    OwningComputation, RuntimeCheck, RuntimeChecks, XlaLayout,
};
pub use attrs::{DotDims, FftKind, Foreign, ScatterDims, Transpose};

/// A module under construction.
pub type Builder = builder::Builder<Dim>;
/// A number that every element of a constant is.
pub type Number = builder::Number<Dim>;
/// A program.
pub type Module = super::Module<Dim>;
/// A function of values.
pub type Computation = super::Computation<Dim>;
/// One instruction.
pub type Inst = super::Inst<Dim>;
/// Operation of an instruction, with symbolic sizes.
pub type Op = super::Op<Dim>;
/// The shape of a value.
pub type Shape = super::Shape<Dim>;
/// An element type and sizes.
pub type ArrayShape = super::ArrayShape<Dim>;
/// One dimension of a window.
pub type WindowDim = attrs::WindowDim<Dim>;
/// The axes and window of a convolution.
pub type ConvDims = attrs::ConvDims<Dim>;
/// The axes of a gather.
pub type GatherDims = attrs::GatherDims<Dim>;
/// One dimension of a slice.
pub type SliceDim = attrs::SliceDim<Dim>;
/// One dimension of a pad.
pub type PadDim = attrs::PadDim<Dim>;
