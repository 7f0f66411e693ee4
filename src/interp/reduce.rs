//! `reduce`: common reductions on typed slices, any other computation on whole slices at a time.
//!
//! Initial values are neutral by HLO's contract. If each result has one element, XLA returns that element whatever the initial
//! value is, and so does this module.
use std::ops::{Add, Mul};

use bytemuck::Pod;
use num_complex::Complex;

use super::apply::{apply_elementwise, single_binary_op, wrap_results};
use super::box_walk::{for_each_row, strided_elements, strides};
use super::machine::Machine;
use super::operands::invalid_hlo;
use crate::diag::Result;
use crate::hlo::{CompId, Literal};
use crate::scalar::{ScalarOp, eval};
use crate::tensor::{DType, DTypeClass, Tensor};

/// Number of steps that a reduction takes sequentially before it becomes a tree.
const SEQUENTIAL: u64 = 1 << 12;

/// Evaluates `reduce`: n arrays reduced over `axes`, with n scalars as initial values.
pub(super) fn reduce(m: &Machine, operands: &[&Tensor], axes: &[usize], comp: CompId) -> Result<Literal> {
    let n = operands.len() / 2;
    let (xs, inits) = operands.split_at(n);
    let first = xs.first().ok_or_else(|| invalid_hlo("reduce needs an operand"))?;
    if !operands.len().is_multiple_of(2)
        || xs.iter().any(|x| x.dims != first.dims)
        || inits.iter().any(|t| t.len() != 1)
    {
        return Err(invalid_hlo("reduce needs n arrays of equal sizes and n scalars"));
    }
    m.charge_work(xs.iter().map(|x| x.len() as u64).sum())?;
    if axes.iter().all(|&a| first.dims.get(a) == Some(&1)) {
        let (sizes, _) = kept(&first.dims, axes);
        return wrap_results(m, comp, xs.iter().map(|x| x.with_dims(sizes.clone())).collect());
    }
    if let ([x], [init], Some(op)) = (xs, inits, single_binary_op(m.computation(comp)?))
        && x.dtype == init.dtype
        && let Some(out) = fold(op, x, init, axes)
    {
        return Ok(Literal::Array(out));
    }
    general(m, xs, inits, axes, comp)
}

/// Sizes of the result, and for each operand dimension its stride in the result (0 if it is reduced).
fn kept(dims: &[u64], axes: &[usize]) -> (Vec<u64>, Vec<i64>) {
    let out: Vec<u64> = (0..dims.len()).filter(|i| !axes.contains(i)).map(|i| dims[i]).collect();
    let mut own = strides(&out).into_iter();
    let steps = (0..dims.len()).map(|i| if axes.contains(&i) { 0 } else { own.next().unwrap_or(0) }).collect();
    (out, steps)
}

/// Type in which elements of `dtype` are accumulated: f64 for sums of floats.
pub(super) fn accumulator_type(op: ScalarOp, dtype: DType) -> DType {
    let sum = matches!(op, ScalarOp::Add | ScalarOp::Multiply);
    match dtype.class() {
        DTypeClass::Float if sum || dtype == DType::F64 => DType::F64,
        DTypeClass::Float => DType::F32,
        _ if matches!(dtype, DType::S1 | DType::S2 | DType::S4) => DType::S8,
        _ if matches!(dtype, DType::U1 | DType::U2 | DType::U4) => DType::U8,
        _ => dtype,
    }
}

