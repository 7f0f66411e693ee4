//! `RaggedTensorToTensor`: ragged rows padded with a default value to a dense array.
use super::{lengths, row_positions};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::Attr;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::scatter;
use crate::ops::fact::{Fact, InferredInt};
use crate::ops::op_lowering::op;
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] =
    &[op("RaggedTensorToTensor", "shape values default_value row_partition_tensors* -> result", dense)
        .moves_strings()
        .shape(dense_shape)];

/// Row partition of one ragged level.
enum Level {
    /// Row splits.
    Splits(InstId),
    /// Row number of each value.
    Numbers(InstId),
}

/// Lowers `RaggedTensorToTensor`; sizes in `shape` truncate longer rows.
fn dense(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (values, default) = (cx.arg(1)?, cx.arg(2)?);
    let (rows, levels) = levels(cx)?;
    let told = told(cx)?;
    let mut dims = vec![told.first().copied().flatten().unwrap_or(rows)];
    let mut columns: Vec<InstId> = Vec::new();
    for (k, level) in levels.iter().enumerate() {
        let count = match levels.get(k + 1) {
            Some(Level::Splits(next)) => cx.b.dims(*next)[0].saturating_sub(1),
            _ if k + 1 == levels.len() => cx.b.dims(values).first().copied().unwrap_or(Dim::from(0)),
            _ => return Err(cx.unsupported_case("levels of rows of more than one kind")),
        };
        let (row, at, length) = match level {
            Level::Splits(splits) => {
                let (row, at) = row_positions(cx, *splits, count)?;
                let lengths = lengths(cx, *splits);
                let none = cx.b.scalar(cx.b.dtype(lengths), 0.0);
                (row, at, cx.b.reduce(lengths, none, ScalarOp::Maximum, &[0]))
            }
            Level::Numbers(numbers) => numbered(cx, *numbers, dims[0])?,
        };
        let most = count;
        dims.push(match told.get(k + 1).copied().flatten() {
            Some(n) => n,
            None => cx.bounded_size(length, most, "the longest row")?,
        });
        columns = if k == 0 {
            vec![row]
        } else {
            columns.into_iter().map(|c| gather_along_axis(cx, c, row, 0, 0)).collect::<Result<_>>()?
        };
        columns.push(at);
    }
    let count = cx.b.dims(values).first().copied().unwrap_or(Dim::from(0));
    let inner = cx.b.dims(values).get(1..).unwrap_or(&[]).to_vec();
    let default = cx.b.broadcast_to(default, &inner);
    let out = [&dims[..], &inner].concat();
    let map: Vec<usize> = (dims.len()..out.len()).collect();
    let base = cx.b.broadcast(default, &out, &map);
    let columns: Vec<InstId> = columns.into_iter().map(|c| cx.b.reshape(c, &dims![count, 1])).collect();
    let at = cx.b.concatenate(&columns, 1);
    let y = scatter(cx, base, at, values, None)?;
    cx.one_output(y)
}

/// Number of rows, and the row partitions, outermost first.
fn levels(cx: &mut LowerCtx) -> Result<(Dim, Vec<Level>)> {
    let types: Vec<String> = match cx.node.attr("row_partition_types") {
        Some(Attr::Strs(all)) => all.iter().map(|t| String::from_utf8_lossy(t).into_owned()).collect(),
        _ => {
            return Err(Error::user(Code::BadAttr, "attribute `row_partition_types` is missing or no list of strings"));
        }
    };
    if types.len() + 3 != cx.args.len() || types.is_empty() {
        return Err(cx.shape_mismatch(format!(
            "{} partitions of {} types",
            cx.args.len().saturating_sub(3),
            types.len()
        )));
    }
    let (mut rows, mut out) = (None, Vec::new());
    for (i, kind) in types.iter().enumerate() {
        let partition = cx.arg(3 + i)?;
        match kind.as_str() {
            "FIRST_DIM_SIZE" if i == 0 => rows = Some(cx.size_from_input(3)?),
            "VALUE_ROWIDS" if cx.b.rank(partition) == 1 && rows.is_some() && types.len() == 2 => {
                out.push(Level::Numbers(partition));
            }
            "ROW_SPLITS" if cx.b.rank(partition) == 1 && cx.b.dims(partition)[0] > 0 => {
                rows = rows.or(Some(cx.b.dims(partition)[0] - 1));
                out.push(Level::Splits(partition));
            }
            _ => return Err(cx.unsupported_case(format!("rows told by {types:?}"))),
        }
    }
    let rows = rows.filter(|_| !out.is_empty());
    rows.map(|rows| (rows, out)).ok_or_else(|| cx.shape_mismatch("there are no rows"))
}

/// Sizes given by input `shape`; `None` for those that the rows determine.
fn told(cx: &LowerCtx) -> Result<Vec<Option<Dim>>> {
    let shape = cx.constant_dims(0)?;
    // A scalar of -1 leaves all sizes to the rows.
    let is_whole = cx.dims(0)?.is_empty();
    Ok(if is_whole { Vec::new() } else { shape.iter().map(|&n| Dim::size(n).ok()).collect() })
}

/// Row and position in the row of each value, from the row numbers, and the length of the longest row.
fn numbered(cx: &mut LowerCtx, numbers: InstId, rows: Dim) -> Result<(InstId, InstId, InstId)> {
    let row = cx.b.convert(numbers, DType::S32);
    let n = cx.b.dims(row)[0];
    let (own, to) = (cx.b.iota(DType::S32, &[n], 0), cx.b.reshape(row, &dims![n, 1]));
    let behind = cx.b.full(DType::S32, &[rows], f64::from(i32::MAX));
    let firsts = scatter(cx, behind, to, own, Some(ScalarOp::Minimum))?;
    let first = gather_along_axis(cx, firsts, row, 0, 0)?;
    let at = cx.b.sub(own, first);
    let none = cx.b.scalar(DType::S32, -1.0);
    let last = cx.b.reduce(at, none, ScalarOp::Maximum, &[0]);
    let one = cx.b.scalar(DType::S32, 1.0);
    let length = cx.b.add(last, one);
    Ok((row, at, length))
}

/// Shape function: a size for each level, followed by the sizes of a value; unknown where `shape` does not give it.
fn dense_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let types = match cx.node.attr("row_partition_types") {
        Some(Attr::Strs(all)) => all.iter().map(|t| t.to_vec()).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    let levels = types.iter().filter(|t| &t[..] != b"FIRST_DIM_SIZE").count();
    let shape = cx.partial_ints(0);
    let Some(inner) = cx.ranked_dims(1)?.filter(|dims| !dims.is_empty()) else {
        let dims = cx.unranked_from(1);
        return cx.one_output_like(1, dims);
    };
    let mut dims = Vec::with_capacity(levels + inner.len());
    for k in 0..=levels {
        let told =
            shape.as_ref().and_then(|s| s.get(k).copied()).filter(|n| !matches!(n, InferredInt::Known(n) if *n < 0));
        let told = told
            .and_then(InferredInt::as_dim)
            .filter(|_| cx.ranked_dims(0).is_ok_and(|d| d.is_some_and(|d| !d.is_empty())));
        let made = told.unwrap_or_else(|| cx.fresh_dim(UnknownReason::Data));
        dims.push(made);
    }
    dims.extend(&inner[1..]);
    cx.one_output_like(1, dims)
}
