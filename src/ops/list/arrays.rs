//! Conversions between lists and arrays: `TensorListFromTensor`, `Stack`, `Gather`, `Concat`, `Split`.
use super::{heterogeneous_lists, list, listed, name_of, partial_shape, ragged_rows, shaped};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Builder, Dim, InstId, Literal, Op};
use crate::interp;
use crate::ops::value::{ListValue, RaggedValue};
use crate::ops::{LowerCtx, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

pub(super) fn from_tensor(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Some(rows) = ragged_rows(cx) {
        return Ok(vec![Value::Ragged(rows)]);
    }
    let x = cx.arg(0)?;
    if cx.b.rank(x) == 0 {
        return Err(cx.shape_mismatch("a scalar has no elements to list"));
    }
    let open = partial_shape(cx, 1);
    listed(ListValue { open, ..ListValue::from_buffer(x, &name_of(cx)) })
}

pub(super) fn stack(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Some(rows) = ragged_rows(cx) {
        return Ok(vec![Value::Ragged(rows)]);
    }
    if let Some(Value::RaggedList(list)) = cx.args.first() {
        let list = list.clone();
        return Ok(vec![Value::Ragged(list.stacked(cx)?)]);
    }
    if let Some(Value::Heterogeneous(list)) = cx.args.first()
        && let Some(for_each_row) = list.ragged_elements()
    {
        return Ok(vec![Value::Ragged(RaggedValue::from_rows(cx, &for_each_row)?)]);
    }
    let buffer = shaped(cx, 1)?.to_array(cx)?;
    let have = cx.b.dims(buffer)[0];
    if let Some(n) = cx.node.int("num_elements").filter(|&n| n >= 0 && Dim::from(n) != have) {
        return Err(cx.shape_mismatch(format!("{n} elements are asked of a list of {have}")));
    }
    cx.one_output(buffer)
}

pub(super) fn gather(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (list, indices) = (shaped(cx, 2)?, cx.arg(1)?);
    let y = crate::ops::array::gather::gather_along_axis(cx, list.buffer, indices, 0, 0)?;
    cx.one_output(y)
}

pub(in crate::ops) fn concat(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Value::Heterogeneous(list) = &cx.args[0] {
        let list = list.clone();
        return heterogeneous_lists::concat(cx, &list);
    }
    let buffer = list(cx, 0)?.to_array(cx)?;
    let dims = cx.b.dims(buffer).to_vec();
    if dims.len() < 2 {
        return Err(cx.shape_mismatch("scalars can't be concatenated"));
    }
    let joined = [&[dims[0].saturating_mul(dims[1])][..], &dims[2..]].concat();
    let y = cx.b.reshape(buffer, &joined);
    let lengths = match dims[0].varies() {
        true => cx.b.full(DType::S64, &dims[..1], dims[1]),
        false => cx.b.numbers(DType::S64, &vec![dims[1]; dims[0].guarded_index()]),
    };
    Ok(vec![Value::Array(y), Value::Array(lengths)])
}

/// Whether a vector is known to be 0, 1, 2, ..., as `Range` from 0 by 1 makes it.
pub(in crate::ops) fn is_iota(b: &Builder, id: InstId) -> bool {
    let mut id = id;
    loop {
        let Some(inst) = b.current_computation().insts.get(id) else { return false };
        id = match (&inst.op, &inst.operands[..]) {
            (Op::Iota(_), _) => return b.rank(id) == 1,
            (Op::Elementwise(ScalarOp::Convert(_)), &[x]) => x,
            (Op::Elementwise(ScalarOp::Add), &[x, y]) if is_each(b, y, 0) => x,
            (Op::Elementwise(ScalarOp::Multiply), &[x, y]) if is_each(b, y, 1) => x,
            _ => return false,
        };
    }
}

/// Whether all elements of an array are known to be this constant.
fn is_each(b: &Builder, id: InstId, value: i64) -> bool {
    let mut id = id;
    loop {
        let Some(inst) = b.current_computation().insts.get(id) else { return false };
        id = match (&inst.op, &inst.operands[..]) {
            (Op::Broadcast(_) | Op::Reshape, &[x]) => x,
            (Op::Constant(Literal::Array(t)), []) => {
                let varies = b.size_constant_elements(id).is_some_and(|all| all.iter().any(|n| n.varies()));
                return t.dims.is_empty() && !varies && t.get_i64(0) == Some(value);
            }
            _ => return false,
        };
    }
}

/// Number of lengths in the vector input `i`, and the common value of all lengths; `None` unless they are known to be equal.
fn equal_lengths(cx: &LowerCtx, i: usize) -> Option<(Dim, Dim)> {
    let id = cx.arg(i).ok()?;
    let [n] = cx.b.dims(id)[..] else { return None };
    let mut inst = cx.b.current_computation().insts.get(id).filter(|_| n.varies())?;
    while let (Op::Elementwise(ScalarOp::Convert(_)), &[x]) = (&inst.op, &inst.operands[..]) {
        inst = cx.b.current_computation().insts.get(x)?;
    }
    match (&inst.op, &inst.operands[..]) {
        (Op::Broadcast(_), &[one]) if cx.b.rank(one) == 0 => {
            let known = interp::symbolic_value(cx.b, one)?.with_expressions();
            Some((n, *known.sizes?.first()?))
        }
        _ => None,
    }
}

pub(in crate::ops) fn split(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let dims = cx.b.dims(x).to_vec();
    let (n, first) = match equal_lengths(cx, 2) {
        Some(equal) => equal,
        None => {
            let lengths = cx.constant_dims(2)?;
            let Some(&first) = lengths.first() else { return Err(cx.unsupported_case("a split into no elements")) };
            if lengths.iter().any(|&l| l != first) {
                return heterogeneous_lists::split(cx, x, &lengths);
            }
            (Dim::from(lengths.len()), first)
        }
    };
    if dims.is_empty() || first < 0 || n.checked_mul(first) != Some(dims[0]) {
        return Err(cx.shape_mismatch("the lengths do not add up to the first dimension"));
    }
    let buffer = cx.b.reshape(x, &[&dims![n, first][..], &dims[1..]].concat());
    let open = partial_shape(cx, 1);
    listed(ListValue { open, ..ListValue::from_buffer(buffer, &name_of(cx)) })
}