fn fold(op: ScalarOp, x: &Tensor, init: &Tensor, axes: &[usize]) -> Option<Tensor> {
    let wide = accumulator_type(op, x.dtype);
    let (x_wide, init) = (eval::convert(x, wide), eval::convert(init, wide));
    let out = match wide {
        DType::Pred => {
            let op = match op {
                ScalarOp::Add | ScalarOp::Or | ScalarOp::Maximum => ScalarOp::Or,
                ScalarOp::Multiply | ScalarOp::And | ScalarOp::Minimum => ScalarOp::And,
                ScalarOp::Xor => ScalarOp::Xor,
                _ => return None,
            };
            integers::<u8>(op, &x_wide, &init, axes)
        }
        DType::S8 => integers::<i8>(op, &x_wide, &init, axes),
        DType::S16 => integers::<i16>(op, &x_wide, &init, axes),
        DType::S32 => integers::<i32>(op, &x_wide, &init, axes),
        DType::S64 => integers::<i64>(op, &x_wide, &init, axes),
        DType::U8 => integers::<u8>(op, &x_wide, &init, axes),
        DType::U16 => integers::<u16>(op, &x_wide, &init, axes),
        DType::U32 => integers::<u32>(op, &x_wide, &init, axes),
        DType::U64 => integers::<u64>(op, &x_wide, &init, axes),
        DType::F32 => floats::<f32>(op, &x_wide, &init, axes),
        DType::F64 => floats::<f64>(op, &x_wide, &init, axes),
        DType::C64 => complex::<Complex<f32>>(op, &x_wide, &init, axes),
        DType::C128 => complex::<Complex<f64>>(op, &x_wide, &init, axes),
        _ => None,
    }?;
    Some(eval::convert(&out, x.dtype))
}

fn integers<T: eval::WrappingInt>(op: ScalarOp, x: &Tensor, init: &Tensor, axes: &[usize]) -> Option<Tensor> {
    Some(match op {
        ScalarOp::Add => typed(x, init, axes, T::add),
        ScalarOp::Multiply => typed(x, init, axes, T::mul),
        ScalarOp::Maximum => typed(x, init, axes, |a: T, b: T| a.max(b)),
        ScalarOp::Minimum => typed(x, init, axes, |a: T, b: T| a.min(b)),
        ScalarOp::And => typed(x, init, axes, T::and),
        ScalarOp::Or => typed(x, init, axes, T::or),
        ScalarOp::Xor => typed(x, init, axes, T::xor),
        _ => return None,
    })
}

fn floats<T: eval::Real>(op: ScalarOp, x: &Tensor, init: &Tensor, axes: &[usize]) -> Option<Tensor> {
    Some(match op {
        ScalarOp::Add => typed(x, init, axes, T::add),
        ScalarOp::Multiply => typed(x, init, axes, T::mul),
        ScalarOp::Maximum => typed(x, init, axes, T::max),
        ScalarOp::Minimum => typed(x, init, axes, T::min),
        _ => return None,
    })
}

fn complex<T>(op: ScalarOp, x: &Tensor, init: &Tensor, axes: &[usize]) -> Option<Tensor>
where
    T: Pod + Send + Add<Output = T> + Mul<Output = T>,
{
    Some(match op {
        ScalarOp::Add => typed(x, init, axes, |a: T, b: T| a + b),
        ScalarOp::Multiply => typed(x, init, axes, |a: T, b: T| a * b),
        _ => return None,
    })
}

fn typed<T: Pod + Send>(x: &Tensor, init: &Tensor, axes: &[usize], f: impl Fn(T, T) -> T) -> Tensor {
    let (dims, steps) = kept(&x.dims, axes);
    let mut out = vec![init.view::<T>()[0]; dims.iter().product::<u64>() as usize];
    let src = x.view::<T>();
    let own = strides(&x.dims);
    let n = x.dims.last().copied().unwrap_or(1) as usize;
    let folded = steps.last().is_none_or(|&s| s == 0);
    for_each_row(&x.dims, [0, 0], [&own, &steps], |[from, to]| {
        let row = &src[from as usize..from as usize + n];
        let to = to as usize;
        if folded {
            out[to] = row.iter().fold(out[to], |a, &b| f(a, b));
        } else {
            out[to..to + n].iter_mut().zip(row).for_each(|(a, &b)| *a = f(*a, b));
        }
    });
    Tensor::from_vec(x.dtype, dims, out)
}

