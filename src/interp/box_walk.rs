//! Iteration over boxes of strided elements.
use crate::by_width;
use crate::tensor::Tensor;

/// Row-major strides of an array of these sizes.
pub(super) fn strides(dims: &[u64]) -> Vec<i64> {
    let mut out = vec![1i64; dims.len()];
    for i in (1..dims.len()).rev() {
        out[i - 1] = out[i] * dims[i] as i64;
    }
    out
}

/// Calls `row` with the `N` offsets of the first element of each row along the last dimension.
pub(super) fn for_each_row<const N: usize>(
    dims: &[u64],
    start: [i64; N],
    strides: [&[i64]; N],
    mut row: impl FnMut([i64; N]),
) {
    if dims.contains(&0) {
        return;
    }
    let outer = dims.len().saturating_sub(1);
    let mut index = vec![0u64; outer];
    let mut at = start;
    loop {
        row(at);
        let mut axis = outer;
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            for k in 0..N {
                at[k] += strides[k][axis];
            }
            if index[axis] < dims[axis] {
                break;
            }
            for k in 0..N {
                at[k] -= strides[k][axis] * dims[axis] as i64;
            }
            index[axis] = 0;
        }
    }
}

/// Drops dimensions of size 1, and merges adjacent dimensions that are contiguous in all of the strides.
fn coalesce<const N: usize>(dims: &[u64], strides: [&[i64]; N]) -> (Vec<u64>, [Vec<i64>; N]) {
    let mut out_dims: Vec<u64> = Vec::new();
    let mut out: [Vec<i64>; N] = std::array::from_fn(|_| Vec::new());
    for (i, &d) in dims.iter().enumerate() {
        if d == 1 {
            continue;
        }
        let joins = !out_dims.is_empty() && (0..N).all(|k| out[k].last() == Some(&(strides[k][i] * d as i64)));
        if joins && let Some(last) = out_dims.last_mut() {
            *last *= d;
            for k in 0..N {
                if let Some(s) = out[k].last_mut() {
                    *s = strides[k][i];
                }
            }
        } else {
            out_dims.push(d);
            for k in 0..N {
                out[k].push(strides[k][i]);
            }
        }
    }
    (out_dims, out)
}

/// Elements of `x` at `start` plus multiples of `strides`, as an array of sizes `dims`.
pub(super) fn strided_elements(x: &Tensor, dims: Vec<u64>, start: i64, strides: &[i64]) -> Tensor {
    by_width!(x.dtype, T => {
        let out = pick_typed::<T>(&x.view::<T>(), &dims, start, strides);
        Tensor::from_vec(x.dtype, dims, out)
    })
}

fn pick_typed<T: Copy>(src: &[T], dims: &[u64], start: i64, strides: &[i64]) -> Vec<T> {
    let count = dims.iter().product::<u64>() as usize;
    let (dims, [strides]) = coalesce(dims, [strides]);
    let (n, step) = match (dims.last(), strides.last()) {
        (Some(&n), Some(&step)) => (n as usize, step),
        _ => (1, 1),
    };
    let mut out = Vec::with_capacity(count);
    for_each_row(&dims, [start], [&strides], |[at]| match step {
        1 => out.extend_from_slice(&src[at as usize..at as usize + n]),
        0 => out.resize(out.len() + n, src[at as usize]),
        _ => out.extend((0..n as i64).map(|i| src[(at + i * step) as usize])),
    });
    out
}

/// Position of a box in an array: the offset of its first element, and the strides of its dimensions.
#[derive(Clone, Copy)]
pub(super) struct BoxPosition<'a> {
    pub start: i64,
    pub strides: &'a [i64],
}

/// Copies a box of sizes `dims` from `src`, where it is at `from`, into `dst` at `to`.
pub(super) fn copy_box<T: Copy>(dims: &[u64], dst: &mut [T], to: BoxPosition, src: &[T], from: BoxPosition) {
    if dims.contains(&0) {
        return;
    }
    let starts = [to.start, from.start];
    let (dims, [to, from]) = coalesce(dims, [to.strides, from.strides]);
    let n = dims.last().copied().unwrap_or(1) as usize;
    let (to_step, from_step) = (to.last().copied().unwrap_or(1), from.last().copied().unwrap_or(1));
    for_each_row(&dims, starts, [&to, &from], |[d, s]| {
        if to_step == 1 && from_step == 1 {
            dst[d as usize..d as usize + n].copy_from_slice(&src[s as usize..s as usize + n]);
        } else {
            for i in 0..n as i64 {
                dst[(d + i * to_step) as usize] = src[(s + i * from_step) as usize];
            }
        }
    });
}
