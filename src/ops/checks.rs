//! Run-time checks of `--checked`: input values that TensorFlow's CPU kernels reject.
//!
//! The lowering of an op names a function of this file (`OpLowering::with_check`), which sees the inputs of a node before the node is
//! lowered. A check is a [`BoundCheck`] of quantity `CheckedQuantity::Check`: loops, branches and functions
//! pass its value up to the entry, as they pass data-dependent sizes, and a call fails if the value is not 0.
use super::LowerCtx;
use super::math::expr::{ArrayExpr, build_formula};
use crate::diag::Result;
use crate::hlo::symbolic::{BoundCheck, CheckedQuantity, Dim, InstId, Op, RuntimeCheck};
use crate::interp;
use crate::opdef::{self, Effect};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Function that adds the run-time checks of a node's inputs.
pub type CheckFn = fn(&mut LowerCtx) -> Result<()>;

impl LowerCtx<'_> {
    /// Adds a run-time check: a call fails if any element of `wrong` is true. Does nothing in unchecked code and in
    /// computations from which a call cannot fail.
    pub fn fail_where(&mut self, wrong: InstId, check: RuntimeCheck) {
        if !self.b.has_runtime_checks() || !self.b.carries_checks() {
            return;
        }
        let axes: Vec<usize> = (0..self.b.rank(wrong)).collect();
        let none = self.b.scalar(DType::Pred, 0.0);
        let any = if axes.is_empty() { wrong } else { self.b.reduce(wrong, none, ScalarOp::Or, &axes) };
        if self.b.omits_proven_checks()
            && interp::constant_value_through_loops(self.b, any).is_some_and(|t| t.get_i64(0) == Some(0))
        {
            return;
        }
        let value = self.b.convert(any, DType::S32);
        let node = self.node.name.to_string();
        self.b.add_bound_check(BoundCheck {
            node,
            quantity: CheckedQuantity::Check(check),
            value,
            most: 0,
            is_allowed: false,
        });
    }
    /// Adds a run-time check: a call fails if any of the integers `numbers` is not in `0..count`.
    pub fn fail_out_of_range(&mut self, numbers: InstId, count: Dim, check: RuntimeCheck) {
        if !self.b.has_runtime_checks() {
            return;
        }
        let numbers = self.b.convert(numbers, DType::S64);
        let wrong = build_formula(self.b, [numbers], |[x]| x.lt(0.0).or(x.ge(count.as_f64())));
        self.fail_where(wrong, check);
    }
    /// Adds a run-time check: a call fails if an index tuple along the last axis of `indices` lies outside an array of these
    /// sizes.
    pub fn fail_out_of_bounds(&mut self, indices: InstId, sizes: &[Dim]) {
        let places = self.b.dims(indices).to_vec();
        let ends: Vec<i64> = sizes.iter().map(|&n| n.guarded_value()).collect();
        let ends = self.b.constant(Tensor::from_vec(DType::S64, vec![sizes.len() as u64], ends));
        let ends = self.b.broadcast(ends, &places, &[places.len() - 1]);
        let indices = self.b.convert(indices, DType::S64);
        let wrong = build_formula(self.b, [indices, ends], |[x, end]| x.lt(0.0).or(x.ge(end)));
        self.fail_where(wrong, RuntimeCheck::Index);
    }
}

/// Whether an op exists only to check a value, and checked code keeps that check.
pub fn is_assertion(op: &str) -> bool {
    opdef::op_effect(op) == Some(Effect::Check) && super::find_op(op).is_some_and(|row| row.check.is_some())
}

fn is_integer(cx: &LowerCtx, i: usize) -> Result<bool> {
    Ok(cx.dtype(i)?.is_integer())
}

/// Checks of `Assert`: no element of the condition may be false.
pub fn check_assertion(cx: &mut LowerCtx) -> Result<()> {
    let condition = cx.arg(0)?;
    let wrong = build_formula(cx.b, [condition], |[x]| x.not());
    cx.fail_where(wrong, RuntimeCheck::Assertion);
    Ok(())
}

