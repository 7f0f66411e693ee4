//! Shape functions that two families or more share.
use super::fact::{Dims, Fact};
use super::shape_ctx::ShapeCtx;
use super::symbols::{InferredDim, Why};
use crate::diag::Result;
use crate::graph::TfType;
use crate::tensor::DType;

/// 32-bit integers.
pub const S32: Option<TfType> = Some(TfType::Data(DType::S32));
/// 64-bit integers.
pub const S64: Option<TfType> = Some(TfType::Data(DType::S64));
/// Truth values.
pub const PRED: Option<TfType> = Some(TfType::Data(DType::Pred));

/// One output of the shape and type of the first input.
pub fn same(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.like(0, cx.dims(0)?)
}

/// One output of the shape and type of the second input.
pub fn same_as_second(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.like(1, cx.dims(1)?)
}

/// All inputs, values included.
pub fn pass(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(cx.args.to_vec())
}

/// The first input, value included.
pub fn pass_first(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(vec![cx.arg(0)?.clone()])
}

/// No output.
pub fn nothing(_cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(vec![])
}

/// The one shape that all inputs have.
pub fn merged(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let mut dims = cx.dims(0)?;
    for arg in cx.args.iter().skip(1) {
        dims = cx.merge(&dims, &arg.dims)?;
    }
    cx.like(0, dims)
}

/// The shape that the value of input 0 is, of the type that attribute `dtype` names.
pub fn from_first(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_of_value(0)?;
    cx.typed("dtype", dims)
}

/// The axes that input 1 lists within `rank`, each once; `None` where they are not known.
pub fn axes(cx: &ShapeCtx, rank: usize) -> Result<Option<Vec<bool>>> {
    let Some(listed) = cx.constant_ints(1) else { return Ok(None) };
    let mut marked = vec![false; rank];
    for axis in listed {
        marked[cx.axis(axis, rank)?] = true;
    }
    Ok(Some(marked))
}

/// Input 0 without the axes that input 1 lists, or with size 1 there if the node keeps its dimensions.
pub fn reduction(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let keep = cx.flag("keep_dims");
    let Some(dims) = cx.ranked(0)? else {
        let dims = cx.unranked_from(0);
        return cx.like(0, dims);
    };
    let out: Dims = match axes(cx, dims.len())? {
        Some(gone) if keep => dims
            .iter()
            .zip(gone)
            .map(|(&d, gone)| if gone { InferredDim::Known(1) } else { d })
            .collect::<Vec<_>>()
            .into(),
        Some(gone) => dims.iter().zip(gone).filter(|(_, gone)| !gone).map(|(&d, _)| d).collect::<Vec<_>>().into(),
        None if keep => cx.open(dims.len(), Why::Value(1)),
        None => cx.unranked(Why::Value(1)),
    };
    cx.like(0, out)
}
