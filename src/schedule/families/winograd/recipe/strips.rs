//! Winograd's method strip by strip: some tiles one after another are transformed, multiplied and transformed back before the next
//! ones begin, so that what is between stays in the second-level cache. Along both axes tiles follow one another through all rows
//! of all images, and bands of strips, each with memory of its own, are the chunks; that of a small strip is on the stack. Along
//! one axis a strip is of a line, or of a few short lines, and on the stack.
use super::panels::NARROW;
use super::{ConvolutionPiece, OF_SQUARE, ProductRows, Winograd};
use crate::schedule::plan::MOST_STACK;
use crate::schedule::target::KernelTarget;
use crate::target::machine::L3_BYTES;

/// Upper limit in bytes of weights that strips read from the third-level cache: with 2.2 MB (80 channels to 192) strips of 9 tiles take
/// as long as of 27, and a twentieth less than three kernels.
const MOST_WEIGHTS: u64 = 3 << 20;
/// Sixteenths of a second-level cache that all strips in progress together may take.
const MOST_SIXTEENTHS: u64 = 20;
/// Smallest ratio of the memory that strips save to that of the weights, if weights do not stay in a cache or are transformed at each call: with 1.7 (96
/// channels to 96 at 35x35, constant) and 2.2 (128 to 32 at 28x28, computed) strips take a tenth more time.
const FEW_WEIGHTS: u64 = 4;
/// Fewest bands, for threads to share them.
const FEW_BANDS: u64 = 8;
/// Fewest bands if memory is bounded.
const FEWEST_BANDS: u64 = 2;
/// Upper limit of tiles per strip.
const MOST_TILES: u64 = 64;
/// Upper and lower limit of tiles per strip along one axis.
const TILES_OF_LINE: [u64; 2] = [16, 6];
/// Relative increase of the time that is worth saving a mebibyte of memory.
const A_MEBIBYTE: f64 = 0.03;

/// Largest ratio of the time of strips that need less memory to that of the fastest.
const MOST_LOST: f64 = 1.2;

/// Division of a convolution into strips of tiles.
#[derive(Clone, Debug)]
pub struct Strips {
    /// Lines per strip, if tiles lie along one axis; otherwise all tiles are one line.
    pub lines: u64,
    /// Tiles per line of a strip.
    pub tiles: u64,
    /// Strips that cover a line.
    pub strips_per_line: u64,
    /// Strips per band; the last band may have fewer.
    pub own: u64,
    /// Number of bands, each with memory of its own.
    pub bands: u64,
    /// Whether the memory of a strip is on the stack.
    pub on_stack: bool,
    /// The piece of the convolution that a strip computes.
    pub piece: ConvolutionPiece,
}

impl Strips {
    /// Bytes of workspace that the strips take, with the weights if those are transformed at each call.
    pub fn bytes(&self, w: &Winograd, is_known: bool) -> u64 {
        let weights = if is_known { 0 } else { w.weight_bytes() };
        weights + if self.on_stack { 0 } else { self.bands * self.piece.scratch_bytes(w) }
    }
    /// Whether the last strips of a line have tiles beyond its end.
    pub fn is_ragged(&self, w: &Winograd) -> bool {
        self.tiles * self.strips_per_line > w.line_counts()[1]
    }
}

/// Strips for the method along one axis, if the intermediates between the transforms and the products would go to a farther cache or exceed
/// the memory bound `room`.
pub fn strips_along_one_axis(w: &Winograd, room: Option<u64>, target: &KernelTarget<'_>) -> Option<Strips> {
    let groups = w.along[0].groups;
    let few = w.fewest_pieces(room, target).filter(|_| w.term_count() == groups * w.inputs)?;
    let [all_lines, all_tiles] = w.line_counts();
    let cut = |most: u64| {
        let strips_per_line = all_tiles.div_ceil(most);
        let tiles = all_tiles.div_ceil(strips_per_line);
        let lines = if strips_per_line == 1 { (most / tiles).clamp(1, all_lines) } else { 1 };
        let reads = tiles + groups - 1;
        let rows = ProductRows::new(w, &[(lines, reads * w.inputs), (tiles, w.inputs)], w.outputs, target);
        let piece = ConvolutionPiece { tiles: [lines * reads, lines * tiles], rows, sum: vec![(w.term_count(), 1)] };
        Strips {
            lines,
            tiles,
            strips_per_line,
            own: 1,
            bands: all_lines.div_ceil(lines) * strips_per_line,
            on_stack: true,
            piece,
        }
    };
    let fits = |s: &Strips| s.bands >= few && s.piece.scratch_bytes(w) <= MOST_STACK;
    (TILES_OF_LINE[1]..=TILES_OF_LINE[0]).rev().map(cut).find(fits)
}

