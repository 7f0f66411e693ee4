//! Parser of a module's header, and of parts of modules that stand alone.
use super::lexer::TokenKind;
use super::parser::Parser;
use crate::diag::Result;
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{ArrayShape, Literal, Shape, schema};
use crate::tensor::Tensor;

impl Parser<'_> {
    pub(super) fn header(&mut self) -> Result<()> {
        self.advance();
        self.module.name = self.name()?.to_string();
        while self.eat(b',') {
            self.module_attribute()?;
        }
        Ok(())
    }
    pub(super) fn module_attribute(&mut self) -> Result<()> {
        if self.tok.kind != TokenKind::AttrName {
            return self.fail("expects attribute name");
        }
        let name = self.tok.text;
        self.advance();
        let start = self.tok.start;
        match name {
            "is_scheduled" => {
                self.bool()?;
            }
            "replica_count" | "num_partitions" => {
                self.int()?;
            }
            "entry_computation_layout" => drop(self.entry_layout()?),
            "frontend_attributes" => self.skip_config()?,
            "input_output_alias" => self.aliasing(true)?,
            "buffer_donor" => self.donors()?,
            "alias_passthrough_params"
            | "origin_recovery_table"
            | "allow_spmd_sharding_propagation_to_parameters"
            | "allow_spmd_sharding_propagation_to_output" => {
                if self.next_is(b'{') {
                    self.skip_braces()?;
                } else {
                    self.bool()?;
                }
            }
            _ => return self.fail(format!("unexpected attribute \"{name}\" of a module")),
        }
        if self.module.extra.iter().any(|(n, _)| n == name) {
            return self.fail(format!("attribute {name} already exists"));
        }
        self.module.extra.push((name.to_string(), self.src[start..self.last_end].to_string()));
        Ok(())
    }
    /// Parses `{(f32[2]{0})->f32[]}`.
    pub(super) fn entry_layout(&mut self) -> Result<(Vec<Shape>, Shape)> {
        self.expect(b'{', "expects '{' at the start of an entry computation layout")?;
        self.expect(b'(', "expects '(' in front of parameter shapes")?;
        let mut params = Vec::new();
        while !self.next_is(b')') {
            if !params.is_empty() {
                self.expect(b',', "expects ',' between shapes")?;
            }
            params.push(self.shape()?);
        }
        self.advance();
        if self.tok.kind != TokenKind::Arrow {
            return self.fail("expects '->'");
        }
        self.advance();
        let result = self.shape()?;
        self.expect(b'}', "expects '}' at the end of an entry computation layout")?;
        Ok((params, result))
    }
}

/// Parses the shapes in an `entry_computation_layout` attribute.
pub(crate) fn parse_entry_layout(text: &str) -> Result<(Vec<Shape>, Shape)> {
    Parser::from_text(text).entry_layout()
}

/// Parses shapes separated by commas.
pub(crate) fn parse_shapes(text: &str) -> Result<Vec<Shape>> {
    let mut p = Parser::from_text(text);
    let mut out = Vec::new();
    while p.tok.kind != TokenKind::Eof {
        if !out.is_empty() {
            p.expect(b',', "expects ',' between shapes")?;
        }
        out.push(p.shape()?);
    }
    Ok(out)
}

/// Parses a shape and elements, `s32[2] {1, 2}`.
pub(in crate::hlo) fn parse_literal(text: &str) -> Result<(Literal, Shape)> {
    let mut p = Parser::from_text(text);
    let shape = p.shape()?;
    Ok((p.literal(&shape)?, shape))
}

/// Parses the elements of an array of a given shape, such as `{1, 2}`.
///
/// # Errors
/// `Code::HloSyntax`.
pub fn parse_array_elements(text: &str, shape: ArrayShape) -> Result<Tensor> {
    let mut p = Parser::from_text(text);
    let (is_nested, is_elided) = (text.trim_start().starts_with('{'), text.contains("..."));
    if is_elided || is_nested != (shape.rank() > 0) {
        return p.fail(format!("expects every element of {shape}"));
    }
    match p.literal(&Shape::Array(shape))? {
        Literal::Array(tensor) if p.tok.kind == TokenKind::Eof => Ok(tensor),
        _ => p.fail("expects nothing behind the elements"),
    }
}

/// Parses a window, `{size=3x3 pad=1_1x1_1}`.
pub(in crate::hlo) fn parse_window(text: &str) -> Result<Vec<WindowDim>> {
    Parser::from_text(text).window()
}

/// Parses dimension labels, `b01f_01io->b01f`, without window or groups.
pub(in crate::hlo) fn parse_dim_labels(text: &str) -> Result<ConvDims> {
    let p = Parser::from_text(text);
    schema::dim_labels(text.trim()).or_else(|message| p.fail(message))
}
