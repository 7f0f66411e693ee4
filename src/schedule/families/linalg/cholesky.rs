//! `cholesky`: factors of positive matrices.
//!
//! The factor u of u* u = a is made in its upper triangle, row after row: a row of a less the products of what is above it, column
//! by column in vectors, divided by its pivot. The other factor is its adjoint, so that it is turned round at the end, and what
//! was computed on the way is the same. The order of terms is that of the textbook, for each element.
use crate::scalar::{CompareKind, Direction};
use crate::schedule::families::linalg::matrices::{ColumnBlock, Matrices, conjugate, sqrt_of_real, subtract_product};
use crate::schedule::families::linalg::recipe::MOST_VECTORS;
use crate::schedule::loops::nest::vectorize_loop;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::scalar_loops::{LocalVariable, emit_counted_loop, index_to_s64, set_nested_body};

/// The family of Cholesky factorizations, row after row.
pub const FAMILY: Family = Family {
    name: "cholesky",
    recipe: |_, request| Ok(matches!(request.op(), Op::Cholesky { .. }).then_some(RecipeSetup::Plain)),
    emit: |s, root, _| s.emit_cholesky(root),
};

impl<'a> Emitter<'a> {
    /// Emits the Cholesky factor l of l l* = a (or u of u* u = a) with zeros in the other triangle; if the matrix is not positive
    /// definite all elements are NaN.
    pub(in crate::schedule) fn emit_cholesky(&mut self, KernelRoot { id, out, .. }: KernelRoot<'_>) -> Result<()> {
        let Op::Cholesky { lower } = self.scope.comp[id].op else {
            return Err(unsupported_error(self.scope.comp, id, ""));
        };
        let (a, shape) = (self.scope.comp[id].operands[0], self.scope.comp.array_shape(id));
        if shape.dims.contains(&0) {
            return Ok(());
        }
        let mut e = self.start_kernel(id);
        let u = Matrices::new(&mut e.k, shape, out)?;
        let n = u.rows();
        let (row, column) = (e.k.add_var(n), e.k.add_var(n));
        let (i, j) = (Index::var(row), Index::var(column));
        let from = if lower { u.element_coordinates(&j, &i) } else { u.element_coordinates(&i, &j) };
        let value = self.emit_element(&mut e, a, &from)?;
        let lanes = self.vector_lanes(u.wide);
        let start = Stmt::Store { buf: u.buf, index: u.index(&i, &j), value };
        let start = vectorize_loop(&mut e.k, column, &[start], lanes);
        let factored = u.row_of_factor(&mut e.k, &i, lanes);
        let cleared = u.other_triangle(&mut e.k, &i, lower);
        e.k.flops = u.dims.iter().product::<u64>() * n / 3;
        let mut body = Vec::from([start, factored, cleared].map(|body| for_loop(row, LoopKind::Seq, body)));
        body.push(u.unless_positive(&mut e.k, row, column));
        set_nested_body(&mut e.k, &u.batch, body);
        self.launch(e.k);
        Ok(())
    }
}

impl Matrices {
    /// Number of rows of a square matrix.
    fn rows(&self) -> u64 {
        self.dims.last().copied().unwrap_or(1)
    }

