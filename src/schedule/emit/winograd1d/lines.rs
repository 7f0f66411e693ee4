//! Where the tiles of Winograd's method along one axis lie, transformed and as results.
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Index, Kernel, VarId};
use crate::schedule::emit::Emitter;
use crate::schedule::plan::points::apart;
use crate::schedule::plan::winograd1d::Winograd1d;
use crate::tensor::DType;

/// Where the transformed inputs lie: `[point][image][positions along the other axes][phase][tile][channel]`.
pub(super) struct Tiles {
    pub buf: BufId,
    /// How far points are apart.
    pub point: u64,
    /// How far images are apart.
    pub image: u64,
    /// How far positions are apart along each axis of the window.
    pub positions: Vec<u64>,
    /// How far phases are apart.
    pub phase: u64,
}

impl Tiles {
    pub(super) fn new(s: &mut Emitter<'_>, w: &Winograd1d) -> Tiles {
        let phase = w.reads() * w.inputs;
        let mut stride = phase * w.phases;
        let mut positions = vec![0; w.reach.len()];
        for i in (0..w.reach.len()).rev().filter(|&i| i != w.axis) {
            positions[i] = stride;
            stride *= w.reach[i];
        }
        let point = apart(stride * w.images);
        let buf = s.buffer(DType::F32, w.points.count() * point);
        Tiles { buf, point, image: stride, positions, phase }
    }

    /// The rows of products of all tiles: how many along each axis, and how far apart.
    pub(super) fn rows(&self, d: &ConvDims, w: &Winograd1d) -> Vec<(u64, u64)> {
        let others = (0..w.size.len()).filter(|&i| i != w.axis);
        let lines = others.map(|i| (w.size[i], self.positions[i] * d.window[i].stride));
        let of_line = [(w.phases, self.phase), (w.tiles, w.inputs)];
        std::iter::once((w.images, self.image)).chain(lines).chain(of_line).collect()
    }

    /// The terms of each: how many along each axis, and how far apart.
    pub(super) fn terms(&self, d: &ConvDims, w: &Winograd1d) -> Vec<(u64, u64)> {
        let others = (0..w.size.len()).filter(|&i| i != w.axis);
        let taps = others.map(|i| (d.window[i].size, self.positions[i] * d.window[i].rhs_dilate));
        taps.chain([(w.groups * w.inputs, 1)]).collect()
    }
}

/// A tile of results.
pub(super) struct Line {
    /// Where they lie, but along the axis.
    pub at: Vec<Index>,
    pub phase: VarId,
    pub tile: VarId,
}

impl Line {
    /// A tile of the line that is at an image, positions along the other axes and a phase.
    pub(super) fn new(d: &ConvDims, w: &Winograd1d, rank: usize, line: &[VarId], tile: VarId) -> Line {
        let mut at = vec![Index::default(); rank];
        at[d.output_batch] = Index::var(line[0]);
        let others = (0..w.size.len()).filter(|&i| i != w.axis);
        for (i, &v) in others.zip(&line[1..]) {
            at[d.output_spatial[i]] = Index::var(v);
        }
        Line { at, phase: line[line.len() - 1], tile }
    }
}

/// The loops over all tiles of the results.
pub(super) struct Lines {
    /// Image, positions along the other axes, phase, tile.
    pub loops: Vec<VarId>,
    pub line: Line,
}

impl Lines {
    pub(super) fn new(k: &mut Kernel, d: &ConvDims, w: &Winograd1d, rank: usize) -> Lines {
        let mut loops: Vec<VarId> = w.extents().into_iter().map(|n| k.var(n)).collect();
        let tile = k.var(w.tiles);
        let line = Line::new(d, w, rank, &loops, tile);
        loops.push(tile);
        Lines { loops, line }
    }

    /// The number of the tile among all.
    pub(super) fn row(&self, k: &Kernel) -> Index {
        self.loops.iter().fold(Index::default(), |row, &v| row.scale(k.vars[v] as i64).add(&Index::var(v)))
    }
}
