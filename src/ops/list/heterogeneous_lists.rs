//! Lists whose elements are separate values: arrays of different shapes, or lists.
//!
//! A list is stored as one array as long as possible. It is converted to this form when an element of another shape is set, at
//! a constant index, and the node that made the list left the element shape open.
use super::{name_of, partial_shape};
use crate::diag::{Code, Error, Result};
use crate::graph::{PartialShape, TfType};
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::interp;
use crate::ops::spec::{check_nesting, with_known_sizes};
use crate::ops::value::{HeterogeneousList, ListValue, RaggedValue};
use crate::ops::{LowerCtx, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;
use std::collections::HashSet;
use std::sync::Arc;

/// Largest length of a list of separate values, as every element costs at least one instruction.
const MOST_ITEMS: u64 = 1 << 14;

impl HeterogeneousList {
    /// Elements as RaggedTensors, if all of them are.
    pub(super) fn ragged_elements(&self) -> Option<Vec<RaggedValue>> {
        let one = |item: &Option<Value>| match item {
            Some(Value::Ragged(ragged)) if !ragged.is_rows => Some(ragged.clone()),
            _ => None,
        };
        self.open_length.is_none().then(|| self.items.iter().map(one).collect()).flatten()
    }

    /// Rejects a list whose length varies between calls, as its elements cannot be accessed separately.
    ///
    /// # Errors
    /// `DynamicShape`.
    fn check_length(&self) -> Result<()> {
        match self.open_length {
            None => Ok(()),
            Some(_) => {
                let told = format!("one element of the list `{}`, whose length varies from call to call", self.name);
                Err(Error::user(Code::DynamicShape, told))
            }
        }
    }

    /// Stacks the elements into an array, one per row.
    ///
    /// # Errors
    /// `UnsupportedCase` if their shapes differ.
    pub fn stack_elements(self, b: &mut Builder) -> Result<ListValue> {
        let refused = |found: &str| {
            let told = format!("the list `{}` holds {found}, and the op needs equal ones", self.name);
            Err(Error::user(Code::UnsupportedCase, told))
        };
        let first = self.items.iter().flatten().find_map(array);
        let Some(first) = first else { return refused("no arrays") };
        let mut rows = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let row = match item {
                Some(item) => array(item),
                None => Some(b.full_like(first, 0.0)),
            };
            match row {
                Some(row) if b.shape(row).same_type_and_dims(b.shape(first)) => rows.push(super::as_row(b, row)),
                _ => return refused("elements of several shapes"),
            }
        }
        let buffer = b.concatenate(&rows, 0);
        Ok(ListValue { open: Some(self.declared), ..ListValue::from_buffer(buffer, &self.name) })
    }
}

impl ListValue {
    /// Whether two lists of equal length must be added element by element, because their arrays differ in shape.
    pub(super) fn differs_in_shape(&self, other: &ListValue, b: &Builder) -> bool {
        let (x, y) = (b.dims(self.buffer), b.dims(other.buffer));
        let known = self.count.is_none() && other.count.is_none() && self.open.is_some() && other.open.is_some();
        known && x != y && x.first() == y.first() && x[0] <= MOST_ITEMS
    }
}

fn array(item: &Value) -> Option<InstId> {
    if let Value::Array(id) = item { Some(*id) } else { None }
}

/// List of unset lists, of this length.
pub(super) fn unset_lists(cx: &LowerCtx, length: Dim) -> Result<Vec<Value>> {
    let open_length = Some(length).filter(|length| length.varies());
    let items = match open_length {
        Some(_) => Vec::new(),
        None => {
            check(length)?;
            vec![None; length.guarded_index()]
        }
    };
    let declared = Arc::new(PartialShape(None));
    Ok(vec![Value::Heterogeneous(HeterogeneousList {
        items,
        open_length,
        dtype: TfType::Variant,
        declared,
        name: name_of(cx),
    })])
}

fn check(length: Dim) -> Result<()> {
    if length <= MOST_ITEMS {
        return Ok(());
    }
    Err(Error::user(Code::TooLarge, format!("a list of {length} unlike elements; {MOST_ITEMS} are supported")))
}

