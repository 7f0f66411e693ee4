//! The register tile of contractions: rows by vectors of columns stay in registers while the contracted loops run; the
//! epilogue follows at once.
use super::ahead::Ahead;
use super::contraction::{Axis, Contraction, Coordinates, product};
use super::element::Elements;
use super::inside::OfRow;
use super::pairs::{Order, load_right, pair_loops};
use super::{convert, each, tiles};
use crate::diag::{Error, Result};
use crate::hlo::InstId;
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, RegId, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::scalar::sums::Parts;
use crate::schedule::{Scheduler, Scope, Value};
use crate::target::{Choice, Target, Trial};
use crate::tensor::DType;
use crate::util::id_vec::Id;

/// The register tile: `high` by `wide` rows (neighbours along the last two row axes) by `vectors` of `lanes` columns.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// Rows along the last axis but one; more than one only where the tile is as wide as the last.
    pub high: u64,
    /// Rows along the last axis.
    pub wide: u64,
    /// Vectors of columns.
    pub vectors: u64,
    /// Columns of a vector.
    pub lanes: u64,
}

impl Tile {
    /// Whether it is that of a measured choice.
    pub fn is(&self, choice: &Choice) -> bool {
        [self.high, self.wide, self.vectors, self.lanes] == [choice.high, choice.wide, choice.vectors, choice.lanes]
    }
}

/// What tiles must cover.
#[derive(Clone, Copy, Debug)]
pub struct Cover {
    /// The extent of the last row axis but one.
    pub height: u64,
    /// The extent of the last row axis.
    pub width: u64,
    /// Columns.
    pub columns: u64,
    /// Terms of each sum.
    pub sum: u64,
    /// Bytes from a row of the left side to the next.
    pub stride: u64,
}

impl Cover {
    /// Most vectors of a tile.
    fn most_vectors(&self, lanes: u64) -> u64 {
        let all = self.columns.div_ceil(lanes);
        if self.height * self.width > 1 {
            return all.min(MOST_VECTORS);
        }
        all.min((all / ENOUGH_PANELS).clamp(ENOUGH_VECTORS, MOST_VECTORS))
    }

    /// How many of so many rows lie in the same set of a first-level cache, which repeats after a page.
    fn in_one_set(&self, rows: u64) -> u64 {
        let mut apart = PAGE;
        while apart > 1 && !self.stride.is_multiple_of(apart) {
            apart /= 2;
        }
        rows.div_ceil(PAGE / apart)
    }
}

/// Bytes after which addresses meet the same set of a first-level cache again.
const PAGE: u64 = 4096;

/// Bytes of a first-level cache.
pub(super) const NEAREST: u64 = 32 << 10;

/// Bytes that come from a second-level cache in a cycle.
const A_CYCLE: f64 = 32.0;

/// Cycles that it takes to begin to write at another place: half of them where rows of the result lie one behind the other. With
/// sums of 32 terms tiles of 12x2 vectors take a third longer than those of 5x4, which write each row at once.
const A_RUN: f64 = 8.0;

/// Lines of a set that rows of the left side can have beside those of the right: of eight or twelve.
const WAYS: u64 = 6;

/// Most vectors of a tile: a kibibyte of weights a step, read strictly forward, is what memory gives fastest to one row.
const MOST_VECTORS: u64 = 16;

/// Vectors of a tile of one row that are as fast, nearly: as many sums as multiply-adds are under way at once.
const ENOUGH_VECTORS: u64 = 4;

/// Panels that one row wants, so that threads share them.
const ENOUGH_PANELS: u64 = 4;

/// Most rows of a tile.
pub(super) const MOST_ROWS: u64 = 14;

