//! The message types of `protos/` as data, by which the text and JSON readers look up fields and encode their values.
use super::wire::{put_bytes, put_varint, put_varint_field};
use protobuf::reflect::{EnumDescriptor, FieldDescriptor, MessageDescriptor, RuntimeFieldType, RuntimeType};

/// A container of fields: a message, or one entry of a map.
#[derive(Clone)]
pub enum MessageOrMapEntry {
    /// A message.
    Message(MessageDescriptor),
    /// An entry of a map, with the types of `key` and `value`.
    Entry(RuntimeType, RuntimeType),
}

/// The type of a field.
#[derive(Clone)]
pub enum FieldType {
    /// A signed integer of 32 or 64 bits.
    Signed {
        /// Whether it has 32 bits.
        narrow: bool,
    },
    /// An unsigned integer of 32 or 64 bits.
    Unsigned {
        /// Whether it has 32 bits.
        narrow: bool,
    },
    /// A float.
    F32,
    /// A double.
    F64,
    /// A boolean.
    Bool,
    /// UTF-8 text.
    Text,
    /// Bytes.
    Bytes,
    /// An enum value, given by name or number.
    Enum(EnumDescriptor),
    /// A nested message.
    Message(MessageOrMapEntry),
    /// A message of a type that `protos/` does not define; it is skipped.
    Opaque,
}

/// A field of a message: its number and its type.
#[derive(Clone)]
pub struct FieldFormat {
    /// The field's number.
    pub number: u32,
    /// The type of the field, or of each item of a list.
    pub kind: FieldType,
    /// Whether the field is a list. Maps are lists of entries.
    pub repeated: bool,
    /// Whether the field is a map.
    pub map: bool,
}

impl MessageOrMapEntry {
    /// The message type `M`.
    pub fn message<M: protobuf::MessageFull>() -> MessageOrMapEntry {
        MessageOrMapEntry::Message(M::descriptor())
    }
    /// The field called `name`, as in the `.proto` or in protobuf's JSON.
    pub fn field(&self, name: &str) -> Option<FieldFormat> {
        match self {
            MessageOrMapEntry::Message(message) => message.field_by_name_or_json_name(name).map(|f| field_kind(&f)),
            MessageOrMapEntry::Entry(key, value) => {
                let (number, held) = match name {
                    "key" => (1, key),
                    "value" => (2, value),
                    _ => return None,
                };
                Some(FieldFormat { number, kind: kind(held), repeated: false, map: false })
            }
        }
    }
    /// The field with this number, and its name in the `.proto`.
    pub fn field_by_number(&self, number: u32) -> Option<(String, FieldFormat)> {
        match self {
            MessageOrMapEntry::Message(message) => {
                let field = message.fields().find(|f| f.number().unsigned_abs() == number)?;
                Some((field.name().to_string(), field_kind(&field)))
            }
            MessageOrMapEntry::Entry(..) => {
                let name = match number {
                    1 => "key",
                    2 => "value",
                    _ => return None,
                };
                self.field(name).map(|field| (name.to_string(), field))
            }
        }
    }
    /// The message's name, for error messages.
    pub fn name(&self) -> String {
        match self {
            MessageOrMapEntry::Message(message) => message.name().to_string(),
            MessageOrMapEntry::Entry(..) => "map entry".to_string(),
        }
    }
}

fn field_kind(field: &FieldDescriptor) -> FieldFormat {
    let number = field.number().unsigned_abs();
    match field.runtime_field_type() {
        RuntimeFieldType::Singular(t) => FieldFormat { number, kind: kind(&t), repeated: false, map: false },
        RuntimeFieldType::Repeated(t) => FieldFormat { number, kind: kind(&t), repeated: true, map: false },
        RuntimeFieldType::Map(k, v) => {
            FieldFormat { number, kind: FieldType::Message(MessageOrMapEntry::Entry(k, v)), repeated: true, map: true }
        }
    }
}

fn kind(held: &RuntimeType) -> FieldType {
    match held {
        RuntimeType::I32 => FieldType::Signed { narrow: true },
        RuntimeType::I64 => FieldType::Signed { narrow: false },
        RuntimeType::U32 => FieldType::Unsigned { narrow: true },
        RuntimeType::U64 => FieldType::Unsigned { narrow: false },
        RuntimeType::F32 => FieldType::F32,
        RuntimeType::F64 => FieldType::F64,
        RuntimeType::Bool => FieldType::Bool,
        RuntimeType::String => FieldType::Text,
        RuntimeType::VecU8 => FieldType::Bytes,
        RuntimeType::Enum(e) => FieldType::Enum(e.clone()),
        RuntimeType::Message(m) if m.name() == "Opaque" => FieldType::Opaque,
        RuntimeType::Message(m) => FieldType::Message(MessageOrMapEntry::Message(m.clone())),
    }
}

/// Parses an integer literal (`-12`, `0x1f`, `017`); `None` if `kind` can't represent it.
pub fn parse_integer(kind: &FieldType, text: &str) -> Option<u64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |d| (true, d));
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    let size =
        u64::from_str_radix(digits, radix).ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_hexdigit()))?;
    let value = if negative { -i128::from(size) } else { i128::from(size) };
    let fits = match kind {
        FieldType::Signed { narrow: true } | FieldType::Enum(_) => i32::try_from(value).is_ok(),
        FieldType::Signed { narrow: false } => i64::try_from(value).is_ok(),
        FieldType::Unsigned { narrow: true } => u32::try_from(value).is_ok(),
        FieldType::Unsigned { narrow: false } => u64::try_from(value).is_ok(),
        FieldType::F32
        | FieldType::F64
        | FieldType::Bool
        | FieldType::Text
        | FieldType::Bytes
        | FieldType::Message(_)
        | FieldType::Opaque => false,
    };
    fits.then_some(value as u64)
}

/// Appends a scalar field whose value is `text` (quoted text is passed unquoted); `None` if the value does not fit the type.
pub fn put_scalar(out: &mut Vec<u8>, field: &FieldFormat, text: &str) -> Option<()> {
    match &field.kind {
        FieldType::Signed { .. } | FieldType::Unsigned { .. } => {
            put_varint_field(out, field.number, parse_integer(&field.kind, text)?)
        }
        FieldType::F32 => {
            put_varint(out, u64::from(field.number) << 3 | 5);
            out.extend_from_slice(&(float(text)? as f32).to_le_bytes());
        }
        FieldType::F64 => {
            put_varint(out, u64::from(field.number) << 3 | 1);
            out.extend_from_slice(&float(text)?.to_le_bytes());
        }
        FieldType::Bool => {
            let value = match text {
                "true" | "True" | "t" | "1" => 1,
                "false" | "False" | "f" | "0" => 0,
                _ => return None,
            };
            put_varint_field(out, field.number, value);
        }
        FieldType::Enum(e) => {
            let value = e.value_by_name(text).map(|v| v.value() as u64).or_else(|| parse_integer(&field.kind, text))?;
            put_varint_field(out, field.number, value);
        }
        FieldType::Text | FieldType::Bytes => put_bytes(out, field.number, text.as_bytes()),
        FieldType::Message(_) | FieldType::Opaque => return None,
    }
    Some(())
}

fn float(text: &str) -> Option<f64> {
    let (negative, size) = text.strip_prefix('-').map_or((false, text), |s| (true, s));
    let size = match size.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => f64::INFINITY,
        "nan" => f64::NAN,
        lower => match lower.strip_suffix('f').unwrap_or(lower) {
            digits if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => digits.parse().ok()?,
            _ => return None,
        },
    };
    Some(if negative { -size } else { size })
}
