//! Arrays cut, grown and joined along axes that vary.
use super::mask::{longer, masked};
use super::{Refusal, Walk, Written};
use crate::bounded::extent::Extent;
use crate::hlo::attrs::{PadDim, SliceDim};
use crate::hlo::{Inst, InstId, Op};
use crate::tensor::DType;

impl Walk<'_> {
    /// A slice that begins at a fixed element is as it was; others take their elements one by one.
    pub(super) fn slice(&mut self, inst: &Inst, id: InstId, x: InstId) -> Written {
        let Op::Slice(dims) = &inst.op else { return Err(Refusal::Size) };
        let numbers = &self.varying(id).numbers;
        let mut x = x;
        let mut rest: Vec<SliceDim> = dims.clone();
        for (axis, dim) in rest.iter_mut().enumerate() {
            let (start, stride) = (&numbers[2 * axis], &numbers[2 * axis + 1]);
            let count = inst.shape.as_array().map_or(0, |a| a.dims[axis]);
            if !start.varies() && !stride.varies() {
                dim.limit = dim.start + count.checked_sub(1).map_or(0, |steps| steps * dim.stride + 1);
                // what is known of the operand's size may be less than what is known of the slice's
                let more = dim.limit.saturating_sub(self.b.dims(x)[axis]);
                if more > 0 {
                    x = longer(self.b, x, axis, more);
                }
                continue;
            }
            let position = self.b.iota(DType::S32, &[count], 0);
            let (start, stride) = (self.size(start)?, self.size(stride)?);
            let step = self.b.mul(position, stride);
            let from = self.b.add(step, start);
            x = self.b.take(x, axis, from, false);
            *dim = SliceDim { start: 0, limit: count, stride: 1 };
        }
        Ok(self.b.slice(x, &rest))
    }

    /// Padding becomes what the array is grown with, along axes that grow; where it begins elsewhere for other sizes it is moved.
    pub(super) fn pad(&mut self, inst: &Inst, id: InstId, operands: &[InstId]) -> Written {
        let Op::Pad(dims) = &inst.op else { return Err(Refusal::Size) };
        let numbers = &self.varying(id).numbers;
        let moves = |axis: usize| numbers[3 * axis].varies();
        let is_plain = |axis: usize| {
            let interior = &numbers[3 * axis + 2];
            !interior.varies() && (dims[axis].interior == 0 || !moves(axis))
        };
        self.only((0..dims.len()).all(is_plain), "has gaps that vary between elements")?;
        let grows = |&axis: &usize| dims[axis] != PadDim::default() || (0..2).any(|i| numbers[3 * axis + i].varies());
        let axes: Vec<usize> = (0..dims.len()).filter(grows).collect();
        let limits = self.limits(inst.operands[0], &axes)?;
        let mut x = masked(self.b, operands[0], &limits, operands[1]);
        let mut rest = dims.clone();
        for axis in (0..dims.len()).filter(|&axis| moves(axis)) {
            let length = inst.shape.as_array().map_or(0, |a| a.dims[axis]);
            x = self.begins_at(x, axis, &numbers[3 * axis], (operands[1], length))?;
            rest[axis] = PadDim::default();
        }
        for (axis, pad) in rest.iter_mut().enumerate() {
            let (n, length) = (self.b.dims(x)[axis], inst.shape.as_array().map_or(0, |a| a.dims[axis]));
            let spread = n + n.saturating_sub(1) * pad.interior;
            let number = |n: u64| i64::try_from(n).map_err(|_| Refusal::Size);
            pad.high = number(length)? - pad.low - number(spread)?;
        }
        self.same(Op::Pad(rest), inst, &[x, operands[1]])
    }

    /// Each part is written where those before it end; what is padding of one is covered by the next.
    pub(super) fn concatenate(&mut self, inst: &Inst, axis: usize, operands: &[InstId]) -> Written {
        let varies = |o: &InstId| self.varying(*o).dim(axis).varies();
        let before_last = &inst.operands[..inst.operands.len().saturating_sub(1)];
        let dims = inst.shape.as_array().map_or(Vec::new(), |a| a.dims.clone());
        // the largest parts together may be more than the result ever is, and each has to fit in where it begins
        let of_part = |&o: &InstId| self.b.shape(o).as_array().map_or(0, |a| a.dims[axis]);
        let all: u64 = operands.iter().map(of_part).sum();
        if !before_last.iter().any(varies) && all == dims[axis] {
            return self.same(inst.op.clone(), inst, operands);
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
            let size = self.size(&self.varying(old).dim(axis))?;
            at = self.b.add(at, size);
        }
        let first = dims.iter().map(|&n| SliceDim { start: 0, limit: n, stride: 1 }).collect::<Vec<_>>();
        Ok(if whole == dims { out } else { self.b.slice(out, &first) })
    }

    /// Starts are clamped as the actual sizes say.
    pub(super) fn dynamic_slice(&mut self, inst: &Inst, id: InstId, operands: &[InstId]) -> Written {
        let (own, operand) = (self.varying(id), self.varying(inst.operands[0]));
        let mut x = operands[0];
        let mut starts = operands[1..].to_vec();
        for (axis, start) in starts.iter_mut().enumerate() {
            let (size, whole) = (own.dim(axis), operand.dim(axis));
            if whole.varies() {
                *start = self.clamped(*start, &whole, &size)?;
            }
            if size.varies() && size != whole {
                let more = inst.shape.as_array().map_or(0, |a| a.dims[axis]);
                x = longer(self.b, x, axis, more);
            }
        }
        self.same(inst.op.clone(), inst, &[&[x], &starts[..]].concat())
    }

    /// A start of `size` elements that lies within `whole`.
    pub(super) fn clamped(&mut self, start: InstId, whole: &Extent, size: &Extent) -> Written {
        let (whole, size) = (self.size(whole)?, self.size(size)?);
        let last = self.b.sub(whole, size);
        let zero = self.b.scalar(DType::S32, 0.0);
        let last = self.b.max(last, zero);
        let last = self.b.convert(last, self.b.dtype(start));
        let zero = self.b.convert(zero, self.b.dtype(start));
        let start = self.b.max(start, zero);
        Ok(self.b.min(start, last))
    }
}