/// Where one tile lies.
#[derive(Clone, Debug)]
pub struct Part {
    /// The first element of the left side.
    pub a: Index,
    /// Each row: how far its left side is from the first, and its number.
    pub rows: Vec<(i64, Index)>,
    /// The first element of the panel.
    pub b: Index,
    /// The panels.
    pub packed: BufId,
    /// How the numbers of a panel lie.
    pub order: Order,
    /// How far a term of a panel is from the next: the columns of a panel that is packed.
    pub term: u64,
    /// What the sums of a column are multiplied by: where, and how far the number of the column is from there.
    pub scales: Option<(BufId, Index)>,
    /// The number of the first column.
    pub column: Index,
    /// Columns that the result has here.
    pub columns: u64,
    /// What is asked for while the tile is summed.
    pub ahead: Option<Ahead>,
    /// The number of the batch.
    pub batch: Index,
    /// Columns of a vector.
    pub lanes: u64,
    /// How far elements are stored from where the layout of the result has them.
    pub moved: Index,
    /// Where the first row is stored and how far the next is from it, where that is not in the layout of the result.
    pub near: Option<(Index, u64)>,
    /// Whether the epilogue is so long that it stands there once, in loops over the tile.
    pub looped: bool,
    /// Which rows of taps read the operand, where those on the padding are left out.
    pub inside: Option<OfRow>,
}

impl Default for Part {
    fn default() -> Self {
        let zero = Index::default;
        let packed = BufId::from_index(0);
        Part {
            a: zero(),
            rows: vec![],
            b: zero(),
            packed,
            order: Order::Plain,
            term: 1,
            scales: None,
            column: zero(),
            columns: 1,
            ahead: None,
            batch: zero(),
            lanes: 1,
            moved: zero(),
            near: None,
            looped: false,
            inside: None,
        }
    }
}

impl<'a> Scheduler<'a> {
    /// What the tuned choices call this product.
    pub(super) fn form(&self, dtype: DType, cover: Cover, rows: u64, batch: u64) -> String {
        let Cover { height, width, columns, sum, stride } = cover;
        format!(
            "{} {dtype} batch={batch} rows={rows} height={height} width={width} columns={columns} sum={sum} stride={stride}",
            self.target.cpu
        )
    }

    /// The tile with the least predicted time, unless another was measured to be better, or is to be measured.
    pub(super) fn tile(&self, dtype: DType, cover: Cover, form: &str) -> Tile {
        self.chosen_of(tiles(self.target, dtype, cover), dtype, form)
    }

    /// The same of some tiles.
    pub(super) fn chosen_of(&self, mut all: Vec<(f64, Tile)>, dtype: DType, form: &str) -> Tile {
        let tuning = &self.target.tuning;
        if let Some(row) = tuning.rows.get(form) {
            // a tile that is none of them was chosen by another version
            if let Some((_, tile)) = all.iter().find(|(_, tile)| tile.is(row)) {
                return *tile;
            }
        }
        // a stable sort: of equal ones the first
        all.sort_by(|x, y| x.0.total_cmp(&y.0));
        let least = all.first().map_or(0.0, |best| best.0);
        let place = match tuning.trial {
            Trial::Tile(place) => all.get(place).filter(|tile| tile.0 < 1.6 * least).map_or(0, |_| place),
            Trial::None | Trial::OtherOrder | Trial::OtherMethod => 0,
        };
        let lanes = self.lanes(dtype);
        all.get(place).map_or(Tile { high: 1, wide: 1, vectors: 1, lanes }, |(_, tile)| *tile)
    }

