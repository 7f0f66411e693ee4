//! Split axes: axes merged by a reshape stay separate in the padded module until an instruction needs their elements in order.
//!
//! A reshape from `[b, l, c]` to `[b * l, c]` of arrays padded to `[B, L, c]` would have to move every row but those of the first
//! sequence. Most instructions that follow treat each row by itself (a product with a matrix, an element-wise op, a lookup), until another
//! reshape splits the axis again. Such instructions are emitted for the array of `B` by `L` rows, with the padding of the axes `b` and `l`.
//! Element `i * l + j` along the merged axis is element `(i, j)`, by the definition of reshape, and an instruction that works along other
//! axes does the same at each position. Every other instruction gets the merged array.
use super::mask::fill_padding;
use super::reshape::{AxisGroup, axis_groups, reshape_padded};
use super::{ComputationPadder, EmitResult, Refusal};
use crate::bounded::extent::Extent;
use crate::hlo::attrs::{DotDims, GatherDims};
use crate::hlo::{Inst, InstId, Op, Shape};
use crate::symbolic::Interval;

/// An axis of an array that is represented by several axes in the padded module.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitAxis {
    /// Index of the axis in the original array.
    axis: usize,
    /// Actual size of each axis into which the axis is split.
    sizes: Vec<Extent>,
    /// Upper bound on each of `sizes`.
    bounds: Vec<u64>,
}

impl SplitAxis {
    fn at_axis(&self, axis: usize) -> SplitAxis {
        SplitAxis { axis, ..self.clone() }
    }

    /// Replaces the entry of the split axis in `dims` by the entries `by`, one for each axis into which the axis is split.
    fn expanded<T: Clone>(&self, dims: &[T], by: &[T]) -> Vec<T> {
        [&dims[..self.axis], by, &dims[self.axis + 1..]].concat()
    }

    /// Dimensions of an array at the bound with the axes merged again.
    fn merged(&self, dims: &[u64]) -> Vec<u64> {
        let count = self.bounds.iter().product();
        [&dims[..self.axis], &[count], &dims[self.axis + self.bounds.len()..]].concat()
    }

    /// Index in the split array of an axis of the original array; for the split axis, the index of its first part.
    fn shifted_axis(&self, axis: usize) -> usize {
        if axis > self.axis { axis + self.sizes.len() - 1 } else { axis }
    }

    /// Indices in the split array of axes of the original array; for the split axis, the indices of all its parts.
    fn shifted_axes(&self, axes: &[usize]) -> Vec<usize> {
        let own = |&axis: &usize| {
            let count = if axis == self.axis { self.sizes.len() } else { 1 };
            (0..count).map(move |i| self.shifted_axis(axis) + i)
        };
        axes.iter().flat_map(own).collect()
    }
}

/// Whether an axis has size 1, and so does not affect the order of elements.
fn is_unit(size: &Extent) -> bool {
    size.known() == Some(1)
}

