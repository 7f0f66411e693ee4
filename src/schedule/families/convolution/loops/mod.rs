//! `convolution` as contractions: the operand is padded and dilated into a buffer where it must be; then it is a contraction over
//! strides, a group and a combination of phases at a time.
pub(in crate::schedule) mod tap_rows;

use crate::hlo::attrs::ConvDims;
use crate::schedule::families::contraction::loops::operands::{Contraction, ContractionRight, CoordinateMap};
use crate::schedule::families::contraction::recipe::axis::ContractionAxis;
use crate::schedule::families::convolution::recipe::DirectConvolution;
use crate::schedule::families::convolution::recipe::algorithm::{Convolution, ConvolutionAlgorithm};
use crate::schedule::families::convolution::recipe::phases::Phase;
use crate::schedule::families::winograd::loops::InputChannels;
use crate::schedule::loops::nest;
use crate::schedule::loops::prelude::*;
use crate::schedule::memory::layout::Layout;
use crate::schedule::plan::fuse::FusionDecision;
use crate::schedule::plan::placement::Placement;

/// A continuation that receives each part of a convolution as a contraction.
type Then<'t, 'a> = &'t mut dyn FnMut(&mut Emitter<'a>, &Contraction, CoordinateMap<'_>) -> Result<()>;

/// All combinations of one phase along each axis.
pub(in crate::schedule) fn cross_product_of_phases(phases: &[Vec<Phase>]) -> Vec<Vec<Phase>> {
    phases.iter().rev().fold(vec![vec![]], |all, along| {
        all.iter().flat_map(|rest| along.iter().map(move |&phase| [&[phase], &rest[..]].concat())).collect()
    })
}

/// Moves the origin of `view` to the first element of the first window, along axes without base dilation.
fn from_first_window(mut view: ArrayView, d: &ConvDims) -> ArrayView {
    for (w, &axis) in d.window.iter().zip(&d.input_spatial).filter(|(w, _)| w.lhs_dilate == 1) {
        view.layout.origin -= w.pad_low * view.layout.strides[axis];
    }
    view
}

/// The family of convolutions without results, which need no kernel.
pub const EMPTY: Family = Family {
    name: "empty",
    recipe: |_, request| Ok(request.convolution()?.filter(|_| request.is_empty()).map(|_| RecipeSetup::Plain)),
    emit: |_, _, _| Ok(()),
};

/// The family of direct convolutions: a contraction for each group and combination of phases.
pub const FAMILY: Family = Family {
    name: "direct",
    recipe: |planner, request| planner.direct_recipe(request),
    emit: |s, root, setup| match setup {
        RecipeSetup::Direct(direct) => s.emit_direct(root, direct),
        other => other.wrong_family_error(),
    },
};

impl<'a> Emitter<'a> {
    /// The algorithm planned for convolution `id`, and its dimension numbers.
    pub(in crate::schedule) fn planned_convolution(&self, id: InstId) -> Result<(&'a Convolution, &'a ConvDims)> {
        let comp: &'a crate::hlo::Computation = self.scope.comp;
        match (self.plan.convolutions(self.scope.id).get(&id), &comp[id].op) {
            (Some(convolution), Op::Convolution(d)) => Ok((convolution, d)),
            _ => Err(unsupported_error(comp, id, "")),
        }
    }

