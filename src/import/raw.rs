//! GraphDefs parsed as far as rewriting needs; all other fields keep their bytes.
use super::wire::{WireReader, WireValue, put_bytes, put_varint, put_varint_field};
use crate::diag::Result;
use bytes::Bytes;

/// An encoded value of a field.
#[derive(Clone, Debug)]
pub enum RawValue {
    /// A variable-length integer: wire type 0.
    Varint(u64),
    /// Eight bytes: wire type 1.
    Fixed64(u64),
    /// Strings, bytes and messages: wire type 2.
    Bytes(Bytes),
    /// Four bytes: wire type 5.
    Fixed32(u32),
}

/// The fields of a message in order.
#[derive(Clone, Debug, Default)]
pub struct RawMessage {
    /// Field numbers and values.
    pub fields: Vec<(u32, RawValue)>,
}

impl RawMessage {
    /// Parses one level of a message called `name`.
    ///
    /// # Errors
    /// `BadEncoding`.
    pub fn parse(data: &Bytes, name: &'static str) -> Result<RawMessage> {
        let mut reader = WireReader::new(data, name);
        let mut fields = Vec::new();
        while let Some(field) = reader.next()? {
            let value = match field.value {
                WireValue::Varint(v) => RawValue::Varint(v),
                WireValue::Fixed64(v) => RawValue::Fixed64(v),
                WireValue::Bytes(_) => RawValue::Bytes(field.shared_bytes()?),
                WireValue::Fixed32(v) => RawValue::Fixed32(v),
            };
            fields.push((field.number, value));
        }
        Ok(RawMessage { fields })
    }
    /// The values of all string, bytes and message fields with this number.
    pub fn bytes_mut(&mut self, number: u32) -> impl Iterator<Item = &mut Bytes> {
        self.fields.iter_mut().filter_map(move |(n, raw)| match raw {
            RawValue::Bytes(bytes) if *n == number => Some(bytes),
            _ => None,
        })
    }
    /// The message in the protobuf wire format.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.fields.iter().for_each(|(number, raw)| put(&mut out, *number, raw));
        out
    }
}

fn put(out: &mut Vec<u8>, number: u32, raw: &RawValue) {
    match raw {
        RawValue::Varint(v) => put_varint_field(out, number, *v),
        RawValue::Fixed64(v) => {
            put_varint(out, u64::from(number) << 3 | 1);
            out.extend_from_slice(&v.to_le_bytes());
        }
        RawValue::Bytes(v) => put_bytes(out, number, v),
        RawValue::Fixed32(v) => {
            put_varint(out, u64::from(number) << 3 | 5);
            out.extend_from_slice(&v.to_le_bytes());
        }
    }
}

/// A NodeDef whose name, op, inputs, device and attributes are parsed.
#[derive(Clone, Debug, Default)]
pub struct RawNode {
    /// The node's name.
    pub name: String,
    /// The node's op.
    pub op: String,
    /// Data and control inputs as written.
    pub inputs: Vec<String>,
    /// The requested device, as a string.
    pub device: String,
    /// Attributes: names and serialized AttrValues.
    pub attrs: Vec<(String, Bytes)>,
    /// All other fields.
    pub rest: RawMessage,
}

impl RawNode {
    fn parse(data: &Bytes) -> Result<RawNode> {
        let mut node = RawNode::default();
        for (number, raw) in RawMessage::parse(data, "NodeDef")?.fields {
            match (number, raw) {
                (1, RawValue::Bytes(b)) => node.name = text(&b),
                (2, RawValue::Bytes(b)) => node.op = text(&b),
                (3, RawValue::Bytes(b)) => node.inputs.push(text(&b)),
                (4, RawValue::Bytes(b)) => node.device = text(&b),
                (5, RawValue::Bytes(b)) => node.attrs.push(parse_map_entry(&b)?),
                (number, raw) => node.rest.fields.push((number, raw)),
            }
        }
        Ok(node)
    }
    /// The NodeDef in the protobuf wire format.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, 1, self.name.as_bytes());
        put_bytes(&mut out, 2, self.op.as_bytes());
        self.inputs.iter().for_each(|input| put_bytes(&mut out, 3, input.as_bytes()));
        if !self.device.is_empty() {
            put_bytes(&mut out, 4, self.device.as_bytes());
        }
        self.attrs.iter().for_each(|(key, value)| put_bytes(&mut out, 5, &serialize_map_entry(key, value)));
        self.rest.fields.iter().for_each(|(number, raw)| put(&mut out, *number, raw));
        out
    }
    /// Sets an attribute to a serialized AttrValue.
    pub fn set_attr(&mut self, name: &str, value: Vec<u8>) {
        self.attrs.retain(|(key, _)| key != name);
        self.attrs.push((name.to_string(), value.into()));
    }
}

