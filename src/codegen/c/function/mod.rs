//! A function of the text as a function in C.
mod control;
mod signature;
mod structure;

pub use signature::{CFunction, Names, parameter, result};

use super::instruction;
use super::liveness::{IrLine, Mention, is_pure, mentions, stored, without_dead};
use super::text::{IrFunction, IrOperand, Reader, Type};
use super::types::scalar;
use super::values::{CValue, CValues, UsedTypes};
use crate::diag::{Error, Result};
use control::{Phi, phi};
use std::collections::{HashMap, HashSet};
use structure::SourceLine;

/// A hint to bring memory near.
const PREFETCH: &str = "call void @llvm.prefetch";

/// The uses of a value.
#[derive(Default, Clone)]
struct Uses {
    count: usize,
    /// Blocks with a use.
    blocks: HashSet<usize>,
    /// Whether it is called.
    is_called: bool,
    /// Uses that put it into all lanes of a vector.
    spreads: usize,
    /// Whether it is used for anything but a load or a store of a whole variable.
    escapes: bool,
}

/// A function that is being written.
pub struct Writer<'a> {
    pub values: CValues<'a>,
    pub names: &'a Names,
    uses: HashMap<String, Uses>,
    /// The block in which each value is made.
    home: HashMap<String, usize>,
    /// The values that each block begins with, by the block that it is entered from.
    phis: HashMap<String, Vec<Phi>>,
    /// The instructions that make additions and comparisons, from which the rounds of loops follow.
    counters: HashMap<String, String>,
    /// The condition under which each block leads to the one behind it.
    tests: HashMap<String, String>,
    lines: Vec<SourceLine>,
    /// Variables that stand at the begin of the function: their types and names.
    hoisted: Vec<(String, String)>,
    /// Variables that nothing reads.
    unread: HashSet<String>,
    /// The block that is being written.
    block: String,
    /// The block behind it.
    next: Option<String>,
    /// Bytes of variables that are in memory.
    pub stack: u64,
    /// The first lane of vectors that begin with a single value.
    pub first: HashMap<String, String>,
    count: usize,
}

/// The name of a value in C.
pub fn local(name: &str) -> String {
    let is_numbered = name.len() > 1 && name[1..].starts_with(|c: char| c.is_ascii_digit());
    let own = name.replace(['.', '-'], "_");
    if is_numbered && name.starts_with(['t', 'b', 'r', 's', 'l']) { own } else { format!("v_{own}") }
}

impl<'a> Writer<'a> {
    /// The C text of a function, and the bytes of its arrays on the stack.
    pub fn write(function: &IrFunction, names: &'a Names, types: &'a mut UsedTypes) -> Result<(String, u64)> {
        let values = CValues { types, known: HashMap::new(), constants: Vec::new() };
        let mut writer = Writer {
            values,
            names,
            uses: HashMap::new(),
            home: HashMap::new(),
            phis: HashMap::new(),
            lines: Vec::new(),
            hoisted: Vec::new(),
            counters: HashMap::new(),
            tests: HashMap::new(),
            unread: HashSet::new(),
            block: "entry".to_string(),
            next: None,
            stack: 0,
            first: HashMap::new(),
            count: 0,
        };
        let signature = names.functions.get(&function.name).ok_or_else(|| Error::internal("C", "unknown function"))?;
        writer.look(function)?;
        writer.parameters(function, signature);
        writer.body(function)?;
        let linkage = if function.is_internal { "static " } else { "" };
        let own: Vec<String> = function.parameters.iter().map(|(_, name)| format!("p_{}", local(name))).collect();
        let mut out = format!("{linkage}{} {{\n", signature.text(&own));
        let text = structure::text(&writer.lines, control::label);
        let body: HashSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for (i, (ty, text)) in writer.values.constants.iter().enumerate() {
            if body.contains(format!("c{i}").as_str()) {
                out += &format!("  const {ty} c{i} = {text};\n");
            }
        }
        for (ty, name) in &writer.hoisted {
            out += &format!("  {ty} {name};\n");
        }
        Ok((out + &text + "}\n", writer.stack))
    }

