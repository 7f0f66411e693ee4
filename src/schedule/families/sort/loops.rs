//! `sort`: runs of few elements by insertion, then merges of neighbouring runs from one buffer into another.
//!
//! A pass over all runs is one kernel, whose chunks are lines and pairs of runs. Both steps are stable: of two elements of
//! which neither goes first the one that stood in front stays in front. A comparison that is no order gives some permutation.
use crate::diag::Error;
use crate::hlo::CompId;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::scalar_loops::{
    LocalVariable, emit_counted_loop, index_to_s64, less_than, set_nested_body,
};

/// Length of a run that is sorted by insertion.
const RUN: u64 = 8;
/// The lines of arrays of `dims` along `axis`.
pub struct SortLines {
    /// Sizes of the arrays.
    pub dims: Vec<u64>,
    /// The axis of the lines.
    pub axis: usize,
}

/// One line of the results of a sort.
#[derive(Clone, Copy)]
struct OutputLine<'l> {
    lines: &'l SortLines,
    /// The loop variables of the line's coordinates.
    vars: &'l [VarId],
    /// The buffers of the results.
    to: &'l [BufId],
}

impl SortLines {
    /// Number of elements of a line.
    pub fn length(&self) -> u64 {
        self.dims[self.axis]
    }
    /// A loop variable for each dimension but that of the lines.
    pub fn outer_variables(&self, k: &mut Kernel) -> Vec<VarId> {
        let axes = (0..self.dims.len()).filter(|&a| a != self.axis);
        axes.map(|a| k.add_var(self.dims[a])).collect()
    }
    /// The coordinates of element `i` of the line at `vars`.
    pub fn element_coordinates(&self, vars: &[VarId], i: &Index) -> Vec<Index> {
        let mut at: Vec<Index> = vars.iter().map(|&v| Index::var(v)).collect();
        at.insert(self.axis, i.clone());
        at
    }
    /// The offset of element `i` of the line at `vars`, clamped to the line, for loads whose value is not used beyond it.
    fn element_offset(&self, k: &Kernel, vars: &[VarId], i: &Index) -> Index {
        linear_index(&self.element_coordinates(vars, &self.clamp_to_line(k, i)), &self.dims)
    }
    /// Clamps `i` to the line.
    fn clamp_to_line(&self, k: &Kernel, i: &Index) -> Index {
        i.clamp_to(0, self.length() as i64 - 1, &k.vars)
    }
    /// Loads elements `i` of `buffers`.
    pub fn load(&self, k: &mut Kernel, buffers: &[BufId], vars: &[VarId], i: &Index) -> Vec<ExprId> {
        let index = self.element_offset(k, vars, i);
        buffers.iter().map(|&b| k.add_load(b, index.clone())).collect()
    }
    /// Stores `values` as elements `i` of `buffers`.
    pub fn store(&self, k: &Kernel, buffers: &[BufId], vars: &[VarId], i: &Index, values: &[ExprId]) -> Vec<Stmt> {
        let index = self.element_offset(k, vars, i);
        buffers.iter().zip(values).map(|(&buf, &value)| Stmt::Store { buf, index: index.clone(), value }).collect()
    }
}

/// The family of stable sorts.
pub const FAMILY: Family = Family {
    name: "sort",
    recipe: |_, request| Ok(matches!(request.op(), Op::Sort { .. }).then_some(RecipeSetup::Plain)),
    emit: |s, root, _| s.emit_sort(root),
};

impl<'a> Emitter<'a> {
    /// Emits a sort of several operands together along one dimension.
    pub(in crate::schedule) fn emit_sort(&mut self, KernelRoot { id, out, .. }: KernelRoot<'_>) -> Result<()> {
        let Op::Sort { dim, comp, .. } = self.scope.comp[id].op else {
            return Err(unsupported_error(self.scope.comp, id, ""));
        };
        let operands = self.scope.comp[id].operands.clone();
        let lines = SortLines { dims: self.scope.comp.array_shape(operands[0]).dims.clone(), axis: dim };
        self.emit_merge_sort(id, &operands, comp, &lines, &out.leaves)
    }

