//! Sums over planes of pixels that what makes a plane may leave behind: squeeze-excite.
use crate::hlo::attrs::WindowDim;
use crate::hlo::{Computation, InstId, Op};
use crate::scalar::ScalarOp;
use crate::schedule::families::convolution::recipe::algorithm::Convolution;
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::fold::associative_op;
use crate::schedule::plan::fuse::{Fusion, FusionDecision};
use crate::tensor::DType;
use std::collections::HashSet;

/// Fewest elements of planes whose partial sums are worth another kernel.
const FEWEST: u64 = 4096;
/// Fewest pixels of a part with a partial sum of its own.
pub const FEWEST_PIXELS: u64 = 4;

/// A sum over all axes but the channels.
#[derive(Clone, Debug)]
pub struct PlaneSum {
    /// The instruction whose pixels are summed.
    pub input: InstId,
    /// The scalar that sums begin with.
    pub init: InstId,
    /// The outermost axis with more than one element.
    pub axis: usize,
}

impl PlaneSum {
    /// Recognizes `anchor` as a sum over all axes but the channels.
    pub fn recognize(comp: &Computation, anchor: InstId) -> Option<PlaneSum> {
        let [input, init] = comp[anchor].operands[..] else { return None };
        let array = comp[input].shape.as_array()?;
        let dims = &array.dims;
        let axes: Vec<usize> = match &comp[anchor].op {
            Op::Reduce { dims, .. } => dims.clone(),
            // one window over all
            Op::ReduceWindow { window, .. }
                if comp.array_shape(anchor).elements() == dims.last().copied().unwrap_or(1) =>
            {
                (0..dims.len()).filter(|&d| dims[d] > 1 && is_whole(&window[d], dims[d])).collect()
            }
            _ => return None,
        };
        let last = dims.len().checked_sub(1)?;
        let axis = dims.iter().position(|&n| n != 1)?;
        let all = (0..last).all(|d| dims[d] == 1 || axes.contains(&d)) && !axes.contains(&last) && axis < last;
        (all && array.dtype == DType::F32 && array.elements() >= FEWEST).then_some(PlaneSum { input, init, axis })
    }
}

/// The results of depthwise convolutions of the computation whose pixels are all summed.
pub fn summed_planes(context: &PlanContext<'_>, fusion: &Fusion) -> HashSet<InstId> {
    let PlanContext { module, comp, convolutions, .. } = *context;
    let mut summed = HashSet::new();
    for anchor in comp.post_order() {
        let Some(planes) = PlaneSum::recognize(comp, anchor) else { continue };
        let root = match fusion.decision[anchor] {
            FusionDecision::Inlined(Some(root)) if fusion.anchor[root] == Some(anchor) => root,
            FusionDecision::Materialised => anchor,
            FusionDecision::Inlined(_) => continue,
        };
        let window = fusion.anchor[planes.input].unwrap_or(planes.input);
        let by_channel = convolutions.get(&window).is_some_and(Convolution::is_depthwise);
        let alike = fusion.path[window].is_empty() && comp.array_shape(window) == comp.array_shape(planes.input);
        let added = comp[anchor].op.called_computations().first().and_then(|&c| associative_op(&module.comps[c]));
        let made = fusion.is_materialised(planes.input) && fusion.rows[planes.input].is_none();
        if by_channel && made && alike && fusion.rows[root].is_none() && added == Some(ScalarOp::Add) {
            summed.insert(planes.input);
        }
    }
    summed
}

/// Whether a window is as long as its axis and not padded.
fn is_whole(w: &WindowDim, n: u64) -> bool {
    w.size == n && w.rhs_dilate == 1 && w.lhs_dilate == 1 && w.pad_low == 0 && w.pad_high == 0
}