    /// The predicted time of the best tiles, in cycles.
    pub(super) fn predicted(&self, dtype: DType, cover: Cover) -> f64 {
        tiles(self.target, dtype, cover).iter().map(|tile| tile.0).min_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// One tile: clear, sum, epilogue, store.
    #[expect(clippy::too_many_arguments, reason = "what a tile is, in one place")]
    pub(super) fn tile_body(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        (id, anchor): (InstId, InstId),
        c: &Contraction,
        sum: &[Axis],
        part: Part,
        place: Coordinates<'_>,
        out: &Value,
    ) -> Result<Vec<Stmt>> {
        let dtype = c.dtype.accumulator();
        let rows = part.rows.len() as u64;
        let outputs = product(&c.rows) * product(&c.columns);
        let types = (self.program.buffers[part.packed].dtype, self.program.buffers[c.left].dtype);
        let buf = out.buffer()?;
        let layout = out.layout(&scope.comp.array(id).dims);
        // `r` is the number of the row in the tile
        let mut store = |s: &mut Self, e: &mut Elements, value: ExprId, r: &Index, row: &Index, column: &Index| {
            e.forget();
            let value = match &part.scales {
                Some((scales, at)) => {
                    let scale = e.k.expr(Expr::Load(*scales, at.add(column)));
                    e.k.op(ScalarOp::Multiply, &[value, scale], dtype)
                }
                None => value,
            };
            let value = convert(&mut e.k, value, dtype, c.dtype);
            if let Some(apart) = c.sums_apart {
                let index = part.batch.scale(apart as i64).add(&row.scale(product(&c.columns) as i64)).add(column);
                return Ok(Stmt::Store { buf, index, value });
            }
            e.fixed.insert(anchor, value);
            let at = place(&e.k, &part.batch, row, column);
            let value = s.element(scope, e, id, &at)?;
            let index = match &part.near {
                Some((first, stride)) => first.add(&r.scale(*stride as i64)).add(column),
                None => layout.at(&at).add(&part.moved),
            };
            Ok::<Stmt, Error>(Stmt::Store { buf, index, value })
        };
        let first = part.rows.first().map(|r| r.1.clone()).filter(|first| in_a_row(&part, first));
        if let Order::Tiles | Order::Turned(_) = part.order {
            let first = first.ok_or_else(|| Error::internal("schedule", "the rows of a block lie apart"))?;
            let width = part.columns.next_multiple_of(part.lanes);
            let buf = self.on_stack(dtype, rows * width);
            let mut body = match part.order {
                Order::Turned(apart) => self.turned_sums(e, c, sum, (&part, apart), (buf, width)),
                _ => tiles::sums(e, c.left, sum, &part, (buf, width)),
            };
            let whole = [(0, part.columns / part.lanes, part.lanes)];
            let vectors = pieces(&mut e.k, &whole, part.columns);
            body.push(self.stored_from_stack(e, &part, Stacked { buf, rows, first, width, vectors }, &mut store)?);
            return Ok(body);
        }
        let bands = bands(&mut e.k, &part, dtype);
        let (mut body, sums) =
            in_parts(e, &parts(dtype, sum, outputs), &bands, (rows, dtype), &mut |e, start, count| {
                if let (Order::Terms(pairs), [all]) = (part.order, &bands[..]) {
                    let loops = pair_loops(e, pairs, c, sum, (start, count), &part, (all.acc, all.lane));
                    return vec![each(all.lane, LoopKind::Vector, loops)];
                }
                sum_loops(e, types, c, sum, (start, count), &part, &bands)
            });
        if let Some(first) = first.filter(|_| part.looped) {
            let width = width(&bands);
            let buf = self.on_stack(dtype, rows * width);
            body.extend(spilled(e, &bands, &sums, rows, buf));
            // constants of the epilogue would be kept where the sums were
            body.push(Stmt::Release);
            let whole: Vec<_> = bands.iter().map(|b| (b.first, b.whole(part.columns), b.lanes)).collect();
            let vectors = pieces(&mut e.k, &whole, part.columns);
            body.push(self.stored_from_stack(e, &part, Stacked { buf, rows, first, width, vectors }, &mut store)?);
            return Ok(body);
        }
        let mut whole = Vec::new();
        for (r, (_, row)) in part.rows.iter().enumerate() {
            for (b, band) in bands.iter().enumerate() {
                for v in 0..band.whole(part.columns) {
                    let column = part.column.offset((band.first + v * band.lanes) as i64).add(&Index::var(band.lane));
                    let value = e.k.expr(Expr::Reg(sums[b], band.slot(r, v)));
                    whole.push((b, store(self, e, value, &Index::constant(r as i64), row, &column)?));
                }
            }
        }
        body.extend(in_vectors(&bands, whole));
        // What is left of the last vector: in narrower ones.
        let Some((band, &acc)) = bands.iter().zip(&sums).next_back() else { return Ok(body) };
        let first = band.first + band.whole(part.columns) * band.lanes;
        let (mut done, mut width) = (first, band.lanes / 2);
        while width >= 1 {
            if done + width <= part.columns {
                let lane = e.k.var(width);
                let mut inside = Vec::new();
                for (r, (_, row)) in part.rows.iter().enumerate() {
                    let value = e.k.expr(Expr::Lanes(acc, band.slot(r, band.count - 1), done - first, width));
                    let column = part.column.offset(done as i64).add(&Index::var(lane));
                    inside.push(store(self, e, value, &Index::constant(r as i64), row, &column)?);
                }
                body.push(each(lane, LoopKind::Vector, inside));
                done += width;
            }
            width /= 2;
        }
        Ok(body)
    }
}

/// Makes the store of an element of the result: of this value of its sum, the number of its row in the tile, its row, its column.
type Store<'s, 'a> =
    &'s mut dyn FnMut(&mut Scheduler<'a>, &mut Elements, ExprId, &Index, &Index, &Index) -> Result<Stmt>;

