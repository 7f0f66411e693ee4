//! `gather` and `scatter`: boxes at index vectors.
use super::apply::{apply_elementwise, convert_float, returned_parameter, single_binary_op};
use super::box_walk::{BoxPosition, copy_box, for_each_row, strides};
use super::machine::Machine;
use super::operands::{invalid_hlo, one_or_tuple};
use crate::by_width;
use crate::diag::Result;
use crate::hlo::attrs::{GatherDims, ScatterDims};
use crate::hlo::{ArrayShape, CompId, Literal};
use crate::scalar::eval;
use crate::tensor::{DType, Tensor};

/// Index vectors, and the operand axes to which their components apply.
struct Indices<'a> {
    values: Vec<i64>,
    dims: &'a [u64],
    /// Axis of the components; the rank if indices are scalars.
    vector_axis: usize,
    /// Operand axis of each component.
    map: &'a [usize],
    /// Batch dimensions, as pairs of operand axis and index axis.
    batching: Vec<(usize, usize)>,
}

impl<'a> Indices<'a> {
    fn new(
        t: &'a Tensor,
        vector_axis: usize,
        map: &'a [usize],
        operand_batch: &[usize],
        batch: &[usize],
        rank: usize,
    ) -> Result<Self> {
        let components = if vector_axis == t.dims.len() { Some(1) } else { t.dims.get(vector_axis).copied() };
        let fits = components == Some(map.len() as u64)
            && operand_batch.len() == batch.len()
            && map.iter().chain(operand_batch).all(|&a| a < rank)
            && batch.iter().all(|&a| a < t.dims.len() && a != vector_axis);
        if !fits {
            return Err(invalid_hlo(format!("index axes do not fit indices {t:?}")));
        }
        let mut values = t.to_i64s().ok_or_else(|| invalid_hlo("indices must be integers"))?;
        if t.dtype == DType::U64 {
            // A value beyond i64 exceeds any array.
            values.iter_mut().filter(|v| **v < 0).for_each(|v| *v = i64::MAX / 2);
        }
        let batching = operand_batch.iter().copied().zip(batch.iter().copied()).collect();
        Ok(Indices { values, dims: &t.dims, vector_axis, map, batching })
    }
    /// Axes that enumerate the index vectors.
    fn batch_axes(&self) -> Vec<usize> {
        (0..self.dims.len()).filter(|&a| a != self.vector_axis).collect()
    }
    /// Calls `f` for each index vector with its start in an operand of rank `rank`, and its offset by `steps`, which has a
    /// stride for each of `batch_axes`.
    fn each(&self, rank: usize, steps: &[i64], mut f: impl FnMut(&[i64], i64) -> Result<()>) -> Result<()> {
        let own = strides(self.dims);
        let axes = self.batch_axes();
        // A further dimension of size 1, as `rows` leaves the last dimension to its caller.
        let mut sizes: Vec<u64> = axes.iter().map(|&a| self.dims[a]).collect();
        sizes.push(1);
        let mut from: Vec<i64> = axes.iter().map(|&a| own[a]).collect();
        from.push(1);
        let mut to = steps.to_vec();
        to.push(1);
        let step = own.get(self.vector_axis).copied().unwrap_or(0);
        let mut start = vec![0i64; rank];
        let mut result = Ok(());
        for_each_row(&sizes, [0, 0], [&from, &to], |[at, offset]| {
            if result.is_err() {
                return;
            }
            start.fill(0);
            for (k, &axis) in self.map.iter().enumerate() {
                start[axis] = self.values[(at + k as i64 * step) as usize];
            }
            for &(operand, index) in &self.batching {
                start[operand] = at / own[index] % self.dims[index] as i64;
            }
            result = f(&start, offset);
        });
        result
    }
}

