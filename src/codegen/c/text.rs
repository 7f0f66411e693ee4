//! Reads types, operands and lines of the instruction text that kernels and drivers are written in.
use crate::diag::{Error, Result};

/// A type in LLVM text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IrType {
    Void,
    /// An integer of so many bits; one bit is a boolean.
    Int(u32),
    Float,
    Double,
    Pointer,
    /// An integer of the size of a pointer, `size_t` in C.
    Size,
    Vector(u64, Box<IrType>),
    Array(u64, Box<IrType>),
    Struct(Vec<IrType>),
}

impl IrType {
    /// The lanes of a vector; 1 for any other type.
    pub fn lanes(&self) -> u64 {
        if let IrType::Vector(lanes, _) = self { *lanes } else { 1 }
    }
    /// The type of a vector's elements; any other type itself.
    pub fn element(&self) -> &IrType {
        if let IrType::Vector(_, element) = self { element } else { self }
    }
    /// The type with this element type and the same lanes.
    pub fn with_element(&self, element: IrType) -> IrType {
        if let IrType::Vector(lanes, _) = self { IrType::Vector(*lanes, Box::new(element)) } else { element }
    }
    /// The number of bits of an integer or a float.
    pub fn bits(&self) -> u32 {
        match self {
            IrType::Int(bits) => *bits,
            IrType::Float => 32,
            IrType::Double | IrType::Size | IrType::Pointer => 64,
            IrType::Void | IrType::Vector(..) | IrType::Array(..) | IrType::Struct(_) => 0,
        }
    }
}

/// An operand in LLVM text, without its type.
#[derive(Clone, Debug, PartialEq)]
pub enum IrOperand {
    /// A local value, without `%`.
    Local(String),
    /// A global function or constant, without `@`.
    Global(String),
    Int(u64),
    /// A float constant, by the bits of the double with its value.
    Float(u64),
    Null,
    Zero,
    Poison,
    /// A constant vector with the same value in all lanes.
    Splat(Box<IrOperand>),
    /// An aggregate constant (vector, struct or array): elements with their types.
    List(Vec<(IrType, IrOperand)>),
    /// A string constant.
    Bytes(Vec<u8>),
}

/// Parser of LLVM text, at a position in a line.
pub struct IrReader<'t> {
    rest: &'t str,
}

