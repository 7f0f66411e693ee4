//! A function of the text as a function in C.
mod control;
mod signature;
mod structure;

pub use signature::{CPrototype, SymbolNames, parameter_type, result_type};

use super::instruction;
use super::liveness::{IrLine, ValueMention, is_pure, mentions, remove_dead_lines, stored_variable};
use super::text::{IrFunction, IrOperand, IrReader, IrType};
use super::types::c_scalar_type;
use super::values::{CValue, CValues, UsedTypes};
use crate::diag::{Error, Result};
use control::{Phi, parse_phi};
use std::collections::{HashMap, HashSet};
use structure::SourceLine;

/// Start of the text of a prefetch call, which C leaves out.
const PREFETCH: &str = "call void @llvm.prefetch";

/// The uses of a value.
#[derive(Default, Clone)]
struct Uses {
    count: usize,
    /// Blocks with a use.
    blocks: HashSet<usize>,
    /// Whether the value is called as a function.
    is_called: bool,
    /// Number of uses that broadcast the value to all lanes of a vector.
    spreads: usize,
    /// Whether the address of a stack variable is used for anything but loads and stores of the whole variable.
    escapes: bool,
}

/// Writer of one function in C, from its LLVM text.
pub struct FunctionWriter<'a> {
    pub values: CValues<'a>,
    pub names: &'a SymbolNames,
    uses: HashMap<String, Uses>,
    /// The block that defines each value.
    home: HashMap<String, usize>,
    /// The phis of each block, by the label of the block.
    phis: HashMap<String, Vec<Phi>>,
    /// The additions and comparisons by the value that they define, from which iteration counts of loops follow.
    counters: HashMap<String, String>,
    /// The condition under which each block continues with the next one.
    tests: HashMap<String, String>,
    lines: Vec<SourceLine>,
    /// Variables declared at the beginning of the function: their types and names.
    hoisted: Vec<(String, String)>,
    /// Variables that are never read.
    unread: HashSet<String>,
    /// The block being written.
    block: String,
    /// The block after it in the text.
    next: Option<String>,
    /// Size in bytes of the function's arrays on the stack.
    pub stack: u64,
    /// The scalar in the first lane of vectors built by inserting it.
    pub first: HashMap<String, String>,
    count: usize,
}

/// The C identifier of an LLVM value.
pub fn local_name(name: &str) -> String {
    let is_numbered = name.len() > 1 && name[1..].starts_with(|c: char| c.is_ascii_digit());
    let own = name.replace(['.', '-'], "_");
    if is_numbered && name.starts_with(['t', 'b', 'r', 's', 'l']) { own } else { format!("v_{own}") }
}

