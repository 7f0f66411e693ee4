//! Numbers of elements that the windows of average pools cover.
use super::window::Padding;
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::WindowDim;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::symbolic::guarded_counts;
use crate::tensor::{DType, Tensor};

/// Number of elements of an array of `n` that the (undilated) window at each position covers, padding not counted.
fn covered(w: &WindowDim, n: Dim) -> Vec<Dim> {
    let out = w.output_size(n).unwrap_or(Dim::from(0));
    let inside = |at: u64| {
        let start = at * w.stride - w.pad_low;
        ((start + w.size).min(n) - start.max(0)).max(0)
    };
    (0..out.guarded_count()).map(inside).collect()
}

/// Number of elements that each window of a pool over `dims` covers; an array of the result's sizes without the axes along
/// which it is constant.
///
/// Computed at compile time as products of one count per axis; with open sizes, by the module.
///
/// # Errors
/// `Code::TooLarge` for a table of more than 2^28 elements.
pub fn window_counts(
    b: &mut Builder,
    dtype: DType,
    dims: &[Dim],
    window: &[WindowDim],
    padding: &Padding,
) -> Result<InstId> {
    let varies = |w: &WindowDim| [w.pad_low, w.pad_high].iter().any(|pad| pad.varies());
    if dims.iter().any(|n| n.varies()) || window.iter().any(varies) {
        return computed(b, dtype, dims, window, padding);
    }
    let per_axis: Vec<Vec<Dim>> = dims.iter().zip(window).map(|(&n, w)| covered(w, n)).collect();
    let out: Vec<Dim> = per_axis.iter().map(|c| Dim::from(c.len())).collect();
    let varies = |c: &Vec<Dim>| c.windows(2).any(|p| p[0] != p[1]);
    let axes: Vec<usize> = (0..dims.len()).filter(|&a| varies(&per_axis[a])).collect();
    let fixed: Dim =
        per_axis.iter().filter(|c| !varies(c)).map(|c| c.first().copied().unwrap_or(Dim::from(1))).product();
    let sizes: Vec<Dim> = axes.iter().map(|&a| out[a]).collect();
    let total: Dim = Dim::from(
        crate::tensor::element_count(&guarded_counts(&sizes))
            .filter(|&n| n <= 1 << 28)
            .ok_or_else(|| Error::user(Code::TooLarge, format!("a pool with a result of {out:?}")))?,
    );
    let mut values = vec![fixed; total.guarded_index()];
    let mut repeat = total.guarded_index();
    for &a in &axes {
        let line = &per_axis[a];
        repeat /= line.len();
        for (i, v) in values.iter_mut().enumerate() {
            *v *= line[i / repeat % line.len()];
        }
    }
    let tensor = match dtype {
        DType::F64 => Tensor::of(&guarded_counts(&sizes), &values.iter().map(|&v| v.as_f64()).collect::<Vec<_>>()),
        _ => Tensor::of(&guarded_counts(&sizes), &values.iter().map(|&v| v.as_f64() as f32).collect::<Vec<_>>()),
    };
    let counts = b.constant(tensor);
    Ok(b.broadcast(counts, &out, &axes))
}

/// Number of elements in each window of a pool, computed by the module because a size is open: along each axis that may be
/// padded, the part of the window within the array.
fn computed(b: &mut Builder, dtype: DType, dims: &[Dim], window: &[WindowDim], padding: &Padding) -> Result<InstId> {
    let too_large = || Error::user(Code::TooLarge, format!("a pool over {dims:?}"));
    let count = |(&n, w): (&Dim, &WindowDim)| w.output_size(n).ok_or_else(too_large);
    let out = dims.iter().zip(window).map(count).collect::<Result<Vec<Dim>>>()?;
    let number = |b: &mut Builder, n: Dim| -> Result<InstId> {
        if n > i64::from(i32::MAX) {
            return Err(too_large());
        }
        Ok(b.scalar(DType::S32, n))
    };
    let mut total = b.full(dtype, &out, 1.0);
    for (axis, w) in window.iter().enumerate().filter(|(_, w)| w.size != 1) {
        let size = number(b, w.size)?;
        let covered = match padding {
            Padding::Valid => size,
            Padding::Same | Padding::Explicit(_) => {
                let position = b.iota(DType::S32, &out, axis);
                let (stride, low) = (number(b, w.stride)?, number(b, w.pad_low)?);
                let (zero, length) = (number(b, Dim::from(0))?, number(b, dims[axis])?);
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
