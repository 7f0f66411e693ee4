//! Strided slices, NumPy's basic indexing, and assignments to them.
//!
//! Some slices begin at run-time positions but have a known number of elements: a single element (`x[:, i]`), or an end at a
//! known distance (`x[i:i+3]`). Such a slice is moved so that it lies within the array, as XLA does; TensorFlow's kernels
//! reject an index out of range and truncate a range. If the number of elements is not known (`x[:n]`), it is a data-dependent
//! size, and the elements are those that TensorFlow takes.
use super::data_dependent_slice::DataDependentSlice;
use super::gather::gather_along_axis;
use super::strided_shape::{strided_slice_grad_shape, strided_slice_shape};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::Node;
use crate::hlo::symbolic::{Dim, PadDim, SliceDim};
use crate::hlo::symbolic::{InstId, Op, RuntimeCheck, Shape};
use crate::ops::element::{self, ElementExpr};
use crate::ops::math::special;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::Direction;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("StridedSlice", "input begin end strides -> output", strided_slice)
        .moves_strings()
        .shape(strided_slice_shape)
        .constant_inputs(&[3]),
    op("TensorStridedSliceUpdate", "input begin end strides value -> output", strided_update)
        .shape(like_first_input)
        .constant_inputs(&[3]),
    op("StridedSliceGrad", "shape begin end strides dy -> output", strided_gradient)
        .shape(strided_slice_grad_shape)
        .constant_inputs(&[0, 3]),
];

/// Largest number of slice entries: each has a bit in a mask.
const MOST_INDICES: u64 = 62;

/// Elements that a strided slice takes along one dimension.
#[derive(Clone, Copy)]
pub(super) struct SliceRange {
    /// Position of the slice's first element.
    pub start: Dim,
    /// Distance between adjacent elements of the slice.
    pub stride: i64,
    /// Number of elements in the slice.
    pub count: Dim,
}

impl SliceRange {
    /// All elements of a dimension of this size.
    fn whole(count: Dim) -> SliceRange {
        SliceRange { start: Dim::from(0), stride: 1, count }
    }
    /// Distance from the slice's first element to its last.
    fn reach(&self) -> Dim {
        let step = Dim::from(self.stride.unsigned_abs());
        (self.count * step - step).max(0)
    }
    /// Number of elements from the first to the last, those skipped included, where the stride is `step`.
    fn covered(&self, step: Dim) -> Dim {
        (self.count * step - (step - 1)).max(0)
    }
    /// Lowest position among the slice's elements.
    fn low(&self) -> Dim {
        if self.stride > 0 { self.start } else { (self.start - self.reach()).max(0) }
    }
}

/// Window of an array that starts at a run-time position.
struct Window {
    /// Start of the window in each dimension, scalars of one type.
    starts: Vec<InstId>,
    /// Sizes of the window.
    sizes: Vec<Dim>,
}

/// Resolved strided slice, ready for emission.
struct Plan {
    /// Window of the input to which `taken` applies; `None` if all starts are known at compile time.
    window: Option<Window>,
    /// Dimensions with a data-dependent number of elements. They are sliced first; `window` and `taken` apply to the result.
    picked: Vec<(usize, DataDependentSlice)>,
    /// Elements taken of each dimension of the input.
    taken: Vec<SliceRange>,
    /// Sizes of the result, with new dimensions inserted and shrunk ones removed.
    result: Vec<Dim>,
}

/// One dimension entry of a strided slice, in the order of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SliceItem {
    /// Insertion of a new dimension of size 1.
    New,
    /// All elements of the next input dimension.
    Whole,
    /// One element of the next dimension, at entry `i` of begin; true if the mask sets begin to the first element.
    Index(usize, bool),
    /// A range of the next dimension, by entry `i` of begin, end and strides; the flags tell whether begin and end are open.
    Range(usize, bool, bool),
}

