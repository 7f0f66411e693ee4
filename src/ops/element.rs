//! Symbolic analysis of integer arrays: an element as an expression of sizes and of other elements. Two elements that are known
//! only at run time may have a difference that is known at compile time.
use crate::hlo::symbolic::{Builder, CompId, Dim, Inst, InstId, Op, Shape};
use crate::interp;
use crate::scalar::ScalarOp;
use crate::symbolic::SizeExpr;
use crate::symbolic::trace::SizeOp;
use crate::tensor::DType;
use std::collections::HashSet;

/// Depth to which the operands of an integer are followed.
const MOST_DEPTH: usize = 32;

/// Element of an array: the variable of an [`ElementExpr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayElement {
    /// First instruction of the current computation that computes the array.
    pub array: InstId,
    /// Row-major position of the element.
    pub at: Dim,
}

/// Integer expression of sizes and of array elements.
#[derive(Clone, Debug)]
pub struct ElementExpr {
    /// Term that depends on sizes alone.
    size: Dim,
    /// Term that depends on array elements, which are known only at run time.
    rest: SizeExpr<ArrayElement>,
}

impl ElementExpr {
    fn of_size(size: Dim) -> ElementExpr {
        ElementExpr { size, rest: SizeExpr::default() }
    }
    /// The expression as a size, if no array element occurs in it.
    pub fn as_size(&self) -> Option<Dim> {
        (self.rest.known() == Some(0)).then_some(self.size)
    }
    fn add(&self, other: &ElementExpr) -> Option<ElementExpr> {
        Some(ElementExpr { size: self.size.apply_op(SizeOp::Add, other.size)?, rest: self.rest.add(&other.rest)? })
    }
    /// Difference of two expressions; `None` if it overflows.
    pub fn sub(&self, other: &ElementExpr) -> Option<ElementExpr> {
        self.add(&other.scale(-1)?)
    }
    fn scale(&self, by: i64) -> Option<ElementExpr> {
        let size = self.size.apply_op(SizeOp::Multiply, Dim::from(by))?;
        Some(ElementExpr { size, rest: self.rest.scale(by)? })
    }
}

/// Element `at` (row-major) of an integer array.
///
/// The analysis follows sums, differences, products with constants, and ops that only move elements; the result of any other op
/// is a variable. Sums are assumed not to wrap: a slice whose start is near the end of the index type has no elements.
pub fn element_expr(b: &Builder, array: InstId, at: Dim) -> ElementExpr {
    Reader::new(b).element_expr(array, at, MOST_DEPTH)
}

/// Whether two instructions of the current computation have the same value, because they are equal ops of equal operands.
pub fn is_same_value(b: &Builder, x: InstId, y: InstId) -> bool {
    Reader::new(b).is_equal(x, y, 4 * MOST_DEPTH)
}

struct Reader<'b> {
    b: &'b Builder,
    /// Remaining budget of expression nodes that one element may visit; without it, shared subexpressions would take exponential time.
    budget: usize,
    /// Number of pairs of instructions whose operands may still be compared.
    comparisons: usize,
    /// Pairs of instructions that were found to have equal values.
    equal: HashSet<(InstId, InstId)>,
}

impl<'b> Reader<'b> {
    fn new(b: &'b Builder) -> Self {
        Reader { b, budget: 256, comparisons: 1 << 16, equal: HashSet::new() }
    }

    fn element_expr(&mut self, array: InstId, at: Dim, depth: usize) -> ElementExpr {
        if let Some(known) = interp::symbolic_value(self.b, array)
            && let Ok(i) = usize::try_from(at)
        {
            let sized = known.sizes.and_then(|sizes| sizes.get(i).copied());
            if let Some(size) = sized.or_else(|| known.value.get_i64(i).map(Dim::from)) {
                return ElementExpr::of_size(size);
            }
        }
        self.budget = self.budget.saturating_sub(1);
        let seen = if depth == 0 || self.budget == 0 { None } else { self.through(array, at, depth - 1) };
        seen.unwrap_or_else(|| self.term(array, at))
    }

    fn term(&mut self, array: InstId, at: Dim) -> ElementExpr {
        let element = ArrayElement { array: self.first_equal(array), at };
        ElementExpr { size: Dim::from(0), rest: SizeExpr::var(element) }
    }

