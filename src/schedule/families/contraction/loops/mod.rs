//! Matrix products and convolutions: the loops around the register tile. One kernel holds them all: whole tiles and what is
//! left of rows, whole panels of columns and what is left of those; the outermost loops together are its chunks.
pub(in crate::schedule) mod amx;
pub(in crate::schedule) mod inner_product;
pub(in crate::schedule) mod rows_in_local_memory;
pub(in crate::schedule) mod operands;
pub(in crate::schedule) mod pack;
pub(in crate::schedule) mod packings;
pub(in crate::schedule) mod prefetch_panel;
mod processor_blocks;
pub(in crate::schedule) mod register_block;
pub(in crate::schedule) mod register_tile;
pub(in crate::schedule) mod sums;
mod tiling;
pub(in crate::schedule) mod transposed_right;
pub(in crate::schedule) mod words;

use crate::kernel::{Atom, ProductChoice};
use crate::schedule::emit::Detail;
use crate::schedule::families::contraction::loops::operands::{Contraction, ContractionRight, CoordinateMap};
use crate::schedule::families::contraction::loops::pack::RightPanels;
use crate::schedule::families::contraction::loops::rows_in_local_memory::{LocalOperand, RowsInLocalMemory};
use crate::schedule::families::contraction::loops::tiling::Tiling;
use crate::schedule::families::contraction::recipe::axis::{
    ContractionAxis, at_least_one_axis, extent_product, merge_axes,
};
use crate::schedule::families::contraction::recipe::register_tile::RegisterTile;
use crate::schedule::families::contraction::recipe::{
    ProductFacts, ProductMethod, RightSideKind, RightSource, TileConstraint,
};
use crate::schedule::loops::grid::{TileGrid, guard_by_tiles, set_body_in_chunks, split_into_tiles};
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::fuse::root_coordinates;
use crate::target::{LoopOrder, PanelSize, TileChoice};
use crate::tensor::Tensor;

/// The body of a contraction, without the loops of its grid.
pub(in crate::schedule) struct ContractionNest {
    pub grid: TileGrid,
    /// The order of the grid's loops.
    pub order: LoopOrder,
    /// Whether each thread should have a band of rows of its own.
    in_bands: bool,
    /// Statements that pack the right side of one batch, unless a kernel of its own packs it.
    packs: Vec<Stmt>,
    pub body: Vec<Stmt>,
}

/// Adds the floating-point operations of contraction `c` to the kernel's count.
fn note_work(k: &mut Kernel, c: &Contraction, rows: &[ContractionAxis], sum: &[ContractionAxis]) {
    let all = extent_product(rows) * extent_product(&c.batch);
    let terms = match c.inside {
        Some(inside) => {
            inside.count_reading_pairs(rows[1].extent, sum[0].extent)
                * (all / rows[1].extent)
                * (extent_product(sum) / sum[0].extent)
        }
        None => all * extent_product(sum),
    };
    k.flops += 2 * extent_product(&c.columns) * terms;
    k.set_direct_flops(c.direct_flops);
}

impl<'a> Emitter<'a> {
    /// Emits the kernel of `c`, and one that packs its right side if that is not constant.
    pub(in crate::schedule) fn emit_contraction(
        &mut self,
        root: KernelRoot<'_>,
        c: &Contraction,
        place: CoordinateMap<'_>,
    ) -> Result<()> {
        let is_whole =
            extent_product(&c.rows) * extent_product(&c.columns) == self.scope.comp.array_shape(root.anchor).elements();
        if is_whole && let Some(right) = self.inner_product_right(c) {
            return self.emit_inner_product(root, |s, sums| s.inner_product_sums(sums, c, right, place));
        }
        let mut e = self.start_kernel(root.id);
        let nest = self.emit_contraction_nest(&mut e, root, c, None, place)?;
        let (mut loops, mut body) = (nest.grid.loops(nest.order), nest.body);
        if nest.in_bands {
            body = nest.grid.split_into_bands(&mut e.k, &mut loops, body);
        }
        if !nest.packs.is_empty() {
            let inner = loops.iter().rev().filter(|&&v| v != nest.grid.batch);
            body = inner.fold(body, |body, &v| vec![for_loop(v, LoopKind::Seq, body)]);
            body.splice(0..0, nest.packs);
            loops = vec![nest.grid.batch];
        }
        set_body_in_chunks(&mut e.k, &loops, body);
        self.launch(e.k);
        Ok(())
    }

