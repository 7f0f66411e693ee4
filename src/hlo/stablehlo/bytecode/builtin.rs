//! Entries of MLIR's builtin dialect: names, dictionaries, locations.
use super::cursor::Cursor;
use super::tables::{EncodedEntry, MOST_DEPTH, Tables};
use crate::diag::Result;
use crate::hlo::Shape;
use crate::hlo::stablehlo::tree::MlirAttr;
use crate::hlo::stablehlo::types::element_type;
use crate::tensor::DType;

/// Codes of attribute and type encodings.
mod code {
    pub const ARRAY: u64 = 0;
    pub const DICTIONARY: u64 = 1;
    pub const STRING: u64 = 2;
    pub const FLAT_SYMBOL: u64 = 4;
    pub const UNIT: u64 = 7;
    pub const INTEGER: u64 = 8;
    pub const NAME_LOCATION: u64 = 14;
    /// Integer type.
    pub const INTEGER_TYPE: u64 = 0;
    pub const COMPLEX_TYPE: u64 = 9;
    pub const RANKED_TENSOR_TYPE: u64 = 13;
}

/// Signedness codes of integer types.
const UNSIGNED: u64 = 2;

impl Tables<'_> {
    /// Value of a builtin attribute; [`MlirAttr::Other`] for kinds that no reader needs.
    pub fn builtin_attribute(&self, mut at: Cursor, depth: usize) -> Result<MlirAttr> {
        Ok(match at.number()? {
            code::ARRAY => MlirAttr::List(self.values(&mut at, depth + 1)?),
            code::DICTIONARY => MlirAttr::Dict(self.named_values(&mut at, depth + 1)?),
            code::STRING => MlirAttr::Text(self.string(at.number()?, &at)?.to_string()),
            code::FLAT_SYMBOL => match self.value(at.number()?, &at, depth + 1)? {
                MlirAttr::Text(name) => MlirAttr::Symbol(name),
                other => other,
            },
            code::UNIT => MlirAttr::Bool(true),
            code::INTEGER => {
                let ty = at.number()?;
                match integer_width(self.ty(ty, &at)?)? {
                    Some(1) => MlirAttr::Bool(at.byte()? != 0),
                    Some(width) if width <= 8 => self.builtin_integer(i64::from(at.byte()? as i8), ty, &at, depth),
                    Some(_) => self.builtin_integer(at.signed()?, ty, &at, depth),
                    None => MlirAttr::Other,
                }
            }
            _ => MlirAttr::Other,
        })
    }
    /// Integer of type `ty`; of `i64` where arrays have no elements of that type.
    fn builtin_integer(&self, value: i64, ty: u64, at: &Cursor, depth: usize) -> MlirAttr {
        let dtype = self.element_type(ty, at, depth).unwrap_or(DType::S64);
        let shift = 64 - dtype.bits().clamp(1, 64);
        MlirAttr::Int(if dtype.is_signed() { value } else { ((value as u64) << shift >> shift) as i64 }, dtype)
    }
    /// Shape of a builtin type, as operations of dialects other than VHLO use it.
    pub fn builtin_shape(&self, mut at: Cursor, depth: usize) -> Result<Shape> {
        let dtype = match at.number()? {
            code::INTEGER_TYPE => {
                let told = at.number()?;
                let sign = if told & 3 == UNSIGNED && told >> 2 > 1 { "u" } else { "" };
                let named = element_type(&format!("{sign}i{}", told >> 2));
                named.ok_or_else(|| at.error("a type of whole numbers has other bits than any that is read"))?
            }
            3 => DType::BF16,
            4 => DType::F16,
            5 => DType::F32,
            6 => DType::F64,
            code::COMPLEX_TYPE => match self.element_type(at.number()?, &at, depth)? {
                DType::F32 => DType::C64,
                DType::F64 => DType::C128,
                _ => return Err(at.error("a complex number of what is no f32 or f64")),
            },
            code::RANKED_TENSOR_TYPE => {
                let dims = at.signed_list()?.into_iter().map(u64::try_from).collect::<Result<Vec<_>, _>>();
                let dims = dims.map_err(|_| at.error("a size is negative or open"))?;
                return Ok(Shape::array(self.element_type(at.number()?, &at, depth)?, dims));
            }
            _ => return Err(at.error("a type of MLIR's own is read if it is a tensor of numbers")),
        };
        Ok(Shape::array(dtype, []))
    }
    /// Name in a name location, such as that of an argument.
    pub fn location_name(&self, index: u64, at: &Cursor) -> Result<Option<String>> {
        let EncodedEntry { dialect: "builtin", custom: true, mut data } = self.attribute(index, at)? else {
            return Ok(None);
        };
        if data.number()? != code::NAME_LOCATION {
            return Ok(None);
        }
        let name = self.value(data.number()?, &data, MOST_DEPTH / 2)?;
        Ok(if let MlirAttr::Text(name) = name { Some(name) } else { None })
    }
}

/// Width of an integer type of up to 64 bits; `None` for any other type.
fn integer_width(mut entry: EncodedEntry) -> Result<Option<u64>> {
    if entry.dialect != "builtin" || !entry.custom || entry.data.number()? != code::INTEGER_TYPE {
        return Ok(None);
    }
    Ok(Some(entry.data.number()? >> 2).filter(|width| (1..=64).contains(width)))
}
