//! Upper bounds on the trip count (number of iterations) of loops that compare an integer counter with a constant.
use crate::hlo::{CompId, Computation, InstId, Literal, Module, Op};
use crate::scalar::{Direction, ScalarOp};
use crate::schedule::plan::loop_state::invariant_elements;
use crate::tensor::DType;
use std::collections::HashSet;

/// A loop whose state is a tuple of arrays.
struct CountedLoop<'m> {
    outer: &'m Computation,
    init: InstId,
    cond: &'m Computation,
    body: &'m Computation,
    /// The elements of the state that no iteration changes.
    fixed: HashSet<usize>,
}

/// An upper bound on the trip count of the loop `id` of `comp`: that of a condition `counter < limit`, or another comparison, in which each
/// iteration adds a constant to the counter. `None` if the condition has no such term.
pub fn max_trip_count(module: &Module, comp: &Computation, id: InstId) -> Option<u64> {
    let Op::While { cond, body } = comp[id].op else { return None };
    let of = |id: CompId| &module.comps[id];
    let (cond, body) = (of(cond), of(body));
    let parts = body[*body.params.first()?].shape.as_tuple()?;
    if parts.iter().any(|part| part.as_array().is_none()) {
        return None;
    }
    let init = *comp[id].operands.first()?;
    let counted = CountedLoop { outer: comp, init, cond, body, fixed: invariant_elements(body) };
    counted.bound_of_condition(cond.root)
}

impl CountedLoop<'_> {
    /// The bound on the trip count from the term `id` of the condition: the smaller one of two that must both hold.
    fn bound_of_condition(&self, id: InstId) -> Option<u64> {
        let inst = &self.cond[id];
        match (&inst.op, &inst.operands[..]) {
            (Op::Elementwise(ScalarOp::And), &[x, y]) => {
                [x, y].into_iter().filter_map(|term| self.bound_of_condition(term)).min()
            }
            (&Op::Elementwise(ScalarOp::Compare(direction, _)), &[x, y]) => {
                let bound = |counter, limit, direction| self.bound_of_comparison(counter, limit, direction);
                bound(x, y, direction).or_else(|| bound(y, x, direction.with_swapped_operands()))
            }
            _ => None,
        }
    }

    /// The bound on the trip count from the term `counter direction limit` of the condition, a comparison of two of its instructions.
    fn bound_of_comparison(&self, counter: InstId, limit: InstId, direction: Direction) -> Option<u64> {
        let part = state_element(self.cond, counter)?;
        let dtype = self.cond.array_shape(counter).dtype;
        let (start, limit) = (self.initial_value(part)?, self.constant(self.cond, limit)?);
        trip_count(dtype, start, self.increment(part)?, direction, limit)
    }

    /// The constant that each iteration adds to element `part` of the state.
    fn increment(&self, part: usize) -> Option<i128> {
        let root = &self.body[self.body.root];
        let next = &self.body[*root.operands.get(part).filter(|_| root.op == Op::Tuple)?];
        let &[x, y] = &next.operands[..] else { return None };
        let is_counter = |id: InstId| state_element(self.body, id) == Some(part);
        match next.op {
            Op::Elementwise(ScalarOp::Add) if is_counter(x) => self.constant(self.body, y),
            Op::Elementwise(ScalarOp::Add) if is_counter(y) => self.constant(self.body, x),
            Op::Elementwise(ScalarOp::Subtract) if is_counter(x) => Some(-self.constant(self.body, y)?),
            _ => None,
        }
    }

    /// The value of an instruction of the condition or the body that is the same in all iterations and known.
    fn constant(&self, comp: &Computation, id: InstId) -> Option<i128> {
        match state_element(comp, id) {
            Some(part) => self.initial_value(part).filter(|_| self.fixed.contains(&part)),
            None => literal(comp, id),
        }
    }

    /// The value of element `part` of the state before the first iteration, if it is a known integer.
    fn initial_value(&self, part: usize) -> Option<i128> {
        let init = &self.outer[self.init];
        match &init.op {
            Op::Tuple => literal(self.outer, *init.operands.get(part)?),
            Op::Constant(Literal::Tuple(parts)) => integer(parts.get(part)?),
            _ => None,
        }
    }
}

