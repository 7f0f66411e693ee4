//! Loop bounds for windows that leave out rows of taps on the padding (`families/convolution/recipe/tap_rows.rs`).
use crate::kernel::{Expr, Index, Kernel};
use crate::schedule::families::convolution::recipe::tap_rows::TapRows;

impl TapRows {
    /// The map for rows that are `apart` elements from one another, and the offset of the first row from the one that the first tap would
    /// read.
    pub(in crate::schedule) fn lying(self, apart: i64) -> (TapRows, i64) {
        (TapRows { apart, ..self }, -self.first * apart)
    }

    /// Where the taps of a row of results begin.
    pub(in crate::schedule) fn of_row(&self, row: &Index) -> TapsOfRow {
        TapsOfRow { first: row.scale(self.steps[0]).offset(self.first), inside: *self }
    }
}

/// Where the taps of one row of results lie.
#[derive(Clone, Debug)]
pub struct TapsOfRow {
    /// The row that the first one reads.
    first: Index,
    inside: TapRows,
}

impl TapsOfRow {
    /// Whether a tap reads a row of the operand, and how far that is from the first one.
    pub(in crate::schedule) fn read(&self, k: &Kernel, tap: &Index) -> (Expr, Index) {
        let TapRows { steps, rows, apart, .. } = self.inside;
        let row = self.first.add(&tap.scale(steps[1]));
        let held = row.limit(0, rows - 1, &k.vars);
        (Expr::Within(row, 0, rows), held.scale(apart))
    }
}
