//! Instructions on arrays with fewer elements than declared, for opcodes whose attributes name declared sizes.
use super::attrs::{GatherDims, ScatterDims, SliceDim};
use super::{ArrayShape, Inst, Module, Op, Shape, infer};

/// The op of `inst` and its result shape for operands of the actual shapes, which are declared larger; `None` for ops other than slices,
/// reshapes, gathers and scatters, and if elements beyond the actual sizes would be read.
pub fn with_actual_sizes(inst: &Inst, declared: &[&Shape], actual: &[&Shape], module: &Module) -> Option<(Op, Shape)> {
    let bounds: Vec<&ArrayShape> = declared.iter().map(|s| s.as_array()).collect::<Option<_>>()?;
    let sizes: Vec<&ArrayShape> = actual.iter().map(|s| s.as_array()).collect::<Option<_>>()?;
    let alike = bounds.len() == sizes.len() && bounds.iter().zip(&sizes).all(|(b, s)| b.rank() == s.rank());
    if !alike {
        return None;
    }
    let op = match &inst.op {
        Op::Slice(dims) => Op::Slice(slice_for_sizes(dims, bounds.first()?, sizes.first()?)?),
        Op::Gather(dims) => {
            Op::Gather(Box::new(gather_for_sizes(dims, bounds.first()?, sizes.first()?, sizes.get(1)?)?))
        }
        Op::Scatter { dims, .. } => {
            let count = sizes.len() / 2;
            let is_within = scatters_within(dims, sizes.first()?, sizes.get(count)?, sizes.get(count + 1)?);
            is_within.then(|| inst.op.clone())?
        }
        Op::Reshape => {
            let (to, from) = (inst.shape.as_array()?, sizes.first()?);
            let dims = reshape_for_sizes(bounds.first()?, &from.dims, to)?;
            return Some((Op::Reshape, Shape::array(from.dtype, dims)));
        }
        _ => return None,
    };
    let shape = infer::infer(&op, actual, module).ok()?;
    Some((op, shape))
}

/// Adapts a slice to actual sizes: slices of whole dimensions shrink, others must lie within.
fn slice_for_sizes(dims: &[SliceDim], bounds: &ArrayShape, sizes: &ArrayShape) -> Option<Vec<SliceDim>> {
    let one = |(d, (&bound, &size)): (&SliceDim, (&u64, &u64))| {
        let is_whole = d.start == 0 && d.stride == 1 && d.limit == bound;
        let limit = if is_whole { size } else { d.limit };
        (limit <= size).then_some(SliceDim { limit, ..*d })
    };
    dims.iter().zip(bounds.dims.iter().zip(&sizes.dims)).map(one).collect()
}

/// Adapts a gather to actual sizes: slices of whole dimensions shrink. Clamping of indices into a shorter dimension is unknown.
fn gather_for_sizes(d: &GatherDims, bounds: &ArrayShape, x: &ArrayShape, indices: &ArrayShape) -> Option<GatherDims> {
    let mut d = d.clone();
    for (axis, (&bound, &size)) in bounds.dims.iter().zip(&x.dims).enumerate() {
        let slice = d.slice_sizes.get_mut(axis)?;
        if size == bound {
            continue;
        }
        if *slice == bound && bound != 1 {
            *slice = size;
        }
        if *slice > size || d.start_index_map.contains(&axis) {
            return None;
        }
    }
    let mut batches = d.operand_batching_dims.iter().zip(&d.start_indices_batching_dims);
    batches.all(|(&a, &b)| x.dims.get(a) == indices.dims.get(b)).then_some(d)
}