/// The index of the tuple element that `id` extracts from the only parameter of its computation.
fn state_element(comp: &Computation, id: InstId) -> Option<usize> {
    match comp[id].op {
        Op::GetTupleElement(part) if comp.params.len() == 1 && comp[id].operands == comp.params => Some(part),
        _ => None,
    }
}

fn literal(comp: &Computation, id: InstId) -> Option<i128> {
    match &comp[id].op {
        Op::Constant(value) => integer(value),
        _ => None,
    }
}

/// The value of a scalar integer of any type whose values all fit in `i64`.
fn integer(value: &Literal) -> Option<i128> {
    match value {
        Literal::Array(t) if t.dims.is_empty() && t.dtype.is_integer() && t.dtype != DType::U64 => {
            t.get_i64(0).map(i128::from)
        }
        Literal::Array(_) | Literal::Tuple(_) | Literal::Token => None,
    }
}

/// Number of iterations of a counter of type `dtype` that begins at `start`, changes by `step` and goes on while `counter direction limit`;
/// `None` if it does not end before the counter overflows.
fn trip_count(dtype: DType, start: i128, step: i128, direction: Direction, limit: i128) -> Option<u64> {
    // the distance to the first value for which the condition fails, in the direction of the step
    let way = match direction {
        Direction::Lt if step > 0 => limit - start,
        Direction::Le if step > 0 => limit + 1 - start,
        Direction::Gt if step < 0 => start - limit,
        Direction::Ge if step < 0 => start - limit + 1,
        Direction::Ne if step != 0 && (limit - start) % step == 0 && (limit - start) / step >= 0 => {
            (limit - start) * step.signum()
        }
        _ => return None,
    };
    let rounds = (way.max(0) + step.abs() - 1) / step.abs();
    let bits = dtype.bits();
    let (least, most) =
        if dtype.is_signed() { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    let last = start + rounds * step;
    if !(least..=most).contains(&last) {
        return None;
    }
    u64::try_from(rounds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_go_up_and_down_to_a_limit() {
        let of = |start, step, direction, limit| trip_count(DType::S32, start, step, direction, limit);
        assert_eq!(of(0, 1, Direction::Lt, 10), Some(10));
        assert_eq!(of(0, 3, Direction::Lt, 10), Some(4));
        assert_eq!(of(0, 3, Direction::Le, 9), Some(4));
        assert_eq!(of(9, -2, Direction::Gt, 0), Some(5));
        assert_eq!(of(9, -2, Direction::Ge, 1), Some(5));
        assert_eq!(of(20, 1, Direction::Lt, 10), Some(0));
        assert_eq!(of(0, 2, Direction::Ne, 10), Some(5));
        assert_eq!(of(10, -2, Direction::Ne, 0), Some(5));
    }

    #[test]
    fn what_does_not_end_has_no_count() {
        let of = |dtype, start, step, direction, limit| trip_count(dtype, start, step, direction, limit);
        assert_eq!(of(DType::S32, 0, -1, Direction::Lt, 10), None);
        assert_eq!(of(DType::S32, 0, 0, Direction::Lt, 10), None);
        assert_eq!(of(DType::S32, 0, 3, Direction::Ne, 10), None);
        assert_eq!(of(DType::S32, 0, 1, Direction::Eq, 0), None);
        // behind 127 comes -128
        assert_eq!(of(DType::S8, 0, 1, Direction::Le, 127), None);
        assert_eq!(of(DType::S8, 0, 1, Direction::Lt, 127), Some(127));
        assert_eq!(of(DType::U8, 5, -1, Direction::Ge, 0), None);
    }
}
