//! Lexer of HLO text.
//!
//! Tokens that begin with a digit, `-` or `?` overlap; they are tried in this order: float, dim labels (`b01f_01io->b01f`),
//! sizes (`3x3`), padding (`0_1x2_3`), integer, `-inf`, `-nan`. A name directly followed by `=` is an attribute's name; one
//! directly followed by `:` includes the colon.

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// End of the text.
    Eof,
    /// Bytes that do not begin a token.
    Error,
    /// Punctuation: one of `= , : * # + ~ [ ] { } ( ) ?`.
    Punct(u8),
    /// Arrow: `->`.
    Arrow,
    /// Size bound: `<=`.
    AtMost,
    /// Elision: `...`.
    Dots,
    /// Name: `%name` or `name:`.
    Name,
    /// Attribute name: `name=`.
    AttrName,
    /// Dimension labels: `b01f_01io->b01f`.
    DimLabels,
    /// Sizes: `3x3`.
    Sizes,
    /// Padding: `0_1x2_3_1`.
    Pad,
    /// Unquoted word.
    Ident,
    /// Word of the grammar: `true`, `HloModule`, `ROOT`, `replicated` …
    Keyword,
    /// Quoted string, with escapes unresolved.
    Str,
    /// Integer.
    Int,
    /// Number with a point or an exponent.
    Decimal,
    /// Type: `f32`, `token` …
    Type,
    /// Special float: `inf`, `-inf`, `nan`, `-nan`, `nan(0x1)`.
    Special,
}

/// Token: its kind, text and position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub kind: TokenKind,
    /// Text without `%`, `:`, `=` or quotes.
    pub text: &'a str,
    pub start: usize,
    pub end: usize,
}

/// Iterator over the tokens of a text.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    pub src: &'a str,
    pub pos: usize,
}

const KEYWORDS: &[&str] = &[
    "true",
    "false",
    "HloModule",
    "ENTRY",
    "ROOT",
    "maximal",
    "replicated",
    "manual",
    "unknown",
    "unreduced",
    "last_tile_dim_replicate",
    "shard_as",
    "shard_like",
];

fn word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

impl<'a> Lexer<'a> {
    pub fn new(src: &'a str) -> Self {
        Lexer { src, pos: 0 }
    }
    fn byte_at(&self, i: usize) -> u8 {
        self.src.as_bytes().get(i).copied().unwrap_or(0)
    }
    /// Skips spaces and comments; false if a comment does not end.
    fn skip(&mut self) -> bool {
        loop {
            match self.byte_at(self.pos) {
                b' ' | b'\t' | b'\n' | b'\r' => self.pos += 1,
                b'/' if self.byte_at(self.pos + 1) == b'/' => {
                    let rest = &self.src.as_bytes()[self.pos..];
                    self.pos += rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
                }
                b'/' if self.byte_at(self.pos + 1) == b'*' => {
                    match self.src.as_bytes()[self.pos + 2..].windows(2).position(|w| w == b"*/") {
                        Some(n) => self.pos += n + 4,
                        None => return false,
                    }
                }
                _ => return true,
            }
        }
    }
    fn token(&self, kind: TokenKind, start: usize, text_start: usize, text_end: usize) -> Token<'a> {
        Token { kind, text: self.src.get(text_start..text_end).unwrap_or(""), start, end: self.pos }
    }
    /// Reads the next token.
    pub fn next(&mut self) -> Token<'a> {
        if !self.skip() {
            return self.token(TokenKind::Error, self.pos, self.pos, self.pos);
        }
        let start = self.pos;
        if start >= self.src.len() {
            return self.token(TokenKind::Eof, start, start, start);
        }
        let byte = self.byte_at(start);
        let kind = match byte {
            b'-' if self.byte_at(start + 1) == b'>' => self.take_token(2, TokenKind::Arrow),
            b'<' if self.byte_at(start + 1) == b'=' => self.take_token(2, TokenKind::AtMost),
            b'.' if self.src[start..].starts_with("...") => self.take_token(3, TokenKind::Dots),
            b'0'..=b'9' | b'-' | b'?' => self.number(),
            b'%' => return self.lex_percent(),
            b'"' => return self.string(),
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => return self.word(),
            b'=' | b',' | b':' | b'*' | b'#' | b'+' | b'~' | b'[' | b']' | b'{' | b'}' | b'(' | b')' => {
                self.take_token(1, TokenKind::Punct(byte))
            }
            _ => {
                let n = self.src[start..].chars().next().map_or(1, char::len_utf8);
                self.take_token(n, TokenKind::Error)
            }
        };
        self.token(kind, start, start, self.pos)
    }
    fn take_token(&mut self, n: usize, kind: TokenKind) -> TokenKind {
        self.pos += n;
        kind
    }
    fn lex_percent(&mut self) -> Token<'a> {
        let start = self.pos;
        self.pos += 1;
        if !(self.byte_at(self.pos).is_ascii_alphabetic() || self.byte_at(self.pos) == b'_') {
            return self.token(TokenKind::Error, start, start, self.pos);
        }
        while word_byte(self.byte_at(self.pos)) {
            self.pos += 1;
        }
        self.token(TokenKind::Name, start, start + 1, self.pos)
    }
    fn string(&mut self) -> Token<'a> {
        let start = self.pos;
        let mut i = start + 1;
        loop {
            match self.byte_at(i) {
                b'"' => break,
                b'\\' if i + 1 < self.src.len() => i += 2,
                _ if i >= self.src.len() => {
                    self.pos = start + 1;
                    return self.token(TokenKind::Error, start, start, start + 1);
                }
                _ => i += 1,
            }
        }
        self.pos = i + 1;
        self.token(TokenKind::Str, start, start + 1, i)
    }
    fn word(&mut self) -> Token<'a> {
        let start = self.pos;
        let mut end = start;
        while word_byte(self.byte_at(end)) {
            end += 1;
        }
        let text = &self.src[start..end];
        self.pos = end;
        match self.byte_at(end) {
            b':' => {
                self.pos += 1;
                return self.token(TokenKind::Name, start, start, end);
            }
            b'=' => {
                self.pos += 1;
                return self.token(TokenKind::AttrName, start, start, end);
            }
            _ => {}
        }
        if is_type(text) {
            return self.token(TokenKind::Type, start, start, end);
        }
        if text == "inf" || text == "nan" {
            if text == "nan" {
                self.pos += nan_payload(&self.src[end..]);
            }
            return self.token(TokenKind::Special, start, start, self.pos);
        }
        if KEYWORDS.contains(&text) {
            return self.token(TokenKind::Keyword, start, start, end);
        }
        if let Some(n) = dim_labels(&self.src.as_bytes()[start..]) {
            self.pos = start + n;
            return self.token(TokenKind::DimLabels, start, start, self.pos);
        }
        self.token(TokenKind::Ident, start, start, end)
    }
    fn number(&mut self) -> TokenKind {
        let rest = &self.src.as_bytes()[self.pos..];
        if let Some(n) = float(rest) {
            return self.take_token(n, TokenKind::Decimal);
        }
        if let Some(n) = dim_labels(rest) {
            return self.take_token(n, TokenKind::DimLabels);
        }
        if let Some(n) = sizes(rest) {
            return self.take_token(n, TokenKind::Sizes);
        }
        if let Some(n) = pads(rest) {
            return self.take_token(n, TokenKind::Pad);
        }
        let sign = usize::from(rest[0] == b'-');
        let n = digits(&rest[sign..]);
        if n > 0 {
            return self.take_token(sign + n, TokenKind::Int);
        }
        if rest.starts_with(b"-inf") {
            return self.take_token(4, TokenKind::Special);
        }
        if rest.starts_with(b"-nan") {
            let n = nan_payload(&self.src[self.pos + 4..]);
            return self.take_token(4 + n, TokenKind::Special);
        }
        if rest[0] == b'?' { self.take_token(1, TokenKind::Punct(b'?')) } else { self.take_token(1, TokenKind::Error) }
    }
}