/// Reduces slices of the result's shape, with the computation applied to all their elements at once.
fn general(m: &Machine, xs: &[&Tensor], inits: &[&Tensor], axes: &[usize], comp: CompId) -> Result<Literal> {
    let dims = &xs[0].dims;
    let (out_dims, _) = kept(dims, axes);
    let out_len = out_dims.iter().product::<u64>();
    let order: Vec<usize> = axes.iter().copied().chain((0..dims.len()).filter(|i| !axes.contains(i))).collect();
    let steps = axes.iter().map(|&a| dims[a]).product::<u64>();
    // Reduced dimensions come first, in increasing order, so that a step is a contiguous slice.
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    let order: Vec<usize> = if sorted == axes {
        order
    } else {
        sorted.iter().copied().chain(order[axes.len()..].iter().copied()).collect()
    };
    let flat: Vec<Tensor> =
        xs.iter().map(|x| super::shape_ops::transpose(x, &order).with_dims(vec![steps * out_len])).collect();
    let mut acc: Vec<Tensor> = inits.iter().map(|t| strided_elements(t, vec![out_len], 0, &[0])).collect();
    if out_len > 0 {
        if steps <= SEQUENTIAL {
            for k in 0..steps {
                acc = combine(m, comp, &acc, &flat, k * out_len, out_len)?;
            }
        } else {
            let whole = tree(m, comp, flat, steps, out_len)?;
            acc = combine(m, comp, &acc, &whole, 0, out_len)?;
        }
    }
    if acc.len() != xs.len() {
        return Err(invalid_hlo("the computation of reduce must return as many values as there are operands"));
    }
    wrap_results(m, comp, acc.into_iter().map(|t| t.with_dims(out_dims.clone())).collect())
}

/// Combines `acc` with `n` elements of each of `xs` from `start`.
fn combine(m: &Machine, comp: CompId, acc: &[Tensor], xs: &[Tensor], start: u64, n: u64) -> Result<Vec<Tensor>> {
    let args: Vec<Tensor> = acc.iter().cloned().chain(xs.iter().map(|x| part(x, start, n))).collect();
    apply_elementwise(m, comp, &args, n as usize)
}

fn part(x: &Tensor, start: u64, n: u64) -> Tensor {
    let size = x.dtype.bytes();
    let (start, n_bytes) = (start as usize * size, n as usize * size);
    Tensor::new(x.dtype, vec![n], x.bytes.slice(start..start + n_bytes))
}

/// Reduces adjacent slices pairwise until one is left: a reduction may be regrouped freely, and pairs keep the order.
fn tree(m: &Machine, comp: CompId, mut xs: Vec<Tensor>, mut steps: u64, n: u64) -> Result<Vec<Tensor>> {
    while steps > 1 {
        let pairs = steps / 2;
        let every = |x: &Tensor, from: u64| {
            strided_elements(x, vec![pairs, n], (from * n) as i64, &[2 * n as i64, 1]).with_dims(vec![pairs * n])
        };
        let (left, right): (Vec<_>, Vec<_>) = xs.iter().map(|x| (every(x, 0), every(x, 1))).unzip();
        let rest: Option<Vec<Tensor>> =
            (steps % 2 == 1).then(|| xs.iter().map(|x| part(x, (steps - 1) * n, n)).collect());
        let args: Vec<Tensor> = left.into_iter().chain(right).collect();
        xs = apply_elementwise(m, comp, &args, (pairs * n) as usize)?;
        steps = pairs;
        if let Some(rest) = rest {
            let join = |(x, r): (&Tensor, Tensor)| {
                let bytes = [&x.bytes[..], &r.bytes[..]].concat();
                Tensor::new(x.dtype, vec![(pairs + 1) * n], bytes)
            };
            xs = xs.iter().zip(rest).map(join).collect();
            steps += 1;
        }
    }
    Ok(xs)
}
