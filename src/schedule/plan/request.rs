//! A root whose family is looked for: what families ask of it.
use crate::diag::Result;
use crate::hlo::attrs::ConvDims;
use crate::hlo::{CompId, InstId, Op};
use crate::schedule::families::convolution::recipe::algorithm::Convolution;
use crate::schedule::families::scan::recipe::Scan;
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::fuse::is_inlineable;
use crate::schedule::plan::{FusionPlan, epilogue};
use crate::schedule::unsupported_error;
use std::collections::HashSet;

/// A request for the recipe of a root.
pub struct RecipeRequest<'l> {
    /// The planner's inputs.
    pub context: &'l PlanContext<'l>,
    /// The fusion decisions and placements of the computation.
    pub fused: &'l FusionPlan,
    /// Arrays whose kernels also leave partial sums of each plane.
    pub summed: &'l HashSet<InstId>,
    /// The computation.
    pub comp: CompId,
    /// The root.
    pub id: InstId,
    /// The instruction inside the root's kernel that decides its method, or the root.
    pub anchor: InstId,
}

impl RecipeRequest<'_> {
    /// The operation of the anchor.
    pub fn op(&self) -> &Op {
        &self.context.comp[self.anchor].op
    }

    /// Whether the anchor has no elements.
    pub fn is_empty(&self) -> bool {
        self.context.comp.array_shape(self.anchor).elements() == 0
    }

    /// The convolution, if the anchor is one. Errors: `Code::HloUnsupported` for batch groups.
    pub fn convolution(&self) -> Result<Option<(&Convolution, &ConvDims)>> {
        let Op::Convolution(d) = self.op() else { return Ok(None) };
        if d.batch_group_count != 1 {
            return Err(unsupported_error(self.context.comp, self.id, " with batch groups"));
        }
        Ok(Some((&self.context.convolutions[&self.anchor], d)))
    }

    /// The scan, if the anchor is one.
    pub fn as_scan(&self) -> Option<Scan> {
        let Op::ReduceWindow { window, comp: folder } = self.op() else { return None };
        let operands = &self.context.comp[self.anchor].operands;
        let regroups = operands.len() == 2 && self.context.module.comps[*folder].as_fold().is_some();
        Scan::recognize(window, &self.context.comp.array_shape(operands[0]).dims, regroups)
    }

    /// Whether the epilogue of the anchor is long.
    pub fn has_long_epilogue(&self) -> bool {
        self.id != self.anchor
            && epilogue::is_long_epilogue(
                self.context.module,
                self.context.comp,
                &self.fused.fusion,
                self.id,
                self.anchor,
            )
    }

    /// Whether each element of the root depends on a few elements of other arrays.
    pub fn is_pointwise(&self) -> bool {
        is_inlineable(self.op())
    }
}
