//! Reads types, operands and lines of the instruction text that kernels and drivers are written in.
use crate::diag::{Error, Result};

/// A type of the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Void,
    /// An integer of so many bits; one bit is a truth value.
    Int(u32),
    Float,
    Double,
    Pointer,
    /// C's `size_t`.
    Size,
    Vector(u64, Box<Type>),
    Array(u64, Box<Type>),
    Struct(Vec<Type>),
}

impl Type {
    /// The lanes of a vector; 1 for any other type.
    pub fn lanes(&self) -> u64 {
        if let Type::Vector(lanes, _) = self { *lanes } else { 1 }
    }
    /// The type of a vector's elements; any other type itself.
    pub fn element(&self) -> &Type {
        if let Type::Vector(_, element) = self { element } else { self }
    }
    /// The type with this element type and the same lanes.
    pub fn with_element(&self, element: Type) -> Type {
        if let Type::Vector(lanes, _) = self { Type::Vector(*lanes, Box::new(element)) } else { element }
    }
    /// The number of bits of an integer or a float.
    pub fn bits(&self) -> u32 {
        match self {
            Type::Int(bits) => *bits,
            Type::Float => 32,
            Type::Double | Type::Size | Type::Pointer => 64,
            Type::Void | Type::Vector(..) | Type::Array(..) | Type::Struct(_) => 0,
        }
    }
}

/// An operand without its type.
#[derive(Clone, Debug, PartialEq)]
pub enum IrOperand {
    /// A value of the function, without `%`.
    Local(String),
    /// A function or a constant of the module, without `@`.
    Global(String),
    Int(u64),
    /// The bits of a double.
    Float(u64),
    Null,
    Zero,
    Poison,
    /// The same number in all lanes.
    Splat(Box<IrOperand>),
    /// Elements of a vector, a struct or an array, each with its type.
    List(Vec<(Type, IrOperand)>),
    /// A string.
    Bytes(Vec<u8>),
}

/// A place in a line of text.
pub struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    pub fn new(text: &'t str) -> Reader<'t> {
        Reader { rest: text.trim() }
    }

    fn fault<T>(&self, wanted: &str) -> Result<T> {
        let near: String = self.rest.chars().take(60).collect();
        Err(Error::internal("C", format!("{wanted} is expected at `{near}`")))
    }

    /// The next character.
    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Skips `token` if it comes next.
    pub fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// Skips `token`, which must come next.
    pub fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { self.fault(&format!("`{token}`")) }
    }

    /// The next word: letters, digits, points and signs.
    pub fn word(&mut self) -> &'t str {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    /// A number without a sign.
    pub fn count(&mut self) -> Result<u64> {
        let word = self.word();
        word.parse().or_else(|_| self.fault("a number"))
    }

    pub fn ty(&mut self) -> Result<Type> {
        if self.eat("<") {
            let (lanes, element) = self.sequence(">")?;
            return Ok(Type::Vector(lanes, Box::new(element)));
        }
        if self.eat("[") {
            let (count, element) = self.sequence("]")?;
            return Ok(Type::Array(count, Box::new(element)));
        }
        if self.eat("{") {
            let mut all = Vec::new();
            while !self.eat("}") {
                all.push(self.ty()?);
                self.eat(",");
            }
            return Ok(Type::Struct(all));
        }
        if self.eat("%tfaot.size") {
            return Ok(Type::Size);
        }
        match self.word() {
            "void" => Ok(Type::Void),
            "float" => Ok(Type::Float),
            "double" => Ok(Type::Double),
            "ptr" => Ok(Type::Pointer),
            word => match word.strip_prefix('i').and_then(|bits| bits.parse().ok()) {
                Some(bits @ 1..=64) => Ok(Type::Int(bits)),
                _ => self.fault(&format!("a type in the place of `{word}`")),
            },
        }
    }

    /// `4 x float` and the bracket behind it.
    fn sequence(&mut self, end: &str) -> Result<(u64, Type)> {
        let count = self.count()?;
        self.expect("x")?;
        let element = self.ty()?;
        self.expect(end)?;
        Ok((count, element))
    }

    pub fn operand(&mut self) -> Result<IrOperand> {
        match self.peek() {
            Some('%') => {
                self.expect("%")?;
                Ok(IrOperand::Local(self.word().to_string()))
            }
            Some('@') => {
                self.expect("@")?;
                Ok(IrOperand::Global(self.word().to_string()))
            }
            Some('<') => self.list("<", ">"),
            Some('{') => self.list("{", "}"),
            Some('[') => self.list("[", "]"),
            Some('c') if self.rest.starts_with("c\"") => self.string(),
            _ => self.constant(),
        }
    }

    fn constant(&mut self) -> Result<IrOperand> {
        let word = self.word();
        Ok(match word {
            "true" => IrOperand::Int(1),
            "false" => IrOperand::Int(0),
            "null" => IrOperand::Null,
            "poison" => IrOperand::Poison,
            "zeroinitializer" => IrOperand::Zero,
            "splat" => {
                self.expect("(")?;
                self.ty()?;
                let value = self.operand()?;
                self.expect(")")?;
                IrOperand::Splat(Box::new(value))
            }
            _ => match word.strip_prefix("0x") {
                Some(hex) => match u64::from_str_radix(hex, 16) {
                    Ok(bits) => IrOperand::Float(bits),
                    Err(_) => return self.fault("a float"),
                },
                None => match word.parse::<i128>() {
                    Ok(value) => IrOperand::Int(value as u64),
                    Err(_) => return self.fault(&format!("an operand in the place of `{word}`")),
                },
            },
        })
    }

    fn list(&mut self, begin: &str, end: &str) -> Result<IrOperand> {
        self.expect(begin)?;
        let mut all = Vec::new();
        while !self.eat(end) {
            all.push(self.typed()?);
            self.eat(",");
        }
        Ok(IrOperand::List(all))
    }

    fn string(&mut self) -> Result<IrOperand> {
        self.expect("c\"")?;
        let Some((text, rest)) = self.rest.split_once('"') else { return self.fault("the end of a string") };
        self.rest = rest.trim_start();
        let (mut bytes, mut all) = (Vec::new(), text.bytes());
        while let Some(byte) = all.next() {
            let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16)).unwrap_or(0) as u8;
            bytes.push(if byte == b'\\' { digit(all.next()) << 4 | digit(all.next()) } else { byte });
        }
        Ok(IrOperand::Bytes(bytes))
    }

    /// A type and an operand of it.
    pub fn typed(&mut self) -> Result<(Type, IrOperand)> {
        let ty = self.ty()?;
        // attributes of parameters
        if self.eat("align") {
            self.count()?;
        }
        Ok((ty, self.operand()?))
    }

    /// Typed operands in parentheses.
    pub fn arguments(&mut self) -> Result<Vec<(Type, IrOperand)>> {
        self.expect("(")?;
        let mut all = Vec::new();
        while !self.eat(")") {
            all.push(self.typed()?);
            self.eat(",");
        }
        Ok(all)
    }
}

