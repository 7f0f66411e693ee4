//! How the kernels of each root are made: one answer for each, with all its parameters, in one place.
use super::choices::Key;
use super::convolution::{Convolution, Way};
use super::depthwise::Window;
use super::fuse::{Rows, inlineable};
use super::phases::{self, Phase};
use super::reduce::Reduction;
use super::scan::Scan;
use super::selected::Selected;
use super::solve::Solve;
use super::within::{Look, Within};
use super::{Fused, Planner, winograd};
use crate::diag::{Error, Result};
use crate::hlo::attrs::ConvDims;
use crate::hlo::{CompId, InstId, Op};
use crate::schedule::family::{FAMILIES, Family};
use crate::schedule::refuse;
use std::collections::HashSet;

/// Most groups of several channels that a convolution has, each of which becomes a contraction.
const MOST_GROUPS: u64 = 64;

/// How the kernels of a root are made. What is inlined into it, before or behind its anchor, is computed on the way.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The kind of kernels.
    pub family: &'static Family,
    /// Their parameters.
    pub setup: Setup,
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
    Selected(Selected),
    /// A contraction for each group and combination of phases.
    Direct(Direct),
    /// A depthwise window.
    Depthwise(Window),
    /// How a convolution by Winograd's method is cut.
    Winograd(winograd::Setup),
    /// What makes what it reads, and how that is cut where it is a convolution by Winograd's method.
    Within(Within, Option<winograd::Setup>),
}

impl Setup {
    /// The convolution whose method is that of the kernels, where it is not the anchor.
    pub fn convolution(&self) -> Option<InstId> {
        match self {
            Setup::Within(Within::Pooled(pooled), _) => Some(pooled.convolution),
            _ => None,
        }
    }

    /// The error of a family that was given these and has others.
    pub fn unfit<T>(&self) -> Result<T> {
        Err(Error::internal("schedule", format!("parameters of another family: {self:?}")))
    }
}

/// A root whose family is looked for.
pub struct Asked<'l> {
    /// What there is to look at.
    pub look: &'l Look<'l>,
    /// What is inlined into what.
    pub fused: &'l Fused,
    /// Planes of which parts are summed when they are made.
    pub summed: &'l HashSet<InstId>,
    /// The computation.
    pub comp: CompId,
    /// The root.
    pub id: InstId,
    /// Its anchor, or itself.
    pub anchor: InstId,
}

impl Asked<'_> {
    /// What the anchor does.
    pub fn op(&self) -> &Op {
        &self.look.comp[self.anchor].op
    }

    /// Whether the anchor has no elements.
    pub fn is_empty(&self) -> bool {
        self.look.comp.array(self.anchor).elements() == 0
    }

    /// The convolution, where the anchor is one. Errors: `Code::HloUnsupported` for batch groups.
    pub fn convolution(&self) -> Result<Option<(&Convolution, &ConvDims)>> {
        let Op::Convolution(d) = self.op() else { return Ok(None) };
        if d.batch_group_count != 1 {
            return Err(refuse(self.look.comp, self.id, " with batch groups"));
        }
        Ok(Some((&self.look.convolutions[&self.anchor], d)))
    }

    /// The running fold, where the anchor is one.
    pub fn scan(&self) -> Option<Scan> {
        let Op::ReduceWindow { window, comp: folder } = self.op() else { return None };
        let operands = &self.look.comp[self.anchor].operands;
        let regroups = operands.len() == 2 && self.look.module.comps[*folder].fold().is_some();
        Scan::of(window, &self.look.comp.array(operands[0]).dims, regroups)
    }

    /// Whether each element of the root is computed from a few of others.
    pub fn is_pointwise(&self) -> bool {
        inlineable(self.op())
    }
}

/// A convolution as contractions.
#[derive(Clone, Debug)]
pub struct Direct {
    /// Whether the operand is read without margins, the results at edges with fewer taps.
    pub at_edges: bool,
    /// The phases along each spatial axis.
    pub phases: Vec<Vec<Phase>>,
}

impl Planner<'_> {
    /// The recipe of root `at`. Errors: `Code::HloUnsupported` for what no kernel does.
    pub fn recipe(
        &mut self,
        look: &Look<'_>,
        (fused, summed): (&Fused, &HashSet<InstId>),
        (comp, id): Key,
    ) -> Result<Recipe> {
        let anchor = fused.fusion.anchor[id].unwrap_or(id);
        let asked = Asked { look, fused, summed, comp, id, anchor };
        for &family in FAMILIES {
            if let Some(setup) = (family.recipe)(self, &asked)? {
                return Ok(Recipe { family, setup });
            }
        }
        Err(refuse(look.comp, id, " yet"))
    }

    /// A root with what it makes that it reads, if it does. Errors: none where the plan is sound.
    pub fn within(&mut self, asked: &Asked<'_>) -> Result<Option<Setup>> {
        let Some(within) = asked.fused.within.get(&asked.id).cloned() else { return Ok(None) };
        let setup = match &within {
            Within::Pooled(pooled) => {
                let setup = self.winograd(asked.look, (asked.comp, pooled.convolution));
                Some(setup.ok_or_else(|| refuse(asked.look.comp, asked.id, ""))?)
            }
            Within::Chain(_) | Within::Block(_) | Within::Separable(_) => None,
        };
        Ok(Some(Setup::Within(within, setup)))
    }

    /// A convolution as contractions. Errors: `Code::HloUnsupported` for too many groups.
    pub fn direct(&mut self, asked: &Asked<'_>) -> Result<Option<Setup>> {
        let Some((convolution, d)) = asked.convolution()? else { return Ok(None) };
        let (comp, id) = (asked.look.comp, asked.anchor);
        if d.feature_group_count > MOST_GROUPS {
            let why = format!(" in {} groups of several channels each (at most {MOST_GROUPS})", d.feature_group_count);
            return Err(refuse(comp, asked.id, &why));
        }
        let is_asked = asked.comp == self.module.entry && self.choices.in_parts.contains(&comp[id].operands[0]);
        let at_edges = convolution.at_edges.clone().filter(|_| is_asked);
        let is_at_edges = at_edges.is_some();
        let phases = at_edges.or_else(|| phases::split(comp, id, d)).unwrap_or_else(|| {
            let axes = d.output_spatial.iter().zip(&d.window);
            axes.map(|(&axis, w)| vec![Phase::only(comp.array(id).dims[axis], w.size)]).collect()
        });
        Ok(Some(Setup::Direct(Direct { at_edges: is_at_edges, phases })))
    }

    /// Winograd's method for convolution `key`, where that is its way. Weights are transformed at compile time where that was asked
    /// for; along both axes of a window, too, where the constants may still grow by them.
    pub fn winograd(&mut self, look: &Look<'_>, key: Key) -> Option<winograd::Setup> {
        let Op::Convolution(d) = &look.comp[key.1].op else { return None };
        let Way::Winograd(w) = &look.convolutions[&key.1].way else { return None };
        let more = w.grown_bytes();
        let is_spare = !w.is_line() && more <= self.spare_bytes;
        let is_known = (is_spare || self.choices.known.contains(&key)) && w.weights.may_be_transformed();
        if is_known && is_spare {
            self.spare_bytes -= more;
        }
        let room = self.choices.rooms.get(&key).copied();
        Some(winograd::Setup::new((**w).clone(), d, is_known, room, self.target))
    }
}