/// Whether `text` is a reserved type name.
pub(super) fn is_type(text: &str) -> bool {
    matches!(text, "token" | "opaque" | "s1" | "u1") || crate::tensor::DType::parse(text).is_some()
}

/// Whether `text` can't stand as a bare name.
pub(super) fn is_reserved(text: &str) -> bool {
    is_type(text) || KEYWORDS.contains(&text) || matches!(text, "inf" | "nan")
}

fn digits(b: &[u8]) -> usize {
    b.iter().take_while(|c| c.is_ascii_digit()).count()
}

fn nan_payload(rest: &str) -> usize {
    let b = rest.as_bytes();
    if !rest.starts_with("(0x") {
        return 0;
    }
    let n = b[3..].iter().take_while(|c| c.is_ascii_hexdigit()).count();
    if n > 0 && b.get(3 + n) == Some(&b')') { n + 4 } else { 0 }
}

/// Length of a number with a point, an exponent, or both.
fn float(b: &[u8]) -> Option<usize> {
    let mut i = usize::from(b.first() == Some(&b'-'));
    let whole = digits(&b[i..]);
    i += whole;
    let mut is_float = false;
    let mut fraction = 0;
    if b.get(i) == Some(&b'.') {
        fraction = digits(&b[i + 1..]);
        if whole + fraction > 0 {
            is_float = true;
            i += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(b.get(i), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(b.get(i + 1), Some(b'+' | b'-')));
        let n = digits(b.get(i + 1 + sign..).unwrap_or(&[]));
        if n > 0 {
            return Some(i + 1 + sign + n);
        }
    }
    is_float.then_some(i)
}

fn labels(b: &[u8], letters: &[u8]) -> usize {
    b.iter().take_while(|c| c.is_ascii_digit() || letters.contains(c)).count()
}

fn dim_labels(b: &[u8]) -> Option<usize> {
    let first = labels(b, b"bf?");
    let kernel = labels(b.get(first + 1..)?, b"io?");
    let arrow = first + 1 + kernel;
    if first < 2 || b[first] != b'_' || kernel < 2 || !b.get(arrow..)?.starts_with(b"->") {
        return None;
    }
    let last = labels(&b[arrow + 2..], b"bf?");
    (last >= 2).then_some(arrow + 2 + last)
}

fn sizes(b: &[u8]) -> Option<usize> {
    let mut i = digits(b);
    let mut many = false;
    while i > 0 && b.get(i) == Some(&b'x') {
        match digits(&b[i + 1..]) {
            0 => break,
            n => i += 1 + n,
        }
        many = true;
    }
    many.then_some(i)
}

fn pads(b: &[u8]) -> Option<usize> {
    let signed = |b: &[u8]| {
        let sign = usize::from(b.first() == Some(&b'-'));
        match digits(&b[sign..]) {
            0 => None,
            n => Some(sign + n),
        }
    };
    let one = |b: &[u8]| {
        let low = signed(b)?;
        if b.get(low) != Some(&b'_') {
            return None;
        }
        let mut end = low + 1 + signed(&b[low + 1..])?;
        if b.get(end) == Some(&b'_') {
            let n = digits(&b[end + 1..]);
            end += if n > 0 { n + 1 } else { 0 };
        }
        Some(end)
    };
    let mut i = one(b)?;
    while b.get(i) == Some(&b'x') {
        match one(&b[i + 1..]) {
            Some(n) => i += 1 + n,
            None => break,
        }
    }
    Some(i)
}
