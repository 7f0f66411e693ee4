//! TensorArrays of TensorFlow 1. Writes to one that holds gradients add to the old element, as TensorFlow does.
use super::{mutable_list_arg, on_list};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::{Attr, TfType};
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::{gather, scatter};
use crate::ops::checks;
use crate::ops::fact::{Dims, Fact};
use crate::ops::list;
use crate::ops::mutable_list::{MutableList, MutableListId, MutableListKind};
use crate::ops::op_lowering::op;
use crate::ops::shape::{self, S32, S64};
use crate::ops::symbols::UnknownReason;
use crate::ops::value::ListValue;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::constant_dims;
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("TensorArrayV3", "size -> handle flow", make).shape(make_shape).constant_inputs(&[0]),
    op("TensorArrayWriteV3", "handle index value flow_in -> flow_out", write)
        .with_check(place)
        .shape(|cx| cx.one_output_like(3, vec![])),
    op("TensorArrayReadV3", "handle index flow_in -> value", read).with_check(element).shape(opaque),
    op("TensorArrayGatherV3", "handle indices flow_in -> value", gathered).with_check(element).shape(gather_shape),
    op("TensorArrayScatterV3", "handle indices value flow_in -> flow_out", scattered)
        .with_check(place)
        .shape(|cx| cx.one_output_like(3, vec![])),
    op("TensorArrayConcatV3", "handle flow_in -> value lengths", concat).shape(concat_shape),
    op("TensorArraySplitV3", "handle value lengths flow_in -> flow_out", split)
        .shape(|cx| cx.one_output_like(3, vec![]))
        .constant_inputs(&[2]),
    op("TensorArraySizeV3", "handle flow_in -> size", size).shape(|cx| cx.one_output(S32, vec![])),
    op("TensorArrayCloseV3", "handle ->", |_| Ok(vec![])).shape(shape::no_outputs),
    op("TensorArrayGradV3", "handle flow_in -> grad_handle flow_out", gradient).shape(make_shape),
];

fn make(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (length, now) = match cx.constant_dim(0) {
        Ok(n) => (Dim::size(n).map_err(|_| cx.shape_mismatch(format!("a TensorArray of {n} elements")))?, None),
        Err(refused) => {
            let count = cx.arg(0)?;
            let count = cx.b.reshape(count, &[]);
            let (now, most) = list::bounded_count(cx, count).ok_or(refused)?;
            (most, Some(now))
        }
    };
    let dtype = cx.attr_dtype("dtype")?;
    let elements = Value::UnshapedList { length, now, dtype, name: Arc::from(&*cx.node.name), open: None };
    let elements = list::with_element_shape(cx.b, elements, attr_dims(cx).as_deref())?;
    let kind = MutableListKind::Array { dynamic: cx.bool_attr("dynamic_size"), adds: false };
    let list = MutableList { name: cx.node.name.to_string(), kind, elements, gradients: Vec::new() };
    let id = cx.mutable_lists.add(list);
    let flow = cx.b.constant(Tensor::scalar(0f32));
    Ok(vec![Value::MutableList(id), Value::Array(flow)])
}

/// Element shape that the node declares, if all of it is known.
fn attr_dims(cx: &LowerCtx) -> Option<Vec<Dim>> {
    match cx.node.attr("element_shape") {
        Some(Attr::Shape(shape)) => shape.fixed().map(|dims| constant_dims(&dims)),
        _ => None,
    }
}

/// TensorArray whose handle is input 0: its id, its elements, whether it may grow, and whether writes add.
fn array(cx: &LowerCtx) -> Result<(MutableListId, Value, bool, bool)> {
    let id = mutable_list_arg(cx, 0)?;
    let MutableList { kind, elements, .. } = cx.mutable_lists.get(id)?;
    match kind {
        MutableListKind::Array { dynamic, adds } => Ok((id, elements.clone(), *dynamic, *adds)),
        MutableListKind::Stack => Err(Error::user(
            Code::TypeMismatch,
            "input 0 must be the handle of a TensorArray, and it is that of a stack",
        )),
    }
}

/// Run-time check of the read indices in input 1.
fn element(cx: &mut LowerCtx) -> Result<()> {
    let (_, elements, ..) = array(cx)?;
    let args = vec![elements, cx.args[1].clone()];
    list::checks::check_element_index(&mut cx.with_args(args))
}

