//! Printer of modules, as text that [`super::parse`] parses back to an equal module.
use std::collections::HashSet;
use std::fmt::Write;

use super::lexer::is_reserved;
use super::print_attrs::op_attributes;
use super::print_literal;
use crate::hlo::{CompId, Computation, Inst, InstId, Module, Op};
use crate::tensor::DType;
use crate::util::id_vec::{Id, IdVec};

/// Options of the printer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether constants of more than ten elements are written out, as opposed to `{...}`.
    pub large_constants: bool,
    /// Whether the origins of instructions are printed.
    pub metadata: bool,
}

/// See [`super::print_with`].
pub(super) fn print(module: &Module, style: Style) -> String {
    let names = unique_names(module.comps.values().map(|c| c.name.as_str()));
    let names: IdVec<CompId, String> = names.into_iter().collect();
    let mut out = format!("HloModule {}", sanitize_name(&module.name));
    if is_reserved(&sanitize_name(&module.name)) {
        out.push('_');
    }
    for (name, value) in &module.extra {
        let _ = write!(out, ", {name}={value}");
    }
    out.push('\n');
    for id in callees_first(module) {
        computation(module, id, &names, style, &mut out);
    }
    out
}

/// Computations of a module, callees before callers.
pub(in crate::hlo) fn callees_first(module: &Module) -> Vec<CompId> {
    depth_first(module.comps.len(), |i| {
        module.comps[CompId::from_index(i)]
            .insts
            .values()
            .flat_map(|inst| inst.op.called_computations())
            .map(Id::index)
            .collect()
    })
    .into_iter()
    .map(CompId::from_index)
    .collect()
}

/// Instructions of a computation, dead ones included, operands before users.
pub(in crate::hlo) fn operands_first(comp: &Computation) -> Vec<InstId> {
    let operands = |i: usize| comp.insts[InstId::from_index(i)].operands.iter().map(|o| o.index()).collect();
    depth_first(comp.insts.len(), operands).into_iter().map(InstId::from_index).collect()
}

fn depth_first(n: usize, children: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let (mut seen, mut out) = (vec![false; n], Vec::with_capacity(n));
    for start in 0..n {
        let mut stack = vec![(start, None::<Vec<usize>>)];
        while let Some((node, rest)) = stack.pop() {
            let mut rest = match rest {
                Some(rest) => rest,
                None if std::mem::replace(&mut seen[node], true) => continue,
                None => {
                    let mut all = children(node);
                    all.reverse();
                    all
                }
            };
            match rest.pop() {
                Some(child) => {
                    stack.push((node, Some(rest)));
                    if child < n && !seen[child] {
                        stack.push((child, None));
                    }
                }
                None => out.push(node),
            }
        }
    }
    out
}

/// Name with letters, digits, `_`, `-` and `.` only, which begins with a letter or `_`.
fn sanitize_name(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let mut out: String = name.chars().map(keep).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, '_');
    }
    out
}

/// Unique names for instructions or computations: equal names are numbered.
pub fn unique_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let one = |name: &str| {
        let stem = sanitize_name(name);
        let mut unique = stem.clone();
        let mut n = 1;
        while !taken.insert(unique.clone()) {
            unique = format!("{stem}.{n}");
            n += 1;
        }
        unique
    };
    names.map(one).collect()
}

fn computation(module: &Module, id: CompId, comp_names: &IdVec<CompId, String>, style: Style, out: &mut String) {
    let comp = &module.comps[id];
    let names = unique_names(comp.insts.values().map(|i| i.name.as_str()));
    let params: Vec<String> =
        comp.params.iter().map(|&p| format!("{}: {}", names[p.index()], comp.insts[p].shape)).collect();
    let entry = if id == module.entry { "ENTRY " } else { "" };
    let result = comp.insts.get(comp.root).map_or(String::new(), |r| r.shape.to_string());
    let _ = writeln!(out, "\n{entry}%{} ({}) -> {result} {{", comp_names[id], params.join(", "));
    for i in operands_first(comp) {
        let root = if i == comp.root { "ROOT " } else { "" };
        let inst = &comp.insts[i];
        let _ = write!(out, "  {root}%{} = {} {}(", names[i.index()], inst.shape, inst.op.name());
        operands(inst, &names, style, out);
        out.push(')');
        if let Op::Conditional(branches) = &inst.op {
            branch_attributes(comp, inst, branches, comp_names, out);
        }
        attributes(inst, comp_names, style, out);
        out.push('\n');
    }
    out.push_str("}\n");
}

fn operands(inst: &Inst, names: &[String], style: Style, out: &mut String) {
    match &inst.op {
        Op::Parameter(n) => {
            let _ = write!(out, "{n}");
        }
        Op::Constant(value) if style.large_constants => print_literal::literal(value, out),
        Op::Constant(value) => print_literal::print_elided(value, out),
        _ => {
            for (i, operand) in inst.operands.iter().enumerate() {
                let _ = write!(out, "{}%{}", if i > 0 { ", " } else { "" }, names[operand.index()]);
            }
        }
    }
}

fn attributes(inst: &Inst, comps: &IdVec<CompId, String>, style: Style, out: &mut String) {
    for (name, value) in op_attributes(&inst.op, comps) {
        let _ = write!(out, ", {name}={value}");
    }
    for (name, value) in &inst.extra {
        let _ = write!(out, ", {name}={value}");
    }
    let m = &*inst.metadata;
    if *m != Default::default() && style.metadata {
        out.push_str(", metadata={");
        let parts = [("op_type", &m.op_type), ("op_name", &m.op_name)];
        let parts: Vec<String> =
            parts.iter().filter(|p| !p.1.is_empty()).map(|p| format!("{}=\"{}\"", p.0, escape(p.1))).collect();
        out.push_str(&parts.join(" "));
        out.push('}');
    }
}

/// Writes the branches of a conditional: two named ones for a `pred`, any number for an index.
fn branch_attributes(
    comp: &Computation,
    inst: &Inst,
    branches: &[CompId],
    names: &IdVec<CompId, String>,
    out: &mut String,
) {
    let selector = inst.operands.first().and_then(|&id| comp.insts.get(id)).and_then(|i| i.shape.as_array());
    let _ = match (branches, selector.is_some_and(|s| s.dtype == DType::Pred)) {
        ([yes, no], true) => {
            write!(out, ", true_computation=%{}, false_computation=%{}", names[*yes], names[*no])
        }
        _ => {
            let all: Vec<String> = branches.iter().map(|&b| format!("%{}", names[b])).collect();
            write!(out, ", branch_computations={{{}}}", all.join(", "))
        }
    };
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ => out.push(c),
        }
    }
    out
}
