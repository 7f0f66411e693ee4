//! Parser of NodeDef messages; inputs stay names.
use super::attr_value::read_entry;
use super::seeds;
use super::wire::WireReader;
use crate::diag::{Error, Result};
use crate::graph::Attr;
use foldhash::HashMap;
use std::sync::Arc;

/// Maximum number of items for which memory is reserved before a list is read.
const MOST_ROOM: usize = 64;

/// Shared copies of op, device and attribute names.
#[derive(Default)]
pub struct Interner<'a> {
    known: HashMap<&'a str, Arc<str>>,
}

impl<'a> Interner<'a> {
    /// The shared copy of `text`.
    pub fn intern(&mut self, text: &'a str) -> Arc<str> {
        self.known.entry(text).or_insert_with(|| text.into()).clone()
    }
}

/// A node as written in the file.
pub struct FileNode<'a> {
    /// The node's name.
    pub name: &'a str,
    /// The node's op.
    pub op: Arc<str>,
    /// The requested device, as a string.
    pub device: Arc<str>,
    /// Inputs as written: `a`, `a:1`, `^a`, and in functions `a:out:0`.
    pub inputs: Vec<&'a str>,
    /// Attributes, by name.
    pub attrs: Vec<(Arc<str>, Attr)>,
}

/// Parses a NodeDef. Attributes without a value are omitted. Errors carry the node's name if it was parsed before.
pub fn read_node<'a>(mut reader: WireReader<'a>, names: &mut Interner<'a>) -> Result<FileNode<'a>> {
    let empty = names.intern("");
    // Lists reserved at the right length are not reallocated, which matters in files of a million nodes.
    let capacity = |number| reader.count_fields(number).min(MOST_ROOM);
    let (inputs, attrs) = (Vec::with_capacity(capacity(3)), Vec::with_capacity(capacity(5)));
    let mut node = FileNode { name: "", op: empty.clone(), device: empty, inputs, attrs };
    while let Some(field) = reader.next()? {
        let at_node = |e: Error| if node.name.is_empty() { e } else { e.map(|d| d.at_node(node.name, &node.op)) };
        match field.number {
            1 => node.name = field.text()?,
            2 => node.op = names.intern(field.text()?),
            3 => node.inputs.push(field.text().map_err(at_node)?),
            4 => node.device = names.intern(field.text()?),
            5 => node.attrs.extend(field.message("AttrEntry").and_then(|r| read_entry(r, names)).map_err(at_node)?),
            _ => {}
        }
    }
    if &*node.op == "Const" {
        seeds::generate_omitted_weights(&mut node.attrs);
    }
    Ok(node)
}