/// Run-time check of the write indices in input 1; a TensorArray that grows accepts every index from 0 on.
fn place(cx: &mut LowerCtx) -> Result<()> {
    match array(cx)? {
        (_, _, true, _) => checks::fail_outside_list(cx, None),
        _ => element(cx),
    }
}

/// Stores the new elements of a TensorArray; returns its flow value, input `flow`.
fn put(cx: &mut LowerCtx, id: MutableListId, elements: Value, flow: usize) -> Result<Vec<Value>> {
    cx.mutable_lists.get_mut(id)?.elements = elements;
    cx.args.get(flow).map(|v| vec![v.clone()]).ok_or_else(|| Error::user(Code::BadGraph, "the flow is missing"))
}

fn write(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (id, mut elements, dynamic, adds) = array(cx)?;
    let (index, mut item) = (cx.args[1].clone(), cx.arg(2)?);
    if adds && let Value::List(list) = &elements {
        let list = if dynamic { list.extended_to_index(cx, cx.arg(1)?)? } else { list.clone() };
        elements = Value::List(list);
        let before = on_list(cx, elements.clone(), std::slice::from_ref(&index), list::get_item)?;
        if let Value::Array(before) = before {
            item = cx.b.add(before, item);
        }
    }
    let set = if dynamic {
        |cx: &mut LowerCtx| list::write_item(cx, true)
    } else {
        |cx: &mut LowerCtx| list::write_item(cx, false)
    };
    let elements = on_list(cx, elements, &[index, Value::Array(item)], set)?;
    put(cx, id, elements, 3)
}

/// Elements as a list of known element shape.
fn shaped(cx: &mut LowerCtx, elements: Value) -> Result<ListValue> {
    let dims = attr_dims(cx);
    match list::with_element_shape(cx.b, elements, dims.as_deref())? {
        Value::List(list) => Ok(list),
        _ => Err(Error::user(
            Code::DynamicShape,
            "the shape of the TensorArray's elements is not known: nothing was written, and it was made with an open shape",
        )),
    }
}

fn read(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (_, elements, ..) = array(cx)?;
    let index = cx.args[1].clone();
    let elements = Value::List(shaped(cx, elements)?);
    Ok(vec![on_list(cx, elements, &[index], list::get_item)?])
}

/// Whether an input is known to be the indices of all elements in order. False for a list of run-time length, which may have
/// fewer elements than room.
fn is_all(cx: &LowerCtx, input: usize, list: &ListValue) -> bool {
    let n = list.capacity(cx.b);
    let small = list.count.is_none() && cx.arg(input).is_ok_and(|id| cx.b.dims(id) == [n]);
    small
        && match n.varies() {
            true => cx.arg(input).is_ok_and(|id| list::is_iota(cx.b, id)),
            false => cx.constant_ints(input).is_ok_and(|v| v.into_iter().eq(0..n.guarded_value())),
        }
}

fn gathered(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (_, elements, ..) = array(cx)?;
    let all = shaped(cx, elements)?;
    if is_all(cx, 1, &all) {
        return cx.one_output(all.buffer);
    }
    let indices = cx.arg(1)?;
    let y = gather::gather_along_axis(cx, all.buffer, indices, 0, 0)?;
    cx.one_output(y)
}

/// Elements as a list whose element shape is that of a row of `rows`.
fn like_rows(cx: &mut LowerCtx, elements: Value, rows: InstId) -> Result<ListValue> {
    let dims = cx.b.dims(rows).to_vec();
    let Some((_, dims)) = dims.split_first() else { return Err(cx.shape_mismatch("a scalar has no elements")) };
    match list::with_element_shape(cx.b, elements, Some(dims))? {
        Value::List(list) if cx.b.dims(list.buffer)[1..] == *dims => Ok(list),
        Value::List(list) => {
            let message = format!("elements of {dims:?} into a TensorArray of {}", cx.b.shape(list.buffer));
            Err(cx.shape_mismatch(message))
        }
        _ => Err(Error::internal("lower", "a list that takes no shape")),
    }
}