    /// Notes uses, blocks and what blocks begin with.
    fn look(&mut self, function: &IrFunction) -> Result<()> {
        let mut block = 0;
        let mut lines = Vec::new();
        let mut label = "entry".to_string();
        let mut numbers: HashMap<String, usize> = HashMap::from([(label.clone(), 0)]);
        for line in &function.lines {
            if let Some(name) = line.strip_suffix(':') {
                let last = lines.last().map_or("", |line: &IrLine| line.right);
                let test = last.strip_prefix("br i1 %").and_then(|rest| rest.split_once(&format!(", label %{name},")));
                self.tests.extend(test.map(|(test, _)| (label.clone(), test.to_string())));
                block += 1;
                label = name.to_string();
                numbers.insert(label.clone(), block);
                continue;
            }
            let (name, right) = match line.strip_prefix('%').and_then(|rest| rest.split_once(" = ")) {
                Some((name, right)) => (Some(name), right),
                None => (None, *line),
            };
            // C has no such hint, and the address may lie outside of the array
            if right.starts_with(PREFETCH) {
                continue;
            }
            if let Some(name) = name {
                self.home.insert(name.to_string(), block);
                if let Some(rest) = right.strip_prefix("phi ") {
                    self.phis.entry(label.clone()).or_default().push(phi(name, rest)?);
                } else if right.starts_with("add ") || right.starts_with("icmp ") {
                    self.counters.insert(name.to_string(), right.to_string());
                }
            }
            lines.push(IrLine { name, right, block });
        }
        self.unread = without_dead(&mut lines);
        lines.iter().for_each(|line| self.note(line.right, line.block));
        // what a phi takes is used where its edge begins
        let edges: Vec<(String, usize)> = self
            .phis
            .values()
            .flatten()
            .flat_map(|phi| &phi.operands)
            .filter_map(|(operand, from)| match operand {
                IrOperand::Local(name) => Some((name.clone(), numbers.get(from).copied().unwrap_or(usize::MAX))),
                _ => None,
            })
            .collect();
        for (name, block) in edges {
            self.uses.entry(name).or_default().blocks.insert(block);
        }
        Ok(())
    }

    /// Notes the uses of a line.
    fn note(&mut self, right: &str, block: usize) {
        let is_phi = right.starts_with("phi ");
        for Mention { before, name, after } in mentions(right) {
            let uses = self.uses.entry(name.to_string()).or_default();
            uses.count += 1;
            if !is_phi {
                uses.blocks.insert(block);
            }
            uses.spreads += usize::from(right.starts_with("shufflevector ") && right.ends_with(" zeroinitializer"));
            uses.is_called |= after.starts_with('(');
            let is_load = right.starts_with("load ") && before.ends_with("ptr ");
            let is_store = right.starts_with("store ") && before.ends_with(", ptr ");
            uses.escapes |= !is_load && !is_store;
        }
    }

    fn parameters(&mut self, function: &IrFunction, signature: &CFunction) {
        for ((ty, name), is_called) in function.parameters.iter().zip(&signature.is_called) {
            let own = local(name);
            self.home.insert(name.clone(), 0);
            let value = CValue { ty: ty.clone(), mask: 0, text: own.clone() };
            self.values.known.insert(name.clone(), value);
            if self.uses.get(name).is_none_or(|uses| uses.count == 0) {
                self.line(format!("(void)p_{own};"));
                continue;
            }
            let c_type = if *is_called { "tf_task".to_string() } else { scalar(ty) };
            let cast = if *ty == Type::Pointer { String::new() } else { format!("({c_type})") };
            self.line(format!("{c_type} {own} = {cast}p_{own};"));
        }
    }

    fn body(&mut self, function: &IrFunction) -> Result<()> {
        let labels: Vec<String> =
            function.lines.iter().filter_map(|line| line.strip_suffix(':')).map(str::to_string).collect();
        let mut next = labels.iter();
        self.next = next.next().cloned();
        for line in &function.lines {
            if let Some(name) = line.strip_suffix(':') {
                if name == "entry"
                    && self.lines.iter().all(|line| matches!(line, SourceLine::Text(_)))
                    && self.block == "entry"
                {
                    self.next = next.next().cloned();
                    continue;
                }
                self.block = name.to_string();
                self.next = next.next().cloned();
                self.lines.push(SourceLine::Label(name.to_string()));
                self.begin(name);
                continue;
            }
            self.instruction(line)?;
        }
        Ok(())
    }

    /// The values that a block begins with.
    fn begin(&mut self, label: &str) {
        let own = self.phis.get(label).cloned().unwrap_or_default();
        for Phi { name, ty, .. } in &own {
            let value = CValue { ty: ty.clone(), mask: 0, text: local(name) };
            let c_type = self.values.types.name(&value);
            self.hoisted.push((c_type.clone(), value.text.clone()));
            if own.len() > 1 {
                self.hoisted.push((c_type, format!("{}_in", value.text)));
                self.line(format!("{0} = {0}_in;", value.text));
            }
            self.values.known.insert(name.clone(), value);
        }
    }

    fn instruction(&mut self, line: &str) -> Result<()> {
        if stored(line, &self.unread).is_some() || line.starts_with(PREFETCH) {
            return Ok(());
        }
        let (name, right) = match line.strip_prefix('%').and_then(|rest| rest.split_once(" = ")) {
            Some((name, right)) => (Some(name), right),
            None => (None, line),
        };
        let mut reader = Reader::new(right);
        let op = reader.word();
        match (op, name) {
            ("phi", _) => Ok(()),
            ("br", _) => self.branch(&mut reader),
            ("switch", _) => self.switch(&mut reader),
            ("ret", _) => self.ret(&mut reader),
            ("alloca", Some(name)) => self.alloca(&mut reader, name),
            (_, Some(name)) if is_pure(right) && self.uses(name) == 0 => Ok(()),
            _ => instruction::write(self, op, &mut reader, name),
        }
    }