/// List in input 0 as separate values, if that is needed for input `item` to become its element; `None` if it is not.
pub(super) fn heterogeneous_input(cx: &mut LowerCtx, item: usize) -> Result<Option<HeterogeneousList>> {
    let is_list = matches!(
        cx.args.get(item),
        Some(
            Value::List(_)
                | Value::UnshapedList { .. }
                | Value::Heterogeneous(_)
                | Value::Structured(_)
                | Value::Optional(_)
                | Value::Ragged(_)
        )
    );
    match &cx.args[0] {
        Value::Heterogeneous(list) if is_list == (list.dtype == TfType::Variant) => {
            let list = list.clone();
            let fits = is_list || list.declared.admits(&cx.dims(item)?);
            if fits { Ok(Some(list)) } else { Err(cx.shape_mismatch("an element of another shape than the list's")) }
        }
        Value::List(ListValue { buffer, count: None, open: Some(open), name, .. }) if !is_list => {
            let (dims, rows) = (cx.dims(item)?, cx.b.dims(*buffer).to_vec());
            if rows[1..] == *dims || !open.admits(&dims) || rows[0] > MOST_ITEMS {
                return Ok(None);
            }
            let (buffer, declared, name) = (*buffer, open.clone(), name.clone());
            let (dtype, items) = (TfType::Data(cx.b.dtype(buffer)), separate_rows(cx.b, buffer));
            Ok(Some(HeterogeneousList { items, open_length: None, dtype, declared, name }))
        }
        _ => Ok(None),
    }
}

/// Rows of a list's array as separate values; `None` for rows that were never set.
pub(super) fn separate_rows(b: &mut Builder, buffer: InstId) -> Vec<Option<Value>> {
    let (set, dims) = (rows_set(b, buffer), b.dims(buffer).to_vec());
    let one = |i: Dim| {
        let row = b.slice_axis(buffer, 0, i, i + 1);
        Value::Array(b.reshape(row, &dims[1..]))
    };
    let mut one = one;
    (0..dims[0].guarded_count())
        .map(|i| set.as_ref().is_none_or(|set| set.contains(&Dim::from(i))).then(|| one(Dim::from(i))))
        .collect()
}

/// Row indices written into an array of zeros, if all of them are constants; `None` if the array is of other origin.
fn rows_set(b: &Builder, buffer: InstId) -> Option<HashSet<Dim>> {
    let insts = &b.current_computation().insts;
    let (mut set, mut open) = (HashSet::new(), vec![buffer]);
    while let Some(id) = open.pop() {
        let inst = insts.get(id)?;
        match (&inst.op, &inst.operands[..]) {
            (Op::DynamicUpdateSlice, &[before, _, index, ..]) => {
                let at = interp::constant_value(b, index)?.get_i64(0)?;
                set.insert(Dim::size(at).ok()?);
                open.push(before);
            }
            (Op::Elementwise(ScalarOp::Add), &[x, y]) => open.extend([x, y]),
            (Op::Broadcast(_), &[x]) if interp::constant_value(b, x).and_then(|x| x.get_f64(0)) == Some(0.0) => {}
            _ => return None,
        }
        if Dim::from(set.len()) > MOST_ITEMS || Dim::from(open.len()) > MOST_ITEMS {
            return None;
        }
    }
    Some(set)
}

/// Index in input 1, which must be constant.
fn index(cx: &LowerCtx) -> Result<usize> {
    let at = cx.constant_int(1)?;
    usize::try_from(at).map_err(|_| Error::user(Code::BadInputs, format!("element {at} of a list")))
}

/// List with input 2 stored at the index in input 1.
pub(super) fn set(cx: &mut LowerCtx, mut list: HeterogeneousList, grows: bool) -> Result<Vec<Value>> {
    let at = index(cx)?;
    list.check_length()?;
    if grows && at >= list.items.len() {
        check(Dim::from(at) + 1)?;
        list.items.resize(at + 1, None);
    }
    let (count, item) = (list.items.len(), known_item(cx, 2)?);
    let Some(place) = list.items.get_mut(at) else {
        return Err(Error::user(Code::BadInputs, format!("element {at} of a list of {count}")));
    };
    *place = item;
    nested(list)
}

/// Element at the index in input 1, if input 0 is a list of separate values and the index is constant.
pub(super) fn get(cx: &mut LowerCtx) -> Result<Option<Value>> {
    let Value::Heterogeneous(list) = &cx.args[0] else { return Ok(None) };
    let Ok(at) = index(cx) else { return Ok(None) };
    let item = list.items.get(at).cloned();
    let count = list.items.len();
    let dtype = list.dtype;
    match item {
        Some(item) => item_or_zeros(cx, item, dtype, 2).map(Some),
        None => Err(Error::user(Code::BadInputs, format!("element {at} of a list of {count}"))),
    }
}