/// Evaluates `gather`: slices at index vectors, with clamped starts.
pub(super) fn gather(x: &Tensor, indices: &Tensor, d: &GatherDims, shape: &ArrayShape) -> Result<Tensor> {
    let rank = x.dims.len();
    let index = Indices::new(
        indices,
        d.index_vector_dim,
        &d.start_index_map,
        &d.operand_batching_dims,
        &d.start_indices_batching_dims,
        rank,
    )?;
    let (own, out_steps) = (strides(&x.dims), strides(&shape.dims));
    let mut offsets = d.offset_dims.iter().map(|&a| out_steps.get(a).copied().unwrap_or(0));
    let dropped = |a: usize| d.collapsed_slice_dims.contains(&a) || d.operand_batching_dims.contains(&a);
    let window: Vec<i64> = (0..rank).map(|a| if dropped(a) { 0 } else { offsets.next().unwrap_or(0) }).collect();
    if (0..rank).any(|a| dropped(a) && d.slice_sizes[a] > 1) {
        return Err(invalid_hlo("a dropped dimension of gather has a slice of more than one element"));
    }
    let batch: Vec<i64> = (0..shape.rank()).filter(|a| !d.offset_dims.contains(a)).map(|a| out_steps[a]).collect();
    if shape.elements() == 0 {
        return Ok(Tensor::new(x.dtype, shape.dims.clone(), Vec::new()));
    }
    by_width!(x.dtype, T => {
        let src = x.view::<T>();
        let mut out = vec![T::default(); shape.elements() as usize];
        index.each(rank, &batch, |start, to| {
            let at = (0..rank).map(|a| start[a].clamp(0, x.dims[a] as i64 - d.slice_sizes[a] as i64) * own[a]).sum();
            let (to, from) = (BoxPosition { start: to, strides: &window }, BoxPosition { start: at, strides: &own });
            copy_box(&d.slice_sizes, &mut out, to, &src, from);
            Ok(())
        })?;
        Ok(Tensor::from_vec(x.dtype, shape.dims.clone(), out))
    })
}

/// Evaluates `scatter`: updates combined into operands; windows that do not fit are skipped.
pub(super) fn scatter(m: &Machine, operands: &[&Tensor], d: &ScatterDims, comp: CompId) -> Result<Literal> {
    let n = operands.len() / 2;
    if operands.len().is_multiple_of(2) || n == 0 {
        return Err(invalid_hlo("scatter needs n operands, indices and n updates"));
    }
    let (xs, indices, updates) = (&operands[..n], operands[n], &operands[n + 1..]);
    let (x, update) = (xs[0], updates[0]);
    let rank = x.dims.len();
    let index = Indices::new(
        indices,
        d.index_vector_dim,
        &d.scatter_dims_to_operand_dims,
        &d.input_batching_dims,
        &d.scatter_indices_batching_dims,
        rank,
    )?;
    let kept: Vec<usize> =
        (0..rank).filter(|a| !d.inserted_window_dims.contains(a) && !d.input_batching_dims.contains(a)).collect();
    let batch_axes: Vec<usize> = (0..update.dims.len()).filter(|a| !d.update_window_dims.contains(a)).collect();
    let counted: Vec<u64> = index.batch_axes().iter().map(|&a| indices.dims[a]).collect();
    let fits = kept.len() == d.update_window_dims.len()
        && d.update_window_dims.iter().all(|&a| a < update.dims.len())
        && batch_axes.iter().map(|&a| update.dims[a]).eq(counted)
        && xs.iter().all(|t| t.dims == x.dims)
        && updates.iter().zip(xs).all(|(t, x)| t.dims == update.dims && t.dtype == x.dtype);
    if !fits {
        return Err(invalid_hlo(format!("updates {update:?} do not fit operand {x:?} and indices {indices:?}")));
    }
    let (own, update_steps) = (strides(&x.dims), strides(&update.dims));
    let mut window = Window { sizes: vec![1; rank], to: vec![0; rank], from: vec![0; rank], own, dims: &x.dims };
    for (&a, &u) in kept.iter().zip(&d.update_window_dims) {
        window.sizes[a] = update.dims[u];
        window.to[a] = window.own[a];
        window.from[a] = update_steps[u];
    }
    let batch: Vec<i64> = batch_axes.iter().map(|&a| update_steps[a]).collect();
    if update.is_empty() || x.is_empty() {
        return Ok(one_or_tuple(xs.iter().map(|&x| x.clone()).collect()));
    }
    m.charge_work(update.len() as u64)?;
    if let ([x], [update], Some(1)) = (xs, updates, returned_parameter(m.computation(comp)?)) {
        return Ok(Literal::Array(overwrite(x, update, &index, &window, &batch)?));
    }
    combine(m, xs, updates, (&index, &window, &batch), comp)
}

