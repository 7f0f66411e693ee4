//! Disassembly of an object as LLVM's `llvm-objdump` prints it: functions with their instructions and relocations.
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// An instruction.
#[derive(Debug)]
pub struct Instruction {
    pub address: u64,
    pub mnemonic: String,
    /// The operands without the comment behind them.
    pub operands: String,
    /// What a relocation names in one of its operands: a symbol, or a section with an offset.
    pub relocation: Option<String>,
    /// The addresses that operands and comment name, each with the function and the offset in it.
    named: Option<(u64, String)>,
}

impl Instruction {
    /// The address in this object that an operand names.
    pub fn target(&self) -> Option<u64> {
        self.named.as_ref().filter(|_| self.relocation.is_none()).map(|(address, _)| *address)
    }
}

/// The functions of an object, each with its instructions in order.
#[derive(Debug, Default)]
pub struct Listing {
    pub functions: BTreeMap<String, Vec<Instruction>>,
    /// The first address of each function.
    starts: BTreeMap<u64, String>,
}

impl Listing {
    /// The disassembly of a file by `objdump`.
    pub fn of(objdump: &str, file: &Path) -> Listing {
        let mut command = Command::new(objdump);
        command.args(["-d", "-r", "--no-show-raw-insn", "--section=.text"]).arg(file);
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{command:?}");
        Listing::read(&String::from_utf8_lossy(&output.stdout))
    }

    fn read(text: &str) -> Listing {
        let mut listing = Listing::default();
        let mut name = String::new();
        for line in text.lines() {
            if let Some((address, symbol)) = heading(line) {
                name = symbol.to_string();
                listing.starts.insert(address, name.clone());
                listing.functions.insert(name.clone(), Vec::new());
            } else if let Some(of) = listing.functions.get_mut(&name) {
                read_line(line, of);
            }
        }
        listing
    }

    /// The function that begins at an address.
    pub fn function_at(&self, address: u64) -> Option<&str> {
        self.starts.get(&address).map(String::as_str)
    }

    /// The function in this object that an instruction calls, jumps to or takes the address of; an undefined symbol is none.
    pub fn function_of(&self, instruction: &Instruction) -> Option<&str> {
        let Some(relocation) = &instruction.relocation else { return self.function_at(instruction.target()?) };
        match relocation.strip_prefix(".text") {
            Some(offset) => {
                let number = offset.trim_start_matches(['+', '-']).trim_start_matches("0x");
                let number = if number.is_empty() { 0 } else { i64::from_str_radix(number, 16).ok()? };
                let offset = if offset.starts_with('-') { -number } else { number };
                // x86-64 counts from the end of the field
                [offset, offset + 4].into_iter().find_map(|at| self.function_at(u64::try_from(at).ok()?))
            }
            None => self.functions.get_key_value(symbol(relocation)).map(|(name, _)| name.as_str()),
        }
    }
}

/// The symbol of a relocation without what is added to it.
pub fn symbol(relocation: &str) -> &str {
    let end = relocation.rfind(['+', '-']).filter(|&at| relocation[at + 1..].starts_with("0x"));
    &relocation[..end.unwrap_or(relocation.len())]
}

/// `0000000000000170 <m_k2>:`
fn heading(line: &str) -> Option<(u64, &str)> {
    let (address, symbol) = line.strip_suffix(">:")?.split_once(" <")?;
    Some((u64::from_str_radix(address, 16).ok()?, symbol))
}

/// An instruction, or the relocation of the one before.
fn read_line(line: &str, all: &mut Vec<Instruction>) {
    if let Some((_, named)) = line.split_once(":  R_") {
        if let (Some(last), Some(symbol)) = (all.last_mut(), named.split_whitespace().nth(1)) {
            last.relocation = Some(symbol.to_string());
        }
        return;
    }
    let Some((address, rest)) = line.split_once(':') else { return };
    let Ok(address) = u64::from_str_radix(address.trim(), 16) else { return };
    let mut words = rest.trim().splitn(2, ['\t', ' ']);
    let mnemonic = words.next().unwrap_or("").to_string();
    let rest = words.next().unwrap_or("").trim();
    let operands = [" # ", " // ", " <"].iter().fold(rest, |text, comment| text.split(comment).next().unwrap_or(""));
    let operands = operands.trim();
    all.push(Instruction { address, mnemonic, operands: operands.to_string(), relocation: None, named: named(rest) });
}

/// `0x170 <m_k2+0x4>` at the end of a line.
fn named(rest: &str) -> Option<(u64, String)> {
    let (before, symbol) = rest.strip_suffix('>')?.rsplit_once(" <")?;
    let address = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?.strip_prefix("0x")?;
    Some((u64::from_str_radix(address, 16).ok()?, symbol.to_string()))
}
