//! How many rounds a loop has at most, where its condition counts.
use super::flat::Form;
use super::holders::Reached;
use super::walker::Walker;
use crate::diag::Result;
use crate::graph::FuncRef;
use crate::hlo::{InstId, Op};
use crate::interp;
use crate::ops::Value;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// No more parts of a condition are looked at.
const MOST_PARTS: usize = 64;

/// That a loop goes on only while a variable compares so with a number.
struct Limit {
    /// The position of the variable among the parts of the state.
    part: usize,
    direction: Direction,
    number: i64,
}

/// What is known of the values that go into a computation.
pub(super) struct Border {
    /// Their forms.
    pub forms: Vec<Form>,
    /// For each that is an array, a number that it does not exceed inside.
    pub limits: Vec<Option<i64>>,
}

impl Walker<'_> {
    /// The border that these values go over, those that are `fixed` unchanged in every round.
    pub fn border(&mut self, values: &[Value], fixed: impl Fn(usize) -> bool) -> Border {
        let mut forms = Vec::with_capacity(values.len());
        for (i, value) in values.iter().enumerate() {
            let known = if fixed(i) { self.known(value) } else { None };
            forms.push(known.map_or_else(|| self.form(value), Form::Constant));
        }
        let limit = |i: usize| match &values[i] {
            Value::Array(id) if fixed(i) && self.is_count(*id) => self.at_most(*id, true),
            _ => None,
        };
        let limits = (0..values.len()).filter(|&i| forms[i].leaf().is_some()).map(limit).collect();
        Border { forms, limits }
    }

    /// Opens a computation behind a border.
    pub fn enter(&mut self, name: &str, border: &Border) -> Vec<Value> {
        let values = self.open(name, &border.forms);
        self.limits.insert(self.b.depth(), border.limits.clone());
        values
    }

    fn is_count(&self, id: InstId) -> bool {
        self.b.rank(id) == 0 && matches!(self.b.dtype(id), DType::S32 | DType::S64)
    }

    /// The most rounds of a loop whose state has these values: from a part of its condition that compares a variable with a number,
    /// where each round adds a number to the variable. `None` where nothing tells.
    pub fn most_rounds(
        &mut self,
        (cond, body): (&FuncRef, &FuncRef),
        init: &[Value],
        border: &Border,
        reached: &Reached,
    ) -> Result<Option<u64>> {
        let limits = self.limits_of(cond, border, reached)?;
        if limits.is_empty() {
            return Ok(None);
        }
        let arrays = || border.forms.iter().enumerate().filter(|(_, form)| form.leaf().is_some()).map(|(i, _)| i);
        let starts: Vec<Option<i64>> = arrays().map(|i| self.known(&init[i])?.get_i64(0)).collect();
        let values = self.enter("probe", border);
        let after = self.call_with(body, &values, reached);
        let mut steps: Vec<Option<i64>> = Vec::new();
        if let Ok(Some((after, _))) = &after {
            for (part, i) in arrays().enumerate() {
                steps.push(if let Value::Array(id) = after[i] { self.added(id, part) } else { None });
            }
        }
        self.b.abandon();
        after?;
        let rounds = limits.iter().filter_map(|limit| {
            let (start, step) = (starts.get(limit.part).copied()??, steps.get(limit.part).copied()??);
            rounds(start, step, limit.direction, limit.number)
        });
        Ok(rounds.min())
    }

    /// What the parts of a condition that are joined by "and" say of single variables.
    fn limits_of(&mut self, cond: &FuncRef, border: &Border, reached: &Reached) -> Result<Vec<Limit>> {
        let values = self.enter("probe", border);
        let test = self.call_with(cond, &values, reached);
        let mut todo: Vec<InstId> = match &test {
            Ok(Some((results, _))) => {
                results.iter().take(1).filter_map(|v| if let Value::Array(id) = v { Some(*id) } else { None }).collect()
            }
            _ => Vec::new(),
        };
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
        Ok(found)
    }

    fn limit(&self, variable: InstId, direction: Direction, bound: InstId) -> Option<Limit> {
        let part = self.part(variable)?;
        let number = self.at_most(bound, matches!(direction, Direction::Lt | Direction::Le))?;
        Some(Limit { part, direction, number })
    }

    /// A number that an integer is, or that it does not exceed where that is enough.
    fn at_most(&self, id: InstId, enough: bool) -> Option<i64> {
        let (mut todo, mut least) = (vec![id], None);
        for _ in 0..MOST_PARTS {
            let Some(id) = todo.pop() else { break };
            let known = interp::constant_value(&self.b, id).filter(|t| t.len() == 1 && !t.dtype.is_float());
            let number = match &self.b.current().insts[id].op {
                _ if known.is_some() => known.and_then(|t| t.get_i64(0)),
                Op::GetTupleElement(part) if enough => {
                    self.limits.get(&self.b.depth()).and_then(|limits| limits.get(*part).copied()?)
                }
                Op::Elementwise(ScalarOp::Minimum) if enough => {
                    todo.extend(self.b.current().insts[id].operands.iter().copied());
                    None
                }
                Op::Reshape => {
                    todo.extend(self.b.current().insts[id].operands.iter().copied());
                    None
                }
                _ => None,
            };
            least = number.into_iter().chain(least).min();
        }
        least
    }

    /// Which part of the state a scalar is.
    fn part(&self, mut id: InstId) -> Option<usize> {
        for _ in 0..MOST_PARTS {
            let inst = &self.b.current().insts[id];
            match &inst.op {
                Op::GetTupleElement(part) => return Some(*part),
                Op::Reshape => id = *inst.operands.first()?,
                _ => return None,
            }
        }
        None
    }

    /// What is added to a part of the state to get its next value.
    fn added(&self, id: InstId, part: usize) -> Option<i64> {
        let inst = &self.b.current().insts[id];
        let (sign, both) = match &inst.op {
            Op::Elementwise(ScalarOp::Add) => (1, true),
            Op::Elementwise(ScalarOp::Subtract) => (-1, false),
            _ => return None,
        };
        let number = |id: InstId| interp::constant_value(&self.b, id).filter(|t| t.len() == 1)?.get_i64(0);
        let (x, y) = (inst.operands[0], inst.operands[1]);
        if self.part(x) == Some(part) {
            return number(y).map(|n| sign * n);
        }
        if both && self.part(y) == Some(part) { number(x) } else { None }
    }
}

/// How often a loop runs that begins at `start`, adds `step` and goes on while it compares so; `None` if that never ends or is not known.
fn rounds(start: i64, step: i64, direction: Direction, number: i64) -> Option<u64> {
    let (start, step, number) = (i128::from(start), i128::from(step), i128::from(number));
    let distance = match direction {
        Direction::Lt if step > 0 => number - start,
        Direction::Le if step > 0 => number - start + 1,
        Direction::Gt if step < 0 => start - number,
        Direction::Ge if step < 0 => start - number + 1,
        _ => return None,
    };
    let step = step.abs();
    u64::try_from(((distance + step - 1) / step).max(0)).ok()
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
        assert_eq!(rounds(0, 1, Direction::Lt, 4), Some(4));
        assert_eq!(rounds(0, 3, Direction::Lt, 4), Some(2));
        assert_eq!(rounds(5, -2, Direction::Ge, 0), Some(3));
        assert_eq!(rounds(9, 1, Direction::Lt, 4), Some(0));
        assert_eq!(rounds(0, -1, Direction::Lt, 4), None);
    }
}
