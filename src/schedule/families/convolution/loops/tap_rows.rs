//! Loop bounds for windows that leave out rows of taps on the padding (`families/convolution/recipe/tap_rows.rs`).
use crate::kernel::{Expr, Index, Kernel};
use crate::schedule::families::convolution::recipe::tap_rows::TapRows;

impl TapRows {
    /// The map for an operand whose rows are `apart` elements apart, and the offset of the operand's first row from the row that the first
    /// tap would read.
    pub(in crate::schedule) fn with_row_stride(self, apart: i64) -> (TapRows, i64) {
        (TapRows { apart, ..self }, -self.first * apart)
    }

    /// The operand rows that the taps of result row `row` read.
    pub(in crate::schedule) fn taps_of_row(&self, row: &Index) -> RowTaps {
        RowTaps { first: row.scale(self.steps[0]).offset(self.first), inside: *self }
    }
}

/// Map from the taps of one row of results to the operand rows that they read.
#[derive(Clone, Debug)]
pub struct RowTaps {
    /// The operand row that the first tap reads; outside the operand if that tap is on the padding.
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
