//! Recognition of computations of two scalars as one of the reductions that passes know.
use super::{Computation, InstId, Op, SizeRepr};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::{DType, DTypeClass, Tensor};

/// A combination of two values of one type. Every fold is associative and commutative, except for the rounding of sums and products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Reduction by a scalar op applied to both parameters.
    By(ScalarOp),
    /// The second value if it compares larger than the first, else the first: the maximum, ignoring a NaN in the second. A fold that
    /// starts from a number is never NaN. TensorFlow's pooling folds so.
    Larger,
}

impl Fold {
    /// The scalar op, if the fold is one.
    pub fn op(self) -> Option<ScalarOp> {
        match self {
            Fold::By(op) => Some(op),
            Fold::Larger => None,
        }
    }
}

impl<D: SizeRepr> Computation<D> {
    /// The reduction that this reducer, a computation of two scalars, performs.
    pub fn as_fold(&self) -> Option<Fold> {
        let [x, y] = self.params[..] else { return None };
        let root = self.insts.get(self.root)?;
        match (&root.op, &root.operands[..]) {
            (Op::Elementwise(op), operands) if op.commutes() => {
                (operands == [x, y] || operands == [y, x]).then_some(Fold::By(*op))
            }
            (Op::Elementwise(ScalarOp::Select), &[larger, new, old]) if [old, new] == [x, y] => {
                self.is_larger(larger, [y, x]).then_some(Fold::Larger)
            }
            _ => None,
        }
    }

    /// Whether `id` is `a > b`.
    fn is_larger(&self, id: InstId, [a, b]: [InstId; 2]) -> bool {
        let Some(inst) = self.insts.get(id) else { return false };
        match inst.op {
            Op::Elementwise(ScalarOp::Compare(Direction::Gt, CompareKind::Partial)) => inst.operands == [a, b],
            Op::Elementwise(ScalarOp::Compare(Direction::Lt, CompareKind::Partial)) => inst.operands == [b, a],
            _ => false,
        }
    }
}

/// Whether folding one element `v` by `op` into `init` gives `v` (the sign of a zero aside).
pub fn is_neutral(op: ScalarOp, init: &Tensor) -> bool {
    let float = init.dtype.is_float();
    let value = init.get_f64(0);
    let (zero, one) = (value == Some(0.0), value == Some(1.0));
    let is_complex = init.dtype.class() == DTypeClass::Complex;
    match op {
        ScalarOp::Add | ScalarOp::Or | ScalarOp::Xor => zero && !is_complex,
        ScalarOp::Multiply => one && !is_complex,
        ScalarOp::And => init.dtype == DType::Pred && one,
        ScalarOp::Maximum if float => value == Some(f64::NEG_INFINITY),
        ScalarOp::Minimum if float => value == Some(f64::INFINITY),
        ScalarOp::Maximum => init.dtype == DType::Pred && zero,
        ScalarOp::Minimum => init.dtype == DType::Pred && one,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::text;

    fn fold(body: &str) -> Option<Fold> {
        let text = format!(
            "f {{ x = f32[] parameter(0) y = f32[] parameter(1) {body} }}
ENTRY e {{ a = f32[4] parameter(0) i = f32[] parameter(1) ROOT r = f32[] reduce(a, i), dimensions={{0}}, to_apply=f }}"
        );
        let module = text::parse(&text).expect("parses");
        let called =
            module.comps[module.entry].insts.iter().find_map(|(_, i)| i.op.called_computations().first().copied());
        module.comps[called.expect("reduce calls one")].as_fold()
    }

    #[test]
    fn ops_that_commute_and_the_larger_by_comparison_are_known() {
        assert_eq!(fold("ROOT r = f32[] maximum(y, x)"), Some(Fold::By(ScalarOp::Maximum)));
        assert_eq!(fold("ROOT r = f32[] subtract(x, y)"), None);
        assert_eq!(fold("p = pred[] compare(y, x), direction=GT ROOT r = f32[] select(p, y, x)"), Some(Fold::Larger));
        assert_eq!(fold("p = pred[] compare(x, y), direction=LT ROOT r = f32[] select(p, y, x)"), Some(Fold::Larger));
        // These give the second where either is NaN.
        assert_eq!(fold("p = pred[] compare(x, y), direction=GT ROOT r = f32[] select(p, x, y)"), None);
        assert_eq!(fold("p = pred[] compare(y, x), direction=GE ROOT r = f32[] select(p, y, x)"), None);
    }
}
