//! The families of kernels: a row each, whose file in `emit/` says when it is the way that a root is made, and writes the loops.
//! A new family is such a file and a line of [`FAMILIES`].
use super::emit::{self, Family};
use super::plan::Planner;
use super::plan::asked::Asked;
use super::plan::recipe::Recipe;
use super::refuse;
use crate::diag::Result;

/// All families: the first that takes a root makes it.
pub const FAMILIES: &[&Family] = &[
    &emit::rows::FAMILY,
    &emit::within::FAMILY,
    &emit::convolution::EMPTY,
    &emit::custom_call::FAMILY,
    &emit::exchange::FAMILY,
    &emit::dot::FAMILY,
    &emit::winograd::FAMILY,
    &emit::depthwise::FAMILY,
    &emit::filter::FAMILY,
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

/// How a root is made, by the first family that takes it.
///
/// # Errors
/// `Code::HloUnsupported` for what no kernel does.
pub fn recipe(planner: &mut Planner<'_>, asked: &Asked<'_>) -> Result<Recipe> {
    for family in FAMILIES {
        if let Some(setup) = (family.recipe)(planner, asked)? {
            return Ok(Recipe { family: family.name, setup, is_looped: asked.has_long_epilogue() });
        }
    }
    Err(refuse(asked.look.comp, asked.id, " yet"))
}
