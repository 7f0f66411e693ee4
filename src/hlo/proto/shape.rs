//! Conversion of shapes and layouts to and from protobuf messages.
use protobuf::MessageField;

use super::messages::xla_data::{LayoutProto, ShapeProto, TileProto};
use super::scan::TextCursor;
use crate::diag::{Code, Error, Result};
use crate::hlo::{ArrayShape, Shape, XlaLayout};
use crate::tensor::DType;

/// Numbers of XLA's `PrimitiveType` that are not element types.
const TUPLE: i32 = 13;
const OPAQUE: i32 = 14;
const TOKEN: i32 = 17;
const BUFFER: i32 = 34;
/// Size that stands for an unbounded dimension, and for `*` in a tile.
const UNKNOWN: i64 = i64::MIN;

/// Message for a shape. Errors: `Code::HloUnsupported` for layout properties that have no field here.
pub(super) fn write(shape: &Shape) -> Result<ShapeProto> {
    let mut p = ShapeProto::new();
    match shape {
        Shape::Array(a) => {
            p.element_type = a.dtype.xla_number();
            p.dimensions = a.dims.iter().map(|&d| if d == u64::MAX { UNKNOWN } else { d as i64 }).collect();
            p.is_dynamic_dimension = (0..a.rank()).map(|i| a.dynamic.get(i) == Some(&true)).collect();
            if let Some(layout) = &a.layout {
                p.layout = MessageField::some(write_layout(layout)?);
            } else if a.rank() == 0 {
                p.layout =
                    MessageField::some(LayoutProto { tail_padding_alignment_in_elements: 1, ..Default::default() });
            }
        }
        Shape::Tuple(parts) => {
            p.element_type = TUPLE;
            p.tuple_shapes = parts.iter().map(write).collect::<Result<_>>()?;
        }
        Shape::Token => p.element_type = TOKEN,
        Shape::Opaque => p.element_type = OPAQUE,
        Shape::Buffer(a) => {
            p.element_type = BUFFER;
            p.tuple_shapes = vec![write_with_layout(&Shape::Array((**a).clone()))?];
        }
    }
    Ok(p)
}

/// Message for a shape like [`write()`], with a row-major layout where none was given, as literals and programs need it.
pub(super) fn write_with_layout(shape: &Shape) -> Result<ShapeProto> {
    let mut p = write(shape)?;
    fill(&mut p);
    Ok(p)
}

/// Adds a row-major layout to every array in a shape that has no layout.
pub(super) fn fill(p: &mut ShapeProto) {
    if p.layout.is_none() && DType::from_xla(p.element_type).is_some() {
        let minor_to_major = (0..p.dimensions.len() as i64).rev().collect();
        p.layout = MessageField::some(LayoutProto {
            minor_to_major,
            tail_padding_alignment_in_elements: 1,
            ..Default::default()
        });
    }
    p.tuple_shapes.iter_mut().for_each(fill);
}

/// Shape of a message.
///
/// Errors: `Code::BadEncoding` for negative sizes, layouts that are not permutations, and types that XLA does not have.
pub(super) fn read(p: &ShapeProto) -> Result<Shape> {
    Ok(match p.element_type {
        TUPLE => Shape::Tuple(p.tuple_shapes.iter().map(read).collect::<Result<_>>()?),
        OPAQUE => Shape::Opaque,
        TOKEN => Shape::Token,
        BUFFER => match p.tuple_shapes.first().map(read).transpose()? {
            Some(Shape::Array(a)) => Shape::Buffer(Box::new(a)),
            _ => return Err(bad("a buffer holds no array".to_string())),
        },
        number => {
            let dtype = DType::from_xla(number)
                .ok_or_else(|| Error::user(Code::HloUnsupported, format!("no arrays of primitive type {number}")))?;
            Shape::Array(read_array(p, dtype)?)
        }
    })
}

fn read_array(p: &ShapeProto, dtype: DType) -> Result<ArrayShape> {
    let size = |&d: &i64| match d {
        UNKNOWN => Ok(u64::MAX),
        d => u64::try_from(d).map_err(|_| bad(format!("a dimension is {d}"))),
    };
    let dims: Vec<u64> = p.dimensions.iter().map(size).collect::<Result<_>>()?;
    let mut dynamic = p.is_dynamic_dimension.clone();
    dynamic.resize(dims.len(), false);
    if !dynamic.contains(&true) {
        dynamic.clear();
    }
    let layout = match p.layout.as_ref() {
        Some(layout) => read_layout(layout, dims.len())?,
        None => None,
    };
    Ok(ArrayShape { dtype, dims, dynamic, layout })
}

fn bad(message: String) -> Error {
    Error::user(Code::BadEncoding, message)
}

fn write_layout(layout: &XlaLayout) -> Result<LayoutProto> {
    let mut p = LayoutProto { minor_to_major: layout.minor_to_major.clone(), ..Default::default() };
    p.tail_padding_alignment_in_elements = 1;
    let mut s = TextCursor::new(&layout.properties);
    while let Some(property) = s.layout_property() {
        match property {
            "T" => {
                while s.eat('(') {
                    let mut dimensions = Vec::new();
                    while !s.eat(')') {
                        dimensions.push(if s.eat('*') { UNKNOWN } else { s.int()? });
                        s.eat(',');
                    }
                    p.tiles.push(TileProto { dimensions, ..Default::default() });
                }
            }
            "L" => p.tail_padding_alignment_in_elements = s.parenthesized_int()?,
            "E" => p.element_size_in_bits = s.parenthesized_int()?,
            "S" => p.memory_space = s.parenthesized_int()?,
            "M" => p.dynamic_shape_metadata_prefix_bytes = s.parenthesized_int()?,
            other => {
                let told = format!("the layout property {other}(...) is not written to messages; T, L, E, S and M are");
                return Err(Error::user(Code::HloUnsupported, told));
            }
        }
    }
    Ok(p)
}

fn read_layout(p: &LayoutProto, rank: usize) -> Result<Option<Box<XlaLayout>>> {
    let mut sorted = p.minor_to_major.clone();
    sorted.sort_unstable();
    if sorted.len() != rank || sorted.iter().enumerate().any(|(i, &d)| d != i as i64) {
        return Err(bad(format!("the layout {:?} is no permutation of {rank} dimensions", p.minor_to_major)));
    }
    let mut properties = String::new();
    for (i, tile) in p.tiles.iter().enumerate() {
        let sizes = tile.dimensions.iter().map(|&d| if d == UNKNOWN { "*".to_string() } else { d.to_string() });
        let sizes: Vec<String> = sizes.collect();
        properties += &format!("{}({})", if i == 0 { "T" } else { "" }, sizes.join(","));
    }
    for (letter, value, default) in [
        ("L", p.tail_padding_alignment_in_elements, 1),
        ("E", p.element_size_in_bits, 0),
        ("S", p.memory_space, 0),
        ("M", p.dynamic_shape_metadata_prefix_bytes, 0),
    ] {
        if value != default && value != 0 {
            properties += &format!("{letter}({value})");
        }
    }
    let plain = rank == 0 && properties.is_empty();
    Ok((!plain).then(|| Box::new(XlaLayout { minor_to_major: p.minor_to_major.clone(), properties })))
}
