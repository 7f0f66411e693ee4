//! How a contraction is made, a product or a convolution as one: whether lanes run along its sums, and else its tile, how the
//! numbers of its right side lie and where they are read, which loop is outside, whether threads share rows. What decides is
//! sizes, types and strides alone, as the contraction has them once it is known where its operands lie.
pub mod amx;
pub mod axis;
pub mod inner_product;
pub mod panel_order;
pub mod register_tile;
pub mod word_products;

use crate::kernel::tile_product;
use crate::schedule::families::contraction::recipe::axis::{
    ContractionAxis, at_least_one_axis, extent_product, merge_axes,
};
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::families::contraction::recipe::register_tile::{RegisterTile, TiledExtents, single_axis_tiles};
use crate::schedule::families::contraction::recipe::word_products::WordProducts;
use crate::schedule::families::convolution::recipe::tap_rows::TapRows;
use crate::schedule::plan::MOST_NARROW_COLUMNS;
use crate::schedule::target::KernelTarget;
use crate::target::tiles::TileProduct;
use crate::target::{LINE, LoopOrder, MathType};
use crate::tensor::DType;

/// Number of chunks that a kernel should have for threads to share it evenly.
pub const ENOUGH_CHUNKS: u64 = 16;
/// Fewest 32-bit lanes of a vector for which dot-product instructions are used.
const FEWEST_WORDS: u64 = 4;
/// Divisor of the size of the first-level cache: a right side of a batch within that share is packed on the stack.
const OF_FIRST_LEVEL: u64 = 2;

/// Fewest terms of a sum for which vectorization along the sum pays, as its lanes are reduced at the end.
const FEWEST_NARROW_TERMS: u64 = 32;
/// Fewest terms of a sum for which vectorization along the sum pays if the columns fill half a vector, which takes as long as a full one or
/// half as long, depending on the processor.
const FEWEST_FOR_HALF: u64 = 128;
/// Fewest rows for which a half vector of columns is summed fast enough: with fewer, sums wait for one another.
const FEW_ROWS: u64 = 8;

/// Most rows for which a transposed right side is read in place: with more rows packing pays, as a packed element serves each of them.
const MOST_TURNED_ROWS: u64 = 8;
/// Fewest terms of a sum, per row, for which a transposed right side is read in place: the lanes of each sum are reduced at its end.
const FEWEST_TURNED_TERMS: u64 = 8;

/// Compile-time knowledge about the elements of a right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RightSideKind {
    /// The elements are known at compile time.
    Constant,
    /// The elements are known at compile time, in a narrower type than that of the products.
    Stored {
        /// Whether each column has a scale.
        scales: bool,
    },
    /// The elements are constants times one factor per term, which is computed at run time.
    Scaled,
    /// The elements are computed at run time.
    Computed,
}

/// The facts about a contraction that decide its method; they don't include its buffers.
#[derive(Clone, Copy, Debug)]
pub struct ProductFacts<'c> {
    /// The element type of the results.
    pub dtype: DType,
    /// The element type of the left side, and the size of its buffer in elements.
    pub left: (DType, u64),
    /// The element type of the right side.
    pub right: DType,
    /// Compile-time knowledge about the right side.
    pub side: RightSideKind,
    /// Index of the first element of the right side.
    pub b0: i64,
    /// Loops that index both sides.
    pub batch: &'c [ContractionAxis],
    /// Loops that index the left side.
    pub rows: &'c [ContractionAxis],
    /// Loops that index the right side.
    pub columns: &'c [ContractionAxis],
    /// The contracted loops.
    pub sum: &'c [ContractionAxis],
    /// Map of the rows of taps on the padding, which are steps of the first contracted loop, that are left out; `None` if none are.
    pub inside: Option<TapRows>,
    /// Whether the sums are stored without an epilogue.
    pub is_bare: bool,
}

/// Decisions already made for a contraction inside a kernel that computes its left side or consumes its result at once.
#[derive(Clone, Debug)]
pub struct TileConstraint<'s> {
    /// The register tile.
    pub tile: RegisterTile,
    /// Key of the contraction in tuned choices, if they apply.
    pub form: Option<&'s str>,
    /// Rows per block, if the kernel goes block by block; `None` if panels pass over rows of pixels.
    pub rows: Option<u64>,
}

