//! Winograd's method along one axis of a window, in three kernels: the inputs are transformed tile by tile, a product of
//! matrices for each point follows, with weights that are transformed on the way, and the sums are transformed back, with the
//! epilogue. Where what is between would leave the second-level cache, one kernel does all of that strip by strip (`strips.rs`),
//! or block by block, where the window has taps along another axis too (`blocks.rs`).
//! See [`crate::schedule::winograd1d`] for when.
mod blocks;
mod panels;
mod strips;

use super::MOST_STACK;
use super::contraction::{Axis, Contraction, Grid, Right, chunked, guarded, merged, numbered, shares};
use super::element::Elements;
use super::positions::Positions;
use super::tile::{Cover, Part, Tile};
use super::transform::{Transform, apart};
use super::{each, label};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::fuse::forward;
use crate::schedule::layout::Layout;
use crate::schedule::points::RESULTS;
use crate::schedule::winograd1d::{TRANSFORM, Winograd1d};
use crate::schedule::{Scheduler, Scope, Value};
use crate::target::{Choice, LoopOrder};
use crate::tensor::{DType, Tensor};
use bytes::Bytes;

/// Panels from which on threads need no parts of the points, where each of those takes memory for weights.
const ENOUGH_PANELS: u64 = 4;

/// Where the transformed inputs lie: `[point][image][positions along the other axes][phase][tile][channel]`.
struct Tiles {
    buf: BufId,
    /// How far points are apart.
    point: u64,
    /// How far images are apart.
    image: u64,
    /// How far positions are apart along each axis of the window.
    positions: Vec<u64>,
    /// How far phases are apart.
    phase: u64,
}

impl Tiles {
    fn new(s: &mut Scheduler<'_>, w: &Winograd1d) -> Tiles {
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
}

/// The loops over all tiles of the results.
struct Lines {
    /// Image, positions along the other axes, phase, tile.
    loops: Vec<VarId>,
    phase: VarId,
    tile: VarId,
    /// Where the results of a tile lie, but along the axis.
    at: Vec<Index>,
}

impl Lines {
    fn new(k: &mut Kernel, d: &ConvDims, w: &Winograd1d, rank: usize) -> Lines {
        let mut at = vec![Index::default(); rank];
        let mut loops = vec![k.var(w.images)];
        at[d.output_batch] = Index::var(loops[0]);
        for i in (0..w.size.len()).filter(|&i| i != w.axis) {
            let v = k.var(w.size[i]);
            at[d.output_spatial[i]] = Index::var(v);
            loops.push(v);
        }
        let (phase, tile) = (k.var(w.phases), k.var(w.tiles));
        loops.extend([phase, tile]);
        Lines { loops, phase, tile, at }
    }

    /// The number of the tile among all.
    fn row(&self, k: &Kernel) -> Index {
        self.loops.iter().fold(Index::default(), |row, &v| row.scale(k.vars[v] as i64).add(&Index::var(v)))
    }
}

/// The products of a strip or a block whose inputs are on the stack, panel by panel.
struct Piece<'c> {
    c: &'c Contraction,
    rows: &'c [Axis],
    tile: Tile,
    /// The weights of all points and panels.
    packed: BufId,
    /// Where the sums of a panel go.
    sums: &'c Value,
}

/// What becomes of the sums of a panel: of the columns from one on, and how many.
type Back<'t, 'a> =
    &'t mut dyn FnMut(&mut Scheduler<'a>, &mut Scope<'a>, &mut Elements, (Index, u64)) -> Result<Vec<Stmt>>;

impl<'a> Scheduler<'a> {
    /// `id` is the convolution itself, its epilogue, or a window that is done with it.
    pub(super) fn winograd_1d(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        d: &ConvDims,
        w: &Winograd1d,
        (left, input): (BufId, &Layout),
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        self.bounded(|s, room| s.winograd_1d_within(scope, (id, anchor), d, (w, room), (left, input), out, steps))
    }

