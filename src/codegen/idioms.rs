//! Expressions that have a shorter way than op by op.
use super::function::Function;
use super::math;
use super::value::Val;
use crate::kernel::{Expr, ExprId, Kernel};
use crate::scalar::ScalarOp;
use crate::scalar::formula::{self, Formula};
use crate::tensor::DType;
use std::sync::LazyLock;

/// What makes the value of an expression from another one's.
pub type Idiom = fn(&mut Function, &Val) -> Val;

/// A part of a formula.
enum Part {
    /// What it is of.
    Argument,
    /// The bits of a constant.
    Number(u64),
    /// An op of earlier parts.
    Op(ScalarOp, Vec<usize>),
}

/// A formula, its parts before what is made of them.
#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn push(&mut self, part: Part) -> usize {
        self.0.push(part);
        self.0.len() - 1
    }
}

impl Formula for Parts {
    type Value = usize;

    fn number(&mut self, value: f64) -> usize {
        self.push(Part::Number(u64::from((value as f32).to_bits())))
    }

    fn op(&mut self, op: ScalarOp, args: &[usize]) -> usize {
        self.push(Part::Op(op, args.to_vec()))
    }
}

/// erfc of f32.
static ERFC: LazyLock<Parts> = LazyLock::new(|| {
    let mut parts = Parts::default();
    let x = parts.push(Part::Argument);
    formula::erfc(&mut parts, x);
    parts
});

/// The shorter way of an op, and the expression that it is of; `tables` says whether [`math::is_table`].
pub fn shorter(kernel: &Kernel, tables: bool, op: ScalarOp, args: &[ExprId]) -> Option<(Idiom, ExprId)> {
    match op {
        ScalarOp::Multiply => Some((math::swish, swish_of(kernel, args)?)),
        ScalarOp::Select if tables => Some((math::erfc_f32, erfc_of(kernel, args)?)),
        _ => None,
    }
}

/// x of the f32 product x·logistic(x), which is one quotient.
fn swish_of(kernel: &Kernel, args: &[ExprId]) -> Option<ExprId> {
    let &[a, b] = args else { return None };
    let is_logistic_of = |y: ExprId, x: ExprId| match &kernel.exprs[y] {
        Expr::Op(ScalarOp::Logistic, of, DType::F32) => of[..] == [x],
        _ => false,
    };
    if is_logistic_of(b, a) {
        return Some(a);
    }
    is_logistic_of(a, b).then_some(b)
}

/// x of erfc(x), which ends in a choice by the sign of x.
fn erfc_of(kernel: &Kernel, args: &[ExprId]) -> Option<ExprId> {
    let Expr::Op(ScalarOp::Compare(..), sides, _) = &kernel.exprs[*args.first()?] else { return None };
    let (&x, Part::Op(_, parts)) = (sides.first()?, ERFC.0.last()?) else { return None };
    are_parts(kernel, &ERFC, parts, args, x).then_some(x)
}

fn are_parts(kernel: &Kernel, of: &Parts, parts: &[usize], exprs: &[ExprId], x: ExprId) -> bool {
    parts.len() == exprs.len() && parts.iter().zip(exprs).all(|(&part, &expr)| is_part(kernel, of, part, expr, x))
}

/// Whether an expression is a part of a formula of `x`, in f32.
fn is_part(kernel: &Kernel, of: &Parts, part: usize, expr: ExprId, x: ExprId) -> bool {
    match (&of.0[part], &kernel.exprs[expr]) {
        (Part::Argument, _) => expr == x,
        (Part::Number(number), Expr::Const(DType::F32, bits)) => number == bits,
        (Part::Op(op, parts), Expr::Op(own, args, DType::F32 | DType::Pred)) if op == own => {
            // sums and products come in either order
            let turned = || match (op, &args[..]) {
                (ScalarOp::Add | ScalarOp::Multiply, &[a, b]) => are_parts(kernel, of, parts, &[b, a], x),
                _ => false,
            };
            are_parts(kernel, of, parts, args, x) || turned()
        }
        _ => false,
    }
}
