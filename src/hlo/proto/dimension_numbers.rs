//! Parsing of dimension numbers of dots, convolutions, gathers and scatters from separate messages, as in attributes of
//! TensorFlow's ops.
use super::dims::read_convolution;
use super::messages::xla_data::{
    ConvolutionDimensionNumbers, DotDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers,
};
use crate::diag::{Code, Error, Result};
use crate::hlo::SizeRepr;
use crate::hlo::attrs::{ConvDims, DotDims, GatherDims, ScatterDims};
use protobuf::{CodedInputStream, Message};

fn read<M: Message>(bytes: &[u8]) -> Result<M> {
    M::parse_from_bytes(bytes).map_err(unreadable)
}

fn unreadable(e: protobuf::Error) -> Error {
    Error::user(Code::BadAttr, format!("axes that can't be read: {e}"))
}

fn axes(list: &[i64]) -> Result<Vec<usize>> {
    list.iter().map(|&a| axis(a)).collect()
}

fn axis(a: i64) -> Result<usize> {
    usize::try_from(a).map_err(|_| Error::user(Code::BadAttr, format!("the axis {a}")))
}

/// Parses the dimension numbers of a dot.
///
/// # Errors
/// `BadAttr` unless the bytes are a `DotDimensionNumbers`.
pub fn dot(bytes: &[u8]) -> Result<DotDims> {
    let p: DotDimensionNumbers = read(bytes)?;
    Ok(DotDims {
        lhs_batch: axes(&p.lhs_batch_dimensions)?,
        rhs_batch: axes(&p.rhs_batch_dimensions)?,
        lhs_contracting: axes(&p.lhs_contracting_dimensions)?,
        rhs_contracting: axes(&p.rhs_contracting_dimensions)?,
    })
}

/// Parses the dimension numbers of a convolution, without a window and in one group.
///
/// # Errors
/// `BadAttr`; `BadEncoding` if the axes are not a permutation.
pub fn convolution<D: SizeRepr>(bytes: &[u8]) -> Result<ConvDims<D>> {
    read_convolution(&read::<ConvolutionDimensionNumbers>(bytes)?)
}

/// Parses TensorFlow's `UniformQuantizedConvolutionDimensionNumbersAttr`: XLA's message with other field numbers.
///
/// # Errors
/// `BadAttr`; `BadEncoding` if the axes are not a permutation.
pub fn uniform_convolution<D: SizeRepr>(bytes: &[u8]) -> Result<ConvDims<D>> {
    let mut fields: [Vec<i64>; 9] = Default::default();
    let mut input = CodedInputStream::from_bytes(bytes);
    while let Some(tag) = input.read_raw_tag_or_eof().map_err(unreadable)? {
        let unknown = || Error::user(Code::BadAttr, format!("axes with the field {}", tag >> 3));
        let field = (tag >> 3).checked_sub(1).and_then(|at| fields.get_mut(at as usize)).ok_or_else(unknown)?;
        match tag & 7 {
            0 => field.push(input.read_int64().map_err(unreadable)?),
            2 => input.read_repeated_packed_int64_into(field).map_err(unreadable)?,
            _ => return Err(unknown()),
        }
    }
    let one = |list: &[i64]| list.last().copied().unwrap_or(0);
    let [batch, feature, spatial, kernel_input, kernel_output, kernel_spatial, out_batch, out_feature, out_spatial] =
        fields;
    read_convolution(&ConvolutionDimensionNumbers {
        input_batch_dimension: one(&batch),
        input_feature_dimension: one(&feature),
        input_spatial_dimensions: spatial,
        kernel_input_feature_dimension: one(&kernel_input),
        kernel_output_feature_dimension: one(&kernel_output),
        kernel_spatial_dimensions: kernel_spatial,
        output_batch_dimension: one(&out_batch),
        output_feature_dimension: one(&out_feature),
        output_spatial_dimensions: out_spatial,
        ..Default::default()
    })
}

/// Parses the dimension numbers of a gather, without the slice sizes.
///
/// # Errors
/// `BadAttr` unless the bytes are a `GatherDimensionNumbers`.
pub fn gather<D: SizeRepr>(bytes: &[u8]) -> Result<GatherDims<D>> {
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

/// Parses the dimension numbers of a scatter.
///
/// # Errors
/// `BadAttr` unless the bytes are a `ScatterDimensionNumbers`.
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