/// Checks that all elements of input 0 are finite.
pub fn check_finite_input(cx: &mut LowerCtx) -> Result<()> {
    let x = cx.arg(0)?;
    let wrong = build_formula(cx.b, [x], |[x]| x.apply_unary(ScalarOp::IsFinite).not());
    cx.fail_where(wrong, RuntimeCheck::NotFinite);
    Ok(())
}

/// Checks that no element of an integer divisor (input 1) is 0.
pub fn check_nonzero_divisor(cx: &mut LowerCtx) -> Result<()> {
    if is_integer(cx, 1)? {
        let y = cx.arg(1)?;
        let wrong = build_formula(cx.b, [y], |[y]| y.equals(0.0));
        cx.fail_where(wrong, RuntimeCheck::DivisionByZero);
    }
    Ok(())
}

/// Checks that no element of an integer exponent (input 1) is negative.
pub fn check_non_negative_exponent(cx: &mut LowerCtx) -> Result<()> {
    if is_integer(cx, 1)? && cx.dtype(1)?.is_signed() {
        let y = cx.arg(1)?;
        let wrong = build_formula(cx.b, [y], |[y]| y.lt(0.0));
        cx.fail_where(wrong, RuntimeCheck::NegativePower);
    }
    Ok(())
}

/// Checks the indices in input 1 against the first axis of input 0, which may be a variable.
pub fn check_row_indices(cx: &mut LowerCtx) -> Result<()> {
    let of = cx.read_variable(0)?;
    let indices = cx.arg(1)?;
    let batch = usize::try_from(cx.node.int("batch_dims").unwrap_or(0)).unwrap_or(0);
    if let Some(&count) = cx.b.dims(of).get(batch) {
        cx.fail_out_of_range(indices, count, RuntimeCheck::Index);
    }
    Ok(())
}

/// Checks the indices in input 1 against axis `axis` (input 2) of input 0.
pub fn check_gather_indices(cx: &mut LowerCtx) -> Result<()> {
    let dims = cx.dims(0)?;
    let (axis, indices) = (cx.normalize_axis(cx.constant_int(2)?, dims.len())?, cx.arg(1)?);
    cx.fail_out_of_range(indices, dims[axis], RuntimeCheck::Index);
    Ok(())
}

fn ignores_bad_indices(cx: &LowerCtx) -> bool {
    cx.node.str("bad_indices_policy") == Some("IGNORE")
}

/// Checks the index tuples in input 1 against the sizes of input 0, which may be a variable.
pub fn check_index_tuples(cx: &mut LowerCtx) -> Result<()> {
    let (of, indices) = (cx.read_variable(0)?, cx.arg(1)?);
    let depth = cx.b.dims(indices).last().copied().unwrap_or(Dim::from(0));
    let sizes = cx.b.dims(of).iter().copied().take(usize::try_from(depth).unwrap_or(0)).collect::<Vec<Dim>>();
    if Dim::from(sizes.len()) == depth && cx.b.rank(indices) > 0 && !ignores_bad_indices(cx) {
        cx.fail_out_of_bounds(indices, &sizes);
    }
    Ok(())
}

/// Checks the index tuples in input 0 against the result sizes that input `SHAPE` lists.
pub fn check_scatter_indices<const SHAPE: usize>(cx: &mut LowerCtx) -> Result<()> {
    let indices = cx.arg(0)?;
    let rank = cx.b.rank(indices);
    let Some(sizes) = cx.constant_ints(SHAPE).ok().filter(|_| !ignores_bad_indices(cx)) else { return Ok(()) };
    let sizes: Vec<Dim> = sizes.into_iter().map(|n| Dim::size(n).unwrap_or(Dim::from(0))).collect();
    let depth = cx.b.dims(indices).last().copied().unwrap_or(Dim::from(0));
    match (rank, sizes.len()) {
        (0 | 1, 1) => cx.fail_out_of_range(indices, sizes[0], RuntimeCheck::Index),
        (1.., n) if depth <= Dim::from(n) => cx.fail_out_of_bounds(indices, &sizes[..depth.guarded_index()]),
        _ => {}
    }
    Ok(())
}

