//! The bytes of stack that machine code takes, followed instruction by instruction along every path of a function.
use super::listing::{Instruction, Listing};
use std::collections::{BTreeMap, HashMap};

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86,
    Aarch64,
}

/// The stack at an instruction: bytes below the caller's frame, and those at the frame pointer, if it was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Depth {
    bytes: i64,
    at_frame_pointer: Option<i64>,
    /// Those below an address that is about to be aligned.
    unaligned: Option<i64>,
}

/// Where an instruction leads.
#[derive(Debug, PartialEq, Eq)]
enum Flow {
    Next,
    /// To an address, and on to the next instruction too where it is conditional.
    Jump {
        to: u64,
        is_conditional: bool,
    },
    /// To an address that a register holds.
    Indirect,
    Return,
}

/// A function that another one calls, jumps to or takes the address of.
#[derive(Debug)]
pub struct NamedFunction {
    name: String,
    /// The bytes of stack there.
    bytes: i64,
    /// Whether its address is taken, so that what is called next may call it.
    is_passed: bool,
}

/// The frames of one function.
#[derive(Debug, Default)]
pub struct Frames {
    /// The most bytes, with the return address where the machine puts it on the stack.
    pub most: i64,
    pub calls: Vec<NamedFunction>,
    /// Addresses of calls through registers.
    pub indirect: Vec<u64>,
}

/// Follows a function of a listing. Panics at an instruction that changes the stack in a way that is not known.
pub fn frames(listing: &Listing, name: &str, machine: Machine) -> Frames {
    let code = &listing.functions[name];
    let places: HashMap<u64, usize> = code.iter().enumerate().map(|(i, one)| (one.address, i)).collect();
    let mut frames = Frames::default();
    let start = Depth { bytes: if machine == Machine::X86 { 8 } else { 0 }, at_frame_pointer: None, unaligned: None };
    let mut known: BTreeMap<usize, Depth> = BTreeMap::new();
    let mut open = vec![(0, start)];
    let mut through_table: Option<Depth> = None;
    let is_padding = |i: usize| code[i].mnemonic.starts_with("nop") || code[i].mnemonic == "int3";
    loop {
        let unseen = || (0..code.len()).find(|i| !known.contains_key(i) && !is_padding(*i));
        let Some((i, depth)) = open.pop().or_else(|| Some((unseen()?, through_table?))) else { break };
        let Some(one) = code.get(i) else { panic!("{name} ends without a return") };
        if let Some(before) = known.insert(i, depth) {
            assert_eq!(before.bytes, depth.bytes, "{name}: two depths at {:x}", one.address);
            continue;
        }
        let depth = stepped(one, depth, machine).unwrap_or_else(|| panic!("{name}: {one:?} changes the stack"));
        assert!(depth.bytes >= 0, "{name}: {one:?} takes from the caller's frame");
        frames.most = frames.most.max(depth.bytes);
        if is_indirect_call(one, machine) {
            frames.indirect.push(one.address);
        }
        let flow = flow(one, machine);
        let leaves = matches!(flow, Flow::Jump { to, .. } if !places.contains_key(&to) || one.relocation.is_some());
        if let Some(other) = listing.function_of(one).filter(|other| *other != name || is_call(one, machine)) {
            let bytes = depth.bytes - if leaves { start.bytes } else { 0 };
            let is_passed = flow == Flow::Next && !is_call(one, machine);
            frames.calls.push(NamedFunction { name: other.to_string(), bytes, is_passed });
        }
        match flow {
            Flow::Return => assert_eq!(depth.bytes, start.bytes, "{name} returns at {:x} with a frame", one.address),
            Flow::Next => open.push((i + 1, depth)),
            Flow::Jump { is_conditional, .. } if leaves => {
                assert_eq!(depth.bytes, start.bytes, "{name} leaves at {:x} with a frame", one.address);
                open.extend(is_conditional.then_some((i + 1, depth)));
            }
            Flow::Jump { to, is_conditional } => {
                open.push((places[&to], depth));
                open.extend(is_conditional.then_some((i + 1, depth)));
            }
            // the cases of a table have the depth of the jump
            Flow::Indirect if has_table(&code[i.saturating_sub(12)..i]) => through_table = Some(depth),
            Flow::Indirect => {
                frames.indirect.push(one.address);
                assert_eq!(depth.bytes, start.bytes, "{name} leaves at {:x} with a frame", one.address);
            }
        }
    }
    frames
}

