//! Diagonals and bands of matrices. All positions are known at compile time, so that each op is one gather with a constant
//! index table. With open sizes the module computes the table (`diag_tables.rs`).
use super::diag_tables::DiagonalIndexTable;
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::ShapeCtx;
use crate::ops::fact::Fact;
use crate::ops::math::special::compare_scalar;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::product;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Diag", "diagonal -> output", diag).shape(diag_shape),
    op("DiagPart", "input -> diagonal", diag_part).shape(diag_part_shape),
    op("MatrixDiag", "diagonal -> output", |cx| matrix_diag(cx, DiagonalBand::MAIN, [-1, -1], None))
        .shape(matrix_diag_shape),
    op("MatrixDiagV2", "diagonal k num_rows num_cols padding_value -> output", matrix_diag_band)
        .constant_inputs(&[1, 2, 3]),
    op("MatrixDiagV3", "diagonal k num_rows num_cols padding_value -> output", matrix_diag_band)
        .constant_inputs(&[1, 2, 3]),
    op("MatrixDiagPart", "input -> diagonal", |cx| matrix_diag_part(cx, DiagonalBand::MAIN, None))
        .shape(matrix_diag_part_shape),
    op("MatrixDiagPartV2", "input k padding_value -> diagonal", matrix_diag_part_band).constant_inputs(&[1]),
    op("MatrixDiagPartV3", "input k padding_value -> diagonal", matrix_diag_part_band).constant_inputs(&[1]),
    op("MatrixSetDiag", "input diagonal -> output", |cx| matrix_set_diag(cx, DiagonalBand::MAIN))
        .shape(like_first_input),
    op("MatrixSetDiagV2", "input diagonal k -> output", matrix_set_diag_band)
        .shape(like_first_input)
        .constant_inputs(&[2]),
    op("MatrixSetDiagV3", "input diagonal k -> output", matrix_set_diag_band)
        .shape(like_first_input)
        .constant_inputs(&[2]),
    op("MatrixBandPart", "input num_lower num_upper -> band", matrix_band_part).shape(like_first_input),
    // Names from before TensorFlow 1.0.
    op("BatchMatrixDiag", "diagonal -> output", |cx| matrix_diag(cx, DiagonalBand::MAIN, [-1, -1], None))
        .shape(matrix_diag_shape),
    op("BatchMatrixDiagPart", "input -> diagonal", |cx| matrix_diag_part(cx, DiagonalBand::MAIN, None))
        .shape(matrix_diag_part_shape),
    op("BatchMatrixSetDiag", "input diagonal -> output", |cx| matrix_set_diag(cx, DiagonalBand::MAIN))
        .shape(like_first_input),
    op("BatchMatrixBandPart", "input num_lower num_upper -> band", matrix_band_part).shape(like_first_input),
];

/// Band of diagonals `low..=high` (0 is the main diagonal, positive ones are above it), and the side to which short diagonals
/// are aligned in the packed form.
#[derive(Clone, Copy)]
pub(super) struct DiagonalBand {
    pub low: i64,
    pub high: i64,
    pub left_above: bool,
    pub left_below: bool,
}

impl DiagonalBand {
    const MAIN: DiagonalBand = DiagonalBand { low: 0, high: 0, left_above: true, left_below: true };

