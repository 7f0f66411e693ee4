//! `EditDistance`: the number of insertions, deletions and substitutions that turn one sequence into another (Levenshtein
//! distance).
//!
//! A row of the distance table follows from the previous one, except for insertions, which are a running minimum along the row.
use super::{column, element};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::TfType;
use crate::hlo::symbolic::WindowDim;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::scatter::scatter;
use crate::ops::compact;
use crate::ops::counted_loop::counted_loop;
use crate::ops::fact::{Dims, Fact};
use crate::ops::math::special::{add_scalar, compare_scalar};
use crate::ops::op_lowering::op;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[op(
    "EditDistance",
    "hypothesis_indices hypothesis_values hypothesis_shape truth_indices truth_values truth_shape -> output",
    distance,
)
.shape(distance_shape)
.dtypes("numbers, pred")];

/// Sequences of values, concatenated in one list.
struct Sequences {
    /// `[n]`: values of all sequences.
    values: InstId,
    /// `s32[sequences]`: start of each sequence in the list.
    starts: InstId,
    /// `s32[sequences]`: length of each sequence.
    lengths: InstId,
}

/// Lowers `EditDistance`: the distance between corresponding sequences of two sparse tensors, divided by the length of the
/// second if `normalize`.
fn distance(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, sizes) = out_dims(cx)?;
    let count = dims.iter().product();
    let hypothesis = sequences(cx, 0, &sizes, count)?;
    let truth = sequences(cx, 3, &sizes, count)?;
    let y = levenshtein(cx, &hypothesis, &truth)?;
    let mut y = cx.b.convert(y, DType::F32);
    if cx.node.bool("normalize").unwrap_or(true) {
        let length = cx.b.convert(truth.lengths, DType::F32);
        let quotient = cx.b.div(y, length);
        let is_zero = compare_scalar(cx.b, Direction::Eq, y, 0.0);
        // Two empty sequences have distance 0 even if normalized.
        y = cx.b.select(is_zero, y, quotient);
    }
    let y = cx.b.reshape(y, &dims);
    cx.one_output(y)
}

/// Elementwise maximum of both shapes without their last axis: as sizes and as scalars.
fn out_dims(cx: &mut LowerCtx) -> Result<(Vec<Dim>, Vec<InstId>)> {
    let (one, other) = (cx.arg(2)?, cx.arg(5)?);
    let [rank] = cx.b.dims(one)[..] else { return Err(cx.shape_mismatch("a shape must be a vector")) };
    if cx.b.dims(other) != [rank] || !(2..=64).contains(&rank) {
        return Err(
            cx.shape_mismatch(format!("shapes of {rank} and {:?} axes; two or more are needed", cx.b.dims(other)))
        );
    }
    let made = format!("what `{}` makes", cx.node.name);
    let larger = cx.b.max(one, other);
    let (mut dims, mut sizes) = (Vec::new(), Vec::new());
    for axis in 0..rank.guarded_count() - 1 {
        dims.push(cx.size_from_element(larger, Dim::from(axis), &made)?);
        sizes.push(element(cx, larger, axis as usize));
    }
    match crate::symbolic::product(&dims) {
        Some(n) if n <= 1u64 << 32 => Ok((dims, sizes)),
        _ => Err(Error::user(Code::TooLarge, format!("distances of {dims:?} sequences"))),
    }
}

/// Sequences of the sparse tensor whose ordered indices are input `i`.
fn sequences(cx: &mut LowerCtx, i: usize, sizes: &[InstId], count: Dim) -> Result<Sequences> {
    let (indices, values) = (cx.arg(i)?, cx.arg(i + 1)?);
    let [n] = cx.b.dims(values)[..] else { return Err(cx.shape_mismatch("the values must be a vector")) };
    if cx.b.dims(indices) != [n, Dim::from(sizes.len()) + 1] {
        return Err(cx.shape_mismatch(format!("indices {:?} of {n} values", cx.b.dims(indices))));
    }
    let mut row = cx.b.full(DType::S64, &[n], 0.0);
    for (axis, &size) in sizes.iter().enumerate() {
        let at = column(cx, indices, axis);
        let size = cx.b.convert(size, DType::S64);
        row = cx.b.mul(row, size);
        row = cx.b.add(row, at);
    }
    let row = cx.b.convert(row, DType::S32);
    let row = cx.b.reshape(row, &dims![n, 1]);
    let (none, ones) = (cx.b.full(DType::S32, &[count], 0.0), cx.b.full(DType::S32, &[n], 1.0));
    let lengths = scatter(cx, none, row, ones, Some(ScalarOp::Add))?;
    let up_to = compact::prefix_reduce(cx, lengths, ScalarOp::Add, 0.0);
    let starts = cx.b.sub(up_to, lengths);
    // A dummy value, so that the list can be read if it is empty.
    let zero = cx.b.scalar(cx.b.dtype(values), 0.0);
    let zero = cx.b.reshape(zero, &dims![1]);
    let values = cx.b.concatenate(&[values, zero], 0);
    Ok(Sequences { values, starts, lengths })
}

