//! Axes of products, convolutions, gathers and scatters as messages of their own, as TensorFlow's ops have them in attributes.
use super::dims::read_convolution;
use super::generated::xla_data::{
    ConvolutionDimensionNumbers, DotDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers,
};
use crate::diag::{Code, Error, Result};
use crate::hlo::attrs::{ConvDims, DotDims, GatherDims, ScatterDims};
use protobuf::Message;

fn read<M: Message>(bytes: &[u8]) -> Result<M> {
    M::parse_from_bytes(bytes).map_err(|e| Error::user(Code::BadAttr, format!("axes that can't be read: {e}")))
}

fn axes(list: &[i64]) -> Result<Vec<usize>> {
    list.iter().map(|&a| axis(a)).collect()
}

fn axis(a: i64) -> Result<usize> {
    usize::try_from(a).map_err(|_| Error::user(Code::BadAttr, format!("the axis {a}")))
}

/// The axes of a product.
///
/// # Errors
/// `BadAttr` for what is no `DotDimensionNumbers`.
pub fn dot(bytes: &[u8]) -> Result<DotDims> {
    let p: DotDimensionNumbers = read(bytes)?;
    Ok(DotDims {
        lhs_batch: axes(&p.lhs_batch_dimensions)?,
        rhs_batch: axes(&p.rhs_batch_dimensions)?,
        lhs_contracting: axes(&p.lhs_contracting_dimensions)?,
        rhs_contracting: axes(&p.rhs_contracting_dimensions)?,
    })
}

/// The axes of a convolution, without a window and in one group.
///
/// # Errors
/// `BadAttr`, `BadEncoding` for axes that are no permutation.
pub fn convolution(bytes: &[u8]) -> Result<ConvDims> {
    read_convolution(&read::<ConvolutionDimensionNumbers>(bytes)?)
}

/// The axes of a gather, without the sizes of its slices.
///
/// # Errors
/// `BadAttr` for what is no `GatherDimensionNumbers`.
pub fn gather(bytes: &[u8]) -> Result<GatherDims> {
    let p: GatherDimensionNumbers = read(bytes)?;
    Ok(GatherDims {
        offset_dims: axes(&p.offset_dims)?,
        collapsed_slice_dims: axes(&p.collapsed_slice_dims)?,
        start_index_map: axes(&p.start_index_map)?,
        index_vector_dim: axis(p.index_vector_dim)?,
        operand_batching_dims: axes(&p.operand_batching_dims)?,
        start_indices_batching_dims: axes(&p.start_indices_batching_dims)?,
        ..GatherDims::default()
    })
}

/// The axes of a scatter.
///
/// # Errors
/// `BadAttr` for what is no `ScatterDimensionNumbers`.
pub fn scatter(bytes: &[u8]) -> Result<ScatterDims> {
    let p: ScatterDimensionNumbers = read(bytes)?;
    Ok(ScatterDims {
        update_window_dims: axes(&p.update_window_dims)?,
        inserted_window_dims: axes(&p.inserted_window_dims)?,
        scatter_dims_to_operand_dims: axes(&p.scatter_dims_to_operand_dims)?,
        index_vector_dim: axis(p.index_vector_dim)?,
        input_batching_dims: axes(&p.input_batching_dims)?,
        scatter_indices_batching_dims: axes(&p.scatter_indices_batching_dims)?,
        ..ScatterDims::default()
    })
}