    /// How often a value is used.
    pub fn uses(&self, name: &str) -> usize {
        self.uses.get(name).map_or(0, |uses| uses.count)
    }

    /// Whether a vector is only there to have its first lane put into all lanes of others.
    pub fn is_only_spread(&self, name: &str) -> bool {
        self.uses.get(name).is_some_and(|uses| uses.count == uses.spreads)
    }

    /// A name that no other value has.
    pub fn fresh(&mut self, prefix: &str) -> String {
        self.count += 1;
        format!("{prefix}{}", self.count)
    }

    /// Whether a value is called.
    pub fn is_called(&self, name: &str) -> bool {
        self.uses.get(name).is_some_and(|uses| uses.is_called)
    }

    pub fn line(&mut self, text: impl Into<String>) {
        self.lines.push(SourceLine::Text(text.into()));
    }

    /// A new variable of this type, which text behind this gives its value.
    pub fn place(&mut self, name: &str, ty: &Type, mask: u32) -> CValue {
        let value = CValue { ty: ty.clone(), mask, text: local(name) };
        let c_type = self.values.types.name(&value);
        self.declare(name, &c_type, &value.text.clone());
        self.values.known.insert(name.to_string(), value.clone());
        value
    }

    fn declare(&mut self, name: &str, c_type: &str, text: &str) {
        if self.is_far(name) {
            self.hoisted.push((c_type.to_string(), text.to_string()));
        } else {
            self.line(format!("{c_type} {text};"));
        }
    }

    /// Whether a value is used in another block than that where it is made.
    fn is_far(&self, name: &str) -> bool {
        let home = self.home.get(name).copied().unwrap_or(0);
        self.uses.get(name).is_some_and(|uses| uses.blocks.iter().any(|block| *block != home))
    }

    /// A new value, an expression.
    pub fn assign(&mut self, name: &str, ty: &Type, mask: u32, text: &str) {
        let value = CValue { ty: ty.clone(), mask, text: local(name) };
        let c_type = if self.is_called(name) { "tf_function".to_string() } else { self.values.types.name(&value) };
        if self.is_far(name) {
            self.hoisted.push((c_type, value.text.clone()));
            self.line(format!("{} = {text};", value.text));
        } else {
            self.line(
                format!("const {c_type} {} = {text};", value.text).replace("const unsigned char *", "unsigned char *"),
            );
        }
        self.values.known.insert(name.to_string(), value);
    }

    /// A constant or a function as a pointer.
    pub fn global(&self, name: &str) -> Result<String> {
        if let Some(signature) = self.names.functions.get(name) {
            return Ok(signature.name.clone());
        }
        let name = self.names.globals.get(name).ok_or_else(|| Error::internal("C", format!("`@{name}` is unknown")))?;
        Ok(format!("(unsigned char *){name}"))
    }

    fn alloca(&mut self, reader: &mut Reader, name: &str) -> Result<()> {
        let ty = reader.ty()?;
        let own = local(name);
        let value = match &ty {
            Type::Array(count, element) => {
                let (c_type, words) = match **element {
                    Type::Pointer => ("void *", *count),
                    _ => ("uint64_t ", (count * u64::from(element.bits())).div_ceil(64)),
                };
                self.stack += 8 * words;
                self.hoisted.push((c_type.to_string(), format!("{own}_m[{words}]")));
                self.line(format!("unsigned char *{own} = (unsigned char *){own}_m;"));
                CValue { ty: Type::Pointer, mask: 0, text: own }
            }
            ty => {
                let held = CValue { ty: ty.clone(), mask: 8, text: own.clone() };
                let held = CValue { mask: if held.is_mask() { 8 } else { 0 }, ..held };
                let c_type = self.values.types.name(&held);
                let zero = self.values.constant(ty, &IrOperand::Zero, 8)?.text;
                let is_variable = self.uses.get(name).is_none_or(|uses| !uses.escapes);
                if self.uses(name) == 0 {
                    return Ok(());
                }
                if is_variable {
                    self.line(format!("{c_type} {own} = {zero};"));
                    held
                } else {
                    self.line(format!("{c_type} {own}_m = {zero};"));
                    self.line(format!("unsigned char *{own} = (unsigned char *)&{own}_m;"));
                    CValue { ty: Type::Pointer, mask: 0, text: own }
                }
            }
        };
        self.values.known.insert(name.to_string(), value);
        Ok(())
    }
}