    /// First instruction that computes the same value as `array`: a graph may contain `i // 4` more than once.
    fn first_equal(&mut self, array: InstId) -> InstId {
        let b = self.b;
        let mut before = b.current_computation().insts.ids().take_while(|&id| id < array);
        before.find(|&id| self.is_equal(id, array, MOST_DEPTH)).unwrap_or(array)
    }

    /// Whether two instructions are the same op of the same operands; false once the budget of comparisons is used up.
    fn is_equal(&mut self, x: InstId, y: InstId, depth: usize) -> bool {
        let (a, b) = (&self.b.current_computation().insts[x], &self.b.current_computation().insts[y]);
        if x == y || self.equal.contains(&(x, y)) {
            return true;
        }
        if depth == 0
            || !a.shape.always_equals(&b.shape)
            || a.operands.len() != b.operands.len()
            || !self.is_one_op(&a.op, &b.op)
        {
            return false;
        }
        self.comparisons = self.comparisons.saturating_sub(1);
        let equal =
            self.comparisons > 0 && a.operands.iter().zip(&b.operands).all(|(&x, &y)| self.is_equal(x, y, depth - 1));
        if equal {
            self.equal.insert((x, y));
        }
        equal
    }

    /// Whether two ops are equal. The computations that they call may be separate copies.
    fn is_one_op(&self, x: &Op, y: &Op) -> bool {
        if matches!(x, Op::Rng { .. } | Op::Foreign(_) | Op::Parameter(_)) || x.name() != y.name() {
            return false;
        }
        let (comps, mut y) = (&self.b.module().comps, y.clone());
        for (own, there) in x.called_computations().into_iter().zip(y.called_computations_mut()) {
            if own != *there && comps[own].has_same_instructions(&comps[*there]) {
                *there = own;
            }
        }
        x.always_equals(&y)
    }

    /// Expression of an element in terms of the operands of its array's instruction; `None` for an op that the analysis does
    /// not follow.
    fn through(&mut self, array: InstId, at: Dim, depth: usize) -> Option<ElementExpr> {
        let inst = self.b.current_computation().insts.get(array)?;
        let x = *inst.operands.first()?;
        match &inst.op {
            Op::Reshape | Op::Copy => Some(self.element_expr(x, at, depth)),
            Op::Broadcast(_) if self.b.rank(x) == 0 => Some(self.element_expr(x, Dim::from(0), depth)),
            Op::Slice(dims) => match dims[..] {
                [d] => Some(self.element_expr(x, d.start.checked_add(at.checked_mul(d.stride)?)?, depth)),
                _ => None,
            },
            Op::Concatenate(_) if self.b.rank(array) == 1 => {
                let mut left = at;
                for &part in &inst.operands {
                    let n = self.b.dims(part)[0];
                    if left < n {
                        return Some(self.element_expr(part, left, depth));
                    }
                    left -= n;
                }
                None
            }
            Op::Elementwise(op) => self.arithmetic(*op, inst, at, depth),
            Op::Reduce { comp, .. } if self.is_one_each(inst, *comp) => Some(self.element_expr(x, at, depth)),
            _ => None,
        }
    }

    /// Whether a reduction copies elements: each result element equals one operand element.
    fn is_one_each(&self, reduce: &Inst, comp: CompId) -> bool {
        let [x, init] = reduce.operands[..] else { return false };
        let comp = &self.b.module().comps[comp];
        let root = &comp.insts[comp.root];
        let neutral = match root.op {
            Op::Elementwise(ScalarOp::Add) if root.operands == comp.params => 0,
            Op::Elementwise(ScalarOp::Multiply) if root.operands == comp.params => 1,
            _ => return false,
        };
        let elements = |shape: &Shape| shape.as_array().map(|a| a.elements());
        let (before, after) = (elements(self.b.shape(x)), elements(&reduce.shape));
        before.zip(after).is_some_and(|(before, after)| before.is_same(after))
            && interp::constant_value(self.b, init).and_then(|t| t.get_i64(0)) == Some(neutral)
    }