/// Whether a table of jumps is read before an indirect jump.
fn has_table(before: &[Instruction]) -> bool {
    before.iter().any(|one| one.relocation.as_ref().is_some_and(|r| r.contains("rodata") || r.starts_with(".L")))
}

fn is_call(one: &Instruction, machine: Machine) -> bool {
    match machine {
        Machine::X86 => one.mnemonic.starts_with("call"),
        Machine::Aarch64 => matches!(one.mnemonic.as_str(), "bl" | "blr"),
    }
}

fn is_indirect_call(one: &Instruction, machine: Machine) -> bool {
    is_call(one, machine) && (one.operands.starts_with('*') || one.mnemonic == "blr")
}

fn flow(one: &Instruction, machine: Machine) -> Flow {
    let name = one.mnemonic.as_str();
    let jump = |is_conditional| match one.operands.starts_with('*') {
        true => Flow::Indirect,
        // to a symbol of another object, or of this one by a relocation
        false => Flow::Jump { to: one.target().unwrap_or(u64::MAX), is_conditional },
    };
    match machine {
        Machine::X86 if name.starts_with("ret") => Flow::Return,
        Machine::X86 if name.starts_with("jmp") => jump(false),
        Machine::X86 if name.starts_with('j') => jump(true),
        Machine::X86 => Flow::Next,
        Machine::Aarch64 => match name {
            "ret" => Flow::Return,
            "br" => Flow::Indirect,
            "b" => jump(false),
            "cbz" | "cbnz" | "tbz" | "tbnz" => jump(true),
            _ if name.starts_with("b.") => jump(true),
            _ => Flow::Next,
        },
    }
}

/// The stack behind an instruction; `None` where it is not known.
fn stepped(one: &Instruction, depth: Depth, machine: Machine) -> Option<Depth> {
    match machine {
        Machine::X86 => stepped_x86(one, depth),
        Machine::Aarch64 => stepped_aarch64(one, depth),
    }
}

/// A number of an operand, as `$-0x40` and `#0x40`.
fn number(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches(['$', '#']);
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
        None => digits.parse().ok()?,
    };
    Some(sign * value)
}

fn stepped_x86(one: &Instruction, depth: Depth) -> Option<Depth> {
    let Depth { bytes, at_frame_pointer, .. } = depth;
    let to = |bytes| Some(Depth { bytes, ..depth });
    let name = one.mnemonic.trim_end_matches('q');
    if name.starts_with("push") {
        return to(bytes + 8);
    }
    if name.starts_with("pop") && !name.starts_with("popcnt") {
        return match one.operands.as_str() {
            "%rbp" => Some(Depth { bytes: bytes - 8, at_frame_pointer: None, ..depth }),
            "%rsp" => None,
            _ => to(bytes - 8),
        };
    }
    if name == "leave" {
        return Some(Depth { bytes: at_frame_pointer? - 8, at_frame_pointer: None, ..depth });
    }
    let operands: Vec<&str> = split(&one.operands);
    let [from, .., written] = operands[..] else { return to(bytes) };
    match (name, written) {
        ("cmp" | "test", _) => to(bytes),
        ("mov", "%rbp") if from == "%rsp" => Some(Depth { at_frame_pointer: Some(bytes), ..depth }),
        ("mov", "%rsp") if from == "%rbp" => to(at_frame_pointer?),
        ("sub", "%rsp") => to(bytes + number(from)?),
        ("add", "%rsp") => to(bytes - number(from)?),
        ("and", "%rsp") => to(bytes - number(from)? - 8),
        ("lea", "%rsp") => {
            let (offset, base) = from.strip_suffix(')')?.split_once('(')?;
            let offset = if offset.is_empty() { 0 } else { number(offset)? };
            match base {
                "%rsp" => to(bytes - offset),
                "%rbp" => to(at_frame_pointer? - offset),
                _ => None,
            }
        }
        (_, "%rsp" | "%esp" | "%sp") => None,
        // a register like others where it holds no frame
        (_, "%rbp" | "%ebp") => Some(Depth { at_frame_pointer: None, ..depth }),
        _ => to(bytes),
    }
}

