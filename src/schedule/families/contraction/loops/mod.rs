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
use crate::schedule::families::contraction::loops::prefetch_panel::PanelPrefetch;
use crate::schedule::families::contraction::loops::register_block::RegisterBlock;
use crate::schedule::families::contraction::recipe::axis::{Axis, merged, one_axis, product};
use crate::schedule::families::contraction::recipe::register_tile::Tile;
use crate::schedule::families::contraction::recipe::{Method, Product, Read, RightSide, TileConstraint};
use crate::schedule::loops::grid::{Grid, Share, chunked, guarded, shares};
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

/// A contraction whose register tiles are being written.
struct Tiling<'t> {
    c: &'t Contraction,
    /// The loops over rows.
    rows: &'t [Axis],
    method: &'t Method,
    /// The right side.
    packed: Panels,
    grid: Grid,
    /// The extent of the row axis along which tiles follow one another.
    extent: u64,
    /// Rows of a tile along that axis.
    step: u64,
    /// The rows in memory of the kernel, where it holds some.
    strip: Option<&'t LocalRows>,
    /// Whether the epilogue stands in a loop over the tile's sums.
    looped: bool,
    /// Whether the right side is packed, or lies as if it was.
    is_packed: bool,
    /// The loops of tiles that share the prefetches of the next panel, where that is worth it.
    prefetching: Option<Vec<VarId>>,
}

