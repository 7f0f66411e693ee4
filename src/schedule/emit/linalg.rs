//! `cholesky` and `triangular-solve` of the last two dimensions, by substitution; the others are a batch.
//!
//! Numbers narrower than 32 bits are computed in `f32` and rounded once.
use super::element::Elements;
use super::sequential::{Local, count, nested, number};
use super::{each, label};
use crate::diag::Result;
use crate::hlo::attrs::Transpose;
use crate::hlo::{InstId, Op};
use crate::kernel::index::linear;
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::schedule::emit::{Emitter, Scope, Value, refuse};
use crate::tensor::{DType, DTypeClass};

/// The type in which numbers of `dtype` are computed.
fn wide(dtype: DType) -> DType {
    if dtype.class() == DTypeClass::Float && dtype.bits() < 32 { DType::F32 } else { dtype }
}

fn converted(k: &mut Kernel, x: ExprId, from: DType, to: DType) -> ExprId {
    if from == to { x } else { k.op(ScalarOp::Convert(to), &[x], to) }
}

/// `sum - a·b`.
fn less_product(k: &mut Kernel, sum: ExprId, a: ExprId, b: ExprId, dtype: DType) -> ExprId {
    if dtype.class() == DTypeClass::Complex {
        let product = k.op(ScalarOp::Multiply, &[a, b], dtype);
        return k.op(ScalarOp::Subtract, &[sum, product], dtype);
    }
    let a = k.op(ScalarOp::Negate, &[a], dtype);
    k.op(ScalarOp::Fma, &[a, b, sum], dtype)
}

/// The complex conjugate; a real number is its own.
fn conjugate(k: &mut Kernel, x: ExprId, dtype: DType) -> ExprId {
    if dtype.class() != DTypeClass::Complex {
        return x;
    }
    let part = dtype.real_part();
    let (re, im) = (k.op(ScalarOp::Real, &[x], part), k.op(ScalarOp::Imag, &[x], part));
    let im = k.op(ScalarOp::Negate, &[im], part);
    k.op(ScalarOp::Complex, &[re, im], dtype)
}

/// The square root of the real part.
fn root_of_real(k: &mut Kernel, x: ExprId, dtype: DType) -> ExprId {
    if dtype.class() != DTypeClass::Complex {
        return k.op(ScalarOp::Sqrt, &[x], dtype);
    }
    let part = dtype.real_part();
    let (re, zero) = (k.op(ScalarOp::Real, &[x], part), super::number(k, part, 0.0));
    let root = k.op(ScalarOp::Sqrt, &[re], part);
    k.op(ScalarOp::Complex, &[root, zero], dtype)
}

/// Matrices of a result: where their elements are, and the type in which they are computed.
struct Matrices {
    buf: BufId,
    dims: Vec<u64>,
    batch: Vec<Index>,
    stored: DType,
    wide: DType,
}

impl Matrices {
    fn at(&self, row: &Index, column: &Index) -> Vec<Index> {
        [&self.batch[..], &[row.clone(), column.clone()]].concat()
    }
    fn load(&self, k: &mut Kernel, row: &Index, column: &Index) -> ExprId {
        let x = k.expr(Expr::Load(self.buf, linear(&self.at(row, column), &self.dims)));
        converted(k, x, self.stored, self.wide)
    }
    fn store(&self, k: &mut Kernel, row: &Index, column: &Index, value: ExprId) -> Stmt {
        let value = converted(k, value, self.wide, self.stored);
        Stmt::Store { buf: self.buf, index: linear(&self.at(row, column), &self.dims), value }
    }
}

/// A triangular system while its kernel is made.
struct System {
    a: InstId,
    b: InstId,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: Transpose,
    /// Rows of the matrix.
    n: u64,
}

impl System {
    /// Whether row and column of the matrix are exchanged: from the right the system is that of the transposes.
    fn flip(&self) -> bool {
        (self.transpose_a != Transpose::No) == self.left_side
    }
    /// Whether the first unknown is the one of the first row.
    fn forward(&self) -> bool {
        self.lower != self.flip()
    }
}

