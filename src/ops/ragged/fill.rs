//! `RaggedFillEmptyRows`: gives empty rows a default value.
use crate::diag::Result;
use crate::dims;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::{PRED, S64};
use crate::ops::sparse::rows;
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op(
        "RaggedFillEmptyRows",
        "value_rowids values nrows default_value -> output_value_rowids output_values empty_row_indicator reverse_index_map",
        fill,
    )
    .shape(fill_shape)
    .constant_inputs(&[2]),
    op("RaggedFillEmptyRowsGrad", "reverse_index_map grad_values -> d_values d_default_value", rows::fill_empty_rows_grad)
        .shape(rows::fill_empty_rows_grad_shape),
];

/// Lowers `RaggedFillEmptyRows` like `SparseFillEmptyRows` of elements whose index is their row alone.
fn fill(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (ids, values, count, default) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let &[n] = cx.b.dims(ids) else {
        return Err(cx.shape_mismatch(format!("row numbers {}; a vector is needed", cx.b.shape(ids))));
    };
    if cx.b.dims(values) != [n] || cx.b.rank(count) != 0 {
        return Err(cx.shape_mismatch(format!("{} values of {n} row numbers", cx.b.shape(values))));
    }
    let (places, shape) = (cx.b.reshape(ids, &dims![n, 1]), cx.b.reshape(count, &dims![1]));
    let args = [places, values, shape, default].map(Value::Array).into();
    let mut all = rows::fill_empty_rows(&mut cx.with_args(args))?;
    if let Some(Value::Array(places)) = all.first().cloned() {
        let count = cx.b.dims(places)[0];
        all[0] = Value::Array(cx.b.reshape(places, &[count]));
    }
    Ok(all)
}

fn fill_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (n, own, rows) = (cx.fresh_dim(UnknownReason::Data), cx.dims_of_rank(0, 1)?[0], cx.size_from_input(2));
    Ok(vec![
        Fact::new(S64, vec![n].into()),
        Fact::new(cx.dtype(1), vec![n].into()),
        Fact::new(PRED, vec![rows].into()),
        Fact::new(S64, vec![own].into()),
    ])
}
