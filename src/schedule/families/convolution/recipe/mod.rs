//! Decides how a convolution is done, and how one that is done by direct sums becomes contractions.
pub mod algorithm;
pub mod phases;
pub mod tap_rows;

use crate::diag::Result;
use crate::schedule::plan::Planner;
use crate::schedule::plan::recipe::RecipeSetup;
use crate::schedule::plan::request::RecipeRequest;
use crate::schedule::unsupported_error;
use phases::Phase;
use std::fmt;

/// Upper limit of groups of several channels, each of which becomes a contraction.
const MOST_GROUPS: u64 = 64;

/// Parameters of a direct convolution.
#[derive(Clone, Debug)]
pub struct DirectConvolution {
    /// Whether the operand is read without margins, and results at edges use fewer taps.
    pub at_edges: bool,
    /// The phases along each spatial axis.
    pub phases: Vec<Vec<Phase>>,
}

impl Planner<'_> {
    /// The recipe of a direct convolution. Errors: `Code::HloUnsupported` for too many groups.
    pub fn direct_recipe(&mut self, request: &RecipeRequest<'_>) -> Result<Option<RecipeSetup>> {
        let Some((convolution, d)) = request.convolution()? else { return Ok(None) };
        let (comp, id) = (request.context.comp, request.anchor);
        if d.feature_group_count > MOST_GROUPS {
            let why = format!(" in {} groups of several channels each (at most {MOST_GROUPS})", d.feature_group_count);
            return Err(unsupported_error(comp, request.id, &why));
        }
        let is_asked = request.comp == self.module.entry && self.choices.in_parts.contains(&comp[id].operands[0]);
        let at_edges = convolution.at_edges.clone().filter(|_| is_asked);
        let is_at_edges = at_edges.is_some();
        let phases = at_edges.or_else(|| phases::split_phases(comp, id, d)).unwrap_or_else(|| {
            let axes = d.output_spatial.iter().zip(&d.window);
            axes.map(|(&axis, w)| vec![Phase::single(comp.array_shape(id).dims[axis], w.size)]).collect()
        });
        Ok(Some(RecipeSetup::Direct(DirectConvolution { at_edges: is_at_edges, phases })))
    }
}

impl fmt::Display for DirectConvolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phases: Vec<String> = self.phases.iter().map(|axis| axis.len().to_string()).collect();
        let edges = if self.at_edges { ", results at edges apart" } else { "" };
        write!(f, "phases {}{edges}", phases.join("x"))
    }
}
