//! Range analysis: intervals that contain the integers which instructions compute.
use super::element;
use crate::hlo::SizeRepr;
use crate::hlo::symbolic::SliceDim;
use crate::hlo::symbolic::{Builder, CompId, Dim, Fold, Inst, InstId, Literal, Op};
use crate::interp;
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::trace;
use crate::tensor::{DType, Tensor};
use std::cell::Cell;
use std::collections::HashMap;

/// Depth to which the operands of an integer are followed.
const MOST_DEPTH: usize = 32;

/// Largest number of instructions visited for one query, as expressions share operands.
const MOST_LOOKS: usize = 4096;

/// Largest number of elements of a constant that is scanned.
const MOST_ELEMENTS: usize = 1 << 16;

/// Closed interval of integers; the ends of `i64` stand for no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntRange {
    /// Lower bound.
    pub least: i64,
    /// Upper bound.
    pub most: i64,
    /// Whether an operation on the way could wrap around, so that the bounds hold only where none does: a size with them needs a run-time
    /// check.
    pub may_overflow: bool,
}

/// Stand-in for a missing bound in 128-bit sums and products: beyond every 64-bit integer, and far from overflow.
const INFINITE: i128 = 1 << 90;

impl IntRange {
    /// All integers.
    pub const ALL: IntRange = IntRange { least: i64::MIN, most: i64::MAX, may_overflow: false };

    /// Interval with these bounds; a bound outside of `i64` becomes none.
    pub fn new(least: i128, most: i128) -> IntRange {
        IntRange {
            least: i64::try_from(least).unwrap_or(if least < 0 { i64::MIN } else { i64::MAX }),
            most: i64::try_from(most).unwrap_or(if most < 0 { i64::MIN } else { i64::MAX }),
            may_overflow: false,
        }
    }

    /// Interval of a single integer.
    pub fn single(value: i64) -> IntRange {
        IntRange { least: value, most: value, may_overflow: false }
    }

    /// Integers that do not exceed `most`.
    pub fn at_most(most: i64) -> IntRange {
        IntRange { most, ..IntRange::ALL }
    }

    /// Integers of a type; all integers where its bounds do not fit `i64`.
    fn of_type(dtype: DType) -> IntRange {
        match (dtype, dtype.integer_bounds()) {
            (DType::Pred, _) => IntRange { least: 0, most: 1, ..IntRange::ALL },
            (_, Some((least, most))) if dtype.bits() < 64 => IntRange::new(least as i128, most as i128),
            _ => IntRange::ALL,
        }
    }

    /// The same bounds, which hold only if `flag` is false or nothing wraps around.
    pub fn with_overflow_if(self, flag: bool) -> IntRange {
        IntRange { may_overflow: self.may_overflow || flag, ..self }
    }

    /// Upper bound, if there is one.
    pub fn upper_bound(self) -> Option<i64> {
        Some(self.most).filter(|&most| most < i64::MAX)
    }

    /// Both bounds, with missing ones as `±INFINITE`.
    pub fn bounds(self) -> (i128, i128) {
        let least = if self.least == i64::MIN { -INFINITE } else { self.least.into() };
        (least, if self.most == i64::MAX { INFINITE } else { self.most.into() })
    }

    /// Smallest interval that contains every element of an array of integers; all integers where the array is empty.
    fn of_tensor(value: &Tensor) -> IntRange {
        let ranges = (0..value.len()).map(|i| value.get_i64(i).map_or(IntRange::ALL, IntRange::single));
        ranges.reduce(IntRange::joined).unwrap_or(IntRange::ALL)
    }

    /// Smallest interval that contains both intervals.
    fn joined(self, other: IntRange) -> IntRange {
        IntRange {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            may_overflow: self.may_overflow || other.may_overflow,
        }
    }

    /// Integers of both intervals; `self` where there are none.
    fn intersected(self, other: IntRange) -> IntRange {
        let (least, most) = (self.least.max(other.least), self.most.min(other.most));
        if least <= most {
            IntRange { least, most, may_overflow: self.may_overflow || other.may_overflow }
        } else {
            self
        }
    }

