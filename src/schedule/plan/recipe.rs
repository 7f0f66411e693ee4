//! How the kernels of each root are made: one answer for each, with all its parameters, in one place.
use super::choices::InstKey;
use super::fuse::RowShape;
use crate::diag::{Error, Result};
use crate::hlo::{CompId, InstId, Op};
use crate::schedule::families::convolution::recipe::DirectConvolution;
use crate::schedule::families::convolution::recipe::algorithm::ConvolutionAlgorithm;
use crate::schedule::families::depthwise::recipe::DepthwiseTiling;
use crate::schedule::families::filter::recipe::FilterGradient;
use crate::schedule::families::linalg::recipe::SolveBlocking;
use crate::schedule::families::plane_sums::recipe::FEWEST_PIXELS;
use crate::schedule::families::producer_fusion::recipe::FusedProducer;
use crate::schedule::families::reduce::recipe::Reduction;
use crate::schedule::families::scan::recipe::Scan;
use crate::schedule::families::select_and_scatter::recipe::SelectMethod;
use crate::schedule::families::winograd::recipe as winograd;
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::request::RecipeRequest;
use crate::schedule::plan::{FusionPlan, Planner};
use crate::schedule::unsupported_error;
use std::collections::HashSet;

/// Family and parameters of the kernels of a root. Instructions inlined before or after the anchor are computed by the same kernels.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Name of the family of kernels.
    pub family: &'static str,
    /// The parameters of the kernels.
    pub setup: RecipeSetup,
    /// Whether the epilogue is a loop over the sums of a tile, as it is long.
    pub is_looped: bool,
}

/// The parameters of kernels, by family.
#[derive(Clone, Debug)]
pub enum RecipeSetup {
    /// No parameters.
    Plain,
    /// The axis of a concatenation.
    Concatenate(usize),
    /// A row kernel.
    Rows(RowShape),
    /// A scan (running reduction).
    Scan(Scan),
    /// A reduction.
    Reduce(Reduction),
    /// A triangular solve.
    Solve(SolveBlocking),
    /// A `select-and-scatter`.
    SelectMethod(SelectMethod),
    /// A direct convolution: a contraction for each group and combination of phases.
    Direct(DirectConvolution),
    /// The gradient of a convolution's filter.
    Filter(FilterGradient),
    /// A depthwise convolution.
    Depthwise(DepthwiseTiling),
    /// A convolution by Winograd's method, with its division into kernels.
    Winograd(winograd::WinogradSetup),
    /// A producer fused into its consumer, with the blocking of the producer if that is a Winograd convolution.
    FusedProducer(FusedProducer, Option<winograd::WinogradSetup>),
}

impl RecipeSetup {
    /// The convolution whose shape decides the recipe, if that is another instruction than the anchor.
    pub fn convolution(&self) -> Option<InstId> {
        match self {
            RecipeSetup::FusedProducer(FusedProducer::Pooling(pooled), _) => Some(pooled.convolution),
            _ => None,
        }
    }

    /// Whether kernels with these parameters can leave partial sums of their results, by tiles of pixels or bands of rows.
    pub fn makes_partial_sums(&self) -> bool {
        let pixels = match self {
            RecipeSetup::Depthwise(window) => window.tile.min(window.wide.extent),
            RecipeSetup::FusedProducer(FusedProducer::DepthwiseChain(chain), _) => chain.window.wide.extent,
            _ => 0,
        };
        pixels >= FEWEST_PIXELS
    }

    /// The internal error of a family that is given the parameters of another family.
    pub fn wrong_family_error<T>(&self) -> Result<T> {
        Err(Error::internal("schedule", format!("parameters of another family: {self:?}")))
    }
}

/// Function that makes the recipe of a root, by the first family that takes it. Errors: `Code::HloUnsupported` for an op without a
/// kernel.
pub type ChooseRecipe = fn(&mut Planner<'_>, &RecipeRequest<'_>) -> Result<Recipe>;

impl Planner<'_> {
    /// The recipe of root `id`. Errors: `Code::HloUnsupported` for an op without a kernel.
    pub fn choose_recipe(
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

    /// The kernel method, with its parameters, of a root whose kernel also computes one of its operands; `None` for other roots.
    /// Errors: none if the plan is sound.
    pub fn fused_producer(&mut self, request: &RecipeRequest<'_>) -> Result<Option<RecipeSetup>> {
        let Some(within) = request.fused.producers.get(&request.id).cloned() else { return Ok(None) };
        let setup = match &within {
            FusedProducer::Pooling(pooled) => {
                let setup = self.winograd_setup(request.context, (request.comp, pooled.convolution));
                Some(setup.ok_or_else(|| unsupported_error(request.context.comp, request.id, ""))?)
            }
            FusedProducer::DepthwiseChain(_) | FusedProducer::Attention(_) | FusedProducer::Separable(_) => None,
        };
        Ok(Some(RecipeSetup::FusedProducer(within, setup)))
    }

    /// Parameters of Winograd's method for convolution `key`; `None` if it uses another algorithm. Weights are transformed at compile
    /// time if the choices say so, and for 2D methods too if constants may still grow by them.
    pub fn winograd_setup(&mut self, context: &PlanContext<'_>, key: InstKey) -> Option<winograd::WinogradSetup> {
        let Op::Convolution(d) = &context.comp[key.1].op else { return None };
        let ConvolutionAlgorithm::Winograd(w) = &context.convolutions[&key.1].algorithm else { return None };
        let more = w.added_constant_bytes();
        let is_spare = !w.is_one_dimensional() && more <= self.spare_bytes;
        let is_known = (is_spare || self.choices.known.contains(&key)) && w.weights.may_be_transformed();
        if is_known && is_spare {
            self.spare_bytes -= more;
        }
        let room = self.choices.rooms.get(&key).copied();
        Some(winograd::WinogradSetup::new((**w).clone(), d, is_known, room, self.target))
    }
}
