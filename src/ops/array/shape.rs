//! Ops that query or change shapes.
use crate::diag::Result;
use crate::dims;
use crate::graph::TfType;
use crate::hlo::symbolic::{Dim, InstId, Op, Shape};
use crate::hlo::{SizeRepr, all_always_equal};
use crate::ops::ShapeCtx;
use crate::ops::checks;
use crate::ops::element;
use crate::ops::fact::{Dims, Fact, InferredInt};
use crate::ops::op_lowering::op;
use crate::ops::shape::{S32, like_first_input};
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::constant_dims;
use crate::symbolic::{self, guarded_counts, product};
use crate::tensor::{DType, Tensor, element_count};

/// Largest rank of a TensorFlow array.
const MOST_RANK: u64 = 254;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Shape", "input -> output", shape).shape(shape_shape),
    op("ShapeN", "input* -> output*", shape).shape(shape_shape),
    op("Size", "input -> output", size).shape(size_shape),
    op("Rank", "input -> output", rank).shape(rank_shape),
    op("Reshape", "tensor shape -> output", reshape).moves_strings().shape(reshape_shape).constant_inputs(&[1]),
    op("ExpandDims", "input dim -> output", expand_dims).moves_strings().shape(expand_dims_shape).constant_inputs(&[1]),
    op("Squeeze", "input -> output", squeeze).moves_strings().shape(squeeze_shape),
    op("Transpose", "x perm -> y", transpose).moves_strings().shape(transpose_shape).constant_inputs(&[1]),
    op("ConjugateTranspose", "x perm -> y", transpose).shape(transpose_shape).constant_inputs(&[1]),
    op("InvertPermutation", "x -> y", invert_permutation).with_check(checks::check_permutation).shape(like_first_input),
    op("BroadcastTo", "input shape -> output", broadcast_to)
        .moves_strings()
        .shape(broadcast_to_shape)
        .constant_inputs(&[1]),
    op("BroadcastArgs", "s0 s1 -> r0", broadcast_args).shape(broadcast_args_shape).constant_inputs(&[0, 1]),
    op("BroadcastGradientArgs", "s0 s1 -> r0 r1", broadcast_gradient_args)
        .shape(broadcast_gradient_args_shape)
        .constant_inputs(&[0, 1]),
    op("Bitcast", "input -> output", bitcast).shape(bitcast_shape),
];

/// Constant vector or scalar of sizes, of integer type `dtype`.
pub fn dims_constant(cx: &mut LowerCtx, dtype: DType, dims: &[Dim], values: &[Dim]) -> Result<InstId> {
    match dtype {
        DType::S64 => {}
        DType::S32 if values.iter().all(|&v| v <= i64::from(i32::MAX) && v >= i64::from(i32::MIN)) => {}
        DType::S32 => return Err(cx.unsupported_case("a size beyond 2^31 as int32; ask for int64")),
        other => return Err(cx.unsupported_case(format!("sizes as {other}; s32 and s64 are supported"))),
    }
    Ok(cx.b.size_constant(dtype, &guarded_counts(dims), values.to_vec()))
}

fn shape(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let mut out = Vec::with_capacity(cx.args.len());
    for i in 0..cx.args.len() {
        let dims = cx.dims(i)?;
        out.push(Value::Array(dims_constant(cx, cx.attr_dtype("out_type")?, &dims![dims.len()], &dims)?));
    }
    Ok(out)
}

fn size(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let n = product(&cx.dims(0)?).ok_or_else(|| cx.shape_mismatch("the size overflows"))?;
    let y = dims_constant(cx, cx.attr_dtype("out_type")?, &[], &[n])?;
    cx.one_output(y)
}

fn rank(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let n = Dim::from(cx.dims(0)?.len());
    let y = dims_constant(cx, DType::S32, &[], &[n])?;
    cx.one_output(y)
}

/// Sizes given by input `i`, which may be data-dependent.
///
/// # Errors
/// `ShapeMismatch` for a negative size, `TooLarge` if the array would be too large, `DynamicShape` where sizes must be fixed.
pub fn shape_from_input(cx: &mut LowerCtx, i: usize) -> Result<Vec<Dim>> {
    if cx.symbolic_value(i).is_some() {
        return constant_shape_from_input(cx, i);
    }
    if cx.dims(i)?.len() != 1 {
        return Err(cx.shape_mismatch("sizes are a vector"));
    }
    check_array_size(cx.sizes_from_input(i)?)
}