/// Sums of a tile on the stack.
struct Stacked {
    buf: BufId,
    rows: u64,
    /// The number of the first row.
    first: Index,
    /// How far a row is from the next.
    width: u64,
    vectors: Vec<Piece>,
}

impl<'a> Scheduler<'a> {
    /// The epilogue of sums on the stack, which stands there once a vector of a row.
    fn stored_from_stack(
        &mut self,
        e: &mut Elements,
        part: &Part,
        sums: Stacked,
        store: Store<'_, 'a>,
    ) -> Result<Stmt> {
        let at = e.k.var(sums.rows);
        let row = sums.first.add(&Index::var(at));
        let from = Index::var(at).scale(sums.width as i64);
        let mut inside = Vec::new();
        for piece in sums.vectors {
            let column = piece.first.add(&Index::var(piece.lane));
            let value = e.k.expr(Expr::Load(sums.buf, from.add(&column)));
            let stored = store(self, e, value, &Index::var(at), &row, &part.column.add(&column))?;
            let vector = each(piece.lane, LoopKind::Vector, vec![stored]);
            inside.push(match piece.number {
                Some(number) => each(number, LoopKind::Seq, vec![vector]),
                None => vector,
            });
        }
        Ok(each(at, LoopKind::Seq, inside))
    }
}

/// The tiles along one axis of rows, with their predicted times.
pub(super) fn tiles_in_a_row(target: &Target, dtype: DType, cover: Cover) -> Vec<(f64, Tile)> {
    tiles(target, dtype, cover).into_iter().filter(|(_, tile)| tile.high == 1).collect()
}

/// All tiles with their predicted times: two multiply-adds a cycle, two loads a cycle, latency 4; a tile costs some
/// cycles to begin and end.
pub(super) fn tiles(target: &Target, dtype: DType, cover: Cover) -> Vec<(f64, Tile)> {
    let mut all = Vec::new();
    // panels of few columns hold no more than those
    let mut lanes = target.lanes(dtype.bytes() as u64).min(cover.columns.next_power_of_two());
    let (least, most) = if is_pair(target, dtype, cover) { (lanes, 1) } else { (1, u64::MAX) };
    while lanes >= least {
        for vectors in 1..=cover.most_vectors(lanes).min(most) {
            // Of 32 registers one is the left side's; of 16, that one is a memory operand (28 sums by 2 vectors spill, 12 do not).
            // A product that is added by another instruction needs registers of its own.
            let apart = if target.fma { 0 } else { 4 };
            let room = target.vector_registers.min(31) - apart;
            // LLVM loads the next step's vectors of the right side early: without room for them it spills the sums. One
            // row uses each vector once, from memory; with 16 registers they all come from there, and a single one
            // tempts it to keep the rows.
            let early = |rows: u64| match (rows, vectors) {
                (1, _) => 2 + apart / 2,
                (_, 1) if room <= 16 => 8,
                _ if apart > 0 => 2 * vectors,
                _ if room <= 16 => vectors + 1,
                _ => 2 * vectors,
            };
            // Where the last vector is a narrower one, LLVM gives its sums other registers at each step, and with 20 sums in
            // 32 registers it spills them.
            let rest = cover.columns % (vectors * lanes);
            let mixed = if is_mixed(rest, lanes) { rest.div_ceil(lanes) } else { 0 };
            let fits =
                |rows: u64| rows * vectors + early(rows) <= room && rows * mixed <= room / 2 + 1 && rows <= MOST_ROWS;
            for wide in (1..=cover.width.min(MOST_ROWS)).take_while(|&w| fits(w)) {
                for high in (1..=cover.height).take_while(|&h| fits(h * wide)) {
                    if high > 1 && wide != cover.width {
                        break;
                    }
                    let tile = Tile { high, wide, vectors, lanes };
                    all.push((cost(tile, cover, dtype.bytes() as u64, micro_ops(target, dtype)), tile));
                }
            }
        }
        lanes /= 2;
    }
    all
}