/// Checks that the segment numbers in input 1 ascend from 0 or more.
pub fn check_sorted_segments(cx: &mut LowerCtx) -> Result<()> {
    ascending(cx, 1)
}

/// Checks the row indices in input 1 against input 0, and that their segment numbers in input 2 ascend.
pub fn check_sparse_segments(cx: &mut LowerCtx) -> Result<()> {
    let (dims, indices) = (cx.dims(0)?, cx.arg(1)?);
    if let Some(&count) = dims.first() {
        cx.fail_out_of_range(indices, count, RuntimeCheck::Index);
    }
    ascending(cx, 2)
}

/// Adds a run-time check: a call fails if the segment numbers in input `i` descend or begin below 0.
fn ascending(cx: &mut LowerCtx, i: usize) -> Result<()> {
    let ids = cx.arg(i)?;
    let (ids, dims) = (cx.b.convert(ids, DType::S64), cx.dims(i)?);
    let wrong = build_formula(cx.b, [ids], |[x]| x.lt(0.0));
    cx.fail_where(wrong, RuntimeCheck::Segment);
    if let Some(&n) = dims.first().filter(|&&n| n > 1) {
        let (before, behind) = (cx.b.slice_axis(ids, 0, Dim::from(0), n - 1), cx.b.slice_axis(ids, 0, Dim::from(1), n));
        let wrong = build_formula(cx.b, [before, behind], |[x, y]| x.gt(y));
        cx.fail_where(wrong, RuntimeCheck::Segment);
    }
    Ok(())
}

/// Checks that the segment numbers in input 1 are below the count in input 2; negative numbers mean no segment and are allowed.
pub fn check_unsorted_segments(cx: &mut LowerCtx) -> Result<()> {
    let (ids, count) = (cx.arg(1)?, cx.arg(2)?);
    let (ids, count) = (cx.b.convert(ids, DType::S64), cx.b.convert(count, DType::S64));
    let dims = cx.b.dims(ids).to_vec();
    let count = cx.b.broadcast(count, &dims, &[]);
    let wrong = build_formula(cx.b, [ids, count], |[x, count]| x.ge(count));
    cx.fail_where(wrong, RuntimeCheck::Segment);
    Ok(())
}

/// Checks that no integer in input 0 is negative.
pub fn check_non_negative_input(cx: &mut LowerCtx) -> Result<()> {
    if is_integer(cx, 0)? {
        let x = cx.arg(0)?;
        let wrong = build_formula(cx.b, [x], |[x]| x.lt(0.0));
        cx.fail_where(wrong, RuntimeCheck::Index);
    }
    Ok(())
}

/// Checks that input 0 is a permutation: each number below the vector's length exactly once.
pub fn check_permutation(cx: &mut LowerCtx) -> Result<()> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let dtype = cx.b.dtype(x);
    let comp = cx.b.ascending_computation(dtype);
    let places = cx.b.iota(DType::S32, &dims, 0);
    let sorted = cx.b.add_inst(Op::Sort { dim: 0, is_stable: false, comp }, &[x, places]);
    let sorted = cx.b.get_tuple_element(sorted, 0);
    let numbers = cx.b.iota(dtype, &dims, 0);
    let wrong = build_formula(cx.b, [sorted, numbers], |[x, n]| x.not_equals(n));
    cx.fail_where(wrong, RuntimeCheck::Permutation);
    Ok(())
}

/// Checks that the labels in input 1 are below the number of classes, the last axis of input 0.
pub fn check_labels(cx: &mut LowerCtx) -> Result<()> {
    let (dims, labels) = (cx.dims(0)?, cx.arg(1)?);
    if let Some(&classes) = dims.last() {
        cx.fail_out_of_range(labels, classes, RuntimeCheck::Label);
    }
    Ok(())
}

/// Checks that the partition numbers in input 1 are below `num_partitions`.
pub fn check_partition_numbers(cx: &mut LowerCtx) -> Result<()> {
    let count = cx.node.int("num_partitions").and_then(|n| Dim::size(n).ok()).unwrap_or(Dim::from(0));
    let partitions = cx.arg(1)?;
    cx.fail_out_of_range(partitions, count, RuntimeCheck::Index);
    Ok(())
}

