//! Conversion of modules to other sizes: to integers for the current values of open sizes.
use super::attrs::{ConvDims, GatherDims, PadDim, SliceDim, WindowDim};
use super::size::{SignedSize, SizeRepr};
use super::{ArrayShape, Computation, Inst, Module, Op, Shape};
use crate::symbolic::Dim;
use crate::util::id_vec::Id;
use std::cell::RefCell;

/// Functions that convert sizes to another representation.
#[derive(Clone, Copy)]
pub struct SizeMapping<'a, D: SizeRepr, E: SizeRepr> {
    /// Conversion of a size.
    pub size: &'a dyn Fn(D) -> E,
    /// Conversion of a signed number of elements.
    pub signed: &'a dyn Fn(D::SignedSize) -> E::SignedSize,
}

impl<D: SizeRepr, E: SizeRepr> SizeMapping<'_, D, E> {
    fn resize_all(self, sizes: &[D]) -> Vec<E> {
        sizes.iter().map(|&d| (self.size)(d)).collect()
    }
}

fn at_current_sizes<D: SizeRepr>() -> SizeMapping<'static, D, u64> {
    SizeMapping { size: &D::at_current_sizes, signed: &D::SignedSize::at_current_sizes }
}

/// Conversion of integers to symbolic sizes that do not vary.
const FIXED: SizeMapping<u64, Dim> = SizeMapping { size: &Dim::from, signed: &Dim::from };

fn resize_windows<D: SizeRepr, E: SizeRepr>(all: &[WindowDim<D>], to: SizeMapping<D, E>) -> Vec<WindowDim<E>> {
    let one = |w: &WindowDim<D>| WindowDim {
        size: (to.size)(w.size),
        stride: (to.size)(w.stride),
        pad_low: (to.signed)(w.pad_low),
        pad_high: (to.signed)(w.pad_high),
        lhs_dilate: (to.size)(w.lhs_dilate),
        rhs_dilate: (to.size)(w.rhs_dilate),
        reversal: w.reversal,
    };
    all.iter().map(one).collect()
}

impl<D: SizeRepr> ArrayShape<D> {
    fn resized<E: SizeRepr>(&self, to: SizeMapping<D, E>) -> ArrayShape<E> {
        let ArrayShape { dtype, dims, dynamic, layout } = self;
        ArrayShape { dtype: *dtype, dims: to.resize_all(dims), dynamic: dynamic.clone(), layout: layout.clone() }
    }
    /// The shape for the current sizes.
    pub fn at_current_sizes(&self) -> ArrayShape {
        self.resized(at_current_sizes())
    }
}

impl<D: SizeRepr> Shape<D> {
    fn resized<E: SizeRepr>(&self, to: SizeMapping<D, E>) -> Shape<E> {
        match self {
            Shape::Array(a) => Shape::Array(a.resized(to)),
            Shape::Tuple(parts) => Shape::Tuple(parts.iter().map(|part| part.resized(to)).collect()),
            Shape::Token => Shape::Token,
            Shape::Opaque => Shape::Opaque,
            Shape::Buffer(a) => Shape::Buffer(Box::new(a.resized(to))),
        }
    }
    /// The shape for the current sizes.
    pub fn at_current_sizes(&self) -> Shape {
        self.resized(at_current_sizes())
    }
}

fn pin_sizes<D: SizeRepr>() -> SizeMapping<'static, D, u64> {
    SizeMapping { size: &|d| d.into().guarded_count(), signed: &|d| d.into().guarded_value() }
}

impl Shape<Dim> {
    /// Shape with integer sizes, recording guards that the sizes have these values in every call.
    pub fn pin_sizes(&self) -> Shape {
        self.resized(pin_sizes())
    }
}

impl Shape {
    /// Shape with symbolic sizes that do not vary.
    pub fn to_symbolic(&self) -> Shape<Dim> {
        self.resized(FIXED)
    }
}

impl<D: SizeRepr> SliceDim<D> {
    fn resized<E: SizeRepr>(&self, to: SizeMapping<D, E>) -> SliceDim<E> {
        SliceDim { start: (to.size)(self.start), limit: (to.size)(self.limit), stride: (to.size)(self.stride) }
    }
}

