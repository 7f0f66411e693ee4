//! Run-time checks of `--checked`: what TensorFlow's CPU kernels refuse of the values that they get.
//!
//! The row of an op names a function of this file (`OpRow::checked`), which looks at the inputs of a node before the node is lowered. A
//! check is a claim of nothing (`hlo::ClaimQuantity::Check`): loops, branches and functions carry it to the entry as they carry sizes, and a call
//! fails where its value is not 0.
use super::LowerCtx;
use super::math::expr::{ArrayExpr, formula};
use crate::diag::Result;
use crate::hlo::open::{Claim, ClaimQuantity, Dim, InstId, Op, RuntimeCheck};
use crate::interp;
use crate::opdef::{self, Effect};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// A function that adds the checks of a node.
pub type CheckFn = fn(&mut LowerCtx) -> Result<()>;

impl LowerCtx<'_> {
    /// Lets calls fail in which an element of `wrong` is true; in code that is not checked, and where calls can't fail, does nothing.
    pub fn fail_where(&mut self, wrong: InstId, check: RuntimeCheck) {
        if !self.b.is_checked() || !self.b.carries() {
            return;
        }
        let axes: Vec<usize> = (0..self.b.rank(wrong)).collect();
        let none = self.b.scalar(DType::Pred, 0.0);
        let any = if axes.is_empty() { wrong } else { self.b.reduce(wrong, none, ScalarOp::Or, &axes) };
        if self.b.drops_known_checks()
            && interp::known_through_loops(self.b, any).is_some_and(|t| t.get_i64(0) == Some(0))
        {
            return;
        }
        let value = self.b.convert(any, DType::S32);
        let node = self.node.name.to_string();
        self.b.claim(Claim { node, quantity: ClaimQuantity::Check(check), value, most: 0, is_allowed: false });
    }
    /// Lets calls fail in which one of some integers is not in `0..count`.
    pub fn fail_outside(&mut self, numbers: InstId, count: Dim, check: RuntimeCheck) {
        if !self.b.is_checked() {
            return;
        }
        let numbers = self.b.convert(numbers, DType::S64);
        let wrong = formula(self.b, [numbers], |[x]| x.lt(0.0).or(x.ge(count.as_f64())));
        self.fail_where(wrong, check);
    }
    /// Lets calls fail in which an index, along the last axis of `indices`, leads out of dimensions of these sizes.
    pub fn fail_out_of(&mut self, indices: InstId, sizes: &[Dim]) {
        let places = self.b.dims(indices).to_vec();
        let ends: Vec<i64> = sizes.iter().map(|&n| n.pinned()).collect();
        let ends = self.b.constant(Tensor::from_vec(DType::S64, vec![sizes.len() as u64], ends));
        let ends = self.b.broadcast(ends, &places, &[places.len() - 1]);
        let indices = self.b.convert(indices, DType::S64);
        let wrong = formula(self.b, [indices, ends], |[x, end]| x.lt(0.0).or(x.ge(end)));
        self.fail_where(wrong, RuntimeCheck::Index);
    }
}

/// Whether an op is there to check a value, in code that is checked.
pub fn is_assertion(op: &str) -> bool {
    opdef::effect(op) == Some(Effect::Check) && super::find(op).is_some_and(|row| row.check.is_some())
}

fn is_integer(cx: &LowerCtx, i: usize) -> Result<bool> {
    Ok(cx.dtype(i)?.is_integer())
}

/// A condition that no element may be true.
pub fn assertion(cx: &mut LowerCtx) -> Result<()> {
    let condition = cx.arg(0)?;
    let wrong = formula(cx.b, [condition], |[x]| x.not());
    cx.fail_where(wrong, RuntimeCheck::Assertion);
    Ok(())
}

/// Floats that must be finite.
pub fn finite(cx: &mut LowerCtx) -> Result<()> {
    let x = cx.arg(0)?;
    let wrong = formula(cx.b, [x], |[x]| x.apply(ScalarOp::IsFinite).not());
    cx.fail_where(wrong, RuntimeCheck::NotFinite);
    Ok(())
}

/// Divisors, which may not be 0 where they are integers.
pub fn divisor(cx: &mut LowerCtx) -> Result<()> {
    if is_integer(cx, 1)? {
        let y = cx.arg(1)?;
        let wrong = formula(cx.b, [y], |[y]| y.equals(0.0));
        cx.fail_where(wrong, RuntimeCheck::DivisionByZero);
    }
    Ok(())
}

/// Exponents, which may not be negative where they are integers.
pub fn exponent(cx: &mut LowerCtx) -> Result<()> {
    if is_integer(cx, 1)? && cx.dtype(1)?.is_signed() {
        let y = cx.arg(1)?;
        let wrong = formula(cx.b, [y], |[y]| y.lt(0.0));
        cx.fail_where(wrong, RuntimeCheck::NegativePower);
    }
    Ok(())
}

