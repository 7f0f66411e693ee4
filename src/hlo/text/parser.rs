//! Parser of computations, instructions and operands.
use std::collections::{HashMap, HashSet};

use super::lexer::{Lexer, Token, TokenKind};
use crate::diag::Result;
use crate::hlo::schema::{self, Attrs, table};
use crate::hlo::{CompId, Computation, Inst, InstId, Module, Op, Shape, infer};
use crate::util::id_vec::IdVec;

/// Largest nesting depth of operands and computations written inside an instruction.
const DEPTH: usize = 64;

/// Computation that is being parsed.
struct ComputationScope {
    insts: IdVec<InstId, Inst>,
    names: HashMap<String, InstId>,
    params: Vec<Option<InstId>>,
    root: Option<InstId>,
}

/// State of the parser.
pub(super) struct Parser<'a> {
    pub(super) src: &'a str,
    pub(super) lexer: Lexer<'a>,
    pub(super) tok: Token<'a>,
    /// End of the token before `tok`.
    pub(super) last_end: usize,
    pub(super) module: Module,
    pub(super) comp_names: HashMap<String, CompId>,
    taken_names: HashSet<String>,
    scopes: Vec<ComputationScope>,
    pub(super) depth: usize,
    /// Whether a single instruction is parsed, whose undefined operands become parameters.
    pub(super) lone: bool,
}

/// See [`super::parse`].
pub(super) fn parse(src: &str) -> Result<Module> {
    let mut p = Parser::from_text(src);
    let header = p.is_word("HloModule");
    if header || p.is_word("ENTRY") || p.peek().kind == TokenKind::Punct(b'{') {
        if header {
            p.header()?;
        }
        p.computations()?;
    } else {
        p.lone_instruction()?;
    }
    if p.module.name.is_empty() {
        p.module.name = p.module.entry().name.clone();
    }
    Ok(p.module)
}

impl<'a> Parser<'a> {
    fn computations(&mut self) -> Result<()> {
        let mut entry = None;
        loop {
            let marked = self.eat_word("ENTRY");
            let id = self.computation()?;
            if marked && entry.replace(id).is_some() {
                return self.fail("expects only one ENTRY");
            }
            if self.tok.kind == TokenKind::Eof {
                self.module.entry = entry.unwrap_or(id);
                return Ok(());
            }
        }
    }
    fn computation(&mut self) -> Result<CompId> {
        let name = self.name()?;
        let signature = if self.next_is(b'(') { Some(self.signature()?) } else { None };
        let id = self.instructions(name)?;
        if let Some(result) = signature {
            let comp = &self.module.comps[id];
            let root = &comp.insts[comp.root];
            if !root.shape.same_type_and_dims(&result) {
                return self.fail(format!(
                    "shape of computation {name}, {result}, is not compatible with that of its root instruction {}, {}",
                    root.name, root.shape
                ));
            }
        }
        if self.eat(b',') {
            if self.tok.kind != TokenKind::AttrName || self.tok.text != "execution_thread" {
                return self.fail("expects execution_thread");
            }
            self.advance();
            if self.tok.kind != TokenKind::Str {
                return self.fail("expects a string");
            }
            self.advance();
        }
        if self.comp_names.insert(name.to_string(), id).is_some() {
            return self.fail(format!("computation already exists: {name}"));
        }
        Ok(id)
    }
    /// Parses `(a: f32[], b: f32[]) -> f32[]`; returns the result shape.
    fn signature(&mut self) -> Result<Shape> {
        self.advance();
        let mut first = true;
        while !self.next_is(b')') {
            if !std::mem::take(&mut first) {
                self.expect(b',', "expects ',' between parameters")?;
            }
            self.name()?;
            self.shape()?;
        }
        self.advance();
        if self.tok.kind != TokenKind::Arrow {
            return self.fail("expects '->' before computation result shape");
        }
        self.advance();
        self.shape()
    }
    /// Parses instructions in braces as a computation.
    pub(super) fn instructions(&mut self, name: &str) -> Result<CompId> {
        self.expect(b'{', "expects '{' at the beginning of instruction list")?;
        self.enter(DEPTH)?;
        self.open();
        loop {
            self.instruction()?;
            if self.eat(b'}') {
                break;
            }
        }
        self.leave();
        self.close(name)
    }
    fn open(&mut self) {
        self.scopes.push(ComputationScope {
            insts: IdVec::new(),
            names: HashMap::new(),
            params: Vec::new(),
            root: None,
        });
    }
    fn scope(&mut self) -> &mut ComputationScope {
        self.scopes.last_mut().expect("instructions are read inside of a computation")
    }
    fn close(&mut self, name: &str) -> Result<CompId> {
        let scope = self.scopes.pop().expect("open and close come in pairs");
        let last = InstId(scope.insts.len() as u32 - 1);
        let Some(params) = scope.params.into_iter().collect::<Option<Vec<_>>>() else {
            return self.fail(format!("the parameter numbers of {name} have a gap"));
        };
        let mut unique = name.to_string();
        let mut n = 1;
        while !self.taken_names.insert(unique.clone()) {
            unique = format!("{name}.{n}");
            n += 1;
        }
        let comp = Computation {
            name: unique,
            insts: scope.insts,
            params,
            root: scope.root.unwrap_or(last),
            sizes: Vec::new(),
            size_constants: Vec::new(),
        };
        Ok(self.module.comps.push(comp))
    }
    /// Parses a reference to a computation: its name, or its instructions in braces.
    pub(super) fn computation_ref(&mut self) -> Result<CompId> {
        if self.next_is(b'{') {
            return self.instructions("_");
        }
        let start = self.tok;
        let name = self.name()?;
        match self.comp_names.get(name) {
            Some(&id) => Ok(id),
            None => {
                self.tok = start;
                self.fail(format!("computation does not exist: {name}"))
            }
        }
    }

