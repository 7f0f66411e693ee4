//! Numbers that follow from the sizes of a call, as a module computes them.
use crate::hlo::{Computation, Inst, InstId, Literal, Module, Op};
use crate::scalar::ScalarOp;
use crate::schedule::plan::demand::PrefixBound;
use crate::tensor::DType;

/// Upper limit of instructions visited to find one dynamic size, which is taken as unknown beyond.
const MOST_LOOKS: usize = 256;
/// Upper limit of the recursion depth of a search through operands.
const MOST_DEEP: usize = 48;

/// A size that is known only at run time: an `s32[]` value, or a `pred[]` from which one is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DynamicSize {
    /// An `s32[]` argument of the entry.
    Argument(usize),
    /// A constant.
    Constant(i32),
    /// An op on other dynamic sizes, with the type of its result.
    Op(ScalarOp, Vec<DynamicSize>, DType),
    /// The maximum of some bounds.
    Largest(Vec<PrefixBound>),
}

/// Dynamic sizes, numbered without duplicates.
#[derive(Clone, Debug, Default)]
pub struct DynamicSizes {
    all: Vec<DynamicSize>,
}

impl DynamicSizes {
    /// The number of a dynamic size, which is added if it is new.
    pub fn intern(&mut self, amount: DynamicSize) -> usize {
        let known = self.all.iter().position(|a| *a == amount);
        known.unwrap_or_else(|| {
            self.all.push(amount);
            self.all.len() - 1
        })
    }

    /// The dynamic size with this number.
    pub fn get(&self, number: usize) -> Option<&DynamicSize> {
        self.all.get(number)
    }

    /// The bound that is equal to a dynamic size. Products with constants and sums with positive ones are folded into the bound, so that
    /// bounds of one size can be compared.
    pub fn intern_bound(&mut self, amount: DynamicSize) -> PrefixBound {
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
        PrefixBound { size: self.intern(rest), times, more }
    }

    /// The larger of two bounds.
    pub fn max_bound(&mut self, a: PrefixBound, b: PrefixBound) -> PrefixBound {
        if a.size == b.size {
            return PrefixBound { size: a.size, times: a.times.max(b.times), more: a.more.max(b.more) };
        }
        let mut all: Vec<PrefixBound> = Vec::new();
        for bound in [a, b] {
            let parts = match self.get(bound.size) {
                Some(DynamicSize::Largest(parts)) if bound.times == 1 && bound.more == 0 => parts.clone(),
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
        PrefixBound { size: self.intern(DynamicSize::Largest(all)), times: 1, more: 0 }
    }
}

impl DynamicSize {
    /// The op, the other operand and the constant, if the size is an op on a dynamic size and a constant that is not negative.
    fn with_constant(&self) -> Option<(ScalarOp, DynamicSize, u64)> {
        match self {
            DynamicSize::Op(op @ (ScalarOp::Multiply | ScalarOp::Add), of, DType::S32) => match &of[..] {
                [DynamicSize::Constant(n), other] | [other, DynamicSize::Constant(n)] => {
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
    /// A full budget: `MOST_LOOKS` steps, at depth 0.
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
pub struct CallFrame<'a> {
    /// The module.
    pub module: &'a Module,
    /// The called computation.
    pub comp: &'a Computation,
    /// The calling computation and the call; `None` for the entry, and if parameters are not the operands of a call.
    pub caller: Option<(&'a CallFrame<'a>, &'a Inst)>,
}

/// A search that is applied to the instruction that defines a value.
type Find<'f, T> = &'f mut dyn FnMut(&CallFrame, &Inst, &mut SearchBudget) -> Option<T>;

impl CallFrame<'_> {
    /// Applies `find` to the instruction that defines a value, through calls, fusions and tuples.
    pub fn at_definition<T>(&self, id: InstId, looks: &mut SearchBudget, find: Find<T>) -> Option<T> {
        let inst = &self.comp[id];
        looks.descend(|looks| match &inst.op {
            Op::Parameter(number) => match self.caller {
                Some((frame, call)) => frame.at_definition(*call.operands.get(*number)?, looks, find),
                None => find(self, inst, looks),
            },
            Op::Call(callee) | Op::Fusion { comp: callee, .. } => {
                let inner = CallFrame { comp: &self.module.comps[*callee], caller: Some((self, inst)), ..*self };
                inner.at_definition(inner.comp.root, looks, find)
            }
            Op::GetTupleElement(index) => self.at_definition(inst.operands[0], looks, &mut |frame, tuple, looks| {
                let part = matches!(tuple.op, Op::Tuple).then(|| tuple.operands.get(*index))??;
                frame.at_definition(*part, looks, find)
            }),
            Op::Copy | Op::OptimizationBarrier => self.at_definition(inst.operands[0], looks, find),
            _ => find(self, inst, looks),
        })
    }

    /// The dynamic size that equals every element of a value.
    pub fn dynamic_size_of(&self, id: InstId, looks: &mut SearchBudget) -> Option<DynamicSize> {
        self.at_definition(id, looks, &mut |frame, inst, looks| {
            let dtype = inst.shape.as_array()?.dtype;
            let of_entry = std::ptr::eq(frame.comp, frame.module.entry());
            match &inst.op {
                Op::Parameter(number) if of_entry && dtype == DType::S32 && elements(inst) == Some(1) => {
                    Some(DynamicSize::Argument(*number))
                }
                Op::Constant(Literal::Array(t)) if dtype == DType::S32 && t.dims.iter().all(|&n| n == 1) => {
                    Some(DynamicSize::Constant(*t.to_vec::<i32>().first()?))
                }
                Op::Broadcast(_) | Op::Reshape | Op::Bitcast
                    if elements(&frame.comp[*inst.operands.first()?]) == Some(1) =>
                {
                    frame.dynamic_size_of(inst.operands[0], looks)
                }
                Op::Elementwise(op) if matches!(dtype, DType::S32 | DType::Pred) => {
                    let of = inst.operands.iter().map(|&o| frame.dynamic_size_of(o, looks));
                    Some(DynamicSize::Op(*op, of.collect::<Option<_>>()?, dtype))
                }
                _ => None,
            }
        })
    }
}

fn elements(inst: &Inst) -> Option<u64> {
    Some(inst.shape.as_array()?.elements())
}
