//! `topk`: by total order, or by comparison with the steps of TensorFlow's kernel.
use super::operands::invalid_hlo;
use super::sort::take_elements;
use crate::diag::Result;
use crate::hlo::Literal;
use crate::scalar::eval;
use crate::tensor::{DType, DTypeClass, Tensor};
use std::cmp::Ordering;
use std::ops::Range;

/// Integer keys with the total order of the elements.
fn keys(x: &Tensor) -> Option<Vec<i64>> {
    match x.dtype.class() {
        DTypeClass::Float => eval::total_keys(x).to_i64s(),
        DTypeClass::Unsigned if x.dtype == DType::U64 => {
            Some(x.view::<u64>().iter().map(|&v| (v ^ 1 << 63) as i64).collect())
        }
        DTypeClass::Pred | DTypeClass::Signed | DTypeClass::Unsigned => x.to_i64s(),
        DTypeClass::Complex => None,
    }
}

/// Largest (or smallest) `k` elements of the last dimension in total order, the lower index first among equals, and their s32
/// indices.
pub(super) fn top_k_total_order(x: &Tensor, k: u64, largest: bool) -> Result<Literal> {
    let keys = keys(x).ok_or_else(|| invalid_hlo("topk of complex numbers"))?;
    selected(x, k, |line| {
        let mut order: Vec<usize> = (0..line.len()).collect();
        if largest {
            order.sort_by_key(|&i| std::cmp::Reverse(keys[line.start + i]));
        } else {
            order.sort_by_key(|&i| keys[line.start + i]);
        }
        order
    })
}

/// Elements at the first `k` positions that `order` returns for each line of the last dimension, and these positions.
fn selected(x: &Tensor, k: u64, order: impl Fn(Range<usize>) -> Vec<usize>) -> Result<Literal> {
    let n = *x.dims.last().ok_or_else(|| invalid_hlo("topk of a scalar"))? as usize;
    if k as usize > n {
        return Err(invalid_hlo(format!("the top {k} of {n}")));
    }
    let (mut places, mut indices) = (Vec::new(), Vec::new());
    for line in (0..x.len()).step_by(n.max(1)) {
        let order = order(line..line + n);
        places.extend(order[..k as usize].iter().map(|i| line + i));
        indices.extend(order[..k as usize].iter().map(|&i| i as i32));
    }
    let mut dims = x.dims.clone();
    if let Some(last) = dims.last_mut() {
        *last = k;
    }
    let values = take_elements(x, &places).with_dims(dims.clone());
    Ok(Literal::Tuple(vec![Literal::Array(values), Literal::Array(Tensor::from_vec(DType::S32, dims, indices))]))
}

/// Largest `k` elements of the last dimension of floats by `<`, the lower index first among equals, and their s32 indices.
///
/// Without NaN the result is unique. With NaN it is that of TensorFlow's kernel: an insertion sort up to 16 elements, a
/// vectorized reduction for the largest alone, else a heap. If more than 16 elements are all sorted, each NaN is ordered by its
/// sign, before or behind all others.
pub(super) fn top_k_by_comparison(x: &Tensor, k: u64) -> Result<Literal> {
    let lanes = eight_or_fewer(x.dtype);
    let wide = eval::convert(x, DType::F64);
    let all = wide.view::<f64>();
    selected(x, k, |line| {
        let line = &all[line];
        match k as usize {
            0 => Vec::new(),
            1 => vec![largest(line, lanes)],
            k if k < line.len() => Heap { line, heap: Vec::new() }.largest(k),
            _ if line.len() <= INSERTED => inserted(line),
            _ => {
                let mut order: Vec<usize> = (0..line.len()).collect();
                order.sort_by_key(|&i| {
                    std::cmp::Reverse(eval::total_key64(line[i] + if line[i] == 0.0 { 0.0 } else { -0.0 }))
                });
                order
            }
        }
    })
}

/// Number of elements of a vector in TensorFlow's kernels, which are compiled for AVX.
fn eight_or_fewer(dtype: DType) -> usize {
    if dtype == DType::F64 { 4 } else { 8 }
}

