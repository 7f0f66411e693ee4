//! HLO to loop nests, one file a family.
mod contraction;
mod convolution;
mod dot;
mod element;
mod pointwise;
mod reduce;
mod scatter;
mod select_and_scatter;
mod sequential;
mod sort;
mod window;

use super::{Scheduler, Scope, Value, refuse};
use crate::diag::Result;
use crate::hlo::{Computation, InstId, Op};
use crate::kernel::{BufId, Expr, Index, Kernel, LoopKind, Step, Stmt};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

impl<'a> Scheduler<'a> {
    /// The kernels that fill `out` with instruction `id`.
    pub(super) fn kernels(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let comp = scope.comp;
        let anchor = scope.plan.anchor[id].unwrap_or(id);
        match &comp[anchor].op {
            Op::Dot(_) => self.dot(scope, id, anchor, out, steps),
            Op::Convolution(_) => self.convolution(scope, id, anchor, out, steps),
            Op::Reduce { .. } | Op::ReduceWindow { .. } => self.reduce(scope, id, anchor, out, steps),
            Op::Concatenate(axis) => self.concatenate(scope, id, *axis, out, steps),
            Op::Scatter { .. } => self.scatter(scope, id, out, steps),
            Op::SelectAndScatter { .. } => self.select_and_scatter(scope, id, out, steps),
            Op::Sort { .. } => self.sort(scope, id, out, steps),
            Op::TopK { .. } => self.top_k(scope, id, out, steps),
            Op::DynamicUpdateSlice => self.dynamic_update_slice(scope, id, out, steps),
            Op::Elementwise(_)
            | Op::Broadcast(_)
            | Op::Reshape
            | Op::Bitcast
            | Op::Copy
            | Op::OptimizationBarrier
            | Op::Transpose(_)
            | Op::Reverse(_)
            | Op::Slice(_)
            | Op::Pad(_)
            | Op::Iota(_)
            | Op::DynamicSlice(_)
            | Op::Gather(_) => self.pointwise(scope, id, out, steps),
            _ => Err(refuse(comp, id, " yet")),
        }
    }
}

/// What people read in profiles and kernel text.
fn label(comp: &Computation, id: InstId) -> String {
    let inst = &comp[id];
    if inst.metadata.op_name.is_empty() {
        inst.name.clone()
    } else {
        format!("{} {}", inst.op.name(), inst.metadata.op_name)
    }
}

/// A kernel that copies `elements` elements.
pub(super) fn copy(from: BufId, to: BufId, elements: u64, lanes: u64) -> Kernel {
    let mut k = Kernel { label: "copy".to_string(), ..Kernel::default() };
    let v = k.var(elements);
    let value = k.expr(Expr::Load(from, Index::var(v)));
    pointwise::nest(&mut k, &[v], &[Stmt::Store { buf: to, index: Index::var(v), value }], lanes);
    k
}

/// A constant of an element type with a small whole value.
fn number(k: &mut Kernel, dtype: DType, value: f64) -> crate::kernel::ExprId {
    constant(k, &crate::tensor::Tensor::scalar_of(dtype, value))
}

/// The first element of `t`, of at most eight bytes, as an expression.
fn constant(k: &mut Kernel, t: &crate::tensor::Tensor) -> crate::kernel::ExprId {
    let mut bits = [0u8; 8];
    let n = t.dtype.bytes().min(t.bytes.len()).min(8);
    bits[..n].copy_from_slice(&t.bytes[..n]);
    k.expr(Expr::Const(t.dtype, u64::from_le_bytes(bits)))
}

/// `for var { body }`.
fn each(var: crate::kernel::VarId, kind: LoopKind, body: Vec<Stmt>) -> Stmt {
    Stmt::For { var, kind, body }
}

/// The op of a computation that applies one op to its two parameters, if it is associative.
fn simple_fold(comp: &Computation) -> Option<ScalarOp> {
    let root = &comp[comp.root];
    let Op::Elementwise(op) = root.op else { return None };
    let known = matches!(
        op,
        ScalarOp::Add | ScalarOp::Multiply | ScalarOp::Maximum | ScalarOp::Minimum | ScalarOp::And | ScalarOp::Or
    );
    let mut operands = root.operands.clone();
    operands.sort_unstable();
    let mut params = comp.params.clone();
    params.sort_unstable();
    (known && params.len() == 2 && operands == params).then_some(op)
}
