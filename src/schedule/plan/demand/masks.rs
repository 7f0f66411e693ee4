//! Demand behind masks: where a `select` takes its second operand for the first elements along an axis alone, nothing is needed of that
//! operand behind them.
use crate::hlo::{InstId, Literal, Op};
use crate::scalar::{Direction, ScalarOp};
use crate::schedule::plan::demand::Bound;
use crate::schedule::plan::demand::amount::{Amounts, Frame, SearchBudget};
use crate::schedule::plan::demand::operands::through_reshape;
use crate::tensor::DType;

/// For each axis of a `pred` array, a bound from which on it is false.
pub fn bounds(frame: &Frame, pred: InstId, amounts: &mut Amounts) -> Vec<Option<Bound>> {
    let rank = frame.comp[pred].shape.as_array().map_or(0, |a| a.rank());
    bounds_of_mask(frame, pred, amounts, &mut SearchBudget::new()).unwrap_or_else(|| vec![None; rank])
}

fn bounds_of_mask(
    frame: &Frame,
    pred: InstId,
    amounts: &mut Amounts,
    looks: &mut SearchBudget,
) -> Option<Vec<Option<Bound>>> {
    frame.at_source(pred, looks, &mut |frame, inst, looks| {
        let dims = &inst.shape.as_array()?.dims;
        let inner = |looks: &mut SearchBudget, amounts: &mut Amounts| {
            bounds_of_mask(frame, *inst.operands.first()?, amounts, looks)
        };
        match &inst.op {
            Op::Elementwise(ScalarOp::And) => {
                let one = inner(looks, amounts);
                let other = bounds_of_mask(frame, inst.operands[1], amounts, looks);
                let none = || vec![None; dims.len()];
                let both = one.unwrap_or_else(none).into_iter().zip(other.unwrap_or_else(none));
                Some(both.map(|(a, b)| both_of(a, b)).collect())
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
                let below = amounts.intern_bound(frame.amount_of(inst.operands[limit], looks)?);
                let mut bounds = vec![None; dims.len()];
                *bounds.get_mut(axis)? = Some(Bound { more: below.more.checked_add(more)?, ..below });
                Some(bounds)
            }
            Op::Broadcast(to) => {
                let mut bounds = vec![None; dims.len()];
                to.iter().zip(inner(looks, amounts)?).for_each(|(&axis, bound)| bounds[axis] = bound);
                Some(bounds)
            }
            Op::Reshape | Op::Bitcast => {
                let from = &frame.comp[inst.operands[0]].shape.as_array()?.dims;
                Some(through_reshape(&inner(looks, amounts)?, from, dims))
            }
            _ => None,
        }
    })
}

/// A bound that holds where both do: the smaller one if they are of the same size.
pub fn both_of(a: Option<Bound>, b: Option<Bound>) -> Option<Bound> {
    match (a, b) {
        (Some(a), Some(b)) if a.size == b.size && (b.times < a.times || (b.times == a.times && b.more < a.more)) => {
            Some(b)
        }
        (a, b) => a.or(b),
    }
}

/// The axis along which the elements of an array are their own indices (an iota).
fn axis_of(frame: &Frame, id: InstId, looks: &mut SearchBudget) -> Option<usize> {
    frame.at_source(id, looks, &mut |frame, inst, looks| match &inst.op {
        Op::Iota(axis) => Some(*axis),
        Op::Broadcast(to) => to.get(axis_of(frame, inst.operands[0], looks)?).copied(),
        Op::Constant(Literal::Array(t)) if t.dtype == DType::S32 && t.dims.len() == 1 => {
            t.to_vec::<i32>().iter().enumerate().all(|(i, &n)| i64::from(n) == i as i64).then_some(0)
        }
        _ => None,
    })
}