impl<'a> FunctionWriter<'a> {
    /// Writes a function in C; returns its text and the bytes of its arrays on the stack.
    pub fn write_function(
        function: &IrFunction,
        names: &'a SymbolNames,
        types: &'a mut UsedTypes,
    ) -> Result<(String, u64)> {
        let values = CValues { types, known: HashMap::new(), constants: Vec::new() };
        let mut writer = FunctionWriter {
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
        let own: Vec<String> = function.parameters.iter().map(|(_, name)| format!("p_{}", local_name(name))).collect();
        let mut out = format!("{linkage}{} {{\n", signature.text(&own));
        let text = structure::structured_text(&writer.lines, control::label_name);
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

    /// Records the uses of values, the blocks, and their phis.
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
                    self.phis.entry(label.clone()).or_default().push(parse_phi(name, rest)?);
                } else if right.starts_with("add ") || right.starts_with("icmp ") {
                    self.counters.insert(name.to_string(), right.to_string());
                }
            }
            lines.push(IrLine { name, right, block });
        }
        self.unread = remove_dead_lines(&mut lines);
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

    /// Records the uses of values in one line.
    fn note(&mut self, right: &str, block: usize) {
        let is_phi = right.starts_with("phi ");
        for ValueMention { before, name, after } in mentions(right) {
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

    fn parameters(&mut self, function: &IrFunction, signature: &CPrototype) {
        for ((ty, name), is_called) in function.parameters.iter().zip(&signature.is_called) {
            let own = local_name(name);
            self.home.insert(name.clone(), 0);
            let value = CValue { ty: ty.clone(), mask: 0, text: own.clone() };
            self.values.known.insert(name.clone(), value);
            if self.uses.get(name).is_none_or(|uses| uses.count == 0) {
                self.push_line(format!("(void)p_{own};"));
                continue;
            }
            let c_type = if *is_called { "tf_task".to_string() } else { c_scalar_type(ty) };
            let cast = if *ty == IrType::Pointer { String::new() } else { format!("({c_type})") };
            self.push_line(format!("{c_type} {own} = {cast}p_{own};"));
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

    /// Begins a block: writes its label and assigns its phis.
    fn begin(&mut self, label: &str) {
        let own = self.phis.get(label).cloned().unwrap_or_default();
        for Phi { name, ty, .. } in &own {
            let value = CValue { ty: ty.clone(), mask: 0, text: local_name(name) };
            let c_type = self.values.types.type_of(&value);
            self.hoisted.push((c_type.clone(), value.text.clone()));
            if own.len() > 1 {
                self.hoisted.push((c_type, format!("{}_in", value.text)));
                self.push_line(format!("{0} = {0}_in;", value.text));
            }
            self.values.known.insert(name.clone(), value);
        }
    }

    fn instruction(&mut self, line: &str) -> Result<()> {
        if stored_variable(line, &self.unread).is_some() || line.starts_with(PREFETCH) {
            return Ok(());
        }
        let (name, right) = match line.strip_prefix('%').and_then(|rest| rest.split_once(" = ")) {
            Some((name, right)) => (Some(name), right),
            None => (None, line),
        };
        let mut reader = IrReader::new(right);
        let op = reader.read_word();
        match (op, name) {
            ("phi", _) => Ok(()),
            ("br", _) => self.write_branch(&mut reader),
            ("ret", _) => self.write_ret(&mut reader),
            ("alloca", Some(name)) => self.alloca(&mut reader, name),
            (_, Some(name)) if is_pure(right) && self.use_count(name) == 0 => Ok(()),
            _ => instruction::write_instruction(self, op, &mut reader, name),
        }
    }

    /// Number of uses of a value.
    pub fn use_count(&self, name: &str) -> usize {
        self.uses.get(name).map_or(0, |uses| uses.count)
    }

    /// Whether a vector is only used to broadcast its first lane.
    pub fn is_only_broadcast(&self, name: &str) -> bool {
        self.uses.get(name).is_some_and(|uses| uses.count == uses.spreads)
    }

    /// A new C identifier with this prefix, unique in the function.
    pub fn fresh_name(&mut self, prefix: &str) -> String {
        self.count += 1;
        format!("{prefix}{}", self.count)
    }

    /// Whether a value is a function pointer that the function calls.
    pub fn is_function_pointer(&self, name: &str) -> bool {
        self.uses.get(name).is_some_and(|uses| uses.is_called)
    }

    pub fn push_line(&mut self, text: impl Into<String>) {
        self.lines.push(SourceLine::Text(text.into()));
    }

    /// Declares a C variable for a value, to which later text assigns.
    pub fn declare_variable(&mut self, name: &str, ty: &IrType, mask: u32) -> CValue {
        let value = CValue { ty: ty.clone(), mask, text: local_name(name) };
        let c_type = self.values.types.type_of(&value);
        self.declare(name, &c_type, &value.text.clone());
        self.values.known.insert(name.to_string(), value.clone());
        value
    }

    fn declare(&mut self, name: &str, c_type: &str, text: &str) {
        if self.is_far(name) {
            self.hoisted.push((c_type.to_string(), text.to_string()));
        } else {
            self.push_line(format!("{c_type} {text};"));
        }
    }

    /// Whether a value is used outside the block that defines it.
    fn is_far(&self, name: &str) -> bool {
        let home = self.home.get(name).copied().unwrap_or(0);
        self.uses.get(name).is_some_and(|uses| uses.blocks.iter().any(|block| *block != home))
    }

    /// Defines a value as a C expression.
    pub fn assign(&mut self, name: &str, ty: &IrType, mask: u32, text: &str) {
        let value = CValue { ty: ty.clone(), mask, text: local_name(name) };
        let c_type =
            if self.is_function_pointer(name) { "tf_function".to_string() } else { self.values.types.type_of(&value) };
        if self.is_far(name) {
            self.hoisted.push((c_type, value.text.clone()));
            self.push_line(format!("{} = {text};", value.text));
        } else {
            self.push_line(
                format!("const {c_type} {} = {text};", value.text).replace("const unsigned char *", "unsigned char *"),
            );
        }
        self.values.known.insert(name.to_string(), value);
    }

    /// The C expression of a pointer to a global constant or a function.
    pub fn global_pointer(&self, name: &str) -> Result<String> {
        if let Some(signature) = self.names.functions.get(name) {
            return Ok(signature.name.clone());
        }
        let name = self.names.globals.get(name).ok_or_else(|| Error::internal("C", format!("`@{name}` is unknown")))?;
        Ok(format!("(unsigned char *){name}"))
    }

    fn alloca(&mut self, reader: &mut IrReader, name: &str) -> Result<()> {
        let ty = reader.read_type()?;
        let own = local_name(name);
        let value = match &ty {
            IrType::Array(count, element) => {
                let (c_type, words) = match **element {
                    IrType::Pointer => ("void *", *count),
                    _ => ("uint64_t ", (count * u64::from(element.bits())).div_ceil(64)),
                };
                self.stack += 8 * words;
                self.hoisted.push((c_type.to_string(), format!("{own}_m[{words}]")));
                self.push_line(format!("unsigned char *{own} = (unsigned char *){own}_m;"));
                CValue { ty: IrType::Pointer, mask: 0, text: own }
            }
            ty => {
                let held = CValue { ty: ty.clone(), mask: 8, text: own.clone() };
                let held = CValue { mask: if held.is_mask() { 8 } else { 0 }, ..held };
                let c_type = self.values.types.type_of(&held);
                let zero = self.values.constant(ty, &IrOperand::Zero, 8)?.text;
                let is_variable = self.uses.get(name).is_none_or(|uses| !uses.escapes);
                if self.use_count(name) == 0 {
                    return Ok(());
                }
                if is_variable {
                    self.push_line(format!("{c_type} {own} = {zero};"));
                    held
                } else {
                    self.push_line(format!("{c_type} {own}_m = {zero};"));
                    self.push_line(format!("unsigned char *{own} = (unsigned char *)&{own}_m;"));
                    CValue { ty: IrType::Pointer, mask: 0, text: own }
                }
            }
        };
        self.values.known.insert(name.to_string(), value);
        Ok(())
    }
}