/// Window of the operand that one index vector updates.
struct Window<'a> {
    sizes: Vec<u64>,
    to: Vec<i64>,
    from: Vec<i64>,
    own: Vec<i64>,
    dims: &'a [u64],
}

impl Window<'_> {
    /// Offset of the window at `start`, if it lies completely inside the operand.
    fn at(&self, start: &[i64]) -> Option<i64> {
        let inside = |a: usize| start[a] >= 0 && start[a] <= self.dims[a] as i64 - self.sizes[a] as i64;
        (0..start.len()).all(inside).then(|| start.iter().zip(&self.own).map(|(i, s)| i * s).sum())
    }
    /// Offsets of all window elements from the first, by `steps`.
    fn offsets(&self, steps: &[i64]) -> Vec<i64> {
        let mut sizes = self.sizes.clone();
        sizes.push(1);
        let mut steps = steps.to_vec();
        steps.push(1);
        let mut out = Vec::new();
        for_each_row(&sizes, [0], [&steps], |[at]| out.push(at));
        out
    }
}

fn overwrite(x: &Tensor, update: &Tensor, index: &Indices, window: &Window, batch: &[i64]) -> Result<Tensor> {
    by_width!(x.dtype, T => {
        let mut out = x.view::<T>().into_owned();
        let src = update.view::<T>();
        index.each(x.dims.len(), batch, |start, from| {
            if let Some(at) = window.at(start) {
                let to = BoxPosition { start: at, strides: &window.to };
                let from = BoxPosition { start: from, strides: &window.from };
                copy_box(&window.sizes, &mut out, to, &src, from);
            }
            Ok(())
        })?;
        Ok(Tensor::from_vec(x.dtype, x.dims.clone(), out))
    })
}

/// Targets of a scatter: index vectors, the window, and the batch strides of the updates.
type Places<'a> = (&'a Indices<'a>, &'a Window<'a>, &'a [i64]);

fn combine(m: &Machine, xs: &[&Tensor], updates: &[&Tensor], places: Places, comp: CompId) -> Result<Literal> {
    let (index, window, batch) = places;
    let op = if xs.len() == 1 { single_binary_op(m.computation(comp)?) } else { None };
    let (to, from) = (window.offsets(&window.to), window.offsets(&window.from));
    let mut buffers: Vec<Vec<u8>> = xs.iter().map(|x| x.bytes.to_vec()).collect();
    let read = |dtype: DType, bytes: &[u8], at: i64, offsets: &[i64]| {
        let n = dtype.bytes();
        let mut out = Vec::with_capacity(offsets.len() * n);
        for o in offsets {
            let i = (at + o) as usize * n;
            out.extend_from_slice(&bytes[i..i + n]);
        }
        Tensor::new(dtype, vec![offsets.len() as u64], out)
    };
    index.each(xs[0].dims.len(), batch, |start, source| {
        let Some(at) = window.at(start) else { return Ok(()) };
        let old = xs.iter().zip(&buffers).map(|(x, b)| read(x.dtype, b, at, &to));
        let new = updates.iter().map(|u| read(u.dtype, &u.bytes, source, &from));
        let args: Vec<Tensor> = old.chain(new).collect();
        let mut combined = match op {
            Some(op) => vec![eval::eval(op, &args.iter().collect::<Vec<_>>())?],
            None => apply_elementwise(m, comp, &args, to.len())?,
        };
        combined.iter_mut().zip(xs).for_each(|(c, x)| *c = convert_float(c, x.dtype));
        if combined.len() != xs.len() || combined.iter().zip(xs).any(|(c, x)| c.dtype != x.dtype) {
            return Err(invalid_hlo("the computation of scatter must return one value an operand"));
        }
        for (buffer, values) in buffers.iter_mut().zip(&combined) {
            let n = values.dtype.bytes();
            for (o, value) in to.iter().zip(values.bytes.chunks_exact(n)) {
                let i = (at + o) as usize * n;
                buffer[i..i + n].copy_from_slice(value);
            }
        }
        Ok(())
    })?;
    let tensors = xs.iter().zip(buffers).map(|(x, b)| Tensor::new(x.dtype, x.dims.clone(), b));
    Ok(one_or_tuple(tensors.collect()))
}
