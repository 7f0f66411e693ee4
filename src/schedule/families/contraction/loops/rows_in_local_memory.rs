//! A contraction of which one side lies in memory of its kernel, a few rows at a time.
use crate::kernel::{Index, Kernel, VarId};
use crate::schedule::families::contraction::recipe::register_tile::RegisterTile;

/// A contraction one side of which lies in local memory of the kernel, which holds a few of its rows, `stride` elements apart. All axes
/// of the rows are kept separate.
pub struct RowsInLocalMemory {
    /// The side in local memory, and which rows of it are there.
    pub held: LocalOperand,
    /// Distance of rows in local memory, in elements.
    pub stride: u64,
    /// The register tile, which was chosen before.
    pub tile: RegisterTile,
    /// Key of the product in tuned choices, if they apply.
    pub form: Option<String>,
}

/// The side of a contraction, left or result, that lies in local memory of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalOperand {
    /// The rows of pixels of one panel of columns, computed one after another, with the tile along the last row axis. Holds the variable of
    /// the current row.
    Pixels(VarId),
    /// A block of rows of the result. Holds the variable of the current tile.
    Result(VarId),
    /// The left side: a block of rows; with the variable of the tile being read.
    Left(VarId),
    /// The left side: one row of pixels, the tile along the last row axis.
    Row,
}

impl RowsInLocalMemory {
    /// Number of the tile's first row, counted among the rows in local memory.
    pub fn first_row(&self) -> Index {
        match self.held {
            LocalOperand::Pixels(slot) => Index::var(slot),
            LocalOperand::Result(number) | LocalOperand::Left(number) => {
                Index::var(number).scale(self.tile.wide as i64)
            }
            LocalOperand::Row => Index::default(),
        }
    }
    /// Offset of the tile's first row in local memory, in elements.
    pub fn first_offset(&self) -> Index {
        self.first_row().scale(self.stride as i64)
    }
    /// Number of rows of a block, if a row has `width` pixels.
    pub fn rows_per_block(&self, k: &Kernel, width: u64) -> Option<u64> {
        match self.held {
            LocalOperand::Pixels(_) => None,
            LocalOperand::Result(number) | LocalOperand::Left(number) => Some(k.vars[number] * self.tile.wide),
            LocalOperand::Row => Some(width),
        }
    }
}
