//! Lists whose elements are lists or optionals of one spec. Gradients of loops store the lists of inner loops and the optionals
//! of inner conditions in such lists.
use crate::diag::{Code, Error, Result};
use crate::graph::TfType;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::spec::{self, ValueSpec, element_leaves};
use crate::ops::value::{CommonElement, ListValue, StructuredList};
use crate::ops::{LowerCtx, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

impl StructuredList {
    /// Number of elements for which the list has room.
    pub fn capacity(&self, b: &Builder) -> Dim {
        self.parts.first().map_or(Dim::from(0), |part| part.capacity(b))
    }

    /// Number of elements, a scalar s32.
    ///
    /// # Errors
    /// `Code::TooLarge` above 2^31 elements.
    pub fn length(&self, b: &mut Builder) -> Result<InstId> {
        let first = self.parts.first().ok_or_else(|| Error::internal("lower", "a structured list without parts"))?;
        first.length(b)
    }

    /// List converted to a wider element spec that includes `item`.
    ///
    /// # Errors
    /// `DynamicShape` if no spec includes both.
    fn admitting(self, b: &mut Builder, item: &ValueSpec) -> Result<StructuredList> {
        let element = self.element.joined(item).ok_or_else(|| {
            let told = format!("the list `{}` gets elements of several kinds or shapes in a loop or branch", self.name);
            Error::user(Code::DynamicShape, told)
        })?;
        if element == *self.element {
            return Ok(self);
        }
        let value = Value::Structured(self);
        let ValueSpec::Structured(from) = ValueSpec::of(b, &value) else { return Err(not_structured()) };
        cast(b, &value, &ValueSpec::Structured(from.with_element(&element)))
    }

    /// Leaves of an element, converted to this list's element spec; one for each part.
    fn leaves(&self, b: &mut Builder, item: &Value, from: &ValueSpec) -> Result<Vec<InstId>> {
        let mut leaves = Vec::new();
        spec::append_leaves(item, from, &mut leaves);
        let mut leaves = spec::cast_leaves(b, from, &self.element, leaves, "an element of a list")?;
        if leaves.is_empty() {
            leaves.extend(
                element_leaves(&self.element).iter().filter_map(|leaf| Some(b.full(leaf.as_array()?.dtype, &[], 0.0))),
            );
        }
        Ok(leaves)
    }

    /// List with each part changed by `write`, which gets the part and the corresponding leaf of `item`.
    fn with(
        self,
        cx: &mut LowerCtx,
        item: &Value,
        write: &mut dyn FnMut(&mut LowerCtx, &ListValue, InstId) -> Result<ListValue>,
    ) -> Result<StructuredList> {
        let item = &spec::with_known_sizes(cx.b, item)?;
        let from = ValueSpec::of(cx.b, item);
        let list = self.admitting(cx.b, &from)?;
        let leaves = list.leaves(cx.b, item, &from)?;
        let mut parts = Vec::with_capacity(list.parts.len());
        for (part, leaf) in list.parts.iter().zip(leaves) {
            parts.push(write(cx, part, leaf)?);
        }
        Ok(StructuredList { parts, ..list })
    }
}

fn not_structured() -> Error {
    Error::internal("lower", "a structured list of another spec")
}

/// Value converted to a wider spec.
fn widened(b: &mut Builder, value: &Value, to: &ValueSpec) -> Result<Value> {
    let leaves = leaves(b, value, to)?;
    Ok(to.value_from_leaves(b, leaves))
}

/// Leaves of a value converted to a wider spec.
fn leaves(b: &mut Builder, value: &Value, to: &ValueSpec) -> Result<Vec<InstId>> {
    let from = ValueSpec::of(b, value);
    let mut leaves = Vec::new();
    spec::append_leaves(value, &from, &mut leaves);
    spec::cast_leaves(b, &from, to, leaves, "a list")
}

/// List converted to a structured list of a wider spec.
fn cast(b: &mut Builder, value: &Value, to: &ValueSpec) -> Result<StructuredList> {
    match widened(b, value, to)? {
        Value::Structured(list) => Ok(list),
        _ => Err(not_structured()),
    }
}

/// List or optional like another one, with zeros in all its arrays.
///
/// # Errors
/// `Code::TooLarge` for more elements than arrays have.
pub(super) fn zeros_like(b: &mut Builder, value: &Value) -> Result<Value> {
    let spec = ValueSpec::of(b, value).without_constants();
    let mut leaves = leaves(b, value, &spec)?;
    for (leaf, is_data) in leaves.iter_mut().zip(spec.data_leaves()) {
        if is_data {
            *leaf = b.full_like(*leaf, 0.0);
        }
    }
    Ok(spec.value_from_leaves(b, leaves))
}

/// Sum of two lists or optionals of equal length, array by array.
///
/// # Errors
/// `ShapeMismatch` if their specs differ.
pub(super) fn sum(cx: &mut LowerCtx, x: &Value, y: &Value) -> Result<Value> {
    let (a, b) = (ValueSpec::of(cx.b, x).without_constants(), ValueSpec::of(cx.b, y).without_constants());
    let spec = a.joined(&b).ok_or_else(|| cx.shape_mismatch("a sum of lists or optionals of different elements"))?;
    let (xs, ys) = (leaves(cx.b, x, &spec)?, leaves(cx.b, y, &spec)?);
    let mut out = Vec::with_capacity(xs.len());
    for ((x, y), is_data) in xs.into_iter().zip(ys).zip(spec.data_leaves()) {
        out.push(match (is_data, cx.b.dtype(x)) {
            (false, _) => x,
            (true, DType::Pred) => cx.b.binary(ScalarOp::Or, x, y),
            (true, _) => cx.b.add(x, y),
        });
    }
    Ok(spec.value_from_leaves(cx.b, out))
}

/// List in input 0 as a structured list that can hold an element of this spec; `None` if it is an ordinary list.
fn taking(cx: &mut LowerCtx, item: &ValueSpec) -> Result<Option<StructuredList>> {
    match &cx.args[0] {
        Value::Structured(list) => Ok(Some(list.clone())),
        Value::Heterogeneous(list) if list.dtype == TfType::Variant && cx.constant_int(1).is_err() => {
            let value = Value::Heterogeneous(list.clone());
            let ValueSpec::Heterogeneous(from) = ValueSpec::of(cx.b, &value) else { return Ok(None) };
            let Some(to) = from.to_structured(Some(item)) else { return Ok(None) };
            cast(cx.b, &value, &ValueSpec::Structured(to)).map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether a value must be stored in a structured list: a list or optional, which consists of several arrays.
fn is_element(value: Option<&Value>) -> bool {
    matches!(
        value,
        Some(
            Value::List(_)
                | Value::UnshapedList { .. }
                | Value::Heterogeneous(_)
                | Value::Structured(_)
                | Value::Optional(_)
        )
    )
}

/// Structured list in input 0 with input 2 stored at the index in input 1; `None` if the list is not and need not become
/// structured.
pub(super) fn set(cx: &mut LowerCtx, grows: bool) -> Result<Option<StructuredList>> {
    let Some(item) = cx.args.get(2).filter(|item| is_element(Some(item))).cloned() else { return Ok(None) };
    let item = spec::with_known_sizes(cx.b, &item)?;
    let spec = ValueSpec::of(cx.b, &item);
    let Some(list) = taking(cx, &spec)? else { return Ok(None) };
    let index = cx.arg(1)?;
    let set = &mut |cx: &mut LowerCtx, part: &ListValue, leaf: InstId| {
        let part = if grows { part.extended_to_index(cx, index)? } else { part.clone() };
        if part.capacity(cx.b).is_zero() {
            return Err(cx.shape_mismatch("the list has no elements"));
        }
        let row = super::as_row(cx.b, leaf);
        let buffer = super::put(cx.b, part.buffer, row, index);
        Ok(ListValue { buffer, elements: CommonElement::Any, ..part })
    };
    list.with(cx, &item, set).map(Some)
}

/// Structured list in input 0 with input 1 appended; `None` for other lists.
pub(super) fn pushed(cx: &mut LowerCtx) -> Result<Option<StructuredList>> {
    let (Value::Structured(list), Some(item)) = (&cx.args[0], cx.args.get(1)) else { return Ok(None) };
    let (list, item) = (list.clone(), item.clone());
    list.with(cx, &item, &mut |cx, part, leaf| part.pushed(cx.b, leaf)).map(Some)
}

/// Structured list in input 0 without its last element, and that element; `None` for other lists.
pub(super) fn popped(cx: &mut LowerCtx) -> Result<Option<Vec<Value>>> {
    let Value::Structured(list) = &cx.args[0] else { return Ok(None) };
    let list = list.clone();
    let popped: Option<Vec<(ListValue, InstId)>> = list.parts.iter().map(|part| part.popped(cx.b)).collect();
    let Some(popped) = popped else { return Err(cx.shape_mismatch("the list has no elements")) };
    let (parts, leaves): (Vec<ListValue>, Vec<InstId>) = popped.into_iter().unzip();
    let item = list.element.value_from_leaves(cx.b, leaves);
    Ok(Some(vec![Value::Structured(StructuredList { parts, ..list }), item]))
}

/// Element at the index in input 1 of a structured list, or of a list of separate values if the index is not constant; `None`
/// for other lists.
pub(super) fn get(cx: &mut LowerCtx) -> Result<Option<Value>> {
    let list = match &cx.args[0] {
        Value::Structured(list) => list.clone(),
        Value::Heterogeneous(list) if list.dtype == TfType::Variant && cx.constant_int(1).is_err() => {
            let value = Value::Heterogeneous(list.clone());
            let ValueSpec::Heterogeneous(from) = ValueSpec::of(cx.b, &value) else { return Ok(None) };
            let Some(to) = from.to_structured(None) else { return Ok(None) };
            cast(cx.b, &value, &ValueSpec::Structured(to))?
        }
        _ => return Ok(None),
    };
    let index = cx.arg(1)?;
    if list.capacity(cx.b).is_zero() {
        return Err(cx.shape_mismatch("the list has no elements"));
    }
    let leaves = list.parts.iter().map(|part| super::row(cx.b, part.buffer, index)).collect();
    Ok(Some(list.element.value_from_leaves(cx.b, leaves)))
}

/// Structured list resized to `n` elements; new ones are zeros.
pub(super) fn resized(cx: &mut LowerCtx, list: &StructuredList, n: Dim) -> Result<Value> {
    let parts = list.parts.iter().map(|part| part.resized(cx.b, n)).collect::<Result<_>>()?;
    Ok(Value::Structured(StructuredList { parts, ..list.clone() }))
}
