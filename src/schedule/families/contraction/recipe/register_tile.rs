//! The register tile of contractions: which there are, how long each is predicted to take, and which is chosen. What it does is in
//! `families/contraction/loops/register_tile.rs`.
use crate::schedule::target::KernelTarget;
use crate::target::machine::{L2_BYTES, PRODUCTS_ADDED_APART};
use crate::target::{IsaLevel, LINE, LoopOrder, Target, TileChoice, TuningTrial};
use crate::tensor::DType;
use std::fmt;

/// A register tile: `high` by `wide` rows (neighbors along the last two row axes) by `vectors` of `lanes` columns.
#[derive(Clone, Copy, Debug)]
pub struct RegisterTile {
    /// Rows along the last axis but one; more than one only if the tile spans the last axis.
    pub high: u64,
    /// Rows along the last axis.
    pub wide: u64,
    /// Vectors of columns.
    pub vectors: u64,
    /// Columns of a vector.
    pub lanes: u64,
}

impl RegisterTile {
    /// Number of columns.
    pub fn columns(&self) -> u64 {
        self.vectors * self.lanes
    }

    /// Whether the tile can read panels of `panel` columns: several whole panels, each with contiguous terms, or a part of one. If several
    /// rows read a panel again and again, a part must be within a cache line: the same part of several lines falls into few sets of the
    /// nearest cache (products of BERT took 1.4 times as long with quarters of 64 columns).
    fn reads(&self, panel: u64, dtype: DType) -> bool {
        let is_line = panel * dtype.bytes() as u64 <= LINE;
        let is_part = panel.is_multiple_of(self.columns()) && (is_line || self.high * self.wide == 1);
        panel.is_multiple_of(self.lanes) && (self.columns().is_multiple_of(panel) || is_part)
    }

    /// Whether the tile is that of a measured choice.
    pub fn matches_choice(&self, choice: &TileChoice) -> bool {
        [self.high, self.wide, self.vectors, self.lanes] == [choice.high, choice.wide, choice.vectors, choice.lanes]
    }
}

/// The extents of a contraction that register tiles must cover.
#[derive(Clone, Copy, Debug)]
pub struct TiledExtents {
    /// The extent of the last row axis but one.
    pub height: u64,
    /// The extent of the last row axis.
    pub width: u64,
    /// Number of columns.
    pub columns: u64,
    /// Number of terms of each sum.
    pub sum: u64,
    /// Distance of rows of the left side, in bytes.
    pub stride: u64,
    /// Whether a separate instruction adds the products of integers to the sums.
    pub adds_apart: bool,
}

impl TiledExtents {
    /// Upper limit of vectors in a tile.
    fn most_vectors(&self, lanes: u64) -> u64 {
        let all = self.columns.div_ceil(lanes);
        if self.height * self.width > 1 {
            return all.min(MOST_VECTORS);
        }
        all.min((all / ENOUGH_PANELS).clamp(ENOUGH_VECTORS, MOST_VECTORS))
    }

    /// Number of rows, out of `rows`, that fall into the same set of a first-level cache, whose sets repeat after a page.
    fn in_one_set(&self, rows: u64) -> u64 {
        let mut apart = PAGE;
        while apart > 1 && !self.stride.is_multiple_of(apart) {
            apart /= 2;
        }
        rows.div_ceil(PAGE / apart)
    }
}

/// Distance in bytes at which addresses fall into the same set of a first-level cache again.
const PAGE: u64 = 4096;

/// Cycles to begin the stores of a row of results, which lies at another place in memory; half if rows of the result are contiguous. With
/// sums of 32 terms tiles of 12x2 vectors take a third longer than those of 5x4, which write each row at once.
const A_RUN: f64 = 8.0;

/// Cache lines of a set available to rows of the left side beside those of the right: the cache has eight or twelve ways.
const WAYS: u64 = 6;

/// Micro-operations that are issued per cycle, where products of words and their sums are instructions of their own: four until Ice Lake, and six on Zen
/// 3, on which tiles of 6x2 vectors are the fastest too, by a tenth.
const ISSUED_APART: f64 = 4.0;

/// Micro-operations of a step of the loop over terms: the counter and the branch.
const OF_LOOP: u64 = 2;

