//! The micro-kernel of matrix products and convolutions: a tile of rows by vectors of columns stays in registers while the
//! contracted loops run; the right side is packed into panels that are read strictly forward; the epilogue follows at once.
use super::element::Elements;
use super::{convert, each, label};
use crate::diag::{Error, Result};
use crate::hlo::InstId;
use crate::kernel::index::{linear, reshape};
use crate::kernel::{BufId, Expr, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::schedule::{Scheduler, Scope, Value};
use crate::tensor::{DType, Tensor};
use bytes::Bytes;

/// A loop and how far its step moves the left and right side, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Iterations.
    pub extent: u64,
    /// Step of the left operand.
    pub a: i64,
    /// Step of the right operand.
    pub b: i64,
}

/// Where the right side comes from.
#[derive(Clone, Debug)]
pub enum Right {
    /// Known now: packed now.
    Constant(Tensor),
    /// Packed at run time.
    Buffer(BufId),
}

/// `out[batch, rows, columns] = Σ a·b`.
#[derive(Clone, Debug)]
pub struct Contraction {
    /// The element type of the result.
    pub dtype: DType,
    /// The left side.
    pub left: BufId,
    /// The right side.
    pub right: Right,
    /// First element of the left side.
    pub a0: i64,
    /// First element of the right side.
    pub b0: i64,
    /// Loops of the result over both sides.
    pub batch: Vec<Axis>,
    /// Loops of the result over the left side.
    pub rows: Vec<Axis>,
    /// Loops of the result over the right side.
    pub columns: Vec<Axis>,
    /// Loops that are summed over.
    pub sum: Vec<Axis>,
    /// The first column of the result that this contraction makes (groups).
    pub first_column: u64,
}

/// The register tile.
#[derive(Clone, Copy, Debug)]
struct Tile {
    rows: u64,
    vectors: u64,
    lanes: u64,
}

/// Neighbouring axes that step through memory without a gap become one.
fn merged(axes: &[Axis]) -> Vec<Axis> {
    let mut out: Vec<Axis> = Vec::new();
    for axis in axes.iter().filter(|x| x.extent != 1) {
        match out.last_mut() {
            Some(last) if last.a == axis.a * axis.extent as i64 && last.b == axis.b * axis.extent as i64 => {
                *last = Axis { extent: last.extent * axis.extent, ..*axis };
            }
            _ => out.push(*axis),
        }
    }
    out
}

fn product(axes: &[Axis]) -> u64 {
    axes.iter().map(|x| x.extent).product()
}

