//! Attribute values, and how they and the opcode become an [`Op`].
use super::lexer::Kind;
use super::parser::{Parser, calls};
use super::table::{self, Form};
use crate::diag::Result;
use crate::hlo::attrs::*;
use crate::hlo::{CompId, InstId, Metadata, Op, Shape};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

/// One attribute's value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Ints(Vec<i64>),
    Comp(CompId),
    Comps(Vec<CompId>),
    Window(Vec<WindowDim>),
    Labels(String),
    Slices(Vec<SliceDim>),
    Pads(Vec<PadDim>),
    Word(String),
    Metadata(Metadata),
    /// Only carried.
    Text,
}

/// The attributes of one instruction, in order.
#[derive(Debug, Default)]
pub(super) struct Attrs<'a> {
    list: Vec<(&'a str, Value, &'a str)>,
}

impl<'a> Attrs<'a> {
    pub fn has(&self, name: &str) -> bool {
        self.list.iter().any(|a| a.0 == name)
    }
    pub fn push(&mut self, name: &'a str, value: Value, source: &'a str) {
        self.list.push((name, value, source));
    }
    fn take(&mut self, name: &str) -> Option<Value> {
        let i = self.list.iter().position(|a| a.0 == name)?;
        Some(self.list.remove(i).1)
    }
    pub fn take_metadata(&mut self) -> Metadata {
        match self.take("metadata") {
            Some(Value::Metadata(m)) => m,
            _ => Metadata::default(),
        }
    }
    /// What nothing took, as text.
    pub fn into_extra(self) -> Vec<(String, String)> {
        self.list.into_iter().map(|(n, _, s)| (n.to_string(), s.trim().to_string())).collect()
    }
    fn bool(&mut self, name: &str, default: bool) -> bool {
        match self.take(name) {
            Some(Value::Bool(b)) => b,
            _ => default,
        }
    }
    fn int(&mut self, name: &str, default: i64) -> i64 {
        match self.take(name) {
            Some(Value::Int(i)) => i,
            _ => default,
        }
    }
    fn word(&mut self, name: &str) -> String {
        match self.take(name) {
            Some(Value::Word(w)) => w,
            _ => String::new(),
        }
    }
    fn window(&mut self) -> Vec<WindowDim> {
        match self.take("window") {
            Some(Value::Window(w)) => w,
            _ => Vec::new(),
        }
    }
    fn ints(&mut self, name: &str) -> Vec<i64> {
        match self.take(name) {
            Some(Value::Ints(v)) => v,
            _ => Vec::new(),
        }
    }
}

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
    /// `{mode=highest}` or `{tolerance={atol=.. rtol=.. ulps=..}}`.
    fn accuracy(&mut self) -> Result<()> {
        self.expect(b'{', "expects '{' at the start of result_accuracy")?;
        if self.tok.kind != Kind::AttrName {
            return self.fail("expects attribute name");
        }
        let name = self.tok.text;
        self.advance();
        match name {
            "tolerance" => self.braces()?,
            "mode" if matches!(self.tok.text.to_ascii_lowercase().as_str(), "default" | "highest") => self.advance(),
            _ => return self.fail("expects ResultAccuracy type"),
        }
        self.expect(b'}', "expects '}' at the end of result_accuracy")
    }
    /// `{ (0, {1}), (2, {}) }`: parameters and places in their shapes.
    pub(super) fn donors(&mut self) -> Result<()> {
        self.expect(b'{', "expects '{' at the start of buffer_donor")?;
        while !self.is(b'}') {
            self.expect(b'(', "expects '('")?;
            self.int()?;
            self.expect(b',', "expects ','")?;
            self.shape_index()?;
            self.expect(b')', "expects ')'")?;
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}', "expects '}' at the end of buffer_donor")
    }
    /// Skips `{...}`.
    pub(super) fn braces(&mut self) -> Result<()> {
        if !self.is(b'{') {
            return self.fail("expects '{'");
        }
        self.balanced()
    }
    fn balanced(&mut self) -> Result<()> {
        let mut open = Vec::new();
        loop {
            match self.tok.kind {
                Kind::Punct(b'{') => open.push(b'}'),
                Kind::Punct(b'(') => open.push(b')'),
                Kind::Punct(b'[') => open.push(b']'),
                Kind::Punct(c @ (b'}' | b')' | b']')) if open.pop() != Some(c) => {
                    return self.fail("brackets do not match");
                }
                Kind::Eof | Kind::Error => return self.fail("unexpected token"),
                _ => {}
            }
            self.advance();
            if open.is_empty() {
                return Ok(());
            }
        }
    }
    /// Skips `{...}` byte by byte: JSON is not made of HLO tokens.
    pub(super) fn config(&mut self) -> Result<()> {
        if !self.is(b'{') {
            return self.fail("expects '{' or a string");
        }
        let bytes = self.src.as_bytes();
        let (mut depth, mut i, mut quoted) = (0usize, self.tok.start, false);
        while let Some(&b) = bytes.get(i) {
            match b {
                b'\\' if quoted => i += 1,
                b'"' => quoted = !quoted,
                b'{' if !quoted => depth += 1,
                b'}' if !quoted => {
                    depth -= 1;
                    if depth == 0 {
                        self.jump(i + 1);
                        return Ok(());
                    }
                }
                _ => {}
            }
            i += 1;
        }
        self.fail("a dictionary does not end")
    }
    /// `{}`, `{0, 1}`: a place in a shape.
    fn shape_index(&mut self) -> Result<()> {
        self.expect(b'{', "expects '{' at the start of ShapeIndex")?;
        if !self.is(b'}') {
            self.int()?;
            while self.eat(b',') {
                self.int()?;
            }
        }
        self.expect(b'}', "expects '}' at the end of ShapeIndex")
    }
    /// `{ {0}: (1, {}, may-alias), ... }`; the kind only in a module's header.
    pub(super) fn aliasing(&mut self, with_kind: bool) -> Result<()> {
        self.expect(b'{', "expects '{' at the start of aliasing description")?;
        while !self.is(b'}') {
            self.shape_index()?;
            self.expect(b':', "expects ':'")?;
            self.expect(b'(', "expects '('")?;
            self.int()?;
            self.expect(b',', "expects ','")?;
            self.shape_index()?;
            if with_kind && self.eat(b',') {
                if !matches!(self.tok.text, "may-alias" | "must-alias") {
                    return self.fail("unexpected aliasing kind; expected may-alias or must-alias");
                }
                self.advance();
            }
            self.expect(b')', "expects ')'")?;
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}', "expects '}' at the end of aliasing description")
    }
    fn sharding(&mut self) -> Result<()> {
        if !self.is(b'{') {
            return self.fail("expected '{' to start sharding attribute");
        }
        let start = self.tok.start;
        self.balanced()?;
        let text = &self.src[start..self.last_end];
        if text.contains("device=-") {
            return self.fail("a device of a sharding is negative");
        }
        let mut rest = text;
        while let Some(i) = rest.find("devices=") {
            rest = &rest[i + "devices=".len()..];
            if !rest.trim_start().starts_with('[') {
                return self.fail("expected '[' to start sharding devices shape");
            }
        }
        Ok(())
    }
    fn groups(&mut self) -> Result<()> {
        if self.is(b'{') {
            return self.balanced();
        }
        if !self.is(b'[') {
            // A mesh: `mesh['a'=2]{a}` or a name of one, with axes.
            if self.tok.kind != Kind::Ident {
                return self.fail("expects replica groups");
            }
            self.advance();
            while self.is(b'[') || self.is(b'{') {
                self.balanced()?;
            }
            return Ok(());
        }
        self.balanced()?;
        if self.tok.kind != Kind::AtMost {
            return self.fail("expects '<=' in replica groups");
        }
        self.advance();
        if !self.is(b'[') {
            return self.fail("expects '[' in replica groups");
        }
        self.balanced()?;
        if self.is_word("T") {
            self.advance();
            if !self.is(b'(') {
                return self.fail("expects '(' in replica groups");
            }
            self.balanced()?;
        }
        Ok(())
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
    fn window(&mut self) -> Result<Vec<WindowDim>> {
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

    fn axes(&self, values: Vec<i64>) -> Result<Vec<usize>> {
        values.into_iter().map(|v| self.index(v)).collect()
    }
    fn counts(&self, values: Vec<i64>) -> Result<Vec<u64>> {
        values.into_iter().map(|v| self.index(v).map(|v| v as u64)).collect()
    }
    fn axis(&self, attrs: &mut Attrs, name: &str) -> Result<usize> {
        match attrs.ints(name)[..] {
            [one] => self.index(one),
            _ => self.fail(format!("expects one dimension in {name}")),
        }
    }
    fn comp(&self, attrs: &mut Attrs, name: &str) -> Result<CompId> {
        match attrs.take(name) {
            Some(Value::Comp(id)) => Ok(id),
            _ => self.fail(format!("attribute {name} is expected but not seen")),
        }
    }
    /// The element type of a written array shape.
    fn written(&self, shape: &Option<Shape>, opcode: &str) -> Result<DType> {
        match shape {
            Some(Shape::Array(a)) => Ok(a.dtype),
            Some(other) => self.fail(format!("{opcode} can't have the shape {other}")),
            None => self.fail(format!("cannot infer shape for opcode: {opcode}")),
        }
    }

    /// The op of `opcode` with its attributes, which are taken out of `attrs`.
    pub(super) fn op(
        &mut self,
        opcode: &str,
        shape: &Option<Shape>,
        operands: &[InstId],
        attrs: &mut Attrs,
    ) -> Result<Op> {
        if let Some(op) = ScalarOp::parse(opcode) {
            return Ok(Op::Elementwise(op));
        }
        let op = match opcode {
            "compare" => {
                let kind = if attrs.word("type") == "TOTALORDER" { CompareKind::Total } else { CompareKind::Partial };
                Op::Elementwise(ScalarOp::Compare(direction(&attrs.word("direction")), kind))
            }
            "convert" => Op::Elementwise(ScalarOp::Convert(self.written(shape, opcode)?)),
            "bitcast-convert" => {
                let to = self.written(shape, opcode)?;
                let from = self.operand_shape(operands, 0).and_then(Shape::as_array).map(|a| a.dtype.bits());
                let same = from == Some(to.bits());
                if same { Op::Elementwise(ScalarOp::BitcastConvert(to)) } else { Op::BitcastConvertWidth }
            }
            "reduce-precision" => {
                let exponent_bits = self.bits(attrs, "exponent_bits", 1)?;
                let mantissa_bits = self.bits(attrs, "mantissa_bits", 0)?;
                Op::Elementwise(ScalarOp::ReducePrecision { exponent_bits, mantissa_bits })
            }
            "iota" => {
                let axis = attrs.int("iota_dimension", 0);
                Op::Iota(self.index(axis)?)
            }
            "broadcast" => {
                let written = attrs.has("dimensions");
                let scalar = self.operand_shape(operands, 0).and_then(Shape::as_array).is_some_and(|a| a.rank() == 0);
                if !written && !scalar {
                    return self.fail("attribute dimensions is expected but not seen");
                }
                Op::Broadcast(self.axes(attrs.ints("dimensions"))?)
            }
            "reshape" => Op::Reshape,
            "bitcast" => Op::Bitcast,
            "copy" => Op::Copy,
            "opt-barrier" | "optimization-barrier" => Op::OptimizationBarrier,
            "transpose" => Op::Transpose(self.axes(attrs.ints("dimensions"))?),
            "reverse" => Op::Reverse(self.axes(attrs.ints("dimensions"))?),
            "slice" => match attrs.take("slice") {
                Some(Value::Slices(dims)) => Op::Slice(dims),
                _ => Op::Slice(Vec::new()),
            },
            "pad" => match attrs.take("padding") {
                Some(Value::Pads(dims)) => Op::Pad(dims),
                _ => Op::Pad(Vec::new()),
            },
            "concatenate" => Op::Concatenate(self.axis(attrs, "dimensions")?),
            "dynamic-slice" => Op::DynamicSlice(self.counts(attrs.ints("dynamic_slice_sizes"))?),
            "dynamic-update-slice" => Op::DynamicUpdateSlice,
            "gather" => Op::Gather(self.gather_dims(attrs)?),
            "scatter" => Op::Scatter { dims: self.scatter_dims(attrs)?, comp: self.comp(attrs, "to_apply")? },
            "reduce" => {
                let dims = self.axes(attrs.ints("dimensions"))?;
                Op::Reduce { dims, comp: self.comp(attrs, "to_apply")? }
            }
            "reduce-window" => Op::ReduceWindow { window: attrs.window(), comp: self.comp(attrs, "to_apply")? },
            "select-and-scatter" => Op::SelectAndScatter {
                window: attrs.window(),
                select: self.comp(attrs, "select")?,
                scatter: self.comp(attrs, "scatter")?,
            },
            "sort" => Op::Sort {
                dim: self.axis(attrs, "dimensions")?,
                is_stable: attrs.bool("is_stable", false),
                comp: self.comp(attrs, "to_apply")?,
            },
            "topk" => {
                let k = attrs.int("k", 0);
                Op::TopK { k: self.index(k)? as u64, largest: attrs.bool("largest", true) }
            }
            "dot" => Op::Dot(DotDims {
                lhs_batch: self.axes(attrs.ints("lhs_batch_dims"))?,
                rhs_batch: self.axes(attrs.ints("rhs_batch_dims"))?,
                lhs_contracting: self.axes(attrs.ints("lhs_contracting_dims"))?,
                rhs_contracting: self.axes(attrs.ints("rhs_contracting_dims"))?,
            }),
            "convolution" => Op::Convolution(Box::new(self.conv_dims(attrs)?)),
            "map" => {
                let dims = self.axes(attrs.ints("dimensions"))?;
                Op::Map { comp: self.comp(attrs, "to_apply")?, dims }
            }
            "tuple" => Op::Tuple,
            "get-tuple-element" => {
                let index = attrs.int("index", 0);
                Op::GetTupleElement(self.index(index)?)
            }
            "while" => Op::While { cond: self.comp(attrs, "condition")?, body: self.comp(attrs, "body")? },
            "conditional" => self.conditional(operands, attrs)?,
            "call" => Op::Call(self.comp(attrs, "to_apply")?),
            "fusion" => {
                let kind = match attrs.word("kind").as_str() {
                    "kInput" => FusionKind::Input,
                    "kOutput" => FusionKind::Output,
                    "kCustom" => FusionKind::Custom,
                    _ => FusionKind::Loop,
                };
                Op::Fusion { comp: self.comp(attrs, "calls")?, kind }
            }
            "fft" => {
                let kind = match attrs.word("fft_type").as_str() {
                    "IFFT" => FftKind::Ifft,
                    "RFFT" => FftKind::Rfft,
                    "IRFFT" => FftKind::Irfft,
                    _ => FftKind::Fft,
                };
                Op::Fft { kind, length: self.counts(attrs.ints("fft_length"))? }
            }
            "cholesky" => Op::Cholesky { lower: attrs.bool("lower", false) },
            "triangular-solve" => Op::TriangularSolve {
                left_side: attrs.bool("left_side", false),
                lower: attrs.bool("lower", false),
                unit_diagonal: attrs.bool("unit_diagonal", false),
                transpose_a: match attrs.word("transpose_a").as_str() {
                    "TRANSPOSE" => Transpose::Yes,
                    "ADJOINT" => Transpose::Adjoint,
                    _ => Transpose::No,
                },
            },
            "batch-norm-training" | "batch-norm-inference" | "batch-norm-grad" => {
                let epsilon_bits = match attrs.take("epsilon") {
                    Some(Value::Float(v)) => (v as f32).to_bits(),
                    _ => 0,
                };
                let index = attrs.int("feature_index", 0);
                let feature_index = self.index(index)?;
                match opcode {
                    "batch-norm-training" => Op::BatchNormTraining { epsilon_bits, feature_index },
                    "batch-norm-inference" => Op::BatchNormInference { epsilon_bits, feature_index },
                    _ => Op::BatchNormGrad { epsilon_bits, feature_index },
                }
            }
            "rng" => Op::Rng { normal: attrs.word("distribution") == "rng_normal" },
            "rng-bit-generator" => Op::RngBitGenerator { algorithm: attrs.word("algorithm") },
            "get-dimension-size" => Op::GetDimensionSize(self.axis(attrs, "dimensions")?),
            "set-dimension-size" => Op::SetDimensionSize(self.axis(attrs, "dimensions")?),
            "after-all" => Op::AfterAll,
            "add-dependency" => Op::AddDependency,
            "partition-id" => Op::PartitionId,
            "replica-id" => Op::ReplicaId,
            _ => self.foreign(opcode, attrs),
        };
        Ok(op)
    }
    fn foreign(&self, opcode: &str, attrs: &mut Attrs) -> Op {
        let mut foreign = Foreign { opcode: opcode.to_string(), ..Foreign::default() };
        let all = std::mem::take(&mut attrs.list);
        for (name, value, source) in all {
            if table::COMMON.contains(&name) {
                attrs.list.push((name, value, source));
                continue;
            }
            match value {
                Value::Comp(_) | Value::Comps(_) => foreign.calls.extend(calls(name, &value)),
                _ => foreign.attrs.push((name.to_string(), source.trim().to_string())),
            }
        }
        Op::Foreign(Box::new(foreign))
    }
    fn bits(&self, attrs: &mut Attrs, name: &str, least: i64) -> Result<u32> {
        let bits = attrs.int(name, 0);
        u32::try_from(bits)
            .ok()
            .filter(|&b| i64::from(b) >= least)
            .map_or_else(|| self.fail(format!("{name} must be at least {least}")), Ok)
    }
    fn gather_dims(&self, attrs: &mut Attrs) -> Result<GatherDims> {
        Ok(GatherDims {
            offset_dims: self.axes(attrs.ints("offset_dims"))?,
            collapsed_slice_dims: self.axes(attrs.ints("collapsed_slice_dims"))?,
            start_index_map: self.axes(attrs.ints("start_index_map"))?,
            index_vector_dim: self.index(attrs.int("index_vector_dim", 0))?,
            operand_batching_dims: self.axes(attrs.ints("operand_batching_dims"))?,
            start_indices_batching_dims: self.axes(attrs.ints("start_indices_batching_dims"))?,
            slice_sizes: self.counts(attrs.ints("slice_sizes"))?,
            indices_are_sorted: attrs.bool("indices_are_sorted", false),
        })
    }
    fn scatter_dims(&self, attrs: &mut Attrs) -> Result<ScatterDims> {
        Ok(ScatterDims {
            update_window_dims: self.axes(attrs.ints("update_window_dims"))?,
            inserted_window_dims: self.axes(attrs.ints("inserted_window_dims"))?,
            scatter_dims_to_operand_dims: self.axes(attrs.ints("scatter_dims_to_operand_dims"))?,
            index_vector_dim: self.index(attrs.int("index_vector_dim", 0))?,
            input_batching_dims: self.axes(attrs.ints("input_batching_dims"))?,
            scatter_indices_batching_dims: self.axes(attrs.ints("scatter_indices_batching_dims"))?,
            indices_are_sorted: attrs.bool("indices_are_sorted", false),
            unique_indices: attrs.bool("unique_indices", false),
        })
    }
    fn conditional(&self, operands: &[InstId], attrs: &mut Attrs) -> Result<Op> {
        let Some(Shape::Array(selector)) = self.operand_shape(operands, 0) else {
            return self.fail("the first operand must be a scalar");
        };
        if selector.rank() != 0 {
            return self.fail("the first operand must be a scalar");
        }
        if selector.dtype == DType::Pred {
            let on_true = self.comp(attrs, "true_computation")?;
            let on_false = self.comp(attrs, "false_computation")?;
            if attrs.has("branch_computations") {
                return self.fail("unexpected attribute \"branch_computations\"");
            }
            return Ok(Op::Conditional(vec![on_true, on_false]));
        }
        if attrs.has("true_computation") || attrs.has("false_computation") {
            return self.fail("unexpected attribute \"true_computation\" where an index selects");
        }
        match attrs.take("branch_computations") {
            Some(Value::Comps(ids)) => Ok(Op::Conditional(ids)),
            _ => self.fail("attribute branch_computations is expected but not seen"),
        }
    }
    /// `b01f_01io->b01f`, the window and the groups.
    fn conv_dims(&self, attrs: &mut Attrs) -> Result<ConvDims> {
        let Some(Value::Labels(text)) = attrs.take("dim_labels") else {
            return self.fail("attribute dim_labels is expected but not seen");
        };
        let (lhs, rest) = text.split_once('_').unwrap_or(("", ""));
        let (rhs, out) = rest.split_once("->").unwrap_or(("", ""));
        let (input_batch, input_feature, input_spatial) = self.labels(lhs, 'b', 'f')?;
        let (kernel_input_feature, kernel_output_feature, kernel_spatial) = self.labels(rhs, 'i', 'o')?;
        let (output_batch, output_feature, output_spatial) = self.labels(out, 'b', 'f')?;
        if lhs.len() != rhs.len() || rhs.len() != out.len() {
            return self.fail("convolution lhs, rhs, and output must have same rank");
        }
        Ok(ConvDims {
            window: attrs.window(),
            input_batch,
            input_feature,
            input_spatial,
            kernel_input_feature,
            kernel_output_feature,
            kernel_spatial,
            output_batch,
            output_feature,
            output_spatial,
            feature_group_count: self.index(attrs.int("feature_group_count", 1))? as u64,
            batch_group_count: self.index(attrs.int("batch_group_count", 1))? as u64,
        })
    }
    /// Positions of two letters and of the digits 0, 1, 2 ….
    fn labels(&self, text: &str, first: char, second: char) -> Result<(usize, usize, Vec<usize>)> {
        let (Some(a), Some(b)) = (text.find(first), text.find(second)) else {
            return self.fail(format!("dim labels {text} lack {first} or {second}"));
        };
        let spatial = text.chars().filter(char::is_ascii_digit).count();
        let place = |i: usize| {
            let digit = char::from_digit(i as u32, 10).unwrap_or('x');
            text.find(digit).map_or_else(|| self.fail(format!("dim labels {text} lack dimension {i}")), Ok)
        };
        let places = (0..spatial).map(place).collect::<Result<Vec<_>>>()?;
        let unused = text.chars().filter(|&c| c == '?').count();
        if places.len() + 2 + unused != text.len() {
            return self.fail(format!("expects unique dim labels, sees {text}"));
        }
        Ok((a, b, places))
    }
}

fn direction(word: &str) -> Direction {
    match word {
        "NE" => Direction::Ne,
        "GE" => Direction::Ge,
        "GT" => Direction::Gt,
        "LE" => Direction::Le,
        "LT" => Direction::Lt,
        _ => Direction::Eq,
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
