//! Entries of MLIR's own dialect: names, dictionaries, locations.
use super::cursor::Cursor;
use super::tables::{Entry, MOST_DEPTH, Tables};
use crate::diag::Result;
use crate::hlo::stablehlo::tree::Attr;

/// The encodings that are told apart.
mod code {
    pub const ARRAY: u64 = 0;
    pub const DICTIONARY: u64 = 1;
    pub const STRING: u64 = 2;
    pub const FLAT_SYMBOL: u64 = 4;
    pub const UNIT: u64 = 7;
    pub const INTEGER: u64 = 8;
    pub const NAME_LOCATION: u64 = 14;
    /// The type of whole numbers.
    pub const INTEGER_TYPE: u64 = 0;
}

impl Tables<'_> {
    /// The value of an attribute of MLIR's own; [`Attr::Other`] for what no reader here asks for.
    pub fn builtin(&self, mut at: Cursor, depth: usize) -> Result<Attr> {
        Ok(match at.number()? {
            code::ARRAY => Attr::List(self.values(&mut at, depth + 1)?),
            code::DICTIONARY => Attr::Dict(self.named_values(&mut at, depth + 1)?),
            code::STRING => Attr::Text(self.string(at.number()?, &at)?.to_string()),
            code::FLAT_SYMBOL => match self.value(at.number()?, &at, depth + 1)? {
                Attr::Text(name) => Attr::Symbol(name),
                other => other,
            },
            code::UNIT => Attr::Bool(true),
            code::INTEGER => {
                let width = self.ty(at.number()?, &at)?;
                match integer_width(width)? {
                    Some(1) => Attr::Bool(at.byte()? != 0),
                    Some(width) if width <= 8 => Attr::Int(i64::from(at.byte()? as i8)),
                    Some(_) => Attr::Int(at.signed()?),
                    None => Attr::Other,
                }
            }
            _ => Attr::Other,
        })
    }
    /// The name in a location that is one, such as that of an argument.
    pub fn location_name(&self, index: u64, at: &Cursor) -> Result<Option<String>> {
        let Entry { dialect: "builtin", custom: true, mut data } = self.attribute(index, at)? else { return Ok(None) };
        if data.number()? != code::NAME_LOCATION {
            return Ok(None);
        }
        let name = self.value(data.number()?, &data, MOST_DEPTH / 2)?;
        Ok(if let Attr::Text(name) = name { Some(name) } else { None })
    }
}

/// The bits of a type of whole numbers up to 64 bits; `None` for any other type.
fn integer_width(mut entry: Entry) -> Result<Option<u64>> {
    if entry.dialect != "builtin" || !entry.custom || entry.data.number()? != code::INTEGER_TYPE {
        return Ok(None);
    }
    Ok(Some(entry.data.number()? >> 2).filter(|width| (1..=64).contains(width)))
}