/// Operands that commas outside of parentheses and brackets separate.
fn split(operands: &str) -> Vec<&str> {
    let (mut all, mut level, mut from) = (Vec::new(), 0, 0);
    for (at, c) in operands.char_indices() {
        match c {
            '(' | '[' | '{' => level += 1,
            ')' | ']' | '}' => level -= 1,
            ',' if level == 0 => {
                all.push(operands[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(operands[from..].trim());
    all
}

fn stepped_aarch64(one: &Instruction, depth: Depth) -> Option<Depth> {
    let Depth { bytes, at_frame_pointer, unaligned } = depth;
    let to = |bytes| Some(Depth { bytes, ..depth });
    let operands = split(&one.operands);
    // before and behind an access
    if let Some((_, offset)) = one.operands.split_once("[sp, ").filter(|(_, rest)| rest.ends_with("]!")) {
        return to(bytes - number(offset.strip_suffix("]!")?)?);
    }
    if let Some((_, offset)) = one.operands.split_once("[sp], ") {
        return to(bytes - number(offset)?);
    }
    let shifted = |text: &[&str]| match text {
        [n] => number(n),
        [n, shift] => Some(number(n)? << number(shift.strip_prefix("lsl ")?)?),
        _ => None,
    };
    match (one.mnemonic.as_str(), &operands[..]) {
        ("sub", ["sp", "sp", by @ ..]) => to(bytes + shifted(by)?),
        ("add", ["sp", "sp", by @ ..]) => to(bytes - shifted(by)?),
        ("mov", ["sp", "x29"]) => to(at_frame_pointer?),
        ("sub", ["sp", "x29", by @ ..]) => to(at_frame_pointer? + shifted(by)?),
        ("add", ["sp", "x29", by @ ..]) => to(at_frame_pointer? - shifted(by)?),
        ("mov", ["x29", "sp"]) => Some(Depth { at_frame_pointer: Some(bytes), ..depth }),
        ("add", ["x29", "sp", by @ ..]) => Some(Depth { at_frame_pointer: Some(bytes - shifted(by)?), ..depth }),
        ("sub", ["x9", "sp", by @ ..]) => Some(Depth { unaligned: Some(bytes + shifted(by)?), ..depth }),
        ("sub", ["x9", "x9", by @ ..]) if unaligned.is_some() => {
            Some(Depth { unaligned: Some(unaligned? + shifted(by)?), ..depth })
        }
        ("and", ["sp", "x9", mask]) => to(unaligned? + aligned(one, mask)?),
        (_, ["sp", ..]) if !is_read(&one.mnemonic) => None,
        (_, ["x9" | "w9", ..]) => Some(Depth { unaligned: None, ..depth }),
        _ => to(bytes),
    }
}

/// Whether the first operand of an instruction is one that it reads.
fn is_read(mnemonic: &str) -> bool {
    matches!(mnemonic, "cmp" | "cmn" | "tst")
}

/// The bytes that aligning adds at most.
fn aligned(one: &Instruction, mask: &str) -> Option<i64> {
    let mask = number(mask)?;
    (mask < 0 && (-mask).count_ones() == 1).then_some(-mask).or_else(|| panic!("{one:?}"))
}

/// The depth of a function with all that it calls, and the frames on the deepest path. Panics where functions call each other in a cycle.
pub fn depth(all: &BTreeMap<String, Frames>, name: &str, open: &mut Vec<String>) -> (i64, i64) {
    assert!(!open.iter().any(|other| other == name), "{name} calls itself by {open:?}");
    let own = &all[name];
    open.push(name.to_string());
    // a function whose address is taken runs below that one of the called ones which makes indirect calls
    let launchers = own.calls.iter().map(|call| &all[&call.name]).filter(|other| !other.indirect.is_empty());
    let launcher = launchers.map(|other| other.most).max().unwrap_or(0);
    let mut most = (own.most, 1);
    for call in &own.calls {
        let (below, frames) = depth(all, &call.name, open);
        let (through, more) = if call.is_passed { (launcher, 1) } else { (0, 0) };
        most = most.max((call.bytes + through + below, 1 + more + frames));
    }
    open.pop();
    most
}
