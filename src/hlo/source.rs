//! Reading of modules in any format, detected by content.
use super::stablehlo::DynamicModule;
use super::{Module, proto, stablehlo, text};
use crate::diag::{Code, Error, Result};
use bytes::Bytes;

/// A module with the names of its results in the file; arguments have the names of the parameters.
#[derive(Clone, Debug)]
pub struct Source {
    /// Module that was read.
    pub module: Module,
    /// Name of each element of the result tuple; `None` if the file does not name it.
    pub results: Vec<Option<String>>,
}

/// Content of a module file.
#[derive(Debug)]
pub enum SourceContent {
    /// A module whose sizes are all fixed.
    Fixed(Source),
    /// A module that depends on sizes of its arguments.
    Open(Box<DynamicModule>),
}

impl SourceContent {
    /// The module, if all its sizes are known.
    ///
    /// # Errors
    /// `Code::UnknownDim` if sizes are open.
    pub fn require_known_sizes(self) -> Result<Source> {
        match self {
            SourceContent::Fixed(source) => Ok(source),
            SourceContent::Open(open) => Err(open.unknown_size_error()),
        }
    }
}

/// Reads HLO text, an HloProto, an HloModuleProto, StableHLO text, StableHLO's portable bytecode, or an exported function of
/// JAX.
///
/// # Errors
/// Errors of the reader of the format.
pub fn read(bytes: &Bytes) -> Result<SourceContent> {
    if let Some(form) = stablehlo::read_bytes(bytes) {
        return form;
    }
    let plain = |module| SourceContent::Fixed(Source { module, results: Vec::new() });
    if proto::is_message(bytes) {
        return proto::decode(bytes).map(plain);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Error::user(Code::HloSyntax, format!("the text is not UTF-8: byte {}", e.valid_up_to())))?;
    if stablehlo::is_stablehlo(text) { stablehlo::read_text(text) } else { text::parse(text).map(plain) }
}
