//! Matrix products and convolutions: the loops around the register tile. One kernel holds them all: whole tiles and what is
//! left of rows, whole panels of columns and what is left of those; the outermost loops together are its chunks.
pub(in crate::schedule) mod amx;
pub(in crate::schedule) mod inner_product;
pub(in crate::schedule) mod local_rows;
pub(in crate::schedule) mod operands;
pub(in crate::schedule) mod pack;
pub(in crate::schedule) mod packings;
pub(in crate::schedule) mod pairs;
pub(in crate::schedule) mod prefetch_panel;
pub(in crate::schedule) mod register_block;
pub(in crate::schedule) mod register_tile;
pub(in crate::schedule) mod sums;
pub(in crate::schedule) mod transposed_right;

use crate::kernel::Atom;
use crate::schedule::emit::Detail;
use crate::schedule::families::contraction::loops::local_rows::{LocalRows, LocalSide};
use crate::schedule::families::contraction::loops::operands::{Contraction, Coordinates, Right};
use crate::schedule::families::contraction::loops::pack::Panels;
use crate::schedule::families::contraction::loops::prefetch_panel::Ahead;
use crate::schedule::families::contraction::loops::register_block::RegisterBlock;
use crate::schedule::families::contraction::recipe::axis::{Axis, merged, one_axis, product};
use crate::schedule::families::contraction::recipe::register_tile::Tile;
use crate::schedule::families::contraction::recipe::{Method, Product, Read, RightSide, TileConstraint};
use crate::schedule::loops::grid::{Grid, chunked, guarded, shares};
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::fuse::forward;
use crate::target::{Choice, LoopOrder, PanelSize};
use crate::tensor::Tensor;

/// A contraction without the loops of its grid.
pub(in crate::schedule) struct Nest {
    pub grid: Grid,
    /// The order of the grid's loops.
    pub order: LoopOrder,
    /// Whether threads had better have bands of rows each.
    in_bands: bool,
    /// Statements that pack the right side of one batch, where no kernel of its own does.
    packs: Vec<Stmt>,
    pub body: Vec<Stmt>,
}

impl<'a> Emitter<'a> {
    /// The kernel of `c`, and the one that packs its right side where that is not constant.
    pub(in crate::schedule) fn contraction(
        &mut self,
        root: Root<'_>,
        c: &Contraction,
        place: Coordinates<'_>,
    ) -> Result<()> {
        let is_whole = product(&c.rows) * product(&c.columns) == self.scope.comp.array(root.anchor).elements();
        if is_whole && let Some(right) = self.narrow_right(c) {
            return self.narrow(root, |s, sums| s.narrow_sums(sums, c, right, place));
        }
        let mut e = self.elements(root.id);
        let nest = self.nest(&mut e, root, c, None, place)?;
        let (mut loops, mut body) = (nest.grid.loops(nest.order), nest.body);
        if nest.in_bands {
            body = nest.grid.in_bands(&mut e.k, &mut loops, body);
        }
        if !nest.packs.is_empty() {
            let inner = loops.iter().rev().filter(|&&v| v != nest.grid.batch);
            body = inner.fold(body, |body, &v| vec![each(v, LoopKind::Seq, body)]);
            body.splice(0..0, nest.packs);
            loops = vec![nest.grid.batch];
        }
        chunked(&mut e.k, &loops, body);
        self.launch(e.k);
        Ok(())
    }

