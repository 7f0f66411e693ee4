//! Parser of a module's functions.
use indexmap::IndexMap;
use std::collections::HashMap;

use super::reader::TextReader;
use super::shards::read_mesh;
use super::tree::{FuncOp, FuncPort, MlirAttr, ModuleTree};
use crate::diag::Result;

/// Parses a module, or functions without a module around them.
pub(super) fn parse(text: &str) -> Result<ModuleTree> {
    let mut r = TextReader::new(text);
    let mut out = ModuleTree { name: String::new(), header: Vec::new(), meshes: IndexMap::new(), all: IndexMap::new() };
    let mut open = 0;
    let mut aliases = HashMap::new();
    while !r.at_end() {
        if r.eat_word("module") {
            if r.eat("@") {
                out.name = r.suffix()?.to_string();
            }
            if r.eat_word("attributes") {
                r.expect("{")?;
                out.header.extend(r.dictionary("}")?.into_iter().filter_map(|(name, value)| device_count(name, value)));
            }
            r.expect("{")?;
            open += 1;
        } else if r.eat_word("func.func") || r.eat_word("func") {
            function(&mut r, &mut out)?;
        } else if r.eat_word("sdy.mesh") {
            r.expect("@")?;
            let name = r.suffix()?.to_string();
            r.expect("=")?;
            out.meshes.insert(name.clone(), read_mesh(&name, r.skip_bracketed()?)?);
            if r.eat("{") {
                r.dictionary("}")?;
            }
            r.location()?;
        } else if open > 0 && r.eat("}") {
            open -= 1;
            r.location()?;
        } else if r.eat("#") {
            let alias = format!("#{}", r.suffix()?);
            r.expect("=")?;
            if r.peek_word() == "loc" {
                aliases.extend(r.location()?.map(|name| (alias, name)));
            } else {
                r.attribute()?;
            }
        } else {
            return Err(r.error("expects a function of StableHLO"));
        }
    }
    // An alias may be defined behind the functions that use it.
    for port in out.all.values_mut().flat_map(|f| &mut f.args) {
        port.name = port
            .name
            .take()
            .and_then(|name| if name.starts_with('#') { aliases.get(&name).cloned() } else { Some(name) });
    }
    match (open, out.all.is_empty()) {
        (0, false) => Ok(out),
        (0, true) => Err(r.error("there is no function with a body")),
        _ => Err(r.error("a module is not closed")),
    }
}

/// Module attribute that gives a number of devices, by HLO's name.
pub(super) fn device_count(name: String, value: MlirAttr) -> Option<(String, String)> {
    let own = match name.as_str() {
        "mhlo.num_replicas" => "replica_count",
        "mhlo.num_partitions" => "num_partitions",
        _ => return None,
    };
    match value {
        MlirAttr::Int(n, _) if n > 1 => Some((own.to_string(), n.to_string())),
        _ => None,
    }
}

/// Parses `public @main(%a: T {...}) -> (U {...}) attributes {...} {...}`.
fn function(r: &mut TextReader, out: &mut ModuleTree) -> Result<()> {
    let _ = r.eat_word("public") || r.eat_word("private") || r.eat_word("nested");
    r.expect("@")?;
    let name = r.suffix()?.to_string();
    if name.is_empty() || out.all.contains_key(&name) {
        return Err(r.error(format!("the function `{name}` exists already")));
    }
    r.expect("(")?;
    let declared = !r.is_next("%") && !r.is_next(")");
    let mut made = FuncOp::default();
    if declared {
        r.list(")", TextReader::result)?;
    } else {
        for (arg, shape, port) in r.list(")", TextReader::argument)? {
            made.body.args.push((arg, shape));
            made.args.push(port);
        }
    }
    if r.eat("->") {
        if r.eat("(") { made.results = r.list(")", TextReader::result)? } else { drop(r.ty()?) }
    }
    if r.eat_word("attributes") {
        r.expect("{")?;
        r.dictionary("}")?;
    }
    if r.eat("{") {
        if declared {
            return Err(r.error("the arguments have no names"));
        }
        made.body = r.block(std::mem::take(&mut made.body.args))?;
        out.all.insert(name, made);
    }
    r.location().map(drop)
}

impl TextReader<'_> {
    /// Parses `T {...}`.
    fn result(&mut self) -> Result<FuncPort> {
        self.ty()?;
        let attrs = if self.eat("{") { self.dictionary("}")? } else { Vec::new() };
        Ok(FuncPort { name: None, attrs })
    }
}
