//! Token operations of the parser: look at a token, take it, or report what was expected.
use super::lexer::{Token, TokenKind};
use super::parser::Parser;
use crate::diag::{Code, Diagnostic, Result};

impl<'a> Parser<'a> {
    pub(super) fn advance(&mut self) {
        self.last_end = self.tok.end;
        self.tok = self.lexer.next();
    }
    pub(super) fn peek(&self) -> Token<'a> {
        self.lexer.clone().next()
    }
    pub(super) fn next_is(&self, byte: u8) -> bool {
        self.tok.kind == TokenKind::Punct(byte)
    }
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.tok.kind, TokenKind::Keyword | TokenKind::Ident) && self.tok.text == word
    }
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.next_is(byte);
        if found {
            self.advance();
        }
        found
    }
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }
    pub(super) fn expect(&mut self, byte: u8, message: &str) -> Result<()> {
        if self.eat(byte) { Ok(()) } else { self.fail(message) }
    }
    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        self.fail_as(Code::HloSyntax, message)
    }
    pub(super) fn fail_as<T>(&self, code: Code, message: impl Into<String>) -> Result<T> {
        let before = &self.src.as_bytes()[..self.tok.start.min(self.src.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&b| b != b'\n').count() + 1;
        let mut d = Diagnostic::new(code, message);
        d.place.line = Some((line, column));
        Err(d.into())
    }
    /// Enters a level of nesting.
    pub(super) fn enter(&mut self, limit: usize) -> Result<()> {
        self.depth += 1;
        if self.depth > limit { self.fail(format!("nested deeper than {limit} levels")) } else { Ok(()) }
    }
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
    pub(super) fn int(&mut self) -> Result<i64> {
        if self.tok.kind != TokenKind::Int {
            return self.fail("expects integer");
        }
        let value = self.tok.text.parse().or_else(|_| self.fail("expects an integer of 64 bits"))?;
        self.advance();
        Ok(value)
    }
    pub(super) fn bool(&mut self) -> Result<bool> {
        let value = match (self.tok.kind, self.tok.text) {
            (TokenKind::Keyword, "true") | (TokenKind::Int, "1") => true,
            (TokenKind::Keyword, "false") | (TokenKind::Int, "0") => false,
            _ => return self.fail("expects true or false"),
        };
        self.advance();
        Ok(value)
    }
    pub(super) fn name(&mut self) -> Result<&'a str> {
        if !matches!(self.tok.kind, TokenKind::Name | TokenKind::Ident) {
            return self.fail("expects name");
        }
        let text = self.tok.text;
        self.advance();
        Ok(text)
    }
    /// Continues parsing at byte `end`.
    pub(super) fn jump_to(&mut self, end: usize) {
        self.lexer.pos = end;
        self.last_end = end;
        self.tok = self.lexer.next();
    }
}
