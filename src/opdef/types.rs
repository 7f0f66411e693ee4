//! `DataType` numbers, their names in the generated table, and TensorFlow's own names in op definitions.
use crate::graph::TfType;
use crate::tensor::DType;

const NAMES: &[(&str, &str, i32)] = &[
    ("f32", "float", 1),
    ("f64", "double", 2),
    ("s32", "int32", 3),
    ("u8", "uint8", 4),
    ("s16", "int16", 5),
    ("s8", "int8", 6),
    ("string", "string", 7),
    ("c64", "complex64", 8),
    ("s64", "int64", 9),
    ("pred", "bool", 10),
    ("q8", "qint8", 11),
    ("qu8", "quint8", 12),
    ("q32", "qint32", 13),
    ("bf16", "bfloat16", 14),
    ("q16", "qint16", 15),
    ("qu16", "quint16", 16),
    ("u16", "uint16", 17),
    ("c128", "complex128", 18),
    ("f16", "half", 19),
    ("resource", "resource", 20),
    ("variant", "variant", 21),
    ("u32", "uint32", 22),
    ("u64", "uint64", 23),
    ("f8e5m2", "float8_e5m2", 24),
    ("f8e4m3fn", "float8_e4m3fn", 25),
    ("f8e4m3fnuz", "float8_e4m3fnuz", 26),
    ("f8e4m3b11fnuz", "float8_e4m3b11fnuz", 27),
    ("f8e5m2fnuz", "float8_e5m2fnuz", 28),
    ("s4", "int4", 29),
    ("u4", "uint4", 30),
    ("s2", "int2", 31),
    ("u2", "uint2", 32),
];

/// `DataType` number of the type called `name`.
pub fn parse(name: &str) -> Option<i32> {
    NAMES.iter().find(|(n, _, _)| *n == name).map(|(_, _, number)| *number)
}

/// Name of a `DataType` number.
pub fn name(number: i32) -> Option<&'static str> {
    NAMES.iter().find(|(_, _, n)| *n == number).map(|(name, _, _)| *name)
}

/// Names and numbers of all types.
pub fn all_types() -> impl Iterator<Item = (&'static str, i32)> {
    NAMES.iter().map(|(name, _, number)| (*name, *number))
}

/// Names of the types in a set of [`type_bit`]s.
pub fn type_names(bits: u64) -> Vec<&'static str> {
    NAMES.iter().filter(|(_, _, number)| bits & type_bit(*number) != 0).map(|(name, _, _)| *name).collect()
}

/// `DataType` number of a type; 0 if TensorFlow has none.
pub fn type_number(of: TfType) -> i32 {
    match of {
        TfType::Data(t) => t.tf_number().unwrap_or(0),
        TfType::String => super::STRING,
        TfType::Resource => super::RESOURCE,
        TfType::Variant => super::VARIANT,
        TfType::Quantized(n) | TfType::Unknown(n) => n,
    }
}

/// Bit that stands for a `DataType` number in a set of types; unknown numbers share bit 63.
pub fn type_bit(number: i32) -> u64 {
    1 << u32::try_from(number).map_or(63, |n| n.min(63))
}

/// Name of a `DataType` number in TensorFlow's op definitions, as in `x: float`; `None` if arrays cannot have the type.
pub fn spec_name(number: i32) -> Option<&'static str> {
    let array = DType::from_tf(number).is_some();
    NAMES.iter().find(|(_, _, n)| array && *n == number).map(|(_, spec, _)| *spec)
}
