//! Integers that a computation under construction computes from open sizes, as expressions of these sizes.
//!
//! Each instruction is evaluated exactly: a truth value is an expression that is 1 or 0, and a result that may overflow its
//! element type is rejected, as machine integers wrap around.
use super::constant::constant_tensor;
use crate::hlo::{Builder, CompId, Inst, InstId, Literal, Op, SizeRepr};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::trace::{self, SizeOp};
use crate::symbolic::{Dim, Interval};
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;

/// Largest number of elements of an array that is evaluated.
const MOST_ELEMENTS: u64 = 1 << 8;
/// Largest number of instructions from which a value is computed.
const MOST_INSTS: usize = 1 << 10;

/// Elements of an integer or boolean array of the current computation, in row-major order. `None` if they depend on anything
/// but sizes, or in a way that cannot be expressed. Records no guards.
pub fn symbolic_elements<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<Vec<Dim>> {
    let mut known: HashMap<InstId, Vec<Dim>> = HashMap::new();
    let mut todo = vec![(id, false)];
    let mut count = 0;
    while let Some((id, ready)) = todo.pop() {
        if known.contains_key(&id) {
            continue;
        }
        let inst = b.current_computation().insts.get(id)?;
        if ready || inst.operands.is_empty() {
            let elements = Follower { b, known: &known }.elements(id, inst)?;
            known.insert(id, elements);
            continue;
        }
        count += 1;
        if count > MOST_INSTS || !is_followed(inst) {
            return None;
        }
        todo.push((id, true));
        todo.extend(inst.operands.iter().map(|&operand| (operand, false)));
    }
    known.remove(&id)
}

/// Whether an instruction can be evaluated: a small array of fixed sizes.
fn is_followed<D: SizeRepr>(inst: &Inst<D>) -> bool {
    let Some(array) = inst.shape.as_array() else { return false };
    let is_small = array.dims.iter().try_fold(1u64, |n, &d| {
        let d: Dim = d.into();
        n.checked_mul(u64::try_from(d.concrete_value()).ok().filter(|_| !d.varies())?)
    });
    let is_known_op =
        matches!(inst.op, Op::Constant(_) | Op::Iota(_) | Op::Elementwise(_) | Op::Reduce { .. }) || moves(&inst.op);
    is_known_op && range(array.dtype).is_some() && is_small.is_some_and(|n| n <= MOST_ELEMENTS)
}

/// Whether an op only moves elements of its operands.
fn moves<D: SizeRepr>(op: &Op<D>) -> bool {
    matches!(
        op,
        Op::Reshape
            | Op::Copy
            | Op::Broadcast(_)
            | Op::Slice(_)
            | Op::Transpose(_)
            | Op::Reverse(_)
            | Op::Concatenate(_)
            | Op::Gather(_)
            | Op::DynamicSlice(_)
    )
}

/// Range of an element type.
fn range(dtype: DType) -> Option<Interval> {
    match dtype {
        DType::Pred => Some(Interval::new(0, 1)),
        DType::S32 => Some(Interval::new(i32::MIN.into(), i32::MAX.into())),
        DType::S64 => Some(Interval::new(i64::MIN.into(), i64::MAX.into())),
        _ => None,
    }
}

struct Follower<'a, D: SizeRepr> {
    b: &'a Builder<D>,
    known: &'a HashMap<InstId, Vec<Dim>>,
}

impl<D: SizeRepr> Follower<'_, D> {
    fn elements(&self, id: InstId, inst: &Inst<D>) -> Option<Vec<Dim>> {
        if !is_followed(inst) {
            return None;
        }
        let operands: Vec<&Vec<Dim>> = inst.operands.iter().map(|o| self.known.get(o)).collect::<Option<_>>()?;
        let array = inst.shape.as_array()?;
        let out = match &inst.op {
            Op::Constant(Literal::Array(t)) => match self.b.size_constant_elements(id) {
                Some(elements) => elements.iter().map(|&e| e.into()).collect(),
                None => integers(t)?,
            },
            Op::Iota(axis) => iota(&array.dims.iter().map(|&d| d.at_current_sizes()).collect::<Vec<u64>>(), *axis),
            Op::Elementwise(op) => {
                let is_bitwise = matches!(op, ScalarOp::And | ScalarOp::Or | ScalarOp::Xor | ScalarOp::Not);
                if is_bitwise && array.dtype != DType::Pred {
                    return None;
                }
                let count = operands.first()?.len();
                (0..count)
                    .map(|i| scalar(*op, &operands.iter().map(|o| o[i]).collect::<Vec<_>>()))
                    .collect::<Option<_>>()?
            }
            Op::Reduce { comp, dims } => self.reduced(inst, *comp, dims.len(), &operands)?,
            op if moves(op) => self.moved(inst, &operands)?,
            _ => return None,
        };
        let within = range(array.dtype)?;
        out.iter().all(|&d| trace::is_within(d, within)).then_some(out)
    }

    /// Reduction of all elements of an array to one.
    fn reduced(&self, inst: &Inst<D>, comp: CompId, axes: usize, operands: &[&Vec<Dim>]) -> Option<Vec<Dim>> {
        let [x, init] = operands else { return None };
        let comp = &self.b.module().comps[comp];
        let root = &comp.insts[comp.root];
        let Op::Elementwise(op) = root.op else { return None };
        let is_whole = self.b.rank(inst.operands[0]) == axes && root.operands == comp.params;
        if !is_whole || init.len() != 1 {
            return None;
        }
        let folded = x.iter().try_fold(init[0], |all, &e| scalar(op, &[all, e]))?;
        Some(vec![folded])
    }

    /// Elements moved from operands: the op is applied to element numbers to find the sources.
    fn moved(&self, inst: &Inst<D>, operands: &[&Vec<Dim>]) -> Option<Vec<Dim>> {
        let data = if matches!(inst.op, Op::Concatenate(_)) { operands.len() } else { 1 };
        let mut own: Builder = Builder::new("moved");
        let (mut numbers, mut all) = (Vec::new(), Vec::new());
        for (i, (&elements, &operand)) in operands.iter().zip(&inst.operands).enumerate() {
            let array = self.b.shape(operand).as_array()?;
            let dims: Vec<u64> = array.dims.iter().map(|&d| d.at_current_sizes()).collect();
            let values: Vec<i64> = if i < data {
                let first = all.len() as i64;
                all.extend(elements.iter().copied());
                (first..all.len() as i64).collect()
            } else {
                elements.iter().map(|e| (!e.varies()).then(|| e.concrete_value())).collect::<Option<_>>()?
            };
            numbers.push(own.constant(Tensor::of(&dims, &values)));
        }
        let mut shape = inst.shape.at_current_sizes();
        if let crate::hlo::Shape::Array(array) = &mut shape {
            array.dtype = DType::S64;
        }
        let made = own.push(inst.op.at_current_sizes(), &numbers, shape);
        let places = constant_tensor(&own, made)?.to_i64s()?;
        places.into_iter().map(|i| all.get(usize::try_from(i).ok()?).copied()).collect()
    }
}

