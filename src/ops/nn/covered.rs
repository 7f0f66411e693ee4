//! How many elements the windows of pools of means lie over.
use super::window::Padding;
use crate::diag::{Code, Error, Result};
use crate::hlo::attrs::WindowDim;
use crate::hlo::{Builder, InstId};
use crate::tensor::{DType, Tensor};

/// How many elements of an array of `n` the window (not dilated) at each position covers, padding not counted.
fn covered(w: &WindowDim, n: u64) -> Vec<u64> {
    let out = w.output_size(n).unwrap_or(0);
    let inside = |at: u64| {
        let start = (at * w.stride) as i64 - w.pad_low;
        ((start + w.size as i64).min(n as i64) - start.max(0)).max(0) as u64
    };
    (0..out).map(inside).collect()
}

/// The number of elements that each window of `dims` covers, an array of the result's sizes without the axes where it does not vary.
///
/// Made in Rust: the products of one count an axis; where sizes vary the module makes it.
///
/// # Errors
/// `Code::TooLarge` for a table of more than 2^28 elements.
pub fn counts(b: &mut Builder, dtype: DType, dims: &[u64], window: &[WindowDim], padding: &Padding) -> Result<InstId> {
    if b.computes() {
        return computed(b, dtype, dims, window, padding);
    }
    let per_axis: Vec<Vec<u64>> = dims.iter().zip(window).map(|(&n, w)| covered(w, n)).collect();
    let out: Vec<u64> = per_axis.iter().map(|c| c.len() as u64).collect();
    let varies = |c: &Vec<u64>| c.windows(2).any(|p| p[0] != p[1]);
    let axes: Vec<usize> = (0..dims.len()).filter(|&a| varies(&per_axis[a])).collect();
    let fixed: u64 = per_axis.iter().filter(|c| !varies(c)).map(|c| c.first().copied().unwrap_or(1)).product();
    let sizes: Vec<u64> = axes.iter().map(|&a| out[a]).collect();
    let total: u64 = crate::tensor::element_count(&sizes)
        .filter(|&n| n <= 1 << 28)
        .ok_or_else(|| Error::user(Code::TooLarge, format!("a pool with a result of {out:?}")))?;
    let mut values = vec![fixed; total as usize];
    let mut repeat = total as usize;
    for &a in &axes {
        let line = &per_axis[a];
        repeat /= line.len();
        for (i, v) in values.iter_mut().enumerate() {
            *v *= line[i / repeat % line.len()];
        }
    }
    let tensor = match dtype {
        DType::F64 => Tensor::of(&sizes, &values.iter().map(|&v| v as f64).collect::<Vec<_>>()),
        _ => Tensor::of(&sizes, &values.iter().map(|&v| v as f32).collect::<Vec<_>>()),
    };
    let counts = b.constant(tensor);
    Ok(b.broadcast(counts, &out, &axes))
}

/// The same, as the module computes it: along each axis by which padding can be, the part of each window that lies within the array.
fn computed(b: &mut Builder, dtype: DType, dims: &[u64], window: &[WindowDim], padding: &Padding) -> Result<InstId> {
    let too_large = || Error::user(Code::TooLarge, format!("a pool over {dims:?}"));
    let count = |(&n, w): (&u64, &WindowDim)| w.output_size(n).ok_or_else(too_large);
    let out = dims.iter().zip(window).map(count).collect::<Result<Vec<u64>>>()?;
    let number = |b: &mut Builder, n: i64| -> Result<InstId> {
        let n = i32::try_from(n).map_err(|_| too_large())?;
        Ok(b.constant(Tensor::scalar(n)))
    };
    let mut total = b.full(dtype, &out, 1.0);
    for (axis, w) in window.iter().enumerate().filter(|(_, w)| w.size != 1) {
        let size = number(b, w.size as i64)?;
        let covered = match padding {
            Padding::Valid => size,
            Padding::Same | Padding::Explicit(_) => {
                let position = b.iota(DType::S32, &out, axis);
                let (stride, low) = (number(b, w.stride as i64)?, number(b, w.pad_low)?);
                let (zero, length) = (number(b, 0)?, number(b, dims[axis] as i64)?);
                let step = b.mul(position, stride);
                let first = b.sub(step, low);
                let behind = b.add(first, size);
                let (first, behind) = (b.max(first, zero), b.min(behind, length));
                b.sub(behind, first)
            }
        };
        let covered = b.convert(covered, dtype);
        total = b.mul(total, covered);
    }
    Ok(total)
}
