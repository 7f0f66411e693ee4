//! Lists as values: their shape and room, without a node.
use crate::diag::{Code, Error, Result};
use crate::hlo::{Builder, InstId};
use crate::ops::value::ListValue;
use crate::ops::{LowerCtx, Value};
use crate::tensor::element_count;

/// A list of the rows of an array.
pub fn of(buffer: InstId) -> Value {
    Value::List(ListValue { buffer })
}

/// The list with elements of this shape, zeros, if it has no shape yet.
pub fn with_shape(cx: &mut LowerCtx, list: Value, dims: Option<Vec<u64>>) -> Result<Value> {
    let (Value::UnshapedList { length, dtype }, Some(dims)) = (&list, dims) else { return Ok(list) };
    let all = [&[*length][..], &dims].concat();
    if element_count(&all).is_none_or(|n| n > 1 << 34) {
        return Err(Error::user(Code::TooLarge, format!("a list of {length} elements of {dims:?}")));
    }
    Ok(of(cx.b.full(*dtype, &all, 0.0)))
}

/// The list with at least so many elements; new ones are zeros.
pub fn with_room(b: &mut Builder, list: &Value, most: u64) -> Result<Value> {
    match list {
        Value::List(list) if b.dims(list.buffer)[0] < most => super::resized(b, list.buffer, most).map(of),
        Value::UnshapedList { length, dtype } => Ok(Value::UnshapedList { length: most.max(*length), dtype: *dtype }),
        list => Ok(list.clone()),
    }
}

/// How many elements a list has.
pub fn room(b: &Builder, list: &Value) -> u64 {
    match list {
        Value::List(list) => b.dims(list.buffer).first().copied().unwrap_or(0),
        Value::UnshapedList { length, .. } => *length,
        _ => 0,
    }
}

/// A list of zeros that is otherwise like another.
pub fn zeros_like(b: &mut Builder, list: &Value) -> Value {
    match list {
        Value::List(list) => {
            let dims = b.dims(list.buffer).to_vec();
            of(b.full(b.dtype(list.buffer), &dims, 0.0))
        }
        list => list.clone(),
    }
}
