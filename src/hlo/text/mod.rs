//! HLO text, both ways.
//!
//! The grammar is XLA's (hlo_parser, hlo_lexer): what XLA's parser takes, [`parse`] takes, whether or not the module is valid;
//! [`super::verify`] judges it. Opcodes without a variant of [`super::Op`] keep their attributes as text.
mod attrs;
mod header;
mod lexer;
mod literal;
mod parser;
mod print_attrs;
mod print_literal;
mod printer;
mod shape;
mod opaque_attrs;
mod tokens;

pub use header::parse_array_elements;
pub(crate) use header::parse_entry_layout;
pub(in crate::hlo) use header::{parse_dim_labels, parse_literal, parse_shapes, parse_window};
pub(in crate::hlo) use literal::{ELIDED_LIMIT, push_float};
pub(in crate::hlo) use print_attrs::{dim_labels as print_dim_labels, window_text as print_window};
pub(in crate::hlo) use printer::{callees_first, operands_first};

pub use printer::{Style, unique_names};

use super::Module;
use super::schema::table;
use crate::diag::{Error, Result};
use crate::tensor::Tensor;

/// Whether `opcode` is `foo-start`, `foo-update` or `foo-done` of an opcode without async forms of its own.
pub(crate) fn is_async_shorthand(opcode: &str) -> bool {
    table::attributes(opcode).is_none() && table::split_async_suffix(opcode).is_some()
}

impl std::str::FromStr for Module {
    type Err = Error;

    fn from_str(text: &str) -> Result<Module> {
        parse(text)
    }
}

impl std::fmt::Display for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&print(self))
    }
}

/// Reads a module, a single computation or a single instruction of XLA's text; errors carry line and column.
///
/// # Errors
/// `Code::HloSyntax`, `Code::TooLarge` for an elided constant beyond 2^28 bytes.
pub fn parse(text: &str) -> Result<Module> {
    parser::parse(text)
}

/// Prints a module in XLA's syntax: callees first, and in each computation operands before users.
pub fn print(module: &Module) -> String {
    print_with(module, Style { large_constants: true, metadata: true })
}

/// Prints a module like [`print()`], with a style that may omit large constants and metadata.
pub fn print_with(module: &Module, style: Style) -> String {
    printer::print(module, style)
}

/// Text of the elements of an array, which [`parse_array_elements`] parses.
pub fn print_elements(tensor: &Tensor) -> String {
    print_literal(&super::Literal::Array(tensor.clone()))
}

/// Text of a constant, without its shape.
pub(in crate::hlo) fn print_literal(value: &super::Literal) -> String {
    let mut out = String::new();
    print_literal::literal(value, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::verify::verify;

    const WHILE: &str = "HloModule m, entry_computation_layout={(s32[])->s32[]}
body { p = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT r = add(p, one), metadata={op_type=\"AddV2\" op_name=\"a \\\"b\\\"\"} }
cond { p = s32[] parameter(0)
  ROOT r = pred[] compare(p, s32[] negate(p)), direction=LT }
ENTRY e { p = s32[] parameter(0)
  ROOT w = s32[] while(p), condition=cond, body=body }";

    #[test]
    fn print_is_read_back() {
        let module = parse(WHILE).expect("parses");
        verify(&module).expect("is valid");
        assert_eq!(parse(&print(&module)).expect("parses again"), module);
    }

    #[test]
    fn errors_have_a_line() {
        let error = parse("HloModule m\nENTRY e {\n a=f32[2] parameter(0) }").expect_err("`a=` is an attribute's name");
        let d = error.into_diagnostics();
        assert_eq!(d[0].place.line, Some((3, 2)));
    }

    #[test]
    fn deep_nesting_is_an_error() {
        for unit in ["(", "{", "negate(", "f32[2]{1:T(", "b("] {
            let text = format!("HloModule m\nENTRY e {{ a = f32[2] add({}", unit.repeat(100_000));
            assert!(parse(&text).is_err());
            assert!(parse(&format!("HloModule m, entry_computation_layout={{{}", unit.repeat(100_000))).is_err());
            assert!(parse(&format!("ENTRY e {{ a = f32[2] constant({}", unit.repeat(100_000))).is_err());
            assert!(
                parse(&format!(
                    "ENTRY e {{ a = f32[2] custom-call(), custom_call_target=\"a\", literal={}",
                    unit.repeat(100_000)
                ))
                .is_err()
            );
        }
    }

    #[test]
    fn huge_constants_are_refused() {
        assert!(parse("ENTRY e { c = f32[1000000,1000000] constant({...}) }").is_err());
        assert!(parse("ENTRY e { c = f32[1000000,1000000] constant(1) }").is_err());
    }

    #[test]
    fn wrong_shapes_are_invalid() {
        let module = parse("ENTRY e { a = f32[2] parameter(0)\n b = s32[2] parameter(1)\n ROOT c = f32[2] add(a, b) }");
        assert!(verify(&module.expect("parses")).is_err());
    }
}
