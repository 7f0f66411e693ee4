//! `list_ops.cc`: TensorLists. Lists of arrays of equal shape are one array with room for a bounded number of elements; others
//! keep their elements apart.
mod arrays;
pub mod checks;
mod ragged_rows;
mod capacity;
mod scatter;
mod shape;
mod nesting;
pub mod sum;
mod heterogeneous_lists;

pub(super) use arrays::{concat, is_iota, split};
use arrays::{from_tensor, gather, stack};
pub use capacity::{check_list_size, with_element_shape, zeros_like};

use super::op_lowering::op;
use super::value::{CommonElement, ListValue, RaggedValue};
use super::{LowerCtx, OpLowering, Value};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::{Node, PartialShape, TfType};
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::scalar::ScalarOp;
use crate::symbolic::product;
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

const NODES: &[OpLowering] = &[
    op("TensorListReserve", "element_shape num_elements -> handle", reserve)
        .shape(shape::reserve)
        .constant_inputs(&[1]),
    op("EmptyTensorList", "element_shape max_num_elements -> handle", empty).shape(shape::empty),
    op("TensorListFromTensor", "tensor element_shape -> output_handle", from_tensor).shape(shape::from_tensor),
    op("TensorListSetItem", "input_handle index item -> output_handle", set_item)
        .with_check(checks::check_write_index)
        .shape(shape::set_item),
    op("TensorListGetItem", "input_handle index element_shape -> item", get_item)
        .with_check(checks::check_element_index)
        .shape(shape::get_item),
    op("TensorListStack", "input_handle element_shape -> tensor", stack).shape(shape::stack),
    op("TensorListLength", "input_handle -> length", length).shape(shape::length),
    op("TensorListElementShape", "input_handle -> element_shape", element_shape).shape(shape::element_shape),
    op("TensorListGather", "input_handle indices element_shape -> values", gather)
        .with_check(checks::check_element_index)
        .shape(shape::gather),
    op("TensorListPushBack", "input_handle tensor -> output_handle", push_back).shape(shape::push_back),
    op("TensorListPopBack", "input_handle element_shape -> output_handle tensor", pop_back)
        .with_check(checks::check_not_empty)
        .shape(shape::pop_back),
    op("TensorListConcatV2", "input_handle element_shape leading_dims -> tensor lengths", concat).shape(shape::concat),
    op("TensorListConcat", "input_handle -> tensor lengths", concat).shape(shape::concat),
    op("TensorListResize", "input_handle size -> output_handle", resize).shape(shape::resize),
    op("TensorListScatter", "tensor indices element_shape -> output_handle", scatter::scatter_into_new)
        .shape(shape::scatter),
    op("TensorListScatterV2", "tensor indices element_shape num_elements -> output_handle", scatter::scatter_into_new)
        .shape(shape::scatter)
        .constant_inputs(&[3]),
    op(
        "TensorListScatterIntoExistingList",
        "input_handle tensor indices -> output_handle",
        scatter::scatter_into_existing,
    )
    .shape(shape::scatter_into_existing),
    op("TensorListSplit", "tensor element_shape lengths -> output_handle", split)
        .shape(shape::split)
        .constant_inputs(&[2]),
];

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[NODES];

/// Whether a node may change the number of elements of a list, a TensorArray or a stack.
pub fn resizes_list(node: &Node) -> bool {
    match &*node.op {
        "TensorListPushBack" | "TensorListPopBack" | "TensorListResize" | "StackPushV2" | "StackPopV2" => true,
        "TensorListSetItem" => node.bool("resize_if_index_out_of_bounds") == Some(true),
        "TensorArrayV3" => node.bool("dynamic_size") == Some(true),
        _ => false,
    }
}

fn list(cx: &mut LowerCtx, i: usize) -> Result<ListValue> {
    match cx.args.get(i) {
        Some(Value::List(list)) => Ok(list.clone()),
        Some(Value::Heterogeneous(list)) => list.clone().stack_elements(cx.b),
        Some(Value::UnshapedList { name, .. }) => {
            let told = format!(
                "the shape of the elements of the list `{name}` is not known: no element was set, and it was made with an open shape"
            );
            Err(Error::user(Code::DynamicShape, told))
        }
        _ => Err(Error::user(Code::TypeMismatch, format!("input {i} must be a TensorList"))),
    }
}

/// Rows of a RaggedTensor if input 0 is a vector or list of RaggedTensors.
fn ragged_rows(cx: &LowerCtx) -> Option<RaggedValue> {
    match cx.args.first() {
        Some(Value::Ragged(ragged)) if ragged.is_rows => Some(ragged.clone()),
        _ => None,
    }
}