    /// Emits a direct convolution; `id` is the convolution `anchor` itself or its epilogue.
    pub(in crate::schedule) fn emit_direct(
        &mut self,
        root @ KernelRoot { id, anchor, .. }: KernelRoot<'_>,
        direct: &DirectConvolution,
    ) -> Result<()> {
        let (_, d) = self.planned_convolution(anchor)?;
        let operands = &self.scope.comp[anchor].operands;
        let input = match direct.at_edges {
            true => self.unpadded_view(operands[0], d)?,
            false => self.padded_view(id, anchor, operands[0])?,
        };
        let group = d.feature_group_count;
        let right = self.right_side(operands[1])?;
        let parts: Vec<(Vec<Phase>, u64)> = cross_product_of_phases(&direct.phases)
            .into_iter()
            .flat_map(|phases| (0..group).map(move |g| (phases.clone(), g)))
            .collect();
        let each = |s: &mut Self, then: Then<'_, 'a>| -> Result<()> {
            parts
                .iter()
                .try_for_each(|(phases, group)| s.with_contraction(anchor, &input, &right, phases, *group, then))
        };
        // one alone is asked when it is made
        let mut is_inner_product = parts.len() > 1;
        if is_inner_product {
            each(self, &mut |s, c, _| {
                is_inner_product &= s.inner_product_right(c).is_some();
                Ok(())
            })?;
        }
        if is_inner_product {
            return self.emit_inner_product(root, |s, sums| {
                each(s, &mut |s, c, place| match s.inner_product_right(c) {
                    Some(right) => s.inner_product_sums(sums, c, right, place),
                    None => Ok(()),
                })
            });
        }
        each(self, &mut |s, c, place| s.emit_contraction(root, c, place))
    }

    /// Passes one combination of phases of one group to `then`, as a contraction.
    pub(in crate::schedule) fn with_contraction(
        &mut self,
        anchor: InstId,
        input: &ArrayView,
        right: &ContractionRight,
        phases: &[Phase],
        group: u64,
        then: Then<'_, 'a>,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let (convolution, d) = self.planned_convolution(anchor)?;
        let (kernel, result) = (comp.array_shape(comp[anchor].operands[1]), comp.array_shape(anchor));
        let per_group = kernel.dims[d.kernel_output_feature] / d.feature_group_count.max(1);
        let features = kernel.dims[d.kernel_input_feature];
        let (xs, ks) = (&input.layout.strides, kernel.strides());
        let mut rows = vec![ContractionAxis { extent: result.dims[d.output_batch], a: xs[d.input_batch], b: 0 }];
        let mut sum = Vec::new();
        let mut a0 = input.layout.origin + (group * features) as i64 * xs[d.input_feature];
        let mut b0 = (group * per_group) as i64 * ks[d.kernel_output_feature] as i64;
        for (i, (w, p)) in d.window.iter().zip(phases).enumerate() {
            let (x, k) = (xs[d.input_spatial[i]], ks[d.kernel_spatial[i]] as i64);
            rows.push(ContractionAxis { extent: p.count, a: x * w.stride as i64, b: 0 });
            let step = if w.reversal { -k } else { k };
            a0 += p.base * x;
            b0 += if w.reversal { k * (w.size as i64 - 1) } else { 0 } + step * p.tap as i64;
            sum.push(ContractionAxis { extent: p.taps, a: x * w.rhs_dilate as i64, b: step * p.step as i64 });
        }
        let feature =
            ContractionAxis { extent: features, a: xs[d.input_feature], b: ks[d.kernel_input_feature] as i64 };
        // images of a gradient, which are farther apart than all taps, are the loop outside
        let is_far = matches!(right, ContractionRight::Buffer(_))
            && sum.iter().all(|tap: &ContractionAxis| tap.a.abs() < feature.a.abs());
        sum.insert(if is_far && !convolution.skips_padding_rows() { 0 } else { sum.len() }, feature);
        // which row is read comes from both loops together
        let inside = match convolution.algorithm {
            ConvolutionAlgorithm::Direct { inside: Some(inside) } => {
                let (inside, first) = inside.with_row_stride(xs[d.input_spatial[0]]);
                (a0, rows[1].a, sum[0].a) = (a0 + first, 0, 0);
                Some(inside)
            }
            _ => None,
        };
        // features that a gradient has in the place of images lie side by side, as the results along an axis do then
        let is_near =
            matches!(right, ContractionRight::Buffer(_)) && rows[1..].iter().all(|x| x.a.abs() > rows[0].a.abs());
        let is_last = is_near && !convolution.skips_padding_rows();
        if is_last {
            rows.rotate_left(1);
        }
        let row_dims: Vec<u64> = rows.iter().map(|x| x.extent).collect();
        let total: u64 = row_dims.iter().product();
        let rank = result.rank();
        let place = |k: &Kernel, _: &Index, r: &Index, c: &Index| {
            let mut at = vec![Index::default(); rank];
            let mut row = reshape_coordinates(std::slice::from_ref(r), &[total], &row_dims, &k.vars);
            row.rotate_right(usize::from(is_last));
            at[d.output_batch] = row[0].clone();
            for (i, (&axis, p)) in d.output_spatial.iter().zip(phases).enumerate() {
                at[axis] = row[i + 1].scale(p.step as i64).offset(p.first as i64);
            }
            at[d.output_feature] = c.clone();
            at
        };
        let c = Contraction {
            dtype: result.dtype,
            left: input.buf,
            right: right.clone(),
            a0,
            b0,
            batch: vec![],
            rows,
            columns: vec![ContractionAxis { extent: per_group, a: 0, b: ks[d.kernel_output_feature] as i64 }],
            sum,
            first_column: group * per_group,
            sums_apart: None,
            direct_flops: None,
            inside,
        };
        then(self, &c, &place)
    }