    /// Smallest interval that contains each integer that stands in the relation `direction` to an integer of this interval.
    fn related(self, direction: Direction) -> IntRange {
        let (least, most) = self.bounds();
        let within = match direction {
            Direction::Eq => self,
            Direction::Ne => IntRange::ALL,
            Direction::Ge => IntRange::new(least, INFINITE),
            Direction::Gt => IntRange::new(least + 1, INFINITE),
            Direction::Le => IntRange::new(-INFINITE, most),
            Direction::Lt => IntRange::new(-INFINITE, most - 1),
        };
        within.with_overflow_if(self.may_overflow)
    }

    /// Interval of the results of a pointwise op on values of type `dtype` in two intervals.
    fn of_op(op: ScalarOp, x: IntRange, y: IntRange, dtype: DType) -> IntRange {
        let inexact = x.may_overflow || y.may_overflow;
        let ((a, b), (c, d)) = (x.bounds(), y.bounds());
        let sum = |least: i128, most: i128, exact: [i128; 2]| {
            IntRange::new(least, most).with_overflow_if(inexact || !is_within(dtype, exact))
        };
        let ((e, f), (g, h)) = (x.within_type(dtype), y.within_type(dtype));
        match op {
            ScalarOp::Minimum => IntRange::new(a.min(c), b.min(d)).with_overflow_if(inexact),
            ScalarOp::Maximum => IntRange::new(a.max(c), b.max(d)).with_overflow_if(inexact),
            // The remainder of any integer lies within these bounds.
            ScalarOp::Remainder if c == d && c > 0 && inexact => {
                IntRange::new(1 - c, c - 1).with_overflow_if(y.may_overflow)
            }
            ScalarOp::Remainder if c == d && c > 0 => IntRange::new(a.clamp(1 - c, 0), b.clamp(0, c - 1)),
            ScalarOp::Add => sum(a + c, b + d, [e + g, f + h]),
            ScalarOp::Subtract => sum(a - d, b - c, [e - h, f - g]),
            ScalarOp::Multiply if c == d && (0..INFINITE >> 64).contains(&c) => sum(a * c, b * c, [e * c, f * c]),
            ScalarOp::Multiply if a == b && (0..INFINITE >> 64).contains(&a) => sum(c * a, d * a, [g * a, h * a]),
            ScalarOp::Divide if c == d && c > 0 => IntRange::new(a / c, b / c).with_overflow_if(inexact),
            _ => IntRange::ALL,
        }
    }

    /// Interval of the sums of at most `count` integers of type `dtype` in this interval.
    fn summed(self, count: i128, dtype: DType) -> IntRange {
        let all = |end: i128| end.saturating_mul(count);
        let ((least, most), (a, b)) = (self.bounds(), self.within_type(dtype));
        let range = IntRange::new(all(least).min(0), all(most).max(0));
        range.with_overflow_if(self.may_overflow || !is_within(dtype, [all(a), all(b)]))
    }

    /// Both bounds, with those of the type in the place of missing ones.
    fn within_type(self, dtype: DType) -> (i128, i128) {
        let of_type = IntRange::of_type(dtype);
        (self.least.max(of_type.least).into(), self.most.min(of_type.most).into())
    }

    /// Interval after conversion to `dtype`, which wraps: all integers if a bound does not fit.
    fn converted(self, from: DType, dtype: DType) -> IntRange {
        let of_type = IntRange::of_type(dtype);
        let fits = |end: i64| (of_type.least..=of_type.most).contains(&end) || end == i64::MIN || end == i64::MAX;
        if !(fits(self.least) && fits(self.most)) {
            return IntRange::ALL;
        }
        let (least, most) = self.within_type(from);
        self.with_overflow_if(!is_within(dtype, [least, most]))
    }
}

/// Whether integers from the first to the second of `ends` are values of the type.
fn is_within(dtype: DType, [least, most]: [i128; 2]) -> bool {
    let of_type = IntRange::of_type(dtype);
    i128::from(of_type.least) <= least && most <= i128::from(of_type.most)
}

/// Known ranges of the values that enter open computations (loop bodies, branches) as tuple elements, keyed by nesting depth.
#[derive(Clone, Debug, Default)]
pub struct RangeAnalysis {
    parts: HashMap<usize, Vec<Option<IntRange>>>,
    /// Arrays that contain each integer in `0..n` at least once and no other integer, with `n`; keyed by depth and instruction.
    covering: HashMap<(usize, InstId), Dim>,
}

