//! The opcodes, one variant each; the pointwise ones are one variant over [`ScalarOp`].
use super::CompId;
use super::attrs::*;
use super::size::Size;
use crate::scalar::{CompareKind, ScalarOp};
use crate::tensor::Tensor;

/// A constant value: an array or a tuple of such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// An array.
    Array(Tensor),
    /// Several values.
    Tuple(Vec<Literal>),
    /// A token.
    Token,
}

impl Literal {
    /// The arrays in it, depth first.
    pub fn leaves(&self) -> Vec<&Tensor> {
        match self {
            Literal::Array(t) => vec![t],
            Literal::Tuple(parts) => parts.iter().flat_map(Literal::leaves).collect(),
            Literal::Token => vec![],
        }
    }
}

macro_rules! hlo_ops {
    ($($(#[$doc:meta])* $variant:ident $(($payload:ty))? $({ $($(#[$fdoc:meta])* $field:ident: $fty:ty),* $(,)? })?, $name:literal;)*) => {
        /// What an instruction computes.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Op<D: Size = u64> {
            $($(#[$doc])* $variant $(($payload))? $({ $($(#[$fdoc])* $field: $fty),* })?,)*
            /// A scalar op applied point by point; all operands have the result's sizes, but `select`'s predicate and `clamp`'s bounds may be scalars.
            Elementwise(ScalarOp),
            /// An opcode that is only carried.
            Foreign(Box<Foreign>),
        }
        impl<D: Size> Op<D> {
            /// XLA's opcode.
            pub fn name(&self) -> &str {
                match self {
                    $(Op::$variant { .. } => $name,)*
                    Op::Elementwise(op) => op.name(),
                    Op::Foreign(f) => &f.opcode,
                }
            }
        }
    };
}

hlo_ops! {
    /// Argument number `n` of the computation.
    Parameter(usize), "parameter";
    /// A value known now.
    Constant(Literal), "constant";
    /// Its own index along one dimension.
    Iota(usize), "iota";
    /// Operand dimension `i` becomes result dimension `dims[i]`; the others repeat.
    Broadcast(Vec<usize>), "broadcast";
    /// The same elements in row-major order, other sizes.
    Reshape, "reshape";
    /// The same bytes in another shape.
    Bitcast, "bitcast";
    /// Its operand.
    Copy, "copy";
    /// Its operand; nothing moves across it.
    OptimizationBarrier, "opt-barrier";
    /// `bitcast-convert` between widths: the last dimension splits or joins.
    BitcastConvertWidth, "bitcast-convert";
    /// Result dimension `i` is operand dimension `perm[i]`.
    Transpose(Vec<usize>), "transpose";
    /// Backwards along these dimensions.
    Reverse(Vec<usize>), "reverse";
    /// A strided box.
    Slice(Vec<SliceDim<D>>), "slice";
    /// Grown or cropped at the edges and between elements; operand 1 fills.
    Pad(Vec<PadDim<D>>), "pad";
    /// Operands one after another along a dimension.
    Concatenate(usize), "concatenate";
    /// A box of these sizes at run-time starts (one scalar an axis), clamped so that it fits.
    DynamicSlice(Vec<D>), "dynamic-slice";
    /// Operand 0 with operand 1 written at run-time starts, clamped so that it fits.
    DynamicUpdateSlice, "dynamic-update-slice";
    /// Slices at indices; starts are clamped.
    Gather(GatherDims<D>), "gather";
    /// Updates combined into operands at indices; windows that do not fit are skipped.
    Scatter { /// Axes.
        dims: ScatterDims, /// (old.., new..) -> combined.
        comp: CompId }, "scatter";
    /// n arrays and n scalars folded over dimensions.
    Reduce { /// Folded dimensions.
        dims: Vec<usize>, /// (acc.., value..) -> acc.
        comp: CompId }, "reduce";
    /// n arrays and n scalars folded over windows.
    ReduceWindow { /// One entry a dimension.
        window: Vec<WindowDim<D>>, /// (acc.., value..) -> acc.
        comp: CompId }, "reduce-window";
    /// Each source element goes to the selected element of its window.
    SelectAndScatter { /// One entry a dimension.
        window: Vec<WindowDim<D>>, /// (a, b) -> keep a.
        select: CompId, /// (old, source) -> combined.
        scatter: CompId }, "select-and-scatter";
    /// Operands sorted together along one dimension.
    Sort { /// The dimension.
        dim: usize, /// Whether equal keys keep their order.
        is_stable: bool, /// (a0, b0, a1, b1, …) -> a goes first.
        comp: CompId }, "sort";
    /// Largest (or smallest) `k` of the last dimension, and their s32 indices.
    TopK { /// How many.
        k: D, /// Largest, not smallest.
        largest: bool, /// `Total`: in the total order. `Partial`: the largest by `<`, in the steps of TensorFlow's kernel, which
        /// decide where a NaN goes.
        kind: CompareKind }, "topk";
    /// Batched matrix product.
    Dot(DotDims), "dot";
    /// Convolution (cross-correlation unless reversed).
    Convolution(Box<ConvDims<D>>), "convolution";
    /// A scalar computation applied point by point.
    Map { /// The computation.
        comp: CompId, /// All dimensions, in order.
        dims: Vec<usize> }, "map";
    /// Several values as one.
    Tuple, "tuple";
    /// One part of a tuple.
    GetTupleElement(usize), "get-tuple-element";
    /// State is `body(state)` while `cond(state)`.
    While { /// state -> pred.
        cond: CompId, /// state -> state.
        body: CompId }, "while";
    /// Runs one of several computations: operand 0 chooses, operand `1 + i` is the argument of branch `i`. A `pred` chooses branch 0 when true.
    Conditional(Vec<CompId>), "conditional";
    /// Runs a computation.
    Call(CompId), "call";
    /// Instructions that become one kernel.
    Fusion { /// Its body.
        comp: CompId, /// What kind of kernel.
        kind: FusionKind }, "fusion";
    /// Discrete Fourier transform over the last dimensions.
    Fft { /// Direction and types.
        kind: FftKind, /// Lengths of the transformed dimensions.
        length: Vec<D> }, "fft";
    /// Lower (or upper) Cholesky factor of the last two dimensions.
    Cholesky { /// Lower, not upper.
        lower: bool }, "cholesky";
    /// x of a·x = b (or x·a = b), a triangular.
    TriangularSolve { /// a stands left of x.
        left_side: bool, /// The lower triangle is read.
        lower: bool, /// The diagonal is taken as ones.
        unit_diagonal: bool, /// How a is read.
        transpose_a: Transpose }, "triangular-solve";
    /// (y, mean, biased variance) of (x, scale, offset).
    BatchNormTraining { /// Bits of the f32 added to the variance.
        epsilon_bits: u32, /// The channel dimension.
        feature_index: usize }, "batch-norm-training";
    /// y of (x, scale, offset, mean, variance).
    BatchNormInference { /// Bits of the f32 added to the variance.
        epsilon_bits: u32, /// The channel dimension.
        feature_index: usize }, "batch-norm-inference";
    /// (grad x, grad scale, grad offset) of (x, scale, mean, variance, grad y).
    BatchNormGrad { /// Bits of the f32 added to the variance.
        epsilon_bits: u32, /// The channel dimension.
        feature_index: usize }, "batch-norm-grad";
    /// Random numbers of a distribution (`rng_uniform`, `rng_normal`); not reproducible.
    Rng { /// Normal, not uniform.
        normal: bool }, "rng";
    /// (new state, bits) of a state.
    RngBitGenerator { /// `rng_philox`, `rng_three_fry` or `rng_default`.
        algorithm: String }, "rng-bit-generator";
    /// Size of one dimension, s32.
    GetDimensionSize(usize), "get-dimension-size";
    /// The operand with one dimension bounded.
    SetDimensionSize(usize), "set-dimension-size";
    /// Joins tokens.
    AfterAll, "after-all";
    /// Its first operand, after its second.
    AddDependency, "add-dependency";
    /// The index of this partition: 0.
    PartitionId, "partition-id";
    /// The index of this replica: 0.
    ReplicaId, "replica-id";
}

impl<D: Size> Op<D> {
    /// The computations that it calls, in the order in which it names them.
    pub fn called(&self) -> Vec<CompId> {
        match self {
            Op::Scatter { comp, .. }
            | Op::Reduce { comp, .. }
            | Op::ReduceWindow { comp, .. }
            | Op::Sort { comp, .. }
            | Op::Map { comp, .. }
            | Op::Call(comp)
            | Op::Fusion { comp, .. } => vec![*comp],
            Op::SelectAndScatter { select, scatter, .. } => vec![*select, *scatter],
            Op::While { cond, body } => vec![*cond, *body],
            Op::Conditional(branches) => branches.clone(),
            Op::Foreign(f) => f.calls.iter().map(|c| c.1).collect(),
            _ => vec![],
        }
    }
    /// The same, to be changed.
    pub fn called_mut(&mut self) -> Vec<&mut CompId> {
        match self {
            Op::Scatter { comp, .. }
            | Op::Reduce { comp, .. }
            | Op::ReduceWindow { comp, .. }
            | Op::Sort { comp, .. }
            | Op::Map { comp, .. }
            | Op::Call(comp)
            | Op::Fusion { comp, .. } => vec![comp],
            Op::SelectAndScatter { select, scatter, .. } => vec![select, scatter],
            Op::While { cond, body } => vec![cond, body],
            Op::Conditional(branches) => branches.iter_mut().collect(),
            Op::Foreign(f) => f.calls.iter_mut().map(|c| &mut c.1).collect(),
            _ => vec![],
        }
    }
    /// The scalar op if this is pointwise.
    pub fn scalar(&self) -> Option<ScalarOp> {
        match self {
            Op::Elementwise(op) => Some(*op),
            _ => None,
        }
    }
}