    /// Allocates buffers of the types of `like` that hold all lines.
    fn buffers_like(&mut self, like: &[BufId], lines: &SortLines) -> Vec<BufId> {
        let elements = lines.dims.iter().product();
        like.iter().map(|&b| self.allocate_buffer(self.program.buffers[b].dtype, elements)).collect()
    }

    /// Emits a merge sort: sorted runs, then merges until one run is a line; the last pass writes `out`.
    fn emit_merge_sort(
        &mut self,
        id: InstId,
        operands: &[InstId],
        order: CompId,
        lines: &SortLines,
        out: &[BufId],
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
        self.emit_sorted_runs(id, operands, order, lines, to)?;
        for width in widths {
            self.merge(id, order, lines, width, [to, spare])?;
            std::mem::swap(&mut to, &mut spare);
        }
        Ok(())
    }

    /// The condition that elements `a` go before elements `b`, by a computation on (a0, b0, a1, b1, …).
    fn goes_first(
        &mut self,
        e: &mut KernelBuilder,
        order: CompId,
        sorted: &[BufId],
        a: &[ExprId],
        b: &[ExprId],
    ) -> Result<ExprId> {
        let args: Vec<ExprId> = a.iter().zip(b).flat_map(|(&a, &b)| [a, b]).collect();
        let types: Vec<DType> = sorted.iter().flat_map(|&b| [self.program.buffers[b].dtype; 2]).collect();
        let first = self.inline_widened(e, order, &args, &types)?;
        first.first().copied().ok_or_else(|| Error::internal("schedule", "a comparison has no result"))
    }

    /// Element `at` of each sorted operand.
    fn keys(&mut self, e: &mut KernelBuilder, operands: &[InstId], at: &[Index]) -> Result<Vec<ExprId>> {
        operands.iter().map(|&o| self.emit_element(e, o, at)).collect()
    }

    /// Emits every run of [`RUN`] elements, sorted by insertion, to `to`.
    fn emit_sorted_runs(
        &mut self,
        id: InstId,
        operands: &[InstId],
        order: CompId,
        lines: &SortLines,
        to: &[BufId],
    ) -> Result<()> {
        let mut e = self.start_kernel(id);
        let mut vars = lines.outer_variables(&mut e.k);
        let block = e.k.add_var(lines.length().div_ceil(RUN));
        let start = Index::var(block).scale(RUN as i64);
        let end = lines.clamp_to_line(&e.k, &start.offset(RUN as i64 - 1)).offset(1);
        let (next, last) = (LocalVariable::new(&mut e.k, DType::S64), index_to_s64(&mut e.k, &end));
        // The first element stands; each further one is inserted.
        let first = self.keys(&mut e, operands, &lines.element_coordinates(&vars, &start))?;
        let mut all = lines.store(&e.k, to, &vars, &start, &first);
        let i = lines.clamp_to_line(&e.k, &next.index());
        let new = self.keys(&mut e, operands, &lines.element_coordinates(&vars, &i))?;
        let held: Vec<LocalVariable> =
            to.iter().map(|&b| LocalVariable::new(&mut e.k, self.program.buffers[b].dtype)).collect();
        let mut body: Vec<Stmt> = held.iter().zip(&new).map(|(x, &value)| x.set(value)).collect();
        body.extend(self.insert(&mut e, order, OutputLine { lines, vars: &vars, to }, &held, &next.index(), &start)?);
        all.extend(emit_counted_loop(&mut e.k, next, &start.offset(1), last, body));
        vars.push(block);
        e.k.flops = lines.dims.iter().product::<u64>() * 4;
        set_nested_body(&mut e.k, &vars, all);
        self.launch(e.k);
        Ok(())
    }