impl<'a> Scheduler<'a> {
    /// The kernels of `c`. `place` turns (batch, row, column) numbers into the coordinates of an element of the result.
    pub(super) fn contraction(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        c: &Contraction,
        place: &dyn Fn(&Kernel, &Index, &Index, &Index) -> Vec<Index>,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let (rows, sum) = (merged(&c.rows), merged(&c.sum));
        let rows = if rows.is_empty() { vec![Axis { extent: 1, a: 0, b: 0 }] } else { rows };
        let (n, k) = (product(&c.columns), product(&sum));
        let width = rows.last().map_or(1, |x| x.extent);
        let tile = self.tile(c.dtype.accumulator(), width, n);
        let panel = tile.vectors * tile.lanes;
        let panels = n.div_ceil(panel);
        let batch = product(&c.batch);
        let packed = self.pack(c, &sum, panel, panels, steps)?;
        let bytes = k * n * self.program.buffers[packed.0].dtype.bytes() as u64;
        let by_panel = (bytes > 512 << 10 || product(&rows) < 2 * tile.rows) && n / panel >= 2;
        // Whole panels, then the last narrower one; whole tiles of rows, then the remainder.
        let full = n / panel;
        let rest = n % panel;
        let mut column_parts = vec![];
        if full > 0 {
            column_parts.push((0, full, panel));
        }
        if rest > 0 {
            column_parts.push((full, 1, rest));
        }
        let mut row_parts = vec![(0, width / tile.rows, tile.rows)];
        row_parts.retain(|p| p.1 > 0);
        if width % tile.rows > 0 {
            row_parts.push((width / tile.rows * tile.rows, 1, width % tile.rows));
        }
        for (panel0, count, columns) in column_parts {
            for &(row0, tiles, high) in &row_parts {
                let mut e = Elements::new(id, label(scope.comp, id));
                let b = e.k.var(batch);
                let outer: Vec<VarId> = rows[..rows.len() - 1].iter().map(|x| e.k.var(x.extent)).collect();
                let (t, p) = (e.k.var(tiles), e.k.var(count));
                let batch_at = reshape(
                    &[Index::var(b)],
                    &[batch],
                    &c.batch.iter().map(|x| x.extent).collect::<Vec<_>>(),
                    &e.k.vars,
                );
                let mut a = Index::constant(c.a0);
                for (x, axis) in batch_at.iter().zip(&c.batch) {
                    a = a.add(&x.scale(axis.a));
                }
                for (&v, axis) in outer.iter().zip(&rows) {
                    a = a.add(&Index::var(v).scale(axis.a));
                }
                // The row number, row-major over the merged row axes.
                let extents: Vec<u64> = rows.iter().map(|x| x.extent).collect();
                let inner = Index::var(t).scale(high.max(1) as i64).offset(row0 as i64);
                let coordinates: Vec<Index> = outer.iter().map(|&v| Index::var(v)).chain([inner.clone()]).collect();
                let row = linear(&coordinates, &extents);
                let step = rows[rows.len() - 1].a;
                a = a.add(&inner.scale(step));
                let panel_at = Index::var(p).offset(panel0 as i64);
                let b_at = Index::var(b)
                    .scale(if packed.1 { (panels * k * panel) as i64 } else { 0 })
                    .add(&panel_at.scale((k * panel) as i64));
                let column = panel_at.scale(panel as i64).offset(c.first_column as i64);
                let body = self.tile_body(
                    scope,
                    &mut e,
                    (id, anchor),
                    c,
                    &sum,
                    Part {
                        a,
                        b: b_at,
                        packed: packed.0,
                        panel,
                        row,
                        column,
                        batch: Index::var(b),
                        step,
                        high,
                        columns,
                        lanes: tile.lanes,
                    },
                    place,
                    out,
                )?;
                let mut loops = vec![b];
                loops.extend(if by_panel {
                    [p].iter().chain(&outer).chain(&[t]).copied().collect::<Vec<_>>()
                } else {
                    outer.iter().chain(&[t, p]).copied().collect()
                });
                loops.retain(|&v| e.k.vars[v] != 1);
                let mut inside = body;
                let chunk = if loops.is_empty() { None } else { Some(loops.remove(0)) };
                for &v in loops.iter().rev() {
                    inside = vec![each(v, LoopKind::Seq, inside)];
                }
                // Variables of one iteration are constants.
                for v in [vec![b], outer.clone(), vec![t, p]].concat() {
                    if e.k.vars[v] == 1 {
                        inside = vec![each(v, LoopKind::Unroll, inside)];
                    }
                }
                e.k.chunks = chunk;
                e.k.body = inside;
                e.k.flops = 2
                    * k
                    * columns
                    * count
                    * tiles
                    * high
                    * batch
                    * outer.iter().map(|&v| e.k.vars[v]).product::<u64>();
                self.launch(e.k, steps);
            }
        }
        Ok(())
    }

    /// The tile with the least predicted time: two multiply-adds a cycle, two loads a cycle, latency 4.
    fn tile(&self, dtype: DType, width: u64, n: u64) -> Tile {
        let most = self.lanes(dtype);
        let registers = self.target.vector_registers;
        let mut best = (f64::MAX, Tile { rows: 1, vectors: 1, lanes: most });
        let mut lanes = most;
        while lanes >= 1 {
            for vectors in 1..=8u64 {
                if vectors > n.div_ceil(lanes) {
                    break;
                }
                for rows in 1..=width.min(14) {
                    if rows * vectors + vectors + 1 > registers {
                        break;
                    }
                    let cost = |rows: u64, vectors: u64| {
                        let (fma, loads) = ((rows * vectors) as f64 / 2.0, (rows + vectors) as f64 / 2.0);
                        fma.max(loads).max(4.0)
                    };
                    let panel = vectors * lanes;
                    let (tiles, high) = (width / rows, width % rows);
                    let left = (n % panel).div_ceil(lanes);
                    let column = |v: u64| tiles as f64 * cost(rows, v) + if high > 0 { cost(high, v) } else { 0.0 };
                    // A last vector that is not full is stored element by element.
                    let ragged = if !n.is_multiple_of(lanes) { 0.15 * width as f64 } else { 0.0 };
                    let total =
                        (n / panel) as f64 * column(vectors) + if left > 0 { column(left) } else { 0.0 } + ragged;
                    if total < best.0 {
                        best = (total, Tile { rows, vectors, lanes });
                    }
                }
            }
            lanes /= 2;
        }
        best.1
    }

