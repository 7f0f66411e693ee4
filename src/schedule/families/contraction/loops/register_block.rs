//! A part of a contraction whose sums stay in registers: where it lies, its vectors of columns.
use crate::schedule::families::contraction::loops::pack::PerColumn;
use crate::schedule::families::contraction::loops::prefetch_panel::PanelPrefetch;
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::families::convolution::loops::tap_rows::TapsOfRow;
use crate::schedule::loops::prelude::*;

/// Where one tile lies.
#[derive(Clone, Debug, Default)]
pub struct RegisterBlock {
    /// The first element of the left side.
    pub a: Index,
    /// Each row: how far its left side is from the first, and its number.
    pub rows: Vec<(i64, Index)>,
    /// The first element of the panel.
    pub b: Index,
    /// The panels.
    pub packed: BufId,
    /// How the numbers of a panel lie.
    pub order: PanelOrder,
    /// How far a term of a panel is from the next: the columns of a panel that is packed.
    pub term: u64,
    /// Whether the right side is not packed: terms are as far apart as the loops of the sum have them.
    pub is_in_place: bool,
    /// How far a panel is from the next, where the tile has several.
    pub panel: u64,
    /// The number of each column that its sums are combined with, and the offset there of the first column of the tile.
    pub per_column: Option<(PerColumn, Index)>,
    /// The number of the first column.
    pub column: Index,
    /// Columns that the result has here.
    pub columns: u64,
    /// The prefetches that are interleaved with the sums of the tile.
    pub ahead: Option<PanelPrefetch>,
    /// The number of the batch.
    pub batch: Index,
    /// Columns of a vector.
    pub lanes: u64,
    /// How far elements are stored from where the layout of the result has them.
    pub moved: Index,
    /// Where the first row is stored and how far the next is from it, where that is not in the layout of the result.
    pub near: Option<(Index, u64)>,
    /// Whether the epilogue is so long that it stands there once, in loops over the tile.
    pub looped: bool,
    /// The rows of taps that read the operand, where those on the padding are left out.
    pub inside: Option<TapsOfRow>,
}

impl RegisterBlock {
    /// How far the number of a column is from that of the first in the same term, where they lie plainly.
    pub fn of_column(&self, column: u64) -> u64 {
        if self.is_in_place { column } else { column / self.term * self.panel + column % self.term }
    }
}

/// Rows of sums on the stack.
#[derive(Clone, Copy, Debug)]
pub struct StackRows {
    /// The buffer that holds them.
    pub buf: BufId,
    /// Elements from a row to the next.
    pub width: u64,
}

/// Vectors of one width: those of all columns, or where half a vector is enough for what is left, those before and that one.
pub(in crate::schedule) struct Band {
    /// The first column.
    pub first: u64,
    /// Vectors of a row.
    pub count: u64,
    pub lanes: u64,
    pub lane: VarId,
    /// A sum for each row and vector.
    pub acc: RegId,
}

impl Band {
    /// Where vector `v` of row `r` is in `acc`.
    pub(in crate::schedule) fn slot(&self, r: usize, v: u64) -> Index {
        Index::constant((r as u64 * self.count + v) as i64)
    }

    /// Vectors that are full of the first `columns` columns.
    pub(in crate::schedule) fn whole(&self, columns: u64) -> u64 {
        (columns.saturating_sub(self.first) / self.lanes).min(self.count)
    }
}

/// Statements in the vector loops of their bands.
pub(in crate::schedule) fn in_vectors(bands: &[Band], all: Vec<(usize, Stmt)>) -> Vec<Stmt> {
    let mut out: Vec<(usize, Vec<Stmt>)> = Vec::new();
    for (band, stmt) in all {
        match out.last_mut() {
            Some((last, body)) if *last == band => body.push(stmt),
            _ => out.push((band, vec![stmt])),
        }
    }
    out.into_iter().map(|(band, body)| each(bands[band].lane, LoopKind::Vector, body)).collect()
}
