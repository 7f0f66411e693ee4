//! `Bincount`: counts of each number, or sums of the weights of equal numbers.
//!
//! Negative numbers and numbers without a bin are left out; some of TensorFlow's kernels reject negative ones at run time.
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::ShapeCtx;
use crate::ops::array::scatter::scatter;
use crate::ops::array::shape::check_array_size;
use crate::ops::checks;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::ragged::{row_count, row_positions};
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Bincount", "arr size weights -> bins", bincount)
        .with_check(checks::check_non_negative_input)
        .shape(bincount_shape)
        .constant_inputs(&[1]),
    op("DenseBincount", "input size weights -> output", dense)
        .with_check(checks::check_non_negative_input)
        .shape(dense_shape)
        .constant_inputs(&[1]),
    op("RaggedBincount", "splits values size weights -> output", ragged).shape(ragged_shape).constant_inputs(&[2]),
    op("SparseBincount", "indices values dense_shape size weights -> output", sparse)
        .shape(sparse_shape)
        .constant_inputs(&[3]),
];

/// Weights of the numbers in input `values`, from input `i`; 1 if that is empty.
fn weights(cx: &mut LowerCtx, i: usize, values: usize) -> Result<InstId> {
    let (weights, places) = (cx.arg(i)?, cx.dims(values)?);
    let dims = cx.b.dims(weights);
    // An empty weights array stands for no weights even if there happen to be no numbers.
    let are_none = crate::symbolic::has_zero(dims) && (dims != places || cx.constant(i).is_ok());
    match are_none {
        true => Ok(cx.b.full(cx.b.dtype(weights), &places, 1.0)),
        false if dims == places => Ok(weights),
        false => Err(cx.shape_mismatch(format!("weights of {dims:?} for numbers of {places:?}"))),
    }
}

/// Bins of these sizes with `weights` added at the indices `ids`; with `binary_output` a bin is 1 if any number falls into it.
fn filled(cx: &mut LowerCtx, sizes: Vec<Dim>, ids: InstId, weights: InstId) -> Result<Vec<Value>> {
    let sizes = check_array_size(sizes)?;
    let bins = cx.b.full(cx.b.dtype(weights), &sizes, 0.0);
    if sizes.last().is_some_and(|bins| bins.is_zero()) {
        return cx.one_output(bins);
    }
    let y = match cx.bool_attr("binary_output") {
        true => {
            let ones = cx.b.full_like(weights, 1.0);
            scatter(cx, bins, ids, ones, None)?
        }
        false => scatter(cx, bins, ids, weights, Some(ScalarOp::Add))?,
    };
    cx.one_output(y)
}

/// Lowers `Bincount`: one row of bins for numbers of any shape.
fn bincount(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (arr, places, n, weights) = (cx.arg(0)?, cx.dims(0)?, cx.size_from_input(1)?, weights(cx, 2, 0)?);
    let ids = cx.b.reshape(arr, &[&places[..], &dims![1]].concat());
    filled(cx, vec![n], ids, weights)
}

/// Lowers `DenseBincount`: bins of a vector, or of each row of a matrix.
fn dense(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, places, n, weights) = (cx.arg(0)?, cx.dims(0)?, cx.size_from_input(1)?, weights(cx, 2, 0)?);
    let (lead, count) = match places[..] {
        [] => (vec![], Dim::from(1)),
        [count] => (Vec::new(), count),
        [rows, count] => (vec![rows], count),
        _ => return Err(cx.shape_mismatch(format!("numbers of {places:?}; a vector or a matrix is needed"))),
    };
    let column = [&lead[..], &dims![count, 1]].concat();
    let mut ids = cx.b.reshape(x, &column);
    if !lead.is_empty() {
        let rows = cx.b.iota(cx.b.dtype(x), &column, 0);
        ids = cx.b.concatenate(&[rows, ids], 2);
    }
    let weights = cx.b.reshape(weights, &[&lead[..], &[count]].concat());
    filled(cx, [&lead[..], &[n]].concat(), ids, weights)
}