/// Whether the columns are one whole vector of AVX-512 and a narrower one, which are better two panels: beside one another 8
/// rows of them, or of three half vectors, take 13.8 and 12.9 cycles a term where 12 are enough, apart 12 rows 19 of 18, so
/// that products of 17, 22 and 24 columns are 7 to 9 % faster. With two whole vectors before the narrower one nothing is lost.
fn is_pair(target: &Target, dtype: DType, cover: Cover) -> bool {
    let lanes = target.lanes(dtype.bytes() as u64);
    let several = cover.height * cover.width > 1;
    let is_wide = target.level() == crate::target::Level::Avx512 && lanes > 1;
    is_wide && several && cover.columns < 2 * lanes && is_mixed(cover.columns, lanes)
}

/// What a cycle takes in: of AArch64's processors the narrowest, Neoverse N1, three micro-operations, and loads are two.
fn micro_ops(target: &Target, dtype: DType) -> Option<f64> {
    let narrow = target.level() == crate::target::Level::Neon && dtype.is_float();
    narrow.then_some(3.0)
}

/// Vectors of one width: those of all columns, or where half a vector is enough for what is left, those before and that one.
struct Band {
    /// The first column.
    first: u64,
    /// Vectors of a row.
    count: u64,
    lanes: u64,
    lane: VarId,
    /// A sum for each row and vector.
    acc: RegId,
}

impl Band {
    /// Where vector `v` of row `r` is in `acc`.
    fn slot(&self, r: usize, v: u64) -> Index {
        Index::constant((r as u64 * self.count + v) as i64)
    }

    /// Vectors that are full of the first `columns` columns.
    fn whole(&self, columns: u64) -> u64 {
        (columns.saturating_sub(self.first) / self.lanes).min(self.count)
    }
}

/// Columns that the sums of a row take.
fn width(bands: &[Band]) -> u64 {
    bands.iter().map(|b| b.count * b.lanes).sum()
}

/// Whether the rows of a tile follow one another from `first` on.
fn in_a_row(part: &Part, first: &Index) -> bool {
    part.rows.iter().enumerate().all(|(i, (_, row))| *row == first.offset(i as i64))
}

/// Stores all sums, row after row, to `stack`.
fn spilled(e: &mut Elements, bands: &[Band], sums: &[RegId], rows: u64, stack: BufId) -> Vec<Stmt> {
    let mut all = Vec::new();
    for (b, band) in bands.iter().enumerate() {
        for (r, v) in (0..rows).flat_map(|r| (0..band.count).map(move |v| (r, v))) {
            let at = r * width(bands) + band.first + v * band.lanes;
            let value = e.k.expr(Expr::Reg(sums[b], band.slot(r as usize, v)));
            all.push((b, Stmt::Store { buf: stack, index: Index::var(band.lane).offset(at as i64), value }));
        }
    }
    in_vectors(bands, all)
}

/// Vectors of a row that are stored alike.
struct Piece {
    /// Which vector, where there are several.
    number: Option<VarId>,
    lane: VarId,
    /// The first column of the vector.
    first: Index,
}

