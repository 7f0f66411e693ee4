//! Demand of instructions with array results on their operands, axis by axis.
use crate::hlo::attrs::{ConvDims, DotDims, GatherDims, PadDim, SliceDim, WindowDim};
use crate::hlo::{Computation, Inst, InstId, Op};
use crate::schedule::plan::demand::{ArrayDemand, PrefixBound, everything_needed, without_axes};

/// The demand of an instruction on its operand `i`; both are arrays if any elements can be left out.
pub fn operand_demand(comp: &Computation, inst: &Inst, axes: &[Option<PrefixBound>], i: usize) -> Vec<ArrayDemand> {
    let shape = &comp[inst.operands[i]].shape;
    let all = everything_needed(shape);
    let Some(operand) = shape.as_array() else { return all };
    let rank = operand.rank();
    let dims = inst.shape.as_array().map_or(&[][..], |a| &a.dims);
    let same = || if rank == axes.len() { axes.to_vec() } else { vec![None; rank] };
    let at = |axis: usize| axes.get(axis).copied().flatten();
    let of = match &inst.op {
        Op::Elementwise(_) | Op::Map { .. } | Op::AddDependency if rank == axes.len() => same(),
        Op::Broadcast(to) => to.iter().map(|&axis| at(axis)).collect(),
        Op::Transpose(perm) => {
            let mut of = vec![None; rank];
            perm.iter().enumerate().for_each(|(axis, &from)| of[from] = at(axis));
            of
        }
        Op::Reshape | Op::Bitcast => reshape_bounds(axes, dims, &operand.dims),
        Op::Dot(d) => dot(d, &at, i, rank, axes.len()),
        Op::Convolution(d) => convolution(d, &at, i, rank),
        Op::ReduceWindow { window, .. } if i < inst.operands.len() / 2 => through_windows(axes, window),
        Op::Concatenate(axis) => {
            let size = |&o: &InstId| comp[o].shape.as_array().map_or(0, |a| a.dims.get(*axis).copied().unwrap_or(0));
            let before: u64 = inst.operands[..i].iter().map(size).sum();
            let mut of = same();
            of[*axis] = at(*axis).map(|b| PrefixBound { more: b.more.saturating_sub(before), ..b });
            of
        }
        Op::Slice(all) => all.iter().zip(axes).map(|(s, b)| through_slice(s, (*b)?)).collect(),
        Op::Pad(all) if i == 0 => all.iter().zip(axes).map(|(p, b)| through_pad(p, (*b)?)).collect(),
        Op::Reverse(turned) => without_axes(same(), turned),
        Op::DynamicSlice(_) if i == 0 => anywhere_bounds(axes, dims, &operand.dims),
        Op::DynamicUpdateSlice if i == 0 => same(),
        // what is beyond a bound in the part is beyond it in the array
        Op::DynamicUpdateSlice if i == 1 => same(),
        Op::Gather(d) => gather(d, &at, i, &operand.dims, axes.len()),
        Op::Cholesky { .. } | Op::TriangularSolve { .. } => {
            let inner: Vec<usize> = (rank.saturating_sub(2)..rank).collect();
            without_axes(same(), &inner)
        }
        Op::Fft { length, .. } => {
            let inner: Vec<usize> = (rank.saturating_sub(length.len())..rank).collect();
            without_axes(same(), &inner)
        }
        _ => return all,
    };
    vec![Some(of)]
}

fn dot(
    d: &DotDims,
    at: &dyn Fn(usize) -> Option<PrefixBound>,
    i: usize,
    rank: usize,
    result: usize,
) -> Vec<Option<PrefixBound>> {
    let (batch, contracting) = match i {
        0 => (&d.lhs_batch, &d.lhs_contracting),
        _ => (&d.rhs_batch, &d.rhs_contracting),
    };
    let free = rank - batch.len() - contracting.len();
    // the result has batch axes, then the free ones of the left side, then those of the right
    let mut next = if i == 0 { batch.len() } else { result - free };
    let of = |axis: usize| {
        if let Some(b) = batch.iter().position(|&x| x == axis) {
            return at(b);
        }
        if contracting.contains(&axis) {
            return None;
        }
        next += 1;
        at(next - 1)
    };
    (0..rank).map(of).collect()
}

fn convolution(
    d: &ConvDims,
    at: &dyn Fn(usize) -> Option<PrefixBound>,
    i: usize,
    rank: usize,
) -> Vec<Option<PrefixBound>> {
    let mut of = vec![None; rank];
    match i {
        0 => {
            if d.batch_group_count == 1 {
                of[d.input_batch] = at(d.output_batch);
            }
            for ((&axis, &out), w) in d.input_spatial.iter().zip(&d.output_spatial).zip(&d.window) {
                of[axis] = at(out).and_then(|b| through_window(b, w));
            }
        }
        1 if d.batch_group_count == 1 && d.feature_group_count == 1 => {
            of[d.kernel_output_feature] = at(d.output_feature);
        }
        _ => {}
    }
    of
}

