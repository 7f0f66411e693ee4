//! The ends of blocks: jumps with the values that the next block begins with, and returns.
use super::structure::{Jump, JumpCondition, SourceLine};
use super::{FunctionWriter, local_name};
use crate::codegen::c::text::{IrOperand, IrReader, IrType};
use crate::diag::{Error, Result};

/// A phi instruction of LLVM: the value that a block gets from each predecessor.
#[derive(Clone)]
pub(super) struct Phi {
    pub name: String,
    pub ty: IrType,
    /// The incoming values, each with its predecessor block.
    pub operands: Vec<(IrOperand, String)>,
}

/// Parses the phi instruction that defines `name`.
pub(super) fn parse_phi(name: &str, text: &str) -> Result<Phi> {
    let mut reader = IrReader::new(text);
    let ty = reader.read_type()?;
    let mut operands = Vec::new();
    while reader.eat("[") {
        let operand = reader.read_operand()?;
        reader.expect(", %")?;
        operands.push((operand, reader.read_word().to_string()));
        reader.expect("]")?;
        reader.eat(",");
    }
    Ok(Phi { name: name.to_string(), ty, operands })
}

/// The constant that an instruction adds to the value `name` or compares it with.
fn number_behind(instruction: &str, name: &str) -> Option<i64> {
    let (before, number) = instruction.rsplit_once(", ")?;
    before.ends_with(&format!(" %{name}")).then(|| number.parse().ok())?
}

/// The C label of a block.
pub(super) fn label_name(name: &str) -> String {
    format!("at_{}", name.replace(['.', '-'], "_"))
}

/// The end of a block: fall through to the next block, or a jump.
enum Edge {
    /// Fall through, after assignments to the phis of the next block.
    Falls(String),
    Jumps(Jump),
}

impl FunctionWriter<'_> {
    /// The assignments to the phis of block `to` when it is entered from the current block.
    fn edge(&mut self, to: &str) -> Result<String> {
        let own = self.phis.get(to).cloned().unwrap_or_default();
        let mut out = String::new();
        for Phi { name, ty, operands } in &own {
            let operand = operands.iter().find(|(_, from)| *from == self.block).map(|(operand, _)| operand);
            let operand = operand.ok_or_else(|| Error::internal("C", format!("`{to}` is not entered from here")))?;
            let value = self.values.operand(ty, operand)?.text;
            let suffix = if own.len() > 1 { "_in" } else { "" };
            out += &format!("{}{suffix} = {value}; ", local_name(name));
        }
        Ok(out)
    }

    /// The jump to block `to`, or the phi assignments alone if it is the next block.
    fn jump(&mut self, to: &str, test: Option<JumpCondition>, condition: Option<&str>) -> Result<Edge> {
        let edge = self.edge(to)?;
        if self.next.as_deref() == Some(to) {
            return Ok(Edge::Falls(edge));
        }
        Ok(Edge::Jumps(Jump { rounds: self.rounds(to, condition), test, edge, to: to.to_string() }))
    }

    /// An upper limit of the iterations of the loop from block `to` to a jump back to it, if it follows from constants: a counter with a
    /// constant start and step that is compared with a constant, after the addition (by `condition`) or at the beginning of the loop.
    fn rounds(&self, to: &str, condition: Option<&str>) -> Option<u64> {
        let comparison = self.counters.get(condition.or(self.tests.get(to).map(String::as_str))?)?;
        let is_below = comparison.starts_with("icmp slt ") || comparison.starts_with("icmp ult ");
        let rounds = |phi: &Phi| {
            let (begin, _) = phi.operands.iter().find(|(_, from)| *from != self.block)?;
            let (next, _) = phi.operands.iter().find(|(_, from)| *from == self.block)?;
            let (IrOperand::Int(begin), IrOperand::Local(next)) = (begin, next) else { return None };
            let step = number_behind(self.counters.get(next)?, &phi.name).filter(|step| *step > 0)?;
            let (compared, least) = if condition.is_some() { (next, 1) } else { (&phi.name, 0) };
            let limit = number_behind(comparison, compared)?;
            let span = limit.saturating_sub(*begin as i64).max(0).unsigned_abs();
            Some(span.div_ceil(step.unsigned_abs()).max(least))
        };
        self.phis.get(to)?.iter().filter(|_| is_below).find_map(rounds)
    }

    fn assignments(&mut self, edge: &str) {
        if !edge.is_empty() {
            self.push_line(edge.trim_end());
        }
    }

    pub(super) fn write_branch(&mut self, reader: &mut IrReader) -> Result<()> {
        if reader.eat("label %") {
            match self.jump(reader.read_word(), None, None)? {
                Edge::Falls(edge) => self.assignments(&edge),
                Edge::Jumps(jump) => self.lines.push(SourceLine::Jump(jump)),
            }
            return Ok(());
        }
        let (ty, value) = reader.read_typed_operand()?;
        let condition = if let IrOperand::Local(name) = &value { Some(name.clone()) } else { None };
        let value = self.values.operand(&ty, &value)?.text;
        reader.expect(", label %")?;
        let test = JumpCondition { value: value.clone(), is_negated: false };
        let yes = self.jump(reader.read_word(), Some(test), condition.as_deref())?;
        reader.expect(", label %")?;
        let test = JumpCondition { value: value.clone(), is_negated: true };
        let no = self.jump(reader.read_word(), Some(test), None)?;
        match (yes, no) {
            (Edge::Falls(yes), Edge::Falls(no)) if yes.is_empty() && no.is_empty() => {
                self.push_line(format!("(void){value};"));
            }
            (Edge::Falls(yes), Edge::Falls(no)) => self.push_line(format!("if ({value}) {{ {yes}}} else {{ {no}}}")),
            (Edge::Jumps(jump), Edge::Falls(edge)) | (Edge::Falls(edge), Edge::Jumps(jump)) => {
                self.lines.push(SourceLine::Jump(jump));
                self.assignments(&edge);
            }
            (Edge::Jumps(yes), Edge::Jumps(no)) => {
                self.lines.push(SourceLine::Jump(yes));
                self.lines.push(SourceLine::Jump(Jump { test: None, ..no }));
            }
        }
        Ok(())
    }

    pub(super) fn write_ret(&mut self, reader: &mut IrReader) -> Result<()> {
        let ty = reader.read_type()?;
        if ty == IrType::Void {
            self.push_line("return;");
            return Ok(());
        }
        let operand = reader.read_operand()?;
        let value = match &operand {
            IrOperand::Global(name) => self.global_pointer(name)?,
            operand => self.values.operand(&ty, operand)?.text,
        };
        let cast = if ty == IrType::Int(32) { "(int)" } else { "" };
        self.push_line(format!("return {cast}{value};"));
        Ok(())
    }
}
