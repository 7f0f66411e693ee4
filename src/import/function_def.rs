//! Parser from FunctionDef messages to [`Function`]: arguments become `_Arg` nodes, and named outputs become numbers.
use super::assemble::Assembler;
use super::attr_value::read_entry;
use super::node_def::{FileNode, Interner, read_node};
use super::wire::WireReader;
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Function, Node, NodeId, TfType};
use crate::{opdef, ops};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::sync::Arc;

/// An argument or result in a function's signature.
#[derive(Clone, Default)]
struct ArgDef<'a> {
    name: &'a str,
    dtype: i32,
    type_attr: &'a str,
    number_attr: &'a str,
    type_list_attr: &'a str,
}

/// A FunctionDef whose signature is parsed, but not yet its nodes.
struct RawFunction<'a> {
    name: Arc<str>,
    args: Vec<ArgDef<'a>>,
    results: Vec<ArgDef<'a>>,
    attrs: Vec<(Arc<str>, Attr)>,
    arg_attrs: HashMap<u64, Vec<(Arc<str>, Attr)>>,
    rets: HashMap<&'a str, &'a str>,
    control_rets: Vec<&'a str>,
    nodes: Vec<WireReader<'a>>,
    stateful: bool,
}

/// By function: names of its results, by which nodes that call the function refer to their outputs.
type Results<'a> = HashMap<Arc<str>, Vec<&'a str>>;

/// Parses the functions of the libraries in order. Errors name the function; a second function of the same name is refused.
pub fn read_library<'a>(
    libraries: &[WireReader<'a>],
    names: &mut Interner<'a>,
) -> Result<IndexMap<Arc<str>, Function>> {
    let mut raw = Vec::new();
    for library in libraries {
        let mut library = library.clone();
        while let Some(field) = library.next()? {
            if field.number == 1 {
                raw.push(read_raw(field.message("FunctionDef")?, names)?);
            }
        }
    }
    let results: Results = raw.iter().map(|f| (f.name.clone(), f.results.iter().map(|r| r.name).collect())).collect();
    let mut all = IndexMap::with_capacity(raw.len());
    for function in raw {
        let name = function.name.clone();
        let in_function = |e: Error| {
            e.map(|mut d| {
                d.place.function = Some(name.to_string());
                d
            })
        };
        let body = read_body(function, names, &results).map_err(in_function)?;
        if all.insert(name.clone(), body).is_some() {
            return Err(in_function(Error::user(Code::BadGraph, "two functions have the same name")));
        }
    }
    Ok(all)
}

fn read_raw<'a>(mut reader: WireReader<'a>, names: &mut Interner<'a>) -> Result<RawFunction<'a>> {
    let mut f = RawFunction {
        name: names.intern(""),
        args: Vec::new(),
        results: Vec::new(),
        attrs: Vec::new(),
        arg_attrs: HashMap::new(),
        rets: HashMap::new(),
        control_rets: Vec::new(),
        nodes: Vec::new(),
        stateful: false,
    };
    while let Some(field) = reader.next()? {
        match field.number {
            1 => read_signature(field.message("OpDef")?, names, &mut f)?,
            3 => f.nodes.push(field.message("NodeDef")?),
            4 => {
                let (key, value) = read_names(field.message("RetEntry")?)?;
                f.rets.insert(key, value);
            }
            6 => f.control_rets.push(read_names(field.message("ControlRetEntry")?)?.1),
            5 => f.attrs.extend(read_entry(field.message("AttrEntry")?, names)?),
            7 => read_arg_attrs(field.message("ArgAttrEntry")?, names, &mut f)?,
            _ => {}
        }
    }
    Ok(f)
}

/// Parses an entry of a map from names to names.
fn read_names<'a>(mut entry: WireReader<'a>) -> Result<(&'a str, &'a str)> {
    let (mut key, mut value) = ("", "");
    while let Some(part) = entry.next()? {
        match part.number {
            1 => key = part.text()?,
            2 => value = part.text()?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn read_signature<'a>(mut reader: WireReader<'a>, names: &mut Interner<'a>, f: &mut RawFunction<'a>) -> Result<()> {
    while let Some(field) = reader.next()? {
        match field.number {
            1 => f.name = names.intern(field.text()?),
            2 => f.args.push(read_arg_def(field.message("OpDef.ArgDef")?)?),
            3 => f.results.push(read_arg_def(field.message("OpDef.ArgDef")?)?),
            17 => f.stateful = field.varint()? != 0,
            _ => {}
        }
    }
    Ok(())
}

fn read_arg_def<'a>(mut reader: WireReader<'a>) -> Result<ArgDef<'a>> {
    let mut arg = ArgDef::default();
    while let Some(field) = reader.next()? {
        match field.number {
            1 => arg.name = field.text()?,
            3 => arg.dtype = field.int32()?,
            4 => arg.type_attr = field.text()?,
            5 => arg.number_attr = field.text()?,
            6 => arg.type_list_attr = field.text()?,
            _ => {}
        }
    }
    Ok(arg)
}

