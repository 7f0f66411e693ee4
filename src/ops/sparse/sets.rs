//! `set_ops.cc`: set operations along the last dimension. A set is a row of numbers, whose order and repetitions do not matter.
use super::runs::{SortedRuns, mask_positions, position_in_group, unravel_indices};
use super::{columns, indices, linear};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::{scatter, shape::shape_from_input};
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::shape::{S32, S64};
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

const TYPES: &str = "s8, s16, s32, s64, u8, u16";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("SetSize", "set_indices set_values set_shape -> size", set_size).shape(size_shape).constant_inputs(&[2]).dtypes(TYPES),
    op("DenseToDenseSetOperation", "set1 set2 -> result_indices result_values result_shape", |cx| {
        operation(cx, [Set::Dense(0), Set::Dense(1)])
    }).shape(|cx| result_shape(cx, 0)).dtypes(TYPES),
    op("DenseToSparseSetOperation", "set1 set2_indices set2_values set2_shape -> result_indices result_values result_shape", |cx| {
        operation(cx, [Set::Dense(0), Set::Sparse(1)])
    }).shape(|cx| result_shape(cx, 0)).dtypes(TYPES),
    op("SparseToSparseSetOperation", "set1_indices set1_values set1_shape set2_indices set2_values set2_shape -> result_indices result_values result_shape", |cx| {
        operation(cx, [Set::Sparse(0), Set::Sparse(3)])
    }).shape(|cx| result_shape(cx, 1)).dtypes(TYPES),
];

/// Position of a set operand among the inputs.
#[derive(Clone, Copy)]
enum Set {
    /// Dense array, the input with this index.
    Dense(usize),
    /// Sparse tensor, whose indices, values and shape start at this input.
    Sparse(usize),
}

/// Sets of one operand of a set operation.
struct Sets {
    /// Row-major number of the set that contains each element, over all axes but the last: `s64[n]`.
    group: InstId,
    /// Elements of all sets: `[n]`.
    values: InstId,
    /// Sizes of all axes but the last, `s64[rank - 1]`.
    shape: InstId,
    rank: usize,
}

fn check_type(cx: &LowerCtx, values: InstId) -> Result<()> {
    match cx.b.dtype(values) {
        DType::S8 | DType::S16 | DType::S32 | DType::S64 | DType::U8 | DType::U16 => Ok(()),
        other => Err(cx.unsupported_case(format!("{} of {other}; {TYPES} are supported", cx.node.op))),
    }
}

fn sets(cx: &mut LowerCtx, set: Set) -> Result<Sets> {
    match set {
        Set::Dense(i) => {
            let (x, dims) = (cx.arg(i)?, cx.dims(i)?);
            check_type(cx, x)?;
            let [lead @ .., long] = &dims[..] else {
                return Err(cx.shape_mismatch("sets in a scalar; at least two dimensions are needed"));
            };
            if lead.is_empty() {
                return Err(cx.shape_mismatch(format!("sets in {dims:?}; at least two dimensions are needed")));
            }
            let (groups, n) = (lead.iter().product(), dims.iter().product());
            let group = cx.b.iota(DType::S64, &[groups, *long], 0);
            let shape = cx.b.numbers(DType::S64, lead);
            let (group, values) = (cx.b.reshape(group, &[n]), cx.b.reshape(x, &[n]));
            Ok(Sets { group, values, shape, rank: dims.len() })
        }
        Set::Sparse(i) => {
            let ((places, n, rank), values, shape) = (indices(cx, i)?, cx.arg(i + 1)?, cx.arg(i + 2)?);
            check_type(cx, values)?;
            if rank < 2 || cx.b.dims(shape) != [Dim::from(rank)] || cx.b.dims(values) != [n] {
                return Err(cx.shape_mismatch(format!("{n} indices of rank {rank} for {}", cx.b.shape(values))));
            }
            let lead = Dim::from(rank) - 1;
            let (places, shape) =
                (cx.b.slice_axis(places, 1, Dim::from(0), lead), cx.b.slice_axis(shape, 0, Dim::from(0), lead));
            Ok(Sets { group: linear(cx, places, shape), values, shape, rank })
        }
    }
}

/// Lowers `SetSize`: the number of distinct elements of each set.
fn set_size(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let of = sets(cx, Set::Sparse(0))?;
    let dims = shape_from_input(cx, 2)?;
    let lead = &dims[..dims.len() - 1];
    let runs = SortedRuns::from_keys(cx, &[of.group, of.values])?;
    let (n, groups) = (cx.b.dims(of.group)[0], lead.iter().product());
    let counts = cx.b.full(DType::S32, &[groups], 0.0);
    let ones = cx.b.convert(runs.exists, DType::S32);
    let to = cx.b.reshape(runs.keys[0], &dims![n, 1]);
    let counts = scatter(cx, counts, to, ones, Some(ScalarOp::Add))?;
    let counts = cx.b.reshape(counts, lead);
    cx.one_output(counts)
}

