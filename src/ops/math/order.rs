//! `NthElement`, and isotonic regression.
use super::scan;
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::array::gather::gather_along_axis;
use crate::ops::counted_loop::counted_loop;
use crate::ops::fact::{Dims, Fact};
use crate::ops::math::special::{add_scalar, compare_scalar};
use crate::ops::op_lowering::op;
use crate::ops::shape::S32;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::guarded_counts;
use crate::tensor::{DType, saturating_element_count};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("NthElement", "input n -> values", nth).shape(nth_shape).dtypes("real numbers"),
    op("IsotonicRegression", "input -> output segments", isotonic).shape(isotonic_shape).dtypes("real numbers"),
];

/// Lowers `NthElement`: the element of each row at position `n` in sorted order, counted from the end with `reverse`.
fn nth(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, n, dims) = (cx.arg(0)?, cx.arg(1)?, cx.dims(0)?);
    let Some((&long, lead)) = dims.split_last() else { return Err(cx.shape_mismatch("a scalar has no rows")) };
    if cx.b.rank(n) != 0 || long == 0 {
        return Err(cx.shape_mismatch(format!("place {} in rows of {long}", cx.b.shape(n))));
    }
    if let Some(n) = cx.constant(1).ok().and_then(|t| t.get_i64(0))
        && !Dim::size(n).is_ok_and(|n| n < long)
    {
        return Err(cx.shape_mismatch(format!("place {n} in rows of {long}")));
    }
    let dtype = cx.b.dtype(x);
    if dtype.is_complex() || dtype == DType::Pred {
        return Err(cx.unsupported_case(format!("NthElement of {dtype}; real numbers are supported")));
    }
    if crate::symbolic::has_zero(lead) {
        let none = cx.b.full(dtype, lead, 0.0);
        return cx.one_output(none);
    }
    let axis = lead.len();
    let comp = cx.b.ascending_computation(dtype);
    let own = cx.b.iota(DType::S32, &dims, axis);
    let sorted = cx.b.add_inst(Op::Sort { dim: axis, is_stable: true, comp }, &[x, own]);
    let sorted = cx.b.get_tuple_element(sorted, 0);
    let place = if cx.bool_attr("reverse") {
        let last = cx.b.full_like(n, long - 1);
        cx.b.sub(last, n)
    } else {
        n
    };
    let zero = cx.b.full_like(place, 0.0);
    let mut operands = vec![sorted];
    operands.resize(axis + 1, zero);
    operands.push(place);
    let one = cx.b.add_inst(Op::DynamicSlice([lead, &dims![1]].concat()), &operands);
    let y = cx.b.reshape(one, lead);
    cx.one_output(y)
}

/// Lowers `IsotonicRegression`: the non-increasing sequences nearest to the rows, and for each element the number of its pool.
///
/// Pools of adjacent elements that increase are merged into their mean until none do (Kruskal's method): in each of twice as
/// many iterations as it has elements, a row pushes its next element as a pool, or merges its last two pools.
fn isotonic(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, out) = (cx.arg(0)?, cx.dims(0)?, cx.attr_dtype("output_dtype")?);
    let Some((&n, lead)) = dims.split_last() else { return Err(cx.shape_mismatch("a scalar has no rows")) };
    let count = saturating_element_count(&guarded_counts(lead));
    let x = cx.b.convert(x, out);
    if crate::symbolic::has_zero(&dims) {
        let none = cx.b.full(DType::S32, &dims, 0.0);
        return Ok(vec![Value::Array(x), Value::Array(none)]);
    }
    let rows = dims![count, n];
    let b = &mut *cx.b;
    let x = b.reshape(x, &rows);
    let (none, next) = (b.full_like(x, 0.0), b.full(DType::S32, &dims![count], 0.0));
    let sizes = b.full(DType::S32, &rows, 0.0);
    let parts = counted_loop(b, "pool", 2 * n, &[x, next, next, none, sizes], |b, _, parts| {
        pool(b, std::array::from_fn(|i| parts[i])).to_vec()
    });
    let [pools, sums, sizes] = [parts[2], parts[3], parts[4]];
    let divisor = b.convert(sizes, out);
    let means = b.div(sums, divisor);
    // An element belongs to the last pool that starts at or before it.
    let comp = b.scalar_computation(ScalarOp::Add, DType::S32);
    let ends = scan::prefix_reduction(cx, sizes, 1, comp, 0.0);
    let b = &mut *cx.b;
    let begins = b.sub(ends, sizes);
    let number = b.iota(DType::S32, &rows, 1);
    let pools = b.broadcast(pools, &rows, &[0]);
    let exists = b.compare(Direction::Lt, number, pools);
    let behind = b.full(DType::S32, &rows, n);
    let begins = b.select(exists, begins, behind);
    let cube = dims![count, n, n];
    let (begins, own) = (b.broadcast(begins, &cube, &[0, 2]), b.iota(DType::S32, &cube, 1));
    let is_before = b.compare(Direction::Le, begins, own);
    let is_before = b.convert(is_before, DType::S32);
    let zero = b.scalar(DType::S32, 0.0);
    let segments = b.reduce(is_before, zero, ScalarOp::Add, &[2]);
    let segments = add_scalar(b, segments, -1.0);
    let y = gather_along_axis(cx, means, segments, 1, 1)?;
    let (y, segments) = (cx.b.reshape(y, &dims), cx.b.reshape(segments, &dims));
    Ok(vec![Value::Array(y), Value::Array(segments)])
}

