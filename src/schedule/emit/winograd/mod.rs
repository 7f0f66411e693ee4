//! Winograd's method F(4x4, 3x3) in three kernels: the inputs are transformed tile by tile, 36 products of matrices follow,
//! and their results are transformed back, with the epilogue. Where what is between them would leave the second-level cache,
//! one kernel does all of that strip by strip (`strips.rs`). Weights are transformed now where there is room for the larger
//! ones, and else inside the products. When and how is in `plan/winograd/`.
use super::contraction::{Contraction, Right};
use super::element::Elements;
use super::grid::{chunked, guarded, numbered, shares};
use super::tile::Part;
use super::transform::Transform;
use super::{each, label};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, Place, Step, Stmt, VarId};
use crate::schedule::emit::{Emitter, Scope, Value, View};
use crate::schedule::plan::MOST_STACK;
use crate::schedule::plan::axis::Axis;
use crate::schedule::plan::choices::Key;
use crate::schedule::plan::fuse::forward;
use crate::schedule::plan::points::{Points, RESULTS, apart};
use crate::schedule::plan::tile::{self, Cover, Tile};
use crate::schedule::plan::winograd::{Cut, FEW_GROUPS, NARROW, POINTS, READS, Setup, Winograd};
use crate::target::{Choice, LoopOrder};
use crate::tensor::DType;
use tiles::{inputs_of_tile, tile_loops, tile_number};
use weights::{Plain, Window, transformed, weights_of_row};

mod panels;
mod strips;
mod tiles;
mod weights;

/// Parts of the rows of points that threads may share.
const HALVES: u64 = 2;

/// Sixteenths of the second level that weights which are transformed on the way may have with wide panels.
const WEIGHTS_SIXTEENTHS: u64 = 4;

/// Some of the channels that a convolution reads.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    /// How they lie; the origin is where the first tile begins, which may be before the first element.
    pub view: View,
    /// How many there are.
    pub channels: u64,
}

/// A convolution that is done this way.
struct Conv<'c> {
    /// The convolution itself or its epilogue, and the convolution.
    ids: (InstId, InstId),
    key: Key,
    d: &'c ConvDims,
    w: &'c Winograd,
    /// How its weights lie.
    window: Window,
    /// The channels that it reads.
    input: &'c [Plane],
    out: &'c Value,
}

/// The products of tiles with weights that lie in panels.
struct Products<'c> {
    c: &'c Contraction,
    tile: Tile,
    /// Where the sums go.
    sums: &'c Value,
}

impl<'a> Emitter<'a> {
    /// `ids` are the convolution itself or its epilogue, and the convolution.
    pub(super) fn winograd(
        &mut self,
        scope: &mut Scope<'a>,
        ids: (InstId, InstId),
        Setup { w, is_known, cut }: &Setup,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let (_, d) = self.convolution(scope, ids.1)?;
        let input = &self.planes(scope, ids, steps)?;
        let strides = scope.comp.array(scope.comp[ids.1].operands[1]).strides();
        let window = Window {
            rows: strides[d.kernel_spatial[0]],
            columns: strides[d.kernel_spatial[1]],
            inputs: strides[d.kernel_input_feature],
        };
        let conv = Conv { ids, key: (scope.id, ids.1), d, w, window, input, out };
        let first = self.program.buffers.len();
        match cut {
            Cut::Panels(panels) => self.winograd_panels(scope, &conv, panels, steps)?,
            Cut::Strips(strips) => {
                let known = is_known.then(|| transformed(w, window));
                self.winograd_strips(scope, &conv, (strips, known), steps)?;
            }
            Cut::Whole => self.winograd_whole(scope, &conv, *is_known, steps)?,
        }
        self.note_scratch(conv.key, first);
        Ok(())
    }

    /// Notes that the memory of buffers from number `first` on is what a convolution takes for itself.
    pub(super) fn note_scratch(&mut self, key: Key, first: usize) {
        let own = self.program.buffers.iter().skip(first).filter(|(_, b)| matches!(b.place, Place::Workspace(_)));
        self.found.scratch.extend(own.map(|(buf, _)| (buf, key)));
    }