fn through_windows(axes: &[Option<PrefixBound>], window: &[WindowDim]) -> Vec<Option<PrefixBound>> {
    window.iter().zip(axes).map(|(w, b)| through_window((*b)?, w)).collect()
}

/// The bound of the operand's elements that the windows below bound `b` read.
fn through_window(b: PrefixBound, w: &WindowDim) -> Option<PrefixBound> {
    let (stride, holes) = (i64::try_from(w.stride).ok()?, w.lhs_dilate.max(1));
    let before_last = i64::try_from(w.span()?).ok()?.checked_sub(1)?;
    let last = i64::try_from(b.more).ok()?.checked_sub(1)?.checked_mul(stride)?;
    let last = last.checked_add(before_last)?.checked_sub(w.pad_low)?;
    let times = b.times.checked_mul(w.stride)?.div_ceil(holes);
    // `last` is -1 where no more than `times` elements for each of the size are read
    let more = if last < 0 { 0 } else { last.unsigned_abs().div_ceil(holes).checked_add(1)? };
    Some(PrefixBound { times, more, ..b })
}

fn through_slice(s: &SliceDim, b: PrefixBound) -> Option<PrefixBound> {
    let stride = s.stride.max(1);
    let times = b.times.checked_mul(stride)?;
    // the last element that is kept is `stride` times the number of those before it behind the first
    let more = b.more.checked_mul(stride)?.checked_add(s.start)?.checked_add(1)?.saturating_sub(stride);
    Some(PrefixBound { times, more, ..b })
}

fn through_pad(p: &PadDim, b: PrefixBound) -> Option<PrefixBound> {
    let more = i64::try_from(b.more).ok()?.checked_sub(p.low)?;
    (p.interior == 0).then(|| PrefixBound { more: more.max(0) as u64, ..b })
}

/// Bounds of the elements that a box of size `part` may read of an array, wherever the box begins.
fn anywhere_bounds(axes: &[Option<PrefixBound>], part: &[u64], array: &[u64]) -> Vec<Option<PrefixBound>> {
    let behind = |b: PrefixBound, most: u64| Some(PrefixBound { more: b.more.checked_add(most)?, ..b });
    axes.iter().zip(part.iter().zip(array)).map(|(b, (part, all))| behind((*b)?, all.saturating_sub(*part))).collect()
}

fn gather(
    d: &GatherDims,
    at: &dyn Fn(usize) -> Option<PrefixBound>,
    i: usize,
    dims: &[u64],
    result: usize,
) -> Vec<Option<PrefixBound>> {
    let mut of = vec![None; dims.len()];
    if i == 0 {
        let kept =
            (0..dims.len()).filter(|a| !d.collapsed_slice_dims.contains(a) && !d.operand_batching_dims.contains(a));
        for (axis, &offset) in kept.zip(&d.offset_dims) {
            // a slice as long as its axis begins at its first element
            if d.slice_sizes.get(axis) == Some(&dims[axis]) {
                of[axis] = at(offset);
            }
        }
    } else {
        let batch = (0..result).filter(|a| !d.offset_dims.contains(a));
        let own = (0..dims.len()).filter(|&a| a != d.index_vector_dim);
        own.zip(batch).for_each(|(axis, from)| of[axis] = at(from));
    }
    of
}

/// Needed elements of the operand of a reshape from `to` to `dims`, given the needed elements `axes` of the result. Axes are taken in
/// groups with equally many elements on both sides; the bound of the first axis of a group of the result becomes one of the first axis of
/// the group of the operand.
pub fn reshape_bounds(axes: &[Option<PrefixBound>], dims: &[u64], to: &[u64]) -> Vec<Option<PrefixBound>> {
    let mut of = vec![None; to.len()];
    let real = |dims: &[u64]| (0..dims.len()).filter(|&a| dims[a] != 1).collect::<Vec<_>>();
    let (from, into) = (real(dims), real(to));
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < into.len() {
        let (first, other) = (from[i], into[j]);
        let (mut a, mut b) = (dims[first], to[other]);
        (i, j) = (i + 1, j + 1);
        while a != b {
            match (a < b, i < from.len(), j < into.len()) {
                (true, true, _) => {
                    a = a.saturating_mul(dims[from[i]]);
                    i += 1;
                }
                (false, _, true) => {
                    b = b.saturating_mul(to[into[j]]);
                    j += 1;
                }
                _ => return vec![None; to.len()],
            }
        }
        let inner = |whole: u64, first: u64| whole.checked_div(first).filter(|&n| n > 0);
        let (Some(bound), Some(have), Some(want)) = (axes[first], inner(a, dims[first]), inner(b, to[other])) else {
            continue;
        };
        let times = bound.times.checked_mul(have).filter(|n| n % want == 0);
        let more = bound.more.checked_mul(have);
        if let (Some(times), Some(more)) = (times, more) {
            of[other] = Some(PrefixBound { times: times / want, more: more.div_ceil(want), ..bound });
        }
    }
    of
}
