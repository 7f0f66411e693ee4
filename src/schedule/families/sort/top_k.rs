//! `topk`: the best elements seen so far are a heap in the result with the worst on top; an element that beats it takes its
//! place. Then the heap is taken apart from the worst to the best. Cost: n comparisons, and log k for each element that enters.
//!
//! An element beats another if its key is better, or if the keys are equal and it stands in front.
use crate::scalar::{CompareKind, Direction};
use crate::schedule::families::sort::comparison_top_k::INSERTED;
use crate::schedule::families::sort::loops::SortLines;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::scalar_loops::{LocalVariable, index_to_s64, less_than, set_nested_body};

/// The heaps of all lines, while the kernel is emitted.
struct Heap {
    lines: SortLines,
    vars: Vec<VarId>,
    /// Keys and their positions.
    buffers: Vec<BufId>,
    /// The held element, not yet placed: key and position.
    held: [LocalVariable; 2],
    /// The type of the keys.
    dtype: DType,
    better: Direction,
    /// Comparison of keys; `Partial` if zeros of both signs are equal.
    kind: CompareKind,
}

impl Heap {
    fn compare(&self, k: &mut Kernel, direction: Direction, a: ExprId, b: ExprId) -> ExprId {
        let [a, b] = [a, b].map(|x| self.without_signed_zero(k, x));
        k.add_op(ScalarOp::Compare(direction, CompareKind::Total), &[a, b], DType::Pred)
    }
    /// A key in whose total order 0 and -0 are equal; adding 0 would let the compiler choose the sign of a NaN.
    fn without_signed_zero(&self, k: &mut Kernel, x: ExprId) -> ExprId {
        let dtype = self.dtype;
        if self.kind == CompareKind::Total || !dtype.is_float() {
            return x;
        }
        let zero = constant_of_number(k, dtype, 0.0);
        let is_zero = k.add_op(ScalarOp::Compare(Direction::Eq, CompareKind::Partial), &[x, zero], DType::Pred);
        select(k, Some(is_zero), zero, x, dtype)
    }
    /// The condition that `a` goes before `b`, by key and position.
    fn beats(&self, k: &mut Kernel, a: &[ExprId], b: &[ExprId]) -> ExprId {
        let better = self.compare(k, self.better, a[0], b[0]);
        let equal = self.compare(k, Direction::Eq, a[0], b[0]);
        let in_front = less_than(k, a[1], b[1]);
        let first = logical_and(k, equal, in_front);
        k.add_op(ScalarOp::Or, &[better, first], DType::Pred)
    }
    fn load(&self, k: &mut Kernel, i: &Index) -> Vec<ExprId> {
        self.lines.load(k, &self.buffers, &self.vars, i)
    }
    fn store(&self, k: &Kernel, i: &Index, values: &[ExprId]) -> Vec<Stmt> {
        self.lines.store(k, &self.buffers, &self.vars, i, values)
    }
    fn store_held(&self, values: &[ExprId]) -> Vec<Stmt> {
        self.held.iter().zip(values).map(|(x, &value)| x.set(value)).collect()
    }
    /// Inserts the held element into the heap of the first `size` places: from the hole at `start` on, worse children move up.
    fn sift_down(&self, k: &mut Kernel, start: &Index, size: &Index) -> Vec<Stmt> {
        let (hole, child) = (LocalVariable::new(k, DType::S64), LocalVariable::new(k, DType::S64));
        let more = LocalVariable::new(k, DType::Pred);
        let size = index_to_s64(k, size);
        let left = hole.index().scale(2).offset(1);
        let has_child = {
            let left = index_to_s64(k, &left);
            less_than(k, left, size)
        };
        let right = left.offset(1);
        let (a, b) = (self.load(k, &left), self.load(k, &right));
        let has_right = {
            let right = index_to_s64(k, &right);
            less_than(k, right, size)
        };
        let right_worse = self.beats(k, &a, &b);
        let take_right = logical_and(k, has_right, right_worse);
        let step = k.add_op(ScalarOp::Convert(DType::S64), &[take_right], DType::S64);
        let left = index_to_s64(k, &left);
        let chosen = k.add_op(ScalarOp::Add, &[left, step], DType::S64);
        let below = self.load(k, &child.index());
        let own: Vec<ExprId> = self.held.iter().map(|x| x.value).collect();
        let worse = self.beats(k, &own, &below);
        let mut up = self.store(k, &hole.index(), &below);
        up.push(hole.set(child.value));
        up.push(more.set(has_child));
        let round = vec![child.set(chosen), more.set(worse), Stmt::If { cond: more.value, body: up }];
        let mut all =
            vec![hole.set_to_index(k, start), more.set(has_child), Stmt::While { cond: more.value, body: round }];
        all.extend(self.store(k, &hole.index(), &own));
        all
    }
}

/// The family of `topk`: the largest elements of each line.
pub const FAMILY: Family = Family {
    name: "top-k",
    recipe: |_, request| Ok(matches!(request.op(), Op::TopK { .. }).then_some(RecipeSetup::Plain)),
    emit: |s, root, _| s.emit_top_k(root),
};

