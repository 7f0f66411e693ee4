//! Shapes of values: arrays, tuples, tokens.
use super::size::{SizeRepr, all_always_equal};
use crate::tensor::DType;

/// Memory layout: dimensions from fastest to slowest, and further properties as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct XlaLayout {
    /// Dimension numbers, minor to major.
    pub minor_to_major: Vec<i64>,
    /// Tiles and other properties as written, such as `T(8,128)S(1)`.
    pub properties: String,
}

/// Element type and sizes, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayShape<D: SizeRepr = u64> {
    /// Element type.
    pub dtype: DType,
    /// Sizes; the bound for a dynamic dimension.
    pub dims: Vec<D>,
    /// Dimensions whose size is only bounded (`<=n`); empty when all are fixed.
    pub dynamic: Vec<bool>,
    /// Layout, if one was written.
    pub layout: Option<Box<XlaLayout>>,
}

/// Shape of an HLO value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape<D: SizeRepr = u64> {
    /// A dense array.
    Array(ArrayShape<D>),
    /// Tuple of values.
    Tuple(Vec<Shape<D>>),
    /// An ordering token.
    Token,
    /// Value of unknown form.
    Opaque,
    /// Memory that holds an array and is written in place: `b(f32[2])`.
    Buffer(Box<ArrayShape<D>>),
}

impl<D: SizeRepr> ArrayShape<D> {
    /// Array shape of fixed sizes, without layout.
    pub fn new(dtype: DType, dims: impl Into<Vec<D>>) -> Self {
        ArrayShape { dtype, dims: dims.into(), dynamic: Vec::new(), layout: None }
    }
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
    /// Number of elements; overflow was excluded when the shape was made.
    pub fn elements(&self) -> D {
        D::product_of(&self.dims)
    }
    /// Size in bytes.
    pub fn bytes(&self) -> D {
        self.elements().saturating_mul(D::from(self.dtype.bytes() as u64))
    }
    /// Whether types and sizes are equal, whatever the layouts.
    pub fn same_type_and_dims(&self, other: &ArrayShape<D>) -> bool {
        self.dtype == other.dtype && self.dims == other.dims
    }
    /// Whether types are equal, and sizes are equal in every call, whatever the layouts; records no guard.
    pub fn always_equals(&self, other: &ArrayShape<D>) -> bool {
        self.dtype == other.dtype && all_always_equal(&self.dims, &other.dims)
    }
    /// Strides in elements (row-major).
    pub fn strides(&self) -> Vec<D> {
        let mut strides = vec![D::from(1); self.rank()];
        for i in (1..self.rank()).rev() {
            strides[i - 1] = strides[i].saturating_mul(self.dims[i]);
        }
        strides
    }
}

impl<D: SizeRepr> Shape<D> {
    /// An array shape.
    pub fn array(dtype: DType, dims: impl Into<Vec<D>>) -> Self {
        Shape::Array(ArrayShape::new(dtype, dims))
    }
    /// Array shape, for an array.
    pub fn as_array(&self) -> Option<&ArrayShape<D>> {
        match self {
            Shape::Array(a) => Some(a),
            Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => None,
        }
    }
    /// Element shapes, for a tuple.
    pub fn as_tuple(&self) -> Option<&[Shape<D>]> {
        match self {
            Shape::Tuple(parts) => Some(parts),
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => None,
        }
    }
    /// Whether two shapes are equal, apart from layouts and dynamic bounds.
    pub fn same_type_and_dims(&self, other: &Shape<D>) -> bool {
        match (self, other) {
            (Shape::Array(a), Shape::Array(b)) => a.same_type_and_dims(b),
            (Shape::Tuple(a), Shape::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.same_type_and_dims(y))
            }
            (Shape::Token, Shape::Token) | (Shape::Opaque, Shape::Opaque) => true,
            (Shape::Buffer(a), Shape::Buffer(b)) => a.same_type_and_dims(b),
            _ => false,
        }
    }
    /// Whether two shapes are equal in every call, apart from layouts and dynamic bounds, as far as the expressions of sizes
    /// show; records no guard.
    pub fn always_equals(&self, other: &Shape<D>) -> bool {
        match (self, other) {
            (Shape::Array(a), Shape::Array(b)) => a.always_equals(b),
            (Shape::Buffer(a), Shape::Buffer(b)) => a.always_equals(b),
            (Shape::Tuple(a), Shape::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.always_equals(y))
            }
            (Shape::Token, Shape::Token) | (Shape::Opaque, Shape::Opaque) => true,
            _ => false,
        }
    }
    /// Array shapes in the shape, depth first.
    pub fn leaves(&self) -> Vec<&ArrayShape<D>> {
        match self {
            Shape::Array(a) => vec![a],
            Shape::Tuple(parts) => parts.iter().flat_map(Shape::leaves).collect(),
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => vec![],
        }
    }
}

impl<D: SizeRepr> std::fmt::Display for ArrayShape<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (i, d) in self.dims.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let bound = if self.dynamic.get(i) == Some(&true) { "<=" } else { "" };
            match *d == D::from(u64::MAX) {
                true => write!(f, "{comma}?")?,
                false => write!(f, "{comma}{bound}{d}")?,
            }
        }
        f.write_str("]")?;
        if let Some(layout) = self.layout.as_ref().filter(|l| !l.minor_to_major.is_empty() || !l.properties.is_empty())
        {
            let order: Vec<String> = layout.minor_to_major.iter().map(i64::to_string).collect();
            let colon = if layout.properties.is_empty() { "" } else { ":" };
            write!(f, "{{{}{colon}{}}}", order.join(","), layout.properties)?;
        }
        Ok(())
    }
}

impl<D: SizeRepr> std::fmt::Display for Shape<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shape::Array(a) => a.fmt(f),
            Shape::Token => f.write_str("token[]"),
            Shape::Opaque => f.write_str("opaque[]"),
            Shape::Buffer(a) => write!(f, "b({a})"),
            Shape::Tuple(parts) => {
                f.write_str("(")?;
                for (i, p) in parts.iter().enumerate() {
                    write!(f, "{}{p}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}