    fn arithmetic(&mut self, op: ScalarOp, inst: &Inst, at: Dim, depth: usize) -> Option<ElementExpr> {
        let wide = |t: DType| matches!(t, DType::S32 | DType::S64);
        if !inst.operands.iter().all(|&x| wide(self.b.dtype(x))) {
            return None;
        }
        let mut args = inst.operands.iter().map(|&x| self.element_expr(x, at, depth)).collect::<Vec<_>>().into_iter();
        let (x, y) = (args.next()?, args.next());
        match (op, y) {
            (ScalarOp::Add, Some(y)) => x.add(&y),
            (ScalarOp::Subtract, Some(y)) => x.sub(&y),
            (ScalarOp::Multiply, Some(y)) => {
                let fixed = |e: &ElementExpr| e.as_size().filter(|n| !n.varies()).map(Dim::concrete_value);
                match (fixed(&x), fixed(&y)) {
                    (_, Some(n)) => x.scale(n),
                    (Some(n), _) => y.scale(n),
                    (None, None) => None,
                }
            }
            (ScalarOp::Negate, None) => x.scale(-1),
            (ScalarOp::Convert(to), None) if wide(to) => Some(x),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims;
    use crate::hlo::symbolic::Shape;

    #[test]
    fn sums_that_share_their_terms_differ_by_a_number() {
        let mut b = Builder::new("test");
        let i = b.parameter(Shape::array(DType::S32, []));
        let (four, three) = (b.scalar(DType::S32, 4.0), b.scalar(DType::S32, 3.0));
        let begin = b.mul(i, four);
        let end = b.add(i, three);
        let end = b.mul(four, end);
        let end = b.convert(end, DType::S64);
        let end = b.reshape(end, &dims![1]);
        let wide = b.convert(begin, DType::S64);
        let wide = b.reshape(wide, &dims![1]);
        let ends = b.concatenate(&[wide, end], 0);
        let (begin, end) = (element_expr(&b, begin, Dim::from(0)), element_expr(&b, ends, Dim::from(1)));
        assert_eq!(b.take_error(), None);
        assert_eq!((begin.as_size(), end.as_size()), (None, None));
        assert_eq!(end.sub(&begin).and_then(|d| d.as_size()), Some(Dim::from(12)));
    }

    #[test]
    fn a_term_that_is_computed_twice_is_one_term() {
        let mut b = Builder::new("test");
        let i = b.parameter(Shape::array(DType::S32, []));
        let (four, three) = (b.scalar(DType::S32, 4.0), b.scalar(DType::S32, 3.0));
        let [x, y] = [0, 1].map(|_| b.binary(ScalarOp::Divide, i, four));
        let other = b.binary(ScalarOp::Divide, i, three);
        let end = b.add(y, three);
        let difference = |x: InstId, y: InstId| {
            element_expr(&b, x, Dim::from(0)).sub(&element_expr(&b, y, Dim::from(0))).and_then(|d| d.as_size())
        };
        assert_eq!(difference(end, x), Some(Dim::from(3)));
        assert_eq!(difference(other, x), None);
    }

    #[test]
    fn a_product_of_one_number_is_the_number() {
        let mut b = Builder::new("test");
        let (i, four) = (b.parameter(Shape::array(DType::S64, dims![1])), b.full(DType::S64, &dims![1], 4.0));
        let both = b.concatenate(&[four, i], 0);
        let one = b.scalar(DType::S64, 1.0);
        let first = b.slice_axis(both, 0, Dim::from(0), Dim::from(1));
        let [first, both] = [first, both].map(|x| b.reduce(x, one, ScalarOp::Multiply, &[0]));
        assert_eq!([first, both].map(|x| element_expr(&b, x, Dim::from(0)).as_size()), [Some(Dim::from(4)), None]);
    }

    #[test]
    fn other_numbers_and_narrow_types_are_not_one_term() {
        let mut b = Builder::new("test");
        let (i, j) = (b.parameter(Shape::array(DType::S32, [])), b.parameter(Shape::array(DType::S32, [])));
        let narrow = b.convert(i, DType::S8);
        let difference = |x: InstId, y: InstId| {
            element_expr(&b, x, Dim::from(0)).sub(&element_expr(&b, y, Dim::from(0))).and_then(|d| d.as_size())
        };
        assert_eq!(difference(i, j), None);
        assert_eq!(difference(narrow, i), None);
        assert_eq!(difference(i, i), Some(Dim::from(0)));
    }
}
