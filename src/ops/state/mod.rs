//! Variables: reads and assignments.
//!
//! A handle is an index into the [`VariableStore`](crate::ops::VariableStore), and the variable's value at a point of the walk is an ordinary
//! instruction. An op that changes a variable is thus lowered as an op on values, whose result is written back. The handle of a
//! constant variable stands for its value, so that reading it is the identity.
mod resizable_variables;
mod reference;
mod scatter;

use super::array::{gather, gather_nd, strided_update};
use super::fact::{Dims, ElementSpec, Fact, InferredInt, VariableHandle};
use super::op_lowering::op;
use super::shape::{PRED, no_outputs};
use super::symbols::UnknownReason;
use super::{LowerCtx, OpLowering, ShapeCtx, Value, Work};
use crate::diag::{Code, Diagnostic, Result};
use crate::graph::{Attr, TfType};
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::checks;
use crate::tensor::Tensor;

const PLAIN: &[OpLowering] = &[
    op("VarHandleOp", "-> resource", handle).shape(handle_shape).work(Work::None).boundary(),
    op("VarIsInitializedOp", "resource -> is_initialized", initialised)
        .shape(|cx| cx.one_output(PRED, vec![]))
        .work(Work::None),
    op("ReadVariableOp", "resource -> value", read).shape(read_shape).work(Work::None),
    op("VariableShape", "input -> output", variable_shape).shape(variable_shape_shape),
    op("AssignVariableOp", "resource value ->", assign).shape(no_outputs).assigns_inputs(&[0]).work(Work::None),
    op("AssignAddVariableOp", "resource value ->", |cx| change(cx, Builder::add))
        .shape(no_outputs)
        .assigns_inputs(&[0]),
    op("AssignSubVariableOp", "resource value ->", |cx| change(cx, Builder::sub))
        .shape(no_outputs)
        .assigns_inputs(&[0]),
    op("ResourceGather", "resource indices -> output", |cx| from(cx, gather))
        .with_check(checks::check_row_indices)
        .shape(gather_shape),
    op("ResourceGatherNd", "resource indices -> output", |cx| from(cx, gather_nd))
        .with_check(checks::check_index_tuples)
        .shape(gather_nd_shape),
    op("ResourceStridedSliceAssign", "ref begin end strides value ->", |cx| into(cx, strided_update))
        .shape(no_outputs)
        .assigns_inputs(&[0])
        .constant_inputs(&[3]),
];

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[PLAIN, scatter::ROWS, reference::ROWS];

/// Largest number of names listed in a message; the others are counted.
const LISTED: usize = 3;

/// Lowering of an op that works on arrays, not on handles.
type OnArrays = fn(&mut LowerCtx) -> Result<Vec<Value>>;

/// Outputs of `f` with input 0, a handle, replaced by the variable's value.
fn from(cx: &mut LowerCtx, f: OnArrays) -> Result<Vec<Value>> {
    let value = cx.read_variable(0)?;
    let handle = std::mem::replace(&mut cx.args[0], Value::Array(value));
    let out = f(cx);
    cx.args[0] = handle;
    out
}

/// Applies `f` to the value of the variable whose handle is input 0, and assigns the first output to the variable.
fn into(cx: &mut LowerCtx, f: OnArrays) -> Result<Vec<Value>> {
    if let Some(Value::Array(y)) = from(cx, f)?.first() {
        cx.write_variable(0, *y)?;
    }
    Ok(vec![])
}

/// Lowers an op that gives the handle of a variable.
fn handle(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let found = cx.store.variable_of_node(cx.node).ok_or_else(|| missing_value_error(&[cx.node.name.to_string()]))?;
    Ok(vec![Value::Variable(found)])
}

/// Diagnostic for variables without a value.
pub fn missing_value_error(names: &[String]) -> Diagnostic {
    let listed: Vec<String> = names.iter().take(LISTED).map(|n| format!("`{n}`")).collect();
    let message = match (&listed[..], names.len().saturating_sub(LISTED)) {
        ([one], _) => format!("the variable {one} has no value"),
        (some, 0) => format!("the variables {} have no value", some.join(", ")),
        (some, more) => format!("the variables {} and {more} more have no value", some.join(", ")),
    };
    Diagnostic::new(Code::VariableWithoutValue, message).help(
        "save the model with its variables: `model.export(folder)` in Keras, `tf.saved_model.save`, or a frozen graph",
    )
}