/// Checks that the sequence lengths in input 1 do not exceed the size of axis `seq_dim` of input 0.
pub fn check_sequence_lengths(cx: &mut LowerCtx) -> Result<()> {
    let (dims, lengths) = (cx.dims(0)?, cx.arg(1)?);
    let axis = cx.normalize_axis(cx.node.int("seq_dim").unwrap_or(0), dims.len())?;
    cx.fail_out_of_range(lengths, dims[axis] + 1, RuntimeCheck::Length);
    Ok(())
}

/// Checks the image numbers of the boxes in input 2 against the batch size of input 0.
pub fn check_box_images(cx: &mut LowerCtx) -> Result<()> {
    let (dims, of) = (cx.dims(0)?, cx.arg(2)?);
    if let Some(&count) = dims.first() {
        cx.fail_out_of_range(of, count, RuntimeCheck::Index);
    }
    Ok(())
}

/// Checks that the slice with starts in input 1 and sizes in input 2 stays within input 0.
pub fn check_slice_bounds(cx: &mut LowerCtx) -> Result<()> {
    let dims: Vec<i64> = cx.dims(0)?.iter().map(|&d| d.guarded_value()).collect();
    let (begin, size) = (cx.arg(1)?, cx.arg(2)?);
    let (begin, size) = (cx.b.convert(begin, DType::S64), cx.b.convert(size, DType::S64));
    let dims = cx.b.constant(Tensor::from_vec(DType::S64, vec![dims.len() as u64], dims));
    let wrong = build_formula(cx.b, [begin, size, dims], |[begin, size, end]| {
        let size = (end - begin).select_where(size.equals(-1.0), size);
        begin.lt(0.0).or(size.lt(0.0)).or((begin + size).gt(end)).or(begin.gt(end))
    });
    cx.fail_where(wrong, RuntimeCheck::Slice);
    Ok(())
}

/// Checks that the range of random integers from input `FIRST` to the next input is not empty.
pub fn check_random_range<const FIRST: usize>(cx: &mut LowerCtx) -> Result<()> {
    let (low, high) = (cx.arg(FIRST)?, cx.arg(FIRST + 1)?);
    let wrong = build_formula(cx.b, [low, high], |[low, high]: [ArrayExpr; 2]| low.ge(high));
    cx.fail_where(wrong, RuntimeCheck::Parameters);
    Ok(())
}

/// Adds a run-time check: a call fails if one of the indices in input 1 is not below `length`, the number of elements of a
/// list. `None` stands for a list that grows, where only negative indices fail.
pub fn fail_outside_list(cx: &mut LowerCtx, length: Option<InstId>) -> Result<()> {
    let indices = cx.arg(1)?;
    let indices = cx.b.convert(indices, DType::S64);
    let wrong = match length {
        None => build_formula(cx.b, [indices], |[x]| x.lt(0.0)),
        Some(length) => {
            let (length, dims) = (cx.b.convert(length, DType::S64), cx.b.dims(indices).to_vec());
            let length = cx.b.broadcast(length, &dims, &[]);
            build_formula(cx.b, [indices, length], |[x, length]| x.lt(0.0).or(x.ge(length)))
        }
    };
    cx.fail_where(wrong, RuntimeCheck::Index);
    Ok(())
}

/// Adds a run-time check: a call fails if a list of `length` elements is empty.
pub fn fail_if_empty(cx: &mut LowerCtx, length: InstId) {
    let wrong = build_formula(cx.b, [length], |[n]| n.le(0.0));
    cx.fail_where(wrong, RuntimeCheck::EmptyList);
}

/// Checks that the indices of `DynamicStitch`, the first half of the inputs, are not negative.
pub fn check_stitch_indices(cx: &mut LowerCtx) -> Result<()> {
    for i in 0..cx.args.len() / 2 {
        let indices = cx.arg(i)?;
        let wrong = build_formula(cx.b, [indices], |[x]| x.lt(0.0));
        cx.fail_where(wrong, RuntimeCheck::Index);
    }
    Ok(())
}
