//! `sort` and `topk`: runs of few elements by insertion, then merges of neighbouring runs from one buffer into another.
//!
//! A pass over all runs is one kernel, whose chunks are lines and pairs of runs. Both steps are stable: of two elements of
//! which neither goes first the one that stood in front stays in front. A comparison that is no order gives some permutation.
use super::element::Elements;
use super::label;
use super::sequential::{Local, both, count, less, nested, number};
use crate::diag::Result;
use crate::hlo::{CompId, InstId, Op};
use crate::kernel::index::linear;
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::schedule::{Scheduler, Scope, Value, refuse};
use crate::tensor::DType;

/// Elements of a run that is sorted by insertion.
const RUN: u64 = 16;
/// Up to this many of the largest elements are kept by insertion; for more, everything is sorted.
const FEW: u64 = 64;

/// What says that an element goes first.
#[derive(Clone, Copy)]
enum Order {
    /// A computation on (a0, b0, a1, b1, …).
    By(CompId),
    /// The total order of operand 0: the larger (or smaller) first.
    Total(Direction),
}

/// What is sorted.
enum Keys {
    /// These operands together.
    Operands(Vec<InstId>),
    /// An operand, and the `s32` position of each element along the axis.
    WithPosition(InstId),
}

/// The lines of arrays of `dims` along `axis`.
struct Lines {
    dims: Vec<u64>,
    axis: usize,
}

impl Lines {
    /// Elements of a line.
    fn length(&self) -> u64 {
        self.dims[self.axis]
    }
    /// A loop variable for each of the other dimensions.
    fn vars(&self, k: &mut Kernel) -> Vec<VarId> {
        let axes = (0..self.dims.len()).filter(|&a| a != self.axis);
        axes.map(|a| k.var(self.dims[a])).collect()
    }
    /// The coordinates of element `i` of the line at `vars`.
    fn at(&self, vars: &[VarId], i: &Index) -> Vec<Index> {
        let mut at: Vec<Index> = vars.iter().map(|&v| Index::var(v)).collect();
        at.insert(self.axis, i.clone());
        at
    }
    /// Its place in memory; beyond the line that of the line's end, for loads whose value is not used there.
    fn place(&self, k: &Kernel, vars: &[VarId], i: &Index) -> Index {
        linear(&self.at(vars, &self.held(k, i)), &self.dims)
    }
    /// `i` limited to the line.
    fn held(&self, k: &Kernel, i: &Index) -> Index {
        i.limit(0, self.length() as i64 - 1, &k.vars)
    }
    /// Elements `i` of `buffers`.
    fn load(&self, k: &mut Kernel, buffers: &[BufId], vars: &[VarId], i: &Index) -> Vec<ExprId> {
        let index = self.place(k, vars, i);
        buffers.iter().map(|&b| k.expr(Expr::Load(b, index.clone()))).collect()
    }
    /// Elements `i` of `buffers` become `values`.
    fn store(&self, k: &Kernel, buffers: &[BufId], vars: &[VarId], i: &Index, values: &[ExprId]) -> Vec<Stmt> {
        let index = self.place(k, vars, i);
        buffers.iter().zip(values).map(|(&buf, &value)| Stmt::Store { buf, index: index.clone(), value }).collect()
    }
}

impl<'a> Scheduler<'a> {
    /// Operands sorted together along one dimension.
    pub(super) fn sort(&mut self, scope: &mut Scope<'a>, id: InstId, out: &Value, steps: &mut Vec<Step>) -> Result<()> {
        let Op::Sort { dim, comp, .. } = scope.comp[id].op else { return Err(refuse(scope.comp, id, "")) };
        let operands = scope.comp[id].operands.clone();
        let lines = Lines { dims: scope.comp.array(operands[0]).dims.clone(), axis: dim };
        self.sorted(scope, id, &Keys::Operands(operands), Order::By(comp), &lines, &out.leaves, steps)
    }

    /// The first `k` in total order and their positions.
    pub(super) fn top_k(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Op::TopK { k, largest } = scope.comp[id].op else { return Err(refuse(scope.comp, id, "")) };
        let operand = scope.comp[id].operands[0];
        let dims = scope.comp.array(operand).dims.clone();
        let order = Order::Total(if largest { Direction::Gt } else { Direction::Lt });
        let axis = dims.len() - 1;
        let lines = Lines { dims, axis };
        if k <= FEW {
            return self.insert_best(scope, id, (operand, order), k, &lines, out, steps);
        }
        let whole: Vec<BufId> = self.buffers_like(&out.leaves, &lines);
        self.sorted(scope, id, &Keys::WithPosition(operand), order, &lines, &whole, steps)?;
        let mut kernel = Kernel { label: label(scope.comp, id), ..Kernel::default() };
        let first = Lines { dims: [&lines.dims[..axis], &[k]].concat(), axis };
        if first.dims.contains(&0) {
            return Ok(());
        }
        let (mut vars, place) = (first.vars(&mut kernel), kernel.var(k));
        let values = lines.load(&mut kernel, &whole, &vars, &Index::var(place));
        let body = first.store(&kernel, &out.leaves, &vars, &Index::var(place), &values);
        vars.push(place);
        nested(&mut kernel, &vars, body);
        self.launch(kernel, steps);
        Ok(())
    }

