//! `topk` by comparison: the steps of TensorFlow's kernel, so that a NaN, which is neither smaller nor larger than anything, ends where
//! it does there. `interp/top_k.rs` says what the steps are.
//!
//! The largest alone is a fold, up to 16 elements that are all wanted are inserted one after another, and fewer than all are a heap of
//! libstdc++ with the worst on top. Cost without a NaN: n comparisons, and log k for each element that enters the heap.
use crate::scalar::{CompareKind, Direction};
use crate::schedule::families::sort::loops::SortLines;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::scalar_loops::{LocalVariable, index_to_s64, less_than, set_nested_body};

/// Longest line that is sorted by insertion.
pub const INSERTED: u64 = 16;

/// The buffers of one `topk` whose kernel is being emitted: keys and positions.
struct TopKLines {
    lines: SortLines,
    vars: Vec<VarId>,
    /// Keys and their positions.
    buffers: Vec<BufId>,
    dtype: DType,
}

impl TopKLines {
    fn declare_locals(&self, k: &mut Kernel) -> [LocalVariable; 2] {
        [LocalVariable::new(k, self.dtype), LocalVariable::new(k, DType::S32)]
    }
    fn load(&self, k: &mut Kernel, i: &Index) -> [ExprId; 2] {
        let both = self.lines.load(k, &self.buffers, &self.vars, i);
        [both[0], both[1]]
    }
    fn store(&self, k: &Kernel, i: &Index, values: [ExprId; 2]) -> Vec<Stmt> {
        self.lines.store(k, &self.buffers, &self.vars, i, &values)
    }
    /// The condition that element `a` goes before `b`: it is larger, or not smaller and earlier.
    fn goes_before(&self, k: &mut Kernel, a: [ExprId; 2], b: [ExprId; 2]) -> ExprId {
        let (larger, smaller) = (compare(k, Direction::Gt, a[0], b[0]), compare(k, Direction::Lt, a[0], b[0]));
        let (not_smaller, in_front) = (logical_not(k, smaller), less_than(k, a[1], b[1]));
        let tie = logical_and(k, not_smaller, in_front);
        k.add_op(ScalarOp::Or, &[larger, tie], DType::Pred)
    }

    /// Moves the top of a heap of `size` elements to its end.
    fn pop(&self, k: &mut Kernel, size: &Index) -> Vec<Stmt> {
        let held = self.declare_locals(k);
        let last = size.offset(-1);
        let values = self.load(k, &last);
        let mut body = set(held, values);
        let top = self.load(k, &Index::constant(0));
        body.extend(self.store(k, &last, top));
        body.extend(self.sift_down(k, held, &Index::constant(0), &last));
        body
    }

    /// Inserts the held element into the heap of the first `size`, whose place `top` is free: the hole sinks to the bottom, and the
    /// element rises from there.
    fn sift_down(&self, k: &mut Kernel, held: [LocalVariable; 2], top: &Index, size: &Index) -> Vec<Stmt> {
        let [hole, child] = [(); 2].map(|()| LocalVariable::new(k, DType::S64));
        let right = hole.index().scale(2).offset(2);
        let (left, end) = (right.offset(-1), index_to_s64(k, size));
        let at_right = index_to_s64(k, &right);
        let has_right = less_than(k, at_right, end);
        let [a, b] = [&right, &left].map(|at| self.load(k, at));
        let take_left = self.goes_before(k, a, b);
        let step = k.add_op(ScalarOp::Convert(DType::S64), &[take_left], DType::S64);
        let chosen = k.add_op(ScalarOp::Subtract, &[at_right, step], DType::S64);
        let below = self.load(k, &child.index());
        let mut round = vec![child.set(chosen)];
        round.extend(self.store(k, &hole.index(), below));
        round.push(hole.set(child.value));
        let mut body = vec![hole.set_to_index(k, top), Stmt::While { cond: has_right, body: round }];
        let only_left = k.add_op(ScalarOp::Compare(Direction::Eq, CompareKind::Partial), &[at_right, end], DType::Pred);
        let last = size.offset(-1);
        let value = self.load(k, &last);
        let mut up = self.store(k, &hole.index(), value);
        up.push(hole.set_to_index(k, &last));
        body.push(Stmt::If { cond: only_left, body: up });
        body.extend(self.sift_up(k, held, hole, top));
        body
    }