/// Upper limit of vectors in a tile: memory delivers a kibibyte of weights per step, read strictly forward, fastest to one row.
const MOST_VECTORS: u64 = 16;

/// Fewest vectors of a one-row tile that are nearly as fast: as many sums as multiply-adds are in flight.
const ENOUGH_VECTORS: u64 = 4;

/// Number of panels that a product of one row should have, for threads to share them.
const ENOUGH_PANELS: u64 = 4;

/// Sixteenths of the second-level cache within which data stay while they are read repeatedly.
const NEAR_SIXTEENTHS: u64 = 8;

/// Largest accepted ratio of the predicted time of a tile that shares packed panels with other code to that of the best tile.
const MOST_SHARED: f64 = 1.25;

/// Upper limit of rows in a tile.
pub const MOST_ROWS: u64 = 14;

/// Width of the panels in which a constant of this product is packed, in columns: those that other code of the function uses, so that both share
/// one copy, or could use (a vector if several rows read them).
pub fn panel_columns(target: &KernelTarget<'_>, tile: &RegisterTile, dtype: DType, form: &str) -> u64 {
    let panels = &target.panels;
    match panels.find(form).filter(|panel| tile.reads(panel.columns, dtype)) {
        Some(panel) => panel.columns,
        None if panels.are_for_others && tile.high * tile.wide > 1 => tile.lanes,
        None => tile.columns(),
    }
}

/// Key of a product in the table of tuned choices: processor, element type and extents.
pub fn tuning_key(target: &KernelTarget<'_>, dtype: DType, cover: TiledExtents, rows: u64, batch: u64) -> String {
    let TiledExtents { height, width, columns, sum, stride, .. } = cover;
    format!(
        "{} {dtype} batch={batch} rows={rows} height={height} width={width} columns={columns} sum={sum} stride={stride}",
        target.machine().cpu
    )
}

/// The tile with the least predicted time, unless a measured choice says otherwise.
pub fn best_tile(target: &KernelTarget<'_>, dtype: DType, cover: TiledExtents, form: &str) -> RegisterTile {
    choose_tile(target, candidate_tiles(target.machine(), dtype, cover), dtype, form)
}

/// The tile of `all` with the least predicted time, unless a measured choice says otherwise.
pub fn choose_tile(
    target: &KernelTarget<'_>,
    mut all: Vec<(f64, RegisterTile)>,
    dtype: DType,
    form: &str,
) -> RegisterTile {
    let tuning = &target.request.tuning;
    if let Some(row) = tuning.rows.get(form) {
        // a tile that is none of them was chosen by another version
        if let Some((_, tile)) = all.iter().find(|(_, tile)| tile.matches_choice(row)) {
            return *tile;
        }
    }
    // a stable sort: of equal ones the first
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    let least = all.first().map_or(0.0, |best| best.0);
    if let Some(panel) = target.panels.find(form) {
        let near = || all.iter().filter(|(time, _)| *time < MOST_SHARED * least).map(|(_, tile)| tile);
        // the very same also reads what lies vector by vector
        let mut same = near().filter(|tile| (tile.columns(), tile.lanes) == (panel.columns, panel.lanes));
        if let Some(tile) = same.next().or_else(|| near().find(|tile| tile.reads(panel.columns, dtype))) {
            return *tile;
        }
    }
    let place = match tuning.trial {
        TuningTrial::Tile(place) => all.get(place).filter(|tile| tile.0 < 1.6 * least).map_or(0, |_| place),
        TuningTrial::None | TuningTrial::OtherOrder | TuningTrial::OtherMethod => 0,
    };
    let lanes = target.machine().lanes(dtype.bytes() as u64);
    all.get(place).map_or(RegisterTile { high: 1, wide: 1, vectors: 1, lanes }, |(_, tile)| *tile)
}

/// Predicted time of the best tile, in cycles.
pub fn predicted_cycles(target: &KernelTarget<'_>, dtype: DType, cover: TiledExtents) -> f64 {
    least_cycles(&candidate_tiles(target.machine(), dtype, cover))
}