/// Sizes given by input `i`, which must be known at compile time.
///
/// # Errors
/// `NotConstant` if they are not known, `ShapeMismatch` for a negative size, `TooLarge` if the array would be too large.
pub fn constant_shape_from_input(cx: &LowerCtx, i: usize) -> Result<Vec<Dim>> {
    let values = cx.constant_dims(i)?;
    let dims: Option<Vec<Dim>> = values.iter().map(|v| v.into_nonnegative()).collect();
    let dims = dims.ok_or_else(|| cx.shape_mismatch(format!("{values:?} is no shape")))?;
    check_array_size(dims)
}

/// The sizes `dims`, if an array of them has at most 2^34 elements.
///
/// # Errors
/// `TooLarge` otherwise.
pub fn check_array_size(dims: Vec<Dim>) -> Result<Vec<Dim>> {
    match product(&dims) {
        Some(n) if n <= 1u64 << 34 => Ok(dims),
        _ => Err(crate::diag::Error::user(crate::diag::Code::TooLarge, format!("an array of the shape {dims:?}"))),
    }
}

/// Target shape of a reshape, input 1. Each size in it must be known, even if the vector of sizes is a slice of one that is not
/// known completely.
fn wanted(cx: &LowerCtx) -> Result<Vec<Dim>> {
    cx.constant_dims(1).or_else(|error| {
        let [n] = cx.dims(1)?[..] else { return Err(error) };
        if n > MOST_RANK {
            return Err(error);
        }
        let shape = cx.arg(1)?;
        let known: Option<Vec<Dim>> =
            (0..n.guarded_count()).map(|at| element::element_expr(cx.b, shape, Dim::from(at)).as_size()).collect();
        known.ok_or(error)
    })
}

/// Size that -1 stands for when an array of shape `from` is reshaped to the sizes `known` and one more.
///
/// Beside a size of 0 every size is possible; TensorFlow's kernel then divides the products of the nonzero sizes, rounding
/// down.
fn inferred_size(from: &[Dim], known: &[Dim]) -> Option<Dim> {
    let nonzero = |sizes: &[Dim]| product(&sizes.iter().map(|&n| n.max(1)).collect::<Vec<Dim>>());
    let (total, by) = (product(from)?, product(known)?);
    let is_empty = by.is_less(1);
    if !is_empty.varies() && is_empty == 0 {
        return total.is_multiple_of(by).then(|| total / by);
    }
    let beside_none = nonzero(from)? / nonzero(known)?;
    if is_empty.varies() {
        let by = by.max(1);
        return total.is_multiple_of(by).then(|| is_empty.select(beside_none, total / by));
    }
    Some(beside_none)
}

pub fn reshape(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let (from, want) = (cx.dims(0)?, wanted(cx)?);
    let total = product(&from).ok_or_else(|| cx.shape_mismatch("the size overflows"))?;
    let is_open = |v: Dim| !v.varies() && v == -1;
    let known: Option<Vec<Dim>> = want.iter().filter(|&&v| !is_open(v)).map(|v| v.into_nonnegative()).collect();
    let open = want.iter().filter(|&&v| is_open(v)).count();
    let bad = || cx.shape_mismatch(format!("{from:?} can't be reshaped to {want:?}"));
    let known = known.ok_or_else(bad)?;
    let rest = match open {
        0 => Dim::from(1),
        1 => inferred_size(&from, &known).ok_or_else(bad)?,
        _ => return Err(bad()),
    };
    let dims: Vec<Dim> = want.iter().map(|&v| if is_open(v) { rest } else { v }).collect();
    if product(&dims) != Some(total) {
        return Err(bad());
    }
    let y = cx.b.reshape(x, &dims);
    cx.one_output(y)
}

fn expand_dims(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, mut dims) = (cx.arg(0)?, cx.dims(0)?);
    let at = cx.normalize_axis(cx.constant_int(1)?, dims.len() + 1)?;
    dims.insert(at, Dim::from(1));
    let y = cx.b.reshape(x, &dims);
    cx.one_output(y)
}

fn squeeze(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let listed = cx.node.ints("squeeze_dims").or_else(|| cx.node.ints("axis")).unwrap_or(&[]);
    let mut gone = vec![false; dims.len()];
    for &axis in listed {
        let axis = cx.normalize_axis(axis, dims.len())?;
        if dims[axis] != 1 {
            return Err(cx.shape_mismatch(format!("dimension {axis} of {dims:?} is not 1 and can't be squeezed")));
        }
        gone[axis] = true;
    }
    if listed.is_empty() {
        gone = dims.iter().map(|&d| d == 1).collect();
    }
    let kept: Vec<Dim> = dims.iter().zip(&gone).filter(|(_, gone)| !**gone).map(|(&d, _)| d).collect();
    let y = cx.b.reshape(x, &kept);
    cx.one_output(y)
}