/// Entries of a strided slice with `n` elements in begin, end and strides, for an input of this rank, by the five masks of the
/// node.
pub(super) fn slice_items(node: &Node, n: usize, rank: usize) -> Result<Vec<SliceItem>> {
    let wrong = |message: String| Error::user(Code::ShapeMismatch, message);
    if Dim::from(n) > MOST_INDICES {
        return Err(wrong(format!("{n} indices")));
    }
    let mask = |name: &str| node.int(name).unwrap_or(0);
    let (begin_mask, end_mask) = (mask("begin_mask"), mask("end_mask"));
    let (ellipsis, new_axis, shrink) = (mask("ellipsis_mask"), mask("new_axis_mask"), mask("shrink_axis_mask"));
    let bit = |mask: i64, i: usize| mask >> i & 1 == 1;
    if (0..n).filter(|&i| bit(ellipsis, i)).count() > 1 {
        return Err(wrong("more than one ellipsis".to_string()));
    }
    let used = (0..n).filter(|&i| !bit(ellipsis, i) && !bit(new_axis, i)).count();
    let free = rank.checked_sub(used).ok_or_else(|| wrong(format!("{used} indices into rank {rank}")))?;
    let mut out = Vec::with_capacity(rank + n);
    let mut taken = 0;
    for i in 0..n {
        if bit(ellipsis, i) {
            out.resize(out.len() + free, SliceItem::Whole);
            taken += free;
        } else if bit(new_axis, i) {
            out.push(SliceItem::New);
        } else {
            let (begin, end) = (bit(begin_mask, i), bit(end_mask, i));
            out.push(if bit(shrink, i) { SliceItem::Index(i, begin) } else { SliceItem::Range(i, begin, end) });
            taken += 1;
        }
    }
    out.resize(out.len() + rank - taken, SliceItem::Whole);
    Ok(out)
}

/// Begin, end and strides of a node.
pub(super) struct SliceBounds {
    /// Index of the input that is begin; end and strides follow it.
    pub at: usize,
    /// Elements of the begin operand, as expressions of sizes.
    pub begin: Vec<ElementExpr>,
    /// Elements of the end operand, as expressions of sizes.
    pub end: Vec<ElementExpr>,
    /// Elements of the strides operand.
    pub strides: Vec<i64>,
    /// Whether the number of elements may be data-dependent.
    may_pick: bool,
}

/// Slice of one dimension, with a data-dependent selection before it if needed.
pub(super) struct DimSlice {
    /// Run-time start from which `taken` counts; `None` if the start is known at compile time.
    pub start: Option<InstId>,
    /// Data-dependent selection of elements that is applied before the slice, if any.
    pub picked: Option<DataDependentSlice>,
    /// Elements taken, with positions and count known to the compiler.
    pub taken: SliceRange,
}

impl DimSlice {
    fn new(start: Option<InstId>, taken: SliceRange) -> DimSlice {
        DimSlice { start, picked: None, taken }
    }
}

impl SliceBounds {
    fn new(cx: &LowerCtx, at: usize, may_pick: bool) -> Result<Self> {
        let strides = cx.constant_ints(at + 2)?;
        let n = Dim::from(strides.len());
        if n > MOST_INDICES {
            return Err(cx.shape_mismatch(format!("{n} indices")));
        }
        if cx.dims(at)? != [n] || cx.dims(at + 1)? != [n] {
            return Err(cx.shape_mismatch("begin, end and strides have different lengths"));
        }
        let entries = |i: usize| -> Result<Vec<ElementExpr>> {
            let array = cx.arg(i)?;
            Ok((0..n.guarded_count()).map(|e| element::element_expr(cx.b, array, Dim::from(e))).collect())
        };
        Ok(SliceBounds { at, begin: entries(at)?, end: entries(at + 1)?, strides, may_pick })
    }

    /// Entry `i` of input `at` (begin or end) as an index into `d` elements; a negative one counts from the end.
    pub(super) fn wrapped_index(&self, cx: &mut LowerCtx, at: usize, i: usize, d: Dim) -> Result<InstId> {
        let begin = cx.arg(at)?;
        let one = cx.b.slice_axis(begin, 0, Dim::from(i), Dim::from(i) + 1);
        let one = cx.b.reshape(one, &[]);
        let one = if cx.b.dtype(one) == DType::S64 { one } else { cx.b.convert(one, DType::S32) };
        let behind = special::add_scalar(cx.b, one, d);
        let negative = special::compare_scalar(cx.b, Direction::Lt, one, 0.0);
        Ok(cx.b.select(negative, behind, one))
    }

