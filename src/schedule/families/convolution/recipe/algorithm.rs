//! How each convolution of a computation is done. This is asked once, before anything else is planned; margins, cuts, fusion and
//! loops read the answer.
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{ArrayShape, CompId, Computation, InstId, Module, Op};
use crate::schedule::families::convolution::recipe::phases::{self, Phase};
use crate::schedule::families::convolution::recipe::tap_rows;
use crate::schedule::families::convolution::recipe::tap_rows::TapRows;
use crate::schedule::families::filter::recipe::FilterGradient;
use crate::schedule::families::winograd::recipe::{self as winograd, Winograd};
use crate::schedule::target::KernelTarget;
use crate::target::ConvolutionMethod;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;

/// Upper limit of taps along the last axis of a depthwise window that are unrolled, and of taps of a whole window on machines with 32
/// registers; more are a loop.
pub const MOST_TAPS: u64 = 9;
/// Upper limit of contractions into which a convolution is split to do without margins.
const MOST_PARTS: u64 = 16;

/// The algorithm of a convolution.
#[derive(Clone, Debug)]
pub enum ConvolutionAlgorithm {
    /// Winograd's minimal filtering.
    Winograd(Box<Winograd>),
    /// Depthwise: one channel a group, vectorized along channels.
    Depthwise {
        /// Whether windows read a margin of zeros; otherwise taps on the padding are left out.
        has_margin: bool,
    },
    /// Products of planes, for the gradient of a filter.
    Filter(Box<FilterGradient>),
    /// Direct: one sum over the window and the channels, a contraction for each group and phase.
    Direct {
        /// Map of the rows of taps on the padding that are left out, if they are.
        inside: Option<TapRows>,
    },
}

/// A convolution with its algorithm and the consequences for its operand.
#[derive(Clone, Debug)]
pub struct Convolution {
    /// The algorithm that was chosen.
    pub algorithm: ConvolutionAlgorithm,
    /// The margins that the operand needs along each spatial axis, before and after; `None` if it must be copied with dilation holes
    /// written out.
    pub margins: Option<Vec<(u64, u64)>>,
    /// Phases along each axis that read the operand without margins: results at the edges are phases of their own, with fewer taps.
    pub at_edges: Option<Vec<Vec<Phase>>>,
    /// Key of the convolution in tuned choices and its algorithm, if Winograd's method is possible.
    pub named: Option<(String, ConvolutionMethod)>,
}

impl Convolution {
    fn choose(comp: &Computation, id: InstId, d: &ConvDims, target: &KernelTarget<'_>) -> Convolution {
        let (algorithm, named) = choose_algorithm(comp, id, d, target);
        let mut of =
            Convolution { margins: required_margins(comp, id, d, &algorithm), at_edges: None, algorithm, named };
        of.at_edges = of.edges(comp, id, d);
        of
    }

    /// Whether the algorithm is Winograd's, whose tiles need no margins.
    pub fn is_winograd(&self) -> bool {
        matches!(self.algorithm, ConvolutionAlgorithm::Winograd(_))
    }

    /// Whether the convolution has one channel a group and is vectorized along channels.
    pub fn is_depthwise(&self) -> bool {
        matches!(self.algorithm, ConvolutionAlgorithm::Depthwise { .. })
    }

    /// Whether rows of taps on the padding are left out.
    pub fn skips_padding_rows(&self) -> bool {
        matches!(self.algorithm, ConvolutionAlgorithm::Direct { inside: Some(_) })
    }

    /// Whether the operand needs zero margins.
    pub fn needs_margins(&self) -> bool {
        self.margins.as_ref().is_some_and(|margins| margins.iter().any(|m| *m != (0, 0)))
    }

    /// The phases of a direct convolution that need no margins; `None` if they take more than [`MOST_PARTS`] contractions.
    fn edges(&self, comp: &Computation, id: InstId, d: &ConvDims) -> Option<Vec<Vec<Phase>>> {
        let ConvolutionAlgorithm::Direct { inside: None } = self.algorithm else { return None };
        let parts = phases::phases_split_at_edges(comp, id, d)?;
        let kernels: u64 = parts.iter().map(|along| along.len() as u64).product();
        (kernels.saturating_mul(d.feature_group_count) <= MOST_PARTS).then_some(parts)
    }
}

/// The convolutions of one computation.
pub type Convolutions = HashMap<InstId, Convolution>;

/// The algorithms of all convolutions of a module, by computation.
#[derive(Clone, Debug)]
pub struct ModuleConvolutions(IdVec<CompId, Convolutions>);