    /// Writes the body of a contraction, around which the caller puts the loops of its grid; with a `strip` one row of pixels after
    /// another. A kernel that packs a computed right side is launched first.
    pub(in crate::schedule) fn nest(
        &mut self,
        e: &mut Elements,
        root: Root<'_>,
        c: &Contraction,
        strip: Option<&LocalRows>,
        place: Coordinates<'_>,
    ) -> Result<Nest> {
        // the result is that of the epilogue, whose elements may lie elsewhere
        let path = self.scope.fusion.path[root.anchor].clone();
        let place: Coordinates = &|k, b, r, c| forward(&path, &place(k, b, r, c), &k.vars);
        let sum = match c.inside {
            // the loop whose steps are left out stays apart, around others
            Some(_) => [&c.sum[..1], &one_axis(merged(&c.sum[1..]))].concat(),
            None => merged(&c.sum),
        };
        let rows = match (strip, c.sums_apart) {
            (Some(_), _) => c.rows.clone(),
            _ if c.inside.is_some() => c.rows.clone(),
            (None, Some(_)) => merged(&c.rows),
            (None, None) => self.row_axes(root, c, place)?,
        };
        let (n, k) = (product(&c.columns), product(&sum));
        let width = rows.last().map_or(1, |x| x.extent);
        let height = rows.len().checked_sub(2).map_or(1, |i| rows[i].extent);
        let given =
            strip.map(|s| TileConstraint { tile: s.tile, form: s.form.as_deref(), rows: s.block_rows(&e.k, width) });
        let Method { form, tile, numbers, panel: packed_columns, read, order, is_in_bands } =
            self.facts(c).method((&rows, &sum), given.as_ref(), self.target);
        let panel = tile.vectors * tile.lanes;
        let batch = e.k.var(product(&c.batch));
        let panels = n.div_ceil(panel);
        let (packed, packs) = match (read, &c.right) {
            (Read::Lying { batch }, &Right::Buffer(buf)) => {
                (Panels { buf, term: panel, lying: Some(c.b0), batch, panel, scales: None }, Vec::new())
            }
            (Read::Turned { panel, batch }, &Right::Buffer(buf)) => {
                (Panels { buf, term: 1, lying: None, batch, panel, scales: None }, Vec::new())
            }
            (Read::Stack, &Right::Buffer(buf)) => self.pack_near(&mut e.k, (c, buf), &sum, batch, (panel, panels)),
            _ => (self.pack(c, &sum, (packed_columns, n.div_ceil(packed_columns), numbers))?, Vec::new()),
        };
        let pixels = strip.filter(|s| matches!(s.held, LocalSide::Pixels(_)));
        let may_loop = pixels.is_none() && c.sums_apart.is_none() && self.detail == Detail::Whole;
        let looped = may_loop && self.scope.stages.recipes.get(&root.id).is_some_and(|recipe| recipe.is_looped);
        let (tiled, tall) = if tile.high == 1 { (width, tile.wide) } else { (height, tile.high) };
        let outer = &rows[..rows.len() - if tile.high == 1 { 1 } else { 2 }];
        let grid = Grid {
            batch,
            outer: outer.iter().map(|x| e.k.var(x.extent)).collect(),
            tile: e.k.var(tiled.div_ceil(tall)),
            panel: e.k.var(n.div_ceil(panel)),
        };
        let right = k * n * self.right_type(c).bytes() as u64;
        let pass = pixels.is_some() || order == LoopOrder::Panels && strip.is_none();
        let is_packed = match packed.lying {
            None => packed.term == packed_columns,
            // as if it was
            Some(first) => first == 0 && matches!(sum[..], [axis] if axis.b == packed_columns as i64),
        };
        // tiles that lie beside one another in a panel that was packed, or else panels of a tile
        let beside = if is_packed { (packed_columns / panel).max(1) } else { 1 };
        let apart = if is_packed { (panel / packed_columns).max(1) * packed.panel } else { packed.panel };
        let tiles = (Ahead::is_worth(right, pass) && is_packed).then(|| grid.rows());
        if product(&rows) * product(&c.batch) == 1 && matches!(c.right, Right::Constant(_) | Right::Stored(_)) {
            e.k.streamed = Some(packed.buf);
        }
        let mut body = Vec::new();
        for column in shares(&mut e.k, grid.panel, n, panel) {
            for row in shares(&mut e.k, grid.tile, tiled, tall) {
                let at = row.at.scale(tall as i64);
                let (wide, high) = if tile.high == 1 { (row.count, 1) } else { (tile.wide, row.count) };
                let rows_of = (self.detail.of(high), self.detail.of(wide));
                let part = self.part(&e.k, c, &rows, &grid, at, rows_of, strip);
                let number = column.at.div(beside as i64, &e.k.vars);
                let part_of_it = column.at.rem(beside as i64, &e.k.vars);
                let whole = Index::var(grid.batch).scale(packed.batch as i64).add(&number.scale(apart as i64));
                let whole = whole.offset(packed.lying.unwrap_or(0));
                let of_batch = if packed.batch > 0 { n } else { 0 };
                let scale_at = Index::var(grid.batch).scale(of_batch as i64).offset(-(c.first_column as i64));
                let first = column.at.scale(panel as i64).offset(c.first_column as i64);
                let ahead = tiles.as_ref().and_then(|tiles| {
                    let of_row = |&v: &VarId| if v == grid.tile { row.at.clone() } else { Index::var(v) };
                    let mut place = vec![(part_of_it.clone(), beside)];
                    place.extend(tiles.iter().map(|v| (of_row(v), e.k.vars[*v])));
                    Ahead::of_panel(&place, whole.offset(apart as i64), (k, panel.max(packed_columns)))
                });
                let part = RegisterBlock {
                    b: whole.add(&part_of_it.scale(panel as i64)),
                    ahead,
                    packed: packed.buf,
                    order: numbers,
                    scales: packed.scales.map(|buf| (buf, scale_at)),
                    term: packed.term,
                    is_lying: packed.lying.is_some(),
                    panel: packed.panel,
                    moved: pixels.map_or(Index::default(), |s| s.first().add(&first.scale(-1))),
                    near: strip.filter(|s| matches!(s.held, LocalSide::Result(_))).map(|s| (s.first(), s.stride)),
                    column: first,
                    columns: column.count,
                    lanes: tile.lanes,
                    looped,
                    inside: c.inside.map(|inside| inside.of_row(&Index::var(grid.outer[1]))),
                    ..part
                };
                let inside = self.tile_body(e, root, c, &sum, part, place)?;
                body.extend(guarded(&mut e.k, &[&column, &row], inside));
            }
        }
        let Tile { high, wide, vectors, lanes } = tile;
        if strip.is_none_or(|s| s.form.is_some()) {
            e.k.chosen = Some((form, Choice { high, wide, vectors, lanes, order }));
            e.k.panels = Some(PanelSize { columns: packed_columns, lanes });
        }
        let all = product(&rows) * product(&c.batch);
        let terms = match c.inside {
            Some(inside) => inside.pairs(rows[1].extent, sum[0].extent) * (all / rows[1].extent) * (k / sum[0].extent),
            None => all * k,
        };
        e.k.flops += 2 * n * terms;
        e.k.direct_flops = c.direct_flops;
        Ok(Nest { grid, order, in_bands: is_in_bands, packs, body })
    }