impl RangeAnalysis {
    /// Records the known ranges of the tuple elements of the computation that was just opened.
    pub fn enter_computation(&mut self, b: &Builder, parts: Vec<Option<IntRange>>) {
        self.covering.retain(|&(depth, _), _| depth < b.nesting_depth());
        self.parts.insert(b.nesting_depth(), parts);
    }

    /// Records that an array of the current computation contains each integer in `0..n` at least once and no other integer.
    pub fn record_index_set(&mut self, b: &Builder, id: InstId, n: Dim) {
        self.covering.insert((b.nesting_depth(), id), n);
    }

    /// Count `n` if the array is known to contain each integer in `0..n` and no other, by a record about it or about an array
    /// of which it is a rearrangement.
    pub fn index_set_size(&self, b: &Builder, mut id: InstId) -> Option<Dim> {
        for _ in 0..MOST_DEPTH {
            if let Some(n) = self.covering.get(&(b.nesting_depth(), id)) {
                return Some(*n);
            }
            let inst = b.current_computation().insts.get(id)?;
            let from = *inst.operands.first()?;
            id = match &inst.op {
                Op::Reshape | Op::Copy | Op::Elementwise(ScalarOp::Convert(DType::S32 | DType::S64)) => from,
                Op::Slice(dims) => {
                    let part = concatenated_operand(b, from, dims).unwrap_or(from);
                    let same = b.shape(part).as_array()?.elements() == inst.shape.as_array()?.elements();
                    same.then_some(part)?
                }
                _ => return None,
            };
        }
        None
    }

    /// Range of an integer scalar of the current computation.
    pub fn scalar_range(&self, b: &Builder, id: InstId) -> IntRange {
        self.follow(b, id, MOST_DEPTH, &Cell::new(MOST_LOOKS))
    }

    /// Range that contains all elements of an integer array of the current computation.
    pub fn element_range(&self, b: &Builder, id: InstId) -> IntRange {
        self.follow(b, id, MOST_DEPTH, &Cell::new(MOST_LOOKS))
    }

    fn follow(&self, b: &Builder, id: InstId, depth: usize, left: &Cell<usize>) -> IntRange {
        let Some(inst) = b.current_computation().insts.get(id) else { return IntRange::ALL };
        let more = left.get().checked_sub(1).and_then(|n| {
            left.set(n);
            depth.checked_sub(1)
        });
        let (Some(array), Some(depth)) = (inst.shape.as_array(), more) else { return IntRange::ALL };
        let dtype = array.dtype;
        if !matches!(dtype, DType::S32 | DType::S64) {
            return IntRange::of_type(dtype);
        }
        let is_one = array.dims.iter().all(|d| d.is_one());
        let known = if is_one || is_small_constant(inst) { interp::symbolic_value(b, id) } else { None };
        if let Some(known) = known {
            return match known.sizes {
                Some(sizes) => sizes.into_iter().map(size_range).reduce(IntRange::joined).unwrap_or(IntRange::ALL),
                None => IntRange::of_tensor(&known.value),
            };
        }
        let operand = |i: usize| inst.operands.get(i).map_or(IntRange::ALL, |&id| self.follow(b, id, depth, left));
        let range = match &inst.op {
            Op::GetTupleElement(_) => self.recorded(b, id).unwrap_or_else(|| final_loop_value(b, id)),
            Op::Reshape | Op::Copy | Op::Broadcast(_) => operand(0),
            Op::Elementwise(ScalarOp::Convert(_)) => operand(0).converted(b.dtype(inst.operands[0]), dtype),
            Op::Reduce { comp, dims } if is_sum(b, *comp) => {
                let count = dims.iter().map(|&axis| size_range(b.dims(inst.operands[0])[axis]).most);
                let count = count.fold(1i128, |all, n| all.saturating_mul(n.into()));
                IntRange::of_op(ScalarOp::Add, operand(0).summed(count, dtype), operand(1), dtype)
            }
            Op::Transpose(_) | Op::Reverse(_) | Op::Gather(_) | Op::DynamicSlice(_) => operand(0),
            Op::Slice(dims) => match concatenated_operand(b, inst.operands[0], dims) {
                Some(part) => self.follow(b, part, depth, left),
                None => operand(0),
            },
            Op::Pad(_) | Op::DynamicUpdateSlice => operand(0).joined(operand(1)),
            Op::Concatenate(_) => (1..inst.operands.len()).fold(operand(0), |all, i| all.joined(operand(i))),
            Op::Iota(axis) => IntRange::new(0, i128::from(size_range(array.dims[*axis]).most) - 1),
            Op::Scatter { comp, .. } if replaces(b, *comp) => operand(0).joined(operand(2)),
            Op::Elementwise(ScalarOp::Select) => {
                let chosen = |i: usize| {
                    let related = related_by_predicate(b, inst.operands[0], i == 1, inst.operands[i]);
                    let within = related.map(|(direction, y)| self.follow(b, y, depth, left).related(direction));
                    operand(i).intersected(within.unwrap_or(IntRange::ALL))
                };
                chosen(1).joined(chosen(2))
            }
            Op::Elementwise(ScalarOp::Clamp) => {
                let (low, x, high) = (operand(0), operand(1), operand(2));
                // Whatever is clamped, the result lies between the limits.
                let x = if x.may_overflow { IntRange::ALL } else { x };
                IntRange::of_op(ScalarOp::Minimum, IntRange::of_op(ScalarOp::Maximum, low, x, dtype), high, dtype)
            }
            Op::Elementwise(op) if inst.operands.len() == 2 => IntRange::of_op(*op, operand(0), operand(1), dtype),
            _ => IntRange::ALL,
        };
        range.converted(dtype, dtype)
    }

