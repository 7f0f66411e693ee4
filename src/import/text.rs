//! Conversion of protobuf's text format to the wire format, which one reader then parses.
//!
//! Grammar: `name: value`, `name { .. }`, `name < .. >`, `name: [a, b]`, `#` comments, `,` and `;` between fields, adjacent
//! strings are one, `[type.url/x] { .. }` inside skipped messages. Errors have line and column.
use super::schema::{FieldFormat, FieldType, MessageOrMapEntry, put_scalar};
use super::wire::put_bytes;
use crate::diag::{Code, Diagnostic, Result};

/// Maximum depth of nested messages.
const MOST_DEPTH: u32 = 64;

/// The wire form of `text`, a message of type `scope`. Errors: `BadEncoding` with line and column.
pub fn encode(text: &[u8], scope: &MessageOrMapEntry) -> Result<Vec<u8>> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut parser = Parser { text, at: 0 };
    let mut out = Vec::new();
    parser.fields(scope, None, 0, &mut out)?;
    Ok(out)
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    /// Parses fields up to the bracket `close`, or to the end of the text.
    fn fields(
        &mut self,
        scope: &MessageOrMapEntry,
        close: Option<u8>,
        depth: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Diagnostic> {
        if depth > MOST_DEPTH {
            return Err(self.bad(format!("messages nest deeper than {MOST_DEPTH} levels")));
        }
        loop {
            while self.eat(b",") || self.eat(b";") {}
            match self.peek() {
                None if close.is_none() => return Ok(()),
                None => return Err(self.bad("a message is not closed")),
                next if next == close => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => self.field(scope, depth, out)?,
            }
        }
    }
    fn field(&mut self, scope: &MessageOrMapEntry, depth: u32, out: &mut Vec<u8>) -> Result<(), Diagnostic> {
        self.blank();
        let start = self.at;
        let name = self.word();
        if name.is_empty() {
            return Err(self.bad("expected the name of a field"));
        }
        let Some(field) = scope.field(name) else {
            let what = format!("{} has no field `{name}`", scope.name());
            self.at = start;
            return Err(self.bad(what));
        };
        let colon = self.eat(b":");
        if let FieldType::Opaque = field.kind {
            return self.skip_value();
        }
        if field.repeated && self.eat(b"[") {
            if self.eat(b"]") {
                return Ok(());
            }
            loop {
                self.value(&field, colon, depth, out)?;
                if self.eat(b"]") {
                    return Ok(());
                }
                if !self.eat(b",") {
                    return Err(self.bad("expected `,` or `]`"));
                }
            }
        }
        self.value(&field, colon, depth, out)
    }
    fn value(&mut self, field: &FieldFormat, colon: bool, depth: u32, out: &mut Vec<u8>) -> Result<(), Diagnostic> {
        if let FieldType::Message(scope) = &field.kind {
            let close = match self.peek() {
                Some(b'{') => b'}',
                Some(b'<') => b'>',
                _ => return Err(self.bad("expected `{`")),
            };
            self.at += 1;
            let mut inner = Vec::new();
            self.fields(scope, Some(close), depth + 1, &mut inner)?;
            put_bytes(out, field.number, &inner);
            return Ok(());
        }
        if !colon {
            return Err(self.bad("expected `:`"));
        }
        let quoted = matches!(self.peek(), Some(b'"' | b'\''));
        if matches!(field.kind, FieldType::Text | FieldType::Bytes) {
            if !quoted {
                return Err(self.bad("expected a string in quotes"));
            }
            let bytes = self.strings()?;
            put_bytes(out, field.number, &bytes);
            return Ok(());
        }
        let start = self.at;
        let literal = self.literal();
        if quoted || literal.is_empty() || put_scalar(out, field, &literal).is_none() {
            self.at = start;
            return Err(self.bad(format!("`{literal}` is no value of this field")));
        }
        Ok(())
    }
    /// A number or a name; blanks may follow a sign.
    fn literal(&mut self) -> String {
        let minus = if self.eat(b"-") { "-" } else { "" };
        self.blank();
        let start = self.at;
        while let Some(&c) = self.text.get(self.at) {
            let exponent = matches!(c, b'+' | b'-') && self.at > start && matches!(self.text[self.at - 1], b'e' | b'E');
            if !(c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.') || exponent) {
                break;
            }
            self.at += 1;
        }
        format!("{minus}{}", String::from_utf8_lossy(&self.text[start..self.at]))
    }
    /// One string, or several adjacent ones that are concatenated.
    fn strings(&mut self) -> Result<Vec<u8>, Diagnostic> {
        let mut out = Vec::new();
        while let Some(quote @ (b'"' | b'\'')) = self.peek() {
            self.at += 1;
            loop {
                let Some(&c) = self.text.get(self.at) else { return Err(self.bad("a string is not closed")) };
                self.at += 1;
                match c {
                    c if c == quote => break,
                    b'\n' => return Err(self.bad("a string is not closed on its line")),
                    b'\\' => self.escape(&mut out)?,
                    c => out.push(c),
                }
            }
        }
        Ok(out)
    }
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Diagnostic> {
        let Some(&c) = self.text.get(self.at) else { return Err(self.bad("a string is not closed")) };
        self.at += 1;
        match c {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'v' => out.push(11),
            b'\\' | b'\'' | b'"' | b'?' => out.push(c),
            b'x' | b'X' => {
                let value = self.digits(16, 2);
                out.push(value.ok_or_else(|| self.bad("`\\x` needs a hexadecimal digit"))? as u8);
            }
            b'0'..=b'7' => {
                self.at -= 1;
                let value = self.digits(8, 3).and_then(|v| u8::try_from(v).ok());
                out.push(value.ok_or_else(|| self.bad("an octal escape is above \\377"))?);
            }
            b'u' | b'U' => {
                let value = self.digits(16, if c == b'u' { 4 } else { 8 }).and_then(char::from_u32);
                let value = value.ok_or_else(|| self.bad("an escape is no character"))?;
                out.extend_from_slice(value.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return Err(self.bad("an escape is not known")),
        }
        Ok(())
    }
    /// Parses up to `most` digits.
    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = self.text.get(self.at).and_then(|&c| char::from(c).to_digit(radix)) else { break };
            value = Some(value.unwrap_or(0u32).wrapping_mul(radix) + digit);
            self.at += 1;
        }
        value
    }
    /// Skips a value of any kind. Brackets are counted, so nesting needs no recursion.
    fn skip_value(&mut self) -> Result<(), Diagnostic> {
        if !matches!(self.peek(), Some(b'{' | b'<' | b'[')) {
            if matches!(self.peek(), Some(b'"' | b'\'')) {
                return self.strings().map(|_| ());
            }
            self.literal();
            return Ok(());
        }
        let mut open = 0usize;
        loop {
            match self.peek() {
                None => return Err(self.bad("a message is not closed")),
                Some(b'{' | b'<' | b'[') => open += 1,
                Some(b'}' | b'>' | b']') => open -= 1,
                Some(b'"' | b'\'') => {
                    self.strings()?;
                    continue;
                }
                Some(_) => {}
            }
            self.at += 1;
            if open == 0 {
                return Ok(());
            }
        }
    }
    fn word(&mut self) -> &'a str {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_') {
            self.at += 1;
        }
        std::str::from_utf8(&self.text[start..self.at]).unwrap_or("")
    }
    fn blank(&mut self) {
        while let Some(&c) = self.text.get(self.at) {
            if c == b'#' {
                while self.text.get(self.at).is_some_and(|&c| c != b'\n') {
                    self.at += 1;
                }
            } else if c.is_ascii_whitespace() || c == 11 {
                self.at += 1;
            } else {
                break;
            }
        }
    }
    fn peek(&mut self) -> Option<u8> {
        self.blank();
        self.text.get(self.at).copied()
    }
    fn eat(&mut self, c: &[u8; 1]) -> bool {
        let found = self.peek() == Some(c[0]);
        self.at += usize::from(found);
        found
    }
    fn bad(&self, what: impl Into<String>) -> Diagnostic {
        let before = &self.text[..self.at.min(self.text.len())];
        let line = before.iter().filter(|&&c| c == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&c| c != b'\n').count() + 1;
        let mut diagnostic = Diagnostic::new(Code::BadEncoding, what);
        diagnostic.place.line = Some((line, column));
        diagnostic
    }
}