    /// Slice of a single element out of `d`, at entry `i` of begin.
    fn index(&self, cx: &mut LowerCtx, i: usize, first: bool, d: Dim) -> Result<DimSlice> {
        let one = |start: Dim| SliceRange { start, stride: 1, count: Dim::from(1) };
        if first {
            return Ok(DimSlice::new(None, one(Dim::from(0))));
        }
        let Some(begin) = self.begin[i].as_size() else {
            if d == 0 {
                return Err(cx.shape_mismatch("an index into a dimension without elements"));
            }
            let start = self.wrapped_index(cx, self.at, i, d)?;
            cx.fail_out_of_range(start, d, RuntimeCheck::Index);
            return Ok(DimSlice::new(Some(start), one(Dim::from(0))));
        };
        let start = begin.is_less(0).select(begin + d, begin);
        if !cx.b.require_less(Dim::from(-1), start) || !cx.b.require_less(start, d) {
            return Err(cx.shape_mismatch(format!("index {begin} is out of range for size {d}")));
        }
        Ok(DimSlice::new(None, one(start)))
    }

    /// Slice of a range out of `d` elements, by entry `i` of begin, end and strides.
    fn slice_range(&self, cx: &mut LowerCtx, i: usize, open_begin: bool, open_end: bool, d: Dim) -> Result<DimSlice> {
        let number = |v: &ElementExpr, open: bool| if open { Some(Dim::from(0)) } else { v.as_size() };
        let ends = (number(&self.begin[i], open_begin), number(&self.end[i], open_end));
        let stride = self.strides[i];
        if let (Some(begin), Some(end)) = ends {
            let taken = slice_range(d, begin, end, stride, open_begin, open_end);
            let taken = taken.ok_or_else(|| cx.shape_mismatch("a stride of 0"))?;
            return Ok(DimSlice::new(None, taken));
        }
        let apart = if open_begin || open_end { None } else { self.end[i].sub(&self.begin[i]) };
        let count = apart.and_then(|a| steps(a.as_size()?, stride));
        let Some(count) = count else {
            return if self.may_pick && cx.b.nesting_depth() == 1 {
                self.data_dependent_slice(cx, i, open_begin, open_end, d)
            } else {
                Err(self.not_constant(i, ends.0.is_none()))
            };
        };
        let reach = count.saturating_sub(1).saturating_mul(stride.unsigned_abs());
        if count == 0 {
            return Ok(DimSlice::new(None, SliceRange::whole(count)));
        }
        if reach >= d {
            let told =
                format!("a slice of {count} elements, a stride of {stride} apart, that starts at run time in {d}");
            return Err(cx.unsupported_case(told));
        }
        let mut start = self.wrapped_index(cx, self.at, i, d)?;
        if stride < 0 {
            start = special::add_scalar(cx.b, start, -reach);
        }
        let first = if stride < 0 { reach } else { Dim::from(0) };
        Ok(DimSlice::new(Some(start), SliceRange { start: first, stride, count }))
    }

    fn not_constant(&self, i: usize, begin: bool) -> Error {
        let (what, input) = if begin { ("begin", self.at) } else { ("end", self.at + 1) };
        Diagnostic::new(
            Code::NotConstant,
            format!("input {input} must be known at compile time, and it depends on what is fed"),
        )
        .note(format!(
            "the size of the result depends on entry {i} of {what}; it would follow from one element, `x[i]`, \
             or from an end at a known distance, `x[i:i + 3]`"
        ))
        .into()
    }
}

/// Number of elements of `begin:begin + apart:stride` if none is out of range; `None` for a stride of 0 or in the wrong
/// direction.
fn steps(apart: Dim, stride: i64) -> Option<Dim> {
    let forward = apart == 0 || (apart > 0) == (stride > 0);
    let apart = if stride < 0 { -apart } else { apart };
    (stride != 0 && forward).then(|| apart.div_ceil(stride.unsigned_abs()))
}

