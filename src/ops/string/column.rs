//! Feature columns of crosses: matrices, sparse tensors or ragged rows, as one list of features with the start of each row.
use super::text::{Text, is_text, text_input};
use crate::diag::{Error, Result};
use crate::dims;
use crate::hlo::symbolic::InstId;
use crate::ops::ragged::{row_count, row_splits};
use crate::ops::{LowerCtx, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;
use crate::tensor::DType;

/// Features of a column, as a list.
#[derive(Clone, Debug)]
pub enum FeatureList {
    /// Integer features, `s64[n]`.
    Integers(InstId),
    /// String features, `[n]`.
    Strings(Text),
}

/// Form in which a column was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnInput {
    /// Features given as a dense matrix.
    Dense,
    /// Features given as sparse elements with indices, or as ragged rows.
    Sparse,
}

/// Feature column: a list of features for each row.
#[derive(Clone, Debug)]
pub struct Column {
    /// Features of the column, row by row.
    pub features: FeatureList,
    /// Form in which the column was given.
    pub source: ColumnInput,
    /// Number of features of each row, `s32[rows]`.
    pub counts: InstId,
    /// Start of each row in `features`, `s32[rows]`.
    pub starts: InstId,
    /// Upper bound of the features of a row.
    pub most: u64,
    /// Total number of features.
    pub total: u64,
}

/// Features in input `i`, integers or strings, as a list.
fn features(cx: &mut LowerCtx, i: usize) -> Result<FeatureList> {
    if cx.args.get(i).is_some_and(|arg| is_text(arg) || matches!(arg, Value::Unavailable(_))) {
        let text = text_input(cx, i)?;
        let count = cx.b.dims(text.length).iter().product();
        let parts = text.arrays().into_iter().map(|x| cx.b.reshape(x, &[count])).collect();
        let flat = Text::from_arrays(parts, text.most);
        return flat.map(FeatureList::Strings).ok_or_else(|| Error::internal("lower", "no text"));
    }
    let x = cx.arg(i)?;
    let count = cx.b.dims(x).iter().product();
    let flat = cx.b.reshape(x, &[count]);
    Ok(FeatureList::Integers(cx.b.convert(flat, DType::S64)))
}

/// Column from a matrix in input `i`.
///
/// # Errors
/// `ShapeMismatch` if the input is not a matrix; those of [`text_input`].
pub fn dense_column(cx: &mut LowerCtx, i: usize) -> Result<Column> {
    let [rows, each] = cx.dims(i)?[..] else { return Err(cx.shape_mismatch("a dense column is a matrix")) };
    let counts = cx.b.full(DType::S32, &[rows], each);
    let starts = cx.b.iota(DType::S32, &[rows], 0);
    let starts = cx.b.mul(starts, counts);
    let features = features(cx, i)?;
    Ok(Column {
        features,
        source: ColumnInput::Dense,
        counts,
        starts,
        most: each.guarded_count(),
        total: (rows * each).guarded_count(),
    })
}

/// Sizes of a sparse column.
pub struct SparseColumnDims {
    /// Number of rows.
    pub rows: u64,
    /// Dense shape of the column, `s64[2]`, if it bounds the features of a row.
    pub shape: Option<InstId>,
}

/// Column from sparse elements with ordered indices.
///
/// # Errors
/// `ShapeMismatch` if the indices are not pairs; those of [`text_input`].
pub fn sparse_column(cx: &mut LowerCtx, indices: usize, values: usize, batch: &SparseColumnDims) -> Result<Column> {
    let SparseColumnDims { rows, shape } = *batch;
    let places = cx.arg(indices)?;
    let n = match cx.b.dims(places)[..] {
        [n, two] if two == 2 => n,
        _ => return Err(cx.shape_mismatch("the indices of a sparse column are pairs")),
    };
    let row = cx.b.slice_axis(places, 1, Dim::from(0), Dim::from(1));
    let row = cx.b.convert(row, DType::S32);
    let (none, ones) = (cx.b.full(DType::S32, &dims![rows], 0.0), cx.b.full(DType::S32, &[n], 1.0));
    let counts = crate::ops::array::scatter(cx, none, row, ones, Some(ScalarOp::Add))?;
    let (ends, _) = row_splits(cx, counts);
    let starts = cx.b.slice_axis(ends, 0, Dim::from(0), Dim::from(rows));
    let features = features(cx, values)?;
    let wide = shape.map(|shape| {
        let one = cx.b.slice_axis(shape, 0, Dim::from(1), Dim::from(2));
        cx.b.reshape(one, &[])
    });
    let wide = wide.and_then(|one| crate::interp::constant_value(cx.b, one)?.get_i64(0));
    let most = wide.and_then(|n| u64::try_from(n).ok()).map_or(n, |wide| Dim::from(wide.min(n.guarded_count())));
    Ok(Column {
        features,
        source: ColumnInput::Sparse,
        counts,
        starts,
        most: most.guarded_count(),
        total: n.guarded_count(),
    })
}

/// Column from ragged rows.
///
/// # Errors
/// `ShapeMismatch` if the splits are not a list; those of [`text_input`].
pub fn ragged_column(cx: &mut LowerCtx, values: usize, splits: usize) -> Result<Column> {
    let splits = cx.arg(splits)?;
    let n = row_count(cx, splits).ok_or_else(|| cx.shape_mismatch("splits that are no list"))?;
    let splits = cx.b.convert(splits, DType::S32);
    let (starts, ends) = (cx.b.slice_axis(splits, 0, Dim::from(0), n), cx.b.slice_axis(splits, 0, Dim::from(1), n + 1));
    let counts = cx.b.sub(ends, starts);
    let total = cx.dims(values)?.first().copied().unwrap_or(Dim::from(0));
    let features = features(cx, values)?;
    Ok(Column {
        features,
        source: ColumnInput::Sparse,
        counts,
        starts,
        most: total.guarded_count(),
        total: total.guarded_count(),
    })
}
