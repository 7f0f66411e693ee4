//! Ops whose output sizes depend on the data: `Where`, `Unique`, `DynamicPartition`.
use super::gather::gather_along_axis;
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Dim, InstId, Op};
use crate::ops::checks;
use crate::ops::compact::{Compaction, compact_mask, prefix_reduce, scatter_selected};
use crate::ops::host::{dynamic_partition_shape as partition_shape, unique_shape, where_shape};
use crate::ops::math::special::table_keys_equal;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::product;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Where", "condition -> index", nonzero_indices).shape(where_shape),
    op("Unique", "x -> y idx", |cx| unique(cx, false)).shape(|cx| unique_shape(cx, false)),
    op("UniqueV2", "x axis -> y idx", |cx| unique(cx, false)).shape(|cx| unique_shape(cx, false)).constant_inputs(&[1]),
    op("UniqueWithCounts", "x -> y idx count", |cx| unique(cx, true)).shape(|cx| unique_shape(cx, true)),
    op("UniqueWithCountsV2", "x axis -> y idx count", |cx| unique(cx, true))
        .shape(|cx| unique_shape(cx, true))
        .constant_inputs(&[1]),
    op("DynamicPartition", "data partitions -> outputs*", partition)
        .with_check(checks::check_partition_numbers)
        .moves_strings()
        .shape(partition_shape),
];

/// Largest number of element comparisons for pairs of rows, about a second of work.
const MOST_PAIRS: u64 = 1 << 30;

/// Lowers `Where`: row-major indices of the nonzero elements, `s64[count, rank]`.
pub(in crate::ops) fn nonzero_indices(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let dims = cx.b.dims(x).to_vec();
    let total = product(&dims).ok_or_else(|| cx.shape_mismatch("the size overflows"))?;
    let zero = cx.b.full_like(x, 0.0);
    let holds = cx.b.compare(Direction::Ne, x, zero);
    let flat = cx.b.reshape(holds, &[total]);
    let Compaction { places, count, .. } = compact_mask(cx, flat)?;
    let size = cx.data_dependent_size(count, total, "the result")?;
    let places = cx.first_elements(places, size)?;
    let mut rest = cx.b.convert(places, DType::S64);
    let mut columns = Vec::with_capacity(dims.len());
    for &n in dims.iter().rev() {
        let by = cx.b.full(DType::S64, &[size], n.max(1));
        let at = cx.b.elementwise(ScalarOp::Remainder, &[rest, by]);
        rest = cx.b.div(rest, by);
        columns.push(cx.b.reshape(at, &dims![size, 1]));
    }
    columns.reverse();
    let index = match columns.is_empty() {
        true => cx.b.full(DType::S64, &dims![size, 0], 0.0),
        false => cx.b.concatenate(&columns, 1),
    };
    cx.one_output(index)
}

/// Lowers `Unique`: the distinct values in order of first occurrence, for each element the position of its value among them,
/// and with `counts` the number of occurrences of each.
fn unique(cx: &mut LowerCtx, counts: bool) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let axes = if cx.args.len() > 1 { cx.constant_ints(1)? } else { vec![] };
    let axis = match (&axes[..], cx.b.rank(x)) {
        ([], 1) => 0,
        (&[axis], rank) => cx.normalize_axis(axis, rank)?,
        (axes, rank) => return Err(cx.shape_mismatch(format!("unique along {axes:?} of rank {rank}"))),
    };
    let n = cx.b.dims(x)[axis];
    let index_type = cx.attr_dtype("out_idx")?;
    let is_vector = cx.b.dims(x).iter().enumerate().all(|(a, &size)| a == axis || size == 1);
    let first_of = if is_vector {
        let vector = cx.b.reshape(x, &[n]);
        first_equal(cx, vector)?
    } else {
        first_equal_row(cx, x, axis)?
    };
    let own = cx.b.iota(DType::S32, &[n], 0);
    let is_first = cx.b.compare(Direction::Eq, first_of, own);
    let Compaction { places, before, count } = compact_mask(cx, is_first)?;
    let index = gather_along_axis(cx, before, first_of, 0, 0)?;
    let size = cx.data_dependent_size(count, n, "the list of values")?;
    let places = cx.first_elements(places, size)?;
    let values = gather_along_axis(cx, x, places, axis, 0)?;
    let mut out = vec![Value::Array(values), Value::Array(cx.b.convert(index, index_type))];
    if counts {
        let ones = cx.b.full(DType::S32, &[n], 1.0);
        let none = cx.b.full(DType::S32, &[n], 0.0);
        let all = match n {
            n if n.is_zero() => none,
            _ => {
                let to = cx.b.reshape(index, &dims![n, 1]);
                super::scatter(cx, none, to, ones, Some(ScalarOp::Add))?
            }
        };
        let all = cx.first_elements(all, size)?;
        out.push(Value::Array(cx.b.convert(all, index_type)));
    }
    Ok(out)
}

