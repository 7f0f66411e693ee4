//! Conversion of row-major positions to index tuples.
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::shape_ctx::ShapeCtx;
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] =
    &[op("UnravelIndex", "indices dims -> output", unravel).shape(unravel_shape).dtypes("s32, s64")];

/// Lowers `UnravelIndex`: index tuples of row-major positions in an array of sizes `dims`, one row per axis.
///
/// Shapes: indices `[n]`, dims `[k]` -> `[k, n]`; indices `[]` -> `[k]`.
fn unravel(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (indices, dims) = (cx.arg(0)?, cx.arg(1)?);
    let (places, &[k]) = (cx.b.dims(indices).to_vec(), cx.b.dims(dims)) else {
        return Err(cx.shape_mismatch(format!("sizes {}; a vector is needed", cx.b.shape(dims))));
    };
    if places.len() > 1 || k > 64 {
        return Err(
            cx.shape_mismatch(format!("indices {places:?} into {k} dimensions; a scalar or a vector is needed"))
        );
    }
    let dtype = cx.b.dtype(indices);
    if let Some(sizes) = cx.constant(1).ok().and_then(|t| t.to_i64s()) {
        if let Some(size) = sizes.iter().find(|&&size| size <= 0) {
            return Err(cx.shape_mismatch(format!("a size of {size} in {sizes:?}")));
        }
        let all = sizes.iter().try_fold(1u64, |all, &n| all.checked_mul(n as u64));
        // Negative positions are invalid, but TensorFlow accepts them.
        if let Some(all) = all {
            check_below(cx, Dim::from(all))?;
        }
    }
    let mut step = cx.b.scalar(dtype, 1.0);
    let mut rows: Vec<InstId> = Vec::new();
    for axis in (0..k.guarded_count()).rev() {
        let size = cx.b.slice_axis(dims, 0, Dim::from(axis), Dim::from(axis + 1));
        let size = cx.b.reshape(size, &[]);
        let whole = cx.b.mul(step, size);
        let [from, by] = [whole, step].map(|x| cx.b.broadcast(x, &places, &[]));
        let rest = cx.b.elementwise(ScalarOp::Remainder, &[indices, from]);
        let at = cx.b.div(rest, by);
        rows.push(cx.b.reshape(at, &[&dims![1][..], &places[..]].concat()));
        step = whole;
    }
    rows.reverse();
    let out = if rows.is_empty() {
        cx.b.full(dtype, &[&dims![0][..], &places[..]].concat(), 0.0)
    } else {
        cx.b.concatenate(&rows, 0)
    };
    cx.one_output(out)
}

/// Rejects constant positions that are not below `all`, as TensorFlow's kernel does.
fn check_below(cx: &LowerCtx, all: Dim) -> Result<()> {
    let Some(known) = cx.constant(0).ok().and_then(|t| t.to_i64s()) else { return Ok(()) };
    match known.into_iter().find(|&i| Dim::size(i).is_ok_and(|i| i >= all)) {
        Some(index) if cx.b.nesting_depth() == 1 => Err(crate::diag::Error::user(
            crate::diag::Code::BadInputs,
            format!("index {index} leads out of an array of {all} elements"),
        )),
        _ => Ok(()),
    }
}

fn unravel_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let k: InferredDim = cx.dims_of_rank(1, 1)?[0];
    let dims = match cx.ranked_dims(0)?.as_deref() {
        Some([]) => Dims::ranked(vec![k]),
        Some([n]) => Dims::ranked(vec![k, *n]),
        Some(_) => return Err(cx.shape_mismatch("indices must be a scalar or a vector")),
        None => cx.unranked_from(0),
    };
    cx.one_output_like(0, dims)
}