impl<'t> IrReader<'t> {
    pub fn new(text: &'t str) -> IrReader<'t> {
        IrReader { rest: text.trim() }
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

    /// Reads the next word: letters, digits, points and signs.
    pub fn read_word(&mut self) -> &'t str {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    /// Reads an unsigned number.
    pub fn read_count(&mut self) -> Result<u64> {
        let word = self.read_word();
        word.parse().or_else(|_| self.fault("a number"))
    }

    pub fn read_type(&mut self) -> Result<IrType> {
        if self.eat("<") {
            let (lanes, element) = self.sequence(">")?;
            return Ok(IrType::Vector(lanes, Box::new(element)));
        }
        if self.eat("[") {
            let (count, element) = self.sequence("]")?;
            return Ok(IrType::Array(count, Box::new(element)));
        }
        if self.eat("{") {
            let mut all = Vec::new();
            while !self.eat("}") {
                all.push(self.read_type()?);
                self.eat(",");
            }
            return Ok(IrType::Struct(all));
        }
        if self.eat("%tfaot.size") {
            return Ok(IrType::Size);
        }
        match self.read_word() {
            "void" => Ok(IrType::Void),
            "float" => Ok(IrType::Float),
            "double" => Ok(IrType::Double),
            "ptr" => Ok(IrType::Pointer),
            word => match word.strip_prefix('i').and_then(|bits| bits.parse().ok()) {
                Some(bits @ 1..=64) => Ok(IrType::Int(bits)),
                _ => self.fault(&format!("a type in the place of `{word}`")),
            },
        }
    }

    /// Reads the inside of a vector or array type, `4 x float`, and the closing bracket.
    fn sequence(&mut self, end: &str) -> Result<(u64, IrType)> {
        let count = self.read_count()?;
        self.expect("x")?;
        let element = self.read_type()?;
        self.expect(end)?;
        Ok((count, element))
    }

    pub fn read_operand(&mut self) -> Result<IrOperand> {
        match self.peek() {
            Some('%') => {
                self.expect("%")?;
                Ok(IrOperand::Local(self.read_word().to_string()))
            }
            Some('@') => {
                self.expect("@")?;
                Ok(IrOperand::Global(self.read_word().to_string()))
            }
            Some('<') => self.list("<", ">"),
            Some('{') => self.list("{", "}"),
            Some('[') => self.list("[", "]"),
            Some('c') if self.rest.starts_with("c\"") => self.string(),
            _ => self.constant(),
        }
    }

    fn constant(&mut self) -> Result<IrOperand> {
        let word = self.read_word();
        Ok(match word {
            "true" => IrOperand::Int(1),
            "false" => IrOperand::Int(0),
            "null" => IrOperand::Null,
            "poison" => IrOperand::Poison,
            "zeroinitializer" => IrOperand::Zero,
            "splat" => {
                self.expect("(")?;
                self.read_type()?;
                let value = self.read_operand()?;
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
            all.push(self.read_typed_operand()?);
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

    /// Reads a type and an operand of that type.
    pub fn read_typed_operand(&mut self) -> Result<(IrType, IrOperand)> {
        let ty = self.read_type()?;
        // attributes of parameters
        if self.eat("align") {
            self.read_count()?;
        }
        Ok((ty, self.read_operand()?))
    }

    /// Reads typed operands in parentheses.
    pub fn read_arguments(&mut self) -> Result<Vec<(IrType, IrOperand)>> {
        self.expect("(")?;
        let mut all = Vec::new();
        while !self.eat(")") {
            all.push(self.read_typed_operand()?);
            self.eat(",");
        }
        Ok(all)
    }
}

/// A function definition in LLVM text.
#[derive(Debug)]
pub struct IrFunction<'t> {
    pub name: String,
    pub is_internal: bool,
    pub result: IrType,
    /// Types and names of the parameters.
    pub parameters: Vec<(IrType, String)>,
    /// Lines of the body, labels among them.
    pub lines: Vec<&'t str>,
}

/// A top-level item of an LLVM module.
#[derive(Debug)]
pub enum IrItem<'t> {
    Definition(IrFunction<'t>),
    /// The declaration of an external function, one of the user's.
    Declaration {
        name: String,
        result: IrType,
        parameters: Vec<IrType>,
    },
    /// A global constant.
    Global {
        name: String,
        ty: IrType,
        value: IrOperand,
    },
}

/// Parses an LLVM module into its top-level items, in order.
pub fn parse_module(text: &str) -> Result<Vec<IrItem<'_>>> {
    let mut all = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some(head) = line.strip_prefix("define ") {
            let mut function = header(head)?;
            function.lines = lines.by_ref().map(str::trim).take_while(|line| *line != "}").collect();
            all.push(IrItem::Definition(function));
        } else if let Some(head) = line.strip_prefix("declare ") {
            let mut reader = IrReader::new(head);
            let result = reader.read_type()?;
            reader.expect("@")?;
            let name = reader.read_word().to_string();
            if name.starts_with("llvm.") {
                continue;
            }
            reader.expect("(")?;
            let mut parameters = Vec::new();
            while !reader.eat(")") {
                parameters.push(reader.read_type()?);
                reader.eat(",");
            }
            all.push(IrItem::Declaration { name, result, parameters });
        } else if let Some(rest) = line.strip_prefix('@') {
            let mut reader = IrReader::new(rest);
            let name = reader.read_word().to_string();
            reader.expect("=")?;
            while ["private ", "unnamed_addr ", "hidden ", "internal ", "constant ", "global "]
                .iter()
                .any(|w| reader.eat(w))
            {}
            let (ty, value) = reader.read_typed_operand()?;
            all.push(IrItem::Global { name, ty, value });
        }
    }
    Ok(all)
}

/// Parses the first line of a function definition, after `define`.
fn header(head: &str) -> Result<IrFunction<'_>> {
    let mut reader = IrReader::new(head);
    let is_internal = reader.eat("internal ");
    let result = reader.read_type()?;
    reader.expect("@")?;
    let name = reader.read_word().to_string();
    reader.expect("(")?;
    let mut parameters = Vec::new();
    while !reader.eat(")") {
        let ty = reader.read_type()?;
        reader.expect("%")?;
        parameters.push((ty, reader.read_word().to_string()));
        reader.eat(",");
    }
    Ok(IrFunction { name, is_internal, result, parameters, lines: Vec::new() })
}