impl<'t> Tiling<'t> {
    /// The tiles of `method` over `rows`, with new variables for the loops but that over batches.
    fn new(
        k: &mut Kernel,
        c: &'t Contraction,
        rows: &'t [Axis],
        method: &'t Method,
        packed: Panels,
        batch: VarId,
    ) -> Tiling<'t> {
        let tile = method.tile;
        let width = rows.last().map_or(1, |x| x.extent);
        let height = rows.len().checked_sub(2).map_or(1, |i| rows[i].extent);
        let (extent, step) = if tile.high == 1 { (width, tile.wide) } else { (height, tile.high) };
        let outer = &rows[..rows.len() - if tile.high == 1 { 1 } else { 2 }];
        let grid = Grid {
            batch,
            outer: outer.iter().map(|x| k.var(x.extent)).collect(),
            tile: k.var(extent.div_ceil(step)),
            panel: k.var(product(&c.columns).div_ceil(tile.columns())),
        };
        let (strip, looped, is_packed, prefetching) = (None, false, false, None);
        Tiling { c, rows, method, packed, grid, extent, step, strip, looped, is_packed, prefetching }
    }

    /// Decides whether tiles prefetch the next panel of a right side of so many bytes.
    fn prefetch(&mut self, bytes: u64, sum: &[Axis]) {
        self.is_packed = match self.packed.in_place {
            None => self.packed.term == self.method.panel,
            // as if it was
            Some(first) => first == 0 && matches!(sum[..], [axis] if axis.b == self.method.panel as i64),
        };
        let pass = match self.strip {
            Some(strip) => matches!(strip.held, LocalSide::Pixels(_)),
            None => self.method.order == LoopOrder::Panels,
        };
        self.prefetching = (PanelPrefetch::is_worth(bytes, pass) && self.is_packed).then(|| self.grid.rows());
    }

    /// The register block of one tile.
    fn register_block(&self, k: &Kernel, row: &Share, column: &Share, detail: Detail) -> RegisterBlock {
        let Tiling { c, method, packed, grid, .. } = self;
        let (panel, packed_columns, n) = (method.tile.columns(), method.panel, product(&c.columns));
        // tiles that lie beside one another in a panel that was packed, or else panels of a tile
        let beside = if self.is_packed { (packed_columns / panel).max(1) } else { 1 };
        let apart = if self.is_packed { (panel / packed_columns).max(1) * packed.panel } else { packed.panel };
        let number = column.at.div(beside as i64, &k.vars);
        let part_of_it = column.at.rem(beside as i64, &k.vars);
        let whole = Index::var(grid.batch).scale(packed.batch as i64).add(&number.scale(apart as i64));
        let whole = whole.offset(packed.in_place.unwrap_or(0));
        let of_batch = if packed.batch > 0 { n } else { 0 };
        let scale_at = Index::var(grid.batch).scale(of_batch as i64).offset(-(c.first_column as i64));
        let first = column.at.scale(panel as i64).offset(c.first_column as i64);
        let ahead = self.prefetching.as_ref().and_then(|loops| {
            let of_row = |&v: &VarId| if v == grid.tile { row.at.clone() } else { Index::var(v) };
            let mut place = vec![(part_of_it.clone(), beside)];
            place.extend(loops.iter().map(|v| (of_row(v), k.vars[*v])));
            PanelPrefetch::of_panel(&place, whole.offset(apart as i64), self.terms(), panel.max(packed_columns))
        });
        let pixels = self.strip.filter(|s| matches!(s.held, LocalSide::Pixels(_)));
        let results = self.strip.filter(|s| matches!(s.held, LocalSide::Result(_)));
        RegisterBlock {
            b: whole.add(&part_of_it.scale(panel as i64)),
            ahead,
            packed: packed.buf,
            order: method.numbers,
            scales: packed.scales.map(|buf| (buf, scale_at)),
            term: packed.term,
            is_in_place: packed.in_place.is_some(),
            panel: packed.panel,
            moved: pixels.map_or(Index::default(), |s| s.first().add(&first.scale(-1))),
            near: results.map(|s| (s.first(), s.stride)),
            column: first,
            columns: column.count,
            lanes: method.tile.lanes,
            looped: self.looped,
            inside: c.inside.map(|inside| inside.of_row(&Index::var(grid.outer[1]))),
            ..self.left_side(k, row, detail)
        }
    }

    /// Terms of a sum.
    fn terms(&self) -> u64 {
        product(&self.c.sum)
    }

    /// The left side of the tile at `row`.
    fn left_side(&self, k: &Kernel, row: &Share, detail: Detail) -> RegisterBlock {
        let Tiling { c, grid, method, .. } = self;
        let (wide, high) = if method.tile.high == 1 { (row.count, 1) } else { (method.tile.wide, row.count) };
        let extents: Vec<u64> = c.batch.iter().map(|x| x.extent).collect();
        let batch = reshape(&[Index::var(grid.batch)], &[k.vars[grid.batch]], &extents, &k.vars);
        let mut a = Index::constant(c.a0);
        for (x, axis) in batch.iter().zip(&c.batch) {
            a = a.add(&x.scale(axis.a));
        }
        let at = row.at.scale(self.step as i64);
        let (first, all) = rows_of_tile(self.rows, &grid.outer, at, detail.of(high), detail.of(wide));
        let first = self.strip.filter(|s| matches!(s.held, LocalSide::Left(_))).map_or(first, LocalRows::first);
        RegisterBlock { a: a.add(&first), rows: all, batch: Index::var(grid.batch), ..RegisterBlock::default() }
    }
}