/// Indices, input 1, into the first axis of input 0, which may be a variable.
pub fn rows(cx: &mut LowerCtx) -> Result<()> {
    let of = cx.read(0)?;
    let indices = cx.arg(1)?;
    let batch = usize::try_from(cx.node.int("batch_dims").unwrap_or(0)).unwrap_or(0);
    if let Some(&count) = cx.b.dims(of).get(batch) {
        cx.fail_outside(indices, count, RuntimeCheck::Index);
    }
    Ok(())
}

/// Indices, input 1, into axis `axis` (input 2) of input 0.
pub fn along_axis(cx: &mut LowerCtx) -> Result<()> {
    let dims = cx.dims(0)?;
    let (axis, indices) = (cx.axis(cx.constant_int(2)?, dims.len())?, cx.arg(1)?);
    cx.fail_outside(indices, dims[axis], RuntimeCheck::Index);
    Ok(())
}

fn ignores_bad_indices(cx: &LowerCtx) -> bool {
    cx.node.str("bad_indices_policy") == Some("IGNORE")
}

/// Tuples of indices, input 1, into input 0, which may be a variable.
pub fn places(cx: &mut LowerCtx) -> Result<()> {
    let (of, indices) = (cx.read(0)?, cx.arg(1)?);
    let depth = cx.b.dims(indices).last().copied().unwrap_or(Dim::from(0));
    let sizes = cx.b.dims(of).iter().copied().take(usize::try_from(depth).unwrap_or(0)).collect::<Vec<Dim>>();
    if Dim::from(sizes.len()) == depth && cx.b.rank(indices) > 0 && !ignores_bad_indices(cx) {
        cx.fail_out_of(indices, &sizes);
    }
    Ok(())
}

/// Tuples of indices, input 0, into a result of the sizes that input `shape` says.
pub fn places_in_result<const SHAPE: usize>(cx: &mut LowerCtx) -> Result<()> {
    let indices = cx.arg(0)?;
    let rank = cx.b.rank(indices);
    let Some(sizes) = cx.constant_ints(SHAPE).ok().filter(|_| !ignores_bad_indices(cx)) else { return Ok(()) };
    let sizes: Vec<Dim> = sizes.into_iter().map(|n| Dim::size(n).unwrap_or(Dim::from(0))).collect();
    let depth = cx.b.dims(indices).last().copied().unwrap_or(Dim::from(0));
    match (rank, sizes.len()) {
        (0 | 1, 1) => cx.fail_outside(indices, sizes[0], RuntimeCheck::Index),
        (1.., n) if depth <= Dim::from(n) => cx.fail_out_of(indices, &sizes[..depth.index()]),
        _ => {}
    }
    Ok(())
}

/// Segment numbers, input 1, which go up from 0 at least.
pub fn sorted_segments(cx: &mut LowerCtx) -> Result<()> {
    ascending(cx, 1)
}

/// Rows of input 0 that input 1 names, and their segment numbers, input 2.
pub fn segments_of_rows(cx: &mut LowerCtx) -> Result<()> {
    let (dims, indices) = (cx.dims(0)?, cx.arg(1)?);
    if let Some(&count) = dims.first() {
        cx.fail_outside(indices, count, RuntimeCheck::Index);
    }
    ascending(cx, 2)
}

/// Lets calls fail in which a vector of segment numbers goes down or begins below 0.
fn ascending(cx: &mut LowerCtx, i: usize) -> Result<()> {
    let ids = cx.arg(i)?;
    let (ids, dims) = (cx.b.convert(ids, DType::S64), cx.dims(i)?);
    let wrong = formula(cx.b, [ids], |[x]| x.lt(0.0));
    cx.fail_where(wrong, RuntimeCheck::Segment);
    if let Some(&n) = dims.first().filter(|&&n| n > 1) {
        let (before, behind) = (cx.b.slice_axis(ids, 0, Dim::from(0), n - 1), cx.b.slice_axis(ids, 0, Dim::from(1), n));
        let wrong = formula(cx.b, [before, behind], |[x, y]| x.gt(y));
        cx.fail_where(wrong, RuntimeCheck::Segment);
    }
    Ok(())
}

/// Segment numbers, input 1, below the count that input 2 says; those below 0 name no segment.
pub fn unsorted_segments(cx: &mut LowerCtx) -> Result<()> {
    let (ids, count) = (cx.arg(1)?, cx.arg(2)?);
    let (ids, count) = (cx.b.convert(ids, DType::S64), cx.b.convert(count, DType::S64));
    let dims = cx.b.dims(ids).to_vec();
    let count = cx.b.broadcast(count, &dims, &[]);
    let wrong = formula(cx.b, [ids, count], |[x, count]| x.ge(count));
    cx.fail_where(wrong, RuntimeCheck::Segment);
    Ok(())
}

/// Integers of input 0 that are not below 0.
pub fn not_negative(cx: &mut LowerCtx) -> Result<()> {
    if is_integer(cx, 0)? {
        let x = cx.arg(0)?;
        let wrong = formula(cx.b, [x], |[x]| x.lt(0.0));
        cx.fail_where(wrong, RuntimeCheck::Index);
    }
    Ok(())
}

