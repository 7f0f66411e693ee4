//! `lookup_ops.cc`: lookup tables from integers to numbers.
//!
//! `import` finds the initial contents of a table, and attaches them to the nodes that give its handle, as attributes [`KEYS`]
//! and [`VALUES`]. A table that no call changes is a constant of the code; a lookup is a perfect hash function ([`hash`]) and a
//! gather. A table that calls change is state ([`mutable`]).
mod hash;
mod mutable;
mod order;

use super::array::gather::gather_along_axis;
use super::fact::Fact;
use super::op_lowering::op;
use super::shape::{S64, no_outputs};
use super::symbols::{InferredDim, UnknownReason};
use super::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, CONTENTS_UNKNOWN, KEYS, Node, TfType, VALUES};
use crate::hlo::symbolic::InstId;
use crate::symbolic::constant_dims;
use crate::tensor::{Tensor, element_count};
use hash::{PerfectHash, keys_as_words};
pub use mutable::{TableContents, table_contents};
use std::collections::HashMap;
use std::sync::Arc;

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[&[
    op("HashTableV2", "-> table_handle", handle).shape(handle_shape),
    op("MutableHashTableV2", "-> table_handle", handle).shape(handle_shape),
    op("MutableHashTableOfTensorsV2", "-> table_handle", handle).shape(handle_shape),
    op("MutableDenseHashTableV2", "empty_key deleted_key -> table_handle", handle).shape(handle_shape),
    op("AnonymousHashTable", "-> table_handle", handle).shape(handle_shape),
    op("AnonymousMutableHashTable", "-> table_handle", handle).shape(handle_shape),
    op("AnonymousMutableHashTableOfTensors", "-> table_handle", handle).shape(handle_shape),
    op("AnonymousMutableDenseHashTable", "empty_key deleted_key -> table_handle", handle).shape(handle_shape),
    op("LookupTableFindV2", "table_handle keys default_value -> values", find)
        .shape(find_shape)
        .dtypes("integers to numbers"),
    op("LookupTableSizeV2", "table_handle -> size", size).shape(|cx| cx.one_output(S64, vec![])),
    op("LookupTableImportV2", "table_handle keys values ->", |cx| change(cx, |cx, id| mutable::insert(cx, id, true)))
        .shape(no_outputs)
        .assigns_inputs(&[0])
        .dtypes(CHANGES),
    op("LookupTableInsertV2", "table_handle keys values ->", |cx| change(cx, |cx, id| mutable::insert(cx, id, false)))
        .shape(no_outputs)
        .assigns_inputs(&[0])
        .dtypes(CHANGES),
    op("LookupTableRemoveV2", "table_handle keys ->", |cx| change(cx, mutable::remove))
        .shape(no_outputs)
        .assigns_inputs(&[0])
        .dtypes(CHANGES),
    op("LookupTableExportV2", "table_handle -> keys values", export)
        .shape(export_shape)
        .dtypes("integers to numbers, of tables that calls change and that are not dense"),
    op("InitializeTableV2", "table_handle keys values ->", |cx| Err(unchangeable(cx)))
        .shape(no_outputs)
        .assigns_inputs(&[0])
        .dtypes(FILLS),
]];

const FILLS: &str = "integers to numbers, where the file fills a table before any call";
const CHANGES: &str = "integers to numbers, up to a number of keys (`--bound`)";

/// A lookup table with constant contents.
#[derive(Debug, PartialEq)]
pub struct Table {
    /// Name of the node whose output is the table's handle.
    name: String,
    /// Keys of the table, all different.
    keys: Tensor,
    /// Value of each key.
    values: Tensor,
    /// Keys and values in the order in which TensorFlow exports them, for a table of a mutable type.
    listed: Option<TableContents>,
    /// Perfect hash function of the keys; `None` for an empty table.
    hash: Option<PerfectHash>,
}

/// Whether a node changes a lookup table.
pub fn changes_table(node: &Node) -> bool {
    ROWS.iter().flat_map(|rows| rows.iter()).any(|row| !row.writes.is_empty() && row.name == &*node.op)
}