    /// Panels `[batch][panel][sum][columns of a panel]`, filled up with zeros; and whether each batch has its own.
    fn pack(
        &mut self,
        c: &Contraction,
        sum: &[Axis],
        panel: u64,
        panels: u64,
        steps: &mut Vec<Step>,
    ) -> Result<(BufId, bool)> {
        let (n, k) = (product(&c.columns), product(sum));
        let own = c.batch.iter().any(|x| x.b != 0 && x.extent > 1);
        let batch = if own { product(&c.batch) } else { 1 };
        let dtype = match &c.right {
            Right::Constant(t) => t.dtype,
            Right::Buffer(from) => self.program.buffers[*from].dtype,
        };
        let size = dtype.bytes();
        let total =
            batch.checked_mul(panels * k * panel).ok_or_else(|| Error::internal("schedule", "a panel overflows"))?;
        let offsets = |axes: &[Axis], mut i: u64| {
            let mut at = 0i64;
            for axis in axes.iter().rev() {
                at += (i % axis.extent) as i64 * axis.b;
                i /= axis.extent;
            }
            at
        };
        match &c.right {
            Right::Constant(t) => {
                let mut bytes = vec![0u8; total as usize * size];
                let of_sum: Vec<i64> = (0..k).map(|i| offsets(sum, i)).collect();
                let of_column: Vec<i64> = (0..n).map(|i| offsets(&c.columns, i)).collect();
                for b in 0..batch {
                    let start = c.b0 + offsets(&c.batch, b);
                    for (column, of) in of_column.iter().enumerate() {
                        let (p, lane) = (column as u64 / panel, column as u64 % panel);
                        for (i, sum) in of_sum.iter().enumerate() {
                            let to = (((b * panels + p) * k + i as u64) * panel + lane) as usize * size;
                            let from = (start + of + sum) as usize * size;
                            bytes[to..to + size].copy_from_slice(&t.bytes[from..from + size]);
                        }
                    }
                }
                let at = self.weights.add(&Bytes::from(bytes));
                let place = crate::kernel::Place::Weights(at);
                Ok((self.program.buffers.push(crate::kernel::Buffer { dtype, elements: total, place }), own))
            }
            Right::Buffer(from) => {
                let to = self.buffer(dtype, total);
                let mut kern = Kernel { label: "pack".to_string(), ..Kernel::default() };
                let dims = [batch, panels, k, panel];
                let vars: Vec<VarId> = dims.iter().map(|&d| kern.var(d)).collect();
                let at: Vec<Index> = vars.iter().map(|&v| Index::var(v)).collect();
                let column = at[1].scale(panel as i64).add(&at[3]);
                let held = column.limit(0, n as i64 - 1, &kern.vars);
                let mut source = Index::constant(c.b0);
                let own_axes: &[Axis] = if own { &c.batch } else { &[] };
                let groups = [(&at[0], batch, own_axes), (&at[2], k, sum), (&held, n, &c.columns[..])];
                for (x, extent, axes) in groups {
                    let sizes: Vec<u64> = axes.iter().map(|x| x.extent).collect();
                    for (y, axis) in reshape(std::slice::from_ref(x), &[extent], &sizes, &kern.vars).iter().zip(axes) {
                        source = source.add(&y.scale(axis.b));
                    }
                }
                let mut value = kern.expr(Expr::Load(*from, source));
                if n % panel > 0 {
                    let inside = kern.expr(Expr::Within(column, 0, n as i64));
                    let zero = super::number(&mut kern, dtype, 0.0);
                    value = kern.op(ScalarOp::Select, &[inside, value, zero], dtype);
                }
                let lanes = self.lanes(dtype);
                super::pointwise::nest(
                    &mut kern,
                    &vars,
                    &[Stmt::Store { buf: to, index: linear(&at, &dims), value }],
                    lanes,
                );
                self.launch(kern, steps);
                Ok((to, own))
            }
        }
    }

