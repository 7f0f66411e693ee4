//! How elements are folded from others: by planes of pixels, whose sums may be there already, or where the lanes of vectors lie.
use super::asked::Asked;
use super::fold::simple_fold;
use super::fuse::{FEW_COLUMNS, Fate};
use super::planes::Planes;
use crate::diag::Result;
use crate::hlo::{CompId, Op};
use crate::scalar::ScalarOp;
use crate::schedule::refuse;
use crate::target::Target;

/// A reduction or a window.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The computation that folds two.
    pub comp: CompId,
    /// The op that it applies, where it is one that is known to be associative.
    pub simple: Option<ScalarOp>,
    /// The planes that are summed, where that may be done in parts.
    pub planes: Option<(Planes, Parts)>,
    /// Where the lanes of vectors lie, if it is not done in parts.
    pub lanes: Lanes,
}

/// The parts of planes of which there are sums first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// What makes the planes leaves a sum of each tile or band of them.
    Left,
    /// Bands of rows, if threads share rows when the planes are made, which the kernels of those say.
    Bands,
}

/// Where the lanes of vectors lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Along the innermost dimension, which is folded: vectors of partial results.
    Terms,
    /// Along short rows, each folded by a lane of its own.
    ShortRows,
    /// Along the innermost dimension of the result.
    Results,
    /// Along windows of one axis.
    Windows,
    /// There are none: one element after another.
    None,
}

impl Reduction {
    /// That of the anchor, where it is one. Errors: `Code::HloUnsupported` where nothing is called.
    pub fn of(asked: &Asked<'_>, target: &Target) -> Result<Option<Reduction>> {
        let (comp, anchor) = (asked.look.comp, asked.anchor);
        let op = asked.op();
        if !matches!(op, Op::Reduce { .. } | Op::ReduceWindow { .. }) {
            return Ok(None);
        }
        let called = op.called().first().copied().ok_or_else(|| refuse(comp, asked.id, ""))?;
        let operands = &comp[anchor].operands;
        let simple = simple_fold(&asked.look.module.comps[called]).filter(|_| operands.len() == 2);
        let planes = Planes::of(comp, anchor).filter(|_| simple == Some(ScalarOp::Add));
        let planes = planes.and_then(|planes| {
            let parts = match asked.fused.fusion.fate[planes.input] {
                _ if asked.summed.contains(&planes.input) => Parts::Left,
                Fate::Materialised => Parts::Bands,
                Fate::Inlined(_) => return None,
            };
            Some((planes, parts))
        });
        let lanes = lanes(asked, simple.is_some(), target);
        Ok(Some(Reduction { comp: called, simple, planes, lanes }))
    }
}

/// Where lanes lie, of a fold that is `simple` or not.
fn lanes(asked: &Asked<'_>, is_simple: bool, target: &Target) -> Lanes {
    let comp = asked.look.comp;
    let Op::Reduce { dims: axes, .. } = asked.op() else { return Lanes::Windows };
    let input = comp.array(comp[asked.anchor].operands[0]);
    let shape = &comp[asked.anchor].shape;
    let dims = shape.leaves().first().map_or(&[][..], |a| &a.dims);
    let is_folded = input.rank().checked_sub(1).is_some_and(|last| axes.contains(&last));
    let minor = dims.last().copied().unwrap_or(1);
    let terms = input.elements() / dims.iter().product::<u64>().max(1);
    match (is_folded, is_simple) {
        (true, true) if terms <= FEW_COLUMNS && minor >= target.lanes(input.dtype.bytes() as u64) => Lanes::ShortRows,
        (true, true) => Lanes::Terms,
        (true, false) => Lanes::None,
        (false, _) if dims.is_empty() => Lanes::None,
        (false, _) => Lanes::Results,
    }
}
