//! Padding rules of slice, pad, concatenate and dynamic-slice along dynamic axes.
use super::mask::{extend_axis, fill_padding};
use super::{ComputationPadder, EmitResult, Refusal};
use crate::bounded::extent::Extent;
use crate::hlo::attrs::{PadDim, SliceDim};
use crate::hlo::{Inst, InstId, Op};
use crate::tensor::DType;

impl ComputationPadder<'_> {
    /// Emits a slice: unchanged along axes where start and stride are fixed, else as a gather of its elements.
    pub(super) fn emit_slice(&mut self, inst: &Inst, id: InstId, x: InstId) -> EmitResult {
        let Op::Slice(dims) = &inst.op else { return Err(Refusal::Size) };
        let numbers = &self.varying(id).numbers;
        let mut x = x;
        let mut rest: Vec<SliceDim> = dims.clone();
        for (axis, dim) in rest.iter_mut().enumerate() {
            let (start, stride) = (&numbers[2 * axis], &numbers[2 * axis + 1]);
            let count = inst.shape.as_array().map_or(0, |a| a.dims[axis]);
            if !start.varies() && !stride.varies() {
                dim.limit = dim.start + count.checked_sub(1).map_or(0, |steps| steps * dim.stride + 1);
                // the bound known for the operand may be less than the one known for the slice
                let more = dim.limit.saturating_sub(self.b.dims(x)[axis]);
                if more > 0 {
                    x = extend_axis(self.b, x, axis, more);
                }
                continue;
            }
            let position = self.b.iota(DType::S32, &[count], 0);
            let (start, stride) = (self.size_value(start)?, self.size_value(stride)?);
            let step = self.b.mul(position, stride);
            let from = self.b.add(step, start);
            x = self.b.gather_along_axis(x, axis, from, false);
            *dim = SliceDim { start: 0, limit: count, stride: 1 };
        }
        Ok(self.b.slice(x, &rest))
    }

    /// Emits a pad: the operand's padding is filled with the padding value along axes that grow. Where the low padding varies, the array is
    /// shifted.
    pub(super) fn emit_pad(&mut self, inst: &Inst, id: InstId, operands: &[InstId]) -> EmitResult {
        let Op::Pad(dims) = &inst.op else { return Err(Refusal::Size) };
        let numbers = &self.varying(id).numbers;
        let moves = |axis: usize| numbers[3 * axis].varies();
        let is_plain = |axis: usize| {
            let interior = &numbers[3 * axis + 2];
            !interior.varies() && (dims[axis].interior == 0 || !moves(axis))
        };
        self.refuse_unless((0..dims.len()).all(is_plain), "has gaps that vary between elements")?;
        let grows = |&axis: &usize| dims[axis] != PadDim::default() || (0..2).any(|i| numbers[3 * axis + i].varies());
        let axes: Vec<usize> = (0..dims.len()).filter(grows).collect();
        let limits = self.dynamic_axis_sizes(inst.operands[0], &axes)?;
        let mut x = fill_padding(self.b, operands[0], &limits, operands[1]);
        let mut rest = dims.clone();
        for axis in (0..dims.len()).filter(|&axis| moves(axis)) {
            let length = inst.shape.as_array().map_or(0, |a| a.dims[axis]);
            x = self.pad_ends_to_length(x, axis, &numbers[3 * axis], (operands[1], length))?;
            rest[axis] = PadDim::default();
        }
        for (axis, pad) in rest.iter_mut().enumerate() {
            let (n, length) = (self.b.dims(x)[axis], inst.shape.as_array().map_or(0, |a| a.dims[axis]));
            let spread = n + n.saturating_sub(1) * pad.interior;
            let number = |n: u64| i64::try_from(n).map_err(|_| Refusal::Size);
            pad.high = number(length)? - pad.low - number(spread)?;
        }
        self.emit_unchanged(Op::Pad(rest), inst, &[x, operands[1]])
    }

    /// Emits a concatenation: each operand is written at the actual end of those before, over their padding.
    pub(super) fn emit_concatenate(&mut self, inst: &Inst, axis: usize, operands: &[InstId]) -> EmitResult {
        let varies = |o: &InstId| self.varying(*o).dim(axis).varies();
        let before_last = &inst.operands[..inst.operands.len().saturating_sub(1)];
        let dims = inst.shape.as_array().map_or(Vec::new(), |a| a.dims.clone());
        // the bounds of the operands may add up to more than that of the result, and each operand must fit in where it begins
        let of_part = |&o: &InstId| self.b.shape(o).as_array().map_or(0, |a| a.dims[axis]);
        let all: u64 = operands.iter().map(of_part).sum();
        if !before_last.iter().any(varies) && all == dims[axis] {
            return self.emit_unchanged(inst.op.clone(), inst, operands);
        }
        let mut whole = dims.clone();
        whole[axis] = all.max(dims[axis]);
        let mut out = self.b.full(self.b.dtype(operands[0]), &whole, 0.0);
        let zero = self.b.scalar(DType::S32, 0.0);
        let mut at = zero;
        for (&new, &old) in operands.iter().zip(&inst.operands) {
            let mut starts = vec![zero; dims.len()];
            starts[axis] = at;
            out = self.b.add_inst(Op::DynamicUpdateSlice, &[&[out, new], &starts[..]].concat());
            let size = self.size_value(&self.varying(old).dim(axis))?;
            at = self.b.add(at, size);
        }
        let first = dims.iter().map(|&n| SliceDim { start: 0, limit: n, stride: 1 }).collect::<Vec<_>>();
        Ok(if whole == dims { out } else { self.b.slice(out, &first) })
    }

    /// Emits a dynamic-slice whose starts are clamped to the actual sizes.
    pub(super) fn emit_dynamic_slice(&mut self, inst: &Inst, id: InstId, operands: &[InstId]) -> EmitResult {
        let (own, operand) = (self.varying(id), self.varying(inst.operands[0]));
        let mut x = operands[0];
        let mut starts = operands[1..].to_vec();
        for (axis, start) in starts.iter_mut().enumerate() {
            let (size, whole) = (own.dim(axis), operand.dim(axis));
            if whole.varies() {
                *start = self.clamp_start(*start, &whole, &size)?;
            }
            if size.varies() && size != whole {
                let more = inst.shape.as_array().map_or(0, |a| a.dims[axis]);
                x = extend_axis(self.b, x, axis, more);
            }
        }
        self.emit_unchanged(inst.op.clone(), inst, &[&[x], &starts[..]].concat())
    }

    /// Clamps a start so that `size` elements from there lie within the first `whole`.
    pub(super) fn clamp_start(&mut self, start: InstId, whole: &Extent, size: &Extent) -> EmitResult {
        let (whole, size) = (self.size_value(whole)?, self.size_value(size)?);
        let last = self.b.sub(whole, size);
        let zero = self.b.scalar(DType::S32, 0.0);
        let last = self.b.max(last, zero);
        let last = self.b.convert(last, self.b.dtype(start));
        let zero = self.b.convert(zero, self.b.dtype(start));
        let start = self.b.max(start, zero);
        Ok(self.b.min(start, last))
    }
}