/// The vectors of a row: whole ones, by the first column, how many, and their lanes, then narrower ones for what is left of
/// `columns`.
fn pieces(k: &mut Kernel, whole: &[(u64, u64, u64)], columns: u64) -> Vec<Piece> {
    let mut out = Vec::new();
    for &(first, count, lanes) in whole.iter().filter(|w| w.1 > 0) {
        let number = k.var(count);
        let first = Index::var(number).scale(lanes as i64).offset(first as i64);
        out.push(Piece { number: Some(number), lane: k.var(lanes), first });
    }
    let Some(&(first, count, lanes)) = whole.last() else { return out };
    let (mut done, mut lanes) = (first + count * lanes, lanes / 2);
    while lanes >= 1 {
        if done + lanes <= columns {
            out.push(Piece { number: None, lane: k.var(lanes), first: Index::constant(done as i64) });
            done += lanes;
        }
        lanes /= 2;
    }
    out
}

/// Whether of the vectors of so many columns the last one is narrower.
fn is_mixed(columns: u64, lanes: u64) -> bool {
    columns > lanes && !columns.is_multiple_of(lanes) && columns % lanes <= lanes / 2
}

/// The vectors of a tile.
fn bands(k: &mut Kernel, part: &Part, dtype: DType) -> Vec<Band> {
    let rows = part.rows.len() as u64;
    let mut band = |first: u64, count: u64, lanes: u64| Band {
        first,
        count,
        lanes,
        lane: k.var(lanes),
        acc: k.reg(dtype, lanes, rows * count),
    };
    let (whole, rest) = (part.columns / part.lanes, part.columns % part.lanes);
    let narrow = rest.next_power_of_two();
    if part.order != Order::Plain || whole > 0 && !is_mixed(part.columns, part.lanes) || narrow == part.lanes {
        return vec![band(0, part.columns.div_ceil(part.lanes), part.lanes)];
    }
    let last = (whole * part.lanes, 1, narrow);
    let all = [(0, whole, part.lanes), last].into_iter().filter(|b| b.1 > 0);
    all.map(|(first, count, lanes)| band(first, count, lanes)).collect()
}

/// Statements in the vector loops of their bands.
fn in_vectors(bands: &[Band], all: Vec<(usize, Stmt)>) -> Vec<Stmt> {
    let mut out: Vec<(usize, Vec<Stmt>)> = Vec::new();
    for (band, stmt) in all {
        match out.last_mut() {
            Some((last, body)) if *last == band => body.push(stmt),
            _ => out.push((band, vec![stmt])),
        }
    }
    out.into_iter().map(|(band, body)| each(bands[band].lane, LoopKind::Vector, body)).collect()
}

