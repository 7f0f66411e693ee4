//! Upper bounds on the trip count (number of iterations) of loops, from conditions that compare an induction variable with a number.
use super::captured_state::CapturedState;
use super::convergence::{condition_dependencies, rounds_until_fixed_point};
use super::increments::{Increment, state_increment};
use super::walker::{ValueSlot, Walker};
use crate::diag::Result;
use crate::graph::FuncRef;
use crate::hlo::symbolic::{Dim, InstId, Op};
use crate::ops::Value;
use crate::ops::range::{self, IntRange};
use crate::ops::spec::ValueSpec;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;
use std::collections::BTreeSet;

/// Upper bound on the terms of a condition that are analyzed.
const MAX_CONDITION_TERMS: usize = 64;

/// Necessary condition for another iteration of a loop: `state[part] direction number`, such as `state[2] < 10`.
struct Limit {
    /// Index in the state tuple of the variable on the left-hand side.
    part: usize,
    direction: Direction,
    /// Right-hand side of the comparison: a constant, or the conservative end of the range of a value of which only the range is known.
    number: i64,
    /// Whether `number` holds only where no operation wraps around.
    may_overflow: bool,
}

/// Integer limits of loop variables that hold while a loop's condition does, and the variables that the condition reads.
struct Limits {
    limits: Vec<Limit>,
    /// Indices of the state elements that the condition reads; `None` if it depends on anything else.
    read_by_condition: Option<BTreeSet<usize>>,
}

/// Specs and integer ranges of the values that are passed to a computation.
pub(super) struct ParameterFacts {
    /// Specs of the parameters of a computation.
    pub specs: Vec<ValueSpec>,
    /// Range of each leaf (array) of the parameter tuple; `None` unless it is an integer scalar that the loop does not change.
    pub ranges: Vec<Option<IntRange>>,
    /// Range of each leaf (array) at the beginning of the loop's body, where the condition holds. Unlike `ranges`, these include integers
    /// that the loop changes.
    pub body_ranges: Vec<Option<IntRange>>,
}

impl ParameterFacts {
    /// For each leaf (array) of the parameter tuple, the index of the parameter that it is; `None` for a leaf that is only a part of its
    /// parameter, such as a list's buffer.
    fn leaf_values(&self) -> Vec<Option<usize>> {
        let place = |(i, spec): (usize, &ValueSpec)| {
            vec![matches!(spec, ValueSpec::Array(_)).then_some(i); spec.leaves().len()]
        };
        self.specs.iter().enumerate().flat_map(place).collect()
    }
}

