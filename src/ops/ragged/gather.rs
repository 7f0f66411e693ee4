//! `RaggedGather`: rows selected by their indices.
use super::{lengths, row_positions, row_splits};
use crate::diag::Result;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[op(
    "RaggedGather",
    "params_nested_splits* params_dense_values indices -> output_nested_splits* output_dense_values",
    gather,
)
.moves_strings()
.shape(gather_shape)];

/// Lowers `RaggedGather`, level by level; `indices [m]` select rows of the outermost level.
fn gather(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let levels = cx.args.len().saturating_sub(2);
    let (values, indices) = (cx.arg(levels)?, cx.arg(levels + 1)?);
    if levels == 0 || cx.b.rank(indices) != 1 {
        return Err(cx.unsupported_case(format!("rows by indices {}; a vector is supported", cx.b.shape(indices))));
    }
    let mut rows = cx.b.convert(indices, DType::S32);
    let mut out = Vec::with_capacity(levels + 1);
    for level in 0..levels {
        let all = cx.arg(level)?;
        if cx.b.rank(all) != 1 || cx.b.dims(all)[0] == 0 {
            return Err(cx.shape_mismatch(format!("splits of {}", cx.b.shape(all))));
        }
        let next = if level + 1 < levels { cx.dims(level + 1)?[0].saturating_sub(1) } else { cx.b.dims(values)[0] };
        let dtype = cx.b.dtype(all);
        let (all, own) = (cx.b.convert(all, DType::S32), lengths(cx, all));
        let own = cx.b.convert(own, DType::S32);
        let (begins, own) = (gather_along_axis(cx, all, rows, 0, 0)?, gather_along_axis(cx, own, rows, 0, 0)?);
        let most = next.saturating_mul(cx.b.dims(rows)[0]);
        let (made, total) = row_splits(cx, own);
        let total = cx.bounded_size(total, most, "the list of values")?;
        let (row, at) = row_positions(cx, made, total)?;
        let begins = gather_along_axis(cx, begins, row, 0, 0)?;
        rows = cx.b.add(begins, at);
        out.push(Value::Array(cx.b.convert(made, dtype)));
    }
    out.push(Value::Array(gather_along_axis(cx, values, rows, 0, 0)?));
    Ok(out)
}

/// Shape function of `RaggedGather`: a row for each index; the number of values depends on the data.
fn gather_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let levels = cx.args.len().saturating_sub(2);
    let made = usize::try_from(cx.node.int("OUTPUT_RAGGED_RANK").unwrap_or(levels as i64)).unwrap_or(levels).min(64);
    let splits = cx.attr_type("Tsplits");
    let mut out = Vec::with_capacity(made + 1);
    for level in 0..made {
        let rows = match cx.ranked_dims(levels + 1)?.as_deref() {
            Some([rows, ..]) if level == 0 => cx.add(*rows, InferredDim::Known(1)),
            _ => cx.fresh_dim(UnknownReason::Data),
        };
        out.push(Fact::new(splits, vec![rows].into()));
    }
    let n = cx.fresh_dim(UnknownReason::Data);
    out.push(match cx.ranked_dims(levels)? {
        Some(dims) if !dims.is_empty() => cx.one_output_like(levels, [&[n], &dims[1..]].concat())?.remove(0),
        _ => {
            let dims = cx.unranked(UnknownReason::Data);
            cx.one_output_like(levels, dims)?.remove(0)
        }
    });
    Ok(out)
}
