//! Feature crosses: every combination of one feature from each column, row by row, as a hash or a string.
use super::column::{Column, ColumnInput, FeatureList, SparseColumnDims, dense_column, ragged_column, sparse_column};
use super::text::{Text, join_strings, text_output};
use super::{farmhash, hash, number, remainder};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::{Attr, TfType};
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::fact::Fact;
use crate::ops::math::expr::build_formula;
use crate::ops::op_lowering::op;
use crate::ops::ragged::{row_count, row_positions, row_splits};
use crate::ops::shape::S64;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;
use crate::tensor::{DType, Tensor};
use std::ops::Range;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("SparseCross", "indices* -> output_indices output_values output_shape", sparse_cross)
        .shape(sparse_shape)
        .dtypes(FEATURES),
    op("SparseCrossV2", "indices* -> output_indices output_values output_shape", sparse_cross_v2)
        .shape(sparse_shape)
        .dtypes(FEATURES),
    op("SparseCrossHashed", "indices* -> output_indices output_values output_shape", sparse_cross_hashed)
        .shape(sparse_shape)
        .dtypes(FEATURES),
    op("RaggedCross", "inputs* -> output_values output_row_splits", ragged_cross).shape(ragged_shape).dtypes(FEATURES),
];

const FEATURES: &str = "s64, and strings that are made of integers and short constants";

/// Default separator of crosses.
const SEPARATOR: &[u8] = b"_X_";

/// All crosses of some columns.
struct Crosses {
    /// Row of each cross, `s32[n]`.
    row: InstId,
    /// Position of each cross in its row, `s32[n]`.
    place: InstId,
    /// Row splits of the crosses, `s32[rows + 1]`.
    splits: InstId,
    /// Number of crosses of each row, `s32[rows]`.
    counts: InstId,
    /// For each column, the position of the feature of each cross, `s32[n]`.
    features: Vec<InstId>,
}

/// Function that combines the features of a cross.
enum Joining {
    /// Fingerprint of all features, modulo the number of buckets. It starts with a key, or else with the first feature.
    Hash { key: Option<u64>, buckets: u64 },
    /// Concatenation with this separator.
    Text(Vec<u8>),
}

/// Division of a node's inputs into lists.
struct Inputs {
    indices: Range<usize>,
    values: Range<usize>,
    shapes: Range<usize>,
    dense: Range<usize>,
}

/// Lists of inputs of a sparse cross; `behind` single inputs follow them.
fn inputs(cx: &LowerCtx, behind: usize) -> Result<Inputs> {
    let sparse = cx.require_attr(cx.node.int("N").and_then(|n| usize::try_from(n).ok()), "N")?;
    let all = cx.args.len().checked_sub(behind).filter(|&all| sparse <= all && 3 * sparse <= all);
    let all = all.ok_or_else(|| Error::user(Code::BadGraph, "a list of inputs is missing"))?;
    Ok(Inputs {
        indices: 0..sparse,
        values: sparse..2 * sparse,
        shapes: 2 * sparse..3 * sparse,
        dense: 3 * sparse..all,
    })
}

fn sparse_cross(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let inputs = inputs(cx, 0)?;
    let joining = joining(cx)?;
    let columns = columns(cx, &inputs)?;
    sparse_result(cx, &columns, &joining)
}

fn sparse_cross_v2(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let inputs = inputs(cx, 1)?;
    let separator = match cx.args.last() {
        Some(Value::Strings(s)) if s.all.len() == 1 => s.all[0].to_vec(),
        _ => return Err(cx.unsupported_case("a separator that is no constant")),
    };
    let columns = columns(cx, &inputs)?;
    sparse_result(cx, &columns, &Joining::Text(separator))
}