    // Instructions.

    fn lone_instruction(&mut self) -> Result<()> {
        self.lone = true;
        self.open();
        if self.peek().kind == TokenKind::Punct(b'=') || self.is_word("ROOT") {
            self.instruction()?;
        } else {
            self.rhs(None, None, true)?;
        }
        if self.tok.kind != TokenKind::Eof {
            return self.fail("expected eof after parsing single instruction");
        }
        let scope = self.scope();
        scope.root = Some(InstId(scope.insts.len() as u32 - 1));
        self.module.entry = self.close("_")?;
        Ok(())
    }
    fn instruction(&mut self) -> Result<()> {
        let is_root = self.eat_word("ROOT");
        let at = self.tok;
        let name = self.name()?;
        self.expect(b'=', "expects '=' in instruction")?;
        let id = self.rhs(Some(name), None, true)?;
        if is_root && self.scope().root.replace(id).is_some() {
            self.tok = at;
            return self.fail("one computation should have only one ROOT");
        }
        Ok(())
    }
    /// Parses `[shape] opcode(operands), attributes`.
    fn rhs(&mut self, name: Option<&str>, shape: Option<Shape>, with_attributes: bool) -> Result<InstId> {
        self.enter(DEPTH)?;
        let mut shape = match shape {
            None if self.is_shape_next() => Some(self.shape()?),
            shape => shape,
        };
        if self.tok.kind != TokenKind::Ident {
            return self.fail("expects opcode");
        }
        let at = self.tok;
        let opcode = at.text;
        let (base, suffix) = match table::attributes(opcode) {
            Some(_) => (opcode, ""),
            None => {
                table::split_async_suffix(opcode).map_or_else(|| self.fail(format!("unknown opcode: {opcode}")), Ok)?
            }
        };
        self.advance();
        self.expect(b'(', "expects '(' before operands")?;
        let mut operands = Vec::new();
        let mut leaf = None;
        match opcode {
            "parameter" => {
                let number = self.int()?;
                leaf = Some(Op::Parameter(self.index(number)?));
            }
            "constant" => match &shape {
                Some(shape) => leaf = Some(Op::Constant(self.literal(shape)?)),
                None => return self.fail("a constant's shape must be written"),
            },
            _ => operands = self.operands()?,
        }
        self.expect(b')', "expects ')' at the end of operands")?;
        let mut attrs = if with_attributes { self.attributes(base, suffix)? } else { Attrs::default() };
        let metadata = attrs.take_metadata();
        let op = match leaf {
            Some(op) => op,
            None => {
                let scope = &self.scopes[self.scopes.len() - 1].insts;
                let shapes: Vec<&Shape> = operands.iter().map(|&i| &scope[i].shape).collect();
                schema::op(opcode, &shape, &shapes, &mut attrs).or_else(|message| self.fail(message))?
            }
        };
        if shape.is_none() {
            let shapes: Vec<&Shape> =
                operands.iter().map(|&i| &self.scopes[self.scopes.len() - 1].insts[i].shape).collect();
            let cannot = table::shape_is_written(opcode);
            match infer::infer(&op, &shapes, &self.module) {
                Ok(inferred) if !cannot => shape = Some(inferred),
                Ok(_) => return self.fail(format!("cannot infer shape for opcode: {opcode}")),
                Err(message) => {
                    self.tok = at;
                    return self.fail(message);
                }
            }
        }
        self.leave();
        let inst = Inst {
            name: String::new(),
            op,
            operands,
            shape: shape.unwrap_or(Shape::Opaque),
            metadata: metadata.into(),
            extra: attrs.into_extra(),
        };
        self.add(name, inst, at)
    }
    fn add(&mut self, name: Option<&str>, mut inst: Inst, at: Token<'a>) -> Result<InstId> {
        let number = match inst.op {
            Op::Parameter(n) => Some(n),
            _ => None,
        };
        let written = name.is_some();
        let stem = match name {
            Some(name) => name.to_string(),
            None => format!("{}.anon", inst.op.name()),
        };
        let limit = self.src.len();
        let scope = self.scopes.last_mut().expect("instructions are read inside of a computation");
        let mut unique = stem.clone();
        let mut n = 1;
        while !written && scope.names.contains_key(&unique) {
            unique = format!("{stem}.{n}");
            n += 1;
        }
        inst.name = unique.clone();
        let id = scope.insts.push(inst);
        let twice = scope.names.insert(unique, id).is_some();
        let mut duplicate = false;
        if let Some(number) = number.filter(|&n| n < limit) {
            if scope.params.len() <= number {
                scope.params.resize(number + 1, None);
            }
            duplicate = scope.params[number].replace(id).is_some();
        }
        if twice {
            self.tok = at;
            return self.fail(format!("instruction already exists: {stem}"));
        }
        match number {
            Some(number) if duplicate => self.fail(format!("duplicate parameter number {number}")),
            Some(number) if number >= limit => self.fail(format!("parameter number {number} leaves a gap")),
            _ => Ok(id),
        }
    }
    fn operands(&mut self) -> Result<Vec<InstId>> {
        let mut operands = Vec::new();
        while !self.next_is(b')') {
            if !operands.is_empty() {
                self.expect(b',', "expects ',' between operands")?;
            }
            operands.push(self.operand()?);
        }
        Ok(operands)
    }
    fn operand(&mut self) -> Result<InstId> {
        let shape = if self.is_shape_next() { Some(self.shape()?) } else { None };
        if self.tok.kind == TokenKind::Ident && self.src[self.tok.end..].starts_with('(') {
            return self.rhs(None, shape, false);
        }
        // XLA accepts a comma between an operand's shape and its name.
        let lone = self.lone && self.scopes.len() == 1;
        if shape.is_some() && !lone && self.next_is(b',') && self.peek().kind == TokenKind::Name {
            self.advance();
        }
        let at = self.tok;
        let name = match self.tok.kind {
            TokenKind::Name | TokenKind::Ident => self.name()?,
            _ if lone && shape.is_some() => "",
            _ => return self.fail("cannot parse as an instruction name or as a nested instruction"),
        };
        match (self.scope().names.get(name).copied(), shape) {
            (Some(id), Some(shape)) if !self.scope().insts[id].shape.same_type_and_dims(&shape) => {
                let own = self.scope().insts[id].shape.to_string();
                self.tok = at;
                self.fail(format!(
                    "the declared operand shape {shape} is not compatible with the shape of the operand instruction {own}"
                ))
            }
            (Some(id), _) => Ok(id),
            (None, Some(shape)) if lone => self.implicit_parameter(name, shape),
            (None, _) => {
                self.tok = at;
                self.fail(format!("instruction does not exist: {name}"))
            }
        }
    }
    fn implicit_parameter(&mut self, name: &str, shape: Shape) -> Result<InstId> {
        let number = self.scope().params.len();
        let op = Op::Parameter(number);
        let inst =
            Inst { name: String::new(), op, operands: vec![], shape, metadata: Default::default(), extra: vec![] };
        let at = self.tok;
        self.add(Some(name).filter(|n| !n.is_empty()), inst, at)
    }
    /// Checks that a number is not negative.
    fn index(&self, value: i64) -> Result<usize> {
        usize::try_from(value).or_else(|_| self.fail(format!("{value} is negative")))
    }
    fn attributes(&mut self, opcode: &str, suffix: &str) -> Result<Attrs<'a>> {
        let own = table::attributes(opcode).unwrap_or(&[]);
        let mut attrs = Attrs::default();
        while self.eat(b',') {
            if self.tok.kind != TokenKind::AttrName {
                return self.fail("expects attribute name");
            }
            let name = self.tok.text;
            let mine = own.iter().any(|a| table::without_prefix(a) == name);
            let wrapped = !suffix.is_empty() && matches!(name, "async_execution_thread" | "calls");
            if !mine && !wrapped && !table::COMMON.contains(&name) {
                return self.fail(format!("unexpected attribute \"{name}\" of {opcode}"));
            }
            if attrs.has(name) {
                return self.fail(format!("attribute {name} already exists"));
            }
            self.advance();
            let start = self.tok.start;
            let value = self.value(name, opcode)?;
            attrs.push(name, value, &self.src[start..self.last_end]);
        }
        if suffix.is_empty() || suffix == "-start" {
            let missing = own.iter().filter_map(|a| a.strip_prefix('!')).find(|a| !attrs.has(a));
            if let Some(missing) = missing {
                return self.fail(format!("attribute {missing} is expected but not seen"));
            }
        }
        Ok(attrs)
    }
    /// Whether an instruction of this name is defined, for attributes that refer to it.
    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.scopes.last().is_some_and(|s| s.names.contains_key(name))
    }
}

impl<'a> Parser<'a> {
    /// Parser at the start of `src`, outside of any computation.
    pub(super) fn from_text(src: &'a str) -> Self {
        let mut lexer = Lexer::new(src);
        let tok = lexer.next();
        let module = Module {
            name: String::new(),
            comps: IdVec::new(),
            entry: CompId(0),
            extra: Vec::new(),
            replaceable: false,
        };
        Parser {
            src,
            lexer,
            tok,
            last_end: 0,
            module,
            comp_names: HashMap::new(),
            taken_names: HashSet::new(),
            scopes: Vec::new(),
            depth: 0,
            lone: false,
        }
    }
}