impl Walker<'_> {
    /// Specs and ranges for passing `values` to a computation. Values that a loop does not change (`fixed`) keep their constants and
    /// ranges, others get their `wider` spec if there is one.
    pub fn parameter_facts(
        &mut self,
        values: &[Value],
        wider: &[Option<ValueSpec>],
        fixed: impl Fn(usize) -> bool,
    ) -> ParameterFacts {
        let mut specs = Vec::with_capacity(values.len());
        for (i, value) in values.iter().enumerate() {
            let known = if fixed(i) { self.constant_spec(value) } else { None };
            let wider = wider.get(i).cloned().flatten();
            specs.push(known.or(wider).unwrap_or_else(|| self.value_spec(value)));
        }
        let mut facts = ParameterFacts { specs, ranges: Vec::new(), body_ranges: Vec::new() };
        let range = |part: Option<usize>| part.filter(|&i| fixed(i)).and_then(|i| self.integer_range(&values[i]));
        facts.ranges = facts.leaf_values().into_iter().map(range).collect();
        facts.body_ranges = facts.ranges.clone();
        facts
    }

    /// Opens a computation with parameters of these specs and integer ranges, and returns the values in it.
    pub fn begin_ranged_computation(
        &mut self,
        name: &str,
        specs: &[ValueSpec],
        ranges: &[Option<IntRange>],
    ) -> Vec<Value> {
        let values = self.begin_computation(name, specs);
        self.ranges.enter_computation(&self.b, ranges.to_vec());
        values
    }

    /// Upper bound on the trip count that the user gave for a loop (`--rounds`), by the name of its body.
    pub fn user_trip_limit(&self, body: &FuncRef) -> Option<Dim> {
        self.program.rounds.get(&body.name).copied().map(Dim::from)
    }

    /// Range of an integer scalar; `None` for other values.
    fn integer_range(&self, value: &Value) -> Option<IntRange> {
        match value {
            Value::Array(id) if self.b.rank(*id) == 0 && matches!(self.b.dtype(*id), DType::S32 | DType::S64) => {
                Some(self.ranges.scalar_range(&self.b, *id))
            }
            _ => None,
        }
    }

    /// Upper bound on the trip count of a loop with the initial state `init`; `None` where no bound is known. Sources are comparisons of an
    /// induction variable with a number, the user's bound, and `allowed`; failing these, values that reach a fixed point. Sets the ranges
    /// of integers in the body, `facts.body_ranges`.
    pub fn max_trip_count(
        &mut self,
        cond: &FuncRef,
        body: &FuncRef,
        init: &[Value],
        facts: &mut ParameterFacts,
        reached: &CapturedState,
        allowed: Option<Dim>,
    ) -> Result<Option<Dim>> {
        let Limits { limits, read_by_condition } = self.condition_limits(cond, facts, reached)?;
        let parts = facts.leaf_values();
        let start = |part: usize| self.integer_range(&init[parts.get(part).copied()??]);
        let starts: Vec<Option<IntRange>> = (0..parts.len()).map(start).collect();
        let steps = self.state_increments(body, facts, reached)?;
        let rounds = limits.iter().filter_map(|limit| {
            let (start, step) = (starts.get(limit.part).copied()??, steps.get(limit.part).copied()??);
            trip_count(start, step, limit.direction, limit.number)
        });
        let is_inexact = |limit: &Limit| {
            limit.may_overflow || starts.get(limit.part).copied().flatten().is_some_and(|start| start.may_overflow)
        };
        let inexact = limits.iter().any(is_inexact);
        let told = self.user_trip_limit(body);
        let rounds = match rounds.chain(told).chain(allowed).min() {
            Some(rounds) => Some(rounds),
            None => self.trip_count_by_convergence(body, facts, reached, read_by_condition)?,
        };
        for part in (0..parts.len()).filter(|&part| facts.ranges[part].is_none()) {
            let Some(start) = starts[part] else { continue };
            let range = range_during_loop(start, steps.get(part).copied().flatten(), rounds);
            facts.body_ranges[part] = Some(range.with_overflow_if(inexact));
        }
        for limit in &limits {
            let Some(Some(range)) = facts.body_ranges.get_mut(limit.part) else { continue };
            match limit.direction {
                Direction::Lt => range.most = range.most.min(limit.number.saturating_sub(1)),
                Direction::Le => range.most = range.most.min(limit.number),
                Direction::Gt => range.least = range.least.max(limit.number.saturating_add(1)),
                Direction::Ge => range.least = range.least.max(limit.number),
                Direction::Eq | Direction::Ne => {}
            }
        }
        Ok(rounds)
    }

    /// Upper bound on the trip count of a terminating loop whose condition reads only values that reach a fixed point.
    fn trip_count_by_convergence(
        &mut self,
        body: &FuncRef,
        facts: &ParameterFacts,
        reached: &CapturedState,
        read_by_condition: Option<BTreeSet<usize>>,
    ) -> Result<Option<Dim>> {
        let (parts, rets) = (facts.leaf_values(), self.library_function(&body.name)?.rets.len());
        let Some(read_by_condition) = read_by_condition else { return Ok(None) };
        let own = |&part: &usize| parts.get(part).copied().flatten().filter(|&i| i < rets);
        let Some(wanted) = read_by_condition.iter().map(own).collect::<Option<Vec<usize>>>() else { return Ok(None) };
        let values = self.begin_ranged_computation("probe", &facts.specs, &facts.ranges);
        let after = self.lower_results_for_analysis(body, &values, reached, &wanted);
        let one = |(&part, value): (&usize, &ValueSlot)| match value {
            Some(Value::Array(id)) => rounds_until_fixed_point(&self.b, *id, part),
            _ => None,
        };
        let rounds: Option<Vec<Dim>> =
            after.as_ref().ok().and_then(|after| read_by_condition.iter().zip(after).map(one).collect());
        self.b.discard_computation();
        after?;
        Ok(rounds.and_then(|all| all.into_iter().max()).map(|n| n.max(1)))
    }

    /// Range of what an iteration adds to each element of a loop's state; `None` where that is not known.
    fn state_increments(
        &mut self,
        body: &FuncRef,
        facts: &ParameterFacts,
        reached: &CapturedState,
    ) -> Result<Vec<Option<Increment>>> {
        let parts = facts.leaf_values();
        let rets = self.library_function(&body.name)?.rets.len();
        let counts = |i: &usize| {
            let ValueSpec::Array(shape) = &facts.specs[*i] else { return false };
            shape.as_array().is_some_and(|a| a.dims.is_empty() && matches!(a.dtype, DType::S32 | DType::S64))
        };
        let wanted: Vec<usize> = (0..rets).filter(counts).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        // writes to lists need bounds of their indices, which are not known yet; any range will do for this probe
        let some: Vec<Option<IntRange>> = facts.ranges.iter().map(|r| r.or(Some(IntRange::single(0)))).collect();
        let values = self.begin_ranged_computation("probe", &facts.specs, &some);
        let after = self.lower_results_for_analysis(body, &values, reached, &wanted);
        let mut steps = vec![None; parts.len()];
        for (i, after) in wanted.into_iter().zip(after.iter().flatten()) {
            let part = parts.iter().position(|&p| p == Some(i));
            if let (Some(part), Some(Value::Array(id))) = (part, after) {
                steps[part] = state_increment(&self.b, *id, part);
            }
        }
        self.b.discard_computation();
        after?;
        Ok(steps)
    }

    /// Limits on single variables that follow from the conjuncts of a loop's condition.
    fn condition_limits(&mut self, cond: &FuncRef, facts: &ParameterFacts, reached: &CapturedState) -> Result<Limits> {
        let values = self.begin_ranged_computation("probe", &facts.specs, &facts.ranges);
        let before = std::mem::replace(&mut self.is_probing_condition, true);
        let test = self.call_with_captures(cond, &values, reached);
        self.is_probing_condition = before;
        let mut todo: Vec<InstId> = match &test {
            Ok(Some(results)) => {
                results.iter().take(1).filter_map(|v| if let Value::Array(id) = v { Some(*id) } else { None }).collect()
            }
            _ => Vec::new(),
        };
        let read_by_condition = todo.first().and_then(|&root| condition_dependencies(&self.b, root));
        let (mut found, mut seen) = (Vec::new(), 0);
        while let Some(id) = todo.pop() {
            seen += 1;
            let inst = &self.b.current_computation().insts[id];
            match &inst.op {
                Op::Elementwise(ScalarOp::And) if seen < MAX_CONDITION_TERMS => {
                    todo.extend(inst.operands.iter().copied())
                }
                Op::Elementwise(ScalarOp::Compare(direction, _)) => {
                    let (direction, x, y) = (*direction, inst.operands[0], inst.operands[1]);
                    found.extend(
                        self.comparison_limit(x, direction, y)
                            .or_else(|| self.comparison_limit(y, direction.with_swapped_operands(), x)),
                    );
                }
                Op::Reshape => todo.extend(inst.operands.iter().copied()),
                _ => {}
            }
        }
        self.b.discard_computation();
        test?;
        Ok(Limits { limits: found, read_by_condition })
    }

    fn comparison_limit(&self, variable: InstId, direction: Direction, bound: InstId) -> Option<Limit> {
        let part = range::parameter_element_index(&self.b, variable)?;
        let bound = self.ranges.scalar_range(&self.b, bound);
        let number = match direction {
            Direction::Lt | Direction::Le => bound.upper_bound()?,
            Direction::Gt | Direction::Ge => Some(bound.least).filter(|&least| least > i64::MIN)?,
            Direction::Eq | Direction::Ne => return None,
        };
        Some(Limit { part, direction, number, may_overflow: bound.may_overflow })
    }
}