/// Whether the windows of a scatter are within its operand, and there is one for each index vector.
fn scatters_within(d: &ScatterDims, x: &ArrayShape, indices: &ArrayShape, updates: &ArrayShape) -> bool {
    let kept = (0..x.rank()).filter(|a| !d.inserted_window_dims.contains(a) && !d.input_batching_dims.contains(a));
    let windows = kept.zip(&d.update_window_dims).all(|(a, &u)| updates.dims.get(u).is_some_and(|&n| n <= x.dims[a]));
    let places = (0..indices.rank()).filter(|&a| a != d.index_vector_dim).map(|a| indices.dims[a]);
    let given = (0..updates.rank()).filter(|a| !d.update_window_dims.contains(a)).map(|a| updates.dims[a]);
    let mut batches = d.input_batching_dims.iter().zip(&d.scatter_indices_batching_dims);
    windows && places.eq(given) && batches.all(|(&a, &b)| x.dims.get(a) == indices.dims.get(b))
}

/// The sizes of a reshape to `to` for actual sizes: within each group of dimensions with equally many declared elements, the dynamic
/// dimension takes the rest.
fn reshape_for_sizes(from: &ArrayShape, sizes: &[u64], to: &ArrayShape) -> Option<Vec<u64>> {
    let mut dims = to.dims.clone();
    let (mut i, mut j) = (0, 0);
    while i < from.rank() || j < to.rank() {
        let (start, first) = (i, j);
        let (mut ours, mut theirs) = (1u64, 1u64);
        // Trailing dimensions of size 1 belong to the last group.
        while ours != theirs || i == start || j == first || from.dims[i..].iter().chain(&to.dims[j..]).all(|&n| n == 1)
        {
            if i < from.rank() && (ours <= theirs || j == to.rank()) {
                ours = ours.checked_mul(from.dims[i])?;
                i += 1;
            } else if j < to.rank() {
                theirs = theirs.checked_mul(to.dims[j])?;
                j += 1;
            } else {
                break;
            }
        }
        if ours != theirs || ours == 0 {
            return None;
        }
        let held: u64 = sizes[start..i].iter().product();
        let bounded: Vec<usize> = (first..j).filter(|&d| to.dynamic.get(d) == Some(&true)).collect();
        match bounded[..] {
            [] => {}
            [one] => {
                let others: u64 = (first..j).filter(|&d| d != one).map(|d| to.dims[d]).product();
                dims[one] = held.checked_div(others)?;
            }
            _ => return None,
        }
        if dims[first..j].iter().product::<u64>() != held {
            return None;
        }
    }
    Some(dims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DType;

    #[test]
    fn reshapes_go_group_by_group() {
        let shape = |dims: &[u64], bounded: &[usize]| {
            let dynamic = (0..dims.len()).map(|i| bounded.contains(&i)).collect();
            ArrayShape { dynamic, ..ArrayShape::new(DType::F32, dims.to_vec()) }
        };
        let of = |from: &[u64], sizes: &[u64], to: &[u64], bounded: &[usize]| {
            reshape_for_sizes(&shape(from, &[]), sizes, &shape(to, bounded))
        };
        assert_eq!(of(&[4, 2, 2], &[2, 2, 1], &[2, 2, 4], &[1, 2]), Some(vec![2, 1, 2]));
        assert_eq!(of(&[24], &[16], &[2, 12], &[1]), Some(vec![2, 8]));
        assert_eq!(of(&[6, 4], &[4, 4], &[24], &[0]), Some(vec![16]));
        assert_eq!(of(&[6, 1, 4], &[4, 1, 4], &[1, 6, 4, 1], &[1]), Some(vec![1, 4, 4, 1]));
        assert_eq!(of(&[6], &[0], &[1, 6], &[1]), Some(vec![1, 0]));
        assert_eq!(of(&[], &[], &[1], &[]), Some(vec![1]));
        assert_eq!(of(&[6], &[5], &[2, 3], &[1]), None);
        assert_eq!(of(&[6], &[4], &[6], &[]), None);
        assert_eq!(of(&[8], &[4], &[2, 4], &[0, 1]), None);
        assert_eq!(of(&[0], &[0], &[0], &[0]), None);
    }
}