fn transpose(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let mut x = cx.arg(0)?;
    let rank = cx.b.rank(x);
    let perm = cx.constant_ints(1)?;
    let perm: Vec<usize> = perm.iter().map(|&p| cx.normalize_axis(p, rank)).collect::<Result<_>>()?;
    if &*cx.node.op == "ConjugateTranspose" && cx.b.dtype(x).is_complex() {
        let (re, im) = (cx.b.unary(ScalarOp::Real, x), cx.b.unary(ScalarOp::Imag, x));
        let im = cx.b.unary(ScalarOp::Negate, im);
        x = cx.b.elementwise(ScalarOp::Complex, &[re, im]);
    }
    let y = cx.b.transpose(x, &perm);
    cx.one_output(y)
}

fn invert_permutation(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let Ok(perm) = cx.constant_ints(0) else { return invert_at_run_time(cx) };
    let mut inverse = vec![u64::MAX; perm.len()];
    for (i, &p) in perm.iter().enumerate() {
        let slot = cx.normalize_axis(p, perm.len()).ok().filter(|_| p >= 0).filter(|&p| inverse[p] == u64::MAX);
        let Some(slot) = slot else { return Err(cx.shape_mismatch(format!("{perm:?} is no permutation"))) };
        inverse[slot] = i as u64;
    }
    let y = dims_constant(cx, cx.dtype(0)?, &dims![perm.len()], &constant_dims(&inverse))?;
    cx.one_output(y)
}

/// Lowers `InvertPermutation` at run time: writes position `i` to `y[x[i]]`.
fn invert_at_run_time(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let [n] = dims[..] else { return Err(cx.shape_mismatch("a permutation is a vector")) };
    let dtype = cx.b.dtype(x);
    let positions = cx.b.iota(dtype, &[n], 0);
    let base = cx.b.full(dtype, &[n], 0.0);
    let places = cx.b.reshape(x, &dims![n, 1]);
    let y = super::scatter::scatter(cx, base, places, positions, None)?;
    cx.one_output(y)
}

fn broadcast_to(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, shape_from_input(cx, 1)?);
    let y = cx.b.broadcast_to(x, &dims);
    cx.one_output(y)
}

fn common(cx: &LowerCtx) -> Result<(Vec<Dim>, Vec<Dim>, Vec<Dim>)> {
    let (x, y) = (constant_shape_from_input(cx, 0)?, constant_shape_from_input(cx, 1)?);
    let both = crate::hlo::symbolic::Builder::broadcast_dims(&x, &y)
        .ok_or_else(|| cx.shape_mismatch(format!("{x:?} and {y:?} can't be broadcast together")))?;
    Ok((x, y, both))
}

fn broadcast_args(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (_, _, both) = common(cx)?;
    let y = dims_constant(cx, cx.dtype(0)?, &dims![both.len()], &both)?;
    cx.one_output(y)
}

/// Lowers `BroadcastGradientArgs`: for each of two shapes, the axes over which the gradient of a broadcast must be summed.
fn broadcast_gradient_args(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, y, both) = common(cx)?;
    let mut out = Vec::new();
    for (own, other) in [(&x, &y), (&y, &x)] {
        let at = |v: &[Dim], i: usize| (i + v.len()).checked_sub(both.len()).map_or(Dim::from(1), |i| v[i]);
        let is_summed = |&i: &usize| {
            let (n, beside) = (at(own, i), at(other, i));
            // Summing over an axis of size 1 changes nothing, so that an axis may be listed for an open size that can be 1.
            let is_one = if n.varies() { !n.is_same(beside) && !beside.is_one() && n == 1 } else { n == 1 };
            is_one && (i + own.len() < both.len() || beside.varies() || beside != 1 || both[i] == 1)
        };
        let is_same = all_always_equal(&x, &y);
        let axes: Vec<Dim> = (0..both.len()).filter(|_| !is_same).filter(is_summed).map(Dim::from).collect();
        out.push(Value::Array(dims_constant(cx, cx.dtype(0)?, &dims![axes.len()], &axes)?));
    }
    Ok(out)
}

