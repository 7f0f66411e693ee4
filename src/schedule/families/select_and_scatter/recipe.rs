//! When `select-and-scatter` is vectorized, and whether windows are apart.
use crate::hlo::Op;
use crate::hlo::attrs::WindowDim;
use crate::schedule::plan::request::RecipeRequest;
use std::fmt;

/// Upper limit of taps of windows that are compared in vectors.
const MOST_TAPS: u64 = 32;
/// Fewest elements along the last axis for vectors.
const FEWEST_LANES: u64 = 4;

/// The method by which windows select elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectMethod {
    /// Windows that are disjoint and inside the array: each writes its elements.
    Apart {
        /// Whether the windows cover the array.
        covers: bool,
    },
    /// The selected tap of each window is stored, and each element gathers from the windows over it.
    Gathered,
    /// One window after another, tap by tap.
    TapByTap,
}

/// The windows over an array.
pub struct WindowGeometry<'a> {
    /// The window along each axis.
    pub window: &'a [WindowDim],
    /// The sizes of the array.
    pub dims: &'a [u64],
    /// The number of windows along each axis.
    pub counts: &'a [u64],
}

impl SelectMethod {
    /// The method for the anchor, if that is a `select-and-scatter`.
    pub fn choose(request: &RecipeRequest<'_>) -> Option<SelectMethod> {
        let comp = request.context.comp;
        let Op::SelectAndScatter { window, .. } = request.op() else { return None };
        let [x, source, _] = comp[request.anchor].operands[..] else { return None };
        let windows =
            WindowGeometry { window, dims: &comp.array_shape(x).dims, counts: &comp.array_shape(source).dims };
        Some(windows.choose_method())
    }
}

impl WindowGeometry<'_> {
    fn choose_method(&self) -> SelectMethod {
        match self {
            _ if !self.are_plain() => SelectMethod::TapByTap,
            _ if self.are_apart() && self.are_inside() => SelectMethod::Apart { covers: self.cover_all() },
            _ => SelectMethod::Gathered,
        }
    }

    /// Window, number of elements and number of windows along each axis.
    fn axes(&self) -> impl Iterator<Item = (&WindowDim, u64, u64)> {
        self.window.iter().zip(self.dims).zip(self.counts).map(|((w, &n), &count)| (w, n, count))
    }

    /// Whether the windows can be compared in vectors along the last axis, where each element belongs to one window.
    fn are_plain(&self) -> bool {
        let plain = |w: &WindowDim| {
            w.lhs_dilate == 1 && w.rhs_dilate == 1 && !w.reversal && w.pad_low >= 0 && w.stride > 0 && w.size > 0
        };
        let taps = self.window.iter().try_fold(1u64, |n, w| n.checked_mul(w.size));
        let is_apart = |(w, n, count): (&WindowDim, u64, u64)| {
            w.size == 1 && w.stride == 1 && w.pad_low == 0 && n == count && n >= FEWEST_LANES
        };
        self.axes().all(|(w, n, count)| plain(w) && n > 0 && count > 0)
            && taps.is_some_and(|n| n <= MOST_TAPS)
            && self.axes().last().is_some_and(is_apart)
    }

    /// Whether the windows are disjoint.
    fn are_apart(&self) -> bool {
        self.axes().all(|(w, _, count)| w.size <= w.stride || count == 1)
    }

    /// Whether all taps of all windows are inside the array.
    fn are_inside(&self) -> bool {
        self.axes().all(|(w, n, count)| w.pad_low == 0 && (count - 1) * w.stride + w.size <= n)
    }

    /// Whether the windows, disjoint and inside the array, cover it.
    fn cover_all(&self) -> bool {
        self.axes().all(|(w, n, count)| (w.size == w.stride || count == 1) && count * w.size == n)
    }
}

impl fmt::Display for SelectMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SelectMethod::Apart { covers: true } => "of windows that cover all",
            SelectMethod::Apart { covers: false } => "of windows apart",
            SelectMethod::Gathered => "gathered",
            SelectMethod::TapByTap => "tap by tap",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_share_elements_are_gathered() {
        let method = |size, stride, pad, [n, count]: [u64; 2], channels| {
            let along = WindowDim { size, stride, pad_low: pad, pad_high: pad, ..WindowDim::default() };
            let (window, dims, counts) = ([along, WindowDim::default()], [n, channels], [count, channels]);
            WindowGeometry { window: &window, dims: &dims, counts: &counts }.choose_method()
        };
        assert_eq!(method(2, 2, 0, [8, 4], 16), SelectMethod::Apart { covers: true });
        assert_eq!(method(2, 2, 0, [9, 4], 16), SelectMethod::Apart { covers: false });
        assert_eq!(method(3, 2, 1, [8, 4], 16), SelectMethod::Gathered);
        // too few channels for vectors, too many taps, no element
        assert_eq!(method(2, 2, 0, [8, 4], 3), SelectMethod::TapByTap);
        assert_eq!(method(33, 33, 0, [66, 2], 16), SelectMethod::TapByTap);
        assert_eq!(method(2, 2, 0, [0, 0], 16), SelectMethod::TapByTap);
    }
}
