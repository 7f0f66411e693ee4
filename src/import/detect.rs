//! Which format some bytes are in.
use super::foreign;
use super::wire::{Reader, Value};
use crate::diag::{Code, Diagnostic, Error, Result};
use bytes::Bytes;

/// The formats that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
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
    /// HLO or StableHLO text.
    HloText,
}

const NAMES: &[(&str, Format)] = &[
    ("pb", Format::GraphDef),
    ("pbtxt", Format::GraphDefText),
    ("metagraph", Format::MetaGraph),
    ("metagraph-text", Format::MetaGraphText),
    ("savedmodel", Format::SavedModel),
    ("savedmodel-text", Format::SavedModelText),
    ("tfjs", Format::TfJs),
    ("hlo", Format::HloText),
];

impl Format {
    /// The name that `--format` takes.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, f)| *f == self).map_or("", |(name, _)| name)
    }
    /// The format called `name`; `UnknownFormat` lists the names.
    pub fn parse(name: &str) -> Result<Format> {
        let found = NAMES.iter().find(|(n, _)| *n == name).map(|(_, f)| *f);
        found.ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(n, _)| *n).collect();
            Diagnostic::new(Code::UnknownFormat, format!("there is no format `{name}`"))
                .help(format!("formats are {}", names.join(", ")))
                .into()
        })
    }
}

/// The format of `bytes`, which are not gzipped.
pub fn detect(bytes: &Bytes) -> Result<Format> {
    if bytes.is_empty() {
        return Err(Diagnostic::new(Code::UnknownFormat, "the file is empty")
            .help("fetch or export it again; `ls -l FILE` tells its size")
            .into());
    }
    if let Some(foreign) = foreign::recognised(bytes) {
        return Err(foreign.into());
    }
    let head = &bytes[..bytes.len().min(1024)];
    if head.iter().all(|&b| b >= 0x20 && b != 0x7f || matches!(b, b'\t' | b'\n' | b'\r')) {
        return detect_text(head);
    }
    Ok(detect_binary(bytes))
}

fn detect_text(head: &[u8]) -> Result<Format> {
    let text = String::from_utf8_lossy(head);
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    let mut mlir = false;
    while rest.starts_with('#') || rest.starts_with("//") {
        mlir |= rest.starts_with('/');
        rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
    }
    if rest.starts_with('{') {
        return Ok(Format::TfJs);
    }
    let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.')).collect();
    let after = rest[word.len()..].trim_start();
    match word.as_str() {
        "HloModule" | "module" | "func.func" | "ENTRY" => return Ok(Format::HloText),
        "saved_model_schema_version" | "meta_graphs" => return Ok(Format::SavedModelText),
        "meta_info_def" | "graph_def" | "signature_def" | "saver_def" | "collection_def" | "object_graph_def" => {
            return Ok(Format::MetaGraphText);
        }
        _ => {}
    }
    if mlir {
        return Ok(Format::HloText);
    }
    if !word.is_empty() && after.starts_with(['{', ':', '<']) {
        return Ok(Format::GraphDefText);
    }
    Err(Error::user(Code::UnknownFormat, "the text is no GraphDef, no model.json and no HLO"))
}

/// SavedModel starts with a number; a MetaGraphDef has fields that a GraphDef has not, or its first field is no node.
fn detect_binary(bytes: &Bytes) -> Format {
    let mut reader = Reader::new(bytes, "file");
    let (mut ones, mut graph, mut meta, mut first) = (0, false, false, None);
    while let Ok(Some(field)) = reader.next() {
        match (field.number, field.value) {
            (1, Value::Varint(_)) => return Format::SavedModel,
            (1, Value::Bytes(part)) => {
                ones += 1;
                first.get_or_insert(part);
            }
            (2, Value::Bytes(_)) => graph = true,
            (3 | 5 | 6 | 7, Value::Bytes(_)) => meta = true,
            _ => {}
        }
        if ones > 1 {
            return Format::GraphDef;
        }
    }
    match first {
        Some(part) if graph => {
            if is_node(part) {
                Format::GraphDef
            } else {
                Format::MetaGraph
            }
        }
        Some(_) => Format::GraphDef,
        None if graph && meta => Format::MetaGraph,
        None => Format::GraphDef,
    }
}

/// Whether a message has an op name where a NodeDef has it.
fn is_node(part: &[u8]) -> bool {
    let whole = Bytes::copy_from_slice(part);
    let mut reader = Reader::new(&whole, "file");
    while let Ok(Some(field)) = reader.next() {
        if let (2, Value::Bytes(op)) = (field.number, field.value) {
            return !op.is_empty()
                && op.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'>' | b'.' | b'-' | b'/'));
        }
    }
    false
}
