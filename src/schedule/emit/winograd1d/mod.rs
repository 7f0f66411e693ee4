//! Winograd's method along one axis of a window, in three kernels: the inputs are transformed tile by tile, a product of
//! matrices for each point follows, with weights that are transformed on the way, and the sums are transformed back, with the
//! epilogue. Where what is between would leave the second-level cache, one kernel does all of that piece by piece (`pieces.rs`):
//! strip by strip (`strips.rs`), or block by block, where the window has taps along another axis too (`blocks.rs`).
//! When and how is in `plan/winograd1d/`.
use super::contraction::{Contraction, Right};
use super::element::Elements;
use super::grid::{Grid, chunked, guarded, numbered, shares};
use super::positions::Positions;
use super::tile::Part;
use super::transform::Transform;
use super::winograd::by_panels;
use super::{each, label};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::emit::{Emitter, Scope, Value, View};
use crate::schedule::plan::MOST_STACK;
use crate::schedule::plan::axis::{Axis, merged};
use crate::schedule::plan::choices::Key;
use crate::schedule::plan::fuse::forward;
use crate::schedule::plan::points::{RESULTS, apart};
use crate::schedule::plan::winograd1d::{Cut, Rows, Setup, Winograd1d, rows};
use crate::schedule::plan::within::Pooled;
use crate::tensor::DType;
use lines::{Line, Lines, Tiles};
use weights::weights_of_panel;

mod blocks;
mod lines;
mod panels;
mod pieces;
mod strips;
mod weights;

/// Panels from which on threads need no parts of the points, where each of those takes memory for weights.
const ENOUGH_PANELS: u64 = 4;

/// A convolution that is done this way.
struct Conv<'c> {
    /// The convolution itself, its epilogue, or a window that is done with it; and the convolution.
    ids: (InstId, InstId),
    key: Key,
    d: &'c ConvDims,
    w: &'c Winograd1d,
    /// Whether weights of strips and blocks are transformed now.
    is_known: bool,
    /// The window that is done with it.
    pooled: Option<&'c Pooled>,
    /// What it reads, and how that lies.
    input: &'c View,
    out: &'c Value,
}

/// The products of rows with weights that lie in panels.
struct Products<'c> {
    c: Contraction,
    rows: &'c Rows,
    packed: BufId,
    sums: Value,
}

impl<'a> Emitter<'a> {
    /// `ids` are the convolution itself, its epilogue, or a window `pooled` that is done with it, and the convolution.
    pub(super) fn winograd_1d(
        &mut self,
        scope: &mut Scope<'a>,
        ids: (InstId, InstId),
        (Setup { w, is_known, cut }, pooled): (&Setup, Option<&Pooled>),
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let (_, d) = self.convolution(scope, ids.1)?;
        let input = &self.padded(scope, ids, scope.comp[ids.1].operands[0], steps)?;
        let conv = Conv { ids, key: (scope.id, ids.1), d, w, is_known: *is_known, pooled, input, out };
        let first = self.program.buffers.len();
        match cut {
            Cut::Strips(strips) => self.winograd_1d_strips(scope, &conv, strips, steps)?,
            Cut::Blocks(blocks) => self.winograd_1d_blocks(scope, &conv, blocks, steps)?,
            Cut::Panels(columns) => {
                let tiles = self.inputs_1d(scope, &conv, steps);
                self.winograd_1d_panels(scope, &conv, *columns, &tiles, steps)?;
            }
            Cut::Whole => {
                let tiles = self.inputs_1d(scope, &conv, steps);
                let of_point = apart(w.rows() * w.outputs);
                let sums = self.buffer(DType::F32, w.points.count() * of_point);
                self.products_1d(scope, &conv, &tiles, (sums, of_point), steps)?;
                self.results_1d(scope, &conv, (sums, of_point), steps)?;
            }
        }
        self.note_scratch(conv.key, first);
        Ok(())
    }

    /// The kernel of each tile of the input at all points.
    fn inputs_1d(&mut self, scope: &Scope<'a>, conv: &Conv<'_>, steps: &mut Vec<Step>) -> Tiles {
        let w = conv.w;
        let tiles = Tiles::new(self, w);
        let mut k = Kernel { label: format!("tiles of {}", label(scope.comp, conv.ids.0)), ..Kernel::default() };
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
        let body = inputs_of_tile(&mut k, lanes, conv, (image, &from), (tiles.buf, to, tiles.point));
        let lines: u64 = loops.iter().map(|&v| k.vars[v]).product();
        (k.flops, k.direct_flops) = (3 * w.points.count() * lines * w.inputs, Some(0));
        chunked(&mut k, &loops, body);
        self.launch(k, steps);
        tiles
    }

