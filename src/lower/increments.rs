//! Analysis of induction variables: the range of what one iteration of a loop adds to an integer of its state, through conditionals too.
use crate::hlo::symbolic::{Builder, Computation, InstId, Literal, Module, Op};
use crate::interp;
use crate::scalar::ScalarOp;
use crate::symbolic::{Dim, trace};
use crate::tensor::DType;

/// Upper bound on the instructions visited by one search.
const MAX_VISITED: usize = 256;
/// Upper bound on the depth of nested operands and computations that the analysis follows.
const MAX_DEPTH: usize = 64;

/// Least and greatest amount that an iteration adds to an integer.
pub type Increment = (i64, i64);

/// A computation with one tuple parameter: the body of a loop, or a branch nested in it.
struct Frame<'a> {
    comp: &'a Computation,
    /// The calling computation and the argument tuple there; `None` for the body of the loop.
    outer: Option<(&'a Frame<'a>, InstId)>,
}

struct IncrementSearch<'a> {
    b: &'a Builder,
    module: &'a Module,
    /// Index of the state element whose increment is wanted.
    part: usize,
    seen: usize,
}

/// Range of `id - state[part]` in the body of a loop, the open computation. `None` where `id` is not element `part` of the state plus
/// integers of known range.
pub fn state_increment(b: &Builder, id: InstId, part: usize) -> Option<Increment> {
    let mut search = IncrementSearch { b, module: b.module(), part, seen: 0 };
    search.increment(&Frame { comp: b.current_computation(), outer: None }, id, MAX_DEPTH)
}

impl IncrementSearch<'_> {
    fn increment(&mut self, frame: &Frame, id: InstId, depth: usize) -> Option<Increment> {
        self.seen += 1;
        let depth = depth.checked_sub(1).filter(|_| self.seen <= MAX_VISITED)?;
        let inst = frame.comp.insts.get(id)?;
        match (&inst.op, &inst.operands[..]) {
            (Op::GetTupleElement(i), &[tuple]) => self.tuple_part_increment(frame, tuple, *i, depth),
            (Op::Reshape, &[x]) => self.increment(frame, x, depth),
            (Op::Elementwise(ScalarOp::Add), &[x, y]) => {
                let (from, by) = match self.loop_invariant_range(frame, y) {
                    Some(by) => (x, by),
                    None => (y, self.loop_invariant_range(frame, x)?),
                };
                let (least, most) = self.increment(frame, from, depth)?;
                Some((least.checked_add(by.0)?, most.checked_add(by.1)?))
            }
            (Op::Elementwise(ScalarOp::Subtract), &[x, y]) => {
                let (by, (least, most)) = (self.loop_invariant_range(frame, y)?, self.increment(frame, x, depth)?);
                Some((least.checked_sub(by.1)?, most.checked_sub(by.0)?))
            }
            (Op::Elementwise(ScalarOp::Select), &[_, x, y]) => {
                let (x, y) = (self.increment(frame, x, depth)?, self.increment(frame, y, depth)?);
                Some((x.0.min(y.0), x.1.max(y.1)))
            }
            _ => None,
        }
    }

    /// Range of the difference between element `i` of a tuple and the state element under analysis. The tuple is the loop state, an
    /// argument of a branch, or the result of a conditional.
    fn tuple_part_increment(&mut self, frame: &Frame, tuple: InstId, i: usize, depth: usize) -> Option<Increment> {
        let inst = frame.comp.insts.get(tuple)?;
        match (&inst.op, frame.outer) {
            (Op::Parameter(_), None) => (i == self.part).then_some((0, 0)),
            (Op::Parameter(_), Some((outer, at))) => self.tuple_part_increment(outer, at, i, depth.checked_sub(1)?),
            (Op::Tuple, _) => self.increment(frame, *inst.operands.get(i)?, depth),
            (Op::Conditional(branches), _) => {
                let mut all: Option<Increment> = None;
                for (&branch, &operand) in branches.iter().zip(inst.operands.get(1..)?) {
                    let comp = self.module.comps.get(branch)?;
                    let inner = Frame { comp, outer: Some((frame, operand)) };
                    let step = self.tuple_part_increment(&inner, comp.root, i, depth.checked_sub(1)?)?;
                    all = Some(all.map_or(step, |all| (all.0.min(step.0), all.1.max(step.1))));
                }
                all
            }
            _ => None,
        }
    }

    /// Dynamic size that the constant `id` stands for; `None` for a constant that is the same for all sizes.
    fn varying_size(&self, frame: &Frame, id: InstId) -> Option<Dim> {
        let closed = frame.comp.size_constants.iter().find(|(constant, _)| *constant == id).map(|(_, own)| &own[..]);
        let open = || self.b.size_constant_elements(id).filter(|_| frame.outer.is_none());
        match closed.or_else(open)? {
            [size] => Some(*size).filter(|size| size.varies()),
            _ => None,
        }
    }

    /// Range of an integer that does not depend on the state of the loop. `None` where none is known.
    fn loop_invariant_range(&self, frame: &Frame, id: InstId) -> Option<Increment> {
        let inst = frame.comp.insts.get(id)?;
        if let Some(size) = self.varying_size(frame, id) {
            let within = trace::range_of(size);
            return Some((i64::try_from(within.least).ok()?, i64::try_from(within.most).ok()?));
        }
        match (&inst.op, &inst.operands[..]) {
            (Op::Constant(Literal::Array(t)), _) if t.len() == 1 => t.get_i64(0).map(|n| (n, n)),
            // a truth value counted
            (Op::Elementwise(ScalarOp::Convert(_)), &[x]) => {
                (frame.comp.insts.get(x)?.shape.as_array()?.dtype == DType::Pred).then_some((0, 1))
            }
            (Op::Reshape, &[x]) => self.loop_invariant_range(frame, x),
            _ if frame.outer.is_none() => {
                interp::constant_value(self.b, id).filter(|t| t.len() == 1)?.get_i64(0).map(|n| (n, n))
            }
            _ => None,
        }
    }
}
