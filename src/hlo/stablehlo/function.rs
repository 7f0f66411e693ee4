//! A module's functions.
use indexmap::IndexMap;

use super::attribute::Attr;
use super::operation::{Operation, Region};
use super::reader::Reader;
use crate::diag::{Code, Result};

/// A module before its operations are understood.
pub(super) struct Functions {
    /// Its name; empty where it has none.
    pub name: String,
    /// How many replicas and partitions it is for, by HLO's names, where that is not one.
    pub header: Vec<(String, String)>,
    /// Functions with a body, in the order of the text.
    pub all: IndexMap<String, Region>,
}

/// Reads a module, or functions without one around them.
pub(super) fn parse(text: &str) -> Result<Functions> {
    let mut r = Reader::new(text);
    let mut out = Functions { name: String::new(), header: Vec::new(), all: IndexMap::new() };
    let mut open = 0;
    while !r.at_end() {
        if r.eat_word("module") {
            if r.eat("@") {
                out.name = r.suffix()?.to_string();
            }
            if r.eat_word("attributes") {
                r.expect("{")?;
                out.header.extend(r.dictionary("}")?.into_iter().filter_map(device_count));
            }
            r.expect("{")?;
            open += 1;
        } else if r.eat_word("func.func") || r.eat_word("func") {
            function(&mut r, &mut out)?;
        } else if open > 0 && r.eat("}") {
            open -= 1;
            r.location()?;
        } else if r.eat("#") {
            r.suffix()?;
            r.expect("=")?;
            if r.at("loc") { r.location()? } else { drop(r.attribute()?) }
        } else {
            return Err(r.error("expects a function of StableHLO"));
        }
    }
    match (open, out.all.is_empty()) {
        (0, false) => Ok(out),
        (0, true) => Err(r.error("there is no function with a body")),
        _ => Err(r.error("a module is not closed")),
    }
}

/// The attribute of a module that says how many devices run it.
fn device_count((name, value): (String, Attr)) -> Option<(String, String)> {
    let own = match name.as_str() {
        "mhlo.num_replicas" => "replica_count",
        "mhlo.num_partitions" => "num_partitions",
        _ => return None,
    };
    match value {
        Attr::Int(n) if n > 1 => Some((own.to_string(), n.to_string())),
        _ => None,
    }
}

/// `public @main(%a: T {...}) -> (U {...}) attributes {...} {...}`.
fn function(r: &mut Reader, out: &mut Functions) -> Result<()> {
    let _ = r.eat_word("public") || r.eat_word("private") || r.eat_word("nested");
    r.expect("@")?;
    let name = r.suffix()?.to_string();
    if name.is_empty() || out.all.contains_key(&name) {
        return Err(r.error(format!("the function `{name}` exists already")));
    }
    r.expect("(")?;
    let declared = !r.at("%") && !r.at(")");
    let args = if declared {
        r.list(")", Reader::result)?;
        Vec::new()
    } else {
        r.list(")", Reader::argument)?
    };
    if r.eat("->") {
        if r.eat("(") { drop(r.list(")", Reader::result)?) } else { drop(r.ty()?) }
    }
    if r.eat_word("attributes") {
        r.expect("{")?;
        r.dictionary("}")?;
    }
    if r.eat("{") {
        if declared {
            return Err(r.error("the arguments have no names"));
        }
        let body = r.block(args)?;
        out.all.insert(name, body);
    }
    r.location()
}

impl Reader<'_> {
    /// `T {...}`.
    fn result(&mut self) -> Result<()> {
        self.ty()?;
        if self.eat("{") {
            self.dictionary("}")?;
        }
        Ok(())
    }
}

/// The function that `op` calls.
pub(super) fn callee(op: &Operation) -> Option<&str> {
    let names: &[&str] = match op.name.as_str() {
        "call" | "func.call" => &["callee"],
        "stablehlo.composite" => &["decomposition"],
        _ => return None,
    };
    match op.attr(names) {
        Some(Attr::Symbol(name)) => Some(name),
        _ => None,
    }
}

/// The functions that a region calls.
pub(super) fn callees<'a>(region: &'a Region, out: &mut Vec<&'a str>) {
    for op in &region.ops {
        out.extend(callee(op));
        op.regions.iter().for_each(|inner| callees(inner, out));
    }
}

impl Functions {
    /// What `entry` calls before those that call it, the entry last.
    ///
    /// Errors: `Code::HloSyntax` for functions that are missing, `Code::HloUnsupported` for those that call themselves.
    pub fn order(&self, entry: &str) -> Result<Vec<&str>> {
        let refuse = |code, message: String| Err(crate::diag::Error::user(code, message));
        let called = |name: &str| {
            let mut all = Vec::new();
            if let Some(region) = self.all.get(name) {
                callees(region, &mut all);
            }
            all
        };
        let mut state: IndexMap<&str, bool> = IndexMap::new();
        let mut done = Vec::new();
        let Some((start, _)) = self.all.get_key_value(entry) else {
            return refuse(Code::HloSyntax, format!("there is no function `{entry}`"));
        };
        let mut stack = vec![(start.as_str(), called(start))];
        state.insert(start, false);
        while let Some((name, rest)) = stack.last_mut() {
            match rest.pop() {
                None => {
                    state.insert(name, true);
                    done.push(*name);
                    stack.pop();
                }
                Some(next) => match (self.all.get_key_value(next), state.get(next)) {
                    (None, _) => return refuse(Code::HloSyntax, format!("there is no function `{next}`")),
                    (_, Some(true)) => {}
                    (_, Some(false)) => {
                        return refuse(Code::HloUnsupported, format!("the function `{next}` calls itself"));
                    }
                    (Some((key, _)), None) => {
                        state.insert(key, false);
                        stack.push((key, called(key)));
                    }
                },
            }
        }
        Ok(done)
    }
}
