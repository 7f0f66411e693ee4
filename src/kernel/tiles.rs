//! Blocks of sums that a processor makes by multiplying tiles of memory.
use super::{BufId, Index, VarId};

/// Sums of products of bfloat16, each round of the loops by one instruction a tile: as [`crate::target::tiles::sum`] has it, from
/// zero on or from what is there. A tile is at most 16 rows of the left side by at most 32 terms, or half as many pairs of those
/// by 16 columns of the right side; the sums of all of them are kept from the first round to the last.
#[derive(Clone, Debug)]
pub struct TileSums {
    /// The variables of its loops, outermost first.
    pub loops: Vec<VarId>,
    /// Terms of a round, in pairs.
    pub terms: u64,
    /// The left side: terms beside one another.
    pub left: BufId,
    /// Tiles of the left side, from top to bottom.
    pub rows: Vec<TileRows>,
    /// The right side: for each pair of terms both numbers of a column, then those of the next.
    pub right: BufId,
    /// The first number of a round.
    pub first: Index,
    /// How far numbers of a pair of terms are from those of the next.
    pub stride: u64,
    /// How many tiles of the right side lie beside one another.
    pub across: u64,
    /// Where the sums go, f32, row after row.
    pub to: BufId,
    /// The first of them.
    pub at: Index,
    /// Whether they are added to what is there.
    pub adds: bool,
}

/// Rows of the left side that are one tile.
#[derive(Clone, Debug)]
pub struct TileRows {
    /// The first term of the first row.
    pub first: Index,
    /// How far a row is from the next.
    pub stride: u64,
    /// How many there are.
    pub count: u64,
}

/// Elements of a buffer that a statement touches at once.
#[derive(Clone, Copy, Debug)]
pub struct Span<'k> {
    /// The buffer.
    pub buf: BufId,
    /// The first element.
    pub first: &'k Index,
    /// How far behind that the last one is.
    pub last: u64,
    /// How many there are.
    pub count: u64,
}

impl<'k> Span<'k> {
    /// One element.
    pub fn one(buf: BufId, first: &'k Index) -> Span<'k> {
        Span { buf, first, last: 0, count: 1 }
    }
}

impl TileSums {
    /// The elements that one iteration reads.
    pub fn reads(&self) -> Vec<Span<'_>> {
        let of_rows = |r: &'_ TileRows| (r.count.saturating_sub(1) * r.stride + self.terms - 1, r.count * self.terms);
        let rows = self.rows.iter().map(|r| (self.left, &r.first, of_rows(r)));
        let pairs = self.terms / 2;
        let of_right = (pairs.saturating_sub(1) * self.stride + 2 * self.columns() - 1, self.terms * self.columns());
        let right = (self.right, &self.first, of_right);
        let all = rows.chain([right]).map(|(buf, first, (last, count))| Span { buf, first, last, count });
        all.chain(self.adds.then(|| self.writes())).collect()
    }

    /// The elements that the last iteration writes.
    pub fn writes(&self) -> Span<'_> {
        let count = self.rows() * self.columns();
        Span { buf: self.to, first: &self.at, last: count - 1, count }
    }

    /// Rows of the sums.
    pub fn rows(&self) -> u64 {
        self.rows.iter().map(|r| r.count).sum()
    }

    /// Columns of the sums.
    pub fn columns(&self) -> u64 {
        self.across * crate::target::tiles::COLUMNS
    }
}
