//! Parser of opaque attributes, which are checked for syntax only and kept as text.
use super::lexer::TokenKind;
use super::parser::Parser;
use crate::diag::Result;

impl Parser<'_> {
    /// Parses `{mode=highest}` or `{tolerance={atol=.. rtol=.. ulps=..}}`.
    pub(super) fn accuracy(&mut self) -> Result<()> {
        self.expect(b'{', "expects '{' at the start of result_accuracy")?;
        if self.tok.kind != TokenKind::AttrName {
            return self.fail("expects attribute name");
        }
        let name = self.tok.text;
        self.advance();
        match name {
            "tolerance" => self.skip_braces()?,
            "mode" if matches!(self.tok.text.to_ascii_lowercase().as_str(), "default" | "highest") => self.advance(),
            _ => return self.fail("expects ResultAccuracy type"),
        }
        self.expect(b'}', "expects '}' at the end of result_accuracy")
    }
    /// Parses `{ (0, {1}), (2, {}) }`: parameters, with indices in their shapes.
    pub(super) fn donors(&mut self) -> Result<()> {
        self.expect(b'{', "expects '{' at the start of buffer_donor")?;
        while !self.next_is(b'}') {
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
    pub(super) fn skip_braces(&mut self) -> Result<()> {
        if !self.next_is(b'{') {
            return self.fail("expects '{'");
        }
        self.skip_balanced()
    }
    pub(super) fn skip_balanced(&mut self) -> Result<()> {
        let mut open = Vec::new();
        loop {
            match self.tok.kind {
                TokenKind::Punct(b'{') => open.push(b'}'),
                TokenKind::Punct(b'(') => open.push(b')'),
                TokenKind::Punct(b'[') => open.push(b']'),
                TokenKind::Punct(c @ (b'}' | b')' | b']')) if open.pop() != Some(c) => {
                    return self.fail("brackets do not match");
                }
                TokenKind::Eof | TokenKind::Error => return self.fail("unexpected token"),
                _ => {}
            }
            self.advance();
            if open.is_empty() {
                return Ok(());
            }
        }
    }
    /// Skips `{...}` byte by byte, as JSON does not consist of HLO tokens.
    pub(super) fn skip_config(&mut self) -> Result<()> {
        if !self.next_is(b'{') {
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
                        self.jump_to(i + 1);
                        return Ok(());
                    }
                }
                _ => {}
            }
            i += 1;
        }
        self.fail("a dictionary does not end")
    }
    /// Parses a shape index: `{}`, `{0, 1}`.
    pub(super) fn shape_index(&mut self) -> Result<()> {
        self.expect(b'{', "expects '{' at the start of ShapeIndex")?;
        if !self.next_is(b'}') {
            self.int()?;
            while self.eat(b',') {
                self.int()?;
            }
        }
        self.expect(b'}', "expects '}' at the end of ShapeIndex")
    }
    /// Parses `{ {0}: (1, {}, may-alias), ... }`; the kind only in a module's header.
    pub(super) fn aliasing(&mut self, with_kind: bool) -> Result<()> {
        self.expect(b'{', "expects '{' at the start of aliasing description")?;
        while !self.next_is(b'}') {
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
    pub(super) fn sharding(&mut self) -> Result<()> {
        if !self.next_is(b'{') {
            return self.fail("expected '{' to start sharding attribute");
        }
        let start = self.tok.start;
        self.skip_balanced()?;
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
    pub(super) fn groups(&mut self) -> Result<()> {
        if self.next_is(b'{') {
            return self.skip_balanced();
        }
        if !self.next_is(b'[') {
            // A mesh: `mesh['a'=2]{a}` or a name of one, with axes.
            if self.tok.kind != TokenKind::Ident {
                return self.fail("expects replica groups");
            }
            self.advance();
            while self.next_is(b'[') || self.next_is(b'{') {
                self.skip_balanced()?;
            }
            return Ok(());
        }
        self.skip_balanced()?;
        if self.tok.kind != TokenKind::AtMost {
            return self.fail("expects '<=' in replica groups");
        }
        self.advance();
        if !self.next_is(b'[') {
            return self.fail("expects '[' in replica groups");
        }
        self.skip_balanced()?;
        if self.is_word("T") {
            self.advance();
            if !self.next_is(b'(') {
                return self.fail("expects '(' in replica groups");
            }
            self.skip_balanced()?;
        }
        Ok(())
    }
}
