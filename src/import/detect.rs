//! Detection of a file's format from its bytes.
use super::foreign;
use super::wire::{WireReader, WireValue};
use crate::diag::{Code, Diagnostic, Error, Result};
use bytes::Bytes;

/// Input formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// A binary GraphDef.
    GraphDef,
    /// A GraphDef in text format.
    GraphDefText,
    /// A binary MetaGraphDef.
    MetaGraph,
    /// A MetaGraphDef in text format.
    MetaGraphText,
    /// `saved_model.pb`, or the folder that holds it.
    SavedModel,
    /// `saved_model.pbtxt`.
    SavedModelText,
    /// A TF.js `model.json` with its shards.
    TfJs,
    /// A module of HLO or StableHLO (not a TensorFlow graph): text, a proto, bytecode, or a function exported by JAX.
    Module,
}

const NAMES: &[(&str, FileFormat)] = &[
    ("pb", FileFormat::GraphDef),
    ("pbtxt", FileFormat::GraphDefText),
    ("metagraph", FileFormat::MetaGraph),
    ("metagraph-text", FileFormat::MetaGraphText),
    ("savedmodel", FileFormat::SavedModel),
    ("savedmodel-text", FileFormat::SavedModelText),
    ("tfjs", FileFormat::TfJs),
    ("hlo", FileFormat::Module),
];

impl FileFormat {
    /// The name of the format as `--format` takes it.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, f)| *f == self).map_or("", |(name, _)| name)
    }
    /// Parses a format's name as `--format` takes it.
    ///
    /// # Errors
    /// `Code::UnknownFormat` for other names, with the list of names.
    pub fn parse(name: &str) -> Result<FileFormat> {
        let found = NAMES.iter().find(|(n, _)| *n == name).map(|(_, f)| *f);
        found.ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(n, _)| *n).collect();
            Diagnostic::new(Code::UnknownFormat, format!("there is no format `{name}`"))
                .help(format!("formats are {}", names.join(", ")))
                .into()
        })
    }
}

/// Detects the format of `bytes`, which must not be compressed.
pub fn detect(bytes: &Bytes) -> Result<FileFormat> {
    if bytes.is_empty() {
        return Err(Diagnostic::new(Code::UnknownFormat, "the file is empty")
            .help("fetch or export it again; `ls -l FILE` tells its size")
            .into());
    }
    if let Some(foreign) = foreign::diagnose_foreign_file(bytes) {
        return Err(foreign.into());
    }
    if is_bytecode(bytes) || is_hlo(bytes) {
        return Ok(FileFormat::Module);
    }
    let head = &bytes[..bytes.len().min(1024)];
    if head.iter().all(|&b| b >= 0x20 && b != 0x7f || matches!(b, b'\t' | b'\n' | b'\r')) {
        return detect_text(head);
    }
    Ok(detect_binary(bytes))
}

/// The magic number of MLIR bytecode.
const MLIR: &[u8] = b"ML\xefR";

/// Whether bytes are MLIR bytecode, bare or in JAX's flatbuffer. The latter begins with an offset whose upper bytes are zero, as in no proto.
fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(MLIR) || (matches!(bytes, [_, _, 0, 0, ..]) && bytes.windows(MLIR.len()).any(|w| w == MLIR))
}

/// Whether bytes are an HloModuleProto, or an HloProto or HloSnapshot, which have one as their first field.
fn is_hlo(bytes: &Bytes) -> bool {
    let mut reader = WireReader::new(bytes, "file");
    let wrapped = match reader.next() {
        Ok(Some(field)) if field.number == 1 => field.shared_bytes().ok(),
        _ => None,
    };
    is_hlo_module(bytes) || wrapped.is_some_and(|module| is_hlo_module(&module))
}