    /// The facts about `c` from which its method follows.
    pub(in crate::schedule) fn facts<'c>(&self, c: &'c Contraction) -> Product<'c> {
        let left = &self.program.buffers[c.left];
        let side = match &c.right {
            Right::Constant(_) => RightSide::Constant,
            Right::Stored(s) => RightSide::Stored { scales: s.scales.is_some() },
            Right::Scaled(..) => RightSide::Scaled,
            Right::Buffer(_) => RightSide::Computed,
        };
        Product {
            dtype: c.dtype,
            left: (left.dtype, left.elements),
            right: self.right_type(c),
            side,
            b0: c.b0,
            batch: &c.batch,
            rows: &c.rows,
            columns: &c.columns,
            sum: &c.sum,
            inside: c.inside,
            is_bare: c.sums_apart.is_some(),
        }
    }

    /// The type of the right side.
    pub(in crate::schedule) fn right_type(&self, c: &Contraction) -> DType {
        match &c.right {
            Right::Constant(t) | Right::Scaled(t, _) => t.dtype,
            Right::Stored(s) => s.numbers.dtype,
            Right::Buffer(buf) => self.program.buffers[*buf].dtype,
        }
    }

    /// The right side of `c`, where lanes had better run along its sums.
    pub(in crate::schedule) fn narrow_right<'c>(&self, c: &'c Contraction) -> Option<&'c Tensor> {
        let Right::Constant(right) = &c.right else { return None };
        self.facts(c).is_narrow(self.target).then_some(right)
    }

    /// The rows with as few axes as leave all addresses linear: a result or an operand of the epilogue with a margin needs
    /// its axes apart, or each address would take divisions.
    pub(in crate::schedule) fn row_axes(
        &mut self,
        Root { id, anchor, out }: Root<'_>,
        c: &Contraction,
        place: Coordinates<'_>,
    ) -> Result<Vec<Axis>> {
        let apart: Vec<Axis> = c.rows.iter().copied().filter(|x| x.extent != 1).collect();
        let rows = merged(&c.rows);
        if rows.len() == apart.len() {
            return Ok(one_axis(rows));
        }
        let mut e = Elements::new(id, String::new());
        let at: Vec<VarId> = rows.iter().map(|x| e.k.var(x.extent)).collect();
        let row = linear(
            &at.iter().map(|&v| Index::var(v)).collect::<Vec<_>>(),
            &rows.iter().map(|x| x.extent).collect::<Vec<_>>(),
        );
        let zero = number(&mut e.k, c.dtype, 0.0);
        e.fixed.insert(anchor, zero);
        let column = Index::var(e.k.var(product(&c.columns).max(1)));
        let at = place(&e.k, &Index::default(), &row, &column);
        self.element(&mut e, id, &at)?;
        let stored = out.layout(&self.scope.comp.array(id).dims).at(&at);
        let is_linear = |x: &Index| !x.terms.iter().any(|t| matches!(t.0, Atom::Div(..) | Atom::Rem(..)));
        let loads = e.k.exprs.values().all(|e| !matches!(e, Expr::Load(_, x) if !is_linear(x)));
        Ok(if loads && is_linear(&stored) { rows } else { apart })
    }

    /// Where the tile of `high` by `wide` rows that begins at `at` along its axis lies.
    pub(in crate::schedule) fn part(
        &self,
        k: &Kernel,
        c: &Contraction,
        rows: &[Axis],
        grid: &Grid,
        at: Index,
        (high, wide): (u64, u64),
        strip: Option<&LocalRows>,
    ) -> RegisterBlock {
        let extents: Vec<u64> = c.batch.iter().map(|x| x.extent).collect();
        let batch = reshape(&[Index::var(grid.batch)], &[k.vars[grid.batch]], &extents, &k.vars);
        let mut a = Index::constant(c.a0);
        for (x, axis) in batch.iter().zip(&c.batch) {
            a = a.add(&x.scale(axis.a));
        }
        let (first, all) = rows_of_tile(rows, &grid.outer, at, (high, wide));
        let first = strip.filter(|s| matches!(s.held, LocalSide::Left(_))).map_or(first, LocalRows::first);
        RegisterBlock { a: a.add(&first), rows: all, batch: Index::var(grid.batch), ..RegisterBlock::default() }
    }
}

