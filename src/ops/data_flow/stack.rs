//! Stacks of TensorFlow 1: lists that grow and shrink at their end.
use super::{mutable_list_arg, on_list};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, TfType};
use crate::ops::fact::Fact;
use crate::ops::list;
use crate::ops::mutable_list::{MutableList, MutableListId, MutableListKind};
use crate::ops::op_lowering::op;
use crate::ops::shape;
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::symbolic::Dim;
use std::sync::Arc;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("StackV2", "max_size -> handle", make).shape(handle_shape),
    op("StackPushV2", "handle elem -> output", push)
        .shape(|cx| cx.one_output_like(1, cx.dims(1)?))
        .assigns_inputs(&[0]),
    op("StackPopV2", "handle -> elem", pop).with_check(not_empty).shape(pop_shape).assigns_inputs(&[0]),
    op("StackCloseV2", "handle ->", |_| Ok(vec![])).shape(shape::no_outputs),
];

fn make(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dtype, name) = (cx.attr_dtype("elem_type")?, Arc::from(&*cx.node.name));
    let elements = Value::UnshapedList { length: Dim::from(0), now: None, dtype, name, open: None };
    let list =
        MutableList { name: cx.node.name.to_string(), kind: MutableListKind::Stack, elements, gradients: Vec::new() };
    Ok(vec![Value::MutableList(cx.mutable_lists.add(list))])
}

/// Id and elements of the stack whose handle is input 0.
fn stack(cx: &LowerCtx) -> Result<(MutableListId, Value)> {
    let id = mutable_list_arg(cx, 0)?;
    let MutableList { kind, elements, .. } = cx.mutable_lists.get(id)?;
    match kind {
        MutableListKind::Stack => Ok((id, elements.clone())),
        MutableListKind::Array { .. } => Err(Error::user(Code::TypeMismatch, "input 0 must be the handle of a stack")),
    }
}

fn push(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((id, elements), item) = (stack(cx)?, cx.args[1].clone());
    let elements = on_list(cx, elements, std::slice::from_ref(&item), list::push_back)?;
    cx.mutable_lists.get_mut(id)?.elements = elements;
    Ok(vec![item])
}

/// Run-time check that a stack is not empty before a pop.
fn not_empty(cx: &mut LowerCtx) -> Result<()> {
    let (_, elements) = stack(cx)?;
    list::checks::check_not_empty(&mut cx.with_args(vec![elements]))
}

fn pop(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (id, elements) = stack(cx)?;
    let Value::List(list) = elements else { return Err(cx.shape_mismatch("the stack is empty")) };
    let Some((rest, item)) = list.popped(cx.b) else { return Err(cx.shape_mismatch("the stack is empty")) };
    cx.mutable_lists.get_mut(id)?.elements = Value::List(rest);
    cx.one_output(item)
}

fn handle_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output(TfType::Resource, vec![])
}

fn pop_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.node.attr("_output_shapes") {
        Some(Attr::Shapes(told)) if !told.is_empty() => cx.attr_shape(&told[0].clone()),
        _ => cx.unranked(UnknownReason::NoShapeFunction),
    };
    cx.one_output_typed_by("elem_type", dims)
}
