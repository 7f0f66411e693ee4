//! A module as a Graphviz graph, and as a self-contained HTML page.
use std::fmt::Write;

use crate::hlo::{Computation, Inst, Module, Op, text};

/// The part of a module to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrawnPart {
    /// Every computation.
    Whole,
    /// The entry computation only.
    Entry,
}

/// The Graphviz text: a cluster per computation, a node per instruction, and numbered edges to instructions with several operands.
pub(super) fn graphviz_text(module: &Module, extent: DrawnPart) -> String {
    let mut out = format!("digraph {} {{\n", quoted(&module.name));
    out +=
        "  rankdir=TB; compound=true; node [shape=box, style=\"filled,rounded\", fontname=Helvetica, fontsize=10];\n";
    for id in module.reachable().into_iter().filter(|&id| extent == DrawnPart::Whole || id == module.entry) {
        let comp = &module.comps[id];
        let entry = if id == module.entry { "ENTRY " } else { "" };
        let _ =
            writeln!(out, "  subgraph cluster_{} {{\n    label={};", id.0, quoted(&format!("{entry}{}", comp.name)));
        for inst_id in comp.post_order() {
            let inst = &comp[inst_id];
            let root = if inst_id == comp.root { ", penwidth=3" } else { "" };
            let label = quoted(&label(inst));
            let _ =
                writeln!(out, "    c{}_{} [label={label}, fillcolor=\"{}\"{root}];", id.0, inst_id.0, colour(&inst.op));
        }
        out += "  }\n";
        edges(comp, id.0, &mut out);
    }
    out + "}\n"
}

fn edges(comp: &Computation, number: u32, out: &mut String) {
    for id in comp.post_order() {
        let inst = &comp[id];
        for (i, operand) in inst.operands.iter().enumerate() {
            let tail = if inst.operands.len() > 1 { format!(" [headlabel=\"{i}\"]") } else { String::new() };
            let _ = writeln!(out, "  c{number}_{} -> c{number}_{}{tail};", operand.0, id.0);
        }
        for callee in inst.op.called_computations() {
            let _ = writeln!(
                out,
                "  c{number}_{} -> c{number}_{} [style=invis]; // calls computation {}",
                id.0, id.0, callee.0
            );
        }
    }
}

fn label(inst: &Inst) -> String {
    let mut out = format!("{}\n{}\n{}", inst.op.name(), inst.name, inst.shape);
    if !inst.metadata.op_name.is_empty() {
        let _ = write!(out, "\n{} ({})", inst.metadata.op_name, inst.metadata.op_type);
    }
    out
}

/// Fill colors as in XLA: parameters orange, constants grey, contractions blue, data movement green, control flow red.
fn colour(op: &Op) -> &'static str {
    match op {
        Op::Parameter(_) => "#ffe0b2",
        Op::Constant(_) | Op::Iota(_) => "#eeeeee",
        Op::Dot(_) | Op::Convolution(_) => "#bbdefb",
        Op::Reduce { .. } | Op::ReduceWindow { .. } | Op::Sort { .. } | Op::TopK { .. } => "#e1bee7",
        Op::While { .. } | Op::Conditional(_) | Op::Call(_) | Op::Fusion { .. } => "#ffcdd2",
        Op::Elementwise(_) => "#fffde7",
        _ => "#dcedc8",
    }
}

/// A quoted string of Graphviz's language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// A self-contained HTML page with the module's text and its Graphviz graph.
pub(super) fn html_page(module: &Module, extent: DrawnPart) -> String {
    let style = text::Style { large_constants: false, metadata: true };
    let escaped = |t: String| t.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let name = escaped(module.name.clone());
    let body = escaped(text::print_with(module, style));
    let dot = escaped(graphviz_text(module, extent));
    format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{name}</title></head>\n<body><h1>{name}</h1>\n\
         <pre>{body}</pre>\n<details><summary>Graphviz</summary><pre>{dot}</pre></details>\n</body></html>\n"
    )
}