/// Position of the first element that equals the maximum as TensorFlow's kernel computes it: vector lanes skip NaN, the scalars
/// behind them restart at a NaN, and position 0 stands if nothing equals the result.
fn largest(line: &[f64], lanes: usize) -> usize {
    let (vectors, rest) = line.split_at(line.len() / lanes * lanes);
    let most = vectors.iter().fold(f64::NEG_INFINITY, |most, &x| if x > most { x } else { most });
    let last = rest.iter().fold(f64::NEG_INFINITY, |most, &x| if x < most { most } else { x });
    let result = if last < most { most } else { last };
    line.iter().position(|&x| x == result).unwrap_or(0)
}

/// All positions sorted by insertion, as in libstdc++: an element larger than the first goes to the front, any other one behind
/// the last element in front of it that is not smaller; then runs of equal elements are sorted by position.
fn inserted(line: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(line.len());
    for (i, &x) in line.iter().enumerate() {
        let to_front = order.first().is_some_and(|&first| x > line[first]);
        let behind =
            order.iter().rposition(|&j| x.partial_cmp(&line[j]) != Some(Ordering::Greater)).map_or(0, |j| j + 1);
        order.insert(if to_front { 0 } else { behind }, i);
    }
    order.chunk_by_mut(|&a, &b| line[a] == line[b]).for_each(<[usize]>::sort_unstable);
    order
}

/// Positions of a line as a libstdc++ heap, with the worst on top.
struct Heap<'a> {
    line: &'a [f64],
    heap: Vec<usize>,
}

impl Heap<'_> {
    /// Whether position `a` comes before `b`: its element is larger, or equal (or unordered) with a lower position.
    fn goes_before(&self, a: usize, b: usize) -> bool {
        match self.line[a].partial_cmp(&self.line[b]) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Less) => false,
            Some(Ordering::Equal) | None => a < b,
        }
    }

    /// Positions of the `k` best elements, found with a heap; there are more than `k` elements.
    fn largest(mut self, k: usize) -> Vec<usize> {
        self.heap = (0..=k).collect();
        for parent in (0..k.div_ceil(2)).rev() {
            let value = self.heap[parent];
            self.sift(parent, k + 1, value);
        }
        self.pop(k + 1);
        for i in k + 1..self.line.len() {
            if self.goes_before(i, self.heap[0]) {
                self.pop(k);
                self.rise(k - 1, 0, i);
            }
        }
        for size in (2..=k).rev() {
            self.pop(size);
        }
        self.heap
    }

    /// Moves the top of the heap of the first `size` elements behind the others.
    fn pop(&mut self, size: usize) {
        let value = self.heap[size - 1];
        self.heap[size - 1] = self.heap[0];
        self.sift(0, size - 1, value);
    }

    /// Puts `value` into the heap of the first `size` elements, whose position `top` is free: the hole sinks to the bottom, and
    /// `value` rises from there.
    fn sift(&mut self, top: usize, size: usize, value: usize) {
        let mut hole = top;
        while 2 * hole + 2 < size {
            let (left, right) = (2 * hole + 1, 2 * hole + 2);
            let child = if self.goes_before(self.heap[right], self.heap[left]) { left } else { right };
            self.heap[hole] = self.heap[child];
            hole = child;
        }
        if 2 * hole + 2 == size {
            self.heap[hole] = self.heap[size - 1];
            hole = size - 1;
        }
        self.rise(hole, top, value);
    }

    /// Sifts `value` up the heap from the free position `hole`, past parents that it precedes, at most to `top`.
    fn rise(&mut self, mut hole: usize, top: usize, value: usize) {
        while hole > top && self.goes_before(self.heap[(hole - 1) / 2], value) {
            self.heap[hole] = self.heap[(hole - 1) / 2];
            hole = (hole - 1) / 2;
        }
        self.heap[hole] = value;
    }
}

/// Number of elements up to which lines are sorted by insertion alone.
const INSERTED: usize = 16;
