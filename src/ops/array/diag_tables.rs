//! Index tables that map between matrices and packed diagonals: constants, or computed by the module if sizes are open.
use super::diag::DiagonalBand;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::math::special::compare_scalar;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

/// Index table of a gather that packs or unpacks diagonals.
pub(super) struct DiagonalIndexTable {
    /// Source position of each element, `s32[n]`.
    pub places: InstId,
    /// Mask of the elements that have a source; `None` if all do.
    pub there: Option<InstId>,
}

impl DiagonalIndexTable {
    /// Table that unpacks: for each element of a matrix, its position among the packed diagonals.
    pub fn for_unpacking(
        b: &mut Builder,
        band: DiagonalBand,
        rows: Dim,
        columns: Dim,
        longest: Dim,
    ) -> DiagonalIndexTable {
        if !rows.varies() && !columns.varies() {
            return DiagonalIndexTable::known(b, &band.unpacking_table(rows, columns, longest));
        }
        let dims = [rows, columns];
        let (i, j) = (b.iota(DType::S32, &dims, 0), b.iota(DType::S32, &dims, 1));
        let d = b.sub(j, i);
        let (above, below) = (
            compare_scalar(b, Direction::Ge, d, band.low as f64),
            compare_scalar(b, Direction::Le, d, band.high as f64),
        );
        let there = b.elementwise(ScalarOp::And, &[above, below]);
        let row = row_of(b, band, d);
        let size = b.full(DType::S32, &dims, longest);
        let before = b.mul(row, size);
        let along = b.min(i, j);
        let offset = offset(b, band, d, rows, columns, longest);
        let at = b.add(along, offset);
        let at = b.add(at, before);
        DiagonalIndexTable::computed(b, at, Some(there))
    }

    /// Table that packs: for each position among the packed diagonals, its element of the matrix.
    pub fn for_packing(
        b: &mut Builder,
        band: DiagonalBand,
        rows: Dim,
        columns: Dim,
        longest: Dim,
    ) -> DiagonalIndexTable {
        if !rows.varies() && !columns.varies() {
            return DiagonalIndexTable::known(b, &band.packing_table(rows, columns, longest));
        }
        let dims = [band.count(), longest];
        let (row, place) = (b.iota(DType::S32, &dims, 0), b.iota(DType::S32, &dims, 1));
        let d = row_of(b, band, row);
        let offset = offset(b, band, d, rows, columns, longest);
        let n = b.sub(place, offset);
        let zero = b.full(DType::S32, &dims, 0.0);
        let (left, right) = (b.min(d, zero), b.max(d, zero));
        let (i, j) = (b.sub(n, left), b.add(n, right));
        let by = b.full(DType::S32, &dims, columns);
        let line = b.mul(i, by);
        let at = b.add(line, j);
        // A single diagonal has no padding.
        let there = (band.count() > 1).then(|| {
            let length = length(b, d, rows, columns);
            let (first, last) = (b.compare(Direction::Ge, n, zero), b.compare(Direction::Lt, n, length));
            b.elementwise(ScalarOp::And, &[first, last])
        });
        DiagonalIndexTable::computed(b, at, there)
    }

    fn known(b: &mut Builder, table: &[Option<i32>]) -> DiagonalIndexTable {
        let n = Dim::from(table.len());
        let places: Vec<i32> = table.iter().map(|p| p.unwrap_or(0)).collect();
        let there: Vec<bool> = table.iter().map(Option::is_some).collect();
        let places = b.constant(Tensor::of(&[n.guarded_count()], &places));
        let all = there.iter().all(|&t| t);
        DiagonalIndexTable {
            places,
            there: (!all).then(|| b.constant(Tensor::from_bools(&[n.guarded_count()], &there))),
        }
    }

    fn computed(b: &mut Builder, at: InstId, there: Option<InstId>) -> DiagonalIndexTable {
        let n = [b.dims(at).iter().product()];
        let zero = b.full_like(at, 0.0);
        let at = there.map_or(at, |there| b.select(there, at, zero));
        DiagonalIndexTable { places: b.reshape(at, &n), there: there.map(|there| b.reshape(there, &n)) }
    }
}

/// Packed row of diagonal `d`, and also the diagonal of packed row `d`: the map is its own inverse.
fn row_of(b: &mut Builder, band: DiagonalBand, d: InstId) -> InstId {
    let high = b.full_like(d, band.high as f64);
    b.sub(high, d)
}

/// Lengths of the diagonals `d`.
fn length(b: &mut Builder, d: InstId, rows: Dim, columns: Dim) -> InstId {
    let (zero, rows, columns) = (b.full_like(d, 0.0), b.full_like(d, rows), b.full_like(d, columns));
    let (left, right) = (b.min(d, zero), b.max(d, zero));
    let (down, across) = (b.add(rows, left), b.sub(columns, right));
    let shorter = b.min(down, across);
    b.max(shorter, zero)
}

/// Offsets of the diagonals `d` in their packed rows of `longest` elements.
fn offset(b: &mut Builder, band: DiagonalBand, d: InstId, rows: Dim, columns: Dim, longest: Dim) -> InstId {
    let zero = b.full_like(d, 0.0);
    if band.left_above && band.left_below {
        return zero;
    }
    let (own, longest) = (length(b, d, rows, columns), b.full_like(d, longest));
    let behind = b.sub(longest, own);
    let mut offset = behind;
    for (left, direction) in [(band.left_above, Direction::Ge), (band.left_below, Direction::Le)] {
        if left {
            let is_left = b.compare(direction, d, zero);
            offset = b.select(is_left, zero, offset);
        }
    }
    offset
}
