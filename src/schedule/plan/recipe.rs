//! How the kernels of each root are made: one answer for each, with all its parameters, in one place.
use super::choices::Key;
use super::convolution::{Convolution, Way};
use super::fuse::Rows;
use super::phases::{self, Phase};
use super::scan::Scan;
use super::within::{Block, Chain, Look, Pooled, Separable, Within};
use super::{Fused, Planner, winograd};
use crate::diag::Result;
use crate::hlo::attrs::ConvDims;
use crate::hlo::{InstId, Op};
use crate::schedule::refuse;
use crate::tensor::DType;

/// Most groups of several channels that a convolution has, each of which becomes a contraction.
const MOST_GROUPS: u64 = 64;

/// How the kernels of a root are made. What is inlined into it, before or behind its anchor, is computed on the way.
#[derive(Clone, Debug)]
pub enum Recipe {
    /// An array of no elements takes no kernel.
    Nothing,
    /// Loops over the elements of the result.
    Pointwise,
    /// Loops for each operand that was not made in its place along this axis.
    Concatenate(usize),
    /// A copy of the operand, unless it may be written over, and loops over the update.
    Update,
    /// A copy of the operands, unless they may be written over, and loops over the updates one after another.
    Scatter,
    /// Windows that each pick an element.
    SelectAndScatter,
    /// Row after row: reductions of whole rows and all between them.
    Rows(Rows),
    /// Elements that are folded from others.
    Reduce,
    /// A running fold.
    Scan(Scan),
    /// Stable sorting of lines.
    Sort,
    /// The largest of each line.
    TopK,
    /// Column after column.
    Cholesky,
    /// Row after row of unknowns.
    TriangularSolve,
    /// A contraction over strides.
    Product,
    /// A contraction for each group and combination of phases.
    Direct(Direct),
    /// Lanes along the channels of one-channel groups.
    Depthwise,
    /// Winograd's method.
    Winograd(winograd::Setup),
    /// A depthwise window that makes what it reads.
    Chain(Chain),
    /// A 1x1 convolution that makes what it reads.
    Separable(Separable),
    /// A product that makes its left side.
    Block(Block),
    /// A window of maxima that makes what it reads, a convolution by Winograd's method along one axis.
    Pooled(Pooled, winograd::Setup),
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
    pub fn recipe(&mut self, look: &Look<'_>, fused: &Fused, at: Key) -> Result<Recipe> {
        let (comp, id) = (look.comp, at.1);
        let anchor = fused.fusion.anchor[id].unwrap_or(id);
        if let Some(rows) = fused.fusion.rows[id] {
            return Ok(Recipe::Rows(rows));
        }
        match fused.within.get(&id) {
            Some(Within::Pooled(pooled)) => {
                let convolution = (at.0, pooled.convolution);
                let setup = self.winograd(look, convolution).ok_or_else(|| refuse(comp, id, ""))?;
                return Ok(Recipe::Pooled(pooled.clone(), setup));
            }
            Some(Within::Chain(chain)) => return Ok(Recipe::Chain(chain.clone())),
            Some(Within::Separable(separable)) => return Ok(Recipe::Separable(separable.clone())),
            Some(Within::Block(block)) => return Ok(Recipe::Block(block.clone())),
            None => {}
        }
        Ok(match &comp[anchor].op {
            Op::Dot(_) if comp.array(anchor).elements() == 0 => Recipe::Nothing,
            Op::Dot(_) => Recipe::Product,
            Op::Convolution(d) => return self.convolution(look, (at, anchor), d),
            Op::ReduceWindow { window, comp: folder } => {
                let operands = &comp[anchor].operands;
                let regroups = operands.len() == 2 && look.module.comps[*folder].fold().is_some();
                let scan = Scan::of(window, &comp.array(operands[0]).dims, regroups);
                scan.map_or(Recipe::Reduce, Recipe::Scan)
            }
            Op::Reduce { .. } => Recipe::Reduce,
            Op::Concatenate(axis) => Recipe::Concatenate(*axis),
            Op::Scatter { .. } => Recipe::Scatter,
            Op::SelectAndScatter { .. } => Recipe::SelectAndScatter,
            Op::Cholesky { .. } => Recipe::Cholesky,
            Op::TriangularSolve { .. } => Recipe::TriangularSolve,
            Op::Sort { .. } => Recipe::Sort,
            Op::TopK { .. } => Recipe::TopK,
            Op::DynamicUpdateSlice => Recipe::Update,
            Op::Elementwise(_)
            | Op::Map { .. }
            | Op::Broadcast(_)
            | Op::Reshape
            | Op::Bitcast
            | Op::Copy
            | Op::OptimizationBarrier
            | Op::Transpose(_)
            | Op::Reverse(_)
            | Op::Slice(_)
            | Op::Pad(_)
            | Op::Iota(_)
            | Op::DynamicSlice(_)
            | Op::Gather(_) => Recipe::Pointwise,
            _ => return Err(refuse(comp, id, " yet")),
        })
    }

