//! Files to [`crate::graph::Program`]: the format is found by content, tensors stay slices of the mapped file.
//!
//! | format | file here |
//! |---|---|
//! | GraphDef, binary | `graph_def.rs` over `wire.rs` |
//! | GraphDef, text | `text.rs`, which turns text into the binary form |
mod assemble;
mod attr_value;
mod detect;
mod function_def;
mod graph_def;
mod mmap;
mod node_def;
pub mod proto;
mod source;
mod tensor_proto;
#[cfg(test)]
mod tests;
mod wire;

pub use detect::Format;
pub use source::read_file;

use crate::diag::{Code, Error, Result};
use crate::graph::Program;
use std::path::Path;

/// Reads the program at `path` (`-` is standard input); `format` names a [`Format`] and switches detection off.
///
/// Errors: `Io`, `UnknownFormat`, `BadEncoding` (not a valid file), `BadGraph` (edges or names that no graph has), `TooLarge`.
pub fn load(path: &Path, format: Option<&str>) -> Result<Program> {
    let source = path.display().to_string();
    let in_file = |error: Error| {
        error.map(|mut d| {
            d.place.file.get_or_insert_with(|| source.clone());
            d
        })
    };
    let format = format.map(Format::parse).transpose().map_err(in_file)?;
    let mut program = load_as(path, format).map_err(in_file)?;
    program.source = source;
    Ok(program)
}

fn load_as(path: &Path, format: Option<Format>) -> Result<Program> {
    let bytes = read_file(path)?;
    let format = match format {
        Some(format) => format,
        None => detect::detect(&bytes)?,
    };
    match format {
        Format::GraphDef => graph_def::read(&bytes),
        other => Err(Error::user(Code::UnknownFormat, format!("this is {}, which is not read as a graph", other.name()))),
    }
}