    /// Buffers of the types of `like` that hold all lines.
    fn buffers_like(&mut self, like: &[BufId], lines: &Lines) -> Vec<BufId> {
        let elements = lines.dims.iter().product();
        like.iter().map(|&b| self.buffer(self.program.buffers[b].dtype, elements)).collect()
    }

    /// Runs, then merges until one run is a line; the last pass writes `out`.
    fn sorted(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        keys: &Keys,
        order: Order,
        lines: &Lines,
        out: &[BufId],
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        if lines.dims.contains(&0) {
            return Ok(());
        }
        let mut widths = Vec::new();
        let mut width = RUN;
        while width < lines.length() {
            widths.push(width);
            width *= 2;
        }
        let other = if widths.is_empty() { Vec::new() } else { self.buffers_like(out, lines) };
        let (mut to, mut spare) = (out, &other[..]);
        if widths.len() % 2 == 1 {
            std::mem::swap(&mut to, &mut spare);
        }
        self.runs(scope, id, keys, order, lines, to, steps)?;
        for width in widths {
            self.merge(scope, id, order, lines, width, [to, spare], steps)?;
            std::mem::swap(&mut to, &mut spare);
        }
        Ok(())
    }

    /// Whether the elements `a` go before the elements `b`.
    fn goes_first(&mut self, e: &mut Elements, order: Order, a: &[ExprId], b: &[ExprId]) -> Result<ExprId> {
        match order {
            Order::By(comp) => {
                let args: Vec<ExprId> = a.iter().zip(b).flat_map(|(&a, &b)| [a, b]).collect();
                Ok(self.apply(e, comp, &args)?[0])
            }
            Order::Total(direction) => {
                Ok(e.k.op(ScalarOp::Compare(direction, CompareKind::Total), &[a[0], b[0]], DType::Pred))
            }
        }
    }

    /// Element `i` of what is sorted.
    fn keys(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        keys: &Keys,
        at: &[Index],
        i: &Index,
    ) -> Result<Vec<ExprId>> {
        match keys {
            Keys::Operands(operands) => operands.iter().map(|&o| self.element(scope, e, o, at)).collect(),
            Keys::WithPosition(operand) => {
                let x = self.element(scope, e, *operand, at)?;
                Ok(vec![x, e.k.expr(Expr::Number(i.clone(), DType::S32))])
            }
        }
    }

    /// Every run of [`RUN`] elements sorted by insertion into `to`.
    fn runs(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        keys: &Keys,
        order: Order,
        lines: &Lines,
        to: &[BufId],
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let mut e = Elements::new(id, label(scope.comp, id));
        let mut vars = lines.vars(&mut e.k);
        let block = e.k.var(lines.length().div_ceil(RUN));
        let start = Index::var(block).scale(RUN as i64);
        let end = lines.held(&e.k, &start.offset(RUN as i64 - 1)).offset(1);
        let (next, last) = (Local::new(&mut e.k, DType::S64), number(&mut e.k, &end));
        // The first element stands; each further one is inserted.
        let first = self.keys(scope, &mut e, keys, &lines.at(&vars, &start), &start)?;
        let mut all = lines.store(&e.k, to, &vars, &start, &first);
        let i = lines.held(&e.k, &next.index());
        let new = self.keys(scope, &mut e, keys, &lines.at(&vars, &i), &i)?;
        let held: Vec<Local> = to.iter().map(|&b| Local::new(&mut e.k, self.program.buffers[b].dtype)).collect();
        let mut body: Vec<Stmt> = held.iter().zip(&new).map(|(x, &value)| x.set(value)).collect();
        body.extend(self.insert(&mut e, order, lines, (&vars, to), &held, (&next.index(), &start))?);
        all.extend(count(&mut e.k, next, &start.offset(1), last, body));
        vars.push(block);
        e.k.flops = lines.dims.iter().product::<u64>() * 4;
        nested(&mut e.k, &vars, all);
        self.launch(e.k, steps);
        Ok(())
    }

    /// Elements from `start` on move up by one until `held` finds its place at or before `slot`.
    fn insert(
        &mut self,
        e: &mut Elements,
        order: Order,
        lines: &Lines,
        (vars, to): (&[VarId], &[BufId]),
        held: &[Local],
        (slot, start): (&Index, &Index),
    ) -> Result<Vec<Stmt>> {
        let place = Local::new(&mut e.k, DType::S64);
        let before = lines.load(&mut e.k, to, vars, &place.index().offset(-1));
        let values: Vec<ExprId> = held.iter().map(|x| x.value).collect();
        let first = self.goes_first(e, order, &values, &before)?;
        let behind = e.k.expr(Expr::Within(place.index().add(&start.scale(-1)), 1, i64::MAX));
        let cond = both(&mut e.k, behind, first);
        let mut body = lines.store(&e.k, to, vars, &place.index(), &before);
        body.push(place.step(&mut e.k, -1));
        let mut all = vec![place.assign(&mut e.k, slot), Stmt::While { cond, body }];
        all.extend(lines.store(&e.k, to, vars, &place.index(), &values));
        Ok(all)
    }

