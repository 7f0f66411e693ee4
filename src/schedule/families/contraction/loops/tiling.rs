//! The tiles of a contraction: the loops around them, and the register block of each.
use crate::schedule::emit::Detail;
use crate::schedule::families::contraction::loops::operands::Contraction;
use crate::schedule::families::contraction::loops::pack::RightPanels;
use crate::schedule::families::contraction::loops::prefetch_panel::PanelPrefetch;
use crate::schedule::families::contraction::loops::register_block::RegisterBlock;
use crate::schedule::families::contraction::loops::rows_in_local_memory::{LocalOperand, RowsInLocalMemory};
use crate::schedule::families::contraction::loops::rows_of_tile;
use crate::schedule::families::contraction::recipe::ProductMethod;
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, extent_product};
use crate::schedule::loops::grid::{AxisTile, TileGrid};
use crate::schedule::loops::prelude::*;
use crate::target::LoopOrder;

/// The register tiles of a contraction, while they are emitted.
pub(super) struct Tiling<'t> {
    pub c: &'t Contraction,
    /// The loops over rows.
    pub rows: &'t [ContractionAxis],
    pub method: &'t ProductMethod,
    /// The right side.
    pub packed: RightPanels,
    pub grid: TileGrid,
    /// The extent of the row axis along which tiles follow one another.
    pub extent: u64,
    /// Rows of a tile along the row axis that tiles follow.
    pub step: u64,
    /// The rows in local memory of the kernel, if it has some.
    pub strip: Option<&'t RowsInLocalMemory>,
    /// Whether the epilogue is emitted once, in loops over the tile's sums.
    pub looped: bool,
    /// Whether the right side is packed, or is laid out as if it were.
    pub is_packed: bool,
    /// The loops over tiles that share the prefetch of the next panel, if that pays.
    pub prefetching: Option<Vec<VarId>>,
}

impl<'t> Tiling<'t> {
    /// The tiles of `method` over `rows`, with new loop variables except for batches.
    pub fn new(
        k: &mut Kernel,
        c: &'t Contraction,
        rows: &'t [ContractionAxis],
        method: &'t ProductMethod,
        packed: RightPanels,
        batch: VarId,
    ) -> Tiling<'t> {
        let tile = method.tile;
        let width = rows.last().map_or(1, |x| x.extent);
        let height = rows.len().checked_sub(2).map_or(1, |i| rows[i].extent);
        let (extent, step) = if tile.high == 1 { (width, tile.wide) } else { (height, tile.high) };
        let outer = &rows[..rows.len() - if tile.high == 1 { 1 } else { 2 }];
        let grid = TileGrid {
            batch,
            outer: outer.iter().map(|x| k.add_var(x.extent)).collect(),
            tile: k.add_var(extent.div_ceil(step)),
            panel: k.add_var(extent_product(&c.columns).div_ceil(tile.columns())),
        };
        let (strip, looped, is_packed, prefetching) = (None, false, false, None);
        Tiling { c, rows, method, packed, grid, extent, step, strip, looped, is_packed, prefetching }
    }

    /// Decides whether tiles prefetch the next panel of a right side of `bytes` bytes.
    pub fn decide_prefetch(&mut self, bytes: u64, sum: &[ContractionAxis]) {
        self.is_packed = match self.packed.in_place {
            None => self.packed.term == self.method.panel,
            // as if it was
            Some(first) => first == 0 && matches!(sum[..], [axis] if axis.b == self.method.panel as i64),
        };
        let pass = match self.strip {
            Some(strip) => matches!(strip.held, LocalOperand::Pixels(_)),
            None => self.method.order == LoopOrder::Panels,
        };
        self.prefetching = (PanelPrefetch::is_profitable(bytes, pass) && self.is_packed).then(|| self.grid.row_loops());
    }

    /// The register block of one tile.
    pub fn register_block(&self, k: &Kernel, row: &AxisTile, column: &AxisTile, detail: Detail) -> RegisterBlock {
        let Tiling { c, method, packed, grid, .. } = self;
        let (panel, packed_columns, n) = (method.tile.columns(), method.panel, extent_product(&c.columns));
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
            PanelPrefetch::of_panel(&place, whole.offset(apart as i64), self.term_count(), panel.max(packed_columns))
        });
        let pixels = self.strip.filter(|s| matches!(s.held, LocalOperand::Pixels(_)));
        let results = self.strip.filter(|s| matches!(s.held, LocalOperand::Result(_)));
        RegisterBlock {
            b: whole.add(&part_of_it.scale(panel as i64)),
            ahead,
            packed: packed.buf,
            order: method.numbers,
            per_column: packed.per_column.map(|of_columns| (of_columns, scale_at)),
            term: packed.term,
            is_in_place: packed.in_place.is_some(),
            panel: packed.panel,
            moved: pixels.map_or(Index::default(), |s| s.first_offset().add(&first.scale(-1))),
            near: results.map(|s| (s.first_offset(), s.stride)),
            column: first,
            columns: column.count,
            lanes: method.tile.lanes,
            looped: self.looped,
            inside: c.inside.map(|inside| inside.taps_of_row(&Index::var(grid.outer[1]))),
            ..self.left_side(k, row, detail)
        }
    }

    /// Number of terms of a sum.
    fn term_count(&self) -> u64 {
        extent_product(&self.c.sum)
    }

    /// A register block with the rows of the tile at `row` and the position of its left side; the other fields have default values.
    fn left_side(&self, k: &Kernel, row: &AxisTile, detail: Detail) -> RegisterBlock {
        let Tiling { c, grid, method, .. } = self;
        let (wide, high) = if method.tile.high == 1 { (row.count, 1) } else { (method.tile.wide, row.count) };
        let extents: Vec<u64> = c.batch.iter().map(|x| x.extent).collect();
        let batch = reshape_coordinates(&[Index::var(grid.batch)], &[k.vars[grid.batch]], &extents, &k.vars);
        let mut a = Index::constant(c.a0);
        for (x, axis) in batch.iter().zip(&c.batch) {
            a = a.add(&x.scale(axis.a));
        }
        let at = row.at.scale(self.step as i64);
        let (first, all) =
            rows_of_tile(self.rows, &grid.outer, at, detail.emitted_count(high), detail.emitted_count(wide));
        let first = self
            .strip
            .filter(|s| matches!(s.held, LocalOperand::Left(_)))
            .map_or(first, RowsInLocalMemory::first_offset);
        RegisterBlock { a: a.add(&first), rows: all, batch: Index::var(grid.batch), ..RegisterBlock::default() }
    }
}
