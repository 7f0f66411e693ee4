//! Numbers that follow from the sizes of a call, as a module computes them.
use crate::hlo::{Computation, Inst, InstId, Literal, Module, Op};
use crate::scalar::ScalarOp;
use crate::schedule::plan::demand::Bound;
use crate::tensor::DType;

/// Upper limit of instructions visited to find one amount; the amount is unknown if that is exceeded.
const MOST_LOOKS: usize = 256;
/// Upper limit of the recursion depth of a search through operands.
const MOST_DEEP: usize = 48;

/// An integer whose value each run of the program determines: an `s32[]`, or a `pred[]` on the way to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// An `s32[]` argument of the entry.
    Argument(usize),
    /// A constant.
    Constant(i32),
    /// An op on other amounts, with the type of its result.
    Op(ScalarOp, Vec<Amount>, DType),
    /// The maximum of some bounds.
    Largest(Vec<Bound>),
}

/// Numbered amounts without duplicates.
#[derive(Clone, Debug, Default)]
pub struct Amounts {
    all: Vec<Amount>,
}

impl Amounts {
    /// The number of an amount, which is added if it is new.
    pub fn intern(&mut self, amount: Amount) -> usize {
        let known = self.all.iter().position(|a| *a == amount);
        known.unwrap_or_else(|| {
            self.all.push(amount);
            self.all.len() - 1
        })
    }

    /// The amount with this number.
    pub fn get(&self, number: usize) -> Option<&Amount> {
        self.all.get(number)
    }

    /// The bound that is equal to an amount. Products with constants and sums with positive ones are folded into the bound, so that
    /// bounds of one size can be compared.
    pub fn intern_bound(&mut self, amount: Amount) -> Bound {
        let (mut times, mut more, mut rest) = (1u64, 0u64, amount);
        while let Some((op, of, constant)) = rest.with_constant() {
            let next = match op {
                ScalarOp::Multiply if constant > 0 => times.checked_mul(constant).map(|times| (times, more)),
                ScalarOp::Add => {
                    times.checked_mul(constant).and_then(|n| n.checked_add(more)).map(|more| (times, more))
                }
                _ => None,
            };
            match next {
                Some(next) => ((times, more), rest) = (next, of),
                None => break,
            }
        }
        Bound { size: self.intern(rest), times, more }
    }

    /// The larger of two bounds.
    pub fn max_bound(&mut self, a: Bound, b: Bound) -> Bound {
        if a.size == b.size {
            return Bound { size: a.size, times: a.times.max(b.times), more: a.more.max(b.more) };
        }
        let mut all: Vec<Bound> = Vec::new();
        for bound in [a, b] {
            let parts = match self.get(bound.size) {
                Some(Amount::Largest(parts)) if bound.times == 1 && bound.more == 0 => parts.clone(),
                _ => vec![bound],
            };
            for part in parts {
                match all.iter_mut().find(|known| known.size == part.size) {
                    Some(known) => *known = self.max_bound(*known, part),
                    None => all.push(part),
                }
            }
        }
        all.sort_by_key(|bound| bound.size);
        Bound { size: self.intern(Amount::Largest(all)), times: 1, more: 0 }
    }
}

impl Amount {
    /// The op, the other operand and the constant, if the amount is an op on an amount and a constant that is not negative.
    fn with_constant(&self) -> Option<(ScalarOp, Amount, u64)> {
        match self {
            Amount::Op(op @ (ScalarOp::Multiply | ScalarOp::Add), of, DType::S32) => match &of[..] {
                [Amount::Constant(n), other] | [other, Amount::Constant(n)] => {
                    Some((*op, other.clone(), u64::try_from(*n).ok()?))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Remaining steps and depth of a search through operands.
pub struct SearchBudget {
    left: usize,
    deep: usize,
}

impl SearchBudget {
    /// The full budget.
    pub fn new() -> SearchBudget {
        SearchBudget { left: MOST_LOOKS, deep: 0 }
    }

    /// Runs `next`, one level deeper, if the budget allows.
    pub fn descend<T>(&mut self, next: impl FnOnce(&mut SearchBudget) -> Option<T>) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        if self.deep == MOST_DEEP {
            return None;
        }
        self.deep += 1;
        let found = next(self);
        self.deep -= 1;
        found
    }
}

/// A computation and the call that runs it.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The module.
    pub module: &'a Module,
    /// The computation.
    pub comp: &'a Computation,
    /// The calling computation and the call; `None` for the entry, and if parameters are not the operands of a call.
    pub caller: Option<(&'a Frame<'a>, &'a Inst)>,
}

/// A search that is applied to the instruction that defines a value.
type Find<'f, T> = &'f mut dyn FnMut(&Frame, &Inst, &mut SearchBudget) -> Option<T>;

impl Frame<'_> {
    /// Applies `find` to the instruction that defines a value, through calls, fusions and tuples.
    pub fn at_source<T>(&self, id: InstId, looks: &mut SearchBudget, find: Find<T>) -> Option<T> {
        let inst = &self.comp[id];
        looks.descend(|looks| match &inst.op {
            Op::Parameter(number) => match self.caller {
                Some((frame, call)) => frame.at_source(*call.operands.get(*number)?, looks, find),
                None => find(self, inst, looks),
            },
            Op::Call(callee) | Op::Fusion { comp: callee, .. } => {
                let inner = Frame { comp: &self.module.comps[*callee], caller: Some((self, inst)), ..*self };
                inner.at_source(inner.comp.root, looks, find)
            }
            Op::GetTupleElement(index) => self.at_source(inst.operands[0], looks, &mut |frame, tuple, looks| {
                let part = matches!(tuple.op, Op::Tuple).then(|| tuple.operands.get(*index))??;
                frame.at_source(*part, looks, find)
            }),
            Op::Copy | Op::OptimizationBarrier => self.at_source(inst.operands[0], looks, find),
            _ => find(self, inst, looks),
        })
    }

    /// The amount that every element of a value is equal to.
    pub fn amount_of(&self, id: InstId, looks: &mut SearchBudget) -> Option<Amount> {
        self.at_source(id, looks, &mut |frame, inst, looks| {
            let dtype = inst.shape.as_array()?.dtype;
            let of_entry = std::ptr::eq(frame.comp, frame.module.entry());
            match &inst.op {
                Op::Parameter(number) if of_entry && dtype == DType::S32 && elements(inst) == Some(1) => {
                    Some(Amount::Argument(*number))
                }
                Op::Constant(Literal::Array(t)) if dtype == DType::S32 && t.dims.iter().all(|&n| n == 1) => {
                    Some(Amount::Constant(*t.to_vec::<i32>().first()?))
                }
                Op::Broadcast(_) | Op::Reshape | Op::Bitcast
                    if elements(&frame.comp[*inst.operands.first()?]) == Some(1) =>
                {
                    frame.amount_of(inst.operands[0], looks)
                }
                Op::Elementwise(op) if matches!(dtype, DType::S32 | DType::Pred) => {
                    let of = inst.operands.iter().map(|&o| frame.amount_of(o, looks));
                    Some(Amount::Op(*op, of.collect::<Option<_>>()?, dtype))
                }
                _ => None,
            }
        })
    }
}

fn elements(inst: &Inst) -> Option<u64> {
    Some(inst.shape.as_array()?.elements())
}