    /// Recorded range of a scalar that is an element of the current computation's tuple parameter.
    fn recorded(&self, b: &Builder, id: InstId) -> Option<IntRange> {
        let part = parameter_element_index(b, id)?;
        self.parts.get(&b.nesting_depth())?.get(part).copied()?
    }
}

/// Whether an instruction is a constant of at most `MOST_ELEMENTS` elements.
fn is_small_constant(inst: &Inst) -> bool {
    matches!(&inst.op, Op::Constant(Literal::Array(t)) if t.len() <= MOST_ELEMENTS)
}

/// Range of a symbolic size.
fn size_range(size: Dim) -> IntRange {
    let within = trace::range_of(size);
    IntRange::new(within.least, within.most)
}

/// Operand of the concatenation `x` that contains a whole slice of it.
pub(super) fn concatenated_operand(b: &Builder, x: InstId, dims: &[SliceDim]) -> Option<InstId> {
    let inst = b.current_computation().insts.get(x)?;
    let Op::Concatenate(axis) = inst.op else { return None };
    let (mut begin, slice) = (Dim::from(0), dims.get(axis)?);
    // True only if it holds for all sizes.
    let is_at_most = |x: Dim, y: Dim| {
        let is_above = y.is_less(x);
        !is_above.varies() && is_above == 0
    };
    for &part in &inst.operands {
        let end = begin + *b.dims(part).get(axis)?;
        if is_at_most(begin, slice.start) && is_at_most(slice.limit, end) {
            return Some(part);
        }
        begin = end;
    }
    None
}

/// Relation and array `y` such that `x` stands in this relation to `y` where the comparison of integers `predicate` has the outcome
/// `holds`; `None` if `predicate` doesn't compare `x`.
fn related_by_predicate(b: &Builder, predicate: InstId, holds: bool, x: InstId) -> Option<(Direction, InstId)> {
    let inst = b.current_computation().insts.get(predicate)?;
    let (Op::Elementwise(ScalarOp::Compare(direction, _)), &[left, right]) = (&inst.op, &inst.operands[..]) else {
        return None;
    };
    let direction = if holds { *direction } else { direction.negated_of_ordered() };
    if element::is_same_value(b, left, x) {
        Some((direction, right))
    } else {
        element::is_same_value(b, right, x).then_some((direction.with_swapped_operands(), left))
    }
}

/// Whether a reducer adds.
fn is_sum(b: &Builder, comp: CompId) -> bool {
    b.module().comps[comp].as_fold() == Some(Fold::By(ScalarOp::Add))
}

/// Whether a combining computation (old element, new element) returns the new element.
fn replaces(b: &Builder, comp: CompId) -> bool {
    let comp = &b.module().comps[comp];
    comp.params.get(1) == Some(&comp.root)
}

/// Range of an element of a loop's final state: a single integer if the loop can be evaluated, else all integers.
fn final_loop_value(b: &Builder, id: InstId) -> IntRange {
    let known = interp::constant_value_through_loops(b, id).and_then(|t| t.get_i64(0));
    known.map_or(IntRange::ALL, IntRange::single)
}

