//! `triangular-solve`, by substitution: some unknowns after others, of many right-hand sides at a time where those lie side by side.
use crate::hlo::attrs::Transpose;
use crate::schedule::families::linalg::matrices::{ColumnBlock, Matrices, conjugate, subtract_product};
use crate::schedule::families::linalg::recipe::SolveBlocking;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::scalar_loops::{LocalVariable, emit_counted_loop, index_to_s64, set_nested_body};

/// Number of unknowns solved at a time: known values are read once for all of them.
const UNKNOWNS: u64 = 4;

/// A triangular system whose kernel is being emitted.
struct System {
    a: InstId,
    b: InstId,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: Transpose,
    /// Number of rows of the matrix.
    n: u64,
}

impl System {
    /// Whether the matrix is read transposed: a system `x·a = b` is solved as that of the transposes.
    fn is_transposed(&self) -> bool {
        (self.transpose_a != Transpose::No) == self.left_side
    }
    /// The row of the unknown that is solved after `step` others.
    fn row_of(&self, step: &Index) -> Index {
        let is_first_row_first = self.lower != self.is_transposed();
        if is_first_row_first { step.clone() } else { step.scale(-1).offset(self.n as i64 - 1) }
    }
    /// Row and column of an unknown of a right-hand side in the result.
    fn row_and_column(&self, unknown: &Index, line: &Index) -> (Index, Index) {
        if self.left_side { (unknown.clone(), line.clone()) } else { (line.clone(), unknown.clone()) }
    }
}

/// Vectors of right-hand sides that are solved at once.
struct RightHandSides {
    /// For each vector, the number of the right-hand side in the current lane.
    lines: Vec<Index>,
    lanes: u64,
}

/// The remainders of right-hand sides after subtracting the products with known unknowns.
struct Remainders<'l> {
    reg: RegId,
    /// The right-hand sides, a vector each.
    lines: &'l [Index],
}

impl Remainders<'_> {
    fn register_index(&self, unknown: usize, line: usize) -> Index {
        Index::constant((unknown * self.lines.len() + line) as i64)
    }
    fn get(&self, k: &mut Kernel, unknown: usize, line: usize) -> ExprId {
        k.add_expr(Expr::Reg(self.reg, self.register_index(unknown, line)))
    }
    fn set(&self, unknown: usize, line: usize, value: ExprId) -> Stmt {
        Stmt::Set { reg: self.reg, at: self.register_index(unknown, line), value }
    }
    /// Subtracts from the remainders of one unknown a factor times the known unknown of row `earlier`.
    fn subtract_known(
        &self,
        k: &mut Kernel,
        s: &System,
        x: &Matrices,
        unknown: usize,
        factor: ExprId,
        earlier: &Index,
    ) -> Vec<Stmt> {
        let one = |(v, line): (usize, &Index)| {
            let (row, column) = s.row_and_column(earlier, line);
            let (so_far, known) = (self.get(k, unknown, v), x.load(k, &row, &column));
            self.set(unknown, v, subtract_product(k, so_far, factor, known, x.wide))
        };
        self.lines.iter().enumerate().map(one).collect()
    }
}

/// The family of triangular solves, a few unknowns at a time.
pub const FAMILY: Family = Family {
    name: "triangular-solve",
    recipe: |planner, request| Ok(SolveBlocking::choose(request, planner.target).map(RecipeSetup::Solve)),
    emit: |s, root, setup| match setup {
        RecipeSetup::Solve(solve) => s.triangular_solve(root, *solve),
        other => other.wrong_family_error(),
    },
};

