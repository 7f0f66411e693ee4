//! Parser of shapes: `f32[2,<=3]{1,0:T(8,128)}`, tuples, `token[]`.
use super::lexer::TokenKind;
use super::parser::Parser;
use crate::diag::Result;
use crate::hlo::{ArrayShape, Shape, XlaLayout};
use crate::tensor::DType;

const DEPTH: usize = 128;

/// Size that stands for `?`.
pub const UNBOUNDED: u64 = u64::MAX;

impl<'a> Parser<'a> {
    /// Whether the next token begins a shape.
    pub(super) fn is_shape_next(&self) -> bool {
        self.tok.kind == TokenKind::Type || self.next_is(b'(') || self.at_buffer()
    }
    fn at_buffer(&self) -> bool {
        self.tok.kind == TokenKind::Ident && self.tok.text == "b" && self.src[self.tok.end..].starts_with('(')
    }
    /// Parses a shape.
    pub(super) fn shape(&mut self) -> Result<Shape> {
        if self.eat(b'(') {
            self.enter(DEPTH)?;
            let mut parts = Vec::new();
            while !self.next_is(b')') {
                if !parts.is_empty() {
                    self.expect(b',', "expects ',' in a tuple shape")?;
                }
                parts.push(self.shape()?);
            }
            self.advance();
            self.leave();
            return Ok(Shape::Tuple(parts));
        }
        if self.at_buffer() {
            self.advance();
            self.expect(b'(', "expects '(' after b")?;
            self.enter(DEPTH)?;
            let inner = self.shape()?;
            self.leave();
            self.expect(b')', "expects ')' at the end of a buffer shape")?;
            return match inner {
                Shape::Array(a) => Ok(Shape::Buffer(Box::new(a))),
                _ => self.fail("expects an array shape in a buffer shape"),
            };
        }
        if self.tok.kind != TokenKind::Type {
            return self.fail(format!("expected primitive type, saw `{}`", self.tok.text));
        }
        let name = self.tok.text;
        self.advance();
        self.array(name)
    }
    fn array(&mut self, name: &str) -> Result<Shape> {
        self.expect(b'[', "expects '[' after an element type")?;
        let (mut dims, mut dynamic) = (Vec::new(), Vec::new());
        while !self.next_is(b']') {
            if !dims.is_empty() {
                self.expect(b',', "expects ',' between dimensions")?;
            }
            if self.eat(b'?') {
                dims.push(UNBOUNDED);
                dynamic.push(true);
                continue;
            }
            let bounded = self.tok.kind == TokenKind::AtMost;
            if bounded {
                self.advance();
            }
            let size = self.int()?;
            dims.push(u64::try_from(size).or_else(|_| self.fail("a dimension is negative"))?);
            dynamic.push(bounded);
        }
        self.advance();
        let layout = self.layout(dims.len())?;
        if !dynamic.contains(&true) {
            dynamic.clear();
        }
        match (name, DType::parse(name)) {
            ("token", _) => Ok(Shape::Token),
            ("opaque", _) => Ok(Shape::Opaque),
            (_, Some(dtype)) => Ok(Shape::Array(ArrayShape { dtype, dims, dynamic, layout })),
            (_, None) => self.fail(format!("arrays of {name} are not supported")),
        }
    }
    /// Parses a layout, if the following brace begins one: the next token is an integer or a colon.
    fn layout(&mut self, rank: usize) -> Result<Option<Box<XlaLayout>>> {
        if !self.next_is(b'{') || !matches!(self.peek().kind, TokenKind::Int | TokenKind::Punct(b':')) {
            return Ok(None);
        }
        self.advance();
        let mut minor_to_major = Vec::new();
        while self.tok.kind == TokenKind::Int {
            minor_to_major.push(self.int()?);
            if !self.eat(b',') {
                break;
            }
        }
        let mut properties = String::new();
        if self.eat(b':') {
            properties = self.layout_properties()?;
        }
        self.expect(b'}', "expects layout to end with '}'")?;
        let mut sorted = minor_to_major.clone();
        sorted.sort_unstable();
        if sorted.len() != rank || sorted.iter().enumerate().any(|(i, &d)| d != i as i64) {
            return self.fail("dimensions of a layout are no permutation of the shape's");
        }
        Ok(Some(Box::new(XlaLayout { minor_to_major, properties })))
    }
    /// Parses the layout properties `D() T() L() #() *() E() S() SC() P() M()`, in this order, without spaces.
    fn layout_properties(&mut self) -> Result<String> {
        const ORDER: &[&str] = &["D", "T", "L", "#", "*", "E", "S", "SC", "P", "M"];
        let (mut out, mut next) = (String::new(), 0);
        while !self.next_is(b'}') {
            let text = self.tok.text;
            let Some(place) = ORDER.iter().position(|&o| o == text && !text.is_empty()).filter(|&p| p >= next) else {
                return self.fail("expects layout to end with '}'");
            };
            next = place + 1;
            out += text;
            self.advance();
            let mut groups = 0;
            while self.next_is(b'(') && (groups == 0 || text == "T") {
                let start = self.tok.start;
                if text == "P" {
                    return self.fail("a dense layout has no physical shape");
                }
                self.advance();
                while !self.next_is(b')') {
                    let level = text == "D";
                    let fits = match self.tok.kind {
                        TokenKind::Int | TokenKind::Punct(b',' | b'*' | b':' | b'-') => !level || self.next_is(b','),
                        TokenKind::Type => matches!(text, "#" | "*"),
                        TokenKind::Ident => level && matches!(self.tok.text, "D" | "C" | "S" | "H"),
                        TokenKind::Name => text == "SC",
                        TokenKind::Punct(b'+' | b'~') => level,
                        _ => false,
                    };
                    if !fits {
                        return self.fail("expects a number in a layout's properties");
                    }
                    self.advance();
                }
                self.advance();
                out.extend(self.src[start..self.last_end].chars().filter(|c| !c.is_whitespace()));
                groups += 1;
            }
            if groups == 0 {
                return self.fail("expects '(' in a layout's properties");
            }
        }
        Ok(out)
    }
}