/// Strips for the method along both axes, if the intermediates between the transforms and the products would go to a farther cache or
/// exceed the memory bound `room`. Weights transformed at each call take memory too.
pub fn two_axis_strips(w: &Winograd, is_known: bool, room: Option<u64>, target: &KernelTarget<'_>) -> Option<Strips> {
    let weights = w.weight_bytes();
    let three_kernels = if is_known { 0 } else { weights / 3 };
    let whole = three_kernels + w.whole_bytes();
    let near_weights = Winograd::near_weights(target);
    let (is_near, most) = (is_known && weights <= near_weights, if is_known { MOST_WEIGHTS } else { near_weights });
    let least = if is_near { Winograd::near_bytes(target) } else { FEW_WEIGHTS * weights };
    let room = room.filter(|&room| whole > room);
    if room.is_none() && (whole <= least || weights > most) {
        return None;
    }
    let (few_bands, most) = room.map_or((FEW_BANDS, whole - 1), |room| (FEWEST_BANDS, room));
    let mut found: Vec<(u64, f64, Strips)> = Vec::new();
    // narrow panels have small sums
    let narrow = w.outputs.min(NARROW * target.machine().lanes(4));
    let widths = if room.is_some() && narrow < w.outputs { vec![w.outputs, narrow] } else { vec![w.outputs] };
    let cuts = (1..=MOST_TILES.min(w.result_tiles())).flat_map(|tiles| widths.iter().map(move |&width| (tiles, width)));
    for (tiles, width) in cuts {
        let (rows, of_point) = ProductRows::with_cycles(w, &[(tiles, w.inputs)], width, target);
        let read = if weights > near_weights { weights as f64 / L3_BYTES } else { 0.0 };
        let panels = w.outputs as f64 / width as f64;
        let products = read.max(w.point_count() as f64 * panels * of_point);
        let cycles = products + transform_cycles(w, target.machine().lanes(4), tiles);
        let strips = w.result_tiles().div_ceil(tiles);
        let piece = ConvolutionPiece { tiles: [tiles; 2], rows, sum: vec![(w.inputs, 1)] };
        let of_strip = piece.scratch_bytes(w);
        let on_stack = of_strip <= MOST_STACK;
        for bands in few_bands..=2 * FEW_BANDS {
            let own = strips.div_ceil(bands);
            let bands = strips.div_ceil(own);
            let bytes = if on_stack { 0 } else { bands * of_strip };
            let all = if is_known { bytes } else { bytes + weights };
            let time = cycles * (bands.div_ceil(2) * own) as f64;
            let time = time * (1.0 + A_MEBIBYTE * bytes as f64 / f64::from(1 << 20));
            if bands >= few_bands && bytes <= target.machine().caches.l2_sixteenths(MOST_SIXTEENTHS) && all < whole {
                let strips_per_line = own * bands;
                let strips = Strips { lines: 1, tiles, strips_per_line, own, bands, on_stack, piece: piece.clone() };
                found.push((all.saturating_sub(most), time, strips));
            }
        }
    }
    let least = found.iter().map(|x| x.1).min_by(f64::total_cmp)?;
    let fast = found.into_iter().filter(|x| x.1 <= MOST_LOST * least);
    fast.min_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1))).map(|best| best.2)
}

/// Cycles to transform `tiles` tiles to points and back, at two vector operations a cycle.
fn transform_cycles(w: &Winograd, lanes: u64, tiles: u64) -> f64 {
    let [there, back, _] = OF_SQUARE.map(|n| n as f64);
    let (points, vectors) = (w.point_count() as f64, |n: u64, lanes: u64| (tiles * n / lanes) as f64);
    let lanes_there = lanes * w.types.terms_per_word();
    ((there + points) * vectors(w.inputs, lanes_there) + (back + points) * vectors(w.outputs, lanes)) / 2.0
}