/// Predicted time of all tiles, in cycles, of elements of `size` bytes; `taken` is how many micro-operations a cycle takes in,
/// where that is a limit.
fn cost(tile: Tile, cover: Cover, size: u64, taken: Option<f64>) -> f64 {
    let panel = tile.vectors * tile.lanes;
    let is_whole = panel >= cover.columns;
    let is_far = cover.sum * tile.vectors * tile.lanes * size > NEAREST / 2;
    let one = |rows: u64, vectors: u64| {
        if rows == 0 || vectors == 0 {
            return 0.0;
        }
        let (fma, loads) = ((rows * vectors) as f64 / 2.0, (rows + vectors) as f64 / 2.0);
        // rows that push one another out of the nearest cache come from the next one again and again
        let far = if cover.in_one_set(rows) > WAYS { 1.25 } else { 1.0 };
        let panel = if is_far { (vectors * tile.lanes * size) as f64 / A_CYCLE } else { 0.0 };
        let front = taken.map_or(0.0, |n| (rows * vectors + 2 * (rows + vectors)) as f64 / n);
        let stored = A_RUN * rows as f64 * if is_whole { 0.5 } else { 1.0 };
        fma.max(loads).max(panel).max(front).max(4.0) * far * cover.sum as f64 + 20.0 + (rows * vectors) as f64 + stored
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
    // A last vector that is not full is stored in pieces.
    let pieces = (cover.columns % tile.lanes).count_ones();
    let ragged = 2.0 * f64::from(pieces) * (cover.height * cover.width) as f64;
    (cover.columns / panel) as f64 * column(tile.vectors) + column(left) + ragged
}

/// How the sums of the contracted loops `sum` are made; units are steps of the outermost.
fn parts(dtype: DType, sum: &[Axis], outputs: u64) -> Parts {
    let steps = sum.first().map_or(1, |x| x.extent);
    match dtype {
        DType::F32 => Parts::of_floats(steps, product(sum) / steps.max(1), outputs),
        _ => Parts::whole(steps),
    }
}

/// The sums in `parts`, and where the totals of each band are. `loops` adds so many steps from a first one to what `acc` holds.
fn in_parts(
    e: &mut Elements,
    parts: &Parts,
    bands: &[Band],
    (rows, dtype): (u64, DType),
    loops: &mut dyn FnMut(&mut Elements, Index, u64) -> Vec<Stmt>,
) -> (Vec<Stmt>, Vec<RegId>) {
    let at = |i: u64| Index::constant(i as i64);
    let zero = super::number(&mut e.k, dtype, 0.0);
    let acc: Vec<RegId> = bands.iter().map(|b| b.acc).collect();
    let fresh =
        |e: &mut Elements| -> Vec<RegId> { bands.iter().map(|b| e.k.reg(dtype, b.lanes, rows * b.count)).collect() };
    let vectors = |regs: &[RegId], set: &mut dyn FnMut(usize, RegId, u64) -> Stmt| -> Vec<Stmt> {
        let band = |(i, (b, &reg)): (usize, (&Band, &RegId))| {
            let body = (0..rows * b.count).map(|slot| set(i, reg, slot)).collect();
            each(b.lane, LoopKind::Vector, body)
        };
        bands.iter().zip(regs).enumerate().map(band).collect()
    };
    let clear = |regs: &[RegId]| vectors(regs, &mut |_, reg, slot| Stmt::Set { reg, at: at(slot), value: zero });
    let add = |e: &mut Elements, total: &[RegId], more: &[RegId]| {
        vectors(total, &mut |band, reg, slot| {
            let (x, y) = (e.k.expr(Expr::Reg(reg, at(slot))), e.k.expr(Expr::Reg(more[band], at(slot))));
            Stmt::Set { reg, at: at(slot), value: e.k.op(ScalarOp::Add, &[x, y], dtype) }
        })
    };
    let mut body = Vec::new();
    let mut whole: Option<Vec<RegId>> = None;
    for group in &parts.groups {
        let (start, steps) = (group.start, group.end - group.start);
        let mut total = acc.clone();
        if steps <= parts.most {
            body.extend(clear(&acc));
            body.extend(loops(e, at(start), steps));
        } else {
            total = fresh(e);
            body.extend(clear(&total));
            let mut part = |e: &mut Elements, start: Index, count: u64| {
                let mut part = clear(&acc);
                part.extend(loops(e, start, count));
                part.extend(add(e, &total, &acc));
                part
            };
            let number = e.k.var(steps / parts.most);
            let inside = part(e, Index::var(number).scale(parts.most as i64).offset(start as i64), parts.most);
            body.push(each(number, LoopKind::Seq, inside));
            if !steps.is_multiple_of(parts.most) {
                body.extend(part(e, at(start + steps / parts.most * parts.most), steps % parts.most));
            }
        }
        match &whole {
            Some(whole) => body.extend(add(e, whole, &total)),
            None if parts.groups.len() == 1 => whole = Some(total),
            None => {
                let first = fresh(e);
                body.extend(clear(&first));
                body.extend(add(e, &first, &total));
                whole = Some(first);
            }
        }
    }
    (body, whole.unwrap_or(acc))
}

/// Variables of the loops over the contracted axes, outermost first, `at_once` terms a step of the innermost and of the first
/// axis `count` terms from `start`; where a step reads the left side, which begins at `left`; which term it is.
pub fn term_loops(
    k: &mut Kernel,
    sum: &[Axis],
    (start, count): (&Index, u64),
    left: &Index,
    at_once: u64,
) -> (Vec<VarId>, Index, Index) {
    let (mut loops, mut left, mut position) = (Vec::new(), left.clone(), Index::constant(0));
    for (i, axis) in sum.iter().enumerate() {
        let extent = if i == 0 { count } else { axis.extent };
        let step = if i + 1 == sum.len() { at_once } else { 1 };
        let v = k.var(extent / step);
        loops.push(v);
        let mut x = Index::var(v).scale(step as i64);
        if i == 0 {
            x = x.add(start);
        }
        left = left.add(&x.scale(axis.a));
        position = position.scale(axis.extent as i64).add(&x);
    }
    (loops, left, position)
}

/// The contracted loops, `count` steps of the outermost from step `start`; the innermost does two or three steps at once
/// where it comes out even.
fn sum_loops(
    e: &mut Elements,
    (right_type, left_type): (DType, DType),
    c: &Contraction,
    sum: &[Axis],
    (start, count): (Index, u64),
    part: &Part,
    bands: &[Band],
) -> Vec<Stmt> {
    let dtype = c.dtype.accumulator();
    let right: Vec<RegId> = bands.iter().map(|b| e.k.reg(dtype, b.lanes, b.count)).collect();
    let left = e.k.reg(dtype, 1, 1);
    let constant = |i: u64| Index::constant(i as i64);
    let innermost = match sum {
        [] => 1,
        [_] => count,
        [.., last] => last.extent,
    };
    let unroll = (2..=3).find(|u| innermost % u == 0).unwrap_or(1);
    let (loops, mut a, position) = term_loops(&mut e.k, sum, (&start, count), &part.a, unroll);
    let of_row = part.inside.as_ref().zip(loops.first());
    let read = of_row.map(|(of_row, &v)| of_row.read(&e.k, &start.add(&Index::var(v))));
    if let Some((_, row)) = &read {
        a = a.add(row);
    }
    let last_step = sum.last().map_or(0, |x| x.a);
    let mut inside = Vec::new();
    for u in 0..unroll {
        let first = part.b.add(&position.offset(u as i64).scale(part.term as i64));
        if let (Order::Vectors(_), [all]) = (part.order, bands) {
            let loads = load_right(e, part, &first, (right_type, dtype), (right[0], all.lane));
            inside.extend(loads.into_iter().map(|s| (0, s)));
        } else {
            for (b, band) in bands.iter().enumerate() {
                for v in 0..band.count {
                    let at = first.add(&Index::var(band.lane)).offset((band.first + v * band.lanes) as i64);
                    let value = e.k.expr(Expr::Load(part.packed, at));
                    let value = convert(&mut e.k, value, right_type, dtype);
                    inside.push((b, Stmt::Set { reg: right[b], at: constant(v), value }));
                }
            }
        }
        let asked = part.ahead.as_ref().and_then(|ahead| ahead.at(&position, u, right_type));
        inside.extend(asked.map(|index| (0, Stmt::Prefetch { buf: part.packed, index })));
        for (r, (away, _)) in part.rows.iter().enumerate() {
            let value = e.k.expr(Expr::Load(c.left, a.offset(u as i64 * last_step + away)));
            let value = convert(&mut e.k, value, left_type, dtype);
            inside.push((0, Stmt::Set { reg: left, at: constant(0), value }));
            let x = e.k.expr(Expr::Reg(left, constant(0)));
            for (b, band) in bands.iter().enumerate() {
                for v in 0..band.count {
                    let at = band.slot(r, v);
                    let (y, z) =
                        (e.k.expr(Expr::Reg(right[b], constant(v))), e.k.expr(Expr::Reg(band.acc, at.clone())));
                    let value = e.k.op(ScalarOp::Fma, &[x, y, z], dtype);
                    inside.push((b, Stmt::Set { reg: band.acc, at, value }));
                }
            }
        }
    }
    let mut inside = in_vectors(bands, inside);
    for (number, &v) in loops.iter().enumerate().rev() {
        if let (0, Some((is_inside, _))) = (number, &read) {
            inside = vec![Stmt::If { cond: e.k.expr(is_inside.clone()), body: inside }];
        }
        inside = vec![each(v, LoopKind::Seq, inside)];
    }
    inside
}
