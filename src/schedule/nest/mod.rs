//! HLO to loop nests, one file a family.
mod across;
mod ahead;
mod block;
mod chain;
mod contraction;
mod convolution;
mod cut;
mod depthwise;
mod dot;
mod element;
mod inside;
mod linalg;
mod narrow;
mod pack;
mod pairs;
mod planes;
mod pointwise;
mod pooled;
mod positions;
mod reduce;
mod rows;
mod scan;
mod scatter;
mod select_and_scatter;
mod separable;
mod sequential;
mod sort;
mod strip;
mod top_k;
mod transform;
mod turned;
mod tile;
mod tiles;
mod window;
mod winograd;
mod winograd1d;

pub(super) use block::Block;
pub(super) use chain::Chain;
pub(super) use convolution::by_channel;
pub(super) use depthwise::without_margin;
pub(super) use inside::of as inside;
pub(super) use planes::Parts;
pub(super) use pooled::Pooled;
pub(super) use separable::Separable;

use super::{Scheduler, Scope, Value, refuse};
use crate::diag::Result;
use crate::hlo::{ArrayShape, Computation, InstId, Op};
use crate::kernel::{BufId, Expr, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::schedule::heaviest::label;
use crate::schedule::layout::Layout;
use crate::tensor::DType;
use std::ops::Range;

/// Most bytes of an array on the stack: of a row, a block, a panel of weights, a strip.
const MOST_STACK: u64 = 64 << 10;

impl<'a> Scheduler<'a> {
    /// Says of the kernels from number `first` on how `convolution` is done, where there is a choice.
    fn name_method(&mut self, comp: &Computation, convolution: InstId, first: usize) {
        let method = super::winograd::method(comp, convolution, self.target)
            .or_else(|| super::winograd1d::method(comp, convolution, self.target));
        self.program.kernels.values_mut().skip(first).for_each(|k| k.method.clone_from(&method));
    }

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
        if let Some(rows) = scope.plan.rows[id] {
            return self.rows(scope, id, rows, out, steps);
        }
        match &comp[anchor].op {
            Op::Dot(_) => match scope.blocks.remove(&id) {
                Some(block) => self.block(scope, (id, anchor), &block, out, steps),
                None => self.dot(scope, id, anchor, out, steps),
            },
            Op::Convolution(_) => {
                let first = self.program.kernels.len();
                self.convolution(scope, id, anchor, out, steps)?;
                self.name_method(scope.comp, anchor, first);
                Ok(())
            }
            Op::ReduceWindow { .. } if scope.pools.contains_key(&id) => {
                let first = self.program.kernels.len();
                let convolution = self.pooled(scope, id, out, steps)?;
                self.name_method(scope.comp, convolution, first);
                Ok(())
            }
            Op::ReduceWindow { .. } => match self.as_scan(scope, anchor) {
                Some(scan) => self.scan(scope, id, (anchor, scan), out, steps),
                None => self.reduce(scope, id, anchor, out, steps),
            },
            Op::Reduce { .. } => self.reduce(scope, id, anchor, out, steps),
            Op::Concatenate(axis) => self.concatenate(scope, id, *axis, out, steps),
            Op::Scatter { .. } => self.scatter(scope, id, out, steps),
            Op::SelectAndScatter { .. } => self.select_and_scatter(scope, id, out, steps),
            Op::Cholesky { .. } => self.cholesky(scope, id, out, steps),
            Op::TriangularSolve { .. } => self.triangular_solve(scope, id, out, steps),
            Op::Sort { .. } => self.sort(scope, id, out, steps),
            Op::TopK { .. } => self.top_k(scope, id, out, steps),
            Op::DynamicUpdateSlice => self.dynamic_update_slice(scope, id, out, steps),
            Op::Elementwise(_)
            | Op::Map { .. }
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

/// A kernel that copies `elements` elements.
pub(super) fn copy(from: BufId, to: BufId, elements: u64, lanes: u64) -> Kernel {
    let mut k = Kernel { label: "copy".to_string(), ..Kernel::default() };
    let v = k.var(elements);
    let value = k.expr(Expr::Load(from, Index::var(v)));
    pointwise::nest(&mut k, &[v], &[Stmt::Store { buf: to, index: Index::var(v), value }], lanes);
    k
}

/// A kernel that writes zeros around an array of `shape` that lies so.
pub(super) fn margin(buf: BufId, shape: &ArrayShape, layout: &Layout, lanes: u64) -> Kernel {
    let mut k = Kernel { label: "margin".to_string(), ..Kernel::default() };
    let value = number(&mut k, shape.dtype, 0.0);
    let mut body = Vec::new();
    let mut clear = |k: &mut Kernel, mut vars: Vec<VarId>, first: Index, gap: &Range<u64>| {
        let v = k.var(gap.end - gap.start);
        vars.push(v);
        let index = first.offset(gap.start as i64).add(&Index::var(v));
        pointwise::nest(k, &vars, &[Stmt::Store { buf, index, value }], lanes);
        let inside = std::mem::take(&mut k.body);
        match k.chunks.take() {
            Some(v) => body.push(each(v, LoopKind::Seq, inside)),
            None => body.extend(inside),
        }
    };
    let gaps = layout.gaps(&shape.dims);
    for gap in gaps.around.iter().filter(|gap| !gap.is_empty()) {
        clear(&mut k, vec![], Index::default(), gap);
    }
    for (axis, gap) in &gaps.between {
        let vars: Vec<VarId> =
            shape.dims[..*axis].iter().chain([&(shape.dims[*axis] - 1)]).map(|&n| k.var(n)).collect();
        let strides = vars.iter().zip(&layout.strides);
        let first = strides.fold(Index::constant(layout.origin), |at, (&v, &s)| at.add(&Index::var(v).scale(s)));
        clear(&mut k, vars, first, gap);
    }
    k.body = body;
    k
}

/// A constant of an element type with a small whole value.
fn number(k: &mut Kernel, dtype: DType, value: f64) -> crate::kernel::ExprId {
    constant(k, &crate::tensor::Tensor::scalar_of(dtype, value))
}

/// `x`, of type `from`, as another type.
fn convert(k: &mut Kernel, x: crate::kernel::ExprId, from: DType, to: DType) -> crate::kernel::ExprId {
    if from == to { x } else { k.op(ScalarOp::Convert(to), &[x], to) }
}

/// The first element of `t` as an expression.
fn constant(k: &mut Kernel, t: &crate::tensor::Tensor) -> crate::kernel::ExprId {
    if t.dtype == DType::C128 && t.bytes.len() >= 16 {
        let part = |from: usize| crate::tensor::Tensor::new(DType::F64, vec![], t.bytes.slice(from..from + 8));
        let (re, im) = (constant(k, &part(0)), constant(k, &part(8)));
        return k.op(ScalarOp::Complex, &[re, im], t.dtype);
    }
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
pub(in crate::schedule) fn simple_fold(comp: &Computation) -> Option<ScalarOp> {
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