    /// One tile: clear, sum, epilogue, store.
    #[expect(clippy::too_many_arguments, reason = "private, called once")]
    fn tile_body(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        (id, anchor): (InstId, InstId),
        c: &Contraction,
        sum: &[Axis],
        part: Part,
        place: &dyn Fn(&Kernel, &Index, &Index, &Index) -> Vec<Index>,
        out: &Value,
    ) -> Result<Vec<Stmt>> {
        let vectors = part.columns.div_ceil(part.lanes);
        let (dtype, lanes) = (c.dtype.accumulator(), part.lanes);
        let lane = e.k.var(lanes);
        let acc = e.k.reg(dtype, lanes, part.high * vectors);
        let right = e.k.reg(dtype, lanes, vectors);
        let left = e.k.reg(dtype, 1, 1);
        let constant = |i: u64| Index::constant(i as i64);
        let zero = super::number(&mut e.k, dtype, 0.0);
        let mut body: Vec<Stmt> =
            (0..part.high * vectors).map(|i| Stmt::Set { reg: acc, at: constant(i), value: zero }).collect();
        // The sum: an even innermost loop is unrolled by two.
        let mut loops: Vec<VarId> = Vec::new();
        let (mut a, mut position) = (part.a.clone(), Index::constant(0));
        let mut unroll = 1;
        for (i, axis) in sum.iter().enumerate() {
            let last = i + 1 == sum.len();
            unroll = if last && axis.extent % 2 == 0 { 2 } else { 1 };
            let v = e.k.var(axis.extent / unroll);
            loops.push(v);
            let x = Index::var(v).scale(unroll as i64);
            a = a.add(&x.scale(axis.a));
            position = position.scale(axis.extent as i64).add(&x);
        }
        let last_step = sum.last().map_or(0, |x| x.a);
        let mut inside = Vec::new();
        for u in 0..unroll {
            for v in 0..vectors {
                let at = part
                    .b
                    .add(&position.offset(u as i64).scale(part.panel as i64))
                    .add(&Index::var(lane))
                    .offset((v * lanes) as i64);
                let value = e.k.expr(Expr::Load(part.packed, at));
                let value = convert(&mut e.k, value, self.program.buffers[part.packed].dtype, dtype);
                inside.push(Stmt::Set { reg: right, at: constant(v), value });
            }
            for r in 0..part.high {
                let value = e.k.expr(Expr::Load(c.left, a.offset(u as i64 * last_step + r as i64 * part.step)));
                let value = convert(&mut e.k, value, self.program.buffers[c.left].dtype, dtype);
                inside.push(Stmt::Set { reg: left, at: constant(0), value });
                let x = e.k.expr(Expr::Reg(left, constant(0)));
                for v in 0..vectors {
                    let (y, z) =
                        (e.k.expr(Expr::Reg(right, constant(v))), e.k.expr(Expr::Reg(acc, constant(r * vectors + v))));
                    let value = e.k.op(ScalarOp::Fma, &[x, y, z], dtype);
                    inside.push(Stmt::Set { reg: acc, at: constant(r * vectors + v), value });
                }
            }
        }
        for &v in loops.iter().rev() {
            inside = vec![each(v, LoopKind::Seq, inside)];
        }
        body.extend(inside);
        let buf = out.buffer()?;
        let layout = out.layout(&scope.comp.array(id).dims);
        let mut store = |s: &mut Self, e: &mut Elements, value, row: &Index, column: &Index| -> Result<Stmt> {
            e.forget();
            let value = convert(&mut e.k, value, dtype, c.dtype);
            e.fixed.insert(anchor, value);
            let at = place(&e.k, &part.batch, row, column);
            let value = s.element(scope, e, id, &at)?;
            Ok(Stmt::Store { buf, index: layout.at(&at), value })
        };
        let mut ragged = Vec::new();
        for r in 0..part.high {
            let row = part.row.offset(r as i64);
            for v in 0..vectors {
                let (at, first) = (constant(r * vectors + v), part.column.offset((v * lanes) as i64));
                let valid = (part.columns - v * lanes).min(lanes);
                if valid == lanes {
                    let value = e.k.expr(Expr::Reg(acc, at));
                    let stmt = store(self, e, value, &row, &first.add(&Index::var(lane)))?;
                    body.push(stmt);
                } else {
                    for l in 0..valid {
                        let value = e.k.expr(Expr::Lane(acc, at.clone(), l));
                        ragged.push(store(self, e, value, &row, &first.offset(l as i64))?);
                    }
                }
            }
        }
        let mut out = vec![each(lane, LoopKind::Vector, body)];
        out.extend(ragged);
        Ok(out)
    }
}

/// Where one kernel's tile lies.
struct Part {
    a: Index,
    b: Index,
    packed: BufId,
    panel: u64,
    row: Index,
    column: Index,
    batch: Index,
    step: i64,
    high: u64,
    columns: u64,
    lanes: u64,
}
