//! `count_ops.cc`: occurrences of each number in each row, as a sparse tensor.
use super::runs::{SortedRuns, mask_positions};
use super::{column, columns, indices};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::fact::Fact;
use crate::ops::math::special::{add_scalar, compare_scalar};
use crate::ops::op_lowering::op;
use crate::ops::ragged;
use crate::ops::shape::S64;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("DenseCountSparseOutput", "values weights -> output_indices output_values output_dense_shape", of_dense)
        .shape(|cx| result_shape(cx, Rows::OfRank(0)))
        .dtypes("s32, s64"),
    op(
        "SparseCountSparseOutput",
        "indices values dense_shape weights -> output_indices output_values output_dense_shape",
        of_sparse,
    )
    .shape(|cx| result_shape(cx, Rows::OfIndices))
    .dtypes("s32, s64"),
    op(
        "RaggedCountSparseOutput",
        "splits values weights -> output_indices output_values output_dense_shape",
        of_ragged,
    )
    .shape(|cx| result_shape(cx, Rows::Always))
    .dtypes("s32, s64"),
];

/// Numbers to be counted, from a dense, sparse or ragged input.
struct Counted {
    /// Row of each number, `s64[n]`; `None` for a single row that the result's indices do not name.
    row: Option<InstId>,
    /// Number of rows, `s64[1]`.
    rows: Option<InstId>,
    /// Numbers to be counted, `[n]`.
    values: InstId,
    /// Index of the input with a weight for each number; that input may be empty.
    weights: usize,
}

fn of_dense(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (values, dims) = (cx.arg(0)?, cx.dims(0)?);
    let n = dims.iter().product();
    let row = match dims[..] {
        [_] => None,
        [rows, _] => {
            let row = cx.b.iota(DType::S64, &dims, 0);
            Some((cx.b.reshape(row, &[n]), cx.b.full(DType::S64, &dims![1], rows)))
        }
        _ => return Err(cx.shape_mismatch(format!("values {dims:?}; one or two dimensions are counted"))),
    };
    let values = cx.b.reshape(values, &[n]);
    count(cx, &Counted { row: row.map(|r| r.0), rows: row.map(|r| r.1), values, weights: 1 })
}

fn of_sparse(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((places, n, rank), values, shape) = (indices(cx, 0)?, cx.arg(1)?, cx.arg(2)?);
    if cx.b.dims(values) != [n] || cx.b.dims(shape) != [Dim::from(rank)] || rank == 0 {
        return Err(cx.shape_mismatch(format!("{n} indices of rank {rank} for {}", cx.b.shape(values))));
    }
    let row = (rank > 1).then(|| (column(cx, places, 0), cx.b.slice_axis(shape, 0, Dim::from(0), Dim::from(1))));
    count(cx, &Counted { row: row.map(|r| r.0), rows: row.map(|r| r.1), values, weights: 3 })
}

fn of_ragged(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (splits, values) = (cx.arg(0)?, cx.arg(1)?);
    let &[n] = cx.b.dims(values) else {
        return Err(cx.shape_mismatch(format!("values {}; a vector is needed", cx.b.shape(values))));
    };
    let rows = match ragged::row_count(cx, splits) {
        Some(rows) if !rows.is_zero() => rows,
        _ => return Err(cx.shape_mismatch(format!("splits of {}", cx.b.shape(splits)))),
    };
    let (row, _) = ragged::row_positions(cx, splits, n)?;
    let row = cx.b.convert(row, DType::S64);
    let rows = cx.b.full(DType::S64, &dims![1], rows);
    count(cx, &Counted { row: Some(row), rows: Some(rows), values, weights: 2 })
}

/// Counts: the distinct numbers of each row in ascending order, up to the largest that counts, with the sum of their weights.
fn count(cx: &mut LowerCtx, of: &Counted) -> Result<Vec<Value>> {
    let n = cx.b.dims(of.values)[0];
    let weights = cx.arg(of.weights)?;
    let dtype = cx.b.dtype(weights);
    let given = cx.b.dims(weights).iter().product::<Dim>();
    if given != n && given != 0 {
        return Err(cx.shape_mismatch(format!("{given} weights for {n} values")));
    }
    let binary = cx.bool_attr("binary_output");
    let weights = if given == 0 || binary { cx.b.full(dtype, &[n], 1.0) } else { cx.b.reshape(weights, &[n]) };
    let values = cx.b.convert(of.values, DType::S64);
    let keys: Vec<InstId> = of.row.into_iter().chain([values]).collect();
    let runs = SortedRuns::from_keys(cx, &keys)?;
    let sums = runs.reduce_runs(cx, weights, if binary { None } else { Some(ScalarOp::Add) }, 0.0)?;
    let most = cx.node.int("maxlength").unwrap_or(-1);
    let own = runs.keys[keys.len() - 1];
    let kept = if most < 0 {
        runs.exists
    } else {
        let counts = compare_scalar(cx.b, Direction::Lt, own, most as f64);
        cx.b.elementwise(ScalarOp::And, &[counts, runs.exists])
    };
    let (at, size) = mask_positions(cx, kept, "the list of counts")?;
    let sums = gather_along_axis(cx, sums, at, 0, 0)?;
    let taken = runs.keys.iter().map(|&key| gather_along_axis(cx, key, at, 0, 0)).collect::<Result<Vec<_>>>()?;
    let places = columns(cx, &taken, size);
    let width = if most < 0 {
        let least = cx.node.int("minlength").unwrap_or(-1).max(1);
        let (none, least) = (cx.b.scalar(DType::S64, -1.0), cx.b.scalar(DType::S64, least as f64));
        let last = cx.b.reduce(values, none, ScalarOp::Maximum, &[0]);
        let width = add_scalar(cx.b, last, 1.0);
        cx.b.max(width, least)
    } else {
        cx.b.scalar(DType::S64, most as f64)
    };
    let width = cx.b.reshape(width, &dims![1]);
    let shape: Vec<InstId> = of.rows.into_iter().chain([width]).collect();
    let shape = cx.b.concatenate(&shape, 0);
    Ok([places, sums, shape].map(Value::Array).into())
}

/// Condition under which the result's indices name rows.
#[derive(Clone, Copy)]
enum Rows {
    /// Result indices name rows if the input with this index has rank 2.
    OfRank(usize),
    /// Result indices name rows if the indices in input 0 have more than one column.
    OfIndices,
    Always,
}

fn result_shape(cx: &mut ShapeCtx, rows: Rows) -> Result<Vec<Fact>> {
    let n = cx.fresh_dim(UnknownReason::Data);
    let rank = match rows {
        Rows::OfRank(i) => cx.ranked_dims(i)?.map(|dims| dims.len() as u64),
        Rows::OfIndices => match cx.dims_of_rank(0, 2)?[1] {
            InferredDim::Known(rank) => Some(rank.min(2)),
            InferredDim::Unknown(_) => None,
        },
        Rows::Always => Some(2),
    };
    let rank = rank.map_or_else(|| cx.fresh_dim(UnknownReason::Data), InferredDim::Known);
    Ok(vec![
        Fact::new(S64, vec![n, rank].into()),
        Fact::new(cx.attr_type("output_type"), vec![n].into()),
        Fact::new(S64, vec![rank].into()),
    ])
}