impl<D: SizeRepr> PadDim<D> {
    fn resized<E: SizeRepr>(&self, to: SizeMapping<D, E>) -> PadDim<E> {
        PadDim { low: (to.signed)(self.low), high: (to.signed)(self.high), interior: (to.size)(self.interior) }
    }
}

impl<D: SizeRepr> GatherDims<D> {
    fn resized<E: SizeRepr>(&self, to: SizeMapping<D, E>) -> GatherDims<E> {
        let d = self.clone();
        GatherDims {
            slice_sizes: to.resize_all(&d.slice_sizes),
            offset_dims: d.offset_dims,
            collapsed_slice_dims: d.collapsed_slice_dims,
            start_index_map: d.start_index_map,
            index_vector_dim: d.index_vector_dim,
            operand_batching_dims: d.operand_batching_dims,
            start_indices_batching_dims: d.start_indices_batching_dims,
            indices_are_sorted: d.indices_are_sorted,
        }
    }
}

impl<D: SizeRepr> ConvDims<D> {
    fn resized<E: SizeRepr>(&self, to: SizeMapping<D, E>) -> ConvDims<E> {
        let input = (self.input_batch, self.input_feature, self.input_spatial.clone());
        let kernel = (self.kernel_input_feature, self.kernel_output_feature, self.kernel_spatial.clone());
        let output = (self.output_batch, self.output_feature, self.output_spatial.clone());
        ConvDims {
            window: resize_windows(&self.window, to),
            feature_group_count: self.feature_group_count,
            batch_group_count: self.batch_group_count,
            ..ConvDims::from_axes(input, kernel, output)
        }
    }
}

impl<D: SizeRepr> Op<D> {
    /// The op for the current sizes.
    pub fn at_current_sizes(&self) -> Op {
        self.resized(at_current_sizes())
    }
    /// Whether both are the same op in every call, as far as expressions of sizes show; records nothing.
    pub fn always_equals(&self, other: &Op<D>) -> bool {
        let expressions = RefCell::new(Vec::new());
        let number = |dim: Dim| {
            let mut known = expressions.borrow_mut();
            let place = known.iter().position(|&other| dim.is_same(other));
            place.unwrap_or_else(|| {
                known.push(dim);
                known.len() - 1
            })
        };
        let to =
            SizeMapping { size: &|d: D| number(d.into()) as u64, signed: &|d: D::SignedSize| number(d.into()) as i64 };
        self.resized(to) == other.resized(to)
    }
    fn resized<E: SizeRepr>(&self, to: SizeMapping<D, E>) -> Op<E> {
        match self.clone() {
            Op::Slice(dims) => Op::Slice(dims.iter().map(|d| d.resized(to)).collect()),
            Op::Pad(dims) => Op::Pad(dims.iter().map(|d| d.resized(to)).collect()),
            Op::DynamicSlice(sizes) => Op::DynamicSlice(to.resize_all(&sizes)),
            Op::Gather(dims) => Op::Gather(Box::new(dims.resized(to))),
            Op::ReduceWindow { window, comp } => Op::ReduceWindow { window: resize_windows(&window, to), comp },
            Op::SelectAndScatter { window, select, scatter } => {
                Op::SelectAndScatter { window: resize_windows(&window, to), select, scatter }
            }
            Op::TopK { k, largest, kind } => Op::TopK { k: (to.size)(k), largest, kind },
            Op::Convolution(dims) => Op::Convolution(Box::new(dims.resized(to))),
            Op::Fft { kind, length } => Op::Fft { kind, length: to.resize_all(&length) },
            Op::Parameter(n) => Op::Parameter(n),
            Op::Constant(literal) => Op::Constant(literal),
            Op::Iota(axis) => Op::Iota(axis),
            Op::Broadcast(map) => Op::Broadcast(map),
            Op::Reshape => Op::Reshape,
            Op::Bitcast => Op::Bitcast,
            Op::Copy => Op::Copy,
            Op::OptimizationBarrier => Op::OptimizationBarrier,
            Op::BitcastConvertWidth => Op::BitcastConvertWidth,
            Op::Transpose(perm) => Op::Transpose(perm),
            Op::Reverse(axes) => Op::Reverse(axes),
            Op::Concatenate(axis) => Op::Concatenate(axis),
            Op::DynamicUpdateSlice => Op::DynamicUpdateSlice,
            Op::Scatter { dims, comp } => Op::Scatter { dims, comp },
            Op::Reduce { dims, comp } => Op::Reduce { dims, comp },
            Op::Sort { dim, is_stable, comp } => Op::Sort { dim, is_stable, comp },
            Op::Dot(dims) => Op::Dot(dims),
            Op::Map { comp, dims } => Op::Map { comp, dims },
            Op::Tuple => Op::Tuple,
            Op::GetTupleElement(part) => Op::GetTupleElement(part),
            Op::While { cond, body } => Op::While { cond, body },
            Op::Conditional(branches) => Op::Conditional(branches),
            Op::Call(comp) => Op::Call(comp),
            Op::Fusion { comp, kind } => Op::Fusion { comp, kind },
            Op::Cholesky { lower } => Op::Cholesky { lower },
            Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } => {
                Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a }
            }
            Op::BatchNormTraining { epsilon_bits, feature_index } => {
                Op::BatchNormTraining { epsilon_bits, feature_index }
            }
            Op::BatchNormInference { epsilon_bits, feature_index } => {
                Op::BatchNormInference { epsilon_bits, feature_index }
            }
            Op::BatchNormGrad { epsilon_bits, feature_index } => Op::BatchNormGrad { epsilon_bits, feature_index },
            Op::Rng { normal } => Op::Rng { normal },
            Op::RngBitGenerator { algorithm } => Op::RngBitGenerator { algorithm },
            Op::GetDimensionSize(axis) => Op::GetDimensionSize(axis),
            Op::SetDimensionSize(axis) => Op::SetDimensionSize(axis),
            Op::AfterAll => Op::AfterAll,
            Op::AddDependency => Op::AddDependency,
            Op::PartitionId => Op::PartitionId,
            Op::ReplicaId => Op::ReplicaId,
            Op::Elementwise(op) => Op::Elementwise(op),
            Op::Foreign(foreign) => Op::Foreign(foreign),
        }
    }
}