fn sparse_cross_hashed(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let inputs = inputs(cx, 3)?;
    let behind = inputs.dense.end;
    let buckets = u64::try_from(cx.constant_int(behind)?).unwrap_or(0);
    let is_strong = cx.constant(behind + 1)?.get_f64(0) != Some(0.0);
    let key = match cx.constant_ints(behind + 2)?[..] {
        [first, second] => [first as u64, second as u64],
        ref other => return Err(cx.shape_mismatch(format!("a salt of {} integers", other.len()))),
    };
    let mut columns = columns(cx, &inputs)?;
    for column in &mut columns {
        let made = match &column.features {
            FeatureList::Strings(text) if is_strong => hash::sip_hash(cx.b, text, key)?,
            FeatureList::Strings(text) => farmhash::fingerprint(cx.b, text)?,
            FeatureList::Integers(_) if is_strong && column.source == ColumnInput::Dense => {
                return Err(cx.unsupported_case("a strong hash of a matrix of integers, for which TensorFlow's kernel reads memory that is not there"));
            }
            FeatureList::Integers(_) if column.source == ColumnInput::Dense => continue,
            // TensorFlow's kernel takes four bytes of each integer.
            FeatureList::Integers(x) => {
                let bits = formula_u64(cx, *x);
                let low = build_formula(cx.b, [bits], |[x]| x.and(x.constant_u64(0xffff_ffff)));
                let dims = cx.b.dims(low).to_vec();
                let text = Text { words: vec![low], length: cx.b.full(DType::S32, &dims, 4.0), most: 4 };
                if is_strong { hash::sip_hash(cx.b, &text, key)? } else { farmhash::fingerprint(cx.b, &text)? }
            }
        };
        column.features = FeatureList::Integers(cx.b.convert(made, DType::S64));
    }
    sparse_result(cx, &columns, &Joining::Hash { key: None, buckets })
}

/// Function that the node's attributes select to combine features.
fn joining(cx: &LowerCtx) -> Result<Joining> {
    let out = cx.node.tf_type("out_type").or_else(|| cx.node.tf_type("out_values_type"));
    if out == Some(TfType::String) {
        return Ok(Joining::Text(SEPARATOR.to_vec()));
    }
    let buckets = cx.node.int("num_buckets").and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let key = cx.require_attr(cx.node.int("hash_key"), "hash_key")? as u64;
    Ok(Joining::Hash { key: Some(key), buckets })
}

fn columns(cx: &mut LowerCtx, inputs: &Inputs) -> Result<Vec<Column>> {
    let mut all = Vec::new();
    let sparse = inputs.indices.clone().zip(inputs.values.clone()).zip(inputs.shapes.clone());
    for ((indices, values), shape) in sparse {
        let shape = cx.arg(shape)?;
        if cx.b.dims(shape) != [2] {
            return Err(cx.shape_mismatch(format!("a sparse column of shape {}", cx.b.shape(shape))));
        }
        let rows = cx.size_from_element(shape, Dim::from(0), "the list of rows")?;
        all.push(sparse_column(
            cx,
            indices,
            values,
            &SparseColumnDims { rows: rows.guarded_count(), shape: Some(shape) },
        )?);
    }
    for i in inputs.dense.clone() {
        all.push(dense_column(cx, i)?);
    }
    if all.is_empty() {
        return Err(cx.shape_mismatch("a cross of no columns"));
    }
    Ok(all)
}

