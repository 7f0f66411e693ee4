//! The taps of a depthwise window that are written out, and the number of pixels of a tile, whose sums are in registers.
pub mod axis;

use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::schedule::families::convolution::recipe::algorithm::{ConvolutionAlgorithm, MOST_TAPS};
use crate::schedule::families::depthwise::recipe::axis::{TileRun, WindowAxis};
use crate::schedule::plan::context::PlanContext;
use std::fmt;

/// Fewest vector registers of a machine with which the weights of a whole window stay in registers.
const MANY_REGISTERS: u64 = 32;
/// Fewest chunks of a kernel, for threads to share it.
const FEW_CHUNKS: u64 = 8;
/// Fewest vectors of a group of channels if threads share channels rather than rows: fewer are too short a run in memory for each pixel.
const FEW_VECTORS: u64 = 4;

/// Tile and unrolling of a depthwise convolution.
#[derive(Clone, Debug)]
pub struct DepthwiseTiling {
    /// The spatial axes but the last, whose taps are loops.
    pub outer: Vec<WindowAxis>,
    /// The last spatial axis.
    pub wide: WindowAxis,
    /// Whether the loops over the taps of the outer axes are unrolled too.
    pub is_whole: bool,
    /// Pixels of a tile along the last axis.
    pub tile: u64,
}

impl DepthwiseTiling {
    /// Chooses the tile and the unrolling of convolution `id`.
    pub fn choose(context: &PlanContext<'_>, id: InstId, d: &ConvDims) -> DepthwiseTiling {
        let (result, operand) = (context.comp.array_shape(id), context.comp.array_shape(context.comp[id].operands[0]));
        let inside =
            matches!(context.convolutions[&id].algorithm, ConvolutionAlgorithm::Depthwise { has_margin: false });
        let side = |i: usize| WindowAxis {
            extent: result.dims[d.output_spatial[i]],
            size: d.window[i].size,
            stride: d.window[i].stride,
            dilation: d.window[i].rhs_dilate,
            reversed: d.window[i].reversal,
            edges: inside.then(|| (d.window[i].pad_low, operand.dims[d.input_spatial[i]] as i64)),
        };
        let mut outer: Vec<WindowAxis> = (0..d.window.len()).map(side).collect();
        let wide = outer.pop().unwrap_or(WindowAxis::NONE);
        let mut window = DepthwiseTiling { outer, wide, is_whole: false, tile: 1 };
        let registers = context.target.machine().vector_registers;
        window.is_whole = window.rows() * wide.size <= MOST_TAPS && registers >= MANY_REGISTERS;
        window.tile = window.best_tile(registers);
        window
    }

    /// The last spatial axis with the taps that are unrolled: all of them, or a single one if they are so many that they are a loop.
    pub fn unrolled_axis(&self) -> WindowAxis {
        if self.wide.size <= MOST_TAPS { self.wide } else { WindowAxis { size: 1, ..self.wide } }
    }

    /// Number of taps along the axes that are loops.
    fn rows(&self) -> u64 {
        self.outer.iter().map(|s| s.size).product()
    }

    /// Number of pixels of the tile with the least predicted time, at one multiply-add and one load a cycle.
    fn best_tile(&self, registers: u64) -> u64 {
        let wide = self.unrolled_axis();
        let loops = self.rows() * (self.wide.size / wide.size);
        let cost = |run: &TileRun| {
            let uses = wide.tap_uses(run);
            let terms = uses.values().map(|u| u.len() as u64).sum::<u64>();
            let loads = uses.len() as u64 + wide.size;
            (run.numbers.end - run.numbers.start) * (loops * (terms.max(loads) + 2) + 2 * run.pixels + 6)
        };
        let cover = |pixels: u64| wide.row_tiles(pixels).iter().map(cost).sum::<u64>();
        let most = self.most_pixels(registers);
        (1..=wide.extent).take_while(|&n| n <= most).min_by_key(|&n| cover(n)).unwrap_or(1)
    }

    /// Most pixels whose sums stay in `registers` registers.
    pub fn most_pixels(&self, registers: u64) -> u64 {
        let wide = self.unrolled_axis();
        // the sums, the weights and the elements of a window, products; with 16 registers the weights may be in memory
        let (more, is_whole) = if registers >= MANY_REGISTERS { (6, self.is_whole) } else { (2, false) };
        let held = if is_whole { self.rows() * (self.wide.size / wide.size) * wide.size } else { wide.size };
        registers.saturating_sub(2 * held + more).max(4)
    }

    /// Floating-point operations of all pixels and channels, without taps on the padding and with them.
    pub fn flops(&self, batch: u64, channels: u64) -> [u64; 2] {
        let sides = || self.outer.iter().chain([&self.wide]);
        let taps = sides().map(WindowAxis::tap_count).product::<u64>();
        [taps, sides().map(|s| s.size * s.extent).product()].map(|taps| 2 * batch * channels * taps)
    }
}

/// Number of groups into which `blocks` vectors of channels are divided for threads, if tiles of pixels are too few for them; and whether
/// the loop over groups is outermost. `is_by_channel` says that threads shared the channels of the operand when it was made: each should
/// read those that it made.
pub fn channel_groups(blocks: u64, tiles: u64, is_by_channel: bool) -> (u64, bool) {
    let is_enough = |g: &u64| blocks.is_multiple_of(*g) && g * tiles >= FEW_CHUNKS;
    match (2..=blocks / FEW_VECTORS).find(is_enough).filter(|_| is_by_channel) {
        Some(apart) => (apart, true),
        None => ((1..=blocks).find(is_enough).unwrap_or(blocks), false),
    }
}

impl fmt::Display for DepthwiseTiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.outer.iter().chain([&self.wide]).map(|s| s.size.to_string()).collect();
        let written = if self.is_whole { "all written out" } else { "rows in loops" };
        write!(f, "{} pixels of {} taps, {written}", self.tile, sizes.join("x"))
    }
}
