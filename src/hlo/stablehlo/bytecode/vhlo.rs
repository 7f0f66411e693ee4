//! Attributes and types of the VHLO dialect.
use super::cursor::Cursor;
use super::tables::{EncodedEntry, MOST_DEPTH, Tables};
use crate::diag::{Code, Error, Result};
use crate::hlo::stablehlo::attribute::dense;
use crate::hlo::stablehlo::reader::TextReader;
use crate::hlo::stablehlo::sizes::OPEN;
use crate::hlo::stablehlo::tree::MlirAttr;
use crate::hlo::{ArrayShape, Shape};
use crate::tensor::{DType, Tensor};

/// Names of enumeration values, by the code of the attribute; the index in the list is the value.
const WORDS: &[(u64, &[&str])] = &[
    (3, &["EQ", "NE", "GE", "GT", "LE", "LT"]),
    (4, &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]),
    (
        5,
        &[
            "API_VERSION_UNSPECIFIED",
            "API_VERSION_ORIGINAL",
            "API_VERSION_STATUS_RETURNING",
            "API_VERSION_STATUS_RETURNING_UNIFIED",
            "API_VERSION_TYPED_FFI",
        ],
    ),
    (7, &["FFT", "IFFT", "RFFT", "IRFFT"]),
    (11, &["DEFAULT", "HIGH", "HIGHEST"]),
    (12, &["DEFAULT", "THREE_FRY", "PHILOX"]),
    (13, &["", "UNIFORM", "NORMAL"]),
    (16, &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]),
];

/// Codes of attributes with content that are not enumerations.
mod attribute {
    pub const ARRAY: u64 = 1;
    pub const BOOLEAN: u64 = 2;
    pub const DICTIONARY: u64 = 6;
    pub const FLOAT: u64 = 8;
    pub const INTEGER: u64 = 9;
    pub const OUTPUT_OPERAND_ALIAS: u64 = 10;
    pub const STRING: u64 = 14;
    pub const TENSOR: u64 = 15;
}

/// Codes of types composed of other types.
mod ty {
    pub const COMPLEX: u64 = 1;
    pub const RANKED_TENSOR: u64 = 20;
    pub const TOKEN: u64 = 22;
    pub const TUPLE: u64 = 23;
    /// A token in StableHLO's own dialect, where operations of other dialects use it.
    pub const STABLEHLO_TOKEN: u64 = 0;
}

/// Element type with this code.
fn element_type(code: u64) -> Option<DType> {
    Some(match code {
        0 => DType::Pred,
        2 => DType::BF16,
        3 => DType::F16,
        4 => DType::F32,
        5 => DType::F64,
        6 => DType::F8E4M3FN,
        7 => DType::F8E5M2,
        9 | 14 => DType::S64,
        10 => DType::S4,
        11 => DType::S8,
        12 => DType::S16,
        13 => DType::S32,
        15 => DType::U4,
        16 => DType::U8,
        17 => DType::U16,
        18 => DType::U32,
        19 => DType::U64,
        27 => DType::F8E4M3FNUZ,
        28 => DType::F8E5M2FNUZ,
        29 => DType::F8E4M3B11FNUZ,
        31 => DType::S2,
        32 => DType::U2,
        35 => DType::F8E4M3,
        36 => DType::F8E3M4,
        37 => DType::F4E2M1FN,
        40 => DType::F8E8M0FNU,
        _ => return None,
    })
}

/// The name of an unsupported type, by its code.
fn unread_type_name(code: u64) -> &'static str {
    match code {
        8 => "a function",
        21 => "a tensor with bounds or another encoding",
        24 | 30 => "a quantised type",
        25 => "a tensor without rank",
        34 | 38 | 39 => "an element type of six or 19 bits",
        41 => "a buffer",
        42 => "the type of what an asynchronous operation gives",
        _ => "a type",
    }
}

fn unsupported(what: impl std::fmt::Display) -> Error {
    let told = format!("{what} is not read; read are ranked tensors, tuples and tokens");
    Error::user(Code::HloUnsupported, told)
}

