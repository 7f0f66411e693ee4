//! Parser of SavedModel and MetaGraphDef files: a GraphDef with signatures.
use super::graph_def::read_graph;
use super::object_graph::ObjectGraph;
use super::proto::tensorflow::{SignatureDef, TensorInfo};
use super::wire::{WireField, WireReader};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Node, Program, Signature};
use bytes::Bytes;
use protobuf::Message;
use std::collections::HashMap;

/// The parsed content of a MetaGraphDef.
pub struct ParsedMetaGraph {
    /// The graph with its signatures.
    pub program: Program,
    /// The Python objects behind the graph; empty for files of TensorFlow 1.
    pub objects: ObjectGraph,
}

/// The tag of the graph for serving.
const SERVE: &str = "serve";

/// Parses `saved_model.pb`: the MetaGraphDef with the tag `serve`, or the only one.
pub fn read(file: &Bytes) -> Result<ParsedMetaGraph> {
    let mut reader = WireReader::new(file, "SavedModel");
    let mut graphs = Vec::new();
    while let Some(field) = reader.next()? {
        if field.number == 2 {
            graphs.push(field.message("MetaGraphDef")?);
        }
    }
    let mut tags = Vec::new();
    for graph in &graphs {
        tags.push(read_tags(graph.clone())?);
    }
    let served = tags.iter().position(|tags| tags.contains(&SERVE));
    match served.or(if graphs.len() == 1 { Some(0) } else { None }) {
        Some(i) => read_meta(graphs.swap_remove(i)),
        None => {
            let tags: Vec<String> = tags.iter().map(|t| format!("[{}]", t.join(", "))).collect();
            let found = if tags.is_empty() {
                "it holds no graph".to_string()
            } else {
                format!("its graphs have the tags {}", tags.join(", "))
            };
            Err(Diagnostic::new(Code::BadGraph, "the SavedModel has no graph to serve").note(found).into())
        }
    }
}

/// Parses a MetaGraphDef file.
pub fn read_meta_graph(file: &Bytes) -> Result<ParsedMetaGraph> {
    read_meta(WireReader::new(file, "MetaGraphDef"))
}

fn read_tags<'a>(mut meta: WireReader<'a>) -> Result<Vec<&'a str>> {
    let mut tags = Vec::new();
    while let Some(field) = meta.next()? {
        if field.number != 1 {
            continue;
        }
        let mut info = field.message("MetaInfoDef")?;
        while let Some(part) = info.next()? {
            if part.number == 4 {
                tags.push(part.text()?);
            }
        }
    }
    Ok(tags)
}

fn read_meta(mut meta: WireReader) -> Result<ParsedMetaGraph> {
    let (mut program, mut signatures, mut objects) = (None, Vec::new(), ObjectGraph::default());
    while let Some(field) = meta.next()? {
        match field.number {
            2 => program = Some(read_graph(field.message("GraphDef")?)?),
            5 => signatures.push(read_signature(&field)?),
            7 => objects = ObjectGraph::read(field.message("SavedObjectGraph")?)?,
            _ => {}
        }
    }
    let mut program = program.ok_or_else(|| Error::user(Code::BadGraph, "the MetaGraphDef has no graph"))?;
    signatures.sort_by(|a: &Signature, b| a.name.cmp(&b.name));
    for signature in signatures.iter_mut().filter(|s| s.outputs.is_empty()) {
        let function = objects.signature_function(&signature.name);
        let calls = |node: &&Node| function.is_some() && node.func("f").map(|f| &*f.name) == function;
        signature.runs = program.graph.nodes.values().find(calls).map(|node| node.name.to_string());
    }
    program.signatures = signatures;
    Ok(ParsedMetaGraph { program, objects })
}

fn read_signature(field: &WireField) -> Result<Signature> {
    let mut entry = field.message("SignatureEntry")?;
    let (mut name, mut signature) = ("", SignatureDef::new());
    while let Some(part) = entry.next()? {
        match part.number {
            1 => name = part.text()?,
            2 => {
                let parsed = SignatureDef::parse_from_bytes(part.raw_bytes()?);
                signature =
                    parsed.map_err(|e| Error::user(Code::BadEncoding, format!("a signature can't be read: {e}")))?;
            }
            _ => {}
        }
    }
    Ok(Signature {
        name: name.to_string(),
        inputs: tensors(&signature.inputs),
        outputs: tensors(&signature.outputs),
        runs: None,
    })
}

/// Names with their tensors, sorted because a map has no order. Sparse and composite tensors are omitted.
fn tensors(map: &HashMap<String, TensorInfo>) -> Vec<(String, String)> {
    let named = map.iter().filter(|(_, info)| info.has_name());
    let mut all: Vec<(String, String)> = named.map(|(name, info)| (name.clone(), info.name().to_string())).collect();
    all.sort();
    all
}