    /// Number of diagonals.
    pub fn count(&self) -> Dim {
        Dim::from(self.high - self.low + 1)
    }
    /// Length of diagonal `d` of a matrix.
    fn length(d: i64, rows: Dim, columns: Dim) -> Dim {
        (rows + d.min(0)).min(columns - d.max(0)).max(0)
    }
    /// Length of the longest diagonal of the band.
    fn longest(&self, rows: Dim, columns: Dim) -> Dim {
        (rows + self.high.min(0)).min(columns - self.low.max(0)).max(0)
    }
    /// Offset of diagonal `d` in its packed row of `longest` elements.
    fn offset(&self, d: i64, rows: Dim, columns: Dim, longest: Dim) -> i64 {
        let left = (d >= 0 && self.left_above) || (d <= 0 && self.left_below);
        if left { 0 } else { (longest - Self::length(d, rows, columns)).guarded_value() }
    }
    /// For each element of the matrix, its position among the packed diagonals; `None` outside the band.
    pub fn unpacking_table(&self, rows: Dim, columns: Dim, longest: Dim) -> Vec<Option<i32>> {
        let mut table = Vec::with_capacity((rows * columns).guarded_index());
        for i in 0..rows.guarded_value() {
            for j in 0..columns.guarded_value() {
                let d = j - i;
                let inside = (self.low..=self.high).contains(&d);
                let at =
                    || (self.high - d) * longest.guarded_value() + i.min(j) + self.offset(d, rows, columns, longest);
                table.push(if inside { i32::try_from(at()).ok() } else { None });
            }
        }
        table
    }
    /// For each position among the packed diagonals, its element of the matrix; `None` for padding.
    pub fn packing_table(&self, rows: Dim, columns: Dim, longest: Dim) -> Vec<Option<i32>> {
        let mut table = Vec::with_capacity((self.count() * longest).guarded_index());
        for d in (self.low..=self.high).rev() {
            let (length, offset) =
                (Self::length(d, rows, columns).guarded_value(), self.offset(d, rows, columns, longest));
            for p in 0..longest.guarded_value() {
                let n = p - offset;
                let (i, j) = (n - d.min(0), n + d.max(0));
                let inside = (0..length).contains(&n);
                table.push(if inside { i32::try_from(i * columns.guarded_value() + j).ok() } else { None });
            }
        }
        table
    }
}

/// Band given by input `i` and attribute `align`.
fn band(cx: &LowerCtx, i: usize) -> Result<DiagonalBand> {
    let k = cx.constant_ints(i)?;
    let (low, high) = match k[..] {
        [k] => (k, k),
        [low, high] => (low, high),
        _ => return Err(cx.shape_mismatch(format!("diagonals {k:?}; one or two numbers are needed"))),
    };
    if low > high || low.abs() > 1 << 30 || high.abs() > 1 << 30 {
        return Err(cx.shape_mismatch(format!("no diagonals from {low} to {high}")));
    }
    let v3 = cx.node.op.ends_with("V3");
    let align = cx.node.str("align").unwrap_or(if v3 { "RIGHT_LEFT" } else { "LEFT_LEFT" });
    let (above, below) = align.split_once('_').unwrap_or((align, align));
    Ok(DiagonalBand { low, high, left_above: above == "LEFT", left_below: below == "LEFT" })
}

/// Batch dimensions, rows and columns of a batch of matrices.
fn matrix(cx: &LowerCtx, dims: &[Dim]) -> Result<(Vec<Dim>, Dim, Dim)> {
    match dims {
        [batch @ .., rows, columns] => Ok((batch.to_vec(), *rows, *columns)),
        _ => Err(cx.shape_mismatch(format!("{dims:?} is no matrix"))),
    }
}

fn check_table(cx: &LowerCtx, rows: Dim, columns: Dim) -> Result<()> {
    match rows.checked_mul(columns) {
        Some(n) if n <= 1 << 26 => Ok(()),
        _ => Err(cx.unsupported_case(format!("a matrix of {rows} by {columns}; up to 2^26 elements are supported"))),
    }
}

/// Elements of `x`, `[batch, n]`, at the positions that the table gives, and elements of `other` where it gives none.
fn look_up(cx: &mut LowerCtx, x: InstId, table: &DiagonalIndexTable, other: InstId) -> Result<InstId> {
    let (batch, n) = (cx.b.dims(x)[0], cx.b.dims(table.places)[0]);
    if [batch, n, cx.b.dims(x)[1]].iter().any(|size| size.is_zero()) {
        return Ok(cx.b.broadcast_to(other, &[batch, n]));
    }
    let found = super::gather::gather_along_axis(cx, x, table.places, 1, 0)?;
    Ok(match table.there {
        Some(there) => cx.b.select(there, found, other),
        None => found,
    })
}

fn padding(cx: &mut LowerCtx, i: Option<usize>, like: InstId) -> Result<InstId> {
    match i {
        Some(i) => {
            let value = cx.arg(i)?;
            Ok(cx.b.reshape(value, &[]))
        }
        None => Ok(cx.b.scalar(cx.b.dtype(like), 0.0)),
    }
}