/// Predicted time of the fastest of these tiles, in cycles.
pub fn least_cycles(tiles: &[(f64, RegisterTile)]) -> f64 {
    tiles.iter().map(|tile| tile.0).min_by(f64::total_cmp).unwrap_or(0.0)
}

/// Chooses the outermost loop with the least traffic from far memory, unless a measured choice says otherwise.
pub fn choose_loop_order(
    target: &KernelTarget<'_>,
    tile: &RegisterTile,
    rows: u64,
    left: u64,
    right: u64,
    columns: u64,
    form: &str,
) -> LoopOrder {
    let tuning = &target.request.tuning;
    if let Some(row) = tuning.rows.get(form).filter(|row| tile.matches_choice(row)) {
        return row.order;
    }
    let near = target.machine().caches.l2_sixteenths(NEAR_SIXTEENTHS);
    let far = |bytes: u64| if bytes > near { 4 } else { 1 };
    let tiles = rows.div_ceil(tile.high * tile.wide);
    let panels = columns.div_ceil(tile.vectors * tile.lanes);
    let by_row = tiles * right * far(right) + 4 * left;
    let by_panel = panels * left * far(left) + 4 * right;
    match (by_panel < by_row, tuning.trial == TuningTrial::OtherOrder) {
        (true, false) | (false, true) => LoopOrder::Panels,
        (false, false) | (true, true) => LoopOrder::Rows,
    }
}

/// The tiles along one axis of rows, with their predicted times.
pub fn single_axis_tiles(machine: &Target, dtype: DType, cover: TiledExtents) -> Vec<(f64, RegisterTile)> {
    candidate_tiles(machine, dtype, cover).into_iter().filter(|(_, tile)| tile.high == 1).collect()
}

/// All tiles with their predicted times, from port throughput and the distance of panels; a tile has a fixed cost to begin and end.
pub fn candidate_tiles(machine: &Target, dtype: DType, cover: TiledExtents) -> Vec<(f64, RegisterTile)> {
    let mut all = Vec::new();
    // panels of few columns hold no more than those
    let mut lanes = machine.lanes(dtype.bytes() as u64).min(cover.columns.next_power_of_two());
    let (least, most) = if is_pair(machine, dtype, cover) { (lanes, 1) } else { (1, u64::MAX) };
    while lanes >= least {
        for vectors in 1..=cover.most_vectors(lanes).min(most) {
            // Of 32 registers one is the left side's; of 16, that one is a memory operand (28 sums by 2 vectors spill, 12 do not).
            // A product that is added by another instruction needs registers of its own.
            let apart = if machine.fma && !cover.adds_apart { 0 } else { 4 };
            // Of 16, words of the right side are loaded once for all rows, and two more hold a word of the left side and a product.
            let are_few_words = cover.adds_apart && machine.vector_registers <= 16;
            let room = machine.vector_registers.min(31) - if are_few_words { 0 } else { apart };
            // LLVM loads the next step's vectors of the right side early: without room for them it spills the sums. One
            // row uses each vector once, from memory; with 16 registers they all come from there, and a single one
            // tempts it to keep the rows.
            let early = |rows: u64| match (rows, vectors) {
                (1, _) => 2 + apart / 2,
                _ if are_few_words => vectors + 2,
                (_, 1) if room <= 16 => 8,
                _ if apart > 0 => 2 * vectors,
                _ if room <= 16 => vectors + 1,
                _ => 2 * vectors,
            };
            // Where the last vector is a narrower one, LLVM gives its sums other registers at each step, and with 20 sums in
            // 32 registers it spills them.
            let rest = cover.columns % (vectors * lanes);
            let mixed = if has_narrow_last_vector(rest, lanes) { rest.div_ceil(lanes) } else { 0 };
            let fits =
                |rows: u64| rows * vectors + early(rows) <= room && rows * mixed <= room / 2 + 1 && rows <= MOST_ROWS;
            for wide in (1..=cover.width.min(MOST_ROWS)).take_while(|&w| fits(w)) {
                for high in (1..=cover.height).take_while(|&h| fits(h * wide)) {
                    if high > 1 && wide != cover.width {
                        break;
                    }
                    let tile = RegisterTile { high, wide, vectors, lanes };
                    all.push((predicted_tile_cycles(tile, cover, dtype, machine), tile));
                }
            }
        }
        lanes /= 2;
    }
    all
}