/// All combinations of features; the last column varies fastest.
fn crosses(cx: &mut LowerCtx, columns: &[Column]) -> Result<Crosses> {
    let batch = cx.b.dims(columns[0].counts).to_vec();
    let mut counts = columns[0].counts;
    for column in &columns[1..] {
        if cx.b.dims(column.counts) != batch {
            return Err(cx.shape_mismatch("columns of unlike numbers of rows"));
        }
        counts = cx.b.mul(counts, column.counts);
    }
    let by_row = columns.iter().fold(batch[0], |most, c| most.saturating_mul(c.most));
    let by_column = columns
        .iter()
        .filter(|c| c.source == ColumnInput::Sparse)
        .fold(None, |most: Option<u64>, c| Some(most.unwrap_or(1).saturating_mul(c.total)));
    let dense =
        columns.iter().filter(|c| c.source == ColumnInput::Dense).fold(1u64, |most, c| most.saturating_mul(c.most));
    let most = by_column.map_or(by_row, |most| Dim::from(most.saturating_mul(dense).min(by_row.guarded_count())));
    let (splits, total) = row_splits(cx, counts);
    let total = cx.bounded_size(total, most, "the list of crosses")?;
    let (row, place) = row_positions(cx, splits, total)?;
    let one = cx.b.full(DType::S32, &[total], 1.0);
    let mut rest = place;
    let mut features = Vec::with_capacity(columns.len());
    for column in columns.iter().rev() {
        let count = gather_along_axis(cx, column.counts, row, 0, 0)?;
        let count = cx.b.max(count, one);
        let start = gather_along_axis(cx, column.starts, row, 0, 0)?;
        let at = cx.b.binary(ScalarOp::Remainder, rest, count);
        rest = cx.b.div(rest, count);
        features.push(cx.b.add(start, at));
    }
    features.reverse();
    Ok(Crosses { row, place, splits, counts, features })
}

/// Combined value of each cross: a number or a string.
fn values(cx: &mut LowerCtx, columns: &[Column], crosses: &Crosses, joining: &Joining) -> Result<Value> {
    match joining {
        Joining::Hash { key, buckets } => {
            let mut hash = None;
            if let Some(key) = key {
                let dims = cx.b.dims(crosses.row).to_vec();
                let key = cx.b.constant(Tensor::scalar(*key));
                hash = Some(cx.b.broadcast(key, &dims, &[]));
            }
            for (column, &at) in columns.iter().zip(&crosses.features) {
                let numbers = match &column.features {
                    FeatureList::Integers(x) => formula_u64(cx, *x),
                    FeatureList::Strings(text) => farmhash::fingerprint(cx.b, text)?,
                };
                let own = gather_along_axis(cx, numbers, at, 0, 0)?;
                hash = Some(match hash {
                    None => own,
                    Some(before) => build_formula(cx.b, [before, own], |[x, y]| hash::joined_fingerprint(x, y)),
                });
            }
            let hash = hash.ok_or_else(|| Error::internal("lower", "a cross of no columns"))?;
            let buckets = if *buckets > 0 { *buckets } else { i64::MAX as u64 };
            Ok(Value::Array(remainder(cx, hash, buckets)))
        }
        Joining::Text(separator) => {
            let mut parts = Vec::with_capacity(columns.len());
            for (column, &at) in columns.iter().zip(&crosses.features) {
                let text = match &column.features {
                    FeatureList::Integers(x) => number::decimal_text(cx, *x, number::PrintfFormat::default())?,
                    FeatureList::Strings(text) => text.clone(),
                };
                let mut own = Vec::new();
                for part in text.arrays() {
                    own.push(gather_along_axis(cx, part, at, 0, 0)?);
                }
                parts.extend(Text::from_arrays(own, text.most));
            }
            let text = join_strings(cx, parts, separator)?;
            text_output(cx, text)?.into_iter().next().ok_or_else(|| Error::internal("lower", "no text"))
        }
    }
}

/// Bits of signed integers as u64.
fn formula_u64(cx: &mut LowerCtx, x: InstId) -> InstId {
    cx.b.unary(ScalarOp::BitcastConvert(DType::U64), x)
}