fn flat(cx: &mut LowerCtx, x: InstId, batch: &[Dim], n: Dim) -> InstId {
    let count: Dim = batch.iter().product();
    cx.b.reshape(x, &dims![count, n])
}

fn matrix_diag_band(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (band, rows, columns) = (band(cx, 1)?, cx.constant_int(2)?, cx.constant_int(3)?);
    matrix_diag(cx, band, [rows, columns], Some(4))
}

fn matrix_diag(cx: &mut LowerCtx, band: DiagonalBand, sizes: [i64; 2], pad: Option<usize>) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let packed = if band.count() > 1 { 2 } else { 1 };
    if dims.len() < packed || (packed == 2 && dims[dims.len() - 2] != band.count()) {
        return Err(cx.shape_mismatch(format!("{dims:?} does not hold {} diagonals", band.count())));
    }
    let (batch, longest) = (dims[..dims.len() - packed].to_vec(), dims[dims.len() - 1]);
    let least = [longest - band.high.min(0), longest + band.low.max(0)];
    let [rows, columns] = match sizes {
        [-1, -1] => [least[0].max(least[1]); 2],
        [-1, columns] => [least[0], Dim::from(columns)],
        [rows, -1] => [Dim::from(rows), least[1]],
        both => both.map(Dim::from),
    };
    if rows < least[0] || columns < least[1] || (rows != least[0] && columns != least[1]) {
        return Err(cx.shape_mismatch(format!("{rows} by {columns} does not fit diagonals of {longest}")));
    }
    check_table(cx, rows, columns)?;
    let pad = padding(cx, pad, x)?;
    let x = flat(cx, x, &batch, band.count() * longest);
    let table = DiagonalIndexTable::for_unpacking(cx.b, band, rows, columns, longest);
    let y = look_up(cx, x, &table, pad)?;
    let y = cx.b.reshape(y, &[&batch[..], &[rows, columns]].concat());
    cx.one_output(y)
}

fn matrix_diag_part_band(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let band = band(cx, 1)?;
    matrix_diag_part(cx, band, Some(2))
}

fn check_band(cx: &LowerCtx, band: DiagonalBand, rows: Dim, columns: Dim) -> Result<()> {
    let inside = |k: i64| k == 0 || (rows > -k && columns > k);
    if inside(band.low) && inside(band.high) {
        return Ok(());
    }
    Err(cx.shape_mismatch(format!("diagonals {} to {} of {rows} by {columns}", band.low, band.high)))
}

fn matrix_diag_part(cx: &mut LowerCtx, band: DiagonalBand, pad: Option<usize>) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let (batch, rows, columns) = matrix(cx, &cx.dims(0)?)?;
    check_band(cx, band, rows, columns)?;
    let longest = band.longest(rows, columns);
    check_table(cx, band.count(), longest)?;
    let pad = padding(cx, pad, x)?;
    let x = flat(cx, x, &batch, rows * columns);
    let table = DiagonalIndexTable::for_packing(cx.b, band, rows, columns, longest);
    let y = look_up(cx, x, &table, pad)?;
    let mut out = batch;
    if band.count() > 1 {
        out.push(band.count());
    }
    out.push(longest);
    let y = cx.b.reshape(y, &out);
    cx.one_output(y)
}

fn matrix_set_diag_band(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let band = band(cx, 2)?;
    matrix_set_diag(cx, band)
}

fn matrix_set_diag(cx: &mut LowerCtx, band: DiagonalBand) -> Result<Vec<Value>> {
    let (x, diagonal, dims) = (cx.arg(0)?, cx.arg(1)?, cx.dims(0)?);
    let (batch, rows, columns) = matrix(cx, &dims)?;
    check_band(cx, band, rows, columns)?;
    check_table(cx, rows, columns)?;
    let longest = band.longest(rows, columns);
    let mut want = batch.clone();
    if band.count() > 1 {
        want.push(band.count());
    }
    want.push(longest);
    if cx.b.dims(diagonal) != want {
        return Err(cx.shape_mismatch(format!("diagonals of {:?}, where {want:?} is needed", cx.b.dims(diagonal))));
    }
    let diagonal = flat(cx, diagonal, &batch, band.count() * longest);
    let x = flat(cx, x, &batch, rows * columns);
    let table = DiagonalIndexTable::for_unpacking(cx.b, band, rows, columns, longest);
    let y = look_up(cx, diagonal, &table, x)?;
    let y = cx.b.reshape(y, &dims);
    cx.one_output(y)
}

