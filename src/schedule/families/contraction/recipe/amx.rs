//! Blocks of a product by AMX: two by two tiles.
use crate::schedule::families::contraction::recipe::register_tile::{RegisterTile, TiledExtents};
use crate::target::tiles::{COLUMNS, ROWS};

/// AMX tiles of a block along each axis: with two by two each tile is used twice, and four of the eight registers remain for sums.
const ACROSS: u64 = 2;

/// Fewest rows for which AMX blocks pay: with fewer, most of a tile is empty, and the sums still go through the stack.
const FEWEST_ROWS: u64 = 4;

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

#[cfg(test)]
mod tests {
    use super::*;

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
