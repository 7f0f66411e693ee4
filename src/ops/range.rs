//! Ranges of integers, derived from the instructions that compute them.
use crate::hlo::SizeRepr;
use crate::hlo::open::SliceDim;
use crate::hlo::open::{Builder, CompId, Dim, Inst, InstId, Literal, Op};
use crate::interp;
use crate::scalar::ScalarOp;
use crate::symbolic::trace;
use crate::tensor::{DType, Tensor};
use std::cell::Cell;
use std::collections::HashMap;

/// Expressions are followed no deeper.
const MOST_DEPTH: usize = 32;

/// No more instructions are looked at for one answer: expressions share parts.
const MOST_LOOKS: usize = 4096;

/// Constants of more elements are not looked at.
const MOST_ELEMENTS: usize = 1 << 16;

/// An interval of integers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// No value is less.
    pub least: i64,
    /// No value is greater.
    pub most: i64,
}

/// Stands for the missing end of an interval in sums and products: beyond every integer of 64 bits, far from the ends of 128.
const INFINITE: i128 = 1 << 90;

impl Range {
    /// Every integer.
    pub const ALL: Range = Range { least: i64::MIN, most: i64::MAX };

    /// The interval between two ends; an end that no integer of 64 bits reaches is none.
    pub fn new(least: i128, most: i128) -> Range {
        Range {
            least: i64::try_from(least).unwrap_or(if least < 0 { i64::MIN } else { i64::MAX }),
            most: i64::try_from(most).unwrap_or(if most < 0 { i64::MIN } else { i64::MAX }),
        }
    }

    /// One integer.
    pub fn one(value: i64) -> Range {
        Range { least: value, most: value }
    }

    /// The integers up to `most`.
    pub fn up_to(most: i64) -> Range {
        Range { most, ..Range::ALL }
    }

    /// The largest value, if there is a bound to it.
    pub fn bound(self) -> Option<i64> {
        Some(self.most).filter(|&most| most < i64::MAX)
    }

    /// Both ends.
    pub fn ends(self) -> (i128, i128) {
        let least = if self.least == i64::MIN { -INFINITE } else { self.least.into() };
        (least, if self.most == i64::MAX { INFINITE } else { self.most.into() })
    }

    /// Smallest interval that contains every element of an array of integers; all integers where the array is empty.
    fn all(value: &Tensor) -> Range {
        let ranges = (0..value.len()).map(|i| value.get_i64(i).map_or(Range::ALL, Range::one));
        ranges.reduce(Range::joined).unwrap_or(Range::ALL)
    }

    /// Smallest interval that contains both intervals.
    fn joined(self, other: Range) -> Range {
        Range { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// The results of a pointwise op on values of the intervals.
    fn of(op: ScalarOp, x: Range, y: Range) -> Range {
        let ((a, b), (c, d)) = (x.ends(), y.ends());
        match op {
            ScalarOp::Minimum => Range { least: x.least.min(y.least), most: x.most.min(y.most) },
            ScalarOp::Maximum => Range { least: x.least.max(y.least), most: x.most.max(y.most) },
            ScalarOp::Remainder if c == d && c > 0 => Range::new(a.clamp(1 - c, 0), b.clamp(0, c - 1)),
            ScalarOp::Add => Range::new(a + c, b + d),
            ScalarOp::Subtract => Range::new(a - d, b - c),
            ScalarOp::Multiply if c == d && (0..INFINITE >> 64).contains(&c) => Range::new(a * c, b * c),
            ScalarOp::Multiply if a == b && (0..INFINITE >> 64).contains(&a) => Range::new(c * a, d * a),
            ScalarOp::Divide if c == d && c > 0 => Range::new(a / c, b / c),
            _ => Range::ALL,
        }
    }

    /// The interval of an integer of 32 bits that is computed so: what does not fit wraps around.
    fn wrapped(self) -> Range {
        let fits = |end: i64| i32::try_from(end).is_ok() || end == i64::MIN || end == i64::MAX;
        if fits(self.least) && fits(self.most) { self } else { Range::ALL }
    }
}

/// The intervals of integers among the parts of the tuples that open computations take, by their depth.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    parts: HashMap<usize, Vec<Option<Range>>>,
    /// Arrays, by the depth of their computation, that hold every integer from 0 up to before this one and no other.
    whole: HashMap<(usize, InstId), Dim>,
}

impl Ranges {
    /// Says what is known of the parts of the computation that was opened last.
    pub fn enter(&mut self, b: &Builder, parts: Vec<Option<Range>>) {
        self.whole.retain(|&(depth, _), _| depth < b.depth());
        self.parts.insert(b.depth(), parts);
    }