/// Resolves a strided slice of an input of sizes `dims`; begin, end and strides are inputs `at`, `at+1`, `at+2`. The number of
/// elements may be data-dependent only with `may_pick`.
fn plan(cx: &mut LowerCtx, dims: &[Dim], at: usize, may_pick: bool) -> Result<Plan> {
    let bounds = SliceBounds::new(cx, at, may_pick)?;
    let (mut parts, mut result) = (Vec::with_capacity(dims.len()), Vec::new());
    for item in slice_items(cx.node, bounds.strides.len(), dims.len())? {
        if item == SliceItem::New {
            result.push(Dim::from(1));
            continue;
        }
        let d = dims[parts.len()];
        let part = match item {
            SliceItem::Index(i, first) => bounds.index(cx, i, first, d)?,
            SliceItem::Range(i, begin, end) => bounds.slice_range(cx, i, begin, end, d)?,
            SliceItem::Whole | SliceItem::New => DimSlice::new(None, SliceRange::whole(d)),
        };
        if !matches!(item, SliceItem::Index(..)) {
            result.push(part.taken.count);
        }
        parts.push(part);
    }
    Ok(windowed(cx, parts, result))
}

/// Plan for slices of each dimension, with a window if any of them starts at run time.
fn windowed(cx: &mut LowerCtx, parts: Vec<DimSlice>, result: Vec<Dim>) -> Plan {
    let dtypes = parts.iter().filter_map(|p| p.start).map(|s| cx.b.dtype(s));
    let picked: Vec<(usize, DataDependentSlice)> =
        parts.iter().enumerate().filter_map(|(axis, p)| Some((axis, p.picked?))).collect();
    let is_empty = parts.iter().any(|p| p.picked.is_none() && p.taken.count.is_zero());
    let Some(dtype) = dtypes.max_by_key(|t| *t == DType::S64).filter(|_| !is_empty) else {
        return Plan { window: None, picked, taken: parts.into_iter().map(|p| p.taken).collect(), result };
    };
    let (mut starts, mut sizes, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for DimSlice { start, picked, taken: t } in parts {
        let low = if picked.is_some() { Dim::from(0) } else { t.low() };
        starts.push(match start {
            Some(start) => cx.b.convert(start, dtype),
            None => cx.b.scalar(dtype, low),
        });
        sizes.push(if picked.is_some() { t.count } else { t.reach() + 1 });
        taken.push(SliceRange { start: t.start - low, ..t });
    }
    Plan { window: Some(Window { starts, sizes }), picked, taken, result }
}

/// Elements that `begin:end:stride` takes of `d`, with clamped ends; `None` for a stride of 0.
pub(super) fn slice_range(
    d: Dim,
    begin: Dim,
    end: Dim,
    stride: i64,
    open_begin: bool,
    open_end: bool,
) -> Option<SliceRange> {
    if stride == 0 {
        return None;
    }
    let limits = if stride > 0 { [Dim::from(0), d] } else { [Dim::from(-1), d - 1] };
    let [first, last] = if stride > 0 { limits } else { [limits[1], limits[0]] };
    let start = if open_begin { first } else { clamp_index(begin, d, limits) };
    let stop = if open_end { last } else { clamp_index(end, d, limits) };
    let span = if stride > 0 { stop - start } else { start - stop };
    Some(SliceRange { start, stride, count: span.max(0).div_ceil(stride.unsigned_abs()) })
}

/// Index into `d` elements, counted from the end if negative, clamped to `low..=high`.
pub(super) fn clamp_index(index: Dim, d: Dim, [low, high]: [Dim; 2]) -> Dim {
    index.is_less(0).select(index + d, index).clamp(low, high)
}

/// Elements that a plan takes, in the plan's order, with the rank of the input.
fn take(cx: &mut LowerCtx, x: InstId, plan: &Plan) -> Result<InstId> {
    let part = |t: &SliceRange| {
        if t.count.is_zero() {
            return SliceDim { start: Dim::from(0), limit: Dim::from(0), stride: Dim::from(1) };
        }
        let (low, stride) = (t.low(), Dim::from(t.stride.unsigned_abs()));
        SliceDim { start: low, limit: low + t.covered(stride), stride }
    };
    let mut x = x;
    for &(axis, picked) in &plan.picked {
        x = match picked {
            DataDependentSlice::From(begin, count) => cx.b.slice_axis(x, axis, begin, begin + count),
            DataDependentSlice::At(places) => gather_along_axis(cx, x, places, axis, 0)?,
        };
    }
    let x = plan.window.as_ref().map_or(x, |w| read(cx, x, w));
    let parts: Vec<SliceDim> = plan.taken.iter().map(part).collect();
    // The slice limits are computed from these counts, so that they need no comparison with the sizes.
    let counts: Vec<Dim> = plan.taken.iter().map(|t| t.count).collect();
    let shape = Shape::array(cx.b.dtype(x), counts);
    let y = cx.b.push(Op::Slice(parts), &[x], shape);
    Ok(reversed(cx, y, &plan.taken))
}

fn read(cx: &mut LowerCtx, x: InstId, window: &Window) -> InstId {
    let operands = [&[x][..], &window.starts].concat();
    cx.b.add_inst(Op::DynamicSlice(window.sizes.clone()), &operands)
}

fn reversed(cx: &mut LowerCtx, x: InstId, taken: &[SliceRange]) -> InstId {
    let back: Vec<usize> = (0..taken.len()).filter(|&i| taken[i].stride < 0).collect();
    if back.is_empty() { x } else { cx.b.add_inst(Op::Reverse(back), &[x]) }
}

fn strided_slice(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let plan = plan(cx, &dims, 1, true)?;
    let y = take(cx, x, &plan)?;
    let y = cx.b.reshape(y, &plan.result);
    cx.one_output(y)
}

/// Lowers an assignment to a strided slice: the input with the slice replaced by `value`.
pub fn strided_update(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, value) = (cx.arg(0)?, cx.dims(0)?, cx.arg(4)?);
    let plan = plan(cx, &dims, 1, false)?;
    let value = cx.b.broadcast_to(value, &plan.result);
    let y = put(cx, value, &plan, &dims, x);
    cx.one_output(y)
}