    /// That of the convolution `anchor`, which root `at` is or ends in.
    fn convolution(&mut self, look: &Look<'_>, (at, anchor): (Key, InstId), d: &ConvDims) -> Result<Recipe> {
        let (comp, key) = (look.comp, (at.0, anchor));
        if d.batch_group_count != 1 {
            return Err(refuse(comp, at.1, " with batch groups"));
        }
        if comp.array(anchor).elements() == 0 {
            return Ok(Recipe::Nothing);
        }
        let convolution = &look.convolutions[&anchor];
        Ok(match &convolution.way {
            Way::Winograd(_) => {
                let setup = self.winograd(look, key).ok_or_else(|| refuse(comp, at.1, ""))?;
                Recipe::Winograd(setup)
            }
            Way::Depthwise { .. } => Recipe::Depthwise,
            Way::Direct { .. } if d.feature_group_count > MOST_GROUPS => {
                let why =
                    format!(" in {} groups of several channels each (at most {MOST_GROUPS})", d.feature_group_count);
                return Err(refuse(comp, at.1, &why));
            }
            Way::Direct { .. } => Recipe::Direct(self.direct(look, key, d, convolution)),
        })
    }

    fn direct(&self, look: &Look<'_>, (comp_id, id): Key, d: &ConvDims, convolution: &Convolution) -> Direct {
        let comp = look.comp;
        let asked = comp_id == self.module.entry && self.choices.in_parts.contains(&comp[id].operands[0]);
        let at_edges = convolution.at_edges.clone().filter(|_| asked);
        let is_at_edges = at_edges.is_some();
        let phases = at_edges.or_else(|| phases::split(comp, id, d)).unwrap_or_else(|| {
            let axes = d.output_spatial.iter().zip(&d.window);
            axes.map(|(&axis, w)| vec![Phase::only(comp.array(id).dims[axis], w.size)]).collect()
        });
        Direct { at_edges: is_at_edges, phases }
    }

    /// Winograd's method for convolution `key`, where that is its way. Weights are transformed at compile time where that was asked
    /// for; along both axes of a window, too, where the constants may still grow by them.
    fn winograd(&mut self, look: &Look<'_>, key: Key) -> Option<winograd::Setup> {
        let (Way::Winograd(w), Op::Convolution(d)) = (&look.convolutions[&key.1].way, &look.comp[key.1].op) else {
            return None;
        };
        let more = w.grown_bytes();
        let is_spare = !w.is_line() && more <= self.spare_bytes;
        // weights that are asked to be small are not made larger
        let is_known = (is_spare || self.choices.known.contains(&key)) && w.weights.numbers.dtype == DType::F32;
        if is_known && is_spare {
            self.spare_bytes -= more;
        }
        let room = self.choices.rooms.get(&key).copied();
        Some(winograd::Setup::new(w.clone(), d, is_known, room, self.target))
    }
}