/// Lowers an op that gives the handle of a table.
fn handle(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let of = |name: &str| cx.require_attr(cx.node.tf_type(name), name);
    for (name, t) in [("key_dtype", of("key_dtype")?), ("value_dtype", of("value_dtype")?)] {
        if t.dtype().is_none_or(|d| name == "key_dtype" && !d.is_integer()) {
            let told = format!("{name} of the table is {t}; tables from integers to numbers are supported");
            let d = Diagnostic::new(Code::UnsupportedType, told).help("feed what is looked up");
            return Err(d.into());
        }
    }
    if let Some(id) = cx.store.variable_of_node(cx.node) {
        if (0..cx.args.len()).any(|i| cx.dims(i).is_ok_and(|dims| !dims.is_empty())) {
            return Err(cx.unsupported_case("a table whose keys are no scalars"));
        }
        let marks = marks(cx)?;
        cx.store.set_marker_keys(id, marks);
        return Ok(vec![Value::Variable(id)]);
    }
    let (Some(Attr::Tensor(keys)), Some(Attr::Tensor(values))) = (cx.node.attr(KEYS), cx.node.attr(VALUES)) else {
        let why = cx.node.str(CONTENTS_UNKNOWN).unwrap_or("nothing in the file fills it");
        let d = Diagnostic::new(Code::TableContents, "the contents of the table are not known").note(why);
        return Err(d.into());
    };
    Ok(vec![Value::Table(Arc::new(Table::new(cx, keys, values)?))])
}

impl Table {
    /// Table with these keys and values. Of a repeated key a mutable table keeps the last value; any other table must not have
    /// different values for one key, as in TensorFlow.
    fn new(cx: &LowerCtx, keys: &Tensor, values: &Tensor) -> Result<Table> {
        let n = keys.len();
        if keys.dims.first() != Some(&(n as u64)) || values.dims.first() != keys.dims.first() {
            return Err(cx.shape_mismatch(format!("a table of keys {:?} and values {:?}", keys.dims, values.dims)));
        }
        let row = values.bytes.len() / n.max(1);
        let value = |i: usize| &values.bytes[i * row..(i + 1) * row];
        let mutable = cx.node.op.contains("Mutable");
        let numbers = keys_as_words(keys);
        let mut last: HashMap<u64, usize> = HashMap::with_capacity(n);
        for (i, &key) in numbers.iter().enumerate() {
            if let Some(before) = last.insert(key, i)
                && !mutable
                && value(before) != value(i)
            {
                let told = format!("the table is filled with two values for the key {}", keys.element_text(i));
                return Err(Error::user(Code::TableContents, told));
            }
        }
        let marks = marks(cx)?;
        let is_kept = |i: &usize| last.get(&numbers[*i]) == Some(i) && !marks.contains(&numbers[*i]);
        let kept: Vec<usize> = (0..n).filter(is_kept).collect();
        let size = keys.dtype.bytes();
        let own: Vec<u8> = kept.iter().flat_map(|&i| &keys.bytes[i * size..(i + 1) * size]).copied().collect();
        let rows: Vec<u8> = kept.iter().flat_map(|&i| value(i)).copied().collect();
        let count = kept.len() as u64;
        let keys = Tensor::new(keys.dtype, vec![count], own);
        let one = match cx.node.attr("value_shape") {
            Some(Attr::Shape(shape)) => shape.fixed().unwrap_or_default(),
            _ => values.dims[1..].to_vec(),
        };
        if element_count(&one).is_none_or(|size| size as usize * values.dtype.bytes() != row) && n > 0 {
            return Err(
                cx.shape_mismatch(format!("a table of values {one:?} that is filled with {:?}", &values.dims[1..]))
            );
        }
        let values = Tensor::new(values.dtype, [&[count], &one[..]].concat(), rows);
        let hash = PerfectHash::new(&keys_as_words(&keys)).map_err(|told| Error::user(Code::TooLarge, told))?;
        let is_listed = mutable && !cx.node.op.contains("Dense");
        let listed = is_listed.then(|| table_contents(cx.node, &one, &[])).transpose()?;
        Ok(Table { name: cx.node.name.to_string(), keys, values, listed, hash })
    }
}

/// Keys that mark empty and deleted buckets of a dense hash table; such buckets are saved with the table.
fn marks(cx: &LowerCtx) -> Result<Vec<u64>> {
    let mut marks = Vec::new();
    for i in 0..cx.args.len() {
        marks.extend(keys_as_words(&cx.constant(i)?));
    }
    Ok(marks)
}

/// Constant table whose handle is input 0.
fn table(cx: &LowerCtx) -> Result<Arc<Table>> {
    match cx.args.first() {
        Some(Value::Table(table)) => Ok(table.clone()),
        Some(Value::Unavailable(TfType::Resource)) => {
            Err(cx.unsupported_case("a table whose handle comes from outside of the graph"))
        }
        _ => Err(Error::user(Code::TypeMismatch, "input 0 must be the handle of a table")),
    }
}