/// A FunctionDef whose nodes and results are parsed.
#[derive(Clone, Debug, Default)]
pub struct RawFunction {
    /// The function's name.
    pub name: String,
    /// The nodes of the function's body.
    pub nodes: Vec<RawNode>,
    /// Results: names, and the outputs that they denote.
    pub rets: Vec<(String, String)>,
    /// Control results: names, and the nodes that they denote.
    pub control_rets: Vec<(String, String)>,
    /// The signature and all other fields.
    pub rest: RawMessage,
}

impl RawFunction {
    fn parse(data: &Bytes) -> Result<RawFunction> {
        let mut function = RawFunction::default();
        for (number, raw) in RawMessage::parse(data, "FunctionDef")?.fields {
            match (number, raw) {
                (3, RawValue::Bytes(b)) => function.nodes.push(RawNode::parse(&b)?),
                (4, RawValue::Bytes(b)) => function.rets.push(text_entry(&b)?),
                (6, RawValue::Bytes(b)) => function.control_rets.push(text_entry(&b)?),
                (number, raw) => {
                    if let (1, RawValue::Bytes(signature)) = (number, &raw) {
                        for name in RawMessage::parse(signature, "OpDef")?.bytes_mut(1) {
                            function.name = text(name);
                        }
                    }
                    function.rest.fields.push((number, raw));
                }
            }
        }
        Ok(function)
    }
    fn write(&self) -> Vec<u8> {
        let mut out = self.rest.write();
        self.nodes.iter().for_each(|node| put_bytes(&mut out, 3, &node.write()));
        self.rets.iter().for_each(|(key, value)| put_bytes(&mut out, 4, &serialize_map_entry(key, value.as_bytes())));
        self.control_rets
            .iter()
            .for_each(|(key, value)| put_bytes(&mut out, 6, &serialize_map_entry(key, value.as_bytes())));
        out
    }
}

/// A GraphDef whose nodes and functions are parsed.
#[derive(Clone, Debug, Default)]
pub struct RawGraph {
    /// The nodes of the top-level graph.
    pub nodes: Vec<RawNode>,
    /// The functions of its library.
    pub functions: Vec<RawFunction>,
    /// Gradients and other fields of the library.
    library: RawMessage,
    /// Versions and other fields.
    rest: RawMessage,
}

impl RawGraph {
    /// Parses a GraphDef.
    ///
    /// # Errors
    /// `BadEncoding`.
    pub fn parse(data: &Bytes) -> Result<RawGraph> {
        let mut graph = RawGraph::default();
        for (number, raw) in RawMessage::parse(data, "GraphDef")?.fields {
            match (number, raw) {
                (1, RawValue::Bytes(b)) => graph.nodes.push(RawNode::parse(&b)?),
                (2, RawValue::Bytes(b)) => {
                    for (number, raw) in RawMessage::parse(&b, "FunctionDefLibrary")?.fields {
                        match (number, raw) {
                            (1, RawValue::Bytes(b)) => graph.functions.push(RawFunction::parse(&b)?),
                            (number, raw) => graph.library.fields.push((number, raw)),
                        }
                    }
                }
                (number, raw) => graph.rest.fields.push((number, raw)),
            }
        }
        Ok(graph)
    }
    /// A graph with the given nodes, and the functions and versions of this one.
    pub fn with_nodes(&self, nodes: Vec<RawNode>) -> RawGraph {
        RawGraph { nodes, functions: self.functions.clone(), library: self.library.clone(), rest: self.rest.clone() }
    }
    /// The GraphDef in the protobuf wire format.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.nodes.iter().for_each(|node| put_bytes(&mut out, 1, &node.write()));
        let mut library = Vec::new();
        self.functions.iter().for_each(|function| put_bytes(&mut library, 1, &function.write()));
        self.library.fields.iter().for_each(|(number, raw)| put(&mut library, *number, raw));
        if !library.is_empty() {
            put_bytes(&mut out, 2, &library);
        }
        self.rest.fields.iter().for_each(|(number, raw)| put(&mut out, *number, raw));
        out
    }
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Parses an entry of a map into key and value.
///
/// # Errors
/// `BadEncoding`.
pub fn parse_map_entry(data: &Bytes) -> Result<(String, Bytes)> {
    let (mut key, mut value) = (String::new(), Bytes::new());
    for (number, raw) in RawMessage::parse(data, "map entry")?.fields {
        match (number, raw) {
            (1, RawValue::Bytes(b)) => key = text(&b),
            (2, RawValue::Bytes(b)) => value = b,
            _ => {}
        }
    }
    Ok((key, value))
}

fn text_entry(data: &Bytes) -> Result<(String, String)> {
    parse_map_entry(data).map(|(key, value)| (key, text(&value)))
}

/// Serializes an entry of a map.
pub fn serialize_map_entry(key: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + value.len() + 12);
    put_bytes(&mut out, 1, key.as_bytes());
    put_bytes(&mut out, 2, value);
    out
}
