//! Columns of features: matrices, sparse tensors and rows of unlike lengths, as one list with the places of each row.
use super::text::{Text, is_text, text};
use crate::diag::{Error, Result};
use crate::dims;
use crate::hlo::open::InstId;
use crate::ops::ragged::{rows, splits};
use crate::ops::{LowerCtx, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;
use crate::tensor::DType;

/// The features of a column.
#[derive(Clone, Debug)]
pub enum Features {
    /// Integers, `s64[n]`.
    Integers(InstId),
    /// Strings, `[n]`.
    Strings(Text),
}

/// How a column was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnInput {
    /// As a matrix.
    Dense,
    /// As elements with indices, or as rows of unlike lengths.
    Sparse,
}

/// A column: features of each row.
#[derive(Clone, Debug)]
pub struct Column {
    /// Features of the column, row by row.
    pub features: Features,
    /// How it was given.
    pub source: ColumnInput,
    /// How many features each row has, `s32[rows]`.
    pub counts: InstId,
    /// Where those of each row begin, `s32[rows]`.
    pub starts: InstId,
    /// No row has more.
    pub most: u64,
    /// How many there are in all.
    pub total: u64,
}

/// The features that input `i` is: integers or strings, as a list.
fn features(cx: &mut LowerCtx, i: usize) -> Result<Features> {
    if cx.args.get(i).is_some_and(|arg| is_text(arg) || matches!(arg, Value::Unavailable(_))) {
        let text = text(cx, i)?;
        let count = cx.b.dims(text.length).iter().product();
        let parts = text.parts().into_iter().map(|x| cx.b.reshape(x, &[count])).collect();
        let flat = Text::of_parts(parts, text.most);
        return flat.map(Features::Strings).ok_or_else(|| Error::internal("lower", "no text"));
    }
    let x = cx.arg(i)?;
    let count = cx.b.dims(x).iter().product();
    let flat = cx.b.reshape(x, &[count]);
    Ok(Features::Integers(cx.b.convert(flat, DType::S64)))
}

/// A column that is a matrix, a row for each row of the crosses.
///
/// # Errors
/// `ShapeMismatch` for what is no matrix; those of [`text`].
pub fn dense_column(cx: &mut LowerCtx, i: usize) -> Result<Column> {
    let [rows, each] = cx.dims(i)?[..] else { return Err(cx.mismatch("a dense column is a matrix")) };
    let counts = cx.b.full(DType::S32, &[rows], each);
    let starts = cx.b.iota(DType::S32, &[rows], 0);
    let starts = cx.b.mul(starts, counts);
    let features = features(cx, i)?;
    Ok(Column {
        features,
        source: ColumnInput::Dense,
        counts,
        starts,
        most: each.known(),
        total: (rows * each).known(),
    })
}

/// The sizes of a sparse column.
pub struct Batch {
    /// The number of its rows.
    pub rows: u64,
    /// Dense shape of the column, `s64[2]`, where it bounds the features of a row.
    pub shape: Option<InstId>,
}

/// A column of elements with indices, in order.
///
/// # Errors
/// `ShapeMismatch` for indices that are no pairs; those of [`text`].
pub fn sparse_column(cx: &mut LowerCtx, indices: usize, values: usize, batch: &Batch) -> Result<Column> {
    let Batch { rows, shape } = *batch;
    let places = cx.arg(indices)?;
    let n = match cx.b.dims(places)[..] {
        [n, two] if two == 2 => n,
        _ => return Err(cx.mismatch("the indices of a sparse column are pairs")),
    };
    let row = cx.b.slice_axis(places, 1, Dim::from(0), Dim::from(1));
    let row = cx.b.convert(row, DType::S32);
    let (none, ones) = (cx.b.full(DType::S32, &dims![rows], 0.0), cx.b.full(DType::S32, &[n], 1.0));
    let counts = crate::ops::array::scatter(cx, none, row, ones, Some(ScalarOp::Add))?;
    let (ends, _) = splits(cx, counts);
    let starts = cx.b.slice_axis(ends, 0, Dim::from(0), Dim::from(rows));
    let features = features(cx, values)?;
    let wide = shape.map(|shape| {
        let one = cx.b.slice_axis(shape, 0, Dim::from(1), Dim::from(2));
        cx.b.reshape(one, &[])
    });
    let wide = wide.and_then(|one| crate::interp::constant_value(cx.b, one)?.get_i64(0));
    let most = wide.and_then(|n| u64::try_from(n).ok()).map_or(n, |wide| Dim::from(wide.min(n.known())));
    Ok(Column { features, source: ColumnInput::Sparse, counts, starts, most: most.known(), total: n.known() })
}

/// A column of rows of unlike lengths.
///
/// # Errors
/// `ShapeMismatch` for splits that are no list; those of [`text`].
pub fn ragged_column(cx: &mut LowerCtx, values: usize, splits: usize) -> Result<Column> {
    let splits = cx.arg(splits)?;
    let n = rows(cx, splits).ok_or_else(|| cx.mismatch("splits that are no list"))?;
    let splits = cx.b.convert(splits, DType::S32);
    let (starts, ends) = (cx.b.slice_axis(splits, 0, Dim::from(0), n), cx.b.slice_axis(splits, 0, Dim::from(1), n + 1));
    let counts = cx.b.sub(ends, starts);
    let total = cx.dims(values)?.first().copied().unwrap_or(Dim::from(0));
    let features = features(cx, values)?;
    Ok(Column { features, source: ColumnInput::Sparse, counts, starts, most: total.known(), total: total.known() })
}