    /// Says that an array of the open computation holds every integer from 0 up to before `n`, and no other.
    pub fn enter_whole(&mut self, b: &Builder, id: InstId, n: Dim) {
        self.whole.insert((b.depth(), id), n);
    }

    /// Number `n` where the array, or one all of whose elements it has, was declared to hold exactly the integers from 0 up to before `n`.
    pub fn whole(&self, b: &Builder, mut id: InstId) -> Option<Dim> {
        for _ in 0..MOST_DEPTH {
            if let Some(n) = self.whole.get(&(b.depth(), id)) {
                return Some(*n);
            }
            let inst = b.current().insts.get(id)?;
            let from = *inst.operands.first()?;
            id = match &inst.op {
                Op::Reshape | Op::Copy | Op::Elementwise(ScalarOp::Convert(DType::S32 | DType::S64)) => from,
                Op::Slice(dims) => {
                    let part = part_of(b, from, dims).unwrap_or(from);
                    let same = b.shape(part).as_array()?.elements() == inst.shape.as_array()?.elements();
                    same.then_some(part)?
                }
                _ => return None,
            };
        }
        None
    }

    /// The interval of an integer scalar of the open computation.
    pub fn of(&self, b: &Builder, id: InstId) -> Range {
        self.follow(b, id, MOST_DEPTH, &Cell::new(MOST_LOOKS))
    }

    /// Range that contains all elements of an array of integers of the open computation.
    pub fn elements(&self, b: &Builder, id: InstId) -> Range {
        self.follow(b, id, MOST_DEPTH, &Cell::new(MOST_LOOKS))
    }

    fn follow(&self, b: &Builder, id: InstId, depth: usize, left: &Cell<usize>) -> Range {
        let Some(inst) = b.current().insts.get(id) else { return Range::ALL };
        let more = left.get().checked_sub(1).and_then(|n| {
            left.set(n);
            depth.checked_sub(1)
        });
        let (Some(array), Some(depth)) = (inst.shape.as_array(), more) else { return Range::ALL };
        if !matches!(array.dtype, DType::S32 | DType::S64) {
            return Range::ALL;
        }
        let is_one = array.dims.iter().all(|d| d.is_one());
        let known = if is_one || is_small_constant(inst) { interp::known_value(b, id) } else { None };
        if let Some(known) = known {
            return match known.sizes {
                Some(sizes) => sizes.into_iter().map(of_size).reduce(Range::joined).unwrap_or(Range::ALL),
                None => Range::all(&known.value),
            };
        }
        let operand = |i: usize| inst.operands.get(i).map_or(Range::ALL, |&id| self.follow(b, id, depth, left));
        let range = match &inst.op {
            Op::GetTupleElement(_) => self.told(b, id).unwrap_or_else(|| left_by_loop(b, id)),
            Op::Reshape | Op::Copy | Op::Broadcast(_) | Op::Elementwise(ScalarOp::Convert(_)) => operand(0),
            Op::Transpose(_) | Op::Reverse(_) | Op::Gather(_) | Op::DynamicSlice(_) => operand(0),
            Op::Slice(dims) => match part_of(b, inst.operands[0], dims) {
                Some(part) => self.follow(b, part, depth, left),
                None => operand(0),
            },
            Op::Pad(_) | Op::DynamicUpdateSlice => operand(0).joined(operand(1)),
            Op::Concatenate(_) => (1..inst.operands.len()).fold(operand(0), |all, i| all.joined(operand(i))),
            Op::Iota(axis) => Range::new(0, i128::from(of_size(array.dims[*axis]).most) - 1),
            Op::Scatter { comp, .. } if replaces(b, *comp) => operand(0).joined(operand(2)),
            Op::Elementwise(ScalarOp::Select) => operand(1).joined(operand(2)),
            Op::Elementwise(ScalarOp::Clamp) => {
                let low = Range::of(ScalarOp::Maximum, operand(0), operand(1));
                Range::of(ScalarOp::Minimum, low, operand(2))
            }
            Op::Elementwise(op) if inst.operands.len() == 2 => Range::of(*op, operand(0), operand(1)),
            _ => Range::ALL,
        };
        if array.dtype == DType::S32 { range.wrapped() } else { range }
    }