    /// The same, in as much memory of its own, if that is bounded.
    fn winograd_1d_within(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        d: &ConvDims,
        (w, room): (&Winograd1d, Option<u64>),
        (left, input): (BufId, &Layout),
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        if let Some(strips) = self.strips_1d(w, room) {
            return self.winograd_1d_strips(scope, (id, anchor), d, (w, &strips), (left, input), out, steps);
        }
        if let Some(blocks) = self.blocks_1d(d, w, room) {
            return self.winograd_1d_blocks(scope, (id, anchor), d, (w, &blocks), (left, input), out, steps);
        }
        let tiles = Tiles::new(self, w);
        let kernel = self.inputs_1d(d, w, (left, input), &tiles, &label(scope.comp, id));
        self.launch(kernel, steps);
        if let Some(columns) = self.panel_1d(w, room) {
            return self.winograd_1d_panels(scope, (id, anchor), d, (w, columns), &tiles, out, steps);
        }
        let of_point = apart(w.rows() * w.outputs);
        let sums = Value { leaves: vec![self.buffer(DType::F32, w.points.count() * of_point)], layout: None };
        self.products_1d(scope, (id, anchor), d, w, &tiles, (&sums, of_point), steps)?;
        self.results_1d(scope, (id, anchor), d, w, (sums.buffer()?, of_point), out, steps)
    }

    /// Each tile of the input at all points.
    fn inputs_1d(
        &self,
        d: &ConvDims,
        w: &Winograd1d,
        (left, input): (BufId, &Layout),
        tiles: &Tiles,
        name: &str,
    ) -> Kernel {
        let mut k = Kernel { label: format!("tiles of {name}"), ..Kernel::default() };
        let lanes = self.lanes(DType::F32);
        let image = k.var(w.images);
        let mut loops = vec![image];
        let mut from = vec![Index::default(); w.reach.len()];
        let mut to = Index::var(image).scale(tiles.image as i64);
        for i in (0..w.reach.len()).filter(|&i| i != w.axis) {
            let at = k.var(w.reach[i]);
            from[i] = Index::var(at);
            to = to.add(&Index::var(at).scale(tiles.positions[i] as i64));
            loops.push(at);
        }
        let (phase, tile) = (k.var(w.phases), k.var(w.reads()));
        loops.extend([phase, tile]);
        from[w.axis] = first_of_tile(w, tile, phase);
        let to = to.add(&Index::var(phase).scale(tiles.phase as i64)).add(&Index::var(tile).scale(w.inputs as i64));
        let body = inputs_of_tile(&mut k, lanes, (d, w), (left, input, image, &from), (tiles.buf, to, tiles.point));
        let lines: u64 = loops.iter().map(|&v| k.vars[v]).product();
        (k.flops, k.direct_flops) = (3 * w.points.count() * lines * w.inputs, Some(0));
        chunked(&mut k, &loops, body);
        k
    }