fn listed(list: ListValue) -> Result<Vec<Value>> {
    Ok(vec![Value::List(list)])
}

fn name_of(cx: &LowerCtx) -> Arc<str> {
    Arc::from(&*cx.node.name)
}

/// Element shape that input `i` gives, if all of it is known.
fn fixed_shape(cx: &LowerCtx, i: usize) -> Option<Vec<Dim>> {
    if cx.dims(i).ok()?.len() != 1 {
        return None;
    }
    let sizes = cx.constant_dims(i).ok()?;
    let dims: Vec<Dim> = sizes.into_iter().map(|v| Dim::size(v).ok()).collect::<Option<_>>()?;
    product(&dims).filter(|&n| n <= 1i64 << 34).map(|_| dims)
}

/// Partial element shape that input `i` gives; `None` if the input is not known at compile time.
fn partial_shape(cx: &LowerCtx, i: usize) -> Option<Arc<PartialShape>> {
    let (rank, sizes) = (cx.dims(i).ok()?.len(), cx.constant_dims(i).ok()?);
    // A size that varies between calls is unknown.
    let size = |v: Dim| if v.varies() { None } else { u64::try_from(v.guarded_value()).ok() };
    Some(Arc::new(PartialShape((rank == 1).then(|| sizes.into_iter().map(size).collect()))))
}

/// A list of zeros. `now` is the number of elements where it is computed at run time; `length` is its upper bound then.
fn zero_list(cx: &mut LowerCtx, length: Dim, now: Option<InstId>) -> Result<Vec<Value>> {
    let is_list = cx.node.tf_type("element_dtype") == Some(TfType::Variant);
    if is_list && now.is_none() {
        return heterogeneous_lists::unset_lists(cx, length);
    }
    let (dtype, dims) = (cx.attr_dtype("element_dtype")?, fixed_shape(cx, 0));
    let list = Value::UnshapedList { length, now, dtype, name: name_of(cx), open: partial_shape(cx, 0) };
    Ok(vec![with_element_shape(cx.b, list, dims.as_deref())?])
}

fn reserve(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let n = match cx.constant_dim(1) {
        Ok(n) => n,
        Err(refused) => {
            let count = cx.arg(1)?;
            let count = cx.b.reshape(count, &[]);
            let (now, most) = bounded_count(cx, count).ok_or(refused)?;
            return zero_list(cx, most, Some(now));
        }
    };
    let n = Dim::size(n).map_err(|_| cx.shape_mismatch(format!("a list of {n} elements")))?;
    zero_list(cx, n, None)
}

/// Number of elements as a scalar s32, and its upper bound: a bound proven by range analysis, else the caller's. `None` inside
/// a loop or branch if no bound can be proven.
pub(super) fn bounded_count(cx: &mut LowerCtx, count: InstId) -> Option<(InstId, Dim)> {
    let range = cx.ranges.scalar_range(cx.b, count);
    let (now, most) = match range.upper_bound().and_then(|most| Dim::size(most).ok()) {
        Some(most) if range.least >= 0 && !range.may_overflow => (count, most),
        Some(most) if cx.b.carries_checks() => (cx.clamp_checked(count, most), most),
        _ => cx.list_capacity(count)?,
    };
    Some((cx.b.convert(now, DType::S32), most))
}

fn empty(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    zero_list(cx, Dim::from(0), None)
}

/// Start indices of element `index` in the list's array: the index, then zeros.
fn starts(b: &mut Builder, buffer: InstId, index: InstId) -> Vec<InstId> {
    let index = b.reshape(index, &[]);
    let zero = b.full_like(index, 0.0);
    let mut out = vec![index];
    out.resize(b.rank(buffer), zero);
    out
}

/// Array with row `index` replaced by `row`.
fn put(b: &mut Builder, buffer: InstId, row: InstId, index: InstId) -> InstId {
    let mut operands = vec![buffer, row];
    operands.extend(starts(b, buffer, index));
    b.add_inst(Op::DynamicUpdateSlice, &operands)
}

/// Row `index` of an array.
fn row(b: &mut Builder, buffer: InstId, index: InstId) -> InstId {
    let dims = b.dims(buffer).to_vec();
    let sizes = [&dims![1][..], &dims[1..]].concat();
    let mut operands = vec![buffer];
    operands.extend(starts(b, buffer, index));
    let item = b.add_inst(Op::DynamicSlice(sizes), &operands);
    b.reshape(item, &dims[1..])
}

