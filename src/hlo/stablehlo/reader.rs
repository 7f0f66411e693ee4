//! Cursor in MLIR text, with a tokenizer.
use crate::diag::{Code, Diagnostic, Error, Result};

/// Largest nesting depth of regions, tuples, lists and types.
const MAX_DEPTH: usize = 64;

/// Text with a position; white space and comments are skipped in front of every token.
#[derive(Clone)]
pub(super) struct TextReader<'a> {
    src: &'a str,
    pos: usize,
    depth: usize,
}

impl<'a> TextReader<'a> {
    /// Reader at the start of `src`.
    pub fn new(src: &'a str) -> Self {
        let mut reader = TextReader { src, pos: 0, depth: 0 };
        reader.skip();
        reader
    }
    /// The text that has not been read yet.
    pub fn remaining(&self) -> &'a str {
        &self.src[self.pos..]
    }
    /// Whether the end of the text is reached.
    pub fn at_end(&self) -> bool {
        self.pos == self.src.len()
    }
    /// Line and column of the position, from 1.
    pub fn line_and_column(&self) -> (usize, usize) {
        let before = &self.src[..self.pos];
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        (line, before.bytes().rev().take_while(|&b| b != b'\n').count() + 1)
    }
    /// Syntax error at the position.
    pub fn error(&self, message: impl Into<String>) -> Error {
        self.error_as(Code::HloSyntax, message)
    }
    /// Error with a code at the position.
    pub fn error_as(&self, code: Code, message: impl Into<String>) -> Error {
        let mut d = Diagnostic::new(code, message);
        d.place.line = Some(self.line_and_column());
        d.into()
    }
    fn skip(&mut self) {
        loop {
            let rest = self.remaining();
            let trimmed = rest.trim_start();
            self.pos += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.pos += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }
    /// Takes `bytes` bytes, and skips the white space behind them.
    pub fn take_bytes(&mut self, bytes: usize) -> &'a str {
        let taken = &self.remaining()[..bytes];
        self.pos += bytes;
        self.skip();
        taken
    }
    /// Takes `bytes` bytes, without skipping the white space behind them.
    pub fn take_raw(&mut self, bytes: usize) -> &'a str {
        let taken = &self.remaining()[..bytes];
        self.pos += bytes;
        taken
    }
    /// Whether the text continues with `text`.
    pub fn is_next(&self, text: &str) -> bool {
        self.remaining().starts_with(text)
    }
    /// Takes `text` if it is next; returns whether it was.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.is_next(text);
        if found {
            self.take_bytes(text.len());
        }
        found
    }
    /// Takes `text`, which must be next.
    pub fn expect(&mut self, text: &str) -> Result<()> {
        if self.eat(text) { Ok(()) } else { Err(self.error(format!("expects `{text}`"))) }
    }
    /// Takes `word` if it is the next word; returns whether it was.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        if found {
            self.take_bytes(word.len());
        }
        found
    }
    /// Next word: letters, digits, `_`, `.` and `$`; empty if there is none.
    pub fn peek_word(&self) -> &'a str {
        let rest = self.remaining();
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return "";
        }
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_.$".contains(c)));
        &rest[..end.unwrap_or(rest.len())]
    }
    /// Takes the next word.
    pub fn word(&mut self) -> Result<&'a str> {
        match self.peek_word() {
            "" => Err(self.error("expects a word")),
            word => Ok(self.take_bytes(word.len())),
        }
    }
    /// Takes a name behind a sigil: letters, digits, `_`, `.`, `$`, `-`, or a string.
    pub fn suffix(&mut self) -> Result<&'a str> {
        if self.is_next("\"") {
            return self.string();
        }
        let rest = self.remaining();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_.$-".contains(c))).unwrap_or(rest.len());
        // The dash of `%0->` does not belong to the name.
        let end = if rest[..end].ends_with('-') && rest[end..].starts_with('>') { end - 1 } else { end };
        if end == 0 { Err(self.error("expects a name")) } else { Ok(self.take_bytes(end)) }
    }
    /// Takes a quoted string; returns its text, with escapes unresolved.
    pub fn string(&mut self) -> Result<&'a str> {
        let bytes = self.remaining().as_bytes();
        if bytes.first() != Some(&b'"') {
            return Err(self.error("expects a string"));
        }
        let mut i = 1;
        while bytes.get(i).is_some_and(|&b| b != b'"') {
            i += if bytes[i] == b'\\' { 2 } else { 1 };
        }
        if i >= bytes.len() {
            return Err(self.error("a string does not end"));
        }
        let all = self.take_bytes(i + 1);
        Ok(&all[1..i])
    }
    /// Text of the next number: digits, point, exponent, or `0x...`.
    pub fn peek_number(&self) -> &'a str {
        let rest = self.remaining();
        let unsigned = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let sign = rest.len() - unsigned.len();
        if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
            return "";
        }
        if let Some(hex) = unsigned.strip_prefix("0x") {
            let n = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
            if n > 0 {
                return &rest[..sign + 2 + n];
            }
        }
        let mut end = 0;
        let bytes = unsigned.as_bytes();
        while let Some(&b) = bytes.get(end) {
            let signed_exponent = matches!(b, b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
            if !(b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E') || signed_exponent) {
                break;
            }
            end += 1;
        }
        &rest[..sign + end]
    }
    /// Takes an integer.
    pub fn int(&mut self) -> Result<i64> {
        let rest = self.remaining();
        let unsigned = rest.strip_prefix('-').unwrap_or(rest);
        let n = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
        let end = rest.len() - unsigned.len() + n;
        let value = rest[..end].parse().map_err(|_| self.error("expects a whole number"))?;
        self.take_bytes(end);
        Ok(value)
    }
    /// Skips a bracketed part; returns its text.
    pub fn skip_bracketed(&mut self) -> Result<&'a str> {
        if !self.remaining().starts_with(['{', '(', '[', '<']) {
            return Err(self.error("expects a bracket"));
        }
        let start = self.pos;
        let mut open: Vec<u8> = Vec::new();
        let bytes = self.src.as_bytes();
        let mut i = self.pos;
        while let Some(&b) = bytes.get(i) {
            match b {
                b'"' => {
                    self.pos = i;
                    self.string()?;
                    i = self.pos;
                    continue;
                }
                b'{' => open.push(b'}'),
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                b'<' => open.push(b'>'),
                b'>' if i > start && bytes[i - 1] == b'-' => {}
                b'}' | b')' | b']' | b'>' if open.pop() != Some(b) => {
                    return Err(self.error("brackets do not match"));
                }
                _ => {}
            }
            i += 1;
            if open.is_empty() {
                self.pos = i;
                self.skip();
                return Ok(&self.src[start..i]);
            }
        }
        Err(self.error("a bracket is not closed"))
    }
    /// Enters a level of nesting.
    pub fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(self.error(format!("nested deeper than {MAX_DEPTH} levels"))) } else { Ok(()) }
    }
    /// Leaves a level of nesting.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }
    /// Parses items separated by commas, up to and including `close`.
    pub fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut out = Vec::new();
        self.enter()?;
        while !self.eat(close) {
            if !out.is_empty() {
                self.expect(",")?;
            }
            out.push(item(self)?);
        }
        self.leave();
        Ok(out)
    }
}