/// Bins for each of `rows` rows; `row` gives the row of each value in input 1.
fn of_rows(cx: &mut LowerCtx, rows: Dim, row: InstId, size: usize, weights_at: usize) -> Result<Vec<Value>> {
    let (values, count) = (cx.arg(1)?, cx.dims(1)?[0]);
    let (n, weights) = (cx.size_from_input(size)?, weights(cx, weights_at, 1)?);
    let row = cx.b.convert(row, cx.b.dtype(values));
    let columns = [row, values].map(|x| cx.b.reshape(x, &dims![count, 1]));
    let ids = cx.b.concatenate(&columns, 1);
    filled(cx, vec![rows, n], ids, weights)
}

/// Lowers `RaggedBincount`: bins of each row of a ragged tensor.
fn ragged(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (splits, values) = (cx.arg(0)?, cx.dims(1)?);
    let (Some(n), &[count]) = (row_count(cx, splits), &values[..]) else {
        return Err(cx.shape_mismatch(format!("splits of {} and values of {values:?}", cx.b.shape(splits))));
    };
    let (row, _) = row_positions(cx, splits, count)?;
    of_rows(cx, n, row, 2, 3)
}

/// Lowers `SparseBincount`: bins of a sparse vector, or of each row of a sparse tensor.
fn sparse(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (indices, places, values) = (cx.arg(0)?, cx.dims(0)?, cx.dims(1)?);
    let (shape, rank) = (cx.arg(2)?, cx.dims(2)?);
    let (&[n, m], &[count], &[dims]) = (&places[..], &values[..], &rank[..]) else {
        return Err(cx.shape_mismatch(format!("indices of {places:?}, values of {values:?} and a shape of {rank:?}")));
    };
    if n != count || m != dims || dims == 0 {
        return Err(
            cx.shape_mismatch(format!("indices of {places:?} of {count} values in a shape of {dims} dimensions"))
        );
    }
    if dims == 1 {
        let (values, n, weights) = (cx.arg(1)?, cx.size_from_input(3)?, weights(cx, 4, 1)?);
        let ids = cx.b.reshape(values, &dims![count, 1]);
        return filled(cx, vec![n], ids, weights);
    }
    let rows = cx.size_from_element(shape, Dim::from(0), "the bins of all rows")?;
    let row = cx.b.slice_axis(indices, 1, Dim::from(0), Dim::from(1));
    of_rows(cx, rows, row, 3, 4)
}

fn bincount_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.size_from_input(1);
    cx.one_output_like(2, vec![n])
}

/// Shape function of `DenseBincount`: a row of bins for each row of the input.
fn dense_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.size_from_input(1);
    match cx.ranked_dims(0)? {
        Some(dims) => cx.one_output_like(2, [&dims[..dims.len().saturating_sub(1)], &[n]].concat()),
        None => {
            let dims = cx.unranked_from(0);
            cx.one_output_like(2, dims)
        }
    }
}

/// Shape function of `RaggedBincount`: a row of bins for each row of the splits.
fn ragged_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (splits, n) = (cx.dims_of_rank(0, 1)?[0], cx.size_from_input(2));
    let rows = cx.sub(splits, InferredDim::Known(1));
    cx.one_output_like(3, vec![rows, n])
}

/// Shape function of `SparseBincount`: a row of bins for each row of the dense shape, if it has more than one dimension.
fn sparse_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.size_from_input(3);
    let rank = cx.dims_of_rank(2, 1)?[0];
    let rows = cx.partial_ints(2).and_then(|sizes| sizes.first()?.as_dim());
    match rank {
        InferredDim::Known(1) => cx.one_output_like(4, vec![n]),
        InferredDim::Known(_) => {
            let rows = rows.unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(2)));
            cx.one_output_like(4, vec![rows, n])
        }
        InferredDim::Unknown(_) => {
            let dims = cx.unranked_from(2);
            cx.one_output_like(4, dims)
        }
    }
}
