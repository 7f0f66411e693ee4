//! Vectors of results: several in the same round, and which results of a window are one vector.
use crate::hlo::attrs::WindowDim;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::{VectorRun, VectorWidth};

/// Vectors of results that are computed in the same iteration.
pub(super) struct ResultVectors {
    /// Lanes of each vector.
    pub lanes: u64,
    /// Lanes of the vectors of terms, if the reduction is vectorized along the terms.
    pub across: Option<u64>,
    /// The loop variable over the vectors, if there are several.
    pub side: Option<VarId>,
}

impl ResultVectors {
    /// Index of a vector's register in its register array.
    pub fn register_index(&self) -> Index {
        self.side.map_or(Index::constant(0), Index::var)
    }

    /// Wraps `body` in an unrolled loop over the vectors, if there are several.
    pub fn loop_over_vectors(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        match self.side {
            Some(side) => vec![for_loop(side, LoopKind::Unroll, body)],
            None => body,
        }
    }
}

/// Vector width of a single lane, for scalar code.
pub(super) const ONE: VectorWidth = VectorWidth { lanes: 1, masks: false };

/// The axis of the result along which windows are vectorized, and its division into vectors. If the innermost axis has a window or one
/// element, windows that reach over an edge are not vectorized, as their elements are not adjacent.
pub(super) fn window_vectors(
    window: &[WindowDim],
    input: &[u64],
    dims: &[u64],
    width: VectorWidth,
) -> (usize, Vec<VectorRun>) {
    let alone = |i: usize| dims[i] == 1 && input[i] == 1;
    let axis = (0..dims.len()).rev().find(|&i| !alone(i)).unwrap_or(dims.len().saturating_sub(1));
    let (Some(w), Some(&all)) = (window.get(axis), dims.get(axis)) else { return (axis, ONE.split(1)) };
    if w.size == 1 && w.stride == 1 && w.lhs_dilate == 1 && w.pad_low == 0 && all == input[axis] {
        return (axis, width.split(all));
    }
    let low = w.pad_low.max(0) as u64;
    let high = input[axis] as i64 + w.pad_low - ((w.size - 1) * w.rhs_dilate) as i64;
    let high = (high.max(0) as u64).min(all);
    if w.stride > 1 || w.lhs_dilate > 1 || low + width.lanes > high {
        return (axis, ONE.split(all));
    }
    // a tap's element is known to lie inside for whole vectors only
    let inner = VectorWidth { masks: false, ..width }.split(high - low);
    let after =
        |first: u64, cuts: Vec<VectorRun>| cuts.into_iter().map(move |c| VectorRun { first: c.first + first, ..c });
    let cuts = after(0, ONE.split(low)).chain(after(low, inner)).chain(after(high, ONE.split(all - high)));
    (axis, cuts.collect())
}
