//! Padding rules by opcode: keep padding from reaching valid elements.
use super::mask::{fill_padding, valid_mask};
use super::reshape::reshape_padded;
use super::{ComputationPadder, EmitResult, Refusal};
use crate::hlo::{Inst, InstId, Op};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Interval;
use crate::tensor::DType;

impl ComputationPadder<'_> {
    /// Emits an instruction with dynamic axes; `operands` are the new values of its operands.
    pub(super) fn emit_padded(&mut self, inst: &Inst, id: InstId, operands: &[InstId]) -> EmitResult {
        let op = inst.op.clone();
        if self.moves_no_elements(inst, operands) {
            // there is no valid element
            let dims = inst.shape.as_array().map_or(Vec::new(), |a| a.dims.clone());
            return Ok(self.b.full(self.b.dtype(operands[0]), &dims, 0.0));
        }
        match &inst.op {
            // element by element, or moves whole axes
            Op::Elementwise(_)
            | Op::Map { .. }
            | Op::Copy
            | Op::OptimizationBarrier
            | Op::AddDependency
            | Op::Broadcast(_)
            | Op::Transpose(_)
            | Op::Iota(_)
            | Op::Tuple
            | Op::GetTupleElement(_)
            | Op::BatchNormInference { .. } => self.emit_unchanged(op, inst, operands),
            Op::Reshape => self.emit_reshape(inst, id, operands[0]),
            Op::Reduce { dims, .. } => {
                let operands = self.fill_with_initial_values(inst, operands, dims)?;
                self.emit_unchanged(op, inst, &operands)
            }
            Op::ReduceWindow { .. } => self.emit_reduce_window(inst, id, operands),
            Op::Dot(d) => {
                let x = self.fill_with_zeros(inst, 0, operands[0], &d.lhs_contracting)?;
                let y = self.fill_with_zeros(inst, 1, operands[1], &d.rhs_contracting)?;
                self.emit_unchanged(op, inst, &[x, y])
            }
            Op::Convolution(_) => self.emit_convolution(inst, id, operands),
            Op::Slice(_) => self.emit_slice(inst, id, operands[0]),
            Op::Pad(_) => self.emit_pad(inst, id, operands),
            Op::Reverse(axes) => self.emit_reverse(inst, axes, operands[0]),
            Op::Concatenate(axis) => self.emit_concatenate(inst, *axis, operands),
            Op::DynamicSlice(_) => self.emit_dynamic_slice(inst, id, operands),
            Op::DynamicUpdateSlice => self.emit_dynamic_update_slice(inst, operands),
            Op::Gather(_) => self.emit_gather(inst, id, operands),
            Op::Scatter { .. } => self.emit_scatter(inst, operands),
            Op::Sort { .. } => self.emit_sort(inst, operands),
            Op::TopK { .. } => self.emit_top_k(inst, operands[0]),
            Op::SelectAndScatter { window, .. } => {
                let varies = self.varying(inst.operands[0]).varying_axes();
                let plain = |a: &usize| window[*a].size == 1 && window[*a].stride == 1;
                self.refuse_unless(varies.iter().all(plain), "goes over windows of an axis that varies")?;
                self.emit_unchanged(op, inst, operands)
            }
            Op::Cholesky { .. } => {
                let x = self.complete_with_identity(inst.operands[0], operands[0])?;
                self.emit_unchanged(op, inst, &[x])
            }
            Op::TriangularSolve { left_side, .. } => {
                let matrix = self.complete_with_identity(inst.operands[0], operands[0])?;
                let solved = self.b.rank(operands[1]).saturating_sub(1 + usize::from(*left_side));
                let sides = self.fill_with_zeros(inst, 1, operands[1], &[solved])?;
                self.emit_unchanged(op, inst, &[matrix, sides])
            }
            Op::Fft { length, .. } => {
                self.require_fixed_inner_axes(inst.operands[0], length.len())?;
                self.emit_unchanged(op, inst, operands)
            }
            Op::BitcastConvertWidth => {
                self.require_fixed_inner_axes(inst.operands[0], 1)?;
                self.require_fixed_inner_axes(id, 1)?;
                self.emit_unchanged(op, inst, operands)
            }
            _ => Err(Refusal::Unknown("takes arrays of fixed sizes alone")),
        }
    }

    /// Whether an instruction only moves elements of an operand that is empty at the bound, so that the result has no valid element.
    fn moves_no_elements(&self, inst: &Inst, operands: &[InstId]) -> bool {
        let moves = matches!(
            inst.op,
            Op::Slice(_) | Op::Reverse(_) | Op::DynamicSlice(_) | Op::Gather(_) | Op::Reshape | Op::Transpose(_)
        );
        moves && operands.first().is_some_and(|&x| self.b.dims(x).contains(&0))
    }

    /// Emits an instruction with the shape that it has at the bounds.
    pub(super) fn emit_unchanged(&mut self, op: Op, inst: &Inst, operands: &[InstId]) -> EmitResult {
        Ok(self.b.push(op, operands, inst.shape.clone()))
    }

    pub(super) fn refuse_unless(&self, known: bool, otherwise: &'static str) -> Result<(), Refusal> {
        if known { Ok(()) } else { Err(Refusal::Unknown(otherwise)) }
    }

    /// Checks that none of the last `count` axes of a value varies. Errors: `Unknown`.
    fn require_fixed_inner_axes(&self, id: InstId, count: usize) -> Result<(), Refusal> {
        let varying = self.varying(id);
        let rank = varying.dims.first().map_or(0, Vec::len);
        let inner = varying.varying_axes().iter().any(|&a| a + count >= rank);
        self.refuse_unless(!inner, "goes over an axis that varies")
    }

    /// Dynamic axes of a value among `axes`, each with its actual size.
    pub(super) fn dynamic_axis_sizes(&mut self, id: InstId, axes: &[usize]) -> Result<Vec<(usize, InstId)>, Refusal> {
        let varying = self.varying(id);
        let mut out = Vec::new();
        for axis in varying.varying_axes() {
            if axes.contains(&axis) {
                out.push((axis, self.size_value(&varying.dim(axis))?));
            }
        }
        Ok(out)
    }

    /// Fills the padding along `axes` of operand `i`, whose new value is `x`, with zeros.
    pub(super) fn fill_with_zeros(&mut self, inst: &Inst, i: usize, x: InstId, axes: &[usize]) -> EmitResult {
        let limits = self.dynamic_axis_sizes(inst.operands[i], axes)?;
        if limits.is_empty() {
            return Ok(x);
        }
        let zero = self.b.scalar(self.b.dtype(x), 0.0);
        Ok(fill_padding(self.b, x, &limits, zero))
    }

    /// Operands of a reduction, with the padding along `axes` of each array filled with its initial value.
    pub(super) fn fill_with_initial_values(
        &mut self,
        inst: &Inst,
        operands: &[InstId],
        axes: &[usize],
    ) -> Result<Vec<InstId>, Refusal> {
        let count = operands.len() / 2;
        let mut out = operands.to_vec();
        for i in 0..count {
            let limits = self.dynamic_axis_sizes(inst.operands[i], axes)?;
            out[i] = fill_padding(self.b, operands[i], &limits, operands[count + i]);
        }
        Ok(out)
    }

    /// Replaces the padding of square matrices, the new value of `id`, by the identity: the valid part is then an independent diagonal block.
    fn complete_with_identity(&mut self, id: InstId, x: InstId) -> EmitResult {
        let rank = self.b.rank(x);
        let axes = [rank.saturating_sub(2), rank.saturating_sub(1)];
        let limits = self.dynamic_axis_sizes(id, &axes)?;
        if limits.is_empty() {
            return Ok(x);
        }
        let dims = self.b.dims(x).to_vec();
        let places = axes.map(|axis| self.b.iota(DType::S32, &dims, axis));
        let diagonal = self.b.compare(Direction::Eq, places[0], places[1]);
        let ones = self.b.convert(diagonal, self.b.dtype(x));
        let inside = valid_mask(self.b, &dims, &limits);
        Ok(self.b.select(inside, x, ones))
    }

    fn emit_reshape(&mut self, inst: &Inst, id: InstId, x: InstId) -> EmitResult {
        if let Some(apart) = self.reshape_with_split_axis(inst, id, x) {
            return Ok(apart);
        }
        let (from, to) = (self.actual_dims(inst.operands[0]), self.actual_dims(id));
        let dims = inst.shape.as_array().map_or(Vec::new(), |a| a.dims.clone());
        let all = self.all;
        let ranges = Interval::lookup_by_index(&all.ranges);
        reshape_padded(self.b, &mut self.scope, x, (&from, &to), &dims, &ranges).ok_or(Refusal::Size)
    }

    fn emit_reverse(&mut self, inst: &Inst, axes: &[usize], x: InstId) -> EmitResult {
        let limits = self.dynamic_axis_sizes(inst.operands[0], axes)?;
        let rest: Vec<usize> = axes.iter().copied().filter(|a| limits.iter().all(|(l, _)| l != a)).collect();
        let mut x = if rest.is_empty() { x } else { self.b.add_inst(Op::Reverse(rest), &[x]) };
        for (axis, size) in limits {
            let count = self.b.dims(x)[axis];
            let position = self.b.iota(DType::S32, &[count], 0);
            let one = self.b.scalar(DType::S32, 1.0);
            let last = self.b.sub(size, one);
            let from = self.b.sub(last, position);
            x = self.b.gather_along_axis(x, axis, from, false);
        }
        Ok(x)
    }

    /// Emits a sort with an additional first key, which is 1 for padding, so that valid elements come first.
    fn emit_sort(&mut self, inst: &Inst, operands: &[InstId]) -> EmitResult {
        let Op::Sort { dim, is_stable, comp } = inst.op else { return Err(Refusal::Size) };
        let limits = self.dynamic_axis_sizes(inst.operands[0], &[dim])?;
        let Some(&(_, size)) = limits.first() else { return self.emit_unchanged(inst.op.clone(), inst, operands) };
        let dims = self.b.dims(operands[0]).to_vec();
        let position = self.b.iota(DType::S32, &dims, dim);
        let padding = self.b.compare(Direction::Ge, position, size);
        let padding = self.b.convert(padding, DType::S32);
        let types: Vec<DType> = operands.iter().map(|&o| self.b.dtype(o)).collect();
        self.b.begin_computation("real-first");
        let scalar = |dtype| crate::hlo::Shape::array(dtype, []);
        let (p, q) = (self.b.parameter(scalar(DType::S32)), self.b.parameter(scalar(DType::S32)));
        let mut pairs = Vec::new();
        for &t in &types {
            pairs.push(self.b.parameter(scalar(t)));
            pairs.push(self.b.parameter(scalar(t)));
        }
        let before = self.b.push(Op::Call(comp), &pairs, scalar(DType::Pred));
        let less = self.b.compare(Direction::Lt, p, q);
        let equal = self.b.compare(Direction::Eq, p, q);
        let both = self.b.elementwise(ScalarOp::And, &[equal, before]);
        let root = self.b.elementwise(ScalarOp::Or, &[less, both]);
        let comp = self.b.end_computation(root);
        let all = [&[padding], operands].concat();
        let sorted = self.b.add_inst(Op::Sort { dim, is_stable, comp }, &all);
        let parts: Vec<InstId> = (1..all.len()).map(|i| self.b.get_tuple_element(sorted, i)).collect();
        Ok(self.value_of_parts(&parts, &inst.shape))
    }

    /// Emits a top-k at the bound, with the padding filled so that valid elements come first.
    fn emit_top_k(&mut self, inst: &Inst, x: InstId) -> EmitResult {
        let Op::TopK { largest, .. } = inst.op else { return Err(Refusal::Size) };
        let last = self.b.rank(x).saturating_sub(1);
        let limits = self.dynamic_axis_sizes(inst.operands[0], &[last])?;
        let dtype = self.b.dtype(x);
        let fill = self.b.scalar(dtype, if largest { f64::NEG_INFINITY } else { f64::INFINITY });
        let x = fill_padding(self.b, x, &limits, fill);
        self.emit_unchanged(inst.op.clone(), inst, &[x])
    }
}
