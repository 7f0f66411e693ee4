//! Parser of attribute values.
use super::lexer::TokenKind;
use super::parser::Parser;
use crate::diag::Result;
use crate::hlo::attrs::*;
use crate::hlo::schema::FieldValue;
use crate::hlo::schema::table::{self, FieldSyntax};
use crate::hlo::{CompId, Metadata};

impl<'a> Parser<'a> {
    /// Parses the value of attribute `name`.
    pub(super) fn value(&mut self, name: &str, opcode: &str) -> Result<FieldValue> {
        if name == "metadata" {
            return self.metadata();
        }
        if name == "control-predecessors" {
            return self.predecessors();
        }
        if name == "slice_sizes" && opcode.starts_with("collective") {
            self.skip_braces()?;
            return Ok(FieldValue::Text);
        }
        let Some(form) = table::attribute_syntax(name) else {
            return self.fail(format!("unexpected attribute \"{name}\""));
        };
        Ok(match form {
            FieldSyntax::Bool => FieldValue::Bool(self.bool()?),
            FieldSyntax::Int => FieldValue::Int(self.int()?),
            FieldSyntax::Float => FieldValue::Float(self.float()?),
            FieldSyntax::Ints => FieldValue::Ints(self.ints()?),
            FieldSyntax::Comp => FieldValue::Comp(self.computation_ref()?),
            FieldSyntax::Comps => FieldValue::Comps(self.computation_refs()?),
            FieldSyntax::Window => FieldValue::Window(self.window()?),
            FieldSyntax::DimLabels => {
                if self.tok.kind != TokenKind::DimLabels {
                    return self.fail("expects dim labels pattern, e.g., 'bf0_0io->0bf'");
                }
                let text = self.tok.text.to_string();
                self.advance();
                FieldValue::Labels(text)
            }
            FieldSyntax::Slices => FieldValue::Slices(self.slices()?),
            FieldSyntax::Padding => FieldValue::Pads(self.padding()?),
            FieldSyntax::Word => self.word(name, opcode)?,
            FieldSyntax::Str => self.text_value()?,
            FieldSyntax::Shape => {
                self.shape()?;
                FieldValue::Text
            }
            FieldSyntax::Literal => {
                self.shaped_literal()?;
                FieldValue::Text
            }
            FieldSyntax::Braces if name == "frontend_attributes" => {
                self.skip_config()?;
                FieldValue::Text
            }
            FieldSyntax::Braces if name == "output_to_operand_aliasing" => {
                self.aliasing(false)?;
                FieldValue::Text
            }
            FieldSyntax::Braces if name == "result_accuracy" => {
                self.accuracy()?;
                FieldValue::Text
            }
            FieldSyntax::Braces => {
                self.skip_braces()?;
                FieldValue::Text
            }
            FieldSyntax::Sharding => {
                self.sharding()?;
                FieldValue::Text
            }
            FieldSyntax::Config if self.tok.kind == TokenKind::Str => self.text_value()?,
            FieldSyntax::Config => {
                self.skip_config()?;
                FieldValue::Text
            }
            FieldSyntax::Groups => {
                self.groups()?;
                FieldValue::Text
            }
        })
    }
    /// Parses `s32[2] {1, 2}`, or several of these in parentheses.
    fn shaped_literal(&mut self) -> Result<()> {
        if !self.next_is(b'(') {
            let shape = self.shape()?;
            self.literal(&shape)?;
            return Ok(());
        }
        self.enter(128)?;
        self.advance();
        while !self.next_is(b')') {
            self.shaped_literal()?;
            if !self.eat(b',') {
                break;
            }
        }
        self.leave();
        self.expect(b')', "expects ')' at the end of a literal")
    }
    fn text_value(&mut self) -> Result<FieldValue> {
        if self.tok.kind != TokenKind::Str {
            return self.fail("expects string");
        }
        self.advance();
        Ok(FieldValue::Text)
    }
    fn float(&mut self) -> Result<f64> {
        if !matches!(self.tok.kind, TokenKind::Int | TokenKind::Decimal | TokenKind::Special) {
            return self.fail("expects decimal or integer");
        }
        let value = self.tok.text.parse().or_else(|_| self.fail("expects decimal or integer"))?;
        self.advance();
        Ok(value)
    }
    fn word(&mut self, name: &str, opcode: &str) -> Result<FieldValue> {
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
        let is_word = matches!(self.tok.kind, TokenKind::Ident | TokenKind::Keyword | TokenKind::Type);
        if !is_word || (!known.is_empty() && !known.contains(&text)) {
            return self.fail(format!(
                "expects {name}{}",
                if known.is_empty() { String::new() } else { format!(", one of {}", known.join(" ")) }
            ));
        }
        self.advance();
        Ok(FieldValue::Word(text.to_string()))
    }
    fn ints(&mut self) -> Result<Vec<i64>> {
        self.expect(b'{', "expects '{' at the start of a list")?;
        let mut out = Vec::new();
        while !self.next_is(b'}') {
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
        while !self.next_is(b'}') {
            if !out.is_empty() {
                self.expect(b',', "expects ',' between computations")?;
            }
            out.push(self.computation_ref()?);
        }
        self.advance();
        Ok(out)
    }
    fn metadata(&mut self) -> Result<FieldValue> {
        self.expect(b'{', "expects '{' at the start of metadata")?;
        let mut found = Metadata::default();
        while !self.next_is(b'}') {
            if self.tok.kind != TokenKind::AttrName {
                return self.fail("expects attribute name in metadata");
            }
            let name = self.tok.text;
            self.advance();
            let raw = self.tok.text;
            match (name, self.tok.kind) {
                ("op_type", TokenKind::Str) => found.op_type = unescaped(raw),
                ("op_name", TokenKind::Str) => found.op_name = unescaped(raw),
                (_, TokenKind::Str | TokenKind::Int | TokenKind::Keyword | TokenKind::Decimal | TokenKind::Ident) => {}
                (_, TokenKind::Punct(b'{')) => {
                    self.skip_braces()?;
                    continue;
                }
                _ => return self.fail("expects a value in metadata"),
            }
            self.advance();
            self.eat(b',');
        }
        self.advance();
        Ok(FieldValue::Metadata(found))
    }
    fn predecessors(&mut self) -> Result<FieldValue> {
        self.expect(b'{', "expects '{' at the start of control-predecessors")?;
        let mut first = true;
        while !self.next_is(b'}') {
            if !std::mem::take(&mut first) {
                self.expect(b',', "expects ',' between instruction names")?;
            }
            let at = self.tok;
            let name = self.name()?;
            if !self.is_defined(name) {
                self.tok = at;
                return self.fail(format!("control-predecessor {name} is not defined"));
            }
        }
        self.advance();
        Ok(FieldValue::Text)
    }
    fn slices(&mut self) -> Result<Vec<SliceDim>> {
        self.expect(b'{', "expects '{' to start ranges")?;
        let mut out = Vec::new();
        while !self.next_is(b'}') {
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
        if self.tok.kind == TokenKind::Str && self.tok.text.is_empty() {
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
        if self.tok.kind != TokenKind::Pad {
            return self.fail("expects window pad pattern, e.g., '0_0x3_3'");
        }
        let text = self.tok.text;
        let number = |s: &str| s.parse::<i64>().or_else(|_| self.fail(format!("{s} is out of range")));
        let all = text.split('x').map(|part| part.split('_').map(number).collect()).collect::<Result<Vec<_>>>()?;
        self.advance();
        Ok(all)
    }
    /// Parses `{size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}`.
    pub(super) fn window(&mut self) -> Result<Vec<WindowDim>> {
        self.expect(b'{', "expected '{' to start window attribute")?;
        let mut parts: Vec<(&str, Vec<Vec<i64>>)> = Vec::new();
        while !self.next_is(b'}') {
            if self.tok.kind != TokenKind::AttrName {
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
        if !matches!(self.tok.kind, TokenKind::Sizes | TokenKind::Int) || self.tok.text.starts_with('-') {
            return self.fail("expects token type kInt or kDxD");
        }
        let number = |s: &str| s.parse::<i64>().map(|v| vec![v]).or_else(|_| self.fail(format!("{s} is out of range")));
        let all = self.tok.text.split('x').map(number).collect::<Result<Vec<_>>>()?;
        self.advance();
        Ok(all)
    }
}

/// Text of a string without the backslashes that the printer adds.
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
