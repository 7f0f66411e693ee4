//! When windows are a running fold, and along which axis.
use crate::hlo::attrs::WindowDim;
use std::fmt;

/// A scan (running reduction) along one dimension.
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    /// The scanned dimension.
    pub axis: usize,
    /// Number of elements of the operand along the scanned dimension.
    pub inputs: i64,
    /// Number of elements of the result along the scanned dimension.
    pub outputs: i64,
    /// Distance by which the scan is ahead: result `i` covers the elements up to `i + ahead`.
    pub ahead: i64,
    /// Whether the scan goes from the last element to the first.
    pub backwards: bool,
}

impl Scan {
    /// Recognizes windows over an array of `dims` that amount to a scan. `regroups` says whether the elements of a window may be combined
    /// in another order.
    pub fn recognize(window: &[WindowDim], dims: &[u64], regroups: bool) -> Option<Scan> {
        let mut axes = (0..window.len()).filter(|&d| !window[d].is_identity());
        let (axis, None) = (axes.next()?, axes.next()) else { return None };
        let (w, n) = (&window[axis], dims[axis]);
        let dense = w.stride == 1 && w.lhs_dilate == 1 && w.rhs_dilate == 1 && !w.reversal && w.size > 1;
        let outputs = i64::try_from(w.output_size(n)?).ok()?;
        let (inputs, size) = (i64::try_from(n).ok()?, i64::try_from(w.size).ok()?);
        if !dense || outputs == 0 || inputs == 0 {
            return None;
        }
        // Window `i` covers the elements from `i - pad_low` to `i - pad_low + size - 1`.
        let (from_first, to_last) = (outputs - 1 - w.pad_low <= 0, size - 1 - w.pad_low >= inputs - 1);
        if from_first {
            return Some(Scan { axis, inputs, outputs, ahead: size - 1 - w.pad_low, backwards: false });
        }
        let ahead = inputs - outputs + w.pad_low;
        (to_last && regroups).then_some(Scan { axis, inputs, outputs, ahead, backwards: true })
    }

    /// Number of steps in each of the four phases of a sliding window: results before any element, elements before the first result, both
    /// at once, results after the last element.
    pub fn step_counts(&self) -> [i64; 4] {
        let before = (-self.ahead).clamp(0, self.outputs);
        let silent = self.ahead.clamp(0, self.inputs);
        let both = (self.inputs - silent).min(self.outputs - before).max(0);
        [before, silent, both, self.outputs - before - both]
    }
}

impl fmt::Display for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scan { axis, inputs, outputs, ahead, backwards } = self;
        let way = if *backwards { "backwards" } else { "forwards" };
        write!(f, "along {axis} {way}, {outputs} of {inputs} ahead {ahead}")
    }
}
