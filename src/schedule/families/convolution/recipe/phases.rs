//! Transposed convolutions, `lhs_dilate` in HLO: where holes of zeros lie between the elements of the operand, results whose
//! numbers leave the same rest by the dilation (a *phase*) read the same taps of the window, and the other taps meet zeros
//! only. Each phase is a convolution without holes by a part of the window. So are the results at an edge, of which some taps
//! meet the padding.
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId};

/// Upper limit of results at both edges of an axis that are phases of their own.
const MOST_EDGES: u64 = 3;

/// Results along one axis that use the same taps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Index of the first result of the phase.
    pub first: u64,
    /// Distance of neighboring results of the phase, in results of the axis.
    pub step: u64,
    /// The number of results.
    pub count: u64,
    /// The first tap used.
    pub tap: u64,
    /// Number of taps used, each `step` from the next.
    pub taps: u64,
    /// The element that the first tap of the first result reads; relative to the first window if there is only one phase.
    pub base: i64,
}

impl Phase {
    /// The only phase of an axis without holes: all `results`, by a window of `size`.
    pub fn single(results: u64, size: u64) -> Phase {
        Phase { first: 0, step: 1, count: results, tap: 0, taps: size, base: 0 }
    }
}

/// The phases along each axis of convolution `id`; `None` if holes must be written out: with groups, if the window also strides or is
/// dilated itself, or if it is so small that results of some phase read nothing.
pub fn split_phases(comp: &Computation, id: InstId, d: &ConvDims) -> Option<Vec<Vec<Phase>>> {
    if d.window.iter().any(|w| w.lhs_dilate != 1) && d.feature_group_count != 1 {
        return None;
    }
    let result = comp.array_shape(id);
    d.window.iter().zip(&d.output_spatial).map(|(w, &axis)| phases_of_axis(w, result.dims[axis])).collect()
}

