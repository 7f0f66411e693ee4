//! `list_ops.cc`: TensorLists with a number of elements that is fixed at compile time.
mod room;
mod shape;

pub use room::{of, room, with_room, with_shape, zeros_like};

use super::row::op;
use super::value::ListValue;
use super::{LowerCtx, OpRow, Value};
use crate::diag::{Code, Error, Result};
use crate::hlo::{Builder, InstId, Op};
use crate::tensor::{Tensor, element_count};

const NODES: &[OpRow] = &[
    op("TensorListReserve", "element_shape num_elements -> handle", reserve).shape(shape::reserve).constants(&[1]),
    op("EmptyTensorList", "element_shape max_num_elements -> handle", empty).shape(shape::empty),
    op("TensorListFromTensor", "tensor element_shape -> output_handle", from_tensor).shape(shape::from_tensor),
    op("TensorListSetItem", "input_handle index item -> output_handle", set_item).shape(shape::set_item),
    op("TensorListGetItem", "input_handle index element_shape -> item", get_item).shape(shape::get_item),
    op("TensorListStack", "input_handle element_shape -> tensor", stack).shape(shape::stack),
    op("TensorListLength", "input_handle -> length", length).shape(shape::length),
    op("TensorListElementShape", "input_handle -> element_shape", element_shape).shape(shape::element_shape),
    op("TensorListGather", "input_handle indices element_shape -> values", gather).shape(shape::gather),
    op("TensorListPushBack", "input_handle tensor -> output_handle", push_back).shape(shape::push_back),
    op("TensorListPopBack", "input_handle element_shape -> output_handle tensor", pop_back).shape(shape::pop_back),
    op("TensorListConcatV2", "input_handle element_shape leading_dims -> tensor lengths", concat).shape(shape::concat),
    op("TensorListConcat", "input_handle -> tensor lengths", concat).shape(shape::concat),
    op("TensorListResize", "input_handle size -> output_handle", resize).shape(shape::resize).constants(&[1]),
    op("TensorListSplit", "tensor element_shape lengths -> output_handle", split).shape(shape::split).constants(&[2]),
];

/// The rows of this family.
pub const ROWS: &[&[OpRow]] = &[NODES];

fn list(cx: &LowerCtx, i: usize) -> Result<InstId> {
    match cx.args.get(i) {
        Some(Value::List(list)) => Ok(list.buffer),
        Some(Value::UnshapedList { .. }) => Err(Error::user(
            Code::DynamicShape,
            "the shape of the list's elements is not known: no element was set, and the list was made with an open shape",
        )),
        _ => Err(Error::user(Code::TypeMismatch, format!("input {i} must be a TensorList"))),
    }
}

fn listed(buffer: InstId) -> Result<Vec<Value>> {
    Ok(vec![Value::List(ListValue { buffer })])
}

/// The element shape that input `i` gives, if all of it is known.
fn fixed_shape(cx: &LowerCtx, i: usize) -> Option<Vec<u64>> {
    let shape = cx.constant(i).ok()?;
    if shape.dims.len() != 1 {
        return None;
    }
    let dims: Vec<u64> = shape.to_i64s()?.into_iter().map(|v| u64::try_from(v).ok()).collect::<Option<_>>()?;
    element_count(&dims).filter(|&n| n <= 1 << 34).map(|_| dims)
}

fn of_length(cx: &mut LowerCtx, shape_input: usize, length: u64) -> Result<Vec<Value>> {
    let dtype = cx.attr_dtype("element_dtype")?;
    let Some(dims) = fixed_shape(cx, shape_input) else { return Ok(vec![Value::UnshapedList { length, dtype }]) };
    let all = [&[length][..], &dims].concat();
    if element_count(&all).is_none_or(|n| n > 1 << 34) {
        return Err(Error::user(Code::TooLarge, format!("a list of {length} elements of {dims:?}")));
    }
    let buffer = cx.b.full(dtype, &all, 0.0);
    listed(buffer)
}

fn reserve(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let n = cx.constant_int(1)?;
    let n = u64::try_from(n).map_err(|_| cx.mismatch(format!("a list of {n} elements")))?;
    of_length(cx, 0, n)
}

