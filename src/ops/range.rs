//! Range analysis: intervals that contain the integers which instructions compute.
use crate::hlo::SizeRepr;
use crate::hlo::symbolic::SliceDim;
use crate::hlo::symbolic::{Builder, CompId, Dim, Inst, InstId, Literal, Op};
use crate::interp;
use crate::scalar::ScalarOp;
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
}

/// Stand-in for a missing bound in 128-bit sums and products: beyond every 64-bit integer, and far from overflow.
const INFINITE: i128 = 1 << 90;

impl IntRange {
    /// All integers.
    pub const ALL: IntRange = IntRange { least: i64::MIN, most: i64::MAX };

    /// Interval with these bounds; a bound outside of `i64` becomes none.
    pub fn new(least: i128, most: i128) -> IntRange {
        IntRange {
            least: i64::try_from(least).unwrap_or(if least < 0 { i64::MIN } else { i64::MAX }),
            most: i64::try_from(most).unwrap_or(if most < 0 { i64::MIN } else { i64::MAX }),
        }
    }

    /// Interval of a single integer.
    pub fn single(value: i64) -> IntRange {
        IntRange { least: value, most: value }
    }

    /// Integers that do not exceed `most`.
    pub fn at_most(most: i64) -> IntRange {
        IntRange { most, ..IntRange::ALL }
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
        IntRange { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// Interval of the results of a pointwise op on values of two intervals.
    fn of_op(op: ScalarOp, x: IntRange, y: IntRange) -> IntRange {
        let ((a, b), (c, d)) = (x.bounds(), y.bounds());
        match op {
            ScalarOp::Minimum => IntRange { least: x.least.min(y.least), most: x.most.min(y.most) },
            ScalarOp::Maximum => IntRange { least: x.least.max(y.least), most: x.most.max(y.most) },
            ScalarOp::Remainder if c == d && c > 0 => IntRange::new(a.clamp(1 - c, 0), b.clamp(0, c - 1)),
            ScalarOp::Add => IntRange::new(a + c, b + d),
            ScalarOp::Subtract => IntRange::new(a - d, b - c),
            ScalarOp::Multiply if c == d && (0..INFINITE >> 64).contains(&c) => IntRange::new(a * c, b * c),
            ScalarOp::Multiply if a == b && (0..INFINITE >> 64).contains(&a) => IntRange::new(c * a, d * a),
            ScalarOp::Divide if c == d && c > 0 => IntRange::new(a / c, b / c),
            _ => IntRange::ALL,
        }
    }

    /// Interval after wrapping to 32 bits: all integers if a bound does not fit.
    fn wrapped(self) -> IntRange {
        let fits = |end: i64| i32::try_from(end).is_ok() || end == i64::MIN || end == i64::MAX;
        if fits(self.least) && fits(self.most) { self } else { IntRange::ALL }
    }
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
        if !matches!(array.dtype, DType::S32 | DType::S64) {
            return IntRange::ALL;
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
            Op::Reshape | Op::Copy | Op::Broadcast(_) | Op::Elementwise(ScalarOp::Convert(_)) => operand(0),
            Op::Transpose(_) | Op::Reverse(_) | Op::Gather(_) | Op::DynamicSlice(_) => operand(0),
            Op::Slice(dims) => match concatenated_operand(b, inst.operands[0], dims) {
                Some(part) => self.follow(b, part, depth, left),
                None => operand(0),
            },
            Op::Pad(_) | Op::DynamicUpdateSlice => operand(0).joined(operand(1)),
            Op::Concatenate(_) => (1..inst.operands.len()).fold(operand(0), |all, i| all.joined(operand(i))),
            Op::Iota(axis) => IntRange::new(0, i128::from(size_range(array.dims[*axis]).most) - 1),
            Op::Scatter { comp, .. } if replaces(b, *comp) => operand(0).joined(operand(2)),
            Op::Elementwise(ScalarOp::Select) => operand(1).joined(operand(2)),
            Op::Elementwise(ScalarOp::Clamp) => {
                let low = IntRange::of_op(ScalarOp::Maximum, operand(0), operand(1));
                IntRange::of_op(ScalarOp::Minimum, low, operand(2))
            }
            Op::Elementwise(op) if inst.operands.len() == 2 => IntRange::of_op(*op, operand(0), operand(1)),
            _ => IntRange::ALL,
        };
        if array.dtype == DType::S32 { range.wrapped() } else { range }
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

    #[test]
    fn ends_are_those_of_the_values() {
        let (x, y) = (IntRange { least: -7, most: 5 }, IntRange { least: 2, most: 3 });
        assert_eq!(IntRange::of_op(ScalarOp::Add, x, y), IntRange { least: -5, most: 8 });
        assert_eq!(IntRange::of_op(ScalarOp::Subtract, x, y), IntRange { least: -10, most: 3 });
        assert_eq!(IntRange::of_op(ScalarOp::Minimum, x, y), IntRange { least: -7, most: 3 });
        assert_eq!(IntRange::of_op(ScalarOp::Multiply, x, IntRange::single(2)), IntRange { least: -14, most: 10 });
        assert_eq!(IntRange::of_op(ScalarOp::Remainder, x, IntRange::single(4)), IntRange { least: -3, most: 3 });
        assert_eq!(IntRange::of_op(ScalarOp::Divide, x, IntRange::single(2)), IntRange { least: -3, most: 2 });
    }

    #[test]
    fn a_missing_end_stays_missing() {
        let x = IntRange::at_most(5);
        assert_eq!(IntRange::of_op(ScalarOp::Add, x, IntRange::single(1)), IntRange::at_most(6));
        assert_eq!(IntRange::of_op(ScalarOp::Subtract, IntRange::single(1), x).upper_bound(), None);
        assert_eq!(IntRange::of_op(ScalarOp::Maximum, x, IntRange::single(0)), IntRange { least: 0, most: 5 });
        assert_eq!(IntRange { least: 0, most: i64::from(i32::MAX) + 1 }.wrapped(), IntRange::ALL);
    }
}
