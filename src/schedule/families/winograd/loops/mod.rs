//! Winograd's method in three kernels: the inputs are transformed tile by tile, a product of matrices for each point follows, and
//! the sums are transformed back, with the epilogue (`tiles.rs`). Or one kernel does all of that piece by piece (`pieces.rs`:
//! strips and blocks), or panel by panel (`panels.rs`). Weights are transformed now, by a kernel before, or on the way into the
//! panels (`weights.rs`). `recipe/` decides when and how.
use self::tiles::TransformedInputs;
use self::weights::{PanelRow, WeightColumns};
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufferLocation, ProductChoice};
use crate::schedule::families::contraction::loops::operands::{Contraction, ContractionRight};
use crate::schedule::families::contraction::loops::register_block::RegisterBlock;
use crate::schedule::families::contraction::loops::rows_of_tile;
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, merge_axes};
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::families::contraction::recipe::register_tile::RegisterTile;
use crate::schedule::families::producer_fusion::recipe::Pooling;
use crate::schedule::families::winograd::recipe::points::point_stride;
use crate::schedule::families::winograd::recipe::{self as method, KernelSplit, ProductRows, Winograd};
use crate::schedule::loops::grid::{guard_by_tiles, set_body_in_chunks, split_into_tiles};
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::choices::InstKey;
use crate::target::{LoopOrder, PanelSize, TileChoice};
use crate::tensor::Tensor;

mod blocks;
mod panels;
mod pieces;
mod positions;
mod strips;
mod tiles;
mod transform;
mod weights;

/// A part of a convolution's input channels.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct InputChannels {
    /// View of the channels; the origin is where the first tile begins, which may be before the first element.
    pub view: ArrayView,
    /// The number of channels.
    pub channels: u64,
}

/// A Winograd convolution whose kernels are being emitted.
struct WinogradConvolution<'c> {
    /// The root (the convolution, its epilogue, or a pooling fused into it), and the convolution.
    ids: (InstId, InstId),
    key: InstKey,
    d: &'c ConvDims,
    w: &'c Winograd,
    /// Whether the weights are transformed at compile time.
    is_known: bool,
    /// Whether the weights could be transformed at compile time.
    may_be_known: bool,
    /// The max pooling that is fused into the convolution.
    pooled: Option<&'c Pooling>,
    /// The input channels.
    input: &'c [InputChannels],
    out: &'c ValueBuffers,
}

/// The products of transformed inputs, whose tiles are rows, with transformed weights in panels.
struct Products<'c> {
    c: Contraction,
    rows: &'c ProductRows,
    packed: BufId,
    sums: ValueBuffers,
}

/// The family of convolutions by Winograd's method.
pub const FAMILY: Family = Family {
    name: "winograd",
    recipe: |planner, request| {
        Ok(planner.winograd_setup(request.context, (request.comp, request.anchor)).map(RecipeSetup::Winograd))
    },
    emit: |s, root, setup| match setup {
        RecipeSetup::Winograd(setup) => s.emit_winograd(root, setup, None),
        other => other.wrong_family_error(),
    },
};

impl<'a> Emitter<'a> {
    /// Emits a convolution by Winograd's method, with the window `pooled` if that is fused into it.
    pub(in crate::schedule) fn emit_winograd(
        &mut self,
        KernelRoot { id, anchor, out }: KernelRoot<'_>,
        setup: &method::WinogradSetup,
        pooled: Option<&Pooling>,
    ) -> Result<()> {
        let ids = (id, pooled.map_or(anchor, |pooled| pooled.convolution));
        let (w, (_, d)) = (&setup.w, self.planned_convolution(ids.1)?);
        let input = &self.input_channel_views(ids.0, ids.1)?;
        let (key, may_be_known) =
            ((self.scope.id, ids.1), setup.could_pretransform() && w.weights.may_be_transformed());
        let conv = WinogradConvolution { ids, key, d, w, is_known: setup.is_known, may_be_known, pooled, input, out };
        let first = self.program.buffers.len();
        match &setup.cut {
            KernelSplit::Strips(strips) => self.emit_winograd_strips(&conv, strips)?,
            KernelSplit::Blocks(blocks) => self.emit_winograd_blocks(&conv, blocks)?,
            KernelSplit::Panels(panels) => {
                let inputs = self.emit_winograd_inputs(&conv);
                self.emit_winograd_panels(&conv, panels, &inputs)?;
            }
            KernelSplit::Whole(panels) => {
                let inputs = self.emit_winograd_inputs(&conv);
                let of_sums = point_stride(w.result_tiles() * w.outputs);
                let sums = ValueBuffers {
                    leaves: vec![self.allocate_buffer(w.types.sums, w.point_count() * of_sums)],
                    layout: None,
                };
                match panels {
                    Some(panels) => self.emit_winograd_products(&conv, panels, &inputs, &sums, of_sums)?,
                    None => self.known_products(&conv, &inputs, &sums, of_sums)?,
                }
                self.emit_winograd_results(&conv, sums.buffer()?, of_sums)?;
            }
        }
        // what it takes for itself
        let own =
            self.program.buffers.iter().skip(first).filter(|(_, b)| matches!(b.place, BufferLocation::Workspace(_)));
        self.found.scratch.extend(own.map(|(buf, _)| (buf, key)));
        Ok(())
    }

