//! When a convolution is the gradient of a filter, and the product that it becomes.
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId, Op};
use crate::schedule::families::convolution::recipe::phases::{self, Phase};
use crate::schedule::target::KernelTarget;
use std::fmt;

/// Upper limit of results along the last axis, whose features together are the columns of one product.
const MOST_RESULTS: u64 = 8;
/// Upper limit of products, one for each result along the other axes.
const MOST_PRODUCTS: usize = 32;

/// Parameters of a filter's gradient as products.
#[derive(Clone, Debug)]
pub struct FilterGradient {
    /// Phases along each axis but the last: one for each result.
    pub phases: Vec<Vec<Phase>>,
    /// Number of results along the last axis.
    pub results: u64,
    /// Positions of the left side along the last axis that any result reads: the first one, and their number.
    pub positions: (u64, u64),
    /// The element of the right side that the last result multiplies with the first position; elements before 0 are zeros.
    pub first: i64,
    /// Numbers of zeros that the right operand needs before and after its elements along the last axis.
    pub margin: (u64, u64),
}

impl FilterGradient {
    /// Recognizes convolution `id` as the gradient of a filter.
    pub fn choose(comp: &Computation, id: InstId, d: &ConvDims, target: &KernelTarget<'_>) -> Option<FilterGradient> {
        let [input, kernel] = comp[id].operands[..] else { return None };
        let (left, right, result) = (comp.array_shape(input), comp.array_shape(kernel), comp.array_shape(id));
        let (w, others) = d.window.split_last()?;
        let (&axis, &of_right) = (d.input_spatial.last()?, d.kernel_spatial.last()?);
        let results = result.dims[*d.output_spatial.last()?];
        let lanes = target.machine().lanes(result.dtype.bytes() as u64);
        let is_plain = *w
            == WindowDim { size: w.size, pad_low: w.pad_low, pad_high: w.pad_high, ..WindowDim::default() }
            && others.iter().all(|w| !w.reversal)
            && d.feature_group_count == 1
            && d.batch_group_count == 1;
        let is_float = result.dtype.is_float() && result.dtype.accumulator_type() == result.dtype;
        let is_same = [left, right].iter().all(|x| x.dtype == result.dtype);
        let is_beside = d.kernel_output_feature + 1 == right.rank() && of_right + 2 == right.rank();
        let features = right.dims[d.kernel_output_feature];
        let fits = is_plain && is_float && is_same && is_beside && features.is_multiple_of(lanes) && features > 0;
        // without padding all results read whole windows, and are rows of one product as they are
        let is_padded = d.window.iter().any(|w| w.pad_low > 0 || w.pad_high > 0);
        let is_gradient = is_padded && (2..=MOST_RESULTS).contains(&results) && w.size > results;
        if !fits || !is_gradient || matches!(comp[kernel].op, Op::Constant(_)) {
            return None;
        }
        let along = |(i, w): (usize, &WindowDim)| {
            phases::phase_per_result(w, left.dims[d.input_spatial[i]], result.dims[d.output_spatial[i]])
        };
        let phases: Vec<Vec<Phase>> = others.iter().enumerate().map(along).collect::<Option<_>>()?;
        let products = phases.iter().try_fold(1usize, |all, along| all.checked_mul(along.len()))?;
        let (start, end) = read_positions(w, left.dims[axis], results)?;
        let (size, last) = (i64::try_from(w.size).ok()?, i64::try_from(results - 1).ok()?);
        let (start_of, end_of) = (i64::try_from(start).ok()?, i64::try_from(end).ok()?);
        let first = start_of.checked_add(w.pad_low)?.checked_sub(last)?;
        let behind = end_of.checked_add(w.pad_low)?.checked_sub(size)?;
        let margin = (u64::try_from((-first).max(0)).ok()?, u64::try_from(behind.max(0)).ok()?);
        (products <= MOST_PRODUCTS).then_some(FilterGradient {
            phases,
            results,
            positions: (start, end - start),
            first,
            margin,
        })
    }
}

/// The range of positions among `n` that some of `results` windows read.
fn read_positions(w: &WindowDim, n: u64, results: u64) -> Option<(u64, u64)> {
    let [n, size, results] = [n, w.size, results].map(|x| i64::try_from(x).ok());
    let start = w.pad_low.checked_neg()?.max(0);
    let end = size?.checked_add(results? - 1)?.checked_sub(w.pad_low)?.min(n?);
    (start < end).then_some((start as u64, end as u64))
}

impl fmt::Display for FilterGradient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let products: usize = self.phases.iter().map(Vec::len).product();
        write!(f, "in {products} products of {} results along rows", self.results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::text;
    use crate::target::{PanelSizes, Target};

    fn filter(window: &str, results: &str) -> Option<FilterGradient> {
        let text = format!(
            "HloModule t
ENTRY e {{
  x = f32[4,10,12,8] parameter(0)
  dy = f32[4,10,12,16] parameter(1)
  ROOT r = f32[{results}] convolution(x, dy), window={{{window}}}, dim_labels=f01b_i01o->01bf
}}
"
        );
        let module = text::parse(&text).expect("sound HLO");
        let comp = module.entry();
        let request =
            Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4"), None).expect("a processor").into();
        let target = KernelTarget { request: &request, panels: &PanelSizes::default() };
        let Op::Convolution(d) = &comp[comp.root].op else { panic!("no convolution") };
        FilterGradient::choose(comp, comp.root, d, &target)
    }

    #[test]
    fn each_position_meets_the_elements_that_windows_over_padding_multiply_it_with() {
        let filter = filter("size=10x12 pad=1_1x1_1", "3,3,8,16").expect("a filter");
        assert_eq!((filter.positions, filter.first, filter.margin), ((0, 12), -1, (1, 1)));
        assert_eq!(
            filter.phases[0].iter().map(|p| (p.base, p.tap, p.taps)).collect::<Vec<_>>(),
            [(1, 1, 9), (1, 0, 10), (2, 0, 9)]
        );
    }

    #[test]
    fn what_strides_is_none() {
        assert!(filter("size=10x12 pad=1_1x1_1 rhs_dilate=1x2", "3,3,8,16").is_none());
    }
}
