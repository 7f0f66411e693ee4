//! `reduce-window` and `select-and-scatter`: one tap of the window at a time, over all positions at once.
use super::apply::{apply_elementwise, scalar_at, single_binary_op, wrap_results};
use super::box_walk::strides;
use super::conv::Taps;
use super::machine::Machine;
use super::operands::invalid_hlo;
use super::reduce::accumulator_type;
use crate::by_width;
use crate::diag::Result;
use crate::hlo::attrs::WindowDim;
use crate::hlo::{CompId, Literal};
use crate::scalar::{ScalarOp, eval};
use crate::tensor::{DType, Tensor};

/// Windows over an array: the element that each tap of each position reads.
struct Windows {
    dims: Vec<u64>,
    taps: Vec<Taps>,
    own: Vec<i64>,
}

impl Windows {
    fn new(dims: &[u64], window: &[WindowDim]) -> Result<Windows> {
        let ok = |w: &WindowDim| w.size > 0 && w.stride > 0 && w.lhs_dilate > 0 && w.rhs_dilate > 0;
        if window.len() != dims.len() || !window.iter().all(ok) {
            return Err(invalid_hlo(format!("a window of {} dimensions over {dims:?}", window.len())));
        }
        let sizes: Option<Vec<u64>> = window.iter().zip(dims).map(|(w, &n)| w.output_size(n)).collect();
        let sizes = sizes.ok_or_else(|| invalid_hlo("a window overflows"))?;
        let taps =
            window.iter().zip(dims).zip(&sizes).map(|((w, &n), &o)| Taps::new(w, n, o)).collect::<Result<_>>()?;
        Ok(Windows { dims: sizes, taps, own: strides(dims) })
    }
    fn len(&self) -> usize {
        self.dims.iter().product::<u64>() as usize
    }
    /// Calls `f` for each tap with its `(position, element)` pairs, without those outside the array.
    fn each_tap(&self, mut f: impl FnMut(&[usize], &[usize]) -> Result<()>) -> Result<()> {
        let rank = self.dims.len();
        let count: usize = self.taps.iter().map(|t| t.size).product();
        let (mut to, mut from) = (Vec::new(), Vec::new());
        for t in 0..count {
            let mut rest = t;
            let mut tap = vec![0usize; rank];
            for a in (0..rank).rev() {
                tap[a] = rest % self.taps[a].size;
                rest /= self.taps[a].size;
            }
            to.clear();
            from.clear();
            self.pairs(&tap, 0, 0, 0, &mut to, &mut from);
            f(&to, &from)?;
        }
        Ok(())
    }
    /// Iterates over the dimensions from `axis` on, recursively.
    fn pairs(&self, tap: &[usize], axis: usize, to: usize, from: usize, tos: &mut Vec<usize>, froms: &mut Vec<usize>) {
        if axis == self.dims.len() {
            tos.push(to);
            froms.push(from);
            return;
        }
        for o in 0..self.dims[axis] as usize {
            if let Ok(at) = usize::try_from(self.taps[axis].of_output(o)[tap[axis]]) {
                let (to, from) = (to * self.dims[axis] as usize + o, from + at * self.own[axis] as usize);
                if axis + 1 == self.dims.len() {
                    tos.push(to);
                    froms.push(from);
                } else {
                    self.pairs(tap, axis + 1, to, from, tos, froms);
                }
            }
        }
    }
}

/// Elements of `x` at `places`, a vector.
fn take(x: &Tensor, places: &[usize]) -> Tensor {
    by_width!(x.dtype, T => {
        let src = x.view::<T>();
        let out: Vec<T> = places.iter().map(|&i| src[i]).collect();
        Tensor::from_vec(x.dtype, vec![places.len() as u64], out)
    })
}

/// Array `x` with `values` written at `places`.
fn put(x: &Tensor, places: &[usize], values: &Tensor) -> Tensor {
    if places.len() == x.len() {
        return values.with_dims(x.dims.clone());
    }
    by_width!(x.dtype, T => {
        let mut out = x.view::<T>().into_owned();
        places.iter().zip(values.view::<T>().iter()).for_each(|(&i, &v)| out[i] = v);
        Tensor::from_vec(x.dtype, x.dims.clone(), out)
    })
}

fn fill(x: &Tensor, n: usize) -> Tensor {
    super::box_walk::strided_elements(x, vec![n as u64], 0, &[0])
}

