//! Reading of files into [`crate::graph::Program`]: the format is detected by content, tensors stay slices of the mapped file.
//!
//! | format | source files |
//! |---|---|
//! | GraphDef, binary | `graph_def.rs` over `wire.rs` |
//! | GraphDef and others, text | `text.rs`, which turns text into the binary form |
//! | SavedModel, MetaGraphDef | `saved_model.rs`; its variables `object_graph.rs`, `checkpoint/` and `variables.rs`, its tables `tables.rs` |
//! | TF.js `model.json` | `tfjs.rs`; `json.rs` turns JSON into the binary form |
//!
//! A module of HLO or StableHLO is detected (`detect.rs`) and returned as bytes.
//!
//! `foreign.rs` recognizes files of other kinds. `raw.rs` and `raw_attr.rs` parse GraphDefs only as far as needed to write them again.
mod assemble;
mod attr_value;
mod checkpoint;
mod detect;
mod foreign;
mod function_def;
mod graph_def;
mod inputs;
mod json;
pub mod mmap;
mod node_def;
mod object_graph;
pub mod proto;
pub mod raw;
pub mod raw_attr;
mod saved_model;
pub mod schema;
pub mod seeds;
mod source;
mod tables;
mod tensor_proto;
mod text;
mod tfjs;
mod tfjs_weights;
#[cfg(test)]
mod tests;
mod variables;
pub mod wire;

pub use detect::FileFormat;
pub use foreign::diagnose_foreign_file;
pub use inputs::model_files;
pub use source::read_file;

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::Program;
use bytes::Bytes;
use std::path::Path;

/// The content of an input file.
#[derive(Debug)]
pub enum Loaded {
    /// A TensorFlow graph, with its variables and their values.
    Graph(Box<Program>),
    /// A module of HLO or StableHLO, in one of their formats.
    Module(Bytes),
}

/// Reads the program at `path` (`-` is standard input). `format` names a [`FileFormat`] and disables detection. Variables that have a
/// value become constants.
///
/// # Errors
/// Errors of [`load_with_variables`].
pub fn load(path: &Path, format: Option<&str>) -> Result<Program> {
    let mut program = load_with_variables(path, format)?;
    program.freeze_variables(|_| false);
    Ok(program)
}

/// Reads the program at `path` as [`load`] does, but keeps its variables, with their values.
///
/// # Errors
/// Errors of [`load_any`]; `UnknownFormat` for a module.
pub fn load_with_variables(path: &Path, format: Option<&str>) -> Result<Program> {
    match load_any(path, format)? {
        Loaded::Graph(program) => Ok(*program),
        Loaded::Module(_) => {
            let mut d = no_graph();
            d.place.file = Some(path.display().to_string());
            Err(d.into())
        }
    }
}

/// Reads a graph or a module from `path`.
///
/// # Errors
/// `Io`, `UnknownFormat`, `BadEncoding` (not a valid file), `BadGraph` (edges or names that no graph has), `TooLarge`.
pub fn load_any(path: &Path, format: Option<&str>) -> Result<Loaded> {
    let source = path.display().to_string();
    let in_file = |error: Error| {
        error.map(|mut d| {
            d.place.file.get_or_insert_with(|| source.clone());
            d
        })
    };
    let format = format.map(FileFormat::parse).transpose().map_err(in_file)?;
    let mut program = if path.is_dir() {
        load_folder(path, format).map_err(in_file)?
    } else {
        let bytes = read_file(path).map_err(in_file)?;
        let format = format.map_or_else(|| detect::detect(&bytes), Ok).map_err(in_file)?;
        if format == FileFormat::Module {
            return Ok(Loaded::Module(bytes));
        }
        parse(&bytes, Some(format), path.parent().unwrap_or(Path::new(""))).map_err(in_file)?
    };
    program.source = source;
    Ok(Loaded::Graph(Box::new(program)))
}

fn no_graph() -> Diagnostic {
    Diagnostic::new(Code::UnknownFormat, "this is a module of HLO or StableHLO and no TensorFlow graph")
        .help("`tfaot compile`, `check`, `run`, `verify` and `bench` take it, and so do the verbs of `tfaot hlo`")
}

