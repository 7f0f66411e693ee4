//! `TensorListScatter`: rows of an array become elements of a list at given indices.
use super::{is_iota, list_for, listed, name_of, partial_shape, with_element_shape};
use crate::diag::Result;
use crate::hlo::symbolic::InstId;
use crate::interp;
use crate::ops::array::scatter::scatter;
use crate::ops::math::special::add_scalar;
use crate::ops::value::{CommonElement, ListValue};
use crate::ops::{LowerCtx, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;

/// Stores the rows of `tensor` in the list in input 0 at `indices`. With `grows`, the list is extended as far as the indices
/// require.
fn put_rows(cx: &mut LowerCtx, tensor: InstId, indices: InstId, grows: bool) -> Result<Vec<Value>> {
    let (dims, places) = (cx.b.dims(tensor).to_vec(), cx.b.dims(indices).to_vec());
    if dims.is_empty() || places != dims[..1] {
        return Err(cx.shape_mismatch(format!("indices {places:?} for the rows of {dims:?}")));
    }
    let item = cx.b.full(cx.b.dtype(tensor), &dims[1..], 0.0);
    let mut list = list_for(cx, item)?;
    if dims[0].is_zero() {
        return listed(list);
    }
    // Indices of all elements in order need no more room.
    let is_all = is_iota(cx.b, indices) && list.count.is_none() && list.capacity(cx.b).is_same(dims[0]);
    if grows && !(is_all && dims[0].varies()) {
        let none = cx.b.scalar(cx.b.dtype(indices), -1.0);
        let last = cx.b.reduce(indices, none, ScalarOp::Maximum, &[0]);
        let room = list.capacity(cx.b);
        if room == 0 || list.count.is_some() || interp::constant_value(cx.b, last).is_some() {
            list = list.extended_to_index(cx, last)?;
        } else if cx.b.carries_checks() {
            // A list of fixed length keeps it; a call whose indices exceed it fails.
            let needed = add_scalar(cx.b, last, 1.0);
            cx.clamp_checked(needed, room);
        } else {
            return Err(cx.unsupported_case("rows put into a list of fixed length where calls can't fail"));
        }
    }
    let indices = cx.b.reshape(indices, &[dims[0], Dim::from(1)]);
    let buffer = scatter(cx, list.buffer, indices, tensor, None)?;
    listed(ListValue { buffer, elements: CommonElement::Any, ..list })
}

/// Lowers `TensorListScatterIntoExistingList`.
pub fn scatter_into_existing(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (tensor, indices) = (cx.arg(1)?, cx.arg(2)?);
    put_rows(cx, tensor, indices, true)
}

/// Lowers `TensorListScatter`: a new list of the length that the node gives, or up to the largest index.
pub fn scatter_into_new(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (tensor, indices) = (cx.arg(0)?, cx.arg(1)?);
    let count = if cx.args.len() > 3 { cx.constant_int(3)? } else { -1 };
    let (length, dtype, name, open) =
        (u64::try_from(count).unwrap_or(0), cx.b.dtype(tensor), name_of(cx), partial_shape(cx, 2));
    let list = Value::UnshapedList { length: Dim::from(length), now: None, dtype, name, open };
    let rows = cx.b.dims(tensor).get(1..).map(<[Dim]>::to_vec);
    let list = with_element_shape(cx.b, list, rows.as_deref())?;
    put_rows(&mut cx.with_args(vec![list]), tensor, indices, count < 0)
}
