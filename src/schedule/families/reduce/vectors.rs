//! Vectors of results: several in the same round, and which results of a window are one vector.
use crate::hlo::attrs::WindowDim;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::{Cut, Width};

/// Vectors of results that are computed in the same round.
pub(super) struct Vectors {
    /// Lanes of each vector.
    pub lanes: u64,
    /// Lanes of the vectors of terms, where lanes lie along the terms.
    pub across: Option<u64>,
    /// The loop variable that numbers the vectors, where there are several.
    pub side: Option<VarId>,
}

impl Vectors {
    /// The number of a vector's register in its array of registers.
    pub fn slot(&self) -> Index {
        self.side.map_or(Index::constant(0), Index::var)
    }

    /// `body` repeated for each vector.
    pub fn each(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        match self.side {
            Some(side) => vec![each(side, LoopKind::Unroll, body)],
            None => body,
        }
    }
}

/// Scalars in the place of vectors.
pub(super) const ONE: Width = Width { lanes: 1, masks: false };

/// The axis of the result that vectors of windows lie along, and how it is cut: where the innermost axis has a window itself,
/// or one element only, the windows that reach over an edge are left out of the vectors, as their elements lie apart.
pub(super) fn windowed(window: &[WindowDim], input: &[u64], dims: &[u64], width: Width) -> (usize, Vec<Cut>) {
    let alone = |i: usize| dims[i] == 1 && input[i] == 1;
    let axis = (0..dims.len()).rev().find(|&i| !alone(i)).unwrap_or(dims.len().saturating_sub(1));
    let (Some(w), Some(&all)) = (window.get(axis), dims.get(axis)) else { return (axis, ONE.cut(1)) };
    if w.size == 1 && w.stride == 1 && w.lhs_dilate == 1 && w.pad_low == 0 && all == input[axis] {
        return (axis, width.cut(all));
    }
    let low = w.pad_low.max(0) as u64;
    let high = input[axis] as i64 + w.pad_low - ((w.size - 1) * w.rhs_dilate) as i64;
    let high = (high.max(0) as u64).min(all);
    if w.stride > 1 || w.lhs_dilate > 1 || low + width.lanes > high {
        return (axis, ONE.cut(all));
    }
    // a tap's element is known to lie inside for whole vectors only
    let inner = Width { masks: false, ..width }.cut(high - low);
    let after = |first: u64, cuts: Vec<Cut>| cuts.into_iter().map(move |c| Cut { first: c.first + first, ..c });
    let cuts = after(0, ONE.cut(low)).chain(after(low, inner)).chain(after(high, ONE.cut(all - high)));
    (axis, cuts.collect())
}
