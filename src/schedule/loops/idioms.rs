//! Pieces that many kernels have.
use crate::kernel::{Expr, ExprId, Index, Kernel, LoopKind, RegId, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// A constant with a small integer value, of any element type.
pub(in crate::schedule) fn constant_of_number(k: &mut Kernel, dtype: DType, value: f64) -> ExprId {
    scalar_constant(k, &Tensor::scalar_from_f64(dtype, value))
}

/// Converts `x` from one element type to another.
pub(in crate::schedule) fn convert(k: &mut Kernel, x: ExprId, from: DType, to: DType) -> ExprId {
    if from == to { x } else { k.add_op(ScalarOp::Convert(to), &[x], to) }
}

/// The first element of `t` as a constant.
pub(in crate::schedule) fn scalar_constant(k: &mut Kernel, t: &Tensor) -> ExprId {
    if t.dtype == DType::C128 && t.bytes.len() >= 16 {
        let part = |from: usize| Tensor::new(DType::F64, vec![], t.bytes.slice(from..from + 8));
        let (re, im) = (scalar_constant(k, &part(0)), scalar_constant(k, &part(8)));
        return k.add_op(ScalarOp::Complex, &[re, im], t.dtype);
    }
    let mut bits = [0u8; 8];
    let n = t.dtype.bytes().min(t.bytes.len()).min(8);
    bits[..n].copy_from_slice(&t.bytes[..n]);
    k.add_expr(Expr::Const(t.dtype, u64::from_le_bytes(bits)))
}

/// New loop variables with these extents, and the coordinates that they stand for.
pub(in crate::schedule) fn loop_variables(k: &mut Kernel, dims: &[u64]) -> (Vec<VarId>, Vec<Index>) {
    let vars: Vec<VarId> = dims.iter().map(|&n| k.add_var(n)).collect();
    let at = vars.iter().map(|&v| Index::var(v)).collect();
    (vars, at)
}

/// New loop variables over `dims` and the coordinates that they stand for; an axis of one element has no loop.
pub(in crate::schedule) fn nonunit_loop_variables(k: &mut Kernel, dims: &[u64]) -> (Vec<VarId>, Vec<Index>) {
    let (vars, at) = loop_variables(k, dims);
    let at = at.into_iter().zip(dims).map(|(x, &n)| if n == 1 { Index::constant(0) } else { x }).collect();
    (vars, at)
}

/// The conjunction of two conditions.
pub(in crate::schedule) fn logical_and(k: &mut Kernel, a: ExprId, b: ExprId) -> ExprId {
    k.add_op(ScalarOp::And, &[a, b], DType::Pred)
}

/// The negation of a condition.
pub(in crate::schedule) fn logical_not(k: &mut Kernel, x: ExprId) -> ExprId {
    k.add_op(ScalarOp::Not, &[x], DType::Pred)
}

/// Adds `test` to the conjunction `all`.
pub(in crate::schedule) fn add_condition(k: &mut Kernel, all: &mut Option<ExprId>, test: Expr) {
    let test = k.add_expr(test);
    *all = Some(all.map_or(test, |all| logical_and(k, all, test)));
}

/// Selects one of two values; the first if there is no condition.
pub(in crate::schedule) fn select(
    k: &mut Kernel,
    cond: Option<ExprId>,
    yes: ExprId,
    no: ExprId,
    dtype: DType,
) -> ExprId {
    cond.map_or(yes, |cond| k.add_op(ScalarOp::Select, &[cond, yes, no], dtype))
}

/// The coordinate of position `i` among `n` elements that are `step` apart, clamped to the elements; `inside` gets the condition that the
/// position is one of them.
pub(in crate::schedule) fn clamped_coordinate(
    k: &mut Kernel,
    i: &Index,
    n: u64,
    step: u64,
    inside: &mut Option<ExprId>,
) -> Index {
    let (step, span) = (step as i64, (n.max(1) as i64 - 1) * step as i64);
    let (low, high) = i.range(&k.vars);
    if low < 0 || high > span || n == 0 {
        add_condition(k, inside, Expr::Within(i.clone(), 0, if n == 0 { 0 } else { span + 1 }));
    }
    let held = i.clamp_to(0, span, &k.vars);
    if step > 1 {
        let rest = held.rem(step, &k.vars);
        add_condition(k, inside, Expr::Within(rest, 0, 1));
    }
    held.div(step, &k.vars)
}

/// Assigns element `at` of each register array; all values are computed before any register changes.
pub(in crate::schedule) fn assign_registers(
    k: &mut Kernel,
    regs: &[RegId],
    at: &Index,
    values: &[ExprId],
) -> Vec<Stmt> {
    let set = |(&reg, &value): (&RegId, &ExprId)| Stmt::Set { reg, at: at.clone(), value };
    if regs.len() == 1 {
        return regs.iter().zip(values).map(set).collect();
    }
    let held: Vec<RegId> = regs.iter().map(|&r| k.add_reg(k.regs[r].dtype, k.regs[r].lanes, 1)).collect();
    let mut body: Vec<Stmt> = held.iter().zip(values).map(|(&h, &value)| Stmt::set(h, 0, value)).collect();
    let values: Vec<ExprId> = held.iter().map(|&h| k.read_reg(h, 0)).collect();
    body.extend(regs.iter().zip(&values).map(set));
    body
}

/// Wraps `body` in loops over `vars`, outermost first.
pub(in crate::schedule) fn nest_loops(vars: &[VarId], body: Vec<Stmt>) -> Vec<Stmt> {
    vars.iter().rev().fold(body, |body, &v| vec![for_loop(v, LoopKind::Seq, body)])
}

/// `for var { body }`.
pub(in crate::schedule) fn for_loop(var: VarId, kind: LoopKind, body: Vec<Stmt>) -> Stmt {
    Stmt::For { var, kind, body }
}
