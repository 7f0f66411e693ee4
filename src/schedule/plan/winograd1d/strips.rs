//! Winograd's method along one axis strip by strip: some tiles of a line, or of a few short lines, are transformed, multiplied
//! and transformed back before the next ones begin. For windows that lie along one line, and weights that stay near when they are
//! transformed by a kernel before, or at compile time where those would stand at the peak of memory.
use super::{Piece, Winograd1d, rows};
use crate::schedule::plan::MOST_STACK;
use crate::target::Target;

/// Most tiles of a strip, and fewest.
const TILES: [u64; 2] = [16, 6];

/// How a convolution is cut.
#[derive(Clone, Debug)]
pub struct Strips {
    /// Lines of a strip: of one image, position along the other axes and phase each.
    pub lines: u64,
    /// Tiles of each.
    pub tiles: u64,
    /// Strips of the tiles of a line.
    pub of_line: u64,
    /// All strips.
    pub count: u64,
    pub piece: Piece,
}

impl Strips {
    /// Tiles that the strip reads of each line.
    pub fn reads(&self, w: &Winograd1d) -> u64 {
        self.tiles + w.groups - 1
    }
}

/// The strips, where what is between the transforms and the products would go to a cache farther away, or there is less room.
pub fn choose(w: &Winograd1d, room: Option<u64>, target: &Target) -> Option<Strips> {
    let few = w.fewest_pieces(room, target).filter(|_| w.terms() == w.groups * w.inputs)?;
    let cut = |most: u64| {
        let of_line = w.tiles.div_ceil(most);
        let tiles = w.tiles.div_ceil(of_line);
        let lines = if of_line == 1 { (most / tiles).clamp(1, w.lines()) } else { 1 };
        let reads = tiles + w.groups - 1;
        let rows = rows(target, w, &[(lines, reads * w.inputs), (tiles, w.inputs)], w.outputs);
        let piece = Piece { tiles: [lines * reads, lines * tiles], rows, sum: vec![(w.terms(), 1)] };
        Strips { lines, tiles, of_line, count: w.lines().div_ceil(lines) * of_line, piece }
    };
    let fits = |s: &Strips| s.count >= few && s.piece.bytes(w) <= MOST_STACK;
    (TILES[1]..=TILES[0]).rev().map(cut).find(fits)
}
