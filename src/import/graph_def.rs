//! Parser of binary GraphDefs, field by field.
use super::assemble::{Assembler, parse_port_number};
use super::function_def::read_library;
use super::node_def::{Interner, read_node};
use super::wire::WireReader;
use crate::diag::Result;
use crate::graph::Program;
use bytes::Bytes;

/// Parses a binary GraphDef; tensors stay slices of `file`.
pub fn read(file: &Bytes) -> Result<Program> {
    read_graph(WireReader::new(file, "GraphDef"))
}

/// Parses a GraphDef that may be a field of another message.
pub fn read_graph(mut reader: WireReader) -> Result<Program> {
    let mut names = Interner::default();
    let mut nodes = Assembler::with_capacity(reader.count_fields(1));
    let mut libraries = Vec::new();
    let mut program = Program::default();
    while let Some(field) = reader.next()? {
        match field.number {
            1 => {
                nodes.add(read_node(field.message("NodeDef")?, &mut names)?)?;
            }
            2 => libraries.push(field.message("FunctionDefLibrary")?),
            4 => program.producer = read_producer(field.message("VersionDef")?)?,
            _ => {}
        }
    }
    program.graph = nodes.finish(parse_port_number)?;
    program.functions = read_library(&libraries, &mut names)?;
    Ok(program)
}

fn read_producer(mut reader: WireReader) -> Result<i32> {
    let mut producer = 0;
    while let Some(field) = reader.next()? {
        if field.number == 1 {
            producer = field.int32()?;
        }
    }
    Ok(producer)
}