/// List in input 0, whose elements must have the shape of `item`; a list of unknown element shape takes that of `item`.
fn list_for(cx: &mut LowerCtx, item: InstId) -> Result<ListValue> {
    let dims = cx.b.dims(item).to_vec();
    cx.args[0] = with_element_shape(cx.b, cx.args[0].clone(), Some(&dims))?;
    let list = list(cx, 0)?;
    if cx.b.dims(list.buffer)[1..] != *dims {
        let message = format!("an element of {} into the list {}", cx.b.shape(item), cx.b.shape(list.buffer));
        return Err(cx.shape_mismatch(message));
    }
    Ok(list)
}

/// Element as a row of the list's array: `[dims..]` -> `[1, dims..]`.
fn as_row(b: &mut Builder, item: InstId) -> InstId {
    let one = [&dims![1][..], b.dims(item)].concat();
    b.reshape(item, &one)
}

pub(super) fn set_item(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let grows = cx.bool_attr("resize_if_index_out_of_bounds");
    write_item(cx, grows)
}

/// Lowers setting an element of the list in input 0. With `grows`, a list that is too short grows to hold the element.
pub(super) fn write_item(cx: &mut LowerCtx, grows: bool) -> Result<Vec<Value>> {
    if let Some(list) = ragged_rows::set_ragged_item(cx)? {
        return Ok(vec![Value::RaggedList(list)]);
    }
    if let Some(list) = nesting::set(cx, grows)? {
        return Ok(vec![Value::Structured(list)]);
    }
    if let Some(list) = heterogeneous_lists::heterogeneous_input(cx, 2)? {
        return heterogeneous_lists::set(cx, list, grows);
    }
    if let Some(Value::Ragged(_)) = cx.args.get(2) {
        let told = "rows of unlike lengths are put into a list in a loop, and how many rounds it takes is not known";
        return Err(Error::user(Code::DynamicShape, told));
    }
    let (index, item) = (cx.arg(1)?, cx.arg(2)?);
    let mut list = list_for(cx, item)?;
    if grows {
        list = list.extended_to_index(cx, index)?;
    }
    if list.capacity(cx.b).is_zero() {
        return Err(cx.shape_mismatch("the list has no elements"));
    }
    let item = as_row(cx.b, item);
    let buffer = put(cx.b, list.buffer, item, index);
    listed(ListValue { buffer, elements: CommonElement::Any, ..list })
}

fn resize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let size = cx.arg(1)?;
    let known = cx.constant_dim(1).ok();
    if let Some(n) = known {
        let length = Dim::size(n).map_err(|_| cx.shape_mismatch(format!("a list of {n} elements")))?;
        match &cx.args[0] {
            Value::UnshapedList { dtype, name, open, .. } => {
                let (dtype, name, open) = (*dtype, name.clone(), open.clone());
                return Ok(vec![Value::UnshapedList { length, now: None, dtype, name, open }]);
            }
            Value::Heterogeneous(list) => return heterogeneous_lists::resized(list.clone(), length),
            Value::Structured(list) => {
                let list = list.clone();
                return Ok(vec![nesting::resized(cx, &list, length)?]);
            }
            _ => {}
        }
    }
    let list = list(cx, 0)?;
    let (now, most) = match known {
        Some(n) => (size, Dim::size(n).map_err(|_| cx.shape_mismatch(format!("a list of {n} elements")))?),
        None => {
            let size = cx.b.reshape(size, &[]);
            bounded_count(cx, size).ok_or_else(|| capacity::unbounded_length_error(&list.name))?
        }
    };
    let list = if known.is_some() { list.resized(cx.b, most)? } else { list.resized_to_length(cx, now, most)? };
    listed(list)
}

/// List in input 0. A list of unknown element shape, all of whose elements are zeros, takes the shape that input `i` gives.
fn shaped(cx: &mut LowerCtx, i: usize) -> Result<ListValue> {
    let dims = fixed_shape(cx, i);
    cx.args[0] = with_element_shape(cx.b, cx.args[0].clone(), dims.as_deref())?;
    list(cx, 0)
}