fn empty(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    of_length(cx, 0, 0)
}

fn from_tensor(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    if cx.b.rank(x) == 0 {
        return Err(cx.mismatch("a scalar has no elements to list"));
    }
    listed(x)
}

/// The starts of element `index`: a scalar of the index type and zeros.
fn starts(b: &mut Builder, buffer: InstId, index: InstId) -> Vec<InstId> {
    let index = b.reshape(index, &[]);
    let zero = b.full_like(index, 0.0);
    let mut out = vec![index];
    out.resize(b.rank(buffer), zero);
    out
}

pub(super) fn set_item(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (index, item) = (cx.arg(1)?, cx.arg(2)?);
    let buffer = match cx.args[0] {
        Value::UnshapedList { length, .. } => {
            let dims = [&[length][..], cx.b.dims(item)].concat();
            cx.b.full(cx.b.dtype(item), &dims, 0.0)
        }
        _ => list(cx, 0)?,
    };
    let buffer = if cx.flag("resize_if_index_out_of_bounds") { grown(cx, buffer)? } else { buffer };
    if cx.b.dims(buffer)[1..] != *cx.b.dims(item) {
        let message = format!("an element of {} into the list {}", cx.b.shape(item), cx.b.shape(buffer));
        return Err(cx.mismatch(message));
    }
    if cx.b.dims(buffer)[0] == 0 {
        return Err(cx.mismatch("the list has no elements"));
    }
    let one = [&[1][..], cx.b.dims(item)].concat();
    let item = cx.b.reshape(item, &one);
    let mut operands = vec![buffer, item];
    operands.extend(starts(cx.b, buffer, index));
    let buffer = cx.b.add_inst(Op::DynamicUpdateSlice, &operands);
    listed(buffer)
}

/// A list that may grow, with room for the constant index of this node.
fn grown(cx: &mut LowerCtx, buffer: InstId) -> Result<InstId> {
    let Ok(index) = cx.constant_int(1) else { return Ok(buffer) };
    let want = u64::try_from(index).map_or(0, |i| i + 1);
    if want > cx.b.dims(buffer)[0] { resized(cx.b, buffer, want) } else { Ok(buffer) }
}

fn resized(b: &mut Builder, buffer: InstId, want: u64) -> Result<InstId> {
    let mut dims = b.dims(buffer).to_vec();
    let have = dims[0];
    if want <= have {
        return Ok(b.slice_axis(buffer, 0, 0, want));
    }
    dims[0] = want - have;
    if element_count(&dims).is_none_or(|n| n > 1 << 34) {
        return Err(Error::user(Code::TooLarge, format!("a list of {want} elements")));
    }
    let more = b.full(b.dtype(buffer), &dims, 0.0);
    Ok(b.concatenate(&[buffer, more], 0))
}

fn resize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let n = cx.constant_int(1)?;
    let n = u64::try_from(n).map_err(|_| cx.mismatch(format!("a list of {n} elements")))?;
    if let Value::UnshapedList { dtype, .. } = cx.args[0] {
        return Ok(vec![Value::UnshapedList { length: n, dtype }]);
    }
    let buffer = list(cx, 0)?;
    let buffer = resized(cx.b, buffer, n)?;
    listed(buffer)
}

/// The list in input 0; an unshaped one gets the shape of input `i`, as all its elements are zeros of that shape.
fn shaped(cx: &mut LowerCtx, i: usize) -> Result<InstId> {
    if let Value::UnshapedList { length, dtype } = cx.args[0]
        && let Some(dims) = fixed_shape(cx, i)
    {
        return Ok(cx.b.full(dtype, &[&[length][..], &dims].concat(), 0.0));
    }
    list(cx, 0)
}

pub(super) fn get_item(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (buffer, index) = (shaped(cx, 2)?, cx.arg(1)?);
    let dims = cx.b.dims(buffer).to_vec();
    if dims[0] == 0 {
        return Err(cx.mismatch("the list has no elements"));
    }
    let sizes = [&[1][..], &dims[1..]].concat();
    let mut operands = vec![buffer];
    operands.extend(starts(cx.b, buffer, index));
    let item = cx.b.add_inst(Op::DynamicSlice(sizes), &operands);
    let item = cx.b.reshape(item, &dims[1..]);
    cx.one(item)
}

