//! Types of this module with symbolic sizes that may vary between calls, as lowering produces them.
use super::{attrs, builder};
pub use crate::symbolic::Dim;

pub use super::{
    AssumedSizes, BoundCheck, BuilderCheckpoint, CheckedQuantity, CompId, DataDependentSize, Fold, InstId, Literal,
    Metadata, OwningComputation, RuntimeCheck, RuntimeChecks, SizeAssumptions, XlaLayout,
};
pub use attrs::{DotDims, FftKind, ForeignOp, ScatterDims, Transpose};

/// Builder of a module with symbolic sizes.
pub type Builder = builder::Builder<Dim>;
/// Fill value of a constant, which may be computed from symbolic sizes.
pub type Number = builder::Number<Dim>;
/// Module with symbolic sizes.
pub type Module = super::Module<Dim>;
/// Computation with symbolic sizes.
pub type Computation = super::Computation<Dim>;
/// Instruction with symbolic sizes.
pub type Inst = super::Inst<Dim>;
/// Operation with symbolic sizes.
pub type Op = super::Op<Dim>;
/// Shape with symbolic sizes.
pub type Shape = super::Shape<Dim>;
/// Array shape with symbolic sizes.
pub type ArrayShape = super::ArrayShape<Dim>;
/// Window parameters with symbolic sizes.
pub type WindowDim = attrs::WindowDim<Dim>;
/// Dimension numbers of a convolution, with symbolic window sizes.
pub type ConvDims = attrs::ConvDims<Dim>;
/// Dimension numbers of a gather, with symbolic slice sizes.
pub type GatherDims = attrs::GatherDims<Dim>;
/// Slice parameters with symbolic sizes.
pub type SliceDim = attrs::SliceDim<Dim>;
/// Padding parameters with symbolic sizes.
pub type PadDim = attrs::PadDim<Dim>;