    /// Emits an insertion: elements from `start` on move up by one until `held` finds its place at or before `slot`.
    fn insert(
        &mut self,
        e: &mut KernelBuilder,
        order: CompId,
        OutputLine { lines, vars, to }: OutputLine<'_>,
        held: &[LocalVariable],
        slot: &Index,
        start: &Index,
    ) -> Result<Vec<Stmt>> {
        let place = LocalVariable::new(&mut e.k, DType::S64);
        let before = lines.load(&mut e.k, to, vars, &place.index().offset(-1));
        let values: Vec<ExprId> = held.iter().map(|x| x.value).collect();
        let first = self.goes_first(e, order, to, &values, &before)?;
        let behind = e.k.add_expr(Expr::Within(place.index().add(&start.scale(-1)), 1, i64::MAX));
        let cond = logical_and(&mut e.k, behind, first);
        let mut body = lines.store(&e.k, to, vars, &place.index(), &before);
        body.push(place.add_constant(&mut e.k, -1));
        let mut all = vec![place.set_to_index(&mut e.k, slot), Stmt::While { cond, body }];
        all.extend(lines.store(&e.k, to, vars, &place.index(), &values));
        Ok(all)
    }

    /// Emits the merge of every two neighboring runs of `width` elements.
    fn merge(
        &mut self,
        id: InstId,
        order: CompId,
        lines: &SortLines,
        width: u64,
        [from, to]: [&[BufId]; 2],
    ) -> Result<()> {
        let mut e = self.start_kernel(id);
        let mut vars = lines.outer_variables(&mut e.k);
        let n = lines.length() as i64;
        let pair = e.k.add_var(lines.length().div_ceil(2 * width));
        let start = Index::var(pair).scale(2 * width as i64);
        let [left, right, out] = [(); 3].map(|()| LocalVariable::new(&mut e.k, DType::S64));
        let middle = start.offset(width as i64).clamp_to(0, n, &e.k.vars);
        let end = start.offset(2 * width as i64).clamp_to(0, n, &e.k.vars);
        let mut body = vec![
            left.set_to_index(&mut e.k, &start),
            right.set_to_index(&mut e.k, &middle),
            out.set_to_index(&mut e.k, &start),
        ];
        let (middle, end) = (index_to_s64(&mut e.k, &middle), index_to_s64(&mut e.k, &end));
        let (more_left, more_right) = (less_than(&mut e.k, left.value, middle), less_than(&mut e.k, right.value, end));
        let (a, b) =
            (lines.load(&mut e.k, from, &vars, &right.index()), lines.load(&mut e.k, from, &vars, &left.index()));
        let first = self.goes_first(&mut e, order, from, &a, &b)?;
        let take_right = LocalVariable::new(&mut e.k, DType::S64);
        let flag = e.k.add_op(ScalarOp::Convert(DType::S64), &[first], DType::S64);
        let is_right = e.k.add_expr(Expr::Within(take_right.index(), 1, 2));
        let chosen: Vec<ExprId> = (0..to.len())
            .map(|i| {
                let dtype = self.program.buffers[to[i]].dtype;
                e.k.add_op(ScalarOp::Select, &[is_right, a[i], b[i]], dtype)
            })
            .collect();
        let mut round = vec![take_right.set(flag)];
        round.extend(lines.store(&e.k, to, &vars, &out.index(), &chosen));
        round.push(right.set_to_index(&mut e.k, &right.index().add(&take_right.index())));
        round.push(left.set_to_index(&mut e.k, &left.index().add(&take_right.index().scale(-1)).offset(1)));
        round.push(out.add_constant(&mut e.k, 1));
        let cond = logical_and(&mut e.k, more_left, more_right);
        body.push(Stmt::While { cond, body: round });
        // Of one run something is left.
        for (run, values, cond) in [(left, b, more_left), (right, a, more_right)] {
            let mut rest = lines.store(&e.k, to, &vars, &out.index(), &values);
            rest.push(run.add_constant(&mut e.k, 1));
            rest.push(out.add_constant(&mut e.k, 1));
            body.push(Stmt::While { cond, body: rest });
        }
        vars.push(pair);
        e.k.flops = lines.dims.iter().product::<u64>() * 4;
        set_nested_body(&mut e.k, &vars, body);
        self.launch(e.k);
        Ok(())
    }
}
