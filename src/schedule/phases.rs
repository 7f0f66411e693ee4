//! Transposed convolutions, `lhs_dilate` in HLO: where holes of zeros lie between the elements of the operand, results whose
//! numbers leave the same rest by the dilation (a *phase*) read the same taps of the window, and the other taps meet zeros
//! only. Each phase is a convolution without holes by a part of the window.
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId};

/// Results along one axis that read the same taps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The first of them.
    pub first: u64,
    /// How far each is from the next.
    pub step: u64,
    /// How many there are.
    pub count: u64,
    /// The first tap that they read.
    pub tap: u64,
    /// How many they read, each `step` from the next.
    pub taps: u64,
    /// The element that the first tap of the first result reads; from the first window on where there is one phase.
    pub base: i64,
}

impl Phase {
    /// All `results` along an axis without holes, by a window of this size.
    pub fn only(results: u64, size: u64) -> Phase {
        Phase { first: 0, step: 1, count: results, tap: 0, taps: size, base: 0 }
    }
}

/// The phases along each axis of convolution `id`; `None` where holes must be written out: with groups, where the window also
/// strides or is dilated itself, and where it is so small that results of some phase read nothing.
pub fn split(comp: &Computation, id: InstId, d: &ConvDims) -> Option<Vec<Vec<Phase>>> {
    if d.window.iter().any(|w| w.lhs_dilate != 1) && d.feature_group_count != 1 {
        return None;
    }
    let result = comp.array(id);
    d.window.iter().zip(&d.output_spatial).map(|(w, &axis)| along(w, result.dims[axis])).collect()
}

fn along(w: &WindowDim, results: u64) -> Option<Vec<Phase>> {
    let step = w.lhs_dilate;
    if step == 1 {
        return Some(vec![Phase::only(results, w.size)]);
    }
    if w.stride != 1 || w.rhs_dilate != 1 || w.size < step {
        return None;
    }
    let phase = |first: u64| {
        let tap = (w.pad_low - first as i64).rem_euclid(step as i64) as u64;
        let base = (first as i64 - w.pad_low + tap as i64) / step as i64;
        Phase { first, step, count: (results - first).div_ceil(step), tap, taps: (w.size - tap).div_ceil(step), base }
    };
    Some((0..step.min(results)).map(phase).collect())
}

/// How many elements before and after the `n` of an axis the phases read.
pub fn margin(phases: &[Phase], n: u64) -> (u64, u64) {
    let low = phases.iter().map(|p| -p.base).max().unwrap_or(0);
    let last = |p: &Phase| p.base + (p.count + p.taps) as i64 - 1 - n as i64;
    let high = phases.iter().map(last).max().unwrap_or(0);
    (low.max(0) as u64, high.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_read_what_a_window_over_holes_reads() {
        for (size, step, pad_low, pad_high) in [(2, 2, 1, 1), (3, 2, 2, 1), (5, 3, -1, 4), (4, 2, 2, 2), (3, 3, 0, 2)] {
            let (n, w) = (7i64, WindowDim { size, lhs_dilate: step, pad_low, pad_high, ..WindowDim::default() });
            let results = (n - 1) * step as i64 + 1 + pad_low + pad_high - size as i64 + 1;
            let phases = along(&w, results as u64).expect("phases");
            let mut seen = vec![None; results as usize];
            for p in &phases {
                for i in 0..p.count {
                    let read = (0..p.taps).map(|t| (p.tap + t * step, p.base + (i + t) as i64));
                    seen[(p.first + i * p.step) as usize] = Some(read.collect::<Vec<_>>());
                }
            }
            for (o, read) in seen.into_iter().enumerate() {
                let taps = (0..size).map(|t| (t, o as i64 - pad_low + t as i64));
                let want: Vec<(u64, i64)> = taps
                    .filter(|(_, at)| at.rem_euclid(step as i64) == 0)
                    .map(|(t, at)| (t, at.div_euclid(step as i64)))
                    .collect();
                assert_eq!(read, Some(want), "result {o} of {w:?}");
            }
        }
    }
}
