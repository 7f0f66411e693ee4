//! Runs of equal keys among sorted elements, and reductions over them.
use super::strides;
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Builder, CompId, Dim, InstId, Op, Shape};
use crate::ops::LowerCtx;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::scatter;
use crate::ops::compact::{Compaction, compact_mask, prefix_reduce};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

/// Elements sorted by several keys, the first key first, and the runs of elements that agree in all keys. The order within a
/// run is stable.
pub(super) struct SortedRuns {
    /// Element at each sorted position: `s32[n]`.
    pub order: InstId,
    /// Run number of each sorted position, from 0: `s32[n]`.
    pub run: InstId,
    /// Keys of each run, then zeros: `[n]` each.
    pub keys: Vec<InstId>,
    /// Whether a run of each number exists: `pred[n]`.
    pub exists: InstId,
}

impl SortedRuns {
    /// Sorts elements by vectors of integer keys.
    pub fn from_keys(cx: &mut LowerCtx, keys: &[InstId]) -> Result<SortedRuns> {
        let n = keys.first().map_or(Dim::from(0), |&key| cx.b.dims(key)[0]);
        let own = cx.b.iota(DType::S32, &dims![n], 0);
        let types: Vec<DType> = keys.iter().map(|&key| cx.b.dtype(key)).collect();
        let comp = in_front(cx.b, &types);
        let sorted = cx.b.add_inst(Op::Sort { dim: 0, is_stable: true, comp }, &[keys, &[own]].concat());
        let order = cx.b.get_tuple_element(sorted, keys.len());
        let mut begins = cx.b.full(DType::Pred, &dims![n], 0.0);
        let mut sorted_keys = Vec::with_capacity(keys.len());
        for part in 0..keys.len() {
            let key = cx.b.get_tuple_element(sorted, part);
            let differs = change_mask(cx, key);
            begins = cx.b.elementwise(ScalarOp::Or, &[begins, differs]);
            sorted_keys.push(key);
        }
        let begins = cx.b.convert(begins, DType::S32);
        let run = prefix_reduce(cx, begins, ScalarOp::Add, 0.0);
        let to = cx.b.reshape(run, &dims![n, 1]);
        let mut of_runs = Vec::with_capacity(keys.len());
        for key in sorted_keys {
            let zeros = cx.b.full_like(key, 0.0);
            of_runs.push(scatter(cx, zeros, to, key, None)?);
        }
        // The number of runs is one more than the last run number, if there is any.
        let (none, numbers) = (cx.b.scalar(DType::S32, -1.0), cx.b.iota(DType::S32, &dims![n], 0));
        let last = cx.b.reduce(run, none, ScalarOp::Maximum, &[0]);
        let exists = cx.b.compare(Direction::Le, numbers, last);
        Ok(SortedRuns { order, run, keys: of_runs, exists })
    }

    /// Reduces the values of each run with `op`, starting from `start`: `[n]`. Without an op, the last value of a run is taken.
    pub fn reduce_runs(&self, cx: &mut LowerCtx, x: InstId, op: Option<ScalarOp>, start: f64) -> Result<InstId> {
        let n = cx.b.dims(x)[0];
        let sorted = gather_along_axis(cx, x, self.order, 0, 0)?;
        let base = cx.b.full_like(x, start);
        let to = cx.b.reshape(self.run, &dims![n, 1]);
        scatter(cx, base, to, sorted, op)
    }
}

/// Mask of the elements of a vector whose value differs from the one before; false for the first.
pub(super) fn change_mask(cx: &mut LowerCtx, x: InstId) -> InstId {
    let n = cx.b.dims(x)[0];
    let (head, tail) =
        (cx.b.slice_axis(x, 0, Dim::from(0), n.min(1)), cx.b.slice_axis(x, 0, Dim::from(0), n.saturating_sub(1)));
    let before = cx.b.concatenate(&[head, tail], 0);
    cx.b.compare(Direction::Ne, x, before)
}

/// Comparator of elements by keys of these types, by the first key that differs; the last operands are the elements' numbers,
/// which break ties.
fn in_front(b: &mut Builder, types: &[DType]) -> CompId {
    b.begin_computation("in_front");
    let mut is_before = None;
    let mut pairs = Vec::with_capacity(types.len());
    for &dtype in types {
        pairs.push([b.parameter(Shape::array(dtype, [])), b.parameter(Shape::array(dtype, []))]);
    }
    b.parameter(Shape::array(DType::S32, []));
    b.parameter(Shape::array(DType::S32, []));
    for [x, y] in pairs.into_iter().rev() {
        let less = b.elementwise(ScalarOp::Compare(Direction::Lt, CompareKind::Partial), &[x, y]);
        is_before = Some(match is_before {
            None => less,
            Some(behind) => {
                let same = b.compare(Direction::Eq, x, y);
                let later = b.binary(ScalarOp::And, same, behind);
                b.binary(ScalarOp::Or, less, later)
            }
        });
    }
    let root = is_before.unwrap_or_else(|| b.scalar(DType::Pred, 0.0));
    b.end_computation(root)
}

/// Positions at which a mask is true, and their number as a data-dependent size.
pub(super) fn mask_positions(cx: &mut LowerCtx, mask: InstId, made: &str) -> Result<(InstId, Dim)> {
    let n = cx.b.dims(mask)[0];
    let Compaction { places, count, .. } = compact_mask(cx, mask)?;
    let size = cx.data_dependent_size(count, n, made)?;
    Ok((cx.first_elements(places, size)?, size))
}

/// Index along each axis of row-major positions in an array of shape `s64[rank]`: vectors.
pub(super) fn unravel_indices(cx: &mut LowerCtx, places: InstId, shape: InstId, rank: usize) -> Vec<InstId> {
    let n = cx.b.dims(places)[0];
    let mut out = Vec::with_capacity(rank);
    let mut rest = places;
    for stride in strides(cx, shape, rank) {
        let stride = cx.b.broadcast(stride, &[n], &[]);
        out.push(cx.b.div(rest, stride));
        rest = cx.b.elementwise(ScalarOp::Remainder, &[rest, stride]);
    }
    out
}

/// Position of each element within its group, for elements whose groups are contiguous: `s32[n]`.
pub(super) fn position_in_group(cx: &mut LowerCtx, group: InstId) -> InstId {
    let n = cx.b.dims(group)[0];
    let (own, none) = (cx.b.iota(DType::S32, &[n], 0), cx.b.full(DType::S32, &[n], 0.0));
    let begins = change_mask(cx, group);
    let first = cx.b.select(begins, own, none);
    let first = prefix_reduce(cx, first, ScalarOp::Maximum, 0.0);
    cx.b.sub(own, first)
}
