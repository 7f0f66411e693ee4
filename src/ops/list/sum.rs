//! Sums of lists, which occur as gradients of lists that are read several times.
use super::heterogeneous_lists::separate_rows;
use super::nesting;
use crate::diag::Result;
use crate::graph::TfType;
use crate::ops::value::{HeterogeneousList, ListValue};
use crate::ops::{LowerCtx, Value};

/// Sum of all inputs, which are lists.
///
/// # Errors
/// `ShapeMismatch` for lists of different lengths or element shapes.
pub fn sum_inputs(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let mut sum = cx.args[0].clone();
    for i in 1..cx.args.len() {
        let other = cx.args[i].clone();
        sum = of_two(cx, sum, other)?;
    }
    Ok(vec![sum])
}

/// Sum of two lists of equal length and element shape; a list without an element shape counts as zeros.
fn of_two(cx: &mut LowerCtx, x: Value, y: Value) -> Result<Value> {
    Ok(match (x, y) {
        (Value::Array(x), Value::Array(y)) if cx.b.shape(x).same_type_and_dims(cx.b.shape(y)) => {
            Value::Array(cx.b.add(x, y))
        }
        (Value::List(a), Value::List(b)) if a.differs_in_shape(&b, cx.b) => {
            let [x, y] = [a, b].map(|list| {
                let dtype = TfType::Data(cx.b.dtype(list.buffer));
                let items = separate_rows(cx.b, list.buffer);
                let declared = list.open.unwrap_or_default();
                Value::Heterogeneous(HeterogeneousList { items, open_length: None, dtype, declared, name: list.name })
            });
            of_two(cx, x, y)?
        }
        (Value::List(a), Value::List(b)) => {
            let (x, y) = (a.to_array(cx)?, b.to_array(cx)?);
            if !cx.b.shape(x).same_type_and_dims(cx.b.shape(y)) {
                return Err(cx.shape_mismatch("a sum of lists of different lengths or elements"));
            }
            Value::List(ListValue { open: a.open, ..ListValue::from_buffer(cx.b.add(x, y), &a.name) })
        }
        (Value::List(list), Value::UnshapedList { length, now: None, .. })
        | (Value::UnshapedList { length, now: None, .. }, Value::List(list))
            if list.count.is_none() && list.capacity(cx.b) == length =>
        {
            Value::List(list)
        }
        (
            Value::UnshapedList { length, now, dtype, name, open },
            Value::UnshapedList { length: length_2, now: now_2, dtype: dtype_2, .. },
        ) if length == length_2 && now == now_2 && dtype == dtype_2 => {
            Value::UnshapedList { length, now, dtype, name, open }
        }
        (Value::Heterogeneous(a), Value::List(list)) | (Value::List(list), Value::Heterogeneous(a))
            if list.count.is_none() && list.capacity(cx.b) == a.length() =>
        {
            let b = HeterogeneousList { items: separate_rows(cx.b, list.buffer), name: list.name, ..a.clone() };
            of_two(cx, Value::Heterogeneous(a), Value::Heterogeneous(b))?
        }
        (Value::Heterogeneous(a), Value::UnshapedList { length, now: None, .. })
        | (Value::UnshapedList { length, now: None, .. }, Value::Heterogeneous(a))
            if length == a.length() =>
        {
            Value::Heterogeneous(a)
        }
        (Value::Heterogeneous(a), Value::Heterogeneous(b)) if a.length() == b.length() && a.dtype == b.dtype => {
            let mut items = Vec::with_capacity(a.items.len());
            for pair in a.items.into_iter().zip(b.items) {
                items.push(match pair {
                    (Some(x), Some(y)) => Some(of_two(cx, x, y)?),
                    (one, other) => one.or(other),
                });
            }
            Value::Heterogeneous(HeterogeneousList { items, ..a })
        }
        (x @ (Value::Structured(_) | Value::Optional(_) | Value::Heterogeneous(_)), y) => nesting::sum(cx, &x, &y)?,
        (x, y @ (Value::Structured(_) | Value::Optional(_) | Value::Heterogeneous(_))) => nesting::sum(cx, &y, &x)?,
        _ => return Err(cx.shape_mismatch("a sum of lists of different lengths or elements")),
    })
}
