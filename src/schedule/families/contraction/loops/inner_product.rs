//! Contractions with few columns: lanes run along the sum, where the left side is contiguous, and each element of the result
//! is folded from a register at the end. With lanes along so few columns every multiply-add would wait for a broadcast.
use crate::kernel::{Buffer, BufferLocation};
use crate::schedule::families::contraction::loops::operands::{Contraction, CoordinateMap};
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, extent_product, merge_axes, right_offset};
use crate::schedule::families::contraction::recipe::inner_product::InnerProductTile;
use crate::schedule::loops::grid::{guard_by_tiles, set_body_in_chunks, split_into_tiles};
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::{VectorRun, VectorWidth};
use crate::schedule::plan::fuse::FusionDecision;
use crate::tensor::Tensor;
use bytes::Bytes;

impl<'a> Emitter<'a> {
    /// Emits a contraction vectorized along its sums: `make` emits the sums of all elements of the anchor, and a separate kernel computes
    /// the epilogue.
    pub(in crate::schedule) fn emit_inner_product(
        &mut self,
        root @ KernelRoot { id, anchor, out }: KernelRoot<'_>,
        make: impl FnOnce(&mut Self, KernelRoot<'_>) -> Result<()>,
    ) -> Result<()> {
        if id == anchor {
            return make(self, root);
        }
        // where nothing else is read from there, the result is written over its sums
        let (sum, result) = (self.scope.comp.array_shape(anchor), self.scope.comp.array_shape(id));
        let alike = sum == result && out.layout.is_none() && self.scope.fusion.path[anchor].is_empty();
        let sources = self.source_buffers(&self.scope.comp[id].operands);
        let is_over = alike && out.leaves.iter().all(|buf| !sources.contains(buf));
        let sums = if is_over { out.clone() } else { self.allocate(&self.scope.comp[anchor].shape) };
        make(self, KernelRoot { id: anchor, anchor, out: &sums })?;
        self.scope.set_value(anchor, sums);
        self.scope.fusion.decision[anchor] = FusionDecision::Materialised;
        self.scope.fusion.anchor[id] = None;
        self.emit_pointwise(id, out)
    }

    /// Emits the sums of `c`, vectorized along the contracted axes.
    pub(in crate::schedule) fn inner_product_sums(
        &mut self,
        root @ KernelRoot { anchor, out, .. }: KernelRoot<'_>,
        c: &Contraction,
        right: &Tensor,
        place: CoordinateMap<'_>,
    ) -> Result<()> {
        let (rows, sum) = (self.row_axes(root, c, place)?, merge_axes(&c.sum));
        let n = extent_product(&c.columns);
        let packed = self.by_column(c, &sum, right);
        let run = sum.last().map_or(1, |x| x.extent);
        let sum = lying_by_column(&sum, n);
        let width = rows.last().map_or(1, |x| x.extent);
        let registers = self.target.machine().vector_registers;
        let InnerProductTile { lanes, rows: most, columns: block } =
            InnerProductTile::for_few_columns([run, self.vector_lanes(c.dtype)], n, width, registers);
        // rows of a tile whose sums the processor has registers for
        let registers = self.target.vectors_in_registers();
        let at_once = InnerProductTile::for_few_columns([run, self.vector_lanes(c.dtype)], n, width, registers).rows;
        let mut e = self.start_kernel(anchor);
        let mut loops: Vec<VarId> = rows[..rows.len() - 1].iter().map(|x| e.k.add_var(x.extent)).collect();
        let tile = e.k.add_var(width.div_ceil(most));
        let mut a = Index::constant(c.a0);
        for (&v, axis) in loops.iter().zip(&rows) {
            a = a.add(&Index::var(v).scale(axis.a));
        }
        let extents: Vec<u64> = rows.iter().map(|x| x.extent).collect();
        let step = rows.last().map_or(0, |x| x.a);
        let to = out.view(&self.scope.comp.array_shape(anchor).dims)?;
        let mut body = Vec::new();
        for share in split_into_tiles(&mut e.k, tile, width, most) {
            let mut inside = Vec::new();
            let rows0 = (0..share.count).step_by(at_once as usize);
            let columns0 = || (0..n).step_by(block as usize);
            for (row0, column0) in rows0.flat_map(|row0| columns0().map(move |column0| (row0, column0))) {
                let first = share.at.scale(most as i64).offset(row0 as i64);
                let own = at_once.min(share.count - row0);
                let left = VectorOperand { buf: c.left, from: a.add(&first.scale(step)), step, count: own };
                let (from, count) = (Index::constant((column0 * run) as i64), block.min(n - column0));
                let right = VectorOperand { buf: packed, from, step: run as i64, count };
                let (sums, totals) = vectorized_sums(&mut e, c.dtype, &sum, &left, &right, lanes);
                inside.extend(sums);
                for (i, total) in totals.into_iter().enumerate() {
                    let (r, column) = (i as u64 / count, column0 + i as u64 % count);
                    let mut at: Vec<Index> = loops.iter().map(|&v| Index::var(v)).collect();
                    at.push(first.offset(r as i64));
                    let row = linear_index(&at, &extents);
                    let column = Index::constant((c.first_column + column) as i64);
                    let at = place(&e.k, &Index::default(), &row, &column);
                    inside.push(to.store(&at, total));
                }
            }
            body.extend(guard_by_tiles(&mut e.k, &[&share], inside));
        }
        loops.push(tile);
        e.k.flops = 2 * extent_product(&sum) * n * extent_product(&rows);
        set_body_in_chunks(&mut e.k, &loops, body);
        self.launch(e.k);
        Ok(())
    }

    /// Packs a constant right side as `[outer contracted axes][column][innermost contracted axis]`.
    fn by_column(&mut self, c: &Contraction, sum: &[ContractionAxis], right: &Tensor) -> BufId {
        let (n, total, size) = (extent_product(&c.columns), extent_product(sum), c.dtype.bytes());
        let run = sum.last().map_or(1, |x| x.extent);
        let mut bytes = Vec::with_capacity((n * total) as usize * size);
        for outer in 0..total / run {
            for column in 0..n {
                let start = c.b0 + right_offset(&c.columns, column);
                for i in 0..run {
                    let from = (start + right_offset(sum, outer * run + i)) as usize * size;
                    bytes.extend_from_slice(&right.bytes[from..from + size]);
                }
            }
        }
        let place = BufferLocation::Weights(self.weights.add(&Bytes::from(bytes)));
        self.program.buffers.push(Buffer { dtype: c.dtype, elements: n * total, place })
    }
}

/// The contracted loops `sum` with their strides in a right side that is packed as by [`Emitter::by_column`].
fn lying_by_column(sum: &[ContractionAxis], columns: u64) -> Vec<ContractionAxis> {
    let mut step = columns as i64;
    let mut lying = sum.to_vec();
    for (i, axis) in lying.iter_mut().rev().enumerate() {
        axis.b = if i == 0 { 1 } else { step };
        step *= axis.extent as i64;
    }
    lying
}

/// An operand of [`vectorized_sums`]: `count` rows or columns of `buf`, `step` elements apart, of which the first begins at `from`.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct VectorOperand {
    pub buf: BufId,
    pub from: Index,
    pub step: i64,
    pub count: u64,
}

