//! Parser of types: `tensor<2x3xf32>`, `tuple<...>`, `!stablehlo.token`, and function types.
use super::reader::TextReader;
use super::sizes::OPEN;
use crate::diag::{Code, Result};
use crate::hlo::Shape;
use crate::tensor::DType;

/// Names of element types in MLIR; the preferred name of each type comes first.
const ELEMENTS: &[(&str, DType)] = &[
    ("i1", DType::Pred),
    ("i2", DType::S2),
    ("i4", DType::S4),
    ("i8", DType::S8),
    ("i16", DType::S16),
    ("i32", DType::S32),
    ("i64", DType::S64),
    ("ui2", DType::U2),
    ("ui4", DType::U4),
    ("ui8", DType::U8),
    ("ui16", DType::U16),
    ("ui32", DType::U32),
    ("ui64", DType::U64),
    ("f16", DType::F16),
    ("bf16", DType::BF16),
    ("f32", DType::F32),
    ("f64", DType::F64),
    ("f4E2M1FN", DType::F4E2M1FN),
    ("f8E3M4", DType::F8E3M4),
    ("f8E4M3", DType::F8E4M3),
    ("f8E4M3B11FNUZ", DType::F8E4M3B11FNUZ),
    ("f8E4M3FN", DType::F8E4M3FN),
    ("f8E4M3FNUZ", DType::F8E4M3FNUZ),
    ("f8E5M2", DType::F8E5M2),
    ("f8E5M2FNUZ", DType::F8E5M2FNUZ),
    ("f8E8M0FNU", DType::F8E8M0FNU),
    ("complex<f32>", DType::C64),
    ("complex<f64>", DType::C128),
    ("si2", DType::S2),
    ("si4", DType::S4),
    ("si8", DType::S8),
    ("si16", DType::S16),
    ("si32", DType::S32),
    ("si64", DType::S64),
    ("index", DType::S64),
];

/// Element type with this name.
pub(super) fn element_type(name: &str) -> Option<DType> {
    ELEMENTS.iter().find(|(n, _)| *n == name).map(|(_, t)| *t)
}

/// Name of an element type.
pub(super) fn element_name(dtype: DType) -> &'static str {
    ELEMENTS.iter().find(|(_, t)| *t == dtype).map_or("none", |(n, _)| n)
}

fn unsupported(r: &TextReader, what: &str) -> crate::diag::Error {
    r.error_as(Code::HloUnsupported, format!("{what}; read are ranked tensors, tuples and tokens"))
}

impl<'a> TextReader<'a> {
    /// Parses an element type.
    pub fn dtype(&mut self) -> Result<DType> {
        if self.eat_word("complex") {
            self.expect("<")?;
            let dtype = match self.peek_word() {
                "f32" => DType::C64,
                "f64" => DType::C128,
                other => return Err(unsupported(self, &format!("complex numbers of `{other}`"))),
            };
            self.take_bytes("f32".len());
            self.expect(">")?;
            return Ok(dtype);
        }
        let name = self.peek_word();
        match element_type(name) {
            Some(dtype) => {
                self.take_bytes(name.len());
                Ok(dtype)
            }
            None => Err(unsupported(self, &format!("the element type `{}`", if name.is_empty() { "!" } else { name }))),
        }
    }
    /// Parses a type; a bare element type is a scalar.
    pub fn ty(&mut self) -> Result<Shape> {
        if self.eat("!stablehlo.token") {
            return Ok(Shape::Token);
        }
        if self.eat_word("tuple") {
            self.expect("<")?;
            return Ok(Shape::Tuple(self.list(">", TextReader::ty)?));
        }
        if !self.eat_word("tensor") {
            return Ok(Shape::array(self.dtype()?, []));
        }
        self.expect("<")?;
        let mut dims = Vec::new();
        while let Some(digit) = self.remaining().chars().next() {
            if digit == '*' {
                return Err(unsupported(self, "a tensor without rank"));
            }
            if self.eat("?") {
                dims.push(OPEN);
                self.expect("x")?;
                continue;
            }
            let digits = self.remaining().find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
            if digits == 0 {
                break;
            }
            let size = self.remaining()[..digits].parse().map_err(|_| self.error("a size is too large"))?;
            dims.push(size);
            self.take_raw(digits);
            self.expect("x")?;
        }
        let dtype = self.dtype()?;
        if self.is_next(",") {
            return Err(unsupported(self, "a tensor's encoding"));
        }
        self.expect(">")?;
        Ok(Shape::array(dtype, dims))
    }
    /// Parses `T` or `(T, U)`.
    pub fn types_in_parentheses(&mut self) -> Result<Vec<Shape>> {
        if self.eat("(") { self.list(")", TextReader::ty) } else { Ok(vec![self.ty()?]) }
    }
    /// Parses `T, U` or `(T, U) -> V`: the result types if they are given separately, else all types.
    pub fn signature(&mut self) -> Result<OpSignature> {
        let paren = self.is_next("(");
        let mut first = self.types_in_parentheses()?;
        if self.eat("->") {
            return Ok(OpSignature { results: self.types_in_parentheses()?, listed: false });
        }
        while !paren && self.eat(",") {
            first.push(self.ty()?);
        }
        Ok(OpSignature { results: first, listed: true })
    }
}

/// Types behind an operation's colon.
pub(super) struct OpSignature {
    /// Types of the results; if `listed`, those of operands or results, whichever the operation writes.
    pub results: Vec<Shape>,
    /// Whether the types were written without an arrow.
    pub listed: bool,
}
