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
        if is_element(w) {
            from.push(x.clone());
            continue;
        }
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

/// Whether a window is its element.
fn is_element(w: &WindowDim) -> bool {
    w.size == 1 && w.stride == 1 && w.lhs_dilate == 1 && w.pad_low == 0 && w.pad_high == 0
}

/// The windows of `extent` along an axis of `n` elements that reach over neither edge: from which to before which.
pub fn interior(w: &WindowDim, n: u64, extent: u64) -> (u64, u64) {
    if w.lhs_dilate != 1 || w.stride == 0 {
        return (0, 0);
    }
    let (stride, span) = (w.stride as i64, ((w.size - 1) * w.rhs_dilate) as i64);
    let low = (w.pad_low + stride - 1).div_euclid(stride).clamp(0, extent as i64);
    let high = ((n as i64 - 1 + w.pad_low - span).div_euclid(stride) + 1).clamp(low, extent as i64);
    (low as u64, high as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(size: u64, stride: u64, pad_low: i64, rhs_dilate: u64) -> WindowDim {
        WindowDim { size, stride, pad_low, rhs_dilate, ..WindowDim::default() }
    }

    #[test]
    fn windows_inside_read_elements_only() {
        assert_eq!(interior(&window(3, 1, 1, 1), 28, 28), (1, 27));
        assert_eq!(interior(&window(3, 2, 1, 1), 111, 56), (1, 55));
        assert_eq!(interior(&window(3, 2, 0, 1), 113, 56), (0, 56));
        assert_eq!(interior(&window(3, 1, 2, 2), 9, 9), (2, 7));
        assert_eq!(interior(&window(7, 1, 3, 1), 4, 4), (3, 3));
        assert_eq!(interior(&window(2, 1, -1, 1), 9, 7), (0, 7));
    }
}
