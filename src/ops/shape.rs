//! Shape functions and types that several families share.
use super::fact::{Dims, Fact};
use super::shape_ctx::ShapeCtx;
use super::symbols::{InferredDim, UnknownReason};
use crate::diag::Result;
use crate::graph::TfType;
use crate::tensor::DType;

/// Element type of 32-bit integers.
pub const S32: Option<TfType> = Some(TfType::Data(DType::S32));
/// Element type of 64-bit integers.
pub const S64: Option<TfType> = Some(TfType::Data(DType::S64));
/// Element type of truth values.
pub const PRED: Option<TfType> = Some(TfType::Data(DType::Pred));

/// Shape function: one output of the shape and type of the first input.
pub fn like_first_input(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output_like(0, cx.dims(0)?)
}

/// Shape function: one output of the shape and type of the second input.
pub fn like_second_input(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output_like(1, cx.dims(1)?)
}

/// Shape function: the outputs are the inputs, values included.
pub fn forward_inputs(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(cx.args.to_vec())
}

/// Shape function: one output that is the first input, value included.
pub fn forward_first_input(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(vec![cx.arg(0)?.clone()])
}

/// Shape function of an op without outputs.
pub fn no_outputs(_cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(vec![])
}

/// Shape function: one output of the shape that all inputs must have.
pub fn merge_inputs(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let mut dims = cx.dims(0)?;
    for arg in cx.args.iter().skip(1) {
        dims = cx.merge_shapes(&dims, &arg.dims)?;
    }
    cx.one_output_like(0, dims)
}

/// Shape function: one output whose shape is the value of input 0, and whose type attribute `dtype` names.
pub fn shape_from_input_value(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(0)?;
    cx.one_output_typed_by("dtype", dims)
}

/// Axes that input 1 lists, as a flag for each of `rank` axes; `None` if they are not known.
pub fn reduced_axes(cx: &ShapeCtx, rank: usize) -> Result<Option<Vec<bool>>> {
    let Some(listed) = cx.constant_ints(1) else { return Ok(None) };
    let mut marked = vec![false; rank];
    for axis in listed {
        marked[cx.normalize_axis(axis, rank)?] = true;
    }
    Ok(Some(marked))
}

/// Shape function of reductions: input 0 without the axes that input 1 lists, or with size 1 there for `keep_dims`.
pub fn reduction_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let keep = cx.bool_attr("keep_dims");
    let Some(dims) = cx.ranked_dims(0)? else {
        let dims = cx.unranked_from(0);
        return cx.one_output_like(0, dims);
    };
    let out: Dims = match reduced_axes(cx, dims.len())? {
        Some(gone) if keep => dims
            .iter()
            .zip(gone)
            .map(|(&d, gone)| if gone { InferredDim::Known(1) } else { d })
            .collect::<Vec<_>>()
            .into(),
        Some(gone) => dims.iter().zip(gone).filter(|(_, gone)| !gone).map(|(&d, _)| d).collect::<Vec<_>>().into(),
        None if keep => cx.fresh_shape(dims.len(), UnknownReason::Value(1)),
        None => cx.unranked(UnknownReason::Value(1)),
    };
    cx.one_output_like(0, out)
}