/// Position of the first element that equals each element of a vector, `s32[n]`, found by sorting.
fn first_equal(cx: &mut LowerCtx, x: InstId) -> Result<InstId> {
    let n = cx.b.dims(x)[0];
    let own = cx.b.iota(DType::S32, &[n], 0);
    if n.is_zero() {
        return Ok(own);
    }
    // -0 and 0 have the same sort key, so that they are equal.
    let zero = cx.b.full_like(x, 0.0);
    let key = if matches!(cx.b.dtype(x), DType::F32 | DType::F64) { cx.b.add(x, zero) } else { x };
    let comp = cx.b.ascending_computation(cx.b.dtype(key));
    let sorted = cx.b.add_inst(Op::Sort { dim: 0, is_stable: true, comp }, &[key, own]);
    let (keys, places) = (cx.b.get_tuple_element(sorted, 0), cx.b.get_tuple_element(sorted, 1));
    let (head, tail) =
        (cx.b.slice_axis(keys, 0, Dim::from(0), n.min(1)), cx.b.slice_axis(keys, 0, Dim::from(0), (n - 1).max(0)));
    let previous = cx.b.concatenate(&[head, tail], 0);
    let same = table_keys_equal(cx.b, keys, previous);
    let differs = cx.b.unary(ScalarOp::Not, same);
    // Start of the run of equal elements to which each element belongs.
    let none = cx.b.full(DType::S32, &[n], 0.0);
    let begins = cx.b.select(differs, own, none);
    let begins = prefix_reduce(cx, begins, ScalarOp::Maximum, 0.0);
    let first_of = gather_along_axis(cx, places, begins, 0, 0)?;
    let all = cx.b.full(DType::Pred, &[n], 1.0);
    scatter_selected(cx, all, places, Some(first_of))
}

/// Position of the first slice along `axis` that equals each slice, `s32[n]`, found by comparing all pairs.
fn first_equal_row(cx: &mut LowerCtx, x: InstId, axis: usize) -> Result<InstId> {
    let dims = cx.b.dims(x).to_vec();
    let n = dims[axis];
    let order: Vec<usize> = std::iter::once(axis).chain((0..dims.len()).filter(|&a| a != axis)).collect();
    let rest: Dim = dims.iter().enumerate().filter(|(a, _)| *a != axis).map(|(_, n)| n).product();
    if n.saturating_mul(n).saturating_mul(rest) > MOST_PAIRS {
        return Err(
            cx.unsupported_case(format!("unique parts along axis {axis} of {dims:?}: too many pairs to compare"))
        );
    }
    let rows = cx.b.transpose(x, &order);
    let rows = cx.b.reshape(rows, &[n, rest]);
    let (ones, others) = (cx.b.broadcast(rows, &[n, n, rest], &[0, 2]), cx.b.broadcast(rows, &[n, n, rest], &[1, 2]));
    let differs = cx.b.compare(Direction::Ne, ones, others);
    let differs = cx.b.convert(differs, DType::S32);
    let zero = cx.b.scalar(DType::S32, 0.0);
    let differs = cx.b.reduce(differs, zero, ScalarOp::Maximum, &[2]);
    let none = cx.b.full_like(differs, 0.0);
    let is_equal = cx.b.compare(Direction::Eq, differs, none);
    let (other, behind) = (cx.b.iota(DType::S32, &[n, n], 1), cx.b.full(DType::S32, &[n, n], f64::from(i32::MAX)));
    let at = cx.b.select(is_equal, other, behind);
    let behind = cx.b.scalar(DType::S32, f64::from(i32::MAX));
    let first = cx.b.reduce(at, behind, ScalarOp::Minimum, &[1]);
    // A slice with a NaN equals no slice, not even itself; its own position stands for it.
    let own = cx.b.iota(DType::S32, &[n], 0);
    Ok(cx.b.min(first, own))
}

/// Lowers `DynamicPartition`: the rows of `data` of each partition, in order.
fn partition(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (data, groups) = (cx.arg(0)?, cx.arg(1)?);
    let (dims, places) = (cx.b.dims(data).to_vec(), cx.b.dims(groups).to_vec());
    if !dims.starts_with(&places) {
        return Err(cx.shape_mismatch(format!("partitions {places:?} are not the leading dimensions of {dims:?}")));
    }
    let count = cx.require_attr(cx.node.int("num_partitions"), "num_partitions")?;
    cx.reject_constant_indices(1, &[Dim::size(count).unwrap_or(Dim::from(0))])?;
    let rows = product(&places).ok_or_else(|| cx.shape_mismatch("the size overflows"))?;
    let at = places.len();
    let groups = cx.b.reshape(groups, &[rows]);
    let data = cx.b.reshape(data, &[&[rows][..], &dims[places.len()..]].concat());
    let mut out = Vec::new();
    for group in 0..count {
        let number = cx.b.full(cx.b.dtype(groups), &[rows], group as f64);
        let own = cx.b.compare(Direction::Eq, groups, number);
        let Compaction { places, count, .. } = compact_mask(cx, own)?;
        let size = cx.data_dependent_size(count, rows, "a group")?;
        let places = cx.first_elements(places, size)?;
        let row = &dims[at..];
        // A gather from rows without elements would index into nothing.
        out.push(Value::Array(match row.iter().any(|n| n.is_zero()) {
            true => cx.b.full(cx.b.dtype(data), &[&[size], row].concat(), 0.0),
            false => gather_along_axis(cx, data, places, 0, 0)?,
        }));
    }
    Ok(out)
}
