//! Constants, pass-through nodes, and the ops that call functions.
use super::fact::{Dims, Fact};
use super::op_lowering::{CallKind, functional_op, op};
use super::shape::{self, forward_first_input};
use super::shape_ctx::ShapeCtx;
use super::symbols::UnknownReason;
use super::{LowerCtx, OpLowering, StringConstant, Value};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, TfType};
use crate::ops::checks;
use crate::symbolic::constant_dims;

const NODES: &[OpLowering] = &[
    op("Const", "-> output", constant).shape(constant_shape),
    op("Identity", "input -> output", pass).shape(forward_first_input).forwards_inputs().dtypes("any, also lists"),
    op("IdentityN", "input* -> output*", pass).shape(shape::forward_inputs).forwards_inputs().dtypes("any, also lists"),
    op("Snapshot", "input -> output", pass).shape(forward_first_input).forwards_inputs(),
    op("StopGradient", "input -> output", pass).shape(forward_first_input).forwards_inputs(),
    op("PreventGradient", "input -> output", pass).shape(forward_first_input).forwards_inputs(),
    op("CheckNumerics", "tensor -> output", pass)
        .with_check(checks::check_finite_input)
        .shape(forward_first_input)
        .dtypes("floats; checked with `--checked`"),
    op("CheckNumericsV2", "tensor -> output", pass)
        .with_check(checks::check_finite_input)
        .shape(forward_first_input)
        .dtypes("floats; checked with `--checked`"),
    op("EnsureShape", "input -> output", ensure_shape).moves_strings().shape(ensure_shape_shape),
    op("PlaceholderWithDefault", "input -> output", pass).shape(forward_first_input).boundary(),
    op("Print", "input data* -> output", first).shape(forward_first_input).dtypes("any; nothing is printed"),
    op("_EagerConst", "input -> output", pass).shape(forward_first_input),
    op("NoOp", "->", nothing).shape(shape::no_outputs).boundary(),
    op("ControlTrigger", "->", nothing).shape(shape::no_outputs),
    op("Assert", "condition data* ->", nothing)
        .with_check(checks::check_assertion)
        .shape(shape::no_outputs)
        .dtypes("any; checked with `--checked`"),
    op("FakeParam", "-> output", fake_param).shape(fake_param_shape),
    op("DeviceIndex", "-> index", device_index),
];

const FUNCTIONAL: &[OpLowering] = &[
    functional_op("PartitionedCall", "args* -> output*", CallKind::Call),
    functional_op("StatefulPartitionedCall", "args* -> output*", CallKind::Call),
    functional_op("If", "cond input* -> output*", CallKind::If),
    functional_op("StatelessIf", "cond input* -> output*", CallKind::If),
    functional_op("Case", "branch_index input* -> output*", CallKind::Case),
    functional_op("StatelessCase", "branch_index input* -> output*", CallKind::Case),
    functional_op("While", "input* -> output*", CallKind::While),
    functional_op("StatelessWhile", "input* -> output*", CallKind::While),
];

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[NODES, FUNCTIONAL];

fn constant(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    match cx.node.attr("value") {
        Some(Attr::Tensor(t)) => {
            let id = cx.b.constant((**t).clone());
            cx.one_output(id)
        }
        Some(Attr::Strings(dims, all)) => Ok(vec![StringConstant::to_value(dims, all)]),
        Some(Attr::OpaqueTensor(t)) => Ok(vec![Value::Unavailable(*t)]),
        _ => Err(Error::user(Code::BadAttr, "attribute `value` must be a tensor")),
    }
}

fn pass(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    Ok(cx.args.clone())
}

fn first(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    Ok(cx.args.iter().take(1).cloned().collect())
}

fn nothing(_cx: &mut LowerCtx) -> Result<Vec<Value>> {
    Ok(vec![])
}

fn ensure_shape(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    if let Some(Attr::Shape(shape)) = cx.node.attr("shape")
        && let Some(want) = &shape.0
    {
        let fits = want.len() == dims.len() && want.iter().zip(&dims).all(|(w, d)| w.is_none_or(|w| w == *d));
        if !fits {
            return Err(cx.shape_mismatch(format!("the input has the shape {dims:?}, not {shape}")));
        }
    }
    cx.one_output(x)
}

fn fake_param(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dtype = match cx.require_attr(cx.node.tf_type("dtype"), "dtype")? {
        TfType::Data(t) => t,
        other => return Ok(vec![Value::Unavailable(other)]),
    };
    let dims = match cx.node.attr("shape") {
        Some(Attr::Shape(s)) => s.fixed(),
        _ => None,
    };
    let Some(dims) = dims else { return Err(cx.unsupported_case("a FakeParam whose shape is not fixed")) };
    let zero = cx.b.full(dtype, &constant_dims(&dims), 0.0);
    cx.one_output(zero)
}

/// Lowers `DeviceIndex`: the position of `CPU` among the device names, or their number if it is missing.
fn device_index(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let names: &[bytes::Bytes] = if let Some(Attr::Strs(names)) = cx.node.attr("device_names") { names } else { &[] };
    let at = names.iter().position(|n| &n[..] == b"CPU").unwrap_or(names.len());
    let id = cx.b.constant(crate::tensor::Tensor::scalar(at as i32));
    cx.one_output(id)
}

/// Shape function of `Const`, for a constant of any type.
fn constant_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.node.attr("value") {
        Some(Attr::Tensor(value)) => return Ok(vec![Fact::constant(value)]),
        Some(Attr::Strings(dims, _)) => Dims::from_sizes(dims),
        _ => cx.unranked(UnknownReason::Attribute),
    };
    cx.one_output_typed_by("dtype", dims)
}

/// Shape function of `EnsureShape`: the shape of the input, merged with that of the attribute.
fn ensure_shape_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let mut fact = cx.arg(0)?.clone();
    if let Some(Attr::Shape(told)) = cx.node.attr("shape") {
        let told = cx.attr_shape(told);
        fact.dims = cx.merge_shapes(&fact.dims, &told)?;
    }
    Ok(vec![fact])
}

fn fake_param_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.node.attr("shape") {
        Some(Attr::Shape(told)) => cx.attr_shape(told),
        _ => cx.unranked(UnknownReason::Attribute),
    };
    cx.one_output_typed_by("dtype", dims)
}
