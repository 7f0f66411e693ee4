//! Reads the generated table. A line that can't be read is left out; the test below holds that there is none.
use super::types;
use super::{ArgDef, ArgKind, ArgType, OpDef, TypeAttr};
use std::collections::HashMap;

/// The table of `text` by name.
pub fn table(text: &'static str) -> HashMap<&'static str, OpDef> {
    text.lines().filter(|l| !l.starts_with('#')).filter_map(line).map(|def| (def.name, def)).collect()
}

fn line(line: &'static str) -> Option<OpDef> {
    let mut fields = line.split('\t');
    let name = fields.next()?;
    let (name, stateful) = name.strip_suffix('!').map_or((name, false), |n| (n, true));
    let inputs = args(fields.next()?)?;
    let outputs = args(fields.next()?)?;
    let types = fields.next()?.split_whitespace().map(type_attr).collect::<Option<_>>()?;
    let kernel = fields.next()?;
    let cpu_host_args = kernel.strip_prefix('+').map(|host| host.split(',').filter(|a| !a.is_empty()).collect());
    Some(OpDef { name, stateful, inputs, outputs, types, cpu_host_args })
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
        assert_eq!(super::table(text).len(), lines);
    }
}