/// Evaluates `reduce-window`: n arrays reduced over windows, with n scalars as initial values; elements outside of the arrays
/// are skipped.
pub(super) fn reduce_window(m: &Machine, operands: &[&Tensor], window: &[WindowDim], comp: CompId) -> Result<Literal> {
    let n = operands.len() / 2;
    let (xs, inits) = operands.split_at(n);
    let first = xs.first().ok_or_else(|| invalid_hlo("reduce-window needs an operand"))?;
    if !operands.len().is_multiple_of(2)
        || xs.iter().any(|x| x.dims != first.dims)
        || inits.iter().any(|t| t.len() != 1)
    {
        return Err(invalid_hlo("reduce-window needs n arrays of equal sizes and n scalars"));
    }
    let windows = Windows::new(&first.dims, window)?;
    if window.is_empty() {
        // As in `reduce`: a scalar is combined with nothing.
        return wrap_results(m, comp, xs.iter().map(|&x| x.clone()).collect());
    }
    let op =
        if n == 1 { single_binary_op(m.computation(comp)?).filter(|_| first.dtype == inits[0].dtype) } else { None };
    let as_is = |t: &Tensor| t.clone();
    let widen = |t: &Tensor, op: ScalarOp| eval::convert(t, accumulator_type(op, t.dtype));
    let ready = |t: &Tensor| op.map_or_else(|| as_is(t), |op| widen(t, op));
    let sources: Vec<Tensor> = xs.iter().map(|t| ready(t)).collect();
    let mut acc: Vec<Tensor> = inits.iter().map(|t| fill(&ready(t), windows.len())).collect();
    windows.each_tap(|to, from| {
        if to.is_empty() {
            return Ok(());
        }
        m.charge_work(to.len() as u64)?;
        let old = acc.iter().map(|t| take(t, to));
        let args: Vec<Tensor> = old.chain(sources.iter().map(|x| take(x, from))).collect();
        let new = match op {
            Some(op) => vec![eval::eval(op, &args.iter().collect::<Vec<_>>())?],
            None => apply_elementwise(m, comp, &args, to.len())?,
        };
        if new.len() != acc.len() {
            return Err(invalid_hlo("the computation of reduce-window must return one value an operand"));
        }
        acc = acc.iter().zip(&new).map(|(t, v)| put(t, to, v)).collect();
        Ok(())
    })?;
    let done = acc.iter().zip(inits).map(|(t, init)| eval::convert(t, init.dtype).with_dims(windows.dims.clone()));
    wrap_results(m, comp, done.collect())
}

/// Evaluates `select-and-scatter`: each source element is added to the selected element of its window.
pub(super) fn select_and_scatter(
    m: &Machine,
    operands: &[&Tensor],
    window: &[WindowDim],
    select: CompId,
    scatter: CompId,
) -> Result<Tensor> {
    let [x, source, init] = operands else { return Err(invalid_hlo("select-and-scatter needs three operands")) };
    let windows = Windows::new(&x.dims, window)?;
    if windows.dims != source.dims || init.len() != 1 || source.dtype != init.dtype {
        return Err(invalid_hlo(format!("source {source:?} has not one element a window of {x:?}")));
    }
    let mut best: Vec<Option<usize>> = vec![None; windows.len()];
    windows.each_tap(|to, from| {
        let known: Vec<(usize, usize)> =
            to.iter().zip(from).filter(|(t, _)| best[**t].is_some()).map(|(&t, &f)| (t, f)).collect();
        let held: Vec<usize> = known.iter().filter_map(|(t, _)| best[*t]).collect();
        let candidates: Vec<usize> = known.iter().map(|k| k.1).collect();
        let keep = apply_elementwise(m, select, &[take(x, &held), take(x, &candidates)], held.len())?;
        let keep = keep.first().filter(|k| k.dtype == DType::Pred);
        let keep = keep.ok_or_else(|| invalid_hlo("the selection must return pred"))?;
        to.iter()
            .zip(from)
            .filter(|(t, _)| best[**t].is_none())
            .map(|(&t, &f)| (t, f))
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|(t, f)| best[t] = Some(f));
        for ((t, f), &keep) in known.iter().zip(keep.bytes.iter()) {
            if keep == 0 {
                best[*t] = Some(*f);
            }
        }
        Ok(())
    })?;
    let flat = source.with_dims(vec![source.len() as u64]);
    let mut out = fill(init, x.len()).bytes.to_vec();
    let n = init.dtype.bytes();
    for (i, place) in best.iter().enumerate() {
        let Some(place) = place else { continue };
        let span = place * n..(place + 1) * n;
        let old = Tensor::new(init.dtype, vec![1], out[span.clone()].to_vec());
        let combined = apply_elementwise(m, scatter, &[old, scalar_at(&flat, i).with_dims(vec![1])], 1)?;
        match combined.first() {
            Some(value) if value.bytes.len() == n => out[span].copy_from_slice(&value.bytes),
            _ => return Err(invalid_hlo("the scatter computation must return one element")),
        }
    }
    Ok(Tensor::new(init.dtype, x.dims.clone(), out))
}
