//! A contraction of which one side lies in memory of its kernel, a few rows at a time.
use crate::kernel::{Index, Kernel, VarId};
use crate::schedule::families::contraction::recipe::register_tile::Tile;

/// A contraction of which one side lies in memory of the kernel that holds a few rows of it, `stride` elements apart. All axes
/// of its rows are kept as they are.
pub struct LocalRows {
    /// The side of the contraction that lies in the kernel's memory, and the rows of it that do.
    pub held: LocalSide,
    /// How far a row in memory is from the next, in elements.
    pub stride: u64,
    /// The tile, chosen before.
    pub tile: Tile,
    /// The name of the product in tuned choices, where they have a say.
    pub form: Option<String>,
}

/// The part of a contraction that lies in memory of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalSide {
    /// Rows of pixels of one panel of columns that are made one after another, the tile along the last axis of rows: which
    /// of those in memory is being made.
    Pixels(VarId),
    /// A block of rows of the result: which tile of the block is being made.
    Result(VarId),
    /// A block of rows of the left side: which tile of the block is read.
    Left(VarId),
    /// One row of pixels of the left side, the tile along the last axis of rows.
    Row,
}

impl LocalRows {
    /// The first row of the tile among those in memory.
    pub fn first_row(&self) -> Index {
        match self.held {
            LocalSide::Pixels(slot) => Index::var(slot),
            LocalSide::Result(number) | LocalSide::Left(number) => Index::var(number).scale(self.tile.wide as i64),
            LocalSide::Row => Index::default(),
        }
    }
    /// The offset of the first row of the tile in the kernel's memory.
    pub fn first(&self) -> Index {
        self.first_row().scale(self.stride as i64)
    }
    /// Rows of a block, where pixels of a row are `width`.
    pub fn block_rows(&self, k: &Kernel, width: u64) -> Option<u64> {
        match self.held {
            LocalSide::Pixels(_) => None,
            LocalSide::Result(number) | LocalSide::Left(number) => Some(k.vars[number] * self.tile.wide),
            LocalSide::Row => Some(width),
        }
    }
}
