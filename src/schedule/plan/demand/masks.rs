//! Demand behind masks: where a `select` takes its second operand for the first elements along an axis alone, nothing is needed of that
//! operand behind them.
use crate::hlo::{InstId, Literal, Op};
use crate::scalar::{Direction, ScalarOp};
use crate::schedule::plan::demand::PrefixBound;
use crate::schedule::plan::demand::amount::{CallFrame, DynamicSizes, SearchBudget};
use crate::schedule::plan::demand::operands::reshape_bounds;
use crate::tensor::DType;

/// For each axis of a `pred` array, a bound below which all its true elements lie.
pub fn mask_bounds(frame: &CallFrame, pred: InstId, amounts: &mut DynamicSizes) -> Vec<Option<PrefixBound>> {
    let rank = frame.comp[pred].shape.as_array().map_or(0, |a| a.rank());
    bounds_of_mask(frame, pred, amounts, &mut SearchBudget::new()).unwrap_or_else(|| vec![None; rank])
}

fn bounds_of_mask(
    frame: &CallFrame,
    pred: InstId,
    amounts: &mut DynamicSizes,
    looks: &mut SearchBudget,
) -> Option<Vec<Option<PrefixBound>>> {
    frame.at_definition(pred, looks, &mut |frame, inst, looks| {
        let dims = &inst.shape.as_array()?.dims;
        let inner = |looks: &mut SearchBudget, amounts: &mut DynamicSizes| {
            bounds_of_mask(frame, *inst.operands.first()?, amounts, looks)
        };
        match &inst.op {
            Op::Elementwise(ScalarOp::And) => {
                let one = inner(looks, amounts);
                let other = bounds_of_mask(frame, inst.operands[1], amounts, looks);
                let none = || vec![None; dims.len()];
                let both = one.unwrap_or_else(none).into_iter().zip(other.unwrap_or_else(none));
                Some(both.map(|(a, b)| intersect_bounds(a, b)).collect())
            }
            Op::Elementwise(ScalarOp::Compare(direction, _)) => {
                let (place, limit, more) = match direction {
                    Direction::Lt => (0, 1, 0),
                    Direction::Le => (0, 1, 1),
                    Direction::Gt => (1, 0, 0),
                    Direction::Ge => (1, 0, 1),
                    Direction::Eq | Direction::Ne => return None,
                };
                let axis = axis_of(frame, inst.operands[place], looks)?;
                let below = amounts.intern_bound(frame.dynamic_size_of(inst.operands[limit], looks)?);
                let mut bounds = vec![None; dims.len()];
                *bounds.get_mut(axis)? = Some(PrefixBound { more: below.more.checked_add(more)?, ..below });
                Some(bounds)
            }
            Op::Broadcast(to) => {
                let mut bounds = vec![None; dims.len()];
                to.iter().zip(inner(looks, amounts)?).for_each(|(&axis, bound)| bounds[axis] = bound);
                Some(bounds)
            }
            Op::Reshape | Op::Bitcast => {
                let from = &frame.comp[inst.operands[0]].shape.as_array()?.dims;
                Some(reshape_bounds(&inner(looks, amounts)?, from, dims))
            }
            _ => None,
        }
    })
}

/// A bound of the elements below both bounds: the smaller one if both are of the same dynamic size, else the first that is known.
pub fn intersect_bounds(a: Option<PrefixBound>, b: Option<PrefixBound>) -> Option<PrefixBound> {
    match (a, b) {
        (Some(a), Some(b)) if a.size == b.size && (b.times < a.times || (b.times == a.times && b.more < a.more)) => {
            Some(b)
        }
        (a, b) => a.or(b),
    }
}

/// The axis along which the elements of an array are their own indices (an iota).
fn axis_of(frame: &CallFrame, id: InstId, looks: &mut SearchBudget) -> Option<usize> {
    frame.at_definition(id, looks, &mut |frame, inst, looks| match &inst.op {
        Op::Iota(axis) => Some(*axis),
        Op::Broadcast(to) => to.get(axis_of(frame, inst.operands[0], looks)?).copied(),
        Op::Constant(Literal::Array(t)) if t.dtype == DType::S32 && t.dims.len() == 1 => {
            t.to_vec::<i32>().iter().enumerate().all(|(i, &n)| i64::from(n) == i as i64).then_some(0)
        }
        _ => None,
    })
}