/// Emits loops that sum the products of each row of `left` with each column of `right`, vectorized along the terms; also returns the
/// totals, row after row. Vectors of the columns stay in registers while those of the rows are loaded.
pub(in crate::schedule) fn vectorized_sums(
    e: &mut KernelBuilder,
    dtype: DType,
    sum: &[ContractionAxis],
    left: &VectorOperand,
    right: &VectorOperand,
    lanes: u64,
) -> (Vec<Stmt>, Vec<ExprId>) {
    let (rows, n) = (left.count, right.count);
    let run = sum.last().map_or(1, |x| x.extent);
    // stretches of the innermost sum, with a register for each row and column
    let stretches = VectorWidth { lanes, masks: false }.split(run).into_iter();
    let stretches: Vec<(VectorRun, RegId)> =
        stretches.map(|cut| (cut, e.k.add_reg(dtype, cut.lanes, rows * n))).collect();
    let zero = constant_of_number(&mut e.k, dtype, 0.0);
    let mut body = Vec::new();
    for &(cut, acc) in &stretches {
        let clear = (0..rows * n).map(|i| Stmt::set(acc, i, zero)).collect();
        let lane = e.k.add_var(cut.lanes);
        body.push(for_loop(lane, LoopKind::Vector, clear));
    }
    let (mut a, mut b) = (left.from.clone(), right.from.clone());
    let outer: Vec<VarId> = sum[..sum.len().saturating_sub(1)].iter().map(|x| e.k.add_var(x.extent)).collect();
    for (&v, axis) in outer.iter().zip(sum) {
        a = a.add(&Index::var(v).scale(axis.a));
        b = b.add(&Index::var(v).scale(axis.b));
    }
    let mut inside = Vec::new();
    for &(cut, acc) in &stretches {
        let (tile, lane) = (e.k.add_var(cut.blocks), e.k.add_var(cut.lanes));
        let (b_reg, a_reg) = (e.k.add_reg(dtype, cut.lanes, n), e.k.add_reg(dtype, cut.lanes, 1));
        let along = cut.element_index(&Index::var(tile), lane);
        let mut terms = Vec::new();
        for column in 0..n {
            let value = e.k.add_load(right.buf, b.add(&along).offset(column as i64 * right.step));
            terms.push(Stmt::set(b_reg, column, value));
        }
        for r in 0..rows {
            let value = e.k.add_load(left.buf, a.add(&along).offset(r as i64 * left.step));
            terms.push(Stmt::set(a_reg, 0, value));
            let x = e.k.read_reg(a_reg, 0);
            for column in 0..n {
                let i = r * n + column;
                let (y, z) = (e.k.read_reg(b_reg, column), e.k.read_reg(acc, i));
                let value = e.k.add_op(ScalarOp::Fma, &[x, y, z], dtype);
                terms.push(Stmt::set(acc, i, value));
            }
        }
        inside.push(cut.loop_nest(tile, lane, terms));
    }
    body.extend(nest_loops(&outer, inside));
    let totals = (0..rows * n).map(|i| {
        let mut total = None;
        for &(cut, acc) in &stretches {
            let part = match cut.lanes {
                1 => e.k.read_reg(acc, i),
                _ => e.k.add_expr(Expr::Fold(ScalarOp::Add, acc, Index::constant(i as i64))),
            };
            total = Some(total.map_or(part, |t| e.k.add_op(ScalarOp::Add, &[t, part], dtype)));
        }
        total.unwrap_or(zero)
    });
    let totals = totals.collect();
    (body, totals)
}
