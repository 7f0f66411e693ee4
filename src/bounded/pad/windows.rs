//! Padding rules of convolution and reduce-window along dynamic axes.
use super::{ComputationPadder, EmitResult, Refusal};
use crate::bounded::extent::Extent;
use crate::bounded::size_exprs::{WindowExprs, window_attribute, window_exprs};
use crate::hlo::attrs::{PadDim, WindowDim};
use crate::hlo::{Inst, InstId, Op};
use crate::tensor::DType;

/// High padding with which an axis of `n` elements has `count` windows; `None` on overflow.
fn padding_behind(window: &WindowDim, n: u64, count: u64) -> Option<i64> {
    let Some(steps) = count.checked_sub(1) else { return Some(window.pad_high) };
    let length = window.span()?.checked_add(steps.checked_mul(window.stride)?)?;
    let spread = n.checked_sub(1).map_or(Some(0), |n| n.checked_mul(window.lhs_dilate)?.checked_add(1))?;
    i64::try_from(length).ok()?.checked_sub(window.pad_low)?.checked_sub(i64::try_from(spread).ok()?)
}

impl ComputationPadder<'_> {
    pub(super) fn emit_convolution(&mut self, inst: &Inst, id: InstId, operands: &[InstId]) -> EmitResult {
        let Op::Convolution(d) = &inst.op else { return Err(Refusal::Size) };
        let (x, kernel) = (self.varying(inst.operands[0]), self.varying(inst.operands[1]));
        let varies = |of: &crate::bounded::size_exprs::InstExprs, axis: usize| of.dim(axis).varies();
        let grouped = d.feature_group_count > 1
            && (varies(x, d.input_feature)
                || varies(kernel, d.kernel_output_feature)
                || varies(kernel, d.kernel_input_feature))
            || d.batch_group_count > 1 && (varies(x, d.input_batch) || varies(kernel, d.kernel_output_feature));
        self.refuse_unless(!grouped, "has groups that vary")?;
        self.refuse_unless(!d.kernel_spatial.iter().any(|&a| varies(kernel, a)), "has a kernel that varies")?;
        let mut axes = self.axes_read_beyond((inst, id), &d.window, &d.input_spatial, &d.output_spatial);
        axes.push(d.input_feature);
        let x = self.fill_with_zeros(inst, 0, operands[0], &axes)?;
        let y = self.fill_with_zeros(inst, 1, operands[1], &[d.kernel_input_feature])?;
        let zero = self.b.scalar(self.b.dtype(x), 0.0);
        let (op, x) = self.align_windows((inst, id), x, zero, &d.input_spatial, &d.output_spatial)?;
        self.emit_unchanged(op, inst, &[x, y])
    }

    pub(super) fn emit_reduce_window(&mut self, inst: &Inst, id: InstId, operands: &[InstId]) -> EmitResult {
        let Op::ReduceWindow { window: of, .. } = &inst.op else { return Err(Refusal::Size) };
        let axes: Vec<usize> = (0..of.len()).collect();
        let beyond = self.axes_read_beyond((inst, id), of, &axes, &axes);
        let mut new = self.fill_with_initial_values(inst, operands, &beyond)?;
        let count = new.len() / 2;
        let mut op = inst.op.clone();
        for i in 0..count {
            (op, new[i]) = self.align_windows((inst, id), new[i], new[count + i], &axes, &axes)?;
        }
        self.emit_unchanged(op, inst, &new)
    }

    /// Axes along which windows of valid results may read padding of the array. `from` are the array's axes of the windows, `to` those of
    /// the result.
    fn axes_read_beyond(
        &self,
        (inst, id): (&Inst, InstId),
        windows: &[WindowDim],
        from: &[usize],
        to: &[usize],
    ) -> Vec<usize> {
        let (result, operand) = (self.varying(id), self.varying(inst.operands[0]));
        let is_within = |w: usize| {
            let (of, numbers) = (windows.get(w)?, window_exprs(result, w)?);
            if of.lhs_dilate != 1 || [numbers.size, numbers.stride, numbers.low].iter().any(|n| n.varies()) {
                return None;
            }
            // the last window ends `(count - 1) * stride + span - low` elements after the array's first
            let behind_last_start = i64::try_from(of.span()?).ok()?.checked_sub(of.pad_low)?;
            let last_start = result.dim(to[w]).offset_by(-1)?.scale(i64::try_from(of.stride).ok()?)?;
            Some(self.all.is_at_least(&operand.dim(from[w]), &last_start.offset_by(behind_last_start)?))
        };
        (0..from.len()).filter(|&w| is_within(w) != Some(true)).map(|w| from[w]).collect()
    }

    /// Returns the op with windows that begin at the same element for every size, and the array for it: `x`, shifted with `fill` coming in
    /// where the low padding varies. `from` are the array's axes of the windows, `to` those of the result.
    fn align_windows(
        &mut self,
        (inst, id): (&Inst, InstId),
        mut x: InstId,
        fill: InstId,
        from: &[usize],
        to: &[usize],
    ) -> Result<(Op, InstId), Refusal> {
        let mut op = inst.op.clone();
        let (own, operand) = (self.varying(id), self.varying(inst.operands[0]));
        for (w, (&from, &to)) in from.iter().zip(to).enumerate() {
            let Some(numbers) = window_exprs(own, w) else { return Err(Refusal::Size) };
            if numbers.size.varies() {
                let known = self.is_exact_at_bound((inst, w), &numbers, &operand.dim(from), &own.dim(to));
                self.refuse_unless(known, "has windows that lie elsewhere for other sizes")?;
            }
            let count = inst.shape.as_array().map_or(0, |a| a.dims[to]);
            if numbers.size.varies() || !numbers.low.varies() {
                let n = self.b.dims(x)[from];
                if let Some(window) = window_attribute(&mut op).and_then(|of| of.get_mut(w)) {
                    window.pad_high = padding_behind(window, n, count).ok_or(Refusal::Size)?;
                }
                continue;
            }
            let Some(window) = window_attribute(&mut op).and_then(|of| of.get_mut(w)) else {
                return Err(Refusal::Size);
            };
            let plain = window.lhs_dilate == 1;
            (window.pad_low, window.pad_high) = (0, 0);
            // the number of windows is that of the bound
            let steps = count.saturating_sub(1).checked_mul(window.stride).ok_or(Refusal::Size)?;
            let length = window.span().and_then(|n| n.checked_add(steps)).ok_or(Refusal::Size)?;
            self.refuse_unless(plain, "begins between elements for other sizes")?;
            x = self.pad_ends_to_length(x, from, numbers.low, (fill, length))?;
        }
        Ok((op, x))
    }

    /// Shifts `x` along `axis`: `low` times `fill`, then its elements, then `fill` up to `length` elements.
    pub(super) fn pad_ends_to_length(
        &mut self,
        x: InstId,
        axis: usize,
        low: &Extent,
        (fill, length): (InstId, u64),
    ) -> EmitResult {
        let lows = self.all.within(low).ok_or(Refusal::Size)?;
        let end = |n: i128| i64::try_from(n).map_err(|_| Refusal::Size);
        let (least, most) = (end(lows.least)?, end(lows.most)?);
        let mut dims = self.b.dims(x).to_vec();
        let number = |n: u64| i64::try_from(n).map_err(|_| Refusal::Size);
        let mut pad = vec![PadDim::default(); dims.len()];
        // whatever `low` is, `length` elements follow the start
        pad[axis].low = most;
        pad[axis].high = number(length)? - number(dims[axis])? - least;
        let long = self.b.pad(x, fill, &pad);
        let zero = self.b.scalar(DType::S32, 0.0);
        let mut starts = vec![zero; dims.len()];
        starts[axis] = self.size_value(&Extent::constant(most).sub(low).ok_or(Refusal::Size)?)?;
        dims[axis] = length;
        Ok(self.b.add_inst(Op::DynamicSlice(dims), &[&[long], &starts[..]].concat()))
    }

    /// Whether windows of a varying size may all have the size at the bound: they always end, or always begin, outside the array, so that
    /// the additional elements are padding.
    fn is_exact_at_bound(
        &self,
        (inst, w): (&Inst, usize),
        numbers: &WindowExprs,
        axis: &Extent,
        result: &Extent,
    ) -> bool {
        if !numbers.low.varies() {
            // a window covers everything from its first element on
            return self.all.is_at_least(numbers.size, axis);
        }
        // the last element of a window moves with the result, its first lies before the array
        let moves = numbers.size.sub(numbers.low).is_some_and(|behind| !behind.varies());
        let before = numbers.low.offset_by(1).is_some_and(|low| self.all.is_at_least(&low, result));
        moves && before && matches!(&inst.op, Op::ReduceWindow { window, .. } if window[w].stride == 1)
    }
}