    /// The product of each point: for a panel of channels, so that its weights stay near.
    fn products_1d(
        &mut self,
        scope: &mut Scope<'a>,
        ids: (InstId, InstId),
        d: &ConvDims,
        w: &Winograd1d,
        tiles: &Tiles,
        (sums, of_sums): (&Value, u64),
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let weights = self.constant(&w.weights);
        let c = products(d, w, tiles, weights, of_sums);
        let (rows, tile, form) = self.tile_1d(w, &c);
        let panel = tile.vectors * tile.lanes;
        let panels = w.outputs.div_ceil(panel);
        let points = w.points.count();
        let factors = self.factors_1d(w);
        let of_panel = w.terms() * panel;
        let on_stack = 4 * of_panel <= MOST_STACK;
        // threads come out even by points rather than by panels, of which the last may be narrow
        let parts = match panels {
            _ if on_stack => points,
            ENOUGH_PANELS.. => 1,
            _ => 2,
        };
        let own = points.div_ceil(parts);
        let packed = match on_stack {
            true => self.on_stack(DType::F32, of_panel),
            false => self.buffer(DType::F32, panels * parts * of_panel),
        };

        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let k = &mut e.k;
        let (p, part, at, point) = (k.var(panels), k.var(parts), k.var(own), k.var(points));
        let b = match on_stack {
            true => Index::default(),
            false => Index::var(p).scale(parts as i64).add(&Index::var(part)).scale(of_panel as i64),
        };
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let column = columns.at.scale(panel as i64);
            let from = (weights, &column, columns.count);
            let mut inside = weights_1d(&mut e.k, (d, w), from, (factors, point), (packed, &b, panel), tile.lanes);
            let right = Part { b: b.clone(), packed, panel, column, columns: columns.count, ..Part::default() };
            inside.extend(self.sums_1d(scope, &mut e, ids, &c, (&rows, tile), point, &right, sums)?);
            body.extend(guarded(&mut e.k, &[&columns], inside));
        }
        let k = &mut e.k;
        let number = Index::var(part).scale(own as i64).add(&Index::var(at));
        let body = numbered(k, point, number, body);
        let Tile { high, wide, vectors, lanes } = tile;
        k.chosen = Some((form, Choice { high, wide, vectors, lanes, order: LoopOrder::Panels }));
        (k.flops, k.direct_flops) = (2 * w.points.count() * w.terms() * w.outputs * w.rows(), Some(w.direct_flops()));
        chunked(k, &[part, p], vec![each(at, LoopKind::Seq, body)]);
        self.launch(e.k, steps);
        Ok(())
    }

    /// The results of each tile, then the epilogue.
    fn results_1d(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        d: &ConvDims,
        w: &Winograd1d,
        (sums, apart): (BufId, u64),
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let comp = scope.comp;
        let mut e = Elements::new(id, label(comp, id));
        let k = &mut e.k;
        let lines = Lines::new(k, d, w, comp.array(anchor).rank());
        let sums = (sums, lines.row(k).scale(w.outputs as i64), apart);
        let columns = (Index::default(), w.outputs);
        let line = (w, &lines.at[..], lines.phase, lines.tile);
        let body = self.results_of_line(scope, &mut e, (id, anchor), d, line, columns, sums, out)?;
        (e.k.flops, e.k.direct_flops) = (3 * w.points.count() * w.rows() * w.outputs, Some(0));
        chunked(&mut e.k, &lines.loops, body);
        self.launch(e.k, steps);
        Ok(())
    }

    /// The results of a tile from the first of some channels on, and how many; `at` is their place but along the axis. The
    /// sums begin at an element of a buffer, each point `apart` from the next.
    #[expect(clippy::too_many_arguments, reason = "private, called twice")]
    fn results_of_line(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        (id, anchor): (InstId, InstId),
        d: &ConvDims,
        (w, at, phase, tile): (&Winograd1d, &[Index], VarId, VarId),
        (first, columns): (Index, u64),
        (sums, from, apart): (BufId, Index, u64),
        out: &Value,
    ) -> Result<Vec<Stmt>> {
        let lanes = self.lanes(DType::F32);
        let (buf, to) = (out.buffer()?, out.layout(&scope.comp.array(id).dims));
        let pooled = scope.pools.get(&id).cloned();
        let mut body = Vec::new();
        for share in shares(&mut e.k, tile, w.size[w.axis] / w.phases, RESULTS) {
            let (block, lane) = (e.k.var(columns / lanes), e.k.var(lanes));
            let channel = Index::var(block).scale(lanes as i64).add(&Index::var(lane));
            let from = from.add(&channel);
            let mut t = Transform::new(&mut e.k, lanes);
            let read = |t: &mut Transform, j: u64| t.expr(Expr::Load(sums, from.offset((j * apart) as i64)));
            let read: Vec<ExprId> = (0..w.points.count()).map(|j| read(&mut t, j)).collect();
            let values = t.results(&w.points, &read);
            let done = t.registers(RESULTS);
            for (i, value) in values.into_iter().enumerate() {
                t.set(done, i as u64, value);
            }
            let (mut inside, mut taken) = (t.body, Vec::new());
            for i in 0..share.count {
                let mut at = at.to_vec();
                let place = share.at.scale(RESULTS as i64).offset(i as i64).scale(w.phases as i64);
                at[d.output_spatial[w.axis]] = place.add(&Index::var(phase));
                at[d.output_feature] = first.add(&channel);
                e.forget();
                let value = e.k.expr(Expr::Reg(done, Index::constant(i as i64)));
                e.fixed.insert(anchor, value);
                let at = forward(&scope.plan.path[anchor], &at, &e.k.vars);
                let made = match &pooled {
                    Some(pooled) => self.of_window(scope, e, (id, pooled), &mut taken, &at)?,
                    None => Some((at.clone(), self.element(scope, e, id, &at)?)),
                };
                inside.extend(made.map(|(at, value)| Stmt::Store { buf, index: to.at(&at), value }));
            }
            let inside = vec![each(block, LoopKind::Seq, vec![each(lane, LoopKind::Vector, inside)])];
            body.extend(guarded(&mut e.k, &[&share], inside));
        }
        Ok(body)
    }

    /// The rows of the products, the tile they are made in, and what the tuned choices call them.
    fn tile_1d(&self, w: &Winograd1d, c: &Contraction) -> (Vec<Axis>, Tile, String) {
        let mut rows = merged(&c.rows);
        if rows.is_empty() {
            rows.push(Axis { extent: 1, a: 0, b: 0 });
        }
        let height = rows.len().checked_sub(2).map_or(1, |i| rows[i].extent);
        let last = rows[rows.len() - 1];
        let stride = last.a.unsigned_abs() * 4;
        let cover = Cover { height, width: last.extent, columns: w.outputs, sum: w.terms(), stride };
        let all = rows.iter().map(|x| x.extent).product();
        let form = self.form(DType::F32, cover, all, w.points.count());
        let tile = self.tile(DType::F32, cover, &form);
        (rows, tile, form)
    }

    /// What each tap is multiplied by at each point, in memory.
    fn factors_1d(&mut self, w: &Winograd1d) -> BufId {
        let factors: Vec<u8> = w.points.factors(w.taps).iter().flat_map(|&x| (x as f32).to_le_bytes()).collect();
        self.constant(&Tensor::new(DType::F32, vec![w.points.count(), w.taps], Bytes::from(factors)))
    }

    /// Panel after panel of a piece: its products at all points, and what `back` makes of the sums.
    fn panels_of_piece(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        ids: (InstId, InstId),
        w: &Winograd1d,
        piece: &Piece<'_>,
        back: Back<'_, 'a>,
    ) -> Result<Stmt> {
        let Piece { c, rows, tile, packed, sums } = *piece;
        let panel = tile.vectors * tile.lanes;
        let p = e.k.var(w.outputs.div_ceil(panel));
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let point = e.k.var(w.points.count());
            let of_panel = Index::var(point).scale(e.k.vars[p] as i64).add(&columns.at);
            let b = of_panel.scale(apart(w.terms() * panel) as i64);
            let right = Part { b, packed, panel, columns: columns.count, ..Part::default() };
            let made = self.sums_1d(scope, e, ids, c, (rows, tile), point, &right, sums)?;
            let mut inside = vec![each(point, LoopKind::Seq, made)];
            inside.extend(back(self, scope, e, (columns.at.scale(panel as i64), columns.count))?);
            body.extend(guarded(&mut e.k, &[&columns], inside));
        }
        Ok(each(p, LoopKind::Seq, body))
    }

    /// The sums of all rows at the point `batch`, with the panel of `right`.
    #[expect(clippy::too_many_arguments, reason = "private, called twice")]
    fn sums_1d(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        ids: (InstId, InstId),
        c: &Contraction,
        (rows, tile): (&[Axis], Tile),
        batch: VarId,
        right: &Part,
        sums: &Value,
    ) -> Result<Vec<Stmt>> {
        let width = rows.last().map_or(1, |x| x.extent);
        let height = rows.len().checked_sub(2).map_or(1, |i| rows[i].extent);
        let (tiled, tall) = if tile.high == 1 { (width, tile.wide) } else { (height, tile.high) };
        let outer = &rows[..rows.len() - if tile.high == 1 { 1 } else { 2 }];
        let outer: Vec<VarId> = outer.iter().map(|x| e.k.var(x.extent)).collect();
        let grid = Grid { batch, outer, tile: e.k.var(tiled.div_ceil(tall)), panel: batch };
        let nowhere = |_: &Kernel, _: &Index, _: &Index, _: &Index| vec![];
        let mut body = Vec::new();
        for row in shares(&mut e.k, grid.tile, tiled, tall) {
            let (wide, high) = if tile.high == 1 { (row.count, 1) } else { (tile.wide, row.count) };
            let part = self.part(&e.k, c, rows, &grid, row.at.scale(tall as i64), (high, wide), None);
            let part = Part { a: part.a, rows: part.rows, batch: part.batch, lanes: tile.lanes, ..right.clone() };
            let one = self.tile_body(scope, e, ids, c, &merged(&c.sum), part, &nowhere, sums)?;
            body.extend(guarded(&mut e.k, &[&row], one));
        }
        for &v in grid.outer.iter().chain([&grid.tile]).rev() {
            body = vec![each(v, LoopKind::Seq, body)];
        }
        Ok(body)
    }
}

