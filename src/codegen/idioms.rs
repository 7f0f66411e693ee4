//! Expressions that have a shorter way than op by op.
use super::function::FunctionEmitter;
use super::math;
use super::value::Val;
use crate::kernel::{Expr, ExprId, Kernel};
use crate::scalar::ScalarOp;
use crate::scalar::formula::{self, ScalarBuilder};
use crate::tensor::DType;
use std::sync::LazyLock;

/// A code generator that computes an expression's value from the value of its single argument.
pub type Idiom = fn(&mut FunctionEmitter, &Val) -> Val;

/// A node of a formula's expression tree.
enum FormulaNode {
    /// The argument of the formula.
    Argument,
    /// The bits of a constant.
    Number(u64),
    /// An op on earlier nodes.
    Op(ScalarOp, Vec<usize>),
}

/// A formula as nodes, operands before their users.
#[derive(Default)]
struct FormulaNodes(Vec<FormulaNode>);

impl FormulaNodes {
    fn push(&mut self, part: FormulaNode) -> usize {
        self.0.push(part);
        self.0.len() - 1
    }
}

impl ScalarBuilder for FormulaNodes {
    type Value = usize;

    fn number(&mut self, value: f64) -> usize {
        self.push(FormulaNode::Number(u64::from((value as f32).to_bits())))
    }

    fn op(&mut self, op: ScalarOp, args: &[usize]) -> usize {
        self.push(FormulaNode::Op(op, args.to_vec()))
    }
}

/// Builds the expression tree of a formula in f32.
fn parts_of(formula: fn(&mut FormulaNodes, usize) -> usize) -> FormulaNodes {
    let mut parts = FormulaNodes::default();
    let x = parts.push(FormulaNode::Argument);
    formula(&mut parts, x);
    parts
}

static ERFC: LazyLock<FormulaNodes> = LazyLock::new(|| parts_of(formula::erfc));
static SOFTPLUS: LazyLock<FormulaNodes> = LazyLock::new(|| parts_of(formula::softplus));
static MISH: LazyLock<FormulaNodes> = LazyLock::new(|| parts_of(formula::mish));

/// Recognizes an op that ends a known formula (an idiom such as swish); returns a cheaper code generator and the formula's argument.
/// `tables` is the value of [`math::uses_tables`].
pub fn find_idiom(kernel: &Kernel, tables: bool, op: ScalarOp, args: &[ExprId]) -> Option<(Idiom, ExprId)> {
    match op {
        ScalarOp::Multiply => match swish_of(kernel, args) {
            Some(x) => Some((math::swish, x)),
            None => Some((math::mish_f32, mish_of(kernel, args)?)),
        },
        ScalarOp::Add => Some((math::softplus_f32, softplus_of(kernel, args)?)),
        ScalarOp::Select if tables => Some((math::erfc_f32, erfc_of(kernel, args)?)),
        _ => None,
    }
}

/// Recognizes the f32 product x·logistic(x) (swish), which is a single division; returns x.
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

/// Recognizes erfc(x), which ends in a selection by the sign of x; returns x.
fn erfc_of(kernel: &Kernel, args: &[ExprId]) -> Option<ExprId> {
    let Expr::Op(ScalarOp::Compare(..), sides, _) = &kernel.exprs[*args.first()?] else { return None };
    let &x = sides.first()?;
    is_last(kernel, &ERFC, args, x).then_some(x)
}

/// Recognizes softplus(x), a sum of max(x, 0) and a logarithm; returns x.
fn softplus_of(kernel: &Kernel, args: &[ExprId]) -> Option<ExprId> {
    let larger = |&arg: &ExprId| match &kernel.exprs[arg] {
        Expr::Op(ScalarOp::Maximum, of, DType::F32) => of.first().copied(),
        _ => None,
    };
    let x = args.iter().find_map(larger)?;
    is_last(kernel, &SOFTPLUS, args, x).then_some(x)
}

/// Recognizes x·tanh(softplus(x)) (mish); returns x.
fn mish_of(kernel: &Kernel, args: &[ExprId]) -> Option<ExprId> {
    let is_tanh = |arg: ExprId| matches!(&kernel.exprs[arg], Expr::Op(ScalarOp::Tanh, ..));
    let x = args.iter().copied().find(|&arg| !is_tanh(arg))?;
    is_last(kernel, &MISH, args, x).then_some(x)
}

/// Whether an op with these arguments, of the kind of a formula's last node, matches the formula.
fn is_last(kernel: &Kernel, of: &FormulaNodes, args: &[ExprId], x: ExprId) -> bool {
    matches!(of.0.last(), Some(FormulaNode::Op(op, parts)) if are_parts_in_any_order(kernel, of, op, parts, args, x))
}

/// Whether an op with arguments `args` matches `op` of `parts`; operands of commutative ops match in either order.
fn are_parts_in_any_order(
    kernel: &Kernel,
    of: &FormulaNodes,
    op: &ScalarOp,
    parts: &[usize],
    args: &[ExprId],
    x: ExprId,
) -> bool {
    let turned = || match (op, args) {
        (ScalarOp::Add | ScalarOp::Multiply | ScalarOp::Maximum, &[a, b]) => are_parts(kernel, of, parts, &[b, a], x),
        _ => false,
    };
    are_parts(kernel, of, parts, args, x) || turned()
}

/// Whether expressions match these nodes of a formula of `x`, one by one.
fn are_parts(kernel: &Kernel, of: &FormulaNodes, parts: &[usize], exprs: &[ExprId], x: ExprId) -> bool {
    parts.len() == exprs.len() && parts.iter().zip(exprs).all(|(&part, &expr)| is_part(kernel, of, part, expr, x))
}

/// Whether an expression matches a node of a formula of `x`, in f32.
fn is_part(kernel: &Kernel, of: &FormulaNodes, part: usize, expr: ExprId, x: ExprId) -> bool {
    match (&of.0[part], &kernel.exprs[expr]) {
        (FormulaNode::Argument, _) => expr == x,
        (FormulaNode::Number(number), Expr::Const(DType::F32, bits)) => number == bits,
        (FormulaNode::Op(op, parts), Expr::Op(own, args, DType::F32 | DType::Pred)) if op == own => {
            are_parts_in_any_order(kernel, of, op, parts, args, x)
        }
        _ => false,
    }
}