    /// The product of each point: for a panel of channels, so that its weights stay near.
    fn products_1d(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        tiles: &Tiles,
        (sums, of_sums): (BufId, u64),
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Conv { ids, d, w, .. } = *conv;
        let (weights, rows) = (self.plain_weights_1d(w), rows(self.target, w, &tiles.rows(d, w), w.outputs));
        let (points, panel) = (w.points.count(), rows.panel());
        let (panels, of_panel) = (w.outputs.div_ceil(panel), w.terms() * panel);
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
        let c = products(w, (tiles.buf, packed, tiles.point), (&rows, w.outputs), &tiles.terms(d, w), of_sums);
        let products = Products { c, rows: &rows, packed, sums: Value { leaves: vec![sums], layout: None } };

        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let k = &mut e.k;
        let (p, part, at, point) = (k.var(panels), k.var(parts), k.var(own), k.var(points));
        let b = match on_stack {
            true => Index::default(),
            false => Index::var(p).scale(parts as i64).add(&Index::var(part)).scale(of_panel as i64),
        };
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let first = columns.at.scale(panel as i64);
            let column = first.clone();
            let right = Part { b: b.clone(), packed, term: panel, column, columns: columns.count, ..Part::default() };
            let made = self.products_of_panel(scope, &mut e, conv, &products, (weights, &first), point, &right)?;
            body.extend(guarded(&mut e.k, &[&columns], made));
        }
        let number = Index::var(part).scale(own as i64).add(&Index::var(at));
        let body = vec![each(at, LoopKind::Seq, numbered(&mut e.k, point, number, body))];
        let flops = 2 * points * w.terms() * w.outputs * w.rows();
        self.launch_1d(e.k, w, &rows, flops, (&[part, p], body), steps);
        Ok(())
    }

    /// A kernel with products of these rows, and how many operations: `body` in loops.
    fn launch_1d(
        &mut self,
        mut k: Kernel,
        w: &Winograd1d,
        rows: &Rows,
        flops: u64,
        (loops, body): (&[VarId], Vec<Stmt>),
        steps: &mut Vec<Step>,
    ) {
        k.chosen = Some((rows.form.clone(), by_panels(rows.tile)));
        (k.flops, k.direct_flops) = (flops, Some(w.direct_flops()));
        chunked(&mut k, loops, body);
        self.launch(k, steps);
    }

    /// The results of each tile, then the epilogue.
    fn results_1d(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        (sums, apart): (BufId, u64),
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Conv { ids, d, w, .. } = *conv;
        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let lines = Lines::new(&mut e.k, d, w, scope.comp.array(ids.1).rank());
        let sums = (sums, lines.row(&e.k).scale(w.outputs as i64), apart);
        let columns = (Index::default(), w.outputs);
        let body = self.results_of_line(scope, &mut e, conv, &lines.line, columns, sums)?;
        (e.k.flops, e.k.direct_flops) = (3 * w.points.count() * w.rows() * w.outputs, Some(0));
        chunked(&mut e.k, &lines.loops, body);
        self.launch(e.k, steps);
        Ok(())
    }

    /// The results of a tile from the first of some channels on, and how many. The sums begin at an element of a buffer, each
    /// point `apart` from the next.
    fn results_of_line(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        &Conv { ids: (id, anchor), d, w, out, pooled, .. }: &Conv<'_>,
        line: &Line,
        (first, columns): (Index, u64),
        (sums, from, apart): (BufId, Index, u64),
    ) -> Result<Vec<Stmt>> {
        let lanes = self.lanes(DType::F32);
        let to = out.view(&scope.comp.array(id).dims)?;
        let mut body = Vec::new();
        for share in shares(&mut e.k, line.tile, w.size[w.axis] / w.phases, RESULTS) {
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
                let mut at = line.at.clone();
                let place = share.at.scale(RESULTS as i64).offset(i as i64).scale(w.phases as i64);
                at[d.output_spatial[w.axis]] = place.add(&Index::var(line.phase));
                at[d.output_feature] = first.add(&channel);
                e.forget();
                let value = e.k.expr(Expr::Reg(done, Index::constant(i as i64)));
                e.fixed.insert(anchor, value);
                let at = forward(&scope.fusion.path[anchor], &at, &e.k.vars);
                let made = match pooled {
                    Some(pooled) => self.of_window(scope, e, (id, pooled), &mut taken, &at)?,
                    None => Some((at.clone(), self.element(scope, e, id, &at)?)),
                };
                inside.extend(made.map(|(at, value)| to.store(&at, value)));
            }
            let inside = vec![each(block, LoopKind::Seq, vec![each(lane, LoopKind::Vector, inside)])];
            body.extend(guarded(&mut e.k, &[&share], inside));
        }
        Ok(body)
    }

    /// A panel at a point: its weights from a column on are transformed, to where `right` has them, and all rows multiplied with
    /// them.
    fn products_of_panel(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        conv: &Conv<'_>,
        products: &Products<'_>,
        (weights, first): ([BufId; 2], &Index),
        point: VarId,
        right: &Part,
    ) -> Result<Vec<Stmt>> {
        let (from, to) = ((weights, first, right.columns), (right.packed, &right.b, right.term));
        let mut body = weights_of_panel(&mut e.k, conv, from, point, to, products.rows.tile.lanes);
        body.extend(self.products_of_rows(scope, e, conv.ids, products, point, right)?);
        Ok(body)
    }

    /// All rows at a point, with the panel of `right`.
    fn products_of_rows(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        ids: (InstId, InstId),
        Products { c, rows: Rows { axes: rows, tile, .. }, sums, .. }: &Products<'_>,
        point: VarId,
        right: &Part,
    ) -> Result<Vec<Stmt>> {
        let width = rows.last().map_or(1, |x| x.extent);
        let height = rows.len().checked_sub(2).map_or(1, |i| rows[i].extent);
        let (tiled, tall) = if tile.high == 1 { (width, tile.wide) } else { (height, tile.high) };
        let outer = &rows[..rows.len() - if tile.high == 1 { 1 } else { 2 }];
        let outer: Vec<VarId> = outer.iter().map(|x| e.k.var(x.extent)).collect();
        let grid = Grid { batch: point, outer, tile: e.k.var(tiled.div_ceil(tall)), panel: point };
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
    &Conv { d, w, input, .. }: &Conv<'_>,
    (image, first_read): (VarId, &[Index]),
    (to, first, apart): (BufId, Index, u64),
) -> Vec<Stmt> {
    let (block, lane) = (k.var(w.inputs / lanes), k.var(lanes));
    let channel = Index::var(block).scale(lanes as i64).add(&Index::var(lane));
    let mut from = channel.offset(input.layout.origin).add(&Index::var(image).scale(input.stride(d.input_batch)));
    let (mut along, mut others) = (None, Vec::new());
    for (i, of_window) in d.window.iter().enumerate() {
        let (stride, steps) = (input.stride(d.input_spatial[i]), (w.points.count(), w.phases));
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
        let value = t.expr(Expr::Load(input.buf, from.add(&along.at(i, stride))));
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

/// The products at all points of rows with so many columns, out of and into memory where points lie apart.
fn products(
    w: &Winograd1d,
    (left, packed, of_inputs): (BufId, BufId, u64),
    (rows, columns): (&Rows, u64),
    terms: &[(u64, u64)],
    of_sums: u64,
) -> Contraction {
    let mut sum: Vec<Axis> = terms.iter().map(|&(extent, a)| Axis { extent, a: a as i64, b: 0 }).collect();
    // of the right side, which lies in panels, only the order of the terms counts
    let mut b = 1;
    for axis in sum.iter_mut().rev() {
        axis.b = b;
        b *= axis.extent as i64;
    }
    Contraction {
        dtype: DType::F32,
        left,
        right: Right::Buffer(packed),
        a0: 0,
        b0: 0,
        batch: vec![Axis { extent: w.points.count(), a: of_inputs as i64, b: 0 }],
        rows: rows.axes.clone(),
        columns: vec![Axis { extent: columns, a: 0, b: 1 }],
        sum,
        first_column: 0,
        sums_apart: Some(of_sums),
        direct_flops: Some(w.direct_flops()),
        inside: None,
    }
}
