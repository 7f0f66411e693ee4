//! TensorFlow's types and partial shapes.
use crate::tensor::DType;

/// TensorFlow's data types, including those that compiled code can't represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TfType {
    /// An element type of numeric arrays.
    Data(DType),
    /// A quantized type as declared, given by its `DataType` number; arrays of it are stored as integers.
    Quantized(i32),
    /// Byte strings.
    String,
    /// Handles of variables and lookup tables.
    Resource,
    /// Values of any kind, among them TensorLists.
    Variant,
    /// A `DataType` number that tfaot does not know.
    Unknown(i32),
}

impl TfType {
    /// The type of a TensorFlow `DataType` number; a reference type becomes its base type.
    pub fn from_number(number: i32) -> TfType {
        let base = if number > 100 { number - 100 } else { number };
        match base {
            7 => TfType::String,
            20 => TfType::Resource,
            21 => TfType::Variant,
            n @ (11..=13 | 15 | 16) => TfType::Quantized(n),
            n => DType::from_tf(n).map_or(TfType::Unknown(number), TfType::Data),
        }
    }
    /// The element type of arrays that store the type, if there is one.
    pub fn dtype(self) -> Option<DType> {
        if let TfType::Data(t) = self.storage_type() { Some(t) } else { None }
    }
    /// The type, with a quantized type replaced by the integer type that stores it.
    pub fn storage_type(self) -> TfType {
        match self {
            TfType::Quantized(number) => DType::from_tf(number).map_or(self, TfType::Data),
            other => other,
        }
    }
}

impl std::fmt::Display for TfType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TfType::Data(t) => t.fmt(f),
            TfType::Quantized(number) => match number {
                11 => f.write_str("q8"),
                12 => f.write_str("qu8"),
                13 => f.write_str("q32"),
                15 => f.write_str("q16"),
                _ => f.write_str("qu16"),
            },
            TfType::String => f.write_str("string"),
            TfType::Resource => f.write_str("resource"),
            TfType::Variant => f.write_str("variant"),
            TfType::Unknown(n) => write!(f, "type {n}"),
        }
    }
}

/// A shape with unknown parts: `None` is an unknown rank, `Some([None, Some(3)])` is `[?,3]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialShape(pub Option<Vec<Option<u64>>>);

impl PartialShape {
    /// The dimensions, if all are known.
    pub fn fixed(&self) -> Option<Vec<u64>> {
        self.0.as_ref()?.iter().copied().collect()
    }
    /// Whether arrays with dimensions `dims` have this shape.
    pub fn admits<N: Copy + PartialEq<u64>>(&self, dims: &[N]) -> bool {
        let one = |(want, have): (&Option<u64>, &N)| want.is_none_or(|want| *have == want);
        self.0.as_ref().is_none_or(|want| want.len() == dims.len() && want.iter().zip(dims).all(one))
    }
}

impl std::fmt::Display for PartialShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(dims) = &self.0 else { return f.write_str("[...]") };
        let dims: Vec<String> = dims.iter().map(|d| d.map_or("?".to_string(), |n| n.to_string())).collect();
        write!(f, "[{}]", dims.join(","))
    }
}
