//! Parser from AttrValue messages to [`Attr`].
use super::node_def::Interner;
use super::tensor_proto::read_tensor;
use super::wire::WireReader;
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, FuncRef, PartialShape, TfType};
use bytes::Bytes;
use std::sync::Arc;

/// Maximum number of dimensions of a shape, as in TensorFlow.
const MOST_RANK: usize = 254;

/// Parses an AttrValue; `None` if it has no value at all.
pub fn read_attr<'a>(mut reader: WireReader<'a>, names: &mut Interner<'a>) -> Result<Option<Attr>> {
    let mut attr = None;
    while let Some(field) = reader.next()? {
        attr = Some(match field.number {
            1 => read_list(field.message("AttrValue.ListValue")?, names)?,
            2 => Attr::Str(field.shared_bytes()?),
            3 => Attr::Int(field.varint()? as i64),
            4 => Attr::Float(field.float()?),
            5 => Attr::Bool(field.varint()? != 0),
            6 => Attr::Type(TfType::from_number(field.int32()?)),
            7 => Attr::Shape(read_shape(field.message("TensorShapeProto")?)?),
            8 => read_tensor(field.message("TensorProto")?)?,
            9 => Attr::Placeholder(field.text()?.into()),
            10 => Attr::Func(Box::new(read_func(field.message("NameAttrList")?, names)?)),
            _ => continue,
        });
    }
    Ok(attr)
}

/// Parses a TensorShapeProto. Errors: `TooLarge` for sizes below -1 and more than 254 dimensions.
pub fn read_shape(mut reader: WireReader) -> Result<PartialShape> {
    let (mut dims, mut unknown) = (Vec::new(), false);
    while let Some(field) = reader.next()? {
        match field.number {
            2 => dims.push(read_dim(field.message("TensorShapeProto.Dim")?)?),
            3 => unknown = field.varint()? != 0,
            _ => {}
        }
        if dims.len() > MOST_RANK {
            return Err(Error::user(Code::TooLarge, format!("a shape has more than {MOST_RANK} dimensions")));
        }
    }
    Ok(PartialShape(Some(dims).filter(|_| !unknown)))
}

fn read_dim(mut reader: WireReader) -> Result<Option<u64>> {
    let mut size = 0;
    while let Some(field) = reader.next()? {
        if field.number == 1 {
            size = field.varint()? as i64;
        }
    }
    match u64::try_from(size) {
        Ok(size) => Ok(Some(size)),
        Err(_) if size == -1 => Ok(None),
        Err(_) => Err(Error::user(Code::TooLarge, format!("a dimension has the size {size}"))),
    }
}

/// Parses a NameAttrList.
pub fn read_func<'a>(mut reader: WireReader<'a>, names: &mut Interner<'a>) -> Result<FuncRef> {
    let (mut name, mut attrs) = (names.intern(""), Vec::new());
    while let Some(field) = reader.next()? {
        match field.number {
            1 => name = names.intern(field.text()?),
            2 => attrs.extend(read_entry(field.message("AttrEntry")?, names)?),
            _ => {}
        }
    }
    Ok(FuncRef { name, attrs: attrs.into() })
}

/// Parses an entry of a map from names to AttrValues; `None` if the value is not set.
pub fn read_entry<'a>(mut reader: WireReader<'a>, names: &mut Interner<'a>) -> Result<Option<(Arc<str>, Attr)>> {
    let (mut key, mut attr) = ("", None);
    while let Some(field) = reader.next()? {
        match field.number {
            1 => key = field.text()?,
            2 => {
                let in_attr =
                    |e: Error| e.map(|d| if key.is_empty() { d } else { d.note(format!("in the attribute `{key}`")) });
                attr = read_attr(field.message("AttrValue")?, names).map_err(in_attr)?;
            }
            _ => {}
        }
    }
    Ok(attr.map(|attr| (names.intern(key), attr)))
}

/// The lists of an AttrValue.ListValue, at most one of which has items.
#[derive(Default)]
struct Lists {
    strs: Vec<Bytes>,
    ints: Vec<i64>,
    floats: Vec<f32>,
    bools: Vec<bool>,
    types: Vec<TfType>,
    shapes: Vec<PartialShape>,
    funcs: Vec<FuncRef>,
}

fn read_list<'a>(mut reader: WireReader<'a>, names: &mut Interner<'a>) -> Result<Attr> {
    let mut lists = Lists::default();
    while let Some(field) = reader.next()? {
        match field.number {
            2 => lists.strs.push(field.shared_bytes()?),
            3 => field.for_each_number(|v| lists.ints.push(v as i64))?,
            4 => field.for_each_fixed::<4>(|v| lists.floats.push(f32::from_le_bytes(v)))?,
            5 => field.for_each_number(|v| lists.bools.push(v != 0))?,
            6 => field.for_each_number(|v| lists.types.push(TfType::from_number(v as i32)))?,
            7 => lists.shapes.push(read_shape(field.message("TensorShapeProto")?)?),
            9 => lists.funcs.push(read_func(field.message("NameAttrList")?, names)?),
            _ => {}
        }
    }
    Ok(match lists {
        l if !l.strs.is_empty() => Attr::Strs(l.strs.into()),
        l if !l.ints.is_empty() => Attr::Ints(l.ints.into()),
        l if !l.floats.is_empty() => Attr::Floats(l.floats.into()),
        l if !l.bools.is_empty() => Attr::Bools(l.bools.into()),
        l if !l.types.is_empty() => Attr::Types(l.types.into()),
        l if !l.shapes.is_empty() => Attr::Shapes(l.shapes.into()),
        l if !l.funcs.is_empty() => Attr::Funcs(l.funcs.into()),
        _ => Attr::EmptyList,
    })
}
