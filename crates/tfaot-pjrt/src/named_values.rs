//! Values with names that live as long as their owner: attributes and costs.
use crate::c_api::base::{NamedValue, NamedValueContent};
use std::ffi::c_int;

/// `PJRT_NamedValue_kString`, `kInt64`, `kInt64List`, `kFloat`, `kBool`.
const INT64: c_int = 1;
const INT64_LIST: c_int = 2;
const FLOAT: c_int = 3;

/// A value.
pub enum Value {
    /// An integer.
    Int(i64),
    /// Integers.
    Ints(&'static [i64]),
    /// A float.
    Float(f32),
}

/// Named values in a table that can be lent to callers.
pub struct NamedValues(Vec<NamedValue>);

// SAFETY: names and lists are constants of the program.
unsafe impl Send for NamedValues {}
// SAFETY: as above.
unsafe impl Sync for NamedValues {}

impl NamedValues {
    /// A table of these values.
    pub fn new(all: &[(&'static str, Value)]) -> NamedValues {
        NamedValues(all.iter().map(|(name, value)| row(name, value)).collect())
    }

    /// Lends the table.
    pub fn lend(&self, pointer: &mut *const NamedValue, count: &mut usize) {
        *pointer = self.0.as_ptr();
        *count = self.0.len();
    }
}

fn row(name: &'static str, value: &Value) -> NamedValue {
    let (kind, content, value_size) = match *value {
        Value::Int(int64) => (INT64, NamedValueContent { int64 }, 1),
        Value::Ints(all) => (INT64_LIST, NamedValueContent { int64_array: all.as_ptr() }, all.len()),
        Value::Float(float) => (FLOAT, NamedValueContent { float }, 1),
    };
    NamedValue {
        struct_size: size_of::<NamedValue>(),
        extension_start: std::ptr::null_mut(),
        name: name.as_ptr().cast(),
        name_size: name.len(),
        kind,
        value: content,
        value_size,
    }
}
