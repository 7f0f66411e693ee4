//! Dependence of the rows of one instruction on the rows of its operands.
use crate::bounded::form::Varying;
use crate::hlo::attrs::{ConvDims, DotDims, GatherDims, PadDim, SliceDim, WindowDim};
use crate::hlo::{Computation, Inst, InstId, Op};
use std::collections::HashMap;

/// Where rows are in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The axis along which they lie.
    pub axis: usize,
    /// Elements of the axis a row.
    pub inner: i64,
}

/// An array in a computation: the same whatever rows there are, or rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The same.
    Same,
    /// Rows.
    Rows(Place),
}

/// One instruction, its operands and how it varies.
pub struct VaryingInst<'a> {
    /// The instruction.
    pub inst: &'a Inst,
    varying: &'a Varying,
    /// The operands of the instruction.
    pub operands: Vec<&'a Inst>,
    /// The arrays of each operand, depth first.
    pub parts: Vec<&'a [Part]>,
}

impl<'a> VaryingInst<'a> {
    /// The instruction `inst` of `comp`, of which `parts` are the arrays that earlier ones make; `None` where one is missing.
    pub fn of(
        comp: &'a Computation,
        inst: &'a Inst,
        varying: &'a Varying,
        parts: &'a HashMap<InstId, Vec<Part>>,
    ) -> Option<VaryingInst<'a>> {
        let operands = inst.operands.iter().map(|&o| &comp.insts[o]).collect();
        let parts = inst.operands.iter().map(|o| parts.get(o).map(Vec::as_slice)).collect::<Option<_>>()?;
        Some(VaryingInst { inst, varying, operands, parts })
    }

    /// Each array that an instruction makes: rows where an axis varies, and the same everywhere where none does.
    pub fn made(&self) -> Option<Vec<Part>> {
        let mut all = Vec::new();
        for dims in &self.varying.dims {
            let mut axes = dims.iter().enumerate().filter(|(_, extent)| extent.varies());
            all.push(match (axes.next(), axes.next()) {
                (None, _) => Part::Same,
                (Some((axis, extent)), None) => Part::Rows(Place { axis, inner: extent.as_scaled_var()?.0 }),
                (Some(_), Some(_)) => return None,
            });
        }
        let same = self.parts.iter().all(|parts| parts.iter().all(|part| *part == Part::Same));
        let fixed = self.varying.elements.is_none() && self.varying.numbers.iter().all(|n| !n.varies());
        match all.iter().find_map(|part| if let Part::Rows(place) = part { Some(*place) } else { None }) {
            None => (same && fixed && repeats(&self.inst.op)).then_some(all),
            Some(place) => {
                let alike = all.iter().all(|part| *part == Part::Rows(place));
                (alike && self.keeps(place, fixed)).then_some(all)
            }
        }
    }

    /// Where operand `i` has rows; `None` where it has none.
    fn rows(&self, i: usize) -> Option<Place> {
        match self.parts.get(i)? {
            [Part::Rows(place)] => Some(*place),
            _ => None,
        }
    }

    fn is_same(&self, i: usize) -> bool {
        self.parts.get(i).is_some_and(|parts| parts.iter().all(|part| *part == Part::Same))
    }

    /// Whether all operands from `from` on are the same whatever rows there are.
    fn rest_is_same(&self, from: usize) -> bool {
        (from..self.parts.len()).all(|i| self.is_same(i))
    }

    /// Whether operand `i` has its rows at `place`.
    fn at(&self, i: usize, place: Place) -> bool {
        self.rows(i) == Some(place)
    }

    fn dims(&self, i: usize) -> &[u64] {
        self.operands[i].shape.as_array().map_or(&[], |a| &a.dims)
    }

    /// Whether row `r` of the result follows from row `r` of the operands; `fixed` says whether no number of the op varies.
    fn keeps(&self, place: Place, fixed: bool) -> bool {
        let Place { axis, inner } = place;
        let count = self.parts.len();
        let all = |n: usize| n == count && (0..n).all(|i| self.at(i, place));
        let numbers_vary_at = |per_axis: usize, axis: usize| {
            self.varying.numbers.iter().enumerate().all(|(i, n)| !n.varies() || i / per_axis == axis)
        };
        let trivial = |window: &[WindowDim]| window.get(axis) == Some(&WindowDim::default());
        let rank = self.inst.shape.leaves().first().map_or(0, |a| a.rank());
        match &self.inst.op {
            Op::Elementwise(_) | Op::Map { .. } => {
                (0..count).all(|i| self.at(i, place) || self.is_same(i) && self.dims(i).is_empty())
            }
            Op::Copy | Op::OptimizationBarrier => all(1),
            Op::Iota(d) => *d != axis,
            Op::Broadcast(dims) => match self.rows(0) {
                Some(from) => dims.get(from.axis) == Some(&axis) && from.inner == inner,
                None => true,
            },
            Op::Reshape => self.reshapes(axis),
            Op::BitcastConvertWidth => axis + 1 < rank && all(1),
            Op::Transpose(perm) => self.rows(0) == perm.get(axis).map(|&a| Place { axis: a, inner }),
            Op::Reverse(dims) => !dims.contains(&axis) && all(1),
            Op::Slice(dims) => all(1) && numbers_vary_at(2, axis) && self.slices_whole_axis(dims, axis),
            Op::Pad(dims) => {
                fixed && dims.get(axis) == Some(&PadDim::default()) && self.at(0, place) && self.is_same(1)
            }
            Op::Concatenate(d) => *d != axis && (0..count).all(|i| self.at(i, place)),
            Op::DynamicSlice(sizes) => {
                numbers_vary_at(1, axis)
                    && sizes.get(axis) == self.dims(0).get(axis)
                    && self.at(0, place)
                    && self.rest_is_same(1)
            }
            Op::DynamicUpdateSlice => self.at(0, place) && self.at(1, place) && self.rest_is_same(2),
            Op::Gather(dims) => self.gathers(dims, place, numbers_vary_at),
            Op::Reduce { dims, .. } => self.reduces(dims, place),
            Op::ReduceWindow { window, .. } => {
                let half = count / 2;
                fixed && trivial(window) && (0..half).all(|i| self.at(i, place)) && self.rest_is_same(half)
            }
            Op::SelectAndScatter { window, .. } => {
                fixed && trivial(window) && self.at(0, place) && self.at(1, place) && self.is_same(2)
            }
            Op::Sort { dim, .. } => *dim != axis && (0..count).all(|i| self.at(i, place)),
            Op::TopK { .. } => fixed && axis + 1 < rank && all(1),
            Op::Dot(dims) => self.multiplies(dims, place),
            Op::Convolution(conv) => fixed && self.convolves_batch(conv, place),
            Op::Fft { length, .. } => fixed && axis + length.len() < rank && all(1),
            Op::Cholesky { .. } => axis + 2 < rank && all(1),
            Op::TriangularSolve { .. } => axis + 2 < rank && all(2),
            Op::BatchNormInference { feature_index, .. } => {
                *feature_index != axis && self.at(0, place) && self.rest_is_same(1)
            }
            // a constant of as many rows has others where there are more
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
            // looked at by whoever follows computations
            Op::Parameter(_)
            | Op::Tuple
            | Op::GetTupleElement(_)
            | Op::While { .. }
            | Op::Conditional(_)
            | Op::Call(_)
            | Op::Fusion { .. } => false,
        }
    }

    /// Whether a reshape leaves rows at `axis` where they are: as many elements are before them.
    fn reshapes(&self, axis: usize) -> bool {
        self.rows(0).is_some_and(|from| {
            let before = |dims: &[u64], axis: usize| dims[..axis].iter().product::<u64>();
            let own = self.inst.shape.as_array().map_or(&[][..], |a| &a.dims);
            before(self.dims(0), from.axis) == before(own, axis)
        })
    }

    /// Whether a slice takes all of `axis`.
    fn slices_whole_axis(&self, dims: &[SliceDim], axis: usize) -> bool {
        let whole = self.dims(0).get(axis);
        let start = self.varying.numbers.get(2 * axis).is_some_and(|start| start.known() == Some(0));
        start && dims.get(axis).is_some_and(|d| Some(&d.limit) == whole && d.stride == 1)
    }

    /// Whether the rows are examples of a convolution's batch.
    fn convolves_batch(&self, conv: &ConvDims, place: Place) -> bool {
        place.axis == conv.output_batch
            && self.rows(0) == Some(Place { axis: conv.input_batch, inner: place.inner })
            && conv.batch_group_count == 1
            && self.is_same(1)
    }

    /// Whether a reduction over `dims` leaves the rows of its arrays at `place`.
    fn reduces(&self, dims: &[usize], place: Place) -> bool {
        let kept = |from: Place| from.axis - dims.iter().filter(|&&d| d < from.axis).count();
        let half = self.parts.len() / 2;
        let is_kept = |i: usize| {
            self.rows(i)
                .is_some_and(|from| !dims.contains(&from.axis) && kept(from) == place.axis && from.inner == place.inner)
        };
        (0..half).all(is_kept) && self.rest_is_same(half)
    }

    /// A product of rows by rows in a batch, or of rows by what is the same.
    fn multiplies(&self, dims: &DotDims, place: Place) -> bool {
        let free = |i: usize, contracting: &[usize], batch: &[usize]| -> Vec<usize> {
            (0..self.dims(i).len()).filter(|a| !contracting.contains(a) && !batch.contains(a)).collect()
        };
        let left = free(0, &dims.lhs_contracting, &dims.lhs_batch);
        let right = free(1, &dims.rhs_contracting, &dims.rhs_batch);
        let position =
            |all: &[usize], at: Place| all.iter().position(|&a| a == at.axis).filter(|_| at.inner == place.inner);
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

    /// Rows of indices into a table that is the same, or whole rows of the operand at indices that are.
    fn gathers(&self, dims: &GatherDims, place: Place, numbers_vary_at: impl Fn(usize, usize) -> bool) -> bool {
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

/// Whether an instruction makes the same of the same operands every time.
fn repeats(op: &Op) -> bool {
    !matches!(op, Op::Rng { .. } | Op::PartitionId | Op::ReplicaId | Op::Foreign(_))
}