    /// Inserts the held element at the free place `hole` or above, up to `top`.
    fn sift_up(&self, k: &mut Kernel, held: [LocalVariable; 2], hole: LocalVariable, top: &Index) -> Vec<Stmt> {
        let parent = LocalVariable::new(k, DType::S64);
        let (before, one) = (index_to_s64(k, &hole.index().offset(-1)), constant_of_number(k, DType::S64, 1.0));
        let half = k.add_op(ScalarOp::ShiftRightArithmetic, &[before, one], DType::S64);
        let top = index_to_s64(k, top);
        let is_below = less_than(k, top, hole.value);
        let above = self.load(k, &parent.index());
        let goes_up = self.goes_before(k, above, values(held));
        let cond = logical_and(k, is_below, goes_up);
        let mut round = self.store(k, &hole.index(), above);
        round.push(hole.set(parent.value));
        round.push(parent.set(half));
        let mut body = vec![parent.set(half), Stmt::While { cond, body: round }];
        body.extend(self.store(k, &hole.index(), values(held)));
        body
    }
}

fn compare(k: &mut Kernel, direction: Direction, a: ExprId, b: ExprId) -> ExprId {
    k.add_op(ScalarOp::Compare(direction, CompareKind::Partial), &[a, b], DType::Pred)
}

fn set(locals: [LocalVariable; 2], values: [ExprId; 2]) -> Vec<Stmt> {
    locals.iter().zip(values).map(|(x, value)| x.set(value)).collect()
}

fn values(locals: [LocalVariable; 2]) -> [ExprId; 2] {
    locals.map(|x| x.value)
}

impl<'a> Emitter<'a> {
    /// Emits the `k` largest elements of the last dimension of floats, and their positions.
    pub(in crate::schedule) fn emit_top_k_by_comparison(
        &mut self,
        KernelRoot { id, out, .. }: KernelRoot<'_>,
        k: u64,
    ) -> Result<()> {
        let operand = self.scope.comp[id].operands[0];
        let shape = self.scope.comp.array_shape(operand).clone();
        let (axis, n) = (shape.rank() - 1, shape.dims[shape.rank() - 1]);
        let is_heap = k > 1 && k < n;
        let lines = |length: u64| SortLines { dims: [&shape.dims[..axis], &[length]].concat(), axis };
        // the heap has place for the element that leaves it
        let own = lines(if is_heap { k + 1 } else { k });
        let elements = own.dims.iter().product();
        let buffers = match is_heap {
            true => vec![self.allocate_buffer(shape.dtype, elements), self.allocate_buffer(DType::S32, elements)],
            false => out.leaves.clone(),
        };
        let mut e = self.start_kernel(id);
        let work = TopKLines { vars: own.outer_variables(&mut e.k), lines: own, buffers, dtype: shape.dtype };
        let body = if is_heap {
            let mut body = self.select_by_heap(&mut e, operand, &work, n)?;
            let i = e.k.add_var(k);
            let best = work.load(&mut e.k, &Index::var(i));
            let copy = lines(k).store(&e.k, &out.leaves, &work.vars, &Index::var(i), &best);
            body.push(for_loop(i, LoopKind::Seq, copy));
            body
        } else if k == 1 {
            self.largest_alone(&mut e, operand, &work, n)?
        } else {
            self.select_by_insertion(&mut e, operand, &work)?
        };
        e.k.flops = shape.elements();
        set_nested_body(&mut e.k, &work.vars, body);
        self.launch(e.k);
        Ok(())
    }

    /// Element `i` of a line and its position.
    fn positioned_key(
        &mut self,
        e: &mut KernelBuilder,
        operand: InstId,
        work: &TopKLines,
        i: &Index,
    ) -> Result<[ExprId; 2]> {
        let key = self.emit_element(e, operand, &work.lines.element_coordinates(&work.vars, i))?;
        Ok([key, e.k.add_expr(Expr::Number(i.clone(), DType::S32))])
    }