/// The method of a contraction.
#[derive(Clone, Debug)]
pub struct ProductMethod {
    /// Key of the contraction in tuned choices.
    pub form: String,
    /// The register tile.
    pub tile: RegisterTile,
    /// Order of elements in a panel of the right side.
    pub numbers: PanelOrder,
    /// Columns of the panels of a packed right side: those of the tile, a fraction or a multiple of them.
    pub panel: u64,
    /// Memory from which the right side is read.
    pub read: RightSource,
    /// Order of the loops, named by the outermost one.
    pub order: LoopOrder,
    /// Whether each thread should have a band of rows of its own.
    pub is_in_bands: bool,
}

/// Memory from which the right side is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RightSource {
    /// The operand in place: terms have the distances of the contracted loops, batches are `batch` elements apart.
    InPlace { batch: u64 },
    /// The operand in place, transposed: the terms of a column are contiguous, panels are `panel` elements apart.
    Transposed { panel: u64, batch: u64 },
    /// Panels of one batch, on the stack.
    Stack,
    /// Panels in the workspace or in constants.
    Panels,
}

impl ProductFacts<'_> {
    /// Whether the contraction is vectorized along the sum: columns are few and the left side is contiguous.
    pub fn is_inner_product(&self, target: &KernelTarget<'_>) -> bool {
        let sum = merge_axes(self.sum);
        let Some(last) = sum.last() else { return false };
        let whole = target.machine().lanes(self.dtype.bytes() as u64);
        let (n, lanes) = (extent_product(self.columns), lanes_along_sum(last.extent, whole));
        let is_plain = self.side == RightSideKind::Constant && self.right == self.dtype && self.is_plain_left();
        // columns that fill vectors as wide as those along the sum are taken as they are
        let is_half = (2 * n).is_multiple_of(lanes) && extent_product(self.rows) >= FEW_ROWS;
        let fewest = if is_half { FEWEST_FOR_HALF } else { FEWEST_NARROW_TERMS };
        let fits = n <= MOST_NARROW_COLUMNS && n % lanes != 0 && last.a == 1 && last.extent >= whole / 2;
        is_plain && extent_product(self.batch) == 1 && fits && extent_product(&sum) >= fewest
    }

    /// Whether the left side has the type in which its floats are summed.
    fn is_plain_left(&self) -> bool {
        self.left.0 == self.dtype && self.dtype.accumulator_type() == self.dtype && self.dtype.is_float()
    }

    /// Whether the right side is a bf16 constant without scales.
    fn is_bf16(&self) -> bool {
        self.right == DType::BF16
            && matches!(self.side, RightSideKind::Constant | RightSideKind::Stored { scales: false })
    }

    /// The dot-product instruction for the terms of `sum`, if factors are bf16 on request or integers of 8 or 16 bits, and the terms of a
    /// word are contiguous on the left side; `None` otherwise.
    pub fn word_products(&self, sum: &[ContractionAxis], target: &KernelTarget<'_>) -> Option<WordProducts> {
        let machine = target.machine();
        let products = if self.dtype == DType::S32 && self.side == RightSideKind::Constant {
            match (self.left.0, self.right) {
                (DType::S16, DType::S16) => machine.short_dot.map(WordProducts::of_pairs)?,
                (left, right) => machine.byte_dot.and_then(|dot| WordProducts::of_byte_operands(dot, left, right))?,
            }
        } else {
            let is_asked = target.request.precision.math == MathType::Bf16
                && self.is_bf16()
                && self.left.0 == DType::BF16
                && self.dtype == DType::F32;
            machine.bf16_dot.filter(|_| is_asked).map(WordProducts::of_pairs)?
        };
        let last = sum.last().filter(|last| last.a == 1 && last.extent.is_multiple_of(products.terms_per_word()))?;
        (last.extent > 0 && self.inside.is_none()).then_some(products)
    }

    /// Chooses the method of the contraction for these loops over rows and sums; `given` holds decisions made before.
    pub fn choose_method(
        &self,
        rows: &[ContractionAxis],
        sum: &[ContractionAxis],
        given: Option<&TileConstraint<'_>>,
        target: &KernelTarget<'_>,
    ) -> ProductMethod {
        let (n, k) = (extent_product(self.columns), extent_product(sum));
        let size = self.left.0.bytes() as u64;
        let dtype = self.dtype.accumulator_type();
        let (last, before) = (rows.last(), rows.len().checked_sub(2).map(|i| rows[i]));
        let width = last.map_or(1, |x| x.extent);
        let height = before.map_or(1, |x| x.extent);
        let words = self.word_products(sum, target);
        let terms = words.map_or(k, |words| k / words.terms_per_word());
        let stride = last.map_or(0, |x| x.a.unsigned_abs()) * size;
        let adds_apart = words.is_some_and(WordProducts::adds_apart);
        let cover = TiledExtents { height, width, columns: n, sum: terms, stride, adds_apart };
        let apart = [before.map_or(0, |x| x.a), last.map_or(0, |x| x.a)];
        let block = if words.is_some() && given.is_none() { self.amx_block(cover, apart, sum, target) } else { None };
        let (form, tile) = match given {
            Some(given) => (given.form.unwrap_or_default().to_string(), given.tile),
            None => {
                let form =
                    register_tile::tuning_key(target, dtype, cover, extent_product(rows), extent_product(self.batch));
                let tile = match (block, self.inside) {
                    (Some((block, _)), _) => block,
                    (None, Some(_)) => register_tile::choose_tile(
                        target,
                        single_axis_tiles(target.machine(), dtype, cover),
                        dtype,
                        &form,
                    ),
                    (None, None) => register_tile::best_tile(target, dtype, cover, &form),
                };
                (form, tile)
            }
        };
        let numbers = match words.filter(|_| tile.lanes >= FEWEST_WORDS) {
            Some(products) => block.map_or(PanelOrder::Words(products), |(_, product)| PanelOrder::Tiles(product)),
            None if tile.lanes >= FEWEST_WORDS && self.is_bf16() && dtype == DType::F32 => {
                PanelOrder::Vectors(tile.lanes)
            }
            None => PanelOrder::Plain,
        };
        let panel = tile.vectors * tile.lanes;
        let turned = if words.is_none() { self.transposed_right_in_place(sum, panel, target) } else { None };
        let lying = || self.right_in_place(sum, &tile, target).filter(|_| words.is_none());
        let is_near = || given.is_none() && !self.is_bare && self.is_near(sum, panel, target);
        let (numbers, read) = match turned {
            Some(turned) => turned,
            None => {
                (numbers, lying().unwrap_or_else(|| if is_near() { RightSource::Stack } else { RightSource::Panels }))
            }
        };
        let right = k * n * self.right.bytes() as u64;
        let at_once = given.and_then(|given| given.rows).unwrap_or(extent_product(rows));
        // a strided window reads only a part of its memory
        let left = self.left.1.min(extent_product(self.sum).saturating_mul(at_once)) * size;
        let order = register_tile::choose_loop_order(target, &tile, at_once, left, right, n, &form);
        // what a thread then writes it has near when it shares the rows of the next kernel, and what it reads is from the one before
        let is_worth_bands = right < extent_product(rows) * (k + n) * size;
        let is_in_bands = read != RightSource::Stack && (order == LoopOrder::Panels || self.is_bare) && is_worth_bands;
        let is_known =
            matches!(self.side, RightSideKind::Constant | RightSideKind::Stored { .. }) && numbers == PanelOrder::Plain;
        let panel = if is_known { register_tile::panel_columns(target, &tile, dtype, &form) } else { panel };
        ProductMethod { form, tile, numbers, panel, read, order, is_in_bands }
    }

    /// The AMX block of a contraction whose terms come in words and the products that it computes, if the machine has tiles and they pay.
    fn amx_block(
        &self,
        cover: TiledExtents,
        apart: [i64; 2],
        sum: &[ContractionAxis],
        target: &KernelTarget<'_>,
    ) -> Option<(RegisterTile, TileProduct)> {
        let machine = target.machine();
        let product = tile_product(self.left.0, self.right)?;
        let tile = amx::amx_tile(cover, apart)?;
        let pays = match product {
            TileProduct::Bf16 => machine.bf16_tiles,
            TileProduct::Bytes { .. } => {
                machine.byte_tiles
                    && amx::predicted_cycles(machine, product, tile, cover, sum)
                        < register_tile::predicted_cycles(target, DType::S32, cover)
            }
        };
        pays.then_some((tile, product))
    }

    /// Whether the right side is best read in place, column after column, by few rows.
    pub fn reads_right_in_place(&self, target: &KernelTarget<'_>) -> bool {
        ProductFacts { side: RightSideKind::Computed, ..*self }
            .transposed_right_in_place(&merge_axes(self.sum), 1, target)
            .is_some()
    }

    /// Panel order and source to read a transposed right side in place, if rows are few: packing would read and write all of it for few
    /// multiply-adds.
    fn transposed_right_in_place(
        &self,
        sum: &[ContractionAxis],
        panel: u64,
        target: &KernelTarget<'_>,
    ) -> Option<(PanelOrder, RightSource)> {
        let (batch, columns) = (one_on_the_right(self.batch)?, one_on_the_right(self.columns)?);
        let (batch, column) = (u64::try_from(batch.b).ok()?, u64::try_from(columns.b).ok()?);
        let is_plain = self.side == RightSideKind::Computed
            && self.right == self.dtype
            && self.is_plain_left()
            && self.b0 == 0
            && !self.is_bare
            && self.inside.is_none();
        let lanes = target.machine().lanes(self.dtype.bytes() as u64);
        let is_along = sum.last().is_some_and(|x| x.a == 1 && x.b == 1 && x.extent >= lanes);
        let is_few = extent_product(self.rows) <= MOST_TURNED_ROWS.min(extent_product(sum) / FEWEST_TURNED_TERMS);
        let fits =
            is_plain && is_along && is_few && merge_axes(self.rows).len() <= 1 && has_strided_columns(self.columns);
        let panel = panel.checked_mul(column)?;
        fits.then_some((PanelOrder::Transposed(column), RightSource::Transposed { panel, batch }))
    }

    /// Source to read the right side in place, if its columns are contiguous in full vectors and packing gains nothing: it has the layout
    /// of panels, is read once, stays in the first-level cache, or has overlapping terms that panels would copy.
    fn right_in_place(
        &self,
        sum: &[ContractionAxis],
        tile: &RegisterTile,
        target: &KernelTarget<'_>,
    ) -> Option<RightSource> {
        let (batch, columns) = (one_on_the_right(self.batch)?, one_on_the_right(self.columns)?);
        let (term, batch) = (u64::try_from(sum.last()?.b).ok()?, u64::try_from(batch.b).ok()?);
        let (size, panel) = (self.right.bytes() as u64, tile.vectors * tile.lanes);
        let is_once = extent_product(self.rows) <= tile.wide * tile.high;
        let is_near =
            (term * size).is_multiple_of(LINE) && extent_product(sum) * term * size <= target.machine().caches.l1d;
        let overlaps = term < columns.extent;
        let is_worth = overlaps || is_once || is_near || term == panel;
        let is_plain =
            self.side == RightSideKind::Computed && self.right == self.dtype.accumulator_type() && !self.is_bare;
        let fits = is_plain && columns.b == 1 && columns.extent.is_multiple_of(tile.lanes);
        (fits && is_worth).then_some(RightSource::InPlace { batch })
    }

    /// Whether each batch packs a right side of its own on the stack: small enough for the first-level cache, with enough batches for
    /// threads.
    fn is_near(&self, sum: &[ContractionAxis], panel: u64, target: &KernelTarget<'_>) -> bool {
        let panels = extent_product(self.columns).div_ceil(panel);
        let elements = panels.checked_mul(extent_product(sum)).and_then(|n| n.checked_mul(panel));
        let bytes = elements.and_then(|n| n.checked_mul(self.right.bytes() as u64));
        self.side == RightSideKind::Computed
            && has_batched_right(self.batch)
            && extent_product(self.batch) >= ENOUGH_CHUNKS
            && bytes.is_some_and(|bytes| bytes <= target.machine().caches.l1d / OF_FIRST_LEVEL)
    }
}