/// Isotonic regression by pools of adjacent violators: the loop body of one step for each row of `x [rows, n]`; the state is the next element and the number of pools, `[rows]`, and
/// the sums and sizes of the pools.
fn pool(b: &mut Builder, [x, next, pools, sums, sizes]: [InstId; 5]) -> [InstId; 5] {
    let (dims, dtype) = (b.dims(x).to_vec(), b.dtype(x));
    let number = b.iota(DType::S32, &dims, 1);
    let at = |b: &mut Builder, place: InstId| {
        let wide = b.broadcast(place, &dims, &[0]);
        b.compare(Direction::Eq, number, wide)
    };
    let one_of = |b: &mut Builder, x: InstId, mask: InstId| {
        let none = b.full_like(x, 0.0);
        let alone = b.select(mask, x, none);
        let zero = b.scalar(b.dtype(x), 0.0);
        b.reduce(alone, zero, ScalarOp::Add, &[1])
    };
    let (last, before) = (add_scalar(b, pools, -1.0), add_scalar(b, pools, -2.0));
    let (on_last, on_before) = (at(b, last), at(b, before));
    let [sum, earlier] = [on_last, on_before].map(|mask| one_of(b, sums, mask));
    let [size, earlier_size] = [on_last, on_before].map(|mask| one_of(b, sizes, mask));
    let [wide_size, wide_earlier] = [size, earlier_size].map(|x| b.convert(x, dtype));
    let (mean, earlier_mean) = (b.div(sum, wide_size), b.div(earlier, wide_earlier));
    let rises = b.compare(Direction::Gt, mean, earlier_mean);
    let several = compare_scalar(b, Direction::Ge, pools, 2.0);
    let joins = b.binary(ScalarOp::And, rises, several);
    let left = compare_scalar(b, Direction::Lt, next, dims[1]);
    let stays = b.unary(ScalarOp::Not, joins);
    let pushes = b.binary(ScalarOp::And, left, stays);
    // Update: a merged pool replaces the one before, or a new pool is appended.
    let (on_new, own) = (at(b, pools), at(b, next));
    let element = one_of(b, x, own);
    let (both, both_sizes) = (b.add(earlier, sum), b.add(earlier_size, size));
    let one = b.full_like(size, 1.0);
    let (value, value_size) = (b.select(joins, both, element), b.select(joins, both_sizes, one));
    let wide = |b: &mut Builder, x: InstId| b.broadcast(x, &dims, &[0]);
    let (wide_joins, wide_pushes) = (wide(b, joins), wide(b, pushes));
    let (joined, pushed) =
        (b.binary(ScalarOp::And, on_before, wide_joins), b.binary(ScalarOp::And, on_new, wide_pushes));
    let gone = b.binary(ScalarOp::And, on_last, wide_joins);
    let written = b.binary(ScalarOp::Or, joined, pushed);
    let mut stored = |x: InstId, value: InstId| {
        let (value, none) = (wide(b, value), b.full_like(x, 0.0));
        let x = b.select(written, value, x);
        b.select(gone, none, x)
    };
    let (sums, sizes) = (stored(sums, value), stored(sizes, value_size));
    let (joins, pushes) = (b.convert(joins, DType::S32), b.convert(pushes, DType::S32));
    let pools = b.sub(pools, joins);
    [x, b.add(next, pushes), b.add(pools, pushes), sums, sizes]
}

fn nth_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.ranked_dims(0)?.as_deref() {
        Some([lead @ .., _]) => Dims::ranked(lead),
        Some([]) => return Err(cx.shape_mismatch("a scalar has no rows")),
        None => cx.unranked_from(0),
    };
    cx.one_output_like(0, dims)
}

fn isotonic_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims(0)?;
    Ok(vec![Fact::new(cx.attr_type("output_dtype"), dims.clone()), Fact::new(S32, dims)])
}
