//! Length and capacity of lists.
//!
//! A list of known length is an array with that many rows. A list whose length is computed at run time is an array with as many
//! rows as it can ever have, and a length beside it.
use super::nesting;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::interp;
use crate::ops::spec::symbolic_shape_value;
use crate::ops::value::{CommonElement, HeterogeneousList, ListLength, ListValue};
use crate::ops::{LowerCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::product;
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

/// Size in bytes above which a list's capacity is the caller's bound, not the derived one.
const MOST_BYTES: u64 = 1 << 32;

/// Largest number of array elements in all rows of a list.
const MOST_ELEMENTS: u64 = 1 << 34;

impl ListValue {
    /// List whose elements are the rows of an array; `name` is the node that made it.
    pub fn from_buffer(buffer: InstId, name: &Arc<str>) -> Self {
        ListValue { buffer, count: None, elements: CommonElement::Any, name: name.clone(), open: None }
    }

    /// Number of elements for which the list has room.
    pub fn capacity(&self, b: &Builder) -> Dim {
        b.dims(self.buffer).first().copied().unwrap_or(Dim::from(0))
    }

    /// Whether `n` elements of this list's shape fit in memory.
    pub fn fits_in_memory(&self, b: &Builder, n: Dim) -> bool {
        let dims = [&[n][..], b.dims(self.buffer).get(1..).unwrap_or(&[])].concat();
        let bytes = product(&dims).and_then(|count| count.checked_mul(b.dtype(self.buffer).bytes()));
        bytes.is_some_and(|bytes| bytes <= MOST_BYTES)
    }

    /// Upper bound of the number of elements.
    pub fn max_length(&self, b: &Builder) -> Dim {
        self.count.map_or(self.capacity(b), |count| count.most)
    }

    /// Number of elements, a scalar s32.
    ///
    /// # Errors
    /// `Code::TooLarge` above 2^31 elements.
    pub fn length(&self, b: &mut Builder) -> Result<InstId> {
        match self.count {
            Some(count) => Ok(count.now),
            None => length_constant(b, self.capacity(b)),
        }
    }

    /// List with room for at least `room` elements, and its length as a separate value.
    ///
    /// # Errors
    /// `Code::TooLarge` for more elements than arrays have.
    pub fn with_separate_length(&self, b: &mut Builder, room: Dim) -> Result<ListValue> {
        let (most, now) = (self.max_length(b), self.length(b)?);
        let count = self.count.unwrap_or(ListLength { now, most, stale: false });
        let buffer = if room > self.capacity(b) { rows(b, self.buffer, room)? } else { self.buffer };
        Ok(ListValue { buffer, count: Some(count), ..self.clone() })
    }

    /// List resized to exactly `n` elements; new ones are zeros.
    ///
    /// # Errors
    /// `Code::TooLarge` for more elements than arrays have.
    pub fn resized(&self, b: &mut Builder, n: Dim) -> Result<ListValue> {
        let buffer = self.zero_padded_buffer(b);
        let open = self.open.clone();
        Ok(ListValue { open, ..ListValue::from_buffer(rows(b, buffer, n)?, &self.name) })
    }

    /// List extended to at least `n` elements; new ones are zeros.
    ///
    /// # Errors
    /// `Code::TooLarge` for more elements than arrays have.
    pub fn extended_to(&self, b: &mut Builder, n: Dim) -> Result<ListValue> {
        let Some(before) = self.count else {
            return if n > self.capacity(b) { self.resized(b, n) } else { Ok(self.clone()) };
        };
        let mut list = ListValue { elements: CommonElement::Any, ..self.with_separate_length(b, n)? };
        list.buffer = list.zero_padded_buffer(b);
        let least = length_constant(b, n)?;
        let now = b.binary(ScalarOp::Maximum, before.now, least);
        list.count = Some(ListLength { now, most: before.most.max(n), stale: false });
        Ok(list)
    }

    /// Array of the elements, with zeros in the unused room.
    pub fn zero_padded_buffer(&self, b: &mut Builder) -> InstId {
        let Some(ListLength { now, stale: true, .. }) = self.count else { return self.buffer };
        let places = b.iota(DType::S32, &[self.capacity(b)], 0);
        let (held, dims) = (b.compare(Direction::Lt, places, now), b.dims(self.buffer).to_vec());
        let (held, zero) = (b.broadcast(held, &dims, &[0]), b.full_like(self.buffer, 0.0));
        b.select(held, self.buffer, zero)
    }

    /// Array of all elements; its first size is data-dependent if the length is computed at run time.
    ///
    /// # Errors
    /// `DynamicShape` for such a size inside a loop or branch, where sizes are fixed.
    pub fn to_array(&self, cx: &mut LowerCtx) -> Result<InstId> {
        let Some(count) = self.count else { return Ok(self.buffer) };
        let room = self.capacity(cx.b);
        let known = interp::constant_value_through_loops(cx.b, count.now).and_then(|t| Dim::size(t.get_i64(0)?).ok());
        let n = match known.filter(|&n| n <= room) {
            Some(n) if n == room => return Ok(self.buffer),
            Some(n) => n,
            None => {
                let made = format!("the array of all elements of the list `{}`", self.name);
                let d = |d: Diagnostic| {
                    d.help(
                        "make the list with the size it ends with, and without dynamic_size; or read single elements",
                    )
                };
                cx.data_dependent_size(count.now, count.most.min(room), &made).map_err(|e| e.map(d))?
            }
        };
        cx.first_elements(self.buffer, n)
    }

    /// List extended to hold an element at `index`; new elements are zeros. The capacity is the caller's bound if the index has
    /// none.
    ///
    /// # Errors
    /// `DynamicShape` if the index has no bound, inside a loop or branch.
    pub fn extended_to_index(&self, cx: &mut LowerCtx, index: InstId) -> Result<ListValue> {
        let range = cx.ranges.scalar_range(cx.b, index);
        let proven = range.upper_bound().filter(|most| {
            let end = Dim::size(*most).map_or(Dim::from(0), |most| most.saturating_add(1));
            end <= self.capacity(cx.b) || self.fits_in_memory(cx.b, end)
        });
        let (index, most) = match proven {
            Some(most) if !range.may_overflow => (index, most),
            Some(most) if cx.b.carries_checks() => {
                let end = end_of(cx.b, index);
                let end = cx.clamp_checked(end, Dim::from(most) + 1);
                let one = cx.b.full_like(end, 1.0);
                (cx.b.sub(end, one), most)
            }
            _ => {
                let end = end_of(cx.b, index);
                let (end, room) = cx.list_capacity(end).ok_or_else(|| unbounded(&self.name, &cx.node.name))?;
                let one = cx.b.constant(Tensor::scalar(1i64));
                (cx.b.sub(end, one), room.guarded_value() - 1)
            }
        };
        let want = Dim::size(most).map_or(Dim::from(0), |most| most.saturating_add(1));
        if self.count.is_none() && (want <= self.capacity(cx.b) || range.least == range.most) {
            return if want > self.capacity(cx.b) { self.resized(cx.b, want) } else { Ok(self.clone()) };
        }
        let mut list = ListValue { elements: CommonElement::Any, ..self.with_separate_length(cx.b, want)? };
        list.buffer = list.zero_padded_buffer(cx.b);
        if let Some(count) = &mut list.count {
            let (index, one) = (scalar(cx.b, index), cx.b.constant(Tensor::scalar(1i32)));
            let end = cx.b.add(index, one);
            let now = cx.b.binary(ScalarOp::Maximum, count.now, end);
            *count = ListLength { now, most: count.most.max(want), stale: false };
        }
        Ok(list)
    }

    /// List resized to a run-time length that is at most `most`; new elements are zeros.
    ///
    /// # Errors
    /// `Code::TooLarge` for more elements than arrays have.
    pub fn resized_to_length(&self, cx: &mut LowerCtx, length: InstId, most: Dim) -> Result<ListValue> {
        let mut list = ListValue { elements: CommonElement::Any, ..self.with_separate_length(cx.b, most)? };
        list.buffer = list.zero_padded_buffer(cx.b);
        list.count = Some(ListLength { now: scalar(cx.b, length), most, stale: true });
        Ok(list)
    }

    /// List with an element appended.
    ///
    /// # Errors
    /// `Code::TooLarge` for more elements than arrays have.
    pub fn pushed(&self, b: &mut Builder, item: InstId) -> Result<ListValue> {
        let known = symbolic_shape_value(b, item);
        let elements = self.elements.joined(&known.map_or(CommonElement::Any, CommonElement::Each));
        let row = super::as_row(b, item);
        let Some(count) = self.count else {
            let buffer = b.concatenate(&[self.buffer, row], 0);
            return Ok(ListValue { buffer, elements, ..self.clone() });
        };
        let list = self.with_separate_length(b, count.most + 1)?;
        let buffer = super::put(b, list.buffer, row, count.now);
        let one = b.constant(Tensor::scalar(1i32));
        let count = Some(ListLength { now: b.add(count.now, one), most: count.most + 1, ..count });
        Ok(ListValue { buffer, count, elements, ..list })
    }

    /// List without its last element, and the removed element; `None` if the list is always empty.
    pub fn popped(&self, b: &mut Builder) -> Option<(ListValue, InstId)> {
        let last = self.capacity(b).checked_sub(1)?;
        let Some(count) = self.count else {
            let buffer = b.slice_axis(self.buffer, 0, Dim::from(0), last);
            let row = b.slice_axis(self.buffer, 0, last, last + 1);
            let dims = b.dims(self.buffer)[1..].to_vec();
            let item = b.reshape(row, &dims);
            return Some((ListValue { buffer, ..self.clone() }, self.known(b).unwrap_or(item)));
        };
        let one = b.constant(Tensor::scalar(1i32));
        let now = b.sub(count.now, one);
        let row = super::row(b, self.buffer, now);
        let count = Some(ListLength { now, most: count.most.saturating_sub(1), stale: true });
        Some((ListValue { count, ..self.clone() }, self.known(b).unwrap_or(row)))
    }

    /// Common value of all elements as a constant, if it is known.
    fn known(&self, b: &mut Builder) -> Option<InstId> {
        if let CommonElement::Each(value) = &self.elements { Some(value.clone().add_constant(b)) } else { None }
    }
}

/// Number of elements as a scalar s32, TensorFlow's type for list lengths.
///
/// # Errors
/// `Code::TooLarge` above 2^31 elements.
pub(super) fn length_constant(b: &mut Builder, n: Dim) -> Result<InstId> {
    if n > i64::from(i32::MAX) {
        return Err(Error::user(Code::TooLarge, "a list of more than 2^31 elements"));
    }
    Ok(b.scalar(DType::S32, n))
}

/// Integer as a scalar s32.
fn scalar(b: &mut Builder, id: InstId) -> InstId {
    let id = b.reshape(id, &[]);
    b.convert(id, DType::S32)
}

/// Smallest length of a list that has an element at `index`, a scalar s64; negative indices are returned unchanged.
fn end_of(b: &mut Builder, index: InstId) -> InstId {
    let index = b.reshape(index, &[]);
    let index = b.convert(index, DType::S64);
    let (zero, one) = (b.constant(Tensor::scalar(0i64)), b.constant(Tensor::scalar(1i64)));
    let (end, is_none) = (b.add(index, one), b.compare(Direction::Lt, index, zero));
    b.select(is_none, index, end)
}

/// First `n` rows of an array, zero-padded.
fn rows(b: &mut Builder, buffer: InstId, n: Dim) -> Result<InstId> {
    let mut dims = b.dims(buffer).to_vec();
    let have = dims[0];
    if n <= have {
        return Ok(if n == have { buffer } else { b.slice_axis(buffer, 0, Dim::from(0), n) });
    }
    dims[0] = n;
    check_list_size(&dims)?;
    dims[0] = n - have;
    let more = b.full(b.dtype(buffer), &dims, 0.0);
    Ok(if have.is_zero() { more } else { b.concatenate(&[buffer, more], 0) })
}

/// Rejects a list whose array would have these sizes if that is too large.
///
/// # Errors
/// `Code::TooLarge`.
pub fn check_list_size(dims: &[Dim]) -> Result<()> {
    if product(dims).is_some_and(|n| n <= MOST_ELEMENTS) {
        return Ok(());
    }
    let length = dims.first().copied().unwrap_or(Dim::from(0));
    Err(Error::user(Code::TooLarge, format!("a list of {length} elements of {:?}", dims.get(1..).unwrap_or(&[]))))
}

/// Error for a list that grows to hold an index without a bound.
fn unbounded(list: &str, node: &str) -> Error {
    let told = format!(
        "the list `{list}` may grow to hold the index at which `{node}` writes, and nothing bounds that index before run time"
    );
    Diagnostic::new(Code::DynamicShape, told)
        .note("the list needs room for the largest index, and compiled code has fixed sizes")
        .help("make the list with its full size and without dynamic_size, or bound the index: tf.minimum(i, N - 1), a loop with maximum_iterations=N, or --rounds LOOP=N")
        .into()
}

/// Error for a list that is resized to a length without a bound.
pub(super) fn unbounded_length_error(list: &str) -> Error {
    let told = format!("the list `{list}` gets a size that nothing bounds before run time");
    Diagnostic::new(Code::DynamicShape, told)
        .help("bound the size: tf.minimum(n, N), a loop with maximum_iterations=N, or --rounds LOOP=N")
        .into()
}

/// List with zero elements of shape `dims`, if it has no element shape yet; else the list itself.
///
/// # Errors
/// `Code::TooLarge` for more elements than arrays have.
pub fn with_element_shape(b: &mut Builder, list: Value, dims: Option<&[Dim]>) -> Result<Value> {
    let (Value::UnshapedList { length, now, dtype, name, open }, Some(dims)) = (&list, dims) else { return Ok(list) };
    let all = [&[*length][..], dims].concat();
    check_list_size(&all)?;
    let elements = if length.is_zero() { CommonElement::None } else { CommonElement::Any };
    let (open, count) = (open.clone(), now.map(|now| ListLength { now, most: *length, stale: false }));
    Ok(Value::List(ListValue { elements, open, count, ..ListValue::from_buffer(b.full(*dtype, &all, 0.0), name) }))
}

/// List or optional like another one, with zeros in all its arrays.
///
/// # Errors
/// `Code::TooLarge` for more elements than arrays have.
pub fn zeros_like(b: &mut Builder, list: &Value) -> Result<Value> {
    Ok(match list {
        Value::List(list) => {
            let count = list.count.map(|count| ListLength { stale: false, ..count });
            let open = list.open.clone();
            Value::List(ListValue { count, open, ..ListValue::from_buffer(b.full_like(list.buffer, 0.0), &list.name) })
        }
        Value::Heterogeneous(list) => {
            let mut items = Vec::with_capacity(list.items.len());
            for item in &list.items {
                items.push(match item {
                    Some(Value::Array(x)) => Some(Value::Array(b.full_like(*x, 0.0))),
                    Some(list) => Some(zeros_like(b, list)?),
                    None => None,
                });
            }
            Value::Heterogeneous(HeterogeneousList { items, ..list.clone() })
        }
        Value::Structured(_) | Value::Optional(_) => nesting::zeros_like(b, list)?,
        list => list.clone(),
    })
}
