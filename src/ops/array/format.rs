//! Ops on data format strings (`DataFormatDimMap`, `DataFormatVecPermute`) and conversion to truth values.
use crate::diag::Result;
use crate::hlo::symbolic::Dim;
use crate::ops::ShapeCtx;
use crate::ops::fact::Fact;
use crate::ops::math::special::{add_scalar, compare_scalar};
use crate::ops::op_lowering::op;
use crate::ops::shape::{PRED, like_first_input};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::Direction;
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("DataFormatDimMap", "x -> y", dim_map).shape(like_first_input),
    op("DataFormatVecPermute", "x -> y", vec_permute).shape(like_first_input),
    op("ToBool", "input -> output", to_bool).shape(to_bool_shape),
];

/// Position in `src_format` of each letter of `dst_format`.
fn sources(cx: &LowerCtx) -> Result<Vec<usize>> {
    let (from, to) = (cx.node.str("src_format").unwrap_or("NHWC"), cx.node.str("dst_format").unwrap_or("NCHW"));
    let places: Option<Vec<usize>> = to.chars().map(|c| from.chars().position(|f| f == c)).collect();
    match places {
        Some(places) if from.len() == to.len() => Ok(places),
        _ => Err(cx.shape_mismatch(format!("{from} is not {to} in another order"))),
    }
}

/// Lowers `DataFormatDimMap`: converts dimension numbers from the source to the destination format.
fn dim_map(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, places) = (cx.arg(0)?, sources(cx)?);
    let behind = add_scalar(cx.b, x, places.len() as f64);
    let negative = compare_scalar(cx.b, Direction::Lt, x, 0.0);
    let x = cx.b.select(negative, behind, x);
    let mut y = cx.b.full_like(x, 0.0);
    for (to, &from) in places.iter().enumerate() {
        let here = compare_scalar(cx.b, Direction::Eq, x, from as f64);
        let value = cx.b.full_like(x, to as f64);
        y = cx.b.select(here, value, y);
    }
    cx.one_output(y)
}

/// Lowers `DataFormatVecPermute`: reorders one entry (or row) per dimension to the destination format; a vector of the spatial
/// entries alone is reordered likewise.
fn vec_permute(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, mut places) = (cx.arg(0)?, sources(cx)?);
    let n = cx.b.dims(x).first().copied().unwrap_or(Dim::from(0)).guarded_index();
    if n + 2 == places.len() {
        let from = cx.node.str("src_format").unwrap_or("NHWC").to_string();
        let spatial: Vec<usize> = from.char_indices().filter(|(_, c)| !"NC".contains(*c)).map(|(i, _)| i).collect();
        places = places.iter().filter_map(|p| spatial.iter().position(|s| s == p)).collect();
    }
    if places.len() != n {
        return Err(cx.shape_mismatch(format!("{n} entries for {} dimensions", places.len())));
    }
    let order: Vec<i32> = places.iter().map(|&p| p as i32).collect();
    let order = cx.b.constant(Tensor::of(&[n as u64], &order));
    let y = super::gather::gather_along_axis(cx, x, order, 0, 0)?;
    cx.one_output(y)
}

/// Lowers `ToBool`: a scalar is true if it is not zero, any other array if it has elements.
fn to_bool(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims, dtype) = (cx.arg(0)?, cx.dims(0)?, cx.dtype(0)?);
    let y = if dims.is_empty() {
        if matches!(dtype, DType::F16 | DType::BF16 | DType::U16 | DType::U32 | DType::U64) || dtype.is_complex() {
            return Err(
                cx.unsupported_case(format!("a scalar of {dtype} as a truth value; TensorFlow's kernels have none"))
            );
        }
        compare_scalar(cx.b, Direction::Ne, x, 0.0)
    } else {
        cx.b.constant(Tensor::from_bools(&[], &[!dims.contains(&Dim::from(0))]))
    };
    cx.one_output(y)
}

fn to_bool_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output(PRED, vec![])
}