/// Element of a list, or zeros of the shape that input `i` gives if it was never set.
fn item_or_zeros(cx: &mut LowerCtx, item: Option<Value>, dtype: TfType, i: usize) -> Result<Value> {
    match (item, dtype, super::fixed_shape(cx, i)) {
        (Some(item), ..) => Ok(item),
        (None, TfType::Data(dtype), Some(dims)) => Ok(Value::Array(cx.b.full(dtype, &dims, 0.0))),
        _ => Err(Error::user(
            Code::DynamicShape,
            "an element of a list that was never set, of a shape that is not known",
        )),
    }
}

/// List with input 1 appended.
pub(super) fn pushed(cx: &mut LowerCtx, mut list: HeterogeneousList) -> Result<Vec<Value>> {
    list.check_length()?;
    check(Dim::from(list.items.len()) + 1)?;
    list.items.push(known_item(cx, 1)?);
    nested(list)
}

/// Input `i` as an element, with the sizes in it that are known at compile time.
fn known_item(cx: &mut LowerCtx, i: usize) -> Result<Option<Value>> {
    let item = cx.args.get(i).cloned();
    item.map(|item| with_known_sizes(cx.b, &item)).transpose()
}

fn nested(list: HeterogeneousList) -> Result<Vec<Value>> {
    let list = Value::Heterogeneous(list);
    check_nesting(&list)?;
    Ok(vec![list])
}

/// List without its last element, and that element.
pub(super) fn popped(cx: &mut LowerCtx, mut list: HeterogeneousList) -> Result<Vec<Value>> {
    list.check_length()?;
    let Some(item) = list.items.pop() else { return Err(cx.shape_mismatch("the list has no elements")) };
    let item = item_or_zeros(cx, item, list.dtype, 1)?;
    Ok(vec![Value::Heterogeneous(list), item])
}

/// List resized to `length`.
pub(super) fn resized(mut list: HeterogeneousList, length: Dim) -> Result<Vec<Value>> {
    list.check_length()?;
    check(length)?;
    list.items.resize(length.guarded_index(), None);
    Ok(vec![Value::Heterogeneous(list)])
}

/// Concatenation of all elements along axis 0, and the length of each.
pub(super) fn concat(cx: &mut LowerCtx, list: &HeterogeneousList) -> Result<Vec<Value>> {
    let parts: Option<Vec<InstId>> = list.items.iter().map(|item| item.as_ref().and_then(array)).collect();
    let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
        return Err(cx.unsupported_case("a list of which elements are no arrays or were never set"));
    };
    let rest = cx.b.dims(parts[0]).get(1..).map(<[Dim]>::to_vec);
    if rest.is_none() || parts.iter().any(|&part| cx.b.dims(part).get(1..) != rest.as_deref()) {
        return Err(cx.shape_mismatch("elements that differ in more than their first size"));
    }
    let lengths: Vec<Dim> = parts.iter().map(|&part| cx.b.dims(part)[0]).collect();
    let all = cx.b.concatenate(&parts, 0);
    let lengths = cx.b.numbers(DType::S64, &lengths);
    Ok(vec![Value::Array(all), Value::Array(lengths)])
}

/// Splits an array along axis 0 into elements of these lengths.
pub(super) fn split(cx: &mut LowerCtx, x: InstId, lengths: &[Dim]) -> Result<Vec<Value>> {
    check(Dim::from(lengths.len()))?;
    let whole = cx.b.dims(x).first().copied();
    let mut items = Vec::with_capacity(lengths.len());
    let mut start = Dim::from(0);
    for &length in lengths {
        let end = Dim::size(length).ok().and_then(|n| start.checked_add(n));
        let Some(end) = end.filter(|&end| whole.is_some_and(|whole| end <= whole)) else {
            return Err(cx.shape_mismatch("the lengths do not add up to the first dimension"));
        };
        items.push(Some(Value::Array(cx.b.slice_axis(x, 0, start, end))));
        start = end;
    }
    if whole != Some(start) {
        return Err(cx.shape_mismatch("the lengths do not add up to the first dimension"));
    }
    let dtype: DType = cx.b.dtype(x);
    let declared = partial_shape(cx, 1).unwrap_or_else(|| Arc::new(PartialShape(None)));
    let (dtype, name) = (TfType::Data(dtype), name_of(cx));
    Ok(vec![Value::Heterogeneous(HeterogeneousList { items, open_length: None, dtype, declared, name })])
}
