//! NodeDef to a node whose inputs are still names.
use super::attr_value::read_entry;
use super::seeds;
use super::wire::WireReader;
use crate::diag::{Error, Result};
use crate::graph::Attr;
use foldhash::HashMap;
use std::sync::Arc;

/// Longer lists grow as they are read.
const MOST_ROOM: usize = 64;

/// One copy of each op, device and attribute name.
#[derive(Default)]
pub struct Interner<'a> {
    known: HashMap<&'a str, Arc<str>>,
}

impl<'a> Interner<'a> {
    /// The shared copy of `text`.
    pub fn get(&mut self, text: &'a str) -> Arc<str> {
        self.known.entry(text).or_insert_with(|| text.into()).clone()
    }
}

/// A node as the file has it.
pub struct FileNode<'a> {
    /// The node's name.
    pub name: &'a str,
    /// The node's op.
    pub op: Arc<str>,
    /// The requested device, as a string.
    pub device: Arc<str>,
    /// Inputs as text: `a`, `a:1`, `^a`, in functions `a:out:0`.
    pub inputs: Vec<&'a str>,
    /// Attributes, by name.
    pub attrs: Vec<(Arc<str>, Attr)>,
}

/// Reads a NodeDef. Attributes without a value are left out. Errors carry the node's name where it was read before.
pub fn read_node<'a>(mut reader: WireReader<'a>, names: &mut Interner<'a>) -> Result<FileNode<'a>> {
    let empty = names.get("");
    // Lists of the right length need no second allocation, which is felt in files of a million nodes.
    let room = |number| reader.count(number).min(MOST_ROOM);
    let (inputs, attrs) = (Vec::with_capacity(room(3)), Vec::with_capacity(room(5)));
    let mut node = FileNode { name: "", op: empty.clone(), device: empty, inputs, attrs };
    while let Some(field) = reader.next()? {
        let at_node = |e: Error| if node.name.is_empty() { e } else { e.map(|d| d.at_node(node.name, &node.op)) };
        match field.number {
            1 => node.name = field.text()?,
            2 => node.op = names.get(field.text()?),
            3 => node.inputs.push(field.text().map_err(at_node)?),
            4 => node.device = names.get(field.text()?),
            5 => node.attrs.extend(field.message("AttrEntry").and_then(|r| read_entry(r, names)).map_err(at_node)?),
            _ => {}
        }
    }
    if &*node.op == "Const" {
        seeds::fill(&mut node.attrs);
    }
    Ok(node)
}
