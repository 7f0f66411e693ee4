//! Stacks: room for as many elements as there can be, and how many there are.
use super::{holder, on_list};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, TfType};
use crate::hlo::InstId;
use crate::ops::fact::Fact;
use crate::ops::holder::{Holder, HolderKind};
use crate::ops::list;
use crate::ops::row::op;
use crate::ops::shape;
use crate::ops::symbols::Why;
use crate::ops::{LowerCtx, OpRow, ShapeCtx, Value};
use crate::tensor::Tensor;

/// The rows of this file.
pub const ROWS: &[OpRow] = &[
    op("StackV2", "max_size -> handle", make).shape(handle_shape),
    op("StackPushV2", "handle elem -> output", push).shape(|cx| cx.like(1, cx.dims(1)?)).writes(&[0]),
    op("StackPopV2", "handle -> elem", pop).shape(pop_shape).writes(&[0]),
    op("StackCloseV2", "handle ->", |_| Ok(vec![])).shape(shape::nothing),
];

fn make(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dtype = cx.attr_dtype("elem_type")?;
    let count = cx.b.constant(Tensor::scalar(0i32));
    let holder = Holder {
        name: cx.node.name.to_string(),
        kind: HolderKind::Stack { count, most: 0 },
        elements: Value::UnshapedList { length: 0, dtype },
        gradients: Vec::new(),
    };
    Ok(vec![Value::Holder(cx.holders.add(holder))])
}

/// How many elements a stack has, and at most has.
fn counted(kind: &HolderKind) -> Result<(InstId, u64)> {
    match kind {
        HolderKind::Stack { count, most } => Ok((*count, *most)),
        HolderKind::Array { .. } => Err(Error::user(Code::TypeMismatch, "input 0 must be the handle of a stack")),
    }
}

fn push(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (id, item) = (holder(cx, 0)?, cx.arg(1)?);
    let Holder { kind, elements, .. } = cx.holders.get(id)?.clone();
    let (count, most) = counted(&kind)?;
    let more = most + 1;
    let roomy = list::with_room(cx.b, &elements, more)?;
    let elements = on_list(cx, roomy, &[Value::Array(count), Value::Array(item)], list::set_item)?;
    let one = cx.b.constant(Tensor::scalar(1i32));
    let count = cx.b.add(count, one);
    let stack = cx.holders.get_mut(id)?;
    (stack.elements, stack.kind) = (elements, HolderKind::Stack { count, most: more });
    Ok(vec![cx.args[1].clone()])
}

fn pop(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let id = holder(cx, 0)?;
    let Holder { kind, elements, .. } = cx.holders.get(id)?.clone();
    let (count, most) = counted(&kind)?;
    let one = cx.b.constant(Tensor::scalar(1i32));
    let count = cx.b.sub(count, one);
    let item = on_list(cx, elements, &[Value::Array(count)], list::get_item)?;
    cx.holders.get_mut(id)?.kind = HolderKind::Stack { count, most: most.saturating_sub(1) };
    Ok(vec![item])
}

fn handle_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one(TfType::Resource, vec![])
}

fn pop_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.node.attr("_output_shapes") {
        Some(Attr::Shapes(told)) if !told.is_empty() => cx.attr_shape(&told[0].clone()),
        _ => cx.unranked(Why::NoShapeFunction),
    };
    cx.typed("elem_type", dims)
}
