//! Padding kept away from elements within the actual sizes, opcode by opcode.
use super::mask::{masked, within};
use super::reshape::reshaped;
use super::{Refusal, Walk, Written};
use crate::hlo::{Inst, InstId, Op};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Interval;
use crate::tensor::DType;

impl Walk<'_> {
    /// An instruction that has axes that vary; `operands` are the new values of its operands.
    pub(super) fn padded(&mut self, inst: &Inst, id: InstId, operands: &[InstId]) -> Written {
        let op = inst.op.clone();
        if self.takes_nothing(inst, operands) {
            // there is no element that counts
            let dims = inst.shape.as_array().map_or(Vec::new(), |a| a.dims.clone());
            return Ok(self.b.full(self.b.dtype(operands[0]), &dims, 0.0));
        }
        match &inst.op {
            // point by point, or elements that only move with their axis
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
            | Op::BatchNormInference { .. } => self.same(op, inst, operands),
            Op::Reshape => self.reshape(inst, id, operands[0]),
            Op::Reduce { dims, .. } => {
                let operands = self.without_padding(inst, operands, dims)?;
                self.same(op, inst, &operands)
            }
            Op::ReduceWindow { .. } => self.reduce_window(inst, id, operands),
            Op::Dot(d) => {
                let x = self.zeros_beyond(inst, 0, operands[0], &d.lhs_contracting)?;
                let y = self.zeros_beyond(inst, 1, operands[1], &d.rhs_contracting)?;
                self.same(op, inst, &[x, y])
            }
            Op::Convolution(_) => self.convolution(inst, id, operands),
            Op::Slice(_) => self.slice(inst, id, operands[0]),
            Op::Pad(_) => self.pad(inst, id, operands),
            Op::Reverse(axes) => self.reverse(inst, axes, operands[0]),
            Op::Concatenate(axis) => self.concatenate(inst, *axis, operands),
            Op::DynamicSlice(_) => self.dynamic_slice(inst, id, operands),
            Op::DynamicUpdateSlice => self.dynamic_update_slice(inst, operands),
            Op::Gather(_) => self.gather(inst, id, operands),
            Op::Scatter { .. } => self.scatter(inst, operands),
            Op::Sort { .. } => self.sort(inst, operands),
            Op::TopK { .. } => self.top_k(inst, operands[0]),
            Op::SelectAndScatter { window, .. } => {
                let varies = self.varying(inst.operands[0]).axes();
                let plain = |a: &usize| window[*a].size == 1 && window[*a].stride == 1;
                self.only(varies.iter().all(plain), "goes over windows of an axis that varies")?;
                self.same(op, inst, operands)
            }
            Op::Cholesky { .. } => {
                let x = self.square(inst.operands[0], operands[0])?;
                self.same(op, inst, &[x])
            }
            Op::TriangularSolve { left_side, .. } => {
                let matrix = self.square(inst.operands[0], operands[0])?;
                let solved = self.b.rank(operands[1]).saturating_sub(1 + usize::from(*left_side));
                let sides = self.zeros_beyond(inst, 1, operands[1], &[solved])?;
                self.same(op, inst, &[matrix, sides])
            }
            Op::Fft { length, .. } => {
                self.inner_fixed(inst.operands[0], length.len())?;
                self.same(op, inst, operands)
            }
            Op::BitcastConvertWidth => {
                self.inner_fixed(inst.operands[0], 1)?;
                self.inner_fixed(id, 1)?;
                self.same(op, inst, operands)
            }
            _ => Err(Refusal::Unknown("takes arrays of fixed sizes alone")),
        }
    }

    /// Whether an instruction only moves elements of an array that has none up to the bound.
    fn takes_nothing(&self, inst: &Inst, operands: &[InstId]) -> bool {
        let moves = matches!(
            inst.op,
            Op::Slice(_) | Op::Reverse(_) | Op::DynamicSlice(_) | Op::Gather(_) | Op::Reshape | Op::Transpose(_)
        );
        moves && operands.first().is_some_and(|&x| self.b.dims(x).contains(&0))
    }

    /// The instruction as it is for the bounds.
    pub(super) fn same(&mut self, op: Op, inst: &Inst, operands: &[InstId]) -> Written {
        Ok(self.b.push(op, operands, inst.shape.clone()))
    }

    pub(super) fn only(&self, known: bool, otherwise: &'static str) -> Result<(), Refusal> {
        if known { Ok(()) } else { Err(Refusal::Unknown(otherwise)) }
    }

    /// Refuses where one of the last `count` axes of a value varies.
    fn inner_fixed(&self, id: InstId, count: usize) -> Result<(), Refusal> {
        let varying = self.varying(id);
        let rank = varying.dims.first().map_or(0, Vec::len);
        let inner = varying.axes().iter().any(|&a| a + count >= rank);
        self.only(!inner, "goes over an axis that varies")
    }

    /// The axes among `axes` of a value that vary, each with its actual size.
    pub(super) fn limits(&mut self, id: InstId, axes: &[usize]) -> Result<Vec<(usize, InstId)>, Refusal> {
        let varying = self.varying(id);
        let mut out = Vec::new();
        for axis in varying.axes() {
            if axes.contains(&axis) {
                out.push((axis, self.size(&varying.dim(axis))?));
            }
        }
        Ok(out)
    }

    /// Operand `i`, whose new value is `x`, with zeros in the padding along `axes`.
    pub(super) fn zeros_beyond(&mut self, inst: &Inst, i: usize, x: InstId, axes: &[usize]) -> Written {
        let limits = self.limits(inst.operands[i], axes)?;
        if limits.is_empty() {
            return Ok(x);
        }
        let zero = self.b.scalar(self.b.dtype(x), 0.0);
        Ok(masked(self.b, x, &limits, zero))
    }

    /// The operands of a reduction, the arrays with their initial values in the padding along `axes`.
    pub(super) fn without_padding(
        &mut self,
        inst: &Inst,
        operands: &[InstId],
        axes: &[usize],
    ) -> Result<Vec<InstId>, Refusal> {
        let count = operands.len() / 2;
        let mut out = operands.to_vec();
        for i in 0..count {
            let limits = self.limits(inst.operands[i], axes)?;
            out[i] = masked(self.b, operands[i], &limits, operands[count + i]);
        }
        Ok(out)
    }

    /// Square matrices, the new value of `id`, with those of ones on the diagonal beside and below what counts: such a block is for itself.
    fn square(&mut self, id: InstId, x: InstId) -> Written {
        let rank = self.b.rank(x);
        let axes = [rank.saturating_sub(2), rank.saturating_sub(1)];
        let limits = self.limits(id, &axes)?;
        if limits.is_empty() {
            return Ok(x);
        }
        let dims = self.b.dims(x).to_vec();
        let places = axes.map(|axis| self.b.iota(DType::S32, &dims, axis));
        let diagonal = self.b.compare(Direction::Eq, places[0], places[1]);
        let ones = self.b.convert(diagonal, self.b.dtype(x));
        let inside = within(self.b, &dims, &limits);
        Ok(self.b.select(inside, x, ones))
    }

    fn reshape(&mut self, inst: &Inst, id: InstId, x: InstId) -> Written {
        if let Some(apart) = self.merging(inst, id, x) {
            return Ok(apart);
        }
        let (from, to) = (self.sizes_of(inst.operands[0]), self.sizes_of(id));
        let dims = inst.shape.as_array().map_or(Vec::new(), |a| a.dims.clone());
        let all = self.all;
        let ranges = Interval::of_each(&all.ranges);
        reshaped(self.b, &mut self.scope, x, (&from, &to), &dims, &ranges).ok_or(Refusal::Size)
    }

    fn reverse(&mut self, inst: &Inst, axes: &[usize], x: InstId) -> Written {
        let limits = self.limits(inst.operands[0], axes)?;
        let rest: Vec<usize> = axes.iter().copied().filter(|a| limits.iter().all(|(l, _)| l != a)).collect();
        let mut x = if rest.is_empty() { x } else { self.b.add_inst(Op::Reverse(rest), &[x]) };
        for (axis, size) in limits {
            let count = self.b.dims(x)[axis];
            let position = self.b.iota(DType::S32, &[count], 0);
            let one = self.b.scalar(DType::S32, 1.0);
            let last = self.b.sub(size, one);
            let from = self.b.sub(last, position);
            x = self.b.take(x, axis, from, false);
        }
        Ok(x)
    }

    /// A sort with a key before all others: whether an element is padding.
    fn sort(&mut self, inst: &Inst, operands: &[InstId]) -> Written {
        let Op::Sort { dim, is_stable, comp } = inst.op else { return Err(Refusal::Size) };
        let limits = self.limits(inst.operands[0], &[dim])?;
        let Some(&(_, size)) = limits.first() else { return self.same(inst.op.clone(), inst, operands) };
        let dims = self.b.dims(operands[0]).to_vec();
        let position = self.b.iota(DType::S32, &dims, dim);
        let padding = self.b.compare(Direction::Ge, position, size);
        let padding = self.b.convert(padding, DType::S32);
        let types: Vec<DType> = operands.iter().map(|&o| self.b.dtype(o)).collect();
        self.b.begin("real-first");
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
        let comp = self.b.end(root);
        let all = [&[padding], operands].concat();
        let sorted = self.b.add_inst(Op::Sort { dim, is_stable, comp }, &all);
        let parts: Vec<InstId> = (1..all.len()).map(|i| self.b.get_tuple_element(sorted, i)).collect();
        Ok(self.joined(&parts, &inst.shape))
    }

    /// The largest of the bound; where less are taken, those are the first.
    fn top_k(&mut self, inst: &Inst, x: InstId) -> Written {
        let Op::TopK { largest, .. } = inst.op else { return Err(Refusal::Size) };
        let last = self.b.rank(x).saturating_sub(1);
        let limits = self.limits(inst.operands[0], &[last])?;
        let dtype = self.b.dtype(x);
        let fill = self.b.scalar(dtype, if largest { f64::NEG_INFINITY } else { f64::INFINITY });
        let x = masked(self.b, x, &limits, fill);
        self.same(inst.op.clone(), inst, &[x])
    }
}