/// A vector with each number below its length once.
pub fn permutation(cx: &mut LowerCtx) -> Result<()> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let dtype = cx.b.dtype(x);
    let comp = cx.b.ascending_computation(dtype);
    let places = cx.b.iota(DType::S32, &dims, 0);
    let sorted = cx.b.add_inst(Op::Sort { dim: 0, is_stable: false, comp }, &[x, places]);
    let sorted = cx.b.get_tuple_element(sorted, 0);
    let numbers = cx.b.iota(dtype, &dims, 0);
    let wrong = formula(cx.b, [sorted, numbers], |[x, n]| x.differs(n));
    cx.fail_where(wrong, RuntimeCheck::Permutation);
    Ok(())
}

/// Labels, input 1, below the number of classes, the last axis of input 0.
pub fn labels(cx: &mut LowerCtx) -> Result<()> {
    let (dims, labels) = (cx.dims(0)?, cx.arg(1)?);
    if let Some(&classes) = dims.last() {
        cx.fail_outside(labels, classes, RuntimeCheck::Label);
    }
    Ok(())
}

/// Numbers of partitions, input 1.
pub fn partitions(cx: &mut LowerCtx) -> Result<()> {
    let count = cx.node.int("num_partitions").and_then(|n| Dim::size(n).ok()).unwrap_or(Dim::from(0));
    let partitions = cx.arg(1)?;
    cx.fail_outside(partitions, count, RuntimeCheck::Index);
    Ok(())
}

/// Lengths, input 1, up to the size of the axis `seq_dim` of input 0.
pub fn lengths(cx: &mut LowerCtx) -> Result<()> {
    let (dims, lengths) = (cx.dims(0)?, cx.arg(1)?);
    let axis = cx.axis(cx.node.int("seq_dim").unwrap_or(0), dims.len())?;
    cx.fail_outside(lengths, dims[axis] + 1, RuntimeCheck::Length);
    Ok(())
}

/// Places of boxes in the batch of images, input 2 in input 0.
pub fn images(cx: &mut LowerCtx) -> Result<()> {
    let (dims, of) = (cx.dims(0)?, cx.arg(2)?);
    if let Some(&count) = dims.first() {
        cx.fail_outside(of, count, RuntimeCheck::Index);
    }
    Ok(())
}

/// Beginnings and sizes of a slice, inputs 1 and 2, which stay within input 0.
pub fn slice(cx: &mut LowerCtx) -> Result<()> {
    let dims: Vec<i64> = cx.dims(0)?.iter().map(|&d| d.pinned()).collect();
    let (begin, size) = (cx.arg(1)?, cx.arg(2)?);
    let (begin, size) = (cx.b.convert(begin, DType::S64), cx.b.convert(size, DType::S64));
    let dims = cx.b.constant(Tensor::from_vec(DType::S64, vec![dims.len() as u64], dims));
    let wrong = formula(cx.b, [begin, size, dims], |[begin, size, end]| {
        let size = (end - begin).when(size.equals(-1.0), size);
        begin.lt(0.0).or(size.lt(0.0)).or((begin + size).gt(end)).or(begin.gt(end))
    });
    cx.fail_where(wrong, RuntimeCheck::Slice);
    Ok(())
}

/// The ends of a range of random integers, inputs `FIRST` and the next.
pub fn random_range<const FIRST: usize>(cx: &mut LowerCtx) -> Result<()> {
    let (low, high) = (cx.arg(FIRST)?, cx.arg(FIRST + 1)?);
    let wrong = formula(cx.b, [low, high], |[low, high]: [ArrayExpr; 2]| low.ge(high));
    cx.fail_where(wrong, RuntimeCheck::Parameters);
    Ok(())
}

/// Lets calls fail in which an index, of one or more in input 1, is no place in a list of `length` elements (`None`: a list that grows).
pub fn fail_outside_list(cx: &mut LowerCtx, length: Option<InstId>) -> Result<()> {
    let indices = cx.arg(1)?;
    let indices = cx.b.convert(indices, DType::S64);
    let wrong = match length {
        None => formula(cx.b, [indices], |[x]| x.lt(0.0)),
        Some(length) => {
            let (length, dims) = (cx.b.convert(length, DType::S64), cx.b.dims(indices).to_vec());
            let length = cx.b.broadcast(length, &dims, &[]);
            formula(cx.b, [indices, length], |[x, length]| x.lt(0.0).or(x.ge(length)))
        }
    };
    cx.fail_where(wrong, RuntimeCheck::Index);
    Ok(())
}

/// Lets calls fail in which a list of `length` elements has none.
pub fn fail_if_empty(cx: &mut LowerCtx, length: InstId) {
    let wrong = formula(cx.b, [length], |[n]| n.le(0.0));
    cx.fail_where(wrong, RuntimeCheck::EmptyList);
}

/// The indices, the first half of the inputs, which are not below 0 in any of them.
pub fn stitched(cx: &mut LowerCtx) -> Result<()> {
    for i in 0..cx.args.len() / 2 {
        let indices = cx.arg(i)?;
        let wrong = formula(cx.b, [indices], |[x]| x.lt(0.0));
        cx.fail_where(wrong, RuntimeCheck::Index);
    }
    Ok(())
}
