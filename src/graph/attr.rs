//! Attribute values.
use super::{PartialShape, TfType};
use crate::tensor::Tensor;
use bytes::Bytes;
use std::sync::Arc;

/// A function with the attributes that it is instantiated with.
#[derive(Clone, Debug)]
pub struct FuncRef {
    /// The function's name in the library.
    pub name: Arc<str>,
    /// The attributes that instantiate the function.
    pub attrs: Box<[(Arc<str>, Attr)]>,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attr {
    /// `s`
    Str(Bytes),
    /// `i`
    Int(i64),
    /// `f`
    Float(f32),
    /// `b`
    Bool(bool),
    /// `type`
    Type(TfType),
    /// `shape`
    Shape(PartialShape),
    /// `tensor` of an element type; bytes are slices of the file where they can be.
    Tensor(Box<Tensor>),
    /// `tensor` of strings: its sizes, and its elements row-major.
    Strings(Box<[u64]>, Box<[Bytes]>),
    /// `tensor` of a type that can't be held.
    OpaqueTensor(TfType),
    /// `func`
    Func(Box<FuncRef>),
    /// `placeholder`
    Placeholder(Box<str>),
    /// `list(s)`
    Strs(Box<[Bytes]>),
    /// `list(i)`
    Ints(Box<[i64]>),
    /// `list(f)`
    Floats(Box<[f32]>),
    /// `list(b)`
    Bools(Box<[bool]>),
    /// `list(type)`
    Types(Box<[TfType]>),
    /// `list(shape)`
    Shapes(Box<[PartialShape]>),
    /// `list(func)`
    Funcs(Box<[FuncRef]>),
    /// An empty list, whose kind the file does not tell.
    EmptyList,
}
