//! A spatial axis of a depthwise window: which tiles of pixels read which elements, those on the padding left out.
use std::collections::BTreeMap;
use std::ops::Range;

/// A spatial axis of a depthwise convolution.
#[derive(Clone, Copy, Debug)]
pub struct WindowAxis {
    /// Number of pixels of the result.
    pub extent: u64,
    /// Number of taps of the window.
    pub size: u64,
    /// Distance of windows, in elements.
    pub stride: u64,
    /// Distance of taps, in elements.
    pub dilation: u64,
    /// Whether the weights are read backwards.
    pub reversed: bool,
    /// If taps on the padding are left out, the number of elements of padding before the operand, and of elements of the operand.
    pub edges: Option<(i64, i64)>,
}

/// Tiles of a row that read the operand in the same way.
pub struct TileRun {
    /// Indices of the tiles along the axis.
    pub numbers: Range<u64>,
    /// Pixels per tile.
    pub pixels: u64,
    /// The elements that each tile reads, relative to the one under its first pixel's first tap.
    pub elements: Range<u64>,
}

impl TileRun {
    /// The same tiles restricted to at most `count` of their pixels, from pixel `first` on; windows are `stride` elements apart.
    pub fn take_pixels(&self, first: u64, count: u64, stride: u64) -> TileRun {
        let relative = |element: u64| element.saturating_sub(first * stride);
        TileRun {
            numbers: self.numbers.clone(),
            pixels: count.min(self.pixels - first),
            elements: relative(self.elements.start)..relative(self.elements.end),
        }
    }
}

impl WindowAxis {
    /// Stand-in for a spatial axis that the convolution does not have.
    pub const NONE: WindowAxis =
        WindowAxis { extent: 1, size: 1, stride: 1, dilation: 1, reversed: false, edges: None };

    /// Map from each element that a tile reads (relative as in [`TileRun::elements`]) to the pixels that use it, each with the tap.
    pub fn tap_uses(&self, run: &TileRun) -> BTreeMap<u64, Vec<(u64, u64)>> {
        let mut uses: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for pixel in 0..run.pixels {
            for tap in 0..self.size {
                let element = pixel * self.stride + tap * self.dilation;
                if run.elements.contains(&element) {
                    uses.entry(element).or_default().push((pixel, tap));
                }
            }
        }
        uses
    }

    /// Divides a row into tiles of `pixels`; the last one may have fewer.
    pub fn row_tiles(&self, pixels: u64) -> Vec<TileRun> {
        let (plain, count) = (self.interior_tiles(pixels), self.extent.div_ceil(pixels));
        let mut runs: Vec<TileRun> = Vec::new();
        let mut number = 0;
        while number < count {
            let end = if plain.contains(&number) { plain.end } else { number + 1 };
            let own = pixels.min(self.extent - number * pixels);
            let elements = self.read_elements(number * pixels, own);
            match runs.last_mut().filter(|r| r.pixels == own && r.elements == elements) {
                Some(run) => run.numbers.end = end,
                None => runs.push(TileRun { numbers: number..end, pixels: own, elements }),
            }
            number = end;
        }
        runs
    }

    /// The numbers of the full tiles of `pixels` that read no padding.
    pub fn interior_tiles(&self, pixels: u64) -> Range<u64> {
        let whole = self.extent / pixels;
        let Some((before, n)) = self.edges else { return 0..whole };
        let (step, all) = ((pixels * self.stride) as i64, self.input_span(pixels) as i64);
        let first = (before + step - 1).div_euclid(step);
        let end = ((n + before - all).div_euclid(step) + 1).clamp(0, whole as i64);
        first.min(end) as u64..end as u64
    }

    /// Number of elements from the first to the last one that `pixels` neighboring pixels read, padding included.
    pub fn input_span(&self, pixels: u64) -> u64 {
        (pixels - 1) * self.stride + (self.size - 1) * self.dilation + 1
    }

    /// The elements that `pixels` pixels from `first` on read, relative to the one under the first pixel's first tap.
    pub fn read_elements(&self, first: u64, pixels: u64) -> Range<u64> {
        let all = self.input_span(pixels);
        let Some((before, n)) = self.edges else { return 0..all };
        let from = (first * self.stride) as i64 - before;
        let within = |x: i64| x.clamp(0, all as i64) as u64;
        within(-from)..within(n - from)
    }

    /// Number of taps of all pixels that are not on the padding.
    pub fn tap_count(&self) -> u64 {
        let Some((before, n)) = self.edges else { return self.extent * self.size };
        let step = self.stride as i64;
        let pixels_before = |element: i64| (element.max(0) + step - 1) / step;
        let of_tap = |tap: u64| {
            let first = before - (tap * self.dilation) as i64;
            (pixels_before(n + first).min(self.extent as i64) - pixels_before(first)).max(0) as u64
        };
        (0..self.size).map(of_tap).sum()
    }
}
