//! `DataType` numbers and their names in the generated tables.
use crate::graph::TfType;
use crate::tensor::DType;

const NAMES: &[(&str, i32)] = &[
    ("f32", 1),
    ("f64", 2),
    ("s32", 3),
    ("u8", 4),
    ("s16", 5),
    ("s8", 6),
    ("string", 7),
    ("c64", 8),
    ("s64", 9),
    ("pred", 10),
    ("q8", 11),
    ("qu8", 12),
    ("q32", 13),
    ("bf16", 14),
    ("q16", 15),
    ("qu16", 16),
    ("u16", 17),
    ("c128", 18),
    ("f16", 19),
    ("resource", 20),
    ("variant", 21),
    ("u32", 22),
    ("u64", 23),
    ("f8e5m2", 24),
    ("f8e4m3fn", 25),
    ("f8e4m3fnuz", 26),
    ("f8e4m3b11fnuz", 27),
    ("f8e5m2fnuz", 28),
    ("s4", 29),
    ("u4", 30),
    ("s2", 31),
    ("u2", 32),
];

/// The `DataType` number of `name`.
pub fn parse(name: &str) -> Option<i32> {
    NAMES.iter().find(|(n, _)| *n == name).map(|(_, number)| *number)
}

/// The name of a `DataType` number.
pub fn name(number: i32) -> Option<&'static str> {
    NAMES.iter().find(|(_, n)| *n == number).map(|(name, _)| *name)
}

/// Every type with its number.
pub fn all() -> impl Iterator<Item = (&'static str, i32)> {
    NAMES.iter().copied()
}

/// The names of the types in a set of [`type_bit`]s.
pub fn type_names(bits: u64) -> Vec<&'static str> {
    NAMES.iter().filter(|(_, number)| bits & type_bit(*number) != 0).map(|(name, _)| *name).collect()
}

/// The `DataType` number of a type; 0 where TensorFlow has none.
pub fn type_number(of: TfType) -> i32 {
    match of {
        TfType::Data(t) => t.tf_number().unwrap_or(0),
        TfType::String => super::STRING,
        TfType::Resource => super::RESOURCE,
        TfType::Variant => super::VARIANT,
        TfType::Unknown(n) => n,
    }
}

/// The bit that stands for a `DataType` number in a set of types; unknown numbers share bit 63.
pub fn type_bit(number: i32) -> u64 {
    1 << u32::try_from(number).map_or(63, |n| n.min(63))
}

/// What the op definitions of TensorFlow call the type of arrays, as in `x: float`; `None` where no op takes it.
pub fn spec_name(of: DType) -> Option<&'static str> {
    Some(match of {
        DType::Pred => "bool",
        DType::S4 => "int4",
        DType::S8 => "int8",
        DType::S16 => "int16",
        DType::S32 => "int32",
        DType::S64 => "int64",
        DType::U4 => "uint4",
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::U64 => "uint64",
        DType::F8E5M2 => "float8_e5m2",
        DType::F8E4M3FN => "float8_e4m3fn",
        DType::F16 => "half",
        DType::BF16 => "bfloat16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C64 => "complex64",
        DType::C128 => "complex128",
        DType::S1
        | DType::S2
        | DType::U1
        | DType::U2
        | DType::F8E4M3B11FNUZ
        | DType::F8E5M2FNUZ
        | DType::F8E4M3FNUZ
        | DType::F8E4M3
        | DType::F8E3M4
        | DType::F8E8M0FNU
        | DType::F4E2M1FN => return None,
    })
}