/// Lanes of the vectors along a sum of `run` terms: half of `whole` if only that divides the sum.
pub fn lanes_along_sum(run: u64, whole: u64) -> u64 {
    let half = (whole / 2).max(1);
    if !run.is_multiple_of(whole) && run.is_multiple_of(half) { half } else { whole }
}

/// Whether each batch has a right side of its own.
pub fn has_batched_right(batch: &[ContractionAxis]) -> bool {
    batch.iter().any(|x| x.b != 0 && x.extent > 1)
}

/// Whether neighboring columns are not contiguous in memory, so that a cache line holds terms of one column.
pub fn has_strided_columns(columns: &[ContractionAxis]) -> bool {
    columns.iter().rfind(|x| x.extent > 1).is_some_and(|x| x.b != 1)
}

/// The single axis into which `axes` merge by their strides in the right side; `None` if several remain.
fn one_on_the_right(axes: &[ContractionAxis]) -> Option<ContractionAxis> {
    let on_the_right: Vec<ContractionAxis> = axes.iter().map(|x| ContractionAxis { a: 0, ..*x }).collect();
    <[ContractionAxis; 1]>::try_from(at_least_one_axis(merge_axes(&on_the_right))).ok().map(|[axis]| axis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{PanelSizes, Target};

    /// The answer of `f` for a processor with vectors of 512 bits.
    fn on_avx512<T>(f: impl FnOnce(&KernelTarget<'_>) -> T) -> T {
        let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4"), None).expect("a processor");
        f(&KernelTarget { request: &target.into(), panels: &PanelSizes::default() })
    }

    /// The loops of `batch` products of `rows` by `terms` with `terms` by `columns`, all row-major; `turned` is whether the right
    /// side lies column after column.
    fn axes([batch, rows, columns, terms]: [u64; 4], turned: bool) -> [Vec<ContractionAxis>; 4] {
        let axis = |extent: u64, a: u64, b: u64| vec![ContractionAxis { extent, a: a as i64, b: b as i64 }];
        let (term, column) = if turned { (1, terms) } else { (columns, 1) };
        [
            axis(batch, rows * terms, terms * columns),
            axis(rows, terms, 0),
            axis(columns, 0, column),
            axis(terms, 1, term),
        ]
    }

    fn product_of(axes: &[Vec<ContractionAxis>; 4], side: RightSideKind) -> ProductFacts<'_> {
        let [batch, rows, columns, sum] = axes;
        let left = (DType::F32, rows[0].extent * sum[0].extent * batch[0].extent);
        let (right, is_bare) = (DType::F32, false);
        ProductFacts { dtype: DType::F32, left, right, side, b0: 0, batch, rows, columns, sum, inside: None, is_bare }
    }

    fn read(sizes: [u64; 4], turned: bool, side: RightSideKind) -> RightSource {
        let axes = axes(sizes, turned);
        on_avx512(|target| product_of(&axes, side).choose_method(&merged_or_one(&axes[1]), &axes[3], None, target).read)
    }

    fn merged_or_one(axes: &[ContractionAxis]) -> Vec<ContractionAxis> {
        at_least_one_axis(merge_axes(axes))
    }

    #[test]
    fn few_columns_of_a_constant_are_summed_along_lanes() {
        let is_inner_product =
            |sizes, side| on_avx512(|target| product_of(&axes(sizes, false), side).is_inner_product(target));
        assert!(is_inner_product([1, 64, 3, 256], RightSideKind::Constant));
        // as many as there are lanes along them, too many, too short, not known now
        assert!(!is_inner_product([1, 64, 16, 256], RightSideKind::Constant));
        assert!(!is_inner_product([1, 64, 9, 256], RightSideKind::Constant));
        assert!(!is_inner_product([1, 64, 3, 16], RightSideKind::Constant));
        assert!(!is_inner_product([1, 64, 3, 256], RightSideKind::Computed));
    }

    #[test]
    fn a_right_side_is_read_where_it_lies_if_it_is_read_once_or_stays_near() {
        assert_eq!(read([1, 1, 512, 512], false, RightSideKind::Computed), RightSource::InPlace { batch: 0 });
        assert_eq!(read([1, 64, 64, 64], false, RightSideKind::Computed), RightSource::InPlace { batch: 0 });
        assert_eq!(read([1, 512, 512, 512], false, RightSideKind::Computed), RightSource::Panels);
        assert_eq!(read([1, 1, 512, 512], false, RightSideKind::Constant), RightSource::Panels);
    }

    #[test]
    fn few_rows_read_a_turned_right_side_where_it_lies() {
        assert!(matches!(
            read([4, 1, 512, 64], true, RightSideKind::Computed),
            RightSource::Transposed { batch: 32768, .. }
        ));
        assert_eq!(read([4, 64, 512, 64], true, RightSideKind::Computed), RightSource::Panels);
    }

    #[test]
    fn small_right_sides_of_many_batches_are_packed_on_the_stack() {
        assert_eq!(read([16, 64, 48, 32], true, RightSideKind::Computed), RightSource::Stack);
        assert_eq!(read([15, 64, 48, 32], true, RightSideKind::Computed), RightSource::Panels);
        assert_eq!(read([16, 64, 512, 512], true, RightSideKind::Computed), RightSource::Panels);
    }

    #[test]
    fn bands_of_rows_are_shared_where_the_right_side_is_less_than_what_they_move() {
        let is_in_bands = |rows| {
            let axes = axes([1, rows, 512, 64], false);
            on_avx512(|target| {
                product_of(&axes, RightSideKind::Constant).choose_method(&axes[1], &axes[3], None, target).is_in_bands
            })
        };
        assert!(is_in_bands(20_000));
        assert!(!is_in_bands(16));
    }
}