impl Tables<'_> {
    /// The value of attribute `index`; [`MlirAttr::Other`] for kinds that no operation needs.
    pub fn value(&self, index: u64, at: &Cursor, depth: usize) -> Result<MlirAttr> {
        if depth > MOST_DEPTH {
            return Err(at.error(format_args!("attributes nest deeper than {MOST_DEPTH} levels")));
        }
        let EncodedEntry { dialect, custom, data } = self.attribute(index, at)?;
        match (dialect, custom) {
            ("vhlo", true) => self.vhlo(data, depth),
            ("builtin", true) => self.builtin_attribute(data, depth),
            ("sdy", true) => self.shardy(data, depth),
            (_, true) => Ok(MlirAttr::Other),
            (_, false) => {
                let mut at = data;
                let text = at.text()?;
                Ok(TextReader::new(text).attribute().unwrap_or(MlirAttr::Other))
            }
        }
    }
    /// Reads values preceded by their count.
    pub fn values(&self, at: &mut Cursor, depth: usize) -> Result<Vec<MlirAttr>> {
        let n = at.count()?;
        (0..n).map(|_| self.value(at.number()?, at, depth)).collect()
    }
    /// Reads names and values preceded by their count.
    pub fn named_values(&self, at: &mut Cursor, depth: usize) -> Result<Vec<(String, MlirAttr)>> {
        let n = at.count()?;
        let mut all = Vec::new();
        for _ in 0..n {
            let MlirAttr::Text(name) = self.value(at.number()?, at, depth)? else {
                return Err(at.error("the name of an attribute is no text"));
            };
            all.push((name, self.value(at.number()?, at, depth)?));
        }
        Ok(all)
    }
    fn vhlo(&self, mut at: Cursor, depth: usize) -> Result<MlirAttr> {
        let code = at.number()?;
        if let Some((_, words)) = WORDS.iter().find(|w| w.0 == code) {
            let value = at.number()?;
            let word = usize::try_from(value).ok().and_then(|i| words.get(i)).filter(|w| !w.is_empty());
            let word = word.ok_or_else(|| at.error(format_args!("an enumeration has no value {value}")))?;
            return Ok(MlirAttr::Text(word.to_string()));
        }
        Ok(match code {
            attribute::ARRAY => MlirAttr::List(self.values(&mut at, depth + 1)?),
            attribute::BOOLEAN => MlirAttr::Bool(at.number()? != 0),
            attribute::DICTIONARY => MlirAttr::Dict(self.named_values(&mut at, depth + 1)?),
            attribute::FLOAT => {
                let dtype = self.element_type(at.number()?, &at, depth)?;
                let bits = self.bits(dtype, &mut at)?;
                let scalar = Tensor::new(dtype, vec![], bits.to_le_bytes()[..dtype.bytes()].to_vec());
                MlirAttr::Float(scalar.get_f64(0).ok_or_else(|| at.error("a number is no float"))?, dtype)
            }
            attribute::INTEGER => {
                let dtype = self.element_type(at.number()?, &at, depth)?;
                let shift = 64 - dtype.bits().clamp(1, 64);
                let high = self.bits(dtype, &mut at)? << shift;
                MlirAttr::Int(if dtype.is_signed() { high as i64 >> shift } else { (high >> shift) as i64 }, dtype)
            }
            attribute::OUTPUT_OPERAND_ALIAS => {
                let path = |at: &mut Cursor| -> Result<MlirAttr> {
                    let n = at.count()?;
                    Ok(MlirAttr::List((0..n).map(|_| at.signed().map(MlirAttr::index)).collect::<Result<_>>()?))
                };
                let output = path(&mut at)?;
                let operand = MlirAttr::index(at.signed()?);
                let names = ["output_tuple_indices", "operand_index", "operand_tuple_indices"].map(str::to_string);
                MlirAttr::Dict(names.into_iter().zip([output, operand, path(&mut at)?]).collect())
            }
            attribute::STRING => MlirAttr::Text(self.string(at.number()?, &at)?.to_string()),
            attribute::TENSOR => {
                let shape = match self.shape(at.number()?, &at, depth + 1)? {
                    Shape::Array(shape) => shape,
                    Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                        return Err(at.error("a constant is no tensor"));
                    }
                };
                let length = at.number()?;
                MlirAttr::Dense(self.constant(&shape, at.sub_cursor(length)?)?)
            }
            _ => MlirAttr::Other,
        })
    }
    /// Reads the bits of a scalar: a byte for up to eight bits, else a signed number.
    fn bits(&self, dtype: DType, at: &mut Cursor) -> Result<u64> {
        if dtype.bits() <= 8 { Ok(u64::from(at.byte()?)) } else { Ok(at.signed()? as u64) }
    }
    /// Constant with all elements written, or one for all. Truth values are bits, or a byte of ones for all true; old files
    /// have a byte for each.
    fn constant(&self, shape: &ArrayShape, data: Cursor) -> Result<Tensor> {
        let count = shape.elements();
        let raw = data.bytes();
        if shape.dtype == DType::Pred {
            if raw.len() as u64 == count.div_ceil(8) && raw.len() as u64 != count && raw != [0xff] {
                self.count_repeated_bytes(count, &data)?;
                let bits = (0..count as usize).map(|i| raw[i / 8] >> (i % 8) & 1).collect::<Vec<u8>>();
                return dense(shape, bits.into()).map_err(|e| data.error(e));
            }
            let bytes = raw.iter().map(|&b| u8::from(b != 0)).collect::<Vec<u8>>();
            self.count_repeated_bytes(if raw.len() == 1 { count } else { 0 }, &data)?;
            return dense(shape, bytes.into()).map_err(|e| data.error(e));
        }
        if raw.len() as u64 != shape.bytes() {
            self.count_repeated_bytes(shape.bytes(), &data)?;
        }
        dense(shape, data.remaining_bytes()).map_err(|e| data.error(e))
    }
    /// Element type given by type `index`.
    pub fn element_type(&self, index: u64, at: &Cursor, depth: usize) -> Result<DType> {
        match self.shape(index, at, depth + 1)? {
            Shape::Array(a) if a.dims.is_empty() => Ok(a.dtype),
            _ => Err(at.error("an element type is expected")),
        }
    }
    /// Shape given by type `index`; a bare element type is a scalar, as in text.
    pub fn shape(&self, index: u64, at: &Cursor, depth: usize) -> Result<Shape> {
        if depth > MOST_DEPTH {
            return Err(at.error(format_args!("types nest deeper than {MOST_DEPTH} levels")));
        }
        let EncodedEntry { dialect, custom, data: mut at } = self.ty(index, at)?;
        if !custom {
            return TextReader::new(at.text()?).ty();
        }
        if dialect == "builtin" {
            return self.builtin_shape(at, depth);
        }
        if dialect == "stablehlo" && at.number()? == ty::STABLEHLO_TOKEN {
            return Ok(Shape::Token);
        }
        if dialect != "vhlo" {
            return Err(unsupported(format_args!("a type of the dialect `{dialect}`")));
        }
        match at.number()? {
            ty::COMPLEX => match self.element_type(at.number()?, &at, depth)? {
                DType::F32 => Ok(Shape::array(DType::C64, [])),
                DType::F64 => Ok(Shape::array(DType::C128, [])),
                other => Err(unsupported(format_args!("a complex number of {other}"))),
            },
            ty::RANKED_TENSOR => {
                // The smallest integer stands for an unknown size.
                let size = |d: i64| if d == i64::MIN { Ok(OPEN) } else { u64::try_from(d) };
                let dims = at.signed_list()?.into_iter().map(size).collect::<Result<Vec<_>, _>>();
                let dims = dims.map_err(|_| at.error("a size is negative"))?;
                let dtype = self.element_type(at.number()?, &at, depth)?;
                Ok(Shape::array(dtype, dims))
            }
            ty::TOKEN => Ok(Shape::Token),
            ty::TUPLE => {
                let n = at.count()?;
                let parts = (0..n).map(|_| self.shape(at.number()?, &at, depth + 1)).collect::<Result<_>>()?;
                Ok(Shape::Tuple(parts))
            }
            code => match element_type(code) {
                Some(dtype) => Ok(Shape::array(dtype, [])),
                None => Err(unsupported(unread_type_name(code))),
            },
        }
    }
}
