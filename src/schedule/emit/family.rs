//! A family of kernels, and what it is asked for.
use super::{Emitter, ValueBuffers};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::schedule::plan::Planner;
use crate::schedule::plan::recipe::Setup;
use crate::schedule::plan::request::RecipeRequest;

/// How kernels of one kind are planned and written.
pub struct Family {
    /// The name of the family in the text of plans.
    pub name: &'static str,
    /// Decides whether the family makes a root that no family before it has taken, and with which parameters. Errors:
    /// `Code::HloUnsupported`.
    pub recipe: fn(&mut Planner<'_>, &RecipeRequest<'_>) -> Result<Option<Setup>>,
    /// Writes the kernels that the parameters say.
    pub emit: for<'a> fn(&mut Emitter<'a>, Root<'_>, &Setup) -> Result<()>,
}

/// An instruction that kernels are written for, with the memory of its result.
#[derive(Clone, Copy)]
pub struct Root<'s> {
    /// The root.
    pub id: InstId,
    /// The instruction inside the kernel that decides its method; the root itself where none is fused into it.
    pub anchor: InstId,
    /// The memory of the result.
    pub out: &'s ValueBuffers,
}