fn bitcast(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, to, mut dims) = (cx.arg(0)?, cx.attr_dtype("type")?, cx.dims(0)?);
    let (from, to_bits) = (cx.b.dtype(x), to.bits());
    if from == DType::Pred || to == DType::Pred || from.bits() < 8 || to_bits < 8 {
        return Err(cx.unsupported_case(format!("a bitcast of {from} to {to}; types of whole bytes are supported")));
    }
    if from == to {
        return cx.one_output(x);
    }
    if from.bits() == to_bits && !from.is_complex() && !to.is_complex() {
        let y = cx.b.unary(ScalarOp::BitcastConvert(to), x);
        return cx.one_output(y);
    }
    if from.is_complex() || to.is_complex() {
        return Err(cx.unsupported_case(format!("a bitcast of {from} to {to}; real types are supported")));
    }
    if from.bits() > to_bits {
        dims.push(Dim::from(from.bits() / to_bits));
    } else if dims.pop() != Some(Dim::from(to_bits / from.bits())) {
        return Err(cx.shape_mismatch(format!("the last dimension must hold the parts of one {to}")));
    }
    let y = cx.b.push(Op::BitcastConvertWidth, &[x], Shape::array(to, dims));
    cx.one_output(y)
}

fn shape_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dtype = cx.attr_type("out_type");
    let mut out = Vec::with_capacity(cx.args.len());
    for i in 0..cx.args.len() {
        out.push(match (cx.dims(i)?, dtype) {
            (Dims::Ranked(dims), Some(dtype)) => {
                Fact::from_ints(dtype, &[dims.len() as u64], dims.iter().map(|&d| d.into()).collect())
            }
            (dims, _) => {
                let rank = cx.fresh_dim(dims.first_unknown().map_or(UnknownReason::Value(i), UnknownReason::From));
                Fact::new(dtype, vec![rank].into())
            }
        });
    }
    Ok(out)
}

fn size_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dtype = cx.attr_type("out_type");
    match (cx.ranked_dims(0)?, dtype) {
        (Some(text_dims), Some(dtype)) => {
            let n = cx.product(&text_dims);
            Ok(vec![Fact::from_ints(dtype, &[], vec![n.into()])])
        }
        _ => cx.one_output(dtype, vec![]),
    }
}

fn rank_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    match cx.ranked_dims(0)? {
        Some(dims) => Ok(vec![Fact::constant(&Tensor::scalar(dims.len() as i32))]),
        None => cx.one_output(S32, vec![]),
    }
}

/// Facts about input 0 with another shape; the elements of a vector of sizes are kept.
fn reshaped(cx: &ShapeCtx, dims: Dims) -> Result<Vec<Fact>> {
    let x = cx.arg(0)?;
    match (x.as_ints(), x.dtype, dims.known_sizes()) {
        (Some(values), Some(dtype), Some(known_sizes)) if element_count(&known_sizes) == Some(values.len() as u64) => {
            Ok(vec![Fact::from_ints(dtype, &known_sizes, values)])
        }
        _ => cx.one_output_like(0, dims),
    }
}

/// Shape function of `Reshape`: the sizes in input 1. A single unknown or -1 follows from the number of elements.
pub fn reshape_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let Some(want) = cx.partial_ints(1) else {
        let dims = cx.shape_from_value(1)?;
        return cx.one_output_like(0, dims);
    };
    if cx.dims(1)?.as_ranked().is_some_and(|d| d.len() != 1)
        || want.iter().any(|v| matches!(v, InferredInt::Known(..-1)))
    {
        return Err(cx.shape_mismatch(format!("input 1 is no shape: {want:?}")));
    }
    let known: Vec<InferredDim> = want.iter().filter_map(|v| v.as_dim()).collect();
    let from = cx.ranked_dims(0)?;
    let rest = match (&from, want.len() - known.len()) {
        (Some(from), 1) => Some(left_over(cx, from, &known)?),
        _ => None,
    };
    let mut dims = Vec::with_capacity(want.len());
    for v in want {
        let open = if matches!(v, InferredInt::Known(_)) { cx.unknown_cause(0) } else { UnknownReason::Value(1) };
        dims.push(v.as_dim().or(rest).unwrap_or_else(|| cx.fresh_dim(open)));
    }
    let dims = Dims::from(dims);
    if let (Some(from), Some(to)) = (cx.dims(0)?.known_sizes(), dims.known_sizes())
        && element_count(&from) != element_count(&to)
    {
        return Err(cx.shape_mismatch(format!("{from:?} can't be reshaped to {to:?}")));
    }
    reshaped(cx, dims)
}

