//! Loops of the gradient of a filter: one product for each result along the axes before the last.
use crate::schedule::families::contraction::loops::operands::{Contraction, ContractionRight};
use crate::schedule::families::contraction::recipe::axis::ContractionAxis;
use crate::schedule::families::convolution::loops::cross_product_of_phases;
use crate::schedule::families::convolution::recipe::algorithm::ConvolutionAlgorithm;
use crate::schedule::families::convolution::recipe::phases::Phase;
use crate::schedule::families::filter::recipe::FilterGradient;
use crate::schedule::loops::prelude::*;

/// The family of gradients of filters, as products of planes.
pub const FAMILY: Family = Family {
    name: "filter gradient",
    recipe: |_, request| {
        let algorithm = request.convolution()?.map(|(convolution, _)| &convolution.algorithm);
        Ok(algorithm.and_then(|algorithm| match algorithm {
            ConvolutionAlgorithm::Filter(filter) => Some(RecipeSetup::Filter((**filter).clone())),
            _ => None,
        }))
    },
    emit: |s, root, setup| match setup {
        RecipeSetup::Filter(filter) => s.emit_filter(root, filter),
        other => other.wrong_family_error(),
    },
};

impl<'a> Emitter<'a> {
    /// Emits the gradient of a filter; `root` is the convolution itself or its epilogue.
    fn emit_filter(&mut self, root: KernelRoot<'_>, filter: &FilterGradient) -> Result<()> {
        let comp = self.scope.comp;
        let (_, d) = self.planned_convolution(root.anchor)?;
        let [input, gradient] = comp[root.anchor].operands[..] else {
            return Err(unsupported_error(comp, root.anchor, ""));
        };
        let (left, right) = (comp.array_shape(input).clone(), comp.array_shape(gradient).clone());
        let mut margins = [vec![0; right.rank()], vec![0; right.rank()]];
        let along = d.kernel_spatial.last().copied().unwrap_or_default();
        (margins[0][along], margins[1][along]) = filter.margin;
        let read = self.ensure_margins(root.id, gradient, &margins)?.view(&right.dims)?;
        let from = self.value_buffers(input)?.view(&left.dims)?;
        for phases in cross_product_of_phases(&filter.phases) {
            self.emit_combination(root, filter, &from, &read, &phases)?;
        }
        Ok(())
    }

    /// Emits the results of one combination of `phases`, for all features and along the whole last axis.
    fn emit_combination(
        &mut self,
        root: KernelRoot<'_>,
        filter: &FilterGradient,
        from: &ArrayView,
        read: &ArrayView,
        phases: &[Phase],
    ) -> Result<()> {
        let comp = self.scope.comp;
        let (_, d) = self.planned_convolution(root.anchor)?;
        let result = comp.array_shape(root.anchor).clone();
        let (xs, ks) = (&from.layout.strides, &read.layout.strides);
        let features = result.dims[d.output_feature];
        let (mut a0, mut b0) = (from.layout.origin, read.layout.origin);
        let mut sum = vec![ContractionAxis {
            extent: comp.array_shape(comp[root.anchor].operands[0]).dims[d.input_feature],
            a: xs[d.input_feature],
            b: ks[d.kernel_input_feature],
        }];
        for (i, (w, p)) in d.window.iter().zip(phases).enumerate() {
            let (x, k) = (xs[d.input_spatial[i]], ks[d.kernel_spatial[i]]);
            (a0, b0) = (a0 + (p.base - w.pad_low) * x, b0 + k * p.tap as i64);
            sum.push(ContractionAxis { extent: p.taps, a: x * w.rhs_dilate as i64, b: k });
        }
        let last = d.window.len() - 1;
        let (x, k) = (xs[d.input_spatial[last]], ks[d.kernel_spatial[last]]);
        let (first, count) = filter.positions;
        (a0, b0) = (a0 + first as i64 * x, b0 + filter.first * k);
        sum.push(ContractionAxis { extent: count, a: x, b: k });
        let (rank, results) = (result.rank(), filter.results);
        let place = |k: &Kernel, _: &Index, r: &Index, c: &Index| {
            let mut at = vec![Index::default(); rank];
            at[d.output_batch] = r.clone();
            for (&axis, p) in d.output_spatial.iter().zip(phases) {
                at[axis] = Index::constant(p.first as i64);
            }
            // the last result is the first of the neighbours
            at[d.output_spatial[last]] = c.div(features as i64, &k.vars).scale(-1).offset(results as i64 - 1);
            at[d.output_feature] = c.rem(features as i64, &k.vars);
            at
        };
        let c = Contraction {
            dtype: result.dtype,
            left: from.buf,
            right: ContractionRight::Buffer(read.buf),
            a0,
            b0,
            batch: vec![],
            rows: vec![ContractionAxis { extent: result.dims[d.output_batch], a: xs[d.input_batch], b: 0 }],
            columns: vec![ContractionAxis { extent: results * features, a: 0, b: 1 }],
            sum,
            first_column: 0,
            sums_apart: None,
            direct_flops: None,
            inside: None,
        };
        self.emit_contraction(root, &c, &place)
    }
}
