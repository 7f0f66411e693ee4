//! HLO instructions whose dimension numbers are protobuf messages in attributes: dots, convolutions, gathers; and random bits.
use crate::diag::Result;
use crate::dims;
use crate::graph::Attr;
use crate::hlo::proto::dimension_numbers;
use crate::hlo::symbolic::{Dim, GatherDims, InstId, Op, Shape};
use crate::ops::array::shape::shape_from_input;
use crate::ops::op_lowering::op;
use crate::ops::xla::window;
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("XlaDot", "lhs rhs -> output", dot).work(Work::Contraction),
    op("XlaDotV2", "lhs rhs -> output", dot).work(Work::Contraction),
    op("XlaConv", CONVOLUTION, convolution).constant_inputs(&[2, 3, 4, 5, 6]).work(Work::Contraction),
    op("XlaConvV2", CONVOLUTION, convolution).constant_inputs(&[2, 3, 4, 5, 6]).work(Work::Contraction),
    op("XlaGather", "operand start_indices slice_sizes -> output", gather).constant_inputs(&[2]),
    op("XlaRngBitGenerator", "algorithm initial_state shape -> output_key output", random_bits)
        .constant_inputs(&[0, 2]),
];

const CONVOLUTION: &str = "lhs rhs window_strides padding lhs_dilation rhs_dilation feature_group_count -> output";

/// Bytes of the attribute with the dimension numbers.
fn axes<'n>(cx: &'n LowerCtx) -> Result<&'n [u8]> {
    let bytes = if let Some(Attr::Str(bytes)) = cx.node.attr("dimension_numbers") { Some(&bytes[..]) } else { None };
    cx.require_attr(bytes, "dimension_numbers")
}

/// Both operands, converted to the type of the result.
fn sides(cx: &mut LowerCtx) -> Result<[InstId; 2]> {
    let (x, y) = (cx.arg(0)?, cx.arg(1)?);
    let dtype = if cx.node.attr("preferred_element_type").is_some() {
        cx.attr_dtype("preferred_element_type")?
    } else {
        cx.b.dtype(x)
    };
    Ok([cx.b.convert(x, dtype), cx.b.convert(y, dtype)])
}

fn dot(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dims = dimension_numbers::dot(axes(cx)?)?;
    let [x, y] = sides(cx)?;
    let y = cx.b.dot(x, y, dims);
    cx.one_output(y)
}

fn convolution(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let mut dims = dimension_numbers::convolution(axes(cx)?)?;
    let [x, kernel] = sides(cx)?;
    let rank = dims.kernel_spatial.len();
    let whole = |cx: &LowerCtx, i: usize| -> Result<Vec<Dim>> {
        let list = cx.constant_ints(i)?;
        window::positive_dims(&list, rank)
            .ok_or_else(|| cx.shape_mismatch(format!("{list:?} for {rank} spatial dimensions")))
    };
    let (strides, base, dilations) = (whole(cx, 2)?, whole(cx, 4)?, whole(cx, 5)?);
    let padding = cx.constant_ints(3)?;
    let sizes: Option<Vec<Dim>> = dims.kernel_spatial.iter().map(|&a| cx.b.dims(kernel).get(a).copied()).collect();
    let windows = sizes.and_then(|sizes| window::window_dims([&sizes, &strides, &base, &dilations], &padding));
    dims.window =
        windows.ok_or_else(|| cx.shape_mismatch(format!("paddings {padding:?} for {rank} spatial dimensions")))?;
    let count = |n: i64| u64::try_from(n).ok().filter(|n| *n > 0);
    let groups = (count(cx.constant_int(6)?), count(cx.node.int("batch_group_count").unwrap_or(1)));
    let (Some(features), Some(batches)) = groups else { return Err(cx.shape_mismatch("a number of groups below 1")) };
    (dims.feature_group_count, dims.batch_group_count) = (features, batches);
    let y = cx.b.add_inst(Op::Convolution(Box::new(dims)), &[x, kernel]);
    cx.one_output(y)
}

fn gather(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let mut dims: GatherDims = dimension_numbers::gather(axes(cx)?)?;
    dims.slice_sizes = shape_from_input(cx, 2)?;
    dims.indices_are_sorted = cx.bool_attr("indices_are_sorted");
    let (x, indices) = (cx.arg(0)?, cx.arg(1)?);
    let y = cx.b.add_inst(Op::Gather(Box::new(dims)), &[x, indices]);
    cx.one_output(y)
}

/// Lowers `XlaRngBitGenerator`: random bits from a state, and the advanced state.
fn random_bits(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (algorithm, state, dims) = (cx.constant_int(0)?, cx.arg(1)?, shape_from_input(cx, 2)?);
    // Philox accepts a counter of one or two words.
    let (algorithm, words): (&str, &[Dim]) = match algorithm {
        1 => ("rng_philox", &dims![2, 3]),
        2 => ("rng_three_fry", &dims![2]),
        3 => ("rng_default", &dims![2, 3]),
        other => {
            let told = format!("the algorithm {other}; 1 (Philox), 2 (ThreeFry) and 3 (either) are supported");
            return Err(cx.unsupported_case(told));
        }
    };
    let dtype = cx.attr_dtype("dtype")?;
    if !matches!(dtype, DType::U32 | DType::U64) {
        return Err(cx.unsupported_case(format!("random bits of {dtype}; u32 and u64 are supported")));
    }
    let fits = matches!(cx.b.dims(state), [n] if words.contains(n)) && cx.b.dtype(state) == DType::U64;
    if !fits {
        return Err(cx.unsupported_case(format!("a state {}; u64 of {words:?} words is supported", cx.b.shape(state))));
    }
    let shape = Shape::Tuple(vec![cx.b.shape(state).clone(), Shape::array(dtype, dims)]);
    let both = cx.b.push(Op::RngBitGenerator { algorithm: algorithm.to_string() }, &[state], shape);
    Ok((0..2).map(|i| Value::Array(cx.b.get_tuple_element(both, i))).collect())
}