/// Lowers `LookupTableFind`: the value of each key, or the default if the key is missing. The default is one value for all
/// keys, or one for each.
///
/// Shapes: `keys [k..]`, values of the table `[n, v..]`, `default_value [v..]` or `[k.., v..]` -> `[k.., v..]`.
fn find(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Some(id) = mutable::mutable_table(cx) {
        return mutable::find(cx, id);
    }
    let table = table(cx)?;
    let (keys, default) = (cx.arg(1)?, cx.arg(2)?);
    if cx.b.dtype(keys) != table.keys.dtype || cx.b.dtype(default) != table.values.dtype {
        let told = format!("keys of {} and values of {}", cx.b.dtype(keys), cx.b.dtype(default));
        let own = format!("the table `{}` is from {} to {}", table.name, table.keys.dtype, table.values.dtype);
        return Err(Diagnostic::new(Code::TypeMismatch, told).note(own).into());
    }
    let (places, one) = (cx.b.dims(keys).to_vec(), &table.values.dims[1..]);
    let out = [&places[..], &constant_dims(one)].concat();
    let given = cx.b.dims(default);
    if given != one && given != out {
        return Err(cx.shape_mismatch(format!("a default value of {given:?} for values of {one:?}")));
    }
    let default = cx.b.broadcast_to(default, &out);
    let Some(hash) = table.hash.as_ref().filter(|_| !crate::symbolic::has_zero(&out)) else {
        return cx.one_output(default);
    };
    let slot = hash.slot(cx, keys)?;
    let at = cx.b.constant(hash.rows_by_slot(&table.keys));
    let there = gather_along_axis(cx, at, slot, 0, 0)?;
    let found = cx.b.compare(crate::scalar::Direction::Eq, there, keys);
    let values = cx.b.constant(hash.rows_by_slot(&table.values));
    let value = gather_along_axis(cx, values, slot, 0, 0)?;
    let found: InstId = cx.b.broadcast(found, &out, &(0..places.len()).collect::<Vec<_>>());
    let y = cx.b.select(found, value, default);
    cx.one_output(y)
}

fn size(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if let Some(id) = mutable::mutable_table(cx) {
        return mutable::size(cx, id);
    }
    let n = table(cx)?.keys.len() as i64;
    let n = cx.b.constant(Tensor::scalar(n));
    cx.one_output(n)
}

/// Applies a change to the table whose handle is input 0, if calls may change that table.
fn change(
    cx: &mut LowerCtx,
    f: impl FnOnce(&mut LowerCtx, mutable::TableId) -> Result<Vec<Value>>,
) -> Result<Vec<Value>> {
    match mutable::mutable_table(cx) {
        Some(id) => f(cx, id),
        None => Err(unchangeable(cx)),
    }
}

/// Error for an op that changes a constant table: its contents come from the file, and a call cannot change them.
fn unchangeable(cx: &LowerCtx) -> Error {
    let told = format!("{} changes a table that is a constant of the code", cx.node.op);
    Error::user(Code::VariableAssigned, told)
}

fn export(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    match mutable::mutable_table(cx) {
        Some(id) => mutable::export(cx, id),
        None => match &table(cx)?.listed {
            Some(contents) => Ok(contents.exported_constants().map(|t| Value::Array(cx.b.constant(t))).to_vec()),
            None => Err(cx.unsupported_case("the list of the keys of a dense table, or of one that never changes")),
        },
    }
}

fn handle_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output(TfType::Resource, vec![])
}

/// Shape function of `LookupTableExport`: the keys, whose number depends on the table, and a value for each.
fn export_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let count = cx.fresh_dim(UnknownReason::Value(0));
    let values = cx.unranked(UnknownReason::NoShapeFunction);
    let (keys, types) = (vec![count], ["Tkeys", "Tvalues"].map(|name| cx.attr_type(name)));
    let keys = cx.one_output(types[0], keys)?;
    let values = cx.one_output(types[1], values)?;
    Ok([keys, values].concat())
}

/// Shape function of `LookupTableFind`: one value per key. The rank is unknown for a default that is not a scalar, as that may
/// be one value or one for each key.
fn find_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let scalar = cx.dims(2)?.as_ranked().is_some_and(<[InferredDim]>::is_empty);
    let dims = if scalar { cx.dims(1)? } else { cx.unranked(UnknownReason::NoShapeFunction) };
    cx.one_output_typed_by("Tout", dims)
}
