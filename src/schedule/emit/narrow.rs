//! Contractions with few columns: lanes run along the sum, where the left side is contiguous, and each element of the result
//! is folded from a register at the end. With lanes along so few columns every multiply-add would wait for a broadcast.
use super::contraction::{Contraction, Coordinates};
use super::element::Elements;
use super::grid::{chunked, guarded, shares};
use super::{each, label};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::kernel::index::linear;
use crate::kernel::{BufId, Buffer, Expr, ExprId, Index, LoopKind, Place, RegId, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::schedule::emit::{Emitter, Value};
use crate::schedule::plan::axis::{Axis, merged, offset_of, product};
use crate::schedule::plan::contraction::lanes_along;
use crate::schedule::plan::fuse::Fate;
use crate::tensor::{DType, Tensor};
use bytes::Bytes;

/// Most columns at once.
const BLOCK: u64 = 4;
/// Most rows at once.
const MOST_ROWS: u64 = 16;

/// A stretch of the innermost sum: vectors of `lanes` terms from `first` on, with a register for each row and column.
struct Stretch {
    first: u64,
    count: u64,
    lanes: u64,
    acc: RegId,
}

impl<'a> Emitter<'a> {
    /// The sums of all elements of the anchor, which `make` makes, then the epilogue in a kernel of its own.
    pub(super) fn narrow(
        &mut self,
        (id, anchor): (InstId, InstId),
        out: &Value,
        make: impl FnOnce(&mut Self, &Value) -> Result<()>,
    ) -> Result<()> {
        if id == anchor {
            return make(self, out);
        }
        // where nothing else is read from there, the result is written over its sums
        let (sum, result) = (self.scope.comp.array(anchor), self.scope.comp.array(id));
        let alike = sum == result && out.layout.is_none() && self.scope.fusion.path[anchor].is_empty();
        let sources = self.sources(&self.scope.comp[id].operands);
        let is_over = alike && out.leaves.iter().all(|buf| !sources.contains(buf));
        let sums = if is_over { out.clone() } else { self.fresh(&self.scope.comp[anchor].shape) };
        make(self, &sums)?;
        self.scope.values.insert(anchor, sums);
        self.scope.fusion.fate[anchor] = Fate::Materialised;
        self.scope.fusion.anchor[id] = None;
        self.pointwise(id, out)
    }

    /// The sums of `c`.
    pub(super) fn narrow_sums(
        &mut self,
        anchor: InstId,
        c: &Contraction,
        right: &Tensor,
        place: Coordinates<'_>,
        out: &Value,
    ) -> Result<()> {
        let (rows, sum) = (self.row_axes((anchor, anchor), c, place, out)?, merged(&c.sum));
        let n = product(&c.columns);
        let packed = self.by_column(c, &sum, right);
        let run = sum.last().map_or(1, |x| x.extent);
        let sum = lying_by_column(&sum, n);
        let width = rows.last().map_or(1, |x| x.extent);
        let lanes = lanes_along(run, self.lanes(c.dtype));
        let pieces = 1 + u64::from((run % lanes).count_ones());
        // A few columns at a time, so that each of their vectors serves many rows.
        let block = n.div_ceil(n.div_ceil(BLOCK));
        let free = self.target.vector_registers.saturating_sub(block + 2);
        let most = (free / (block * pieces)).clamp(1, MOST_ROWS.min(width));
        let mut e = Elements::new(anchor, label(self.scope.comp, anchor));
        let mut loops: Vec<VarId> = rows[..rows.len() - 1].iter().map(|x| e.k.var(x.extent)).collect();
        let tile = e.k.var(width.div_ceil(most));
        let mut a = Index::constant(c.a0);
        for (&v, axis) in loops.iter().zip(&rows) {
            a = a.add(&Index::var(v).scale(axis.a));
        }
        let extents: Vec<u64> = rows.iter().map(|x| x.extent).collect();
        let step = rows.last().map_or(0, |x| x.a);
        let to = out.view(&self.scope.comp.array(anchor).dims)?;
        let mut body = Vec::new();
        for share in shares(&mut e.k, tile, width, most) {
            let first = share.at.scale(most as i64);
            let left = Side { buf: c.left, from: a.add(&first.scale(step)), step, count: share.count };
            let mut inside = Vec::new();
            for column0 in (0..n).step_by(block as usize) {
                let (from, count) = (Index::constant((column0 * run) as i64), block.min(n - column0));
                let right = Side { buf: packed, from, step: run as i64, count };
                let (sums, totals) = sums(&mut e, c.dtype, &sum, (&left, &right), lanes);
                inside.extend(sums);
                for (i, total) in totals.into_iter().enumerate() {
                    let (r, column) = (i as u64 / count, column0 + i as u64 % count);
                    let mut at: Vec<Index> = loops.iter().map(|&v| Index::var(v)).collect();
                    at.push(first.offset(r as i64));
                    let row = linear(&at, &extents);
                    let column = Index::constant((c.first_column + column) as i64);
                    let at = place(&e.k, &Index::default(), &row, &column);
                    inside.push(to.store(&at, total));
                }
            }
            body.extend(guarded(&mut e.k, &[&share], inside));
        }
        loops.push(tile);
        e.k.flops = 2 * product(&sum) * n * product(&rows);
        chunked(&mut e.k, &loops, body);
        self.launch(e.k);
        Ok(())
    }

    /// The right side as `[sum but the innermost][column][innermost]`.
    fn by_column(&mut self, c: &Contraction, sum: &[Axis], right: &Tensor) -> BufId {
        let (n, total, size) = (product(&c.columns), product(sum), c.dtype.bytes());
        let run = sum.last().map_or(1, |x| x.extent);
        let mut bytes = Vec::with_capacity((n * total) as usize * size);
        for outer in 0..total / run {
            for column in 0..n {
                let start = c.b0 + offset_of(&c.columns, column);
                for i in 0..run {
                    let from = (start + offset_of(sum, outer * run + i)) as usize * size;
                    bytes.extend_from_slice(&right.bytes[from..from + size]);
                }
            }
        }
        let place = Place::Weights(self.weights.add(&Bytes::from(bytes)));
        self.program.buffers.push(Buffer { dtype: c.dtype, elements: n * total, place })
    }
}

/// `sum` with the right side as [`Emitter::by_column`] has it.
fn lying_by_column(sum: &[Axis], columns: u64) -> Vec<Axis> {
    let mut step = columns as i64;
    let mut lying = sum.to_vec();
    for (i, axis) in lying.iter_mut().rev().enumerate() {
        axis.b = if i == 0 { 1 } else { step };
        step *= axis.extent as i64;
    }
    lying
}

/// One side of sums along lanes: `count` of its rows or columns, `step` apart, the first from `from` on.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub buf: BufId,
    pub from: Index,
    pub step: i64,
    pub count: u64,
}