    /// Emits selection by a heap of the first elements: every further element is compared with its top, and the heap is emptied from the
    /// worst to the best.
    fn select_by_heap(
        &mut self,
        e: &mut KernelBuilder,
        operand: InstId,
        work: &TopKLines,
        n: u64,
    ) -> Result<Vec<Stmt>> {
        let k = work.lines.length() - 1;
        let first = e.k.add_var(k + 1);
        let new = self.positioned_key(e, operand, work, &Index::var(first))?;
        let mut body = vec![for_loop(first, LoopKind::Seq, work.store(&e.k, &Index::var(first), new))];
        let held = work.declare_locals(&mut e.k);
        let parents = k.div_ceil(2);
        let var = e.k.add_var(parents);
        let parent = Index::var(var).scale(-1).offset(parents as i64 - 1);
        let at_parent = work.load(&mut e.k, &parent);
        let mut made = set(held, at_parent);
        made.extend(work.sift_down(&mut e.k, held, &parent, &Index::constant(k as i64 + 1)));
        body.push(for_loop(var, LoopKind::Seq, made));
        body.extend(work.pop(&mut e.k, &Index::constant(k as i64 + 1)));
        if n > k + 1 {
            let var = e.k.add_var(n - k - 1);
            let new = self.positioned_key(e, operand, work, &Index::var(var).offset(k as i64 + 1))?;
            let mut round = set(held, new);
            let top = work.load(&mut e.k, &Index::constant(0));
            // it stands behind all of the heap, so that a tie does not let it in
            let cond = compare(&mut e.k, Direction::Gt, held[0].value, top[0]);
            let mut enter = work.pop(&mut e.k, &Index::constant(k as i64));
            let hole = LocalVariable::new(&mut e.k, DType::S64);
            enter.push(hole.set_to_index(&mut e.k, &Index::constant(k as i64 - 1)));
            enter.extend(work.sift_up(&mut e.k, held, hole, &Index::constant(0)));
            round.push(Stmt::If { cond, body: enter });
            body.push(for_loop(var, LoopKind::Seq, round));
        }
        let var = e.k.add_var(k - 1);
        let apart = work.pop(&mut e.k, &Index::var(var).scale(-1).offset(k as i64));
        body.push(for_loop(var, LoopKind::Seq, apart));
        Ok(body)
    }

    /// Emits selection by insertion: an element larger than the first goes to the front, every other one behind the elements that are not
    /// smaller. Equal keys are ordered by position at the end.
    fn select_by_insertion(&mut self, e: &mut KernelBuilder, operand: InstId, work: &TopKLines) -> Result<Vec<Stmt>> {
        let n = work.lines.length();
        let zero = Index::constant(0);
        let first = self.positioned_key(e, operand, work, &zero)?;
        let mut body = work.store(&e.k, &zero, first);
        if n < 2 {
            return Ok(body);
        }
        let (held, front) = (work.declare_locals(&mut e.k), LocalVariable::new(&mut e.k, DType::Pred));
        let var = e.k.add_var(n - 1);
        let i = Index::var(var).offset(1);
        let new = self.positioned_key(e, operand, work, &i)?;
        let mut round = set(held, new);
        let top = work.load(&mut e.k, &zero);
        let is_largest = compare(&mut e.k, Direction::Gt, held[0].value, top[0]);
        round.push(front.set(is_largest));
        round.extend(inserted_at(&mut e.k, work, held, &i, |k, before| {
            let larger = compare(k, Direction::Gt, held[0].value, before[0]);
            k.add_op(ScalarOp::Or, &[front.value, larger], DType::Pred)
        }));
        body.push(for_loop(var, LoopKind::Seq, round));
        let var = e.k.add_var(n - 1);
        let i = Index::var(var).offset(1);
        let own = work.load(&mut e.k, &i);
        let mut round = set(held, own);
        round.extend(inserted_at(&mut e.k, work, held, &i, |k, before| {
            let tie = compare(k, Direction::Eq, held[0].value, before[0]);
            let in_front = less_than(k, held[1].value, before[1]);
            logical_and(k, tie, in_front)
        }));
        body.push(for_loop(var, LoopKind::Seq, round));
        Ok(body)
    }