    /// Emits row `j` of the factor from its pivot on; elements before that are meaningless.
    fn row_of_factor(&self, k: &mut Kernel, j: &Index, lanes: u64) -> Vec<Stmt> {
        let (n, pivot) = (self.rows(), LocalVariable::new(k, self.wide));
        let start = self.load(k, j, j);
        let mut body = vec![pivot.set(start)];
        body.extend(self.for_rows_above(k, j, |k, above, factor| {
            let own = self.load(k, above, j);
            vec![pivot.set(subtract_product(k, pivot.value, own, factor, self.wide))]
        }));
        let root = sqrt_of_real(k, pivot.value, self.wide);
        body.push(pivot.set(root));
        for side in ColumnBlock::cover_columns(n, MOST_VECTORS, lanes) {
            let (tile, lane) = (k.add_var(side.tiles), k.add_var(side.lanes));
            let sums = k.add_reg(self.wide, side.lanes, side.vectors);
            let of_tile = Index::var(tile).scale(side.columns() as i64).offset(side.first as i64);
            let place = |v: u64| of_tile.add(&Index::var(lane)).offset((v * side.lanes) as i64);
            let mut inside = Vec::new();
            for v in 0..side.vectors {
                let value = self.load(k, j, &place(v));
                inside.push(Stmt::set(sums, v, value));
            }
            inside.extend(self.for_rows_above(k, j, |k, above, factor| {
                let add = |v: u64| {
                    let (so_far, own) = (k.read_reg(sums, v), self.load(k, above, &place(v)));
                    Stmt::set(sums, v, subtract_product(k, so_far, own, factor, self.wide))
                };
                (0..side.vectors).map(add).collect()
            }));
            for v in 0..side.vectors {
                let all = k.read_reg(sums, v);
                let value = k.add_op(ScalarOp::Divide, &[all, pivot.value], self.wide);
                inside.push(self.store(k, j, &place(v), value));
            }
            let last = of_tile.offset(side.columns() as i64 - 1);
            let cond = k.add_expr(Expr::Within(last.add(&j.scale(-1)), 0, n as i64));
            let inside = vec![for_loop(lane, LoopKind::Vector, inside)];
            body.push(for_loop(tile, LoopKind::Seq, vec![Stmt::If { cond, body: inside }]));
        }
        body.push(self.store(k, j, j, pivot.value));
        body
    }

    /// Emits stores of NaN to all elements if the last pivot is NaN, as it is if any pivot before is.
    fn unless_positive(&self, k: &mut Kernel, row: VarId, column: VarId) -> Stmt {
        let last = Index::constant(self.rows() as i64 - 1);
        let pivot = self.load(k, &last, &last);
        let part = self.wide.real_part();
        let pivot = if part == self.wide { pivot } else { k.add_op(ScalarOp::Real, &[pivot], part) };
        let is_nan = ScalarOp::Compare(Direction::Ne, CompareKind::Partial);
        let cond = k.add_op(is_nan, &[pivot, pivot], DType::Pred);
        let nan = constant_of_number(k, self.wide, f64::NAN);
        let store = self.store(k, &Index::var(row), &Index::var(column), nan);
        let body = vec![for_loop(row, LoopKind::Seq, vec![for_loop(column, LoopKind::Seq, vec![store])])];
        Stmt::If { cond, body }
    }

    /// Loops `body` over the rows above row `j`, with the conjugate of their element in column `j`.
    fn for_rows_above(
        &self,
        k: &mut Kernel,
        j: &Index,
        body: impl FnOnce(&mut Kernel, &Index, ExprId) -> Vec<Stmt>,
    ) -> [Stmt; 2] {
        let above = LocalVariable::new(k, DType::S64);
        let at = above.index().clamp_to(0, self.rows() as i64 - 1, &k.vars);
        let factor = self.load(k, &at, j);
        let factor = conjugate(k, factor, self.wide);
        let inside = body(k, &at, factor);
        let end = index_to_s64(k, j);
        emit_counted_loop(k, above, &Index::constant(0), end, inside)
    }

    /// Emits row `i` of the lower triangle: zeros, or the elements of column `i` of the upper one, which become zeros.
    fn other_triangle(&self, k: &mut Kernel, i: &Index, lower: bool) -> Vec<Stmt> {
        let zero = constant_of_number(k, self.wide, 0.0);
        let column = LocalVariable::new(k, DType::S64);
        let j = column.index().clamp_to(0, self.rows() as i64 - 1, &k.vars);
        let body = match lower {
            false => vec![self.store(k, i, &j, zero)],
            true => {
                let value = self.load(k, &j, i);
                vec![self.store(k, i, &j, value), self.store(k, &j, i, zero)]
            }
        };
        let end = index_to_s64(k, i);
        emit_counted_loop(k, column, &Index::constant(0), end, body).into()
    }
}
