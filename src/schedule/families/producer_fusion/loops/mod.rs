//! Kernels that compute a producer inside their consumer: rows of a product of which one side lies in memory of the kernel, and rows of a
//! depthwise window.
pub(in crate::schedule) mod attention;
pub(in crate::schedule) mod depthwise_chain;
pub(in crate::schedule) mod line_buffer;
pub(in crate::schedule) mod pooling;
pub(in crate::schedule) mod separable_convolution;

use crate::diag::Error;
use crate::schedule::families::contraction::loops::ContractionNest;
use crate::schedule::families::contraction::loops::operands::CoordinateMap;
use crate::schedule::families::contraction::loops::rows_in_local_memory::RowsInLocalMemory;
use crate::schedule::families::convolution::recipe::phases::Phase;
use crate::schedule::families::depthwise::loops::TilePosition;
use crate::schedule::families::depthwise::recipe::DepthwiseTiling;
use crate::schedule::families::plane_sums::loops::SumTarget;
use crate::schedule::families::producer_fusion::recipe::FusedProducer;
use crate::schedule::loops::grid::{AxisTile, guard_by_tiles, split_into_tiles};
use crate::schedule::loops::prelude::*;

/// The family of kernels with a producer fused at one of their loop levels.
pub const FAMILY: Family = Family {
    name: "within",
    recipe: |planner, request| planner.fused_producer(request),
    emit: |s, root, setup| match setup {
        RecipeSetup::FusedProducer(FusedProducer::DepthwiseChain(chain), _) => s.emit_depthwise_chain(root, chain),
        RecipeSetup::FusedProducer(FusedProducer::Separable(separable), _) => {
            s.emit_separable_convolution(root, separable)
        }
        RecipeSetup::FusedProducer(FusedProducer::Attention(block), _) => s.emit_attention(root, block),
        RecipeSetup::FusedProducer(FusedProducer::Pooling(pooled), Some(setup)) => {
            s.emit_winograd(root, setup, Some(pooled))
        }
        other => other.wrong_family_error(),
    },
};

/// A row of results of a depthwise convolution.
pub(in crate::schedule) struct WindowRow {
    /// Variable of the image.
    pub batch: VarId,
    /// Variable of the row.
    pub row: VarId,
    /// The panel of channels and its width, if not all channels are computed.
    pub panel: Option<(VarId, u64)>,
    /// Buffer for the sums of the panel's channels, if they are wanted.
    pub sums: Option<BufId>,
}

impl<'a> Emitter<'a> {
    /// Emits the convolution `anchor` with its epilogue `id`, a row of pixels at a time, with one side in local memory of the kernel;
    /// returns its loops over images and rows.
    pub(in crate::schedule) fn emit_product_rows(
        &mut self,
        e: &mut KernelBuilder,
        root @ KernelRoot { anchor, .. }: KernelRoot<'_>,
        input: &ArrayView,
        strip: &RowsInLocalMemory,
    ) -> Result<([VarId; 2], ContractionNest)> {
        let comp = self.scope.comp;
        let (_, p) = self.planned_convolution(anchor)?;
        let right = self.right_side(comp[anchor].operands[1])?;
        let axes = p.output_spatial.iter().zip(&p.window);
        let phases: Vec<Phase> =
            axes.map(|(&axis, w)| Phase::single(comp.array_shape(anchor).dims[axis], w.size)).collect();
        let mut made = None;
        self.with_contraction(anchor, input, &right, &phases, 0, &mut |s, c, place: CoordinateMap<'_>| {
            made = Some(s.emit_contraction_nest(e, root, c, Some(strip), place)?);
            Ok(())
        })?;
        match made.map(|nest| (nest.grid.outer.clone(), nest)) {
            Some((outer, nest)) if outer.len() == 2 => Ok(([outer[0], outer[1]], nest)),
            _ => Err(Error::internal("schedule", "the rows of a convolution are not apart")),
        }
    }

    /// Emits one row of the depthwise convolution `anchor` with its epilogue `id`.
    pub(in crate::schedule) fn emit_window_row(
        &mut self,
        e: &mut KernelBuilder,
        root @ KernelRoot { anchor, .. }: KernelRoot<'_>,
        input: &ArrayView,
        window: &DepthwiseTiling,
        row: &WindowRow,
    ) -> Result<Vec<Stmt>> {
        let result = self.scope.comp.array_shape(anchor).clone();
        let (_, d) = self.planned_convolution(anchor)?;
        let c = self.depthwise_strides(anchor, input, window)?;
        let all = result.dims[d.output_feature];
        e.k.add_flops(window.flops(result.dims[d.output_batch], all));
        let tile = window.tile;
        let tiles = e.k.add_var(result.dims[d.output_spatial[1]].div_ceil(tile));
        let columns = match row.panel {
            Some((panel, most)) => split_into_tiles(&mut e.k, panel, all, most),
            None => vec![AxisTile::whole_axis(all)],
        };
        let mut body = Vec::new();
        for column in columns {
            for part in self.processor_width(DType::F32).split(column.count) {
                for (pixels, run) in c.split_into_tiles(&mut e.k, tiles, tile) {
                    let (block, lane) = (e.k.add_var(part.blocks), e.k.add_var(part.lanes));
                    let from = part.element_index(&Index::var(block), lane);
                    let channel = column.at.scale(row.panel.map_or(0, |(_, most)| most as i64)).add(&from);
                    let (first, lanes) = (pixels.at.scale(tile as i64), part.lanes);
                    let sum = row.sums.map(|buf| SumTarget { buf, at: from.clone(), adds: true });
                    let place = TilePosition { batch: row.batch, outer: &[row.row], first, channel, from, lanes, sum };
                    let inside = self.emit_depthwise_tile(e, root, &c, &place, input, &run)?;
                    body.extend(guard_by_tiles(
                        &mut e.k,
                        &[&column, &pixels],
                        vec![part.loop_nest(block, lane, inside)],
                    ));
                }
            }
        }
        Ok(vec![for_loop(tiles, LoopKind::Seq, body)])
    }
}
