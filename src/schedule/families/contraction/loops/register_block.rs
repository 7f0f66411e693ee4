//! A part of a contraction whose sums stay in registers: where it lies, its vectors of columns.
use crate::schedule::families::contraction::loops::pack::ColumnConstants;
use crate::schedule::families::contraction::loops::prefetch_panel::PanelPrefetch;
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::families::convolution::loops::tap_rows::RowTaps;
use crate::schedule::loops::prelude::*;

/// A register tile to emit: its rows and columns, and the positions of its operands and results in memory.
#[derive(Clone, Debug, Default)]
pub struct RegisterBlock {
    /// Index of the first element of the left side.
    pub a: Index,
    /// For each row, the offset of its left side from that of the first row, in elements, and its row number.
    pub rows: Vec<(i64, Index)>,
    /// Index of the first element of the panel.
    pub b: Index,
    /// Buffer of the panels.
    pub packed: BufId,
    /// Order of elements in a panel.
    pub order: PanelOrder,
    /// Distance of terms in a panel: the columns of a packed panel.
    pub term: u64,
    /// Whether the right side is read in place, not packed: its terms have the distances of the contracted loops.
    pub is_in_place: bool,
    /// Distance of panels in elements, if the tile reads several.
    pub panel: u64,
    /// Constants that are applied to the sums of each column, and the offset to add to a column's number to index them.
    pub per_column: Option<(ColumnConstants, Index)>,
    /// The number of the first column.
    pub column: Index,
    /// Number of columns of the result that the tile covers.
    pub columns: u64,
    /// The prefetches interleaved with the sums of the tile.
    pub ahead: Option<PanelPrefetch>,
    /// The number of the batch.
    pub batch: Index,
    /// Columns per vector.
    pub lanes: u64,
    /// Offset in elements that is added to the index of each result in its layout.
    pub moved: Index,
    /// Index of the first row and distance of rows, if the result is stored in local memory and not in its layout.
    pub near: Option<(Index, u64)>,
    /// Whether the epilogue is so long that it is emitted once, in loops over the tile.
    pub looped: bool,
    /// The taps of this row that read the operand, if taps on the padding are left out.
    pub inside: Option<RowTaps>,
}

impl RegisterBlock {
    /// Offset in elements of column `column` from the first column of the same term, if panels are in plain order.
    pub fn column_offset(&self, column: u64) -> u64 {
        if self.is_in_place { column } else { column / self.term * self.panel + column % self.term }
    }

    /// Whether the row numbers of the tile are consecutive.
    pub fn is_in_a_row(&self) -> bool {
        let Some((_, first)) = self.rows.first() else { return true };
        self.rows.iter().enumerate().all(|(i, (_, row))| *row == first.offset(i as i64))
    }
}

/// Rows of sums on the stack.
#[derive(Clone, Copy, Debug)]
pub struct StackRows {
    /// The buffer that holds the rows.
    pub buf: BufId,
    /// Distance of rows in elements.
    pub width: u64,
}

/// Vectors of equal width in a register tile: those of all columns, or separately the full vectors and a half vector for the remainder.
pub(in crate::schedule) struct EqualWidthVectors {
    /// The first column.
    pub first: u64,
    /// Vectors per row.
    pub count: u64,
    pub lanes: u64,
    pub lane: VarId,
    /// The accumulators: one for each row and vector.
    pub acc: RegId,
}

impl EqualWidthVectors {
    /// The index in `acc` of vector `v` of row `r`.
    pub(in crate::schedule) fn accumulator_index(&self, r: usize, v: u64) -> Index {
        Index::constant((r as u64 * self.count + v) as i64)
    }

    /// Number of vectors that the first `columns` columns fill completely.
    pub(in crate::schedule) fn full_vectors(&self, columns: u64) -> u64 {
        (columns.saturating_sub(self.first) / self.lanes).min(self.count)
    }
}

/// Wraps statements in the vector loops of their bands.
pub(in crate::schedule) fn vectorize_bands(bands: &[EqualWidthVectors], all: Vec<(usize, Stmt)>) -> Vec<Stmt> {
    let mut out: Vec<(usize, Vec<Stmt>)> = Vec::new();
    for (band, stmt) in all {
        match out.last_mut() {
            Some((last, body)) if *last == band => body.push(stmt),
            _ => out.push((band, vec![stmt])),
        }
    }
    out.into_iter().map(|(band, body)| for_loop(bands[band].lane, LoopKind::Vector, body)).collect()
}
