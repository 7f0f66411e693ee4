//! Opcodes that move elements without reading them.
use super::box_walk::{BoxPosition, copy_box, strided_elements, strides};
use super::operands::{Operands, invalid_hlo};
use crate::by_width;
use crate::diag::Result;
use crate::hlo::ArrayShape;
use crate::hlo::attrs::{PadDim, SliceDim};
use crate::scalar::eval;
use crate::tensor::{DType, Tensor, element_count};

/// Evaluates `iota`: 0, 1, 2 … along `axis`.
pub(super) fn iota(shape: &ArrayShape, axis: usize) -> Result<Tensor> {
    let n = *shape.dims.get(axis).ok_or_else(|| invalid_hlo(format!("iota along {axis} of {shape}")))?;
    let line = Tensor::from_vec(DType::S64, vec![n], (0..n as i64).collect());
    let line = eval::convert(&line, shape.dtype);
    let steps: Vec<i64> = (0..shape.rank()).map(|i| (i == axis) as i64).collect();
    Ok(strided_elements(&line, shape.dims.clone(), 0, &steps))
}

/// Evaluates `broadcast`: operand dimension `i` becomes result dimension `map[i]`.
pub(super) fn broadcast(x: &Tensor, shape: &ArrayShape, map: &[usize]) -> Result<Tensor> {
    // A dimension whose actual size is below its bound keeps its size.
    let fits = map.len() == x.dims.len() && map.iter().zip(&x.dims).all(|(&m, d)| shape.dims.get(m) >= Some(d));
    if !fits {
        return Err(invalid_hlo(format!("broadcast of {x:?} to {shape} by {map:?}")));
    }
    let mut dims = shape.dims.clone();
    let mut steps = vec![0i64; shape.rank()];
    for ((&m, s), &d) in map.iter().zip(strides(&x.dims)).zip(&x.dims) {
        steps[m] = s;
        dims[m] = d;
    }
    if Some(x.len() as u64) == element_count(&dims) && map.is_sorted() {
        return Ok(x.with_dims(dims));
    }
    Ok(strided_elements(x, dims, 0, &steps))
}

/// Evaluates `reshape`: the elements of `x` in row-major order as an array of `shape`.
pub(super) fn reshape(x: &Tensor, shape: &ArrayShape) -> Result<Tensor> {
    let n = x.len() as u64;
    if n == shape.elements() {
        return Ok(x.with_dims(shape.dims.clone()));
    }
    Err(invalid_hlo(format!("reshape of {x:?} to {shape}")))
}

/// Permutation from row-major order to the memory order of `shape`'s layout; `None` if they are equal.
fn physical(shape: &ArrayShape) -> Result<Option<Vec<usize>>> {
    let Some(layout) = shape.layout.as_ref().filter(|l| !l.minor_to_major.is_empty()) else { return Ok(None) };
    let order: Vec<usize> = layout.minor_to_major.iter().rev().map(|&d| d as usize).collect();
    let mut seen = vec![false; shape.rank()];
    for &d in &order {
        match seen.get_mut(d) {
            Some(slot) if !*slot => *slot = true,
            _ => return Err(invalid_hlo(format!("the layout of {shape} is no permutation"))),
        }
    }
    if order.len() != shape.rank() {
        return Err(invalid_hlo(format!("the layout of {shape} is no permutation")));
    }
    Ok(if order.is_sorted() { None } else { Some(order) })
}

/// Evaluates `bitcast`: the bytes of `x` in memory, reinterpreted with another shape and layout.
pub(super) fn bitcast(x: &Tensor, from: &ArrayShape, to: &ArrayShape) -> Result<Tensor> {
    let bytes = to.bytes();
    if x.bytes.len() as u64 != bytes {
        return Err(invalid_hlo(format!("bitcast of {x:?} to {to}")));
    }
    let memory = match physical(from)? {
        Some(order) => transpose(x, &order),
        None => x.clone(),
    };
    let Some(order) = physical(to)? else { return Ok(Tensor::new(to.dtype, to.dims.clone(), memory.bytes)) };
    let dims: Vec<u64> = order.iter().map(|&d| to.dims[d]).collect();
    let mut back = vec![0; order.len()];
    for (i, &d) in order.iter().enumerate() {
        back[d] = i;
    }
    Ok(transpose(&Tensor::new(to.dtype, dims, memory.bytes), &back))
}

