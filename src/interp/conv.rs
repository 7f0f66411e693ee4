//! `convolution`: operands are rearranged to `[batch, spatial.., features]` and `[spatial.., in, out]`, followed by one typed
//! loop.
use std::ops::Range;

use super::dot::{Ring, RowAccumulators, add_row_times_matrix, inner_product, with_ring};
use super::machine::Machine;
use super::operands::invalid_hlo;
use super::shape_ops::transpose;
use crate::diag::{Code, Error, Result};
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{ArrayShape, Shape, infer};
use crate::scalar::eval;
use crate::scalar::sums::SumParts;
use crate::tensor::{DType, Tensor};

/// Operand position of each tap for each result position along one dimension; -1 if it lies in the padding.
pub(super) struct Taps {
    /// Number of taps along this dimension.
    pub(super) size: usize,
    table: Vec<i64>,
}

impl Taps {
    /// Table for `outputs` positions of window `w` over `n` elements; an error beyond 2^28 entries.
    pub(super) fn new(w: &WindowDim, n: u64, outputs: u64) -> Result<Taps> {
        if outputs.saturating_mul(w.size) > 1 << 28 {
            return Err(Error::user(Code::TooLarge, format!("{outputs} windows of {} elements", w.size)));
        }
        let size = w.size as usize;
        let mut table = Vec::with_capacity(outputs as usize * size);
        for o in 0..outputs as i64 {
            for t in 0..size as i64 {
                let t = if w.reversal { size as i64 - 1 - t } else { t };
                let at = o * w.stride as i64 + t * w.rhs_dilate as i64 - w.pad_low;
                let hole = at < 0 || at % w.lhs_dilate as i64 != 0;
                let at = at.div_euclid(w.lhs_dilate as i64);
                table.push(if hole || at >= n as i64 { -1 } else { at });
            }
        }
        Ok(Taps { size, table })
    }
    /// Operand positions of the taps of output `o`.
    pub(super) fn of_output(&self, o: usize) -> &[i64] {
        &self.table[o * self.size..(o + 1) * self.size]
    }
}

/// Number of outputs below which each is an inner product with eight partial sums, like a matrix-vector product.
const FEW_OUTPUTS: usize = 8;

/// Evaluates a convolution; the element type is that of `shape`.
pub(super) fn convolution(m: &Machine, x: &Tensor, k: &Tensor, d: &ConvDims, shape: &ArrayShape) -> Result<Tensor> {
    let array = |t: &Tensor| Shape::array(shape.dtype, t.dims.clone());
    let op = crate::hlo::Op::Convolution(Box::new(d.clone()));
    let inferred = infer::infer(&op, &[&array(x), &array(k)], m.module).map_err(invalid_hlo)?;
    if inferred.as_array().is_none_or(|a| a.dims != shape.dims) {
        return Err(invalid_hlo(format!("{shape} is declared where {inferred} follows")));
    }
    let product = x.dtype.product_type(k.dtype, shape.dtype);
    let factor = product.accumulator_type();
    let (x, groups) = features_last(x, d);
    let kernel_order = [&d.kernel_spatial[..], &[d.kernel_input_feature, d.kernel_output_feature]].concat();
    let work = shape.elements().saturating_mul(k.len() as u64 / k.dims[d.kernel_output_feature].max(1));
    m.charge_work(work)?;
    let (x, k) = (eval::convert(&x, factor), eval::convert(&transpose(k, &kernel_order), factor));
    let outputs: Vec<u64> = d.output_spatial.iter().map(|&a| shape.dims[a]).collect();
    let taps = d.window.iter().zip(&x.dims[1..]).zip(&outputs).map(|((w, &n), &o)| Taps::new(w, n, o));
    let taps = taps.collect::<Result<Vec<Taps>>>()?;
    let mut dims = vec![x.dims[0]];
    dims.extend(&outputs);
    dims.push(shape.dims[d.output_feature]);
    let out = with_ring!(factor, T => {
        let out = typed::<T>(&x, &k, &taps, &dims, groups);
        Tensor::from_vec(<T as Ring>::SUM, dims, out)
    });
    // From [batch, spatial.., features] to the dimension order of the result.
    let mut back = vec![0; shape.rank()];
    back[d.output_batch] = 0;
    back[d.output_feature] = shape.rank() - 1;
    for (i, &a) in d.output_spatial.iter().enumerate() {
        back[a] = i + 1;
    }
    Ok(eval::convert(&eval::convert(&transpose(&out, &back), product), shape.dtype))
}

/// Operand as `[batch, spatial.., features]`, and the number of feature groups; batch groups become feature groups.
fn features_last(x: &Tensor, d: &ConvDims) -> (Tensor, usize) {
    let order = [&[d.input_batch], &d.input_spatial[..], &[d.input_feature]].concat();
    let x = transpose(x, &order);
    if d.batch_group_count <= 1 {
        return (x, d.feature_group_count as usize);
    }
    let groups = d.batch_group_count;
    let mut split = vec![groups, x.dims[0] / groups];
    split.extend(&x.dims[1..]);
    let rank = split.len();
    let mut order: Vec<usize> = (1..rank - 1).collect();
    order.extend([0, rank - 1]);
    let moved = transpose(&x.with_dims(split), &order);
    let mut dims = moved.dims[..rank - 2].to_vec();
    dims.push(moved.dims[rank - 2] * moved.dims[rank - 1]);
    (moved.with_dims(dims), groups as usize)
}