    /// Emits the body of a contraction, around which the caller puts the loops of its grid; with a `strip`, the body of one row of
    /// pixels. A kernel that packs a computed right side is launched first.
    pub(in crate::schedule) fn emit_contraction_nest(
        &mut self,
        e: &mut KernelBuilder,
        root: KernelRoot<'_>,
        c: &Contraction,
        strip: Option<&RowsInLocalMemory>,
        place: CoordinateMap<'_>,
    ) -> Result<ContractionNest> {
        // the result is that of the epilogue, whose elements may lie elsewhere
        let path = self.scope.fusion.path[root.anchor].clone();
        let place: CoordinateMap = &|k, b, r, c| root_coordinates(&path, &place(k, b, r, c), &k.vars);
        let (rows, sum) = self.nest_axes(root, c, strip, place)?;
        let width = rows.last().map_or(1, |x| x.extent);
        let given = strip.map(|s| TileConstraint {
            tile: s.tile,
            form: s.form.as_deref(),
            rows: s.rows_per_block(&e.k, width),
        });
        let method = self.product_facts(c).choose_method(&rows, &sum, given.as_ref(), self.target);
        let batch = e.k.add_var(extent_product(&c.batch));
        let (packed, packs) = self.right_panels(&mut e.k, c, &sum, &method, batch)?;
        let may_loop = strip.is_none_or(|s| !matches!(s.held, LocalOperand::Pixels(_))) && c.sums_apart.is_none();
        let looped = may_loop
            && self.detail == Detail::Whole
            && self.scope.stages.recipes.get(&root.id).is_some_and(|recipe| recipe.is_looped);
        let mut tiling = Tiling::new(&mut e.k, c, &rows, &method, packed, batch);
        (tiling.strip, tiling.looped) = (strip, looped);
        let right = extent_product(&sum) * extent_product(&c.columns) * self.right_type(c).bytes() as u64;
        tiling.decide_prefetch(right, &sum);
        if extent_product(&rows) * extent_product(&c.batch) == 1
            && matches!(c.right, ContractionRight::Constant(_) | ContractionRight::Stored(_))
        {
            e.k.streamed = Some(tiling.packed.buf);
        }
        let mut body = Vec::new();
        for column in split_into_tiles(&mut e.k, tiling.grid.panel, extent_product(&c.columns), method.tile.columns()) {
            for row in split_into_tiles(&mut e.k, tiling.grid.tile, tiling.extent, tiling.step) {
                let part = tiling.register_block(&e.k, &row, &column, self.detail);
                let inside = self.emit_tile(e, root, c, &sum, part, place)?;
                body.extend(guard_by_tiles(&mut e.k, &[&column, &row], inside));
            }
        }
        let grid = tiling.grid;
        note_work(&mut e.k, c, &rows, &sum);
        if strip.is_none_or(|s| s.form.is_some()) {
            let RegisterTile { high, wide, vectors, lanes } = method.tile;
            e.k.set_product_choice(ProductChoice {
                form: method.form,
                choice: TileChoice { high, wide, vectors, lanes, order: method.order },
                panels: PanelSize { columns: method.panel, lanes },
            });
        }
        Ok(ContractionNest { grid, order: method.order, in_bands: method.is_in_bands, packs, body })
    }

    /// The loops over rows and over terms, with as few axes as linear addresses allow.
    fn nest_axes(
        &mut self,
        root: KernelRoot<'_>,
        c: &Contraction,
        strip: Option<&RowsInLocalMemory>,
        place: CoordinateMap<'_>,
    ) -> Result<(Vec<ContractionAxis>, Vec<ContractionAxis>)> {
        let sum = match c.inside {
            // the loop whose steps are left out stays apart, around others
            Some(_) => [&c.sum[..1], &at_least_one_axis(merge_axes(&c.sum[1..]))].concat(),
            None => merge_axes(&c.sum),
        };
        let rows = match (strip, c.sums_apart) {
            (Some(_), _) => c.rows.clone(),
            _ if c.inside.is_some() => c.rows.clone(),
            (None, Some(_)) => merge_axes(&c.rows),
            (None, None) => self.row_axes(root, c, place)?,
        };
        Ok((rows, sum))
    }