    /// Every two neighbouring runs of `width` elements merged.
    fn merge(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        order: Order,
        lines: &Lines,
        width: u64,
        [from, to]: [&[BufId]; 2],
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let mut e = Elements::new(id, label(scope.comp, id));
        let mut vars = lines.vars(&mut e.k);
        let n = lines.length() as i64;
        let pair = e.k.var(lines.length().div_ceil(2 * width));
        let start = Index::var(pair).scale(2 * width as i64);
        let [left, right, out] = [(); 3].map(|()| Local::new(&mut e.k, DType::S64));
        let middle = start.offset(width as i64).limit(0, n, &e.k.vars);
        let end = start.offset(2 * width as i64).limit(0, n, &e.k.vars);
        let mut body =
            vec![left.assign(&mut e.k, &start), right.assign(&mut e.k, &middle), out.assign(&mut e.k, &start)];
        let (middle, end) = (number(&mut e.k, &middle), number(&mut e.k, &end));
        let (more_left, more_right) = (less(&mut e.k, left.value, middle), less(&mut e.k, right.value, end));
        let (a, b) =
            (lines.load(&mut e.k, from, &vars, &right.index()), lines.load(&mut e.k, from, &vars, &left.index()));
        let first = self.goes_first(&mut e, order, &a, &b)?;
        let (take_right, source) = (Local::new(&mut e.k, DType::S64), Local::new(&mut e.k, DType::S64));
        let flag = e.k.op(ScalarOp::Convert(DType::S64), &[first], DType::S64);
        let is_right = e.k.expr(Expr::Within(take_right.index(), 1, 2));
        let chosen = e.k.op(ScalarOp::Select, &[is_right, right.value, left.value], DType::S64);
        let values = lines.load(&mut e.k, from, &vars, &source.index());
        let mut round = vec![take_right.set(flag), source.set(chosen)];
        round.extend(lines.store(&e.k, to, &vars, &out.index(), &values));
        round.push(right.assign(&mut e.k, &right.index().add(&take_right.index())));
        round.push(left.assign(&mut e.k, &left.index().add(&take_right.index().scale(-1)).offset(1)));
        round.push(out.step(&mut e.k, 1));
        let cond = both(&mut e.k, more_left, more_right);
        body.push(Stmt::While { cond, body: round });
        // Of one run something is left.
        for (run, values, cond) in [(left, b, more_left), (right, a, more_right)] {
            let mut rest = lines.store(&e.k, to, &vars, &out.index(), &values);
            rest.push(run.step(&mut e.k, 1));
            rest.push(out.step(&mut e.k, 1));
            body.push(Stmt::While { cond, body: rest });
        }
        vars.push(pair);
        e.k.flops = lines.dims.iter().product::<u64>() * 4;
        nested(&mut e.k, &vars, body);
        self.launch(e.k, steps);
        Ok(())
    }

    /// The best `k` seen so far, in order, stand in the result; an element that beats the last of them is inserted.
    fn insert_best(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        (operand, order): (InstId, Order),
        k: u64,
        lines: &Lines,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let best = Lines { dims: [&lines.dims[..lines.axis], &[k]].concat(), axis: lines.axis };
        if best.dims.contains(&0) {
            return Ok(());
        }
        let mut e = Elements::new(id, label(scope.comp, id));
        let vars = lines.vars(&mut e.k);
        let zero = Index::constant(0);
        let first = self.keys(scope, &mut e, &Keys::WithPosition(operand), &lines.at(&vars, &zero), &zero)?;
        let mut all = best.store(&e.k, &out.leaves, &vars, &zero, &first);
        let var = e.k.var(lines.length() - 1);
        let i = Index::var(var).offset(1);
        let new = self.keys(scope, &mut e, &Keys::WithPosition(operand), &lines.at(&vars, &i), &i)?;
        let held: Vec<Local> =
            out.leaves.iter().map(|&b| Local::new(&mut e.k, self.program.buffers[b].dtype)).collect();
        let mut body: Vec<Stmt> = held.iter().zip(&new).map(|(x, &value)| x.set(value)).collect();
        let last = best.load(&mut e.k, &out.leaves, &vars, &Index::constant(k as i64 - 1));
        let beats = self.goes_first(&mut e, order, &[held[0].value], &last)?;
        let room = e.k.expr(Expr::Within(i.clone(), 0, k as i64));
        let cond = e.k.op(ScalarOp::Or, &[room, beats], DType::Pred);
        let slot = best.held(&e.k, &i);
        let insert = self.insert(&mut e, order, &best, (&vars, &out.leaves), &held, (&slot, &zero))?;
        body.push(Stmt::If { cond, body: insert });
        e.k.flops = lines.dims.iter().product::<u64>() * 2;
        if lines.length() > 1 {
            all.push(super::each(var, LoopKind::Seq, body));
        }
        nested(&mut e.k, &vars, all);
        self.launch(e.k, steps);
        Ok(())
    }
}
