//! StableHLO's text as a module of HLO.
//!
//! `function.rs` reads functions, `operation.rs` their operations in the generic form and in StableHLO's own; `convert.rs`
//! makes instructions of them, through the same constructor of ops as text and messages. Read is what computes on arrays of
//! fixed sizes: quantised types, unknown sizes, collectives and tokens that are more than ordering are refused by name. The
//! function `main`, or else the first, is the entry; the operands of `check.` operations in StableHLO's own tests are results.
//!
//! Source: StableHLO's specification and its printed forms.
mod attribute;
mod attributes;
mod convert;
mod function;
mod operation;
mod reader;
#[cfg(test)]
mod tests;
mod types;

use super::Module;
use crate::diag::Result;

/// Reads StableHLO's text; errors carry line and column.
///
/// Errors: `Code::HloSyntax`, `Code::HloUnsupported` for operations, types and attributes that HLO here does not have,
/// `Code::TooLarge` for constants that say more than they are written.
pub fn parse(text: &str) -> Result<Module> {
    convert::module(&function::parse(text)?)
}

/// Whether `text` is MLIR and not HLO: its first word is one that no module of HLO begins with.
pub fn is_stablehlo(text: &str) -> bool {
    let reader = reader::Reader::new(text);
    let hash = reader.at("#");
    let mut second = reader.clone();
    let word = reader.peek_word();
    second.take(word.len());
    // `module {` in HLO's text is a computation of that name, with instructions in it.
    let module = word == "module" && {
        let attributes = second.at("@") || second.peek_word() == "attributes";
        attributes || (second.eat("{") && matches!(second.peek_word(), "func.func" | "func"))
    };
    hash || module || (matches!(word, "func.func" | "func") && !second.at("{"))
}
