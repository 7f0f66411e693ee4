//! Padding rules of gather, scatter and dynamic-update-slice along dynamic axes.
use super::mask::{extend_axis, valid_mask};
use super::{ComputationPadder, EmitResult, Refusal};
use crate::bounded::extent::Extent;
use crate::hlo::{Inst, InstId, Op};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

impl ComputationPadder<'_> {
    /// Emits a dynamic-update-slice in which only valid elements of the update replace elements of the operand.
    pub(super) fn emit_dynamic_update_slice(&mut self, inst: &Inst, operands: &[InstId]) -> EmitResult {
        let (whole, part) = (self.varying(inst.operands[0]), self.varying(inst.operands[1]));
        let (x, update) = (operands[0], operands[1]);
        let mut starts = operands[2..].to_vec();
        let dims = self.b.dims(x).to_vec();
        let mut long = x;
        let mut windows = Vec::new();
        for (axis, start) in starts.iter_mut().enumerate() {
            let (size, all) = (part.dim(axis), whole.dim(axis));
            if all.varies() {
                *start = self.clamp_start(*start, &all, &size)?;
            }
            if size.varies() && size != all {
                long = extend_axis(self.b, long, axis, self.b.dims(update)[axis]);
                windows.push((axis, *start, size));
            }
        }
        let written = self.b.add_inst(Op::DynamicUpdateSlice, &[&[long, update], &starts[..]].concat());
        if windows.is_empty() {
            return Ok(written);
        }
        let mut cut = written;
        for (axis, &n) in dims.iter().enumerate() {
            cut = self.b.slice_axis(cut, axis, 0, n);
        }
        let mut inside = None;
        for (axis, start, size) in windows {
            let start = self.b.convert(start, DType::S32);
            let size = self.size_value(&size)?;
            let end = self.b.add(start, size);
            let position = self.b.iota(DType::S32, &dims, axis);
            let from = self.b.compare(Direction::Ge, position, start);
            let to = self.b.compare(Direction::Lt, position, end);
            let both = self.b.elementwise(ScalarOp::And, &[from, to]);
            inside = Some(inside.map_or(both, |i| self.b.elementwise(ScalarOp::And, &[i, both])));
        }
        Ok(inside.map_or(cut, |inside| self.b.select(inside, cut, x)))
    }

    /// Emits a gather whose indices are clamped to the actual sizes.
    pub(super) fn emit_gather(&mut self, inst: &Inst, id: InstId, operands: &[InstId]) -> EmitResult {
        let Op::Gather(d) = &inst.op else { return Err(Refusal::Size) };
        let (own, operand, index) = (self.varying(id), self.varying(inst.operands[0]), self.varying(inst.operands[1]));
        self.refuse_unless(!index.dim(d.index_vector_dim).varies(), "has indices of more axes for other sizes")?;
        let slices = &own.numbers;
        let parts = (0..slices.len()).any(|a| slices[a].varies() && slices[a] != operand.dim(a));
        self.refuse_unless(!parts, "takes parts of other sizes for other sizes")?;
        let mapped: Vec<usize> = d.start_index_map.clone();
        if !mapped.iter().any(|&a| operand.dim(a).varies()) {
            return self.emit_unchanged(inst.op.clone(), inst, operands);
        }
        let wide = self.b.convert(operands[1], DType::S64);
        let mut last = Vec::with_capacity(mapped.len());
        for &axis in &mapped {
            let (whole, part) = (self.size_value(&operand.dim(axis))?, self.size_value(&slices[axis])?);
            let most = self.b.sub(whole, part);
            let zero = self.b.scalar(DType::S32, 0.0);
            let most = self.b.max(most, zero);
            let most = self.b.convert(most, DType::S64);
            last.push(self.b.reshape(most, &[1]));
        }
        let last = self.b.concatenate(&last, 0);
        let dims = self.b.dims(wide).to_vec();
        let last = match d.index_vector_dim < dims.len() {
            true => self.b.broadcast(last, &dims, &[d.index_vector_dim]),
            false => {
                let one = self.b.reshape(last, &[]);
                self.b.broadcast(one, &dims, &[])
            }
        };
        let zero = self.b.full_like(wide, 0.0);
        let wide = self.b.max(wide, zero);
        let wide = self.b.min(wide, last);
        self.emit_unchanged(inst.op.clone(), inst, &[operands[0], wide])
    }

    /// Emits a scatter in which indices in the padding are out of bounds, so that their updates are skipped.
    pub(super) fn emit_scatter(&mut self, inst: &Inst, operands: &[InstId]) -> EmitResult {
        let Op::Scatter { dims: d, .. } = &inst.op else { return Err(Refusal::Size) };
        let count = operands.len() / 2;
        let index = self.varying(inst.operands[count]);
        self.refuse_unless(!index.dim(d.index_vector_dim).varies(), "has indices of more axes for other sizes")?;
        let (operand, update) = (self.varying(inst.operands[0]), self.varying(inst.operands[count + 1]));
        let window_axes: Vec<usize> = (0..operand.dims.first().map_or(0, Vec::len))
            .filter(|a| !d.inserted_window_dims.contains(a) && !d.input_batching_dims.contains(a))
            .collect();
        let whole = d.update_window_dims.iter().zip(&window_axes).all(|(&u, &o)| {
            let size: Extent = update.dim(u);
            !size.varies() || size == operand.dim(o)
        });
        self.refuse_unless(whole, "writes windows of other sizes for other sizes")?;
        let limits: Vec<usize> = (0..self.b.rank(operands[count])).collect();
        let limits = self.dynamic_axis_sizes(inst.operands[count], &limits)?;
        let mut new = operands.to_vec();
        if !limits.is_empty() {
            let wide = self.b.convert(operands[count], DType::S64);
            let outside = self.b.constant(Tensor::scalar(-1i64));
            let dims = self.b.dims(wide).to_vec();
            let inside = valid_mask(self.b, &dims, &limits);
            new[count] = self.b.select(inside, wide, outside);
        }
        self.emit_unchanged(inst.op.clone(), inst, &new)
    }
}
