//! Values of node attributes.
use super::{PartialShape, TfType};
use crate::tensor::Tensor;
use bytes::Bytes;
use std::sync::Arc;

/// A reference to a library function, with the attributes that instantiate it.
#[derive(Clone, Debug)]
pub struct FuncRef {
    /// The function's name in the library.
    pub name: Arc<str>,
    /// Attributes that replace placeholders in the function's body.
    pub attrs: Box<[(Arc<str>, Attr)]>,
}

/// The value of a node attribute; variants are named after the fields of AttrValue.
#[derive(Clone, Debug)]
pub enum Attr {
    /// `s`: a string of arbitrary bytes.
    Str(Bytes),
    /// `i`: an integer.
    Int(i64),
    /// `f`: a float.
    Float(f32),
    /// `b`: a boolean.
    Bool(bool),
    /// `type`: a data type.
    Type(TfType),
    /// `shape`: a tensor shape.
    Shape(PartialShape),
    /// `tensor` of numbers; its bytes are a slice of the file if possible.
    Tensor(Box<Tensor>),
    /// `tensor` of strings: its dimensions, and its elements in row-major order.
    Strings(Box<[u64]>, Box<[Bytes]>),
    /// `tensor` of a type whose values are not represented.
    OpaqueTensor(TfType),
    /// `func`: a function.
    Func(Box<FuncRef>),
    /// `placeholder`: the name of an attribute of the function call.
    Placeholder(Box<str>),
    /// `list(s)`: strings.
    Strs(Box<[Bytes]>),
    /// `list(i)`: integers.
    Ints(Box<[i64]>),
    /// `list(f)`: floats.
    Floats(Box<[f32]>),
    /// `list(b)`: booleans.
    Bools(Box<[bool]>),
    /// `list(type)`: data types.
    Types(Box<[TfType]>),
    /// `list(shape)`: tensor shapes.
    Shapes(Box<[PartialShape]>),
    /// `list(func)`: functions.
    Funcs(Box<[FuncRef]>),
    /// An empty list, whose element kind is not stated in the file.
    EmptyList,
}