impl<'a> Emitter<'a> {
    /// Emits the solution x of `op(a)·x = b` or of `x·op(a) = b`.
    fn triangular_solve(
        &mut self,
        KernelRoot { id, out, .. }: KernelRoot<'_>,
        SolveBlocking { vectors, lanes }: SolveBlocking,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } = comp[id].op else {
            return Err(unsupported_error(comp, id, ""));
        };
        let [a, b] = comp[id].operands[..] else { return Err(unsupported_error(comp, id, "")) };
        let dims = comp.array_shape(id).dims.clone();
        let n = comp.array_shape(a).dims.last().copied().unwrap_or(1);
        if dims.contains(&0) {
            return Ok(());
        }
        let system = System { a, b, left_side, lower, unit_diagonal, transpose_a, n };
        let columns = dims[if left_side { dims.len() - 1 } else { dims.len() - 2 }];
        for side in ColumnBlock::cover_columns(columns, vectors, lanes) {
            self.solve_part(id, &system, side, out)?;
        }
        Ok(())
    }

    /// Emits the kernel that solves the system for the right-hand sides of the column block `side`.
    fn solve_part(&mut self, id: InstId, s: &System, side: ColumnBlock, out: &ValueBuffers) -> Result<()> {
        let mut e = self.start_kernel(id);
        let x = Matrices::new(&mut e.k, self.scope.comp.array_shape(id), out)?;
        let (tile, lane) = (e.k.add_var(side.tiles), e.k.add_var(side.lanes));
        let first = Index::var(tile).scale(side.columns() as i64).add(&Index::var(lane)).offset(side.first as i64);
        let lines = (0..side.vectors).map(|v| first.offset((v * side.lanes) as i64)).collect();
        let lines = RightHandSides { lines, lanes: side.lanes };
        let (groups, rest) = (s.n / UNKNOWNS, s.n % UNKNOWNS);
        let group = e.k.add_var(groups.saturating_sub(1));
        let nth = |group: Index| group.scale(UNKNOWNS as i64);
        let mut body = Vec::new();
        if groups > 0 {
            body = self.solve_unknowns(&mut e, s, &x, &lines, Index::constant(0), UNKNOWNS)?;
        }
        if groups > 1 {
            let first = nth(Index::var(group).offset(1));
            let inside = self.solve_unknowns(&mut e, s, &x, &lines, first, UNKNOWNS)?;
            body.push(for_loop(group, LoopKind::Seq, inside));
        }
        if rest > 0 {
            let first = nth(Index::constant(groups as i64));
            body.extend(self.solve_unknowns(&mut e, s, &x, &lines, first, rest)?);
        }
        let vars: Vec<VarId> = x.batch.iter().copied().chain([tile]).collect();
        e.k.flops = x.dims.iter().product::<u64>() * s.n;
        set_nested_body(&mut e.k, &vars, vec![for_loop(lane, LoopKind::Vector, body)]);
        self.launch(e.k);
        Ok(())
    }

    /// Emits the solution of `unknowns` unknowns that follow `first` others, for the right-hand sides `lines`, a vector each.
    fn solve_unknowns(
        &mut self,
        e: &mut KernelBuilder,
        s: &System,
        x: &Matrices,
        RightHandSides { lines, lanes }: &RightHandSides,
        first: Index,
        unknowns: u64,
    ) -> Result<Vec<Stmt>> {
        let rows: Vec<Index> = (0..unknowns).map(|r| s.row_of(&first.offset(r as i64))).collect();
        let sums = Remainders { reg: e.k.add_reg(x.wide, *lanes, unknowns * lines.len() as u64), lines };
        let mut body = Vec::new();
        for (r, row) in rows.iter().enumerate() {
            for (v, line) in lines.iter().enumerate() {
                let (row, column) = s.row_and_column(row, line);
                let right = self.emit_element(e, s.b, &x.element_coordinates(&row, &column))?;
                let value = convert(&mut e.k, right, x.stored, x.wide);
                body.push(sums.set(r, v, value));
            }
        }
        if first.as_constant() != Some(0) {
            let known = LocalVariable::new(&mut e.k, DType::S64);
            let earlier = s.row_of(&known.index().clamp_to(0, s.n as i64 - 1, &e.k.vars));
            let mut inside = Vec::new();
            for (r, row) in rows.iter().enumerate() {
                let factor = self.matrix_element(e, s, x, row, &earlier)?;
                inside.extend(sums.subtract_known(&mut e.k, s, x, r, factor, &earlier));
            }
            let to = index_to_s64(&mut e.k, &first);
            body.extend(emit_counted_loop(&mut e.k, known, &Index::constant(0), to, inside));
        }
        for (r, row) in rows.iter().enumerate() {
            for earlier in &rows[..r] {
                let factor = self.matrix_element(e, s, x, row, earlier)?;
                body.extend(sums.subtract_known(&mut e.k, s, x, r, factor, earlier));
            }
            let pivot = if s.unit_diagonal { None } else { Some(self.matrix_element(e, s, x, row, row)?) };
            for (v, line) in lines.iter().enumerate() {
                let (row, column) = s.row_and_column(row, line);
                let sum = sums.get(&mut e.k, r, v);
                let value = pivot.map_or(sum, |pivot| e.k.add_op(ScalarOp::Divide, &[sum, pivot], x.wide));
                body.push(x.store(&mut e.k, &row, &column, value));
            }
        }
        Ok(body)
    }

    /// Element (i, j) of the matrix as the system reads it.
    fn matrix_element(
        &mut self,
        e: &mut KernelBuilder,
        s: &System,
        x: &Matrices,
        i: &Index,
        j: &Index,
    ) -> Result<ExprId> {
        let at = if s.is_transposed() { x.element_coordinates(j, i) } else { x.element_coordinates(i, j) };
        let value = self.emit_element(e, s.a, &at)?;
        let value = convert(&mut e.k, value, x.stored, x.wide);
        Ok(if s.transpose_a == Transpose::Adjoint { conjugate(&mut e.k, value, x.wide) } else { value })
    }
}