pub(super) fn get_item(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Some(rows) = ragged_rows(cx) {
        let index = cx.arg(1)?;
        return Ok(vec![Value::Ragged(rows.row(cx, index)?)]);
    }
    if let Value::RaggedList(list) = &cx.args[0] {
        let (list, index) = (list.clone(), cx.arg(1)?);
        return Ok(vec![Value::Ragged(list.get(cx, index)?)]);
    }
    if let Some(item) = nesting::get(cx)? {
        return Ok(vec![item]);
    }
    if let Some(item) = heterogeneous_lists::get(cx)? {
        return Ok(vec![item]);
    }
    let (list, index) = (shaped(cx, 2)?, cx.arg(1)?);
    if list.capacity(cx.b).is_zero() {
        return Err(cx.shape_mismatch("the list has no elements"));
    }
    let item = row(cx.b, list.buffer, index);
    cx.one_output(item)
}

pub(super) fn length(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let n = match &cx.args[0] {
        Value::UnshapedList { now: Some(now), .. } => *now,
        Value::UnshapedList { length, .. } => {
            let length = *length;
            capacity::length_constant(cx.b, length)?
        }
        Value::Heterogeneous(list) => {
            let length = list.length();
            capacity::length_constant(cx.b, length)?
        }
        Value::Structured(list) => {
            let first = list.parts.first().cloned();
            match first {
                Some(first) => clamped_length(cx, &first)?,
                None => return Err(cx.shape_mismatch("a list without parts")),
            }
        }
        Value::RaggedList(list) => {
            let n = cx.b.dims(list.lengths)[0];
            capacity::length_constant(cx.b, n)?
        }
        Value::Ragged(rows) => {
            let n = rows.row_count(cx);
            let n = n.ok_or_else(|| cx.shape_mismatch("a RaggedTensor in one variant is no list"))?;
            capacity::length_constant(cx.b, n)?
        }
        _ => {
            let list = list(cx, 0)?;
            clamped_length(cx, &list)?
        }
    };
    cx.one_output(n)
}

/// Number of elements of a list, clamped so that range analysis of its users sees the list's upper bound.
fn clamped_length(cx: &mut LowerCtx, list: &ListValue) -> Result<InstId> {
    let now = list.length(cx.b)?;
    let (range, Some(count)) = (cx.ranges.scalar_range(cx.b, now), list.count) else { return Ok(now) };
    let most = i32::try_from(count.most).unwrap_or(i32::MAX);
    if range.least >= 0 && range.most <= i64::from(most) && !range.may_overflow {
        return Ok(now);
    }
    let (none, most) = (cx.b.constant(Tensor::scalar(0i32)), cx.b.constant(Tensor::scalar(most)));
    Ok(cx.b.elementwise(ScalarOp::Clamp, &[none, now, most]))
}

fn element_shape(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let shape = match &cx.args[0] {
        Value::Heterogeneous(list) => (*list.declared).clone(),
        Value::Structured(_) => PartialShape(None),
        _ => {
            let list = list(cx, 0)?;
            let dims = cx.b.dims(list.buffer)[1..].to_vec();
            let y = cx.b.numbers(DType::S64, &dims);
            let y = cx.b.convert(y, cx.attr_dtype("shape_type")?);
            return cx.one_output(y);
        }
    };
    let size = |d: &Option<u64>| d.map_or(-1, |d| d as i64);
    let y = match &shape.0 {
        Some(dims) => Tensor::of(&[dims.len() as u64], &dims.iter().map(size).collect::<Vec<i64>>()),
        None => Tensor::scalar(-1i64),
    };
    let y = cx.b.constant(y);
    let to = cx.attr_dtype("shape_type")?;
    let y = cx.b.convert(y, to);
    cx.one_output(y)
}

pub(super) fn push_back(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Some(list) = nesting::pushed(cx)? {
        return Ok(vec![Value::Structured(list)]);
    }
    if let Some(list) = heterogeneous_lists::heterogeneous_input(cx, 1)? {
        return heterogeneous_lists::pushed(cx, list);
    }
    let item = cx.arg(1)?;
    let list = list_for(cx, item)?;
    listed(list.pushed(cx.b, item)?)
}

pub(super) fn pop_back(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Some(popped) = nesting::popped(cx)? {
        return Ok(popped);
    }
    if let Value::Heterogeneous(list) = &cx.args[0] {
        let list = list.clone();
        return heterogeneous_lists::popped(cx, list);
    }
    let list = shaped(cx, 1)?;
    let Some((rest, item)) = list.popped(cx.b) else { return Err(cx.shape_mismatch("the list has no elements")) };
    Ok(vec![Value::List(rest), Value::Array(item)])
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn starts_are_one_a_dimension() {
        let mut b = Builder::new("t");
        let buffer = b.full(DType::F32, &dims![2, 3], 0.0);
        let index = b.scalar(DType::S32, 1.0);
        assert_eq!(starts(&mut b, buffer, index).len(), 2);
    }
}