    /// Three kernels.
    fn winograd_whole(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        is_known: bool,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Conv { ids, w, window, .. } = *conv;
        let weights = if is_known { transformed(w, window) } else { w.weights.numbers.clone() };
        let inputs = self.winograd_inputs(scope, conv, steps);
        let of_sums = apart(w.count() * w.outputs);
        let sums = Value { leaves: vec![self.buffer(DType::F32, POINTS * of_sums)], layout: None };
        let contraction = products(w, w.count(), Right::Constant(weights), inputs, of_sums);
        if is_known {
            let nowhere = |_: &Kernel, _: &Index, _: &Index, _: &Index| vec![];
            self.contraction(scope, ids, &contraction, &nowhere, &sums, steps)?;
        } else {
            self.winograd_products(scope, conv, &contraction, &sums, steps)?;
        }
        self.winograd_results(scope, conv, (sums.buffer()?, of_sums), steps)
    }

    /// The kernel of `Bᵀ·d·B` of each tile `d` of the input, to `[point][tile][channel]`: where that is, and how far points are
    /// apart.
    fn winograd_inputs(&mut self, scope: &Scope<'a>, conv: &Conv<'_>, steps: &mut Vec<Step>) -> (BufId, u64) {
        let Conv { ids, d, w, input, .. } = *conv;
        let apart = apart(w.count() * w.inputs);
        let to = self.buffer(DType::F32, POINTS * apart);
        let mut k = Kernel { label: format!("tiles of {}", label(scope.comp, ids.0)), ..Kernel::default() };
        let loops = tile_loops(&mut k, w);
        let first = tile_number(w, loops).scale(w.inputs as i64);
        let body = inputs_of_tile(&mut k, self.lanes(DType::F32), (d, w.reach), input, loops, (to, first, apart));
        (k.flops, k.direct_flops) = (144 * w.count() * w.inputs, Some(0));
        chunked(&mut k, &loops, body);
        self.launch(k, steps);
        (to, apart)
    }