/// Range, at the beginning of every iteration, of an integer that lies in `start` before the loop and to which each of at most `rounds`
/// iterations adds an amount in the range `step`.
fn range_during_loop(start: IntRange, step: Option<Increment>, rounds: Option<Dim>) -> IntRange {
    let Some((down, up)) = step else { return IntRange::ALL };
    let ((least, most), ends) = (start.bounds(), IntRange::ALL.bounds());
    let all = |step: i64, end: i128| match (step, rounds) {
        (0, _) => 0,
        (_, Some(rounds)) => i128::from(step) * i128::from(rounds.saturating_sub(1)),
        (_, None) => end,
    };
    let range = IntRange::new(least + all(down.min(0), ends.0), most + all(up.max(0), ends.1));
    let is_open = |step: i64, end: i64, none: i64| step != 0 && (rounds.is_none() || end == none);
    let may_overflow = is_open(down.min(0), start.least, i64::MIN) || is_open(up.max(0), start.most, i64::MAX);
    range.with_overflow_if(start.may_overflow || may_overflow)
}

/// Upper bound on the trip count of a loop whose induction variable begins in `start`, grows by an amount from `down` to `up` in each
/// iteration, and satisfies `variable direction number` while the loop runs. `None` if the loop may be infinite.
fn trip_count(start: IntRange, (down, up): Increment, direction: Direction, number: i64) -> Option<Dim> {
    // the smallest change gives the most iterations
    let step = if down > 0 { down } else { Some(up).filter(|&up| up < 0)? };
    let first = if step > 0 { start.least } else { start.upper_bound()? };
    if first == i64::MIN {
        return None;
    }
    let (start, step, number) = (i128::from(first), i128::from(step), i128::from(number));
    let distance = match direction {
        Direction::Lt if step > 0 => number - start,
        Direction::Le if step > 0 => number - start + 1,
        Direction::Gt if step < 0 => start - number,
        Direction::Ge if step < 0 => start - number + 1,
        _ => return None,
    };
    let step = step.abs();
    u64::try_from(((distance + step - 1) / step).max(0)).ok().map(Dim::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_counted() {
        assert_eq!(trip_count(IntRange::single(0), (1, 1), Direction::Lt, 4), Some(4.into()));
        assert_eq!(trip_count(IntRange::single(0), (3, 3), Direction::Lt, 4), Some(2.into()));
        assert_eq!(trip_count(IntRange::single(5), (-2, -2), Direction::Ge, 0), Some(3.into()));
        assert_eq!(trip_count(IntRange::single(0), (1, 3), Direction::Lt, 4), Some(4.into()));
        assert_eq!(trip_count(IntRange::single(0), (0, 1), Direction::Lt, 4), None, "it may stay");
        assert_eq!(trip_count(IntRange::single(9), (1, 1), Direction::Lt, 4), Some(0.into()));
        assert_eq!(trip_count(IntRange::single(0), (-1, -1), Direction::Lt, 4), None);
    }
}
