//! A family of kernels, and what it is asked for.
use super::{Emitter, Value};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::schedule::plan::Planner;
use crate::schedule::plan::recipe::Setup;
use crate::schedule::plan::request::Asked;

/// How kernels of one kind are planned and written.
pub struct Family {
    /// What plans call it.
    pub name: &'static str,
    /// Its parameters for a root, if that is made this way and no family before says so. Errors: `Code::HloUnsupported`.
    pub recipe: fn(&mut Planner<'_>, &Asked<'_>) -> Result<Option<Setup>>,
    /// Writes the kernels that the parameters say.
    pub emit: for<'a> fn(&mut Emitter<'a>, Root<'_>, &Setup) -> Result<()>,
}

/// What kernels are to fill.
#[derive(Clone, Copy)]
pub struct Root<'s> {
    /// The root.
    pub id: InstId,
    /// What is inlined into it and says how it is made; the root itself where nothing does.
    pub anchor: InstId,
    /// The memory of the result.
    pub out: &'s Value,
}
