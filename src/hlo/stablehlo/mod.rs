//! StableHLO as a module of HLO, from its text and from its portable bytecode.
//!
//! Both are read as one tree (`tree.rs`): of text, `function.rs` reads functions and `operation.rs` their operations in the
//! generic form and in StableHLO's own; `bytecode/` reads the other form. `convert.rs` makes instructions of the tree, through
//! the same constructor of ops as HLO's text and messages, and `regions.rs` computations of regions. A file whose arguments have open
//! sizes is made for sizes that the caller says (`dynamic_module.rs`), a module that is called inside of another (`specialization.rs`) for those of the call;
//! how all others follow is in `sizes.rs`. Programs of sharded arrays become the program of one device (`shards/`). Quantised types and tokens that are more than ordering are refused by name. The function `main`, or else the
//! first, is the entry; the operands of `check.` operations in StableHLO's own tests are results.
//!
//! `print/` writes any module of HLO in the generic form.
//!
//! Source: StableHLO's specification and its printed forms.
mod approximate;
mod attribute;
mod attributes;
mod bytecode;
mod call_attributes;
mod specialization;
mod collectives;
mod convert;
mod converter;
mod custom_call;
mod jax_export;
mod function;
mod attribute_values;
mod dynamic_module;
mod operation;
mod slices;
mod print;
mod reader;
mod regions;
mod shards;
mod sizes;
#[cfg(test)]
mod tests;
mod tree;
mod types;

use bytes::Bytes;

use super::{Module, SourceContent};
use crate::diag::Result;
pub use call_attributes::{CallAttribute, read_call_attributes};
pub use converter::Host;
pub use converter::ShapeAssertions;
pub use dynamic_module::{Argument, AxisSize, DynamicModule};
use jax_export::Exported;
pub use print::print;
pub use specialization::UnspecializedModule;
use tree::ModuleTree;

/// Reads StableHLO's text; errors carry line and column.
///
/// # Errors
/// `Code::HloSyntax`, `Code::HloUnsupported` for operations, types and attributes that HLO here does not have,
/// `Code::TooLarge` for constants that say more than they are written, `Code::UnknownDim` where sizes of arguments are open.
pub fn parse(text: &str) -> Result<Module> {
    read_text(text)?.require_known_sizes().map(|source| source.module)
}

/// Reads text into a module with names of its results, or with open sizes.
pub(super) fn read_text(text: &str) -> Result<SourceContent> {
    form(function::parse(text)?, None)
}

/// Reads portable bytecode of StableHLO, or what JAX exports with such in it; `None` for bytes that are neither.
///
/// Errors: `Code::BadEncoding` for damaged bytes, and those of [`parse`].
pub(super) fn read_bytes(bytes: &Bytes) -> Option<Result<SourceContent>> {
    if bytecode::is_bytecode(bytes) {
        return Some(read_bytecode(bytes, &[]));
    }
    let Exported { platforms, module } = Exported::read(bytes)?;
    Some(read_bytecode(&module, &platforms))
}

/// Reads portable bytecode that is for these platforms: where they are several, the module asks which it is on, and code is for a CPU.
///
/// Errors: those of [`read_bytes`].
fn read_bytecode(bytes: &Bytes, platforms: &[String]) -> Result<SourceContent> {
    let cpu = platforms.iter().position(|p| p.eq_ignore_ascii_case("cpu"));
    form(bytecode::parse(bytes)?, cpu)
}

fn form(functions: ModuleTree, platform: Option<usize>) -> Result<SourceContent> {
    match DynamicModule::from_tree(functions, platform)? {
        Ok(open) => Ok(SourceContent::Open(Box::new(open))),
        Err(functions) => convert::module(&functions, platform).map(SourceContent::Fixed),
    }
}

/// Whether `text` is MLIR and not HLO: its first word is one that no module of HLO begins with.
pub fn is_stablehlo(text: &str) -> bool {
    let reader = reader::TextReader::new(text);
    let hash = reader.is_next("#");
    let mut second = reader.clone();
    let word = reader.peek_word();
    second.take_bytes(word.len());
    // `module {` in HLO's text is a computation of that name, with instructions in it.
    let module = word == "module" && {
        let attributes = second.is_next("@") || second.peek_word() == "attributes";
        attributes || (second.eat("{") && matches!(second.peek_word(), "func.func" | "func"))
    };
    hash || module || (matches!(word, "func.func" | "func") && !second.is_next("{"))
}
