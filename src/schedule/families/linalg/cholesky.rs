//! `cholesky`: factors of positive matrices.
//!
//! The factor u of u* u = a is made in its upper triangle, row after row: a row of a less the products of what is above it, column
//! by column in vectors, divided by its pivot. Large matrices go in panels of a few rows: what is above a panel is subtracted from all
//! of its rows at once, so that each vector that is loaded serves as many products. The other factor is the adjoint, which is transposed
//! at the end, and what was computed on the way is the same. The order of terms is that of the textbook, for each element.
use crate::scalar::{CompareKind, Direction};
use crate::schedule::families::linalg::matrices::{ColumnBlock, Matrices, conjugate, sqrt_of_real, subtract_product};
use crate::schedule::families::linalg::recipe::{MOST_VECTORS, most_vectors};
use crate::schedule::loops::nest::split_into_vector_loops;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::scalar_loops::{LocalVariable, emit_counted_loop, index_to_s64, set_nested_body};

/// Rows of a panel.
const PANEL_ROWS: u64 = 4;
/// Fewest rows of a matrix that is factorized in panels.
const FEWEST_ROWS: u64 = 32;

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
        let start = [Stmt::Store { buf: u.buf, index: u.index(&i, &j), value }];
        // of a transposed matrix the rows of few columns are read one after the other, from the same cache lines
        let start = split_into_vector_loops(&mut e.k, &start, column, lanes).into_iter().map(|(tile, inside)| {
            let (outer, inner) = if lower { (tile, row) } else { (row, tile) };
            for_loop(outer, LoopKind::Seq, vec![for_loop(inner, LoopKind::Seq, vec![inside])])
        });
        let mut body: Vec<Stmt> = start.collect();
        body.extend(u.factor(&mut e.k, lanes, most_vectors(self.target)));
        body.extend(if lower {
            u.transpose_upper_triangle(&mut e.k, lanes)
        } else {
            vec![u.clear_lower_triangle(&mut e.k, row)]
        });
        e.k.flops = u.dims.iter().product::<u64>() * n / 3;
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

    /// Emits all rows of the factor. Numbers that are rounded where they are stored are computed without panels, which store sums.
    fn factor(&self, k: &mut Kernel, lanes: u64, vectors: u64) -> Vec<Stmt> {
        let n = self.rows();
        let panels = if self.stored == self.wide && n >= FEWEST_ROWS { n / PANEL_ROWS } else { 0 };
        let mut body = Vec::new();
        if panels > 0 {
            let (panel, row) = (k.add_var(panels), k.add_var(PANEL_ROWS));
            let first = Index::var(panel).scale(PANEL_ROWS as i64);
            let mut inside = self.panel_less_products(k, &first, lanes, vectors);
            let rows = self.row_of_factor(k, &first.add(&Index::var(row)), &first, lanes);
            inside.push(for_loop(row, LoopKind::Seq, rows));
            body.push(for_loop(panel, LoopKind::Seq, inside));
        }
        let done = panels * PANEL_ROWS;
        if done < n {
            let row = k.add_var(n - done);
            let rows = self.row_of_factor(k, &Index::var(row).offset(done as i64), &Index::constant(0), lanes);
            body.push(for_loop(row, LoopKind::Seq, rows));
        }
        body
    }

    /// Emits the subtraction of the products of all rows above row `first` from the panel of rows that begins there.
    fn panel_less_products(&self, k: &mut Kernel, first: &Index, lanes: u64, vectors: u64) -> Vec<Stmt> {
        let rows: Vec<Index> = (0..PANEL_ROWS as i64).map(|r| first.offset(r)).collect();
        let mut body = Vec::new();
        for side in ColumnBlock::cover_columns(self.rows(), vectors, lanes) {
            let (tile, lane) = (k.add_var(side.tiles), k.add_var(side.lanes));
            let sums = k.add_reg(self.wide, side.lanes, PANEL_ROWS * side.vectors);
            let of_tile = Index::var(tile).scale(side.columns() as i64).offset(side.first as i64);
            let places: Vec<Index> =
                (0..side.vectors).map(|v| of_tile.add(&Index::var(lane)).offset((v * side.lanes) as i64)).collect();
            let elements = || rows.iter().flat_map(|row| places.iter().map(move |place| (row, place))).zip(0..);
            let mut inside = Vec::new();
            for ((row, place), sum) in elements() {
                let value = self.load(k, row, place);
                inside.push(Stmt::set(sums, sum, value));
            }
            inside.extend(self.for_rows(k, &Index::constant(0), first, |k, above| {
                let own: Vec<ExprId> = places.iter().map(|place| self.load(k, above, place)).collect();
                let mut all = Vec::new();
                for (row, sum) in rows.iter().zip((0..).step_by(own.len())) {
                    let factor = self.load(k, above, row);
                    let factor = conjugate(k, factor, self.wide);
                    for (&own, sum) in own.iter().zip(sum..) {
                        let so_far = k.read_reg(sums, sum);
                        all.push(Stmt::set(sums, sum, subtract_product(k, so_far, own, factor, self.wide)));
                    }
                }
                all
            }));
            for ((row, place), sum) in elements() {
                let value = k.read_reg(sums, sum);
                inside.push(self.store(k, row, place, value));
            }
            let inside = vec![for_loop(lane, LoopKind::Vector, inside)];
            body.push(self.unless_before(k, tile, &of_tile.offset(side.columns() as i64 - 1), first, inside));
        }
        body
    }

    /// Loops `inside` over tiles, those left out whose `last` column is before `first`.
    fn unless_before(&self, k: &mut Kernel, tile: VarId, last: &Index, first: &Index, inside: Vec<Stmt>) -> Stmt {
        let cond = k.add_expr(Expr::Within(last.add(&first.scale(-1)), 0, self.rows() as i64));
        for_loop(tile, LoopKind::Seq, vec![Stmt::If { cond, body: inside }])
    }

    /// Emits row `j` of the factor from its pivot on, from which the products of the rows above row `first` are subtracted; elements before
    /// the pivot are meaningless.
    fn row_of_factor(&self, k: &mut Kernel, j: &Index, first: &Index, lanes: u64) -> Vec<Stmt> {
        let (n, pivot) = (self.rows(), LocalVariable::new(k, self.wide));
        let start = self.load(k, j, j);
        let mut body = vec![pivot.set(start)];
        let factor = |k: &mut Kernel, above: &Index| {
            let factor = self.load(k, above, j);
            conjugate(k, factor, self.wide)
        };
        body.extend(self.for_rows(k, first, j, |k, above| {
            let (factor, own) = (factor(k, above), self.load(k, above, j));
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
            inside.extend(self.for_rows(k, first, j, |k, above| {
                let factor = factor(k, above);
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
            let inside = vec![for_loop(lane, LoopKind::Vector, inside)];
            body.push(self.unless_before(k, tile, &of_tile.offset(side.columns() as i64 - 1), j, inside));
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

    /// Loops `body` over the rows from `first` until `end`.
    fn for_rows(
        &self,
        k: &mut Kernel,
        first: &Index,
        end: &Index,
        body: impl FnOnce(&mut Kernel, &Index) -> Vec<Stmt>,
    ) -> [Stmt; 2] {
        let row = LocalVariable::new(k, DType::S64);
        let at = row.index().clamp_to(0, self.rows() as i64 - 1, &k.vars);
        let inside = body(k, &at);
        let end = index_to_s64(k, end);
        emit_counted_loop(k, row, first, end, inside)
    }

    /// Emits stores of zeros to the lower triangle, in a loop over `row`.
    fn clear_lower_triangle(&self, k: &mut Kernel, row: VarId) -> Stmt {
        let (zero, column, i) =
            (constant_of_number(k, self.wide, 0.0), LocalVariable::new(k, DType::S64), Index::var(row));
        let j = column.index().clamp_to(0, self.rows() as i64 - 1, &k.vars);
        let (store, end) = (self.store(k, &i, &j, zero), index_to_s64(k, &i));
        for_loop(row, LoopKind::Seq, emit_counted_loop(k, column, &Index::constant(0), end, vec![store]).into())
    }

    /// Emits the move of the upper triangle to the lower one, and zeros in its place: a few columns of the lower triangle at a time, whose
    /// rows are read from the same cache lines.
    fn transpose_upper_triangle(&self, k: &mut Kernel, lanes: u64) -> Vec<Stmt> {
        let (n, zero) = (self.rows(), constant_of_number(k, self.wide, 0.0));
        let (mut moved, mut cleared) = (Vec::new(), Vec::new());
        for side in ColumnBlock::cover_columns(n, 1, lanes) {
            let (tile, lane, row) = (k.add_var(side.tiles), k.add_var(side.lanes), k.add_var(side.lanes));
            let first = Index::var(tile).scale(side.lanes as i64).offset(side.first as i64);
            let (column, end) = (first.add(&Index::var(lane)), first.offset(side.lanes as i64));
            let along_lanes = |body: Stmt| vec![for_loop(lane, LoopKind::Vector, vec![body])];
            // the block on the diagonal, one by one
            let diagonal = self.for_rows(k, &first, &first.add(&Index::var(row)), |k, j| {
                let i = first.add(&Index::var(row));
                let value = self.load(k, j, &i);
                vec![self.store(k, &i, j, value), self.store(k, j, &i, zero)]
            });
            let below = self.for_rows(k, &end, &Index::constant(n as i64), |k, i| {
                let value = self.load(k, &column, i);
                along_lanes(self.store(k, i, &column, value))
            });
            let inside = std::iter::once(for_loop(row, LoopKind::Seq, diagonal.into())).chain(below);
            moved.push(for_loop(tile, LoopKind::Seq, inside.collect()));
            let zeros = |k: &mut Kernel, j: &Index| along_lanes(self.store(k, j, &column, zero));
            cleared.push(for_loop(tile, LoopKind::Seq, self.for_rows(k, &Index::constant(0), &first, zeros).into()));
        }
        moved.into_iter().chain(cleared).collect()
    }
}