    /// Range recorded for a scalar that is a part of the open computation's tuple.
    fn told(&self, b: &Builder, id: InstId) -> Option<Range> {
        let part = part(b, id)?;
        self.parts.get(&b.depth())?.get(part).copied()?
    }
}

/// The value of a constant of not too many elements.
fn is_small_constant(inst: &Inst) -> bool {
    matches!(&inst.op, Op::Constant(Literal::Array(t)) if t.len() <= MOST_ELEMENTS)
}

/// Range of a symbolic size.
fn of_size(size: Dim) -> Range {
    let within = trace::range(size);
    Range::new(within.least, within.most)
}

/// The one of the arrays joined in `x` in which a slice of them lies.
pub(super) fn part_of(b: &Builder, x: InstId, dims: &[SliceDim]) -> Option<InstId> {
    let inst = b.current().insts.get(x)?;
    let Op::Concatenate(axis) = inst.op else { return None };
    let (mut begin, slice) = (Dim::from(0), dims.get(axis)?);
    // in every call
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

/// Whether a computation of an old and a new element gives the new one.
fn replaces(b: &Builder, comp: CompId) -> bool {
    let comp = &b.module().comps[comp];
    comp.params.get(1) == Some(&comp.root)
}

/// Range of one part of a loop's final state: a single integer where that is known, else all integers.
fn left_by_loop(b: &Builder, id: InstId) -> Range {
    let known = interp::known_through_loops(b, id).and_then(|t| t.get_i64(0));
    known.map_or(Range::ALL, Range::one)
}

/// Index of the part of the open computation's tuple that a scalar is.
pub fn part(b: &Builder, mut id: InstId) -> Option<usize> {
    for _ in 0..MOST_DEPTH {
        let inst = b.current().insts.get(id)?;
        match &inst.op {
            Op::GetTupleElement(part) => {
                let tuple = b.current().insts.get(*inst.operands.first()?)?;
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
        let (x, y) = (Range { least: -7, most: 5 }, Range { least: 2, most: 3 });
        assert_eq!(Range::of(ScalarOp::Add, x, y), Range { least: -5, most: 8 });
        assert_eq!(Range::of(ScalarOp::Subtract, x, y), Range { least: -10, most: 3 });
        assert_eq!(Range::of(ScalarOp::Minimum, x, y), Range { least: -7, most: 3 });
        assert_eq!(Range::of(ScalarOp::Multiply, x, Range::one(2)), Range { least: -14, most: 10 });
        assert_eq!(Range::of(ScalarOp::Remainder, x, Range::one(4)), Range { least: -3, most: 3 });
        assert_eq!(Range::of(ScalarOp::Divide, x, Range::one(2)), Range { least: -3, most: 2 });
    }

    #[test]
    fn a_missing_end_stays_missing() {
        let x = Range::up_to(5);
        assert_eq!(Range::of(ScalarOp::Add, x, Range::one(1)), Range::up_to(6));
        assert_eq!(Range::of(ScalarOp::Subtract, Range::one(1), x).bound(), None);
        assert_eq!(Range::of(ScalarOp::Maximum, x, Range::one(0)), Range { least: 0, most: 5 });
        assert_eq!(Range { least: 0, most: i64::from(i32::MAX) + 1 }.wrapped(), Range::ALL);
    }
}
