//! Shardy's attributes in bytecode, as text in Shardy's own notation.
//!
//! Source: the order of attributes in Shardy's `bytecode.td`.
use super::cursor::Cursor;
use super::tables::Tables;
use crate::diag::Result;
use crate::hlo::stablehlo::tree::MlirAttr;

/// Numbers of the attributes.
mod code {
    pub const MANUAL_AXES: u64 = 0;
    pub const MESH_AXIS: u64 = 1;
    pub const MESH: u64 = 2;
    pub const SUB_AXIS: u64 = 3;
    pub const AXIS: u64 = 4;
    pub const DIMENSION: u64 = 5;
    pub const SHARDING: u64 = 6;
    pub const SHARDING_PER_VALUE: u64 = 7;
    pub const UNREDUCED_SHARDING: u64 = 15;
    pub const UNREDUCED_SHARDING_PER_VALUE: u64 = 16;
}

impl Tables<'_> {
    /// Text of an attribute of Shardy; [`MlirAttr::Other`] for kinds that no reader needs.
    ///
    /// # Errors
    /// `Code::BadEncoding`.
    pub(super) fn shardy(&self, mut at: Cursor, depth: usize) -> Result<MlirAttr> {
        let text = match at.number()? {
            code::MANUAL_AXES => {
                let axes: Vec<String> = self.texts(&mut at, depth)?.iter().map(|name| format!("\"{name}\"")).collect();
                format!("{{{}}}", axes.join(", "))
            }
            code::MESH_AXIS => format!("\"{}\"={}", self.string(at.number()?, &at)?, at.signed()?),
            code::MESH => {
                let axes = self.texts(&mut at, depth)?.join(", ");
                let count = at.count()?;
                let ids = (0..count).map(|_| Ok(at.signed()?.to_string())).collect::<Result<Vec<_>>>()?.join(", ");
                if ids.is_empty() { format!("<[{axes}]>") } else { format!("<[{axes}], device_ids=[{ids}]>") }
            }
            code::SUB_AXIS => format!(":({}){}", at.signed()?, at.signed()?),
            code::AXIS => {
                let name = self.string(at.number()?, &at)?;
                let part = match at.number_with_flag()? {
                    (index, true) => self.text_of(index, &at, depth)?,
                    (_, false) => String::new(),
                };
                format!("\"{name}\"{part}")
            }
            code::DIMENSION => {
                let mut axes = self.texts(&mut at, depth)?;
                if at.byte()? == 0 {
                    axes.push("?".to_string());
                }
                format!("{{{}}}", axes.join(", "))
            }
            kind @ (code::SHARDING | code::UNREDUCED_SHARDING) => {
                let MlirAttr::Symbol(mesh) = self.value(at.number()?, &at, depth + 1)? else {
                    return Ok(MlirAttr::Other);
                };
                let (dims, replicated) = (self.texts(&mut at, depth)?, self.texts(&mut at, depth)?);
                let unreduced = if kind == code::SHARDING { Vec::new() } else { self.texts(&mut at, depth)? };
                let axes = |name: &str, all: &[String]| match all {
                    [] => String::new(),
                    all => format!(", {name}={{{}}}", all.join(", ")),
                };
                let (replicated, unreduced) = (axes("replicated", &replicated), axes("unreduced", &unreduced));
                format!("<@{mesh}, [{}]{replicated}{unreduced}>", dims.join(", "))
            }
            code::SHARDING_PER_VALUE | code::UNREDUCED_SHARDING_PER_VALUE => {
                format!("[{}]", self.texts(&mut at, depth)?.join(", "))
            }
            _ => return Ok(MlirAttr::Other),
        };
        Ok(MlirAttr::Text(text))
    }

    /// Reads attributes that are texts, preceded by their count.
    fn texts(&self, at: &mut Cursor, depth: usize) -> Result<Vec<String>> {
        let count = at.count()?;
        (0..count).map(|_| self.text_of(at.number()?, at, depth)).collect()
    }

    fn text_of(&self, index: u64, at: &Cursor, depth: usize) -> Result<String> {
        match self.value(index, at, depth + 1)? {
            MlirAttr::Text(text) => Ok(text),
            _ => Err(at.error("an attribute of a sharding is of another kind")),
        }
    }
}
