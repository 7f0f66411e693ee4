//! Scanner of opaque attribute texts.
use crate::diag::{Code, Error, Result};

/// Cursor in an attribute's text that skips white space.
pub(in crate::hlo) struct TextCursor<'a> {
    all: &'a str,
    rest: &'a str,
}

impl<'a> TextCursor<'a> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        TextCursor { all: text, rest: text.trim_start() }
    }
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest.trim_start();
        taken
    }
    /// Whether the end of the text is reached.
    pub fn at_end(&self) -> bool {
        self.rest.is_empty()
    }
    /// Whether `c` comes next.
    pub fn is_next(&self, c: char) -> bool {
        self.rest.starts_with(c)
    }
    /// Skips `c` if it comes next.
    pub fn eat(&mut self, c: char) -> bool {
        let found = self.rest.starts_with(c);
        if found {
            self.skip(c.len_utf8());
        }
        found
    }
    /// Skips `text` if it comes next.
    pub fn eat_text(&mut self, text: &str) -> bool {
        let found = self.rest.starts_with(text);
        if found {
            self.skip(text.len());
        }
        found
    }
    /// Skips `c`, which must come next.
    pub fn expect(&mut self, c: char) -> Result<()> {
        if self.eat(c) { Ok(()) } else { Err(self.expected_error(&format!("`{c}`"))) }
    }
    /// The error for unexpected input: `wanted` was expected.
    pub fn expected_error(&self, wanted: &str) -> Error {
        let at = self.all.len() - self.rest.len();
        Error::user(Code::HloSyntax, format!("expects {wanted} at byte {at} of `{}`", self.all))
    }
    /// Reads a word of letters, digits, `_`, `-`, `.` and `%`; empty if none is next.
    pub fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.%".contains(c)));
        self.skip(end.unwrap_or(self.rest.len()))
    }
    /// Reads an integer.
    pub fn int(&mut self) -> Result<i64> {
        let digits = self.rest.strip_prefix('-').unwrap_or(self.rest);
        let n = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let length = n + self.rest.len() - digits.len();
        let value = self.rest[..length].parse().map_err(|_| self.expected_error("a number"))?;
        self.skip(length);
        Ok(value)
    }
    /// Whether an integer comes next.
    pub fn is_int_next(&self) -> bool {
        self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '-')
    }
    /// Reads integers between `open` and `close`, separated by commas.
    pub fn ints(&mut self, open: char, close: char) -> Result<Vec<i64>> {
        self.expect(open)?;
        let mut out = Vec::new();
        while !self.eat(close) {
            out.push(self.int()?);
            self.eat(',');
        }
        Ok(out)
    }
    /// Reads an integer in parentheses.
    pub fn parenthesized_int(&mut self) -> Result<i64> {
        self.expect('(')?;
        let value = self.int()?;
        self.expect(')')?;
        Ok(value)
    }
    /// Reads the name of a layout property, in front of its parentheses.
    pub fn layout_property(&mut self) -> Option<&'a str> {
        if self.at_end() {
            return None;
        }
        let end = self.rest.find('(').unwrap_or(self.rest.len());
        Some(self.skip(end))
    }
    /// Reads the text of a floating-point number.
    pub fn number(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c)));
        self.skip(end.unwrap_or(self.rest.len()))
    }
    /// Reads `{...}` with its content; braces in strings do not count.
    pub fn braces(&mut self) -> Result<&'a str> {
        let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
        for (i, b) in self.rest.bytes().enumerate() {
            match b {
                _ if std::mem::take(&mut escaped) => {}
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' if !quoted => depth += 1,
                b'}' if !quoted && depth <= 1 => return Ok(self.skip(i + 1).trim_end()),
                b'}' if !quoted => depth -= 1,
                _ => {}
            }
        }
        Err(self.expected_error("`{...}`"))
    }
    /// Reads a quoted string, with its escapes resolved.
    pub fn quoted(&mut self) -> Result<Vec<u8>> {
        let bytes = self.rest.as_bytes();
        if bytes.first() != Some(&b'"') {
            return Err(self.expected_error("a string"));
        }
        let mut i = 1;
        while bytes.get(i).is_some_and(|&b| b != b'"') {
            i += if bytes[i] == b'\\' { 2 } else { 1 };
        }
        if i >= bytes.len() {
            return Err(self.expected_error("the end of a string"));
        }
        let out = unescape(&self.rest[1..i]);
        self.skip(i + 1);
        Ok(out)
    }
}

/// Bytes of a text with C escapes.
pub fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while let Some(&b) = bytes.get(i) {
        i += 1;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let Some(&c) = bytes.get(i) else { break };
        i += 1;
        match c {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'0'..=b'7' => {
                let mut value = u32::from(c - b'0');
                for _ in 0..2 {
                    let Some(&d @ b'0'..=b'7') = bytes.get(i) else { break };
                    value = value * 8 + u32::from(d - b'0');
                    i += 1;
                }
                out.push(value as u8);
            }
            b'x' => {
                let digit = |i: usize| bytes.get(i).and_then(|&d| (d as char).to_digit(16));
                let mut value = 0;
                while let Some(d) = digit(i) {
                    value = (value * 16 + d) & 0xff;
                    i += 1;
                }
                out.push(value as u8);
            }
            other => out.push(other),
        }
    }
    out
}

/// Quoted text of `bytes`, with C escapes.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", escape(bytes))
}

/// Text of `bytes`, with C escapes.
pub(super) fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &b in bytes {
        match b {
            b'\n' => out += "\\n",
            b'\t' => out += "\\t",
            b'\r' => out += "\\r",
            b'"' | b'\'' | b'\\' => {
                out.push('\\');
                out.push(b as char);
            }
            0x20..=0x7e => out.push(b as char),
            _ => out += &format!("\\{b:03o}"),
        }
    }
    out
}