/// Where the first of the `high` by `wide` rows begins that lie at `at` along their axis, where `outer` are at the others; and of each
/// how far it is from the first, and its number.
pub(in crate::schedule) fn rows_of_tile(
    rows: &[Axis],
    outer: &[VarId],
    at: Index,
    (high, wide): (u64, u64),
) -> (Index, Vec<(i64, Index)>) {
    let mut coordinates: Vec<Index> = outer.iter().map(|&v| Index::var(v)).collect();
    coordinates.push(at);
    coordinates.resize(rows.len(), Index::default());
    let places = coordinates.iter().zip(rows);
    let first = places.fold(Index::default(), |first, (x, axis)| first.add(&x.scale(axis.a)));
    let extents: Vec<u64> = rows.iter().map(|x| x.extent).collect();
    let row_of = |i: u64, j: u64| {
        let mut at = coordinates.clone();
        let last = at.len() - 1;
        at[last] = at[last].offset(j as i64);
        if last > 0 {
            at[last - 1] = at[last - 1].offset(i as i64);
        }
        linear(&at, &extents)
    };
    let steps = (rows.len().checked_sub(2).map_or(0, |i| rows[i].a), rows[rows.len() - 1].a);
    let each = (0..high).flat_map(|i| (0..wide).map(move |j| (i, j)));
    (first, each.map(|(i, j)| (i as i64 * steps.0 + j as i64 * steps.1, row_of(i, j))).collect())
}
