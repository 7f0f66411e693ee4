//! Transfer function of the row analysis: dependence of an instruction's rows on the rows of its operands.
use crate::bounded::size_exprs::InstExprs;
use crate::hlo::attrs::{ConvDims, DotDims, GatherDims, PadDim, SliceDim, WindowDim};
use crate::hlo::{Computation, Inst, InstId, Op};
use std::collections::HashMap;

/// Layout of rows in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowAxis {
    /// Axis along which the rows lie.
    pub axis: usize,
    /// Elements of the axis per row.
    pub inner: i64,
}

/// Dependence of an array on the rows of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowDependence {
    /// No dependence: the array is the same whatever the rows are.
    Invariant,
    /// Row `r` of the array depends on row `r` of the arguments only.
    Rows(RowAxis),
}

/// An instruction with its size expressions and the row dependence of its operands.
pub struct AnalyzedInst<'a> {
    /// The instruction.
    pub inst: &'a Inst,
    varying: &'a InstExprs,
    /// Operands of the instruction.
    pub operands: Vec<&'a Inst>,
    /// Dependence of each array of each operand, depth first.
    pub parts: Vec<&'a [RowDependence]>,
}

impl<'a> AnalyzedInst<'a> {
    /// Instruction `inst` of `comp` with the row dependence of its operands, taken from `parts`; `None` if that of an operand is missing.
    pub fn new(
        comp: &'a Computation,
        inst: &'a Inst,
        varying: &'a InstExprs,
        parts: &'a HashMap<InstId, Vec<RowDependence>>,
    ) -> Option<AnalyzedInst<'a>> {
        let operands = inst.operands.iter().map(|&o| &comp.insts[o]).collect();
        let parts = inst.operands.iter().map(|o| parts.get(o).map(Vec::as_slice)).collect::<Option<_>>()?;
        Some(AnalyzedInst { inst, varying, operands, parts })
    }

    /// Dependence of each array that the instruction returns: rows if one of its axes varies, invariant if none does. `None` where row `r` may
    /// depend on other rows.
    pub fn result_dependence(&self) -> Option<Vec<RowDependence>> {
        let mut all = Vec::new();
        for dims in &self.varying.dims {
            let mut axes = dims.iter().enumerate().filter(|(_, extent)| extent.varies());
            all.push(match (axes.next(), axes.next()) {
                (None, _) => RowDependence::Invariant,
                (Some((axis, extent)), None) => RowDependence::Rows(RowAxis { axis, inner: extent.as_scaled_var()?.0 }),
                (Some(_), Some(_)) => return None,
            });
        }
        let same = self.parts.iter().all(|parts| parts.iter().all(|part| *part == RowDependence::Invariant));
        let fixed = self.varying.elements.is_none() && self.varying.numbers.iter().all(|n| !n.varies());
        match all.iter().find_map(|part| if let RowDependence::Rows(place) = part { Some(*place) } else { None }) {
            None => (same && fixed && is_deterministic(&self.inst.op)).then_some(all),
            Some(place) => {
                let alike = all.iter().all(|part| *part == RowDependence::Rows(place));
                (alike && self.preserves_rows(place, fixed)).then_some(all)
            }
        }
    }

    /// Layout of the rows of operand `i`; `None` where the operand is not made of rows.
    fn rows(&self, i: usize) -> Option<RowAxis> {
        match self.parts.get(i)? {
            [RowDependence::Rows(place)] => Some(*place),
            _ => None,
        }
    }

    fn is_same(&self, i: usize) -> bool {
        self.parts.get(i).is_some_and(|parts| parts.iter().all(|part| *part == RowDependence::Invariant))
    }

    /// Whether all operands from index `from` on are invariant.
    fn are_same_from(&self, from: usize) -> bool {
        (from..self.parts.len()).all(|i| self.is_same(i))
    }

    /// Whether the rows of operand `i` lie along the axis `place`.
    fn has_rows_at(&self, i: usize, place: RowAxis) -> bool {
        self.rows(i) == Some(place)
    }

    fn dims(&self, i: usize) -> &[u64] {
        self.operands[i].shape.as_array().map_or(&[], |a| &a.dims)
    }

    /// Whether row `r` of the result depends on row `r` of the operands only; `fixed` tells that no attribute of the op varies.
    fn preserves_rows(&self, place: RowAxis, fixed: bool) -> bool {
        let RowAxis { axis, inner } = place;
        let count = self.parts.len();
        let all = |n: usize| n == count && (0..n).all(|i| self.has_rows_at(i, place));
        let numbers_vary_at = |per_axis: usize, axis: usize| {
            self.varying.numbers.iter().enumerate().all(|(i, n)| !n.varies() || i / per_axis == axis)
        };
        let trivial = |window: &[WindowDim]| window.get(axis) == Some(&WindowDim::default());
        let rank = self.inst.shape.leaves().first().map_or(0, |a| a.rank());
        match &self.inst.op {
            Op::Elementwise(_) | Op::Map { .. } => {
                (0..count).all(|i| self.has_rows_at(i, place) || self.is_same(i) && self.dims(i).is_empty())
            }
            Op::Copy | Op::OptimizationBarrier => all(1),
            Op::Iota(d) => *d != axis,
            Op::Broadcast(dims) => match self.rows(0) {
                Some(from) => dims.get(from.axis) == Some(&axis) && from.inner == inner,
                None => true,
            },
            Op::Reshape => self.reshape_preserves_rows(axis),
            Op::BitcastConvertWidth => axis + 1 < rank && all(1),
            Op::Transpose(perm) => self.rows(0) == perm.get(axis).map(|&a| RowAxis { axis: a, inner }),
            Op::Reverse(dims) => !dims.contains(&axis) && all(1),
            Op::Slice(dims) => all(1) && numbers_vary_at(2, axis) && self.slices_whole_axis(dims, axis),
            Op::Pad(dims) => {
                fixed && dims.get(axis) == Some(&PadDim::default()) && self.has_rows_at(0, place) && self.is_same(1)
            }
            Op::Concatenate(d) => *d != axis && (0..count).all(|i| self.has_rows_at(i, place)),
            Op::DynamicSlice(sizes) => {
                numbers_vary_at(1, axis)
                    && sizes.get(axis) == self.dims(0).get(axis)
                    && self.has_rows_at(0, place)
                    && self.are_same_from(1)
            }
            Op::DynamicUpdateSlice => self.has_rows_at(0, place) && self.has_rows_at(1, place) && self.are_same_from(2),
            Op::Gather(dims) => self.gather_preserves_rows(dims, place, numbers_vary_at),
            Op::Reduce { dims, .. } => self.reduce_preserves_rows(dims, place),
            Op::ReduceWindow { window, .. } => {
                let half = count / 2;
                fixed && trivial(window) && (0..half).all(|i| self.has_rows_at(i, place)) && self.are_same_from(half)
            }
            Op::SelectAndScatter { window, .. } => {
                fixed && trivial(window) && self.has_rows_at(0, place) && self.has_rows_at(1, place) && self.is_same(2)
            }
            Op::Sort { dim, .. } => *dim != axis && (0..count).all(|i| self.has_rows_at(i, place)),
            Op::TopK { .. } => fixed && axis + 1 < rank && all(1),
            Op::Dot(dims) => self.dot_preserves_rows(dims, place),
            Op::Convolution(conv) => fixed && self.convolves_batch(conv, place),
            Op::Fft { length, .. } => fixed && axis + length.len() < rank && all(1),
            Op::Cholesky { .. } => axis + 2 < rank && all(1),
            Op::TriangularSolve { .. } => axis + 2 < rank && all(2),
            Op::BatchNormInference { feature_index, .. } => {
                *feature_index != axis && self.has_rows_at(0, place) && self.are_same_from(1)
            }
            // the rows of a constant are not known for other numbers of rows
            Op::Constant(_)
            | Op::Bitcast
            | Op::Scatter { .. }
            | Op::BatchNormTraining { .. }
            | Op::BatchNormGrad { .. }
            | Op::Rng { .. }
            | Op::RngBitGenerator { .. }
            | Op::GetDimensionSize(_)
            | Op::SetDimensionSize(_)
            | Op::AfterAll
            | Op::AddDependency
            | Op::PartitionId
            | Op::ReplicaId
            | Op::Foreign(_) => false,
            // handled by the caller, which follows computations
            Op::Parameter(_)
            | Op::Tuple
            | Op::GetTupleElement(_)
            | Op::While { .. }
            | Op::Conditional(_)
            | Op::Call(_)
            | Op::Fusion { .. } => false,
        }
    }

    /// Whether a reshape keeps rows together at `axis`: the number of elements in the axes before is the same.
    fn reshape_preserves_rows(&self, axis: usize) -> bool {
        self.rows(0).is_some_and(|from| {
            let before = |dims: &[u64], axis: usize| dims[..axis].iter().product::<u64>();
            let own = self.inst.shape.as_array().map_or(&[][..], |a| &a.dims);
            before(self.dims(0), from.axis) == before(own, axis)
        })
    }

    /// Whether a slice takes all elements of `axis`.
    fn slices_whole_axis(&self, dims: &[SliceDim], axis: usize) -> bool {
        let whole = self.dims(0).get(axis);
        let start = self.varying.numbers.get(2 * axis).is_some_and(|start| start.known() == Some(0));
        start && dims.get(axis).is_some_and(|d| Some(&d.limit) == whole && d.stride == 1)
    }

    /// Whether the rows are the examples of a convolution's batch.
    fn convolves_batch(&self, conv: &ConvDims, place: RowAxis) -> bool {
        place.axis == conv.output_batch
            && self.rows(0) == Some(RowAxis { axis: conv.input_batch, inner: place.inner })
            && conv.batch_group_count == 1
            && self.is_same(1)
    }

    /// Whether a reduction over `dims` keeps the rows of its arrays, with the layout `place` in the results.
    fn reduce_preserves_rows(&self, dims: &[usize], place: RowAxis) -> bool {
        let kept = |from: RowAxis| from.axis - dims.iter().filter(|&&d| d < from.axis).count();
        let half = self.parts.len() / 2;
        let is_kept = |i: usize| {
            self.rows(i)
                .is_some_and(|from| !dims.contains(&from.axis) && kept(from) == place.axis && from.inner == place.inner)
        };
        (0..half).all(is_kept) && self.are_same_from(half)
    }

    /// Whether a dot product keeps rows: it multiplies rows by rows along a batch axis, or rows by an invariant array.
    fn dot_preserves_rows(&self, dims: &DotDims, place: RowAxis) -> bool {
        let free = |i: usize, contracting: &[usize], batch: &[usize]| -> Vec<usize> {
            (0..self.dims(i).len()).filter(|a| !contracting.contains(a) && !batch.contains(a)).collect()
        };
        let left = free(0, &dims.lhs_contracting, &dims.lhs_batch);
        let right = free(1, &dims.rhs_contracting, &dims.rhs_batch);
        let position =
            |all: &[usize], at: RowAxis| all.iter().position(|&a| a == at.axis).filter(|_| at.inner == place.inner);
        let made = match (self.rows(0), self.rows(1)) {
            (Some(a), Some(b)) => {
                let batch = position(&dims.lhs_batch, a);
                batch.filter(|_| batch == position(&dims.rhs_batch, b))
            }
            (Some(a), None) if self.is_same(1) => position(&left, a).map(|at| dims.lhs_batch.len() + at),
            (None, Some(b)) if self.is_same(0) => position(&right, b).map(|at| dims.lhs_batch.len() + left.len() + at),
            _ => None,
        };
        made == Some(place.axis)
    }

    /// Whether a gather keeps rows: rows of indices into an invariant table, or whole rows of the operand at invariant indices.
    fn gather_preserves_rows(
        &self,
        dims: &GatherDims,
        place: RowAxis,
        numbers_vary_at: impl Fn(usize, usize) -> bool,
    ) -> bool {
        let rank = self.inst.shape.leaves().first().map_or(0, |a| a.rank());
        match (self.rows(0), self.rows(1)) {
            (None, Some(from)) => {
                let batch: Vec<usize> = (0..rank).filter(|a| !dims.offset_dims.contains(a)).collect();
                let own = from.axis - usize::from(dims.index_vector_dim < from.axis);
                let fixed = self.varying.numbers.iter().all(|n| !n.varies());
                let at = batch.get(own).copied();
                fixed
                    && self.is_same(0)
                    && from.axis != dims.index_vector_dim
                    && at == Some(place.axis)
                    && from.inner == place.inner
            }
            (Some(from), None) => {
                let dropped =
                    |a: &usize| dims.collapsed_slice_dims.contains(a) || dims.operand_batching_dims.contains(a);
                let kept: Vec<usize> = (0..self.dims(0).len()).filter(|a| !dropped(a)).collect();
                let at = kept.iter().position(|&a| a == from.axis).and_then(|i| dims.offset_dims.get(i));
                numbers_vary_at(1, from.axis)
                    && self.is_same(1)
                    && !dims.start_index_map.contains(&from.axis)
                    && dims.slice_sizes.get(from.axis) == self.dims(0).get(from.axis)
                    && at == Some(&place.axis)
                    && from.inner == place.inner
            }
            _ => false,
        }
    }
}

/// Whether an instruction returns the same results for the same operands in every call and on every device.
fn is_deterministic(op: &Op) -> bool {
    !matches!(op, Op::Rng { .. } | Op::PartitionId | Op::ReplicaId | Op::Foreign(_))
}