/// Whether bytes are an HloModuleProto: has a name, an entry name, computations, and ids in fields where a NodeDef has attributes.
fn is_hlo_module(bytes: &Bytes) -> bool {
    let mut reader = WireReader::new(bytes, "module");
    let (mut computations, mut numbered) = (0, false);
    loop {
        match reader.next() {
            Ok(None) => return computations > 0 && numbered,
            Ok(Some(field)) => match (field.number, field.value) {
                (1 | 2 | 4, WireValue::Bytes(_)) => {}
                (3, WireValue::Bytes(_)) => match field.shared_bytes() {
                    Ok(part) if is_computation(&part) => computations += 1,
                    _ => return false,
                },
                (5 | 6, WireValue::Varint(_)) => numbered = true,
                (1..=6, _) => return false,
                _ => {}
            },
            Err(_) => return false,
        }
    }
}

/// Whether bytes are an HloComputationProto: a name, then instructions that each have a name and an opcode.
fn is_computation(bytes: &Bytes) -> bool {
    let mut reader = WireReader::new(bytes, "computation");
    while let Ok(Some(field)) = reader.next() {
        if let (2, WireValue::Bytes(_)) = (field.number, field.value) {
            let Ok(mut inside) = field.message("instruction") else { return false };
            return matches!(inside.next(), Ok(Some(name)) if name.number == 1 && name.text().is_ok());
        }
    }
    false
}

fn detect_text(head: &[u8]) -> Result<FileFormat> {
    let text = String::from_utf8_lossy(head);
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    let mut mlir = false;
    while rest.starts_with('#') || rest.starts_with("//") {
        mlir |= rest.starts_with('/');
        rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
    }
    if rest.starts_with('{') {
        return Ok(FileFormat::TfJs);
    }
    let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.')).collect();
    let after = rest[word.len()..].trim_start();
    match word.as_str() {
        "HloModule" | "module" | "func.func" | "ENTRY" => return Ok(FileFormat::Module),
        "saved_model_schema_version" | "meta_graphs" => return Ok(FileFormat::SavedModelText),
        "meta_info_def" | "graph_def" | "signature_def" | "saver_def" | "collection_def" | "object_graph_def" => {
            return Ok(FileFormat::MetaGraphText);
        }
        _ => {}
    }
    if mlir {
        return Ok(FileFormat::Module);
    }
    if !word.is_empty() && after.starts_with(['{', ':', '<']) {
        return Ok(FileFormat::GraphDefText);
    }
    Err(Error::user(Code::UnknownFormat, "the text is no GraphDef, no model.json and no HLO"))
}

/// Tells binary formats apart: a SavedModel starts with a number; a MetaGraphDef has fields that a GraphDef lacks, or its first field is not a node.
fn detect_binary(bytes: &Bytes) -> FileFormat {
    let mut reader = WireReader::new(bytes, "file");
    let (mut ones, mut graph, mut meta, mut first) = (0, false, false, None);
    while let Ok(Some(field)) = reader.next() {
        match (field.number, field.value) {
            (1, WireValue::Varint(_)) => return FileFormat::SavedModel,
            (1, WireValue::Bytes(part)) => {
                ones += 1;
                first.get_or_insert(part);
            }
            (2, WireValue::Bytes(_)) => graph = true,
            (3 | 5 | 6 | 7, WireValue::Bytes(_)) => meta = true,
            _ => {}
        }
        if ones > 1 {
            return FileFormat::GraphDef;
        }
    }
    match first {
        Some(part) if graph => {
            if is_node(part) {
                FileFormat::GraphDef
            } else {
                FileFormat::MetaGraph
            }
        }
        Some(_) => FileFormat::GraphDef,
        None if graph && meta => FileFormat::MetaGraph,
        None => FileFormat::GraphDef,
    }
}

/// Whether bytes have a string where a NodeDef has its op.
fn is_node(part: &[u8]) -> bool {
    let whole = Bytes::copy_from_slice(part);
    let mut reader = WireReader::new(&whole, "file");
    while let Ok(Some(field)) = reader.next() {
        if let (2, WireValue::Bytes(op)) = (field.number, field.value) {
            return !op.is_empty()
                && op.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'>' | b'.' | b'-' | b'/'));
        }
    }
    false
}
