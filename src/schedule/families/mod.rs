//! The families of kernels. A family has a folder, or a file where it is small: `recipe` decides, before there is any kernel, whether a root is
//! made this way and with which parameters, and `loops` writes the kernels. A new family is such a folder and a line of [`FAMILIES`].
pub mod contraction;
pub mod convolution;
pub mod custom_call;
pub mod depthwise;
pub mod dot;
pub mod exchange;
pub mod filter;
pub mod fourier;
pub mod linalg;
pub mod plane_sums;
pub mod pointwise;
pub mod producer_fusion;
pub mod reduce;
pub mod rows;
pub mod scan;
pub mod scatter;
pub mod select_and_scatter;
pub mod sort;
pub mod transpose;
pub mod winograd;

use super::emit::Family;
use super::plan::Planner;
use super::plan::recipe::Recipe;
use super::unsupported_error;
use crate::diag::Result;
use crate::schedule::plan::request::RecipeRequest;

/// All families, in order of precedence: the first that accepts a root makes it.
pub const FAMILIES: &[&Family] = &[
    &rows::FAMILY,
    &producer_fusion::FAMILY,
    &convolution::EMPTY,
    &custom_call::FAMILY,
    &exchange::FAMILY,
    &dot::FAMILY,
    &winograd::FAMILY,
    &depthwise::FAMILY,
    &filter::FAMILY,
    &convolution::FAMILY,
    &scan::FAMILY,
    &reduce::FAMILY,
    &scatter::FAMILY,
    &select_and_scatter::FAMILY,
    &fourier::FAMILY,
    &linalg::CHOLESKY,
    &linalg::TRIANGULAR_SOLVE,
    &sort::SORT,
    &sort::TOP_K,
    &pointwise::CONCATENATE,
    &pointwise::UPDATE,
    &transpose::FAMILY,
    &pointwise::FAMILY,
];

/// The recipe of a root, by the first family that accepts it.
///
/// # Errors
/// `Code::HloUnsupported` for an op without a kernel.
pub fn choose_recipe(planner: &mut Planner<'_>, request: &RecipeRequest<'_>) -> Result<Recipe> {
    for family in FAMILIES {
        if let Some(setup) = (family.recipe)(planner, request)? {
            return Ok(Recipe { family: family.name, setup, is_looped: request.has_long_epilogue() });
        }
    }
    Err(unsupported_error(request.context.comp, request.id, " yet"))
}
