//! StableHLO's portable files: MLIR's bytecode with operations of the VHLO dialect, as `jax.export` writes them.
//!
//! A file is a list of sections. `tables.rs` has the tables that everything else points into: strings, dialects, names of
//! operations, attributes, types, properties. `vhlo.rs` and `builtin.rs` read an entry of the last three, `properties.rs`
//! knows the names of what an operation's properties hold, `operations.rs` reads the operations themselves as the tree that
//! text is read as too. Nothing is kept of an entry: it is read where it is used, for which `tables.rs` has a budget.
//!
//! Sources: MLIR's "Bytecode Format", and StableHLO's `VhloOps.td`, `VhloEnums.td` and `VhloBytecode.cpp`.
mod builtin;
mod cursor;
mod operations;
mod properties;
mod shardy;
mod tables;
#[cfg(test)]
mod tests;
mod vhlo;

use bytes::Bytes;

use super::tree::ModuleTree;
use crate::diag::Result;
use tables::Tables;

/// The first bytes of every file.
const MAGIC: &[u8] = b"ML\xefR";

/// Whether `bytes` are bytecode of MLIR.
pub(super) fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads a module.
///
/// Errors: `Code::BadEncoding` for bytes that are no bytecode, `Code::HloUnsupported` for what no reader here knows, such as
/// newer versions and dialects that are not portable, `Code::TooLarge` where much less is written than is meant.
pub(super) fn parse(bytes: &Bytes) -> Result<ModuleTree> {
    let (tables, ir) = Tables::read(bytes)?;
    operations::read_functions(&tables, ir)
}