/// A function of the text.
#[derive(Debug)]
pub struct IrFunction<'t> {
    pub name: String,
    pub is_internal: bool,
    pub result: Type,
    /// Types and names of the parameters.
    pub parameters: Vec<(Type, String)>,
    /// Lines of the body, labels among them.
    pub lines: Vec<&'t str>,
}

/// The parts of a module's text in their order.
#[derive(Debug)]
pub enum IrPart<'t> {
    Definition(IrFunction<'t>),
    /// A function of the user.
    Declaration {
        name: String,
        result: Type,
        parameters: Vec<Type>,
    },
    /// A constant.
    Global {
        name: String,
        ty: Type,
        value: IrOperand,
    },
}

/// Reads a module.
pub fn parts(text: &str) -> Result<Vec<IrPart<'_>>> {
    let mut all = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some(head) = line.strip_prefix("define ") {
            let mut function = header(head)?;
            function.lines = lines.by_ref().map(str::trim).take_while(|line| *line != "}").collect();
            all.push(IrPart::Definition(function));
        } else if let Some(head) = line.strip_prefix("declare ") {
            let mut reader = Reader::new(head);
            let result = reader.ty()?;
            reader.expect("@")?;
            let name = reader.word().to_string();
            if name.starts_with("llvm.") {
                continue;
            }
            reader.expect("(")?;
            let mut parameters = Vec::new();
            while !reader.eat(")") {
                parameters.push(reader.ty()?);
                reader.eat(",");
            }
            all.push(IrPart::Declaration { name, result, parameters });
        } else if let Some(rest) = line.strip_prefix('@') {
            let mut reader = Reader::new(rest);
            let name = reader.word().to_string();
            reader.expect("=")?;
            while ["private ", "unnamed_addr ", "hidden ", "internal ", "constant ", "global "]
                .iter()
                .any(|w| reader.eat(w))
            {}
            let (ty, value) = reader.typed()?;
            all.push(IrPart::Global { name, ty, value });
        }
    }
    Ok(all)
}

/// The first line of a definition, behind `define`.
fn header(head: &str) -> Result<IrFunction<'_>> {
    let mut reader = Reader::new(head);
    let is_internal = reader.eat("internal ");
    let result = reader.ty()?;
    reader.expect("@")?;
    let name = reader.word().to_string();
    reader.expect("(")?;
    let mut parameters = Vec::new();
    while !reader.eat(")") {
        let ty = reader.ty()?;
        reader.expect("%")?;
        parameters.push((ty, reader.word().to_string()));
        reader.eat(",");
    }
    Ok(IrFunction { name, is_internal, result, parameters, lines: Vec::new() })
}
