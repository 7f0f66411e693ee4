//! The parameters of a reduction: where the lanes of vectors lie, and which sums over planes of pixels are made of parts.
use crate::diag::Result;
use crate::hlo::{CompId, Op};
use crate::scalar::ScalarOp;
use crate::schedule::families::plane_sums::recipe::PlaneSum;
use crate::schedule::plan::fold::associative_op;
use crate::schedule::plan::fuse::{FEW_COLUMNS, FusionDecision};
use crate::schedule::plan::request::RecipeRequest;
use crate::schedule::target::KernelTarget;
use crate::schedule::unsupported_error;
use std::fmt;

/// Parameters of a reduction or window.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The computation that combines two values.
    pub comp: CompId,
    /// The scalar op of that computation, if it is a single associative one.
    pub simple: Option<ScalarOp>,
    /// The planes of pixels that are summed and their parts, if partial sums are used.
    pub planes: Option<(PlaneSum, PartialSumSource)>,
    /// Direction of vectorization where partial sums are not used.
    pub lanes: VectorDirection,
}

/// Origin of the partial sums of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialSumSource {
    /// Sums of tiles or bands, which the kernel that makes the planes stores too.
    Left,
    /// Sums of bands of rows, by a kernel of their own, if threads share the rows of a plane in the kernel that makes it.
    Bands,
}

/// Direction of vectorization of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorDirection {
    /// Along the innermost dimension, which is reduced: lanes hold partial results.
    Terms,
    /// Across short rows: each lane reduces one row.
    ShortRows,
    /// Along the innermost dimension of the result.
    Results,
    /// Lanes run along the windows of one axis.
    Windows,
    /// Scalar: results are computed one after another.
    None,
}

impl Reduction {
    /// The parameters of a root whose anchor is a reduction or window; `None` for other anchors.
    ///
    /// # Errors
    /// `Code::HloUnsupported` if the instruction calls no computation.
    pub fn choose(request: &RecipeRequest<'_>, target: &KernelTarget<'_>) -> Result<Option<Reduction>> {
        let (comp, anchor) = (request.context.comp, request.anchor);
        let op = request.op();
        if !matches!(op, Op::Reduce { .. } | Op::ReduceWindow { .. }) {
            return Ok(None);
        }
        let called =
            op.called_computations().first().copied().ok_or_else(|| unsupported_error(comp, request.id, ""))?;
        let operands = &comp[anchor].operands;
        let simple = associative_op(&request.context.module.comps[called]).filter(|_| operands.len() == 2);
        let planes = PlaneSum::recognize(comp, anchor).filter(|_| simple == Some(ScalarOp::Add));
        let planes = planes.and_then(|planes| {
            let parts = match request.fused.fusion.decision[planes.input] {
                _ if request.summed.contains(&planes.input) => PartialSumSource::Left,
                FusionDecision::Materialised => PartialSumSource::Bands,
                FusionDecision::Inlined(_) => return None,
            };
            Some((planes, parts))
        });
        let lanes = lanes(request, simple.is_some(), target);
        Ok(Some(Reduction { comp: called, simple, planes, lanes }))
    }
}

/// Chooses the direction of vectorization, for a computation that is one associative op (`is_simple`) or not.
fn lanes(request: &RecipeRequest<'_>, is_simple: bool, target: &KernelTarget<'_>) -> VectorDirection {
    let comp = request.context.comp;
    let Op::Reduce { dims: axes, .. } = request.op() else { return VectorDirection::Windows };
    let input = comp.array_shape(comp[request.anchor].operands[0]);
    let shape = &comp[request.anchor].shape;
    let dims = shape.leaves().first().map_or(&[][..], |a| &a.dims);
    let is_folded = input.rank().checked_sub(1).is_some_and(|last| axes.contains(&last));
    let minor = dims.last().copied().unwrap_or(1);
    let terms = input.elements() / dims.iter().product::<u64>().max(1);
    match (is_folded, is_simple) {
        (true, true) if terms <= FEW_COLUMNS && minor >= target.machine().lanes(input.dtype.bytes() as u64) => {
            VectorDirection::ShortRows
        }
        (true, true) => VectorDirection::Terms,
        (true, false) => VectorDirection::None,
        (false, _) if dims.is_empty() => VectorDirection::None,
        (false, _) => VectorDirection::Results,
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = match self.lanes {
            VectorDirection::Terms => "lanes along terms",
            VectorDirection::ShortRows => "lanes along short rows",
            VectorDirection::Results => "lanes along results",
            VectorDirection::Windows => "lanes along windows",
            VectorDirection::None => "without lanes",
        };
        match &self.planes {
            Some((_, PartialSumSource::Left)) => f.write_str("of sums that are left of planes"),
            Some((_, PartialSumSource::Bands)) => write!(f, "in bands of planes, if rows are shared, else {lanes}"),
            None => f.write_str(lanes),
        }
    }
}
