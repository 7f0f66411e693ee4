//! How the kernels of each root are made: one answer for each, with all its parameters, in one place.
use super::choices::Key;
use super::fuse::Rows;
use crate::diag::{Error, Result};
use crate::hlo::{CompId, InstId, Op};
use crate::schedule::families::convolution::recipe::Direct;
use crate::schedule::families::convolution::recipe::algorithm::Algorithm;
use crate::schedule::families::depthwise::recipe::Window;
use crate::schedule::families::filter::recipe::Filter;
use crate::schedule::families::linalg::recipe::Solve;
use crate::schedule::families::plane_sums::recipe::FEWEST_PIXELS;
use crate::schedule::families::producer_fusion::recipe::FusedProducer;
use crate::schedule::families::reduce::recipe::Reduction;
use crate::schedule::families::scan::recipe::Scan;
use crate::schedule::families::select_and_scatter::recipe::SelectMethod;
use crate::schedule::families::winograd::recipe as winograd;
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::request::RecipeRequest;
use crate::schedule::plan::{FusionPlan, Planner};
use crate::schedule::refuse;
use std::collections::HashSet;

/// How the kernels of a root are made. What is inlined into it, before or behind its anchor, is computed on the way.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The kind of kernels, by the name of its family.
    pub family: &'static str,
    /// The parameters of the kernels.
    pub setup: Setup,
    /// Whether what follows the anchor is so long that it stands in a loop over a tile's sums.
    pub is_looped: bool,
}

/// The parameters of kernels.
#[derive(Clone, Debug)]
pub enum Setup {
    /// There are none.
    Plain,
    /// The axis of a concatenation.
    Concatenate(usize),
    /// Rows, and what a row is.
    Rows(Rows),
    /// A running fold.
    Scan(Scan),
    /// A fold.
    Reduce(Reduction),
    /// A triangular system.
    Solve(Solve),
    /// Windows that each select an element.
    SelectMethod(SelectMethod),
    /// A contraction for each group and combination of phases.
    Direct(Direct),
    /// The gradient of a filter.
    Filter(Filter),
    /// A depthwise window.
    Depthwise(Window),
    /// How a convolution by Winograd's method is cut.
    Winograd(winograd::WinogradSetup),
    /// A producer fused into its consumer, and the blocking of the producer where that is a convolution by Winograd's method.
    FusedProducer(FusedProducer, Option<winograd::WinogradSetup>),
}

impl Setup {
    /// The convolution whose method is that of the kernels, where it is not the anchor.
    pub fn convolution(&self) -> Option<InstId> {
        match self {
            Setup::FusedProducer(FusedProducer::Pooling(pooled), _) => Some(pooled.convolution),
            _ => None,
        }
    }

    /// Whether kernels that are made so can leave the sums of parts of what they make: of tiles of pixels, or of bands of rows.
    pub fn makes_partial_sums(&self) -> bool {
        let pixels = match self {
            Setup::Depthwise(window) => window.tile.min(window.wide.extent),
            Setup::FusedProducer(FusedProducer::DepthwiseChain(chain), _) => chain.window.wide.extent,
            _ => 0,
        };
        pixels >= FEWEST_PIXELS
    }

    /// The internal error of a family that is handed parameters of another family.
    pub fn wrong_family<T>(&self) -> Result<T> {
        Err(Error::internal("schedule", format!("parameters of another family: {self:?}")))
    }
}

/// The recipe of a root, by the first family that takes it. Errors: `Code::HloUnsupported` for what no kernel does.
pub type Families = fn(&mut Planner<'_>, &RecipeRequest<'_>) -> Result<Recipe>;

impl Planner<'_> {
    /// The recipe of root `at`. Errors: `Code::HloUnsupported` for what no kernel does.
    pub fn recipe(
        &mut self,
        context: &PlanContext<'_>,
        fused: &FusionPlan,
        summed: &HashSet<InstId>,
        comp: CompId,
        id: InstId,
    ) -> Result<Recipe> {
        let anchor = fused.fusion.anchor[id].unwrap_or(id);
        (self.families)(self, &RecipeRequest { context, fused, summed, comp, id, anchor })
    }

    /// A root with what it makes that it reads, if it does. Errors: none where the plan is sound.
    pub fn fused_producer(&mut self, request: &RecipeRequest<'_>) -> Result<Option<Setup>> {
        let Some(within) = request.fused.producers.get(&request.id).cloned() else { return Ok(None) };
        let setup = match &within {
            FusedProducer::Pooling(pooled) => {
                let setup = self.winograd(request.context, (request.comp, pooled.convolution));
                Some(setup.ok_or_else(|| refuse(request.context.comp, request.id, ""))?)
            }
            FusedProducer::DepthwiseChain(_) | FusedProducer::Attention(_) | FusedProducer::Separable(_) => None,
        };
        Ok(Some(Setup::FusedProducer(within, setup)))
    }

    /// Parameters of Winograd's method for convolution `key`; `None` where another method was chosen. Weights are transformed at compile time where that was asked
    /// for; along both axes of a window, too, where the constants may still grow by them.
    pub fn winograd(&mut self, context: &PlanContext<'_>, key: Key) -> Option<winograd::WinogradSetup> {
        let Op::Convolution(d) = &context.comp[key.1].op else { return None };
        let Algorithm::Winograd(w) = &context.convolutions[&key.1].algorithm else { return None };
        let more = w.grown_bytes();
        let is_spare = !w.is_line() && more <= self.spare_bytes;
        let is_known = (is_spare || self.choices.known.contains(&key)) && w.weights.may_be_transformed();
        if is_known && is_spare {
            self.spare_bytes -= more;
        }
        let room = self.choices.rooms.get(&key).copied();
        Some(winograd::WinogradSetup::new((**w).clone(), d, is_known, room, self.target))
    }
}
