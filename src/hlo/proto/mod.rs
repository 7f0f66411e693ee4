//! Modules as messages: XLA's HloProto and HloModuleProto, both ways.
//!
//! [`decode`] checks no more of a message than [`super::text::parse`] does of a text: [`super::verify`] checks modules. Instructions
//! are named uniquely in the whole module, as XLA wants it. Attributes of the header that belong to a compilation and not to its
//! module (`replica_count`, `num_partitions`, ...) have no place in a message; their counts are read where it assigns devices. A layout that nobody wrote is not written, but for
//! constants and the program's shape, where XLA insists on one.
mod opaque_attrs;
mod dims;
mod messages;
mod literal;
pub mod dimension_numbers;
mod read;
mod read_op;
pub(in crate::hlo) mod scan;
pub use scan::{quoted, unescape};
mod shape;
mod sharding;
mod write;
mod write_op;

use protobuf::{Message, MessageField};

use super::Module;
use crate::diag::{Code, Error, Result};
use messages::hlo::{HloModuleProto, HloProto, HloSnapshot};

/// Encodes a module as the bytes of an HloProto.
///
/// # Errors
/// `Code::HloUnsupported` for attributes, opcodes and layouts that only text has.
pub fn encode(module: &Module) -> Result<Vec<u8>> {
    wrap_module(write::module(module)?)
}

/// Encodes a module like [`encode`], with row-major layouts where none was given, as in XLA's own files.
///
/// # Errors
/// As [`encode`].
pub fn encode_laid_out(module: &Module) -> Result<Vec<u8>> {
    wrap_module(laid_out(module)?)
}

/// Encodes a module as the bytes of an HloSnapshot: with layouts, without arguments and results.
///
/// # Errors
/// As [`encode`].
pub fn encode_snapshot(module: &Module) -> Result<Vec<u8>> {
    let hlo = HloProto { hlo_module: MessageField::some(laid_out(module)?), ..Default::default() };
    bytes(&HloSnapshot { hlo: MessageField::some(hlo), ..Default::default() })
}

fn laid_out(module: &Module) -> Result<HloModuleProto> {
    let mut proto = write::module(module)?;
    for comp in &mut proto.computations {
        if let Some(program) = comp.program_shape.as_mut() {
            program.parameters.iter_mut().chain(program.result.as_mut()).for_each(shape::fill);
        }
        comp.instructions.iter_mut().filter_map(|i| i.shape.as_mut()).for_each(shape::fill);
    }
    Ok(proto)
}

fn wrap_module(module: HloModuleProto) -> Result<Vec<u8>> {
    bytes(&HloProto { hlo_module: MessageField::some(module), ..Default::default() })
}

fn bytes(message: &impl Message) -> Result<Vec<u8>> {
    message.write_to_bytes().map_err(|e| Error::internal("encode a module", e.to_string()))
}

/// Decodes an HloProto or an HloModuleProto.
///
/// # Errors
/// `Code::BadEncoding` for bytes that are neither, dangling ids, and sizes that do not match; `Code::HloUnsupported` for
/// unknown element types.
pub fn decode(bytes: &[u8]) -> Result<Module> {
    if !is_whole(bytes) {
        return Err(Error::user(Code::BadEncoding, "this is no HloProto, or it is cut short"));
    }
    let wrapped = HloProto::parse_from_bytes(bytes).ok().and_then(|p| p.hlo_module.into_option());
    let proto = match wrapped.filter(|m| !m.computations.is_empty()) {
        Some(module) => module,
        None => HloModuleProto::parse_from_bytes(bytes)
            .map_err(|e| Error::user(Code::BadEncoding, format!("this is no HloProto: {e}")))?,
    };
    read::module(&proto)
}

/// Whether the outermost fields end where the bytes end: the protobuf reader accepts a message cut between fields.
fn is_whole(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let varint = |rest: &mut &[u8]| {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, tail) = rest.split_first()?;
            *rest = tail;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    };
    while !rest.is_empty() {
        let length = match varint(&mut rest).map(|tag| tag & 7) {
            Some(0) => varint(&mut rest).map(|_| 0),
            Some(1) => Some(8),
            Some(2) => varint(&mut rest),
            Some(5) => Some(4),
            _ => None,
        };
        match length.and_then(|n| usize::try_from(n).ok()).and_then(|n| rest.get(n..)) {
            Some(tail) => rest = tail,
            None => return false,
        }
    }
    true
}

/// Whether `bytes` are a protobuf message, as opposed to text: the first fields of a message contain control characters.
pub fn is_message(bytes: &[u8]) -> bool {
    bytes.iter().take(4096).any(|&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c))
}

#[cfg(test)]
mod tests;