/// Index of the element of the current computation's tuple parameter that a scalar is.
pub fn parameter_element_index(b: &Builder, mut id: InstId) -> Option<usize> {
    for _ in 0..MOST_DEPTH {
        let inst = b.current_computation().insts.get(id)?;
        match &inst.op {
            Op::GetTupleElement(part) => {
                let tuple = b.current_computation().insts.get(*inst.operands.first()?)?;
                return matches!(tuple.op, Op::Parameter(_)).then_some(*part);
            }
            Op::Reshape => id = *inst.operands.first()?,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::symbolic::Shape;

    fn of_op(op: ScalarOp, x: IntRange, y: IntRange) -> IntRange {
        IntRange::of_op(op, x, y, DType::S32)
    }

    #[test]
    fn ends_are_those_of_the_values() {
        let (x, y) = (IntRange::new(-7, 5), IntRange::new(2, 3));
        assert_eq!(of_op(ScalarOp::Add, x, y), IntRange::new(-5, 8));
        assert_eq!(of_op(ScalarOp::Subtract, x, y), IntRange::new(-10, 3));
        assert_eq!(of_op(ScalarOp::Minimum, x, y), IntRange::new(-7, 3));
        assert_eq!(of_op(ScalarOp::Multiply, x, IntRange::single(2)), IntRange::new(-14, 10));
        assert_eq!(of_op(ScalarOp::Remainder, x, IntRange::single(4)), IntRange::new(-3, 3));
        assert_eq!(of_op(ScalarOp::Divide, x, IntRange::single(2)), IntRange::new(-3, 2));
    }

    #[test]
    fn a_selection_by_a_comparison_of_the_selected_value_is_bounded_by_the_other_side() {
        let within = |direction: Direction, is_first: bool| {
            let mut b = Builder::new("m");
            let (x, limit) = (b.parameter(Shape::array(DType::S32, [])), b.scalar(DType::S32, 100.0));
            let sides = if is_first { [x, limit] } else { [limit, x] };
            let predicate = b.compare(direction, sides[0], sides[1]);
            let selected = b.select(predicate, limit, x);
            RangeAnalysis::default().scalar_range(&b, selected)
        };
        assert_eq!(within(Direction::Gt, true), IntRange::at_most(100));
        assert_eq!(within(Direction::Ge, true), IntRange::at_most(100));
        assert_eq!(within(Direction::Lt, false), IntRange::at_most(100));
        assert_eq!(within(Direction::Lt, true), IntRange::new(100, i64::MAX.into()));
        assert_eq!(within(Direction::Ne, true), IntRange::single(100));
        assert_eq!(within(Direction::Eq, true), IntRange::ALL);
    }

    #[test]
    fn bounds_that_need_that_nothing_wraps_say_so() {
        let natural = IntRange::new(0, i64::MAX.into());
        let next = of_op(ScalarOp::Add, natural, IntRange::single(1));
        assert!(next.may_overflow);
        assert_eq!((next.least, next.upper_bound()), (1, None));
        assert!(of_op(ScalarOp::Minimum, next, IntRange::single(100)).may_overflow);
        assert!(!of_op(ScalarOp::Subtract, natural, IntRange::single(1)).may_overflow);
        assert!(of_op(ScalarOp::Multiply, natural, IntRange::single(2)).may_overflow);
        assert!(natural.converted(DType::S64, DType::S32).may_overflow);
        assert!(!natural.converted(DType::S32, DType::S64).may_overflow);
        assert_eq!(IntRange::new(0, 1).summed(300, DType::S32), IntRange::new(0, 300));
        assert!(natural.summed(2, DType::S32).may_overflow);
    }

    #[test]
    fn a_missing_end_stays_missing() {
        let x = IntRange::at_most(5);
        assert_eq!(of_op(ScalarOp::Add, x, IntRange::single(1)), IntRange::at_most(6));
        assert_eq!(of_op(ScalarOp::Subtract, IntRange::single(1), x).upper_bound(), None);
        assert_eq!(of_op(ScalarOp::Maximum, x, IntRange::single(0)), IntRange::new(0, 5));
        assert_eq!(IntRange::new(0, 1 << 31).converted(DType::S64, DType::S32), IntRange::ALL);
    }
}
