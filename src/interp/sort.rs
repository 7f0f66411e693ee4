//! `sort`: a stable merge sort with any comparator.
use super::apply::apply_elementwise;
use super::machine::Machine;
use super::operands::{invalid_hlo, one_or_tuple};
use super::shape_ops::transpose;
use crate::by_width;
use crate::diag::Result;
use crate::hlo::{CompId, Literal};
use crate::tensor::{DType, Tensor};

/// Merge of two adjacent runs.
struct Merge {
    left: usize,
    left_end: usize,
    right: usize,
    right_end: usize,
    out: usize,
}

/// Evaluates `sort`: operands sorted together along `dim`, stably.
///
/// A bottom-up merge sort that takes one step of all merges of a level at once, so that the comparator runs on vectors. A
/// comparator that is not an order gives some permutation.
pub(super) fn sort(m: &Machine, operands: &[&Tensor], dim: usize, comp: CompId) -> Result<Literal> {
    let first = operands.first().ok_or_else(|| invalid_hlo("sort needs an operand"))?;
    if dim >= first.dims.len() || operands.iter().any(|t| t.dims != first.dims) {
        return Err(invalid_hlo(format!("sort along {dim} of {first:?}")));
    }
    let rank = first.dims.len();
    let order: Vec<usize> = (0..rank).filter(|&a| a != dim).chain([dim]).collect();
    let flat: Vec<Tensor> = operands.iter().map(|t| transpose(t, &order)).collect();
    let places = merge_sort(m, &flat, first.dims[dim] as usize, comp)?;
    let mut back = vec![0; rank];
    for (i, &a) in order.iter().enumerate() {
        back[a] = i;
    }
    let sorted = flat.iter().map(|t| transpose(&take_elements(t, &places).with_dims(t.dims.clone()), &back));
    Ok(one_or_tuple(sorted.collect()))
}

pub(super) fn take_elements(x: &Tensor, places: &[usize]) -> Tensor {
    by_width!(x.dtype, T => {
        let src = x.view::<T>();
        let out: Vec<T> = places.iter().map(|&i| src[i]).collect();
        Tensor::from_vec(x.dtype, vec![places.len() as u64], out)
    })
}

/// Positions of the elements in sorted order, for each line of `n`.
fn merge_sort(m: &Machine, xs: &[Tensor], n: usize, comp: CompId) -> Result<Vec<usize>> {
    let total = xs[0].len();
    let mut places: Vec<usize> = (0..total).collect();
    let mut width = 1;
    while width < n {
        let mut next = places.clone();
        let mut merges = Vec::new();
        for line in (0..total).step_by(n) {
            for start in (0..n).step_by(2 * width).filter(|s| s + width < n) {
                merges.push(Merge {
                    left: line + start,
                    left_end: line + start + width,
                    right: line + start + width,
                    right_end: line + (start + 2 * width).min(n),
                    out: line + start,
                });
            }
        }
        while !merges.is_empty() {
            m.charge_work(merges.len() as u64)?;
            let heads = |f: fn(&Merge) -> usize| merges.iter().map(|g| places[f(g)]).collect::<Vec<_>>();
            let (right, left) = (heads(|g| g.right), heads(|g| g.left));
            let args: Vec<Tensor> =
                xs.iter().flat_map(|x| [take_elements(x, &right), take_elements(x, &left)]).collect();
            let before = apply_elementwise(m, comp, &args, merges.len())?;
            let before = before.first().filter(|t| t.dtype == DType::Pred);
            let before = before.ok_or_else(|| invalid_hlo("the comparison of sort must return pred"))?;
            for (g, &right_first) in merges.iter_mut().zip(before.bytes.iter()) {
                step(g, right_first != 0, &places, &mut next);
            }
            merges.retain(|g| g.left < g.left_end && g.right < g.right_end);
        }
        places = next;
        width *= 2;
    }
    Ok(places)
}

/// Moves one head, and the rest of the other run once one is exhausted.
fn step(g: &mut Merge, right_first: bool, places: &[usize], next: &mut [usize]) {
    let head = if right_first { &mut g.right } else { &mut g.left };
    next[g.out] = places[*head];
    *head += 1;
    g.out += 1;
    if g.left == g.left_end {
        next[g.out..g.out + g.right_end - g.right].copy_from_slice(&places[g.right..g.right_end]);
    } else if g.right == g.right_end {
        next[g.out..g.out + g.left_end - g.left].copy_from_slice(&places[g.left..g.left_end]);
    }
}