/// Lowers a set operation: the elements of each pair of sets that the operation keeps, in ascending order.
fn operation(cx: &mut LowerCtx, operands: [Set; 2]) -> Result<Vec<Value>> {
    let (a, b) = (sets(cx, operands[0])?, sets(cx, operands[1])?);
    if a.rank != b.rank || cx.b.dtype(a.values) != cx.b.dtype(b.values) {
        let (x, y) = (cx.b.shape(a.values), cx.b.shape(b.values));
        return Err(cx.shape_mismatch(format!("sets in {} and {} dimensions, of {x} and {y}", a.rank, b.rank)));
    }
    let known = [&a, &b].map(|sets| crate::interp::constant_value(cx.b, sets.shape).and_then(|t| t.to_i64s()));
    if let [Some(x), Some(y)] = &known
        && x != y
    {
        return Err(cx.shape_mismatch(format!("sets in dimensions {x:?} and {y:?}")));
    }
    let group = cx.b.concatenate(&[a.group, b.group], 0);
    let values = cx.b.concatenate(&[a.values, b.values], 0);
    let sides = [(a.group, [1.0, 0.0]), (b.group, [0.0, 1.0])].map(|(part, is_side)| {
        let n = cx.b.dims(part)[0];
        is_side.map(|is| cx.b.full(DType::Pred, &[n], is))
    });
    let runs = SortedRuns::from_keys(cx, &[group, values])?;
    let mut holds = [runs.exists; 2];
    for (side, holds) in holds.iter_mut().enumerate() {
        let is_side = cx.b.concatenate(&[sides[0][side], sides[1][side]], 0);
        *holds = runs.reduce_runs(cx, is_side, Some(ScalarOp::Or), 0.0)?;
    }
    let kept = kept(cx, holds)?;
    let kept = cx.b.elementwise(ScalarOp::And, &[kept, runs.exists]);
    let (at, count) = mask_positions(cx, kept, "the list of elements")?;
    let (group, values) =
        (gather_along_axis(cx, runs.keys[0], at, 0, 0)?, gather_along_axis(cx, runs.keys[1], at, 0, 0)?);
    let place = position_in_group(cx, group);
    let place = cx.b.convert(place, DType::S64);
    let mut all = unravel_indices(cx, group, a.shape, a.rank - 1);
    all.push(place);
    let places = columns(cx, &all, count);
    // The last dimension is the size of the largest set.
    let none = cx.b.scalar(DType::S64, -1.0);
    let last = cx.b.reduce(place, none, ScalarOp::Maximum, &[0]);
    let one = cx.b.scalar(DType::S64, 1.0);
    let widest = cx.b.add(last, one);
    let widest = cx.b.reshape(widest, &dims![1]);
    let shape = cx.b.concatenate(&[a.shape, widest], 0);
    Ok([places, values, shape].map(Value::Array).into())
}

/// Whether the operation keeps elements that are in the first operand's set, in the second's, or in both.
fn kept(cx: &mut LowerCtx, [in_a, in_b]: [InstId; 2]) -> Result<InstId> {
    let name = cx.require_attr(cx.node.str("set_operation"), "set_operation")?.to_lowercase();
    let without = |cx: &mut LowerCtx, x: InstId, y: InstId| {
        let outside = cx.b.unary(ScalarOp::Not, y);
        cx.b.elementwise(ScalarOp::And, &[x, outside])
    };
    Ok(match &name[..] {
        "a-b" => without(cx, in_a, in_b),
        "b-a" => without(cx, in_b, in_a),
        "intersection" => cx.b.elementwise(ScalarOp::And, &[in_a, in_b]),
        "union" => cx.b.elementwise(ScalarOp::Or, &[in_a, in_b]),
        _ => return Err(Error::user(Code::BadAttr, format!("set_operation is `{name}`"))),
    })
}

fn size_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(2)?;
    let dims = match dims.as_ranked() {
        Some([lead @ .., _]) => Dims::ranked(lead),
        _ => cx.unranked(UnknownReason::Value(2)),
    };
    cx.one_output(S32, dims)
}

/// Shape function: indices, values and shape of sparse sets, whose elements have the type of input `i`.
fn result_shape(cx: &mut ShapeCtx, i: usize) -> Result<Vec<Fact>> {
    let n = cx.fresh_dim(UnknownReason::Data);
    let rank = match i {
        0 => cx.ranked_dims(0)?.map(|dims| InferredDim::Known(dims.len() as u64)),
        _ => Some(cx.dims_of_rank(0, 2)?[1]),
    };
    let rank = rank.unwrap_or_else(|| cx.fresh_dim(UnknownReason::Data));
    Ok(vec![
        Fact::new(S64, vec![n, rank].into()),
        Fact::new(cx.dtype(i), vec![n].into()),
        Fact::new(S64, vec![rank].into()),
    ])
}
