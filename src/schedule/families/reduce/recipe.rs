//! The parameters of a reduction: where the lanes of vectors lie, and which sums over planes of pixels are made of parts.
use crate::diag::Result;
use crate::hlo::{CompId, Op};
use crate::scalar::ScalarOp;
use crate::schedule::families::plane_sums::recipe::Planes;
use crate::schedule::plan::fold::simple_fold;
use crate::schedule::plan::fuse::{FEW_COLUMNS, FusionDecision};
use crate::schedule::plan::request::RecipeRequest;
use crate::schedule::refuse;
use crate::schedule::target::KernelTarget;
use std::fmt;

/// A reduction or a window.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The computation that combines two values.
    pub comp: CompId,
    /// The scalar op of that computation, where it is a single associative one.
    pub simple: Option<ScalarOp>,
    /// The planes of pixels that are summed, where their sums may be made of parts.
    pub planes: Option<(Planes, Parts)>,
    /// Where the lanes of vectors lie, if the sums are not made of parts.
    pub lanes: Lanes,
}

/// The parts of a plane that are summed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Tiles or bands, whose sums the kernel leaves that makes the planes.
    Left,
    /// Bands of rows, where threads share the rows of a plane in the kernel that makes it.
    Bands,
}

/// Where the lanes of vectors lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Along the innermost dimension, which is folded: lanes hold partial results.
    Terms,
    /// Along short rows: each lane folds one row.
    ShortRows,
    /// Along the innermost dimension of the result.
    Results,
    /// Along the windows of one axis.
    Windows,
    /// Nowhere: results are folded one after another.
    None,
}

impl Reduction {
    /// The parameters for a root whose anchor is a reduction or window; `None` for other anchors.
    ///
    /// # Errors
    /// `Code::HloUnsupported` where the instruction calls no computation.
    pub fn of(request: &RecipeRequest<'_>, target: &KernelTarget<'_>) -> Result<Option<Reduction>> {
        let (comp, anchor) = (request.context.comp, request.anchor);
        let op = request.op();
        if !matches!(op, Op::Reduce { .. } | Op::ReduceWindow { .. }) {
            return Ok(None);
        }
        let called = op.called().first().copied().ok_or_else(|| refuse(comp, request.id, ""))?;
        let operands = &comp[anchor].operands;
        let simple = simple_fold(&request.context.module.comps[called]).filter(|_| operands.len() == 2);
        let planes = Planes::of(comp, anchor).filter(|_| simple == Some(ScalarOp::Add));
        let planes = planes.and_then(|planes| {
            let parts = match request.fused.fusion.decision[planes.input] {
                _ if request.summed.contains(&planes.input) => Parts::Left,
                FusionDecision::Materialised => Parts::Bands,
                FusionDecision::Inlined(_) => return None,
            };
            Some((planes, parts))
        });
        let lanes = lanes(request, simple.is_some(), target);
        Ok(Some(Reduction { comp: called, simple, planes, lanes }))
    }
}

/// Where lanes lie, for a computation that is one associative op or not.
fn lanes(request: &RecipeRequest<'_>, is_simple: bool, target: &KernelTarget<'_>) -> Lanes {
    let comp = request.context.comp;
    let Op::Reduce { dims: axes, .. } = request.op() else { return Lanes::Windows };
    let input = comp.array(comp[request.anchor].operands[0]);
    let shape = &comp[request.anchor].shape;
    let dims = shape.leaves().first().map_or(&[][..], |a| &a.dims);
    let is_folded = input.rank().checked_sub(1).is_some_and(|last| axes.contains(&last));
    let minor = dims.last().copied().unwrap_or(1);
    let terms = input.elements() / dims.iter().product::<u64>().max(1);
    match (is_folded, is_simple) {
        (true, true) if terms <= FEW_COLUMNS && minor >= target.machine().lanes(input.dtype.bytes() as u64) => {
            Lanes::ShortRows
        }
        (true, true) => Lanes::Terms,
        (true, false) => Lanes::None,
        (false, _) if dims.is_empty() => Lanes::None,
        (false, _) => Lanes::Results,
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = match self.lanes {
            Lanes::Terms => "lanes along terms",
            Lanes::ShortRows => "lanes along short rows",
            Lanes::Results => "lanes along results",
            Lanes::Windows => "lanes along windows",
            Lanes::None => "without lanes",
        };
        match &self.planes {
            Some((_, Parts::Left)) => f.write_str("of sums that are left of planes"),
            Some((_, Parts::Bands)) => write!(f, "in bands of planes, if rows are shared, else {lanes}"),
            None => f.write_str(lanes),
        }
    }
}
