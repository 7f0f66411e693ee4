//! A family of kernels, and what it is asked for.
use super::{Emitter, ValueBuffers};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::schedule::plan::Planner;
use crate::schedule::plan::recipe::RecipeSetup;
use crate::schedule::plan::request::RecipeRequest;

/// A family of kernels: how a root is planned and emitted.
pub struct Family {
    /// The name of the family in the text of plans.
    pub name: &'static str,
    /// Returns the parameters of the kernels if the family takes a root that no earlier family has taken; `None` otherwise. Errors:
    /// `Code::HloUnsupported`.
    pub recipe: fn(&mut Planner<'_>, &RecipeRequest<'_>) -> Result<Option<RecipeSetup>>,
    /// Emits the kernels for the parameters that `recipe` returned.
    pub emit: for<'a> fn(&mut Emitter<'a>, KernelRoot<'_>, &RecipeSetup) -> Result<()>,
}

/// An instruction that has kernels of its own, with the memory of its result.
#[derive(Clone, Copy)]
pub struct KernelRoot<'s> {
    /// The root.
    pub id: InstId,
    /// The instruction inside the kernel that decides its method; the root itself where none is fused into it.
    pub anchor: InstId,
    /// The memory of the result.
    pub out: &'s ValueBuffers,
}