impl<'a> Emitter<'a> {
    /// x of op(a) x = b, or of x op(a) = b.
    pub(super) fn triangular_solve(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let comp = scope.comp;
        let Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } = comp[id].op else {
            return Err(refuse(comp, id, ""));
        };
        let [a, b] = comp[id].operands[..] else { return Err(refuse(comp, id, "")) };
        let dims = comp.array(id).dims.clone();
        let n = comp.array(a).dims.last().copied().unwrap_or(1);
        if dims.contains(&0) {
            return Ok(());
        }
        let system = System { a, b, left_side, lower, unit_diagonal, transpose_a, n };
        // Right-hand sides that lie side by side are solved together.
        let lines = dims[if left_side { dims.len() - 1 } else { dims.len() - 2 }];
        let (mut done, mut width) = (0, if left_side { self.lanes(wide(comp.array(id).dtype)) } else { 1 });
        while done < lines {
            let tiles = (lines - done) / width;
            if tiles > 0 {
                self.solve_part(scope, id, &system, (done, tiles, width), out, steps)?;
                done += tiles * width;
            }
            width = (width / 2).max(1);
        }
        Ok(())
    }

    /// Right-hand sides `first..first + tiles·width`.
    fn solve_part(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        s: &System,
        (first, tiles, width): (u64, u64, u64),
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let mut e = Elements::new(id, label(scope.comp, id));
        let shape = scope.comp.array(id).clone();
        let batch: Vec<VarId> = shape.dims[..shape.rank() - 2].iter().map(|&n| e.k.var(n)).collect();
        let (tile, lane, step) = (e.k.var(tiles), e.k.var(width), e.k.var(s.n - 1));
        let line = Index::var(tile).scale(width as i64).add(&Index::var(lane)).offset(first as i64);
        let x = Matrices {
            buf: out.only()?,
            batch: batch.iter().map(|&v| Index::var(v)).collect(),
            stored: shape.dtype,
            wide: wide(shape.dtype),
            dims: shape.dims,
        };
        let mut body = self.unknown(scope, &mut e, s, &x, (&line, width), &Index::constant(0))?;
        if s.n > 1 {
            let rest = self.unknown(scope, &mut e, s, &x, (&line, width), &Index::var(step).offset(1))?;
            body.push(each(step, LoopKind::Seq, rest));
        }
        let vars: Vec<VarId> = batch.into_iter().chain([tile]).collect();
        e.k.flops = x.dims.iter().product::<u64>() * s.n;
        nested(&mut e.k, &vars, vec![each(lane, LoopKind::Vector, body)]);
        self.launch(e.k, steps);
        Ok(())
    }

    /// The unknown that follows `step` others, on the right-hand side `line`.
    fn unknown(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        s: &System,
        x: &Matrices,
        (line, width): (&Index, u64),
        step: &Index,
    ) -> Result<Vec<Stmt>> {
        let last = s.n as i64 - 1;
        let row_of = |step: &Index| if s.forward() { step.clone() } else { step.scale(-1).offset(last) };
        let place = |i: &Index| if s.left_side { (i.clone(), line.clone()) } else { (line.clone(), i.clone()) };
        let i = row_of(step);
        let (row, column) = place(&i);
        let right = self.element(scope, e, s.b, &x.at(&row, &column))?;
        let (sum, zero) = (e.k.reg(x.wide, width, 1), Index::constant(0));
        let value = converted(&mut e.k, right, x.stored, x.wide);
        let mut body = vec![Stmt::Set { reg: sum, at: zero.clone(), value }];
        let so_far = e.k.expr(Expr::Reg(sum, zero.clone()));
        if step.as_constant() != Some(0) {
            let known = Local::new(&mut e.k, DType::S64);
            let j = row_of(&known.index().limit(0, last, &e.k.vars));
            let (row, column) = place(&j);
            let factor = self.entry(scope, e, s, x, &i, &j)?;
            let earlier = x.load(&mut e.k, &row, &column);
            let value = less_product(&mut e.k, so_far, factor, earlier, x.wide);
            let to = number(&mut e.k, step);
            body.extend(count(&mut e.k, known, &zero, to, vec![Stmt::Set { reg: sum, at: zero.clone(), value }]));
        }
        let mut value = so_far;
        if !s.unit_diagonal {
            let pivot = self.entry(scope, e, s, x, &i, &i)?;
            value = e.k.op(ScalarOp::Divide, &[so_far, pivot], x.wide);
        }
        body.push(x.store(&mut e.k, &row, &column, value));
        Ok(body)
    }

    /// Element (i, j) of the matrix as the system reads it.
    fn entry(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        s: &System,
        x: &Matrices,
        i: &Index,
        j: &Index,
    ) -> Result<ExprId> {
        let at = if s.flip() { x.at(j, i) } else { x.at(i, j) };
        let value = self.element(scope, e, s.a, &at)?;
        let value = converted(&mut e.k, value, x.stored, x.wide);
        Ok(if s.transpose_a == Transpose::Adjoint { conjugate(&mut e.k, value, x.wide) } else { value })
    }

    /// The factor l of l l* = a (or u of u* u = a), zeros in the other triangle; NaN where a matrix is not positive.
    pub(super) fn cholesky(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Op::Cholesky { lower } = scope.comp[id].op else { return Err(refuse(scope.comp, id, "")) };
        let (a, shape) = (scope.comp[id].operands[0], scope.comp.array(id).clone());
        if shape.dims.contains(&0) {
            return Ok(());
        }
        let mut e = Elements::new(id, label(scope.comp, id));
        let n = shape.dims.last().copied().unwrap_or(1);
        let batch: Vec<VarId> = shape.dims[..shape.rank() - 2].iter().map(|&n| e.k.var(n)).collect();
        let l = Matrices {
            buf: out.only()?,
            batch: batch.iter().map(|&v| Index::var(v)).collect(),
            stored: shape.dtype,
            wide: wide(shape.dtype),
            dims: shape.dims,
        };
        let (row, column, j) = (e.k.var(n), e.k.var(n), e.k.var(n));
        let zero = super::number(&mut e.k, l.wide, 0.0);
        let clear = l.store(&mut e.k, &Index::var(row), &Index::var(column), zero);
        let clear = each(row, LoopKind::Seq, vec![each(column, LoopKind::Seq, vec![clear])]);
        let j = (j, Index::var(j));
        let (mut body, pivot) = self.factor_entry(scope, &mut e, a, &l, lower, (&j.1, &j.1))?;
        let root = root_of_real(&mut e.k, pivot.value, l.wide);
        body.push(pivot.set(root));
        let transposed = |i: &Index, j: &Index| if lower { (i.clone(), j.clone()) } else { (j.clone(), i.clone()) };
        body.push(l.store(&mut e.k, &j.1, &j.1, pivot.value));
        let i = Local::new(&mut e.k, DType::S64);
        let at = i.index().limit(0, n as i64 - 1, &e.k.vars);
        let (mut below, sum) = self.factor_entry(scope, &mut e, a, &l, lower, (&at, &j.1))?;
        let mut value = e.k.op(ScalarOp::Divide, &[sum.value, pivot.value], l.wide);
        if !lower {
            value = conjugate(&mut e.k, value, l.wide);
        }
        let (r, c) = transposed(&at, &j.1);
        below.push(l.store(&mut e.k, &r, &c, value));
        let end = number(&mut e.k, &Index::constant(n as i64));
        body.extend(count(&mut e.k, i, &j.1.offset(1), end, below));
        e.k.flops = l.dims.iter().product::<u64>() * n / 3;
        nested(&mut e.k, &batch, vec![clear, each(j.0, LoopKind::Seq, body)]);
        self.launch(e.k, steps);
        Ok(())
    }

    /// a(i, j) less the products of what is known of rows i and j.
    fn factor_entry(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        a: InstId,
        l: &Matrices,
        lower: bool,
        (i, j): (&Index, &Index),
    ) -> Result<(Vec<Stmt>, Local)> {
        let sum = Local::new(&mut e.k, l.wide);
        let start = self.element(scope, e, a, &if lower { l.at(i, j) } else { l.at(j, i) })?;
        let start = converted(&mut e.k, start, l.stored, l.wide);
        let start = if lower { start } else { conjugate(&mut e.k, start, l.wide) };
        let known = Local::new(&mut e.k, DType::S64);
        let k = known.index().limit(0, l.dims[l.dims.len() - 1] as i64 - 1, &e.k.vars);
        let mut read = |row: &Index, conjugated: bool| {
            let x = if lower { l.load(&mut e.k, row, &k) } else { l.load(&mut e.k, &k, row) };
            if conjugated == lower { conjugate(&mut e.k, x, l.wide) } else { x }
        };
        let (x, y) = (read(i, false), read(j, true));
        let value = less_product(&mut e.k, sum.value, x, y, l.wide);
        let to = number(&mut e.k, j);
        let mut body = vec![sum.set(start)];
        body.extend(count(&mut e.k, known, &Index::constant(0), to, vec![sum.set(value)]));
        Ok((body, sum))
    }
}