/// Lowers `Diag`: a tensor of twice the rank with the input on its diagonal and zeros elsewhere.
fn diag(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let n = product(&dims).ok_or_else(|| cx.shape_mismatch("the size overflows"))?;
    check_table(cx, n, n)?;
    let pad = padding(cx, None, x)?;
    let x = cx.b.reshape(x, &dims![1, n]);
    let table = DiagonalIndexTable::for_unpacking(cx.b, DiagonalBand::MAIN, n, n, n);
    let y = look_up(cx, x, &table, pad)?;
    let y = cx.b.reshape(y, &[&dims[..], &dims[..]].concat());
    cx.one_output(y)
}

fn diag_part(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let half = dims.len() / 2;
    if dims.len() % 2 != 0 || dims[..half] != dims[half..] {
        return Err(cx.shape_mismatch(format!("{dims:?} has no diagonal")));
    }
    let n = product(&dims[..half]).ok_or_else(|| cx.shape_mismatch("the size overflows"))?;
    let pad = padding(cx, None, x)?;
    let x = cx.b.reshape(x, &dims![1, n * n]);
    let table = DiagonalIndexTable::for_packing(cx.b, DiagonalBand::MAIN, n, n, n);
    let y = look_up(cx, x, &table, pad)?;
    let y = cx.b.reshape(y, &dims[..half]);
    cx.one_output(y)
}

/// Lowers `MatrixBandPart`: zeros outside of `num_lower` diagonals below and `num_upper` diagonals above the main one; a
/// negative number keeps all of that side.
fn matrix_band_part(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, lower, upper) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let (_, rows, columns) = matrix(cx, &cx.dims(0)?)?;
    let dims = [rows, columns];
    let (i, j) = (cx.b.iota(DType::S64, &dims, 0), cx.b.iota(DType::S64, &dims, 1));
    let below = cx.b.sub(i, j);
    let above = cx.b.sub(j, i);
    let mut kept = None;
    for (distance, limit) in [(below, lower), (above, upper)] {
        let limit = cx.b.convert(limit, DType::S64);
        let limit = cx.b.reshape(limit, &[]);
        let near = cx.b.compare(Direction::Le, distance, limit);
        let open = compare_scalar(cx.b, Direction::Lt, limit, 0.0);
        let side = cx.b.binary(ScalarOp::Or, near, open);
        kept = Some(kept.map_or(side, |other| cx.b.binary(ScalarOp::And, other, side)));
    }
    let zero = cx.b.full_like(x, 0.0);
    let y = match kept {
        Some(kept) => cx.b.select(kept, x, zero),
        None => x,
    };
    cx.one_output(y)
}

fn diag_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.ranked_dims(0)?.map(|d| d.repeat(2).into());
    let dims = dims.unwrap_or_else(|| cx.unranked_from(0));
    cx.one_output_like(0, dims)
}

fn diag_part_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.ranked_dims(0)?.map(|d| d[..d.len() / 2].to_vec().into());
    let dims = dims.unwrap_or_else(|| cx.unranked_from(0));
    cx.one_output_like(0, dims)
}

fn matrix_diag_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.ranked_dims(0)? {
        Some(mut dims) => {
            dims.extend(dims.last().copied());
            dims.into()
        }
        None => cx.unranked_from(0),
    };
    cx.one_output_like(0, dims)
}

fn matrix_diag_part_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.ranked_dims(0)?.as_deref() {
        Some([lead @ .., rows, columns]) => {
            let n = cx.symbols.min(cx.site, *rows, *columns);
            [lead, &[n]].concat().into()
        }
        Some(_) => return Err(cx.shape_mismatch("the input is no matrix")),
        None => cx.unranked_from(0),
    };
    cx.one_output_like(0, dims)
}
