//! Decomposition of values into leaves, and their preparation before they become elements of other values.
use super::ValueSpec;
use crate::diag::{Code, Error, Result};
use crate::hlo::SymbolicArray;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::interp;
use crate::ops::Value;
use crate::ops::value::ListValue;
use crate::symbolic::trace;
use crate::tensor::{DType, Tensor};

/// Largest number of elements of an array that is evaluated to find out whether it is constant.
const EVALUATED_ELEMENTS: u64 = 1 << 16;

/// Largest nesting depth of lists and optionals.
const MOST_NESTED: usize = 32;

/// Largest number of values inside nested lists and optionals.
const MOST_VALUES: usize = 1 << 16;

/// Largest number of elements of an integer vector that may be an array shape.
const MOST_DIMS: u64 = 16;

/// Appends the leaves of a value of this spec to `out`, in order.
pub fn append_leaves(value: &Value, spec: &ValueSpec, out: &mut Vec<InstId>) {
    match value {
        Value::Array(_) if matches!(spec, ValueSpec::Constant { .. }) => {}
        Value::Array(id) => out.push(*id),
        Value::List(list) => out.extend([list.buffer].into_iter().chain(list.count.map(|count| count.now))),
        Value::UnshapedList { now, .. } => out.extend(now),
        Value::Heterogeneous(list) => {
            let ValueSpec::Heterogeneous(spec) = spec else { return };
            for (item, spec) in list.items.iter().flatten().zip(spec.items.iter().flatten()) {
                append_leaves(item, spec, out);
            }
        }
        Value::Structured(list) => {
            out.extend(list.parts.iter().map(|part| part.buffer));
            out.extend(list.parts.first().and_then(|part| part.count).map(|count| count.now));
        }
        Value::RaggedList(list) => out.extend([list.buffer, list.lengths]),
        Value::Ragged(ragged) => out.extend(ragged.splits.iter().copied().chain([ragged.values])),
        Value::Sparse(matrix) => out.extend([matrix.indices, matrix.values]),
        Value::Optional(optional) => {
            out.push(optional.has_value);
            let ValueSpec::Optional(specs) = spec else { return };
            let specs = specs.iter().flat_map(|one| &one.components);
            for (component, spec) in optional.alternatives.iter().flat_map(|one| &one.components).zip(specs) {
                append_leaves(component, spec, out);
            }
        }
        Value::Text(text) => out.extend(text.words.iter().copied().chain([text.length])),
        Value::Variable(_) | Value::MutableList(_) | Value::Table(_) | Value::Strings(_) | Value::Unavailable(_) => {}
    }
}

/// Whether a size is at most `most` in every call; records no guard.
fn is_at_most(size: Dim, most: u64) -> bool {
    trace::range_of(size).most <= most.into()
}

/// Value of an array, if it is constant and cheap to evaluate.
pub fn constant_tensor(b: &Builder, value: &Value) -> Option<Tensor> {
    let Value::Array(id) = value else { return None };
    let inst = &b.current_computation().insts[*id];
    if let Op::Constant(_) = inst.op {
        return interp::constant_value(b, *id);
    }
    let small = inst.shape.as_array().is_some_and(|a| is_at_most(a.elements(), EVALUATED_ELEMENTS));
    if small { interp::constant_value(b, *id) } else { None }
}

/// Value of an array that is determined by constants and sizes, with expressions for elements that depend on open sizes; `None`
/// if it is large or depends on data.
pub fn symbolic_constant(b: &Builder, value: &Value) -> Option<SymbolicArray> {
    let Value::Array(id) = value else { return None };
    let inst = &b.current_computation().insts[*id];
    let small = inst.shape.as_array().is_some_and(|a| is_at_most(a.elements(), EVALUATED_ELEMENTS));
    let known =
        if small || matches!(inst.op, Op::Constant(_)) { interp::symbolic_value(b, *id)? } else { return None };
    Some(if b.depends_on_sizes(*id) { known.with_expressions() } else { known })
}

/// Value of an integer, or of a vector short enough to be a shape, if it is known; also if loops compute it.
pub fn symbolic_shape_value(b: &Builder, id: InstId) -> Option<SymbolicArray> {
    let dims = b.dims(id);
    let is_shape = dims.len() < 2 && dims.iter().all(|&n| is_at_most(n, MOST_DIMS));
    let is_integer = matches!(b.dtype(id), DType::S32 | DType::S64);
    if is_shape && is_integer { interp::symbolic_value_through_loops(b, id) } else { None }
}

/// List resized to its exact number of elements, if that is known.
///
/// # Errors
/// `Code::TooLarge` above 2^31 elements.
pub fn with_exact_length(b: &mut Builder, list: &ListValue) -> Result<ListValue> {
    let count = list.count.and_then(|count| interp::constant_value_through_loops(b, count.now));
    let count = count.and_then(|t| Dim::size(t.get_i64(0)?).ok());
    match count.filter(|&n| n <= list.capacity(b)) {
        Some(n) => list.resized(b, n),
        None => Ok(list.clone()),
    }
}

/// Value in which known sizes are constants, as gradients need them of the elements of lists and optionals.
///
/// # Errors
/// `Code::TooLarge` above 2^31 elements.
pub fn with_known_sizes(b: &mut Builder, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Array(id) => {
            let Some(known) = symbolic_shape_value(b, *id) else { return Ok(value.clone()) };
            let known = if b.depends_on_sizes(*id) { known.with_expressions() } else { known };
            Value::Array(known.add_constant(b))
        }
        Value::List(list) => Value::List(with_exact_length(b, list)?),
        Value::Structured(list) => {
            let parts = list.parts.iter().map(|part| with_exact_length(b, part)).collect::<Result<_>>()?;
            Value::Structured(crate::ops::value::StructuredList { parts, ..list.clone() })
        }
        value => value.clone(),
    })
}

/// Rejects values that are nested too deep, or consist of too many values, to become an element.
///
/// # Errors
/// `Code::TooLarge`.
pub fn check_nesting(value: &Value) -> Result<()> {
    let (mut level, mut count) = (vec![value], 0);
    for _ in 0..MOST_NESTED {
        let mut next = Vec::new();
        for value in level {
            match value {
                Value::Heterogeneous(list) => next.extend(list.items.iter().flatten()),
                Value::Optional(optional) => next.extend(optional.alternatives.iter().flat_map(|one| &one.components)),
                _ => {}
            }
        }
        count += next.len();
        if count > MOST_VALUES {
            let told = format!("lists and optionals of more than {MOST_VALUES} values in one another");
            return Err(Error::user(Code::TooLarge, told));
        }
        if next.is_empty() {
            return Ok(());
        }
        level = next;
    }
    Err(Error::user(Code::TooLarge, format!("lists and optionals nested deeper than {MOST_NESTED}")))
}
