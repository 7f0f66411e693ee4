//! A product whose left side is made in its own kernel, a block of rows at a time: attention, where scores are a product of
//! their own, softmax folds their rows, and what it leaves is multiplied with the values. Of each block of rows the scores are
//! made on the stack, the reductions run over them there, and the second product reads them while they are near. So scores,
//! the largest arrays of a transformer, have no memory of their own. Blocks of rows are the chunks.
//!
//! Rows are whole, and each element is added up as the three kernels alone do it: the bits are the same.
use super::contraction::{Axis, Contraction, Held, Nest, Strip, below, merged, numbered, one_axis, product};
use super::element::Elements;
use super::tile::{Cover, MOST_ROWS, Tile, tiles_in_a_row};
use super::{MOST_STACK, each, label, narrow, rows};
use crate::diag::Result;
use crate::hlo::attrs::DotDims;
use crate::hlo::{Computation, InstId, Literal, Op};
use crate::kernel::{BufId, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::fuse::{Fate, Move, Plan, Role, Rows, demand};
use crate::schedule::{Scheduler, Scope, Value};
use crate::target::{LINE, LoopOrder};
use crate::util::id_vec::IdVec;
use std::collections::HashMap;

/// Bytes of a block that stay in a first-level cache, nearly.
const NEAR_BLOCK: u64 = 32 << 10;
/// Bytes of scores that stay in a second-level cache of a megabyte until they are read.
const NEAR_BYTES: u64 = 512 << 10;
/// Cycles that an element of scores takes to a cache farther away and back, twice: a million of them took 0.3 ms.
const FAR: f64 = 1.0;
/// The same for those that stay near: one thread is as fast with as without them, two are 1 or 2 % faster.
const NEAR: f64 = 0.1;
/// Blocks that threads should find, as long as tiles have rows enough.
const FEW_BLOCKS: u64 = 16;

/// A product that makes its left side itself.
#[derive(Clone, Debug)]
pub struct Block {
    /// The left side: full rows with reductions.
    left: InstId,
    /// What those rows are computed from: a product, finished.
    scores: InstId,
    /// The rows of both.
    rows: Rows,
    /// Rows of a block.
    height: u64,
    /// Elements from a row of a block to the next.
    stride: u64,
    /// The tiles of the product that the rows are computed from, and of the other.
    tiles: [Tile; 2],
}

/// The sizes of a dot: batches, rows, columns, terms.
struct Sizes {
    batch: u64,
    rows: u64,
    columns: u64,
    sum: u64,
}

impl Sizes {
    fn of(comp: &Computation, id: InstId, d: &DotDims) -> Sizes {
        let (x, y) = (comp.array(comp[id].operands[0]), comp.array(comp[id].operands[1]));
        let along = |axes: &[usize]| axes.iter().map(|&i| x.dims[i]).product::<u64>();
        let (batch, sum) = (along(&d.lhs_batch), along(&d.lhs_contracting));
        let others = |elements: u64| elements / (batch * sum).max(1);
        Sizes { batch, rows: others(x.elements()), columns: others(y.elements()), sum }
    }
}

impl<'a> Scheduler<'a> {
    /// The blocks of `comp`; what they take in has no buffer any more.
    pub(in crate::schedule) fn blocks(&self, comp: &Computation, plan: &mut Plan) -> HashMap<InstId, Block> {
        let users = comp.users();
        let mut blocks: HashMap<InstId, Block> = HashMap::new();
        for id in comp.post_order() {
            let Some(block) = self.block_of(comp, plan, &users, id) else { continue };
            if !blocks.contains_key(&block.scores) {
                plan.fate[block.left] = Fate::Inlined(Some(id));
                plan.fate[block.scores] = Fate::Inlined(Some(id));
                blocks.insert(id, block);
            }
        }
        blocks
    }

    /// The block that ends in `id`.
    fn block_of(
        &self,
        comp: &Computation,
        plan: &Plan,
        users: &IdVec<InstId, Vec<InstId>>,
        id: InstId,
    ) -> Option<Block> {
        let anchor = dot_kernel(comp, plan, id)?;
        let left = comp[anchor].operands[0];
        let full = plan.fate[left] == Fate::Materialised && plan.role[left] == Role::Full;
        let alone = users[left] == [anchor] && left != comp.root && comp[anchor].operands[1] != left;
        let rows = plan.rows[left].filter(|_| full && alone)?;
        let scores = operand_of_rows(comp, plan, users, left, rows)?;
        let first = dot_kernel(comp, plan, scores)?;
        let (Op::Dot(p), Op::Dot(d)) = (&comp[first].op, &comp[anchor].op) else { return None };
        let (made, read) = (Sizes::of(comp, first, p), Sizes::of(comp, anchor, d));
        let in_order = plan.path[first].iter().all(|m| matches!(m, Move::Reshape(..))) && is_row_major(comp, anchor, d);
        let alike = made.batch == read.batch
            && made.columns == rows.columns
            && read.sum == rows.columns
            && made.batch * made.rows == rows.rows
            && read.rows == made.rows;
        let wide = [(first, &made), (anchor, &read)].iter().all(|(i, s)| !is_narrow(comp, *i, s.columns));
        if !in_order || !alike || !wide || comp.array(anchor).elements() == 0 {
            return None;
        }
        let bytes = [left, scores].iter().map(|&i| comp.array(i).dtype.bytes() as u64).max()?;
        // an odd number of lines, so that rows do not meet in the sets of a cache
        let lines = (rows.columns * bytes).div_ceil(LINE) | 1;
        let step = left_step(comp, first, p)? * comp.array(comp[first].operands[0]).dtype.bytes() as u64;
        let cover = |s: &Sizes, stride: u64| Cover { height: 1, width: s.rows, columns: s.columns, sum: s.sum, stride };
        let products = [(first, cover(&made, step)), (anchor, cover(&read, lines * LINE))];
        let candidates =
            products.map(|(i, cover)| tiles_in_a_row(self.target, comp.array(i).dtype.accumulator(), cover));
        let is_far = made.batch * made.rows * rows.columns * bytes > NEAR_BYTES;
        let saved = (made.rows * rows.columns) as f64 * if is_far { FAR } else { NEAR };
        let evenly = (made.batch * made.rows).div_ceil(FEW_BLOCKS).max(MOST_ROWS);
        let (height, tiles) = height(&candidates, made.rows.min(evenly), lines * LINE, saved)?;
        Some(Block { left, scores, rows, height, stride: lines * LINE / bytes, tiles })
    }

    /// The kernel of `id`, whose anchor is the dot `anchor`.
    pub(super) fn block(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        block: &Block,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let comp = scope.comp;
        let mut e = Elements::new(id, label(comp, id));
        let types = [comp.array(block.scores).dtype, comp.array(block.left).dtype];
        let from = self.on_stack(types[0], block.height * block.stride);
        let to = if types[0] == types[1] { from } else { self.on_stack(types[1], block.height * block.stride) };
        let first = scope.plan.anchor[block.scores].unwrap_or(block.scores);
        let source = self.value(scope, comp[first].operands[0])?.only()?;
        let mut made = self.product(scope, first, source)?;
        made.c.rows = one_axis(merged(&made.c.rows));
        let in_block = |e: &mut Elements, tile: Tile| e.k.var(block.height / tile.wide);
        let number = in_block(&mut e, block.tiles[0]);
        let strip = Strip { held: Held::Result(number), stride: block.stride, tile: block.tiles[0], form: None };
        let sink = Value { leaves: vec![from], layout: None };
        let place = |k: &Kernel, b: &Index, r: &Index, c: &Index| made.place(k, b, r, c);
        let ids = (block.scores, first);
        let make = self.nest(scope, &mut e, ids, &made.c, Some(&strip), &place, &sink, steps)?;
        e.forget();

        let mut read = self.product(scope, anchor, to)?;
        read.c = from_block(&read.c, block);
        let reader = in_block(&mut e, block.tiles[1]);
        let strip = Strip { held: Held::Left(reader), stride: block.stride, tile: block.tiles[1], form: None };
        let place = |k: &Kernel, b: &Index, r: &Index, c: &Index| read.place(k, b, r, c);
        let fold = self.nest(scope, &mut e, (id, anchor), &read.c, Some(&strip), &place, out, steps)?;
        e.forget();

        let per_batch = product(&made.c.rows);
        let blocks = Blocks::new(&mut e.k, (make.grid.batch, fold.grid.batch), block.height, per_batch);
        let mut body = blocks.tiles(&mut e.k, make, number, block.tiles[0]);
        let mut e = self.block_rows(scope, e, block, (from, to), &blocks, &mut body)?;
        body.extend(blocks.tiles(&mut e.k, fold, reader, block.tiles[1]));
        blocks.close(&mut e.k, body);
        self.launch(e.k, steps);
        Ok(())
    }

    /// What is between the two products, for each row of a block.
    fn block_rows(
        &mut self,
        scope: &mut Scope<'a>,
        mut e: Elements,
        block: &Block,
        (from, to): (BufId, BufId),
        blocks: &Blocks,
        body: &mut Vec<Stmt>,
    ) -> Result<Elements> {
        let (near, row) = (e.k.var(block.height), e.k.var(block.rows.rows));
        let at = Index::var(near).scale(block.stride as i64);
        let held = rows::Held { operand: block.scores, from, to, at };
        let out = Value { leaves: vec![to], layout: None };
        let r = block.rows;
        let (mut e, inside) = self.row(scope, e, (block.left, r, Index::var(row)), &out, Some(&held))?;
        e.fixed.remove(&block.scores);
        let of_batch = blocks.first_row().add(&Index::var(near));
        let value = Index::var(blocks.batch).scale(blocks.rows as i64).add(&of_batch);
        let value = value.limit(0, r.rows as i64 - 1, &e.k.vars);
        let inside = vec![Stmt::Let { var: row, value, body: inside }];
        let inside = below(&mut e.k, of_batch, blocks.rows, inside);
        body.push(each(near, LoopKind::Seq, inside));
        Ok(e)
    }
}

/// The loops that chunks stand for: the blocks of a batch follow one another.
struct Blocks {
    /// The batch, for each product its own variable and for what is between.
    batches: [VarId; 2],
    batch: VarId,
    block: VarId,
    /// Rows of a block.
    height: u64,
    /// Rows of a batch.
    rows: u64,
}

impl Blocks {
    fn new(k: &mut Kernel, (a, b): (VarId, VarId), height: u64, rows: u64) -> Blocks {
        let batch = k.var(k.vars[a]);
        Blocks { batches: [a, b], batch, block: k.var(rows.div_ceil(height)), height, rows }
    }

    /// The first row of the block in its batch.
    fn first_row(&self) -> Index {
        Index::var(self.block).scale(self.height as i64)
    }

    /// `nest` for the tiles of the block, counted by `number`.
    fn tiles(&self, k: &mut Kernel, nest: Nest, number: VarId, tile: Tile) -> Vec<Stmt> {
        let at = Index::var(self.block).scale((self.height / tile.wide) as i64).add(&Index::var(number));
        let body = numbered(k, nest.grid.tile, at, nest.body);
        let loops = match nest.order {
            LoopOrder::Panels => [number, nest.grid.panel],
            LoopOrder::Rows => [nest.grid.panel, number],
        };
        loops.into_iter().fold(body, |body, v| vec![each(v, LoopKind::Seq, body)])
    }

    /// Makes `body` that of the kernel.
    fn close(self, k: &mut Kernel, mut body: Vec<Stmt>) {
        let blocks = k.vars[self.block];
        let all = k.var(k.vars[self.batch] * blocks);
        let number = Index::var(all);
        for v in [self.batches[0], self.batches[1], self.batch] {
            let value = number.div(blocks as i64, &k.vars);
            body = vec![Stmt::Let { var: v, value, body }];
        }
        let value = number.rem(blocks as i64, &k.vars);
        k.body = vec![Stmt::Let { var: self.block, value, body }];
        k.chunks = Some(all);
    }
}

/// The rows of a block, at most `most` of so many bytes each, and the tiles of both products that fill it with the least
/// predicted time; `None` where that is longer by more than `saved` than with tiles of any height.
fn height(candidates: &[Vec<(f64, Tile)>; 2], most: u64, bytes: u64, saved: f64) -> Option<(u64, [Tile; 2])> {
    let best = |all: &[(f64, Tile)], height: u64| {
        let fits = all.iter().filter(|(_, t)| height.is_multiple_of(t.wide));
        fits.copied().min_by(|x, y| x.0.total_cmp(&y.0))
    };
    let both = |height: u64| {
        let (a, b) = (best(&candidates[0], height)?, best(&candidates[1], height)?);
        Some((a.0 + b.0, height, [a.1, b.1]))
    };
    // of equal times the highest block that is near
    let (near, all) = (most.min(NEAR_BLOCK / bytes), most.min(MOST_STACK / bytes));
    let heights = (1..=near).rev().chain(near + 1..=all);
    let (time, height, tiles) = heights.filter_map(both).min_by(|x, y| x.0.total_cmp(&y.0))?;
    // nothing is a multiple of all
    let (apart, ..) = both(0)?;
    (time <= apart + saved).then_some((height, tiles))
}

/// The dot of a kernel that ends in `id`.
fn dot_kernel(comp: &Computation, plan: &Plan, id: InstId) -> Option<InstId> {
    let anchor = plan.anchor[id].unwrap_or(id);
    let alone = plan.fate[id] == Fate::Materialised && plan.rows[id].is_none();
    (alone && matches!(comp[anchor].op, Op::Dot(_))).then_some(anchor)
}

/// The product that the rows of `left` are computed from, element for element, and that nothing else reads.
fn operand_of_rows(
    comp: &Computation,
    plan: &Plan,
    users: &IdVec<InstId, Vec<InstId>>,
    left: InstId,
    rows: Rows,
) -> Option<InstId> {
    let is_member =
        |id: InstId| id == left || plan.fate[id] == Fate::Inlined(Some(left)) && plan.role[id] != Role::Free;
    let is_full = |id: InstId, user: InstId| {
        let operands = comp[user].operands.iter().enumerate().filter(|(_, o)| **o == id);
        let mut asked = operands.map(|(i, _)| demand(comp, user, i, plan.role[user], rows));
        is_member(user) && asked.all(|role| role == Role::Full)
    };
    let members = comp.post_order().into_iter().filter(|&m| is_member(m));
    members.flat_map(|m| comp[m].operands.iter().copied()).find(|&o| {
        let readers = &users[o];
        o != comp.root && dot_kernel(comp, plan, o).is_some() && readers.iter().all(|&u| is_full(o, u))
    })
}

/// Whether the left side of dot `id` lies in the order of batches, rows and terms.
fn is_row_major(comp: &Computation, id: InstId, d: &DotDims) -> bool {
    let x = comp.array(comp[id].operands[0]);
    let wide = |i: &usize| x.dims[*i] != 1;
    let free = (0..x.rank()).filter(|i| !d.lhs_batch.contains(i) && !d.lhs_contracting.contains(i));
    let order = d.lhs_batch.iter().copied().chain(free).chain(d.lhs_contracting.iter().copied());
    order.filter(wide).is_sorted()
}

/// How far a row of the left side of dot `id` is from the next, in elements; `None` where not all steps are the same.
fn left_step(comp: &Computation, id: InstId, d: &DotDims) -> Option<u64> {
    let x = comp.array(comp[id].operands[0]);
    let free = |i: &usize| !d.lhs_batch.contains(i) && !d.lhs_contracting.contains(i);
    let (dims, steps) = (&x.dims, x.strides());
    let axis = |i: usize| Axis { extent: dims[i], a: steps[i] as i64, b: 0 };
    match merged(&(0..x.rank()).filter(free).map(axis).collect::<Vec<_>>())[..] {
        [] => Some(0),
        [rows] => Some(rows.a.unsigned_abs()),
        _ => None,
    }
}

/// Whether dot `id` is perhaps done by lanes along its sums.
fn is_narrow(comp: &Computation, id: InstId, columns: u64) -> bool {
    let right = comp[id].operands[1];
    columns <= narrow::MOST_COLUMNS && matches!(comp[right].op, Op::Constant(Literal::Array(_)))
}

/// `c` with the left side read from a block of rows.
fn from_block(c: &Contraction, block: &Block) -> Contraction {
    let batch = c.batch.iter().map(|x| Axis { a: 0, ..*x }).collect();
    let rows = vec![Axis { extent: product(&c.rows), a: block.stride as i64, b: 0 }];
    Contraction { a0: 0, batch, rows, ..c.clone() }
}