    /// Emits the products of all tiles with weights transformed at compile time.
    fn known_products(
        &mut self,
        conv: &WinogradConvolution<'_>,
        TransformedInputs { buf: left, layout: inputs }: &TransformedInputs,
        sums: &ValueBuffers,
        of_sums: u64,
    ) -> Result<()> {
        let (w, rows) = (conv.w, inputs.product_rows(conv.d, conv.w));
        let rows: Vec<ContractionAxis> =
            rows.iter().map(|&(extent, a)| ContractionAxis { extent, a: a as i64, b: 0 }).collect();
        let numbers = Tensor::new(
            w.types.points,
            vec![w.point_count(), w.term_count(), w.outputs],
            conv.transform_constant_weights()?,
        );
        let right = ContractionRight::Constant(numbers);
        let memory = PointProducts { left: *left, right, of_inputs: inputs.point, of_sums };
        let c = point_products(w, memory, merge_axes(&rows), w.outputs, &inputs.contracted_axes(conv.d, w));
        let nowhere = |_: &Kernel, _: &Index, _: &Index, _: &Index| vec![];
        self.emit_contraction(KernelRoot { id: conv.ids.0, anchor: conv.ids.1, out: sums }, &c, &nowhere)
    }

    /// Lanes of the vectors in which weights are transformed for products of `rows`.
    fn weight_lanes(&self, w: &Winograd, rows: &ProductRows) -> u64 {
        (rows.tile.lanes * w.types.terms_per_word()).min(self.processor_lanes(w.types.points))
    }

    /// Launches kernel `k`, which computes products of `rows`: `body` inside `loops`, with `flops` floating-point operations.
    fn launch_winograd(
        &mut self,
        mut k: Kernel,
        w: &Winograd,
        rows: &ProductRows,
        flops: u64,
        loops: &[VarId],
        body: Vec<Stmt>,
    ) {
        let RegisterTile { high, wide, vectors, lanes } = rows.tile;
        k.set_product_choice(ProductChoice {
            form: rows.form.clone(),
            choice: TileChoice { high, wide, vectors, lanes, order: LoopOrder::Panels },
            panels: PanelSize { columns: rows.tile.columns(), lanes },
        });
        k.flops = flops;
        k.set_direct_flops(Some(w.direct_flops()));
        set_body_in_chunks(&mut k, loops, body);
        self.launch(k);
    }

    /// Emits the products of a panel at a row of points: transforms the weight columns `source` into the panel at `right`, and multiplies
    /// all rows of tiles with them.
    fn products_of_row(
        &mut self,
        e: &mut KernelBuilder,
        conv: &WinogradConvolution<'_>,
        products: &Products<'_>,
        source: &WeightColumns<'_>,
        row: &Index,
        right: &RegisterBlock,
    ) -> Result<Vec<Stmt>> {
        let (w, panel) = (conv.w, right.term);
        let of_point = w.row_point_stride(panel);
        let to = PanelRow { buf: right.packed, first: &right.b, columns: panel, point: of_point };
        let lanes = self.weight_lanes(w, products.rows);
        let mut body = conv.emit_row_weights(&mut e.k, source, row, &to, lanes);
        let further = w.row_points();
        let (j, at) = match further {
            1 => (None, Index::default()),
            _ => {
                let j = e.k.add_var(further);
                (Some(j), Index::var(j))
            }
        };
        let point = row.scale(further as i64).add(&at);
        let of_it = RegisterBlock {
            a: point.scale(products.c.batch[0].a),
            b: right.b.add(&at.scale(of_point as i64)),
            batch: right.batch.add(&point),
            ..right.clone()
        };
        let made = self.products_of_point(e, conv, products, &of_it)?;
        match j {
            Some(j) => body.push(for_loop(j, LoopKind::Seq, made)),
            None => body.extend(made),
        }
        Ok(body)
    }

