//! A spatial axis of a depthwise window: which tiles of pixels read which elements, those on the padding left out.
use std::collections::BTreeMap;
use std::ops::Range;

/// A spatial axis.
#[derive(Clone, Copy, Debug)]
pub struct WindowAxis {
    /// Pixels of the result.
    pub extent: u64,
    /// Taps of the window.
    pub size: u64,
    /// Elements from a window to the next.
    pub stride: u64,
    /// Elements from a tap to the next.
    pub dilation: u64,
    /// Whether the weights are read backwards.
    pub reversed: bool,
    /// Where taps on the padding are left out, how much there is before the operand, and the operand's elements.
    pub edges: Option<(i64, i64)>,
}

/// Tiles of a row that read alike.
pub struct Run {
    /// The tiles, by their numbers along the axis.
    pub numbers: Range<u64>,
    /// Pixels of each.
    pub pixels: u64,
    /// The elements that each tile reads, relative to the one that its first pixel's first tap would read.
    pub elements: Range<u64>,
}

impl WindowAxis {
    /// The axis that is not there.
    pub const NONE: WindowAxis =
        WindowAxis { extent: 1, size: 1, stride: 1, dilation: 1, reversed: false, edges: None };

    /// The elements that a tile reads, counted as its run counts them, and for each the pixels that read it, with the tap.
    pub fn uses(&self, run: &Run) -> BTreeMap<u64, Vec<(u64, u64)>> {
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

    /// The tiles of `pixels` that a row is cut into; the last one may have fewer.
    pub fn runs(&self, pixels: u64) -> Vec<Run> {
        let (plain, count) = (self.plain(pixels), self.extent.div_ceil(pixels));
        let mut runs: Vec<Run> = Vec::new();
        let mut number = 0;
        while number < count {
            let end = if plain.contains(&number) { plain.end } else { number + 1 };
            let own = pixels.min(self.extent - number * pixels);
            let elements = self.elements(number * pixels, own);
            match runs.last_mut().filter(|r| r.pixels == own && r.elements == elements) {
                Some(run) => run.numbers.end = end,
                None => runs.push(Run { numbers: number..end, pixels: own, elements }),
            }
            number = end;
        }
        runs
    }

    /// The numbers of the tiles of so many pixels that have all of them and read no padding.
    pub fn plain(&self, pixels: u64) -> Range<u64> {
        let whole = self.extent / pixels;
        let Some((before, n)) = self.edges else { return 0..whole };
        let (step, all) = ((pixels * self.stride) as i64, self.reach(pixels) as i64);
        let first = (before + step - 1).div_euclid(step);
        let end = ((n + before - all).div_euclid(step) + 1).clamp(0, whole as i64);
        first.min(end) as u64..end as u64
    }

    /// Elements from the first to the last that so many pixels read, with those on the padding.
    pub fn reach(&self, pixels: u64) -> u64 {
        (pixels - 1) * self.stride + (self.size - 1) * self.dilation + 1
    }

    /// The elements that `pixels` from the `first` on read, relative to the one that the first pixel's first tap would read.
    pub fn elements(&self, first: u64, pixels: u64) -> Range<u64> {
        let all = self.reach(pixels);
        let Some((before, n)) = self.edges else { return 0..all };
        let from = (first * self.stride) as i64 - before;
        let within = |x: i64| x.clamp(0, all as i64) as u64;
        within(-from)..within(n - from)
    }

    /// Taps of all pixels that are not on the padding.
    pub fn taps(&self) -> u64 {
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
