//! How many rounds a loop has at most, where its condition counts.
use super::convergence::{looked_at, rounds_to_rest};
use super::holders::CapturedState;
use super::steps::{Increment, added};
use super::walker::{Slot, Walker};
use crate::diag::Result;
use crate::graph::FuncRef;
use crate::hlo::open::{Dim, InstId, Op};
use crate::ops::Value;
use crate::ops::range::{self, Range};
use crate::ops::spec::ValueSpec;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;
use std::collections::BTreeSet;

/// No more parts of a condition are looked at.
const MOST_PARTS: usize = 64;

/// Necessary condition for a loop to go on: a variable compares with a number in this direction.
struct Limit {
    /// The position of the variable among the parts of the state.
    part: usize,
    direction: Direction,
    /// The number compared with; the conservative end of its range where the condition compares with a value only known to lie in one.
    number: i64,
}

/// Necessary conditions on single variables that a loop's condition implies.
struct Limits {
    limits: Vec<Limit>,
    /// The parts of the state that it looks at, if it needs nothing else.
    looked_at: Option<BTreeSet<usize>>,
}

/// Specs and integer ranges of the values that enter a computation.
pub(super) struct Border {
    /// Specs of the values.
    pub specs: Vec<ValueSpec>,
    /// For each array that goes over it, what it lies between, if it is an integer that no round of a loop changes.
    pub ranges: Vec<Option<Range>>,
    /// The same in the body of a loop, where also the condition holds.
    pub inside: Vec<Option<Range>>,
}

impl Border {
    /// The place of each array that goes over it, and `None` where more than one goes for a value.
    fn parts(&self) -> Vec<Option<usize>> {
        let place = |(i, spec): (usize, &ValueSpec)| {
            vec![matches!(spec, ValueSpec::Array(_)).then_some(i); spec.leaves().len()]
        };
        self.specs.iter().enumerate().flat_map(place).collect()
    }
}