/// Lowers a test for initialization: every variable has a value before the first call.
fn initialised(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    cx.read_variable(0)?;
    let yes = cx.b.constant(Tensor::from_bools(&[], &[true]));
    cx.one_output(yes)
}

fn read(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let value = cx.read_variable(0)?;
    cx.one_output(value)
}

fn variable_shape(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.read_variable(0)?;
    let sizes = cx.b.dims(x).to_vec();
    let sizes = cx.b.size_constant(crate::tensor::DType::S64, &[sizes.len() as u64], sizes);
    let dtype = cx.attr_dtype("out_type")?;
    let sizes = cx.b.convert(sizes, dtype);
    cx.one_output(sizes)
}

fn assign(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let value = cx.arg(1)?;
    cx.write_variable(0, value)?;
    Ok(vec![])
}

fn change(cx: &mut LowerCtx, op: fn(&mut Builder, InstId, InstId) -> InstId) -> Result<Vec<Value>> {
    let (old, by) = (cx.read_variable(0)?, cx.arg(1)?);
    if cx.b.dims(old) != cx.b.dims(by) {
        return Err(cx.shape_mismatch(format!(
            "the variable is {}, and what changes it {}",
            cx.b.shape(old),
            cx.b.shape(by)
        )));
    }
    let new = op(cx.b, old, by);
    cx.write_variable(0, new)?;
    Ok(vec![])
}

fn handle_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.node.attr("shape") {
        Some(Attr::Shape(shape)) => cx.attr_shape(&shape.clone()),
        _ => cx.unranked(UnknownReason::Attribute),
    };
    let variable = VariableHandle { node: (&*cx.node.name).into(), asks_for: cx.node.variable_name().into() };
    let dtype = cx.attr_type("dtype");
    let element = ElementSpec { dtype, dims, length: InferredInt::Unknown, open: false, variable: Some(variable) };
    Ok(vec![Fact::handle(TfType::Resource, element)])
}

/// Shape of the variable whose handle is input 0.
fn variable_dims(cx: &mut ShapeCtx) -> Result<Dims> {
    let handle = cx.arg(0)?;
    match (&handle.element, handle.dtype) {
        (Some(element), _) => Ok(element.dims.clone()),
        (None, Some(TfType::Data(_))) => Ok(handle.dims.clone()),
        (None, _) => Ok(cx.unranked(UnknownReason::Value(0))),
    }
}

fn read_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let constant = cx.arg(0)?;
    if let (None, Some(TfType::Data(_))) = (&constant.element, constant.dtype) {
        return Ok(vec![constant.clone()]);
    }
    let dims = variable_dims(cx)?;
    cx.one_output_typed_by("dtype", dims)
}

fn variable_shape_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = variable_dims(cx)?;
    let dtype = cx.attr_type("out_type");
    match (dims.as_ranked(), dtype) {
        (Some(dims), Some(dtype)) => {
            Ok(vec![Fact::from_ints(dtype, &[dims.len() as u64], dims.iter().map(|&d| d.into()).collect())])
        }
        _ => {
            let rank = cx.fresh_dim(UnknownReason::Value(0));
            cx.one_output(dtype, vec![rank])
        }
    }
}

fn gather_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let params = variable_dims(cx)?;
    let out = match (params.as_ranked(), cx.ranked_dims(1)?) {
        (Some([_, rest @ ..]), Some(places)) if cx.node.int("batch_dims").unwrap_or(0) == 0 => {
            [&places[..], rest].concat().into()
        }
        _ => cx.unranked(UnknownReason::Value(0)),
    };
    cx.one_output_typed_by("dtype", out)
}

fn gather_nd_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let params = variable_dims(cx)?;
    let out = match (params.as_ranked(), cx.ranked_dims(1)?.as_deref()) {
        (Some(dims), Some([lead @ .., super::symbols::InferredDim::Known(depth)])) => {
            let rest = usize::try_from(*depth).ok().and_then(|d| dims.get(d..));
            rest.map(|rest| [lead, rest].concat().into())
        }
        _ => None,
    };
    let out = out.unwrap_or_else(|| cx.unranked(UnknownReason::Value(0)));
    cx.one_output_typed_by("dtype", out)
}