/// Evaluates `bitcast-convert` between different widths.
pub(super) fn bitcast_convert(x: &Tensor, shape: &ArrayShape) -> Result<Tensor> {
    let whole_bytes = x.dtype.bits() >= 8 && shape.dtype.bits() >= 8;
    if whole_bytes && x.bytes.len() as u64 == shape.bytes() {
        let out = Tensor::new(shape.dtype, shape.dims.clone(), x.bytes.clone());
        return Ok(if shape.dtype == DType::Pred { eval::truth(&out) } else { out });
    }
    // Types below a byte are stored unpacked, one per byte: they are packed, then unpacked with the other width. A pred is a
    // byte if the sizes say so (above), else a bit.
    let width = |t: DType| if t == DType::Pred { 1 } else { t.bits() };
    let (from, to) = (width(x.dtype), width(shape.dtype));
    if (x.len() as u64).checked_mul(u64::from(from)) != shape.elements().checked_mul(u64::from(to)) {
        return Err(invalid_hlo(format!("bitcast-convert of {x:?} to {shape}")));
    }
    let bits: Vec<u8> = if from < 8 {
        x.bytes.iter().flat_map(|&b| (0..from).map(move |i| b >> i & 1)).collect()
    } else {
        x.bytes.iter().flat_map(|&b| (0..8).map(move |i| b >> i & 1)).collect()
    };
    let join = |chunk: &[u8]| chunk.iter().enumerate().fold(0u8, |v, (i, &b)| v | b << i);
    let mut out: Vec<u8> = bits.chunks(to.min(8) as usize).map(join).collect();
    if shape.dtype.is_signed() && to < 8 {
        out.iter_mut().for_each(|b| *b = (((*b << (8 - to)) as i8) >> (8 - to)) as u8);
    }
    Ok(Tensor::new(shape.dtype, shape.dims.clone(), out))
}

/// Evaluates `transpose`: result dimension `i` is operand dimension `perm[i]`.
pub(super) fn transpose(x: &Tensor, perm: &[usize]) -> Tensor {
    if perm.is_sorted() {
        return x.clone();
    }
    let own = strides(&x.dims);
    let steps: Vec<i64> = perm.iter().map(|&p| own[p]).collect();
    strided_elements(x, perm.iter().map(|&p| x.dims[p]).collect(), 0, &steps)
}

/// Evaluates `reverse` along `axes`.
pub(super) fn reverse(x: &Tensor, axes: &[usize]) -> Tensor {
    if x.is_empty() {
        return x.clone();
    }
    let mut steps = strides(&x.dims);
    let mut start = 0;
    for &a in axes {
        start += (x.dims[a] as i64 - 1) * steps[a];
        steps[a] = -steps[a];
    }
    strided_elements(x, x.dims.clone(), start, &steps)
}

/// Evaluates `slice`, a strided box.
pub(super) fn slice(x: &Tensor, dims: &[SliceDim]) -> Tensor {
    let own = strides(&x.dims);
    let start = dims.iter().zip(&own).map(|(d, s)| d.start as i64 * s).sum();
    let steps: Vec<i64> = dims.iter().zip(&own).map(|(d, s)| (d.stride as i64).wrapping_mul(*s)).collect();
    strided_elements(x, dims.iter().map(|d| (d.limit - d.start).div_ceil(d.stride)).collect(), start, &steps)
}

/// Size of a padded dimension of `n` elements.
fn padded(d: &PadDim, n: u64) -> Option<u64> {
    let inner = i128::from(n) + i128::from(n.saturating_sub(1)) * i128::from(d.interior);
    u64::try_from((inner + i128::from(d.low) + i128::from(d.high)).max(0)).ok()
}

/// Evaluates `pad`: pads `x` with `fill` at the edges and between elements; negative padding crops.
pub(super) fn pad(x: &Tensor, fill: &Tensor, shape: &ArrayShape, dims: &[PadDim]) -> Result<Tensor> {
    if fill.len() != 1 || fill.dtype != x.dtype {
        return Err(invalid_hlo(format!("{fill:?} fills {x:?}")));
    }
    // If the operand is smaller than its bound, so is the result.
    let sizes: Option<Vec<u64>> = dims.iter().zip(&x.dims).map(|(d, &n)| padded(d, n)).collect();
    let sizes = sizes.filter(|s| s.len() == shape.rank() && s.iter().zip(&shape.dims).all(|(n, bound)| n <= bound));
    let sizes = sizes.ok_or_else(|| invalid_hlo(format!("{x:?} is padded to {shape}")))?;
    let shape = &ArrayShape::new(shape.dtype, sizes);
    let (own, outer) = (strides(&x.dims), strides(&shape.dims));
    let (mut from, mut to, mut counts, mut steps) = (0i64, 0i64, Vec::new(), Vec::new());
    for (i, d) in dims.iter().enumerate() {
        let step = i64::try_from(d.interior).unwrap_or(i64::MAX).saturating_add(1);
        // Source element `k` goes to low + k * step, which must be inside the result.
        let first = if d.low < 0 { d.low.unsigned_abs().div_ceil(step as u64) as i64 } else { 0 };
        let room = (shape.dims[i] as i64 - 1).saturating_sub(d.low);
        let last = if room < 0 { -1 } else { (room / step).min(x.dims[i] as i64 - 1) };
        counts.push((last - first + 1).max(0) as u64);
        if first > last {
            continue;
        }
        from += first * own[i];
        to += d.low.wrapping_add(first.wrapping_mul(step)) * outer[i];
        // A single element takes no step, however large.
        steps.push(step.wrapping_mul(outer[i]));
    }
    by_width!(x.dtype, T => {
        let mut out = vec![fill.view::<T>()[0]; shape.elements() as usize];
        if counts.contains(&0) {
            return Ok(Tensor::from_vec(x.dtype, shape.dims.clone(), out));
        }
        let (to, from) = (BoxPosition { start: to, strides: &steps }, BoxPosition { start: from, strides: &own });
        copy_box(&counts, &mut out, to, &x.view::<T>(), from);
        Ok(Tensor::from_vec(x.dtype, shape.dims.clone(), out))
    })
}

