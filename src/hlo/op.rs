//! HLO opcodes, one variant each; the pointwise ones are one variant over [`ScalarOp`].
use super::CompId;
use super::attrs::*;
use super::schema::{Attrs, Field};
use super::size::SizeRepr;
use crate::scalar::{CompareKind, ScalarOp};
use crate::tensor::Tensor;

/// Constant value: an array, a tuple or a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// An array.
    Array(Tensor),
    /// Tuple of values.
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

/// Number of operands of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this many operands.
    Exactly(usize),
    /// At least this many operands.
    AtLeast(usize),
    /// One or more arrays, followed by an initial value for each.
    Pairs,
    /// A number of arrays, one array of indices, and as many updates as arrays.
    ScatterGroups,
}

impl Arity {
    /// Whether the opcode can have `count` operands.
    pub fn allows(self, count: usize) -> bool {
        match self {
            Arity::Exactly(n) => count == n,
            Arity::AtLeast(n) => count >= n,
            Arity::Pairs => count >= 2 && count.is_multiple_of(2),
            Arity::ScatterGroups => count >= 3 && count % 2 == 1,
        }
    }
}

/// Dependence of result elements on operand elements. Fusion is based on it, as are analyses without a better rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementMapping {
    /// Each element is computed from the elements of all operands at the same index; an operand may also be a scalar.
    Pointwise,
    /// Elements are the operand's, in the same row-major order.
    SameOrder,
    /// Each element is one of the operand, or a constant, as determined by the index and the attributes.
    Rearranged,
    /// Each element is one of any operand, as determined by the index, the attributes and index operands.
    Selected,
    /// Each element depends on many elements of the operands.
    Folded,
    /// Anything else: tuples, tokens, calls, constants, random numbers.
    Opaque,
}

