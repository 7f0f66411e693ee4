//! Selection, clipping and conversion of element types.
use super::special::compare_scalar;
use crate::diag::Result;
use crate::graph::{Attr, TfType};
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::ShapeCtx;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::{S32, like_first_input};
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Cast", "x -> y", cast).shape(cast_shape),
    op("Select", "condition t e -> output", select).moves_strings().shape(select_shape).work(Work::PerOutputElement(1)),
    op("SelectV2", "condition t e -> output", select_v2).moves_strings().pointwise(),
    op("ClipByValue", "t clip_value_min clip_value_max -> output", clip_by_value)
        .shape(like_first_input)
        .work(Work::PerOutputElement(1)),
    op("Bucketize", "input -> output", bucketize).shape(bucketize_shape),
];

fn cast(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Some(Value::Unavailable(t)) = cx.args.first() {
        return Ok(vec![Value::Unavailable(*t)]);
    }
    let x = cx.arg(0)?;
    if let Some(other @ (TfType::String | TfType::Resource | TfType::Variant)) = cx.node.tf_type("DstT") {
        return Err(cx.unsupported_case(format!("a cast to {other}; numbers are supported")));
    }
    let to = cx.attr_dtype("DstT")?;
    if cx.bool_attr("Truncate") && to.is_float() && to.bits() < cx.b.dtype(x).bits() {
        return Err(cx.unsupported_case("a Cast that truncates; rounding casts are supported"));
    }
    let y = convert(cx.b, x, to);
    cx.one_output(y)
}

/// Converts like TensorFlow's CPU kernels: floats out of range of a 32- or 64-bit integer, and NaN, become the smallest one;
/// narrower integers are the low bits of that.
pub fn convert(b: &mut Builder, x: InstId, to: DType) -> InstId {
    let from = b.dtype(x);
    if from.is_complex() && !to.is_complex() && to != DType::Pred {
        let re = b.unary(ScalarOp::Real, x);
        return convert(b, re, to);
    }
    if !from.is_float() || !to.is_integer() {
        return b.convert(x, to);
    }
    match to {
        DType::S32 => indefinite(b, x, DType::S32, 2f64.powi(31)),
        DType::S64 => indefinite(b, x, DType::S64, 2f64.powi(63)),
        DType::U32 => {
            let wide = indefinite(b, x, DType::S64, 2f64.powi(63));
            b.convert(wide, DType::U32)
        }
        DType::U64 => {
            // Below 2^63 by way of s64, from there on directly; NaN and larger values become 2^63.
            let low = indefinite(b, x, DType::S64, 2f64.powi(63));
            let wrapped = b.convert(low, DType::U64);
            let direct = b.convert(x, DType::U64);
            let (large, fits) = (
                compare_scalar(b, Direction::Ge, x, 2f64.powi(63)),
                compare_scalar(b, Direction::Lt, x, 2f64.powi(64)),
            );
            let in_range = b.binary(ScalarOp::And, large, fits);
            b.select(in_range, direct, wrapped)
        }
        _ => {
            let wide = indefinite(b, x, DType::S32, 2f64.powi(31));
            b.convert(wide, to)
        }
    }
}

/// Truncates to an integer; the smallest integer if the value is out of range.
fn indefinite(b: &mut Builder, x: InstId, to: DType, limit: f64) -> InstId {
    let y = b.convert(x, to);
    let fits = compare_scalar(b, Direction::Lt, x, limit);
    let least = b.full_like(y, f64::NEG_INFINITY);
    b.select(fits, y, least)
}

/// Lowers `Select`: a vector condition selects rows, a scalar condition selects everything.
fn select(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (mut c, t, e) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let (shape, dims) = (cx.dims(0)?, cx.dims(1)?);
    if shape.len() == 1 && dims.len() > 1 {
        if shape[0] != dims[0] {
            return Err(
                cx.shape_mismatch(format!("a condition of {shape:?} does not choose among the rows of {dims:?}"))
            );
        }
        c = cx.b.broadcast(c, &dims, &[0]);
    } else if !shape.is_empty() && shape != dims {
        return Err(cx.shape_mismatch(format!("a condition of {shape:?} does not fit {dims:?}")));
    }
    if cx.dims(2)? != dims {
        return Err(cx.shape_mismatch(format!("the choices have the shapes {dims:?} and {:?}", cx.dims(2)?)));
    }
    let y = cx.b.select(c, t, e);
    cx.one_output(y)
}

fn select_v2(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (c, t, e) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let y = cx.b.select(c, t, e);
    cx.one_output(y)
}

fn clip_by_value(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, low, high) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let (low, high) = (or_unbounded(cx.b, low, f64::NEG_INFINITY), or_unbounded(cx.b, high, f64::INFINITY));
    let y = cx.b.min(x, high);
    let y = cx.b.max(y, low);
    cx.one_output(y)
}

/// Bound with NaN replaced by `infinite`: TensorFlow's kernel applies a bound only if the comparison with it is true.
fn or_unbounded(b: &mut Builder, bound: InstId, infinite: f64) -> InstId {
    if !b.dtype(bound).is_float() {
        return bound;
    }
    let is_nan = b.compare(Direction::Ne, bound, bound);
    let infinite = b.full_like(bound, infinite);
    b.select(is_nan, infinite, bound)
}

fn bucketize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let bounds: &[f32] = match cx.node.attr("boundaries") {
        Some(Attr::Floats(bounds)) => bounds,
        Some(Attr::EmptyList) => &[],
        _ => return Err(cx.unsupported_case("Bucketize without `boundaries`")),
    };
    if bounds.windows(2).any(|w| w[0] > w[1]) {
        return Err(cx.shape_mismatch("the boundaries are not sorted"));
    }
    // The boundaries are f32, and C++ compares an integer with an f32 as f32.
    let work = if cx.b.dtype(x) == DType::F64 { DType::F64 } else { DType::F32 };
    let x = cx.b.convert(x, work);
    let dims = cx.b.dims(x).to_vec();
    let mut count = cx.b.full(DType::S32, &dims, 0.0);
    for &bound in bounds {
        // Not "at least the boundary": the search places NaN behind the last one.
        let below = compare_scalar(cx.b, Direction::Lt, x, f64::from(bound));
        let above = cx.b.unary(ScalarOp::Not, below);
        let one = cx.b.convert(above, DType::S32);
        count = cx.b.add(count, one);
    }
    cx.one_output(count)
}

/// Shape function of `Cast`: the input's shape; known sizes are kept in the other integer type.
fn cast_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let arg = cx.arg(0)?;
    match (cx.attr_type("DstT"), arg.as_ints(), arg.dims.known_sizes()) {
        (Some(to @ TfType::Data(DType::S32 | DType::S64)), Some(values), Some(dims)) => {
            Ok(vec![Fact::from_ints(to, &dims, values)])
        }
        (to, _, _) => cx.one_output(to, cx.dims(0)?),
    }
}

fn select_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.merge_shapes(&cx.dims(1)?, &cx.dims(2)?)?;
    cx.one_output_like(1, dims)
}

fn bucketize_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output(S32, cx.dims(0)?)
}