/// Evaluates `concatenate` along `axis`.
pub(super) fn concatenate(parts: &[&Tensor], shape: &ArrayShape, axis: usize) -> Result<Tensor> {
    if parts.iter().any(|p| p.dtype != shape.dtype) {
        return Err(invalid_hlo("operands of different element types"));
    }
    let chunk = |t: &Tensor| t.dims[axis..].iter().product::<u64>() as usize * t.dtype.bytes();
    let Some(first) = parts.first() else { return Err(invalid_hlo("concatenate needs an operand")) };
    let mut dims = first.dims.clone();
    dims[axis] = parts.iter().map(|p| p.dims[axis]).sum();
    if parts.iter().any(|p| (0..dims.len()).any(|i| i != axis && p.dims[i] != dims[i])) {
        return Err(invalid_hlo("operands of different sizes"));
    }
    let outer: u64 = dims[..axis].iter().product();
    let mut out = Vec::with_capacity(shape.bytes() as usize);
    for i in 0..outer as usize {
        for part in parts {
            let n = chunk(part);
            out.extend_from_slice(&part.bytes[i * n..(i + 1) * n]);
        }
    }
    Ok(Tensor::new(shape.dtype, dims, out))
}

/// Clamped start of a box of `sizes` in `dims`, from scalar operands, or a vector, from index `at` on.
fn starts(operands: Operands, at: usize, dims: &[u64], sizes: &[u64]) -> Result<Vec<i64>> {
    let vector = operands.0.len() == at + 1 && operands.array(at)?.dims.len() == 1;
    let read = |i: usize| {
        let (t, k) = if vector { (operands.array(at)?, i) } else { (operands.array(at + i)?, 0) };
        let value = t.get_i64(k).ok_or_else(|| invalid_hlo("a start index is not an integer"))?;
        // A u64 beyond i64 is a large start.
        let value = if t.dtype == DType::U64 && value < 0 { i64::MAX } else { value };
        Ok(value.clamp(0, dims[i] as i64 - sizes[i] as i64))
    };
    (0..dims.len()).map(read).collect()
}

/// Evaluates `dynamic-slice`: a box at run-time starts, clamped so that it fits.
pub(super) fn dynamic_slice(operands: Operands, sizes: &[u64]) -> Result<Tensor> {
    let x = operands.array(0)?;
    let own = strides(&x.dims);
    let start = starts(operands, 1, &x.dims, sizes)?.iter().zip(&own).map(|(i, s)| i * s).sum();
    Ok(strided_elements(x, sizes.to_vec(), start, &own))
}

/// Evaluates `dynamic-update-slice`: operand 0 with operand 1 written at run-time starts.
pub(super) fn dynamic_update_slice(operands: Operands) -> Result<Tensor> {
    let (x, update) = (operands.array(0)?, operands.array(1)?);
    if update.dtype != x.dtype {
        return Err(invalid_hlo(format!("{update:?} written into {x:?}")));
    }
    let own = strides(&x.dims);
    let start = starts(operands, 2, &x.dims, &update.dims)?.iter().zip(&own).map(|(i, s)| i * s).sum();
    by_width!(x.dtype, T => {
        let mut out = x.view::<T>().into_owned();
        let packed = strides(&update.dims);
        let (to, from) = (BoxPosition { start, strides: &own }, BoxPosition { start: 0, strides: &packed });
        copy_box(&update.dims, &mut out, to, &update.view::<T>(), from);
        Ok(Tensor::from_vec(x.dtype, x.dims.clone(), out))
    })
}

/// Evaluates `set-dimension-size`: truncates operand 0 along `axis`, as values of bounded shapes have their actual sizes here.
pub(super) fn set_dimension_size(operands: Operands, axis: usize) -> Result<Tensor> {
    let x = operands.array(0)?;
    let size = u64::try_from(operands.integer(1)?.max(0)).ok();
    match (x.dims.get(axis), size) {
        (Some(&n), Some(size)) if size <= n => {
            let mut dims = x.dims.clone();
            dims[axis] = size;
            Ok(leading_elements(x, dims))
        }
        (Some(_), Some(_)) => Err(super::operands::unsupported_hlo("set-dimension-size to more than the actual size")),
        _ => Err(invalid_hlo(format!("set-dimension-size of dimension {axis} of {x:?}"))),
    }
}

/// Leading elements along each dimension; `dims` has the same rank, and no size is larger.
pub fn leading_elements(x: &Tensor, dims: Vec<u64>) -> Tensor {
    if dims == x.dims { x.clone() } else { strided_elements(x, dims, 0, &strides(&x.dims)) }
}