/// Outputs of a cross as a sparse tensor.
fn sparse_result(cx: &mut LowerCtx, columns: &[Column], joining: &Joining) -> Result<Vec<Value>> {
    let crosses = crosses(cx, columns)?;
    let values = values(cx, columns, &crosses, joining)?;
    let n = cx.b.dims(crosses.row)[0];
    let pair = [crosses.row, crosses.place].map(|x| {
        let wide = cx.b.convert(x, DType::S64);
        cx.b.reshape(wide, &dims![n, 1])
    });
    let indices = cx.b.concatenate(&pair, 1);
    let zero = cx.b.scalar(DType::S32, 0.0);
    let longest = cx.b.reduce(crosses.counts, zero, ScalarOp::Maximum, &[0]);
    let longest = cx.b.convert(longest, DType::S64);
    let longest = cx.b.reshape(longest, &dims![1]);
    let rows = cx.b.dims(crosses.counts)[0];
    let rows = cx.b.full(DType::S64, &dims![1], rows);
    let shape = cx.b.concatenate(&[rows, longest], 0);
    Ok(vec![Value::Array(indices), values, Value::Array(shape)])
}

/// Lowers `RaggedCross`, whose columns (ragged, sparse and dense) are in the order given by attribute `input_order`.
fn ragged_cross(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let count = |name: &str| match cx.node.attr(name) {
        Some(Attr::Types(types)) => types.len(),
        _ => 0,
    };
    let (ragged, sparse) = (count("ragged_values_types"), count("sparse_values_types"));
    let dense = count("dense_types");
    if 2 * ragged + 3 * sparse + dense != cx.args.len() {
        return Err(Error::user(Code::BadGraph, "a list of inputs is missing"));
    }
    let first_sparse = 2 * ragged;
    let first_dense = first_sparse + 3 * sparse;
    let batch = if ragged > 0 {
        let splits = cx.arg(ragged)?;
        row_count(cx, splits).ok_or_else(|| cx.shape_mismatch("splits that are no list"))?
    } else if sparse > 0 {
        let shape = cx.arg(first_sparse + 2 * sparse)?;
        cx.size_from_element(shape, Dim::from(0), "the list of rows")?
    } else {
        cx.dims(first_dense)?.first().copied().unwrap_or(Dim::from(0))
    };
    let order = cx.require_attr(cx.node.str("input_order"), "input_order")?.to_string();
    let (mut next_ragged, mut next_sparse, mut next_dense) = (0, 0, 0);
    let mut columns = Vec::with_capacity(order.len());
    for kind in order.chars() {
        columns.push(match kind {
            'R' if next_ragged < ragged => {
                next_ragged += 1;
                ragged_column(cx, next_ragged - 1, ragged + next_ragged - 1)?
            }
            'S' if next_sparse < sparse => {
                let at = first_sparse + next_sparse;
                next_sparse += 1;
                sparse_column(cx, at, at + sparse, &SparseColumnDims { rows: batch.guarded_count(), shape: None })?
            }
            'D' if next_dense < dense => {
                next_dense += 1;
                dense_column(cx, first_dense + next_dense - 1)?
            }
            _ => return Err(Error::user(Code::BadAttr, format!("`input_order` is `{order}`"))),
        });
    }
    if columns.is_empty() {
        return Err(cx.shape_mismatch("a cross of no columns"));
    }
    let joining = joining(cx)?;
    let crosses = crosses(cx, &columns)?;
    let values = values(cx, &columns, &crosses, &joining)?;
    let dtype = cx.attr_dtype("out_row_splits_type")?;
    let splits = cx.b.convert(crosses.splits, dtype);
    Ok(vec![values, Value::Array(splits)])
}

fn sparse_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.fresh_dim(UnknownReason::Data);
    let dtype = match &*cx.node.op {
        "SparseCross" => cx.attr_type("out_type"),
        "SparseCrossV2" => Some(TfType::String),
        _ => S64,
    };
    Ok(vec![
        Fact::new(S64, vec![n, InferredDim::Known(2)].into()),
        Fact::new(dtype, vec![n].into()),
        Fact::new(S64, vec![InferredDim::Known(2)].into()),
    ])
}

fn ragged_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (n, rows) = (cx.fresh_dim(UnknownReason::Data), cx.fresh_dim(UnknownReason::Data));
    Ok(vec![
        Fact::new(cx.attr_type("out_values_type"), vec![n].into()),
        Fact::new(cx.attr_type("out_row_splits_type"), vec![rows].into()),
    ])
}
