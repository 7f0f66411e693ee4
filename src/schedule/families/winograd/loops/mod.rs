//! Winograd's method in three kernels: the inputs are transformed tile by tile, a product of matrices for each point follows, and
//! the sums are transformed back, with the epilogue (`tiles.rs`). Or one kernel does all of that piece by piece (`pieces.rs`:
//! strips and blocks), or panel by panel (`panels.rs`). Weights are transformed now, by a kernel before, or on the way into the
//! panels (`weights.rs`). `recipe/` decides when and how.
use self::tiles::TransformedInputs;
use self::weights::{PanelRow, WeightColumns};
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufferLocation, ProductChoice};
use crate::schedule::families::contraction::loops::operands::{Contraction, Right};
use crate::schedule::families::contraction::loops::register_block::RegisterBlock;
use crate::schedule::families::contraction::loops::rows_of_tile;
use crate::schedule::families::contraction::recipe::axis::{Axis, merged};
use crate::schedule::families::contraction::recipe::register_tile::Tile;
use crate::schedule::families::producer_fusion::recipe::Pooling;
use crate::schedule::families::winograd::recipe::points::apart;
use crate::schedule::families::winograd::recipe::{self as method, KernelSplit, ProductRows, Winograd};
use crate::schedule::loops::grid::{chunked, guarded, shares};
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::choices::Key;
use crate::target::{Choice, LoopOrder, PanelSize};
use crate::tensor::Tensor;

mod blocks;
mod panels;
mod pieces;
mod positions;
mod strips;
mod tiles;
mod transform;
mod weights;

/// Some of the channels that a convolution reads.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct Plane {
    /// How they lie; the origin is where the first tile begins, which may be before the first element.
    pub view: View,
    /// The number of channels.
    pub channels: u64,
}

/// A convolution that is done this way.
struct Conv<'c> {
    /// The convolution itself, its epilogue, or a window that is done with it; and the convolution.
    ids: (InstId, InstId),
    key: Key,
    d: &'c ConvDims,
    w: &'c Winograd,
    /// Whether its weights are transformed now.
    is_known: bool,
    /// Whether the weights could be transformed now, had that been asked for.
    may_be_known: bool,
    /// The window that is done with it.
    pooled: Option<&'c Pooling>,
    /// The channels that it reads.
    input: &'c [Plane],
    out: &'c ValueBuffers,
}

/// The products of rows with weights that lie in panels.
struct Products<'c> {
    c: Contraction,
    rows: &'c ProductRows,
    packed: BufId,
    sums: ValueBuffers,
}

/// A convolution by Winograd's method.
pub const FAMILY: Family = Family {
    name: "winograd",
    recipe: |planner, request| {
        Ok(planner.winograd(request.context, (request.comp, request.anchor)).map(Setup::Winograd))
    },
    emit: |s, root, setup| match setup {
        Setup::Winograd(setup) => s.winograd(root, setup, None),
        other => other.wrong_family(),
    },
};

impl<'a> Emitter<'a> {
    /// `ids` are the convolution itself, its epilogue, or a window `pooled` that is done with it, and the convolution.
    pub(in crate::schedule) fn winograd(
        &mut self,
        Root { id, anchor, out }: Root<'_>,
        setup: &method::WinogradSetup,
        pooled: Option<&Pooling>,
    ) -> Result<()> {
        let ids = (id, pooled.map_or(anchor, |pooled| pooled.convolution));
        let (w, (_, d)) = (&setup.w, self.convolution(ids.1)?);
        let input = &self.planes(ids.0, ids.1)?;
        let (key, may_be_known) = ((self.scope.id, ids.1), setup.may_be_known() && w.weights.may_be_transformed());
        let conv = Conv { ids, key, d, w, is_known: setup.is_known, may_be_known, pooled, input, out };
        let first = self.program.buffers.len();
        match &setup.cut {
            KernelSplit::Strips(strips) => self.winograd_strips(&conv, strips)?,
            KernelSplit::Blocks(blocks) => self.winograd_blocks(&conv, blocks)?,
            KernelSplit::Panels(panels) => {
                let inputs = self.winograd_inputs(&conv);
                self.winograd_panels(&conv, panels, &inputs)?;
            }
            KernelSplit::Whole(panels) => {
                let inputs = self.winograd_inputs(&conv);
                let of_sums = apart(w.rows() * w.outputs);
                let sums = ValueBuffers { leaves: vec![self.buffer(DType::F32, w.points() * of_sums)], layout: None };
                match panels {
                    Some(panels) => self.winograd_products(&conv, panels, &inputs, &sums, of_sums)?,
                    None => self.known_products(&conv, &inputs, &sums, of_sums)?,
                }
                self.winograd_results(&conv, sums.buffer()?, of_sums)?;
            }
        }
        // what it takes for itself
        let own =
            self.program.buffers.iter().skip(first).filter(|(_, b)| matches!(b.place, BufferLocation::Workspace(_)));
        self.found.scratch.extend(own.map(|(buf, _)| (buf, key)));
        Ok(())
    }