/// Adds the operations of a contraction to the kernel.
fn note_work(k: &mut Kernel, c: &Contraction, rows: &[Axis], sum: &[Axis]) {
    let all = product(rows) * product(&c.batch);
    let terms = match c.inside {
        Some(inside) => {
            inside.pairs(rows[1].extent, sum[0].extent) * (all / rows[1].extent) * (product(sum) / sum[0].extent)
        }
        None => all * product(sum),
    };
    k.flops += 2 * product(&c.columns) * terms;
    k.direct_flops = c.direct_flops;
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
        if is_whole && let Some(right) = self.inner_product_right(c) {
            return self.inner_product(root, |s, sums| s.inner_product_sums(sums, c, right, place));
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
        let (rows, sum) = self.nest_axes(root, c, strip, place)?;
        let width = rows.last().map_or(1, |x| x.extent);
        let given =
            strip.map(|s| TileConstraint { tile: s.tile, form: s.form.as_deref(), rows: s.block_rows(&e.k, width) });
        let method = self.facts(c).method(&rows, &sum, given.as_ref(), self.target);
        let batch = e.k.var(product(&c.batch));
        let (packed, packs) = self.right_panels(&mut e.k, c, &sum, &method, batch)?;
        let may_loop = strip.is_none_or(|s| !matches!(s.held, LocalSide::Pixels(_))) && c.sums_apart.is_none();
        let looped = may_loop
            && self.detail == Detail::Whole
            && self.scope.stages.recipes.get(&root.id).is_some_and(|recipe| recipe.is_looped);
        let mut tiling = Tiling::new(&mut e.k, c, &rows, &method, packed, batch);
        (tiling.strip, tiling.looped) = (strip, looped);
        let right = product(&sum) * product(&c.columns) * self.right_type(c).bytes() as u64;
        tiling.prefetch(right, &sum);
        if product(&rows) * product(&c.batch) == 1 && matches!(c.right, Right::Constant(_) | Right::Stored(_)) {
            e.k.streamed = Some(tiling.packed.buf);
        }
        let mut body = Vec::new();
        for column in shares(&mut e.k, tiling.grid.panel, product(&c.columns), method.tile.columns()) {
            for row in shares(&mut e.k, tiling.grid.tile, tiling.extent, tiling.step) {
                let part = tiling.register_block(&e.k, &row, &column, self.detail);
                let inside = self.tile_body(e, root, c, &sum, part, place)?;
                body.extend(guarded(&mut e.k, &[&column, &row], inside));
            }
        }
        let grid = tiling.grid;
        note_work(&mut e.k, c, &rows, &sum);
        if strip.is_none_or(|s| s.form.is_some()) {
            let Tile { high, wide, vectors, lanes } = method.tile;
            e.k.chosen = Some((method.form, Choice { high, wide, vectors, lanes, order: method.order }));
            e.k.panels = Some(PanelSize { columns: method.panel, lanes });
        }
        Ok(Nest { grid, order: method.order, in_bands: method.is_in_bands, packs, body })
    }

    /// The loops over rows and over terms, with as few axes as addresses allow.
    fn nest_axes(
        &mut self,
        root: Root<'_>,
        c: &Contraction,
        strip: Option<&LocalRows>,
        place: Coordinates<'_>,
    ) -> Result<(Vec<Axis>, Vec<Axis>)> {
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
        Ok((rows, sum))
    }

    /// The right side as panels, where `method` reads it, and the statements that pack it inside the kernel.
    fn right_panels(
        &mut self,
        k: &mut Kernel,
        c: &Contraction,
        sum: &[Axis],
        method: &Method,
        batch: VarId,
    ) -> Result<(Panels, Vec<Stmt>)> {
        let (columns, tile) = (method.panel, method.tile.columns());
        Ok(match (method.read, &c.right) {
            (Read::InPlace { batch }, &Right::Buffer(buf)) => {
                (Panels { buf, term: tile, in_place: Some(c.b0), batch, panel: tile, scales: None }, Vec::new())
            }
            (Read::Transposed { panel, batch }, &Right::Buffer(buf)) => {
                (Panels { buf, term: 1, in_place: None, batch, panel, scales: None }, Vec::new())
            }
            (Read::Stack, &Right::Buffer(buf)) => self.pack_on_stack(k, c, buf, sum, batch, tile),
            _ => (self.pack(c, sum, columns, product(&c.columns).div_ceil(columns), method.numbers)?, Vec::new()),
        })
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
    pub(in crate::schedule) fn inner_product_right<'c>(&self, c: &'c Contraction) -> Option<&'c Tensor> {
        let Right::Constant(right) = &c.right else { return None };
        self.facts(c).is_inner_product(self.target).then_some(right)
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
}

/// The offset of the first of `high` by `wide` rows that lie at `at` along their axis, where `outer` are at the others; and for each row its
/// offset from the first, and its number.
pub(in crate::schedule) fn rows_of_tile(
    rows: &[Axis],
    outer: &[VarId],
    at: Index,
    high: u64,
    wide: u64,
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
