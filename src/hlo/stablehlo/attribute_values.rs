//! Access to the attributes of an operation as values: integers, words, dictionaries; and collection of attributes under HLO's
//! names.
use super::tree::{MlirAttr, Operation};
use crate::hlo::schema::{Attrs, FieldValue};

pub(super) type AttrResult<T> = Result<T, String>;

pub(super) fn ints(op: &Operation, names: &[&str]) -> AttrResult<Vec<i64>> {
    match op.attr(names) {
        Some(value) => value.ints().ok_or_else(|| format!("`{}` is a list of whole numbers", names[0])),
        None => Err(format!("`{}` is expected but not seen", names[0])),
    }
}

pub(super) fn ints_or(op: &Operation, names: &[&str], default: Vec<i64>) -> AttrResult<Vec<i64>> {
    if op.attr(names).is_some() { ints(op, names) } else { Ok(default) }
}

pub(super) fn int(op: &Operation, names: &[&str]) -> AttrResult<i64> {
    ints(op, names)?.first().copied().ok_or_else(|| format!("`{}` is a whole number", names[0]))
}

pub(super) fn int_or(op: &Operation, names: &[&str], default: i64) -> AttrResult<i64> {
    if op.attr(names).is_some() { int(op, names) } else { Ok(default) }
}

pub(super) fn flag(op: &Operation, name: &str) -> bool {
    matches!(op.attr(&[name]), Some(MlirAttr::Bool(true)))
}

/// The keyword of an enumeration attribute.
pub(super) fn word(op: &Operation, names: &[&str]) -> Option<String> {
    match op.attr(names) {
        Some(MlirAttr::Text(word)) => Some(word.clone()),
        _ => None,
    }
}

/// Entry `name` of a dictionary; an empty list if it is missing.
pub(super) fn entry(dict: &[(String, MlirAttr)], names: &[&str]) -> Vec<i64> {
    names.iter().find_map(|n| dict.iter().find(|e| e.0 == *n)).and_then(|e| e.1.ints()).unwrap_or_default()
}

pub(super) fn dict<'a>(op: &'a Operation, names: &[&str]) -> AttrResult<&'a [(String, MlirAttr)]> {
    match op.attr(names) {
        Some(MlirAttr::Dict(all)) => Ok(all),
        // Bytecode has the entries as separate attributes.
        None if op.attr(&["index_vector_dim"]).is_some() => Ok(&op.attrs),
        _ => Err(format!("`{}` is expected but not seen", names[0])),
    }
}

/// Attributes being collected.
#[derive(Default)]
pub(super) struct AttrCollector(pub(super) Attrs<'static>);

impl AttrCollector {
    pub(super) fn put(&mut self, name: &'static str, value: FieldValue) {
        self.0.push(name, value, "");
    }
    pub(super) fn ints(&mut self, name: &'static str, value: Vec<i64>) {
        self.put(name, FieldValue::Ints(value));
    }
    pub(super) fn add_opaque(&mut self, name: &'static str, text: String) {
        self.0.push(name, FieldValue::Text, text);
    }
    /// The attributes as opaque text.
    pub(super) fn into_opaque(self) -> Vec<(String, String)> {
        self.0.into_extra()
    }
}

pub(super) fn size(value: i64) -> AttrResult<u64> {
    u64::try_from(value).map_err(|_| format!("{value} is negative"))
}