/// Whether the columns are one full vector of AVX-512 and a narrower one, which are better as two panels: together, tiles of 8 rows (or
/// three half vectors) take 13.8 and 12.9 cycles a term where 12 would suffice; separately, 12 rows take 19 of 18, so that products of
/// 17, 22 and 24 columns are 7 to 9 % faster. With two full vectors before the narrower one nothing is lost.
fn is_pair(machine: &Target, dtype: DType, cover: TiledExtents) -> bool {
    let lanes = machine.lanes(dtype.bytes() as u64);
    let several = cover.height * cover.width > 1;
    let is_wide = machine.level == IsaLevel::Avx512 && lanes > 1;
    is_wide && several && cover.columns < 2 * lanes && has_narrow_last_vector(cover.columns, lanes)
}

/// Whether the last vector of so many columns is narrower than the others.
pub fn has_narrow_last_vector(columns: u64, lanes: u64) -> bool {
    columns > lanes && !columns.is_multiple_of(lanes) && columns % lanes <= lanes / 2
}

/// Predicted time of all tiles, in cycles.
fn predicted_tile_cycles(tile: RegisterTile, cover: TiledExtents, dtype: DType, machine: &Target) -> f64 {
    let (size, ports) = (dtype.bytes() as u64, machine.ports);
    let micro_ops = ports.micro_ops.filter(|_| dtype.is_float());
    let panel = tile.vectors * tile.lanes;
    let is_whole = panel >= cover.columns;
    let is_far = cover.sum * tile.vectors * tile.lanes * size > machine.caches.l1d / 2;
    let one = |rows: u64, vectors: u64| {
        if rows == 0 || vectors == 0 {
            return 0.0;
        }
        let per_cycle = if cover.adds_apart { PRODUCTS_ADDED_APART } else { ports.fmas };
        let (fma, loads) = ((rows * vectors) as f64 / per_cycle, (rows + vectors) as f64 / ports.loads);
        // rows that push one another out of the nearest cache come from the next one again and again
        let far = if cover.in_one_set(rows) > WAYS { 1.25 } else { 1.0 };
        let panel = if is_far { (vectors * tile.lanes * size) as f64 / L2_BYTES } else { 0.0 };
        let front = match micro_ops {
            _ if cover.adds_apart => (2 * rows * vectors + rows + vectors + OF_LOOP) as f64 / ISSUED_APART,
            Some(n) => (rows * vectors + 2 * (rows + vectors)) as f64 / n,
            None => 0.0,
        };
        fma.max(loads).max(panel).max(front).max(ports.fma_latency) * far * cover.sum as f64
            + store_cycles(rows, vectors, is_whole)
    };
    let left = (cover.columns % panel).div_ceil(tile.lanes);
    let column = |v: u64| {
        if tile.high == 1 {
            let (tiles, rest) = (cover.width / tile.wide, cover.width % tile.wide);
            cover.height as f64 * (tiles as f64 * one(tile.wide, v) + one(rest, v))
        } else {
            let (tiles, rest) = (cover.height / tile.high, cover.height % tile.high);
            tiles as f64 * one(tile.high * tile.wide, v) + one(rest * tile.wide, v)
        }
    };
    (cover.columns / panel) as f64 * column(tile.vectors) + column(left) + ragged_cycles(cover, tile.lanes)
}

/// Cycles to begin and end a tile of `rows` rows by `vectors` vectors and to store its sums; `is_whole` is whether these are all columns, so
/// that rows of the result are contiguous.
pub fn store_cycles(rows: u64, vectors: u64, is_whole: bool) -> f64 {
    20.0 + (rows * vectors) as f64 + A_RUN * rows as f64 * if is_whole { 0.5 } else { 1.0 }
}

/// Cycles to store the last vectors of all rows in pieces, if these are not full.
pub fn ragged_cycles(cover: TiledExtents, lanes: u64) -> f64 {
    let pieces = (cover.columns % lanes).count_ones();
    2.0 * f64::from(pieces) * (cover.height * cover.width) as f64
}

impl fmt::Display for RegisterTile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}x{}", self.high, self.wide, self.vectors, self.lanes)
    }
}
