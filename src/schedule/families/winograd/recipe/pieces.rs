//! Pieces: the rows of tiles that a kernel of Winograd's method transforms, multiplies and transforms back before the next piece begins.
use super::{Winograd, point_stride};
use crate::hlo::attrs::ConvDims;
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, extent_product, merge_axes};
use crate::schedule::families::contraction::recipe::register_tile::{self, RegisterTile, TiledExtents};
use crate::schedule::target::KernelTarget;

/// The rows of products and the tile that computes them.
#[derive(Clone, Debug)]
pub struct ProductRows {
    /// Number of rows along each axis, and their distance.
    pub axes: Vec<ContractionAxis>,
    /// The register tile.
    pub tile: RegisterTile,
    /// Key of the products in tuned choices.
    pub form: String,
}

impl ProductRows {
    /// Rows of products with so many columns: number and distance along each axis.
    pub fn new(w: &Winograd, rows: &[(u64, u64)], columns: u64, target: &KernelTarget<'_>) -> ProductRows {
        ProductRows::with_cycles(w, rows, columns, target).0
    }

    /// Rows of products as [`ProductRows::new`] makes them, and the cycles that the fastest tile takes at a point.
    pub fn with_cycles(
        w: &Winograd,
        rows: &[(u64, u64)],
        columns: u64,
        target: &KernelTarget<'_>,
    ) -> (ProductRows, f64) {
        let all: Vec<ContractionAxis> =
            rows.iter().map(|&(extent, a)| ContractionAxis { extent, a: a as i64, b: 0 }).collect();
        let mut axes = merge_axes(&all);
        if axes.is_empty() {
            axes.push(ContractionAxis { extent: 1, a: 0, b: 0 });
        }
        let cover = ProductRows::cover(w, &axes, columns);
        let form = register_tile::tuning_key(target, w.types.sums, cover, extent_product(&axes), w.point_count());
        let tiles = register_tile::candidate_tiles(target.machine(), w.types.sums, cover);
        let cycles = register_tile::least_cycles(&tiles);
        (ProductRows { tile: register_tile::choose_tile(target, tiles, w.types.sums, &form), axes, form }, cycles)
    }

    fn cover(w: &Winograd, axes: &[ContractionAxis], columns: u64) -> TiledExtents {
        let height = axes.len().checked_sub(2).map_or(1, |i| axes[i].extent);
        let last = axes[axes.len() - 1];
        w.tiled_extents([height, last.extent], columns, last.a.unsigned_abs())
    }

    /// Columns per panel.
    pub fn panel_columns(&self) -> u64 {
        self.tile.vectors * self.tile.lanes
    }
}

/// A piece of a convolution that is transformed, multiplied and transformed back before the next.
#[derive(Clone, Debug)]
pub struct ConvolutionPiece {
    /// Number of input tiles that this piece of the convolution reads, and of result tiles that it computes.
    pub tiles: [u64; 2],
    /// The rows of the piece's products.
    pub rows: ProductRows,
    /// The contracted axes of the products: number and distance of terms along each.
    pub sum: Vec<(u64, u64)>,
}

impl ConvolutionPiece {
    /// Distance of points in the transformed inputs, and in the sums, in elements.
    pub fn point_strides(&self, w: &Winograd) -> [u64; 2] {
        [self.tiles[0] * w.inputs, self.tiles[1] * self.rows.panel_columns()].map(point_stride)
    }
    /// Bytes of scratch memory that the piece takes.
    pub fn scratch_bytes(&self, w: &Winograd) -> u64 {
        let [inputs, sums] = self.point_strides(w);
        w.point_count() * (w.types.point_bytes() * inputs + w.types.sum_bytes() * sums)
    }
}

/// Layout of all transformed inputs: `[point][image][positions along the other axes][phases][tiles][channel]`.
#[derive(Clone, Debug)]
pub struct InputLayout {
    /// Distance of points in elements.
    pub point: u64,
    /// Number and distance of images, positions, phases and tiles.
    pub loops: Vec<(u64, u64)>,
    /// Distance of positions along each axis of the window, in elements.
    positions: Vec<u64>,
}

impl InputLayout {
    /// The layout of the transformed inputs of `w`.
    pub fn new(w: &Winograd) -> InputLayout {
        let others: Vec<usize> = w.other_axes().collect();
        let mut extents = vec![w.images];
        extents.extend(others.iter().map(|&i| w.reach[i]));
        extents.extend(w.along.iter().map(|a| a.phases));
        extents.extend(w.along.iter().map(|a| a.input_tiles()));
        let (mut stride, mut strides) = (w.inputs, vec![0; extents.len()]);
        for (of_axis, extent) in strides.iter_mut().zip(&extents).rev() {
            *of_axis = stride;
            stride *= extent;
        }
        let mut positions = vec![0; w.size.len()];
        for (&i, &stride) in others.iter().zip(&strides[1..]) {
            positions[i] = stride;
        }
        InputLayout { point: point_stride(stride), loops: extents.into_iter().zip(strides).collect(), positions }
    }

    /// The rows of products of all tiles: number and distance along each axis.
    pub fn product_rows(&self, d: &ConvDims, w: &Winograd) -> Vec<(u64, u64)> {
        let (all, _) = w.tile_loops();
        let others: Vec<usize> = w.other_axes().collect();
        let step = |n: usize| n.checked_sub(1).and_then(|n| others.get(n)).map_or(1, |&i| d.window[i].stride);
        all.into_iter()
            .zip(&self.loops)
            .enumerate()
            .map(|(n, (extent, &(_, apart)))| (extent, apart * step(n)))
            .collect()
    }

    /// The contracted axes of the products: number and distance of terms along each.
    pub fn contracted_axes(&self, d: &ConvDims, w: &Winograd) -> Vec<(u64, u64)> {
        let taps = w.other_axes().map(|i| (d.window[i].size, self.positions[i] * d.window[i].rhs_dilate));
        let groups: u64 = w.along.iter().map(|a| a.groups).product();
        taps.chain([(groups * w.inputs, 1)]).collect()
    }
}
