//! HLO text, both ways.
//!
//! The grammar is XLA's (hlo_parser, hlo_lexer): what XLA's parser takes, [`parse`] takes, whether or not the module is valid;
//! [`super::verify`] judges it. Opcodes without a variant of [`super::Op`] keep their attributes as text.
mod attrs;
mod lexer;
mod literal;
mod parser;
mod printer;
mod shape;
mod table;

pub(crate) use parser::parse_entry_layout;

use super::Module;
use crate::diag::Result;

/// Reads a module, a single computation or a single instruction of XLA's text; errors carry line and column.
///
/// Errors: `Code::HloSyntax`, `Code::TooLarge` for an elided constant beyond 2^28 bytes.
pub fn parse(text: &str) -> Result<Module> {
    parser::parse(text)
}

/// The module in XLA's text: callees first, each computation in the order of its arena where operands stand before users.
pub fn print(module: &Module) -> String {
    printer::print(module)
}