/// Reads the program in `bytes`; files that a TF.js model names are read from `folder`.
///
/// # Errors
/// Errors of [`load`].
pub fn parse(bytes: &Bytes, format: Option<FileFormat>, folder: &Path) -> Result<Program> {
    let format = match format {
        Some(format) => format,
        None => detect::detect(bytes)?,
    };
    match format {
        FileFormat::GraphDef => without_values(graph_def::read(bytes)?),
        FileFormat::GraphDefText => without_values(graph_def::read(&from_text::<proto::tensorflow::GraphDef>(bytes)?)?),
        FileFormat::MetaGraph => without_values(saved_model::read_meta_graph(bytes)?.program),
        FileFormat::MetaGraphText => {
            let binary = from_text::<proto::tensorflow::MetaGraphDef>(bytes)?;
            without_values(saved_model::read_meta_graph(&binary)?.program)
        }
        FileFormat::SavedModel => with_variables(saved_model::read(bytes)?, folder),
        FileFormat::SavedModelText => {
            with_variables(saved_model::read(&from_text::<proto::tensorflow::SavedModel>(bytes)?)?, folder)
        }
        FileFormat::TfJs => tfjs::read(bytes, folder),
        FileFormat::Module => Err(no_graph().into()),
    }
}

/// Adds the variables and lookup tables of the checkpoint in `folder` to a SavedModel's program.
fn with_variables(saved: saved_model::ParsedMetaGraph, folder: &Path) -> Result<Program> {
    let saved_model::ParsedMetaGraph { mut program, objects } = saved;
    let checkpoint = checkpoint::Checkpoint::open(&folder.join("variables").join("variables"))?;
    variables::find_variables(&mut program, &objects, checkpoint.as_ref())?;
    tables::fill_tables(&mut program, checkpoint.as_ref())?;
    Ok(program)
}

/// Lists the variables to which a program has handles, without their values.
///
/// # Errors
/// `BadEncoding` for a graph whose nodes contradict one another.
pub fn find_variables(program: &mut Program) -> Result<()> {
    variables::find_variables(program, &object_graph::ObjectGraph::default(), None)
}

/// Adds the variables and lookup tables of a program that has no checkpoint.
fn without_values(mut program: Program) -> Result<Program> {
    find_variables(&mut program)?;
    tables::fill_tables(&mut program, None)?;
    Ok(program)
}

/// Reads the program at `path` as [`load`] does, but variables stay variables.
///
/// # Errors
/// Errors of [`load`].
pub fn load_as_saved(path: &Path, format: Option<&str>) -> Result<Program> {
    let model = path.is_dir() && !path.join("model.json").is_file();
    let saved = if model { Some(load_bytes(path, format)?) } else { None };
    match saved {
        Some((FileFormat::SavedModel, bytes)) => {
            let mut program = saved_model::read(&bytes)?.program;
            program.source = path.display().to_string();
            Ok(program)
        }
        Some(_) | None => load(path, format),
    }
}

/// The bytes of the file at `path` in the binary form of its format, and that format. For a folder: its model file.
///
/// # Errors
/// Errors of [`load`], except for errors in the graph itself.
pub fn load_bytes(path: &Path, format: Option<&str>) -> Result<(FileFormat, Bytes)> {
    let in_file = |error: Error| {
        error.map(|mut d| {
            d.place.file.get_or_insert_with(|| path.display().to_string());
            d
        })
    };
    let format = format.map(FileFormat::parse).transpose().map_err(in_file)?;
    let names = ["saved_model.pb", "saved_model.pbtxt", "model.json"];
    let file = names.iter().map(|n| path.join(n)).find(|f| f.is_file());
    if file.is_none() && path.is_dir() {
        return Err(no_model(path).into());
    }
    let bytes = read_file(file.as_deref().unwrap_or(path)).map_err(in_file)?;
    let format = format.map_or_else(|| detect::detect(&bytes), Ok).map_err(in_file)?;
    let binary = match format {
        FileFormat::GraphDefText => (FileFormat::GraphDef, from_text::<proto::tensorflow::GraphDef>(&bytes)),
        FileFormat::MetaGraphText => (FileFormat::MetaGraph, from_text::<proto::tensorflow::MetaGraphDef>(&bytes)),
        FileFormat::SavedModelText => (FileFormat::SavedModel, from_text::<proto::tensorflow::SavedModel>(&bytes)),
        FileFormat::GraphDef
        | FileFormat::MetaGraph
        | FileFormat::SavedModel
        | FileFormat::TfJs
        | FileFormat::Module => (format, Ok(bytes)),
    };
    Ok((binary.0, binary.1.map_err(in_file)?))
}