impl<'a> Emitter<'a> {
    /// Emits the first `k` elements of the last dimension in total order and their positions.
    pub(in crate::schedule) fn emit_top_k(&mut self, root: KernelRoot<'_>) -> Result<()> {
        let KernelRoot { id, out, .. } = root;
        let Op::TopK { k, largest, kind } = self.scope.comp[id].op else {
            return Err(unsupported_error(self.scope.comp, id, ""));
        };
        let operand = self.scope.comp[id].operands[0];
        let shape = self.scope.comp.array_shape(operand).clone();
        let axis = shape.rank() - 1;
        let lines = SortLines { dims: [&shape.dims[..axis], &[k]].concat(), axis };
        if lines.dims.contains(&0) {
            return Ok(());
        }
        let n = shape.dims[axis];
        if kind == CompareKind::Partial && shape.dtype.is_float() && (k < n || n <= INSERTED) {
            return self.emit_top_k_by_comparison(root, k);
        }
        let mut e = self.start_kernel(id);
        let heap = Heap {
            vars: lines.outer_variables(&mut e.k),
            lines,
            buffers: out.leaves.clone(),
            held: [LocalVariable::new(&mut e.k, shape.dtype), LocalVariable::new(&mut e.k, DType::S32)],
            dtype: shape.dtype,
            kind,
            better: if largest { Direction::Gt } else { Direction::Lt },
        };
        let mut body = self.first_k(&mut e, operand, &heap)?;
        body.extend(build_heap(&mut e.k, &heap));
        body.extend(self.scan_others(&mut e, operand, &heap, shape.dims[axis])?);
        body.extend(taken_apart(&mut e.k, &heap));
        e.k.flops = shape.elements();
        set_nested_body(&mut e.k, &heap.vars, body);
        self.launch(e.k);
        Ok(())
    }

    /// Element `i` of a line and its position.
    fn element_with_position(
        &mut self,
        e: &mut KernelBuilder,
        operand: InstId,
        heap: &Heap,
        i: &Index,
    ) -> Result<Vec<ExprId>> {
        let key = self.emit_element(e, operand, &heap.lines.element_coordinates(&heap.vars, i))?;
        Ok(vec![key, e.k.add_expr(Expr::Number(i.clone(), DType::S32))])
    }

    /// Emits stores of the first `k` elements of the line to the heap, in the order of the line.
    fn first_k(&mut self, e: &mut KernelBuilder, operand: InstId, heap: &Heap) -> Result<Vec<Stmt>> {
        let i = e.k.add_var(heap.lines.length());
        let values = self.element_with_position(e, operand, heap, &Index::var(i))?;
        Ok(vec![for_loop(i, LoopKind::Seq, heap.store(&e.k, &Index::var(i), &values))])
    }

    /// Emits the loop that compares every element after the first `k` with the worst one of the heap.
    fn scan_others(&mut self, e: &mut KernelBuilder, operand: InstId, heap: &Heap, n: u64) -> Result<Vec<Stmt>> {
        let k = heap.lines.length();
        if n == k {
            return Ok(vec![]);
        }
        let i = e.k.add_var(n - k);
        let values = self.element_with_position(e, operand, heap, &Index::var(i).offset(k as i64))?;
        let zero = Index::constant(0);
        let worst = heap.load(&mut e.k, &zero);
        // It stands behind all of the heap, so that an equal key does not beat.
        let enters = heap.compare(&mut e.k, heap.better, values[0], worst[0]);
        let mut enter = heap.store_held(&values);
        enter.extend(heap.sift_down(&mut e.k, &zero, &Index::constant(k as i64)));
        Ok(vec![for_loop(i, LoopKind::Seq, vec![Stmt::If { cond: enters, body: enter }])])
    }
}

/// Makes a heap of the stored elements, from the last parent to the top.
fn build_heap(k: &mut Kernel, heap: &Heap) -> Vec<Stmt> {
    let size = heap.lines.length();
    if size < 2 {
        return vec![];
    }
    let var = k.add_var(size / 2);
    let parent = Index::var(var).scale(-1).offset(size as i64 / 2 - 1);
    let values = heap.load(k, &parent);
    let mut body = heap.store_held(&values);
    body.extend(heap.sift_down(k, &parent, &Index::constant(size as i64)));
    vec![for_loop(var, LoopKind::Seq, body)]
}

/// Sorts the heap by moving the worst element to the end again and again.
fn taken_apart(k: &mut Kernel, heap: &Heap) -> Vec<Stmt> {
    let size = heap.lines.length();
    if size < 2 {
        return vec![];
    }
    let var = k.add_var(size - 1);
    let last = Index::var(var).scale(-1).offset(size as i64 - 1);
    let zero = Index::constant(0);
    let values = heap.load(k, &last);
    let mut body = heap.store_held(&values);
    let worst = heap.load(k, &zero);
    body.extend(heap.store(k, &last, &worst));
    body.extend(heap.sift_down(k, &zero, &last));
    vec![for_loop(var, LoopKind::Seq, body)]
}