impl ComputationPadder<'_> {
    /// New value of an instruction with a split axis merged again.
    pub(super) fn value_with_merged_axes(&mut self, id: InstId) -> EmitResult {
        let value = self.values[&id];
        let Some(split) = self.split.get(&id).cloned() else { return Ok(value) };
        if let Some(&known) = self.merged.get(&id) {
            return Ok(known);
        }
        let to = self.actual_dims(id);
        let from = split.expanded(&to, &split.sizes);
        let dims = split.merged(self.b.dims(value));
        let all = self.all;
        let ranges = Interval::lookup_by_index(&all.ranges);
        let merged =
            reshape_padded(self.b, &mut self.scope, value, (&from, &to), &dims, &ranges).ok_or(Refusal::Size)?;
        self.merged.insert(id, merged);
        Ok(merged)
    }

    /// Records that the new value of an instruction has a split axis, and returns the value.
    fn record_split(&mut self, id: InstId, split: SplitAxis, value: InstId) -> Option<InstId> {
        self.split.insert(id, split);
        Some(value)
    }

    /// Emits a reshape that merges axes of which an inner one varies, keeping these as a split axis; `None` for any other reshape.
    pub(super) fn reshape_with_split_axis(&mut self, inst: &Inst, id: InstId, x: InstId) -> Option<InstId> {
        let (from, to) = (self.actual_dims(inst.operands[0]), self.actual_dims(id));
        let (old, new) = (self.b.dims(x).to_vec(), inst.shape.as_array()?.dims.clone());
        if old.contains(&0) || new.contains(&0) {
            return None;
        }
        let ranges = Interval::lookup_by_index(&self.all.ranges);
        let groups = axis_groups((&from, &old), (&to, &new), &ranges)?;
        let mut moving = groups.iter().filter(|g| g.moves_elements((&from, &old), (&to, &new)));
        let (Some(group), None) = (moving.next(), moving.next()) else { return None };
        let real = |range: &std::ops::Range<usize>, dims: &[Extent]| -> Vec<usize> {
            range.clone().filter(|&axis| !is_unit(&dims[axis])).collect()
        };
        let (parts, whole) = (real(&group.from, &from), real(&group.to, &to));
        let [axis] = whole[..] else { return None };
        let bounds: Vec<u64> = parts.iter().map(|&part| old[part]).collect();
        if bounds.iter().product::<u64>() != new[axis] {
            return None;
        }
        let split = SplitAxis { axis, sizes: parts.iter().map(|&part| from[part].clone()).collect(), bounds };
        let dims = split.expanded(&new, &split.bounds);
        let value = self.b.reshape(x, &dims);
        self.record_split(id, split, value)
    }

    /// Emits an instruction whose operand has a split axis without merging the axis; `None` where that is not possible.
    ///
    /// # Errors
    /// [`Refusal::Size`] for a number that does not fit into 32 bits.
    pub(super) fn emit_with_split_axis(&mut self, inst: &Inst, id: InstId) -> Result<Option<InstId>, Refusal> {
        let place = inst.operands.iter().position(|o| self.split.contains_key(o));
        let Some((place, split)) = place.and_then(|i| Some((i, self.split.get(&inst.operands[i])?.clone()))) else {
            return Ok(None);
        };
        let x = self.values[&inst.operands[place]];
        Ok(match &inst.op {
            Op::Elementwise(_) | Op::Map { .. } | Op::Copy => self.split_elementwise(inst, id, split),
            Op::Broadcast(to) => self.split_broadcast(inst, id, to, split, x),
            Op::Transpose(perm) => {
                let perm_there = split.shifted_axes(perm);
                let axis = perm.iter().position(|&from| from == split.axis).unwrap_or(0);
                let value = self.b.add_inst(Op::Transpose(perm_there), &[x]);
                self.record_split(id, split.at_axis(axis), value)
            }
            Op::Reduce { dims, .. } if inst.operands.len() == 2 && place == 0 => {
                self.split_reduce(inst, id, dims, split, x)?
            }
            Op::Dot(d) => self.split_dot((inst, id), d, (place, split), x)?,
            Op::Gather(d) if place == 1 => self.split_gather(inst, id, d, split, x),
            Op::Reshape => self.split_reshape(inst, id, split, x),
            _ => None,
        })
    }

    /// Actual sizes of an array, as expressions.
    pub(super) fn actual_dims(&self, id: InstId) -> Vec<Extent> {
        self.varying(id).dims.first().cloned().unwrap_or_default()
    }

    fn split_elementwise(&mut self, inst: &Inst, id: InstId, split: SplitAxis) -> Option<InstId> {
        let dims = split.expanded(&inst.shape.as_array()?.dims, &split.bounds);
        let is_same_along = |of: &Inst| match &of.op {
            Op::Broadcast(to) => !to.contains(&split.axis),
            Op::Iota(axis) => *axis != split.axis,
            _ => false,
        };
        let comp = &self.all.module.comps[self.id];
        let mut operands = Vec::with_capacity(inst.operands.len());
        for operand in &inst.operands {
            let value = self.values[operand];
            operands.push(match self.split.get(operand) {
                Some(other) if *other == split => value,
                None if self.b.rank(value) == 0 => value,
                None if is_same_along(&comp.insts[*operand]) => self.b.reshape(value, &dims),
                _ => return None,
            });
        }
        let dtype = inst.shape.as_array()?.dtype;
        let value = self.b.push(self.with_new_computations(&inst.op), &operands, Shape::array(dtype, dims));
        self.record_split(id, split, value)
    }

    fn split_broadcast(
        &mut self,
        inst: &Inst,
        id: InstId,
        to: &[usize],
        split: SplitAxis,
        x: InstId,
    ) -> Option<InstId> {
        let own = split.at_axis(*to.get(split.axis)?);
        let dims = own.expanded(&inst.shape.as_array()?.dims, &own.bounds);
        let value = self.b.broadcast(x, &dims, &own.shifted_axes(to));
        self.record_split(id, own, value)
    }

    fn split_reduce(
        &mut self,
        inst: &Inst,
        id: InstId,
        dims: &[usize],
        split: SplitAxis,
        x: InstId,
    ) -> Result<Option<InstId>, Refusal> {
        if dims.contains(&split.axis) {
            return Ok(None);
        }
        let initial = self.value_with_merged_axes(inst.operands[1])?;
        let x = self.fill_padding_beside_split(inst.operands[0], x, dims, &split, initial)?;
        let mut op = self.with_new_computations(&inst.op);
        if let Op::Reduce { dims, .. } = &mut op {
            *dims = split.shifted_axes(dims);
        }
        let axis = split.axis - dims.iter().filter(|&&d| d < split.axis).count();
        let value = self.b.add_inst(op, &[x, initial]);
        Ok(self.record_split(id, split.at_axis(axis), value))
    }

    /// Fills the padding along `axes`, other than the split one, of `x`, the new value of `operand`.
    fn fill_padding_beside_split(
        &mut self,
        operand: InstId,
        x: InstId,
        axes: &[usize],
        split: &SplitAxis,
        fill: InstId,
    ) -> EmitResult {
        let mut limits = self.dynamic_axis_sizes(operand, axes)?;
        limits.iter_mut().for_each(|(axis, _)| *axis = split.shifted_axis(*axis));
        Ok(fill_padding(self.b, x, &limits, fill))
    }

    fn split_dot(
        &mut self,
        (inst, id): (&Inst, InstId),
        d: &DotDims,
        (place, split): (usize, SplitAxis),
        x: InstId,
    ) -> Result<Option<InstId>, Refusal> {
        let sides = [(&d.lhs_batch, &d.lhs_contracting), (&d.rhs_batch, &d.rhs_contracting)];
        let is_free = |side: usize, axis: usize| !sides[side].0.contains(&axis) && !sides[side].1.contains(&axis);
        let other = inst.operands[1 - place];
        if !is_free(place, split.axis) || self.split.contains_key(&other) {
            return Ok(None);
        }
        let zero = self.b.scalar(self.b.dtype(x), 0.0);
        let x = self.fill_padding_beside_split(inst.operands[place], x, sides[place].1, &split, zero)?;
        let other = self.fill_with_zeros(inst, 1 - place, self.values[&other], sides[1 - place].1)?;
        let mut there = d.clone();
        let (batch, contracting) = match place {
            0 => (&mut there.lhs_batch, &mut there.lhs_contracting),
            _ => (&mut there.rhs_batch, &mut there.rhs_contracting),
        };
        *batch = split.shifted_axes(batch);
        *contracting = split.shifted_axes(contracting);
        let free_before = |side: usize, axis: usize| (0..axis).filter(|&a| is_free(side, a)).count();
        let left = self.actual_dims(inst.operands[0]).len();
        let before = if place == 0 { 0 } else { free_before(0, left) };
        let axis = d.lhs_batch.len() + before + free_before(place, split.axis);
        let operands = if place == 0 { [x, other] } else { [other, x] };
        let value = self.b.add_inst(Op::Dot(Box::new(there)), &operands);
        Ok(self.record_split(id, split.at_axis(axis), value))
    }

    /// Emits a gather from an array of fixed sizes by indices with a split axis; `None` for other gathers.
    fn split_gather(
        &mut self,
        inst: &Inst,
        id: InstId,
        d: &GatherDims,
        split: SplitAxis,
        indices: InstId,
    ) -> Option<InstId> {
        if split.axis == d.index_vector_dim || self.varying(inst.operands[0]).any_dim_varies() {
            return None;
        }
        let number = split.axis - usize::from(d.index_vector_dim < split.axis);
        let rank = inst.shape.as_array()?.rank();
        let axis = (0..rank).filter(|axis| !d.offset_dims.contains(axis)).nth(number)?;
        let own = split.at_axis(axis);
        let there = GatherDims {
            offset_dims: own.shifted_axes(&d.offset_dims),
            index_vector_dim: split.shifted_axis(d.index_vector_dim),
            start_indices_batching_dims: match d.start_indices_batching_dims.contains(&split.axis) {
                true => return None,
                false => split.shifted_axes(&d.start_indices_batching_dims),
            },
            ..d.clone()
        };
        let value = self.b.add_inst(Op::Gather(Box::new(there)), &[self.values[&inst.operands[0]], indices]);
        self.record_split(id, own, value)
    }

    /// Emits a reshape of an array with a split axis that divides the axis again into the same parts, or keeps it whole; `None` for other
    /// reshapes.
    fn split_reshape(&mut self, inst: &Inst, id: InstId, split: SplitAxis, x: InstId) -> Option<InstId> {
        let (from, to) = (self.actual_dims(inst.operands[0]), self.actual_dims(id));
        let new = inst.shape.as_array()?.dims.clone();
        let old = split.merged(self.b.dims(x));
        if old.contains(&0) || new.contains(&0) {
            return None;
        }
        let ranges = Interval::lookup_by_index(&self.all.ranges);
        let groups = axis_groups((&from, &old), (&to, &new), &ranges)?;
        let is_own = |g: &&AxisGroup| g.from.contains(&split.axis);
        let own = groups.iter().find(is_own)?;
        let others_stay = groups.iter().filter(|g| !is_own(g)).all(|g| !g.moves_elements((&from, &old), (&to, &new)));
        let is_alone = own.from.clone().all(|axis| axis == split.axis || is_unit(&from[axis]));
        if !others_stay || !is_alone {
            return None;
        }
        let parts: Vec<usize> = own.to.clone().filter(|&axis| !is_unit(&to[axis])).collect();
        if let [axis] = parts[..] {
            let own = split.at_axis(axis);
            let value = self.b.reshape(x, &own.expanded(&new, &own.bounds));
            return self.record_split(id, own, value);
        }
        let is_back = parts.iter().map(|&axis| &to[axis]).eq(&split.sizes)
            && parts.iter().map(|&axis| new[axis]).eq(split.bounds.iter().copied());
        is_back.then(|| self.b.reshape(x, &new))
    }
}
