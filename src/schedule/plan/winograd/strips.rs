//! Winograd's method strip by strip: some rows of tiles are transformed, multiplied and transformed back before the next ones
//! begin, so that what is between stays in the second-level cache. Bands of strips, each with memory of its own, are the chunks;
//! that of a small strip is on the stack.
use super::{NARROW, POINTS, Winograd, near_bytes, near_weights};
use crate::schedule::plan::MOST_STACK;
use crate::schedule::plan::points::apart;
use crate::schedule::plan::tile::{self, Cover, Tile};
use crate::target::Target;
use crate::target::machine::L3_BYTES;
use crate::tensor::DType;

/// What they may have where they come from the third level: of 2.2 MB (80 channels to 192) strips of 9 tiles take as long as
/// of 27, and a twentieth less than three kernels.
const MOST_WEIGHTS: u64 = 3 << 20;
/// Sixteenths of a second level that all strips may have that are under way at once.
const MOST_SIXTEENTHS: u64 = 20;
/// How many times as much as weights strips must save where those are not near, or transformed at each call: with 1.7 (96
/// channels to 96 at 35x35, known) and with 2.2 (128 to 32 at 28x28, not known) they take a tenth more time.
const FEW_WEIGHTS: u64 = 4;
/// Fewest bands, so that threads share them.
const FEW_BANDS: u64 = 8;
/// Fewest where there is little room.
const FEWEST_BANDS: u64 = 2;
/// Most tiles of a strip.
const MOST_TILES: u64 = 64;
/// By how much more time a mebibyte of memory must be worth.
const A_MEBIBYTE: f64 = 0.03;

/// Most times as long as the fastest strips that those may take which need less memory.
const MOST_LOST: f64 = 1.2;

/// How a convolution is cut.
#[derive(Clone, Debug)]
pub struct Strips {
    /// Tiles of a strip, one after another through all rows of all images.
    pub tiles: u64,
    /// Whether its memory is on the stack.
    pub on_stack: bool,
    /// Strips of a band; the last may have fewer.
    pub own: u64,
    /// Bands, each with memory of its own.
    pub bands: u64,
    pub tile: Tile,
    pub form: String,
}

impl Strips {
    /// What they take in the workspace, with the weights where those are not known.
    pub fn bytes(&self, w: &Winograd, is_known: bool) -> u64 {
        let weights = if is_known { 0 } else { w.weight_bytes() };
        weights + if self.on_stack { 0 } else { self.bands * strip_bytes(w, self.tiles, self.tile) }
    }
    pub fn panel(&self) -> u64 {
        self.tile.vectors * self.tile.lanes
    }
    /// Whether the last strips have tiles that are none.
    pub fn is_ragged(&self, w: &Winograd) -> bool {
        self.tiles * self.own * self.bands > w.count()
    }
}

/// Bytes of what so many tiles are transformed to, and of their sums of a panel.
fn strip_bytes(w: &Winograd, tiles: u64, tile: Tile) -> u64 {
    4 * POINTS * (apart(tiles * w.inputs) + apart(tiles * tile.vectors * tile.lanes))
}

/// The strips, where what is between the transforms and the products would go to a cache farther away.
/// Weights that are not known now take memory too.
pub fn choose(w: &Winograd, is_known: bool, room: Option<u64>, target: &Target) -> Option<Strips> {
    let weights = w.weight_bytes();
    let three_kernels = if is_known { 0 } else { weights / 3 };
    let whole = three_kernels + 4 * POINTS * w.count() * (w.inputs + w.outputs);
    let near_weights = near_weights(target);
    let (is_near, most) = (is_known && weights <= near_weights, if is_known { MOST_WEIGHTS } else { near_weights });
    let least = if is_near { near_bytes(target) } else { FEW_WEIGHTS * weights };
    let room = room.filter(|&room| whole > room);
    if room.is_none() && (whole <= least || weights > most) {
        return None;
    }
    let (few_bands, most) = room.map_or((FEW_BANDS, whole - 1), |room| (FEWEST_BANDS, room));
    let mut found: Vec<(u64, f64, Strips)> = Vec::new();
    // narrow panels have small sums
    let narrow = w.outputs.min(NARROW * target.lanes(4));
    let widths = if room.is_some() && narrow < w.outputs { vec![w.outputs, narrow] } else { vec![w.outputs] };
    let cuts = (1..=MOST_TILES.min(w.count())).flat_map(|tiles| widths.iter().map(move |&width| (tiles, width)));
    for (tiles, width) in cuts {
        let cover = Cover { height: 1, width: tiles, columns: width, sum: w.inputs, stride: 4 * w.inputs };
        let form = tile::form(target, DType::F32, cover, tiles, POINTS);
        let tile = tile::best(target, DType::F32, cover, &form);
        let read = if weights > near_weights { weights as f64 / L3_BYTES } else { 0.0 };
        let panels = w.outputs as f64 / width as f64;
        let products = read.max(POINTS as f64 * panels * tile::predicted(target, DType::F32, cover));
        let cycles = products + transforms(w, target.lanes(4), tiles);
        let strips = w.count().div_ceil(tiles);
        let of_strip = strip_bytes(w, tiles, tile);
        let on_stack = of_strip <= MOST_STACK;
        for bands in few_bands..=2 * FEW_BANDS {
            let own = strips.div_ceil(bands);
            let bands = strips.div_ceil(own);
            let bytes = if on_stack { 0 } else { bands * of_strip };
            let all = if is_known { bytes } else { bytes + weights };
            let time = cycles * (bands.div_ceil(2) * own) as f64;
            let time = time * (1.0 + A_MEBIBYTE * bytes as f64 / f64::from(1 << 20));
            if bands >= few_bands && bytes <= target.caches.l2_sixteenths(MOST_SIXTEENTHS) && all < whole {
                let strips = Strips { tiles, on_stack, own, bands, tile, form: form.clone() };
                found.push((all.saturating_sub(most), time, strips));
            }
        }
    }
    let least = found.iter().map(|x| x.1).min_by(f64::total_cmp)?;
    let fast = found.into_iter().filter(|x| x.1 <= MOST_LOST * least);
    fast.min_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1))).map(|best| best.2)
}

/// Vector operations that transform so many tiles there and back, two a cycle.
fn transforms(w: &Winograd, lanes: u64, tiles: u64) -> f64 {
    let (points, vectors) = (POINTS as f64, |n: u64| (tiles * n / lanes) as f64);
    ((144.0 + points) * vectors(w.inputs) + (130.0 + points) * vectors(w.outputs)) / 2.0
}