/// The loops that sum all pairs of a row of one side and a column of the other, and the totals, row after row. Along `sum` the
/// rows lie as `a` says and the columns as `b` does: vectors of the columns stay in registers while those of the rows pass.
pub(super) fn sums(
    e: &mut Elements,
    dtype: DType,
    sum: &[Axis],
    (left, right): (&Side, &Side),
    lanes: u64,
) -> (Vec<Stmt>, Vec<ExprId>) {
    let (rows, n) = (left.count, right.count);
    let at = |i: u64| Index::constant(i as i64);
    let run = sum.last().map_or(1, |x| x.extent);
    let mut stretches = Vec::new();
    let (mut first, mut width) = (0, lanes);
    while width >= 1 {
        let count = (run - first) / width;
        if count > 0 {
            stretches.push(Stretch { first, count, lanes: width, acc: e.k.reg(dtype, width, rows * n) });
            first += count * width;
        }
        width /= 2;
    }
    let zero = super::number(&mut e.k, dtype, 0.0);
    let mut body = Vec::new();
    for s in &stretches {
        let clear = (0..rows * n).map(|i| Stmt::Set { reg: s.acc, at: at(i), value: zero }).collect();
        let lane = e.k.var(s.lanes);
        body.push(each(lane, LoopKind::Vector, clear));
    }
    let (mut a, mut b) = (left.from.clone(), right.from.clone());
    let outer: Vec<VarId> = sum[..sum.len().saturating_sub(1)].iter().map(|x| e.k.var(x.extent)).collect();
    for (&v, axis) in outer.iter().zip(sum) {
        a = a.add(&Index::var(v).scale(axis.a));
        b = b.add(&Index::var(v).scale(axis.b));
    }
    let mut inside = Vec::new();
    for s in &stretches {
        let (tile, lane) = (e.k.var(s.count), e.k.var(s.lanes));
        let (b_reg, a_reg) = (e.k.reg(dtype, s.lanes, n), e.k.reg(dtype, s.lanes, 1));
        let along = Index::var(tile).scale(s.lanes as i64).add(&Index::var(lane)).offset(s.first as i64);
        let mut terms = Vec::new();
        for column in 0..n {
            let index = b.add(&along).offset(column as i64 * right.step);
            let value = e.k.expr(Expr::Load(right.buf, index));
            terms.push(Stmt::Set { reg: b_reg, at: at(column), value });
        }
        for r in 0..rows {
            let value = e.k.expr(Expr::Load(left.buf, a.add(&along).offset(r as i64 * left.step)));
            terms.push(Stmt::Set { reg: a_reg, at: at(0), value });
            let x = e.k.expr(Expr::Reg(a_reg, at(0)));
            for column in 0..n {
                let i = r * n + column;
                let (y, z) = (e.k.expr(Expr::Reg(b_reg, at(column))), e.k.expr(Expr::Reg(s.acc, at(i))));
                let value = e.k.op(ScalarOp::Fma, &[x, y, z], dtype);
                terms.push(Stmt::Set { reg: s.acc, at: at(i), value });
            }
        }
        inside.push(each(tile, LoopKind::Seq, vec![each(lane, LoopKind::Vector, terms)]));
    }
    for &v in outer.iter().rev() {
        inside = vec![each(v, LoopKind::Seq, inside)];
    }
    body.extend(inside);
    let totals = (0..rows * n).map(|i| {
        let mut total = None;
        for s in &stretches {
            let part = match s.lanes {
                1 => e.k.expr(Expr::Reg(s.acc, at(i))),
                _ => e.k.expr(Expr::Fold(ScalarOp::Add, s.acc, at(i))),
            };
            total = Some(total.map_or(part, |t| e.k.op(ScalarOp::Add, &[t, part], dtype)));
        }
        total.unwrap_or(zero)
    });
    let totals = totals.collect();
    (body, totals)
}