/// The position at which a tile begins in the padded input, along the axis.
fn first_of_tile(w: &Winograd1d, tile: VarId, phase: VarId) -> Index {
    Index::var(tile).scale((RESULTS * w.phases) as i64).add(&Index::var(phase))
}

/// A tile of an image at all points, for all channels: from a position of the padded input on, to an element of a buffer where
/// points are `apart`.
fn inputs_of_tile(
    k: &mut Kernel,
    lanes: u64,
    (d, w): (&ConvDims, &Winograd1d),
    (left, input, image, first_read): (BufId, &Layout, VarId, &[Index]),
    (to, first, apart): (BufId, Index, u64),
) -> Vec<Stmt> {
    let (block, lane) = (k.var(w.inputs / lanes), k.var(lanes));
    let channel = Index::var(block).scale(lanes as i64).add(&Index::var(lane));
    let mut from = channel.offset(input.origin).add(&Index::var(image).scale(input.strides[d.input_batch]));
    let (mut along, mut others) = (None, Vec::new());
    for (i, of_window) in d.window.iter().enumerate() {
        let (stride, steps) = (input.strides[d.input_spatial[i]], (w.points.count(), w.phases));
        let sizes = if i == w.axis { steps } else { (1, 1) };
        let positions = Positions::new(k, &first_read[i].offset(-of_window.pad_low), sizes, w.inside[i]);
        from = from.offset(of_window.pad_low * stride);
        if i == w.axis {
            along = Some((positions, stride));
        } else {
            from = from.add(&positions.at(0, stride));
            others.push(positions);
        }
    }
    let Some((along, stride)) = along else { return vec![] };
    let mut t = Transform::new(k, lanes);
    let lines: Vec<(&Positions, usize)> = others.iter().map(|line| (line, 0)).collect();
    let read = (0..w.points.count() as usize).map(|i| {
        let value = t.expr(Expr::Load(left, from.add(&along.at(i, stride))));
        along.or_zero(t.k, i, &lines, value)
    });
    let read: Vec<ExprId> = read.collect();
    for (j, value) in t.inputs(&w.points, &read).into_iter().enumerate() {
        let index = first.add(&channel).offset(j as i64 * apart as i64);
        t.body.push(Stmt::Store { buf: to, index, value });
    }
    let body = vec![each(block, LoopKind::Seq, vec![each(lane, LoopKind::Vector, t.body)])];
    others.into_iter().fold(along.around(body), |body, line| line.around(body))
}

