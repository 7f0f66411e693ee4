//! Reads attribute values.
use super::lexer::Kind;
use super::parser::Parser;
use crate::diag::Result;
use crate::hlo::attrs::*;
use crate::hlo::schema::Value;
use crate::hlo::schema::table::{self, Form};
use crate::hlo::{CompId, Metadata};

impl<'a> Parser<'a> {
    /// The value of attribute `name`.
    pub(super) fn value(&mut self, name: &str, opcode: &str) -> Result<Value> {
        if name == "metadata" {
            return self.metadata();
        }
        if name == "control-predecessors" {
            return self.predecessors();
        }
        if name == "slice_sizes" && opcode.starts_with("collective") {
            self.braces()?;
            return Ok(Value::Text);
        }
        let Some(form) = table::form(name) else { return self.fail(format!("unexpected attribute \"{name}\"")) };
        Ok(match form {
            Form::Bool => Value::Bool(self.bool()?),
            Form::Int => Value::Int(self.int()?),
            Form::Float => Value::Float(self.float()?),
            Form::Ints => Value::Ints(self.ints()?),
            Form::Comp => Value::Comp(self.computation_ref()?),
            Form::Comps => Value::Comps(self.computation_refs()?),
            Form::Window => Value::Window(self.window()?),
            Form::DimLabels => {
                if self.tok.kind != Kind::DimLabels {
                    return self.fail("expects dim labels pattern, e.g., 'bf0_0io->0bf'");
                }
                let text = self.tok.text.to_string();
                self.advance();
                Value::Labels(text)
            }
            Form::Slices => Value::Slices(self.slices()?),
            Form::Padding => Value::Pads(self.padding()?),
            Form::Word => self.word(name, opcode)?,
            Form::Str => self.text_value()?,
            Form::Shape => {
                self.shape()?;
                Value::Text
            }
            Form::Literal => {
                self.shaped_literal()?;
                Value::Text
            }
            Form::Braces if name == "frontend_attributes" => {
                self.config()?;
                Value::Text
            }
            Form::Braces if name == "output_to_operand_aliasing" => {
                self.aliasing(false)?;
                Value::Text
            }
            Form::Braces if name == "result_accuracy" => {
                self.accuracy()?;
                Value::Text
            }
            Form::Braces => {
                self.braces()?;
                Value::Text
            }
            Form::Sharding => {
                self.sharding()?;
                Value::Text
            }
            Form::Config if self.tok.kind == Kind::Str => self.text_value()?,
            Form::Config => {
                self.config()?;
                Value::Text
            }
            Form::Groups => {
                self.groups()?;
                Value::Text
            }
        })
    }
    /// `s32[2] {1, 2}`, or several in parentheses.
    fn shaped_literal(&mut self) -> Result<()> {
        if !self.is(b'(') {
            let shape = self.shape()?;
            self.literal(&shape)?;
            return Ok(());
        }
        self.enter(128)?;
        self.advance();
        while !self.is(b')') {
            self.shaped_literal()?;
            if !self.eat(b',') {
                break;
            }
        }
        self.leave();
        self.expect(b')', "expects ')' at the end of a literal")
    }
    fn text_value(&mut self) -> Result<Value> {
        if self.tok.kind != Kind::Str {
            return self.fail("expects string");
        }
        self.advance();
        Ok(Value::Text)
    }
    fn float(&mut self) -> Result<f64> {
        if !matches!(self.tok.kind, Kind::Int | Kind::Decimal | Kind::Special) {
            return self.fail("expects decimal or integer");
        }
        let value = self.tok.text.parse().or_else(|_| self.fail("expects decimal or integer"))?;
        self.advance();
        Ok(value)
    }
    fn word(&mut self, name: &str, opcode: &str) -> Result<Value> {
        let known: &[&str] = match (name, opcode) {
            ("direction", _) => &["EQ", "NE", "GE", "GT", "LE", "LT"],
            ("type", _) => &["FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"],
            ("kind", _) => &["kLoop", "kInput", "kOutput", "kCustom"],
            ("fft_type", _) => &["FFT", "IFFT", "RFFT", "IRFFT"],
            ("transpose_a", _) => &["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"],
            ("distribution", _) => &["rng_uniform", "rng_normal"],
            ("algorithm", "rng-bit-generator") => &["rng_default", "rng_three_fry", "rng_philox"],
            ("schedule", _) => &["SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"],
            ("padding_type", _) => &["PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"],
            ("api_version", _) => &[
                "API_VERSION_ORIGINAL",
                "API_VERSION_STATUS_RETURNING",
                "API_VERSION_STATUS_RETURNING_UNIFIED",
                "API_VERSION_TYPED_FFI",
            ],
            _ => &[],
        };
        let text = self.tok.text;
        let is_word = matches!(self.tok.kind, Kind::Ident | Kind::Keyword | Kind::Type);
        if !is_word || (!known.is_empty() && !known.contains(&text)) {
            return self.fail(format!(
                "expects {name}{}",
                if known.is_empty() { String::new() } else { format!(", one of {}", known.join(" ")) }
            ));
        }
        self.advance();
        Ok(Value::Word(text.to_string()))
    }
    fn ints(&mut self) -> Result<Vec<i64>> {
        self.expect(b'{', "expects '{' at the start of a list")?;
        let mut out = Vec::new();
        while !self.is(b'}') {
            if !out.is_empty() {
                self.expect(b',', "expects ',' between integers")?;
            }
            out.push(self.int()?);
        }
        self.advance();
        Ok(out)
    }
    fn computation_refs(&mut self) -> Result<Vec<CompId>> {
        self.expect(b'{', "expects '{' at the start of a list of computations")?;
        let mut out = Vec::new();
        while !self.is(b'}') {
            if !out.is_empty() {
                self.expect(b',', "expects ',' between computations")?;
            }
            out.push(self.computation_ref()?);
        }
        self.advance();
        Ok(out)
    }
    fn metadata(&mut self) -> Result<Value> {
        self.expect(b'{', "expects '{' at the start of metadata")?;
        let mut found = Metadata::default();
        while !self.is(b'}') {
            if self.tok.kind != Kind::AttrName {
                return self.fail("expects attribute name in metadata");
            }
            let name = self.tok.text;
            self.advance();
            let raw = self.tok.text;
            match (name, self.tok.kind) {
                ("op_type", Kind::Str) => found.op_type = unescaped(raw),
                ("op_name", Kind::Str) => found.op_name = unescaped(raw),
                (_, Kind::Str | Kind::Int | Kind::Keyword | Kind::Decimal | Kind::Ident) => {}
                (_, Kind::Punct(b'{')) => {
                    self.braces()?;
                    continue;
                }
                _ => return self.fail("expects a value in metadata"),
            }
            self.advance();
            self.eat(b',');
        }
        self.advance();
        Ok(Value::Metadata(found))
    }
    fn predecessors(&mut self) -> Result<Value> {
        self.expect(b'{', "expects '{' at the start of control-predecessors")?;
        let mut first = true;
        while !self.is(b'}') {
            if !std::mem::take(&mut first) {
                self.expect(b',', "expects ',' between instruction names")?;
            }
            let at = self.tok;
            let name = self.name()?;
            if !self.defined(name) {
                self.tok = at;
                return self.fail(format!("control-predecessor {name} is not defined"));
            }
        }
        self.advance();
        Ok(Value::Text)
    }
    fn slices(&mut self) -> Result<Vec<SliceDim>> {
        self.expect(b'{', "expects '{' to start ranges")?;
        let mut out = Vec::new();
        while !self.is(b'}') {
            if !out.is_empty() {
                self.expect(b',', "expects ',' between ranges")?;
            }
            self.expect(b'[', "expects '[' to start a range")?;
            let mut parts = vec![self.size()?];
            while self.eat(b':') {
                parts.push(self.size()?);
            }
            self.expect(b']', "expects ']' to end a range")?;
            match parts[..] {
                [start, limit] => out.push(SliceDim { start, limit, stride: 1 }),
                [start, limit, stride] => out.push(SliceDim { start, limit, stride }),
                _ => return self.fail("expects [start:limit:step] or [start:limit]"),
            }
        }
        self.advance();
        Ok(out)
    }
    fn size(&mut self) -> Result<u64> {
        let value = self.int()?;
        u64::try_from(value).or_else(|_| self.fail(format!("{value} is negative")))
    }
    fn padding(&mut self) -> Result<Vec<PadDim>> {
        if self.tok.kind == Kind::Str && self.tok.text.is_empty() {
            self.advance();
            return Ok(Vec::new());
        }
        let pads = self.pads()?;
        let one = |p: Vec<i64>| match p[..] {
            [low, high] => Ok(PadDim { low, high, interior: 0 }),
            [low, high, interior] if interior >= 0 => Ok(PadDim { low, high, interior: interior as u64 }),
            _ => self.fail("expects padding config pattern like 'low_high_interior' or 'low_high'"),
        };
        pads.into_iter().map(one).collect()
    }
    fn pads(&mut self) -> Result<Vec<Vec<i64>>> {
        if self.tok.kind != Kind::Pad {
            return self.fail("expects window pad pattern, e.g., '0_0x3_3'");
        }
        let text = self.tok.text;
        let number = |s: &str| s.parse::<i64>().or_else(|_| self.fail(format!("{s} is out of range")));
        let all = text.split('x').map(|part| part.split('_').map(number).collect()).collect::<Result<Vec<_>>>()?;
        self.advance();
        Ok(all)
    }
    /// `{size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}`.
    pub(super) fn window(&mut self) -> Result<Vec<WindowDim>> {
        self.expect(b'{', "expected '{' to start window attribute")?;
        let mut parts: Vec<(&str, Vec<Vec<i64>>)> = Vec::new();
        while !self.is(b'}') {
            if self.tok.kind != Kind::AttrName {
                return self.fail("expects sub-attributes in window");
            }
            let name = self.tok.text;
            if !matches!(name, "size" | "stride" | "pad" | "lhs_dilate" | "rhs_dilate" | "rhs_reversal") {
                return self.fail(format!("unexpected sub-attribute {name} in window"));
            }
            if parts.iter().any(|p| p.0 == name) {
                return self.fail(format!("sub-attribute {name} already exists"));
            }
            self.advance();
            let values = if name == "pad" { self.pads()? } else { self.sizes()? };
            if name == "pad" && values.iter().any(|p| p.len() != 2) {
                return self.fail("expects padding_low and padding_high separated by '_'");
            }
            parts.push((name, values));
        }
        self.advance();
        let rank = parts.iter().find(|p| p.0 == "size").map_or(0, |p| p.1.len());
        if rank == 0 && !parts.is_empty() {
            return self.fail("sub-attribute 'size=' is required in window");
        }
        if let Some((name, _)) = parts.iter().find(|p| p.1.len() != rank) {
            return self.fail(format!("expects {name} of {rank} dimensions in window"));
        }
        let mut window = vec![WindowDim::default(); rank];
        for (name, values) in &parts {
            for (dim, v) in window.iter_mut().zip(values) {
                let n = v[0] as u64;
                match *name {
                    "size" => dim.size = n,
                    "stride" => dim.stride = n,
                    "lhs_dilate" => dim.lhs_dilate = n,
                    "rhs_dilate" => dim.rhs_dilate = n,
                    "rhs_reversal" => dim.reversal = n != 0,
                    _ => (dim.pad_low, dim.pad_high) = (v[0], v[1]),
                }
            }
        }
        Ok(window)
    }
    fn sizes(&mut self) -> Result<Vec<Vec<i64>>> {
        if !matches!(self.tok.kind, Kind::Sizes | Kind::Int) || self.tok.text.starts_with('-') {
            return self.fail("expects token type kInt or kDxD");
        }
        let number = |s: &str| s.parse::<i64>().map(|v| vec![v]).or_else(|_| self.fail(format!("{s} is out of range")));
        let all = self.tok.text.split('x').map(number).collect::<Result<Vec<_>>>()?;
        self.advance();
        Ok(all)
    }
}

/// A string's text without the backslashes that the printer puts in.
fn unescaped(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            _ => out.push(c),
        }
    }
    out
}