/// Quotient of the element counts of `from` and `known`; unknown sizes on both sides cancel.
fn left_over(cx: &mut ShapeCtx, from: &[InferredDim], known: &[InferredDim]) -> Result<InferredDim> {
    if known.contains(&InferredDim::Known(0)) {
        let fixed = |dims: &[InferredDim]| Dims::from(dims.to_vec()).known_sizes();
        let size = fixed(from)
            .zip(fixed(known))
            .and_then(|(from, known)| inferred_size(&symbolic::constant_dims(&from), &symbolic::constant_dims(&known)));
        return Ok(size.map_or_else(|| cx.fresh_dim(cx.unknown_cause(0)), |n| InferredDim::Known(n.guarded_count())));
    }
    match (cx.product(from), cx.product(known)) {
        (all @ InferredDim::Known(_), InferredDim::Known(by)) => cx.div_exact(all, by),
        (all, by) => Ok(cx.div(all, by)),
    }
}

fn expand_dims_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match (cx.ranked_dims(0)?, cx.constant_int(1)) {
        (Some(mut dims), Some(at)) => {
            dims.insert(cx.normalize_axis(at, dims.len() + 1)?, InferredDim::Known(1));
            dims.into()
        }
        (Some(dims), None) => cx.fresh_shape(dims.len() + 1, UnknownReason::Value(1)),
        (None, _) => cx.unranked_from(0),
    };
    reshaped(cx, dims)
}

fn squeeze_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let listed = cx.node.ints("squeeze_dims").or_else(|| cx.node.ints("axis")).unwrap_or(&[]);
    let dims = match cx.ranked_dims(0)? {
        None => cx.unranked_from(0),
        Some(dims) if listed.is_empty() => match dims.iter().find(|d| matches!(d, InferredDim::Unknown(_))) {
            Some(_) => cx.unranked_from(0),
            None => dims.into_iter().filter(|&d| d != InferredDim::Known(1)).collect::<Vec<_>>().into(),
        },
        Some(dims) => {
            let mut gone = vec![false; dims.len()];
            for &axis in listed {
                let axis = cx.normalize_axis(axis, dims.len())?;
                if matches!(dims[axis], InferredDim::Known(n) if n != 1) {
                    return Err(cx.shape_mismatch(format!("dimension {axis} of {} is not 1", cx.dims(0)?)));
                }
                gone[axis] = true;
            }
            dims.into_iter().zip(gone).filter(|d| !d.1).map(|d| d.0).collect::<Vec<_>>().into()
        }
    };
    reshaped(cx, dims)
}

fn transpose_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match (cx.constant_ints(1), cx.dims(0)?) {
        (Some(perm), _) => {
            let dims = cx.dims_of_rank(0, perm.len())?;
            perm.iter().map(|&p| Ok(dims[cx.normalize_axis(p, dims.len())?])).collect::<Result<Vec<_>>>()?.into()
        }
        (None, Dims::Ranked(dims)) => cx.fresh_shape(dims.len(), UnknownReason::Value(1)),
        (None, dims @ Dims::Unranked(_)) => dims,
    };
    cx.one_output_like(0, dims)
}

fn broadcast_to_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(1)?;
    cx.one_output_like(0, dims)
}

/// Shape function of `BroadcastArgs`: a vector as long as the longer of two shapes, with its elements if both shapes are known
/// well enough.
fn broadcast_args_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (x, y) = (cx.shape_from_value(0)?, cx.shape_from_value(1)?);
    let both = cx.broadcast(&x, &y)?;
    match (both, cx.dtype(0)) {
        (Dims::Ranked(dims), Some(dtype)) => {
            let values = dims.iter().map(|&d| d.into()).collect();
            Ok(vec![Fact::from_ints(dtype, &[dims.len() as u64], values)])
        }
        (both, dtype) => {
            let n = cx.fresh_dim(both.first_unknown().map_or(UnknownReason::Value(0), UnknownReason::From));
            cx.one_output(dtype, vec![n])
        }
    }
}

fn broadcast_gradient_args_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (a, b) = (cx.fresh_dim(UnknownReason::Value(0)), cx.fresh_dim(UnknownReason::Value(1)));
    Ok(vec![Fact::new(cx.dtype(0), vec![a].into()), Fact::new(cx.dtype(0), vec![b].into())])
}

/// Shape function of `Bitcast`: a last dimension is added or removed if the element sizes differ.
fn bitcast_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (from, to) = (cx.dtype(0).and_then(TfType::dtype), cx.attr_type("type"));
    let dims = match (from, to.and_then(TfType::dtype), cx.ranked_dims(0)?) {
        (Some(from), Some(to), Some(mut dims)) => {
            if from.bits() > to.bits() {
                dims.push(InferredDim::Known(u64::from(from.bits() / to.bits())));
            } else if from.bits() < to.bits() && dims.pop().is_none() {
                return Err(cx.shape_mismatch(format!("a scalar of {from} is no {to}")));
            }
            dims.into()
        }
        _ => cx.unranked_from(0),
    };
    cx.one_output(to, dims)
}