/// The products of all tiles with weights of all points.
fn products(d: &ConvDims, w: &Winograd1d, tiles: &Tiles, weights: BufId, of_sums: u64) -> Contraction {
    let of = |extent: u64, a: u64| Axis { extent, a: a as i64, b: 0 };
    let others = || (0..w.size.len()).filter(|&i| i != w.axis);
    let mut rows = vec![of(w.images, tiles.image)];
    rows.extend(others().map(|i| of(w.size[i], tiles.positions[i] * d.window[i].stride)));
    rows.extend([of(w.phases, tiles.phase), of(w.tiles, w.inputs)]);
    // of the right side, which lies in panels, only the order of the terms counts
    let mut sum: Vec<Axis> =
        others().map(|i| of(d.window[i].size, tiles.positions[i] * d.window[i].rhs_dilate)).collect();
    sum.push(of(w.groups * w.inputs, 1));
    let mut b = 1;
    for axis in sum.iter_mut().rev() {
        axis.b = b;
        b *= axis.extent as i64;
    }
    Contraction {
        dtype: DType::F32,
        left: tiles.buf,
        right: Right::Buffer(weights),
        a0: 0,
        b0: 0,
        batch: vec![of(w.points.count(), tiles.point)],
        rows,
        columns: vec![Axis { extent: w.outputs, a: 0, b: 1 }],
        sum,
        first_column: 0,
        sums_apart: Some(of_sums),
        direct_flops: Some(w.direct_flops()),
    }
}