    /// Emits the products of all rows of tiles at one point, with the panel at `right`.
    fn products_of_point(
        &mut self,
        e: &mut KernelBuilder,
        conv: &WinogradConvolution<'_>,
        Products { c, rows: ProductRows { axes: rows, tile, .. }, sums, .. }: &Products<'_>,
        right: &RegisterBlock,
    ) -> Result<Vec<Stmt>> {
        let width = rows.last().map_or(1, |x| x.extent);
        let height = rows.len().checked_sub(2).map_or(1, |i| rows[i].extent);
        let (tiled, tall) = if tile.high == 1 { (width, tile.wide) } else { (height, tile.high) };
        let outer = &rows[..rows.len() - if tile.high == 1 { 1 } else { 2 }];
        let outer: Vec<VarId> = outer.iter().map(|x| e.k.add_var(x.extent)).collect();
        let number = e.k.add_var(tiled.div_ceil(tall));
        let nowhere = |_: &Kernel, _: &Index, _: &Index, _: &Index| vec![];
        let mut body = Vec::new();
        for row in split_into_tiles(&mut e.k, number, tiled, tall) {
            let (wide, high) = if tile.high == 1 { (row.count, 1) } else { (tile.wide, row.count) };
            let (a, all) = rows_of_tile(rows, &outer, row.at.scale(tall as i64), high, wide);
            let order = conv.w.types.words.map_or(PanelOrder::Plain, PanelOrder::Words);
            let part = RegisterBlock { a: right.a.add(&a), rows: all, lanes: tile.lanes, order, ..right.clone() };
            let root = KernelRoot { id: conv.ids.0, anchor: conv.ids.1, out: sums };
            let one = self.emit_tile(e, root, c, &merge_axes(&c.sum), part, &nowhere)?;
            body.extend(guard_by_tiles(&mut e.k, &[&row], one));
        }
        for &v in outer.iter().chain([&number]).rev() {
            body = vec![for_loop(v, LoopKind::Seq, body)];
        }
        Ok(body)
    }
}

/// The operands of the products at all points, and the strides of their points.
struct PointProducts {
    /// The transformed inputs.
    left: BufId,
    /// The transformed weights.
    right: ContractionRight,
    /// Distance of points in the inputs, in elements.
    of_inputs: u64,
    /// Distance of points in the sums, in elements.
    of_sums: u64,
}

/// The products at all points as one contraction of `rows` by `columns`, with a batch for each point.
fn point_products(
    w: &Winograd,
    memory: PointProducts,
    rows: Vec<ContractionAxis>,
    columns: u64,
    terms: &[(u64, u64)],
) -> Contraction {
    let PointProducts { left, right, of_inputs, of_sums } = memory;
    let mut sum: Vec<ContractionAxis> =
        terms.iter().map(|&(extent, a)| ContractionAxis { extent, a: a as i64, b: 0 }).collect();
    let mut b = w.outputs as i64;
    for axis in sum.iter_mut().rev() {
        axis.b = b;
        b *= axis.extent as i64;
    }
    Contraction {
        dtype: w.types.sums,
        left,
        right,
        a0: 0,
        b0: 0,
        batch: vec![ContractionAxis { extent: w.point_count(), a: of_inputs as i64, b }],
        rows,
        columns: vec![ContractionAxis { extent: columns, a: 0, b: 1 }],
        sum,
        first_column: 0,
        sums_apart: Some(of_sums),
        direct_flops: Some(w.direct_flops()),
        inside: None,
    }
}
