//! Small kernels, and pieces that many have.
use super::pointwise;
use crate::hlo::ArrayShape;
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::schedule::layout::Layout;
use crate::tensor::{DType, Tensor};
use std::ops::Range;

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
pub(super) fn number(k: &mut Kernel, dtype: DType, value: f64) -> ExprId {
    constant(k, &Tensor::scalar_of(dtype, value))
}

/// `x`, of type `from`, as another type.
pub(super) fn convert(k: &mut Kernel, x: ExprId, from: DType, to: DType) -> ExprId {
    if from == to { x } else { k.op(ScalarOp::Convert(to), &[x], to) }
}

/// The first element of `t` as an expression.
pub(super) fn constant(k: &mut Kernel, t: &Tensor) -> ExprId {
    if t.dtype == DType::C128 && t.bytes.len() >= 16 {
        let part = |from: usize| Tensor::new(DType::F64, vec![], t.bytes.slice(from..from + 8));
        let (re, im) = (constant(k, &part(0)), constant(k, &part(8)));
        return k.op(ScalarOp::Complex, &[re, im], t.dtype);
    }
    let mut bits = [0u8; 8];
    let n = t.dtype.bytes().min(t.bytes.len()).min(8);
    bits[..n].copy_from_slice(&t.bytes[..n]);
    k.expr(Expr::Const(t.dtype, u64::from_le_bytes(bits)))
}

/// `for var { body }`.
pub(super) fn each(var: VarId, kind: LoopKind, body: Vec<Stmt>) -> Stmt {
    Stmt::For { var, kind, body }
}