impl Op {
    /// Op with symbolic sizes that do not vary.
    pub fn to_symbolic(&self) -> Op<Dim> {
        self.resized(FIXED)
    }
}

impl<D: SizeRepr> Inst<D> {
    /// Instruction with converted sizes.
    pub fn map_sizes<E: SizeRepr>(&self, to: SizeMapping<D, E>) -> Inst<E> {
        Inst {
            name: self.name.clone(),
            op: self.op.resized(to),
            operands: self.operands.clone(),
            shape: self.shape.resized(to),
            metadata: self.metadata.clone(),
            extra: self.extra.clone(),
        }
    }
    /// The instruction for the current sizes.
    pub fn at_current_sizes(&self) -> Inst {
        self.map_sizes(at_current_sizes())
    }
}

impl<D: SizeRepr> Computation<D> {
    /// The computation for the current sizes.
    pub fn at_current_sizes(&self) -> Computation {
        self.resized(at_current_sizes())
    }
    fn resized(&self, to: SizeMapping<D, u64>) -> Computation {
        let mut insts: Vec<Inst> = self.insts.values().map(|inst| inst.map_sizes(to)).collect();
        for i in 0..insts.len() {
            if let Op::Foreign(call) = &insts[i].op {
                let operands: Vec<&Shape> = insts[i].operands.iter().map(|&id| &insts[Id::index(id)].shape).collect();
                if let Some(call) = call.with_operand_sizes(&operands) {
                    insts[i].op = Op::Foreign(Box::new(call));
                }
            }
        }
        Computation {
            name: self.name.clone(),
            insts: insts.into_iter().collect(),
            params: self.params.clone(),
            root: self.root,
            sizes: self.sizes.clone(),
            size_constants: Vec::new(),
        }
    }
}

impl<D: SizeRepr> Module<D> {
    /// The module for the current sizes.
    pub fn at_current_sizes(&self) -> Module {
        self.map_sizes(at_current_sizes())
    }
    /// Module with converted sizes.
    pub fn map_sizes(&self, to: SizeMapping<D, u64>) -> Module {
        Module {
            name: self.name.clone(),
            comps: self.comps.values().map(|comp| comp.resized(to)).collect(),
            entry: self.entry,
            extra: self.extra.clone(),
            replaceable: self.replaceable,
        }
    }
}