/// Edit distances, `s32[sequences]`. A sequence is at most as long as its list.
fn levenshtein(cx: &mut LowerCtx, a: &Sequences, c: &Sequences) -> Result<InstId> {
    let count = cx.b.dims(a.lengths)[0];
    let (rows, columns) = (cx.b.dims(a.values)[0] - 1, cx.b.dims(c.values)[0] - 1);
    let grid = [count, columns + 1];
    let place = cx.b.iota(DType::S32, &[count, columns], 1);
    let starts = cx.b.broadcast(c.starts, &[count, columns], &[0]);
    let place = cx.b.add(place, starts);
    let others = gather_along_axis(cx, c.values, place, 0, 0)?;
    let first = cx.b.iota(DType::S32, &grid, 1);
    let state = [first, others, a.values, a.starts, a.lengths];
    let end = counted_loop(cx.b, "edit_distance", rows, &state, |b, round, parts| {
        let [before, others, values, starts, lengths] = parts[..] else { return parts };
        let place = b.add(starts, round);
        let value = b.gather_along_axis(values, 0, place, false);
        let now = next_row(b, before, value, others);
        let is_within = b.compare(Direction::Lt, round, lengths);
        let is_within = b.broadcast(is_within, &grid, &[0]);
        let now = b.select(is_within, now, before);
        vec![now, others, values, starts, lengths]
    });
    let at = cx.b.reshape(c.lengths, &dims![count, 1]);
    let y = gather_along_axis(cx, end[0], at, 1, 1)?;
    Ok(cx.b.reshape(y, &[count]))
}

/// Next row of the distance table, `s32[sequences, columns + 1]`, for one more value of each sequence.
fn next_row(b: &mut Builder, before: InstId, value: InstId, others: InstId) -> InstId {
    let (grid, dims) = (b.dims(before).to_vec(), b.dims(others).to_vec());
    let value = b.broadcast(value, &dims, &[0]);
    let is_other = b.compare(Direction::Ne, value, others);
    let cost = b.convert(is_other, DType::S32);
    let diagonal = b.slice_axis(before, 1, Dim::from(0), dims[1]);
    let substituted = b.add(diagonal, cost);
    let deleted = add_scalar(b, before, 1.0);
    let (first, rest) =
        (b.slice_axis(deleted, 1, Dim::from(0), Dim::from(1)), b.slice_axis(deleted, 1, Dim::from(1), grid[1]));
    let rest = b.min(rest, substituted);
    let best = b.concatenate(&[first, rest], 1);
    // An insertion costs one per step to the right: the minimum over all starts, plus the number of steps.
    let column = b.iota(DType::S32, &grid, 1);
    let from_left = b.sub(best, column);
    let least = running_minimum(b, from_left);
    b.add(least, column)
}

/// Running minimum along each row.
fn running_minimum(b: &mut Builder, x: InstId) -> InstId {
    let comp = b.scalar_computation(ScalarOp::Minimum, DType::S32);
    // A window needs an element even if the array has none.
    let size = b.dims(x)[1].max(1);
    let mut window = vec![WindowDim::default(); 2];
    window[1] = WindowDim { size, pad_low: size - 1, ..WindowDim::default() };
    let most = b.scalar(DType::S32, f64::from(i32::MAX));
    b.add_inst(Op::ReduceWindow { window, comp }, &[x, most])
}

fn distance_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let f32 = Some(TfType::Data(DType::F32));
    let (Some(one), Some(other)) = (cx.constant_ints(2), cx.constant_ints(5)) else {
        let rank = match (cx.ranked_dims(2)?.as_deref(), cx.ranked_dims(5)?.as_deref()) {
            (Some([InferredDim::Known(n)]), _) | (_, Some([InferredDim::Known(n)])) => {
                usize::try_from(*n).ok().filter(|&n| n <= 64)
            }
            _ => None,
        };
        let dims: Dims = match rank {
            Some(rank) => cx.fresh_shape(rank.saturating_sub(1), UnknownReason::Value(2)),
            None => cx.unranked(UnknownReason::Value(2)),
        };
        return cx.one_output(f32, dims);
    };
    let most = |(&a, &b): (&i64, &i64)| InferredDim::Known(u64::try_from(a.max(b)).unwrap_or(0));
    let mut dims: Vec<InferredDim> = one.iter().zip(&other).map(most).collect();
    dims.pop();
    cx.one_output(f32, dims)
}
