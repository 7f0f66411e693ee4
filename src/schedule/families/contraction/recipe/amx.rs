//! Blocks of a product by AMX: two by two tiles.
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, extent_product};
use crate::schedule::families::contraction::recipe::register_tile::{
    RegisterTile, TiledExtents, ragged_cycles, store_cycles,
};
use crate::target::Target;
use crate::target::machine::L2_BYTES;
use crate::target::tiles::{COLUMNS, ROWS, TileProduct};

/// AMX tiles of a block along each axis: with two by two each tile is used twice, and four of the eight registers remain for sums.
const ACROSS: u64 = 2;

/// Fewest rows for which AMX blocks pay: with fewer, most of a tile is empty, and the sums still go through the stack.
const FEWEST_ROWS: u64 = 4;

/// Upper limit of the rounds added to the fewest possible so that all rounds have equally many terms. A last round of another length needs
/// new tile shapes, and stores and reloads the sums, which takes as long by the cycles of Intel's optimization manual.
const MORE_ROUNDS: u64 = 3;

/// Cycles to load a tile from the first-level cache (Intel's optimization manual, chapter 20).
const LOAD: f64 = 8.0;

/// Bytes of a tile.
const TILE_BYTES: f64 = 1024.0;

/// Cycles to move a vector of sums from a tile to the stack and to load it from there, which waits for the store. A product of bytes of
/// 3136 x 64 by 64 x 256, measured on a processor with AMX, took 1.2 times as long by tiles as by `vpdpbusd`.
const THROUGH_STACK: f64 = 10.0;

/// The AMX block for a product, if it has enough rows; `apart` has the strides of the left side along the last two row axes.
pub fn amx_tile(cover: TiledExtents, apart: [i64; 2]) -> Option<RegisterTile> {
    let evenly = |all: u64, most: u64| all.div_ceil(all.div_ceil(most.max(1)));
    let is_even = apart[0] == cover.width as i64 * apart[1];
    let (high, wide) = match cover.width {
        // rows of several lines, each line a tile where they don't follow one another
        width if width <= ROWS => (evenly(cover.height, if is_even { 2 * ROWS / width } else { 2 }), width),
        width => (1, evenly(width, 2 * ROWS)),
    };
    let vectors = cover.columns.div_ceil(COLUMNS).min(ACROSS);
    let is_forward = apart[0] >= 0 && apart[1] >= 0;
    (is_forward && high * wide >= FEWEST_ROWS).then_some(RegisterTile { high, wide, vectors, lanes: COLUMNS })
}

/// Predicted cycles of all blocks of a product of bytes, whose sums have the axes `sum`: a row of a tile takes a cycle for each tile of the
/// right side in each round, unless the loads of tiles take longer.
pub fn predicted_cycles(
    machine: &Target,
    product: TileProduct,
    tile: RegisterTile,
    cover: TiledExtents,
    sum: &[ContractionAxis],
) -> f64 {
    let terms = sum.last().map_or(1, |x| x.extent);
    let rounds = extent_product(sum) / terms.max(1) * terms.div_ceil(terms_per_round(product, terms));
    let rows = tile.high * tile.wide;
    // each line is a tile of its own where several don't follow one another
    let tiles = rows.div_ceil(ROWS).max(if tile.high > 1 { 2 } else { 1 });
    let is_far = extent_product(sum) * tile.columns() > machine.caches.l1d / 2;
    let load_right = if is_far { TILE_BYTES / L2_BYTES } else { LOAD };
    let is_whole = tile.columns() >= cover.columns;
    let block = |vectors: u64| {
        let loads = LOAD * tiles as f64 + load_right * vectors as f64;
        let round = loads.max((rows * vectors) as f64);
        rounds as f64 * round + THROUGH_STACK * (rows * vectors) as f64 + store_cycles(rows, vectors, is_whole)
    };
    let blocks = match tile.high {
        1 => cover.height * cover.width.div_ceil(tile.wide),
        high => cover.height.div_ceil(high),
    };
    let vectors = cover.columns.div_ceil(COLUMNS);
    let rest = vectors % tile.vectors;
    let of_rest = if rest > 0 { block(rest) } else { 0.0 };
    blocks as f64 * ((vectors / tile.vectors) as f64 * block(tile.vectors) + of_rest) + ragged_cycles(cover, COLUMNS)
}

/// Number of terms that one round of AMX tile products takes, out of the `terms` of a sum.
pub fn terms_per_round(product: TileProduct, terms: u64) -> u64 {
    let (most, per_word) = (product.most_terms(), product.terms_per_word());
    let fewest = terms.div_ceil(most);
    let rounds = (fewest..=fewest + MORE_ROUNDS).find(|&rounds| terms.is_multiple_of(per_word * rounds));
    rounds.map_or(most, |rounds| terms / rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_alike_or_whole() {
        let all = [(2, 2), (30, 30), (32, 32), (34, 32), (64, 32), (70, 14), (96, 32), (100, 20), (144, 24), (232, 32)];
        for (terms, at_once) in all {
            assert_eq!(terms_per_round(TileProduct::Bf16, terms), at_once, "{terms} terms");
        }
        let bytes = TileProduct::Bytes { signs: [true; 2] };
        for (terms, at_once) in [(4, 4), (60, 60), (64, 64), (68, 64), (128, 64), (140, 28), (200, 40), (232, 64)] {
            assert_eq!(terms_per_round(bytes, terms), at_once, "{terms} bytes");
        }
    }

    #[test]
    fn a_block_is_two_tiles_high() {
        let cover =
            |height, width, columns| TiledExtents { height, width, columns, sum: 64, stride: 0, adds_apart: false };
        let tile = |height, width, columns, apart| {
            let tile = amx_tile(cover(height, width, columns), apart)?;
            Some((tile.high, tile.wide, tile.vectors))
        };
        assert_eq!(tile(1, 3, 64, [0, 1]), None);
        assert_eq!(tile(1, 33, 64, [0, 1]), Some((1, 17, 2)));
        assert_eq!(tile(1, 1000, 8, [0, 1]), Some((1, 32, 1)));
        assert_eq!(tile(7, 7, 64, [7, 1]), Some((4, 7, 2)));
        assert_eq!(tile(14, 14, 64, [16, 1]), Some((2, 14, 2)));
    }
}