    /// The products of all tiles with weights that are transformed now.
    fn known_products(
        &mut self,
        conv: &Conv<'_>,
        TransformedInputs { buf: left, layout: inputs }: &TransformedInputs,
        sums: &ValueBuffers,
        of_sums: u64,
    ) -> Result<()> {
        let (w, rows) = (conv.w, inputs.rows(conv.d, conv.w));
        let rows: Vec<Axis> = rows.iter().map(|&(extent, a)| Axis { extent, a: a as i64, b: 0 }).collect();
        let numbers = Tensor::new(DType::F32, vec![w.points(), w.terms(), w.outputs], conv.transformed()?);
        let right = Right::Constant(numbers);
        let memory = PointProducts { left: *left, right, of_inputs: inputs.point, of_sums };
        let c = products(w, memory, merged(&rows), w.outputs, &inputs.terms(conv.d, w));
        let nowhere = |_: &Kernel, _: &Index, _: &Index, _: &Index| vec![];
        self.contraction(Root { id: conv.ids.0, anchor: conv.ids.1, out: sums }, &c, &nowhere)
    }

    /// A kernel with products of these rows, and how many operations: `body` in loops.
    fn launch_winograd(
        &mut self,
        mut k: Kernel,
        w: &Winograd,
        rows: &ProductRows,
        flops: u64,
        loops: &[VarId],
        body: Vec<Stmt>,
    ) {
        let Tile { high, wide, vectors, lanes } = rows.tile;
        k.set_product(ProductChoice {
            form: rows.form.clone(),
            choice: Choice { high, wide, vectors, lanes, order: LoopOrder::Panels },
            panels: PanelSize { columns: rows.tile.columns(), lanes },
        });
        k.flops = flops;
        k.set_direct_flops(Some(w.direct_flops()));
        chunked(&mut k, loops, body);
        self.launch(k);
    }

    /// A row of points of a panel: its weights from a column on are transformed, to where `right` has them, and all rows of tiles
    /// multiplied with them.
    fn products_of_row(
        &mut self,
        e: &mut Elements,
        conv: &Conv<'_>,
        products: &Products<'_>,
        source: &WeightColumns<'_>,
        row: &Index,
        right: &RegisterBlock,
    ) -> Result<Vec<Stmt>> {
        let (w, panel) = (conv.w, right.term);
        let of_point = w.of_row_apart(panel);
        let to = PanelRow { buf: right.packed, first: &right.b, columns: panel, point: of_point };
        let mut body = conv.weights_of_row(&mut e.k, source, row, &to, products.rows.tile.lanes);
        let further = w.row_points();
        let (j, at) = match further {
            1 => (None, Index::default()),
            _ => {
                let j = e.k.var(further);
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
            Some(j) => body.push(each(j, LoopKind::Seq, made)),
            None => body.extend(made),
        }
        Ok(body)
    }

    /// All rows of tiles at a point, which begins where `right` does on both sides, with the panel of that.
    fn products_of_point(
        &mut self,
        e: &mut Elements,
        conv: &Conv<'_>,
        Products { c, rows: ProductRows { axes: rows, tile, .. }, sums, .. }: &Products<'_>,
        right: &RegisterBlock,
    ) -> Result<Vec<Stmt>> {
        let width = rows.last().map_or(1, |x| x.extent);
        let height = rows.len().checked_sub(2).map_or(1, |i| rows[i].extent);
        let (tiled, tall) = if tile.high == 1 { (width, tile.wide) } else { (height, tile.high) };
        let outer = &rows[..rows.len() - if tile.high == 1 { 1 } else { 2 }];
        let outer: Vec<VarId> = outer.iter().map(|x| e.k.var(x.extent)).collect();
        let number = e.k.var(tiled.div_ceil(tall));
        let nowhere = |_: &Kernel, _: &Index, _: &Index, _: &Index| vec![];
        let mut body = Vec::new();
        for row in shares(&mut e.k, number, tiled, tall) {
            let (wide, high) = if tile.high == 1 { (row.count, 1) } else { (tile.wide, row.count) };
            let (a, all) = rows_of_tile(rows, &outer, row.at.scale(tall as i64), high, wide);
            let part = RegisterBlock { a: right.a.add(&a), rows: all, lanes: tile.lanes, ..right.clone() };
            let root = Root { id: conv.ids.0, anchor: conv.ids.1, out: sums };
            let one = self.tile_body(e, root, c, &merged(&c.sum), part, &nowhere)?;
            body.extend(guarded(&mut e.k, &[&row], one));
        }
        for &v in outer.iter().chain([&number]).rev() {
            body = vec![each(v, LoopKind::Seq, body)];
        }
        Ok(body)
    }
}

/// The memory of products at all points.
struct PointProducts {
    /// The transformed inputs.
    left: BufId,
    /// The transformed weights.
    right: Right,
    /// Elements from the inputs of a point to those of the next.
    of_inputs: u64,
    /// Elements from the sums of a point to those of the next.
    of_sums: u64,
}

/// The products at all points of rows with so many columns.
fn products(w: &Winograd, memory: PointProducts, rows: Vec<Axis>, columns: u64, terms: &[(u64, u64)]) -> Contraction {
    let PointProducts { left, right, of_inputs, of_sums } = memory;
    let mut sum: Vec<Axis> = terms.iter().map(|&(extent, a)| Axis { extent, a: a as i64, b: 0 }).collect();
    let mut b = w.outputs as i64;
    for axis in sum.iter_mut().rev() {
        axis.b = b;
        b *= axis.extent as i64;
    }
    Contraction {
        dtype: DType::F32,
        left,
        right,
        a0: 0,
        b0: 0,
        batch: vec![Axis { extent: w.points(), a: of_inputs as i64, b }],
        rows,
        columns: vec![Axis { extent: columns, a: 0, b: 1 }],
        sum,
        first_column: 0,
        sums_apart: Some(of_sums),
        direct_flops: Some(w.direct_flops()),
        inside: None,
    }
}