    /// The products with weights that are transformed on the way: for a panel of channels and a row of points at a time, so
    /// that they stay near.
    fn winograd_products(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        c: &Contraction,
        sums: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let (w, rows, channels) = (conv.w, conv.w.count(), conv.w.inputs);
        let cover = Cover { height: 1, width: rows, columns: w.outputs, sum: channels, stride: 4 * channels };
        let choose = |cover: Cover| {
            let form = tile::form(self.target, DType::F32, cover, rows, POINTS);
            (tile::best(self.target, DType::F32, cover, &form), form)
        };
        let of_tile = |tile: &Tile| tile.vectors * tile.lanes;
        let (mut tile, mut form) = choose(cover);
        // what is done at once, each with weights of its own
        let groups = w.outputs.div_ceil(of_tile(&tile)).min(FEW_GROUPS);
        if groups * HALVES * READS * 4 * channels * of_tile(&tile)
            > self.target.caches.l2_sixteenths(WEIGHTS_SIXTEENTHS)
        {
            (tile, form) = choose(Cover { columns: w.outputs.min(NARROW * tile.lanes), ..cover });
        }
        let panel = of_tile(&tile);
        let panels = w.outputs.div_ceil(panel);
        let of_group = panels.div_ceil(groups);
        let of_point = apart(channels * panel);
        let weights = self.plain_weights(w);
        let on_stack = 4 * READS * of_point <= MOST_STACK;
        let packed = match on_stack {
            true => self.on_stack(DType::F32, READS * of_point),
            false => self.for_weights(conv, groups * HALVES * READS * of_point),
        };
        let mut e = Elements::new(conv.ids.0, label(scope.comp, conv.ids.0));
        let (group, half) = (e.k.var(groups), e.k.var(HALVES));
        let (p, of_it, i) = (e.k.var(panels), e.k.var(of_group), e.k.var(READS / HALVES));
        let b = match on_stack {
            true => Index::default(),
            false => Index::var(group).scale(HALVES as i64).add(&Index::var(half)).scale((READS * of_point) as i64),
        };
        let row = Index::var(half).scale((READS / HALVES) as i64).add(&Index::var(i));
        let products = Products { c, tile, sums };
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let column = columns.at.scale(panel as i64);
            let from = (weights, column.clone());
            let right = Part { b: b.clone(), packed, term: panel, column, columns: columns.count, ..Part::default() };
            let inside = self.products_of_row(scope, &mut e, conv, &products, from, &row, &right)?;
            body.extend(guarded(&mut e.k, &[&columns], vec![each(i, LoopKind::Seq, inside)]));
        }
        let number = Index::var(group).scale(of_group as i64).add(&Index::var(of_it));
        let body = numbered(&mut e.k, p, number, body);
        let body = vec![each(of_it, LoopKind::Seq, body)];
        e.k.chosen = Some((form, by_panels(tile)));
        (e.k.flops, e.k.direct_flops) = (2 * POINTS * channels * w.outputs * rows, c.direct_flops);
        chunked(&mut e.k, &[group, half], body);
        self.launch(e.k, steps);
        Ok(())
    }

    /// A row of points: its weights from a column on are transformed, to the panel of `right`, and multiplied with all tiles.
    fn products_of_row(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        conv: &Conv<'_>,
        products: &Products<'_>,
        ((weights, factors), first): ((Plain, BufId), Index),
        row: &Index,
        right: &Part,
    ) -> Result<Vec<Stmt>> {
        let Part { packed, term: panel, .. } = *right;
        let of_point = apart(conv.w.inputs * panel);
        let sizes = (conv.w.inputs, right.columns, products.tile.lanes);
        let to = (packed, (right.b.clone(), panel), of_point);
        let made = weights_of_row(&mut e.k, (weights, first, conv.window), (factors, row), to, sizes);
        let j = e.k.var(READS);
        let point = row.scale(READS as i64).add(&Index::var(j));
        let of_it = Part {
            a: point.scale(products.c.batch[0].a),
            b: right.b.add(&Index::var(j).scale(of_point as i64)),
            batch: right.batch.add(&point),
            ..right.clone()
        };
        let product = self.products_of_point(scope, e, conv.ids, products, &of_it)?;
        Ok(vec![made, each(j, LoopKind::Seq, vec![product])])
    }

    /// All tiles at a point, which begins where `right` does on both sides, with the panel of that.
    fn products_of_point(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        ids: (InstId, InstId),
        &Products { c, tile, sums }: &Products<'_>,
        right: &Part,
    ) -> Result<Stmt> {
        let (rows, channels) = (c.rows[0].extent, c.rows[0].a);
        let row = e.k.var(rows.div_ceil(tile.wide));
        let nowhere = |_: &Kernel, _: &Index, _: &Index, _: &Index| vec![];
        let mut body = Vec::new();
        for share in shares(&mut e.k, row, rows, tile.wide) {
            let at = share.at.scale(tile.wide as i64);
            let part = Part {
                a: right.a.add(&at.scale(channels)),
                rows: (0..share.count as i64).map(|r| (r * channels, at.offset(r))).collect(),
                lanes: tile.lanes,
                ..right.clone()
            };
            let product = self.tile_body(scope, e, ids, c, &c.sum, part, &nowhere, sums)?;
            body.extend(guarded(&mut e.k, &[&share], product));
        }
        Ok(each(row, LoopKind::Seq, body))
    }

    /// `Aᵀ·m·A` of each tile `m` of the sums, then the epilogue.
    fn winograd_results(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        (sums, apart): (BufId, u64),
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Conv { ids, w, .. } = *conv;
        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let loops = tile_loops(&mut e.k, w);
        let sums = (sums, tile_number(w, loops).scale(w.outputs as i64), apart);
        let body = self.results_of_tile(scope, &mut e, conv, loops, (Index::default(), w.outputs), sums)?;
        (e.k.flops, e.k.direct_flops) = (130 * w.count() * w.outputs, Some(0));
        chunked(&mut e.k, &loops, body);
        self.launch(e.k, steps);
        Ok(())
    }

    /// The results of the tile that `loops` (image, row and column of tiles) are at, of `columns`: the first and how many. Its
    /// sums begin at an element of a buffer, each point `apart` from the next.
    fn results_of_tile(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        &Conv { ids: (id, anchor), d, w, out, .. }: &Conv<'_>,
        loops: [VarId; 3],
        (first, columns): (Index, u64),
        (sums, of_tile, apart): (BufId, Index, u64),
    ) -> Result<Vec<Stmt>> {
        let comp = scope.comp;
        let lanes = self.lanes(DType::F32);
        let to = out.view(&comp.array(id).dims)?;
        let rank = comp.array(anchor).rank();
        let mut body = Vec::new();
        for high in shares(&mut e.k, loops[1], w.size[0], RESULTS) {
            for wide in shares(&mut e.k, loops[2], w.size[1], RESULTS) {
                let (block, lane) = (e.k.var(columns / lanes), e.k.var(lanes));
                let channel = Index::var(block).scale(lanes as i64).add(&Index::var(lane));
                let at = of_tile.add(&channel);
                let (half, results) = {
                    let mut t = Transform::new(&mut e.k, lanes);
                    let half = t.back(&Points::SQUARE, sums, &at, apart);
                    (half, t.body)
                };
                let mut inside = results;
                for i in 0..high.count {
                    let mut t = Transform::new(&mut e.k, lanes);
                    let row: Vec<ExprId> = (0..READS).map(|j| t.get(half, i * READS + j)).collect();
                    let values = t.results(&Points::SQUARE, &row);
                    let done = t.registers(RESULTS);
                    for (j, value) in values.into_iter().enumerate() {
                        t.set(done, j as u64, value);
                    }
                    inside.append(&mut t.body);
                    for j in 0..wide.count {
                        let mut at = vec![Index::default(); rank];
                        at[d.output_batch] = Index::var(loops[0]);
                        at[d.output_spatial[0]] = high.at.scale(RESULTS as i64).offset(i as i64);
                        at[d.output_spatial[1]] = wide.at.scale(RESULTS as i64).offset(j as i64);
                        at[d.output_feature] = first.add(&channel);
                        e.forget();
                        let value = e.k.expr(Expr::Reg(done, Index::constant(j as i64)));
                        e.fixed.insert(anchor, value);
                        let at = forward(&scope.fusion.path[anchor], &at, &e.k.vars);
                        let value = self.element(scope, e, id, &at)?;
                        inside.push(to.store(&at, value));
                    }
                }
                let inside = vec![each(block, LoopKind::Seq, vec![each(lane, LoopKind::Vector, inside)])];
                body.extend(guarded(&mut e.k, &[&high, &wide], inside));
            }
        }
        Ok(body)
    }
}

/// The 36 products of `tiles` tiles with weights of all points, out of and into memory where points lie apart.
fn products(w: &Winograd, tiles: u64, right: Right, (left, of_inputs): (BufId, u64), of_sums: u64) -> Contraction {
    let of = |extent: u64, a: u64, b: u64| Axis { extent, a: a as i64, b: b as i64 };
    let (c, o) = (w.inputs, w.outputs);
    Contraction {
        dtype: DType::F32,
        left,
        right,
        a0: 0,
        b0: 0,
        batch: vec![of(POINTS, of_inputs, c * o)],
        rows: vec![of(tiles, c, 0)],
        columns: vec![of(o, 0, 1)],
        sum: vec![of(c, 1, o)],
        first_column: 0,
        sums_apart: Some(of_sums),
        direct_flops: Some(w.direct_flops()),
        inside: None,
    }
}

/// What is chosen where the panels of such a tile are the outer loop.
pub(super) fn by_panels(tile: Tile) -> Choice {
    let Tile { high, wide, vectors, lanes } = tile;
    Choice { high, wide, vectors, lanes, order: LoopOrder::Panels }
}