/// Lowers `StridedSliceGrad`: zeros with the slice replaced by the gradient.
fn strided_gradient(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, dy) = (super::shape::shape_from_input(cx, 0)?, cx.arg(4)?);
    let plan = plan(cx, &dims, 1, false)?;
    let zeros = cx.b.full(cx.b.dtype(dy), &dims, 0.0);
    let y = put(cx, dy, &plan, &dims, zeros);
    cx.one_output(y)
}

/// `onto`, of sizes `dims`, with `value` written to the elements that the plan takes.
fn put(cx: &mut LowerCtx, value: InstId, plan: &Plan, dims: &[Dim], onto: InstId) -> InstId {
    let counts: Vec<Dim> = plan.taken.iter().map(|t| t.count).collect();
    if counts.iter().any(|count| count.is_zero()) {
        return onto;
    }
    let value = cx.b.reshape(value, &counts);
    let value = reversed(cx, value, &plan.taken);
    let Some(window) = &plan.window else { return scattered(cx, value, &plan.taken, dims, onto) };
    let value = if counts == window.sizes {
        value
    } else {
        let before = read(cx, onto, window);
        scattered(cx, value, &plan.taken, &window.sizes, before)
    };
    let operands = [&[onto, value][..], &window.starts].concat();
    cx.b.add_inst(Op::DynamicUpdateSlice, &operands)
}

/// `onto`, of sizes `dims`, with `value` scattered to these elements, in ascending order.
fn scattered(cx: &mut LowerCtx, value: InstId, taken: &[SliceRange], dims: &[Dim], onto: InstId) -> InstId {
    let pad = |(t, &d): (&SliceRange, &Dim)| {
        // A stride beyond the array's end is as good as one to its end.
        let stride = Dim::from(t.stride.unsigned_abs());
        let step = if d.varies() { stride } else { stride.min(d.max(1)) };
        let low = t.low();
        PadDim { low, high: d - low - t.covered(step), interior: step - 1 }
    };
    let sizes = cx.b.dims(value).to_vec();
    let pads: Vec<_> = taken.iter().zip(dims).map(pad).collect();
    let zero = cx.b.scalar(cx.b.dtype(value), 0.0);
    let spread = cx.b.pad(value, zero, &pads);
    let yes = cx.b.full(DType::Pred, &sizes, 1.0);
    let no = cx.b.scalar(DType::Pred, 0.0);
    let mask = cx.b.pad(yes, no, &pads);
    cx.b.select(mask, spread, onto)
}