/// Elements of `iota`: 0, 1, 2 … along one axis.
fn iota(dims: &[u64], axis: usize) -> Vec<Dim> {
    let inner: u64 = dims.iter().skip(axis + 1).product();
    let count: u64 = dims.iter().product();
    let along = dims.get(axis).copied().unwrap_or(1).max(1);
    (0..count).map(|i| Dim::from(i / inner.max(1) % along)).collect()
}

/// Elements of a constant.
fn integers(t: &Tensor) -> Option<Vec<Dim>> {
    (0..t.len()).map(|i| t.get_i64(i).map(Dim::from)).collect()
}

/// Result of a pointwise op on symbolic integers, if it can be expressed; truth values are 0 and 1.
fn scalar(op: ScalarOp, args: &[Dim]) -> Option<Dim> {
    let (zero, one) = (Dim::from(0), Dim::from(1));
    match (op, args) {
        (ScalarOp::Add, &[x, y]) => of(x, SizeOp::Add, y),
        (ScalarOp::Subtract, &[x, y]) => of(x, SizeOp::Subtract, y),
        (ScalarOp::Multiply, &[x, y]) => of(x, SizeOp::Multiply, y),
        (ScalarOp::Divide, &[x, y]) => of(x, SizeOp::Divide, y),
        (ScalarOp::Remainder, &[x, y]) => of(x, SizeOp::Remainder, y),
        (ScalarOp::Maximum | ScalarOp::Or, &[x, y]) => of(x, SizeOp::Maximum, y),
        (ScalarOp::Minimum | ScalarOp::And, &[x, y]) => of(x, SizeOp::Minimum, y),
        (ScalarOp::Xor, &[x, y]) => different(x, y),
        (ScalarOp::Negate, &[x]) => of(zero, SizeOp::Subtract, x),
        (ScalarOp::Not, &[x]) => of(one, SizeOp::Subtract, x),
        (ScalarOp::Abs, &[x]) => of(x, SizeOp::Maximum, of(zero, SizeOp::Subtract, x)?),
        (ScalarOp::Sign, &[x]) => clamped(x, Dim::from(-1), one),
        (ScalarOp::Clamp, &[low, x, high]) => clamped(x, low, high),
        (ScalarOp::Convert(DType::Pred), &[x]) => different(x, zero),
        (ScalarOp::Convert(_), &[x]) => Some(x),
        (ScalarOp::Select, &[p, x, y]) => {
            let more = of(p, SizeOp::Multiply, of(x, SizeOp::Subtract, y)?)?;
            of(y, SizeOp::Add, more)
        }
        (ScalarOp::Compare(direction, _), &[x, y]) => compared(direction, x, y),
        _ => None,
    }
}

fn of(x: Dim, op: SizeOp, y: Dim) -> Option<Dim> {
    x.apply_op(op, y)
}

fn clamped(x: Dim, low: Dim, high: Dim) -> Option<Dim> {
    of(of(x, SizeOp::Maximum, low)?, SizeOp::Minimum, high)
}

/// Comparison: 1 if `x` is less than `y`, else 0.
fn less(x: Dim, y: Dim) -> Option<Dim> {
    clamped(of(y, SizeOp::Subtract, x)?, Dim::from(0), Dim::from(1))
}

/// Comparison: 1 if `x` is not equal to `y`, else 0.
fn different(x: Dim, y: Dim) -> Option<Dim> {
    of(less(x, y)?, SizeOp::Maximum, less(y, x)?)
}

fn compared(direction: Direction, x: Dim, y: Dim) -> Option<Dim> {
    let not = |truth: Option<Dim>| of(Dim::from(1), SizeOp::Subtract, truth?);
    match direction {
        Direction::Lt => less(x, y),
        Direction::Gt => less(y, x),
        Direction::Ge => not(less(x, y)),
        Direction::Le => not(less(y, x)),
        Direction::Ne => different(x, y),
        Direction::Eq => not(different(x, y)),
    }
}
