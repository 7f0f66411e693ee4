//! The elements under a window, as loops and indices.
use crate::hlo::attrs::WindowDim;
use crate::kernel::{Expr, ExprId, Index, Kernel, VarId};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// The taps of the window at `at` over an array of `dims`: loop variables (outermost first), the element that a tap reads
/// (limited to the array, so that it can always be read), and whether it is one; `None` where it always is.
pub fn taps(
    k: &mut Kernel,
    window: &[WindowDim],
    dims: &[u64],
    at: &[Index],
) -> (Vec<VarId>, Vec<Index>, Option<ExprId>) {
    let (mut loops, mut from, mut inside) = (Vec::new(), Vec::new(), None);
    let mut require = |k: &mut Kernel, test: Expr| {
        let test = k.expr(test);
        inside = Some(inside.map_or(test, |a| k.op(ScalarOp::And, &[a, test], DType::Pred)));
    };
    for ((w, x), &n) in window.iter().zip(at).zip(dims) {
        let mut i = x.scale(w.stride as i64).offset(-w.pad_low);
        if w.size > 1 {
            let v = k.var(w.size);
            loops.push(v);
            let tap = if w.reversal { Index::var(v).scale(-1).offset(w.size as i64 - 1) } else { Index::var(v) };
            i = i.add(&tap.scale(w.rhs_dilate as i64));
        }
        // Base dilation: elements stand `step` apart, holes between them.
        let step = w.lhs_dilate as i64;
        let span = (n.max(1) as i64 - 1) * step;
        let (low, high) = i.range(&k.vars);
        if low < 0 || high > span || n == 0 {
            require(k, Expr::Within(i.clone(), 0, if n == 0 { 0 } else { span + 1 }));
        }
        let held = i.limit(0, span, &k.vars);
        if step > 1 {
            let rest = held.rem(step, &k.vars);
            require(k, Expr::Within(rest, 0, 1));
        }
        from.push(held.div(step, &k.vars));
    }
    (loops, from, inside)
}
