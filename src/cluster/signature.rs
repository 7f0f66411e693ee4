//! Types of a node's inputs and outputs, from its op's definition or from the signature of the function that is its op.
use crate::graph::{Function, Node, Program};
use crate::opdef::{self, OpDef, type_bit, type_number};

/// Maximum depth to which results of functions that are results of other functions are followed.
const MAX_DEPTH: usize = 50;

/// The `DataType` number of input `port` of `node`, whose definition is `def`.
pub fn input_type(program: &Program, node: &Node, def: Option<&OpDef>, port: usize) -> Option<i32> {
    match def {
        Some(def) => def.input_type(node, port),
        None => arg_type(program.functions.get(&node.op)?, port),
    }
}

/// The `DataType` number of output `port` of `node`, whose definition is `def`.
pub fn output_type(program: &Program, node: &Node, def: Option<&OpDef>, port: usize) -> Option<i32> {
    output_type_at_depth(program, node, def, port, MAX_DEPTH)
}

fn output_type_at_depth(program: &Program, node: &Node, def: Option<&OpDef>, port: usize, depth: usize) -> Option<i32> {
    if let Some(def) = def {
        return def.output_type(node, port);
    }
    let function = program.functions.get(&node.op)?;
    let ret = function.rets.get(port)?;
    let from = &function.graph.nodes[ret.node];
    output_type_at_depth(program, from, opdef::find_def(&from.op), ret.port as usize, depth.checked_sub(1)?)
}

fn arg_type(function: &Function, port: usize) -> Option<i32> {
    function.graph.nodes[*function.args.get(port)?].declared_type("T").map(type_number)
}

/// Types of all inputs of `node`, as a set of bits ([`type_bit`]).
pub fn packed_input_types(program: &Program, node: &Node, def: Option<&OpDef>) -> u64 {
    match def {
        Some(def) => def.input_type_set(node),
        None => {
            let function = program.functions.get(&node.op);
            let ports = function.into_iter().flat_map(|f| (0..f.args.len()).filter_map(|port| arg_type(f, port)));
            ports.fold(0, |bits, number| bits | type_bit(number))
        }
    }
}

/// Types of all inputs and outputs of `node`, as a set of bits ([`type_bit`]).
pub fn all_type_bits(program: &Program, node: &Node, def: Option<&OpDef>) -> u64 {
    if let Some(def) = def {
        return def.type_set(node);
    }
    let outputs = program.functions.get(&node.op).map_or(0, |f| f.rets.len());
    let outputs = (0..outputs).filter_map(|port| output_type(program, node, def, port));
    outputs.fold(packed_input_types(program, node, def), |bits, number| bits | type_bit(number))
}
