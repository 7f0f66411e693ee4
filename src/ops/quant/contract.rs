//! `QuantizedMatMul` and `QuantizedConv2D`: products of integers less what stands for zero, in 32 bits.
use super::levels::{QuantRange, QuantType, product_range, zero_point};
use crate::diag::Result;
use crate::graph::TfType;
use crate::hlo::symbolic::{ConvDims, Dim, DotDims, WindowDim};
use crate::hlo::symbolic::{InstId, Op};
use crate::ops::fact::{Dims, Fact};
use crate::ops::nn::{DataFormat, Padding, WindowAttrs};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("QuantizedMatMul", "a b min_a max_a min_b max_b -> out min_out max_out", matmul).shape(matmul_shape).dtypes("u8 to s32"),
    op("QuantizedConv2D", "input filter min_input max_input min_filter max_filter -> output min_output max_output", conv)
        .shape(conv_shape).dtypes("u8 to s32"),
];

/// Both operands minus their zero points, in 32 bits, and the range of their products.
struct Operands {
    lhs: InstId,
    rhs: InstId,
    range: QuantRange,
}

fn operands(cx: &mut LowerCtx, out: &str) -> Result<Operands> {
    let out = if cx.node.attr(out).is_some() { cx.attr_dtype(out)? } else { DType::S32 };
    let (x, y) = (cx.arg(0)?, cx.arg(1)?);
    let types = (cx.b.dtype(x), cx.b.dtype(y), out);
    if types != (DType::U8, DType::U8, DType::S32) {
        return Err(cx.unsupported_case(format!("{} by {} to {out}; u8 by u8 to s32 is supported", types.0, types.1)));
    }
    let (bytes, words) = (QuantType::from_dtype(cx, DType::U8)?, QuantType::from_dtype(cx, out)?);
    let (of_x, of_y) = (QuantRange::from_inputs(cx, 2, 3)?, QuantRange::from_inputs(cx, 4, 5)?);
    let [lhs, rhs] = [(x, &of_x), (y, &of_y)].map(|(x, range)| {
        let zero = zero_point(cx.b, range, &bytes);
        let x = cx.b.convert(x, DType::S32);
        cx.b.sub(x, zero)
    });
    let range = product_range(cx.b, [(&of_x, &bytes), (&of_y, &bytes)], &words);
    Ok(Operands { lhs, rhs, range })
}

fn matmul(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let Operands { lhs, rhs, range } = operands(cx, "Toutput")?;
    let (a, b) = (usize::from(!cx.bool_attr("transpose_a")), usize::from(cx.bool_attr("transpose_b")));
    let (x, y) = (cx.dims(0)?, cx.dims(1)?);
    if x.len() != 2 || y.len() != 2 || x[a] != y[b] {
        return Err(cx.shape_mismatch(format!("a product of {x:?} and {y:?}")));
    }
    let dims = DotDims { lhs_batch: vec![], rhs_batch: vec![], lhs_contracting: vec![a], rhs_contracting: vec![b] };
    let out = cx.b.dot(lhs, rhs, dims);
    Ok([out, range.min, range.max].map(Value::Array).into())
}

/// The windows of a convolution. TensorFlow's kernel for quantized arrays puts padding, and what is cut off, half to each side by a rule
/// of its own, which leaves out rows and columns at both ends where strides are wide.
fn windows(cx: &LowerCtx, image: &[Dim], filter: &[Dim]) -> Result<Vec<WindowDim>> {
    let mut args = WindowAttrs::parse(cx.node, 2)?;
    args.layout = DataFormat::features_last(2);
    if args.dilations.iter().any(|&d| d != 1) {
        return Err(
            cx.unsupported_case("dilations of a quantized convolution, which TensorFlow's kernel does not have either")
        );
    }
    let is_valid = matches!(args.padding, Padding::Valid);
    let mut windows = args.spatial_windows(image, &filter[..2])?;
    for (axis, window) in windows.iter_mut().enumerate() {
        let size = image[axis + 1];
        let count = window.output_size(size).ok_or_else(|| cx.shape_mismatch("a window overflows"))?;
        if count == 0 {
            continue;
        }
        let reach = (count - 1) * window.stride + window.size - size;
        window.pad_low = (reach + i64::from(is_valid)) / 2;
        window.pad_high = reach - window.pad_low;
    }
    Ok(windows)
}

fn conv(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let Operands { lhs, rhs, range } = operands(cx, "out_type")?;
    let (image, filter) = (cx.dims(0)?, cx.dims(1)?);
    if image.len() != 4 || filter.len() != 4 || image[3] != filter[2] {
        return Err(cx.shape_mismatch(format!("an image {image:?} and filters {filter:?}")));
    }
    let dims = ConvDims::channels_last(windows(cx, &image, &filter)?);
    let y = cx.b.add_inst(Op::Convolution(Box::new(dims)), &[lhs, rhs]);
    Ok([y, range.min, range.max].map(Value::Array).into())
}

/// Appends the facts of a quantization range, two scalar outputs, to the facts of other outputs.
pub(super) fn append_facts_of_ranges(mut facts: Vec<Fact>) -> Vec<Fact> {
    let end = Fact::new(Some(TfType::Data(DType::F32)), Dims::from_sizes(&[]));
    facts.extend([end.clone(), end]);
    facts
}

fn matmul_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (x, y) = (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(1, 2)?);
    let dims = vec![x[usize::from(cx.bool_attr("transpose_a"))], y[usize::from(!cx.bool_attr("transpose_b"))]];
    Ok(append_facts_of_ranges(cx.one_output_typed_by("Toutput", dims)?))
}

fn conv_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (mut image, filter) = (cx.dims_of_rank(0, 4)?, cx.dims_of_rank(1, 4)?);
    let mut args = WindowAttrs::parse(cx.node, 2)?;
    args.layout = DataFormat::features_last(2);
    for axis in [1, 2] {
        image[axis] = args.window_count(cx, axis, image[axis], filter[axis - 1])?;
    }
    image[3] = filter[3];
    Ok(append_facts_of_ranges(cx.one_output_typed_by("out_type", image)?))
}