    /// The right side in the form in which `method` reads it (packed panels, or the operand in place), and the statements that pack it
    /// inside the kernel.
    fn right_panels(
        &mut self,
        k: &mut Kernel,
        c: &Contraction,
        sum: &[ContractionAxis],
        method: &ProductMethod,
        batch: VarId,
    ) -> Result<(RightPanels, Vec<Stmt>)> {
        let (columns, tile) = (method.panel, method.tile.columns());
        Ok(match (method.read, &c.right) {
            (RightSource::InPlace { batch }, &ContractionRight::Buffer(buf)) => (
                RightPanels { buf, term: tile, in_place: Some(c.b0), batch, panel: tile, per_column: None },
                Vec::new(),
            ),
            (RightSource::Transposed { panel, batch }, &ContractionRight::Buffer(buf)) => {
                (RightPanels { buf, term: 1, in_place: None, batch, panel, per_column: None }, Vec::new())
            }
            (RightSource::Stack, &ContractionRight::Buffer(buf)) => self.pack_on_stack(k, c, buf, sum, batch, tile),
            _ => (
                self.pack_panels(c, sum, columns, extent_product(&c.columns).div_ceil(columns), method.numbers)?,
                Vec::new(),
            ),
        })
    }

    /// The facts about `c` from which its method is chosen.
    pub(in crate::schedule) fn product_facts<'c>(&self, c: &'c Contraction) -> ProductFacts<'c> {
        let left = &self.program.buffers[c.left];
        let side = match &c.right {
            ContractionRight::Constant(_) => RightSideKind::Constant,
            ContractionRight::Stored(s) => RightSideKind::Stored { scales: s.scales.is_some() },
            ContractionRight::Scaled(..) => RightSideKind::Scaled,
            ContractionRight::Buffer(_) => RightSideKind::Computed,
        };
        ProductFacts {
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

    /// The element type of the right side.
    pub(in crate::schedule) fn right_type(&self, c: &Contraction) -> DType {
        match &c.right {
            ContractionRight::Constant(t) | ContractionRight::Scaled(t, _) => t.dtype,
            ContractionRight::Stored(s) => s.numbers.dtype,
            ContractionRight::Buffer(buf) => self.program.buffers[*buf].dtype,
        }
    }

    /// The right side of `c`, if the contraction should be vectorized along its sums.
    pub(in crate::schedule) fn inner_product_right<'c>(&self, c: &'c Contraction) -> Option<&'c Tensor> {
        let ContractionRight::Constant(right) = &c.right else { return None };
        self.product_facts(c).is_inner_product(self.target).then_some(right)
    }

    /// The row axes of `c`, merged as far as all addresses stay linear: a result or an operand of the epilogue with margins keeps its axes
    /// separate, or each address would take divisions.
    pub(in crate::schedule) fn row_axes(
        &mut self,
        KernelRoot { id, anchor, out }: KernelRoot<'_>,
        c: &Contraction,
        place: CoordinateMap<'_>,
    ) -> Result<Vec<ContractionAxis>> {
        let apart: Vec<ContractionAxis> = c.rows.iter().copied().filter(|x| x.extent != 1).collect();
        let rows = merge_axes(&c.rows);
        if rows.len() == apart.len() {
            return Ok(at_least_one_axis(rows));
        }
        let mut e = KernelBuilder::new(id, String::new());
        let at: Vec<VarId> = rows.iter().map(|x| e.k.add_var(x.extent)).collect();
        let row = linear_index(
            &at.iter().map(|&v| Index::var(v)).collect::<Vec<_>>(),
            &rows.iter().map(|x| x.extent).collect::<Vec<_>>(),
        );
        let zero = constant_of_number(&mut e.k, c.dtype, 0.0);
        e.fixed.insert(anchor, zero);
        let column = Index::var(e.k.add_var(extent_product(&c.columns).max(1)));
        let at = place(&e.k, &Index::default(), &row, &column);
        self.emit_element(&mut e, id, &at)?;
        let stored = out.layout(&self.scope.comp.array_shape(id).dims).offset_of(&at);
        let is_linear = |x: &Index| !x.terms.iter().any(|t| matches!(t.0, Atom::Div(..) | Atom::Rem(..)));
        let loads = e.k.exprs.values().all(|e| !matches!(e, Expr::Load(_, x) if !is_linear(x)));
        Ok(if loads && is_linear(&stored) { rows } else { apart })
    }
}

/// The `high` by `wide` rows of a tile: the offset of its first row in the left side, and for each row its offset from the first one and
/// its row number. The tile begins at `at` along its axis, and at `outer` along the axes before that.
pub(in crate::schedule) fn rows_of_tile(
    rows: &[ContractionAxis],
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
        linear_index(&at, &extents)
    };
    let steps = (rows.len().checked_sub(2).map_or(0, |i| rows[i].a), rows[rows.len() - 1].a);
    let each = (0..high).flat_map(|i| (0..wide).map(move |j| (i, j)));
    (first, each.map(|(i, j)| (i as i64 * steps.0 + j as i64 * steps.1, row_of(i, j))).collect())
}