    /// A view of the operand without padding, with its origin at the first window.
    fn unpadded_view(&mut self, operand: InstId, d: &ConvDims) -> Result<ArrayView> {
        let value = self.value_buffers(operand)?;
        Ok(from_first_window(value.view(&self.scope.comp.array_shape(operand).dims)?, d))
    }

    /// A view of the operand with padding (and base dilation, if it must be written out) in memory, and its origin at the first window;
    /// along axes of several phases, at the operand's first element.
    pub(in crate::schedule) fn padded_view(
        &mut self,
        id: InstId,
        anchor: InstId,
        operand: InstId,
    ) -> Result<ArrayView> {
        let shape = self.scope.comp.array_shape(operand).clone();
        let (convolution, d) = self.planned_convolution(anchor)?;
        let Some(margins) = &convolution.margins else {
            let value = self.dilated_copy(id, operand, d)?;
            return value.view(&shape.dims);
        };
        let value = self.with_room(id, operand, d, margins)?;
        Ok(from_first_window(value.view(&shape.dims)?, d))
    }

    /// Views of the convolution's operand with margins: one, or one of each part if the operand is a concatenation that is not
    /// materialised.
    pub(in crate::schedule) fn input_channel_views(
        &mut self,
        id: InstId,
        anchor: InstId,
    ) -> Result<Vec<InputChannels>> {
        let comp = self.scope.comp;
        let (_, d) = self.planned_convolution(anchor)?;
        let whole = comp[anchor].operands[0];
        let parts = match self.scope.fusion.decision[whole] {
            FusionDecision::Materialised => std::slice::from_ref(&whole),
            FusionDecision::Inlined(_) => &comp[whole].operands,
        };
        let mut planes = Vec::new();
        for &part in parts {
            let view = self.padded_view(id, anchor, part)?;
            planes.push(InputChannels { view, channels: comp.array_shape(part).dims[d.input_feature] });
        }
        Ok(planes)
    }

    /// Buffers of `operand` with zero margins of at least `margins` (before, after) along each spatial axis: its own, or those of a copy.
    fn with_room(&mut self, id: InstId, operand: InstId, d: &ConvDims, margins: &[(u64, u64)]) -> Result<ValueBuffers> {
        let rank = self.scope.comp.array_shape(operand).rank();
        let mut all = [vec![0; rank], vec![0; rank]];
        for (&(low, high), &axis) in margins.iter().zip(&d.input_spatial) {
            (all[0][axis], all[1][axis]) = (low, high);
        }
        self.ensure_margins(id, operand, &all)
    }