    /// Emits the selection of the single largest element, the first one that equals the maximum. The comparison ignores NaN in vector lanes
    /// as XLA does, and takes the first of all elements if nothing equals the maximum.
    fn largest_alone(&mut self, e: &mut KernelBuilder, operand: InstId, work: &TopKLines, n: u64) -> Result<Vec<Stmt>> {
        let lanes = if work.dtype == DType::F64 { 4 } else { 8 };
        let (vectors, zero) = (n / lanes * lanes, Index::constant(0));
        let (first, most) = (work.declare_locals(&mut e.k), work.declare_locals(&mut e.k));
        let least = constant_of_number(&mut e.k, work.dtype, f64::NEG_INFINITY);
        let nowhere = constant_of_number(&mut e.k, DType::S32, -1.0);
        let start = self.positioned_key(e, operand, work, &zero)?;
        let mut body = set(first, start);
        body.extend(set(most, [least, nowhere]));
        let somewhere = less_than(&mut e.k, nowhere, most[1].value);
        if vectors > 0 {
            let (var, held) = (e.k.add_var(vectors), work.declare_locals(&mut e.k));
            let new = self.positioned_key(e, operand, work, &Index::var(var))?;
            let larger = compare(&mut e.k, Direction::Gt, held[0].value, most[0].value);
            let equal = compare(&mut e.k, Direction::Eq, held[0].value, most[0].value);
            let none_yet = logical_not(&mut e.k, somewhere);
            let first_equal = logical_and(&mut e.k, equal, none_yet);
            let cond = e.k.add_op(ScalarOp::Or, &[larger, first_equal], DType::Pred);
            let mut round = set(held, new);
            round.push(Stmt::If { cond, body: set(most, values(held)) });
            body.push(for_loop(var, LoopKind::Seq, round));
        }
        let (last, result) = (LocalVariable::new(&mut e.k, work.dtype), LocalVariable::new(&mut e.k, work.dtype));
        body.push(last.set(least));
        let mut rest = Vec::new();
        for i in vectors..n {
            let (held, new) =
                (work.declare_locals(&mut e.k), self.positioned_key(e, operand, work, &Index::constant(i as i64))?);
            body.extend(set(held, new));
            let smaller = compare(&mut e.k, Direction::Lt, held[0].value, last.value);
            let kept = select(&mut e.k, Some(smaller), last.value, held[0].value, work.dtype);
            body.push(last.set(kept));
            rest.push(held);
        }
        let smaller = compare(&mut e.k, Direction::Lt, last.value, most[0].value);
        let largest = select(&mut e.k, Some(smaller), most[0].value, last.value, work.dtype);
        body.push(result.set(largest));
        let mut found = values(first);
        for held in rest.into_iter().rev() {
            let equal = compare(&mut e.k, Direction::Eq, held[0].value, result.value);
            found = select_pair(&mut e.k, work.dtype, equal, [values(held), found]);
        }
        let equal = compare(&mut e.k, Direction::Eq, most[0].value, result.value);
        let in_vectors = logical_and(&mut e.k, equal, somewhere);
        found = select_pair(&mut e.k, work.dtype, in_vectors, [values(most), found]);
        body.extend(work.store(&e.k, &zero, found));
        Ok(body)
    }
}

/// Selects one of two elements (key and position).
fn select_pair(k: &mut Kernel, dtype: DType, cond: ExprId, [yes, no]: [[ExprId; 2]; 2]) -> [ExprId; 2] {
    [select(k, Some(cond), yes[0], no[0], dtype), select(k, Some(cond), yes[1], no[1], DType::S32)]
}

/// Inserts the held element at place `i` or before: elements for which `passes` holds move up by one.
fn inserted_at(
    k: &mut Kernel,
    work: &TopKLines,
    held: [LocalVariable; 2],
    i: &Index,
    passes: impl FnOnce(&mut Kernel, [ExprId; 2]) -> ExprId,
) -> Vec<Stmt> {
    let place = LocalVariable::new(k, DType::S64);
    let before = work.load(k, &place.index().offset(-1));
    let (zero, passes) = (index_to_s64(k, &Index::constant(0)), passes(k, before));
    let inside = less_than(k, zero, place.value);
    let cond = logical_and(k, inside, passes);
    let mut up = work.store(k, &place.index(), before);
    up.push(place.add_constant(k, -1));
    let mut body = vec![place.set_to_index(k, i), Stmt::While { cond, body: up }];
    body.extend(work.store(k, &place.index(), values(held)));
    body
}