fn phases_of_axis(w: &WindowDim, results: u64) -> Option<Vec<Phase>> {
    let step = w.lhs_dilate;
    if step == 1 {
        return Some(vec![Phase::single(results, w.size)]);
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

/// The phases along each axis of convolution `id` that read no padding: results at the edges one by one, with only the taps that read the
/// operand. `None` with holes, and if results at an edge are many or read nothing.
pub fn phases_split_at_edges(comp: &Computation, id: InstId, d: &ConvDims) -> Option<Vec<Vec<Phase>>> {
    let (input, result) = (comp.array_shape(*comp[id].operands.first()?), comp.array_shape(id));
    let axes = d.window.iter().zip(&d.input_spatial).zip(&d.output_spatial);
    axes.map(|((w, &from), &to)| edges(w, input.dims[from], result.dims[to])).collect()
}

fn edges(w: &WindowDim, n: u64, results: u64) -> Option<Vec<Phase>> {
    let [n, size, stride, dilation] = [n, w.size, w.stride, w.rhs_dilate].map(|x| i64::try_from(x).ok());
    let (n, size, stride, dilation) = (n?, size?, stride?.max(1), dilation?.max(1));
    let all = i64::try_from(results).ok()?;
    // the first result whose taps all read the operand, and the first behind those
    let low = w.pad_low.max(0).checked_add(stride - 1)? / stride;
    let room = n.checked_add(w.pad_low)?.checked_sub(size.checked_sub(1)?.checked_mul(dilation)?)?;
    let high = (room.max(0).checked_add(stride - 1)? / stride).min(all);
    if w.lhs_dilate != 1 || low >= high || (low + all - high) as u64 > MOST_EDGES {
        return None;
    }
    let before = (0..low).map(|first| on_operand(w, n, first, 1));
    let after = (high..all).map(|first| on_operand(w, n, first, 1));
    before.chain([on_operand(w, n, low, high - low)]).chain(after).collect()
}

/// A phase for each result along an axis without holes, with the taps that read the `n` elements of the operand; `None` if one reads
/// nothing.
pub fn phase_per_result(w: &WindowDim, n: u64, results: u64) -> Option<Vec<Phase>> {
    let (n, results) = (i64::try_from(n).ok()?, i64::try_from(results).ok()?);
    let is_plain = w.lhs_dilate == 1 && w.stride >= 1 && w.rhs_dilate >= 1;
    if !is_plain {
        return None;
    }
    (0..results).map(|first| on_operand(w, n, first, 1)).collect()
}

/// A phase of `count` results from `first` on that use the same taps: those that read the `n` elements of the operand.
fn on_operand(w: &WindowDim, n: i64, first: i64, count: i64) -> Option<Phase> {
    let [size, stride, dilation] = [w.size, w.stride, w.rhs_dilate].map(|x| i64::try_from(x).ok());
    let (size, stride, dilation) = (size?, stride?.max(1), dilation?.max(1));
    let start = first.checked_mul(stride)?.checked_sub(w.pad_low)?;
    let tap = ((-start).max(0) + dilation - 1) / dilation;
    let taps = ((n - start + dilation - 1) / dilation).clamp(0, size) - tap;
    let [first, count, tap, taps] = [first, count, tap, taps].map(|x| u64::try_from(x).ok());
    let base = start + w.pad_low + tap? as i64 * dilation;
    Some(Phase { first: first?, step: 1, count: count?, tap: tap?, taps: taps.filter(|&taps| taps > 0)?, base })
}

/// Margins that `phases` read before and after the `n` elements of an axis, in elements.
pub fn phase_margin(phases: &[Phase], n: u64) -> (u64, u64) {
    let low = phases.iter().map(|p| -p.base).max().unwrap_or(0);
    let last = |p: &Phase| p.base + (p.count + p.taps) as i64 - 1 - n as i64;
    let high = phases.iter().map(last).max().unwrap_or(0);
    (low.max(0) as u64, high.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_at_edges_read_what_a_window_over_padding_reads() {
        for (size, stride, rhs_dilate, pad_low, pad_high) in [
            (3, 1, 1, 1, 1),
            (3, 2, 1, 0, 1),
            (3, 2, 1, 1, 1),
            (2, 1, 1, 1, 0),
            (3, 2, 2, 2, 2),
            (4, 3, 1, -1, 2),
            (1, 1, 1, 0, 0),
        ] {
            let w = WindowDim { size, stride, rhs_dilate, pad_low, pad_high, ..WindowDim::default() };
            let (n, reach) = (11i64, (size as i64 - 1) * rhs_dilate as i64 + 1);
            let results = (n + pad_low + pad_high - reach) / stride as i64 + 1;
            let phases = edges(&w, n as u64, results as u64).expect("phases");
            let mut seen = vec![None; results as usize];
            for p in &phases {
                for i in 0..p.count {
                    let read = (0..p.taps)
                        .map(|t| (p.tap + t, p.base - pad_low + (i * stride) as i64 + (t * rhs_dilate) as i64));
                    seen[(p.first + i) as usize] = Some(read.collect::<Vec<_>>());
                }
            }
            for (o, read) in seen.into_iter().enumerate() {
                let taps = (0..size).map(|t| (t, o as i64 * stride as i64 - pad_low + (t * rhs_dilate) as i64));
                let want: Vec<(u64, i64)> = taps.filter(|(_, at)| (0..n).contains(at)).collect();
                assert_eq!(read, Some(want), "result {o} of {w:?}");
            }
        }
        let none = |w: WindowDim, n: u64, results: u64| assert_eq!(edges(&w, n, results), None, "{w:?}");
        let same = |size, pad| WindowDim { size, pad_low: pad, pad_high: pad, ..WindowDim::default() };
        none(same(5, 2), 11, 11);
        none(same(3, 1), 1, 1);
        none(same(1, 1), 11, 13);
        none(WindowDim { lhs_dilate: 2, ..same(3, 1) }, 11, 21);
    }

    #[test]
    fn phases_read_what_a_window_over_holes_reads() {
        for (size, step, pad_low, pad_high) in [(2, 2, 1, 1), (3, 2, 2, 1), (5, 3, -1, 4), (4, 2, 2, 2), (3, 3, 0, 2)] {
            let (n, w) = (7i64, WindowDim { size, lhs_dilate: step, pad_low, pad_high, ..WindowDim::default() });
            let results = (n - 1) * step as i64 + 1 + pad_low + pad_high - size as i64 + 1;
            let phases = phases_of_axis(&w, results as u64).expect("phases");
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