fn stack(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let buffer = shaped(cx, 1)?;
    let have = cx.b.dims(buffer)[0];
    if let Some(n) = cx.node.int("num_elements").filter(|&n| n >= 0 && n as u64 != have) {
        return Err(cx.mismatch(format!("{n} elements are asked of a list of {have}")));
    }
    cx.one(buffer)
}

pub(super) fn length(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let n = match cx.args[0] {
        Value::UnshapedList { length, .. } => length,
        _ => {
            let buffer = list(cx, 0)?;
            cx.b.dims(buffer)[0]
        }
    };
    let n = i32::try_from(n).map_err(|_| cx.unsupported("a list of more than 2^31 elements"))?;
    let y = cx.b.constant(Tensor::scalar(n));
    cx.one(y)
}

fn element_shape(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let buffer = list(cx, 0)?;
    let dims: Vec<i64> = cx.b.dims(buffer)[1..].iter().map(|&d| d as i64).collect();
    let y = cx.b.constant(Tensor::of(&[dims.len() as u64], &dims));
    let to = cx.attr_dtype("shape_type")?;
    let y = cx.b.convert(y, to);
    cx.one(y)
}

fn gather(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (buffer, indices) = (shaped(cx, 2)?, cx.arg(1)?);
    let y = super::array::gather::take_axis(cx, buffer, indices, 0, 0)?;
    cx.one(y)
}

fn push_back(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let item = cx.arg(1)?;
    let one = [&[1][..], cx.b.dims(item)].concat();
    let row = cx.b.reshape(item, &one);
    if let Value::UnshapedList { length: 0, .. } = cx.args[0] {
        return listed(row);
    }
    let buffer = list(cx, 0)?;
    let buffer = cx.b.concatenate(&[buffer, row], 0);
    listed(buffer)
}

fn pop_back(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let buffer = shaped(cx, 1)?;
    let dims = cx.b.dims(buffer).to_vec();
    let Some(last) = dims[0].checked_sub(1) else { return Err(cx.mismatch("the list has no elements")) };
    let rest = cx.b.slice_axis(buffer, 0, 0, last);
    let item = cx.b.slice_axis(buffer, 0, last, last + 1);
    let item = cx.b.reshape(item, &dims[1..]);
    Ok(vec![Value::List(ListValue { buffer: rest }), Value::Array(item)])
}

pub(super) fn concat(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let buffer = list(cx, 0)?;
    let dims = cx.b.dims(buffer).to_vec();
    if dims.len() < 2 {
        return Err(cx.mismatch("scalars can't be concatenated"));
    }
    let joined = [&[dims[0].saturating_mul(dims[1])][..], &dims[2..]].concat();
    let y = cx.b.reshape(buffer, &joined);
    let lengths = cx.b.constant(Tensor::of(&[dims[0]], &vec![dims[1] as i64; dims[0] as usize]));
    Ok(vec![Value::Array(y), Value::Array(lengths)])
}

pub(super) fn split(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, lengths) = (cx.arg(0)?, cx.constant_ints(2)?);
    let dims = cx.b.dims(x).to_vec();
    let Some(&first) = lengths.first() else { return Err(cx.unsupported("a split into no elements")) };
    if lengths.iter().any(|&l| l != first) {
        return Err(cx.unsupported("a split into elements of different lengths; equal ones are supported"));
    }
    let n = lengths.len() as u64;
    if dims.is_empty() || first < 0 || n.checked_mul(first as u64) != Some(dims[0]) {
        return Err(cx.mismatch("the lengths do not add up to the first dimension"));
    }
    let buffer = cx.b.reshape(x, &[&[n, first as u64][..], &dims[1..]].concat());
    listed(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DType;
    #[test]
    fn starts_are_one_a_dimension() {
        let mut b = Builder::new("t");
        let buffer = b.full(DType::F32, &[2, 3], 0.0);
        let index = b.scalar(DType::S32, 1.0);
        assert_eq!(starts(&mut b, buffer, index).len(), 2);
    }
}
