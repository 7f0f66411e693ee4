//! Loop bounds for windows that leave out rows of taps on the padding (`families/convolution/recipe/tap_rows.rs`).
use crate::kernel::{Expr, Index, Kernel};
use crate::schedule::families::convolution::recipe::tap_rows::TapRows;

impl TapRows {
    /// The map for rows that are `apart` elements apart, and the offset of the first row from the one that the first tap would read.
    pub(in crate::schedule) fn for_row_stride(self, apart: i64) -> (TapRows, i64) {
        (TapRows { apart, ..self }, -self.first * apart)
    }

    /// The position of the taps of one row of results.
    pub(in crate::schedule) fn taps_of_row(&self, row: &Index) -> RowTaps {
        RowTaps { first: row.scale(self.steps[0]).offset(self.first), inside: *self }
    }
}

/// Position of the taps of one row of results.
#[derive(Clone, Debug)]
pub struct RowTaps {
    /// The row that the first tap reads.
    first: Index,
    inside: TapRows,
}

impl RowTaps {
    /// The condition that a tap reads a row of the operand, and the offset of that row from the first.
    pub(in crate::schedule) fn read_condition(&self, k: &Kernel, tap: &Index) -> (Expr, Index) {
        let TapRows { steps, rows, apart, .. } = self.inside;
        let row = self.first.add(&tap.scale(steps[1]));
        let held = row.clamp_to(0, rows - 1, &k.vars);
        (Expr::Within(row, 0, rows), held.scale(apart))
    }
}
