//! Register tiles of portable arithmetic, divided into blocks that fit the processor's registers.
//!
//! Tiles, panels and memory are those of the virtual machine, whose registers hold 512 numbers of f32; on a processor
//! whose registers hold fewer the sums of such a tile would be spilled at each step. So a tile is computed in blocks one after another, each with all terms of its sums. A block is what
//! the last rows and columns of any contraction are, a smaller tile: each sum still takes its terms in the same order and the same parts.
use crate::schedule::emit::Detail;
use crate::schedule::families::contraction::loops::operands::Contraction;
use crate::schedule::families::contraction::loops::register_block::RegisterBlock;
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, extent_product};
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::families::contraction::recipe::register_tile::{RegisterTile, TiledExtents, candidate_tiles};
use crate::schedule::loops::prelude::*;
use crate::target::Target;

impl Emitter<'_> {
    /// Divides a register tile into blocks that fit the processor's registers, rows innermost; the tile itself if it fits.
    pub(super) fn blocks_for_processor(
        &self,
        c: &Contraction,
        sum: &[ContractionAxis],
        tile: RegisterBlock,
    ) -> Vec<RegisterBlock> {
        let Some(processor) = self.target.smaller_processor().filter(|_| self.detail == Detail::Whole) else {
            return vec![tile];
        };
        let dtype = c.dtype.accumulator_type();
        match tile.order {
            PanelOrder::Plain => tile.divide(tile.fastest_block(processor, dtype, extent_product(sum))),
            // a vector of words or of pairs is one of the panel's
            PanelOrder::Words(_) | PanelOrder::Vectors(_) => {
                let vectors = tile.columns.div_ceil(tile.lanes);
                let wide = (self.target.vectors_in_registers() / (vectors + 1)).saturating_sub(1).max(1);
                tile.divide(RegisterTile { high: 1, wide, vectors, lanes: tile.lanes })
            }
            // sums lie on the stack
            PanelOrder::Tiles(_) | PanelOrder::Transposed(_) => vec![tile],
        }
    }
}

impl RegisterBlock {
    /// The block with the least predicted time for all of this tile on `processor`, for sums of `terms` terms.
    fn fastest_block(&self, processor: &Target, dtype: DType, terms: u64) -> RegisterTile {
        let size = dtype.bytes() as u64;
        let cover = TiledExtents {
            height: 1,
            width: self.rows.len() as u64,
            columns: self.columns,
            sum: terms,
            stride: self.rows.get(1).map_or(size, |row| row.0.unsigned_abs() * size),
            adds_apart: false,
        };
        let reads = |tile: &RegisterTile| tile.lanes <= self.lanes && self.has_panels_of(tile.columns());
        let fits = candidate_tiles(processor, dtype, cover).into_iter().filter(|(_, tile)| reads(tile));
        let best = fits.min_by(|x, y| x.0.total_cmp(&y.0)).map(|(_, tile)| tile);
        best.unwrap_or(RegisterTile { high: 1, wide: 1, vectors: 1, lanes: 1 })
    }

    /// Whether blocks of `columns` columns, side by side, each begin at the start of a panel or lie within one panel.
    fn has_panels_of(&self, columns: u64) -> bool {
        self.is_in_place
            || self.columns <= self.term
            || self.term.is_multiple_of(columns)
            || columns.is_multiple_of(self.term)
    }

    /// Divides the tile into blocks of at most the size of `block`.
    fn divide(&self, block: RegisterTile) -> Vec<RegisterBlock> {
        let looped = self.looped && self.is_in_a_row();
        let mut blocks = Vec::new();
        for column in (0..self.columns).step_by(block.columns() as usize) {
            let mut first_row = 0;
            for rows in self.rows.chunks(block.wide as usize) {
                let away = rows.first().map_or(0, |row| row.0);
                blocks.push(RegisterBlock {
                    a: self.a.offset(away),
                    rows: rows.iter().map(|(offset, row)| (offset - away, row.clone())).collect(),
                    b: self.b.offset(self.column_offset(column) as i64),
                    column: self.column.offset(column as i64),
                    columns: block.columns().min(self.columns - column),
                    // one of the blocks fetches what the tile does
                    ahead: self.ahead.clone().filter(|_| blocks.is_empty()),
                    lanes: block.lanes,
                    near: self.near.clone().map(|(first, stride)| (first.offset((first_row * stride) as i64), stride)),
                    looped,
                    ..self.clone()
                });
                first_row += rows.len() as u64;
            }
        }
        blocks
    }
}