/// Reads the folder of a SavedModel or of a TF.js model.
fn load_folder(path: &Path, format: Option<FileFormat>) -> Result<Program> {
    for name in ["saved_model.pb", "saved_model.pbtxt", "model.json"] {
        let file = path.join(name);
        if file.is_file() {
            return parse(&read_file(&file)?, format, path);
        }
    }
    Err(no_model(path).into())
}

/// The diagnostic for a folder without a model. It names the nearest folder with one: SavedModels are served from a folder per version.
fn no_model(path: &Path) -> Diagnostic {
    let told = format!("the folder `{}` has no saved_model.pb, saved_model.pbtxt or model.json", path.display());
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut inside: Vec<_> = entries.map(|e| e.path()).collect();
    inside.sort();
    let holds = |folder: &&std::path::PathBuf| folder.join("saved_model.pb").is_file();
    let keras = ["config.json", "model.weights.h5"].iter().all(|name| path.join(name).is_file());
    let cure = match inside.iter().rfind(holds) {
        Some(model) => format!("give `{}`, which is a SavedModel", model.display()),
        None if keras => "these are the parts of a .keras file: `zip -r0 model.keras .` in it, load that with Keras, \
            and `model.export('DIR')`"
            .to_string(),
        None => {
            "`tf.saved_model.save(model, 'DIR')`, or `model.export('DIR')` of a Keras model, writes one".to_string()
        }
    };
    Diagnostic::new(Code::UnknownFormat, told).help(cure)
}

/// Converts protobuf's text format of a message `M` to the wire format.
///
/// # Errors
/// `BadEncoding` with line and column.
pub fn from_text<M: protobuf::MessageFull>(text: &[u8]) -> Result<Bytes> {
    Ok(Bytes::from(text::encode(text, &schema::MessageOrMapEntry::message::<M>())?))
}

/// Reads a binary GraphDef.
///
/// # Errors
/// `BadEncoding`, `BadGraph`, `TooLarge`.
pub fn read_graph_def(bytes: &Bytes) -> Result<Program> {
    graph_def::read(bytes)
}

/// Reads tfcompile's configuration, in text or binary form.
///
/// # Errors
/// `Io`, `BadEncoding`.
pub fn load_config(path: &Path) -> Result<proto::tf2xla::Config> {
    let in_file = |error: Error| {
        error.map(|mut d| {
            d.place.file.get_or_insert_with(|| path.display().to_string());
            d
        })
    };
    read_file(path).and_then(|bytes| parse_config(&bytes)).map_err(in_file)
}

/// Parses tfcompile's configuration: as text, unless it has control characters.
///
/// # Errors
/// `Code::BadEncoding`.
pub fn parse_config(bytes: &[u8]) -> Result<proto::tf2xla::Config> {
    let is_text = bytes.iter().all(|&b| b >= 0x20 && b != 0x7f || matches!(b, b'\t' | b'\n' | b'\r'));
    let encoded = if is_text { from_text::<proto::tf2xla::Config>(bytes)? } else { Bytes::copy_from_slice(bytes) };
    let parsed = <proto::tf2xla::Config as protobuf::Message>::parse_from_bytes(&encoded);
    parsed.map_err(|e| Error::user(Code::BadEncoding, format!("the configuration can't be read: {e}")))
}