/// The weights of one point and panel, `[taps along other axes][group][channel read][column]`.
fn weights_1d(
    k: &mut Kernel,
    (d, w): (&ConvDims, &Winograd1d),
    (from, first, columns): (BufId, &Index, u64),
    (factors, point): (BufId, VarId),
    (to, begin, panel): (BufId, &Index, u64),
    lanes: u64,
) -> Vec<Stmt> {
    let strides = Layout::dense(&w.weights.dims).strides;
    let (channel, vector, lane) = (k.var(w.inputs), k.var(columns / lanes), k.var(lanes));
    let column = Index::var(vector).scale(lanes as i64).add(&Index::var(lane));
    let mut read = first.add(&column).add(&Index::var(channel).scale(strides[d.kernel_input_feature]));
    let mut term = Index::default();
    let mut loops = Vec::new();
    for i in (0..d.window.len()).filter(|&i| i != w.axis) {
        let tap = k.var(d.window[i].size);
        read = read.add(&Index::var(tap).scale(strides[d.kernel_spatial[i]]));
        term = term.scale(d.window[i].size as i64).add(&Index::var(tap));
        loops.push(tap);
    }
    let (group, step) = (k.var(w.groups), strides[d.kernel_spatial[w.axis]]);
    loops.push(group);
    let mut inside = Vec::new();
    for share in shares(k, group, d.window[w.axis].size, w.taps) {
        let term = term.scale(w.groups as i64).add(&share.at).scale(w.inputs as i64).add(&Index::var(channel));
        let read = read.add(&share.at.scale(w.taps as i64 * step));
        let mut t = Transform::new(k, lanes);
        let mut sum = None;
        for l in 0..share.count as i64 {
            let tap = t.expr(Expr::Load(from, read.offset(l * step)));
            let factor = t.expr(Expr::Load(factors, Index::var(point).scale(w.taps as i64).offset(l)));
            sum = Some(t.add_product(tap, factor, sum));
        }
        let Some(value) = sum else { continue };
        let index = begin.add(&term.scale(panel as i64)).add(&column);
        t.body.push(Stmt::Store { buf: to, index, value });
        let body = vec![each(vector, LoopKind::Seq, vec![each(lane, LoopKind::Vector, t.body)])];
        inside.extend(guarded(k, &[&share], vec![each(channel, LoopKind::Seq, body)]));
    }
    for &v in loops.iter().rev() {
        inside = vec![each(v, LoopKind::Seq, inside)];
    }
    inside
}
