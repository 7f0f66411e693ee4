//! A module from a file of any kind: what it is, is seen from its bytes.
use super::{Module, proto, stablehlo, text};
use crate::diag::{Code, Error, Result};
use bytes::Bytes;

/// A module with what its file calls the results; arguments are called what the parameters are.
#[derive(Clone, Debug)]
pub struct Source {
    /// The program.
    pub module: Module,
    /// What each part of the root is called; empty where the file says nothing.
    pub results: Vec<Option<String>>,
}

/// Reads HLO text, an HloProto, an HloModuleProto, StableHLO's text, its portable bytecode, or an exported function of JAX.
///
/// # Errors
/// Those of the reader that the bytes are for.
pub fn read(bytes: &Bytes) -> Result<Source> {
    if let Some(source) = stablehlo::read_bytes(bytes) {
        return source;
    }
    let plain = |module| Source { module, results: Vec::new() };
    if proto::is_message(bytes) {
        return proto::decode(bytes).map(plain);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Error::user(Code::HloSyntax, format!("the text is not UTF-8: byte {}", e.valid_up_to())))?;
    if stablehlo::is_stablehlo(text) { stablehlo::read_text(text) } else { text::parse(text).map(plain) }
}
