//! The families of kernels: a row each, whose file in `emit/` says when it is the way that a root is made, and writes the loops.
//! A new family is such a file and a line of [`FAMILIES`].
use super::emit::{self, Emitter, Value};
use super::plan::Planner;
use super::plan::recipe::{Asked, Setup};
use crate::diag::Result;
use crate::hlo::InstId;
use std::fmt;

/// How kernels of one kind are planned and written.
pub struct Family {
    /// What plans call it.
    pub name: &'static str,
    /// Its parameters for a root, if that is made this way and no family before says so. Errors: `Code::HloUnsupported`.
    pub recipe: fn(&mut Planner<'_>, &Asked<'_>) -> Result<Option<Setup>>,
    /// Writes the kernels that the parameters say.
    pub emit: for<'a> fn(&mut Emitter<'a>, Root<'_>, &Setup) -> Result<()>,
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
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

/// All families: the first that takes a root makes it.
pub const FAMILIES: &[&Family] = &[
    &emit::rows::FAMILY,
    &emit::within::FAMILY,
    &EMPTY,
    &emit::custom_call::FAMILY,
    &emit::exchange::FAMILY,
    &emit::dot::FAMILY,
    &emit::winograd::FAMILY,
    &emit::depthwise::FAMILY,
    &emit::convolution::FAMILY,
    &emit::scan::FAMILY,
    &emit::reduce::FAMILY,
    &emit::scatter::FAMILY,
    &emit::select_and_scatter::FAMILY,
    &emit::cholesky::FAMILY,
    &emit::triangular_solve::FAMILY,
    &emit::sort::FAMILY,
    &emit::top_k::FAMILY,
    &emit::pointwise::CONCATENATE,
    &emit::pointwise::UPDATE,
    &emit::pointwise::FAMILY,
];

/// A convolution without results takes no kernel.
const EMPTY: Family = Family {
    name: "empty",
    recipe: |_, asked| Ok(asked.convolution()?.filter(|_| asked.is_empty()).map(|_| Setup::Plain)),
    emit: |_, _, _| Ok(()),
};