impl Walker<'_> {
    /// The border that these values go over, those that are `fixed` unchanged in every round, others as ones of a `wider` spec.
    pub fn border(&mut self, values: &[Value], wider: &[Option<ValueSpec>], fixed: impl Fn(usize) -> bool) -> Border {
        let mut specs = Vec::with_capacity(values.len());
        for (i, value) in values.iter().enumerate() {
            let known = if fixed(i) { self.constant_spec(value) } else { None };
            let wider = wider.get(i).cloned().flatten();
            specs.push(known.or(wider).unwrap_or_else(|| self.spec(value)));
        }
        let mut border = Border { specs, ranges: Vec::new(), inside: Vec::new() };
        let range = |part: Option<usize>| part.filter(|&i| fixed(i)).and_then(|i| self.range(&values[i]));
        border.ranges = border.parts().into_iter().map(range).collect();
        border.inside = border.ranges.clone();
        border
    }

    /// Opens a computation behind a border.
    pub fn enter(&mut self, name: &str, specs: &[ValueSpec], ranges: &[Option<Range>]) -> Vec<Value> {
        let values = self.open(name, specs);
        self.ranges.enter_computation(&self.b, ranges.to_vec());
        values
    }

    /// After how many rounds the user lets a loop end.
    pub fn rounds_told(&self, body: &FuncRef) -> Option<Dim> {
        self.program.rounds.get(&body.name).copied().map(Dim::from)
    }

    /// Range of an integer scalar.
    fn range(&self, value: &Value) -> Option<Range> {
        match value {
            Value::Array(id) if self.b.rank(*id) == 0 && matches!(self.b.dtype(*id), DType::S32 | DType::S64) => {
                Some(self.ranges.scalar_range(&self.b, *id))
            }
            _ => None,
        }
    }

    /// The most rounds of a loop whose state has these values: from a part of its condition that compares a variable with a number,
    /// where each round adds a number to the variable, else from values that come to rest; no more than those that are `allowed`, if some
    /// are. `None` where nothing tells. What integers lie between in the body becomes a part of the border.
    pub fn most_rounds(
        &mut self,
        cond: &FuncRef,
        body: &FuncRef,
        init: &[Value],
        border: &mut Border,
        reached: &CapturedState,
        allowed: Option<Dim>,
    ) -> Result<Option<Dim>> {
        let Limits { limits, looked_at } = self.limits_of(cond, border, reached)?;
        let parts = border.parts();
        let start = |part: usize| self.range(&init[parts.get(part).copied()??]);
        let starts: Vec<Option<Range>> = (0..parts.len()).map(start).collect();
        let steps = self.steps(body, border, reached)?;
        let rounds = limits.iter().filter_map(|limit| {
            let (start, step) = (starts.get(limit.part).copied()??, steps.get(limit.part).copied()??);
            rounds(start, step, limit.direction, limit.number)
        });
        let told = self.rounds_told(body);
        let rounds = match rounds.chain(told).chain(allowed).min() {
            Some(rounds) => Some(rounds),
            None => self.rounds_to_rest(body, border, reached, looked_at)?,
        };
        for part in (0..parts.len()).filter(|&part| border.ranges[part].is_none()) {
            let Some(start) = starts[part] else { continue };
            border.inside[part] = Some(while_it_runs(start, steps.get(part).copied().flatten(), rounds));
        }
        for limit in &limits {
            let Some(Some(range)) = border.inside.get_mut(limit.part) else { continue };
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

    /// The most rounds of a loop that ends, where the parts of its state that the condition looks at come to rest.
    fn rounds_to_rest(
        &mut self,
        body: &FuncRef,
        border: &Border,
        reached: &CapturedState,
        looked_at: Option<BTreeSet<usize>>,
    ) -> Result<Option<Dim>> {
        let (parts, rets) = (border.parts(), self.function(&body.name)?.rets.len());
        let Some(looked_at) = looked_at else { return Ok(None) };
        let own = |&part: &usize| parts.get(part).copied().flatten().filter(|&i| i < rets);
        let Some(wanted) = looked_at.iter().map(own).collect::<Option<Vec<usize>>>() else { return Ok(None) };
        let values = self.enter("probe", &border.specs, &border.ranges);
        let after = self.some_results(body, &values, reached, &wanted);
        let one = |(&part, value): (&usize, &Slot)| match value {
            Some(Value::Array(id)) => rounds_to_rest(&self.b, *id, part),
            _ => None,
        };
        let rounds: Option<Vec<Dim>> =
            after.as_ref().ok().and_then(|after| looked_at.iter().zip(after).map(one).collect());
        self.b.abandon();
        after?;
        Ok(rounds.and_then(|all| all.into_iter().max()).map(|n| n.max(1)))
    }

    /// Range of the step by which each round of a loop changes each part of its state, where that is known.
    fn steps(&mut self, body: &FuncRef, border: &Border, reached: &CapturedState) -> Result<Vec<Option<Increment>>> {
        let parts = border.parts();
        let rets = self.function(&body.name)?.rets.len();
        let counts = |i: &usize| {
            let ValueSpec::Array(shape) = &border.specs[*i] else { return false };
            shape.as_array().is_some_and(|a| a.dims.is_empty() && matches!(a.dtype, DType::S32 | DType::S64))
        };
        let wanted: Vec<usize> = (0..rets).filter(counts).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        // lists want bounds of the places that are written, which this is to find; here any will do
        let some: Vec<Option<Range>> = border.ranges.iter().map(|r| r.or(Some(Range::one(0)))).collect();
        let values = self.enter("probe", &border.specs, &some);
        let after = self.some_results(body, &values, reached, &wanted);
        let mut steps = vec![None; parts.len()];
        for (i, after) in wanted.into_iter().zip(after.iter().flatten()) {
            let part = parts.iter().position(|&p| p == Some(i));
            if let (Some(part), Some(Value::Array(id))) = (part, after) {
                steps[part] = added(&self.b, *id, part);
            }
        }
        self.b.abandon();
        after?;
        Ok(steps)
    }

    /// Limits on single variables implied by the terms of a condition that are joined by "and".
    fn limits_of(&mut self, cond: &FuncRef, border: &Border, reached: &CapturedState) -> Result<Limits> {
        let values = self.enter("probe", &border.specs, &border.ranges);
        let before = std::mem::replace(&mut self.is_looking, true);
        let test = self.call_with(cond, &values, reached);
        self.is_looking = before;
        let mut todo: Vec<InstId> = match &test {
            Ok(Some(results)) => {
                results.iter().take(1).filter_map(|v| if let Value::Array(id) = v { Some(*id) } else { None }).collect()
            }
            _ => Vec::new(),
        };
        let looked_at = todo.first().and_then(|&root| looked_at(&self.b, root));
        let (mut found, mut seen) = (Vec::new(), 0);
        while let Some(id) = todo.pop() {
            seen += 1;
            let inst = &self.b.current().insts[id];
            match &inst.op {
                Op::Elementwise(ScalarOp::And) if seen < MOST_PARTS => todo.extend(inst.operands.iter().copied()),
                Op::Elementwise(ScalarOp::Compare(direction, _)) => {
                    let (direction, x, y) = (*direction, inst.operands[0], inst.operands[1]);
                    found.extend(self.limit(x, direction, y).or_else(|| self.limit(y, turned(direction), x)));
                }
                Op::Reshape => todo.extend(inst.operands.iter().copied()),
                _ => {}
            }
        }
        self.b.abandon();
        test?;
        Ok(Limits { limits: found, looked_at })
    }

    fn limit(&self, variable: InstId, direction: Direction, bound: InstId) -> Option<Limit> {
        let part = range::tuple_element(&self.b, variable)?;
        let bound = self.ranges.scalar_range(&self.b, bound);
        let number = match direction {
            Direction::Lt | Direction::Le => bound.bound()?,
            Direction::Gt | Direction::Ge => Some(bound.least).filter(|&least| least > i64::MIN)?,
            Direction::Eq | Direction::Ne => return None,
        };
        Some(Limit { part, direction, number })
    }
}

/// Range of an integer when a round begins, if it was in `start` before the first round and each round adds `step`.
fn while_it_runs(start: Range, step: Option<Increment>, rounds: Option<Dim>) -> Range {
    let Some((down, up)) = step else { return Range::ALL };
    let ((least, most), ends) = (start.ends(), Range::ALL.ends());
    let all = |step: i64, end: i128| match (step, rounds) {
        (0, _) => 0,
        (_, Some(rounds)) => i128::from(step) * i128::from(rounds.saturating_sub(1)),
        (_, None) => end,
    };
    Range::new(least + all(down.min(0), ends.0), most + all(up.max(0), ends.1))
}

/// How often a loop runs at most that begins at `start`, adds `step` and goes on while it compares so; `None` if it may never end or
/// that is not known.
fn rounds(start: Range, (down, up): Increment, direction: Direction, number: i64) -> Option<Dim> {
    // the slowest way
    let step = if down > 0 { down } else { Some(up).filter(|&up| up < 0)? };
    let first = if step > 0 { start.least } else { start.bound()? };
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

fn turned(direction: Direction) -> Direction {
    match direction {
        Direction::Lt => Direction::Gt,
        Direction::Le => Direction::Ge,
        Direction::Gt => Direction::Lt,
        Direction::Ge => Direction::Le,
        Direction::Eq => Direction::Eq,
        Direction::Ne => Direction::Ne,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_counted() {
        assert_eq!(rounds(Range::one(0), (1, 1), Direction::Lt, 4), Some(4.into()));
        assert_eq!(rounds(Range::one(0), (3, 3), Direction::Lt, 4), Some(2.into()));
        assert_eq!(rounds(Range::one(5), (-2, -2), Direction::Ge, 0), Some(3.into()));
        assert_eq!(rounds(Range::one(0), (1, 3), Direction::Lt, 4), Some(4.into()));
        assert_eq!(rounds(Range::one(0), (0, 1), Direction::Lt, 4), None, "it may stay");
        assert_eq!(rounds(Range::one(9), (1, 1), Direction::Lt, 4), Some(0.into()));
        assert_eq!(rounds(Range::one(0), (-1, -1), Direction::Lt, 4), None);
    }
}