/// Defines [`Op`] from a table with a row per opcode: the variant with its payload, XLA's name, the arity, the element mapping,
/// and attributes that are kept as text.
///
/// A field that is a single attribute in text and messages has the name of the attribute behind its type. A prefix tells when
/// the attribute is written: `!name` always, `?name` unless it is false, `+name` for a flag whose default is true. A field of
/// several attributes has no name; its type reads and writes them ([`Field`]).
macro_rules! hlo_ops {
    ($($(#[$doc:meta])* $variant:ident $(($bind:ident: $payload:ty $(= $own:literal)?))? $({ $($(#[$fdoc:meta])* $field:ident: $fty:ty $(= $fown:literal)?),* $(,)? })?,
        $name:literal, $arity:expr, $elements:expr, [$($more:literal),* $(,)?];)*) => {
        /// An operation: the opcode of an instruction with its attributes.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Op<D: SizeRepr = u64> {
            $($(#[$doc])* $variant $(($payload))? $({ $($(#[$fdoc])* $field: $fty),* })?,)*
            /// A scalar op applied point by point; all operands have the result's sizes, but `select`'s predicate and `clamp`'s bounds may be scalars.
            Elementwise(ScalarOp),
            /// An opcode whose attributes are kept as text.
            Foreign(Box<ForeignOp>),
        }
        impl<D: SizeRepr> Op<D> {
            /// Opcode name in XLA.
            pub fn name(&self) -> &str {
                match self {
                    $(Op::$variant { .. } => $name,)*
                    Op::Elementwise(op) => op.name(),
                    Op::Foreign(f) => &f.opcode,
                }
            }
            /// Number of operands.
            pub fn arity(&self) -> Arity {
                match self {
                    $(Op::$variant { .. } => $arity,)*
                    Op::Elementwise(op) => Arity::Exactly(op.arity()),
                    Op::Foreign(_) => Arity::AtLeast(0),
                }
            }
            /// Dependence of result elements on operand elements.
            pub fn element_mapping(&self) -> ElementMapping {
                match self {
                    $(Op::$variant { .. } => $elements,)*
                    Op::Elementwise(_) => ElementMapping::Pointwise,
                    Op::Foreign(_) => ElementMapping::Opaque,
                }
            }
        }
        /// The attributes of an opcode that is a row of the table, with their prefixes.
        pub(super) fn attributes(opcode: &str) -> Option<&'static [&'static str]> {
            match opcode {
                $($name => Some(&[$($($own,)?)? $($($($fown,)?)*)? $($more),*]),)*
                _ => None,
            }
        }
        /// Builds the op of a row from its attributes, which are taken; `None` for an opcode that is no row.
        pub(super) fn read(opcode: &str, attrs: &mut Attrs) -> Result<Option<Op>, String> {
            Ok(match opcode {
                $($name => Some(Op::$variant
                    $(({ let $bind = Field::read(attrs, concat!("" $(, $own)?))?; $bind }))?
                    $({ $($field: Field::read(attrs, concat!("" $(, $fown)?))?),* })?),)*
                _ => None,
            })
        }
        /// Adds the attributes of an op that is a row; the inverse of [`read`].
        pub(super) fn write(op: &Op, out: &mut Attrs) {
            match op {
                $(Op::$variant $(($bind))? $({ $($field),* })? => {
                    $(Field::write($bind, concat!("" $(, $own)?), out);)?
                    $($(Field::write($field, concat!("" $(, $fown)?), out);)*)?
                })*
                Op::Elementwise(_) | Op::Foreign(_) => {}
            }
        }
    };
}

hlo_ops! {
    /// Argument number `n` of the computation.
    Parameter(number: usize), "parameter", Arity::Exactly(0), ElementMapping::Opaque, [];
    /// A constant, an array or a tuple of arrays.
    Constant(value: Literal), "constant", Arity::Exactly(0), ElementMapping::Opaque, [];
    /// The index of each element along one dimension.
    Iota(axis: usize = "!iota_dimension"), "iota", Arity::Exactly(0), ElementMapping::Rearranged, [];
    /// Operand dimension `i` becomes result dimension `dims[i]`; the others repeat.
    Broadcast(dims: Vec<usize> = "dimensions"), "broadcast", Arity::Exactly(1), ElementMapping::Rearranged, [];
    /// The operand's elements in row-major order, in other sizes.
    Reshape, "reshape", Arity::Exactly(1), ElementMapping::SameOrder, ["inferred_dimension"];
    /// The operand's bytes in another shape.
    Bitcast, "bitcast", Arity::Exactly(1), ElementMapping::SameOrder, [];
    /// The operand itself, in memory of its own.
    Copy, "copy", Arity::Exactly(1), ElementMapping::SameOrder, [];
    /// The operand; no optimization moves computations across it.
    OptimizationBarrier, "opt-barrier", Arity::Exactly(1), ElementMapping::SameOrder, [];
    /// `bitcast-convert` between widths: the last dimension splits or joins.
    BitcastConvertWidth, "bitcast-convert", Arity::Exactly(1), ElementMapping::Opaque, [];
    /// Result dimension `i` is operand dimension `perm[i]`.
    Transpose(perm: Vec<usize> = "!dimensions"), "transpose", Arity::Exactly(1), ElementMapping::Rearranged, [];
    /// Elements in reverse order along these dimensions.
    Reverse(dims: Vec<usize> = "!dimensions"), "reverse", Arity::Exactly(1), ElementMapping::Rearranged, [];
    /// Elements of the operand in a strided box.
    Slice(dims: Vec<SliceDim<D>> = "!slice"), "slice", Arity::Exactly(1), ElementMapping::Rearranged, [];
    /// Operand 0, padded with operand 1 at the edges and between elements, or cropped at the edges.
    Pad(dims: Vec<PadDim<D>> = "!padding"), "pad", Arity::Exactly(2), ElementMapping::Selected, [];
    /// Operands one after another along a dimension.
    Concatenate(axis: usize = "!dimensions"), "concatenate", Arity::AtLeast(1), ElementMapping::Selected, [];
    /// A box of these sizes at run-time starts (one scalar an axis), clamped so that it fits.
    DynamicSlice(sizes: Vec<D> = "!dynamic_slice_sizes"), "dynamic-slice", Arity::AtLeast(1), ElementMapping::Selected, [];
    /// Operand 0 with operand 1 written at run-time starts, clamped so that it fits.
    DynamicUpdateSlice, "dynamic-update-slice", Arity::AtLeast(2), ElementMapping::Selected, [];
    /// Slices at indices; starts are clamped.
    Gather(dims: Box<GatherDims<D>>), "gather", Arity::Exactly(2), ElementMapping::Selected, [
        "!offset_dims", "!collapsed_slice_dims", "!start_index_map", "!index_vector_dim", "!slice_sizes", "operand_batching_dims",
        "start_indices_batching_dims", "indices_are_sorted"];
    /// Updates combined into operands at indices; windows that do not fit are skipped.
    Scatter { /// Dimension numbers.
        dims: Box<ScatterDims>, /// (old.., new..) -> combined.
        comp: CompId = "!to_apply" }, "scatter", Arity::ScatterGroups, ElementMapping::Folded, [
        "!update_window_dims", "!inserted_window_dims", "!scatter_dims_to_operand_dims", "!index_vector_dim", "input_batching_dims",
        "scatter_indices_batching_dims", "indices_are_sorted", "unique_indices"];
    /// Reduction of n arrays over dimensions, from n initial scalars.
    Reduce { /// Dimensions that are reduced.
        dims: Vec<usize> = "!dimensions", /// (acc.., value..) -> acc.
        comp: CompId = "!to_apply" }, "reduce", Arity::Pairs, ElementMapping::Folded, [];
    /// Reduction of n arrays over windows, from n initial scalars.
    ReduceWindow { /// Window along each dimension.
        window: Vec<WindowDim<D>> = "window", /// (acc.., value..) -> acc.
        comp: CompId = "!to_apply" }, "reduce-window", Arity::Pairs, ElementMapping::Folded, [];
    /// Each source element goes to the selected element of its window.
    SelectAndScatter { /// Window along each dimension.
        window: Vec<WindowDim<D>> = "window", /// (a, b) -> keep a.
        select: CompId = "!select", /// (old, source) -> combined.
        scatter: CompId = "!scatter" }, "select-and-scatter", Arity::Exactly(3), ElementMapping::Folded, [];
    /// Operands sorted together along one dimension.
    Sort { /// Dimension along which elements are sorted.
        dim: usize = "!dimensions", /// Whether equal keys keep their order.
        is_stable: bool = "?is_stable", /// (a0, b0, a1, b1, …) -> a goes first.
        comp: CompId = "!to_apply" }, "sort", Arity::AtLeast(1), ElementMapping::Folded, [];
    /// Largest (or smallest) `k` of the last dimension, and their s32 indices.
    TopK { /// Number of elements to select.
        k: D = "!k", /// Whether the largest elements are selected, rather than the smallest.
        largest: bool = "+largest", /// `Total`: in the total order. `Partial`: the largest by `<`, in the steps of TensorFlow's kernel, which
        /// decide where a NaN goes.
        kind: CompareKind }, "topk", Arity::Exactly(1), ElementMapping::Folded, [];
    /// Batched matrix product.
    Dot(dims: Box<DotDims>), "dot", Arity::Exactly(2), ElementMapping::Folded, [
        "lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims", "operand_precision", "algorithm", "sparsity"];
    /// Convolution (cross-correlation unless reversed).
    Convolution(dims: Box<ConvDims<D>>), "convolution", Arity::Exactly(2), ElementMapping::Folded, [
        "window", "!dim_labels", "feature_group_count", "batch_group_count", "operand_precision", "sparsity"];
    /// A scalar computation applied point by point.
    Map { /// Indices of all dimensions, in order.
        dims: Vec<usize> = "dimensions", /// The computation.
        comp: CompId = "!to_apply" }, "map", Arity::AtLeast(1), ElementMapping::Pointwise, [];
    /// Several values as one.
    Tuple, "tuple", Arity::AtLeast(0), ElementMapping::Opaque, [];
    /// One part of a tuple.
    GetTupleElement(part: usize = "!index"), "get-tuple-element", Arity::Exactly(1), ElementMapping::Opaque, [];
    /// Loop that replaces the state by `body(state)` as long as `cond(state)` holds.
    While { /// state -> pred.
        cond: CompId = "!condition", /// state -> state.
        body: CompId = "!body" }, "while", Arity::Exactly(1), ElementMapping::Opaque, [];
    /// Runs one of several computations: operand 0 chooses, operand `1 + i` is the argument of branch `i`. A `pred` chooses branch 0 when true.
    Conditional(branches: Vec<CompId>), "conditional", Arity::AtLeast(1), ElementMapping::Opaque, [
        "true_computation", "false_computation", "branch_computations"];
    /// Runs a computation.
    Call(comp: CompId = "!to_apply"), "call", Arity::AtLeast(0), ElementMapping::Opaque, ["is_composite", "output_to_operand_aliasing"];
    /// Instructions that become one kernel.
    Fusion { /// Kind of kernel that the fusion becomes.
        kind: FusionKind = "!kind", /// Computation with the fused instructions.
        comp: CompId = "!calls" }, "fusion", Arity::AtLeast(0), ElementMapping::Opaque, ["output_to_operand_aliasing"];
    /// Discrete Fourier transform over the last dimensions.
    Fft { /// Direction and element types of the transform.
        kind: FftKind = "!fft_type", /// Lengths of the transformed dimensions.
        length: Vec<D> = "!fft_length" }, "fft", Arity::Exactly(1), ElementMapping::Folded, [];
    /// Lower (or upper) Cholesky factor of the last two dimensions.
    Cholesky { /// Whether the factor is lower triangular, rather than upper.
        lower: bool = "lower" }, "cholesky", Arity::Exactly(1), ElementMapping::Folded, [];
    /// Solution x of a·x = b (or x·a = b) for a triangular matrix a.
    TriangularSolve { /// Whether the equation is a·x = b, rather than x·a = b.
        left_side: bool = "left_side", /// Whether the lower triangle of a is read, rather than the upper one.
        lower: bool = "lower", /// Whether the diagonal of a is taken as ones.
        unit_diagonal: bool = "unit_diagonal", /// Form in which a is taken: unchanged, transposed or adjoint.
        transpose_a: Transpose = "transpose_a" }, "triangular-solve", Arity::Exactly(2), ElementMapping::Folded, [];
    /// Batch normalization in training: (y, mean, biased variance) of (x, scale, offset).
    BatchNormTraining { /// Bits of the f32 added to the variance.
        epsilon_bits: u32 = "!epsilon", /// The channel dimension.
        feature_index: usize = "!feature_index" }, "batch-norm-training", Arity::Exactly(3), ElementMapping::Folded, [];
    /// Batch normalization in inference: y of (x, scale, offset, mean, variance).
    BatchNormInference { /// Bits of the f32 added to the variance.
        epsilon_bits: u32 = "!epsilon", /// The channel dimension.
        feature_index: usize = "!feature_index" }, "batch-norm-inference", Arity::Exactly(5), ElementMapping::Folded, [];
    /// Gradient of batch normalization: (grad x, grad scale, grad offset) of (x, scale, mean, variance, grad y).
    BatchNormGrad { /// Bits of the f32 added to the variance.
        epsilon_bits: u32 = "!epsilon", /// The channel dimension.
        feature_index: usize = "!feature_index" }, "batch-norm-grad", Arity::Exactly(5), ElementMapping::Folded, [];
    /// Random numbers of a distribution (`rng_uniform`, `rng_normal`); not reproducible.
    Rng { /// Whether the distribution is normal, rather than uniform.
        normal: bool }, "rng", Arity::Exactly(2), ElementMapping::Opaque, ["!distribution"];
    /// Random bits: (new state, bits) of a generator's state.
    RngBitGenerator { /// `rng_philox`, `rng_three_fry` or `rng_default`.
        algorithm: String = "!algorithm" }, "rng-bit-generator", Arity::Exactly(1), ElementMapping::Opaque, [];
    /// Size of one dimension, s32.
    GetDimensionSize(axis: usize = "!dimensions"), "get-dimension-size", Arity::Exactly(1), ElementMapping::Opaque, [];
    /// The operand with the size of one dimension set at run time.
    SetDimensionSize(axis: usize = "!dimensions"), "set-dimension-size", Arity::Exactly(2), ElementMapping::Opaque, [];
    /// Token that orders what follows after all operands.
    AfterAll, "after-all", Arity::AtLeast(0), ElementMapping::Opaque, [];
    /// The first operand, computed after the second.
    AddDependency, "add-dependency", Arity::Exactly(2), ElementMapping::Opaque, [];
    /// The index of this partition: 0.
    PartitionId, "partition-id", Arity::Exactly(0), ElementMapping::Opaque, [];
    /// The index of this replica: 0.
    ReplicaId, "replica-id", Arity::Exactly(0), ElementMapping::Opaque, [];
}

impl<D: SizeRepr> Op<D> {
    /// Computations that the op calls, in the order of its fields.
    pub fn called_computations(&self) -> Vec<CompId> {
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
    /// Mutable references to the computations that the op calls.
    pub fn called_computations_mut(&mut self) -> Vec<&mut CompId> {
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
    /// Scalar op, for a pointwise op.
    pub fn scalar(&self) -> Option<ScalarOp> {
        match self {
            Op::Elementwise(op) => Some(*op),
            _ => None,
        }
    }
}
