//! `RaggedTensorToSparse`: ragged rows as a sparse tensor, with the dense shape that holds all rows.
use super::{lengths, row_count, row_positions};
use crate::diag::Result;
use crate::dims;
use crate::graph::TfType;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::fact::{Fact, InferredInt};
use crate::ops::op_lowering::op;
use crate::ops::shape::S64;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[op(
    "RaggedTensorToSparse",
    "rt_nested_splits* rt_dense_values -> sparse_indices sparse_values sparse_dense_shape",
    sparse,
)
.moves_strings()
.shape(sparse_shape)];

/// Lowers `RaggedTensorToSparse`: the index tuple of each value is its position in the row of each level, and its position in
/// the dense inner dimensions.
fn sparse(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let levels = cx.args.len().saturating_sub(1);
    let (values, dims) = (cx.arg(levels)?, cx.dims(levels)?);
    if levels == 0 || dims.is_empty() {
        return Err(cx.shape_mismatch(format!("{} by {levels} levels of rows", cx.b.shape(values))));
    }
    let (columns, sizes) = nested(cx, dims[0])?;
    let total = dims.iter().product();
    let mut all = Vec::with_capacity(levels + dims.len());
    for column in columns {
        let column = cx.b.convert(column, DType::S64);
        all.push(cx.b.broadcast(column, &dims, &[0]));
    }
    all.extend((1..dims.len()).map(|axis| cx.b.iota(DType::S64, &dims, axis)));
    let all: Vec<InstId> = all.into_iter().map(|x| cx.b.reshape(x, &dims![total, 1])).collect();
    let inner = dims[1..].iter().map(|&n| cx.b.full(DType::S64, &dims![1], n));
    let sizes: Vec<InstId> = sizes.into_iter().chain(inner).collect();
    let (indices, shape) = (cx.b.concatenate(&all, 1), cx.b.concatenate(&sizes, 0));
    Ok([indices, cx.b.reshape(values, &[total]), shape].map(Value::Array).into())
}

/// For each of `count` values, its row number and its position at each level, `s32[count]`; and the number of rows and the
/// length of the longest row of each level, `s64[1]`.
fn nested(cx: &mut LowerCtx, count: Dim) -> Result<(Vec<InstId>, Vec<InstId>)> {
    let levels = cx.args.len() - 1;
    let (mut columns, mut sizes) = (Vec::new(), Vec::new());
    for level in 0..levels {
        let splits = cx.arg(level)?;
        let Some(n) = row_count(cx, splits) else {
            return Err(cx.shape_mismatch(format!("splits of {}", cx.b.shape(splits))));
        };
        let held = if level + 1 < levels { row_count(cx, cx.arg(level + 1)?).unwrap_or(Dim::from(0)) } else { count };
        let (row, at) = row_positions(cx, splits, held)?;
        if level == 0 {
            columns.push(row);
            sizes.push(cx.b.full(DType::S64, &dims![1], n));
        } else {
            columns = columns.into_iter().map(|c| gather_along_axis(cx, c, row, 0, 0)).collect::<Result<_>>()?;
        }
        columns.push(at);
        sizes.push(longest(cx, splits, held));
    }
    Ok((columns, sizes))
}

/// Length of the longest row, `s64[1]`, at most `held`, the number of values of all rows.
fn longest(cx: &mut LowerCtx, splits: InstId, held: Dim) -> InstId {
    let lengths = lengths(cx, splits);
    let lengths = cx.b.convert(lengths, DType::S64);
    let (none, most) = (cx.b.scalar(DType::S64, 0.0), cx.b.scalar(DType::S64, held));
    let longest = cx.b.reduce(lengths, none, ScalarOp::Maximum, &[0]);
    // No row is longer than that, which bounds the size of arrays of this shape.
    let longest = cx.b.elementwise(ScalarOp::Clamp, &[none, longest, most]);
    cx.b.reshape(longest, &dims![1])
}

/// Shape function of `RaggedTensorToSparse`: an index a value, and a dense shape whose longest rows are not known.
fn sparse_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let levels = cx.args.len().saturating_sub(1);
    let rows = cx.dims_of_rank(0, 1)?[0];
    let rows = cx.sub(rows, InferredDim::Known(1));
    let Some(text_dims) = cx.ranked_dims(levels)? else {
        let (total, rank) = (cx.fresh_dim(UnknownReason::Data), cx.fresh_dim(UnknownReason::Data));
        let values = cx.one_output_like(levels, vec![total])?.remove(0);
        return Ok(vec![Fact::new(S64, vec![total, rank].into()), values, Fact::new(S64, vec![rank].into())]);
    };
    let total = cx.product(&text_dims);
    let rank = (levels + text_dims.len()) as u64;
    let mut sizes = vec![InferredInt::from(rows)];
    sizes.extend((0..levels).map(|_| cx.fresh_dim(UnknownReason::Data)).map(InferredInt::from));
    sizes.extend(text_dims.iter().skip(1).map(|&n| InferredInt::from(n)));
    let values = cx.one_output_like(levels, vec![total])?.remove(0);
    Ok(vec![
        Fact::new(S64, vec![total, InferredDim::Known(rank)].into()),
        values,
        Fact::from_ints(TfType::Data(DType::S64), &[rank], sizes),
    ])
}