/// Elements, grown to include the indices in an input if the TensorArray is dynamic.
fn holding_all(cx: &mut LowerCtx, elements: ListValue, dynamic: bool, indices: usize) -> Result<ListValue> {
    if !dynamic {
        return Ok(elements);
    }
    let each = cx.arg(indices)?;
    if list::is_iota(cx.b, each) {
        let count = cx.b.dims(each)[0];
        return elements.extended_to(cx.b, count);
    }
    let largest = match cx.constant_ints(indices) {
        Ok(all) => all.into_iter().max().unwrap_or(-1),
        Err(_) => {
            let told = "a TensorArray with dynamic_size=True is written at indices that are only known at run time";
            return Err(Error::user(Code::DynamicShape, told));
        }
    };
    elements.extended_to(cx.b, Dim::size(largest).map_or(Dim::from(0), |i| i + 1))
}

fn scattered(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (id, elements, dynamic, adds) = array(cx)?;
    let rows = cx.arg(2)?;
    let before = like_rows(cx, elements, rows)?;
    let before = holding_all(cx, before, dynamic, 1)?;
    let after = match (is_all(cx, 1, &before), adds) {
        (true, false) => ListValue::from_buffer(rows, &before.name),
        (true, true) => ListValue::from_buffer(cx.b.add(before.buffer, rows), &before.name),
        (false, _) => {
            let indices = cx.arg(1)?;
            let k = cx.b.dims(indices).first().copied().unwrap_or(Dim::from(1));
            let indices = cx.b.reshape(indices, &dims![k, 1]);
            let buffer = scatter::scatter(cx, before.buffer, indices, rows, adds.then_some(ScalarOp::Add))?;
            ListValue { buffer, ..before }
        }
    };
    put(cx, id, Value::List(after), 3)
}

fn concat(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (_, elements, ..) = array(cx)?;
    let all = Value::List(shaped(cx, elements)?);
    list::concat(&mut cx.with_args(vec![all]))
}

fn split(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (id, elements, dynamic, adds) = array(cx)?;
    let (x, lengths) = (cx.args[1].clone(), cx.args[2].clone());
    let new = on_list(cx, x, &[Value::Unavailable(TfType::Variant), lengths], list::split)?;
    let Value::List(new) = new else {
        return Err(cx.unsupported_case("a split of a TensorArray into elements of different lengths"));
    };
    let n = new.capacity(cx.b);
    let mut before = like_rows(cx, elements, new.buffer)?;
    if dynamic {
        before = before.extended_to(cx.b, n)?;
    }
    let whole = before.to_array(cx)?;
    let have = cx.b.dims(whole)[0];
    if have != n {
        return Err(cx.shape_mismatch(format!("{n} elements for a TensorArray of {have}")));
    }
    let after = if adds { cx.b.add(whole, new.buffer) } else { new.buffer };
    put(cx, id, Value::List(ListValue::from_buffer(after, &before.name)), 3)
}

fn size(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (_, elements, ..) = array(cx)?;
    Ok(vec![on_list(cx, elements, &[], list::length)?])
}

fn gradient(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (id, elements, ..) = array(cx)?;
    let source = cx.require_attr(cx.node.str("source"), "source")?.to_string();
    let zeros = list::zeros_like(cx.b, &elements)?;
    let new = cx.mutable_lists.gradient_array(id, &source, zeros)?;
    let flow = cx.args.get(1).cloned().ok_or_else(|| Error::user(Code::BadGraph, "the flow is missing"))?;
    Ok(vec![Value::MutableList(new), flow])
}

fn make_shape(_cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let handle = Fact::new(Some(TfType::Resource), Dims::from_sizes(&[2]));
    let flow = Fact::new(Some(TfType::Data(DType::F32)), Dims::from_sizes(&[]));
    Ok(vec![handle, flow])
}

fn opaque(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.unranked(UnknownReason::NoShapeFunction);
    cx.one_output_typed_by("dtype", dims)
}

/// Shape function of `TensorArrayGather`: the elements at the indices, of the shape that the node declares.
fn gather_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.dims_of_rank(1, 1)?;
    let element = match cx.node.attr("element_shape") {
        Some(Attr::Shape(shape)) => cx.attr_shape(shape),
        _ => cx.unranked(UnknownReason::Attribute),
    };
    let dims = element.as_ranked().map(|dims| [&n[..], dims].concat().into()).unwrap_or(element);
    cx.one_output_typed_by("dtype", dims)
}

fn concat_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let value = opaque(cx)?;
    let n = cx.fresh_dim(UnknownReason::NoShapeFunction);
    Ok([value, cx.one_output(S64, vec![n])?].concat())
}
