//! The elements under a window, as loops and indices.
use crate::hlo::attrs::WindowDim;
use crate::schedule::loops::prelude::*;

/// Loop variables over the taps of the window at `at` of an array of `dims` (outermost first), the coordinates of the element that a tap
/// reads (clamped to the array, so that the load is always valid), and the condition that it is inside; `None` if it always is.
pub fn window_taps(
    k: &mut Kernel,
    window: &[WindowDim],
    dims: &[u64],
    at: &[Index],
) -> (Vec<VarId>, Vec<Index>, Option<ExprId>) {
    let (mut loops, mut from, mut inside) = (Vec::new(), Vec::new(), None);
    for ((w, x), &n) in window.iter().zip(at).zip(dims) {
        if w.is_identity() {
            from.push(x.clone());
            continue;
        }
        let mut i = x.scale(w.stride as i64).offset(-w.pad_low);
        if w.size > 1 {
            let v = k.add_var(w.size);
            loops.push(v);
            let tap = if w.reversal { Index::var(v).scale(-1).offset(w.size as i64 - 1) } else { Index::var(v) };
            i = i.add(&tap.scale(w.rhs_dilate as i64));
        }
        // base dilation: holes lie between elements
        from.push(clamped_coordinate(k, &i, n, w.lhs_dilate, &mut inside));
    }
    (loops, from, inside)
}

/// The range of windows among `extent` along an axis of `n` elements that stay inside the array.
fn interior_range(w: &WindowDim, n: u64, extent: u64) -> (u64, u64) {
    if w.lhs_dilate != 1 || w.stride == 0 {
        return (0, 0);
    }
    let (stride, span) = (w.stride as i64, ((w.size - 1) * w.rhs_dilate) as i64);
    let low = (w.pad_low + stride - 1).div_euclid(stride).clamp(0, extent as i64);
    let high = ((n as i64 - 1 + w.pad_low - span).div_euclid(stride) + 1).clamp(low, extent as i64);
    (low as u64, high as u64)
}

/// Interior windows: those whose taps all read elements of the array, and need no bounds tests. They are at least half of the windows along
/// each axis.
pub(in crate::schedule) struct InteriorWindows {
    /// Axes along which some windows cross an edge, as `(axis, low, high)`: the windows `low..high` along the axis are interior.
    axes: Vec<(usize, u64, u64)>,
}

impl InteriorWindows {
    /// The interior windows of `op` over an array of `input`, with `dims` windows, vectorized along axis `lanes`.
    pub(in crate::schedule) fn of_windows(
        op: &Op,
        input: &[u64],
        dims: &[u64],
        lanes: usize,
    ) -> Option<InteriorWindows> {
        let Op::ReduceWindow { window, .. } = op else { return None };
        let mut axes = Vec::new();
        for (d, w) in window.iter().enumerate() {
            let (low, high) = interior_range(w, input[d], dims[d]);
            if (low, high) == (0, dims[d]) {
                continue;
            }
            // vectors along the axis would lie on both sides of its edge
            if d == lanes || 2 * (high - low) < dims[d] {
                return None;
            }
            axes.push((d, low, high));
        }
        (!axes.is_empty()).then_some(InteriorWindows { axes })
    }

    /// Replaces the window coordinates `at` by new loop variables over interior windows, along axes where some windows cross an edge.
    /// Returns each new variable with its value in terms of `outer`, the loop variables over all windows.
    pub(in crate::schedule) fn bind_interior(
        &self,
        k: &mut Kernel,
        outer: &[VarId],
        at: &mut [Index],
    ) -> Vec<(VarId, Index)> {
        let of_axis = |&(d, low, high): &(usize, u64, u64)| {
            let own = k.add_var(high - low);
            at[d] = Index::var(own).offset(low as i64);
            (own, Index::var(outer[d]).offset(-(low as i64)).clamp_to(0, (high - low) as i64 - 1, &k.vars))
        };
        self.axes.iter().map(of_axis).collect()
    }

    /// Emits `inside` for interior windows, with their variables, and `edge` for the others.
    pub(in crate::schedule) fn emit_interior_or_edge(
        &self,
        k: &mut Kernel,
        outer: &[VarId],
        lets: Vec<(VarId, Index)>,
        mut inside: Vec<Stmt>,
        edge: Vec<Stmt>,
    ) -> Vec<Stmt> {
        for (var, value) in lets {
            inside = vec![Stmt::Let { var, value, body: inside }];
        }
        let mut cond = None;
        for &(d, low, high) in &self.axes {
            add_condition(k, &mut cond, Expr::Within(Index::var(outer[d]), low as i64, high as i64));
        }
        let Some(cond) = cond else { return inside };
        let others = logical_not(k, cond);
        vec![Stmt::If { cond, body: inside }, Stmt::If { cond: others, body: edge }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(size: u64, stride: u64, pad_low: i64, rhs_dilate: u64) -> WindowDim {
        WindowDim { size, stride, pad_low, rhs_dilate, ..WindowDim::default() }
    }

    #[test]
    fn windows_inside_read_elements_only() {
        assert_eq!(interior_range(&window(3, 1, 1, 1), 28, 28), (1, 27));
        assert_eq!(interior_range(&window(3, 2, 1, 1), 111, 56), (1, 55));
        assert_eq!(interior_range(&window(3, 2, 0, 1), 113, 56), (0, 56));
        assert_eq!(interior_range(&window(3, 1, 2, 2), 9, 9), (2, 7));
        assert_eq!(interior_range(&window(7, 1, 3, 1), 4, 4), (3, 3));
        assert_eq!(interior_range(&window(2, 1, -1, 1), 9, 7), (0, 7));
    }
}