fn typed<T: Ring>(x: &Tensor, k: &Tensor, taps: &[Taps], dims: &[u64], groups: usize) -> Vec<T::Sum> {
    let groups = groups.max(1);
    let (src, kernel) = (x.view::<T>(), k.view::<T>());
    let features = *x.dims.last().unwrap_or(&1) as usize;
    let (ins, outs) = (features / groups, *dims.last().unwrap_or(&1) as usize);
    let outs_a_group = outs / groups;
    let mut out = vec![T::ZERO; dims.iter().product::<u64>() as usize];
    if out.is_empty() || src.is_empty() || kernel.is_empty() {
        return out;
    }
    let spatial = taps.len();
    let steps: Vec<usize> = (0..spatial).map(|i| x.dims[i + 2..].iter().product::<u64>() as usize).collect();
    let batch_step = src.len() / x.dims[0] as usize;
    let windows: usize = taps.iter().map(|t| t.size).product();
    let mut position = vec![0usize; spatial];
    let mut tap = vec![0usize; spatial];
    let positions: usize = dims[1..=spatial].iter().product::<u64>() as usize;
    let terms = (windows * ins) as u64;
    let parts =
        if one_channel(ins, groups) { SumParts::in_order(terms) } else { T::parts(terms, (out.len() / groups) as u64) };
    let mut sums = RowAccumulators::<T>::new(parts, outs);
    let few = (groups == 1 && outs < FEW_OUTPUTS).then(|| by_output(&kernel, outs));
    let mut read = vec![T::zeroed(); if few.is_some() { windows * ins } else { 0 }];
    for (i, acc) in out.chunks_exact_mut(outs).enumerate() {
        let (batch, mut rest) = (i / positions, i % positions);
        for a in (0..spatial).rev() {
            position[a] = rest % dims[a + 1] as usize;
            rest /= dims[a + 1] as usize;
        }
        if let Some(few) = &few {
            for (t, to) in read.chunks_exact_mut(ins).enumerate() {
                unravel(t, taps, &mut tap);
                match source(taps, &position, &tap, &steps) {
                    Some(at) => to.copy_from_slice(&src[batch * batch_step + at..][..ins]),
                    None => to.fill(T::zeroed()),
                }
            }
            for (a, kernel) in acc.iter_mut().zip(few.chunks_exact(read.len())) {
                *a = inner_product::<T>(&read, kernel);
            }
            continue;
        }
        sums.accumulate(acc, |acc, terms| {
            for t in terms.start / ins..terms.end.div_ceil(ins) {
                unravel(t, taps, &mut tap);
                let Some(at) = source(taps, &position, &tap, &steps) else { continue };
                let from = batch * batch_step + at;
                let row = &src[from..from + features];
                let matrix = &kernel[t * ins * outs..(t + 1) * ins * outs];
                let own = terms.start.max(t * ins) - t * ins..terms.end.min((t + 1) * ins) - t * ins;
                grouped::<T>(acc, row, matrix, groups, ins, outs_a_group, own);
            }
        });
    }
    out
}

/// Kernel transposed to output-major order.
fn by_output<T: Ring>(kernel: &[T], outs: usize) -> Vec<T> {
    (0..outs).flat_map(|o| kernel.iter().skip(o).step_by(outs).copied()).collect()
}

/// Whether the convolution is depthwise: each group reads one channel.
fn one_channel(ins: usize, groups: usize) -> bool {
    ins == 1 && groups > 1
}

/// Adds the products of one tap: the features `own` of each group times its part of the kernel.
fn grouped<T: Ring>(
    acc: &mut [T::Sum],
    row: &[T],
    matrix: &[T],
    groups: usize,
    ins: usize,
    outs_a_group: usize,
    own: Range<usize>,
) {
    let outs = acc.len();
    if one_channel(ins, groups) {
        for (i, (a, &w)) in acc.iter_mut().zip(matrix).enumerate() {
            *a = T::plus_rounded(*a, row[i / outs_a_group], w);
        }
        return;
    }
    for g in 0..groups {
        let to = &mut acc[g * outs_a_group..(g + 1) * outs_a_group];
        let from = &row[g * ins + own.start..g * ins + own.end];
        add_row_times_matrix::<T>(to, from, &matrix[own.start * outs + g * outs_a_group..], outs);
    }
}

fn source(taps: &[Taps], position: &[usize], tap: &[usize], steps: &[usize]) -> Option<usize> {
    let mut at = 0;
    for a in 0..taps.len() {
        at += usize::try_from(taps[a].of_output(position[a])[tap[a]]).ok()? * steps[a];
    }
    Some(at)
}

/// Index of tap `t` within the window.
fn unravel(mut t: usize, taps: &[Taps], tap: &mut [usize]) {
    for a in (0..tap.len()).rev() {
        tap[a] = t % taps[a].size;
        t /= taps[a].size;
    }
}