fn read_arg_attrs<'a>(mut reader: WireReader<'a>, names: &mut Interner<'a>, f: &mut RawFunction<'a>) -> Result<()> {
    let (mut index, mut attrs) = (0, Vec::new());
    while let Some(field) = reader.next()? {
        match field.number {
            1 => index = field.varint()?,
            2 => {
                let mut map = field.message("ArgAttrs")?;
                while let Some(entry) = map.next()? {
                    attrs.extend(read_entry(entry.message("AttrEntry")?, names)?);
                }
            }
            _ => {}
        }
    }
    f.arg_attrs.insert(index, attrs);
    Ok(())
}

fn read_body<'a>(f: RawFunction<'a>, names: &mut Interner<'a>, results: &Results) -> Result<Function> {
    let mut nodes = Assembler::default();
    let mut args = Vec::new();
    for (i, arg) in f.args.iter().enumerate() {
        args.push(add_arg(&mut nodes, names, &f, i, arg)?);
    }
    for reader in &f.nodes {
        nodes.add(read_node(reader.clone(), names)?)?;
    }
    let port = |node: &Node, rest: &str| named_port(node, rest, results);
    let mut rets = Vec::new();
    for result in &f.results {
        let told = f.rets.get(result.name).copied();
        let told = told
            .ok_or_else(|| Error::user(Code::BadFunction, format!("the result `{}` is not computed", result.name)))?;
        rets.push(nodes.endpoint_of(told, port)?);
    }
    let control_rets = f.control_rets.iter().map(|name| nodes.require_node(name)).collect::<Result<Vec<NodeId>>>()?;
    let ret_names = f.results.iter().map(|r| r.name.into()).collect();
    let (attrs, stateful) = (f.attrs.into(), f.stateful);
    Ok(Function { name: f.name, args, rets, control_rets, ret_names, attrs, stateful, graph: nodes.finish(port)? })
}

/// Adds the `_Arg` node of an argument. List arguments are refused; only TensorFlow 1's gradient functions have them.
fn add_arg<'a>(
    nodes: &mut Assembler<'a>,
    names: &mut Interner<'a>,
    f: &RawFunction<'a>,
    i: usize,
    arg: &ArgDef<'a>,
) -> Result<NodeId> {
    if !arg.number_attr.is_empty() || !arg.type_list_attr.is_empty() {
        return Err(Error::user(
            Code::BadFunction,
            format!("the argument `{}` is a list, and only single tensors are read", arg.name),
        ));
    }
    let dtype = match f.attrs.iter().find(|(name, _)| !arg.type_attr.is_empty() && **name == *arg.type_attr) {
        Some((_, Attr::Type(t))) => *t,
        _ => TfType::from_number(arg.dtype),
    };
    let mut attrs = vec![(names.intern("T"), Attr::Type(dtype)), (names.intern("index"), Attr::Int(i as i64))];
    attrs.extend(f.arg_attrs.get(&(i as u64)).into_iter().flatten().cloned());
    let raw =
        FileNode { name: arg.name, op: names.intern("_Arg"), device: names.intern(""), inputs: Vec::new(), attrs };
    nodes.add(raw)
}

/// The number of the output that `out:1` (or `1`, in graphs from other tools) denotes.
///
/// If the op is not TensorFlow's, each output that its op definition in tfaot names counts as one.
fn named_port(node: &Node, rest: &str, results: &Results) -> Option<u32> {
    let Some((output, index)) = rest.split_once(':') else {
        return rest.parse().ok().or_else(|| output_offset(node, rest, results));
    };
    let index: u32 = index.parse().ok()?;
    output_offset(node, output, results)?.checked_add(index)
}

fn output_offset(node: &Node, output: &str, results: &Results) -> Option<u32> {
    if let Some(names) = results.get(&node.op) {
        return names.iter().position(|n| *n == output).map(|i| i as u32);
    }
    if let Some(range) = opdef::find_def(&node.op).and_then(|def| def.output_range(node, output)) {
        return u32::try_from(range.start).ok();
    }
    let Some(row) = ops::find_op(&node.op) else { return Some(0) };
    let outputs = row.output_names();
    if outputs.len() < 2 {
        return Some(0);
    }
    let found = outputs.iter().position(|name| name.trim_end_matches('*') == output);
    Some(found.unwrap_or(0) as u32)
}
