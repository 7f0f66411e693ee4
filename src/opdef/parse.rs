//! Parser of the generated table of op definitions. A line that cannot be parsed is skipped; the test below checks that there
//! is none.
use super::types;
use super::{ArgDef, ArgKind, ArgType, OpDef, TypeAttr};
use crate::graph::{Attr, PartialShape, TfType};
use std::collections::HashMap;
use std::sync::Arc;

/// Definitions in the table `text`, by op name.
pub fn parse_table(text: &'static str) -> HashMap<&'static str, OpDef> {
    text.lines().filter(|l| !l.starts_with('#')).filter_map(line).map(|def| (def.name, def)).collect()
}

fn line(line: &'static str) -> Option<OpDef> {
    let mut fields = line.split('\t');
    let name = fields.next()?;
    let (name, stateful) = name.strip_suffix('!').map_or((name, false), |n| (n, true));
    let inputs = args(fields.next()?)?;
    let outputs = args(fields.next()?)?;
    let types = fields.next()?.split_whitespace().map(type_attr).collect::<Option<Vec<TypeAttr>>>()?;
    let kernel = fields.next()?;
    let cpu_host_args = kernel.strip_prefix('+').map(|host| host.split(',').filter(|a| !a.is_empty()).collect());
    let mut defaults: Vec<_> = types.iter().filter_map(type_default).collect();
    for text in fields.next()?.split_whitespace() {
        defaults.push(default(text)?);
    }
    Some(OpDef { name, stateful, inputs, outputs, types, cpu_host_args, defaults })
}

fn type_default(attr: &TypeAttr) -> Option<(Arc<str>, Attr)> {
    let numbers = attr.default.as_deref()?;
    let mut types = numbers.iter().map(|&n| TfType::from_number(n));
    let value = match (attr.is_list, numbers) {
        (true, []) => Attr::EmptyList,
        (true, _) => Attr::Types(types.collect()),
        (false, _) => Attr::Type(types.next()?),
    };
    Some((attr.name.into(), value))
}

/// Attribute default that is not a type: `name=kind:value`.
fn default(text: &str) -> Option<(Arc<str>, Attr)> {
    let (name, value) = text.split_once('=')?;
    let (kind, value) = value.split_once(':')?;
    let value = match kind {
        "i" => Attr::Int(value.parse().ok()?),
        "f" => Attr::Float(value.parse().ok()?),
        "b" => Attr::Bool(value.parse().ok()?),
        "s" => Attr::Str(unquoted(value)?.into()),
        "D" if value == "?" => Attr::Shape(PartialShape(None)),
        "D" => Attr::Shape(PartialShape(Some(items(value).map(|d| Some(d.parse().ok())).collect::<Option<_>>()?))),
        "I" => Attr::Ints(items(value).map(|i| i.parse().ok()).collect::<Option<_>>()?),
        "F" => Attr::Floats(items(value).map(|f| f.parse().ok()).collect::<Option<_>>()?),
        "S" => Attr::Strs(items(value).map(|s| Some(unquoted(s)?.into())).collect::<Option<_>>()?),
        "E" => Attr::EmptyList,
        _ => return None,
    };
    Some((name.into(), value))
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|item| !item.is_empty())
}

/// String with special bytes written as `%` and two hexadecimal digits.
fn unquoted(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    out.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        out.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        out.extend_from_slice(part.get(2..)?.as_bytes());
    }
    Some(out)
}

fn args(text: &'static str) -> Option<Vec<ArgDef>> {
    text.split_whitespace().map(arg).collect()
}

fn arg(text: &'static str) -> Option<ArgDef> {
    let (name, kind) = text.split_once(':')?;
    let (kind, is_ref) = kind.strip_suffix('&').map_or((kind, false), |k| (k, true));
    let kind = match kind.strip_prefix('@') {
        Some(attr) => ArgKind::List(attr),
        None => match kind.split_once('*') {
            Some((count, of)) => ArgKind::Many { count, of: arg_type(of)? },
            None => ArgKind::One(arg_type(kind)?),
        },
    };
    Some(ArgDef { name, kind, is_ref })
}

fn arg_type(text: &'static str) -> Option<ArgType> {
    match text.strip_prefix('$') {
        Some(attr) => Some(ArgType::Attr(attr)),
        None => types::parse(text).map(ArgType::Fixed),
    }
}

fn type_attr(text: &'static str) -> Option<TypeAttr> {
    let (name, default) = text.split_once('=').map_or((text, None), |(n, d)| (n, Some(d)));
    let (name, is_list) = name.strip_suffix('*').map_or((name, false), |n| (n, true));
    let default = match default {
        Some(list) => Some(list.split(',').filter(|t| !t.is_empty()).map(types::parse).collect::<Option<_>>()?),
        None => None,
    };
    Some(TypeAttr { name, is_list, default })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_line_is_read() {
        let text = include_str!("tensorflow.txt");
        let lines = text.lines().filter(|l| !l.starts_with('#')).count();
        assert_eq!(super::parse_table(text).len(), lines);
    }
}
