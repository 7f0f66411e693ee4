//! Attributes of a call as the structs that handlers read: names in order, values behind pointers.
use super::structs::{ATTR_ARRAY, ATTR_DICTIONARY, ATTR_SCALAR, ATTR_STRING, Array, Attrs, ByteSpan, Scalar};
use crate::failure::Failure;
use std::ffi::{c_int, c_void};
use tfaot::hlo::stablehlo::CallAttribute;
use tfaot::tensor::Tensor;

/// A dictionary, and the memory that its structs point to.
pub struct Dictionary {
    attrs: Box<Attrs>,
    _types: Vec<c_int>,
    _names: Vec<ByteSpan>,
    _texts: Vec<String>,
    _name_pointers: Vec<*const ByteSpan>,
    _values: Vec<Value>,
    _value_pointers: Vec<*const c_void>,
    index: Option<u64>,
}

// SAFETY: the pointers are to memory that the dictionary owns, and that does not change.
unsafe impl Send for Dictionary {}
// SAFETY: as above.
unsafe impl Sync for Dictionary {}

/// A value, with what its struct points to.
enum Value {
    Scalar(Box<Scalar>, #[expect(dead_code, reason = "the struct points to it")] Tensor),
    Array(Box<Array>, #[expect(dead_code, reason = "the struct points to it")] Tensor),
    Text(Box<ByteSpan>, #[expect(dead_code, reason = "the struct points to it")] String),
    Dictionary(Dictionary),
}

impl Value {
    fn new(attribute: CallAttribute) -> Result<Value, Failure> {
        Ok(match attribute {
            CallAttribute::Scalar(t) => {
                let scalar = Scalar { dtype: super::site::data_type(t.dtype)?, value: t.bytes.as_ptr().cast() };
                Value::Scalar(Box::new(scalar), t)
            }
            CallAttribute::Array(t) => {
                let data = t.bytes.as_ptr().cast();
                Value::Array(Box::new(Array { dtype: super::site::data_type(t.dtype)?, size: t.len(), data }), t)
            }
            CallAttribute::Text(text) => Value::Text(Box::new(span(&text)), text),
            CallAttribute::Dictionary(all) => Value::Dictionary(Dictionary::new(all)?),
        })
    }

    fn kind(&self) -> c_int {
        match self {
            Value::Scalar(..) => ATTR_SCALAR,
            Value::Array(..) => ATTR_ARRAY,
            Value::Text(..) => ATTR_STRING,
            Value::Dictionary(_) => ATTR_DICTIONARY,
        }
    }

    fn as_ptr(&self) -> *const c_void {
        match self {
            Value::Scalar(one, _) => std::ptr::from_ref(&**one).cast(),
            Value::Array(one, _) => std::ptr::from_ref(&**one).cast(),
            Value::Text(one, _) => std::ptr::from_ref(&**one).cast(),
            Value::Dictionary(all) => std::ptr::from_ref(&*all.attrs).cast(),
        }
    }
}

/// The bytes of a text, which stay where they are when it moves.
fn span(text: &str) -> ByteSpan {
    ByteSpan { ptr: text.as_ptr().cast(), len: text.len() }
}

impl Dictionary {
    /// The structs of attributes, in the order of their names, as handlers search them.
    ///
    /// # Errors
    /// `Code::Unimplemented` for numbers of types that XLA's FFI has not.
    pub fn new(mut all: Vec<(String, CallAttribute)>) -> Result<Dictionary, Failure> {
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let index = all.iter().find_map(|(name, value)| match value {
            CallAttribute::Scalar(t) if name == "index" => t.get_i64(0).map(|i| i as u64),
            _ => None,
        });
        let (texts, values): (Vec<String>, Vec<CallAttribute>) = all.into_iter().unzip();
        let names: Vec<ByteSpan> = texts.iter().map(|text| span(text)).collect();
        let name_pointers: Vec<*const ByteSpan> = names.iter().map(std::ptr::from_ref).collect();
        let values = values.into_iter().map(Value::new).collect::<Result<Vec<_>, _>>()?;
        let types: Vec<c_int> = values.iter().map(Value::kind).collect();
        let value_pointers: Vec<*const c_void> = values.iter().map(Value::as_ptr).collect();
        let attrs = Attrs {
            struct_size: size_of::<Attrs>(),
            extension_start: std::ptr::null_mut(),
            size: values.len() as i64,
            types: types.as_ptr(),
            names: name_pointers.as_ptr(),
            attrs: value_pointers.as_ptr(),
        };
        Ok(Dictionary {
            attrs: Box::new(attrs),
            _types: types,
            _names: names,
            _texts: texts,
            _name_pointers: name_pointers,
            _values: values,
            _value_pointers: value_pointers,
            index,
        })
    }

    /// The struct of the whole dictionary, which points into it.
    pub fn attrs(&self) -> Attrs {
        *self.attrs
    }

    /// The number called `index`, by which a call names a callback.
    pub fn index(&self) -> Option<u64> {
        self.index
    }
}
