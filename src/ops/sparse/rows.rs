//! `SparseFillEmptyRows` and its gradient.
use super::{column, columns, indices, total};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::scatter;
use crate::ops::compact::{prefix_reduce, scatter_selected};
use crate::ops::fact::Fact;
use crate::ops::host::sparse_fill_shape;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op(
        "SparseFillEmptyRows",
        "indices values dense_shape default_value -> output_indices output_values empty_row_indicator reverse_index_map",
        fill_empty_rows,
    ).moves_strings()
    .shape(sparse_fill_shape)
    .constant_inputs(&[2]),
    op("SparseFillEmptyRowsGrad", "reverse_index_map grad_values -> d_values d_default_value", fill_empty_rows_grad)
        .shape(fill_empty_rows_grad_shape),
];

/// Lowers `SparseFillEmptyRows`: adds an element in the first column of each empty row, to the `n` existing elements.
pub(in crate::ops) fn fill_empty_rows(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((places, n, rank), values, shape, default) = (indices(cx, 0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    if rank == 0 || cx.b.dims(shape) != [Dim::from(rank)] {
        return Err(cx.shape_mismatch(format!("indices of rank {rank} into {}", cx.b.shape(shape))));
    }
    // The length of rows does not matter.
    let rows = match cx.size_from_element(shape, Dim::from(0), "the list of rows")? {
        rows if rows < 1u64 << 31 => rows,
        rows => return Err(Error::user(Code::TooLarge, format!("{rows} rows"))),
    };
    if rows.is_zero() && n > 0 {
        return Err(cx.shape_mismatch(format!("{n} elements in no rows")));
    }
    // A row out of range counts as the last one.
    let (zero, last) = (cx.b.scalar(DType::S64, 0.0), cx.b.scalar(DType::S64, rows.saturating_sub(1)));
    let row = column(cx, places, 0);
    let row = cx.b.max(row, zero);
    let row = cx.b.min(row, last);
    let number = cx.b.convert(row, DType::S32);
    let (none, ones) = (cx.b.full(DType::S32, &[rows], 0.0), cx.b.full(DType::S32, &[n], 1.0));
    let to = cx.b.reshape(number, &dims![n, 1]);
    let counts = scatter(cx, none, to, ones, Some(ScalarOp::Add))?;
    let empty = cx.b.compare(Direction::Eq, counts, none);
    let gaps = cx.b.convert(empty, DType::S32);
    let (gaps_before, before) = (exclusive(cx, gaps), exclusive(cx, counts));
    // Output position of each element: by row, in their order within a row.
    let at = if n.is_zero() {
        cx.b.full(DType::S32, &dims![0], 0.0)
    } else {
        let order = super::order::sorting_permutation(cx, number);
        let all = cx.b.full(DType::Pred, &[n], 1.0);
        let rank = scatter_selected(cx, all, order, None)?;
        let shift = gather_along_axis(cx, gaps_before, number, 0, 0)?;
        cx.b.add(rank, shift)
    };
    let own = cx.b.add(before, gaps_before);
    let outside = cx.b.full(DType::S32, &[rows], -1.0);
    let gap = cx.b.select(empty, own, outside);
    let (of, added) = (total(cx, ones), total(cx, gaps));
    let count = cx.b.add(of, added);
    let size = cx.data_dependent_size(count, n + rows, "the list of elements")?;
    let to = (cx.b.reshape(at, &dims![n, 1]), cx.b.reshape(gap, &dims![rows, 1]));
    let filled = |cx: &mut LowerCtx, x: InstId, gap: InstId| -> Result<InstId> {
        let base = cx.b.full(cx.b.dtype(x), &[n + rows], 0.0);
        let y = scatter(cx, base, to.0, x, None)?;
        let y = scatter(cx, y, to.1, gap, None)?;
        Ok(cx.b.slice_axis(y, 0, Dim::from(0), size))
    };
    let numbers = cx.b.iota(DType::S64, &[rows], 0);
    let zeros = cx.b.full(DType::S64, &[rows], 0.0);
    let mut all = vec![filled(cx, row, numbers)?];
    cx.ranges.record_index_set(cx.b, all[0], rows);
    for k in 1..rank {
        let x = column(cx, places, k);
        all.push(filled(cx, x, zeros)?);
    }
    let values = filled(cx, values, default)?;
    let places = columns(cx, &all, size);
    let map = cx.b.convert(at, DType::S64);
    Ok([places, values, empty, map].map(Value::Array).into())
}

/// Exclusive prefix sum of a vector.
fn exclusive(cx: &mut LowerCtx, x: InstId) -> InstId {
    let up_to = prefix_reduce(cx, x, ScalarOp::Add, 0.0);
    cx.b.sub(up_to, x)
}

/// Lowers the gradients of the values, and of the default value as the sum over the added elements.
pub(in crate::ops) fn fill_empty_rows_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (map, grad) = (cx.arg(0)?, cx.arg(1)?);
    cx.reject_constant_indices(0, &[cx.b.dims(grad).first().copied().unwrap_or(Dim::from(0))])?;
    let values = gather_along_axis(cx, grad, map, 0, 0)?;
    let (dtype, n) = (cx.b.dtype(grad), cx.b.dims(map)[0]);
    let (zeros, zero) = (cx.b.full(dtype, &[n], 0.0), cx.b.scalar(dtype, 0.0));
    let to = cx.b.reshape(map, &dims![n, 1]);
    let rest = scatter(cx, grad, to, zeros, None)?;
    let default = cx.b.reduce(rest, zero, ScalarOp::Add, &[0]);
    Ok(vec![Value::Array(values), Value::Array(default)])
}

pub(in crate::ops) fn fill_empty_rows_grad_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(vec![cx.one_output_like(1, cx.dims(0)?)?.remove(0), cx.one_output_like(1, vec![])?.remove(0)])
}