impl ModuleConvolutions {
    /// Chooses algorithms for all convolutions of `module`.
    pub fn choose(module: &Module, target: &KernelTarget<'_>) -> ModuleConvolutions {
        ModuleConvolutions(module.comps.values().map(|comp| choose_algorithms(comp, target)).collect())
    }

    /// The algorithms of a computation's convolutions.
    pub fn of_computation(&self, id: CompId) -> &Convolutions {
        &self.0[id]
    }
}

/// Chooses algorithms for the convolutions of `comp`.
pub fn choose_algorithms(comp: &Computation, target: &KernelTarget<'_>) -> Convolutions {
    let one = |id: InstId| match &comp[id].op {
        Op::Convolution(d) => Some((id, Convolution::choose(comp, id, d, target))),
        _ => None,
    };
    comp.post_order().into_iter().filter_map(one).collect()
}

/// Chooses the algorithm of a convolution; also returns its key in tuned choices.
fn choose_algorithm(
    comp: &Computation,
    id: InstId,
    d: &ConvDims,
    target: &KernelTarget<'_>,
) -> (ConvolutionAlgorithm, Option<(String, ConvolutionMethod)>) {
    let Some(w) = winograd::recognize(comp, id, target) else { return (without_winograd(comp, id, d, target), None) };
    let named = w.choose_method(target);
    match named.1 {
        ConvolutionMethod::Winograd => (ConvolutionAlgorithm::Winograd(Box::new(w)), Some(named)),
        ConvolutionMethod::Direct => (without_winograd(comp, id, d, target), Some(named)),
    }
}

fn without_winograd(comp: &Computation, id: InstId, d: &ConvDims, target: &KernelTarget<'_>) -> ConvolutionAlgorithm {
    if is_by_channel(comp, id, d) {
        let padded = |w: &WindowDim| w.lhs_dilate == 1 && w.pad_low >= 0 && w.pad_high >= 0;
        // taps are left out one by one where those of the last axis are written out
        let leaves_out = d.window.iter().all(padded)
            && d.window.last().is_some_and(|w| w.size <= MOST_TAPS)
            && comp.array_shape(comp[id].operands[0]).elements() > 0;
        return ConvolutionAlgorithm::Depthwise { has_margin: !leaves_out };
    }
    if let Some(filter) = FilterGradient::choose(comp, id, d, target) {
        return ConvolutionAlgorithm::Filter(Box::new(filter));
    }
    ConvolutionAlgorithm::Direct { inside: tap_rows::choose_tap_rows(comp, id, d, target) }
}

/// Whether convolution `id` is depthwise: one output channel (or as many as [`ConvDims::repeats_inputs_across_lanes`] allows) per input
/// channel, with channels as the last axis everywhere.
fn is_by_channel(comp: &Computation, id: InstId, d: &ConvDims) -> bool {
    let [input, kernel] = comp[id].operands[..] else { return false };
    let (input, kernel, result) = (comp.array_shape(input), comp.array_shape(kernel), comp.array_shape(id));
    let minor = |axis: usize, shape: &ArrayShape| axis + 1 == shape.rank();
    d.feature_group_count > 1
        && ConvDims::repeats_inputs_across_lanes(kernel.dims[d.kernel_output_feature] / d.feature_group_count)
        && kernel.dims[d.kernel_input_feature] == 1
        && minor(d.input_feature, input)
        && minor(d.kernel_output_feature, kernel)
        && minor(d.output_feature, result)
}

fn required_margins(
    comp: &Computation,
    id: InstId,
    d: &ConvDims,
    algorithm: &ConvolutionAlgorithm,
) -> Option<Vec<(u64, u64)>> {
    let phases = phases::split_phases(comp, id, d)?;
    let input = comp.array_shape(comp[id].operands[0]);
    let margin = |(i, w): (usize, &WindowDim)| match w.lhs_dilate {
        1 => (w.pad_low.max(0) as u64, w.pad_high.max(0) as u64),
        _ => phases::phase_margin(&phases[i], input.dims[d.input_spatial[i]]),
    };
    let all = || d.window.iter().enumerate().map(margin);
    Some(match algorithm {
        ConvolutionAlgorithm::Winograd(_)
        | ConvolutionAlgorithm::Filter(_)
        | ConvolutionAlgorithm::Depthwise { has_margin: false } => {
            vec![(0, 0); d.window.len()]
        }
        ConvolutionAlgorithm::Depthwise { has_margin: true } | ConvolutionAlgorithm::Direct { inside: None } => {
            all().collect()
        }
        ConvolutionAlgorithm::Direct { inside: Some(_) } => std::iter::once((0, 0)).chain(all().skip(1)).collect(),
    })
}