    /// Buffers of `operand` with at least `margins` zeros (before, after) along each axis: its own, or those of a copy.
    pub(in crate::schedule) fn ensure_margins(
        &mut self,
        id: InstId,
        operand: InstId,
        margins: &[Vec<u64>; 2],
    ) -> Result<ValueBuffers> {
        let shape = self.scope.comp.array_shape(operand).clone();
        let value = self.value_buffers(operand)?;
        let fits = |layout: &Layout| {
            let enough = |(need, have): (&Vec<u64>, &Vec<u64>)| need.iter().zip(have).all(|(need, have)| need <= have);
            [(&margins[0], &layout.low), (&margins[1], &layout.high)].into_iter().all(enough)
        };
        if fits(&value.layout(&shape.dims)) {
            return Ok(value);
        }
        let copy = self.scope.padded.get(&operand).filter(|copy| fits(&copy.layout(&shape.dims)));
        if let Some(copy) = copy {
            return Ok(copy.clone());
        }
        let (low, high) = match self.scope.stages.placements[operand].clone() {
            Placement::Margin { low, high, .. } if fits(&Layout::with_margin(&shape.dims, &low, &high)) => (low, high),
            _ => (margins[0].clone(), margins[1].clone()),
        };
        let copy = self.allocate_with_margin(&shape, &low, &high)?;
        self.record_margin(operand, copy.buffer()?);
        let mut k = Kernel { label: format!("pad {}", instruction_label(self.scope.comp, id)), ..Kernel::default() };
        let (vars, at) = loop_variables(&mut k, &shape.dims);
        let x = value.view(&shape.dims)?.load(&mut k, &at);
        let store = copy.view(&shape.dims)?.store(&at, x);
        nest::set_vectorized_body(&mut k, &vars, &[store], self.vector_lanes(shape.dtype));
        if shape.elements() > 0 {
            self.launch(k);
        }
        self.record_demand(operand, &copy);
        self.scope.padded.insert(operand, copy.clone());
        Ok(copy)
    }

    /// Copies the operand with base dilation and padding written out.
    fn dilated_copy(&mut self, id: InstId, operand: InstId, d: &ConvDims) -> Result<ValueBuffers> {
        let shape = self.scope.comp.array_shape(operand).clone();
        let value = self.value_buffers(operand)?;
        let from = value.view(&shape.dims)?;
        let mut dims = shape.dims.clone();
        for (w, &axis) in d.window.iter().zip(&d.input_spatial) {
            let spread = (dims[axis].max(1) - 1) * w.lhs_dilate + 1;
            let size = spread as i64 + w.pad_low + w.pad_high;
            dims[axis] = u64::try_from(size)
                .map_err(|_| unsupported_error(self.scope.comp, id, " with padding that removes everything"))?;
        }
        let mut k = Kernel { label: format!("pad {}", instruction_label(self.scope.comp, id)), ..Kernel::default() };
        let (vars, at) = loop_variables(&mut k, &dims);
        let mut source = at.clone();
        let mut inside = None;
        for (w, &axis) in d.window.iter().zip(&d.input_spatial) {
            let moved = at[axis].offset(-w.pad_low);
            source[axis] = clamped_coordinate(&mut k, &moved, shape.dims[axis], w.lhs_dilate, &mut inside);
        }
        let (x, zero) = (from.load(&mut k, &source), constant_of_number(&mut k, shape.dtype, 0.0));
        let x = select(&mut k, inside, x, zero, shape.dtype);
        let to = self.allocate_buffer(shape.dtype, dims.iter().product());
        let store = Stmt::Store { buf: to, index: linear_index(&at, &dims), value: x };
        nest::set_vectorized_body(&mut k, &vars, &[store], self.vector_lanes(shape.dtype));
        self.launch(k);
        Ok(ValueBuffers { leaves: vec![to], layout: Some(Layout::dense(&dims)) })
    }
}
