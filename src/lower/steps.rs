//! By how much a round of a loop changes an integer of its state, also where it does so in some rounds only.
use crate::hlo::open::{Builder, Computation, InstId, Literal, Module, Op};
use crate::interp;
use crate::scalar::ScalarOp;
use crate::symbolic::{Dim, trace};
use crate::tensor::DType;

/// No more instructions are looked at.
const MOST_SEEN: usize = 256;
/// So many computations and operands may lie within one another.
const MOST_DEPTH: usize = 64;

/// The least and the most that is added.
pub type Increment = (i64, i64);

/// A computation whose parameter is a tuple.
struct Frame<'a> {
    comp: &'a Computation,
    /// Where it is called, and that tuple there; `None` for the body of the loop.
    outer: Option<(&'a Frame<'a>, InstId)>,
}

struct Search<'a> {
    b: &'a Builder,
    module: &'a Module,
    /// The part of the state that is followed.
    part: usize,
    seen: usize,
}

/// Range of the number that a loop's body adds to a part of the state to get its instruction `id`; `None` where `id` is no such sum.
pub fn added(b: &Builder, id: InstId, part: usize) -> Option<Increment> {
    let mut search = Search { b, module: b.module(), part, seen: 0 };
    search.of(&Frame { comp: b.current(), outer: None }, id, MOST_DEPTH)
}

impl Search<'_> {
    fn of(&mut self, frame: &Frame, id: InstId, depth: usize) -> Option<Increment> {
        self.seen += 1;
        let depth = depth.checked_sub(1).filter(|_| self.seen <= MOST_SEEN)?;
        let inst = frame.comp.insts.get(id)?;
        match (&inst.op, &inst.operands[..]) {
            (Op::GetTupleElement(i), &[tuple]) => self.of_part(frame, tuple, *i, depth),
            (Op::Reshape, &[x]) => self.of(frame, x, depth),
            (Op::Elementwise(ScalarOp::Add), &[x, y]) => {
                let (from, by) = match self.number(frame, y) {
                    Some(by) => (x, by),
                    None => (y, self.number(frame, x)?),
                };
                let (least, most) = self.of(frame, from, depth)?;
                Some((least.checked_add(by.0)?, most.checked_add(by.1)?))
            }
            (Op::Elementwise(ScalarOp::Subtract), &[x, y]) => {
                let (by, (least, most)) = (self.number(frame, y)?, self.of(frame, x, depth)?);
                Some((least.checked_sub(by.1)?, most.checked_sub(by.0)?))
            }
            (Op::Elementwise(ScalarOp::Select), &[_, x, y]) => {
                let (x, y) = (self.of(frame, x, depth)?, self.of(frame, y, depth)?);
                Some((x.0.min(y.0), x.1.max(y.1)))
            }
            _ => None,
        }
    }

    /// Part `i` of a tuple: of the state, of what a branch is called with, or of what branches leave.
    fn of_part(&mut self, frame: &Frame, tuple: InstId, i: usize, depth: usize) -> Option<Increment> {
        let inst = frame.comp.insts.get(tuple)?;
        match (&inst.op, frame.outer) {
            (Op::Parameter(_), None) => (i == self.part).then_some((0, 0)),
            (Op::Parameter(_), Some((outer, at))) => self.of_part(outer, at, i, depth.checked_sub(1)?),
            (Op::Tuple, _) => self.of(frame, *inst.operands.get(i)?, depth),
            (Op::Conditional(branches), _) => {
                let mut all: Option<Increment> = None;
                for (&branch, &operand) in branches.iter().zip(inst.operands.get(1..)?) {
                    let comp = self.module.comps.get(branch)?;
                    let inner = Frame { comp, outer: Some((frame, operand)) };
                    let step = self.of_part(&inner, comp.root, i, depth.checked_sub(1)?)?;
                    all = Some(all.map_or(step, |all| (all.0.min(step.0), all.1.max(step.1))));
                }
                all
            }
            _ => None,
        }
    }

    /// The size that a constant is, where it varies.
    fn size(&self, frame: &Frame, id: InstId) -> Option<Dim> {
        let closed = frame.comp.size_constants.iter().find(|(constant, _)| *constant == id).map(|(_, own)| &own[..]);
        let open = || self.b.size_constant_elements(id).filter(|_| frame.outer.is_none());
        match closed.or_else(open)? {
            [size] => Some(*size).filter(|size| size.varies()),
            _ => None,
        }
    }

    /// Range of an integer that does not depend on the state of the loop.
    fn number(&self, frame: &Frame, id: InstId) -> Option<Increment> {
        let inst = frame.comp.insts.get(id)?;
        if let Some(size) = self.size(frame, id) {
            let within = trace::range(size);
            return Some((i64::try_from(within.least).ok()?, i64::try_from(within.most).ok()?));
        }
        match (&inst.op, &inst.operands[..]) {
            (Op::Constant(Literal::Array(t)), _) if t.len() == 1 => t.get_i64(0).map(|n| (n, n)),
            // a truth value counted
            (Op::Elementwise(ScalarOp::Convert(_)), &[x]) => {
                (frame.comp.insts.get(x)?.shape.as_array()?.dtype == DType::Pred).then_some((0, 1))
            }
            (Op::Reshape, &[x]) => self.number(frame, x),
            _ if frame.outer.is_none() => {
                interp::constant_value(self.b, id).filter(|t| t.len() == 1)?.get_i64(0).map(|n| (n, n))
            }
            _ => None,
        }
    }
}
